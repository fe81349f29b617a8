"""The search chain knows these before its first step: corpus, queries, references, extractor, and the state of its store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.search.inputs.across import apart, corpus_of_queries, speakers_meet
from swsdist.chains.search.inputs.given import add_items_of_examples
from swsdist.chains.search.inputs.oddities import (
    MEASURED,
    demand_truth,
    seconds_of,
    tell_of_durations,
    tell_of_lengths,
    tell_of_places,
    tell_of_references,
    tell_of_speakers,
    tell_of_unread,
)
from swsdist.chains.search.inputs.pending import Pending, with_models
from swsdist.chains.search.inputs.population import population_of, seconds_of_channel_1
from swsdist.chains.search.inputs.recordings import document_seconds, identities
from swsdist.chains.search.inputs.settings import describe, scores_of
from swsdist.chains.search.inputs.truth import depends_on_score, excerpts_of, truth_of
from swsdist.chains.search.inputs.wanted import State, Wanted, wanted_of
from swsdist.config import Config
from swsdist.errors import UserError
from swsdist.features.interface import Extractor, frame_shift
from swsdist.features.sources import Source, sources_of
from swsdist.io.corpora.places import is_placed
from swsdist.io.corpora.queries import read_queries
from swsdist.io.corpus import read_documents
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.pipeline.chain import ChainInputs
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.records.listing import Listing
from swsdist.reduce.own_places import OwnPlaces, elsewhere, own_places
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.trials.excerpts import seconds as excerpt_seconds
from swsdist.store.manifest import Manifest, load, require, state_name
from swsdist.store.reading import Store

if TYPE_CHECKING:
    from swsdist.pipeline.course import Course


class Compared(NamedTuple):
    """The corpus beside what a store held of it: documents that are new, changed, gone, moved; rejected ones count too.

    Of the new and changed ones `held` have frames in the store, under another name.
    """

    new: int
    changed: int
    gone: int
    moved: int = 0
    held: int = 0


class SearchInputs(ChainInputs):
    """Tables are read when first asked for. Plans of one ledger that agree on what is said here share it."""

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self.config, self.ledger = config, ledger
        self.store = Folder(config.store, config.storage)
        self.manifest: Manifest | None = None
        self.held = State()
        self.interrupted = False  # an index was: `manifest` is the state that it goes on from
        #: `keys_of` what the store held, or had rejected, when its state was read.
        self.known_before: pa.Array = pa.array([], pa.large_string())
        self.compared: Compared | None = None  # by `index`, when it plans
        self.noted = Notices(config.strict, config.force)  # what is odd in the tables
        self.tabled = False  # whether references are rows of a table
        self.demands: set[Callable[[pa.Table], None]] = set()  # what steps of its plans ask of the documents
        self.folds: set[int] = set()  # of queries, by which steps of its plans are crossfit
        self.files: dict[str, Callable[[], object]] = {}  # by name: what reads the calibration that a plan of it names
        self._looked: set[str] = set()
        self.moved = np.empty(0, np.int64)  # places of documents that the store knows under another path
        #: By fingerprint of a task of this plan: its extractor, the shard that it is of, and its work, s.
        self.planned: dict[str, tuple[Source, str, float]] = {}
        self._population: tuple[str, pa.Table] | None = None  # with the state of the store that it is of

    @classmethod
    def of(cls, config: Config, ledger: Ledger) -> SearchInputs:
        """Those of a config, shared where they are the same."""
        values = config.model_dump(
            mode="json", include={"run", "corpus", "features", "index", "storage", "strict", "force"}
        )
        values |= {"store": config.store, "trials": protocol_of(config.score).trials}
        if depends_on_score(config):
            values["score"] = config.score.model_dump(mode="json")
        return ledger.remember(("search", json.dumps(values, sort_keys=True)), lambda: cls(config, ledger))

    # -- tables ---------------------------------------------------------------------------------------------------

    @cached_property
    def documents(self) -> pa.Table:
        """The corpus: CORPUS, or PLACED where documents are places in recordings."""
        given, storage = self.config.corpus, self.config.storage
        return read_documents(
            given.documents, storage, given.talkers, self.noted, given.prefer, given.audio, audio=self.from_audio
        )

    @property
    def placed(self) -> bool:
        """Whether documents are places in recordings."""
        return is_placed(self.documents)

    @cached_property
    def from_audio(self) -> bool:
        """Whether an extractor needs recordings."""
        try:
            return any(isinstance(source.extractor, Extractor) for source in self.sources)
        except UserError:
            return True  # what is wrong with it is told where it is needed

    @cached_property
    def wanted(self) -> Wanted:
        """The corpus by key. `identities` of a row are what its frames come from, by extractor (fingerprint): the identity of
        its recording (and place in it), or of its given frames, whose places then are in `items`.
        """
        where = ["recording", "start", "end", "listed"] if self.placed else []
        table = self.documents.select(["doc_id", "channel", "path", "speaker", "duration", *where])
        return wanted_of(table, self.sources, self.config.storage)

    @cached_property
    def queries(self) -> pa.Table:
        """The query examples that are used: QUERIES."""
        if self.config.corpus.queries is None:
            raise UserError(
                "there are no queries to search", where="corpus.queries", remedy="name a table or a folder of queries"
            )
        theirs = self.theirs
        documents = (self if theirs is None else theirs).documents
        found = self._queries(self.config.corpus.queries, self.config.corpus.spoken, documents)
        return found if theirs is None else apart(found, self.config)

    @cached_property
    def cohort(self) -> pa.Table:
        """The examples of queries that only serve to judge others: QUERIES."""
        return self._queries(str(self.config.corpus.cohort), None, self.documents)

    def _queries(self, source: str, spoken: str | None, documents: pa.Table) -> pa.Table:
        examples, storage = self.config.corpus.examples, self.config.storage
        return read_queries(source, documents, examples, storage, self.noted, spoken, audio=self.from_audio)

    @cached_property
    def theirs(self) -> SearchInputs | None:
        """The documents that the queries are from, where they are of another corpus."""
        corpus = corpus_of_queries(self.config)
        if corpus is None:
            return None
        made = SearchInputs(self.config.model_copy(update={"corpus": corpus}), self.ledger)
        made.noted = self.noted
        return made

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """Rows of `queries`, each with the identity of its file; and with `given` and `items`, where frames are given."""
        return self.with_identities(self.queries)

    def with_identities(self, queries: pa.Table) -> list[dict[str, Any]]:
        """The same of any QUERIES."""
        rows = queries.to_pylist()
        paths = [row["path"] for row in rows if row["path"] is not None] if self.from_audio else []
        found = dict(zip(paths, identities(paths, self.config.storage), strict=True))
        rows = [{**row, "identity": found.get(row["path"], "text" if self.from_audio else "")} for row in rows]
        add_items_of_examples(rows, self.sources, self.wanted, self.config.storage)
        return rows

    @cached_property
    def references(self) -> pa.Table | None:
        """True occurrences: REFERENCES; None where none are given."""
        if not self.config.corpus.tells_truth:
            return None
        if (truth := truth_of(self.config, self.documents, self.queries, self.noted)) is None:
            return None
        self.tabled = truth.tabled
        return elsewhere(truth.references, self.own_places)

    @cached_property
    def own_places(self) -> OwnPlaces:
        """Where queries were cut from, if nothing is to be found there: of trials that are seconds."""
        wanted, trials = self.config.corpus.own_places, protocol_of(self.config.score).trials
        if wanted == "keep" or self.theirs is not None or self.config.corpus.queries is None or trials != "time":
            return {}
        return own_places(self.queries.to_pylist(), self.documents, by_path=wanted == "leave-out")

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The extractors that the config names, and the tracks that each yields; with the models that the store has."""
        return sources_of(with_models(self.config.features, self.config.corpus, self.store)[0])

    @property
    def fitted(self) -> list[Pending]:
        """Extractors and transforms that the chain fits, as far as it is known what to."""
        return with_models(self.config.features, self.config.corpus, self.store)[1]

    def has_model(self, one: Pending) -> bool:
        """Whether the store does."""
        return self.store.exists(one.file)

    def forget_sources(self) -> None:
        """Models were fitted: extractors are made with them when they are next asked for."""
        for name in ("sources", "from_audio", "wanted", "examples", "theirs"):
            vars(self).pop(name, None)

    @property
    def recipes(self) -> list[list[str]]:
        """Name, and fingerprint of the recipe, of each track."""
        return [[track.name, source.fingerprint] for source in self.sources for track in source.tracks]

    @property
    def tracks(self) -> dict[str, tuple[int, int]]:
        """First column, and the one after the last, of each track, all side by side."""
        found, first = {}, 0
        for track in (track for source in self.sources for track in source.tracks):
            found[track.name] = first, (first := first + track.stop - track.first)
        return found

    @property
    def extractor_fingerprint(self) -> str:
        """Of the first extractor's name, version and options, and of the content of its files."""
        return self.sources[0].fingerprint

    def expected_cells(self) -> float:
        """Query frames times document frames, from durations."""
        storage = self.config.storage
        documents = self.wanted.seconds(np.arange(len(self.wanted)), storage)
        queries = self.examples
        whole = [row for row in queries if row["start"] is None or row["end"] is None]
        cut = sum(row["end"] - row["start"] for row in queries if row["start"] is not None and row["end"] is not None)
        cut += sum(document_seconds([{**row, "duration": None} for row in whole], storage))
        shift = frame_shift(self.sources[0].extractor)
        return float(cut / shift * sum(documents) / shift)

    @property
    def population(self) -> pa.Table:
        """All documents of the corpus, those that were rejected too: POPULATION."""
        state = self.manifest.fingerprint if self.manifest is not None else ""
        if self._population is None or self._population[0] != state:
            store = self.open_store() if self.manifest is not None else None
            self._population = state, population_of(self.documents, store)
        return self._population[1]

    @property
    def seconds(self) -> float:
        """Seconds of audio, as the protocol counts them; see `seconds_of_channel_1`."""
        excerpts = excerpts_of(self.config) if self.placed else None
        if excerpts is not None:
            return excerpt_seconds(excerpts, protocol_of(self.config.score).rules)
        return seconds_of_channel_1(self.population)

    # -- for the pipeline -----------------------------------------------------------------------------------------

    @property
    def hours(self) -> float:
        """Hours of audio, as far as the corpus table or the store tells."""
        if self.manifest is not None:
            return float(self.manifest.counts["seconds"]) / 3600
        return float(sum(value or 0.0 for value in self.documents["duration"].to_pylist())) / 3600

    @property
    def state(self) -> dict[str, str]:
        """Where the store is, and its state."""
        return {"store": self.store.root, "manifest": self.manifest.fingerprint if self.manifest is not None else ""}

    def recall(self, state: Mapping[str, str]) -> None:
        """Take the store in the state that a plan had."""
        if state.get("manifest"):
            self.manifest = require(self.store, state_name(state["manifest"]))

    def read(self, steps: frozenset[str]) -> None:
        """Read the tables that these steps need."""
        scored = self.documents.num_rows and "queries" in steps and self.queries.num_rows and "align.train" in steps
        if scored and (known := self.references) is not None and known.num_rows:
            demand_truth(self.documents, self.config.corpus.documents, known, self.folds)
        if "queries.cohort" in steps:
            _ = self.cohort
        for read in self.files.values() if "fit" in steps else ():
            read()
        if "search" in steps:
            self.config.search.placed(self.tracks)
            self.demand_marks()
            for demand in self.demands:
                demand(self.documents)
        self.look()

    def demand_marks(self) -> None:
        """Refuse to leave out silence where nobody hears it.

        Raises:
            UserError: no track is made of audio.
        """
        if self.config.search.skip_silence and not self.from_audio:
            raise UserError(
                "all frames were made elsewhere, so where there is speech in them is not known",
                where="search.skip_silence",
                remedy="search all of them (search.skip_silence: false), or add a track that is made of the recordings to "
                "features, such as mfcc",
            )

    def first_look(self, what: str) -> bool:
        """Whether nobody has asked this before: each thing that is odd is told once."""
        first = what not in self._looked
        self._looked.add(what)
        return first

    def searches(self, course: Course) -> list[Course]:
        """The plans that searched what a plan of this chain shows: itself."""
        return [course]

    def scores(self) -> dict[str, str]:
        """What scores depend on besides the corpus: plain text by key."""
        return scores_of(self.config)

    def look(self) -> None:
        """Tell of what does not fit together in the tables that were read, as far as they say how long documents are; once.

        Raises:
            DataError: there is something to be told, and warnings are errors.
        """
        corpus, storage = self.config.corpus, self.config.storage
        read = {name for name in ("queries", "references") if name in vars(self) and self.first_look(name)}
        if "queries" in read and corpus.queries is not None:
            if speakers_meet(self.config):
                tell_of_speakers(self.documents, self.queries, corpus.queries, self.noted)
            tell_of_places(self.documents, self.queries, self.own_places, corpus.queries, self.noted)
        told = self.tabled and not self.placed
        if "references" in read and told and corpus.references is not None and self.references is not None:
            known = seconds_of(self.documents, self.references["doc_id"])
            tell_of_references(self.references, known, corpus.references, storage, self.noted)

    def look_again(self, spoken: Mapping[tuple[str, int], float], *, force: bool = True) -> Notices:
        """The same with the durations that were measured.

        Args:
            spoken: seconds of each query example that was searched.
            force: note what is implausible, too.

        Raises:
            ImplausibleError: something is, and it is not to be noted.
        """
        corpus, storage, found = self.config.corpus, self.config.storage, Notices(force=force)
        if self.manifest is None:
            return found
        measured = self.open_store().documents(columns=MEASURED.names)
        tell_of_durations(self.documents, measured, corpus.documents, storage, found)
        if corpus.queries is not None and "queries" in vars(self):
            tell_of_lengths(spoken, pc.max(measured["duration"]).as_py() or 0.0, corpus.queries, found)
        if "references" in vars(self) and self.references is not None:
            tell_of_unread(self.population, corpus.documents, found)
        told = self.tabled and not self.placed
        if told and corpus.references is not None and "references" in vars(self) and self.references is not None:
            meant = self.references["doc_id"]
            known = seconds_of(self.documents, meant)  # told already
            rest = {key: seconds for key, seconds in seconds_of(measured, meant).items() if key not in known}
            tell_of_references(self.references, rest, corpus.references, storage, found)
        return found

    # -- the store ------------------------------------------------------------------------------------------------

    @property
    def listing(self) -> Listing:
        """Files of the store."""
        return self.ledger.listing(self.store.root)

    def load_state(self, anew: bool = False) -> State:
        """What the store holds of this config's tracks; `manifest` becomes its state, if there is any and its tables are there.

        Args:
            anew: the store is made anew, whatever it holds.
        """
        manifest, listing = load(self.store), self.listing
        self.manifest, self.held = None, State()
        self.interrupted = manifest is not None and manifest.unfinished is not None
        if manifest is not None and manifest.unfinished is not None:
            before = manifest.unfinished.before
            manifest = load(self.store, state_name(before)) if before is not None else None
        if manifest is None:
            return self.held
        if manifest.of_queries:
            raise UserError(
                "this is a run's store of queries",
                where=f"index.store: {self.store.path()}",
                remedy="name another folder for the store of the documents",
            )
        recipes = dict(self.recipes)
        kept = [track.name for track in manifest.tracks if recipes.get(track.name) == track.fingerprint]
        others = [track for track in manifest.tracks if track.name in recipes and track.name not in kept]
        if self.config.index.store is not None and (others or not kept):
            held = (others or manifest.tracks)[0]
            raise UserError(
                f"the store holds other features: {describe(held.recipe)}, as track {held.name}",
                where=self.store.path(),
                remedy="name another store in index.store, or remove this one; or set features to what it holds",
            )
        # In the run's own store new features take the place of the old.
        if anew or not kept or any(name not in listing for name in manifest.tables):
            return self.held
        self.manifest = manifest
        self.held = self._state_of(manifest, kept)
        self.known_before = self.held.keys
        return self.held

    def _state_of(self, manifest: Manifest, kept: list[str]) -> State:
        listing, state = self.listing, State(kept=kept)
        state.left = any(track.name not in kept for track in manifest.tracks)
        for shard in manifest.shards:
            there = {
                name: file
                for name, file in shard.files.items()
                if name in kept and listing.size(file.name) == file.size
            }
            lacking = [source for source in self.sources if any(track.name not in there for track in source.tracks)]
            if len(lacking) == len(self.sources):
                continue  # nothing is left of it: its documents are new
            # What an extractor yields in one pass is there as a whole, or not at all.
            gone = {track.name for source in lacking for track in source.tracks}
            state.files[shard.name] = {name: file for name, file in there.items() if name not in gone}
            if lacking:
                state.lacking[shard.name] = lacking
        store = Store(self.store, manifest)
        columns = ["doc_id", "channel", "path", "identity", "speaker", "shard"]
        there = pa.array(list(state.files), pa.string())
        tables = {name: store.documents(columns=columns, track=name, codes=["shard"]) for name in kept}
        tables = {name: _of_shards(table, there) for name, table in tables.items()}
        state.tables = tables
        if not state.left:  # else who rejected them may have been a track that is no longer wanted
            state.rejected = store.rejected()
        return state

    def open_store(self) -> Store:
        """The store in the state that `index` has left."""
        assert self.manifest is not None  # index has come to its end
        return Store(self.store, self.manifest)


def _of_shards(table: pa.Table, shards: pa.Array) -> pa.Table:
    """The documents of some shards; no copy where these are all."""
    mask = pc.is_in(table["shard"], shards)
    return table if pc.all(mask).as_py() else table.filter(mask)
