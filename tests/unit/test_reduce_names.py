"""Ids as codes: of queries in all files, of documents in one; and the order that names have."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from swsdist.reduce.spans import Names

#: Not in the order of code points if one sorts UTF-16.
NAMES = st.lists(st.text("aZé￿𐐀\x00", max_size=3), min_size=1, max_size=30)


@given(names=NAMES, cut=st.integers(0, 30))
def test_a_document_has_one_code_in_all_row_groups_of_a_file(names: list[str], cut: int) -> None:
    """Of codes of strings each chunk has a dictionary of its own."""
    plain = pa.chunked_array([names[:cut], names[cut:]], pa.string())
    coded = pa.chunked_array([chunk.dictionary_encode() for chunk in plain.chunks])
    for column in (plain, coded):
        known = Names()
        known.documents(pa.chunked_array([["x", "y"]]))  # of another file
        codes = known.documents(column)
        assert [codes[i] == codes[0] for i in range(len(names))] == [name == names[0] for name in names]
        assert known.document_strings(codes).to_pylist() == names
        places = {name: place for place, name in enumerate(sorted(set(names)))}
        assert known.document_ranks(codes).tolist() == [places[name] for name in names]


@given(names=NAMES, others=NAMES)
def test_what_is_kept_has_new_codes_and_the_rest_is_forgotten(names: list[str], others: list[str]) -> None:
    known = Names()
    known.documents(pa.chunked_array([others]))
    codes = known.compact(known.documents(pa.chunked_array([names])))
    assert sorted(set(codes.tolist())) == list(range(len(set(names))))
    assert known.document_strings(codes).to_pylist() == names
    more = known.documents(pa.chunked_array([others]))
    assert not set(more.tolist()) & set(codes.tolist())
    assert known.document_strings(np.append(codes, more)).to_pylist() == [*names, *others]


def test_a_query_has_one_code_in_all_files() -> None:
    known = Names()
    first = known.queries(pa.chunked_array([["b", "a"], ["b"]]))
    second = known.queries(pa.chunked_array([pa.array(["c", "a"]).dictionary_encode()]))
    assert (first.tolist(), second.tolist(), known.query_ids) == ([0, 1, 0], [2, 1], ["b", "a", "c"])
    assert known.query_ranks(np.array([0, 1, 2, 0])).tolist() == [1, 0, 2, 1]
    assert known.query_strings(np.array([2, 0])).to_pylist() == ["c", "b"]
    assert known.queries(pa.chunked_array([], pa.string())).tolist() == []
    assert known.documents(pa.chunked_array([], pa.string())).tolist() == []
