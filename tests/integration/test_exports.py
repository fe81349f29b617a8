"""Exports that tasks write part by part, and the best hits of a run for ears."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from swsdist.core.types import DETECTIONS
from swsdist.exports import lists
from swsdist.exports.interface import Material
from swsdist.registry.registries import EXPORTS
from swsdist.store import parquet
from tests.support.tables import read_rows

LISTS = {"csv": "detections.csv", "stdlist": "stdlist.xml", "kwslist": "kwslist.xml"}
EXPORTED = "report.exports=[csv, stdlist, kwslist, labels]"


def whole(result: Any, folder: Path, kind: str) -> bytes:
    chain_run = result.outcome.chain_run
    names = [part.name for part in chain_run.receipts("decide").parts("scored")]
    rows = pa.concat_tables([parquet.read(chain_run.run, name) for name in names])
    queries = sorted({row["query_id"] for row in read_rows(Path(str(chain_run.config.corpus.queries)))})
    EXPORTS[kind].load()(
        Material(lambda: iter(rows.to_batches(max_chunksize=7)), queries, chain_run.config.system), folder
    )
    return (folder / LISTS[kind]).read_bytes()


@pytest.mark.parametrize("most", [20, 1])
def test_parts_are_the_whole(scene: Any, tmp_path: Path, most: int) -> None:
    result = scene.run("reduce.buckets=5", f"reduce.nbest={{least: {most}, per_second: 0}}", EXPORTED)
    assert result.outcome.chain_run.outcomes["format"].done > 1
    assert result.outcome.chain_run.chain.passing == {"summarise", "format", "export"}
    for kind, file in LISTS.items():
        assert (scene.folder / "run/exports" / file).read_bytes() == whole(result, tmp_path, kind)


def test_what_a_program_cannot_read_is_left_out(own_corpus: Any) -> None:
    """By a name in one part, or two that no part has both of; nothing is left of the list that was there."""
    scene = own_corpus
    sets = "reduce.buckets=64", "reduce.nbest={least: 1, per_second: 0}", EXPORTED
    scene.run(*sets)
    exports = scene.folder / "run" / "exports"
    assert {path.name for path in exports.iterdir()} == {*LISTS.values(), "labels"}
    before = list(dict.fromkeys(row["doc_id"] for row in read_rows(exports / "detections.csv")))[:2]
    for names, left_out in (
        (["d(1)", "d2"], {"stdlist": "holds '('"}),
        (["a/same", "b/same"], dict.fromkeys(("stdlist", "kwslist"), "call both")),
    ):
        for path in (scene.corpus / "docs.csv", scene.corpus / "refs.csv"):
            text = path.read_text()
            for old, new in zip(before, names, strict=True):
                text = re.sub(rf"(?<![\w/]){re.escape(old)}(?=,)", new, text)
            path.write_text(text)
        before = names
        said = scene.run(*sets).outcome.chain_run.notices()
        there = {kind for kind, file in LISTS.items() if (exports / file).exists()}
        assert there == LISTS.keys() - left_out.keys()
        for kind, why in left_out.items():
            (notice,) = (notice for notice in said if f"{kind} was not exported" in notice)
            assert why in notice


@pytest.mark.ray
def test_a_worker_is_killed(scene: Any, cluster: Any) -> None:
    scene.sabotage(writing="rows")
    ended = scene.go(*cluster.sets, "executor.workers=2", "reduce.buckets=5", "report.exports=[csv, killed-csv]")
    assert ended.returncode == 0, ended.stderr
    assert not scene.order.exists()
    assert len([line for lines in scene.journals() for line in lines if line["event"] == "died"]) == 1
    exports = scene.folder / "run" / "exports"
    assert {path.name for path in exports.iterdir()} == {"detections.csv", "killed.csv"}
    assert (exports / "killed.csv").read_bytes() == (exports / "detections.csv").read_bytes()


def by_turns(detections: pd.DataFrame, most: int) -> list[tuple[Any, ...]]:
    """The same slowly: the best of each query, by score; then the second of each, and so on."""
    columns = ["query_id", "doc_id", "channel", "start", "end"]
    ordered = detections.sort_values(["score", *columns], ascending=[False, *[True] * 5], kind="stable")
    turn = ordered.groupby("query_id").cumcount()
    chosen = ordered.assign(turn=turn).sort_values("turn", kind="stable").head(most).sort_index()
    return sorted(map(tuple, chosen[columns].to_numpy().tolist()))


@pytest.mark.parametrize("most", [2, 9, 100_000])
def test_as_many_as_are_asked_for(finished: Any, most: int) -> None:
    """One of each query first; the number is reached as long as there are detections; queries left out are told."""
    result = finished.run(f"report.clips={most}")
    keys = [(hit.query_id, hit.doc_id, hit.channel, hit.start, hit.end) for hit in result.report.hits]
    detections = result.detections()
    assert len(keys) == min(most, len(detections))
    assert sorted(keys) == by_turns(detections, most)
    assert [hit.score for hit in result.report.hits] == sorted((hit.score for hit in result.report.hits), reverse=True)
    if most == 9:
        assert set(Counter(key[0] for key in keys).values()) == {3}


def labelled(folder: Path) -> list[tuple[str, str, str]]:
    return sorted(
        (file.name, *line.split("\t")[2].rsplit(" ", 1))
        for file in folder.rglob("*.txt")
        for line in file.read_text().splitlines()
    )


@pytest.mark.parametrize("cut", [1, 2, 7])
def test_labels_of_what_was_decided_or_is_best(tmp_path: Path, cut: int) -> None:
    """However the list comes in batches; of equal scores the earlier."""
    scores = [1.0, 9.0, 5.0, 2.0, 5.0, 4.0, 5.0]
    plain = {**dict.fromkeys(DETECTIONS.names, 0), "channel": 1, "system": "s"}
    rows: list[dict[str, Any]] = [
        {**plain, "query_id": f"q{k % 2}", "doc_id": f"d{k % 3}", "start": float(k), "end": k + 0.5, "score": score}
        for k, score in enumerate(scores)
    ]

    def written(name: str, decisions: list[bool | None], undecided: int) -> list[tuple[str, str, str]]:
        whole = [{**row, "decision": said} for row, said in zip(rows, decisions, strict=True)]
        table = pa.Table.from_pylist(whole, DETECTIONS)
        (tmp_path / name).mkdir()
        material = Material(lambda: iter(table.to_batches(cut)), ["q0", "q1"], "s", undecided=undecided)
        lists.write_tracks(material, tmp_path / name)
        return labelled(tmp_path / name)

    best = [("d1.txt", "q0", "5"), ("d1.txt", "q1", "9"), ("d2.txt", "q0", "5"), ("d2.txt", "q1", "4")]
    assert written("best", [None] * 7, 2) == best
    assert written("none", [None] * 7, 0) == []
    assert len(written("all", [None] * 7, 20)) == 7
    assert written("decided", [True, *[False] * 5, True], 2) == [("d0.txt", "q0", "1"), ("d0.txt", "q0", "5")]
