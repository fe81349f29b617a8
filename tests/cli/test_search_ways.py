"""`swsdist search` of a run: as the run searched, also when its store has changed since; what is told, and what is refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import Command, in_this_process

import swsdist as package
from swsdist.cli import progress
from swsdist.core.codes import families
from swsdist.core.errors import StoreError, UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import load_plans, save_plans
from swsdist.pipeline.status import load_chain_run
from swsdist.searcher.searcher import setup_of
from swsdist.store.maintaining import compact
from swsdist.store.manifest import require, state_name
from tests.support.coded import says

WORD = "corpus/queries/q001_1.wav"


@pytest.fixture
def run(place: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be changed."""
    shutil.copytree(place / "run", tmp_path / "run")
    return tmp_path / "run"


def test_after_a_compaction(swsdist: Command, place: Path, run: Path) -> None:
    """The state that the run searched is gone, and is told so where it is wanted; hits are as likely as before."""
    search = ("search", run, "--query", WORD, "--top", "3")
    before = swsdist(*search, cwd=place).out
    store = Folder(str(run / "store"))
    compact(store, 1e6)
    (plan,) = load_plans(Folder(str(run))).values()
    store.remove(state_name(plan.state["manifest"]))
    with pytest.raises(StoreError, match="this state of the store is gone: the store was compacted"):
        load_chain_run(Folder(str(run)))
    assert swsdist(*search, cwd=place).out == before
    with pytest.raises(StoreError, match="there is no feature store here"):
        require(Folder(str(run)), state_name("x"))


def test_after_a_task_has_failed(swsdist: Command, place: Path, run: Path) -> None:
    """A task that is not done says nothing of the store."""
    plans = load_plans(Folder(str(run)))
    (plan,) = plans.values()
    for name in ("search", "align.train"):
        steps = plan.steps[name]
        plan.steps[name] = type(steps)(**{**steps.__dict__, "planned": steps.planned + 1})
    save_plans(Folder(str(run)), plans)
    assert "by words of another corpus" in swsdist("search", run, "--query", WORD, "--top", "3", cwd=place).out


def test_of_several_plans(run: Path) -> None:
    """What they agree on is taken; where they differ in how they search, that is told; another store is the user's choice."""
    folder = Folder(str(run))
    (plan,) = load_plans(folder).values()

    def written(section: str, **changes: object) -> None:
        other = {**plan.config, section: {**plan.config[section], **changes}}
        save_plans(folder, {"a": plan, "b": type(plan)(**{**plan.__dict__, "config": other})})

    written("search")
    assert setup_of(str(run))[:3] == (str(run / "store"), {}, True)
    assert not setup_of(str(run)).warnings
    for section, change in (("search", {"distance": "cosine-squared"}), ("calibrate", {"steps": ["m-norm"]})):
        written(section, **change)
        (warning,) = setup_of(str(run)).warnings
        assert says(warning, families.SETTINGS_DIFFER)
    assert setup_of(str(run)).calibrate is None
    written("index", store="/elsewhere")
    with pytest.raises(UserError, match="2 plans, of 2 stores"):
        setup_of(str(run))


def test_as_the_run_searched(swsdist: Command, place: Path, run: Path) -> None:
    """Its trimming, too."""
    samples, rate = soundfile.read(place / WORD)
    quiet = np.random.default_rng(1).normal(scale=1e-3, size=rate // 2)
    soundfile.write(run.parent / "q.wav", np.concatenate([quiet, samples, quiet]), rate)
    ask = ("search", run, "--query", run.parent / "q.wav", "--top", "3")
    trimmed, whole = (swsdist(*ask, *more, cwd=place).out for more in ((), ("--no-trim",)))
    assert trimmed != whole
    ((name, plan),) = load_plans(Folder(str(run))).items()
    plan.config |= {"queries": {**plan.config["queries"], "trim": "none"}}
    save_plans(Folder(str(run)), {name: plan})
    again = swsdist(*ask, cwd=place)
    assert again.out == whole
    assert "(--no-trim: keep)" not in again.err


def test_warnings_and_strictness(swsdist: Command, place: Path) -> None:
    """What is odd, as a query that finds itself, is an error of --strict, and what does nothing is refused."""
    ask = ("search", "run", "--query", "corpus/audio/d001.flac:0.50-1.10", "--top", "3")
    told = swsdist(*ask, cwd=place)
    strict = swsdist(*ask, "--strict", cwd=place, code=4)
    assert (strict.out, "1 warning under --strict" in strict.err) == (told.out, True)
    swsdist("search", "run", "--query", WORD, "--top", "3", "--strict", cwd=place)
    assert "[conflicting-options]" in swsdist(*ask, "--dry-run", cwd=place, code=2).err


def test_commands_stand_in_lists_alone(swsdist: Command, place: Path, tmp_path: Path) -> None:
    mark = tmp_path / "was here"
    ask = ("search", "run", "--query", f"touch '{mark}'; cat {WORD} |", "--allow-commands")
    assert says(swsdist(*ask, cwd=place, code=2).err, families.COMMAND_REFUSED)
    assert not mark.exists()


def test_a_long_search_tells_how_far_it_is(
    swsdist: Command, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a log, too, by a line now and then; a short one says nothing."""
    assert "searched" not in swsdist("search", "run", "--query", WORD, cwd=place).err
    monkeypatch.setattr(progress, "_SEARCH_EVERY", 0.0)
    store = package.open_store(str(place / "run" / "store"))
    with progress.showing_search(store) as watched:
        package.search(watched, str(place / WORD))
    first, *_, last = capsys.readouterr().err.splitlines()
    seconds = store.manifest.counts["seconds"]
    assert "ETA " in first
    assert last == f"searched {seconds:.3g} of {seconds:.3g} s of audio"


def test_a_traceback_for_whoever_asks(swsdist: Command, tmp_path: Path) -> None:
    """Of an error that is no bug of ours; else it is two lines."""
    assert "Traceback" not in swsdist("report", tmp_path, code=3).err
    told = in_this_process("report", str(tmp_path), SWSDIST_TRACEBACK="1")
    assert (told.code, "Traceback (most recent call last)" in told.err) == (3, True)
