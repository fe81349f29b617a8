"""Queries and documents of a scored system have properties, known or from a user's tables, for breakdowns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.posterior import PosteriorSums
from swsdist.core.errors import TableError, UserError
from swsdist.core.text import suggestion
from swsdist.core.types import CORPUS, QUERIES
from swsdist.io.tables import names_in, read_table
from swsdist.score.compare.breakdown import reference_durations, word_counts
from swsdist.score.compare.paired import decided_at
from swsdist.score.compare.results import About, DetLine
from swsdist.score.measures.twv import PER_TERM, per_term

#: Properties of queries that need no table: Ntrue, words of the term, mean s of its references, sum of its scores.
MADE = ("ntrue", "words", "duration", "posterior_sum")


@dataclass(frozen=True, eq=False)
class Scored:
    """A system with the values of its queries.

    Attributes:
        name: what it is called.
        decided: table PER_TERM at the decisions made; None where a detection of a query with references is not decided.
        maximal: table PER_TERM at the threshold of MTWV; None where there is no aligned list.
        threshold: that threshold; None rejects everything.
        parts: reads the aligned list, in parts that hold their queries whole; None where there is none.
        trials, beta, rate: N, weight of false alarms, trials per second of audio; None where not known.
        documents: `doc_id`, `seconds` as trials are counted; None where not known.
        terms: `query_id` and what else is known of queries; None if nothing is.
        reject_all: whether rejecting everything is a point of its curve (not KWSEval's).
        about: what is known of it.
        line: reads its DET curve; None where there is none.
        measures: makes its values by key, as far as they are known.
    """

    name: str
    decided: pa.Table | None
    maximal: pa.Table | None = None
    threshold: float | None = None
    parts: Callable[[], Iterable[pa.Table]] | None = None
    trials: int | None = None
    beta: float | None = None
    rate: float | None = None
    documents: pa.Table | None = None
    terms: pa.Table | None = None
    reject_all: bool = True
    about: About | None = None
    line: Callable[[], DetLine | None] | None = None
    measures: Callable[[], Mapping[str, float | None]] = dict

    def aligned(self, what: str) -> list[pa.Table]:
        """The parts of the aligned list.

        Raises:
            UserError: there is none.
        """
        if self.parts is None:
            raise UserError(
                f"a per-term table does not tell what {what} needs",
                where=self.name,
                remedy="name a run folder, or a system list with --ecf, --rttm and --terms",
            )
        return list(self.parts())


def query_property(
    column: str, terms: pa.Table, systems: Sequence[Scored], queries: str | None
) -> pa.Array | pa.ChunkedArray | None:
    """A property of each query, null where it is not known; None if there is no such column.

    It comes from the user's table, or the attributes of the term list, or is made (`MADE`): durations and posterior sums
    from the aligned list of the first system.

    Args:
        column: its name.
        terms: per-term table, whose queries are asked for.
        systems: in order.
        queries: the user's table.

    Raises:
        UserError: what it is made from is not there, or there is no such table.
        TableError: the table is broken.
    """
    if queries is not None and column in names_in(queries):
        return _joined(terms, _column(queries, "query_id", column), column)
    listed = next((one.terms for one in systems if one.terms is not None), None)
    if listed is not None and column in listed.column_names and column != "query_id":
        return _joined(terms, listed, column)
    if column == "ntrue":
        return terms["ntrue"]
    if column == "words":
        text = listed if listed is not None else None
        if text is None and queries is not None and "term" in names_in(queries):
            text = _column(queries, "query_id", "term")
        if text is None:
            raise UserError(
                "words are not known", remedy="give the term list, or a table of queries with a column term"
            )
        return _joined(terms, word_counts(text.filter(pc.is_valid(text["term"]))), "words")
    if column == "duration":
        true = pa.concat_tables(systems[0].aligned("the duration of terms"))
        true = true.filter(pc.is_valid(true["ref_start"]))
        spans = pa.table({"query_id": true["query_id"], "start": true["ref_start"], "end": true["ref_end"]})
        return _joined(terms, reference_durations(spans), "duration")
    if column == "posterior_sum":
        sums = PosteriorSums()
        for part in systems[0].aligned("a posterior sum"):
            sums = sums + PosteriorSums.of(part)
        return pa.array(sums.values(terms["query_id"].to_pylist()))
    return None


def demand_property(column: str, documents: str | None, queries: str | None) -> None:
    """A column that is no property of queries is one of the table of documents.

    Raises:
        UserError: no table has it.
    """
    header = names_in(documents) if documents is not None else []
    if column not in header:
        listed = [] if queries is None else names_in(queries)
        raise UserError(
            f"there is no property {column!r} of queries or documents{suggestion(column, [*MADE, *listed, *header])}",
            remedy=f"name one of {', '.join(MADE)}, an attribute of the term list, or a column of a table: "
            f"{_told('--queries', queries)}; {_told('--documents', documents)}",
        )


def searched_documents(system: Scored, documents: str | None, column: str | None = None) -> pa.Table:
    """The documents that a system searched: `doc_id`, `seconds`, and a property, null where it is not known.

    Seconds are those of the user's table if it has them, else what is known of the system.

    Raises:
        UserError: seconds are not known.
        TableError: the table is broken.
    """
    if documents is not None and "seconds" in names_in(documents):
        schema = [pa.field("doc_id", pa.string(), False), pa.field("seconds", pa.float64(), False)]
        table = read_table(documents, pa.schema(schema), key=("doc_id",))
        if (table["seconds"].to_numpy() < 0).any():
            raise TableError("seconds are negative", where=documents, remedy="give how much of each was searched")
    elif system.documents is not None:
        table = system.documents
    else:
        raise UserError(
            "it is not known how much of each document was searched",
            where=system.name,
            remedy="give an ECF, or --documents with the columns doc_id and seconds",
        )
    if column is None:
        return table
    assert documents is not None
    return table.append_column(column, _joined(table, _column(documents, "doc_id", column), column, "doc_id"))


def _told(option: str, path: str | None) -> str:
    """What columns a table has, if it was given."""
    return f"{option} was not given" if path is None else f"that of {option} has {', '.join(names_in(path))}"


def _column(path: str, key: str, column: str) -> pa.Table:
    """A column by key, each key once: rows of one key (examples of a query) agree, or hold numbers, whose mean counts.

    Raises:
        TableError: they hold texts that differ.
    """
    # Columns that our own tables have are of their types, any other is text.
    kind = next((known.field(column).type for known in (QUERIES, CORPUS) if column in known.names), pa.string())
    fields = {key: pa.field(key, pa.string(), False), column: pa.field(column, kind)}
    table = read_table(path, pa.schema(fields.values()))
    values: dict[str, list[str]] = {}
    for name, value in zip(table[key].to_pylist(), table[column].cast(pa.string()).to_pylist(), strict=True):
        mine = values.setdefault(name, [])
        if value is not None:
            mine.append(value)
    found = [_one(mine, f"{key} {name!r} has several values of {column}", path) for name, mine in values.items()]
    return pa.table({key: list(values), column: pa.array(found, pa.string())})


def _one(values: list[str], what: str, path: str) -> str | None:
    if len(set(values)) <= 1:
        return values[0] if values else None
    try:
        return repr(math.fsum(map(float, values)) / len(values))
    except ValueError:
        raise TableError(f"{what}: {values[0]!r}, ...", where=path, remedy="keep one, or give numbers") from None


def _joined(rows: pa.Table, table: pa.Table, column: str, key: str = "query_id") -> pa.Array:
    place = pc.index_in(rows[key].cast(pa.string()), value_set=table[key].cast(pa.string()).combine_chunks())
    return table[column].combine_chunks().take(place.combine_chunks())


def decided(table: pa.Table) -> pa.Table | None:
    """The table, or None where a detection of a query with references was not decided."""
    rated = table.filter(pc.greater(table["ntrue"], 0))
    return None if rated["twv"].null_count else table


def threshold_of(threshold: float | None, pmiss: float, pfa: float) -> float | None:
    """None where rejecting everything is best, which is labelled with the highest score."""
    return None if pmiss == 1.0 and pfa == 0.0 else threshold


def valued_at(parts: Iterable[pa.Table], threshold: float | None, trials: int, beta: float) -> pa.Table:
    """Per-term values with all detections decided by a threshold."""
    tables = (per_term(decided_at(part, threshold), trials=trials, beta=beta) for part in parts)
    return pa.concat_tables([PER_TERM.empty_table(), *tables])
