"""What each step of calibration is worth: one search of Mboshi dev, and every order of steps on it.

A row a list of steps: pair AUC (`pair_auc`, the mean over queries, and `pooled_pair_auc`), least and actual Cnxe, MTWV, ATWV by
crossfit, OTWV less MTWV, and ATWV less that of doing without the step: the mean difference over queries with its 95 %
interval, from a paired bootstrap over queries (10000 draws). Steps with a threshold of their own decide by it (of ratios that
of eq. 31), but for powers, after which that of sto no longer holds.

OTWV has a threshold for each query, chosen with knowledge of the references. Some of what it gains is chance: the last line
shows OTWV less MTWV where each query's hits and false alarms are drawn anew from one pool of all queries' (as many as it has),
so that queries differ by nothing but chance.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_most, say, show
from swsdist import api
from swsdist.config import load_config
from swsdist.pipeline.chain_run import StepSelection
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import mtwv, per_term, twv_curve
from swsdist.stages.buckets import Measured as Told

_SIDES = "duration, length-ratio, mean, deviation, best, gap"
_RISING = "{llr: {curve: rising}}"

#: Name: steps, options, and what doing without the step is.
CASES: dict[str, tuple[str, str, str]] = {
    "nothing": ("[]", "{}", ""),
    "q-norm": ("[q-norm]", "{}", "nothing"),
    "m-norm": ("[m-norm]", "{}", "nothing"),
    "m-norm, all": ("[m-norm]", "{m-norm: {deviation: all}}", "nothing"),
    "m-norm, worse": ("[m-norm]", "{m-norm: {deviation: worse}}", "nothing"),
    "speaker-norm": ("[speaker-norm]", "{}", "q-norm"),
    "zt-norm (other queries)": ("[zt-norm]", "{}", "q-norm"),
    "logistic": ("[q-norm, logistic]", "{}", "q-norm"),
    "logistic, kst": ("[q-norm, logistic, kst]", "{}", "logistic"),
    "logistic, sto": ("[q-norm, logistic, sto]", "{}", "logistic"),
    "logistic, power 0.5, sto": ("[q-norm, logistic, power, sto]", "{power: {gamma: 0.5}}", "logistic, sto"),
    "llr, line": ("[q-norm, llr]", "{}", "q-norm"),
    "llr, rising": ("[q-norm, llr]", _RISING, "q-norm"),
    "llr, rising, at 1/120": (
        "[q-norm, llr, at-prior]",
        "{llr: {curve: rising}, at-prior: {vocabulary: 120}}",
        "llr, rising",
    ),
    "m-norm, llr, rising": ("[m-norm, llr]", _RISING, "m-norm"),
    "zt-norm, llr, rising": ("[zt-norm, llr]", _RISING, "zt-norm (other queries)"),
    "llr, rising, duration": ("[q-norm, llr]", "{llr: {curve: rising, covariates: [duration]}}", "llr, rising"),
    "llr, rising, speech": ("[q-norm, llr]", "{llr: {curve: rising, covariates: [speech]}}", "llr, rising"),
    "llr, rising, length-ratio": ("[q-norm, llr]", "{llr: {curve: rising, covariates: [length-ratio]}}", "llr, rising"),
    "llr, rising, mean, deviation": (
        "[q-norm, llr]",
        "{llr: {curve: rising, covariates: [mean, deviation]}}",
        "llr, rising",
    ),
    "llr, rising, best, gap": ("[q-norm, llr]", "{llr: {curve: rising, covariates: [best, gap]}}", "llr, rising"),
    "llr, rising, posterior-sum": (
        "[q-norm, logistic, llr]",
        "{llr: {curve: rising, covariates: [posterior-sum]}}",
        "llr, rising",
    ),
    "llr, rising, all of these": (
        "[q-norm, llr]",
        f"{{llr: {{curve: rising, covariates: [{_SIDES}]}}}}",
        "llr, rising",
    ),
}

_COLUMNS = {
    "pair AUC": "pair_auc",
    "pooled pair AUC": "pooled_pair_auc",
    "min Cnxe": "cnxe_min",
    "Cnxe": "cnxe",
    "MTWV": "mtwv",
    "ATWV": "atwv",
}


class Measured(NamedTuple):
    """Measures of one list of steps, TWV of each query at its decisions, and its aligned list."""

    values: dict[str, float]
    twv: dict[str, float]
    trials: pa.Table
    point: tuple[int, float]


def run(config: Path, folder: str, name: str, sets: list[str]) -> Measured:
    """One list of steps on the search of a run folder, which is done if it is not there."""
    steps, options, _ = CASES[name]
    how = "fitted" if "power" in name else "own"
    mine = [f"run={folder}", "report.exports=[]", f"calibrate.threshold={how}"]
    mine += [f"calibrate.steps={steps}", f"calibrate.options={options}", *sets]
    result = api.run(load_config(config, mine), selection=StepSelection(until="score"))
    if result.outcome.failures:
        raise RuntimeError(f"{name}: {result.outcome.failures[0].message}")
    chain_run = result.outcome.chain_run
    terms = pa.concat_tables(chain_run.read("terms")).to_pylist()
    trials = pa.concat_tables(chain_run.read("trials"))
    (told,) = chain_run.results("measures", Told)
    values = {key: float(value) for key, value in told.measures.items() if isinstance(value, int | float)}
    twv = {row["query_id"]: row["twv"] for row in terms if row["ntrue"]}
    return Measured(values, twv, trials, (told.point["trials"], told.point["beta"]))


def gap_by_chance(trials: pa.Table, point: tuple[int, float], draws: int = 20) -> tuple[float, float]:
    """OTWV less MTWV with scores drawn from one pool: mean, and deviation over draws."""
    rng = np.random.default_rng(0)
    scored = pc.is_valid(trials["score"]).to_numpy()
    hit = pc.is_valid(trials["ref_start"]).to_numpy() & scored
    false = scored & ~hit
    scores = trials["score"].to_numpy().copy()
    gaps = []
    for _ in range(draws):
        drawn = scores.copy()
        for kind in (hit, false):
            drawn[kind] = rng.permutation(scores[kind])
        place = trials.schema.get_field_index("score")
        one = trials.set_column(place, trials.schema.field(place), pa.array(drawn, mask=~scored))
        gaps.append(otwv(one, point) - best(one, point))
    return float(np.mean(gaps)), float(np.std(gaps))


def best(trials: pa.Table, point: tuple[int, float]) -> float:
    """MTWV."""
    return mtwv(twv_curve(Counts.of(trials), trials=point[0], beta=point[1])).twv


def otwv(trials: pa.Table, point: tuple[int, float]) -> float:
    """The mean of each query's best TWV."""
    rows = per_term(trials, trials=point[0], beta=point[1]).to_pylist()
    return float(np.mean([max(row["best_twv"], 0.0) for row in rows if row["ntrue"]]))


def paired(one: Measured, other: Measured) -> tuple[float, float, float]:
    """Difference of ATWV, and its interval."""
    queries = sorted(one.twv)
    values = np.array([[each.twv[query] for query in queries] for each in (one, other)])
    drawn = bootstrap_terms(values)
    interval = drawn.interval(0, 1)
    return float(drawn.observed[0] - drawn.observed[1]), interval.low, interval.high


def measure(config: Path, folder: str, sets: list[str]) -> tuple[list[Row], str]:
    """Rows with goals, and the table as Markdown."""
    found: dict[str, Measured] = {}
    lines = [
        f"| steps | {' | '.join(_COLUMNS)} | OTWV - MTWV | ATWV less that without |",
        "|---" * (len(_COLUMNS) + 3) + "|",
    ]
    for name, (_, _, without) in CASES.items():
        say(f"calibration_steps: {name}")
        one = found[name] = run(config, folder, name, sets)
        cells = [f"{one.values[key]:.4f}" for key in _COLUMNS.values()]
        gap = one.values["otwv"] - one.values["mtwv"]
        told = "{:+.4f} ({:+.4f} to {:+.4f})".format(*paired(one, found[without])) if without else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {gap:.4f} | {told} |")
    plain = found["q-norm"]
    chance, spread = gap_by_chance(plain.trials, plain.point)
    lines.append(f"\nOTWV less MTWV by chance alone, q-norm: {chance:.4f} (deviation {spread:.4f} over 20 draws)")
    rows = [
        Row(f"{name}: {label}", found[name].values[key], "")
        for name in ("q-norm", "llr, rising")
        for label, key in _COLUMNS.items()
    ]
    short = found["q-norm"].values["mtwv"] - found["llr, rising"].values["atwv"]
    rows.append(Row("llr, rising: MTWV of q-norm less ATWV by eq. 31, crossfit", short, "", at_most(0.01)))
    rows.append(Row("OTWV less MTWV, q-norm", plain.values["otwv"] - plain.values["mtwv"], ""))
    rows.append(Row("OTWV less MTWV, q-norm, by chance alone", chance, ""))
    return rows, "\n".join(lines)


def main() -> None:
    """Print the table, and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--config", type=Path, default=ROOT / "configs" / "mboshi-dev.yaml", help="system to calibrate")
    parser.add_argument(
        "--run", help="run folder, which may hold the search already; by default one that is thrown away"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="as of swsdist run"
    )
    given = parser.parse_args()
    if mboshi() is None and given.run is None:
        rows = [Row("calibration_steps (Mboshi dev is not beside the checkout)", None, "")]
    else:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            rows, text = measure(given.config, given.run or f"{scratch}/run", given.sets)
        print(text)
    show(rows, given.json)


if __name__ == "__main__":
    main()
