"""Readers of lattices: what they give, and what they say of files that are wrong."""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import SwsdistError
from swsdist.lattices.formats import confusion, htk, kaldi
from swsdist.lattices.lattice import BREAK, Broken, Lattice, Lattices, Origin
from swsdist.lattices.packed import best, costs, forward_backward
from swsdist.registry.registries import LATTICE_FORMATS
from tests.support.coded import raises
from tests.support.lattices import (
    COMPACT_STATES,
    COMPACT_TEXT,
    CONFUSION_TEXT,
    CONFUSION_TIMES,
    HTK_TEXT,
    SPHINX_SLF,
    SPHINX_TEXT,
    State,
    compact_fst,
)

TEXT = f"u1 \n{COMPACT_TEXT}\n"
BINARY = b"u1 " + compact_fst(COMPACT_STATES)


def kaldi_of(path: Path, content: str | bytes, words: Mapping[int, str] | None = None) -> list[Lattice | Broken]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(kaldi.read(Origin(str(path), words=words)))


def lattice_of(results: Lattices | list[Lattice | Broken]) -> Lattice:
    (lattice,) = results
    assert isinstance(lattice, Lattice), lattice.error
    return lattice


def broken(result: Lattice | Broken, key: str, code: Code[SwsdistError], where: str = "", **values: object) -> None:
    assert isinstance(result, Broken)
    assert result.key == key
    with raises(code, where=where, **values):
        raise result.error


def arcs_of(lattice: Lattice) -> list[tuple[int, int, str]]:
    """Times and word of each arc."""
    times = lattice.times.tolist()
    return [
        (times[source], times[target], lattice.labels[label])
        for source, target, label in zip(lattice.source, lattice.target, lattice.label, strict=True)
    ]


# -- Kaldi ------------------------------------------------------------------------------------------------------------

ARCS = [(0, 3, "3"), (0, 2, ""), (2, 3, ""), (3, 5, "5"), (3, 5, "6")]


@pytest.mark.parametrize("content", [TEXT.encode(), BINARY, b"u1 " + compact_fst(COMPACT_STATES, double=True)])
@pytest.mark.parametrize("packed", [False, True])
def test_a_compact_lattice(content: bytes, packed: bool, tmp_path: Path) -> None:
    lattice = lattice_of(kaldi_of(tmp_path / "lat", gzip.compress(content) if packed else content))
    assert sorted(arcs_of(lattice)) == sorted(ARCS)
    assert (lattice.key, lattice.tick, lattice.start, lattice.length) == ("u1", 0.01, 0, 6)
    assert sorted(lattice.graph) == [0, 0.25, 0.5, 1, 1.5]
    assert (lattice.final_graph.tolist(), lattice.final_acoustic[3]) == ([math.inf] * 3 + [0.5], 0)
    assert kaldi.detect("lat", content)


def test_words_and_the_length_of_a_frame(tmp_path: Path) -> None:
    (tmp_path / "lat").write_text(TEXT)
    origin = Origin(str(tmp_path / "lat"), words={0: "<eps>", 3: "three", 5: "five", 6: "six"}, frame=0.03)
    lattice = lattice_of(kaldi.read(origin))
    assert (lattice.labels, lattice.tick) == (("", "three", "five", "six"), 0.03)
    broken(kaldi_of(tmp_path / "lat", TEXT, {3: "three", 5: "five"})[0], "u1", families.UNKNOWN_NAME, label=6)


def test_the_chains_of_a_lattice_are_arcs(tmp_path: Path) -> None:
    # A word of three frames, one of two frames and, after a frame of none, one without frames.
    text = (
        "0 1 7 3 1,2\n1 2 7 0 0,1\n2 3 8 0 0.5,0\n3 4 9 5 1,1\n3 5 9 6 1,2\n4 6 9 0\n5 6 9 0 0,3\n6 7 1 0\n7 8 0 4\n8\n"
    )
    lattice = lattice_of(kaldi_of(tmp_path / "lat", f"u1 \n{text}\n"))
    assert arcs_of(lattice) == [(0, 3, "3"), (3, 5, "5"), (3, 5, "6"), (5, 6, ""), (6, 6, "4")]
    assert (lattice.graph.tolist(), lattice.acoustic.tolist()) == ([1.5, 1, 1, 0, 0], [3, 1, 5, 0, 0])
    assert (lattice.states, lattice.length, lattice.final_graph.tolist()) == (5, 6, [math.inf] * 4 + [0])


@pytest.mark.parametrize(
    ("text", "costs_"),
    [
        ("0 1 3 Infinity,Infinity,1\n1\n", [math.inf]),
        ("0 1 3\n1 0,0,\n", [0]),
        ("0\t1  3\t1e1,-.5,1_2 \r\n1\n", [10]),
        ("7 9 3 1,2,1\n9 Infinity,Infinity,\n", [1]),
        ("0 1 5 3 1,2,\n1 3,4,\n", [1]),
        ("0 1 5 3\n1\n", [0]),
        ("0\n", []),
        ("", []),
    ],
)
def test_forms_of_lines(text: str, costs_: list[float], tmp_path: Path) -> None:
    lattice = lattice_of(kaldi_of(tmp_path / "lat", f"u1 \n{text}\n"))
    assert lattice.graph.tolist() == costs_
    assert lattice.start == (0 if text else -1)


def test_binary_and_text_in_one_archive(tmp_path: Path) -> None:
    content = TEXT.encode() + BINARY.replace(b"u1", b"u2") + b"u3 \n\n" + b"u4 " + compact_fst([]) + TEXT.encode()
    results = kaldi_of(tmp_path / "lat", content)
    assert [result.key for result in results] == ["u1", "u2", "u3", "u4", "u1"]
    assert [result.states for result in results if isinstance(result, Lattice)] == [4, 4, 0, 0, 4]


def test_blocks_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (TEXT.encode() + BINARY) * 3
    for block in (1, 7, 100):
        monkeypatch.setattr(kaldi, "BLOCK", block)
        monkeypatch.setattr(kaldi.Stream.__init__, "__defaults__", (block,))
        results = kaldi_of(tmp_path / "lat", content)
        assert [isinstance(result, Lattice) for result in results] == [True] * 6


@pytest.mark.parametrize(
    ("text", "code", "where", "values"),
    [
        ("0 1 3 1,2,1\n1 x\n", families.DAMAGED_LATTICE, "line 3", {"text": "'1 x'"}),
        ("0 1 3 1,2,1\n0 1 3 4\n1\n", families.DAMAGED_LATTICE, "line 3", {}),
        ("0 1 3 1,2\n1\n", families.DAMAGED_LATTICE, "line 2", {}),
        ("0 1 3 1,2,a\n1\n", families.DAMAGED_LATTICE, "line 2", {}),
        ("0 -1 3 1,2,1\n1\n", families.DAMAGED_LATTICE, "line 2", {}),
        ("0 1 3 1,BadNumber,1\n1\n", codes.IMPOSSIBLE_COST, "line 2", {"value": "BadNumber"}),
        ("0 1 3 1,nan,1\n1\n", codes.IMPOSSIBLE_COST, "line 1", {}),
        ("0 1 3 -Infinity,1,1\n1\n", codes.IMPOSSIBLE_COST, "line 1", {"value": -math.inf}),
        ("0 1 3 2e9,1,1\n1\n", codes.IMPOSSIBLE_COST, "line 1", {"value": 2e9}),
        ("0 1 3 1,1,1\n1\n1 2,1,\n", codes.DAMAGED_LATTICE, "line 4", {}),
        (
            "0 1 3 1,1,1\n0 2 3 1,1,1_2\n1 2 3 1,1,1_2\n2\n",
            families.DAMAGED_LATTICE,
            "line 1",
            {"state": 2, "first": 2, "second": 3},
        ),
    ],
)
def test_wrong_text_and_the_next_lattice(
    text: str, code: Code[SwsdistError], where: str, values: dict[str, object], tmp_path: Path
) -> None:
    results = kaldi_of(tmp_path / "lat", f"u0 \n{text}\n{TEXT}")
    broken(results[0], "u0", code, f"{tmp_path / 'lat'}, {where}", **values)
    assert lattice_of(results[1:]).key == "u1"


def test_lines_are_counted_through_an_archive(tmp_path: Path) -> None:
    results = kaldi_of(tmp_path / "lat", f"{TEXT}\n\n{TEXT.replace('0.25', '?')}u2 \n0 1\n\n")
    assert isinstance(results[0], Lattice)
    broken(results[1], "u1", families.DAMAGED_LATTICE, "line 16")
    broken(results[2], "u2", families.DAMAGED_LATTICE, "line 20")


@pytest.mark.parametrize(
    ("content", "key", "code"),
    [
        (TEXT.encode()[:-1], "u1", codes.LATTICE_CUT_OFF),
        (b"u1", "", codes.NO_LATTICE_HERE),
        (b"u1 ", "u1", codes.LATTICE_CUT_OFF),
        (b"u1 x\n", "u1", codes.NO_LATTICE_HERE),
        (b"u\xff1 \n\n", "", codes.NO_LATTICE_HERE),
        (b"k" * 9000, "", codes.NO_LATTICE_HERE),
        (BINARY[:-1], "u1", codes.LATTICE_CUT_OFF),
        (BINARY[:40], "u1", codes.LATTICE_CUT_OFF),
        (BINARY.replace(b"\xd6\xfd", b"\xd6\xfe"), "u1", codes.NO_LATTICE_HERE),
        (BINARY.replace(b"vector", b"const!"), "u1", codes.NO_LATTICE_HERE),
        (BINARY.replace(b"compactlattice44", b"compactlattice77"), "u1", codes.NO_LATTICE_HERE),
        (BINARY.replace(struct.pack("<ii", 2, 0), struct.pack("<ii", 2, 1), 1), "u1", codes.NO_LATTICE_HERE),
        (BINARY.replace(struct.pack("<qq", 0, 4), struct.pack("<qq", 4, 4), 1), "u1", codes.DAMAGED_LATTICE),
        (BINARY.replace(struct.pack("<ii", 5, 5), struct.pack("<ii", 5, 6)), "u1", codes.DAMAGED_LATTICE),
        (BINARY.replace(struct.pack("<ii", 5, 5), struct.pack("<ii", -5, -5)), "u1", codes.DAMAGED_LATTICE),
        (BINARY.replace(struct.pack("<ii", 9, 3), struct.pack("<ii", 9, 4)), "u1", codes.DAMAGED_LATTICE),
        (BINARY.replace(struct.pack("<iii", 2, 9, 9), struct.pack("<iii", -2, 9, 9)), "u1", codes.DAMAGED_LATTICE),
    ],
)
def test_where_the_next_lattice_begins_is_not_known(
    content: bytes, key: str, code: Code[SwsdistError], tmp_path: Path
) -> None:
    path = tmp_path / "lat"
    results = kaldi_of(path, TEXT.encode() + content)
    assert isinstance(results[0], Lattice)
    assert len(results) == 2
    broken(results[1], key or str(path), code, str(path))


def test_what_is_wrong_in_a_binary_lattice_alone(tmp_path: Path) -> None:
    wrong: list[State] = [(None, [(3, (math.nan, 0, [1]), 1)]), ((0, 0, []), [])]
    results = kaldi_of(tmp_path / "lat", b"u0 " + compact_fst(wrong) + BINARY)
    broken(results[0], "u0", codes.IMPOSSIBLE_COST, f"{tmp_path / 'lat'}, byte 3")
    assert lattice_of(results[1:]).key == "u1"


def test_a_damaged_packed_archive(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT.encode() * 50)
    results = kaldi_of(tmp_path / "lat.gz", packed[:-9])
    broken(results[-1], str(tmp_path / "lat.gz"), io_codes.DAMAGED_ARCHIVE)


def test_places(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    archive = TEXT.encode() + BINARY
    (tmp_path / "sub" / "lat.ark").write_bytes(archive)
    (tmp_path / "apart").write_bytes(compact_fst(COMPACT_STATES))
    path = tmp_path / "sub" / "lat.scp"
    places = [2, len(TEXT) + 3]
    path.write_text(
        f"b lat.ark:{places[1]}\na {tmp_path}/sub/lat.ark:{places[0]}\nc ../apart\n\n"
        "d gunzip -c lat.gz |\ne lat.ark:5\nf none.ark:3\ng\nh\tlat.ark:2\n"
    )
    results = {result.key: result for result in kaldi.read(Origin(str(path)))}
    for key in "abch":
        assert sorted(arcs_of(lattice_of([results.pop(key)]))) == sorted(ARCS)
    broken(results.pop("d"), "d", families.COMMAND_REFUSED, f"{path}, line 5")
    broken(results.pop("e"), "e", codes.NO_LATTICE_HERE, "lat.ark:5")
    broken(results.pop("f"), "f", io_codes.NO_SUCH_FILE)
    broken(results.pop("g"), "g", io_codes.MALFORMED_SCP_LINE, f"{path}, line 8")
    assert not results
    at = f"{tmp_path}/sub/lat.ark:{places[1]}"
    assert lattice_of(kaldi.read(Origin(at))).key == at


def test_no_such_file(tmp_path: Path) -> None:
    for read in (kaldi.read, htk.read, htk.read_pocketsphinx, confusion.read):
        with raises(io_codes.NO_SUCH_FILE):
            list(read(Origin(str(tmp_path / "none"))))


# -- HTK --------------------------------------------------------------------------------------------------------------


def htk_of(path: Path, text: str) -> Lattice | Broken:
    path.write_text(text, encoding="utf-8")
    (result,) = htk.read(Origin(str(path)))
    return result


def test_htk(tmp_path: Path) -> None:
    lattice = lattice_of([htk_of(tmp_path / "x.slf", HTK_TEXT)])
    assert lattice.key == "a talk"
    assert arcs_of(lattice) == [(0, 13, "here"), (0, 13, "there"), (13, 25, ""), (25, 50, "it's")]
    assert lattice.acoustic.tolist() == [5, 5.5, 1.5, 3.75]
    assert lattice.graph.tolist() == [2 + 0.5 + 0.5, 1 + 0.5, 0, 4 + 0.5]
    assert (lattice.start, lattice.length, lattice.tick) == (0, 50, 0.01)
    assert lattice.final_graph.tolist() == [math.inf] * 3 + [0]
    assert lattice_of([htk_of(tmp_path / "x.y.slf", HTK_TEXT.replace('UTTERANCE="a talk"', ""))]).key == "x.y"


@pytest.mark.parametrize("base", ["10", "2", "0"])
def test_bases(base: str, tmp_path: Path) -> None:
    values = {"a": (0.25, 0.5), "l": (1.0, 0.125)}
    rows = [
        f"J={k} S=0 E=1 W=w{k} "
        + " ".join(f"{n}={v[k] if base == '0' else math.log(v[k], float(base))}" for n, v in values.items())
        for k in range(2)
    ]
    text = f"VERSION=1.0\nbase={base}\nN=2 L=2\nI=0 t=0\nI=1 t=1\n" + "\n".join(rows)
    lattice = lattice_of([htk_of(tmp_path / "x.slf", text)])
    assert costs(lattice)[0] == pytest.approx([math.log(4), math.log(16)])


def test_long_names_blanks_and_escapes(tmp_path: Path) -> None:
    text = (
        'VERSION 1.0\nlmname= vocab="a b"\nNODES=2 LINKS=2\nI=0 time=0 \nI=1 time=0.5 WORD="say \\"so\\""\n'
        "J=0 START=0 END=1 acoustic=-1 language=-2 d=:x,0.1:\nJ=1 S=0 E=1 W=\\'cause\n"
    )
    lattice = lattice_of([htk_of(tmp_path / "x.slf", text)])
    assert arcs_of(lattice) == [(0, 50, 'say "so"'), (0, 50, "'cause")]
    assert costs(lattice)[0].tolist() == [3, 0]


def test_n_grams_count(tmp_path: Path) -> None:
    text = "VERSION=1.0{scale}\nN=2 L=2\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W=x a=-1 n=-1\nJ=1 S=0 E=1 W=y a=-1 n=-5\n"
    for scale, expected in (("", [1, 5]), (" ngscale=0.5", [0.5, 2.5])):
        assert lattice_of([htk_of(tmp_path / "x.slf", text.format(scale=scale))]).graph.tolist() == expected


def test_octal_escapes_are_the_bytes_of_utf8(tmp_path: Path) -> None:
    """As HTK writes what it cannot print."""
    text = (
        HTK_TEXT.replace("here", r"\303\251t\303\251")
        .replace("a talk", r"\346\227\245 1")
        .replace("it's", r"\"\342\200\246a")
    )
    lattice = lattice_of([htk_of(tmp_path / "x.slf", text)])
    assert (lattice.key, set(lattice.labels)) == ("日 1", {"", "été", "tété", '"…a'})


def test_a_probability_of_0_is_no_path(tmp_path: Path) -> None:
    text = "VERSION=1.0 base=0 lmscale=0\nN=2 L=2\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W=x l=0\nJ=1 S=0 E=1 W=y l=0.5\n"
    lattice = lattice_of([htk_of(tmp_path / "x.slf", text)])
    assert costs(lattice)[0].tolist() == [math.inf, 0]


@pytest.mark.parametrize(
    ("old", "new", "code", "values"),
    [
        ("N=4 L=4", "N=4 L=5", families.DAMAGED_LATTICE, {"kind": "links", "expected": 5, "count": 4}),
        ("N=4 L=4", "N=5 L=4", families.DAMAGED_LATTICE, {"kind": "nodes"}),
        ("N=4 L=4", "", families.DAMAGED_LATTICE, {}),
        ("N=4 L=4", "N=4 L=x", families.MALFORMED_LINE, {"name": "L"}),
        ("I=3 t=0.50", "I=2 t=0.50", codes.MALFORMED_LINE, {}),
        ("I=3 t=0.50", "I=4 t=0.50", codes.MALFORMED_LINE, {}),
        ("I=3 t=0.50", "I=3", families.MISSING_TIMES, {"node": "3"}),
        ("I=3 t=0.50", "I=3 t=-1", io_codes.BAD_TIME, {}),
        ("S=1 E=2", "S=1 E=4", codes.MALFORMED_LINE, {}),
        ("S=1 E=2", "S=1", codes.MALFORMED_LINE, {}),
        ("S=1 E=2", "= =", codes.MALFORMED_LINE, {}),
        ("S=0 E=1 a=-10", "S=0 E=1 a=ten", families.MALFORMED_LINE, {"name": "a"}),
        ("S=0 E=1 a=-10", "S=0 E=1 a=-2e10", codes.IMPOSSIBLE_COST, {}),
        ("lmscale=2.0", "lmscale=-2.0", codes.MALFORMED_LINE, {}),
        ("lmscale=2.0", "base=-2.0", codes.MALFORMED_LINE, {}),
        ("lmscale=2.0", "base=0", codes.MALFORMED_LINE, {}),
        ("lmscale=2.0", "start=4", codes.MALFORMED_LINE, {}),
        ("S=2 E=3", "S=2 E=2", families.DAMAGED_LATTICE, {"count": 2, "name": "start"}),
        ("VERSION=1.0", "SUBLAT=x", codes.SUBLATTICE, {}),
        ("I=3 t=0.50", "I=3 t=0.5 L=x", codes.SUBLATTICE, {}),
        ("J=3", ".\nJ=3", codes.SUBLATTICE, {}),
        ("here", "h\0", families.MALFORMED_FILE, {}),
        ("here", "h\\351re", codes.MALFORMED_LINE, {}),
        ("t=0.50", "t=0.2", families.DAMAGED_LATTICE, {"source": 2, "target": 3}),
    ],
)
def test_wrong_htk(old: str, new: str, code: Code[SwsdistError], values: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "x.slf"
    broken(htk_of(path, HTK_TEXT.replace(old, new, 1)), "x", code, str(path), **values)


# -- pocketsphinx -----------------------------------------------------------------------------------------------------


def sphinx_of(path: Path, text: str) -> Lattice | Broken:
    path.write_text(text, encoding="utf-8")
    (result,) = htk.read_pocketsphinx(Origin(str(path), frame=0.02))
    return result


def test_pocketsphinx(tmp_path: Path) -> None:
    lattice = lattice_of([sphinx_of(tmp_path / "talk.lat.gz", SPHINX_TEXT)])
    assert (lattice.key, lattice.tick, lattice.length, lattice.start) == ("talk", 0.02, 30, 3)
    assert arcs_of(lattice) == [(0, 10, "<s>"), (0, 12, "<s>"), (10, 20, "go"), (12, 20, "go"), (20, 30, "</s>")]
    assert lattice.acoustic == pytest.approx([9.9995, 8.99955, 4.99975, 6.99965, 0])
    assert not lattice.graph.any()
    assert not lattice.probabilities
    assert best(lattice).cost == pytest.approx(14.99925)


def test_pocketsphinx_slf(tmp_path: Path) -> None:
    lattice = lattice_of([sphinx_of(tmp_path / "talk.slf", SPHINX_SLF)])
    assert arcs_of(lattice) == [(0, 10, ""), (0, 12, ""), (10, 20, "go"), (12, 20, "go"), (20, 20, "")]
    assert (lattice.tick, lattice.labels, lattice.probabilities) == (0.01, ("", "go"), True)
    assert forward_backward(lattice, 0.05).arcs == pytest.approx([0.25, 0.75, 0.25, 0.75, 1])
    assert np.exp(-lattice.graph) == pytest.approx([0.25, 0.75, 1, 1, 1])


@pytest.mark.parametrize(
    ("text", "old", "new", "code"),
    [
        (SPHINX_SLF, "p=0.25", "", codes.MALFORMED_LINE),
        (SPHINX_SLF, "p=0.25", "p=1.25", codes.MALFORMED_LINE),
        (SPHINX_SLF, "p=0.25", "p=0", families.DAMAGED_LATTICE),
        (SPHINX_SLF, "L=4", "L=3", families.DAMAGED_LATTICE),
        (SPHINX_TEXT, "End\n", "", codes.LATTICE_CUT_OFF),
        (SPHINX_TEXT, "1.000100e+00", "1", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "Nodes 4", "Nodes 3", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "Nodes 4", "Nodes 5", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "2 go(2)", "1 go(2)", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "2 go(2) 12", "2 go(2) 31", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "1 0 -50000", "1 4 -50000", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "1 0 -50000", "1 0", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "1 0 -50000", "1 0 x", families.MALFORMED_LINE),
        (SPHINX_TEXT, "1 0 -50000", "1 0 1e39", codes.IMPOSSIBLE_COST),
        (SPHINX_TEXT, "Edges", "Links", codes.MALFORMED_LINE),
        (SPHINX_TEXT, "1 go 10 19 19", "1 go 25 27 28", families.DAMAGED_LATTICE),
    ],
)
def test_wrong_pocketsphinx(text: str, old: str, new: str, code: Code[SwsdistError], tmp_path: Path) -> None:
    broken(sphinx_of(tmp_path / "x", text.replace(old, new, 1)), "x", code, str(tmp_path / "x"))


# -- confusion networks -----------------------------------------------------------------------------------------------


def confusion_of(path: Path, text: str = CONFUSION_TEXT, times: str | None = CONFUSION_TIMES) -> list[Lattice | Broken]:
    path.write_text(text)
    if times is not None:
        path.with_suffix(".times").write_text(times)
    return list(confusion.read(Origin(str(path), words={3: "three", 5: "five", 6: "six"}, frame=0.03)))


def test_confusion_networks(tmp_path: Path) -> None:
    first, second = confusion_of(tmp_path / "x.sausage.txt")
    assert isinstance(first, Lattice)
    assert (first.key, first.tick, first.length, first.probabilities) == ("u1", 0.001, 360, True)
    assert [arc for arc in arcs_of(first) if arc[2]] == [(15, 360, "five"), (15, 360, "six")]
    assert forward_backward(first, 0.1).arcs[first.label > 0] == pytest.approx([0.7, 0.3])
    assert [arc for arc in arcs_of(lattice_of([second])) if arc[2]] == [(90, 210, "three")]
    assert BREAK not in first.labels
    back, _ = confusion_of(tmp_path / "x.sausage.txt", times=CONFUSION_TIMES.replace("u1 0 0", "u1 4 6"))
    assert BREAK in lattice_of([back]).labels  # the second bin begins before the first: no phrase spans them
    assert confusion.times_beside("s3://b/c/x.sausage.txt.gz") == "s3://b/c/x.sausage.times"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("[ 0 1 ]", "[ 0 1", codes.MALFORMED_LINE),
        ("[ 0 1 ]", "[ 0 1 3 ]", codes.MALFORMED_LINE),
        ("[ 0 1 ]", "[ ]", codes.MALFORMED_LINE),
        ("[ 0 1 ]", "0 1", codes.MALFORMED_LINE),
        ("0.3 ] [ 0 1 ]", "0.3 ] [ 0 1", codes.MALFORMED_LINE),
        ("0.7", "0.6", codes.MALFORMED_LINE),
        ("0.7", "1.7", codes.MALFORMED_LINE),
        ("0.7", "x", families.MALFORMED_LINE),
        ("[ 0 1 ]", "", codes.UNPAIRED_CONFUSION),
        ("5 0.7", "4 0.7", families.UNKNOWN_NAME),
        ("12 12", "12", codes.MALFORMED_LINE),
        ("12 12", "12 -2", io_codes.BAD_TIME),
        ("12 12", "12 11", codes.MALFORMED_LINE),
        ("u1 0 0 ; 0.5", "u1 0.5", codes.UNPAIRED_CONFUSION),
    ],
)
def test_wrong_confusion_networks(old: str, new: str, code: Code[SwsdistError], tmp_path: Path) -> None:
    results = confusion_of(tmp_path / "x", CONFUSION_TEXT.replace(old, new, 1), CONFUSION_TIMES.replace(old, new, 1))
    broken(results[0], "u1", code, str(tmp_path / "x"))
    assert lattice_of(results[1:]).key == "u2"


def test_times_without_networks(tmp_path: Path) -> None:
    broken(confusion_of(tmp_path / "x.txt", times=None)[0], "x", families.MISSING_FILE, str(tmp_path / "x.txt"))
    results = confusion_of(tmp_path / "x.txt", CONFUSION_TEXT.partition("\n")[0])
    broken(results[1], "u2", codes.UNPAIRED_CONFUSION, "x.times, line 2", bins=0, times=1)


# -- detection --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "head", "format_"),
    [
        ("lat.scp", b"", "kaldi"),
        ("lat.1", TEXT.encode(), "kaldi"),
        ("lat.1", b"u1 \n\nu2 \n", "kaldi"),
        ("lat.1", b"u1 \n0 1 17 1.5,2.5,7_7_7_7_", "kaldi"),
        ("lat.1", BINARY, "kaldi"),
        ("x", HTK_TEXT.encode(), "htk"),
        ("x", b"N=1 L=0\nI=0", "htk"),
        ("x", SPHINX_TEXT.encode(), "pocketsphinx"),
        ("x", SPHINX_SLF.encode(), "pocketsphinx"),
        ("x", CONFUSION_TEXT.encode(), "confusion"),
        ("x.ctm", b"talk 1 0.5 0.2 word 0.9\n", None),
        ("x.txt", b"talk some words\n", None),
        ("x.txt", b"hello\n\n", None),
        ("x.times", CONFUSION_TIMES.encode(), None),
        ("x", b"", None),
    ],
)
def test_formats_are_detected(name: str, head: bytes, format_: str | None) -> None:
    detect = {
        "kaldi": kaldi.detect,
        "pocketsphinx": htk.is_pocketsphinx,
        "htk": htk.detect,
        "confusion": confusion.detect,
    }
    in_order = [known for known in LATTICE_FORMATS if known in detect]
    assert len(in_order) == 4
    assert next((known for known in in_order if detect[known](name, head)), None) == format_
