"""Text queries in a store of phones: an index stage, a stage of queries and a method; all else is the search chain's.

The store holds the phones of a CTM (`corpus.alignments.phones`) as postings, shard by shard, a tick of 1 ms. A word's
pronunciations are those that it has in the words' CTM, with their relative frequencies as probabilities. A place where one of
them stands is a candidate, its score the pronunciation's posterior; `reduce.merge: sum` adds those that overlap.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from swsdist.chains.check import assemble
from swsdist.config import Config
from swsdist.config.search import Search
from swsdist.core.errors import DataError
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES, DOCUMENTS
from swsdist.io.filesystem import identify
from swsdist.io.nist.ctm import read_ctm
from swsdist.methods.method import SPANS, Method, Result, Unit, by_bucket
from swsdist.pipeline.chain import Chain, Context, Inputs, Stage, Step, Table
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import MethodEntry
from swsdist.registry.registry import Entry
from swsdist.stages.buckets import Extracted, Indexed
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, NewTrack, Shard, commit
from swsdist.store.reading import Store

TICK = 0.001
ONE = 1 << 40

_AT = [("first", pa.int64()), ("last", pa.int64())]
POSTINGS = pa.schema([("doc_id", pa.string()), ("channel", pa.int32()), ("phone", pa.string()), *_AT])
WORDS = pa.schema([("query_id", pa.string()), ("phones", pa.list_(pa.string())), ("cost", pa.int64())])


def _postings(path: str, storage: Any) -> dict[str, list[dict[str, Any]]]:
    """Phones of each document, in order, with their ticks."""
    found = defaultdict(list)
    for row in read_ctm(path, storage).to_pylist():
        ends = {"first": round(row["start"] / TICK), "last": round((row["start"] + row["duration"]) / TICK) - 1}
        found[row["doc_id"]].append({"channel": row["channel"], "phone": row["word"], **ends})
    return found


class Indexing(NamedTuple):
    """The payload of a task of `Index`: a CTM, and rows of documents."""

    phones: str
    documents: list[dict[str, Any]]


class Looking(NamedTuple):
    """The payload of the task of `Queries`: terms by query, and CTMs of words and of phones."""

    terms: dict[str, str]
    words: str
    phones: str


class Index(Stage[Indexing]):
    """Documents to shards of postings; all of them again when the alignment or the corpus changes."""

    name = "proof-postings"
    version = 1
    unit = "s"
    phase = "index"
    tables = {"features": Table(POSTINGS, None, digested=False)}

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(SearchInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Indexing]]:
        """As many shards as the config says."""
        config, rows = inputs.config, inputs.chain_inputs(SearchInputs).corpus.documents.to_pylist()
        path, count = str(config.corpus.alignments.phones), min(config.index.shards or 1, len(rows))
        for k, mine in enumerate(rows[k::count] for k in range(count)):
            key_parts = identify(path, config.storage), [row["doc_id"] for row in mine]
            yield inputs.task(*key_parts, label=f"shard {k + 1}", work=len(mine), payload=Indexing(path, mine))

    def run(self, task: Task[Indexing], context: Context) -> TaskOutput:
        """Write the postings of some documents."""
        known, documents = _postings(task.payload.phones, context.storage), task.payload.documents
        rows = [{"doc_id": row["doc_id"], **item} for row in documents for item in known[row["doc_id"]]]
        part = context.publish(task, "features", [pa.Table.from_pylist(rows, POSTINGS)], POSTINGS)
        seconds = sum(row["duration"] for row in documents)
        return TaskOutput((part,), Indexed(len(documents), len(rows), seconds))

    def finish(self, inputs: Inputs) -> None:
        """Commit the store."""
        own, shards, live = inputs.chain_inputs(SearchInputs), [], []
        by_id = {row["doc_id"]: {**dict.fromkeys(DOCUMENTS.names), **row} for row in own.corpus.documents.to_pylist()}
        for receipt in inputs.outcome.receipts:
            (part,) = receipt.outputs
            table = parquet.read(own.store.folder, part.name)
            counts = Counter(table["doc_id"].to_pylist())
            shards.append(Shard(part.name, {"postings": File(*part[1:4])}, len(counts), table.num_rows))
            for doc_id, frames in counts.items():
                row = {"frames": frames, "rows": frames, "shard": part.name, "mean": [0.0], "variance": [0.0]}
                live.append(by_id[doc_id] | row | {"identity": "", "sha256": ""})
        recipe = {"name": self.name, "version": self.version}
        made = NewTrack("postings", recipe, 1, pa.Table.from_pylist(live, DOCUMENTS), columns=("phone",))
        own.store.manifest = commit(
            own.store.folder, made, TICK, shards, REJECTED_DOCUMENTS.empty_table(), kind="postings"
        )


class Queries(Stage[Looking]):
    """Terms to pronunciations: those of the word in the aligned words, with how often each stands there."""

    name = "proof-words"
    version = 1
    unit = "queries"
    phase = "search"
    tables = {"groups": Table(WORDS, order=("cost", "phones"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Looking]]:
        """One task."""
        own, given = inputs.chain_inputs(SearchInputs), inputs.config.corpus.alignments
        terms = {row["query_id"]: row["term"] for row in own.corpus.queries.to_pylist()}
        payload = Looking(terms, str(given.words), str(given.phones))
        files = [identify(path, inputs.config.storage) for path in (payload.words, payload.phones)]
        yield inputs.task(terms, files, label=f"{len(terms)} terms", work=len(terms), payload=payload)

    def run(self, task: Task[Looking], context: Context) -> TaskOutput:
        """Look each term's words up."""
        found: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        by_document = _postings(task.payload.phones, context.storage)
        for row in read_ctm(task.payload.words, context.storage).to_pylist():
            start, end = round(row["start"] / TICK), round((row["start"] + row["duration"]) / TICK)
            inside = [
                item["phone"] for item in by_document[row["doc_id"]] if start <= item["first"] and item["last"] < end
            ]
            found[row["word"]][tuple(inside)] += 1
        rows: list[dict[str, Any]] = []
        for query_id, term in sorted(task.payload.terms.items()):
            ways: dict[tuple[str, ...], float] = {(): 1.0}
            for word in term.split():
                total = sum(found[word].values())
                ways = {a + b: p * n / total for a, p in ways.items() for b, n in found[word].items()}
            rows += [{"query_id": query_id, "phones": way, "cost": -round(p * ONE)} for way, p in ways.items() if way]
        frames = sum(len(row["phones"]) for row in rows)
        told = Extracted(len(rows), sorted({row["query_id"] for row in rows}), frames, 0.0)
        return TaskOutput((context.publish(task, "groups", [pa.Table.from_pylist(rows, WORDS)], WORDS),), told)


class Pronunciations(Method):
    """The method: every place where a pronunciation stands, its posterior the score."""

    def __init__(self, search: Search) -> None:
        if search.method_options:
            raise DataError("it has no options", where="search.method_options")

    def matters(self) -> Any:
        """Nothing but the method itself."""
        return []

    def plan(self, store: Store) -> Iterator[Unit]:
        """A unit a shard."""
        for shard in store.manifest.shards:
            yield Unit((shard.name,), shard.files["postings"].sha256, shard.documents, shard.frames)

    def prepare(self, queries: pa.Table, store: Store) -> list[dict[str, Any]]:
        """Rows of WORDS."""
        return list(queries.to_pylist())

    def search(self, queries: list[dict[str, Any]], store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """All candidates in a shard."""
        found = [*self._found(queries, store, shards[0])]
        return Result(
            by_bucket(found, buckets), len(found), cells=len(queries) * store.manifest.shard(shards[0]).frames
        )

    def _found(self, queries: list[dict[str, Any]], store: Store, shard: str) -> Iterator[dict[str, Any]]:
        postings = parquet.read(store.folder, shard).to_pylist()
        places = defaultdict(list)
        for k, row in enumerate(postings):
            places[row["phone"]].append(k)
        for number, query in enumerate(queries):
            way = query["phones"]
            for k in places[way[0]]:
                here = postings[k : k + len(way)]
                if [row["phone"] for row in here] == way and here[0]["doc_id"] == here[-1]["doc_id"]:
                    yield {
                        "slot": slot_of(query["query_id"]), "query_id": query["query_id"], "example": number + 1,
                        "doc_id": here[0]["doc_id"], "channel": here[0]["channel"],
                        "first": here[0]["first"], "last": here[-1]["last"], "cost": query["cost"], "scale": ONE,
                    }  # fmt: skip

    def rescore(self, queries: list[dict[str, Any]], store: Store, spans: pa.Table) -> pa.Table:
        """The likeliest pronunciation that stands whole inside a span."""
        found = [row for shard in store.manifest.shards for row in self._found(queries, store, shard.name)]
        best, keys = [], SPANS.names[:3]
        for span in spans.cast(SPANS).to_pylist():
            same = [row for row in found if all(row[name] == span[name] for name in keys)]
            inside = [row for row in same if span["first"] <= row["first"] and row["last"] <= span["last"]]
            best += sorted(inside, key=lambda row: (row["cost"], row["first"], row["example"]))[:1]
        return pa.Table.from_pylist(best, CANDIDATES)


CHAIN = Entry(f"{__name__}:build", 1)
METHOD = MethodEntry(f"{__name__}:Pronunciations", 1, "", "text", "postings", "posterior", "sum")


def build(config: Config, ledger: Ledger) -> Chain:
    """The search chain, with its first two steps replaced."""
    chain = assemble(config, ledger)
    first = Step("index", Index()), Step("queries", Queries())
    return dataclasses.replace(chain, name="pronunciations", stages=(*first, *chain.steps[2:]))
