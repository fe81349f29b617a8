"""Stages from candidates to normalised detections: reduce, cohort, normalise, pooled-statistics.

**reduce** turns candidates of all shards into detections and score statistics, one bucket of queries at a time.

**normalise** makes the scores of different queries comparable.

**pooled-statistics** computes the mean and variance of the examples of all groups of queries, for `search.documents_by:
pooled`. The search adds the collection's to them, so that documents and queries are normalised by all frames together.
Sums are integers (`features.fitting.moments.Sums`), so groups do not affect the bytes.

**cohort** sums how well the queries of a cohort match each place of the collection. These are the queries of
`corpus.cohort`, which are searched like others and never scored; without such a table, the run's queries. Each query's
list is q-normed before the N best are chosen; its best detection in each document, or stretch of a document, counts.
The sums over queries are integers in units of 1 / 65536, so they are independent of the division of work.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import candidate_statistics, keep_order, procedures
from swsdist.calibrate.statistics import CandidatePosteriors, CostSums, from_table, load_statistics, summed
from swsdist.calibrate.steps.interface import Options, TwvParameters
from swsdist.calibrate.steps.norms import ALL, COHORT, QNorm, cohort_of, cohort_sums, cohort_table
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.core.codes import stages as codes
from swsdist.core.fingerprint import Naming, bucket_of, slots_of
from swsdist.core.numbers import frames_to_seconds
from swsdist.core.types import COHORT_SUMS, DETECTIONS, OUTPUT, QUERY_STATISTICS, table_of
from swsdist.core.types import STATISTICS as MOMENTS
from swsdist.features.fitting.moments import Sums
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.receipts import Parts
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.reduce.examples import WHO, Reduced, reduce_examples, rules_of
from swsdist.reduce.spans import WHERE, SourcePlaces, SpanFilter, Spans, in_recordings, outside_places
from swsdist.registry.registries import CALIBRATION, METHODS, STATISTICS
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.buckets import BucketStage, Extracted
from swsdist.stages.inputs.search_inputs import CorpusInputs, SearchInputs
from swsdist.stages.queries import Queries, demand_examples, query_covariates, read_covariates, read_group
from swsdist.stages.score import places_of, point_of, speakers_of
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
    """The stage reduce: candidates of a bucket of queries to detections."""

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


class Normalising(NamedTuple):
    """The payload of a task."""

    calibrate: Calibrate
    point: TwvParameters
    detections: str
    statistics: str
    covariates: Values | None
    cohort: dict[str, list[str]]
    store: tuple[str, str] | None
    by_document: bool


class Normalise(BucketStage[Normalising]):
    """Applies the calibration steps before the first fitted one. It needs no references, so it is part of searching."""

    name = "normalise"
    version = 1
    phase = "search"
    takes = {"detections": "detections", "statistics": "statistics"}
    may_take = {"described": "described", "cohort": "sums"}
    grows_with_hours = "kept"
    tables = {"normalised": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Normalising]]:
        """A task per bucket."""
        settings = inputs.config.calibrate
        entries = settings.entries()
        point = TwvParameters(1, 1.0)  # for steps that do not use it
        if any(entries[name].operating_point for name in settings.unfitted):
            settled = point_of(inputs)
            point = TwvParameters(settled.trials, settled.beta)
        first, _ = procedures(settings, point)
        chain_inputs = inputs.chain_inputs(CorpusInputs)
        by_speaker = any("speaker" in entries[name].columns for name in settings.unfitted)
        store = chain_inputs.store.state if by_speaker else None
        trials = protocol_of(inputs.config.score).trials
        by_document = trials == "document" and any(step.of_list() for step in first.steps)
        cohort = [part.name for part in inputs.parts("cohort")]
        scope = COHORT if inputs.config.corpus.cohort is not None else ALL
        for detections, statistics in inputs.buckets("detections", "statistics"):
            covariates, sums = query_covariates(inputs, detections.slots), {scope: cohort} if cohort else {}
            payload = Normalising(
                settings, point, detections.name, statistics.name, covariates, sums, store, by_document
            )
            key_parts: list[Any] = [
                first.identity(),
                first.point,
                detections.name,
                statistics.name,
                *([covariates] if covariates else []),
            ]
            key_parts += [*([scope, cohort] if cohort else []), *(["by document"] if by_document else [])]
            yield self.following(detections, inputs, *key_parts, payload=payload)

    def keeps_order(self, config: Config) -> bool:
        """Whether its steps depend on the score alone."""
        return keep_order(config.calibrate, config.calibrate.unfitted)

    def run(self, task: Task[Normalising], context: Context) -> TaskOutput:
        """Scores after these steps; other columns are unchanged."""
        payload = task.payload
        first, _ = procedures(payload.calibrate, payload.point)
        first = replace(first, covariates=read_covariates(context, payload.covariates), documents=payload.by_document)
        statistics = from_table(context.read(payload.statistics))
        for name, files in payload.cohort.items():
            statistics[name] = summed(cohort_of(context.read(file)) for file in files)
        detections = context.read(payload.detections)
        if payload.store is None:
            detections = first.scores(detections, statistics)
        else:
            with_speakers = speakers_of(payload.store, context).of_detections(detections, recordings=True)
            detections = first.scores(with_speakers, statistics).drop_columns(["speaker"])
        return self.done(task, context, detections)


class Pooling(NamedTuple):
    """The payload of the task: files of the groups with examples."""

    groups: list[str]


class Pooled(NamedTuple):
    """Result: examples, and their frames."""

    examples: int
    frames: int


class PooledStatistics(Stage[Pooling]):
    """The stage pooled-statistics, in one task over all queries."""

    name = "pooled-statistics"
    version = 1
    needs_run = "all queries"
    unit = "examples"
    phase = "search"
    takes = {"queries": "groups"}
    grows_with_hours = "same"
    grows_with_queries = "more"
    # Candidates contain their effect.
    tables = {"pooled_statistics": Table(MOMENTS, None, digested=False)}
    # Without them nothing could be normalised.
    all_or_nothing = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Pooling]]:
        """The task, if there are queries."""
        groups = list(inputs.made("queries", Extracted))
        demand_examples(inputs, groups)
        some = [(part, group) for _, group, (part,) in groups if group.examples]
        if some:
            payload = Pooling([part.name for part, _ in some])
            examples = sum(group.examples for _, group in some)
            yield inputs.task(
                [part.sha256 for part, _ in some],
                label=f"mean and variance of {examples} examples",
                work=examples,
                payload=payload,
            )

    def run(self, task: Task[Pooling], context: Context) -> TaskOutput:
        """Sum the frames of all examples."""
        sums = []
        for name in task.payload.groups:
            for batch in read_group(context, name).select(["frames", "features"]).to_batches(max_chunksize=64):
                for row in batch.to_pylist():
                    frames = np.frombuffer(row["features"], "<f4").reshape(row["frames"], -1)
                    sums.append(Sums.from_blocks([frames], frames.shape[1]))
        total = reduce(add, sums)
        value = total.statistics()
        row = "pooled", "", value.frames, value.mean.tolist(), value.variance.tolist(), True, []
        table = table_of([row], MOMENTS)
        output = context.publish(task, "pooled_statistics", [table], MOMENTS)
        return TaskOutput((output,), Pooled(len(sums), value.frames))


#: More than the detections of any query.
_EVERY_PLACE = 2**31 - 1


class Cohort(Reduce):
    """A task per bucket of the cohort's queries. The chain contains this stage only if a step normalises by a cohort."""

    name = "cohort"
    version = 1
    needs_run = "other queries"
    tables = {"sums": Table(COHORT_SUMS, None, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Reducing]]:
        """Plan like `reduce`, without limit on detections."""
        settings = inputs.config.calibrate
        step = next(name for name, entry in settings.entries().items() if entry.cohort)
        options = CALIBRATION[step].load().model.model_validate(settings.options.get(step, {}))
        window = getattr(options, "window", None)
        versions = [CALIBRATION.identity(step), CALIBRATION.identity(QNorm.name)]
        yield from self.tasks(inputs, [CostSums.name], _EVERY_PLACE, versions, window, window=window)

    def run(self, task: Task[Reducing], context: Context) -> TaskOutput:
        """Sum the best scores of each query at each place."""
        tick, window = task.payload.rules["tick"], task.payload.window
        # Stretches of a recording are known only after overlaps between its documents are removed.
        by_file = window is None or not task.payload.placed
        reduced = self.reduced(task, context, (lambda spans: best_of_places(spans, tick, window)) if by_file else None)
        detections = outside_places(reduced.detections, excluded_places(task))
        if detections.num_rows:
            scores = QNorm(Options()).apply(detections, None, from_table(reduced.statistics), None)
            column = detections.schema.get_field_index("score")
            detections = detections.set_column(column, detections.schema.field(column), pa.array(scores))
        table = cohort_table(cohort_sums(detections, window))
        return TaskOutput((context.publish(task, "sums", [table], COHORT_SUMS),))


def best_of_places(spans: Spans, tick: float, window: float | None) -> Spans:
    """The best detection of each query in each document, or in each stretch of a document.

    Args:
        spans: detections in complete documents.
        tick: s.
        window: length of the stretches, s; None: complete documents.
    """
    stretch = np.zeros(spans.rows, np.int64)
    if window is not None:
        stretch = np.floor(frames_to_seconds(spans.first, tick) / window).astype(np.int64)
    order = np.lexsort((-spans.score, stretch, spans.channel, spans.document, spans.query))
    places = np.stack([spans.query, spans.document, spans.channel, stretch])[:, order]
    new = np.append(True, (places[:, 1:] != places[:, :-1]).any(axis=0))[: spans.rows]
    return spans.take(np.sort(order[new]))


#: Path of their store in a run folder.
STORE = "cohort"


class CohortQueries(Queries):
    """Like `queries`; no stage that scores, decides or exports reads its output."""

    name = "cohort-queries"
    version = 1

    def place(self, inputs: Inputs) -> str:
        """The store of the cohort."""
        return f"{inputs.ledger.run.root}/{STORE}"

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digests of the examples, independent of groups."""
        result = super().digests(inputs)
        return {"queries.cohort": result["queries"]} if result else {}

    def examples(self, chain_inputs: SearchInputs) -> list[dict[str, Any]]:
        """The examples of `corpus.cohort`."""
        if chain_inputs.is_first("cohort"):
            _note_shared_queries(chain_inputs)
        return chain_inputs.with_identities(chain_inputs.corpus.cohort)


def _note_shared_queries(chain_inputs: SearchInputs) -> None:
    """Note examples that are also queries of the run."""
    run_queries = set(_places(chain_inputs.corpus.queries))
    shared = [
        query_id
        for query_id, place in zip(
            chain_inputs.corpus.cohort["query_id"].to_pylist(), _places(chain_inputs.corpus.cohort), strict=True
        )
        if place in run_queries
    ]
    if shared:
        chain_inputs.notices.add(codes.COHORT_EXAMPLE_IS_QUERY, where=f"corpus.cohort: {shared[0]}", count=len(shared))


def _places(queries: pa.Table) -> list[tuple[object, ...]]:
    columns = (queries[name].to_pylist() for name in ("path", "channel", "start", "end"))
    return list(zip(*columns, strict=True))
