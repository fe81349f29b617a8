"""Alignment, counts and TWV against what STDEval 0.7 printed and computed for the cases of ../shared/golden/scoring.

The readers here are only as good as these cases need; the formats' own readers have their own tests.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
import tarfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from swsdist.score import Counts, Protocol, align, atwv, mtwv, number_of_trials, per_term, score_limits, twv_curve

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden" / "scoring"

#: Cases that need what the format readers bring.
LATER = {
    "same_text_two_ids": "the later ids of one text get its references several times: a rule of the reference lookup",
    "m08_ecf_filter": "option -E drops what lies outside of the ECF before the alignment",
    "outside_ecf_filtered": "option -E drops what lies outside of the ECF before the alignment",
    "empty_output": "the original stops at the file; the reader decides what we do",
}
#: Options that only the other program has: no result of STDEval is there to compare with.
OTHER_PROGRAM = {
    "m16_include_no_targ",
    "m18_segment",
    "opt_include_no_targ",
    "opt_just_system_terms",
    "segment_small",
}
#: Cases with a term that can be paired in several equally good ways: only counts are compared.
AMBIGUOUS = {"m02_nist06_ties", "big_500x300k"}
#: STDEval prints no curve; ours is defined.
NO_CURVE = {"single_term": 0.6666666666666666, "empty_lists": 0.0}

CASES = sorted({path.name for path in GOLDEN.glob("*")} - set(LATER) - OTHER_PROGRAM)

pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden cases beside the checkout ({GOLDEN})")


class Lexeme(NamedTuple):
    start: float
    end: float
    word: str


class Case(NamedTuple):
    params: dict[str, Any]
    expected: dict[str, Any]
    seconds: float
    detections: pa.Table
    references: pa.Table


def test_every_case_is_used_or_named() -> None:
    assert set(LATER) | OTHER_PROGRAM | set(CASES) == {path.name for path in GOLDEN.iterdir()}
    assert set(CASES) >= AMBIGUOUS | set(NO_CURVE)
    for name in OTHER_PROGRAM:
        assert "stdeval" not in json.loads(text(name, "expected.json"))


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n[:3] == "big" else n for n in CASES])
@pytest.mark.filterwarnings("ignore:a query has .* its false-alarm rate is negative")
def test_case(name: str) -> None:
    case = read(name)
    expected, params = case.expected, case.params
    weight = params["koef_c"] / params["koef_v"] * (1 / params["prob_term"] - 1)
    rules = Protocol(
        "golden", weight, params["similarity_threshold"], params["find_threshold"], params["trials_per_sec"]
    )
    trials = number_of_trials(rules, case.seconds)
    assert (trials, weight) == (expected["num_trials"], pytest.approx(expected["beta"], rel=1e-15))

    low, high = score_limits(case.detections["score"])
    assert (low, high) == (expected["min_score"], expected["max_score"])
    aligned = align(case.detections, case.references, tolerance=rules.tolerance, low=low, high=high)
    check_terms(aligned, trials, weight, expected["terms"])
    if name not in AMBIGUOUS:
        check_pairs(aligned, expected["terms"])

    counts = Counts.of(aligned)
    assert counts.terms.sum() == expected["n_terms_with_refs"]
    actual = atwv(counts, trials=trials, beta=weight)
    assert actual[:3] == pytest.approx((expected["atwv"], expected["mean_pmiss"], expected["mean_pfa"]), abs=1e-9)

    curve = twv_curve(counts, trials=trials, beta=weight)
    best = mtwv(curve)
    if name in NO_CURVE:
        assert expected["det"]["status"] == "not_computed"
        assert best.twv == pytest.approx(NO_CURVE[name], abs=1e-12)
        return
    det = expected["det"]
    assert best.twv == pytest.approx(det["max_value"], abs=1e-9)
    if np.count_nonzero(curve.twv > best.twv - 1e-9) == 1:
        assert best[1:] == pytest.approx((det["pmiss"], det["pfa"], det["threshold"]), abs=1e-9)
    check_curve(name, curve.threshold, curve.pmiss, curve.pfa, curve.twv)


def check_terms(aligned: pa.Table, trials: int, weight: float, expected: dict[str, Any]) -> None:
    ours = {row["query_id"]: row for row in per_term(aligned, trials=trials, beta=weight).to_pylist()}
    # A term without references and detections leaves no row.
    assert set(expected) >= set(ours)
    rated = 0
    for term, theirs in expected.items():
        row = ours.get(term, {"ntrue": 0, "ncorr": 0, "nfa": 0, "nmiss": 0, "pmiss": None, "pfa": None})
        for what in ("ntrue", "ncorr", "nfa", "nmiss"):
            assert row[what] == theirs[what], (term, what)
        for what in ("pmiss", "pfa"):
            if theirs[what] is None:
                assert row[what] is None
            else:
                assert row[what] == pytest.approx(theirs[what], abs=1e-12), (term, what)
                rated += 1
    assert rated


def check_pairs(aligned: pa.Table, expected: dict[str, Any]) -> None:
    hits = aligned.filter(pc.and_(pc.is_valid(aligned["start"]), pc.is_valid(aligned["ref_start"]))).to_pylist()
    ours = sorted((h["query_id"], h["doc_id"], h["ref_start"], h["start"], h["score"], h["decision"]) for h in hits)
    theirs = sorted(
        (term, file, ref_start, start, score, decision == "YES")
        for term, counts in expected.items()
        for file, _, ref_start, _, start, _, score, decision in counts["pairs"]
    )
    assert ours == theirs


def check_curve(name: str, *ours: np.ndarray) -> None:
    """The curve's file has every n-th point and the last, with 12 digits."""
    kept = json.loads(text(name, "expected.json"))["det_files"]["stdeval_det"]
    rows = list(csv.reader(io.StringIO(text(name, "det.stdeval_det.csv"))))[1:]
    assert len(ours[0]) == kept["n_points"]
    taken = [*range(0, len(ours[0]), kept["kept_every"])]
    if taken[-1] != len(ours[0]) - 1:
        taken.append(len(ours[0]) - 1)
    np.testing.assert_allclose(np.stack(ours, axis=1)[taken], np.array(rows, dtype=float), rtol=1e-11, atol=1e-11)


def raw(name: str, file: str) -> bytes:
    plain = GOLDEN / name / file
    if plain.exists():
        return plain.read_bytes()
    packed = GOLDEN / name / f"{file}.xz"
    if packed.exists():
        return lzma.decompress(packed.read_bytes())
    with tarfile.open(GOLDEN / name / "inputs.tar.xz") as archive:
        member = archive.extractfile(file)
        assert member is not None
        return member.read()


def text(name: str, file: str) -> str:
    return raw(name, file).decode("utf-8")


def read(name: str) -> Case:
    ecf = ElementTree.fromstring(raw(name, "ecf.xml"))
    seconds = 0.0
    for excerpt in ecf.iter("excerpt"):
        seconds += float(excerpt.attrib["dur"]) if excerpt.attrib["channel"] == "1" else 0.0
    params = json.loads(text(name, "params.json"))
    terms = {
        term.attrib["termid"]: (term.findtext("termtext") or "").lower().split()
        for term in ElementTree.fromstring(raw(name, "tlist.xml")).iter("term")
    }
    return Case(
        params=params,
        expected=json.loads(text(name, "expected.json"))["stdeval"],
        seconds=seconds,
        detections=read_detections(name),
        references=look_up(terms, text(name, "ref.rttm"), params["find_threshold"]),
    )


def read_detections(name: str) -> pa.Table:
    columns: dict[str, list[Any]] = defaultdict(list)
    for found in ElementTree.fromstring(raw(name, "stdlist.xml")).iter("detected_termlist"):
        for term in found.iter("term"):
            columns["query_id"].append(found.attrib["termid"])
            columns["doc_id"].append(re.sub(r"\.(sph|wav|flac)$", "", term.attrib["file"].rsplit("/", 1)[-1]))
            columns["channel"].append(int(term.attrib["channel"]))
            columns["start"].append(float(term.attrib["tbeg"]))
            columns["duration"].append(float(term.attrib["dur"]))
            columns["score"].append(float(term.attrib["score"]))
            columns["decision"].append(term.attrib["decision"] == "YES")
    names = ("query_id", "doc_id", "channel", "start", "duration", "score", "decision")
    kinds = (pa.string(), pa.string(), pa.int32(), pa.float64(), pa.float64(), pa.float64(), pa.bool_())
    table = pa.table({n: pa.array(columns[n], kind) for n, kind in zip(names, kinds, strict=True)})
    return table.append_column("end", pc.add(table["start"], table["duration"]))


def look_up(terms: dict[str, list[str]], rttm: str, gap: float) -> pa.Table:
    """Where the terms occur, by STDEval's rules: chains per file, channel and speaker, in the order of the file."""
    chains: dict[tuple[str, int, str], list[Lexeme]] = defaultdict(list)
    for line in rttm.splitlines():
        fields = line.split(";;")[0].split()
        if fields and fields[0].upper() == "LEXEME":
            start, end = float(fields[3]), float(f"{float(fields[3]) + float(fields[4]):.4f}")
            speaker = fields[7] if len(fields) > 7 else ""
            chains[fields[1], int(fields[2]), speaker].append(Lexeme(start, end, fields[5].lower()))
    places: dict[str, dict[tuple[str, int, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for key, chain in chains.items():
        for index, lexeme in enumerate(chain):
            places[lexeme.word][key].append(index)
    rows = [
        (term, key[0], key[1], start, end)
        for term, words in terms.items()
        for key, firsts in places[words[0]].items()
        for start, end in occurrences(words, chains[key], firsts, gap)
    ]
    kinds = (pa.string(), pa.string(), pa.int32(), pa.float64(), pa.float64())
    names = ("query_id", "doc_id", "channel", "start", "end")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})


def occurrences(words: list[str], chain: list[Lexeme], firsts: list[int], gap: float) -> Iterator[tuple[float, float]]:
    """One pass from left to right that never goes back; `firsts` are the places of the first word."""
    at = 0
    while at < len(firsts):
        index, matched = firsts[at], 0
        begin = index
        while index < len(chain):
            if chain[index].word != words[matched]:
                # The same token is tried as a first word, earlier ones are not.
                break
            if matched and float(f"{chain[index].start - chain[index - 1].end:.4f}") > gap:
                # Too far: this token is used up, too.
                index += 1
                break
            matched += 1
            index += 1
            if matched == len(words):
                yield chain[begin].start, chain[index - 1].end
                break
        at = bisect_left(firsts, index)
