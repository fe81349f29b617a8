"""A finished run is left alone; a changed config redoes what depends on the change, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import changed, in_this_process

from swsdist.core.errors import UserError
from swsdist.pipeline.chain_run import StepSelection

#: The stages in their order.
ALL = [
    *("index", "queries", "search", "reduce", "normalise", "align.train", "fit", "decide", "align.final", "measure"),
    *("score", "summarise", "format", "export"),
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
def test_a_report_that_is_made_again_says_the_same(scene: Any) -> None:
    """Only the time of its making differs: stages did, and took, what they did in the run; also where a part was redone."""
    run = scene.folder / "run"
    for sets, redone in ((("report.clips=3",), ALL), (("report.clips=3", "reduce.overlap=0.25"), ALL[3:])):
        scene.run(*sets)
        before, page = scene.report(), (run / "report.html").read_text()
        assert [row["stage"] for row in before["stages"] if row["done"]] == redone
        made = before.pop("created")
        for _ in range(2):
            assert in_this_process("report", run).code == 0
            again = scene.report()
            anew = again.pop("created")
            assert again == before
            assert (run / "report.html").read_text().replace(anew, made) == page
    assert scene.run(*sets).report is None, "the report that is there is of this run"


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
def test_a_change_redoes_what_depends_on_it(finished: Any) -> None:
    scene = finished
    first = scene.digest()
    fitted = ["fit", "decide", "align.final", "measure", "score", "summarise", "format", "export"]
    for change, redone in (
        ("score.protocol=sws2012", fitted),
        ("score.tolerance=0.1", ALL[ALL.index("align.train") :]),
        ("calibrate.steps=[]", ALL[ALL.index("reduce") :]),
        ("reduce.overlap=0.25", ALL[ALL.index("reduce") :]),
        ("search.distance=cosine-squared", ALL[ALL.index("search") :]),
        ("corpus.examples=all", ALL[ALL.index("queries") :]),
        ("report.exports=[stdlist]", ["format", "export"]),
        ("features.options={n_mfcc: 12}", ALL),
        ("search.lanes=5", []),
    ):
        assert done(scene.run(change)) == redone, change
        # And back: tables are there still, exports are of the other config.
        assert done(scene.run()) == (["export"] if "export" in redone else []), change
        assert scene.digest() == first
        assert scene.reported()


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
