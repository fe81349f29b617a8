"""Stages after the scored list: summarise, format, export.

format and export write the detections in external formats, in `exports/` of the run folder.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.errors import StorageError, UserError
from swsdist.core.types import BEST, DETECTIONS, SUMMARY
from swsdist.evaluation.comparison import finite_threshold, values_at
from swsdist.exports.interface import BestHit, Material, Rows
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.receipts import names_of
from swsdist.pipeline.status import each_key, unlabelled
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.registry.registries import EXPORTS
from swsdist.stages.buckets import Bucket, BucketStage, Exported, Extracted, Formatted, Measured, Summarised
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.store import parquet
from swsdist.store.reading import Recording, Store

_KEY = ("query_id", "doc_id", "channel", "start", "end")
_BY_SCORE = [("score", "descending"), *((name, "ascending") for name in _KEY)]

#: Bins of the histograms.
_BINS = 60


class Summing(NamedTuple):
    """The payload of a task.

    Attributes:
        scored, trials: files of a bucket.
        best: greatest number of best hits.
        range: lowest and highest score of all lists.
        cut: threshold of MTWV (None: nothing is accepted), trials and beta; None without MTWV.
    """

    scored: str | None
    trials: str | None
    best: int
    range: tuple[float, float]
    cut: tuple[float | None, float, float] | None


class Summarise(BucketStage[Summing]):
    """A task per bucket, so that nobody holds the list."""

    name = "summarise"
    version = 1
    phase = "score"
    takes = {"scored": "scored"}
    may_take = {"trials": "trials", "measures": "measures"}
    grows_with_hours = "kept"
    tables = {"best": Table(BEST, digested=False), "summary": Table(SUMMARY, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Summing]]:
        """A task per bucket of detections or trials."""
        scored, trials = ({part.slots: part for part in inputs.parts(word)} for word in ("scored", "trials"))
        lists = [bucket for _, bucket in inputs.results("scored", Bucket) if bucket.rows]
        limits = min((each.low for each in lists), default=0.0), max((each.high for each in lists), default=0.0)
        cut = None
        for _, result in inputs.results("measures", Measured):
            measures, point = result.measures, result.point
            if measures.get("mtwv") is not None:
                threshold = finite_threshold(*(measures[f"mtwv_{name}"] for name in ("threshold", "pmiss", "pfa")))
                cut = threshold, point["trials"], point["beta"]
        for slots in sorted(scored.keys() | trials.keys()):
            parts = [of[slots] for of in (scored, trials) if slots in of]
            detected, aligned = (of[slots].name if slots in of else None for of in (scored, trials))
            payload = Summing(detected, aligned, inputs.config.report.clips, limits, cut)
            yield self.following(parts[0], inputs, *payload, payload=payload)

    def run(self, task: Task[Summing], context: Context) -> TaskOutput:
        """Summarise a bucket."""
        payload = task.payload
        detections = DETECTIONS.empty_table() if payload.scored is None else context.read(payload.scored)
        trials = None if payload.trials is None else context.read(payload.trials)
        histograms = [[0] * _BINS] * 2 if trials is None else _histograms(trials, edges_of(payload.range))
        outputs = (
            context.publish(task, "best", [_best(detections, trials, payload.best)], BEST, "-best.parquet"),
            context.publish(task, "summary", [_summary(detections, trials, payload.cut)], SUMMARY),
        )
        return TaskOutput(outputs, Summarised(payload.range, *histograms))


def best_hits(tables: Iterable[pa.Table], store: Store, most: int) -> list[dict[str, Any]]:
    """The highest-scoring detections, each with its document's path; `verdict` if scored.

    They alternate between queries: the best of each before any second, and so on. Fewer than `most` are returned only
    if there are no more detections.

    Args:
        tables: BEST, of all buckets.
        store: the searched store.
        most: greatest number of rows.

    Returns:
        Rows of BEST with path (empty if the store does not know the recording) and duration, highest score first.
    """
    best = _first(pa.concat_tables([BEST.empty_table(), *tables]), most)
    chosen = best.take(pc.sort_indices(best, _BY_SCORE)).drop_columns(["turn"]).to_pylist()
    found_in = store.recordings([row["doc_id"] for row in chosen])
    # This store may lack documents searched by another system of a fusion: such a hit has no audio.
    return [
        {**row, **found_in.get((row["doc_id"], row["channel"]), Recording("", row["end"]))._asdict()} for row in chosen
    ]


def edges_of(limits: tuple[float, float]) -> np.ndarray:
    """Edges of the histograms' bins, given the lowest and the highest score."""
    low, high = limits
    return np.linspace(low, high if high > low else low + 1.0, _BINS + 1)


def _best(detections: pa.Table, trials: pa.Table | None, most: int) -> pa.Table:
    """Of a bucket the rows with the lowest turns."""
    table = _leading(detections, most) if most else detections[:0]
    table = table.take(pc.sort_indices(table, [("query_id", "ascending"), *_BY_SCORE]))
    codes = _codes(table)
    first = np.searchsorted(codes, codes)  # ascending, since ids were sorted before numbering
    turns = pa.array(np.arange(len(codes)) - first, pa.int64())
    best = _first(table.append_column("turn", turns), most)
    verdicts = {}
    if trials is not None:
        among = pc.is_in(trials["doc_id"], pc.unique(best["doc_id"]))
        near = trials.filter(pc.and_(among, pc.is_valid(trials["score"])))
        keys = zip(*(near[name].to_pylist() for name in _KEY), strict=True)
        verdicts = dict(zip(keys, pc.is_valid(near["ref_start"]).to_pylist(), strict=True))
    words = {True: "hit", False: "false alarm", None: "unknown"}
    keys = zip(*(best[name].to_pylist() for name in _KEY), strict=True)
    return best.append_column("verdict", pa.array([words[verdicts.get(key)] for key in keys], pa.string()))


def _leading(table: pa.Table, most: int) -> pa.Table:
    """Rows that include the best of each query, so that few are sorted: those not below its score of this rank."""
    codes, scores = _codes(table), table["score"].to_numpy()
    leads = np.ones(len(codes), bool)
    for first, last in pairwise([*np.flatnonzero(np.diff(codes, prepend=-1)).tolist(), len(codes)]):
        if last - first > most:
            here = scores[first:last]
            leads[first:last] = here >= np.partition(here, -most)[-most]
    return table.filter(pa.array(leads))


def _codes(table: pa.Table) -> np.ndarray:
    codes: np.ndarray = table["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return codes


def _first(table: pa.Table, most: int) -> pa.Table:
    """The rows with the lowest turns."""
    return table.take(pc.sort_indices(table, [("turn", "ascending"), *_BY_SCORE])[:most])


def _summary(detections: pa.Table, trials: pa.Table | None, cut: tuple[float | None, float, float] | None) -> pa.Table:
    hashes = each_key(unlabelled(detections), "query_id")
    counts = {row["values"]: row["counts"] for row in pc.value_counts(detections["query_id"]).to_pylist()}
    twv: dict[str, float] = {}
    if trials is not None and cut is not None:
        threshold, number, beta = cut
        values = values_at([trials], threshold, int(number), beta)
        twv = dict(zip(values["query_id"].to_pylist(), values["twv"].to_pylist(), strict=True))
    names = sorted(counts.keys() | twv.keys())
    return pa.Table.from_pylist(
        [
            {"query_id": name, "detections": counts.get(name, 0), "sha256": hashes.get(name), "twv": twv.get(name)}
            for name in names
        ],
        SUMMARY,
    )


def _histograms(trials: pa.Table, edges: np.ndarray) -> list[list[int]]:
    """Numbers of scores of targets and of non-targets by bin."""
    found = trials.filter(pc.is_valid(trials["score"]))
    true = pc.is_valid(found["ref_start"])
    return [
        np.histogram(found.filter(which)["score"].to_numpy(), edges)[0].tolist() for which in (true, pc.invert(true))
    ]


class Formatting(NamedTuple):
    """The payload of a task: a part of the list, and formats that are made of rows."""

    scored: str
    kinds: tuple[str, ...]


class Format(BucketStage[Formatting]):
    """A task per bucket writes its rows in each format that is made of rows (`swsdist.exports.interface.Rows`)."""

    name = "format"
    version = 1
    phase = "score"
    takes = {"scored": "scored"}
    grows_with_hours = "kept"
    tables = {"formatted": Table(None, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Formatting]]:
        """A task per bucket, if the config names such a format."""
        kinds = tuple(kind for kind in inputs.config.exports if EXPORTS[kind].rows)
        versions = [EXPORTS.identity(kind) for kind in kinds]
        for part in inputs.parts("scored") if kinds else ():
            yield self.following(part, inputs, versions, part.name, payload=Formatting(part.name, kinds))

    def run(self, task: Task[Formatting], context: Context) -> TaskOutput:
        """Write a file for each format that can represent the rows; they are packed, for they are written once more."""
        rows = context.read(task.payload.scored)
        outputs: dict[str, Part] = {}
        failed: dict[str, str] = {}
        for kind in task.payload.kinds:
            try:
                data = b"".join(EXPORTS[kind].load().rows(rows.to_batches()))
            except UserError as error:
                failed[kind] = str(error)
                continue
            packed = pa.compress(data, "zstd", asbytes=True)
            outputs[kind] = context.write(task, "formatted", packed, f"-{kind}.zst")
        queries = pc.unique(rows["query_id"]).to_pylist()
        return TaskOutput(tuple(outputs.values()), Formatted(list(outputs), queries, failed))


class Exporting(NamedTuple):
    """The payload of a task: an export, and its contents.

    Attributes:
        scored: files of the list.
        best: files of the best hits, if the export reads them.
        formatted: if the export is made of rows, the files of its parts.
        failed: why it cannot represent the list; empty: it can, as far as its parts say.
        unfound: queries without detections, if the export is made of rows.
    """

    kind: str
    scored: list[str]
    best: list[str]
    store: tuple[str, str]
    query_ids: list[str]
    clips: int
    labels: int
    system: str
    formatted: list[str] | None
    failed: str
    unfound: list[str]


class Export(Stage[Exporting]):
    """A task writes each export that the config names (`swsdist.registry.registries.EXPORTS`): parts are put together.

    An export that cannot represent the detections (a file name that a NIST program takes for a pattern, say) is skipped
    with a warning; the others are written.
    """

    name = "export"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"queries": "groups", "scored": "scored", "formatted": "formatted", "best": "best"}
    grows_with_hours = "kept"
    tables = {"exports": Table(None, None, digested=False)}
    replaces = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Exporting]]:
        """A task per export, if there is a list."""
        report, chain_inputs = inputs.config.report, inputs.chain_inputs(CorpusInputs)
        scored = [part.name for part in inputs.parts("scored")]
        if not scored:
            return
        query_ids = sorted(
            {query_id for _, group in inputs.results("queries", Extracted) for query_id in group.query_ids}
        )
        formatted: dict[str, list[str]] = {}
        failed: dict[str, str] = {}
        found: set[str] = set()
        for _, result, parts in inputs.made("formatted", Formatted):
            found.update(result.queries)
            failed = {**result.failed, **failed}
            for kind, part in zip(result.kinds, parts, strict=True):
                formatted.setdefault(kind, []).append(part.name)
        best, rows = [part.name for part in inputs.parts("best")], sum(part.rows for part in inputs.parts("scored"))
        for kind in inputs.config.exports:
            entry = EXPORTS[kind]
            payload = Exporting(
                kind,
                scored,
                best if entry.best_hits else [],
                chain_inputs.store.state,
                query_ids,
                report.clips,
                report.labels,
                inputs.config.system,
                formatted.get(kind, []) if entry.rows else None,
                failed.get(kind, ""),
                [query_id for query_id in query_ids if query_id not in found] if entry.rows else [],
            )
            key_parts = EXPORTS.identity(kind), scored, report.clips, report.labels, query_ids, inputs.config.system
            yield inputs.task(*key_parts, label=kind, work=rows, payload=payload)

    def finish(self, inputs: Inputs) -> None:
        """Remove the exports of other configs."""
        if not inputs.outcome.receipts:
            inputs.ledger.drop(self.name, "", names_of([]))
        keep_exports(inputs)

    def run(self, task: Task[Exporting], context: Context) -> TaskOutput:
        """Write the format to a temporary folder, then publish its files."""
        payload = task.payload
        if payload.failed:
            return TaskOutput((), Exported([_left_out(payload.kind, payload.failed)], 0))
        store = Store.at(*payload.store, storage=context.storage)
        best = best_hits(map(context.read, payload.best), store, payload.clips) if payload.best else []
        material = Material(
            lambda: (batch for name in payload.scored for batch in parquet.rows(*context.place(name))),
            payload.query_ids,
            payload.system,
            [BestHit(**{name: hit[name] for name in BestHit.__annotations__}) for hit in best],  # type: ignore[typeddict-item]
            payload.labels,
            context.storage,
            store.recordings,
        )
        write: Callable[[Path], None] = partial(EXPORTS[payload.kind].load(), material)
        if payload.formatted is not None:
            write = partial(_join, material, payload, context)
        return write_exports({payload.kind: write}, context.run)


def _join(material: Material, payload: Exporting, context: Context, folder: Path) -> None:
    """Write the parts of a format one after the other.

    Raises:
        UserError: the format cannot represent the list.
    """
    export: Rows = EXPORTS[payload.kind].load()
    export.check(pc.unique(context.read(name, ["doc_id"])["doc_id"]) for name in payload.scored)
    with (folder / export.file).open("wb") as out:
        out.write(export.head(material))
        for part, name in map(context.place, payload.formatted or ()):
            with part.open(name) as file, pa.CompressedInputStream(file, "zstd") as rows:
                shutil.copyfileobj(rows, out, 1 << 20)
        out.write(export.tail(payload.unfound))


def write_exports(writers: Mapping[str, Callable[[Path], None]], run: Folder) -> TaskOutput:
    """Write exports of a run. One that raises a UserError is left out, with a warning.

    Args:
        writers: by name; each writes into an empty folder.
        run: the run folder.
    """
    outputs: list[Part] = []
    reasons: dict[str, str] = {}
    for kind, write in writers.items():
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            try:
                write(Path(place))
            except StorageError:
                raise
            except UserError as error:
                reasons[kind] = str(error)
                continue
            outputs += _publish(Path(place), run)
    warnings = [_left_out(kind, reason) for kind, reason in reasons.items()]
    return TaskOutput(tuple(outputs), Exported(warnings, len(outputs)))


def _left_out(kind: str, reason: str) -> str:
    return f"{kind} was not exported: {reason}"


def keep_exports(inputs: Inputs) -> None:
    """Remove the exports that no task of a step has written: names do not depend on the config."""
    kept = {part.name for receipt in inputs.outcome.receipts for part in receipt.outputs}
    run = inputs.ledger.run
    stale = run.listing("exports").keys() - kept
    if stale:
        inputs.commits()
    for name in stale:
        run.remove(name)


def _publish(place: Path, run: Folder) -> list[Part]:
    outputs = []
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        name = f"exports/{file.relative_to(place).as_posix()}"
        outputs.append(Part("exports", *parquet.describe(file, name)))
        run.publish(file, name)
    return outputs
