"""decode turns frames of documents into shards of a store of phone lattices, a task per shard of frames."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.chains.phones.inputs import PhoneInputs
from swsdist.core.fingerprint import fingerprint
from swsdist.io.remote.scratch import scratch
from swsdist.lattices.decoding import Columns, Decoding, FrameDecoder
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.lattice_store import (
    LATTICE_TABLES,
    LatticeRow,
    commit_lattices,
    digests_of,
    take_up,
    write_lattices,
)
from swsdist.store.reading import Block, Store, pieces_of

#: Frames of a document that are held in memory; of longer ones they are put into a temporary file.
_HELD = 1 << 16


class Decoded(NamedTuple):
    """The payload of a task: a shard of frames, and how it is decoded."""

    store: tuple[str, str]
    shard: str
    track: str
    decoding: Decoding


class Decode(Stage[Decoded]):
    """Phone lattices of documents; a document's depends on its frames only."""

    name = "decode"
    version = 2
    unit = "s"
    phase = "index"
    with_hours = "more"
    with_queries = "same"
    takes = {"shards": "features"}
    all_or_nothing = True
    tables = LATTICE_TABLES

    def place(self, inputs: Inputs) -> str:
        """The store of lattices."""
        return inputs.chain_inputs(PhoneInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Decoded]]:
        """A task per shard."""
        chain_inputs = inputs.chain_inputs(PhoneInputs)
        decoding, store = chain_inputs.options.decoding, chain_inputs.frames.store.open()
        take_up(chain_inputs.store)
        track = store.manifest.track(decoding.track)
        identities = decoding.identities(inputs.config.storage)
        FrameDecoder(decoding, Columns(track.columns, track.kind), inputs.config.storage)  # reports mistakes
        for shard in store.manifest.shards:
            if track.name not in shard.files:
                continue
            live = fingerprint(sorted(store.live(shard.name, track.name)))
            payload = Decoded(chain_inputs.frames.store.state, shard.name, track.name, decoding)
            matters = identities, track.fingerprint, shard.files[track.name].sha256, live
            seconds = shard.frames * store.manifest.shift
            label = f"{shard.documents} documents"
            yield inputs.task(*matters, label=label, work=seconds, payload=payload)

    def warm(self, task: Task[Decoded], context: Context) -> None:
        """Load the compiled kernels."""
        from swsdist.lattices import phone_loop  # noqa: F401

    def run(self, task: Task[Decoded], context: Context) -> TaskOutput:
        """Decode the documents of a shard."""
        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        track = store.manifest.track(payload.track)
        decoder = FrameDecoder(payload.decoding, Columns(track.columns, track.kind), context.storage)
        shift = store.manifest.shift
        known = {
            (row["doc_id"], row["channel"]): row
            for row in store.documents(
                payload.shard, ["doc_id", "channel", "path", "identity"], payload.track
            ).to_pylist()
        }

        def rows() -> Iterator[LatticeRow]:
            done = 0.0
            for blocks in pieces_of(store.blocks(payload.shard, track=payload.track)):
                document = _Frames(blocks)
                row = known[document.doc_id, document.channel]
                with document:
                    packed = decoder.lattice(document.read, document.frames, shift)
                done += document.frames * shift
                context.report(done / max(task.work, 1e-3))
                yield LatticeRow(document.doc_id, document.channel, row["path"], row["identity"], packed)

        return write_lattices(task, context, rows())

    def finish(self, inputs: Inputs) -> None:
        """Commit the store of lattices if it changed."""
        chain_inputs = inputs.chain_inputs(PhoneInputs)
        decoding = chain_inputs.options.decoding
        recipe: dict[str, object] = {
            "name": self.name,
            "version": self.version,
            "options": {"spelling": "exact", "fillers": list(decoding.non_speech)},
            "decoding": decoding.model_dump(mode="json"),
        }
        frames = chain_inputs.frames.store.open()
        columns = ["doc_id", "channel", "path", "duration", "speaker", "recording", "start"]
        documents = frames.documents(columns=columns)
        refused = [{**row, "identity": ""} for row in frames.rejected().drop_columns(["identity"]).to_pylist()]
        where = chain_inputs.frames.store.folder.path()
        commit_lattices(inputs, chain_inputs.store, recipe, documents.to_pylist(), refused, where)

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digest of the lattices, document by document."""
        return digests_of(inputs.chain_inputs(PhoneInputs).store, "lattices")


class _Frames:
    """The frames of a document, in memory or, of a long one, in a temporary file."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self.frames = 0
        self._parts: list[NDArray[np.float32]] = []
        self._file: Any = None
        for block in blocks:
            self.doc_id, self.channel, self._width = block.doc_id, block.channel, block.features.shape[1]
            self._parts.append(block.features)
            self.frames += len(block.features)
            if sum(map(len, self._parts)) >= _HELD:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(dir=scratch())  # noqa: SIM115 (closed by __exit__)
                self._spill()
        if self._file is not None:
            self._spill()
        else:
            self._parts = [np.concatenate(self._parts)]

    def _spill(self) -> None:
        for part in self._parts:
            self._file.write(part.tobytes())
        self._parts = []

    def read(self, first: int, stop: int) -> NDArray[np.float32]:
        """Frames of a range."""
        if self._file is None:
            return self._parts[0][first:stop]
        self._file.seek(first * self._width * 4)
        data = self._file.read((stop - first) * self._width * 4)
        return np.frombuffer(data, np.float32).reshape(-1, self._width)

    def __enter__(self) -> _Frames:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
