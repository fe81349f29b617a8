"""format and export write the detections in external formats, below `exports/` in the run folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.errors import StorageError, UserError
from swsdist.exports.interface import BestHit, Material, Rows
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.registry.registries import EXPORTS
from swsdist.stages import top_hits
from swsdist.stages.buckets import BucketStage
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.task_results import Exported, Extracted, Formatted
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
    """The payload of the task: files of `top_hits.files`, and contents of the exports.

    Attributes:
        formatted: of each format that is made of rows, the files of its parts.
        failed: why some of these formats cannot represent the list.
        unfound: queries without detections.
    """

    scored: list[list[Any]]
    trials: list[list[Any]]
    store: tuple[str, str]
    kinds: tuple[str, ...]
    query_ids: list[str]
    clips: int
    labels: int
    system: str
    formatted: dict[str, list[str]]
    failed: dict[str, str]
    unfound: list[str]


class Export(Stage[Exporting]):
    """One task writes all exports that the config names (`swsdist.registry.registries.EXPORTS`): parts are put together.

    An export that cannot represent the detections (a file name that a NIST program takes for a pattern, say) is skipped
    with a warning; the others are written.
    """

    name = "export"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"queries": "groups", "scored": "scored", "formatted": "formatted"}
    may_take = {"trials": "trials"}
    grows_with_hours = "kept"
    tables = {"exports": Table(None, None, digested=False)}
    replaces = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Exporting]]:
        """One task."""
        report, kinds, chain_inputs = inputs.config.report, inputs.config.exports, inputs.chain_inputs(CorpusInputs)
        scored, trials = (top_hits.files(inputs.parts(word)) for word in ("scored", "trials"))
        if not kinds or not scored:
            return
        query_ids = sorted(
            {query_id for _, group in inputs.results("queries", Extracted) for query_id in group.query_ids}
        )
        formatted: dict[str, list[str]] = {kind: [] for kind in kinds if EXPORTS[kind].rows}
        failed: dict[str, str] = {}
        found: set[str] = set()
        for _, result, parts in inputs.made("formatted", Formatted):
            found.update(result.queries)
            failed = {**result.failed, **failed}
            for kind, part in zip(result.kinds, parts, strict=True):
                formatted[kind].append(part.name)
        unfound = [query_id for query_id in query_ids if query_id not in found]
        system, store = inputs.config.system, chain_inputs.store.state
        of_rows = formatted, failed, unfound
        payload = Exporting(scored, trials, store, kinds, query_ids, report.clips, report.labels, system, *of_rows)
        versions, rows = [EXPORTS.identity(kind) for kind in kinds], sum(part.rows for part in inputs.parts("scored"))
        key_parts = versions, scored, report.clips, report.labels, query_ids, system
        yield inputs.task(*key_parts, label=", ".join(kinds), work=rows, payload=payload)

    def finish(self, inputs: Inputs) -> None:
        """Remove the exports of another config if this one exports nothing."""
        if not inputs.outcome.tasks:
            inputs.ledger.drop(self.name)
            remove_exports(inputs.ledger.run)

    def run(self, task: Task[Exporting], context: Context) -> TaskOutput:
        """Write each format to a temporary folder, then publish its files."""
        payload = task.payload
        material = Material(
            lambda: (batch for name, _ in payload.scored for batch in parquet.rows(*context.place(name))),
            payload.query_ids,
            payload.system,
            self._best(payload, context),
            payload.labels,
            context.storage,
            lambda names: Store.at(*payload.store, storage=context.storage).recordings(names),
        )
        writers: dict[str, Callable[[Path], None]] = {
            kind: partial(EXPORTS[kind].load(), material) for kind in payload.kinds
        }
        for kind in payload.formatted:
            writers[kind] = partial(_join, kind, material, payload, context)
        able = {kind: write for kind, write in writers.items() if kind not in payload.failed}
        return write_exports(able, context.run, payload.failed)

    def _best(self, payload: Exporting, context: Context) -> list[BestHit]:
        """The best hits, if an export reads them."""
        if not any(EXPORTS[kind].best_hits for kind in payload.kinds):
            return []
        store = Store.at(*payload.store, storage=context.storage)
        hits = top_hits.rows(context.run, payload.scored, payload.trials, store, payload.clips)
        return [BestHit(**{name: hit[name] for name in BestHit.__annotations__}) for hit in hits]  # type: ignore[typeddict-item]


def _join(kind: str, material: Material, payload: Exporting, context: Context, folder: Path) -> None:
    """Write the parts of a format one after the other.

    Raises:
        UserError: the format cannot represent the list.
    """
    export: Rows = EXPORTS[kind].load()
    export.check(pc.unique(context.read(name, ["doc_id"])["doc_id"]) for name, _ in payload.scored)
    with (folder / export.file).open("wb") as out:
        out.write(export.head(material))
        for part, name in map(context.place, payload.formatted[kind]):
            with part.open(name) as file, pa.CompressedInputStream(file, "zstd") as rows:
                shutil.copyfileobj(rows, out, 1 << 20)
        out.write(export.tail(payload.unfound))


def write_exports(
    writers: Mapping[str, Callable[[Path], None]], run: Folder, failed: Mapping[str, str] = MappingProxyType({})
) -> TaskOutput:
    """Replace the exports of a run. One that raises a UserError is left out, with a warning.

    Args:
        writers: by name; each writes into an empty folder.
        run: the run folder.
        failed: why others are left out, by name.
    """
    outputs: list[Part] = []
    reasons = dict(failed)
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
    # Last: another worker may do this task, too, and must find all files that it has written.
    remove_exports(run, {part.name for part in outputs})
    warnings = [f"{kind} was not exported: {reason}" for kind, reason in reasons.items()]
    return TaskOutput(tuple(outputs), Exported(warnings, len(outputs)))


def remove_exports(run: Folder, kept: Set[str] = frozenset()) -> None:
    """Remove exports of another config: names do not depend on the config."""
    for name in run.listing("exports").keys() - kept:
        run.remove(name)


def _publish(place: Path, run: Folder) -> list[Part]:
    outputs = []
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        name = f"exports/{file.relative_to(place).as_posix()}"
        outputs.append(Part("exports", *parquet.describe(file, name)))
        run.publish(file, name)
    return outputs
