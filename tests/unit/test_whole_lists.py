"""What is not scored is written all the same: a task chooses what is fitted and counted, never what comes out."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from swsdist.core.types import EXCERPTS, REFERENCES
from swsdist.evaluation.calibration import LAST, CalibrationRequest, FusionRequest, calibrate, fuse_lists
from swsdist.evaluation.reading import make_task
from swsdist.evaluation.scoring_task import ScoringTask, System, make_system, read_system
from swsdist.evaluation.writing import write_list
from swsdist.registry.registries import CALIBRATION, WRITERS

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
