"""Files of lattices: formats, documents, tasks, what readers give and say of wrong ones; posteriors; queries as labels."""

from __future__ import annotations

import gzip
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.codes import Code, families
from swsdist.core.codes import io as io_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import SwsdistError
from swsdist.lattices import collection
from swsdist.lattices.collection import LatticeFile, chunks, detect, document_id, find_files, read_file
from swsdist.lattices.formats import confusion, htk, kaldi
from swsdist.lattices.lattice import BREAK, Broken, Lattice, Lattices, Origin
from swsdist.lattices.packed import best, best_through, connect, costs, forward_backward
from swsdist.registry.entries import LatticeFormatEntry
from swsdist.registry.registries import LATTICE_FORMATS
from tests.oracles.lattices import paths
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
    lattice,
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


def test_chains_of_arcs_and_forms_of_lines(tmp_path: Path) -> None:
    # A word of three frames, one of two frames and, after a frame of none, one without frames.
    text = (
        "0 1 7 3 1,2\n1 2 7 0 0,1\n2 3 8 0 0.5,0\n3 4 9 5 1,1\n3 5 9 6 1,2\n4 6 9 0\n5 6 9 0 0,3\n6 7 1 0\n7 8 0 4\n8\n"
    )
    lattice = lattice_of(kaldi_of(tmp_path / "lat", f"u1 \n{text}\n"))
    assert arcs_of(lattice) == [(0, 3, "3"), (3, 5, "5"), (3, 5, "6"), (5, 6, ""), (6, 6, "4")]
    assert (lattice.graph.tolist(), lattice.acoustic.tolist()) == ([1.5, 1, 1, 0, 0], [3, 1, 5, 0, 0])
    assert (lattice.states, lattice.length, lattice.final_graph.tolist()) == (5, 6, [math.inf] * 4 + [0])
    for text, costs_ in (
        ("0 1 3 Infinity,Infinity,1\n1\n", [math.inf]),
        ("0\t1  3\t1e1,-.5,1_2 \r\n1\n", [10]),
        ("7 9 3 1,2,1\n9 Infinity,Infinity,\n", [1]),
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
        ("0 1 3 1,2\n1\n", damaged, 2, {}),
        ("0 -1 3 1,2,1\n1\n", damaged, 2, {}),
        ("0 1 3 1,BadNumber,1\n1\n", cost, 2, {"value": "BadNumber"}),
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

    path, damaged = tmp_path / "lat", [changed("<qq", (0, 4), (4, 4)), changed("<ii", (9, 3), (9, 4))]
    damaged += [changed("<ii", (5, 5), (5, 6)), changed("<ii", (5, 5), (-5, -5))]
    damaged.append(changed("<iii", (2, 9, 9), (-2, 9, 9)))
    none = [b"u1 x\n", BINARY.replace(b"\xd6\xfd", b"\xd6\xfe"), BINARY.replace(b"vector", b"const!")]
    none += [BINARY.replace(b"compactlattice44", b"compactlattice77"), changed("<ii", (2, 0), (2, 1))]
    for key, code, contents in (
        ("u1", codes.LATTICE_CUT_OFF, [TEXT.encode()[:-1], BINARY[:-1]]),
        (str(path), codes.NO_LATTICE_HERE, [b"u1", b"u\xff1 \n\n", b"k" * 9000]),
        ("u1", codes.NO_LATTICE_HERE, none),
        ("u1", codes.DAMAGED_LATTICE, damaged),
    ):
        for content in contents:
            results = kaldi_of(path, TEXT.encode() + content)
            assert [isinstance(result, Lattice) for result in results] == [True, False]
            broken(results[1], key, code, str(path))
    wrong: list[State] = [(None, [(3, (math.nan, 0, [1]), 1)]), ((0, 0, []), [])]
    results = kaldi_of(path, b"u0 " + compact_fst(wrong) + BINARY)
    broken(results[0], "u0", codes.IMPOSSIBLE_COST, f"{path}, byte 3")
    assert lattice_of(results[1:]).key == "u1"
    results = kaldi_of(tmp_path / "lat.gz", gzip.compress(TEXT.encode() * 50)[:-9])
    broken(results[-1], str(tmp_path / "lat.gz"), io_codes.DAMAGED_ARCHIVE)


def test_places_of_lattices_and_none(tmp_path: Path) -> None:
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
    for read in (kaldi.read, htk.read, htk.read_pocketsphinx, confusion.read):
        with raises(io_codes.NO_SUCH_FILE):
            list(read(Origin(str(tmp_path / "none"))))


def htk_of(path: Path, text: str) -> Lattice | Broken:
    path.write_text(text, encoding="utf-8")
    (result,) = htk.read(Origin(str(path)))
    return result


def test_htk_its_scales_bases_and_escapes(tmp_path: Path) -> None:
    lattice = lattice_of([htk_of(tmp_path / "x.slf", HTK_TEXT)])
    assert lattice.key == "a talk"
    assert arcs_of(lattice) == [(0, 13, "here"), (0, 13, "there"), (13, 25, ""), (25, 50, "it's")]
    assert lattice.acoustic.tolist() == [5, 5.5, 1.5, 3.75]
    assert lattice.graph.tolist() == [2 + 0.5 + 0.5, 1 + 0.5, 0, 4 + 0.5]
    assert (lattice.start, lattice.length, lattice.tick) == (0, 50, 0.01)
    assert lattice.final_graph.tolist() == [math.inf] * 3 + [0]
    assert lattice_of([htk_of(tmp_path / "x.y.slf", HTK_TEXT.replace('UTTERANCE="a talk"', ""))]).key == "x.y"
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
    last, link, scale = "I=3 t=0.50", "S=0 E=1 a=-10", "lmscale=2.0"
    malformed = [(last, "I=2 t=0.50"), (last, "I=4 t=0.50"), ("S=1 E=2", "S=1 E=4"), ("S=1 E=2", "S=1")]
    malformed += [(scale, "lmscale=-2.0"), (scale, "base=0"), (scale, "start=4"), ("here", "h\\351re")]
    sub = [("VERSION=1.0", "SUBLAT=x"), (last, "I=3 t=0.5 L=x"), ("J=3", ".\nJ=3")]
    for old, new, code, values in (
        ("N=4 L=4", "N=4 L=5", damaged, {"kind": "links", "expected": 5, "count": 4}),
        ("N=4 L=4", "N=5 L=4", damaged, {"kind": "nodes"}),
        ("N=4 L=4", "N=4 L=x", family.MALFORMED_LINE, {"name": "L"}),
        (last, "I=3", family.MISSING_TIMES, {"node": "3"}),
        (last, "I=3 t=-1", io_codes.BAD_TIME, {}),
        (link, "S=0 E=1 a=ten", family.MALFORMED_LINE, {"name": "a"}),
        (link, "S=0 E=1 a=-2e10", codes.IMPOSSIBLE_COST, {}),
        ("S=2 E=3", "S=2 E=2", damaged, {"count": 2, "name": "start"}),
        ("here", "h\0", family.MALFORMED_FILE, {}),
        ("t=0.50", "t=0.2", damaged, {"source": 2, "target": 3}),
        *((old, new, line, {}) for old, new in malformed),
        *((old, new, codes.SUBLATTICE, {}) for old, new in sub),
    ):
        broken(htk_of(path, HTK_TEXT.replace(old, new, 1)), "x", code, str(path), **values)


def sphinx_of(path: Path, text: str) -> Lattice | Broken:
    path.write_text(text, encoding="utf-8")
    (result,) = htk.read_pocketsphinx(Origin(str(path), frame=0.02))
    return result


def test_pocketsphinx_in_both_forms_and_wrong(tmp_path: Path) -> None:
    lattice = lattice_of([sphinx_of(tmp_path / "talk.lat.gz", SPHINX_TEXT)])
    assert (lattice.key, lattice.tick, lattice.length, lattice.start) == ("talk", 0.02, 30, 3)
    assert arcs_of(lattice) == [(0, 10, "<s>"), (0, 12, "<s>"), (10, 20, "go"), (12, 20, "go"), (20, 30, "</s>")]
    assert lattice.acoustic == pytest.approx([9.9995, 8.99955, 4.99975, 6.99965, 0])
    assert not lattice.graph.any()
    assert not lattice.probabilities
    assert best(lattice).cost == pytest.approx(14.99925)
    lattice = lattice_of([sphinx_of(tmp_path / "talk.slf", SPHINX_SLF)])
    assert arcs_of(lattice) == [(0, 10, ""), (0, 12, ""), (10, 20, "go"), (12, 20, "go"), (20, 20, "")]
    assert (lattice.tick, lattice.labels, lattice.probabilities) == (0.01, ("", "go"), True)
    assert forward_backward(lattice, 0.05).arcs == pytest.approx([0.25, 0.75, 0.25, 0.75, 1])
    assert np.exp(-lattice.graph) == pytest.approx([0.25, 0.75, 1, 1, 1])
    edge, path = "1 0 -50000", tmp_path / "x"
    lines = [("1.000100e+00", "1"), ("Nodes 4", "Nodes 3"), ("2 go(2)", "1 go(2)"), ("2 go(2) 12", "2 go(2) 31")]
    lines += [(edge, "1 4 -50000"), ("Edges", "Links")]
    for text, code, changes in (
        (SPHINX_SLF, codes.MALFORMED_LINE, [("p=0.25", ""), ("p=0.25", "p=1.25")]),
        (SPHINX_SLF, families.DAMAGED_LATTICE, [("p=0.25", "p=0"), ("L=4", "L=3")]),
        (SPHINX_TEXT, codes.LATTICE_CUT_OFF, [("End\n", "")]),
        (SPHINX_TEXT, codes.MALFORMED_LINE, lines),
        (SPHINX_TEXT, families.MALFORMED_LINE, [(edge, "1 0 x")]),
        (SPHINX_TEXT, codes.IMPOSSIBLE_COST, [(edge, "1 0 1e39")]),
        (SPHINX_TEXT, families.DAMAGED_LATTICE, [("1 go 10 19 19", "1 go 25 27 28")]),
    ):
        for old, new in changes:
            broken(sphinx_of(path, text.replace(old, new, 1)), "x", code, str(path))


def confusion_of(path: Path, text: str = CONFUSION_TEXT, times: str | None = CONFUSION_TIMES) -> list[Lattice | Broken]:
    path.write_text(text)
    if times is not None:
        path.with_suffix(".times").write_text(times)
    return list(confusion.read(Origin(str(path), words={3: "three", 5: "five", 6: "six"}, frame=0.03)))


def test_confusion_networks_and_wrong_ones(tmp_path: Path) -> None:
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
    lines = [("[ 0 1 ]", "[ 0 1"), ("[ 0 1 ]", "[ 0 1 3 ]"), ("[ 0 1 ]", "0 1"), ("0.3 ] [ 0 1 ]", "0.3 ] [ 0 1")]
    lines += [("0.7", "0.6"), ("0.7", "1.7"), ("12 12", "12"), ("12 12", "12 11")]
    for code, changes in (
        (codes.MALFORMED_LINE, lines),
        (families.MALFORMED_LINE, [("0.7", "x")]),
        (codes.UNPAIRED_CONFUSION, [("[ 0 1 ]", ""), ("u1 0 0 ; 0.5", "u1 0.5")]),
        (families.UNKNOWN_NAME, [("5 0.7", "4 0.7")]),
        (io_codes.BAD_TIME, [("12 12", "12 -2")]),
    ):
        for old, new in changes:
            text, times = (given.replace(old, new, 1) for given in (CONFUSION_TEXT, CONFUSION_TIMES))
            results = confusion_of(tmp_path / "x", text, times)
            broken(results[0], "u1", code, str(tmp_path / "x"))
            assert lattice_of(results[1:]).key == "u2"
    results = confusion_of(tmp_path / "y.txt", CONFUSION_TEXT.partition("\n")[0])  # times without networks
    broken(results[1], "u2", codes.UNPAIRED_CONFUSION, "y.times, line 2", bins=0, times=1)
    broken(confusion_of(tmp_path / "z.txt", times=None)[0], "z", families.MISSING_FILE, str(tmp_path / "z.txt"))


def test_formats_are_detected() -> None:
    detect = {"kaldi": kaldi.detect, "pocketsphinx": htk.is_pocketsphinx, "htk": htk.detect}
    detect["confusion"] = confusion.detect
    in_order = [known for known in LATTICE_FORMATS if known in detect]
    assert len(in_order) == 4
    for name, format_, heads in (
        ("lat.scp", "kaldi", [b""]),
        ("lat.1", "kaldi", [TEXT.encode(), b"u1 \n0 1 17 1.5,2.5,7_7_7_7_", BINARY]),
        ("x", "htk", [HTK_TEXT.encode(), b"N=1 L=0\nI=0"]),
        ("x", "pocketsphinx", [SPHINX_TEXT.encode(), SPHINX_SLF.encode()]),
        ("x", "confusion", [CONFUSION_TEXT.encode()]),
        ("x.ctm", None, [b"talk 1 0.5 0.2 word 0.9\n", b"talk some words\n", CONFUSION_TIMES.encode(), b""]),
    ):
        for head in heads:
            assert next((known for known in in_order if detect[known](name, head)), None) == format_


COST = st.one_of(st.integers(-24, 80).map(lambda k: k / 8), st.integers(0, 8).map(lambda k: k * 1e4), st.just(math.inf))


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Up to six states in any order, some that no path uses."""
    states = draw(st.integers(1, 6))
    order = draw(st.permutations(range(states)))
    pairs = [(order[i], order[k]) for i in range(states) for k in range(i + 1, states)]
    arcs = [
        (*draw(st.sampled_from(pairs)), draw(st.integers(0, 3)), draw(COST), draw(COST))
        for _ in range(draw(st.integers(0, 9)) if pairs else 0)
    ]
    finals = {state: (draw(COST), draw(COST)) for state in range(states) if draw(st.booleans())}
    start = draw(st.sampled_from(order[:2]))
    return lattice(arcs, finals, draw(st.lists(st.integers(0, 9), min_size=states, max_size=states)), start=start)


@given(lattices(), st.sampled_from([(1.0, 1.0), (0.1, 1.0), (0.5, 2.0), (0.0, 1.0), (1.0, 0.0)]))
def test_sums_are_of_all_paths(given_: Lattice, scales: tuple[float, float]) -> None:
    known = paths(given_, *scales)
    ours = forward_backward(given_, *scales)
    path = best(given_, *scales)
    if not known:
        assert ours.total == -math.inf
        assert not ours.arcs.any()
        assert not ours.finals.any()
        assert not ours.pushed.any()
        assert (path.cost, len(path.arcs)) == (math.inf, 0)
        return
    least = min(item.cost for item in known)
    chances = [math.exp(least - item.cost) for item in known]
    whole = math.fsum(chances)
    assert ours.total == pytest.approx(math.log(whole) - least, rel=1e-12, abs=1e-9)
    arcs, finals = np.zeros(len(given_.source)), np.zeros(given_.states)
    for item, chance in zip(known, chances, strict=True):
        arcs[list(item.arcs)] += chance / whole
        finals[item.end] += chance / whole
    assert ours.arcs == pytest.approx(arcs, abs=1e-9)
    assert ours.finals == pytest.approx(finals, abs=1e-9)
    assert path.cost == pytest.approx(least, rel=1e-12, abs=1e-9)
    assert tuple(path.arcs) in {item.arcs for item in known if item.cost <= least + 1e-6}
    used = np.isfinite(ours.alpha)
    assert np.array_equal(used, np.isfinite(ours.beta))
    for arc in np.flatnonzero(ours.arcs > 1e-12):
        state = given_.source[arc]
        visits = math.exp(ours.alpha[state] + ours.beta[state] - ours.total)
        assert ours.pushed[arc] == pytest.approx(ours.arcs[arc] / visits, rel=1e-6)


@given(lattices())
def test_connected(given_: Lattice) -> None:
    ours = connect(given_)
    known = paths(given_, 1.0, 1.0)
    assert sorted(item.cost for item in paths(ours, 1.0, 1.0)) == pytest.approx(sorted(item.cost for item in known))
    assert len(ours.source) == len({arc for item in known for arc in item.arcs})
    assert (ours.source < ours.target).all()
    assert (np.diff(ours.source) >= 0).all()
    assert ours.start == (0 if known else -1)
    again = connect(ours)
    assert np.array_equal(again.source, ours.source)
    assert np.array_equal(again.times, ours.times)
    # The next state is the earliest of those that may come next.
    entering = {state: set(ours.source[ours.target == state].tolist()) for state in range(ours.states)}
    for state in range(1, ours.states):
        ready = [other for other in range(state, ours.states) if entering[other] <= set(range(state))]
        assert ours.times[state] == min(ours.times[other] for other in ready)


@given(lattices())
def test_best_path_through_each_arc(given_: Lattice) -> None:
    known = paths(given_, 1.0, 1.0)
    ours = best_through(given_).tolist()
    for arc, apart in enumerate(ours):
        through = [item.cost for item in known if arc in item.arcs]
        least = min((item.cost for item in known), default=0.0)
        assert apart == (pytest.approx(min(through) - least, abs=1e-9) if through else math.inf)


def test_scales_and_cycles() -> None:
    """Infinity is no number at scale 0, and no scale applies to probabilities."""
    given_ = lattice([(0, 1, 1, math.inf, 1), (0, 1, 2, 1, math.inf), (0, 1, 3, 2, 4)], {1: (0, 0)}, [0, 1])
    assert costs(given_, 0.0, 1.0)[0].tolist() == [math.inf, math.inf, 2.0]
    assert costs(given_, 1.0, 0.0)[0].tolist() == [math.inf, math.inf, 4.0]
    assert forward_backward(given_, 0.0, 0.0).arcs.tolist() == [0.0, 0.0, 1.0]
    arcs = [(0, 1, 1, math.log(4), 0), (0, 1, 2, math.log(4 / 3), 0)]
    given_ = lattice(arcs, {1: (0, 0)}, [0, 1], probabilities=True)
    assert forward_backward(given_, 0.1, 5.0).arcs == pytest.approx([0.25, 0.75])
    assert forward_backward(replace(given_, probabilities=False), 0.1, 2.0).arcs == pytest.approx([0.1, 0.9])
    nothing = lattice([], {}, [], start=-1)
    assert (forward_backward(nothing).total, best(nothing).cost) == (-math.inf, math.inf)
    assert connect(nothing).states == len(best_through(nothing)) == 0
    cycle = [(0, 1, 1, 0, 0), (1, 2, 1, 0, 0), (2, 1, 1, 0, 0), (2, 3, 1, 0, 0)]
    for function in (connect, forward_backward, best, best_through):
        with raises(families.DAMAGED_LATTICE, where="key"):
            function(lattice(cycle, {3: (0, 0)}, [0, 1, 2, 3]))  # type: ignore[operator]
    assert connect(lattice(cycle, {0: (0, 0)}, [0, 1, 2, 3])).states == 1


JSON = json.dumps({"segments": [{"words": [{"word": " hello", "start": 0.5, "end": 1.0, "probability": 0.5}]}]})
VTT = "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n"
SRT = "1\n00:00:00,000 --> 00:00:01,000\nhello\n"
CTM = "talk 1 0.5 0.5 hello 0.5\n"
KALDI = f"u1 \n{COMPACT_TEXT}\n"


def put(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def listed(path: Path, form: str | None = None) -> tuple[dict[str, str], dict[str, str | None]]:
    """Formats of files that are taken, and what is said of others."""
    left: dict[str, str | None] = {}
    files = find_files(str(path), form, {}, lambda file, better: left.update({Path(file).name: better}))
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert all(file.size == Path(file.path).stat().st_size and file.identity for file in files)
    return {Path(file.path).relative_to(path).as_posix(): file.format for file in files}, left


def test_formats_of_a_folder_and_of_one_transcript_the_first(tmp_path: Path) -> None:
    put(tmp_path, a_json=JSON, b_vtt=VTT, c_srt=SRT, sub__d_ctm=CTM, sub__lat_1_gz=gzip.compress(KALDI.encode()))
    put(tmp_path, notes_md="# Notes\n", _hidden_json=JSON, _git__x_json=JSON, sub___y_vtt=VTT)
    (tmp_path / "\udcff.json").write_text(JSON)  # a name that is not UTF-8
    expected = {"a.json": "json", "b.vtt": "webvtt", "c.srt": "srt", "sub/d.ctm": "ctm", "sub/lat.1.gz": "kaldi"}
    assert listed(tmp_path) == (expected, {"notes.md": None, "\udcff.json": None})
    order = list(LATTICE_FORMATS)
    assert order.index("json") < order.index("webvtt") < order.index("srt")
    put(tmp_path, x__a_json=JSON, x__a_srt=SRT, x__a_vtt=VTT, x__b_srt=SRT, x__b_vtt=VTT, x__c__a_srt=SRT)
    taken = {"a.json": "json", "b.vtt": "webvtt", "c/a.srt": "srt"}
    assert listed(tmp_path / "x") == (taken, {"a.srt": "json", "a.vtt": "json", "b.srt": "webvtt"})
    # Files of one name and format are both taken: that their documents are the same is an error, not a choice.
    put(tmp_path, y__a_json=JSON, y__a_json_gz=gzip.compress(JSON.encode()), y__lat_1=KALDI, y__lat_2=KALDI)
    taken = {"a.json": "json", "a.json.gz": "json", "lat.1": "kaldi", "lat.2": "kaldi"}
    assert listed(tmp_path / "y") == (taken, {})
    put(tmp_path, v1_0__first=KALDI, v1_0__second=SRT)
    assert listed(tmp_path / "v1.0") == ({"first": "kaldi", "second": "srt"}, {})


def test_formats_that_are_named_or_that_names_say(tmp_path: Path) -> None:
    put(tmp_path, a_txt=CTM, b_json=JSON, x__notes_md="# Notes\n")
    assert listed(tmp_path, "ctm") == ({"a.txt": "ctm", "x/notes.md": "ctm"}, {"b.json": None})
    (tmp_path / "a.txt").rename(tmp_path / "a.ctm")
    reader = "swsdist.lattices.formats.ctm:read"
    LATTICE_FORMATS.add("own-ctm", LatticeFormatEntry(reader, 1, "swsdist.lattices.formats.ctm:detect"))
    try:
        assert listed(tmp_path, "own-ctm")[0]["a.ctm"] == "own-ctm"
        assert listed(tmp_path) == ({"a.ctm": "ctm", "b.json": "json"}, {"notes.md": None})
    finally:
        LATTICE_FORMATS.remove("own-ctm")
    for path, code in ((tmp_path / "x", families.EMPTY_INPUT), (tmp_path / "x" / "notes.md", families.UNKNOWN_NAME)):
        with raises(code, where=str(path), formats=", ".join(LATTICE_FORMATS)):
            listed(path)
    (file,) = find_files(str(tmp_path / "a.ctm"), None, {}, lambda *_: None)
    assert (Path(file.path).name, file.format) == ("a.ctm", "ctm")
    (file,) = find_files(str(tmp_path / "a.ctm"), "srt", {}, lambda *_: None)
    assert file.format == "srt"
    put(tmp_path, a_json_gz=gzip.compress(JSON.encode())[:15])
    path = str(tmp_path / "a.json.gz")
    assert detect(path, {}) == "json"
    (broken,) = read_file("json", Origin(path))
    assert isinstance(broken, Broken)
    assert path in (broken.error.where or "")


def test_documents() -> None:
    for key, file, path, document in (
        ("talk", "/t/talk.json", "/t", "talk"),
        ("talk", "/t/a/b/talk.json.gz", "/t", "a/b/talk"),
        ("talk", "/t/a/talk.wav.json", "/t/", "a/talk"),
        ("u1", "/t/a/lat.1.gz", "/t", "u1"),
        ("talk", "/t/talk.json", "/t/talk.json", "talk"),
        ("talk", "s3://b/t/a/talk.json", "s3://b/t", "a/talk"),
        ("talk", "/t/a/talks.json", "/t", "talk"),
    ):
        assert document_id(key, file, path) == document


def files(count: int) -> list[LatticeFile]:
    return [LatticeFile(f"/t/{k:05}.json", str(k), 1000, "json") for k in range(count)]


def test_tasks_are_stable_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    some = files(3000)
    before = list(chunks(some))
    assert [file for task in before for file in task] == some
    assert 20 < len(before) < 120
    for k in (0, 777, 2999):
        without = list(chunks(some[:k] + some[k + 1 :]))
        old, new = ({tuple(task) for task in tasks} for tasks in (before, without))
        assert len(new - old) <= 2
        assert len(old - new) <= 2
    monkeypatch.setattr(collection, "_MOST_FILES", 7)
    assert max(map(len, chunks(files(200)))) == 7
    monkeypatch.setattr(collection, "_MOST_BYTES", 2500)
    assert max(map(len, chunks(files(200)))) == 2
    large = [file._replace(size=1 << 40) for file in files(5)]
    assert list(map(len, chunks(large))) == [1] * 5
    assert list(chunks([])) == []
