"""The QUESST program: its lists, what it computed, what it printed, and its curve (`det.csv`, which may be thinned)."""

import csv
import io
import math
import re
from pathlib import Path
from types import EllipsisType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.evaluation.evaluate import evaluate
from swsdist.evaluation.reading import read_task
from swsdist.evaluation.scoring_task import read_system
from swsdist.io.compressed import lines
from swsdist.score.events import measure_parts, merge_tables
from swsdist.score.measures.curve import Curve
from swsdist.score.measures.protocol import protocol
from swsdist_recipes.quesst.measure import measured
from swsdist_recipes.quesst.program import Quesst, Values
from tests.support.golden.runner import Case, needed, place, text, values

NAME = "QUESST program"

_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:E-?\d+)?|Infinity)|NaN|null")
_TOLERANCE = 1e-9  # the program's sums are off by some 1e-13, its lists have five decimals


def handles(folder: Path) -> bool:
    """Do its parameters have the program's effective prior?"""
    return place(folder, "params.json") is not None and "effective_prior" in values(folder, "params.json")


def run(folder: Path) -> Case:
    """Compare both sets of values, the curve, and each number that the program printed."""
    case = Case.of(folder)
    params, expected = values(folder, "params.json"), values(folder, "expected.json")
    prior, default = params["effective_prior"], params["default_score"]
    rules = protocol("quesst", beta=(1 - prior) / prior, default_score=default)
    rttm = needed(folder, "ref.rttm")
    task = read_task(ecf=needed(folder, "ecf.xml"), rttm=rttm, terms=needed(folder, "tlist.xml"), protocol=rules)
    result = evaluate(task, read_system(needed(folder, "stdlist.xml"), conventions="quesst"))
    ours = measured(merge_tables([measure_parts(result.aligned, result.point)]), result.point)
    assert ours is not None

    unique = _unique(ours.curve), _unique(ours.per_query_curve)
    if not all(unique):
        case.treated.append(
            "several thresholds have the greatest TWV; which is named hangs on the order of sums: not compared"
        )
    terms = task.terms["query_id"].to_pylist()
    seen = set(task.references["query_id"].to_pylist())
    if len(ours.curve.threshold) <= len(seen) * task.trials:
        case.treated.append("equal scores are pooled in the order of the file, as the program does")
    _compare_values(case, "", ours.pooled, expected, unique[0])
    _compare_values(case, "per-query ", ours.per_query, expected["per_query"], unique[1])
    if place(folder, "det.csv"):
        _compare_curve(case, ours.curve, list(csv.DictReader(io.StringIO(text(folder, "det.csv")))))
    known = sum(line.split()[5] in terms for _, line in lines(rttm) if line)
    scored = result.aligned.filter(pc.is_in(result.aligned["query_id"], value_set=pa.array(sorted(seen))))["score"]
    printed = _printed(ours, scored.drop_null(), (len(terms), len(seen), task.trials, known), default, unique)
    for line in expected["printed"]:
        for start, numbers in printed.items():
            if line.startswith(start):
                _compare_printed(case, line, numbers)
    return case


def _unique(curve: Curve) -> bool:
    return bool(np.count_nonzero(curve.twv > curve.twv.max() - _TOLERANCE) == 1)


def _compare_values(case: Case, prefix: str, ours: Values, theirs: dict[str, Any], unique: bool) -> None:
    for name in ("act_twv", "max_twv", "act_cnxe", "min_cnxe"):
        case.close(prefix + name, getattr(ours, name), theirs[name], _TOLERANCE)
    if unique:
        case.close(f"{prefix}threshold", ours.threshold, theirs["threshold"], _TOLERANCE)


def _compare_curve(case: Case, ours: Curve, theirs: list[dict[str, str]]) -> None:
    thresholds = [_number(row["threshold"]) for row in theirs]
    case.equal("ends of the curve", (ours.threshold[0], ours.threshold[-1]), (thresholds[0], thresholds[-1]))
    at = np.minimum(np.searchsorted(ours.threshold, thresholds), len(ours.threshold) - 1)
    case.equal("thresholds of the curve", ours.threshold[at].tolist(), thresholds)
    for k, row in zip(at, theirs, strict=True):
        where = f"at {row['threshold']}"
        for name, rates in (("pmiss", ours.pmiss), ("pfa", ours.pfa)):
            rate = float(row[f"{name}_5dp"])
            case.close(f"curve {name}", rates[k], rate, _TOLERANCE, what=f"{name} {where}", rounding=5e-6)
        value = float(row["value_float"])
        case.close("curve twv", ours.twv[k], value, _TOLERANCE, what=f"twv {where}", rounding=_float32_unit(value))
    if len(theirs) < len(ours.threshold):
        case.treated.append(f"the case keeps {len(theirs)} of the curve's {len(ours.threshold)} points")


def _printed(
    ours: Quesst, scores: pa.ChunkedArray, counts: tuple[int, ...], default: float | None, unique: tuple[bool, bool]
) -> dict[str, list[float | EllipsisType | None]]:
    """The numbers on each line that the program prints, by how the line begins; those that are not compared are `...`."""
    terms, queries, documents, references = counts
    left_out, limits = queries * documents - len(scores), pc.min_max(scores).as_py()
    pooled, own = ours.pooled, ours.per_query
    return {
        "Loading tlist": [terms],
        "Loading ecf": [documents],
        "Loading rttm": [references],
        "Removing": [terms - queries],
        "Scores": [queries * documents, queries, documents, len(scores), default, left_out, *limits.values()],
        "actTWV": [pooled.act_twv, pooled.max_twv, pooled.threshold if unique[0] else ...],
        "actCnxe": [pooled.act_cnxe, pooled.min_cnxe],
        "Upper-bound TWV": [own.act_twv, own.max_twv, own.threshold if unique[1] else ...],
        "Lower-bound Cnxe": [own.act_cnxe, own.min_cnxe],
    }


def _compare_printed(case: Case, line: str, ours: list[float | EllipsisType | None]) -> None:
    theirs = _NUMBER.findall(re.sub(r"[\w.]+\.(xml|rttm)", "", line))
    case.equal(f"how many numbers are in: {line}", len(ours), len(theirs))
    for mine, printed in zip(ours, theirs, strict=False):
        if mine is None or printed == "null":
            case.equal(line, "null" if mine is None else mine, printed)
        elif not isinstance(mine, EllipsisType):
            value = _number(printed)
            case.close("printed", mine, value, _TOLERANCE, what=line, rounding=_float32_unit(value))


def _number(printed: str) -> float:
    return float(printed.replace("Infinity", "inf"))


def _float32_unit(value: float) -> float:
    """Unit in the last place of a number printed as a float32; Java does not always print the nearest decimal."""
    return float(np.spacing(np.float32(abs(value)))) if math.isfinite(value) else 0.0
