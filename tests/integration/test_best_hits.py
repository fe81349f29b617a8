"""The best hits of a run, for ears: as many as are asked for, spread over the queries; label tracks of what is worth a look."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pympi import Eaf, TextGrid

from swsdist.core.types import DETECTIONS
from swsdist.exports import lists
from swsdist.exports.interface import Material


def by_turns(detections: pd.DataFrame, most: int) -> list[tuple[Any, ...]]:
    """The same slowly: the best of each query, by score; then the second of each, and so on."""
    columns = ["query_id", "doc_id", "channel", "start", "end"]
    ordered = detections.sort_values(["score", *columns], ascending=[False, *[True] * 5], kind="stable")
    turn = ordered.groupby("query_id").cumcount()
    chosen = ordered.assign(turn=turn).sort_values("turn", kind="stable").head(most).sort_index()
    return sorted(map(tuple, chosen[columns].to_numpy().tolist()))


@pytest.mark.parametrize("most", [2, 9, 100_000])
def test_as_many_as_are_asked_for(finished, most: int) -> None:
    """One of each query first; the number is reached as long as there are detections; queries left out are told."""
    result = finished.run(f"report.clips={most}", "report.exports=[csv]")
    assert result.report is not None
    keys = [(hit.query_id, hit.doc_id, hit.channel, hit.start, hit.end) for hit in result.report.hits]
    detections = result.detections()
    assert len(keys) == min(most, len(detections))
    assert sorted(keys) == by_turns(detections, most)
    assert [hit.score for hit in result.report.hits] == sorted((hit.score for hit in result.report.hits), reverse=True)
    if most == 9:
        assert set(Counter(key[0] for key in keys).values()) == {3}


def labelled(folder: Path) -> list[tuple[str, str, str]]:
    """File, query and score of each label."""
    return sorted(
        (file.name, *line.split("\t")[2].rsplit(" ", 1))
        for file in folder.rglob("*.txt")
        for line in file.read_text().splitlines()
    )


@pytest.mark.parametrize("cut", [1, 2, 7])
def test_labels_of_what_was_decided_or_is_best(tmp_path: Path, cut: int) -> None:
    """However the list comes in batches; of equal scores the earlier."""
    scores = [1.0, 9.0, 5.0, 2.0, 5.0, 4.0, 5.0]
    rows: list[dict[str, Any]] = [
        {
            "query_id": f"q{k % 2}",
            "doc_id": f"d{k % 3}",
            "channel": 1,
            "start": float(k),
            "end": k + 0.5,
            "score": score,
        }
        for k, score in enumerate(scores)
    ]

    def written(name: str, decisions: list[bool | None], undecided: int) -> list[tuple[str, str, str]]:
        whole = [{**row, "decision": said, "system": "s"} for row, said in zip(rows, decisions, strict=True)]
        full = [{**dict.fromkeys(DETECTIONS.names, 0), **row} for row in whole]
        table = pa.Table.from_pylist(full, DETECTIONS)
        (tmp_path / name).mkdir()
        lists.write_tracks(
            Material(lambda: iter(table.to_batches(cut)), ["q0", "q1"], "s", undecided=undecided), tmp_path / name
        )
        return labelled(tmp_path / name)

    assert written("best", [None] * 7, 2) == [
        ("d1.txt", "q0", "5"),
        ("d1.txt", "q1", "9"),
        ("d2.txt", "q0", "5"),
        ("d2.txt", "q1", "4"),
    ]
    assert written("none", [None] * 7, 0) == []
    assert len(written("all", [None] * 7, 20)) == 7
    assert written("decided", [True, *[False] * 5, True], 2) == [("d0.txt", "q0", "1"), ("d0.txt", "q0", "5")]


def test_a_run_that_decides_nothing_labels_the_best(scene) -> None:
    """`report.labels` of each query; and no lists for scorers, for which nobody asked."""
    told = ("report.labels=4", "report.clips=1", "report.exports=null")
    result = scene.run("corpus.references=null", "calibrate.fit=none", *told)
    exports = scene.folder / "run" / "exports"
    assert sorted(path.name for path in exports.iterdir()) == ["clips", "detections.csv", "labels"]
    shown = Counter(query for _, query, _ in labelled(exports / "labels"))
    assert shown == dict.fromkeys(result.detections()["query_id"].unique(), 4)
    best = result.detections().groupby("query_id").head(4)
    assert sorted(float(score) for _, _, score in labelled(exports / "labels")) == pytest.approx(
        sorted(best["score"]), rel=1e-5
    )
    scene.run("corpus.references=null", "calibrate.fit=none", "report.exports=[stdlist]")
    assert [path.name for path in exports.rglob("*") if path.is_file()] == ["stdlist.xml"]


def test_tiers_of_a_run_are_linked_to_its_recordings(finished) -> None:
    result = finished.run("report.exports=[eaf, textgrid]")
    exports = Path(result.folder) / "exports"
    links = [item for file in exports.rglob("*.eaf") for item in Eaf(str(file)).get_linked_files()]
    assert links
    assert all(Path(item["MEDIA_URL"].removeprefix("file://")).is_file() for item in links)
    lengths = {file.name: TextGrid(str(file)).xmax for file in exports.rglob("*.TextGrid")}
    documents = result.detections().groupby("doc_id")["end"].max()
    assert len(lengths) == len(links) <= len(documents)
    assert all(lengths[f"{name}.TextGrid"] > end for name, end in documents.items() if f"{name}.TextGrid" in lengths)
