"""Checks of a config's inputs for `swsdist check`, where documents are lattices or transcripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from swsdist.chains.check import Checking, findings, lattice_store_finding
from swsdist.chains.text.inputs import TextInputs
from swsdist.core.errors import TermError
from swsdist.lattices.terms import TermReader
from swsdist.pipeline.finding import Finding


def check(inputs: TextInputs) -> Iterator[Finding]:
    """As `swsdist.chains.check.check`."""
    yield from findings(inputs, _Checking(inputs))


class _Checking(Checking):
    _OF_FRAMES: ClassVar = ("features", "cohort")

    def __init__(self, inputs: TextInputs) -> None:
        super().__init__(inputs)
        self._text_inputs = inputs

    def parts(self) -> Iterator[tuple[str, Callable[[], Iterator[Finding]]]]:
        """Those of a search, without features."""
        yield from (part for part in super().parts() if part[0] not in self._OF_FRAMES)

    def _documents(self) -> Iterator[Finding]:
        source, table = self._text_inputs.lattices, self._text_inputs.corpus.documents
        rows = table.select(["doc_id", "channel", "duration"]).to_pylist()
        self._seconds = {(r["doc_id"], r["channel"]): r["duration"] for r in rows if r["duration"] is not None}
        unread = len(rows) - len(self._seconds)
        text = f"{len(rows)}, {sum(self._seconds.values()) / 3600:.4g} h; {len(source.files)} files of lattices or transcripts"
        yield Finding("documents", True, text)
        if unread:
            first = next(r["doc_id"] for r in rows if r["duration"] is None)
            yield Finding("documents", None, f"{unread} have no duration or cannot be read; the first: {first}")

    def _queries(self) -> Iterator[Finding]:
        options, table = self._text_inputs.lattices.options, self._text_inputs.corpus.queries
        reader = TermReader(options.terms, options.recipe, self._text_inputs.config.storage)
        texts = sorted({(row["query_id"], row["term"]) for row in table.to_pylist() if row["term"]})
        spoken = set(table["query_id"].to_pylist()) - {query_id for query_id, _ in texts}
        bad: list[str] = []
        for query_id, text in texts:
            try:
                reader.alternatives(text)
            except TermError as error:
                bad.append(f"{query_id}: {error}".replace("\n  remedy:", "; remedy:"))
        counted = f"{len(texts)} written ones" + (f"; {len(spoken)} have no text" if spoken else "")
        yield Finding("queries", len(bad) < len(texts), counted)
        if bad:
            yield Finding("queries", None, f"{len(bad)} cannot be searched and will be rejected; the first: {bad[0]}")

    def _store(self) -> Iterator[Finding]:
        yield lattice_store_finding(self._text_inputs.store.folder)
