"""A finished run is left alone; a changed config redoes what depends on the change, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import changed, in_this_process

import swsdist
from swsdist.core.errors import UserError
from swsdist.pipeline.chain_run import StepSelection

#: The stages in their order.
ALL = [
    "index",
    "queries",
    "search",
    "reduce",
    "normalise",
    "align.train",
    "fit",
    "decide",
    "align.final",
    "measure",
    "score",
    "summarise",
    "format",
    "export",
]


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below, with its size and the time of its last change."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def done(result: Any) -> list[str]:
    """Stages that did something."""
    return [name for name, ended in result.outcome.chain_run.outcomes.items() if ended.done]


def test_again_does_nothing(scene: Any) -> None:
    first = scene.run()
    assert done(first) == ALL
    before = contents(scene.folder / "run")
    again = scene.run()
    assert again.outcome.tasks_done == 0
    assert again.report is None
    assert changed(before, contents(scene.folder / "run")) == {"events", "status.json"}, (
        "it says only that it was asked"
    )


@pytest.mark.slow
@pytest.mark.parametrize("sets", [(), ("report.clips=3",)])
def test_a_report_that_is_made_again_says_the_same(scene: Any, sets: tuple[str, ...]) -> None:
    """However often it is made, only the time of its making differs: stages did, and took, what they did in the run."""
    scene.run(*sets)
    run = scene.folder / "run"
    before, page = scene.report(), (run / "report.html").read_text()
    assert all(row["done"] == row["tasks"] > 0 for row in before["stages"])
    made = before.pop("created")
    for _ in range(2):
        assert in_this_process("report", run).code == 0
        again = scene.report()
        anew = again.pop("created")
        assert again == before
        assert (run / "report.html").read_text().replace(anew, made) == page
    assert scene.run(*sets).report is None, "the report that is there is of this run"


def test_a_report_of_a_part_that_was_redone_says_what_was(finished: Any) -> None:
    """Also when it is made again: what the last call did, and left alone, of each stage."""
    scene = finished
    scene.run("reduce.overlap=0.25")
    before = scene.report()["stages"]
    assert {row["stage"]: row["done"] > 0 for row in before} == {
        name: name in ALL[ALL.index("reduce") :] for name in ALL
    }
    assert in_this_process("report", scene.folder / "run").code == 0
    assert scene.report()["stages"] == before


@pytest.mark.slow
def test_again_starts_no_ray(finished: Any, ray_left: Any) -> None:
    scene = finished
    scene.run()  # its config names this folder
    before = contents(scene.folder / "run")
    process = scene.start("executor.kind=ray")
    seen = []
    while process.poll() is None:
        seen += ray_left.processes()
        seen += ray_left.folders()
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "nothing to do" in out
    assert not seen
    assert changed(before, contents(scene.folder / "run")) == {"events", "status.json"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "redone"),
    [
        (
            "score.protocol=sws2012",
            ["fit", "decide", "align.final", "measure", "score", "summarise", "format", "export"],
        ),
        ("score.tolerance=0.1", ALL[ALL.index("align.train") :]),
        ("calibrate.steps=[]", ALL[ALL.index("reduce") :]),
        ("reduce.overlap=0.25", ALL[ALL.index("reduce") :]),
        ("search.distance=cosine-squared", ALL[ALL.index("search") :]),
        ("corpus.examples=all", ALL[ALL.index("queries") :]),
        ("report.exports=[stdlist]", ["format", "export"]),
        ("features.options={n_mfcc: 12}", ALL),
        ("search.lanes=5", []),
    ],
)
def test_a_change_redoes_what_depends_on_it(finished: Any, change: str, redone: list[str]) -> None:
    scene = finished
    first = scene.digest()
    assert done(scene.run(change)) == redone
    there = scene.digest()
    # And back: tables are there still, exports are of the other config.
    back = scene.run()
    assert done(back) == (["export"] if "export" in redone else [])
    assert scene.digest() == first
    assert scene.reported()
    if "measures" in there and there["measures"] != first["measures"]:
        assert there["all"] != first["all"]


@pytest.mark.parametrize("stage", ["index", "align.train"])
def test_from_redoes_this_and_later_stages(finished: Any, stage: str) -> None:
    scene = finished
    first, receipts = scene.digest(), scene.receipts()
    assert done(scene.run(selection=StepSelection(redo_from=stage))) == ALL[ALL.index(stage) :]
    assert scene.digest() == first
    earlier = ALL[: ALL.index(stage)]
    kept = {
        name: time
        for name, time in receipts.items()
        if name.rsplit("-", 1)[0] in {one.split(".")[0] for one in earlier}
    }
    assert kept.items() <= scene.receipts().items()


def test_only_wants_earlier_stages_done(scene: Any) -> None:
    with pytest.raises(UserError, match="stage index is not done"):
        scene.run(selection=StepSelection(only="search"))
    scene.run(selection=StepSelection(until="queries"))
    assert done(scene.run(selection=StepSelection(only="search"))) == ["search"]
    assert done(scene.run()) == ALL[3:]


def test_an_earlier_index_is_the_runs_again(scene: Any) -> None:
    """Though nothing was to be done, config.yaml says what the store holds."""
    for count in (8, 9, 8):
        scene.run(f"features.options.n_mfcc={count}", until="index")
        assert f"n_mfcc: {count}" in (scene.folder / "run" / "config.yaml").read_text()


def test_stages_one_by_one(scene: Any, undisturbed: dict[str, str]) -> None:
    for stage in ALL:
        assert done(scene.run(selection=StepSelection(until=stage))) == [stage]
    scene.run()
    assert scene.digest() == undisturbed
    assert scene.reported()


def test_without_references(scene: Any) -> None:
    result = scene.run("corpus.references=null", "report.clips=20", "report.exports=null")
    assert done(result) == [
        name for name in ALL if name not in ("align.train", "fit", "align.final", "measure", "score")
    ]
    assert result.measures() == {}
    exports = {path.name for path in (scene.folder / "run" / "exports").iterdir()}
    assert exports == {"detections.csv", "labels", "clips"}
    report = scene.report()
    assert report["measures"] is None
    assert (scene.folder / "run" / "report.html").stat().st_size > 10_000
    assert len(result.detections()) == report["counts"]["detections"] > 0
    assert result.detections()["decision"].isna().all()


def test_exports_are_of_the_last_config(finished: Any) -> None:
    scene = finished
    scene.run("report.clips=5", "report.exports=null")
    exports = scene.folder / "run" / "exports"
    assert len(list((exports / "clips").iterdir())) == 5
    scene.run("report.clips=2", "report.exports=null")
    assert len(list((exports / "clips").iterdir())) == 2
    scene.run("report.exports=[csv]")
    assert [path.name for path in exports.rglob("*") if path.is_file()] == ["detections.csv"]
    scene.run("report.exports=[]")
    assert not [path for path in exports.rglob("*") if path.is_file()]


def test_the_config_in_the_run_folder_makes_the_same_run(finished: Any) -> None:
    scene = finished
    scene.run("reduce.overlap=0.3")
    first = scene.digest()
    again = swsdist.run(scene.folder / "run" / "config.yaml")
    assert again.outcome.tasks_done == 0
    assert scene.digest() == first
    assert scene.reported()
