"""swsdist store import: a store of frames that another program made, what is searched in it, and what `check` says of them."""

from pathlib import Path

import numpy as np
import pytest
from commands import Command, untold

import swsdist as package
from swsdist.store.reading import Store

SHIFT = ("--shift", "0.01", "--dimension", "39", "--length", "0.032")


@pytest.fixture
def frames(place: Path, tmp_path: Path) -> Path:
    """Frames of the run's documents, a file each; those of queries beside them, below `q`."""
    documents, queries = package.open_store(str(place / "run/store")), package.open_store(str(place / "run/queries"))
    for name in ("f", "q"):
        (tmp_path / name).mkdir()
    for doc_id in documents.documents()["doc_id"].to_pylist():
        np.save(tmp_path / "f" / f"{doc_id}.npy", documents.features(doc_id))
    for row in queries.documents().to_pylist():
        key = (row["doc_id"], row["channel"])
        np.save(tmp_path / "q" / "{}-{}.npy".format(*key), queries.features(*key))
    return tmp_path


def opened(path: Path) -> Store:
    return package.open_store(str(path))


def test_from_a_store_to_files_and_back(swsdist: Command, place: Path, frames: Path) -> None:
    told = swsdist("store", "import", "there", "f", *SHIFT, "--track", "theirs", cwd=frames).out
    assert told.startswith("8 documents, ")
    there, own = opened(frames / "there"), opened(place / "run/store")
    assert [(track.name, track.kind) for track in there.manifest.tracks] == [("theirs", "features")]
    for doc_id in own.documents()["doc_id"].to_pylist():
        assert np.array_equal(there.features(doc_id), own.features(doc_id))
    swsdist("store", "check", "there", cwd=frames)
    assert "external version 1 (shift=0.01" in swsdist("store", "info", "there", cwd=frames).out
    assert "q001-1.npy" in swsdist("search", "there", "--query", "q/q001-1.npy", "--top", "3", cwd=frames).out
    # With the speakers of the table, the same query finds the same in both.
    docs = str(place / "corpus" / "docs.csv")
    swsdist("store", "import", "spoken", "f", *SHIFT, "--documents", docs, cwd=frames)
    hits = package.search(str(frames / "spoken"), str(frames / "q" / "q001-1.npy"), top=5)
    wanted = package.search(own, str(place / "corpus/queries/q001_1.wav"), top=5)  # trimmed, as those of the run
    assert len(hits) == 5
    assert hits.drop(columns="query_id").equals(wanted.drop(columns="query_id"))


def test_again_only_what_has_changed(swsdist: Command, frames: Path) -> None:
    swsdist("store", "import", "there", "f", *SHIFT, cwd=frames)
    before = set((frames / "there" / "shards").glob("*"))
    swsdist("store", "import", "there", "f", *SHIFT, cwd=frames)
    assert set((frames / "there" / "shards").glob("*")) == before
    np.save(frames / "f" / "d001.npy", np.load(frames / "f" / "d001.npy") + 1)
    (frames / "f" / "d002.npy").unlink()
    assert swsdist("store", "import", "there", "f", *SHIFT, cwd=frames).out.startswith("7 documents")
    assert len(set((frames / "there" / "shards").glob("*")) - before) == 3  # one shard: frames, documents, rejected
    assert np.array_equal(opened(frames / "there").features("d001"), np.load(frames / "f" / "d001.npy"))
    told = swsdist("store", "import", "there", "f", "--shift", "0.02", "--dimension", "39", cwd=frames, code=2).err
    assert "the store holds other features" in told
    assert "name another store in STORE" in told


def test_rejected_ones_are_told(swsdist: Command, frames: Path) -> None:
    np.save(frames / "f" / "d003.npy", np.full((50, 39), np.inf))
    ask = ("store", "import", "there", "f", *SHIFT)
    told = swsdist(*ask, cwd=frames)
    assert told.out.startswith("7 documents")
    named = f"non-finite-frames; the first: {frames}/f/d003.npy: frame 0 of 'd003' contains inf; "
    assert f"rejected: 1 document(s), {named}" in told.err
    assert "[strict]" in swsdist(*ask, "--strict", cwd=frames, code=4).err
    none = swsdist("store", "import", "no", "f", "--shift", "0.01", "--dimension", "3", cwd=frames, code=3).err
    assert f"error: {frames}/f: none of the 8 documents could be used" in none
    np.save(frames / "f" / "d004.npy", np.zeros((50, 38), np.float32))
    wide = swsdist(*ask, cwd=frames).err
    assert "correct --dimension, or the frames" in wide
    assert "features.options" not in wide


def test_control_characters_of_names_are_escaped(swsdist: Command, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    for name in ("a\x1bb\tc", "plain"):
        np.save(tmp_path / "f" / f"{name}.npy", np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32))
    swsdist("store", "import", "there", "f", "--shift", "0.01", "--dimension", "3", cwd=tmp_path)
    *_, first, second = swsdist("store", "info", "there", "--documents", cwd=tmp_path).out.splitlines()
    assert (first.split("\t")[0], second.split("\t")[0]) == ("a\\x1bb\\tc", "plain")
    hits = swsdist("search", "there", "--query", "f/plain.npy:0.5-1.0", "--top", "9", cwd=tmp_path).out
    assert "a\\x1bb\\tc" in hits
    assert "\t" not in hits


def test_documents_of_a_table(swsdist: Command, place: Path, frames: Path) -> None:
    table = ("--documents", str(place / "corpus" / "docs.csv"))
    swsdist("store", "import", "there", "f", *SHIFT, *table, "--hours", "0.005", cwd=frames)
    stores = [opened(frames / "there"), opened(place / "run/store")]
    names = ("doc_id", "speaker", "path")
    rows, wanted = ([[row[name] for name in names] for row in one.documents().to_pylist()] for one in stores)
    assert rows == wanted
    assert len(stores[0].manifest.shards) > 1
    # The table's durations are held against the frames.
    short = ("--shift", "0.005", "--dimension", "39")
    assert "wrong-duration" not in swsdist("store", "import", "x", "f", *SHIFT, *table, cwd=frames).err
    told = swsdist("store", "import", "y", "f", *short, *table, cwd=frames, code=3).err
    assert "frames of 'd001' at 0.005 s last 4.69 s, its audio 9.40 s" in told


def test_a_query_must_be_frames(swsdist: Command, place: Path, frames: Path) -> None:
    swsdist("store", "import", "there", "f", *SHIFT, cwd=frames)
    sound = {f"search there --query {place}/corpus/queries/q001_1.wav": "[unsupported] .. give frames of the query"}
    assert untold(swsdist, sound, frames) == {}
    missing = {
        "search there --query q/gone.npy": "there is no file q/gone.npy",
        "search there --query q/q001-1.npy:30-40": "the place from 30 to 40 s has none",
    }
    assert untold(swsdist, missing, frames, code=3) == {}


def test_check_of_a_config(swsdist: Command, frames: Path) -> None:
    (frames / "docs.csv").write_text("doc_id\n" + "".join(f"d00{k}\n" for k in range(1, 9)))
    (frames / "queries.csv").write_text("query_id\nq001\nq002\n")
    (frames / "config.yaml").write_text(
        "run: run\ncorpus: {documents: docs.csv, queries: queries.csv}\n"
        "features: {name: external, options: {path: f, queries: q, shift: 0.01, dimension: 39}}\n"
    )

    def told(*sets: str, code: int = 0) -> str:
        return swsdist("check", "config.yaml", *sets, cwd=frames, code=code).out

    out = told()
    for part in ("8 have no recording", "2, 2 examples; not trimmed", "of 8 of 8 documents", "of 2 of 2 examples of"):
        assert part in out
    assert "odd" not in out
    (frames / "f" / "d002.npy").unlink()
    assert "7 of 8 documents; the first without: d002" in told()
    (frames / "docs.csv").write_text("doc_id\nx1\nx2\n")
    none = "frames of 0 of 2 documents; the first without: x1; there are frames of the keys d001, d003, "
    assert none in told(code=2)
    (frames / "docs.csv").write_text("doc_id\nd001\n")
    out = told("--set", "features.options.dimension=12", code=2)
    assert "d001.npy: the frames of 'd001' have the shape 938 x 39, not frames x 12 [wrong-dimension]; remedy: " in out
    out = told("--set", "features.options.path=gone", code=2)
    assert f"{frames}/gone: there is no such file or folder" in out
