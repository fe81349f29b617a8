"""The method lattice-edits: a query's lattice against those of documents, with edits.

Every path of the query's lattice is aligned with every path of the documents'. The score of a match is -(least cost) /
(labels of the query's path). A cost of 1 is a factor of 1/e of the probability of both paths, and an edit costs `edit`.
A match begins and ends with a label of the document that is aligned with one of the query's, so it includes no silence
at the edges of either.

Source: the system P1L-STD of ELiRF (Albayzin 2012), see docs/sources.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pydantic import NonNegativeFloat, PositiveFloat

from swsdist.config.search import Search
from swsdist.config.section import IsPath
from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.core.types import CANDIDATES
from swsdist.io.compressed import lines
from swsdist.io.fields import number, split
from swsdist.lattices.packed import TICK, Packed
from swsdist.methods.lattice.places import by_buckets, demand_unset, packed_of, shard_units, span_columns
from swsdist.methods.method import Result, Unit
from swsdist.registry.entries import Options, checked
from swsdist.registry.registries import METHODS
from swsdist.store.lattice_shards import Lattices, postings_of, read_lattices
from swsdist.store.reading import Store


class EditsOptions(Options):
    """Options of the alignment.

    Attributes:
        edit: cost of a substitution, insertion or deletion of a label.
        confusions: file of cheaper substitutions, lines `QUERY-LABEL DOCUMENT-LABEL COST`.
        apart: least time between the ends of two matches of a document, s.
        longest: duration of the longest match in documents of more than some minutes, s.
    """

    edit: NonNegativeFloat = 4.0
    confusions: IsPath | None = None
    apart: PositiveFloat = 0.1
    longest: PositiveFloat = 10.0


class QueryLattice(NamedTuple):
    """An example, ready to be aligned.

    Attributes:
        query_id, example: of the query.
        texts: all labels.
        first: int64 (states + 1,), first arc of each state.
        target: int64 (arcs,), target state.
        label: int64 (arcs,), index in `texts`.
        cost: int64 (arcs,), in units of `kernels.lattice_edits`.
        final: int64 (states,), 0 where a path may end, else `FAR`.
    """

    query_id: str
    example: int
    texts: tuple[str, ...]
    first: Ints
    target: Ints
    label: Ints
    cost: Ints
    final: Ints


class LatticeEdits:
    """The method of a config's section `search`.

    Raises:
        ConfigError: an option is invalid, or a key is set that this method does not use.
    """

    def __init__(self, settings: Search) -> None:
        where = "search.method_options"
        self._options = EditsOptions.model_validate(checked(METHODS, "lattice-edits", settings.method_options, where))
        demand_unset(settings, besides=("candidates",))
        self._keep = settings.candidates
        self._confusions = {} if self._options.confusions is None else _read_confusions(self._options.confusions)

    def matters(self) -> Any:
        """The options, and the confusions themselves."""
        confusions = sorted((*pair, cost) for pair, cost in self._confusions.items())
        return [
            self._options.model_dump(mode="json", exclude={"confusions"}),
            confusions,
            self._keep.model_dump(mode="json"),
        ]

    def plan(self, store: Store) -> Iterator[Unit]:
        """One unit per shard.

        Raises:
            UserError: there are confusions, and none with a label of the documents.
        """
        labels = {document: None for _, document in self._confusions}
        shards = store.manifest.shards
        if labels and not any(postings_of(store.folder, shard.files, labels).numbers for shard in shards):
            raise families.MISMATCH(
                "no document has a label by which a line substitutes another; the first is {label}",
                "write the labels of the documents, in their case",
                where=self._options.confusions,
                label=next(iter(labels)),
            )
        return shard_units(store)

    def weight(self, queries: int, examples: int, frames: int) -> int:
        """Number of examples."""
        return examples

    def warm(self) -> None:
        """Load the compiled kernels."""
        from swsdist.kernels import lattice_edits  # noqa: F401

    def prepare(self, queries: pa.Table, store: Store) -> list[QueryLattice]:
        """Rows of QUERY_LATTICES, with costs in units."""
        return [_prepared(row["query_id"], row["example"], packed_of(row)) for row in queries.to_pylist()]

    def search(self, queries: list[QueryLattice], store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """The best matches in some shards."""
        tables, cells = [CANDIDATES.empty_table()], 0
        for shard in shards:
            files = store.manifest.shard(shard).files
            numbers, live = postings_of(store.folder, files).numbers, store.live(shard)
            for _, lattices in read_lattices(store.folder, files):
                keys = zip(lattices.doc_ids, lattices.channels, strict=True)
                most = [
                    self._keep.count(ticks * TICK) if key in live else 0
                    for key, ticks in zip(keys, lattices.ticks, strict=True)
                ]
                table, visited = self._matches(queries, lattices, numbers, np.array(most, np.int64))
                tables.append(table)
                cells += visited
        table = pa.concat_tables(tables)
        return Result(by_buckets(table, buckets), table.num_rows, cells)

    def rescore(self, queries: list[QueryLattice], store: Store, spans: pa.Table) -> pa.Table:
        """The best match inside each span: of the document's lattice from its first tick to its last."""
        places = {(span["doc_id"], span["channel"]) for span in spans.to_pylist()}
        lattice_of: dict[tuple[str, int], tuple[Lattices, int, dict[str, int]]] = {}
        for shard in store.manifest.shards:
            if places & store.live(shard.name):
                numbers = postings_of(store.folder, shard.files).numbers
                for _, lattices in read_lattices(store.folder, shard.files):
                    for k, key in enumerate(zip(lattices.doc_ids, lattices.channels, strict=True)):
                        if key in places:
                            lattice_of[key] = lattices, k, numbers
        result = []
        for span in spans.to_pylist():
            lattices, k, numbers = lattice_of[span["doc_id"], span["channel"]]
            part = lattices.within(k, span["first"], span["last"] + 1)
            some = [query for query in queries if query.query_id == span["query_id"]]
            table, _ = self._matches(some, part, numbers, np.ones(1, np.int64))
            result += sorted(table.to_pylist(), key=lambda row: (row["cost"] / row["scale"], row["example"]))[:1]
        return pa.Table.from_pylist(result, CANDIDATES)

    def _matches(
        self, queries: list[QueryLattice], lattices: Lattices, numbers: dict[str, int], most: Ints
    ) -> tuple[pa.Table, int]:
        from swsdist.kernels.lattice_edits import FAR, PIECE, UNIT, search  # loads numba, which planning avoids

        costs, begin = _units(lattices.chances), _units(lattices.visits)
        target = np.repeat(np.arange(len(lattices.times)), np.diff(lattices.first)) + lattices.steps
        count = max(numbers.values(), default=0) + 1
        of_documents = (
            lattices.documents,
            lattices.first,
            target,
            lattices.labels.astype(np.int64),
            np.minimum(costs, FAR >> 40),
            begin,
            lattices.times.astype(np.int64),
            np.array([count], np.int64),
        )
        parts, cells = [], 0
        edit = round(self._options.edit * UNIT)
        for query in queries:
            # Labels that no document holds have numbers of their own, above the shard's.
            number = {text: numbers.get(text, count + k) for k, text in enumerate(query.texts)}
            label = np.array([0, *(number[text] for text in query.texts[1:])], np.int64)
            cheaper = self._cheaper(number, numbers, edit)
            order = np.lexsort((label[query.label], np.repeat(np.arange(len(query.first) - 1), np.diff(query.first))))
            labels = label[query.label][order]
            rows, visited = search(
                *(query.first, query.target[order], labels, query.cost[order], query.final),
                *of_documents,
                edit,
                cheaper,
                round(self._options.apart / TICK),
                most,
                round(self._options.longest / TICK),
                PIECE,
            )
            cells += visited
            parts.append(span_columns(query.query_id, query.example, lattices, rows, UNIT))
        return pa.concat_tables([CANDIDATES.empty_table(), *parts]), cells

    def _cheaper(self, number: dict[str, int], numbers: dict[str, int], edit: int) -> Ints:
        """Substitutions below the cost of an edit: numbers of both labels, and the cost in units."""
        from swsdist.kernels.lattice_edits import UNIT

        rows = {(number[text], numbers[text]): 0 for text in number if text in numbers}
        for (query, document), cost in self._confusions.items():
            if query in number and document in numbers and round(cost * UNIT) < edit:
                rows.setdefault((number[query], numbers[document]), round(cost * UNIT))
        return np.array([(*pair, cost) for pair, cost in sorted(rows.items())], np.int64).reshape(-1, 3)


def _prepared(query_id: str, example: int, packed: Packed) -> QueryLattice:
    """Costs of arcs in units; a path ends where the lattice does."""
    from swsdist.kernels.lattice_edits import FAR

    states = len(packed.times)
    first = np.concatenate(([0], np.cumsum(packed.arcs))).astype(np.int64)
    source = np.repeat(np.arange(states), packed.arcs)
    ends = (packed.arcs == 0) & (packed.times == packed.times.max(initial=0))
    final = np.where(ends, 0, FAR)
    return QueryLattice(
        query_id,
        example,
        packed.texts,
        first,
        source + packed.steps,
        packed.labels.astype(np.int64),
        np.minimum(_units(packed.chances), FAR >> 40),
        final.astype(np.int64),
    )


def _units(chances: Floats) -> Ints:
    """-ln, in units of costs; FAR of 0."""
    from swsdist.kernels.lattice_edits import FAR, UNIT

    result = np.full(len(chances), FAR)
    some = chances > 0
    result[some] = np.rint(-np.log(chances[some]) * UNIT).astype(np.int64)
    return result


def _read_confusions(path: str) -> dict[tuple[str, str], float]:
    """Costs of substitutions by label of the query and label of the document.

    Raises:
        UserError: there is no such file.
        DataError: a line has another form, a negative cost, or the labels of another line; or there is none.
    """
    result: dict[tuple[str, str], float] = {}
    for line, text in lines(path, {}):
        fields, where = split(text), f"{path}:{line}"
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 3:
            raise families.MALFORMED_LINE(
                "the line is not QUERY-LABEL DOCUMENT-LABEL COST: {text}",
                "give these three",
                where=where,
                text=text.strip(),
            )
        cost = number(fields[2], "cost", where)
        if cost < 0:
            raise families.INVALID_VALUE.of(DataError)(
                "the cost of a substitution is {cost:g}", "give a cost of 0 or more", where=where, cost=cost
            )
        if (fields[0], fields[1]) in result:
            raise families.DUPLICATE_NAME(
                "the substitution of {query} by {document} has a cost in an earlier line",
                "keep one of the lines",
                where=where,
                query=fields[0],
                document=fields[1],
            )
        result[fields[0], fields[1]] = cost
    if not result:
        raise families.EMPTY_INPUT.of(DataError)(
            "the file has no substitution",
            "write lines QUERY-LABEL DOCUMENT-LABEL COST, or leave out search.method_options.confusions",
            where=path,
        )
    return result
