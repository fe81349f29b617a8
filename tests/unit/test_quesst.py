"""QUESST: a small evaluation by hand, its lists, and what the program dies of."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist.core.codes import io as io_codes
from swsdist.core.codes import score as codes
from swsdist.core.errors import DataError
from swsdist.core.types import EXCERPTS
from swsdist.io.nist.ecf import write_ecf
from swsdist.io.quesst import (
    SCORES,
    TARGETS,
    read_quesst_documents,
    read_quesst_list,
    read_quesst_references,
    write_quesst_list,
)
from swsdist.score.measures.quesst import Quesst, score_quesst
from tests.support.coded import raises

DOCUMENTS = ("d1", "d2", "d3")
#: a: target d1; b: targets d1, d2; c: none.
REFERENCES = [("a", "d1"), ("b", "d1"), ("b", "d2"), ("NO_KEYWORD", "d3"), ("a", "elsewhere")]
TRIALS = [
    ("a", "d1", 2.0, True),
    ("a", "d2", 1.0, True),
    ("a", "d3", -1.0, False),
    ("b", "d1", 3.0, True),
    ("b", "d2", -2.0, False),
    ("b", "d3", 0.5, False),
    ("c", "d2", 9.0, True),
]


def scores(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(SCORES.names, row, strict=True)) for row in rows], pa.schema([f.with_nullable(True) for f in SCORES])
    )


def targets(rows: list[tuple[str, str]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(TARGETS.names, row, strict=True)) for row in rows], TARGETS)


def scored(rows: list[tuple[Any, ...]] = TRIALS, **changed: Any) -> Quesst:
    rules: dict[str, Any] = {"queries": ("a", "b", "c"), "documents": DOCUMENTS, "prior": 0.5} | changed
    references = rules.pop("references", REFERENCES)
    return score_quesst(scores(rows), targets(references), rules.pop("queries"), rules.pop("documents"), **rules)


def test_by_hand() -> None:
    found = scored()
    assert (found.queries, found.removed, found.documents) == (("a", "b"), ("c",), 3)
    assert (found.given, found.least, found.greatest) == (6, -2.0, 3.0)
    # beta 1. a: no miss, one of two non-targets accepted; b: one of two targets missed.
    assert found.pooled.act_twv == pytest.approx(1 - (0.5 + 0.5) / 2)
    assert found.curve.threshold.tolist() == [-math.inf, -2.0, -1.0, 0.5, 1.0, 2.0, 3.0]
    assert found.curve.pmiss.tolist() == [0, 0.25, 0.25, 0.25, 0.25, 0.75, 1]
    assert found.curve.pfa.tolist() == [1, 1, 0.75, 0.25, 0, 0, 0]
    assert (found.pooled.max_twv, found.pooled.threshold) == (0.75, 1.0)


def test_cross_entropy_by_hand() -> None:
    found = scored()

    def bits(value: float) -> float:
        return math.log2(1 + math.exp(-value))

    true, false = (bits(2) + bits(3) + bits(-2)) / 3, (bits(-1) + bits(1) + bits(-0.5)) / 3
    assert found.pooled.act_cnxe == pytest.approx((true + false) / 2, rel=1e-14)
    # By score: target, then three non-targets, then two targets; four are pooled at rate 1/4, the last two cost nothing.
    assert found.pooled.min_cnxe == pytest.approx((math.log2(4) / 3 + 3 * math.log2(4 / 3) / 3) / 2, rel=1e-14)


def test_the_order_of_equal_scores_is_the_files() -> None:
    rows = [("a", "d1", 1.0, True), ("a", "d2", 1.0, True), ("a", "d3", 1.0, False)]
    first = scored(rows, references=[("a", "d1")])
    last = scored(rows[::-1], references=[("a", "d1")])
    assert (first.pooled.min_cnxe, last.pooled.min_cnxe) == (pytest.approx(1), 0)


def test_what_was_left_out_gets_the_default_and_no() -> None:
    found = scored([row for row in TRIALS if row[1] != "d2"], default=-4.0)
    assert (found.given, found.least) == (4, -1.0)
    assert found.curve.threshold[1] == -4.0
    assert found.pooled.act_twv == pytest.approx(1 - (0 + 0.5) / 2)


def test_own_thresholds_and_recalibrations() -> None:
    found = scored()
    # a is parted by any threshold between 1 and 2; b misses d2 or accepts d3.
    assert found.per_query.act_twv == pytest.approx((1 + 0.5) / 2)
    assert found.per_query.max_twv == pytest.approx(0.75)
    assert found.per_query.threshold == 0
    assert found.per_query.act_cnxe <= found.pooled.min_cnxe


def test_a_query_that_all_documents_are_targets_of() -> None:
    found = scored(references=[("a", "d1"), *((("b", name)) for name in DOCUMENTS)])
    assert math.isnan(found.pooled.act_twv)
    assert math.isnan(found.per_query.act_twv)
    assert found.curve.pfa.tolist() == [1, 1, 0.75, 0.75, 0.5, 0.5, 0.5]
    assert math.isfinite(found.pooled.min_cnxe)


def test_repeated_references_warn() -> None:
    with pytest.warns(UserWarning, match=r"1 duplicate reference \[duplicate-targets\]"):
        assert scored(references=[*REFERENCES, ("a", "d1")]).pooled == scored().pooled


@pytest.mark.parametrize(
    ("change", "code", "values"),
    [
        ({"rows": TRIALS[:-2]}, codes.UNSCORED_TRIALS, {"count": 1}),
        ({"rows": [*TRIALS, ("a", "d9", 0.0, False)]}, codes.INVALID_TRIAL, {"column": "doc_id"}),
        ({"rows": [*TRIALS, ("x", "d1", 0.0, False)]}, codes.INVALID_TRIAL, {"column": "query_id"}),
        (
            {"rows": [*TRIALS, ("a", "d1", 0.0, False)]},
            codes.DUPLICATE_TRIAL,
            {"where": "detections, row 8 (query_id a, doc_id d1"},
        ),
        ({"rows": [("a", "d1", math.nan, False), *TRIALS[1:]]}, codes.INVALID_TRIAL, {"column": "score"}),
        ({"rows": [("a", "d1", None, False), *TRIALS[1:]]}, codes.INVALID_TRIAL, {"column": "score"}),
        ({"rows": [("a", "d1", 0.0, None), *TRIALS[1:]]}, codes.INVALID_TRIAL, {"column": "decision"}),
        ({"documents": ("d1", "d2", "d3", "d1")}, codes.DUPLICATE_TRIAL_ID, {"kind": "document", "name": "d1"}),
        ({"queries": ("a", "b", "a", "c")}, codes.DUPLICATE_TRIAL_ID, {"kind": "query", "name": "a"}),
        ({"references": [("x", "d1")]}, codes.NO_TARGET_DOCUMENT, {}),
        (
            {"references": [(query, name) for query in "abc" for name in DOCUMENTS], "default": 0.0},
            codes.NO_NONTARGET_DOCUMENT,
            {},
        ),
    ],
)
def test_what_the_program_dies_of(change: dict[str, Any], code: Any, values: dict[str, Any]) -> None:
    with raises(code, **values) as caught:
        scored(**change)
    assert caught.value.remedy


def test_no_prior() -> None:
    with raises(codes.INVALID_PRIOR):
        scored(prior=0.0)


def test_lists_read_back(tmp_path: Path) -> None:
    durations = {"d1": 10.0, "d2": 2.5, "d3": 4.0}
    listed = scores(TRIALS).cast(SCORES)
    write_quesst_list(listed, ["a", "b", "c", "d"], durations, tmp_path / "stdlist.xml", system="s")
    assert read_quesst_list(str(tmp_path / "stdlist.xml")).equals(listed)


def test_targets_are_the_fields_of_an_rttm(tmp_path: Path) -> None:
    words = [("d1", "NO_KEYWORD"), ("d1", "a"), ("d2", "a"), ("d2", "b")]
    lines = "".join(f"LEXEME {document} 1 0 10 {query} lex SELF <NA>\n" for document, query in words)
    (tmp_path / "ref.rttm").write_text(lines)
    found = read_quesst_references(str(tmp_path / "ref.rttm"))
    assert found.equals(targets([(query, document) for document, query in words]))


def test_documents_lose_folders_and_the_last_extension(tmp_path: Path) -> None:
    def documents(*names: str) -> list[str]:
        rows = [
            {"file": name, "channel": 1, "start": 0.0, "duration": 1.0, "source_type": "cts", "language": "x"}
            for name in names
        ]
        write_ecf(pa.Table.from_pylist(rows, EXCERPTS), tmp_path / "ecf.xml")
        return read_quesst_documents(str(tmp_path / "ecf.xml"))

    assert documents("Audio/b.x.wav", "a", "c.sph") == ["b.x", "a", "c"]
    with raises(io_codes.DUPLICATE_EXCERPT, first="one/a.wav", second="two/a.sph", document="a"):
        documents("one/a.wav", "b", "two/a.sph")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("LEXEME d 1 0 10 a lex SELF", r"\[quesst-field-count\]"),
        ("LEXEME d 1 0 10 a lex SELF <NA> more", r"\[quesst-field-count\]"),
        ("LEXEME  d 1 0 10 a lex SELF <NA>", r"\[quesst-field-count\]"),
        ("LEXEME\td\t1\t0\t10\ta\tlex\tSELF\t<NA>", r"\[quesst-field-count\]"),
        ("LEXEME d 1 0 10 a lex SELF ", r"\[quesst-field-count\]"),
    ],
)
def test_lines_of_another_form(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "ref.rttm"
    path.write_text(f"LEXEME d 1 0 10 a lex SELF <NA>\n\n{line}\n")
    with pytest.raises(DataError, match=message) as caught:
        read_quesst_references(str(path))
    assert caught.value.where == f"{path}, line 3"


def test_documents_that_cannot_be_written(tmp_path: Path) -> None:
    with raises(io_codes.UNLISTED_DOCUMENT, document="d3"):
        write_quesst_list(scores(TRIALS), ["a"], {"d1": 1.0, "d2": 1.0}, tmp_path / "list.xml")
