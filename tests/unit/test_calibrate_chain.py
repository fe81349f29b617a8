"""Probabilities, KST and STO in a run; and the chain alone, by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile

import swsdist
from swsdist.api import RunResult
from swsdist.calibrate.chain import Chain, fit_chain, thresholds_of
from swsdist.calibrate.logistic import Labelled, Logistic, Logistics, fit_logistic
from swsdist.calibrate.posterior import PosteriorSums
from swsdist.calibrate.threshold import by_fold, fold_of
from swsdist.calibrate.thresholding import Thresholding
from swsdist.errors import ConfigError
from swsdist.io.nist.systemlist import read_systemlist
from swsdist.io.tables import read_table
from swsdist.score import Counts, align, atwv, fit_threshold, mtwv, score_limits, twv_curve
from swsdist.types import REFERENCES, TRIALS

# On a corpus as small as this some folds learn that higher scores are less likely.
pytestmark = pytest.mark.filterwarnings("ignore:the logistic's slope")

RATE = 8000


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Eight queries of coloured noise, each planted in two of six documents, loudly or faintly."""
    root = tmp_path_factory.mktemp("chain")
    rng = np.random.default_rng(8)
    words = [np.cumsum(rng.normal(size=round(0.4 * RATE))) * 0.003 for _ in range(8)]
    documents = [rng.normal(scale=0.05, size=3 * RATE) for _ in range(6)]
    refs = ["query_id,doc_id,start,end"]
    for k, word in enumerate(words):
        soundfile.write(root / f"q{k}.wav", word.clip(-1, 1), RATE)
        for d, start, loudness in ((k % 6, 0.2 + 0.6 * (k % 4), 1.0), ((k + 2) % 6, 0.5 + 0.6 * (k % 4), 0.2)):
            first = round(start * RATE)
            documents[d][first : first + len(word)] += word * loudness
            refs.append(f"q{k},d{d},{start:.1f},{start + 0.4:.1f}")
    for d, samples in enumerate(documents):
        soundfile.write(root / f"d{d}.wav", samples.clip(-1, 1), RATE)
    (root / "docs.csv").write_text("doc_id,path\n" + "".join(f"d{d},d{d}.wav\n" for d in range(6)))
    (root / "queries.csv").write_text("query_id,path\n" + "".join(f"q{k},q{k}.wav\n" for k in range(8)))
    (root / "refs.csv").write_text("\n".join(refs) + "\n")
    return root


def run(place: Path, *, references: bool = True, protocol: str = "sws2013", **calibrate: Any) -> RunResult:
    config: dict[str, Any] = {
        "run": str(place / "run"),
        "corpus": {"documents": str(place / "docs.csv"), "queries": str(place / "queries.csv")},
        "features": {"options": {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}},
        "calibrate": calibrate,
        "score": {"beta": 1.0, "protocol": protocol},
        "report": {"exports": ["stdlist"]},
        "executor": {"kind": "serial"},
    }
    if references:
        config["corpus"]["references"] = str(place / "refs.csv")
    return swsdist.run(config)


def calibration_file(result: RunResult) -> Path:
    (receipt,) = result.outcome.course.ended["fit"].receipts
    return Path(result.folder) / receipt.outputs[0].name


def decided(result: RunResult) -> set[tuple[Any, ...]]:
    frame = result.detections()
    return set(zip(frame["query_id"], frame["score"], frame["decision"], strict=True))


# -- in a run -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["logistic", "kst", "sto"])
def test_what_is_scored_is_what_is_exported(place: Path, method: str) -> None:
    """The exported list, read and aligned anew, has the run's own measures, to the last bit."""
    result = run(place, normalise=method)
    exported = read_systemlist(str(place / "run/exports/stdlist.xml")).detections
    references = read_table(str(place / "refs.csv"), REFERENCES)
    low, high = score_limits(exported["score"])
    aligned = align(exported, references, tolerance=0.5, low=low, high=high)
    counts, measures = Counts.of(aligned), result.measures()
    assert measures["atwv"] == atwv(counts, trials=18, beta=1.0).twv
    best = mtwv(twv_curve(counts, trials=18, beta=1.0))
    assert (measures["mtwv"], measures["mtwv_threshold"]) == (best.twv, best.threshold)
    assert {0.0 <= score <= 1.0 for _, score, _ in decided(result)} == {True}
    assert {yes for *_, yes in decided(result)} == {True, False}


def test_kwsevals_alignment_is_made_anew_too(place: Path) -> None:
    """KWSEval's kernel takes the least and greatest score of each group."""
    result = run(place, normalise="kst", protocol="kwseval")
    exported = read_systemlist(str(place / "run/exports/stdlist.xml")).detections
    references = read_table(str(place / "refs.csv"), REFERENCES)
    aligned = align(exported, references, tolerance=0.5, low=None, high=None, conventions="kwseval")
    assert result.measures()["atwv"] == atwv(Counts.of(aligned), trials=18, beta=1.0).twv


def test_kst_of_the_folds_own_logistic(place: Path) -> None:
    """Each query's scores are the q-normed ones through the logistic of its fold, then KST with S(w) over its list."""
    plain = run(place, normalise="q-norm").detections()
    result = run(place, normalise="kst", alpha=1.2)
    chain = Chain.from_run(calibration_file(result).read_bytes())
    assert (chain.kind, chain.thresholds, len(chain.logistics.models)) == ("kst", (0.5,), 5)
    how = Thresholding("kst", 18, 1.0, 1.2)
    assert chain.thresholding == how
    expected = set()
    for query, rows in plain.groupby("query_id"):
        p = chain.logistics.models[fold_of(str(query), 5)].probability(rows["score"])
        sums = PosteriorSums({"q": sum(round(v * 2**62) for v in p.tolist())}).values(["q"])
        scores = how.normalised(p, np.repeat(sums, len(p)))
        expected |= {(query, score, score >= 0.5) for score in scores.tolist()}
    assert decided(result) == expected
    assert result.measures()["atwv_thresholds"] == [0.5]


def test_a_fitted_threshold_is_that_of_the_others(place: Path) -> None:
    measures = run(place, normalise="sto", threshold="fitted").measures()
    assert len(measures["atwv_thresholds"]) == 5
    own = run(place, normalise="sto").measures()
    assert own["atwv_thresholds"] == [Thresholding("sto", 18, 1.0).threshold]
    assert own["mtwv"] == measures["mtwv"]
    oracle = run(place, normalise="sto", threshold="fitted", fit="oracle").measures()
    assert oracle["calibration"] == "oracle"
    assert oracle["atwv"] == pytest.approx(oracle["mtwv"], abs=1e-12)


def test_a_file_of_another_run_needs_no_references(place: Path, tmp_path: Path) -> None:
    oracle = run(place, normalise="kst", fit="oracle")
    kept = tmp_path / "kept.json"
    kept.write_bytes(calibration_file(oracle).read_bytes())
    assert decided(run(place, normalise="kst", fit=str(kept))) == decided(oracle)
    bare = run(place, normalise="kst", fit=str(kept), references=False)
    assert decided(bare) == decided(oracle)
    with pytest.raises(ConfigError, match=r"thresholds are for kst with alpha 1\.5, not for sto"):
        run(place, normalise="sto", fit=str(kept), threshold="fitted")
    assert run(place, normalise="sto", fit=str(kept)).measures()["calibration"] == "file"


def test_a_change_of_method_does_not_search_again(place: Path) -> None:
    run(place, normalise="q-norm")
    result = run(place, normalise="kst", alpha=2.75)
    ended = result.outcome.course.ended
    assert [name for name, stage in ended.items() if stage.done] == ["fit", "decide", "align.final", "score", "export"]


def test_what_cannot_be_fitted_is_told_at_the_door(place: Path) -> None:
    with pytest.raises(ConfigError, match=r"calibrate.normalise: kst fits a logistic, but calibrate.fit is none"):
        run(place, normalise="kst", fit="none")
    with pytest.raises(ConfigError, match=r"needs corpus\.references, or a fitted file"):
        run(place, normalise="sto", references=False)
    (place / "wrong.json").write_text('{"schema": "swsdist-calibration/1"}')
    with pytest.raises(ConfigError, match="not a logistic calibration"):
        run(place, normalise="sto", fit=str(place / "wrong.json"))


def test_without_true_occurrences_there_is_nothing_to_learn(place: Path) -> None:
    kept = (place / "refs.csv").read_text()
    (place / "refs.csv").write_text(kept.splitlines()[0] + "\n")
    try:
        with pytest.raises(ConfigError, match="no true occurrence to fit a logistic on"):
            run(place, normalise="kst")
    finally:
        (place / "refs.csv").write_text(kept)


# -- alone ----------------------------------------------------------------------------------------------------------


def aligned(seed: int) -> pa.Table:
    """Scores of twelve queries, hits higher by two."""
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(12):
        for hit in rng.random(20) < 0.3:
            score = round(float(rng.normal(2.0 * hit, 1.0)), 3)
            row = {"query_id": f"q{query}", "doc_id": "d", "channel": 1, "start": 1.0, "end": 2.0, "score": score}
            rows.append({**row, "ref_start": 1.0 if hit else None})
    return pa.Table.from_pylist(rows, TRIALS)


def test_nothing_of_a_query_reaches_its_own_threshold() -> None:
    """A fold's threshold is fitted on the others' scores as its own logistic, fitted on the others, makes them."""
    whole = aligned(1)
    parts = dict(by_fold(whole, 4))

    def each() -> Iterator[pa.Table]:
        yield from parts.values()

    how = Thresholding("kst", 3000, 20.0)
    found = fit_chain(each, how, folds=4, own=False, trials=3000, beta=20.0, trained_on={})
    for fold in parts:
        others = pa.concat_tables([rows for k, rows in parts.items() if k != fold])
        logistic = fit_logistic(Labelled.of(others))
        assert found.logistics.models[fold] == logistic
        scores = how.apply(Logistics("", (logistic,), {}).apply(others))
        assert found.thresholds[fold] == fit_threshold(Counts.of(scores), trials=3000, beta=20.0)
    assert found.logistics.trained_on == {"queries": 12}
    scores = found.apply(whole)["score"].to_numpy()
    assert (found.low, found.high) == (scores.min(), scores.max())
    assert Chain.from_run(found.to_json()) == found


def test_the_order_of_parts_does_not_matter() -> None:
    parts = [rows for _, rows in by_fold(aligned(2), 4)]
    found = [
        fit_chain(lambda way=way: iter(parts[::way]), None, folds=4, own=True, trials=3000, beta=20.0, trained_on={})
        for way in (1, -1)
    ]
    assert found[0] == found[1]
    assert found[0].kind == "logistic"
    assert len(found[0].thresholds) == 4


def test_thresholds_of_a_file() -> None:
    one = Logistics("crossfit", (Logistic(1.0, 0.0),), {})
    chain = Chain(one, Thresholding("kst", 100, 2.0), (0.4, None, 0.6))
    assert thresholds_of(chain.to_json(), "there", chain) == (0.5,)
    with pytest.raises(ConfigError, match="it holds no threshold"):
        thresholds_of(Chain(one, chain.thresholding).to_json(), "there", chain)
    with pytest.raises(ConfigError, match=r"for kst with alpha 1.5, not for kst with 2.0"):
        thresholds_of(chain.to_json(), "there", Chain(one, Thresholding("kst", 100, 2.0, 2.0)))
    with pytest.raises(ConfigError, match="for None with alpha None"):
        thresholds_of(json.dumps(json.loads(one.to_json())).encode(), "there", chain)
