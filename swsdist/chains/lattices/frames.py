"""Phone lattices of the frames of documents, and phones, or lattices of them, of spoken queries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.chains.lattices.options import Labeller, Part, Source, Speech
from swsdist.core.codes import lattices as codes
from swsdist.core.codes import storage as store_codes
from swsdist.core.fingerprint import fingerprint
from swsdist.features.interface import kind_of
from swsdist.io.remote.scratch import scratch
from swsdist.lattices.decoding import Columns, Decoding, FrameDecoder
from swsdist.lattices.terms import TermReader
from swsdist.methods.lattice.places import query_row
from swsdist.pipeline.chain import Context
from swsdist.registry.registries import METHODS
from swsdist.stages.inputs.corpus_documents import Row
from swsdist.stages.lattice_store import LatticeRow
from swsdist.store.manifest import Track
from swsdist.store.reading import Store, Tracks, pieces_of

#: Bytes of a document's frames that are held in memory; those of a longer one are put into a temporary file.
_HELD = 1 << 25


class FrameSource(Source):
    """A store of frames, whose posteriors of phones are decoded."""

    @property
    def _store(self) -> Store:
        assert self._frames is not None
        return self._frames.store.open()

    def parts(self) -> Iterator[Part]:
        """A task per shard."""
        assert self._frames is not None
        decoding, store, storage = self._options.decoding, self._store, self._config.storage
        track = store.manifest.track(decoding.track)
        FrameDecoder(decoding, _columns(track), storage)  # reports mistakes
        for shard in store.manifest.shards:
            if track.name not in shard.files:
                continue
            live = fingerprint(sorted(store.live(shard.name, track.name)))
            key_parts = decoding.identities(storage), track.fingerprint, shard.files[track.name].sha256, live
            frames = Frames(self._frames.store.state, shard.name, track.name, decoding)
            yield Part(key_parts, f"{shard.documents} documents", shard.frames * store.manifest.shift, frames)

    def documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Those of the store of frames."""
        columns = ["doc_id", "channel", "path", "duration", "speaker", "recording", "start"]
        refused = [{**row, "identity": ""} for row in self._store.rejected().drop_columns(["identity"]).to_pylist()]
        return self._store.documents(columns=columns).to_pylist(), refused

    def queries(self) -> list[Row]:
        """Written ones."""
        return [row for row in super().queries() if row["path"] is None]

    def speech(self) -> tuple[Speech, list[Any]]:
        """The decoder."""
        store, decoding = self._store, self._options.decoding
        track = store.manifest.track(decoding.track)
        lattices = METHODS[self._config.search.method].queries == "lattices"
        place = Tracks(store).places[track.name]
        speech = DecodedSpeech(decoding, _columns(track), place, store.manifest.shift, lattices)
        return speech, [track.name, *decoding.identities(self._config.storage)]

    def decoder(self) -> FrameDecoder:
        """A decoder of what the extractors make, for mistakes before there are frames.

        Raises:
            UserError: there is no such track, or it cannot be decoded.
        """
        assert self._frames is not None
        decoding, sources = self._options.decoding, self._frames.features.sources
        tracks = {track.name: (source, track) for source in sources for track in source.tracks}
        name = next(iter(tracks)) if decoding.track is None else decoding.track
        if name not in tracks:
            raise store_codes.NO_SUCH_STORE_TRACK(where="features", track=name, tracks=", ".join(tracks))
        source, track = tracks[name]
        columns = Columns(source.columns(track), kind_of(source.extractor))
        return FrameDecoder(decoding, columns, self._config.storage)

    def known(self) -> frozenset[str]:
        """The phones of the decoder."""
        return self.decoder().words


class Frames(NamedTuple):
    """A shard of frames, and how it is decoded."""

    store: tuple[str, str]
    shard: str
    track: str
    decoding: Decoding

    def warm(self, context: Context) -> None:
        """Load the compiled kernels."""

    def rows(self, work: float, context: Context) -> Iterator[LatticeRow]:
        """Decode."""
        store = Store.at(*self.store, storage=context.storage)
        track = store.manifest.track(self.track)
        decoder = FrameDecoder(self.decoding, _columns(track), context.storage)
        shift, done = store.manifest.shift, 0.0
        listed = store.documents(self.shard, ["doc_id", "channel", "path", "identity"], self.track).to_pylist()
        known = {(row["doc_id"], row["channel"]): row for row in listed}
        for blocks in pieces_of(store.blocks(self.shard, track=self.track)):
            with tempfile.SpooledTemporaryFile(_HELD, dir=str(scratch())) as file:
                frames = 0
                for block in blocks:
                    file.write(block.features.astype("<f4", copy=False).tobytes())
                    frames += len(block.features)
                packed = decoder.lattice(partial(_range, file, block.features.shape[1]), frames, shift)
            done += frames * shift
            context.report(done / max(work, 1e-3))
            row = known[block.doc_id, block.channel]
            yield LatticeRow(block.doc_id, block.channel, row["path"], row["identity"], packed)


class DecodedSpeech(NamedTuple):
    """The likeliest phones of a spoken query, or their lattice.

    Attributes:
        decoding, columns: of the track.
        place: first and last column of the track among all.
        shift: s between frames.
        lattices: whether the method takes lattices.
    """

    decoding: Decoding
    columns: Columns
    place: tuple[int, int]
    shift: float
    lattices: bool

    def labeller(self, context: Context) -> Labeller:
        """Decodes rows of EXAMPLES."""
        decoder = FrameDecoder(self.decoding, self.columns, context.storage)
        first, stop = self.place

        def labelled(example: Row, reader: TermReader) -> tuple[list[dict[str, Any]], float]:
            frames = np.frombuffer(example["features"], "<f4").reshape(example["frames"], -1)[:, first:stop]
            if self.lattices:
                packed = decoder.lattice(lambda begin, end: frames[begin:end], len(frames), self.shift)
                if (packed.labels > 0).any():
                    return [query_row(example["query_id"], example["example"], packed)], example["duration"]
            elif labels := decoder.string(frames):
                key = {"query_id": example["query_id"], "example": example["example"]}
                return [{**key, "labels": labels, "cost": 0.0, "patterns": False}], example["duration"]
            raise codes.NOTHING_RECOGNISED(where=example["query_id"])

        return labelled


def _range(file: IO[bytes], width: int, first: int, stop: int) -> NDArray[np.float32]:
    """Frames `first` to `stop` of a file of all."""
    file.seek(4 * width * first)
    return np.frombuffer(file.read(4 * width * (stop - first)), "<f4").reshape(-1, width)


def _columns(track: Track) -> Columns:
    return Columns(track.columns, track.kind)
