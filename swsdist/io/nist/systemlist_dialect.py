"""The two system lists of the NIST programs: their names of elements and attributes, and the common result of both
readers.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa


class Dialect(NamedTuple):
    """A program's names of elements and attributes, and of a list's query."""

    root: str
    group: str
    query: str
    time: str
    oov: str
    item: str


STDLIST = Dialect("stdlist", "detected_termlist", "termid", "term_search_time", "oov_term_count", "term")
KWSLIST = Dialect("kwslist", "detected_kwlist", "kwid", "search_time", "oov_count", "kw")


class RawList(NamedTuple):
    """Result of both readers: the k-th list owns the rows from first[k] to first[k + 1].

    `columns`: file (dictionary), channel (dictionary of texts), tbeg, dur, score (float64), decision (dictionary).
    """

    dialect: Dialect
    attributes: dict[str, str]
    lists: list[dict[str, str]]
    first: list[int]
    columns: list[pa.ChunkedArray]
