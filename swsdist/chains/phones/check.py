"""Checks of a config's inputs for `swsdist check`, where frames are decoded: the decoder, and phones of written queries."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.chains.check import Checking, findings, lattice_store_finding, rejection_finding
from swsdist.chains.phones.decode_queries import term_reader
from swsdist.chains.phones.inputs import PhoneInputs
from swsdist.core.codes import store as codes
from swsdist.core.errors import TermError
from swsdist.features.interface import kind_of
from swsdist.lattices.decoding import Columns, FrameDecoder
from swsdist.pipeline.finding import Finding


def check(inputs: PhoneInputs) -> Iterator[Finding]:
    """As `swsdist.chains.check.check`."""
    yield from findings(inputs, _Checking(inputs))


class _Checking(Checking):
    def __init__(self, inputs: PhoneInputs) -> None:
        super().__init__(inputs)
        self._phones = inputs

    def _columns(self) -> Columns:
        decoding, sources = self._phones.options.decoding, self._phones.features.sources
        tracks = {track.name: (source, track) for source in sources for track in source.tracks}
        name = next(iter(tracks)) if decoding.track is None else decoding.track
        if name not in tracks:
            raise codes.NO_SUCH_STORE_TRACK(where="features", track=name, tracks=", ".join(tracks))
        source, track = tracks[name]
        return Columns(source.columns(track), kind_of(source.extractor))

    def _queries(self) -> Iterator[Finding]:
        yield from super()._queries()
        rows = self._phones.corpus.queries.to_pylist()
        texts = [row for row in rows if row["path"] is None]
        if not texts:
            return
        options = self._phones.options
        reader = term_reader(options.terms, options.decoding, self._columns(), self._storage)
        bad: list[tuple[str, TermError]] = []
        for row in texts:
            try:
                reader.alternatives(row["term"] or "")
            except TermError as error:
                bad.append((row["query_id"], error))
        yield from rejection_finding("queries", bad, len(rows), "queries")

    def _features(self) -> Iterator[Finding]:
        yield from super()._features()
        FrameDecoder(self._phones.options.decoding, self._columns(), self._storage)  # reports mistakes

    def _store(self) -> Iterator[Finding]:
        yield from Checking(self._phones.frames)._store()
        yield lattice_store_finding(self._phones.store.folder)
