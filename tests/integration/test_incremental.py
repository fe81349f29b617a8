"""A store grows, changes and shrinks with its corpus; what was done stays done, whatever is cleaned up meanwhile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.operation.cleaning import clean
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.maintaining import check, compact
from swsdist.store.reading import Store
from tests.support.coded import raises

pytestmark = pytest.mark.until("search")


def shards(folder: Path) -> dict[str, tuple[str, int]]:
    """SHA-256 and time of the last change of every shard."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in (folder / "store" / "shards").glob("*")
    }


def live(scene: Any) -> dict[str, int]:
    """Documents of the store, in which nothing is wrong, with their frames."""
    store = scene.store()
    assert list(check(store)) == []
    return {row["doc_id"]: row["frames"] for row in store.documents().to_pylist()}


@pytest.mark.slow
def test_add_change_remove_compact(own_corpus: Any) -> None:
    scene, run, path = own_corpus, own_corpus.folder / "run", own_corpus.corpus / "audio" / "d002.flac"

    def index(*sets: str, done: int) -> Any:
        """How the search went, and what was found."""
        before, result = shards(run), scene.run(*sets, until="")
        assert result.outcome.chain_run.outcomes["index"].done == done
        assert before.items() <= shards(run).items()
        search = result.outcome.chain_run.outcomes["search"]
        return search.done, search.skipped, set(result.detections()["doc_id"])

    scene.select(1, 2, 3, 4, 5)
    scene.run("index.shards=2")
    assert len(live(scene)) == 5
    # More documents: a shard more, the others untouched, and their searches not done again.
    scene.select(*range(1, 9))
    assert index("index.shards=1", done=1)[:2] == (1, 2)
    assert len(live(scene)) == 8
    # A changed one: replaced.
    sound, rate = soundfile.read(path, dtype="int16")
    soundfile.write(path, sound[: 2 * rate], rate)
    frames = live(scene)["d002"]
    index("index.shards=1", done=1)
    assert live(scene)["d002"] < frames
    assert len(live(scene)) == 8
    # A removed one: dropped, nothing computed anew but the search of its shard.
    scene.select(1, 2, 3, 4, 6, 7, 8)
    before = shards(run)
    done, _, found = index(done=0)
    assert (done, shards(run) == before, "d005" in found, "d005" in live(scene)) == (1, True, False, False)
    # Compacted: other files, the same results.
    digest = scene.digest()
    compacted = compact(Folder(str(run / "store")), 1.0)
    assert (compacted.shards_before, compacted.shards, len(live(scene))) == (4, 1, 7)
    assert compacted.bytes < compacted.bytes_before
    index(done=0)
    assert scene.digest() == digest
    clean(Folder(str(run)), 0.0, dry=False)
    assert len(list((run / "store" / "shards").glob("*.parquet"))) == 1
    # And after that it grows on.
    scene.select(*range(1, 9))
    index(done=1)
    assert len(live(scene)) == 8


def test_only_a_later_stage_changes_nothing_of_an_earlier_one(own_corpus: Any) -> None:
    """Documents that are gone need no task of index, and yet the store is to change: --only search refuses before that."""
    scene = own_corpus
    scene.run("index.shards=2")
    manifest = scene.folder / "run" / "store" / "manifest.json"
    before = manifest.read_bytes()
    scene.select(1, 2, 3)
    with raises(families.NOT_FINISHED, where="--only search", stage="index"):
        scene.run("index.shards=2", selection=StepSelection(only="search"))
    assert manifest.read_bytes() == before
    scene.run("index.shards=2")
    scene.run("index.shards=2", selection=StepSelection(only="search"))
    assert manifest.read_bytes() != before


def _fitted(*transforms: dict[str, Any]) -> str:
    return "features=" + json.dumps([{"name": "mfcc", "transforms": transforms}])


PCA = {"name": "pca", "options": {"columns": 6}}
QUANTISED = 'search.first_pass={"name": "quantised", "factor": 2, "sample": 0}'
#: Settings of a first run, and of the one that is interrupted.
WORK: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "index": ((), ("index.shards=3",)),
    "fit": ((_fitted(PCA),), (_fitted(PCA, {"name": "gmm", "options": {"components": 4}}), "index.shards=3")),
    "quantise": ((QUANTISED,), (QUANTISED, "index.shards=2")),
}


def _compact(store: Folder) -> None:
    """A store whose index was interrupted is left as it is."""
    if Store(store).manifest.unfinished is None:
        compact(store, 1.0)
        return
    with raises(families.NOT_FINISHED):
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
        self._did.append((step.name, outcome.fingerprint))
        raise KeyboardInterrupt


def work_of(scene: Any, work: str, shared: bool, way: str | None) -> tuple[dict[str, int], dict[str, str]]:
    """Index a corpus, and again when it has grown: how many tasks of each step that takes the second time, and the digests.

    The second time it is interrupted after each task until the store stands, and each time a way of `WAYS` cleans up.
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "shared", "way"),
    [  # A shared store keeps its features, so nothing is fitted in it.
        ("index", False, "compact and clean"),
        ("index", True, "clean"),
        ("fit", False, "clean"),
        ("quantise", False, "clean"),
        ("quantise", True, "compact and clean"),
    ],
)
def test_nothing_that_was_done_is_done_again(own_corpus: Any, work: str, shared: bool, way: str) -> None:
    """A run whose corpus has grown is interrupted after each task until the store stands; each time something is cleaned up."""
    counts, digest = work_of(own_corpus, work, shared, None)
    again, found = work_of(own_corpus, work, shared, way)
    for step in ("index", "fit-transforms", *(() if way.startswith("compact") else ("quantise", "later"))):
        assert again[step] == counts[step]
    assert found == digest


def test_an_earlier_state_goes_in_one_piece(own_corpus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is killed while it removes one leaves the list of what was to go."""
    scene = own_corpus
    scene.run("index.shards=3", f"index.store={scene.folder / 'shared'}", until="index")
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
