"""Scored systems, and properties of their queries and documents for breakdowns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.thresholding import PosteriorSums
from swsdist.core.codes import score as codes
from swsdist.core.text import suggestion
from swsdist.core.types import CORPUS, QUERIES
from swsdist.io.tables import names_in, read_table
from swsdist.score.compare.breakdown import reference_durations, word_counts
from swsdist.score.compare.paired import decided_at
from swsdist.score.compare.results import DetLine, SystemInfo
from swsdist.score.measures.det import Det
from swsdist.score.measures.protocol import Protocol
from swsdist.score.measures.twv import PER_TERM, per_term
from swsdist.score.registered.term_weighted import point_in

#: Properties of queries without a table: Ntrue, words of the term, mean length of its references (s), sum of its scores.
COMPUTED = ("ntrue", "words", "duration", "posterior_sum")


@dataclass(frozen=True, eq=False)
class ScoredSystem:
    """A system with the values of its queries.

    Attributes:
        name: of the system.
        decided: table PER_TERM at the decisions made; None where a detection of a query with references is not decided.
        maximal: table PER_TERM at the threshold of MTWV; None where there is no aligned list.
        threshold: that threshold; None rejects everything.
        parts: reads the aligned list, in parts with all rows of their queries; None if there is none.
        trials, beta, rate: N, weight of false alarms, trials per second of audio; None if unknown.
        documents: `doc_id`, `seconds` as trials are counted; None if unknown.
        terms: `query_id` and further attributes; None if there are none.
        reject_all: whether rejecting everything is a point of its curve (not KWSEval's).
        about: provenance of the system.
        line: reads its DET curve; None where there is none.
        measures: computes known values by key.
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
    about: SystemInfo | None = None
    line: Callable[[], DetLine | None] | None = None
    measures: Callable[[], Mapping[str, float | None]] = dict

    @classmethod
    def of(
        cls,
        about: SystemInfo,
        rules: Protocol,
        values: Mapping[str, float | None],
        table: pa.Table,
        parts: Callable[[], Iterable[pa.Table]],
        det: Callable[[], Det | None],
        *,
        documents: pa.Table | None,
        terms: pa.Table | None = None,
        measures: Callable[[], Mapping[str, float | None]] | None = None,
    ) -> ScoredSystem:
        """A scored list, of a run or another program.

        Args:
            about: its provenance, with the operating point.
            rules: its protocol.
            values: of the term-weighted measures, by key.
            table: PER_TERM at the decisions.
            parts: reads the aligned list.
            det: reads its DET curve.
            documents, terms, measures: see the attributes; None: the measures are the values.
        """
        assert about.point is not None
        trials, beta, best = about.point.trials, about.point.beta, point_in(values, "mtwv")
        cut = None if best is None else finite_threshold(best.threshold, best.pmiss, best.pfa)

        def line() -> DetLine | None:
            if (points := det()) is None:
                return None
            return DetLine(about.name, points.threshold, points.pmiss, points.pfa, point_in(values, "atwv"), best)

        return cls(
            about.name,
            if_decided(table.select(PER_TERM.names)),
            None if best is None else values_at(parts(), cut, trials, beta),
            cut,
            parts,
            trials,
            beta,
            rules.rules.rate(rules.trials_per_second) if rules.trials == "time" else None,
            documents if rules.trials == "time" else None,
            terms,
            rules.rules.rejects_all,
            about,
            line,
            measures or (lambda: values),
        )

    def aligned(self, what: str) -> list[pa.Table]:
        """The parts of the aligned list.

        Raises:
            UserError: there is none.
        """
        if self.parts is None:
            raise codes.PER_TERM_TABLE_ONLY(where=self.name, purpose=what)
        return list(self.parts())


def query_property(
    column: str, terms: pa.Table, systems: Sequence[ScoredSystem], queries: str | None
) -> pa.Array | pa.ChunkedArray | None:
    """A property of each query, null if unknown; None if there is no such column.

    It comes from the user's table or the attributes of the term list, or is computed (`COMPUTED`); durations and posterior
    sums use the aligned list of the first system.

    Args:
        column: its name.
        terms: per-term table of the queries.
        systems: in order.
        queries: the user's table.

    Raises:
        UserError: the inputs of a computed property are missing, or there is no such table.
        TableError: the table is broken.
    """
    if queries is not None and column in names_in(queries):
        return _joined(terms, _column(queries, "query_id", column), column)
    listed = next((system.terms for system in systems if system.terms is not None), None)
    if listed is not None and column in listed.column_names and column != "query_id":
        return _joined(terms, listed, column)
    if column == "ntrue":
        return terms["ntrue"]
    if column == "words":
        text = listed if listed is not None else None
        if text is None and queries is not None and "term" in names_in(queries):
            text = _column(queries, "query_id", "term")
        if text is None:
            raise codes.UNKNOWN_WORDS()
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


def check_document_property(column: str, documents: str | None, queries: str | None) -> None:
    """Check that the table of documents has a column.

    Raises:
        UserError: no table has it.
    """
    header = names_in(documents) if documents is not None else []
    if column not in header:
        listed = [] if queries is None else names_in(queries)
        raise codes.UNKNOWN_PROPERTY(
            column=column,
            meant=suggestion(column, [*COMPUTED, *listed, *header]),
            properties=", ".join(COMPUTED),
            tables=f"{_columns_text('--queries', queries)}; {_columns_text('--documents', documents)}",
        )


def searched_documents(system: ScoredSystem, documents: str | None, column: str | None = None) -> pa.Table:
    """The documents that a system searched: `doc_id`, `seconds`, and a property, null if unknown.

    The user's table overrides the seconds of the system.

    Raises:
        UserError: seconds are not known.
        TableError: the table is broken.
    """
    if documents is not None and "seconds" in names_in(documents):
        schema = [pa.field("doc_id", pa.string(), False), pa.field("seconds", pa.float64(), False)]
        table = read_table(documents, pa.schema(schema), key=("doc_id",))
        if (table["seconds"].to_numpy() < 0).any():
            raise codes.NEGATIVE_SECONDS(where=documents)
    elif system.documents is not None:
        table = system.documents
    else:
        raise codes.UNKNOWN_SEARCHED_SECONDS(where=system.name)
    if column is None:
        return table
    assert documents is not None
    return table.append_column(column, _joined(table, _column(documents, "doc_id", column), column, "doc_id"))


def _columns_text(option: str, path: str | None) -> str:
    """The columns of an option's table."""
    return f"{option} was not given" if path is None else f"that of {option} has {', '.join(names_in(path))}"


def _column(path: str, key: str, column: str) -> pa.Table:
    """A column with one row per key. Rows of one key (examples of a query) must agree, or are averaged if numeric.

    Raises:
        TableError: they hold texts that differ.
    """
    # Columns of known tables have their types; all others are text.
    kind = next((schema.field(column).type for schema in (QUERIES, CORPUS) if column in schema.names), pa.string())
    fields = {key: pa.field(key, pa.string(), False), column: pa.field(column, kind)}
    table = read_table(path, pa.schema(fields.values()))
    values: dict[str, list[str]] = {}
    for name, value in zip(table[key].to_pylist(), table[column].cast(pa.string()).to_pylist(), strict=True):
        key_values = values.setdefault(name, [])
        if value is not None:
            key_values.append(value)
    merged = []
    for name, texts in values.items():
        try:
            merged.append(_merged(texts))
        except ValueError:
            raise codes.CONFLICTING_VALUES(where=path, key=key, name=name, column=column, value=texts[0]) from None
    return pa.table({key: list(values), column: pa.array(merged, pa.string())})


def _merged(values: list[str]) -> str | None:
    """The common value, else the mean of numbers.

    Raises:
        ValueError: the values differ and are not numbers.
    """
    if len(set(values)) <= 1:
        return values[0] if values else None
    return repr(math.fsum(map(float, values)) / len(values))


def _joined(rows: pa.Table, table: pa.Table, column: str, key: str = "query_id") -> pa.Array:
    place = pc.index_in(rows[key].cast(pa.string()), value_set=table[key].cast(pa.string()).combine_chunks())
    return table[column].combine_chunks().take(place.combine_chunks())


def if_decided(table: pa.Table) -> pa.Table | None:
    """The table, or None if a detection of a query with references is not decided."""
    rated = table.filter(pc.greater(table["ntrue"], 0))
    return None if rated["twv"].null_count else table


def finite_threshold(threshold: float | None, pmiss: float, pfa: float) -> float | None:
    """The threshold; None if rejecting everything is best, which the curve labels with the highest score."""
    return None if pmiss == 1.0 and pfa == 0.0 else threshold


def values_at(parts: Iterable[pa.Table], threshold: float | None, trials: int, beta: float) -> pa.Table:
    """Per-term values, with all detections decided by a threshold."""
    tables = (per_term(decided_at(part, threshold), trials=trials, beta=beta) for part in parts)
    return pa.concat_tables([PER_TERM.empty_table(), *tables])
