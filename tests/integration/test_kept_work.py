"""What was done stays done, whatever is cleaned up while a run waits to go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import expecting, in_this_process

from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.operation.cleaning import clean
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.maintaining import check, compact
from swsdist.store.reading import Store

swsdist = expecting(in_this_process)


def _fitted(*transforms: dict[str, Any]) -> str:
    return "features=" + json.dumps([{"name": "mfcc", "transforms": transforms}])


QUANTISED = 'search.first_pass={"name": "quantised", "factor": 2, "sample": 0}'

#: Settings of a first run, and of the one that is interrupted.
WORK: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "index": ((), ("index.shards=3",)),
    "fit": (
        (_fitted({"name": "pca", "options": {"columns": 8}}),),
        (
            _fitted({"name": "pca", "options": {"columns": 6}}, {"name": "gmm", "options": {"components": 4}}),
            "index.shards=3",
        ),
    ),
    "quantise": ((QUANTISED,), (QUANTISED, "index.shards=2")),
}


def _compact(store: Folder) -> None:
    """A store whose index was interrupted is left as it is."""
    if Store(store).manifest.unfinished is None:
        compact(store, 1.0)
        return
    with pytest.raises(UserError, match="the index was interrupted: "):
        compact(store, 1.0)


#: Steps whose work is in the store.
STORED = ("fit-transforms", "index", "quantise")

#: What is cleaned up, given the folders of the run and of its store.
WAYS: dict[str, Callable[[Folder, Folder], object]] = {
    "clean": lambda run, store: (clean(run, 0.0, dry=False), clean(store, 0.0, dry=False)),
    "compact and clean": lambda run, store: (_compact(store), clean(store, 0.0, dry=False), clean(run, 0.0, False)),
}


class Once(Progress):
    """Lets a run do one task, and then interrupts it as Ctrl-C does."""

    def __init__(self, did: list[tuple[str, str]]) -> None:
        self._did = did

    def task(self, step: Any, outcome: Any) -> None:
        """It is noted, and the stage has not ended."""
        self._did.append((step.name, outcome.fingerprint))
        raise KeyboardInterrupt


def work_of(scene: Any, work: str, shared: bool, way: str | None) -> tuple[dict[str, int], dict[str, str]]:
    """Index a corpus, and again when it has grown: how many tasks of each step that takes the second time, and the digests.

    Args:
        scene: with a corpus of its own.
        work: one of `WORK`.
        shared: whether the store lies beside the run.
        way: of `WAYS`: the second time it is interrupted after each task until the store stands, and this cleans up.
    """
    (first, second), name = WORK[work], way or "undisturbed"
    place = scene.folder / f"store of {name}" if shared else scene.folder / name / "store"
    settings = (*second, *([f"index.store={place}"] if shared else []))
    scene.select(1, 2, 3)
    scene.run(*first, *settings[len(second) :], run=name)
    scene.select(*range(1, 9))
    did: list[tuple[str, str]] = []
    for _ in range(40 if way else 0):
        try:
            scene.run(*settings, run=name, until="quantise" if work == "quantise" else "index", progress=Once(did))
            break
        except KeyboardInterrupt:
            WAYS[str(way)](Folder(str(scene.folder / name)), Folder(str(place)))
    ended = scene.run(*settings, run=name).outcome.chain_run.outcomes
    counts = {"later": sum(one.done for step, one in ended.items() if step not in STORED)}
    for step in STORED:
        of_step = [task for one, task in did if one == step]
        # What is looked up in shards is done again where these were made anew.
        if not (step == "quantise" and str(way).startswith("compact")):
            assert len(of_step) == len(set(of_step))
        counts[step] = len(of_step) + (ended[step].done if step in ended else 0)
    assert counts["index"] > 1
    assert list(check(Store(Folder(str(place))))) == []
    return counts, scene.digest(name)


@pytest.fixture(scope="module")
def undisturbed_work() -> dict[tuple[str, bool], tuple[dict[str, int], dict[str, str]]]:
    """What work takes that nobody interrupts, which is the same for all ways to clean up."""
    return {}


@pytest.mark.slow
@pytest.mark.until("search")
@pytest.mark.xdist_group("kept-work")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("work", "shared"),
    # A shared store keeps its features, so nothing is fitted in it.
    [
        pytest.param(work, shared, id=f"{work}-{'shared' if shared else 'own'}")
        for work in WORK
        for shared in (False, True)
        if not (shared and work == "fit")
    ],
)
def test_nothing_that_was_done_is_done_again(
    own_corpus: Any, undisturbed_work: Any, work: str, way: str, shared: bool
) -> None:
    """A run whose corpus has grown is interrupted after each task until the store stands; each time something is cleaned up."""
    if (work, shared) not in undisturbed_work:
        undisturbed_work[work, shared] = work_of(own_corpus, work, shared, None)
    counts, digest = undisturbed_work[work, shared]
    again, found = work_of(own_corpus, work, shared, way)
    for step in ("index", "fit-transforms", *(() if way.startswith("compact") else ("quantise", "later"))):
        assert again[step] == counts[step]
    assert found == digest


def test_an_earlier_state_goes_in_one_piece(own_corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is killed while it removes one leaves the list of what was to go."""
    scene = own_corpus
    scene.run("index.shards=3", f"index.store={scene.folder / 'shared'}")
    store = Folder(str(scene.folder / "shared"))
    compact(store, 1.0)
    whole, left = Folder.remove, [3]

    def remove(self: Folder, name: str) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= self.root == store.root and not name.endswith("lock.json")
        whole(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove", remove)
        with pytest.raises(KeyboardInterrupt):
            clean(store, 0.0, dry=False)
    Path(store.path("lock.json")).unlink(missing_ok=True)
    clean(store, 0.0, dry=False)
    assert len(list((scene.folder / "shared/shards").glob("*"))) == 1
    assert list(check(Store(store))) == []
