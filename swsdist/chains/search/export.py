"""export: the detections as others read them, below `exports/` in the run folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.search import best
from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Exported, Extracted
from swsdist.errors import AudioError, UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import Done, Part, Task
from swsdist.store import parquet
from swsdist.store.manifest import require, state_name
from swsdist.store.reading import Store
from swsdist.types import DETECTIONS


class Export(Stage):
    """CSV, the NIST programs' system lists, Audacity labels, and clips of the best hits.

    What was not decided is NO in the NIST lists, which know nothing else. Labels show what was decided YES, or everything where
    nothing was decided. A list that a NIST program could not read (a file name that it takes for a pattern, say) is left out
    with a warning; the other exports are made.
    """

    name = "export"
    version = 1
    unit = "detections"
    in_driver = True
    replaces = True

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """One task."""
        report, own = inputs.config.report, inputs.own(SearchInputs)
        scored, trials = (best.files(inputs.parts(word)) for word in ("scored", "trials"))
        if not report.exports or not scored:
            return
        query_ids = sorted(
            {query_id for _, group in inputs.told("examples", Extracted) for query_id in group.query_ids}
        )
        store = [own.store.root, own.open_store().manifest.fingerprint]
        yield inputs.task(
            report.exports,
            scored,
            report.clips,
            query_ids,
            inputs.config.system,
            label=", ".join(report.exports),
            work=len(scored),
            payload={
                "lists": [name for name, _ in scored],
                "scored": scored,
                "trials": trials,
                "store": store,
                "kinds": list(report.exports),
                "query_ids": query_ids,
                "clips": report.clips,
                "system": inputs.config.system,
            },
        )

    def finish(self, inputs: Inputs) -> None:
        """What another config exported goes, where this one exports nothing."""
        if not inputs.mine.tasks:
            inputs.ledger.drop(self.name)
            _remove_old(inputs.ledger.run)

    def run(self, task: Task, context: Context) -> Done:
        """Write each kind to a temporary folder, then publish its files."""
        makers: dict[str, Callable[[dict[str, Any], Context, Path], None]] = {
            "csv": _csv,
            "stdlist": _stdlist,
            "kwslist": _kwslist,
            "labels": _labels,
            "clips": _clips,
        }
        _remove_old(context.run)
        outputs: list[Part] = []
        warnings: list[str] = []
        for kind in task.payload["kinds"]:
            with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
                try:
                    makers[kind](task.payload, context, Path(place))
                except UserError as error:
                    warnings.append(f"{kind} was not exported: {error}")
                    continue
                outputs += _publish(Path(place), context.run)
        return Done(tuple(outputs), Exported(warnings, len(outputs)))


def _remove_old(run: Folder) -> None:
    """Take away what another config exported: the names are the same whatever the config."""
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


def _batches(payload: dict[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    for name in payload["lists"]:
        yield from parquet.rows(*context.place(name))


def _csv(payload: dict[str, Any], context: Context, place: Path) -> None:
    from swsdist.io.tables import write_csv

    write_csv(_batches(payload, context), DETECTIONS, place / "detections.csv")


def _stdlist(payload: dict[str, Any], context: Context, place: Path) -> None:
    from swsdist.io.nist.systemlist_writing import write_stdlist

    system = payload["system"]
    write_stdlist(_batches(payload, context), payload["query_ids"], place / "stdlist.xml", system=system)


def _kwslist(payload: dict[str, Any], context: Context, place: Path) -> None:
    from swsdist.io.nist.systemlist_writing import write_kwslist

    system = payload["system"]
    write_kwslist(_batches(payload, context), payload["query_ids"], place / "kwslist.xml", system=system)


def _labels(payload: dict[str, Any], context: Context, place: Path) -> None:
    from swsdist.io.labels import write_labels

    def shown() -> Iterator[pa.RecordBatch]:
        for batch in _batches(payload, context):
            decision = batch.column("decision")
            yield batch if decision.null_count else batch.filter(pc.fill_null(decision, False))

    (place / "labels").mkdir()
    write_labels(shown(), place / "labels")


def _clips(payload: dict[str, Any], context: Context, place: Path) -> None:
    from swsdist.audio.clips import write_clip

    (place / "clips").mkdir()
    folder = Folder(payload["store"][0], context.storage)
    store = Store(folder, require(folder, state_name(payload["store"][1])))
    for k, row in enumerate(best.rows(context.run, payload["scored"], payload["trials"], store, payload["clips"]), 1):
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{row['query_id']}-{row['doc_id']}")[:80]
        out = place / "clips" / f"{k:03d}-{safe}-{row['start']:.2f}.wav"
        try:
            write_clip(row["path"], row["start"], row["end"], out, channel=row["channel"], storage=context.storage)
        except AudioError as error:
            raise UserError(
                f"a recording has changed since it was indexed: {error.message}",
                where=row["path"],
                remedy="index again, or leave clips out of report.exports",
            ) from None
