"""KST and STO by hand, and their edges; what is not scored is written all the same."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.calibrate.rescoring import Rescoring
from swsdist.calibrate.steps.by_term import PosteriorSums, Thresholding, checked, kst_threshold
from swsdist.core.codes import families
from swsdist.core.codes import score as calibrate_codes
from swsdist.core.codes import score as score_codes
from swsdist.core.types import DETECTIONS, EXCERPTS, REFERENCES, TRIALS
from swsdist.evaluation.calibration import LAST, CalibrationRequest, FusionRequest, calibrate, fuse_lists
from swsdist.evaluation.reading import make_task
from swsdist.evaluation.scoring_task import ScoringTask, System, make_system, read_system
from swsdist.evaluation.writing import write_list
from swsdist.registry.registries import CALIBRATION, WRITERS
from tests.support.coded import raises


def detections(*rows: tuple[str, float]) -> pa.Table:
    blank = {**dict.fromkeys(DETECTIONS.names), "doc_id": "d", "channel": 1, "start": 0.0, "end": 1.0}
    return pa.Table.from_pylist([{**blank, "query_id": q, "score": p} for q, p in rows], DETECTIONS)


def test_thresholds_and_scores_by_hand() -> None:
    """T = 101, beta = 2. Eq. 3 with n = 1: 2 / 102. S(w) = 2 and alpha = 1.5, so n = 3: 6 / 104. Eq. 5: 3 / 102.5."""
    assert float(kst_threshold(1, trials=101, beta=2)) == pytest.approx(2 / 102)
    assert float(Thresholding("kst", 101, 2.0).thresholds(2.0)) == pytest.approx(6 / 104)
    sto = Thresholding("sto", 101, 2.0)
    assert sto.threshold == pytest.approx(3 / 102.5)
    assert float(sto.thresholds(2.0)) == pytest.approx(6 / 102.5)
    assert Thresholding("oracle-kst", 101, 2.0).thresholds([0.3, 0.3], [1, 0]).tolist() == [
        pytest.approx(2 / 102),
        math.inf,
    ]
    # A threshold of 1/5 has odds of 1/4: p = 1/2 then has four times these, so 4/5. STO's scores of a term sum to one.
    how = Thresholding("oracle-kst", 5, 1.0)  # beta 1: the threshold is n / T
    assert how.normalised([0.5, 0.2, 0.1, 0.0, 1.0], 0.0, 1) == pytest.approx([0.8, 0.5, 4 / 13, 0.0, 1.0])
    sto = Thresholding("sto", 100, 2.0).apply(detections(("a", 0.3), ("a", 0.1), ("b", 0.2)))
    assert sto["score"].to_pylist() == pytest.approx([0.75, 0.25, 1.0])
    with raises(calibrate_codes.ORACLE_WITHOUT_REFERENCES):
        Thresholding("oracle-kst", 100, 1.0).apply(detections(("a", 0.5)))
    found = Thresholding("oracle-kst", 100, 1.0).apply(detections(("a", 0.5), ("b", 0.5)), true={"a": 2})
    assert found["decision"].to_pylist() == [True, False]
    # More are expected than there are trials: n counts as T at most, and the threshold is 1 there.
    for method in ("kst", "sto"):
        found = Thresholding(method, 100, 1.0).apply(detections(("a", 0.0), ("a", 0.0)))
        assert found["decision"].to_pylist() == [False, False]
        assert found["score"].to_pylist() == [0.0, 0.0]
    found = Thresholding("kst", 2, 5.0).apply(detections(("a", 1.0), ("a", 0.999)))
    assert found["decision"].to_pylist() == [True, False]


def test_a_list_is_decided_and_a_sweep_needs_what_twv_needs() -> None:
    """T = 11, beta = 1, alpha = 1.1: the threshold of `a`, S = 1, is 0.1; that of `b`, S = 0.05, is 0.005."""
    given = detections(("a", 0.95), ("a", 0.05), ("b", 0.05))
    how = Thresholding("kst", 11, 1.0, 1.1)
    scored = how.apply(given)
    assert scored["decision"].to_pylist() == [True, False, True]
    assert scored.drop_columns(["decision", "score"]).equals(given.drop_columns(["decision", "score"]))
    assert scored.schema.equals(DETECTIONS)
    assert (np.array(scored["score"]) >= how.threshold).tolist() == [True, False, True]
    assert how.apply(DETECTIONS.empty_table()).equals(DETECTIONS.empty_table())
    with raises(score_codes.NO_REFERENCES):
        of_list(aligned(("a", 0.5, False)))
    with raises(calibrate_codes.NOT_PROBABILITIES):
        of_list(aligned(("a", 1.5, True)))
    sweep = of_list(aligned(("a", 0.5, True)))
    with raises(families.UNDEFINED, trials=1):
        sweep.at("kst", 1.0, 1.0, trials=1)
    with raises(score_codes.VALUE_NOT_POSITIVE, name="alpha"):
        sweep.at("kst", [1.0, 0.0], 1.0, trials=10)


def test_scores_that_are_no_probabilities_are_refused() -> None:
    for bad in (-0.1, 1.0000001, math.nan, 7.3):
        with raises(calibrate_codes.NOT_PROBABILITIES):
            checked([0.5, bad])
        if not math.isnan(bad):
            for use in (PosteriorSums.of, Thresholding("kst", 10, 1.0).apply):
                with raises(calibrate_codes.NOT_PROBABILITIES):
                    use(detections(("a", bad)))
    positive = score_codes.VALUE_NOT_POSITIVE
    cases: list[tuple[tuple[Any, ...], Any, dict[str, Any]]] = [
        (("kts", 10, 1.0), families.UNKNOWN_NAME, {"method": "kts"}),
        (("kst", 0, 1.0), positive, {"name": "trials", "value": 0}),
        (("kst", 10, -1.0), positive, {"name": "beta", "value": -1.0}),
        (("kst", 10, 1.0, math.nan), positive, {"name": "alpha"}),
        (("kst", 10, math.inf), positive, {"name": "beta", "value": math.inf}),
    ]
    for arguments, code, values in cases:
        with raises(code, **values):
            Thresholding(*arguments)


def aligned(*rows: tuple[str, float | None, bool]) -> pa.Table:
    base = {"doc_id": "d", "channel": 1}
    found = [base | {"query_id": q, "score": p, "ref_start": 1.0 if hit else None} for q, p, hit in rows]
    return pa.Table.from_pylist(found, TRIALS)


def of_list(table: pa.Table) -> Rescoring:
    return Rescoring.of_list(table, tolerance=None, conventions="stdeval")


#: Query 6 does not occur, document 4 is not judged, and 5 is outside of what is scored.
ROWS = [(f"q{q}", f"d{d}", 2.0 * q + 1, (7 * q + 5 * d) % 11 / 11 + 0.01) for q in range(7) for d in range(6)]
JUDGED = [
    {"query_id": q, "doc_id": d, "channel": 1, "start": start, "end": start + 0.5, "score": score}
    for q, d, start, score in ROWS
    if q != "q6" and d not in ("d4", "d5")
]
TRUE = [row for k, row in enumerate(JUDGED) if row["score"] > 0.6 or k % 7 == 0]
FITTED = {name for name in CALIBRATION if not CALIBRATION[name].first and name not in ("fusion", "at-prior")}
#: `none` converts, kaldi removes duplicates only, of which there are none here.
METHODS = sorted({*FITTED, *LAST, "llr,at-prior"})


@pytest.fixture
def task() -> ScoringTask:
    true = pa.Table.from_pylist(TRUE, REFERENCES)
    places = [{"file": f"d{d}", "channel": 1, "source_type": "", "start": 0.0, "duration": 100.0} for d in range(5)]
    excerpts = pa.Table.from_pylist([place | {"language": None} for place in places], EXCERPTS)
    return replace(
        make_task(true, total_seconds=600.0), judged=pa.Table.from_pylist(JUDGED, REFERENCES), excerpts=excerpts
    )


def system(turn: int = 0) -> System:
    columns = ("query_id", "doc_id", "start", "score")
    table = {name: [row[k] for row in ROWS[turn:] + ROWS[:turn]] for k, name in enumerate(columns)}
    return make_system({**table, "end": [start + 0.5 for start in table["start"]]})


def places(table: pa.Table) -> list[tuple[str, str, float]]:
    return sorted(zip(*(table[name].to_pylist() for name in ("query_id", "doc_id", "start")), strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_calibrated(method: str, task: ScoringTask) -> None:
    given = system()
    assert places(calibrate(given, CalibrationRequest(method), task).detections) == places(given.detections)


@pytest.mark.parametrize("fit", ["none", "oracle", "crossfit"])
def test_fused(fit: str, task: ScoringTask) -> None:
    one, two = system(), system(1)
    fused = fuse_lists({"one": one, "two": two}, FusionRequest(fit=fit), task)
    assert places(fused.system.detections) == places(one.detections)


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_written(kind: str, task: ScoringTask, tmp_path: Path) -> None:
    given = system()
    out = tmp_path / f"list{WRITERS[kind].ending or '.txt'}"
    write_list(given.detections, out, given, task, kind)
    assert places(read_system(str(out), conventions=task.conventions, notices=task.notices).detections) == places(
        given.detections
    )
