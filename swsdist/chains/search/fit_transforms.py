"""fit-transforms: documents -> models of extractors and transforms that are fitted (PCA), pinned in the store.

It stands in front of index where a config has such a one. Documents are chosen by a hash of their names, up to so many
hours. A first round adds up their frames, a second the products of their columns, and a third makes the model. Sums are of
integers, so any cut into tasks gives the same model. A model that the store has is used, for
documents that come later too.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.commands import are_permitted, permitted
from swsdist.chains.search.given import row_for
from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.pending import Pending
from swsdist.chains.search.recordings import Row, document_seconds
from swsdist.config import Config
from swsdist.errors import AudioError, DataError
from swsdist.features.interface import Extractor, Given, use
from swsdist.features.sources import needs_of_all, planned
from swsdist.features.transforms.fitted import Fitted, Sums, moments, products
from swsdist.io.filesystem import Folder
from swsdist.needs import Needs
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Part, Receipt, Task
from swsdist.registries import FEATURES, TRANSFORMS
from swsdist.store import parquet
from swsdist.store.writing import whole_recording

#: Seconds of documents a task.
_TASK_SECONDS = 300.0


class Summed(NamedTuple):
    """Sums of a model's documents (`Sums`)."""

    model: str
    frames: int
    sums: list[int]
    squares: list[int]


class Multiplied(NamedTuple):
    """Products of a model's documents, which are in a file, are of so many frames."""

    model: str
    multiplied: int


class Solved(NamedTuple):
    """A model that was made."""

    model: str


class FitTransforms(Stage):
    """Three rounds for the models that the store does not have; first those of extractors, then those of transforms."""

    name = "fit-transforms"
    version = 1
    unit = "s"
    rounds = True
    # The model's content is in the fingerprint of all frames that are made with it.
    tables = {"products": Table(None, None, digested=False), "model": Table(None, None, digested=False)}

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """What suffices for each of the extractors."""
        return needs_of_all(config.features)

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.own(SearchInputs).store.root

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """Of each model: tasks for some minutes of documents in two rounds, and one in the third; extractors' models first."""
        own, done = inputs.own(SearchInputs), inputs.mine.receipts
        left = [one for one in own.pending(anew=inputs.redo) if not any(each.parts("model") for each in _of(done, one))]
        for one in [one for one in left if one.of_extractor] or left:
            told = {key for each in _of(done, one) for key in each.told}
            if "multiplied" in told:
                yield self._solving(inputs, one)
                continue
            known: Row = {}
            if "sums" in told:
                mean, deviation = _summed(done, one).mean_and_deviation()
                known = {"mean": mean.tolist(), "deviation": deviation.tolist()}
            for rows, seconds in _chosen(own, one.transform.hours):
                payload = {"model": one.file, "features": one.payload, "documents": rows, **known}
                payload["commands"] = are_permitted()
                what = "products" if known else "sums"
                label = f"{what} of {one.track}: {len(rows)} documents"
                matters = [[row["path"], row["identity"], row["channel"]] for row in rows]
                yield inputs.task(one.file, matters, known, label=label, work=seconds, payload=payload)

    def _solving(self, inputs: Inputs, one: Pending) -> Task:
        done = inputs.mine.receipts
        mean, deviation = _summed(done, one).mean_and_deviation()
        made = [each for each in _of(done, one) if "multiplied" in each.told]
        payload = {
            "model": one.file,
            "frames": sum(each.tells(Multiplied).multiplied for each in made),
            "parts": [part.name for each in made for part in each.parts("products")],
            "mean": mean.tolist(),
            "deviation": deviation.tolist(),
            "transform": [one.of_extractor, one.transform.name, one.options],
        }
        return inputs.task(one.file, payload["parts"], label=f"model of {one.track}", work=1, payload=payload)

    def run(self, task: Task, context: Context) -> Done:
        """Add up, multiply, or solve."""
        payload = task.payload
        if "parts" in payload:
            return self._solve(task, context)
        with permitted(payload["commands"]):
            return self._add_up(task, context)

    def _add_up(self, task: Task, context: Context) -> Done:
        payload, extractor = task.payload, planned(**task.payload["features"])
        use(extractor, context.granted)
        if "mean" not in payload:
            total = Sums(0, [0] * extractor.dimension, [0] * extractor.dimension)
            for blocks in _documents(payload["documents"], extractor, context):
                total = total + Sums.of(blocks, extractor.dimension)
            return Done((), Summed(payload["model"], *total))
        mean, deviation = np.array(payload["mean"]), np.array(payload["deviation"])
        whole, frames = np.zeros((len(mean), len(mean)), np.int64), 0
        for blocks in _documents(payload["documents"], extractor, context):
            whole += products(blocks, mean, deviation)
            frames += sum(map(len, blocks))
        out = io.BytesIO()
        np.save(out, whole, allow_pickle=False)
        part = context.write(task, "products", out.getvalue(), ".npy", "models/")
        return Done((part,), Multiplied(payload["model"], frames))

    def _solve(self, task: Task, context: Context) -> Done:
        from threadpoolctl import threadpool_limits

        payload, folder = task.payload, context.folder(task)
        of_extractor, name, options = payload["transform"]
        transform: Fitted = (FEATURES if of_extractor else TRANSFORMS)[name].load()(**options)
        parts = [np.load(io.BytesIO(folder.read_bytes(part)), allow_pickle=False) for part in payload["parts"]]
        total = np.add.reduce(np.stack(parts), axis=0)
        mean, deviation = np.array(payload["mean"]), np.array(payload["deviation"])
        with threadpool_limits(limits=1):  # in several threads LAPACK rounds differently
            model = transform.solve(moments(payload["frames"], total, mean, deviation))
        with folder.temporary(".npz") as path:
            model.save(Folder(str(path.parent)), path.name)
            output = parquet.describe(path, payload["model"])
            folder.publish(path, payload["model"])
        return Done((Part("model", *output),), Solved(payload["model"]))

    def finish(self, inputs: Inputs) -> None:
        """From here on transforms are those of their models."""
        inputs.own(SearchInputs).forget_sources()


def _of(receipts: list[Receipt], one: Pending) -> list[Receipt]:
    """Those of a model."""
    return [each for each in receipts if each.told.get("model") == one.file]


def _summed(receipts: list[Receipt], one: Pending) -> Sums:
    """Of all documents of a model.

    Raises:
        DataError: there are no frames.
    """
    found = [each.tells(Summed) for each in _of(receipts, one) if "sums" in each.told]
    total = Sums(*found[0][1:]) if found else Sums(0, [], [])
    for each in found[1:]:
        total = total + Sums(*each[1:])
    if total.frames == 0:
        raise DataError(
            f"there are no frames that {one.transform.name} could be fitted on",
            where=f"features.transforms of {one.track}",
            remedy="look at the documents: swsdist check",
        )
    return total


def _documents(
    rows: list[dict[str, Any]], extractor: Extractor | Given, context: Context
) -> Iterator[list[NDArray[np.float32]]]:
    """Frames of each document that can be read; index tells of the others."""
    folder = Folder(".", context.storage)
    for row in rows:
        try:
            yield list(whole_recording(row, extractor, folder))
        except AudioError:
            continue


def _chosen(own: SearchInputs, hours: float) -> Iterator[tuple[list[Row], float]]:
    """Documents that are fitted on, in parts of some minutes, each with its seconds."""
    rows = in_random_order(own.wanted.values())
    lengths = document_seconds(rows, own.config.storage)
    source = next(source for source in own.sources if isinstance(source.extractor, Extractor))
    part: list[Row] = []
    seconds = total = 0.0
    for row, length in zip(rows, lengths, strict=True):
        if total >= hours * 3600:
            break
        part.append(row_for(source, row))
        seconds, total = seconds + length, total + length
        if seconds >= _TASK_SECONDS:
            yield part, seconds
            part, seconds = [], 0.0
    if part:
        yield part, seconds


def in_random_order(rows: Iterable[Row]) -> list[Row]:
    """Documents in an order that is told by a hash of their names."""
    return sorted(rows, key=lambda row: _order(row["doc_id"], row["channel"]))


def _order(doc_id: str, channel: int) -> bytes:
    return hashlib.blake2b(f"{doc_id}\0{channel}".encode(), digest_size=16).digest()
