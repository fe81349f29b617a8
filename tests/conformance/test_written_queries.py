"""Lattices of files, the method lattice and every format of lattices pass the suites of their kinds; wrong ones do not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.config import Config, config_from_dict
from swsdist.config.search import Search
from swsdist.core.codes import config as registry_codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.io.filesystem import Folder
from swsdist.lattices.collection import find_files, read_file
from swsdist.lattices.formats.subtitles import read as read_subtitles
from swsdist.lattices.lattice import Lattice, Lattices, Origin, Word, transcript
from swsdist.methods.method import create
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import load_chain_run
from swsdist.registry.entries import LatticeFormatEntry
from swsdist.registry.registries import LATTICE_FORMATS
from swsdist.store.reading import Store
from swsdist.testing.conformance import check_chain, check_lattice_format, check_method
from tests.support.coded import raises
from tests.support.format_samples import SAMPLES
from tests.support.written_corpus import make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("written")
    make(place)
    return place


def config(folder: Path, run: str, **values: Any) -> Config:
    given = {
        "run": f"runs/{run}",
        "chain": "lattices",
        "corpus": {"documents": "kaldi", "queries": "queries.csv", "references": "references.csv"},
        "options": {"lattices": {"words": str(folder / "words.txt")}, "recipe": {"acoustic_scale": 0.1}},
        "search": {"method": "lattice"},
        "calibrate": {"steps": ["kst"]},
        "executor": {"kind": "serial"},
        "report": {"clips": 0},
    }
    return config_from_dict({**given, **values}, folder)


@pytest.fixture(scope="module")
def searched(folder: Path) -> tuple[pa.Table, Store]:
    """A store of several shards, and the sequences of all queries."""
    from swsdist.store import lattice_shards

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice_shards, "SHARD_ARCS", 150)
        outcome = run_stages(config(folder, "searched"), StepSelection(until="queries"), Progress())
    assert not outcome.failures
    chain_run = load_chain_run(Folder(str(folder / "runs" / "searched")))
    return pa.concat_tables(chain_run.read("groups")), chain_run.chain.inputs.store.open()


@pytest.mark.slow
def test_the_chain(folder: Path) -> None:
    tables = check_chain(lambda word: config(folder, word))
    assert {"documents", "candidates", "detections", "normalised", "scored", "measures"} <= set(tables)


@pytest.mark.parametrize("options", [{}, {"gap": 0.0}, {"least": 0.2}, {"mode": "kaldi"}])
def test_the_method(searched: tuple[pa.Table, Store], options: dict[str, Any]) -> None:
    assert len(searched[1].manifest.shards) > 3
    assert check_method(Search.model_validate({"method": "lattice", "method_options": options}), *searched) > 10


def test_the_method_refuses_what_it_does_not_look_at() -> None:
    for search, code, values in (
        ({"distance": "euclidean"}, methods_codes.UNUSED_SEARCH_KEY, {"key": "distance"}),
        ({"candidate_window": 20}, methods_codes.UNUSED_SEARCH_KEY, {"key": "candidate_window"}),
        ({"method_options": {"gaps": 1}}, registry_codes.UNKNOWN_ENTRY_OPTION, {"option": "gaps"}),
        ({"method_options": {"gap": -1}}, families.INVALID_VALUE, {"name": "lattice"}),
        ({"method_options": {"least": 0}}, families.INVALID_VALUE, {"name": "lattice"}),
    ):
        with raises(code, where="search", **values):
            create(Search.model_validate({"method": "lattice", **search}))


@pytest.mark.parametrize("name", list(LATTICE_FORMATS))
def test_format(name: str) -> None:
    file, content, beside = SAMPLES[name]
    others = {other: text.encode() for other, text in beside.items()}
    count = 2 if name in ("kaldi", "confusion", "ctm") else 1
    assert check_lattice_format(name, file, content.encode(), others) == count


def read_mine(origin: Origin) -> Lattices:
    """A word a line."""
    lines = Path(origin.path).read_text().splitlines()
    yield transcript("talk", [Word(word, k, k + 1) for k, word in enumerate(lines[1:])])


def read_anew(origin: Origin) -> Lattices:
    yield transcript(f"talk{next(_NUMBERS)}", [Word("a", 0, 1)])


_NUMBERS = iter(range(1000))


def read_backwards(origin: Origin) -> Lattices:
    for item in read_subtitles(origin):
        yield replace(item, times=item.times[::-1].copy()) if isinstance(item, Lattice) else item


def read_twice(origin: Origin) -> Lattices:
    yield transcript("talk", [Word("a", 0, 1)])
    yield transcript("talk", [Word("b", 0, 1)])


def read_carelessly(origin: Origin) -> Lattices:
    (_, word), *_ = (line.split(":") for line in Path(origin.path).read_text().splitlines())
    yield transcript("talk", [Word(word, 0, 1)])


def tells_mine(name: str, head: bytes) -> bool:
    return head.startswith(b"mine:")


def tells_all(name: str, head: bytes) -> bool:
    return True


@pytest.mark.parametrize(
    ("reader", "detector", "complaint"),
    [
        ("read_mine", "tells_all", "it takes nonsense for its own"),
        ("read_anew", "tells_mine", "something else the second time"),
        ("read_twice", "tells_mine", "its lattices are named"),
        ("read_backwards", "tells_mine", "a word ends before it starts|cannot read"),
    ],
)
def test_a_wrong_format_is_caught(added: Any, reader: str, detector: str, complaint: str) -> None:
    entry = LatticeFormatEntry(f"{__name__}:{reader}", 1, f"{__name__}:{detector}", "mine")
    name = added(LATTICE_FORMATS, reader, entry)
    with pytest.raises(AssertionError, match=complaint):
        check_lattice_format(name, "talk.mine", b"mine:\n\n1\n00:00:00,000 --> 00:00:01,250\nHello\n")


def test_a_careless_reader_is_caught(added: Any) -> None:
    """What is no error of swsdist ends in a traceback."""
    entry = LatticeFormatEntry(f"{__name__}:read_carelessly", 1, f"{__name__}:tells_mine", "mine")
    name = added(LATTICE_FORMATS, "careless", entry)
    with pytest.raises((ValueError, UnicodeDecodeError)):
        check_lattice_format(name, "talk.mine", b"mine:hello")


def test_a_format_of_another_package(added: Any, tmp_path: Path) -> None:
    entry = LatticeFormatEntry(f"{__name__}:read_mine", 1, f"{__name__}:tells_mine", "mine")
    name = added(LATTICE_FORMATS, "mine", entry)
    (tmp_path / "talk.mine").write_text("mine:\nhello\nworld\n")
    (tmp_path / "talk.json").write_text(json.dumps({"segments": []}))
    (file,) = find_files(str(tmp_path), None, {}, lambda *_: None)
    assert file.format == "json"  # registered formats come first
    (file,) = find_files(str(tmp_path / "talk.mine"), None, {}, lambda *_: None)
    assert file.format == name
    items: Iterator[Any] = read_file(name, Origin(file.path))
    assert [item.labels for item in items] == [("", "hello", "world")]
