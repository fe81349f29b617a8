"""Lattices against answers of enumeration, and of other programs on real lattices."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.lattices.formats import confusion, htk, kaldi
from swsdist.lattices.lattice import Lattice, Lattices, Origin
from swsdist.lattices.packed import best, connect, forward_backward
from tests.support.golden import cases_below, run_case
from tests.support.golden.lattices import path_words, words_of

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden" / "lattices"
SYNTHETIC, REAL, SPHINX = GOLDEN / "synthetic", GOLDEN / "real", GOLDEN / "pocketsphinx"

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden lattices beside the checkout ({GOLDEN})")


def answers(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def all_read(lattices: Lattices) -> list[Lattice]:
    result = list(lattices)
    assert all(isinstance(lattice, Lattice) for lattice in result), result
    return result  # type: ignore[return-value]


def only(lattices: Lattices) -> Lattice:
    (lattice,) = all_read(lattices)
    return lattice


def test_every_case() -> None:
    """Enumerated ones, with the collection and the loops of phones; phrases of lattices that recognisers wrote."""
    for folder, count in ((SYNTHETIC, 24), (REAL, 1), (SPHINX, 1)):
        cases = [run_case(found) for found in cases_below(folder)]
        assert len(cases) == count
        for case in cases:
            assert case.differences == [], case.name
            assert case.compared > 10


def test_a_changed_answer_is_a_difference(tmp_path: Path) -> None:
    case = SYNTHETIC / "16_random1"
    changed = answers(case / "expected.json")
    changed["scales"][1]["arc_posterior"][3] += 1e-6
    changed["arc_list"][0][2] = "five"
    (tmp_path / "expected.json").write_text(json.dumps(changed), encoding="utf-8")
    (tmp_path / "words.txt").write_bytes((SYNTHETIC / "words.txt").read_bytes())
    (tmp_path / "compact.txt").write_bytes((case / "compact.txt").read_bytes())
    (found,) = cases_below(tmp_path)
    assert [difference.what for difference in run_case(found).differences] == [
        "compact.txt: arcs",
        "compact.txt at (0.1, 1.0): arc posteriors",
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_an_archive_of_text_and_a_list_of_it(packed: bool, tmp_path: Path) -> None:
    content = (SYNTHETIC / "collection" / "lattices.txt").read_bytes()
    path = tmp_path / "lat.1"
    path.write_bytes(gzip.compress(content) if packed else content)
    words = words_of(SYNTHETIC)
    archive = all_read(kaldi.read(Origin(str(path), words=words)))
    assert len(archive) == 18
    for lattice in archive:
        apart = only(kaldi.read(Origin(str(SYNTHETIC / lattice.key / "compact.txt"), words=words)))
        assert same(lattice, apart)
    if not packed:
        keys = [lattice.key for lattice in archive]
        places = [content.index(f"{key} \n".encode()) + len(key) + 1 for key in keys]
        (tmp_path / "lat.scp").write_text("".join(f"{k} lat.1:{p}\n" for k, p in zip(keys, places, strict=True)))
        listed = all_read(kaldi.read(Origin(str(tmp_path / "lat.scp"), words=words)))
        assert [lattice.key for lattice in listed] == keys
        assert all(same(left, right) for left, right in zip(listed, archive, strict=True))


def same(left: Lattice, right: Lattice) -> bool:
    names = ("times", "source", "target", "label", "graph", "acoustic", "final_graph", "final_acoustic")
    equal = all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)
    return equal and (left.labels, left.start, left.length) == (right.labels, right.start, right.length)


# Numbers of text have 6 digits, and the answers are of the text.
KALDI = [(f"kaldi-{name}.txt", 1e-9) for name in ("cvte", "test", "phones")]


@pytest.mark.parametrize(("name", "tolerance"), [*KALDI, ("kaldi-cvte.ark", 1e-3), ("kaldi-phones.ark", 1e-4)])
def test_kaldi(name: str, tolerance: float) -> None:
    expected = answers(REAL / f"{name.partition('.')[0]}.json")
    lattices = all_read(kaldi.read(Origin(str(REAL / name))))
    assert {lattice.key for lattice in lattices} == set(expected)
    for lattice in lattices:
        known = expected[lattice.key]
        scales = known["acoustic_scale"], known["lm_scale"]
        for part in (lattice, connect(lattice)):
            ours, path = forward_backward(part, *scales), best(part, *scales)
            assert ours.total == pytest.approx(known["total_logprob"], abs=tolerance)
            assert path.cost == pytest.approx(known["best_cost"], abs=tolerance)
            assert path_words(part, path.arcs) == known["best_words"]
            assert (part.states, len(part.source), part.length) == (known["states"], known["arcs"], known["frames"])
            assert ours.arcs.sum() == pytest.approx(known["arc_posterior_sum"], abs=tolerance)


@pytest.mark.parametrize("name", ["htk-ami-1.slf.gz", "htk-ami-2.slf.gz", "htk-small.slf"])
def test_htk(name: str) -> None:
    known = answers(REAL / f"{name.partition('.')[0]}.json")
    lattice = only(htk.read(Origin(str(REAL / name))))
    ours, path = forward_backward(lattice), best(lattice)
    assert ours.total == pytest.approx(known["total_logprob"], rel=1e-12)
    assert path.cost == pytest.approx(known["best_cost"], rel=1e-12)
    assert [w for w in path_words(lattice, path.arcs) if w not in known["not_words"]] == known["best_words"]
    assert (lattice.states, len(lattice.source)) == (known["states"], known["arcs"])
    assert ours.arcs.sum() == pytest.approx(known["arc_posterior_sum"], abs=1e-9)
    assert ours.arcs.max() == pytest.approx(known["arc_posterior_max"], abs=1e-9)


@pytest.mark.parametrize("name", ["goforward", "something", "librivox-0880-phones", "librivox-0930"])
def test_pocketsphinx(name: str) -> None:
    known = answers(SPHINX / f"{name}.json")
    flow = only(htk.read_pocketsphinx(Origin(str(SPHINX / f"{name}.slf"))))
    plain = only(htk.read_pocketsphinx(Origin(str(SPHINX / f"{name}.lat"))))
    assert flow.key == plain.key == name
    assert (flow.probabilities, plain.probabilities) == (True, False)
    for lattice in (flow, plain):  # a state and an arc more, for the word of the end
        size = known["nodes"] + 1, known["links"] + 1, known["start"]
        assert (lattice.states, len(lattice.source), lattice.start) == size
        assert np.array_equal(lattice.source, flow.source)
    assert plain.length == known["frames"] - 1
    assert forward_backward(flow).total == pytest.approx(0.0, abs=1e-12)
    slf = htk.parse(Origin(str(SPHINX / f"{name}.slf")))
    assert plain.acoustic[:-1] == pytest.approx(-slf.column("a", 0.0), rel=1e-5)


def test_a_confusion_network(tmp_path: Path) -> None:
    folder = SYNTHETIC / "collection"
    (tmp_path / "mbr.txt").write_bytes((folder / "mbr.sausage.txt").read_bytes())
    (tmp_path / "mbr.times").write_bytes((folder / "mbr.times.txt").read_bytes())
    networks = all_read(confusion.read(Origin(str(tmp_path / "mbr.txt"))))
    words = dict(line.split(None, 1) for line in (folder / "mbr.words.txt").read_text().splitlines() if " " in line)
    assert len(networks) == 18
    for network in networks:
        assert forward_backward(network).total == pytest.approx(0.0, abs=1e-5)
        assert path_words(network, best(network).arcs) == words[network.key].split()
