"""Inputs of the stages: the corpus, the features, the store's state, and their oddities."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config import Config
from swsdist.config.search import Search
from swsdist.core.codes import methods as kernels_codes
from swsdist.core.codes import stages as codes
from swsdist.features.interface import frame_shift
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.methods.dtw.backends.create import missing
from swsdist.methods.query.example import WORK
from swsdist.pipeline.chain import ChainInputs
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.registries import BACKENDS, DISTANCES, METHODS
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.trials import seconds as excerpt_seconds
from swsdist.stages.inputs.corpus import (
    Corpus,
    depends_on_score,
    excerpts_of,
    population_of,
    seconds_of_channel_1,
    speakers_meet,
)
from swsdist.stages.inputs.corpus_documents import (
    CorpusDocuments,
    corpus_documents_of,
    document_seconds,
    identities,
    scores_of,
)
from swsdist.stages.inputs.features import RunFeatures, add_items_of_examples
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
from swsdist.store.reading import Store, of_rows

if TYPE_CHECKING:
    from swsdist.pipeline.chain_run import ChainRun


class Among(NamedTuple):
    """Some documents of a store.

    Attributes:
        keys: `keys_of` these.
        sample: limit of the documents that statistics are over (`swsdist.methods.sample`); None: all.
    """

    keys: pa.Array
    sample: int | None


class CorpusInputs(ChainInputs):
    """Inputs of stages that score: the corpus, and the searched state of the store.

    Attributes:
        features: that the store is to hold.
        store: its folder, and its content of these features.
        notices: oddities in the tables.
        others: inputs of steps that have their own, by a name.
        document_checks: of its plans' steps on the documents.
        folds: folds of queries by which its plans' steps are crossfit.
        files: by name: reader of the calibration that a plan names.
        among: the documents that a question asks; None: all.
    """

    among: Among | None = None

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self.config, self.ledger = config, ledger
        self.notices = Notices(config.strict, config.force)
        self.features = RunFeatures(config, Folder(config.store, config.storage))
        self.store = StoreState(config, self.features, ledger)
        self.others: dict[str, CorpusInputs] = {}
        self.document_checks: set[Callable[[pa.Table], None]] = set()
        self.folds: set[int] = set()
        self.files: dict[str, Callable[[], object]] = {}
        self._looked: set[str] = set()
        self._population: tuple[str, pa.Table] | None = None  # with its state of the store
        self._digests: dict[tuple[tuple[str, str], tuple[str, ...]], str] = {}

    @cached_property
    def corpus(self) -> Corpus:
        """The tables of the corpus."""
        return Corpus(self.config, self.notices, self.from_audio)

    @property
    def from_audio(self) -> bool:
        """Whether recordings are needed."""
        return self.features.from_audio

    @property
    def population(self) -> pa.Table:
        """All documents of the corpus, including rejected ones: POPULATION."""
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
        """Hours of audio, if the corpus table or the store knows them."""
        if self.store.manifest is not None:
            return float(self.store.manifest.counts["seconds"]) / 3600
        return float(sum(value or 0.0 for value in self.corpus.documents["duration"].to_pylist())) / 3600

    @property
    def state(self) -> dict[str, str]:
        """Folders and states of the store, and of the others."""
        manifest = self.store.manifest
        others = {f"{name}-{key}": value for name, each in self.others.items() for key, value in each.state.items()}
        return {"store": self.store.folder.root, "manifest": "" if manifest is None else manifest.fingerprint, **others}

    def recall(self, state: Mapping[str, str]) -> None:
        """Return the stores to the states that a plan had."""
        self.store.recall(state.get("manifest", ""))
        for name, each in self.others.items():
            each.store.recall(state.get(f"{name}-manifest", ""))

    def documents_digest(self, columns: Sequence[str]) -> str:
        """Digest of some columns of the store's documents, independent of shards."""
        key = self.store.state, tuple(columns)
        if key not in self._digests:
            documents = self.store.open().documents(columns=list(columns))
            self._digests[key] = of_rows(documents.sort_by([("doc_id", "ascending"), ("channel", "ascending")]))
        return self._digests[key]

    def check_scorable(self) -> None:
        """Refuse references of which too few are in searched documents."""
        if (references := self.corpus.references) is not None and references.num_rows:
            check_scorable(self.corpus.documents, self.config.corpus.documents, references, self.folds)

    def is_first(self, what: str) -> bool:
        """Whether this is the first call with a name: each oddity is noted once."""
        first = what not in self._looked
        self._looked.add(what)
        return first

    def searches(self, chain_run: ChainRun) -> list[ChainRun]:
        """The searching plans behind a plan of this chain: the plan itself."""
        return [chain_run]

    def scores(self) -> dict[str, str]:
        """Settings other than the corpus that scores depend on: plain text by key."""
        return scores_of(self.config)

    def check_tables(self) -> None:
        """Note inconsistencies between the tables read, using the durations known so far; once.

        Raises:
            DataError: there is an inconsistency, and warnings are errors.
        """
        corpus, storage = self.config.corpus, self.config.storage
        read = {name for name in ("queries", "references") if self.corpus.has_read(name) and self.is_first(name)}
        if "queries" in read and corpus.queries is not None:
            if speakers_meet(self.config):
                note_unknown_speakers(self.corpus.documents, self.corpus.queries, corpus.queries, self.notices)
            note_query_places(
                self.corpus.documents, self.corpus.queries, self.corpus.own_places, corpus.queries, self.notices
            )
        has_own_times = self.corpus.tabled and not self.corpus.placed
        if (
            "references" in read
            and has_own_times
            and corpus.references is not None
            and self.corpus.references is not None
        ):
            durations = seconds_of(self.corpus.documents, self.corpus.references["doc_id"])
            note_late_references(self.corpus.references, durations, corpus.references, storage, self.notices)

    def check_measured(self, spoken: Mapping[tuple[str, int], float], *, force: bool = True) -> Notices:
        """`check_tables` with measured durations.

        Args:
            spoken: seconds of each searched query example.
            force: also note implausible values instead of raising.

        Raises:
            ImplausibleError: a value is implausible, and `force` is false.
        """
        corpus, storage, result = self.config.corpus, self.config.storage, Notices(force=force)
        if self.store.manifest is None:
            return result
        measured = self.store.open().documents(columns=MEASURED.names)
        note_durations(self.corpus.documents, measured, corpus.documents, storage, result)
        if corpus.queries is not None and self.corpus.has_read("queries"):
            note_query_lengths(spoken, pc.max(measured["duration"]).as_py() or 0.0, corpus.queries, result)
        if self.corpus.has_read("references") and self.corpus.references is not None:
            note_unread(self.population, corpus.documents, result)
        has_own_times = self.corpus.tabled and not self.corpus.placed
        if (
            has_own_times
            and corpus.references is not None
            and self.corpus.has_read("references")
            and self.corpus.references is not None
        ):
            meant = self.corpus.references["doc_id"]
            durations = seconds_of(self.corpus.documents, meant)  # noted before
            rest = {key: seconds for key, seconds in seconds_of(measured, meant).items() if key not in durations}
            note_late_references(self.corpus.references, rest, corpus.references, storage, result)
        return result


class QuestionInputs(CorpusInputs):
    """Inputs of steps that answer a question in a store without a run: no references, and places as the store has them.

    Args:
        config: of the steps.
        store: that is asked.
    """

    def __init__(self, config: Config, store: Store) -> None:
        super().__init__(config, Ledger(store.folder))
        self.store.folder, self.store.manifest = store.folder, store.manifest
        self.corpus.documents = store.documents(columns=["doc_id", "channel", "recording"])
        self.corpus.placed = self.corpus.documents["recording"].null_count < self.corpus.documents.num_rows
        self.corpus.references, self.corpus.own_places = None, {}

    @property
    def from_audio(self) -> bool:
        """Whether recordings are needed: the query is given."""
        return False


class SearchInputs(CorpusInputs):
    """Also inputs of stages that index and search. Plans of one ledger with equal settings share them."""

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> Self:
        """The inputs of a config, shared with equal ones."""
        values = config.model_dump(
            mode="json",
            include={"run", "corpus", "queries", "features", "index", "options", "storage", "strict", "force"},
        )
        values |= {"store": config.store, "trials": protocol_of(config.score).trials}
        if depends_on_score(config):
            values["score"] = config.score.model_dump(mode="json")
        return ledger.memoize((cls.__name__, json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    @cached_property
    def corpus_documents(self) -> CorpusDocuments:
        """The corpus by key. `identities` of a row are those of the source of its frames, by extractor (fingerprint):
        of its recording (and place in it), or of its precomputed frames, whose places are in `items`.
        """
        where = ["recording", "start", "end", "listed"] if self.corpus.placed else []
        table = self.corpus.documents.select(["doc_id", "channel", "path", "speaker", "duration", *where])
        return corpus_documents_of(table, self.features.sources, self.config.storage)

    @cached_property
    def query_inputs(self) -> SearchInputs | None:
        """Inputs of the queries' corpus, if it is another one."""
        corpus = self.corpus.query_inputs
        if corpus is None:
            return None
        result = SearchInputs(corpus.config, self.ledger)
        result.notices, result.corpus = self.notices, corpus
        return result

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """Rows of the queries, with file identities; for precomputed frames also `given` and `items`."""
        return self.with_identities(self.corpus.queries)

    def with_identities(self, queries: pa.Table) -> list[dict[str, Any]]:
        """The same rows for any QUERIES."""
        rows = queries.to_pylist()
        paths = [row["path"] for row in rows if row["path"] is not None] if self.from_audio else []
        result = dict(zip(paths, identities(paths, self.config.storage), strict=True))
        rows = [{**row, "identity": result.get(row["path"], "text" if self.from_audio else "")} for row in rows]
        add_items_of_examples(rows, self.features.sources, self.corpus_documents, self.config.storage)
        return rows

    def models_were_fitted(self) -> None:
        """Make extractors use the new models from now on."""
        self.features = RunFeatures(self.config, self.store.folder)
        self.store.features = self.features
        for name in ("corpus_documents", "examples", "query_inputs"):
            vars(self).pop(name, None)

    def expected_cells(self) -> float:
        """Query frames times document frames, from durations."""
        storage = self.config.storage
        documents = self.corpus_documents.seconds(np.arange(len(self.corpus_documents)), storage)
        queries = self.examples
        uncut = [row for row in queries if row["start"] is None or row["end"] is None]
        cut = sum(row["end"] - row["start"] for row in queries if row["start"] is not None and row["end"] is not None)
        cut += sum(document_seconds([{**row, "duration": None} for row in uncut], storage))
        shift = frame_shift(self.features.sources[0].extractor)
        work = WORK if self.config.search.parts else 1.0
        return float(work * cut / shift * sum(documents) / shift)

    def read(self, labels: frozenset[str]) -> None:
        """Read what the steps that make these tables need."""
        corpus = self.corpus
        if corpus.documents.num_rows and "groups" in labels and corpus.queries.num_rows and "aligned" in labels:
            self.check_scorable()
        if "groups.cohort" in labels:
            _ = corpus.cohort
        for read in self.files.values() if "calibration" in labels else ():
            read()
        if "candidates" in labels:
            self.demand_searchable()
            for check in self.document_checks:
                check(corpus.documents)
        self.check_tables()

    def demand_searchable(self) -> None:
        """Refuse settings of the search that these features or this machine cannot have.

        Raises:
            UserError: names the setting.
        """
        search = self.config.search
        search.dropping(self.features.tracks)
        if METHODS[search.method].queries == "spoken":
            self._demand_columns(search.placed(self.features.tracks))
        self._demand_marks()
        self._demand_gpu()

    def _demand_columns(self, search: Search) -> None:
        """Refuse columns that there are not, and posteriors' distances of what is none; given frames may be some unsaid."""
        width = max(stop for _, stop in self.features.tracks.values())
        for k, term in enumerate(search.terms()):
            where = f"search.streams[{k}]" if search.streams else "search.distance"
            stop = width if term.stop is None else term.stop
            if stop > width:
                raise kernels_codes.STREAM_COLUMNS_OUTSIDE(where=where, dimension=width, first=term.first, stop=stop)
            read = [
                f"{self.features.kinds[name]} of {name}"
                for name, (first, last) in self.features.tracks.items()
                if first < stop and term.first < last
            ]
            if DISTANCES[term.distance].posteriors and (
                len(read) > 1 or not read[0].startswith(("posteriors", "given"))
            ):
                raise codes.COLUMNS_NOT_POSTERIORS(where=where, distance=term.distance, kinds=" and ".join(read))

    def _demand_gpu(self) -> None:
        """Refuse to search on a GPU if this machine is to search and has no GPU.

        Raises:
            UserError: it has no GPU.
        """
        if self.config.executor.cluster is None and BACKENDS[self.config.search.backend].gpu and (error := missing()):
            raise error

    def _demand_marks(self) -> None:
        """Refuse to leave out silence if no track detects speech.

        Raises:
            UserError: no track is made from audio.
        """
        if self.config.search.skip_silence and not self.from_audio:
            raise codes.SILENCE_UNKNOWN(where="search.skip_silence")
