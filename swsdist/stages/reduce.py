"""reduce turns candidates of all shards into detections and score statistics, one bucket of queries at a time."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import candidate_statistics
from swsdist.calibrate.statistics import CandidatePosteriors, load_statistics
from swsdist.core.fingerprint import Naming, bucket_of, slots_of
from swsdist.core.types import DETECTIONS, OUTPUT, QUERY_STATISTICS
from swsdist.pipeline.chain import Context, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.receipts import Parts
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.reduce.examples import WHO, Reduced, reduce_examples, rules_of
from swsdist.reduce.spans import WHERE, SourcePlaces, SpanFilter, in_recordings, outside_places
from swsdist.registry.registries import METHODS, STATISTICS
from swsdist.stages.buckets import BucketStage, Extracted
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.score import places_of, speakers_of
from swsdist.store import parquet
from swsdist.store.reading import keys_of

#: Most files of candidates named in a task; longer lists are a table in the run folder.
MOST_NAMED = 4096
_LISTED = pa.schema([OUTPUT.field(name) for name in ("name", "first_slot", "last_slot")])

#: Detections of a query in some documents and a sample, of which few are kept: no limit.
_ALL = 1 << 40


def _list_name(files: Parts) -> str:
    """Path of a list of files in the run folder."""
    slots = [[str(slot) for slot in files.column(name).tolist()] for name in ("first_slot", "last_slot")]
    return f"tables/lists/{Naming('files').listing(files.pieces()).listing(slots[:1]).listing(slots[1:])()}.parquet"


class Reducing(NamedTuple):
    """The payload of a task.

    Attributes:
        rules: of `reduce_examples`.
        files: of candidates; if very many, each bucket reads the list by name.
        store: if columns of its documents are needed.
        placed: whether documents are places in recordings.
        by_speaker: whether a statistic needs the speaker.
        excluded: places that the queries were cut from, to be excluded.
        window: of a cohort.
        among: keys of the documents that are asked; None: all.
    """

    rules: Values
    files: list[str] | str
    store: tuple[str, str]
    placed: bool
    by_speaker: bool
    excluded: list[list[Any]]
    window: float | None = None
    among: pa.Array | None = None


def _files(task: Task[Reducing], context: Context) -> list[str]:
    """Names of the files of candidates that a bucket reads."""
    if not isinstance(task.payload.files, str):
        return task.payload.files
    table, slots = context.read(task.payload.files), task.slots
    meets = pc.and_(pc.less_equal(table["first_slot"], slots[-1]), pc.greater_equal(table["last_slot"], slots[0]))
    result: list[str] = table.filter(meets)["name"].to_pylist()
    return result


def excluded_places(task: Task[Reducing]) -> SourcePlaces:
    """Excluded places: those that the queries of a bucket were cut from."""
    return {(query_id, recording): spans for query_id, recording, spans in task.payload.excluded}


class Reduce(BucketStage[Reducing]):
    """Each bucket reads its rows of every file of candidates."""

    name = "reduce"
    version = 2
    unit = "candidates"
    phase = "search"
    takes = {"queries": "groups", "candidates": "candidates"}
    tables = {"detections": Table(DETECTIONS), "statistics": Table(QUERY_STATISTICS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Reducing]]:
        """A task per bucket with a query."""
        config = inputs.config
        seconds = inputs.chain_inputs(CorpusInputs).store.open().manifest.counts["seconds"]
        required = candidate_statistics(config.calibrate)
        if METHODS[config.search.method].score == "posterior" and config.search.examples != "mean":
            # Whatever the steps, so that a sweep's points share a search: S(w) of KST and STO.
            required = list(dict.fromkeys([*required, CandidatePosteriors.name]))
        yield from self.tasks(inputs, required, config.reduce.nbest.count(seconds))

    def tasks(
        self, inputs: Inputs, required: list[str], nbest: int, *key_parts: object, window: float | None = None
    ) -> Iterator[Task[Reducing]]:
        """A task per bucket with a query.

        Args:
            inputs: reads `queries` and `candidates`.
            required: names of statistics.
            nbest: detections kept per query.
            key_parts: further values that the outputs depend on.
            window: see `Reducing`.
        """
        chain_inputs, config = inputs.chain_inputs(CorpusInputs), inputs.config
        settings = config.reduce
        manifest = chain_inputs.store.open().manifest
        files = inputs.parts("candidates").by_name()
        filled, rows = files.where(files.column("rows") > 0), int(files.column("rows").sum())
        buckets = settings.buckets_for(rows)
        listed = _list_name(filled) if len(filled) > MOST_NAMED else None
        query_ids = {q for _, group in inputs.results("queries", Extracted) for q in group.query_ids}
        rules = rules_of(
            *(config.search, settings),
            tick=manifest.shift,
            nbest=nbest,
            system=config.system,
            statistics=required,
            counts=manifest.counts,
        )
        versions = [STATISTICS.identity(name) for name in required]
        by_speaker = any(getattr(item, "by_speaker", False) for item in load_statistics(required).values())
        who = [chain_inputs.documents_digest(WHO)] if by_speaker else []
        # Names and times of recordings come from the documents.
        placed = [chain_inputs.documents_digest(WHERE)] if chain_inputs.corpus.placed else []
        if chain_inputs.among is not None:
            rules |= {"nbest": _ALL, "sample": chain_inputs.among.sample}
        own_places: dict[int, list[list[Any]]] = {}
        for (query_id, recording), spans in chain_inputs.corpus.own_places.items():
            own_places.setdefault(bucket_of(query_id, buckets), []).append([query_id, recording, spans])
        for bucket in sorted({bucket_of(query_id, buckets) for query_id in query_ids}):
            slots = slots_of(bucket, buckets)
            filled_here, removed = filled.meeting(slots), own_places.get(bucket, [])
            names = filled_here.names.to_pylist() if listed is None else listed
            naming = inputs.naming(rules, versions, [slots[0], slots[-1]]).listing(filled_here.pieces())
            name = naming(*placed, *who, *key_parts, *removed)
            payload = Reducing(
                *(rules, names, chain_inputs.store.state, chain_inputs.corpus.placed, by_speaker, removed, window),
                among=None if chain_inputs.among is None else chain_inputs.among.keys,
            )
            yield inputs.named(name, label=f"bucket {bucket}", work=round(rows / buckets), payload=payload, slots=slots)

    def prepare(self, inputs: Inputs) -> None:
        """Write the list of files if it is too long for a task."""
        files = inputs.parts("candidates").by_name()
        filled = files.where(files.column("rows") > 0)
        if len(filled) > MOST_NAMED:
            table = pa.table({name: filled.columns.field(name) for name in _LISTED.names}, schema=_LISTED)
            parquet.publish(inputs.ledger.run, _list_name(filled), [table], _LISTED)

    def warm(self, task: Task[Reducing], context: Context) -> None:
        """Load the compiled kernel."""
        importlib.import_module("swsdist.kernels.suppression")

    def run(self, task: Task[Reducing], context: Context) -> TaskOutput:
        """Remove overlaps, keep the best N."""
        reduced = self.reduced(task, context)
        result = outside_places(reduced.detections, excluded_places(task))
        statistics = context.publish(task, "statistics", [reduced.statistics], QUERY_STATISTICS)
        return self.done(task, context, result, statistics)

    def reduced(self, task: Task[Reducing], context: Context, span_filter: SpanFilter | None = None) -> Reduced:
        """The remaining detections of a bucket or, with a filter, of each document, with names and times of recordings;
        and its statistics.
        """
        payload = task.payload

        def candidates() -> Iterator[pa.Table]:
            for name in _files(task, context):
                yield context.in_slots(name, task.slots, codes=("query_id", "doc_id"))

        reduced = reduce_examples(
            candidates=candidates,
            **payload.rules,
            speakers=speakers_of(payload.store, context) if payload.by_speaker else None,
            span_filter=span_filter,
        )
        if payload.among is not None:
            detections = reduced.detections
            asked = pc.is_in(keys_of(detections["doc_id"], detections["channel"]), payload.among)
            reduced = reduced._replace(detections=detections.filter(asked))
        if not payload.placed:
            return reduced
        where = places_of(payload.store, context)
        return reduced._replace(detections=in_recordings(reduced.detections, where, payload.rules["overlap"]))
