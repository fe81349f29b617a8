"""export: the detections as others read them, below `exports/` in the run folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swsdist.chains.search.decide import scored_name
from swsdist.errors import UserError
from swsdist.exports.interface import Material
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.registries import EXPORTS
from swsdist.store import parquet
from swsdist.store.parquet import Output


class Export(Stage):
    """Each export that the config names, see `swsdist.registries.EXPORTS`.

    One that cannot say what the detections are (a file name that a NIST program takes for a pattern, say) is left out with a
    warning; the others are made.
    """

    name = "export"
    version = 1
    phase = "score"
    unit = "detections"
    in_driver = True

    def plan(self, state: State) -> Iterator[Task]:
        """One task."""
        from swsdist.chains.search.report.best import best_rows

        kinds = state.config.report.exports
        lists = [r.fingerprint for r in state.ended["decide"].receipts if "detections" in r.summary]
        if not kinds or not lists:
            return
        query_ids = sorted({row for receipt in state.ended["queries"].receipts for row in receipt.summary["query_ids"]})
        written = [EXPORTS.identity(kind) for kind in kinds]
        name = fingerprint(self.name, self.version, written, lists, state.config.report.clips, query_ids)
        best: list[dict[str, Any]] = []
        task = Task(self.name, name, ", ".join(kinds), len(lists), {})
        if any(EXPORTS[kind].best_hits for kind in kinds) and state.receipt(self, task) is None:
            best = best_rows(state, state.config.report.clips)
        payload = {"lists": lists, "kinds": list(kinds), "query_ids": query_ids, "best": best}
        yield Task(self.name, name, task.label, len(lists), payload)

    def finish(self, state: State) -> None:
        """What another config exported goes, where this one exports nothing."""
        if not state.ended[self.name].tasks:
            _remove_old(state.run)

    def run(self, task: Task, context: Context) -> Done:
        """Write each kind to a temporary folder, then publish its files."""
        payload = task.payload
        material = Material(
            lambda: (batch for name in payload["lists"] for batch in parquet.rows(context.run, scored_name(name))),
            payload["query_ids"],
            context.config.system,
            payload["best"],
            context.config.storage,
        )
        _remove_old(context.run)
        outputs: list[Output] = []
        warnings: list[str] = []
        for kind in payload["kinds"]:
            with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
                try:
                    EXPORTS[kind].load()(material, Path(place))
                except UserError as error:
                    warnings.append(f"{kind} was not exported: {error}")
                    continue
                outputs += _publish(Path(place), context.run)
        return Done(tuple(outputs), summary={"warnings": warnings, "files": len(outputs)})


def _remove_old(run: Folder) -> None:
    """Take away what another config exported, and its receipt first: the names are the same whatever the config."""
    for name in run.listing("receipts"):
        if name.startswith("receipts/export-"):
            run.remove(name)
    for name in run.listing("exports"):
        run.remove(name)


def _publish(place: Path, run: Folder) -> list[Output]:
    outputs = []
    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        name = f"exports/{file.relative_to(place).as_posix()}"
        outputs.append(parquet.describe(file, name))
        with run.temporary() as beside:
            shutil.copyfile(file, beside)
            run.publish(beside, name)
    return outputs
