"""format and export write the detections in external formats, below `exports/` in the run folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.errors import StorageError, UserError
from swsdist.exports.interface import BestHit, Material, Rows
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.receipts import names_of
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.registry.registries import EXPORTS
from swsdist.stages.buckets import BucketStage, Exported, Extracted, Formatted
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.summarise import best_hits
from swsdist.store import parquet
from swsdist.store.reading import Store


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
