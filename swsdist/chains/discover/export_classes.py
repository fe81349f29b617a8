"""The stage export-classes: classes and parse for other programs, below `exports/` in the run folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.places import places
from swsdist.chains.discover.propose_pairs import files_of
from swsdist.chains.discover.writing import writers
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.export import keep_exports, write_exports
from swsdist.store.reading import Store


class Exporting(NamedTuple):
    """The payload of the task."""

    store: tuple[str, str]
    classes: tuple[str, ...]
    parse: tuple[str, ...]
    kinds: tuple[str, ...]


class ExportClasses(Stage[Exporting]):
    """One task writes all files."""

    name = "export-classes"
    version = 2
    unit = "members"
    phase = "score"
    takes = {"classes": "classes", "parse": "parse"}
    grows_with_hours = "larger"
    grows_with_queries = "same"
    tables = {"exports": Table(None, None, digested=False)}
    replaces = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Exporting]]:
        """One task."""
        store = inputs.chain_inputs(DiscoverInputs).store.state
        classes, parse = (files_of(inputs.parts(word)) for word in ("classes", "parse"))
        payload = Exporting(store, classes, parse, inputs.config.report.exports or ("csv",))
        rows = sum(part.rows for part in inputs.parts("classes"))
        yield inputs.task(*payload, label=", ".join(payload.kinds), work=rows, payload=payload)

    def finish(self, inputs: Inputs) -> None:
        """Remove the exports of other configs."""
        keep_exports(inputs)

    def run(self, task: Task[Exporting], context: Context) -> TaskOutput:
        """Write each format to a temporary folder, then publish its files."""
        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        classes, parse = (places(map(context.read, names), store) for names in (payload.classes, payload.parse))
        return write_exports(writers(payload.kinds, classes, parse, store.recordings), context.run)
