"""k-means over the frames of a store: a chain with rounds.

A round has a task a shard, which adds up the frames nearest to each centre, then one that makes the next centres. Frames are
whole numbers of 2^-10 and sums are integers, so any cut into shards gives the same model. When no centre moves any more the
model is pinned in the store: documents that come later do not change it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveInt

from swsdist.config import Config
from swsdist.core.fingerprint import fingerprint
from swsdist.pipeline.chain import Chain, Context, Inputs, Stage, Step, Table
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registry import Entry
from swsdist.stages.index import Index
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store.manifest import pin
from swsdist.store.reading import Store

#: A coordinate is a whole number of 1 / ONE.
ONE = 1 << 10


class Options(BaseModel):
    """Of the chain.

    Attributes:
        centres: how many.
        most_rounds: after so many the centres are taken as they are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    centres: PositiveInt = 4
    most_rounds: PositiveInt = 20


class Summed(NamedTuple):
    """Of a shard: for each centre the sum of its frames, int, and how many they are."""

    sums: list[list[int]]
    counts: list[int]


class Moved(NamedTuple):
    """Centres after a round, int, and whether one of them is another than before."""

    centres: list[list[int]]
    moved: bool


class Summing(NamedTuple):
    """The payload of a task of an even round: centres, a shard, and the state of the store."""

    centres: list[list[int]]
    shard: str
    store: tuple[str, str]


class Dividing(NamedTuple):
    """The payload of the task of an odd round: the centres before, and the sums of each shard."""

    before: list[list[int]]
    parts: list[Summed]


def pin_of(inputs: Inputs) -> tuple[str, str | None]:
    """Name under which the model of this recipe is pinned in the store, and its file."""
    own = inputs.chain_inputs(SearchInputs)
    name = f"kmeans.{fingerprint(Fit.version, own.features.sources[0].fingerprint, inputs.config.options)}"
    return name, own.store.manifest.models.get(name) if own.store.manifest is not None else None


class Fit(Stage[Summing | Dividing]):
    """Rounds of sums and centres, until nothing moves; none where a model is pinned."""

    name = "proof-kmeans"
    version = 1
    unit = "frames"
    phase = "train"
    takes = {"frames": "features"}
    rounds = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Summing | Dividing]]:
        """A task a shard in even rounds, one in odd ones."""
        own, options = inputs.chain_inputs(SearchInputs), Options(**inputs.config.options)
        if pin_of(inputs)[1] is not None and not inputs.redo:
            return
        store, done = own.store.open(), inputs.outcome.receipts
        if inputs.round % 2:
            last = [item.result_as(Summed) for item in done if "sums" in item.result][-len(store.manifest.shards) :]
            before = self._centres(inputs, options, store)
            label = f"round {inputs.round // 2 + 1}: centres"
            yield inputs.task(before, last, label=label, work=1, payload=Dividing(before, last))
            return
        if done and (not done[-1].result_as(Moved).moved or inputs.round // 2 >= options.most_rounds):
            return
        centres = self._centres(inputs, options, store)
        for shard in store.manifest.shards:
            payload = Summing(centres, shard.name, own.store.state)
            live = sorted(store.live(shard.name))
            label = f"round {inputs.round // 2 + 1}: {shard.documents} documents"
            yield inputs.task(centres, shard.name, live, label=label, work=shard.frames, payload=payload)

    def _centres(self, inputs: Inputs, options: Options, store: Store) -> list[list[int]]:
        """Of the round before; at first the collection's mean, moved by parts of its deviation."""
        known = [receipt.result_as(Moved) for receipt in inputs.outcome.receipts if "moved" in receipt.result]
        if known:
            return known[-1].centres
        whole = store.statistics()["collection", ""]
        away = (np.arange(options.centres) - (options.centres - 1) / 2)[:, None] * np.sqrt(whole.variance)
        first: list[list[int]] = np.rint((whole.mean + away / options.centres) * ONE).astype(np.int64).tolist()
        return first

    def run(self, task: Task[Summing | Dividing], context: Context) -> TaskOutput:
        """Add up, or divide."""
        payload = task.payload
        if isinstance(payload, Dividing):
            return self._divide(*payload)
        store = Store.at(*payload.store, storage=context.storage)
        centres = np.array(payload.centres, np.int64)
        sums, counts = np.zeros_like(centres), np.zeros(len(centres), np.int64)
        for block in store.blocks(payload.shard):
            frames = np.rint(block.features.astype(np.float64) * ONE).astype(np.int64)
            nearest = _nearest(frames, centres)
            np.add.at(sums, nearest, frames)
            counts += np.bincount(nearest, minlength=len(centres))
        return TaskOutput((), Summed(sums.tolist(), counts.tolist()))

    def _divide(self, before: list[list[int]], parts: list[Summed]) -> TaskOutput:
        centres = []
        for k, old in enumerate(before):
            count = sum(part.counts[k] for part in parts)
            total = [sum(column) for column in zip(*(part.sums[k] for part in parts), strict=True)]
            # To the nearest whole number, in integers; a centre without frames stays.
            centres.append([(2 * value + count) // (2 * count) for value in total] if count else old)
        return TaskOutput((), Moved(centres, centres != before))

    def finish(self, inputs: Inputs) -> None:
        """Pin the model, once it stands."""
        own, known = (
            inputs.chain_inputs(SearchInputs),
            [receipt.result_as(Moved) for receipt in inputs.outcome.receipts if "moved" in receipt.result],
        )
        if known and not inputs.outcome.failures:
            name = f"models/kmeans-{fingerprint(known[-1].centres)}.json"
            own.store.folder.write_bytes(name, json.dumps(known[-1].centres).encode())
            own.store.manifest = pin(own.store.folder, own.store.open().manifest, {pin_of(inputs)[0]: name})


def _nearest(frames: NDArray[np.int64], centres: NDArray[np.int64]) -> NDArray[np.int64]:
    distance = ((frames[:, None, :] - centres[None]) ** 2).sum(axis=2)
    return np.asarray(distance.argmin(axis=1))


class Model(Stage[str]):
    """The pinned model as a table of the run, so that it is digested."""

    name = "proof-model"
    version = 1
    unit = "models"
    tables = {"model": Table(None, None)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task[str]]:
        """One task; its payload is the model."""
        name, file = pin_of(inputs)
        assert file is not None  # fit has come to its end
        data = inputs.chain_inputs(SearchInputs).store.folder.read_bytes(file).decode()
        yield inputs.task(data, label=name, work=1, payload=data)

    def run(self, task: Task[str], context: Context) -> TaskOutput:
        """Write it down."""
        return TaskOutput((context.write(task, "model", task.payload.encode()),))


#: How the chain is registered.
CHAIN = Entry(f"{__name__}:build", 1)


def build(config: Config, ledger: Ledger) -> Chain:
    """Index, fit, model."""
    Options(**config.options)
    return Chain("kmeans", (Index(), Step("fit", Fit()), Step("model", Model())), SearchInputs.of(config, ledger))
