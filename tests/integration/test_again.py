"""A finished run is left alone; a change redoes what depends on it, and no more; what was lost is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import changed, in_this_process

import swsdist
from swsdist.chains.report import publish
from swsdist.core.codes import families
from swsdist.core.errors import DataError, TableError
from swsdist.core.types import TRIALS
from swsdist.pipeline.chain_run import StepSelection
from swsdist.score.measures.twv import PER_TERM
from swsdist.store.maintaining import check
from tests.support.coded import raises

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
    return [name for name, ended in result.outcome.chain_run.outcomes.items() if ended.done]


def test_again_does_nothing(scene: Any) -> None:
    scene.run()
    before = contents(scene.folder / "run")
    again = scene.run()
    assert (again.outcome.tasks_done, again.report) == (0, None)
    told = changed(before, contents(scene.folder / "run"))
    assert told == {"events", "status.json"}, "it says only that it was asked"


@pytest.mark.slow
def test_a_report_that_is_made_again_says_the_same(scene: Any) -> None:
    """Only the time of its making differs: stages did, and took, what they did in the run; also where a part was redone."""
    run = scene.folder / "run"
    for sets, redone in ((("report.clips=3",), ALL), (("report.clips=3", "reduce.overlap=0.25"), ALL[3:])):
        scene.run(*sets)
        before, page = scene.report(), (run / "report.html").read_text()
        assert [row["stage"] for row in before["stages"] if row["done"]] == redone
        made = before.pop("created")
        assert in_this_process("report", run).code == 0
        again = scene.report()
        anew = again.pop("created")
        assert again == before
        assert (run / "report.html").read_text().replace(anew, made) == page
    assert scene.run(*sets).report is None, "the report that is there is of this run"


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


def test_from_redoes_this_and_later_stages(finished: Any) -> None:
    first, receipts, stage = finished.digest(), finished.receipts(), ALL.index("align.train")
    assert done(finished.run(selection=StepSelection(redo_from="align.train"))) == ALL[stage:]
    assert finished.digest() == first
    kept = {name: time for name, time in receipts.items() if name.rsplit("-", 1)[0] in ALL[:stage]}
    assert kept.items() <= finished.receipts().items()


def test_only_wants_earlier_stages_done(scene: Any) -> None:
    with raises(families.NOT_FINISHED, stage="index"):
        scene.run(selection=StepSelection(only="search"))
    assert done(scene.run(selection=StepSelection(until="queries"))) == ALL[:2]
    assert done(scene.run(selection=StepSelection(only="search"))) == ["search"]
    assert done(scene.run()) == ALL[3:]


def test_without_references(scene: Any) -> None:
    result = scene.run("corpus.references=null", "report.clips=5", "report.exports=null")
    assert done(result) == [one for one in ALL if one not in ("align.train", "fit", "align.final", "measure", "score")]
    assert result.measures() == {}
    exports = {path.name for path in (scene.folder / "run" / "exports").iterdir()}
    assert exports == {"detections.csv", "labels", "clips"}
    report = scene.report()
    assert report["measures"] is None
    assert (scene.folder / "run" / "report.html").stat().st_size > 10_000
    assert len(result.detections()) == report["counts"]["detections"] > 0
    assert result.detections()["decision"].isna().all()


def test_exports_are_of_the_last_config(finished: Any) -> None:
    exports = finished.folder / "run" / "exports"
    for sets, clips, files in (
        (("report.clips=3", "report.exports=[clips, csv]"), 3, 1),
        (("report.clips=1", "report.exports=[clips]"), 1, 0),
        (("report.exports=[csv]",), 0, 1),
        (("report.exports=[]",), 0, 0),
    ):
        finished.run(*sets)
        there = [path.relative_to(exports).parts for path in exports.rglob("*") if path.is_file()]
        assert (sum(one[0] == "clips" for one in there), there.count(("detections.csv",))) == (clips, files)


#: Fewer coefficients, so that not every decision is right.
POOR = "features={name: mfcc, transforms: [{name: columns, options: {keep: [3]}}]}"


def test_tables_are_those_of_the_current_state(finished: Any) -> None:
    """After a run was scored in two ways, files of both lie in its folder."""
    first = finished.run().measures()
    again = finished.run("score.protocol=kwseval", "score.beta=5", "score.tolerance=0.01")
    found = swsdist.run(finished.folder / "run/config.yaml")
    assert again.outcome.tasks_done > found.outcome.tasks_done == 0
    for name in ("detections", "terms", "trials", "det"):
        assert getattr(found, name)().equals(getattr(again, name)())
    for table, rows in {"terms": 3, "trials": len(found.trials()), "det": len(found.det())}.items():
        assert pq.read_table(finished.folder / "run/tables" / table).num_rows > rows
    assert len(found.terms()) == 3
    assert found.measures() == again.measures() != first


def test_tables_fit_together(scene: Any) -> None:
    done = scene.run(POOR, "score.beta=2")
    terms, trials, measures, det = done.terms(), done.trials(), done.measures(), done.det()
    assert (list(terms), list(trials), list(det)) == (PER_TERM.names, TRIALS.names, ["threshold", "pmiss", "pfa"])
    assert terms["query_id"].tolist() == ["q001", "q002", "q003"]
    assert terms["twv"].mean() == pytest.approx(measures["atwv"], abs=1e-12)
    hits = trials["decision"].eq(True) & trials["ref_start"].notna()
    assert hits.groupby(trials["query_id"]).sum().tolist() == terms["ncorr"].tolist()
    assert trials["ref_start"].notna().sum() == terms["ntrue"].sum()
    assert trials["score"].notna().sum() == len(done.detections())
    assert (trials.groupby("query_id")["score"].diff().dropna() <= 0).all()
    assert det["threshold"].iloc[-1] == np.inf, "it accepts nothing"
    assert np.isfinite(det["threshold"][:-1]).all()
    assert (1 - det["pmiss"] - 2 * det["pfa"]).max() == pytest.approx(measures["mtwv"], abs=1e-12)


@pytest.mark.slow
@pytest.mark.until("search")
def test_a_lost_shard_is_made_again(scene: Any) -> None:
    scene.run("index.shards=3")
    before = scene.digest()
    shards = sorted((scene.folder / "run/store/shards").glob("part-????????????????????????????????.parquet"))
    assert len(shards) == 3
    shards[0].unlink()
    shards[1].write_bytes(shards[1].read_bytes()[:-9])
    assert scene.run("index.shards=3").outcome.chain_run.outcomes["index"].done > 0
    assert not list(check(scene.store()))
    assert scene.digest() == before


def test_a_damaged_file_of_receipts_is_named_and_its_tasks_are_done_again_without_it(
    finished: Any, undisturbed: dict[str, str]
) -> None:
    pack = finished.folder / "run" / "receipts" / "search.parquet"
    pack.write_bytes(pack.read_bytes()[: pack.stat().st_size // 2])
    with pytest.raises(DataError, match=r"search\.parquet: the file is damaged") as told:
        finished.run()
    assert "remove it and run again" in str(told.value)
    pack.unlink()
    assert finished.run().outcome.chain_run.outcomes["search"].done > 0
    assert finished.digest() == undisturbed


def test_a_mistake_in_the_last_table_is_told_first(scene: Any) -> None:
    table = scene.folder / "refs.csv"
    table.write_text("query_id,doc_id,start,end\nq001,nowhere,1,2\n")
    with pytest.raises(TableError, match="nowhere"):
        scene.run(f"corpus.references={table}")
    assert not (scene.folder / "run" / "store").exists()


def test_a_report_runs_nothing(scene: Any) -> None:
    scene.run(selection=StepSelection(until="index"))
    folder = scene.folder / "run"
    assert in_this_process("report", scene.config).code == 4  # what is left to do is told, and is not done
    assert not (folder / "tables" / "candidates").exists()


@pytest.mark.slow
def test_a_report_is_of_the_tables_that_are_there(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was interrupted is made the next time, though nothing else is left to do."""

    def killed(*given: Any) -> Any:
        raise KeyboardInterrupt

    def shown() -> tuple[str, str]:
        return scene.report()["digest"], (scene.folder / "run" / "report.html").read_text()

    scene.run()
    other = "search.distance=cosine-squared"
    places = ("build_report", "render_page", "write_report_json")
    for place, sets in zip(places, ((other,), (), (other,)), strict=True):
        digest, page = shown()
        with monkeypatch.context() as patch:
            patch.setattr(publish, place, killed)
            with pytest.raises(KeyboardInterrupt):
                scene.run(*sets)
        result = scene.run(*sets)
        assert result.outcome.tasks_done == 0
        assert result.report is not None
        assert shown()[0] == result.report.digest != digest
        assert shown()[1] != page
        assert scene.run(*sets).report is None  # up to date now
