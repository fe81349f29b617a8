"""Checks of a config's inputs for `swsdist check`, where a recogniser takes documents and spoken queries as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from swsdist.audio.probing import probe_all
from swsdist.chains.check import Checking, findings, lattice_store_finding
from swsdist.chains.words.inputs import WordInputs
from swsdist.core.errors import AudioError, TermError
from swsdist.lattices.recognition import Recogniser
from swsdist.lattices.terms import TermReader
from swsdist.pipeline.finding import Finding


def check(inputs: WordInputs) -> Iterator[Finding]:
    """As `swsdist.chains.check.check`."""
    yield from findings(inputs, _Checking(inputs))


class _Checking(Checking):
    def __init__(self, inputs: WordInputs) -> None:
        super().__init__(inputs)
        self._words = inputs

    def parts(self) -> Iterator[tuple[str, Callable[[], Iterator[Finding]]]]:
        """Those of a search, with a recogniser in place of features."""
        for name, look in super().parts():
            if name == "features":
                yield "recogniser", self._recogniser
            elif name != "cohort":
                yield name, look

    def _recogniser(self) -> Iterator[Finding]:
        options = self._words.options.recogniser
        *_, version = options.identities()
        Recogniser(options)
        yield Finding("recogniser", True, f"pocketsphinx {version}")

    def _queries(self) -> Iterator[Finding]:
        options, storage = self._words.options, self._words.config.storage
        reader = TermReader(options.terms, options.recipe, storage)
        table = self._words.corpus.queries.to_pylist()
        headers = probe_all(dict.fromkeys(row["path"] for row in table if row["path"] is not None), storage)
        bad: list[str] = []
        for row in table:
            if row["path"] is not None:
                info = headers[row["path"]]
                bad += [str(info)] if isinstance(info, AudioError) else []
                continue
            try:
                reader.alternatives(row["term"] or "")
            except TermError as error:
                bad.append(f"{row['query_id']}: {error}")
        spoken = sum(row["path"] is not None for row in table)
        yield Finding("queries", len(bad) < len(table), f"{len(table) - spoken} written ones, {spoken} spoken examples")
        if bad:
            first = bad[0].replace("\n  remedy:", "; remedy:")
            yield Finding("queries", None, f"{len(bad)} cannot be searched and will be rejected; the first: {first}")

    def _store(self) -> Iterator[Finding]:
        yield lattice_store_finding(self._words.store.folder)
