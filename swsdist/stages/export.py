"""export writes the detections in external formats, below `exports/` in the run folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from swsdist.core.errors import UserError
from swsdist.exports.interface import BestHit, Material
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.registry.registries import EXPORTS
from swsdist.stages import top_hits
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.task_results import Exported, Extracted
from swsdist.store import parquet
from swsdist.store.reading import Store


class Exporting(NamedTuple):
    """The payload of the task: files of `top_hits.files`, and contents of the exports."""

    scored: list[list[Any]]
    trials: list[list[Any]]
    store: tuple[str, str]
    kinds: tuple[str, ...]
    query_ids: list[str]
    clips: int
    labels: int
    system: str


class Export(Stage[Exporting]):
    """One task writes all exports that the config names; see `swsdist.registry.registries.EXPORTS`.

    An export that cannot represent the detections (a file name that a NIST program takes for a pattern, say) is skipped
    with a warning; the others are written.
    """

    name = "export"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"queries": "groups", "scored": "scored"}
    may_take = {"trials": "trials"}
    grows_with_hours = "kept"
    tables = {"exports": Table(None, None, digested=False)}
    in_driver = True
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
        system = inputs.config.system
        payload = Exporting(
            scored, trials, chain_inputs.store.state, kinds, query_ids, report.clips, report.labels, system
        )
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
        return write_exports({kind: partial(EXPORTS[kind].load(), material) for kind in payload.kinds}, context.run)

    def _best(self, payload: Exporting, context: Context) -> list[BestHit]:
        """The best hits, if an export reads them."""
        if not any(EXPORTS[kind].best_hits for kind in payload.kinds):
            return []
        store = Store.at(*payload.store, storage=context.storage)
        hits = top_hits.rows(context.run, payload.scored, payload.trials, store, payload.clips)
        return [BestHit(**{name: hit[name] for name in BestHit.__annotations__}) for hit in hits]  # type: ignore[typeddict-item]


def write_exports(writers: Mapping[str, Callable[[Path], None]], run: Folder) -> TaskOutput:
    """Replace the exports of a run. One that raises a UserError is left out, with a warning.

    Args:
        writers: by name; each writes into an empty folder.
        run: the run folder.
    """
    remove_exports(run)
    outputs: list[Part] = []
    warnings: list[str] = []
    for kind, write in writers.items():
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            try:
                write(Path(place))
            except UserError as error:
                warnings.append(f"{kind} was not exported: {error}")
                continue
            outputs += _publish(Path(place), run)
    return TaskOutput(tuple(outputs), Exported(warnings, len(outputs)))


def remove_exports(run: Folder) -> None:
    """Remove exports of another config: names do not depend on the config."""
    for name in run.listing("exports"):
        run.remove(name)


def _publish(place: Path, run: Folder) -> list[Part]:
    outputs = []
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        name = f"exports/{file.relative_to(place).as_posix()}"
        outputs.append(Part("exports", *parquet.describe(file, name)))
        with run.temporary() as beside:
            shutil.copyfile(file, beside)
            run.publish(beside, name)
    return outputs
