"""Exports that tasks write part by part: the bytes are those of the whole list, whoever dies."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.exports.interface import Material
from swsdist.registry.registries import EXPORTS
from swsdist.store import parquet

LISTS = {"csv": "detections.csv", "stdlist": "stdlist.xml", "kwslist": "kwslist.xml"}
EXPORTED = "report.exports=[csv, stdlist, kwslist, labels]"


def whole(result: Any, folder: Path, kind: str) -> bytes:
    """The file of a run's list, written at once."""
    chain_run = result.outcome.chain_run
    names = [part.name for part in chain_run.receipts("decide").parts("scored")]
    rows = pa.concat_tables([parquet.read(chain_run.run, name) for name in names])
    with Path(str(chain_run.config.corpus.queries)).open(newline="") as file:
        queries = sorted({row["query_id"] for row in csv.DictReader(file)})
    EXPORTS[kind].load()(
        Material(lambda: iter(rows.to_batches(max_chunksize=7)), queries, chain_run.config.system), folder
    )
    return (folder / LISTS[kind]).read_bytes()


@pytest.mark.parametrize("most", [20, 1])
def test_parts_are_the_whole(scene: Any, tmp_path: Path, most: int) -> None:
    result = scene.run("reduce.buckets=5", f"reduce.nbest={{least: {most}, per_second: 0}}", EXPORTED)
    exports = scene.folder / "run" / "exports"
    assert result.outcome.chain_run.outcomes["format"].done > 1
    assert result.outcome.chain_run.chain.passing == {"summarise", "format", "export"}
    for kind, file in LISTS.items():
        assert (exports / file).read_bytes() == whole(result, tmp_path, kind)


@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (("d(1)", "d2"), {"stdlist": "holds '('"}),
        (("a/same", "b/same"), dict.fromkeys(("stdlist", "kwslist"), "call both")),
    ],
)
def test_what_a_program_cannot_read_is_left_out(
    own_corpus: Any, names: tuple[str, str], left_out: dict[str, str]
) -> None:
    """By a name in one part, or two that no part has both of; nothing is left of the list that was there."""
    scene = own_corpus
    sets = "reduce.buckets=64", "reduce.nbest={least: 1, per_second: 0}", EXPORTED
    scene.run(*sets)
    exports = scene.folder / "run" / "exports"
    assert {path.name for path in exports.iterdir()} == {*LISTS.values(), "labels"}
    with (exports / "detections.csv").open(newline="") as file:
        first, second = list(dict.fromkeys(row["doc_id"] for row in csv.DictReader(file)))[:2]
    for table in ("docs.csv", "refs.csv"):
        text = (scene.corpus / table).read_text()
        for old, new in zip((first, second), names, strict=True):
            text = re.sub(rf"\b{old}(?=,)", new, text)
        (scene.corpus / table).write_text(text)
    said = scene.run(*sets).outcome.chain_run.notices()
    assert {file for file in LISTS.values() if (exports / file).exists()} == {
        file for kind, file in LISTS.items() if kind not in left_out
    }
    for kind, why in left_out.items():
        (notice,) = (notice for notice in said if f"{kind} was not exported" in notice)
        assert why in notice


@pytest.mark.ray
@pytest.mark.parametrize("writing", ["rows", "tail"])
def test_a_worker_is_killed(scene: Any, cluster: Any, writing: str) -> None:
    """While it writes a part, or puts parts together."""
    scene.sabotage(writing=writing)
    ended = scene.go(*cluster.sets, "executor.workers=2", "reduce.buckets=5", "report.exports=[csv, killed-csv]")
    assert ended.returncode == 0, ended.stderr
    assert not scene.order.exists()
    assert len([line for lines in scene.journals() for line in lines if line["event"] == "died"]) == 1
    exports = scene.folder / "run" / "exports"
    assert {path.name for path in exports.iterdir()} == {"detections.csv", "killed.csv"}
    assert (exports / "killed.csv").read_bytes() == (exports / "detections.csv").read_bytes()
