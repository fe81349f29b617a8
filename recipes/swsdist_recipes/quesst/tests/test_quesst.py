"""QUESST: a small evaluation by hand, and its lists."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdist import metrics
from swsdist.core.codes import families
from swsdist.core.types import EXCERPTS
from swsdist.core.types import REFERENCES as REFERENCE_COLUMNS
from swsdist.evaluation.evaluate import Evaluation, evaluate, values
from swsdist.evaluation.reading import make_task
from swsdist.evaluation.scoring_task import make_system, read_system
from swsdist.io.nist.ecf import write_ecf
from swsdist.io.nist.rttm import read_query_documents
from swsdist.score.events import measure_parts, merge_tables
from swsdist.score.measures.protocol import protocol
from swsdist_recipes.quesst import codes
from swsdist_recipes.quesst.database import SCORES, read_documents, write_list
from swsdist_recipes.quesst.measure import measured
from swsdist_recipes.quesst.program import Quesst
from tests.support.coded import raises

DOCUMENTS = ("d1", "d2", "d3")
#: a: target d1; b: targets d1, d2; c: none.
REFERENCES = [("a", "d1"), ("b", "d1"), ("b", "d2")]
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
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table([*columns, [1] * len(rows), *([[0.0] * len(rows)] * 2)], schema=REFERENCE_COLUMNS)


def evaluated(rows: list[tuple[Any, ...]] = TRIALS, **changed: Any) -> Evaluation:
    rules: dict[str, Any] = {"beta": 1.0, "queries": ["a", "b", "c"], "references": REFERENCES} | changed
    terms = {"query_id": (queries := rules.pop("queries")), "term": queries}
    references = targets(rules.pop("references"))
    task = make_task(references, total_seconds=9.0, protocol=protocol("quesst", **rules), terms=terms, documents=3)
    excerpts = [
        {"file": f"{name}.wav", "channel": 1, "start": 1.0, "duration": 3.0, "source_type": "cts", "language": "x"}
        for name in DOCUMENTS
    ]
    listed = scores(rows)
    zeros = pa.array([0.0] * len(rows), pa.float64())
    system = make_system(listed.append_column("start", zeros).append_column("end", zeros))
    return evaluate(replace(task, excerpts=pa.Table.from_pylist(excerpts, EXCERPTS)), system)


def scored(rows: list[tuple[Any, ...]] = TRIALS, **changed: Any) -> Quesst:
    result = evaluated(rows, **changed)
    found = measured(merge_tables([measure_parts(result.aligned, result.point)]), result.point)
    assert found is not None
    return found


def test_by_hand() -> None:
    found = scored()
    # beta 1. a: no miss, one of two non-targets accepted; b: one of two targets missed.
    assert found.pooled.act_twv == pytest.approx(1 - (0.5 + 0.5) / 2)
    assert found.curve.threshold.tolist() == [-math.inf, -2.0, -1.0, 0.5, 1.0, 2.0, 3.0]
    assert found.curve.pmiss.tolist() == [0, 0.25, 0.25, 0.25, 0.25, 0.75, 1]
    assert found.curve.pfa.tolist() == [1, 1, 0.75, 0.25, 0, 0, 0]
    assert (found.pooled.max_twv, found.pooled.threshold) == (0.75, 1.0)
    # Own thresholds: a is parted by any threshold between 1 and 2; b misses d2 or accepts d3.
    assert found.per_query.act_twv == pytest.approx((1 + 0.5) / 2)
    assert found.per_query.max_twv == pytest.approx(0.75)
    assert found.per_query.threshold == 0
    assert found.per_query.act_cnxe <= found.pooled.min_cnxe

    def bits(value: float) -> float:
        return math.log2(1 + math.exp(-value))

    true, false = (bits(2) + bits(3) + bits(-2)) / 3, (bits(-1) + bits(1) + bits(-0.5)) / 3
    assert found.pooled.act_cnxe == pytest.approx((true + false) / 2, rel=1e-14)
    # By score: target, then three non-targets, then two targets; four are pooled at rate 1/4, the last two cost nothing.
    assert found.pooled.min_cnxe == pytest.approx((math.log2(4) / 3 + 3 * math.log2(4 / 3) / 3) / 2, rel=1e-14)


def test_a_query_that_all_documents_are_targets_of_and_two_scores_of_a_trial() -> None:
    """The first is left out; QUESST's program counts it in all values but the actual TWV, which it makes undefined."""
    everywhere = [("a", "d1"), *((("b", name)) for name in DOCUMENTS)]
    found = scored(references=everywhere)
    assert found.pooled == scored([row for row in TRIALS if row[0] != "b"], references=[("a", "d1")]).pooled
    with raises(families.DUPLICATE_NAME, count=2):
        scored([*TRIALS, ("a", "d1", 0.0, False)])


def test_registered_values_are_those() -> None:
    """By `values` of a list, and by `metrics` without an order of documents and queries."""
    result, found = evaluated(), scored()
    by_list = values(result)
    listed = {**scores(TRIALS).to_pydict(), **dict.fromkeys(("start", "end"), [0.0] * len(TRIALS))}
    of_all: Any = {"protocol": protocol("quesst", beta=1.0), "queries": ["a", "b", "c"], "documents": 3}
    by_metrics = metrics.values(targets(REFERENCES), listed, 9.0, **of_all)
    for key, value in (
        ("quesst_atwv", found.pooled.act_twv),
        ("quesst_mtwv_threshold", found.pooled.threshold),
        ("quesst_per_query_cnxe", found.per_query.act_cnxe),
        ("atwv", found.pooled.act_twv),
    ):
        assert by_list[key] == by_metrics[key] == pytest.approx(value)
    assert "quesst_mtwv" not in metrics.values(targets(REFERENCES), listed, 9.0)


def test_the_order_of_terms_without_documents() -> None:
    """A query that stands last in the list, and misses two."""
    references = targets([("a", "d1"), ("b", "d1"), ("b", "d2")])
    found = {"query_id": ["a"], "doc_id": ["d2"], "start": [0.0], "end": [0.0], "score": [1.0], "decision": [True]}
    one, other = (
        metrics.values(references, found, 9.0, protocol=protocol("quesst", beta=1.0), queries=order, documents=3)
        for order in (["a", "b"], ["b", "a"])
    )
    assert one["quesst_atwv"] == other["quesst_atwv"] == -0.25
    assert one["quesst_cnxe"] == other["quesst_cnxe"]


def test_the_order_of_equal_scores_is_the_files_and_of_missing_trials_the_lists() -> None:
    rows = [("a", "d1", 1.0, True), ("a", "d2", 1.0, True), ("a", "d3", 1.0, False)]
    assert scored(rows, references=[("a", "d1")]).pooled.min_cnxe == pytest.approx(1)
    assert scored(rows[::-1], references=[("a", "d1")]).pooled.min_cnxe == 0
    # A non-target that stands first costs less: a misses d1, then d2.
    first, last = (scored(rows[2:], references=[("a", name)], default_score=0.0) for name in ("d1", "d2"))
    assert last.pooled.min_cnxe < first.pooled.min_cnxe


@pytest.mark.parametrize(("default", "second"), [(-4.0, -4.0), (None, -1.0)])
def test_missing_trials_get_the_default_or_the_least_score_and_no(default: float | None, second: float) -> None:
    found = scored([row for row in TRIALS if row[1] != "d2"], default_score=default)
    assert found.curve.threshold[1] == second
    assert found.pooled.act_twv == pytest.approx(1 - (0 + 0.5) / 2)


def test_undefined_values() -> None:
    undecided = values(evaluated([("a", "d1", 2.0, None), *TRIALS[1:]]))
    assert undecided["quesst_atwv"] is None
    assert undecided["quesst_mtwv"] == 0.75
    assert values(evaluated(references=[("c", "d1")], rows=[]))["quesst_mtwv"] is None


def test_lists_read_back(tmp_path: Path) -> None:
    listed = scores(TRIALS).cast(SCORES)
    write_list(listed, ["a", "b", "c", "d"], {"d1": 10.0, "d2": 2.5, "d3": 4.0}, tmp_path / "stdlist.xml")
    read = read_system(str(tmp_path / "stdlist.xml"), conventions="quesst").detections
    assert read.select(SCORES.names).cast(SCORES).equals(listed)
    with raises(codes.UNLISTED_DOCUMENT, document="d3"):
        write_list(scores(TRIALS), ["a"], {"d1": 1.0, "d2": 1.0}, tmp_path / "list.xml")


def test_targets_are_the_fields_of_an_rttm(tmp_path: Path) -> None:
    words = [("d1", "NO_KEYWORD"), ("d1", "a"), ("d2", "a"), ("d1", "a"), ("d2", "b")]
    lines = "".join(f"LEXEME {document} 1 0 10 {query} lex SELF <NA>\n" for document, query in words)
    (tmp_path / "ref.rttm").write_text(lines)
    found = read_query_documents(str(tmp_path / "ref.rttm"))
    assert found.equals(targets([(query, document) for document, query in dict.fromkeys(words)]))


def test_documents_lose_folders_and_the_last_extension(tmp_path: Path) -> None:
    def documents(*names: str) -> list[str]:
        rows = [
            {"file": name, "channel": 1, "start": 0.0, "duration": 1.0, "source_type": "cts", "language": "x"}
            for name in names
        ]
        write_ecf(pa.Table.from_pylist(rows, EXCERPTS), tmp_path / "ecf.xml")
        return read_documents(str(tmp_path / "ecf.xml"))

    assert documents("Audio/b.x.wav", "a", "c.sph") == ["b.x", "a", "c"]
    with raises(codes.DUPLICATE_EXCERPT, first="one/a.wav", second="two/a.sph", document="a"):
        documents("one/a.wav", "b", "two/a.sph")


def test_lines_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "ref.rttm"
    for line in (
        *("LEXEME d 1 0 10 a lex SELF", "LEXEME d 1 0 10 a lex SELF <NA> more", "LEXEME  d 1 0 10 a lex SELF <NA>"),
        *("LEXEME\td\t1\t0\t10\ta\tlex\tSELF\t<NA>", "LEXEME d 1 0 10 a lex SELF "),
    ):
        path.write_text(f"LEXEME d 1 0 10 a lex SELF <NA>\n\n{line}\n")
        with raises(families.MALFORMED_LINE, where=f"{path}, line 3"):
            read_query_documents(str(path))
