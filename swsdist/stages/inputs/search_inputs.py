"""What stages know before the first of them: the corpus, the features, the store's state, and what is odd in them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config import Config
from swsdist.core.codes import stages as codes
from swsdist.features.interface import frame_shift
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.methods.dtw.backends.create import missing
from swsdist.pipeline.chain import ChainInputs
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import BACKENDS
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.trials.excerpts import seconds as excerpt_seconds
from swsdist.stages.inputs.corpus import Corpus
from swsdist.stages.inputs.corpus_documents import CorpusDocuments, corpus_documents_of
from swsdist.stages.inputs.cross_corpus import speakers_meet
from swsdist.stages.inputs.features import RunFeatures
from swsdist.stages.inputs.population import population_of, seconds_of_channel_1
from swsdist.stages.inputs.precomputed_features import add_items_of_examples
from swsdist.stages.inputs.recordings import document_seconds, identities
from swsdist.stages.inputs.references import depends_on_score, excerpts_of
from swsdist.stages.inputs.settings import scores_of
from swsdist.stages.inputs.state import StoreState
from swsdist.stages.inputs.validation import (
    MEASURED,
    check_scorable,
    note_durations,
    note_late_references,
    note_query_lengths,
    note_query_places,
    note_unknown_speakers,
    note_unread,
    seconds_of,
)

if TYPE_CHECKING:
    from swsdist.pipeline.chain_run import ChainRun


class CorpusInputs(ChainInputs):
    """What stages that score need of a chain: its corpus, and the state of the store that was searched.

    Attributes:
        features: that the store is to hold.
        store: where it is, and what it holds of them.
        notices: what is odd in the tables.
        demands: what steps of its plans ask of the documents.
        folds: of queries, by which steps of its plans are crossfit.
        files: by name: what reads the calibration that a plan of it names.
    """

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self.config, self.ledger = config, ledger
        self.notices = Notices(config.strict, config.force)
        self.features = RunFeatures(config, Folder(config.store, config.storage))
        self.store = StoreState(config, self.features, ledger)
        self.document_checks: set[Callable[[pa.Table], None]] = set()
        self.folds: set[int] = set()
        self.files: dict[str, Callable[[], object]] = {}
        self._looked: set[str] = set()
        self._population: tuple[str, pa.Table] | None = None  # with the state of the store that it is of

    @cached_property
    def corpus(self) -> Corpus:
        """Its tables."""
        return Corpus(self.config, self.notices, self.from_audio)

    @property
    def from_audio(self) -> bool:
        """Whether recordings are needed."""
        return self.features.from_audio

    @property
    def population(self) -> pa.Table:
        """All documents of the corpus, those that were rejected too: POPULATION."""
        state = self.store.manifest.fingerprint if self.store.manifest is not None else ""
        if self._population is None or self._population[0] != state:
            store = self.store.open() if self.store.manifest is not None else None
            self._population = state, population_of(self.corpus.documents, store)
        return self._population[1]

    @property
    def seconds(self) -> float:
        """Seconds of audio, as the protocol counts them; see `seconds_of_channel_1`."""
        excerpts = excerpts_of(self.config) if self.corpus.placed else None
        if excerpts is not None:
            return excerpt_seconds(excerpts, protocol_of(self.config.score).rules)
        return seconds_of_channel_1(self.population)

    @property
    def hours(self) -> float:
        """Hours of audio, as far as the corpus table or the store tells."""
        if self.store.manifest is not None:
            return float(self.store.manifest.counts["seconds"]) / 3600
        return float(sum(value or 0.0 for value in self.corpus.documents["duration"].to_pylist())) / 3600

    @property
    def state(self) -> dict[str, str]:
        """Where the store is, and its state."""
        manifest = self.store.manifest
        return {"store": self.store.folder.root, "manifest": "" if manifest is None else manifest.fingerprint}

    def recall(self, state: Mapping[str, str]) -> None:
        """Take the store in the state that a plan had."""
        self.store.recall(state.get("manifest", ""))

    def check_scorable(self) -> None:
        """Refuse references of which too few are of what is searched."""
        if (known := self.corpus.references) is not None and known.num_rows:
            check_scorable(self.corpus.documents, self.config.corpus.documents, known, self.folds)

    def is_first(self, what: str) -> bool:
        """Whether nobody has asked this before: each thing that is odd is told once."""
        first = what not in self._looked
        self._looked.add(what)
        return first

    def searches(self, chain_run: ChainRun) -> list[ChainRun]:
        """The plans that searched what a plan of this chain shows: itself."""
        return [chain_run]

    def scores(self) -> dict[str, str]:
        """What scores depend on besides the corpus: plain text by key."""
        return scores_of(self.config)

    def check_tables(self) -> None:
        """Tell of what does not fit together in the tables that were read, as far as they say how long documents are; once.

        Raises:
            DataError: there is something to be told, and warnings are errors.
        """
        corpus, storage = self.config.corpus, self.config.storage
        read = {name for name in ("queries", "references") if self.corpus.has_read(name) and self.is_first(name)}
        if "queries" in read and corpus.queries is not None:
            if speakers_meet(self.config):
                note_unknown_speakers(self.corpus.documents, self.corpus.queries, corpus.queries, self.notices)
            note_query_places(
                self.corpus.documents, self.corpus.queries, self.corpus.own_places, corpus.queries, self.notices
            )
        told = self.corpus.tabled and not self.corpus.placed
        if "references" in read and told and corpus.references is not None and self.corpus.references is not None:
            known = seconds_of(self.corpus.documents, self.corpus.references["doc_id"])
            note_late_references(self.corpus.references, known, corpus.references, storage, self.notices)

    def check_measured(self, spoken: Mapping[tuple[str, int], float], *, force: bool = True) -> Notices:
        """The same with the durations that were measured.

        Args:
            spoken: seconds of each query example that was searched.
            force: note what is implausible, too.

        Raises:
            ImplausibleError: something is, and it is not to be noted.
        """
        corpus, storage, found = self.config.corpus, self.config.storage, Notices(force=force)
        if self.store.manifest is None:
            return found
        measured = self.store.open().documents(columns=MEASURED.names)
        note_durations(self.corpus.documents, measured, corpus.documents, storage, found)
        if corpus.queries is not None and self.corpus.has_read("queries"):
            note_query_lengths(spoken, pc.max(measured["duration"]).as_py() or 0.0, corpus.queries, found)
        if self.corpus.has_read("references") and self.corpus.references is not None:
            note_unread(self.population, corpus.documents, found)
        told = self.corpus.tabled and not self.corpus.placed
        if (
            told
            and corpus.references is not None
            and self.corpus.has_read("references")
            and self.corpus.references is not None
        ):
            meant = self.corpus.references["doc_id"]
            known = seconds_of(self.corpus.documents, meant)  # told already
            rest = {key: seconds for key, seconds in seconds_of(measured, meant).items() if key not in known}
            note_late_references(self.corpus.references, rest, corpus.references, storage, found)
        return found


class SearchInputs(CorpusInputs):
    """And what those need that index and search. Plans of one ledger that agree on what is said here share it."""

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> SearchInputs:
        """Those of a config, shared where they are the same."""
        values = config.model_dump(
            mode="json", include={"run", "corpus", "features", "index", "storage", "strict", "force"}
        )
        values |= {"store": config.store, "trials": protocol_of(config.score).trials}
        if depends_on_score(config):
            values["score"] = config.score.model_dump(mode="json")
        return ledger.memoize(("search", json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    @cached_property
    def corpus_documents(self) -> CorpusDocuments:
        """The corpus by key. `identities` of a row are what its frames come from, by extractor (fingerprint): the identity of
        its recording (and place in it), or of its given frames, whose places then are in `items`.
        """
        where = ["recording", "start", "end", "listed"] if self.corpus.placed else []
        table = self.corpus.documents.select(["doc_id", "channel", "path", "speaker", "duration", *where])
        return corpus_documents_of(table, self.features.sources, self.config.storage)

    @cached_property
    def query_inputs(self) -> SearchInputs | None:
        """Of the corpus that the queries are from, where it is another one."""
        corpus = self.corpus.query_inputs
        if corpus is None:
            return None
        made = SearchInputs(corpus.config, self.ledger)
        made.notices, made.corpus = self.notices, corpus
        return made

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """Rows of the queries, each with the identity of its file; and with `given` and `items`, where frames are given."""
        return self.with_identities(self.corpus.queries)

    def with_identities(self, queries: pa.Table) -> list[dict[str, Any]]:
        """The same of any QUERIES."""
        rows = queries.to_pylist()
        paths = [row["path"] for row in rows if row["path"] is not None] if self.from_audio else []
        found = dict(zip(paths, identities(paths, self.config.storage), strict=True))
        rows = [{**row, "identity": found.get(row["path"], "text" if self.from_audio else "")} for row in rows]
        add_items_of_examples(rows, self.features.sources, self.corpus_documents, self.config.storage)
        return rows

    def models_were_fitted(self) -> None:
        """Extractors are made with them when they are next asked for."""
        self.features = RunFeatures(self.config, self.store.folder)
        self.store.features = self.features
        for name in ("corpus_documents", "examples", "query_inputs"):
            vars(self).pop(name, None)

    def expected_cells(self) -> float:
        """Query frames times document frames, from durations."""
        storage = self.config.storage
        documents = self.corpus_documents.seconds(np.arange(len(self.corpus_documents)), storage)
        queries = self.examples
        whole = [row for row in queries if row["start"] is None or row["end"] is None]
        cut = sum(row["end"] - row["start"] for row in queries if row["start"] is not None and row["end"] is not None)
        cut += sum(document_seconds([{**row, "duration": None} for row in whole], storage))
        shift = frame_shift(self.features.sources[0].extractor)
        return float(cut / shift * sum(documents) / shift)

    def read(self, steps: frozenset[str]) -> None:
        """Read the tables that these steps need."""
        corpus = self.corpus
        if corpus.documents.num_rows and "queries" in steps and corpus.queries.num_rows and "align.train" in steps:
            self.check_scorable()
        if "queries.cohort" in steps:
            _ = corpus.cohort
        for read in self.files.values() if "fit" in steps else ():
            read()
        if "search" in steps:
            self.config.search.placed(self.features.tracks)
            self.demand_marks()
            self.demand_gpu()
            for check in self.document_checks:
                check(corpus.documents)
        self.check_tables()

    def demand_gpu(self) -> None:
        """Refuse to search on a GPU where this machine searches, and has none.

        Raises:
            UserError: it has none.
        """
        executor = self.config.executor
        here = executor.kind == "serial" or not (executor.address or os.environ.get("RAY_ADDRESS"))
        if here and BACKENDS[self.config.search.backend].gpu and (error := missing()):
            raise error

    def demand_marks(self) -> None:
        """Refuse to leave out silence where nobody hears it.

        Raises:
            UserError: no track is made of audio.
        """
        if self.config.search.skip_silence and not self.from_audio:
            raise codes.SILENCE_UNKNOWN(where="search.skip_silence")
