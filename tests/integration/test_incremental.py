"""A store grows, changes and shrinks with its corpus; shards that are there stay as they are."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.operation.cleaning import clean
from swsdist.store.maintaining import check, compact
from swsdist.store.reading import Store
from tests.support.coded import raises


def shards(folder: Path) -> dict[str, tuple[str, int]]:
    """SHA-256 and time of the last change of every shard."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in (folder / "store" / "shards").glob("*")
    }


def live(scene: Any) -> dict[str, int]:
    """Documents of the store, with their frames."""
    table = scene.store().documents()
    return dict(zip(table["doc_id"].to_pylist(), table["frames"].to_pylist(), strict=True))


def whole(scene: Any) -> bool:
    """Whether `store check` finds nothing."""
    return not list(check(scene.store()))


@pytest.mark.slow
@pytest.mark.until("search")
def test_add_change_remove_compact(own_corpus: Any) -> None:
    scene = own_corpus
    run = scene.folder / "run"
    scene.select(1, 2, 3, 4, 5)
    scene.run("index.shards=2")
    before = shards(run)
    assert len(live(scene)) == 5

    # More documents: a shard more, the others untouched, and their searches not done again.
    scene.select(*range(1, 9))
    added = scene.run("index.shards=1")
    assert added.outcome.chain_run.outcomes["index"].done == 1
    assert added.outcome.chain_run.outcomes["search"].done == 1
    assert added.outcome.chain_run.outcomes["search"].skipped == 2
    assert before.items() <= shards(run).items()
    assert len(live(scene)) == 8
    assert whole(scene)

    # A changed one: replaced.
    sound, rate = soundfile.read(scene.corpus / "audio" / "d002.flac", dtype="int16")
    soundfile.write(scene.corpus / "audio" / "d002.flac", sound[: 2 * rate], rate)
    frames, before = live(scene)["d002"], shards(run)
    changed = scene.run("index.shards=1")
    assert changed.outcome.chain_run.outcomes["index"].done == 1
    assert before.items() <= shards(run).items()
    assert live(scene)["d002"] < frames
    assert len(live(scene)) == 8
    assert whole(scene)

    # A removed one: dropped, nothing computed anew but the search of its shard.
    scene.select(1, 2, 3, 4, 6, 7, 8)
    before = shards(run)
    removed = scene.run(until="")
    assert removed.outcome.chain_run.outcomes["index"].done == 0
    assert removed.outcome.chain_run.outcomes["search"].done == 1
    assert shards(run) == before
    assert "d005" not in live(scene)
    assert "d005" not in set(removed.detections()["doc_id"])
    assert whole(scene)

    # Compacted: other files, the same results.
    digest = scene.digest()
    compacted = compact(Folder(str(run / "store")), 1.0)
    assert (compacted.shards_before, compacted.shards) == (4, 1)
    assert compacted.bytes < compacted.bytes_before
    assert whole(scene)
    again = scene.run(until="")
    assert again.outcome.chain_run.outcomes["index"].done == 0
    assert scene.digest() == digest
    clean(Folder(str(run)), 0.0, dry=False)
    assert len(list((run / "store" / "shards").glob("*.parquet"))) == 1

    # And after that it grows on.
    scene.select(*range(1, 9))
    assert scene.run().outcome.chain_run.outcomes["index"].done == 1
    assert len(live(scene)) == 8
    assert whole(scene)


@pytest.mark.slow
@pytest.mark.until("search")
def test_indexed_in_two_parts_is_searched_like_one(own_corpus: Any) -> None:
    scene = own_corpus
    by_document = ("search.normalise=none",)  # statistics of the collection are frozen with its first part
    scene.run(*by_document, run="once")
    scene.select(3, 5, 7)
    scene.run(*by_document)
    scene.select(*range(1, 9))
    scene.run(*by_document)
    assert scene.digest() == scene.digest("once")


def test_damage_is_found(own_corpus: Any) -> None:
    scene = own_corpus
    scene.run("index.shards=3", selection=StepSelection(until="index"))
    store = scene.folder / "run" / "store"
    names = sorted(path for path in (store / "shards").glob("part-*.parquet") if path.name.count(".") == 1)
    data = bytearray(names[0].read_bytes())
    data[len(data) // 2] ^= 1
    names[0].write_bytes(data)
    names[1].write_bytes(names[1].read_bytes()[:-100])
    names[2].unlink()
    problems = list(check(Store(Folder(str(store)))))
    assert any("SHA-256 differs" in one for one in problems if names[0].name in one)
    assert any("the manifest tells" in one for one in problems if names[1].name in one)
    assert any("missing" in one for one in problems if names[2].name in one)


@pytest.mark.until("search")
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
