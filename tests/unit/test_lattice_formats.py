"""Readers of lattices: what they give, and what they say of files that are wrong."""

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


def test_a_compact_lattice(tmp_path: Path) -> None:
    for content in (TEXT.encode(), BINARY, b"u1 " + compact_fst(COMPACT_STATES, double=True)):
        for packed in (content, gzip.compress(content)):
            lattice = lattice_of(kaldi_of(tmp_path / "lat", packed))
            assert sorted(arcs_of(lattice)) == sorted(ARCS)
            assert (lattice.key, lattice.tick, lattice.start, lattice.length) == ("u1", 0.01, 0, 6)
            assert sorted(lattice.graph) == [0, 0.25, 0.5, 1, 1.5]
            assert (lattice.final_graph.tolist(), lattice.final_acoustic[3]) == ([math.inf] * 3 + [0.5], 0)
            assert kaldi.detect("lat", content)
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


def test_forms_of_lines(tmp_path: Path) -> None:
    for text, costs_ in (
        ("0 1 3 Infinity,Infinity,1\n1\n", [math.inf]),
        ("0 1 3\n1 0,0,\n", [0]),
        ("0\t1  3\t1e1,-.5,1_2 \r\n1\n", [10]),
        ("7 9 3 1,2,1\n9 Infinity,Infinity,\n", [1]),
        ("0 1 5 3 1,2,\n1 3,4,\n", [1]),
        ("0 1 5 3\n1\n", [0]),
        ("0\n", []),
        ("", []),
    ):
        lattice = lattice_of(kaldi_of(tmp_path / "lat", f"u1 \n{text}\n"))
        assert (lattice.graph.tolist(), lattice.start) == (costs_, 0 if text else -1)


def test_binary_and_text_in_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = TEXT.encode() + BINARY.replace(b"u1", b"u2") + b"u3 \n\n" + b"u4 " + compact_fst([]) + TEXT.encode()
    for block in (None, 1, 7, 100):  # blocks end anywhere
        if block:
            monkeypatch.setattr(kaldi, "BLOCK", block)
            monkeypatch.setattr(kaldi.Stream.__init__, "__defaults__", (block,))
        results = kaldi_of(tmp_path / "lat", content)
        assert [result.key for result in results] == ["u1", "u2", "u3", "u4", "u1"]
        assert [result.states for result in results if isinstance(result, Lattice)] == [4, 4, 0, 0, 4]


def test_wrong_text_and_the_next_lattice(tmp_path: Path) -> None:
    damaged, cost = families.DAMAGED_LATTICE, codes.IMPOSSIBLE_COST
    for text, code, line, values in (
        ("0 1 3 1,2,1\n1 x\n", damaged, 3, {"text": "'1 x'"}),
        ("0 1 3 1,2,1\n0 1 3 4\n1\n", damaged, 3, {}),
        ("0 1 3 1,2\n1\n", damaged, 2, {}),
        ("0 1 3 1,2,a\n1\n", damaged, 2, {}),
        ("0 -1 3 1,2,1\n1\n", damaged, 2, {}),
        ("0 1 3 1,BadNumber,1\n1\n", cost, 2, {"value": "BadNumber"}),
        ("0 1 3 1,nan,1\n1\n", cost, 1, {}),
        ("0 1 3 -Infinity,1,1\n1\n", cost, 1, {"value": -math.inf}),
        ("0 1 3 2e9,1,1\n1\n", cost, 1, {"value": 2e9}),
        ("0 1 3 1,1,1\n1\n1 2,1,\n", codes.DAMAGED_LATTICE, 4, {}),
        ("0 1 3 1,1,1\n0 2 3 1,1,1_2\n1 2 3 1,1,1_2\n2\n", damaged, 1, {"state": 2, "first": 2, "second": 3}),
    ):
        results = kaldi_of(tmp_path / "lat", f"u0 \n{text}\n{TEXT}")
        broken(results[0], "u0", code, f"{tmp_path / 'lat'}, line {line}", **values)
        assert lattice_of(results[1:]).key == "u1"
    results = kaldi_of(tmp_path / "lat", f"{TEXT}\n\n{TEXT.replace('0.25', '?')}u2 \n0 1\n\n")
    assert isinstance(results[0], Lattice)
    broken(results[1], "u1", damaged, "line 16")  # lines are counted through an archive
    broken(results[2], "u2", damaged, "line 20")


def test_where_the_next_lattice_begins_is_not_known(tmp_path: Path) -> None:
    def changed(kind: str, old: tuple[int, ...], new: tuple[int, ...]) -> bytes:
        return BINARY.replace(struct.pack(kind, *old), struct.pack(kind, *new), 1)

    path, cut, none, damaged = tmp_path / "lat", codes.LATTICE_CUT_OFF, codes.NO_LATTICE_HERE, codes.DAMAGED_LATTICE
    for content, key, code in (
        (TEXT.encode()[:-1], "u1", cut),
        (b"u1", "", none),
        (b"u1 ", "u1", cut),
        (b"u1 x\n", "u1", none),
        (b"u\xff1 \n\n", "", none),
        (b"k" * 9000, "", none),
        (BINARY[:-1], "u1", cut),
        (BINARY[:40], "u1", cut),
        (BINARY.replace(b"\xd6\xfd", b"\xd6\xfe"), "u1", none),
        (BINARY.replace(b"vector", b"const!"), "u1", none),
        (BINARY.replace(b"compactlattice44", b"compactlattice77"), "u1", none),
        (changed("<ii", (2, 0), (2, 1)), "u1", none),
        (changed("<qq", (0, 4), (4, 4)), "u1", damaged),
        (changed("<ii", (5, 5), (5, 6)), "u1", damaged),
        (changed("<ii", (5, 5), (-5, -5)), "u1", damaged),
        (changed("<ii", (9, 3), (9, 4)), "u1", damaged),
        (changed("<iii", (2, 9, 9), (-2, 9, 9)), "u1", damaged),
    ):
        results = kaldi_of(path, TEXT.encode() + content)
        assert [isinstance(result, Lattice) for result in results] == [True, False]
        broken(results[1], key or str(path), code, str(path))
    wrong: list[State] = [(None, [(3, (math.nan, 0, [1]), 1)]), ((0, 0, []), [])]
    results = kaldi_of(path, b"u0 " + compact_fst(wrong) + BINARY)
    broken(results[0], "u0", codes.IMPOSSIBLE_COST, f"{path}, byte 3")
    assert lattice_of(results[1:]).key == "u1"
    results = kaldi_of(tmp_path / "lat.gz", gzip.compress(TEXT.encode() * 50)[:-9])
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


def test_scales_and_bases(tmp_path: Path) -> None:
    path, two = tmp_path / "x.slf", "VERSION=1.0{}\nN=2 L=2\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W=x {}\nJ=1 S=0 E=1 W=y {}\n"

    def read(head: str, first: str, second: str) -> Lattice:
        return lattice_of([htk_of(path, two.format(head, first, second))])

    for base, values in (("10", math.log10), ("2", math.log2), ("0", float)):
        texts = [f"a={values(sound)} l={values(words)}" for sound, words in ((0.25, 1.0), (0.5, 0.125))]
        assert costs(read(f" base={base}", *texts))[0] == pytest.approx([math.log(4), math.log(16)])
    for scale, expected in (("", [1, 5]), (" ngscale=0.5", [0.5, 2.5])):
        assert read(scale, "a=-1 n=-1", "a=-1 n=-5").graph.tolist() == expected
    # A probability of 0 is no path.
    assert costs(read(" base=0 lmscale=0", "l=0", "l=0.5"))[0].tolist() == [math.inf, 0]


def test_long_names_blanks_and_escapes(tmp_path: Path) -> None:
    text = (
        'VERSION 1.0\nlmname= vocab="a b"\nNODES=2 LINKS=2\nI=0 time=0 \nI=1 time=0.5 WORD="say \\"so\\""\n'
        "J=0 START=0 END=1 acoustic=-1 language=-2 d=:x,0.1:\nJ=1 S=0 E=1 W=\\'cause\n"
    )
    lattice = lattice_of([htk_of(tmp_path / "x.slf", text)])
    assert arcs_of(lattice) == [(0, 50, 'say "so"'), (0, 50, "'cause")]
    assert costs(lattice)[0].tolist() == [3, 0]
    # Octal escapes are the bytes of UTF-8, as HTK writes what it cannot print.
    text = HTK_TEXT.replace("here", r"\303\251t\303\251").replace("a talk", r"\346\227\245 1")
    lattice = lattice_of([htk_of(tmp_path / "x.slf", text.replace("it's", r"\"\342\200\246a"))])
    assert (lattice.key, set(lattice.labels)) == ("日 1", {"", "été", "tété", '"…a'})


def test_wrong_htk(tmp_path: Path) -> None:
    path, damaged, line, family = tmp_path / "x.slf", families.DAMAGED_LATTICE, codes.MALFORMED_LINE, families
    for old, new, code, values in (
        ("N=4 L=4", "N=4 L=5", damaged, {"kind": "links", "expected": 5, "count": 4}),
        ("N=4 L=4", "N=5 L=4", damaged, {"kind": "nodes"}),
        ("N=4 L=4", "", damaged, {}),
        ("N=4 L=4", "N=4 L=x", family.MALFORMED_LINE, {"name": "L"}),
        ("I=3 t=0.50", "I=2 t=0.50", line, {}),
        ("I=3 t=0.50", "I=4 t=0.50", line, {}),
        ("I=3 t=0.50", "I=3", family.MISSING_TIMES, {"node": "3"}),
        ("I=3 t=0.50", "I=3 t=-1", io_codes.BAD_TIME, {}),
        ("S=1 E=2", "S=1 E=4", line, {}),
        ("S=1 E=2", "S=1", line, {}),
        ("S=1 E=2", "= =", line, {}),
        ("S=0 E=1 a=-10", "S=0 E=1 a=ten", family.MALFORMED_LINE, {"name": "a"}),
        ("S=0 E=1 a=-10", "S=0 E=1 a=-2e10", codes.IMPOSSIBLE_COST, {}),
        ("lmscale=2.0", "lmscale=-2.0", line, {}),
        ("lmscale=2.0", "base=-2.0", line, {}),
        ("lmscale=2.0", "base=0", line, {}),
        ("lmscale=2.0", "start=4", line, {}),
        ("S=2 E=3", "S=2 E=2", damaged, {"count": 2, "name": "start"}),
        ("VERSION=1.0", "SUBLAT=x", codes.SUBLATTICE, {}),
        ("I=3 t=0.50", "I=3 t=0.5 L=x", codes.SUBLATTICE, {}),
        ("J=3", ".\nJ=3", codes.SUBLATTICE, {}),
        ("here", "h\0", family.MALFORMED_FILE, {}),
        ("here", "h\\351re", line, {}),
        ("t=0.50", "t=0.2", damaged, {"source": 2, "target": 3}),
    ):
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


def test_wrong_pocketsphinx(tmp_path: Path) -> None:
    damaged, line = families.DAMAGED_LATTICE, codes.MALFORMED_LINE
    for text, old, new, code in (
        (SPHINX_SLF, "p=0.25", "", line),
        (SPHINX_SLF, "p=0.25", "p=1.25", line),
        (SPHINX_SLF, "p=0.25", "p=0", damaged),
        (SPHINX_SLF, "L=4", "L=3", damaged),
        (SPHINX_TEXT, "End\n", "", codes.LATTICE_CUT_OFF),
        (SPHINX_TEXT, "1.000100e+00", "1", line),
        (SPHINX_TEXT, "Nodes 4", "Nodes 3", line),
        (SPHINX_TEXT, "Nodes 4", "Nodes 5", line),
        (SPHINX_TEXT, "2 go(2)", "1 go(2)", line),
        (SPHINX_TEXT, "2 go(2) 12", "2 go(2) 31", line),
        (SPHINX_TEXT, "1 0 -50000", "1 4 -50000", line),
        (SPHINX_TEXT, "1 0 -50000", "1 0", line),
        (SPHINX_TEXT, "1 0 -50000", "1 0 x", families.MALFORMED_LINE),
        (SPHINX_TEXT, "1 0 -50000", "1 0 1e39", codes.IMPOSSIBLE_COST),
        (SPHINX_TEXT, "Edges", "Links", line),
        (SPHINX_TEXT, "1 go 10 19 19", "1 go 25 27 28", damaged),
    ):
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


def test_wrong_confusion_networks(tmp_path: Path) -> None:
    line = codes.MALFORMED_LINE
    for old, new, code in (
        ("[ 0 1 ]", "[ 0 1", line),
        ("[ 0 1 ]", "[ 0 1 3 ]", line),
        ("[ 0 1 ]", "[ ]", line),
        ("[ 0 1 ]", "0 1", line),
        ("0.3 ] [ 0 1 ]", "0.3 ] [ 0 1", line),
        ("0.7", "0.6", line),
        ("0.7", "1.7", line),
        ("0.7", "x", families.MALFORMED_LINE),
        ("[ 0 1 ]", "", codes.UNPAIRED_CONFUSION),
        ("5 0.7", "4 0.7", families.UNKNOWN_NAME),
        ("12 12", "12", line),
        ("12 12", "12 -2", io_codes.BAD_TIME),
        ("12 12", "12 11", line),
        ("u1 0 0 ; 0.5", "u1 0.5", codes.UNPAIRED_CONFUSION),
    ):
        text, times = (given.replace(old, new, 1) for given in (CONFUSION_TEXT, CONFUSION_TIMES))
        results = confusion_of(tmp_path / "x", text, times)
        broken(results[0], "u1", code, str(tmp_path / "x"))
        assert lattice_of(results[1:]).key == "u2"
    results = confusion_of(tmp_path / "y.txt", CONFUSION_TEXT.partition("\n")[0])  # times without networks
    broken(results[1], "u2", codes.UNPAIRED_CONFUSION, "y.times, line 2", bins=0, times=1)
    broken(confusion_of(tmp_path / "z.txt", times=None)[0], "z", families.MISSING_FILE, str(tmp_path / "z.txt"))


# -- detection --------------------------------------------------------------------------------------------------------


def test_formats_are_detected() -> None:
    detect = {"kaldi": kaldi.detect, "pocketsphinx": htk.is_pocketsphinx, "htk": htk.detect}
    detect["confusion"] = confusion.detect
    in_order = [known for known in LATTICE_FORMATS if known in detect]
    assert len(in_order) == 4
    for name, head, format_ in (
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
    ):
        assert next((known for known in in_order if detect[known](name, head)), None) == format_
