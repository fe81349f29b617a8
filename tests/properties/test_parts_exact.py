"""Parts of queries: cuts, joins and scores are the oracle's, however the work is cut; what they do not work with is refused."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdist.config import config_from_dict
from swsdist.config.search import Search
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.methods.dtw.search import Matches, halves_joined
from swsdist.methods.method import create
from swsdist.methods.query.example import FIRST, JOINED, LAST, PARTS, UNCUT, Example, in_parts
from tests.oracles import parts as oracle
from tests.support.coded import raises

DOCUMENTS = 3


def example(query_id: str, frames: int, saturated: int = 0) -> Example:
    return Example(query_id, 2, np.arange(frames, dtype=np.float32)[:, None], saturated)


def test_cuts() -> None:
    parts = in_parts([example("a", 11, 3), example("b", 4)], 5, 0)
    whole = list(range(11))
    assert [one.frames[:, 0].tolist() for one in parts.searched] == [
        *(whole, whole[:5], whole[5:], whole[:8], whole[3:]),
        list(range(4)),
    ]
    assert parts.target.tolist() == [0, 1, 1, 2, 3, 4]
    numbers = [2 * PARTS + part for part in (UNCUT, JOINED, FIRST, LAST, UNCUT)]
    assert [(one.query_id, one.example, len(one.frames)) for one in parts.results] == list(
        zip("aaaab", numbers, (11, 11, 8, 8, 4), strict=True)
    )
    assert [one.saturated for one in parts.results] == [3, 0, 0, 0, 0]
    assert len(in_parts([example("c", 1)], 0, 0).searched) == 1


@st.composite
def found(draw: st.DrawFn) -> dict[tuple[int, int], list[oracle.Match]]:
    """Matches by searched part and document, no two of which end at the same frame; many cost the same."""
    key = st.tuples(st.integers(0, 9), st.integers(0, DOCUMENTS - 1), st.integers(0, 40))
    result: dict[tuple[int, int], list[oracle.Match]] = {}
    for part, document, last in sorted(draw(st.sets(key, max_size=80))):
        first = max(0, last - draw(st.integers(0, 12)))
        result.setdefault((part, document), []).append((first, last, draw(st.sampled_from([0, 1, 2, 5, 2**39]))))
    return result


@given(matches=found(), gap=st.integers(0, 20), most=st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_joins_are_the_oracles(matches: dict[Any, list[oracle.Match]], gap: int, most: list[int]) -> None:
    parts = in_parts([example("a", 10), example("b", 20)], 5, gap)
    assert len(parts.searched) == 10
    rows = [
        (part, document, last, last - first + 1, cost)
        for (part, document), several in matches.items()
        for first, last, cost in several
    ]
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    result = halves_joined(Matches(*columns, fill=1.0, saturated=7), parts, np.array(most))
    expected = []
    for target in range(len(parts.results)):
        searched = np.flatnonzero(parts.target == target).tolist()
        for document in range(DOCUMENTS):
            several = [matches.get((part, document), []) for part in searched]
            both = several[0] if len(several) == 1 else oracle.joined(several[0], several[1], gap)
            expected += [(target, document, *match) for match in oracle.kept(both, most[document])]
    first = result.end_frame - result.frames + 1
    assert list(zip(*map(np.ndarray.tolist, (*result[:2], first, *result[2::2][:2])), strict=True)) == expected
    assert result.saturated == 7


def test_what_parts_do_not_work_with() -> None:
    least = {"run": "r", "corpus": {"documents": "d.csv", "queries": "q.csv", "examples": "all"}}
    for search, setting, remedy in (
        ({"examples": "mean"}, "examples: mean", "examples: best, or template"),
        ({"first_pass": {"name": "coarse"}}, "first_pass: coarse", "first_pass: {name: none}"),
    ):
        with raises(codes.PARTS_CONFLICT, setting=setting, remedy=remedy):
            config_from_dict({**least, "search": {**search, "parts": True}}, ".")
    with raises(families.UNUSED_OPTION, key="parts_gap"):
        config_from_dict({**least, "search": {"parts_gap": 2}}, ".")
    for method in ("windows", "lattice", "lattice-edits"):
        with raises(methods_codes.UNUSED_SEARCH_KEY, method=method, key="parts"):
            create(Search(method=method, parts=True))
