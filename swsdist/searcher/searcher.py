"""Search without a run: one store, many searches in this process.

Queries become examples (`methods.query.extraction`), a registered method searches unit by unit, and the steps of the
run's chain turn candidates into scored hits (`swsdist.pipeline.chain_run`): the results are a run's, byte for byte.

Searches of several threads share passes over a store. A pass reads and packs the documents once for all its queries, so
ten searches at once cost three to four times as much as one. Searches that begin during a pass wait for the next one,
which is for all of them.
"""

from __future__ import annotations

import json
import math
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.synthesis import spoken_rows
from swsdist.calibrate.procedure import check_steps, procedures
from swsdist.calibrate.statistics import Tally, to_table
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config.loader import section_from
from swsdist.config.model import Calibrate, Config, Corpus, Executor, KeepDetections, Reduce, misfit_of
from swsdist.config.search import Search
from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families, line_of
from swsdist.core.codes import methods as methods_codes
from swsdist.core.codes import searcher as codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import ConfigError, StoreError, TermError
from swsdist.core.fingerprint import ALL_SLOTS, slot_of
from swsdist.core.numbers import frames_to_seconds, integer, number, seconds_to_frame
from swsdist.core.types import CANDIDATES, DETECTIONS
from swsdist.features.ssl.extractor import search_of
from swsdist.io.filesystem import Folder
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import local_distances
from swsdist.lattices.terms import Terms
from swsdist.methods.curve import curve, path
from swsdist.methods.dtw.shard import Documents, engine_settings, unit_of
from swsdist.methods.method import Unit, create, demand_readable
from swsdist.methods.query.extraction import Cut, prepared
from swsdist.methods.query.speech_trimming import kept, without_dropped
from swsdist.methods.sample import in_sample, limit_of
from swsdist.pipeline.chain import Chain, ChainInputs, Step
from swsdist.pipeline.chain_run import InMemory, MemoryContext, Way
from swsdist.pipeline.ledger import Ledger, load_plans
from swsdist.pipeline.operation.cleaning import reading
from swsdist.pipeline.status import config_of
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CALIBRATION, CHAINS, METHODS
from swsdist.registry.registry import Entry
from swsdist.searcher.queries import Skip, SpokenQueries, WrittenQueries, skipping, written_rows
from swsdist.stages.buckets import Extracted
from swsdist.stages.inputs.provenance import calibration_file
from swsdist.stages.inputs.search_inputs import Among, QuestionInputs
from swsdist.stages.steps import steps as search_steps
from swsdist.store.manifest import Manifest, load, words_store
from swsdist.store.memory import Memory
from swsdist.store.reading import Store, Tracks, keys_of

if TYPE_CHECKING:
    import pandas as pd


#: Most questions of a pass: what they find is in memory.
_MOST = 32

#: Candidates of queries (EXAMPLES), unit by unit.
Pass = Callable[[pa.Table], Iterator[tuple[Unit, Iterable[pa.Table]]]]
_Found = tuple[Unit, list[pa.Table]]


class _Question:
    """Somebody's queries, and what is found of them: candidates of units; an error; None at the end."""

    def __init__(self, search: Pass, examples: pa.Table) -> None:
        self.search, self.examples, self.has_left = search, examples, False
        self.found = SimpleQueue[_Found | BaseException | None]()


class Passes:
    """One pass at a time, each for the questions that waited for it and are searched in the same documents.

    Args:
        where: the store's path, for errors.
    """

    def __init__(self, where: str) -> None:
        self._where, self._waiting = where, list[_Question]()
        self._change, self._is_closed, self._thread = Condition(), False, Thread(target=self._passes, daemon=True)

    def search(self, search: Pass, examples: pa.Table) -> Iterator[_Found]:
        """Candidates of some queries as `search` finds them; questions with an equal `search` share a pass.

        Raises:
            UserError: closed, before or meanwhile.
        """
        question = _Question(search, examples)
        with self._change:
            if self._is_closed:
                raise codes.CLOSED_SEARCHER(where=self._where)
            if not self._thread.ident:
                self._thread.start()
            self._waiting.append(question)
            self._change.notify()
        try:
            while (found := question.found.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            question.has_left = True

    def close(self) -> None:
        """No pass more; the one that goes on ends with its unit."""
        with self._change:
            self._is_closed = True
            self._refuse(self._waiting)
            self._waiting = []
            self._change.notify()

    def _refuse(self, questions: list[_Question]) -> None:
        for each in questions:
            each.found.put(codes.CLOSED_SEARCHER(where=self._where))

    def _passes(self) -> None:
        while together := self._next():
            if not self._searched(together):
                for each in together:  # the queries of one do not fit the store
                    self._searched([each])

    def _next(self) -> list[_Question]:
        """The first question that waits, and those that can share its pass; none: closed."""
        with self._change:
            while not self._is_closed:
                waiting = [each for each in self._waiting if not each.has_left]
                together = [each for each in waiting if each.search == waiting[0].search][:_MOST]
                self._waiting = [each for each in waiting if each not in together]
                if together:
                    return together
                self._change.wait()
        return []

    def _searched(self, questions: list[_Question]) -> bool:
        """Search for all; False: it failed for several before anything was found, and one of them may be the cause."""
        began = False
        try:
            for unit, tables in questions[0].search(_numbered(questions)):
                began, found = True, list(tables)
                for number, each in enumerate(questions):
                    each.found.put((unit, _candidates_of(found, number)))
                if self._is_closed:
                    self._refuse(questions)
                if self._is_closed or all(each.has_left for each in questions):
                    break
        except BaseException as error:
            if not began and len(questions) > 1:
                return False
            for each in questions:
                each.found.put(error)
        for each in questions:
            each.found.put(None)
        return True


def _numbered(questions: list[_Question]) -> pa.Table:
    """EXAMPLES of all, with the number of its question before the name of each query."""
    named = [
        each.examples.set_column(
            each.examples.column_names.index("query_id"),
            each.examples.schema.field("query_id"),
            pc.binary_join_element_wise(str(number), each.examples["query_id"], " "),
        )
        for number, each in enumerate(questions)
    ]
    return pa.concat_tables(named)


def _candidates_of(found: list[pa.Table], number: int) -> list[pa.Table]:
    """The candidates of one question, with the names of its queries."""
    own = []
    for table in found:
        mine = table.filter(pc.starts_with(table["query_id"], f"{number} "))
        names = pc.utf8_slice_codeunits(mine["query_id"].combine_chunks(), len(f"{number} ")).dictionary_encode()
        slots = pa.array([slot_of(name) for name in names.dictionary.to_pylist()], pa.int32())
        columns = {"slot": slots.take(names.indices), "query_id": names.dictionary_decode()}
        own.append(pa.table([columns.get(name, mine[name]) for name in mine.column_names], schema=mine.schema))
    return own


#: Config of the steps after the search, without a run.
DEFAULTS = Config(run=".", corpus=Corpus(documents="."))


class SearchSetup(NamedTuple):
    """Settings of the search of a store.

    Attributes:
        store: its folder.
        options: keys of the config's section `search`.
        trim: whether recorded queries are cut to their speech.
        warnings: about settings that were not taken over, and an incomplete store.
        run: the run of these settings, and its plan; None: no run, or several plans.
        config: of the steps after the search; None: no run, or plans that differ.
        terms: how written queries become labels: keys of `options.terms` of the chain lattices.
        calibrate: the run's section; None: no run, or plans that differ in it.
    """

    store: str
    options: Mapping[str, object]
    trim: bool
    warnings: tuple[str, ...] = ()
    run: tuple[Folder, str] | None = None
    config: Config | None = None
    terms: Mapping[str, object] = {}
    calibrate: Calibrate | None = None

    def steps(self, config: Config) -> Sequence[Step]:
        """The steps of the run's chain for a config; without one that searches, those that chains of queries share."""
        if self.config is not None:
            chain: Chain = CHAINS[config.chain].load()(config, Ledger(Folder(config.run, config.storage)))
            if chain.source("scored") is not None and chain.source("candidates") is not None:
                return chain.steps
        return Chain(config.chain, search_steps(config), ChainInputs()).steps

    def usable_steps(self) -> tuple[dict[str, object], tuple[str, ...]]:
        """Keys of the section `calibrate` with the run's steps before the first that is fitted, or needs a cohort or the
        number of trials; and the others. No keys, if no step remains.
        """
        if self.calibrate is None:
            return {}, ()
        names = self.calibrate.steps
        others = [
            CALIBRATION[name].fits or CALIBRATION[name].cohort or CALIBRATION[name].operating_point for name in names
        ]
        kept = names[: [*others, True].index(True)]
        if not kept and names:
            return {}, names
        options = {name: options for name, options in self.calibrate.options.items() if name in kept}
        return {"steps": kept, "options": options}, names[len(kept) :]


def scores_after(method: str, steps: Sequence[str]) -> str:
    """A description of the scores of a method after steps of calibration."""
    if not steps:
        return "posteriors" if METHODS[method].score == "posterior" else "minus distances"
    if list(steps) == ["q-norm"]:
        return "standard deviations above the mean of a query's candidates (q-norm)"
    return f"after {', '.join(steps)}"


def setup_of(target: str | Store, texts: bool = False) -> SearchSetup:
    """The store and the search settings for a store, or the folder of one or of a run.

    Args:
        target: a store, its folder, or a run's.
        texts: for texts: of a store of frames that has words, these.

    Raises:
        StoreError: the run's plan cannot be read.
        UserError: the run has several plans, of several stores; or its queries are lattices.
    """
    storage = {} if isinstance(target, str) else target.folder.storage
    setup = _setup_of(target) if isinstance(target, str) else SearchSetup(target.folder.root, {}, True)
    if texts and (words := words_store(setup.store, storage)) is not None:
        setup = SearchSetup(words, _default_options(load(Folder(words, storage))), True, terms=setup.terms)
    if not isinstance(target, str):
        return setup
    now = load(Folder(setup.store))
    if now is None or now.progress is None:
        return setup
    text = line_of(codes.INCOMPLETE_STORE, progress=now.progress)
    return setup._replace(warnings=(*setup.warnings, text))


def store_of_words(target: str) -> Store:
    """The store of words of a store or a run: its own, or that inside of its store of frames.

    Raises:
        StoreError: there is none, or the run's plan cannot be read.
        UserError: as `setup_of`.
    """
    store = Store(Folder(setup_of(target, texts=True).store))
    if store.manifest.kind == "frames" or "decoding" in store.manifest.tracks[0].recipe:
        raise storage_codes.NO_WORDS_IN_STORE(where=target)
    return store


def _default_options(manifest: Manifest | None) -> dict[str, object]:
    """The best way to search a store that nobody has searched: the method that reads its kind; of frames, those of encoders, or
    MFCC and the posteriors of a mixture of them, where it has these (`swsdist/config/folder.yaml`).
    """
    kind = Search().method if manifest is None else manifest.kind
    if reading := [name for name in METHODS if METHODS[name].reads == kind and kind != METHODS[Search().method].reads]:
        return {"method": reading[0]}
    tracks = () if manifest is None else manifest.tracks
    recipes: dict[str, Any] = {track.name: track.recipe for track in tracks}
    if encoded := [name for name, recipe in recipes.items() if recipe["name"] == "ssl" and recipe.get("kind") is None]:
        return search_of(encoded, alone=len(encoded) == len(recipes))
    last = {name: recipe.get("transforms", [])[-1:] for name, recipe in recipes.items()}
    plain = [name for name, recipe in recipes.items() if recipe["name"] == "mfcc" and not last[name]]
    mixed = [
        name
        for name, transforms in last.items()
        if transforms and (transforms[0]["name"], transforms[0]["options"].get("values")) == ("gmm", "logits")
    ]
    if len(plain) != 1 or len(mixed) != 1:
        return {}
    return {"distance": "cosine-squared", "streams": [{"track": name} for name in (*plain, *mixed)]}


def _setup_of(target: str) -> SearchSetup:
    run = Folder(target.rstrip("/"))
    if run.exists("manifest.json") or not run.exists("plan.json"):
        return SearchSetup(target, _default_options(load(run)), True)
    configs = {name: config_of(run, plan) for name, plan in load_plans(run).items()}
    configs = {name: config for name, config in configs.items() if not is_chain(CHAINS, config.chain, "of_points")}
    if fused := next((config for config in configs.values() if is_chain(CHAINS, config.chain, "joined")), None):
        raise families.UNSUPPORTED(
            "a run of the chain {chain} has no store",
            "name the run of one of its systems, such as those below systems/ in it",
            where=run.path(),
            chain=fused.chain,
        )
    if METHODS[next(iter(configs.values())).search.method].queries == "lattices":
        raise families.UNSUPPORTED(
            "the queries of this run are lattices, which only a run makes",
            "add queries to its corpus.queries, and run its config again: documents are not decoded again",
            where=run.path(),
        )
    stores = list(dict.fromkeys(config.searched_store for config in configs.values()))
    if len(stores) > 1:
        raise families.AMBIGUOUS(
            "the run has {plans} plans, of {count} stores",
            "name a store: {stores}",
            where=run.path(),
            plans=len(configs),
            count=len(stores),
            stores=", ".join(stores),
        )
    settings = [config.search.model_dump(mode="json", exclude_defaults=True) for config in configs.values()]
    calibrate, *others = (config.calibrate for config in configs.values())
    trims = {config.queries.trim != "none" for config in configs.values()}
    (name, config), *_ = configs.items()
    terms = config.chain_options.terms_in(config.options)
    if len(configs) == 1:
        return SearchSetup(
            stores[0], settings[0], trims.pop(), run=(run, name), config=config, terms=terms, calibrate=calibrate
        )
    chains = [[each.chain, each.options] for each in configs.values()]
    if len({json.dumps(each, sort_keys=True) for each in zip(settings, chains, strict=True)}) > 1 or len(trims) > 1:
        return SearchSetup(
            stores[0],
            {},
            True,
            (
                line_of(
                    families.SETTINGS_DIFFER.saying(
                        "the {count} plans of the run have different search settings, so the defaults are used",
                        "--set search.KEY=VALUE changes them",
                    ),
                    count=len(configs),
                ),
            ),
        )
    if any((other.steps, other.options) != (calibrate.steps, calibrate.options) for other in others):
        return SearchSetup(
            stores[0],
            settings[0],
            trims.pop(),
            (
                line_of(
                    families.SETTINGS_DIFFER.saying(
                        "the {count} plans of the run have different steps of calibration, so the default is used",
                        "in Python, `Searcher(RUN, calibrate=...)` takes others",
                    ),
                    count=len(configs),
                ),
            ),
        )
    if any(each.reduce != config.reduce for each in configs.values()):
        config = config.model_copy(update={"reduce": Reduce()})
    return SearchSetup(stores[0], settings[0], trims.pop(), config=config, terms=terms, calibrate=calibrate)


class Pair(NamedTuple):
    """A query and a document of a store, with features prepared as for a search.

    Attributes:
        query, document: float32 (frames that are compared, columns).
        query_places, document_places: int64, the frames of the recordings that these are.
        distance: of the search.
        recurrence: its name.
        options: of the recurrence.
        shift: s a frame.
        unit: the integer that represents a distance of 1.
        ranged: whether distances are mapped to their range in the document.
    """

    query: Singles
    document: Singles
    query_places: Ints
    document_places: Ints
    distance: Distance
    recurrence: str
    options: Mapping[str, object]
    shift: float
    unit: int
    ranged: bool

    @classmethod
    def of(cls, store: Store, examples: pa.Table, doc_id: str, channel: int, config: Search) -> Pair:
        """A pair.

        Args:
            store: with the document.
            examples: EXAMPLES; the first is used.
            doc_id, channel: of the document.
            config: the search settings.

        Raises:
            ConfigError: the method has no paths.
            StoreError: no such document.
            UserError: no frame of the document is compared.
        """
        if config.method != "dtw":
            raise families.UNSUPPORTED.of(ConfigError)(
                "the method {method} has no curves and paths; dtw has",
                "leave search.method out",
                where="search.method",
                method=config.method,
            )
        tracks = Tracks(store)
        placed = config.placed(tracks.places).model_copy(update={"least_query_frames": 1})
        dropping = config.dropping(tracks.places)
        places = np.arange(examples["frames"][0].as_py())
        if dropping is not None:
            features = np.frombuffer(examples["features"][0].as_py(), "<f4").reshape(-1, tracks.dimension)
            places, examples = places[kept(features, dropping)], without_dropped(examples, dropping, tracks.dimension)
        query = prepared(examples, tracks.statistics(), placed, tracks.dimension)[0].frames
        documents, index = _document(store, doc_id, channel, config)
        chosen = np.arange(documents.table.num_rows) == index
        blocks = [block for _, blocks in documents.stream(chosen=chosen) for block in blocks]
        if not blocks:
            raise families.UNDEFINED(
                "no frame of the document {doc_id} is searched",
                "leave search.skip_silence and search.drop out",
                where=store.folder.path(),
                doc_id=doc_id,
            )
        settings = engine_settings(config, documents.distance, store.manifest.shift)
        return cls(
            query,
            np.concatenate(blocks),
            places,
            documents.frames_of_the_recording(index),
            documents.distance,
            settings.recurrence,
            settings.options,
            store.manifest.shift,
            unit_of(config),
            settings.row_range,
        )

    def curve(self) -> pa.Table:
        """A row for each frame of the document that is compared: start and end of the path that ends with it (s), its score,
        cost and document frames; null where none ends.
        """
        results = curve(self.query, self.document, self.distance, self.recurrence, self.options, self.ranged)
        none, last = results.frames == 0, self.document_places
        first = last[np.maximum(np.arange(len(last)) - results.frames + 1, 0) * ~none]
        return pa.table(
            {
                "start": pa.array(frames_to_seconds(first, self.shift), mask=none),
                "end": pa.array(frames_to_seconds(last + 1, self.shift)),
                "score": pa.array(-results.cost / (len(self.query) * self.unit), mask=none),
                "cost": pa.array(results.cost, mask=none),
                "frames": pa.array(last - first + 1, mask=none),
            }
        )

    def path(self, end: float) -> pa.Table:
        """A row for each cell of the path that ends at a time (s): query_frame and frame, the times that they begin at
        (query_time, time; s) and their distance, 1 for the unit of the distance.

        Raises:
            UserError: no path ends there.
        """
        last = seconds_to_frame(number(end, "end", above=0), self.shift) - 1
        if last not in self.document_places:
            raise methods_codes.NO_SUCH_FRAME(frames=len(self.document_places), frame=last)
        end_frame = int(np.searchsorted(self.document_places, last))
        cells = path(self.query, self.document, end_frame, self.distance, self.recurrence, self.options, self.ranged)
        first = int(cells[0, 1])
        place = slice(first, int(cells[-1, 1]) + 1)
        table = local_distances(self.query, self.document, self.distance, place, self.ranged)
        query_frame, frame = self.query_places[cells[:, 0]], self.document_places[cells[:, 1]]
        return pa.table(
            {
                "query_frame": query_frame,
                "frame": frame,
                "query_time": frames_to_seconds(query_frame, self.shift),
                "time": frames_to_seconds(frame, self.shift),
                "distance": table[cells[:, 0], cells[:, 1] - first] / self.unit,
            }
        )


def _document(store: Store, doc_id: str, channel: int, config: Search) -> tuple[Documents, int]:
    """The documents of the shard of a document, and its index among them."""
    everywhere = store.documents(columns=["doc_id", "channel", "shard", "recording", "start"])
    shards = everywhere["shard"].filter(_is(everywhere, doc_id, channel)).to_pylist()
    places = everywhere.filter(pc.equal(everywhere["recording"], doc_id))
    if not shards and places.num_rows:
        several = ", ".join(f"{row['doc_id']} (from {row['start']:g} s)" for row in places.slice(0, 5).to_pylist())
        raise families.AMBIGUOUS.of(StoreError)(
            "{name!r} is a recording with {count} document{s}, not a document",
            "name a document, and count times from its start: {documents}",
            where=store.folder.path(),
            name=doc_id,
            count=places.num_rows,
            documents=several,
        )
    if not shards:
        raise families.UNKNOWN_NAME.of(StoreError)(
            "no document {doc_id!r}, channel {channel}, in the store",
            "`swsdist store info --documents` lists the documents",
            where=store.folder.path(),
            doc_id=doc_id,
            channel=channel,
        )
    documents = Documents.of(store, shards, config)
    return documents, int(np.flatnonzero(_is(documents.table, doc_id, channel).to_numpy())[0])


def _is(table: pa.Table, doc_id: str, channel: int) -> pa.ChunkedArray:
    return pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel))


#: Default for the bytes of prepared shards in memory.
MEMORY = 2_000_000_000

#: Columns that only a run fills.
_NOT_SHOWN = ["decision", "system"]


class Shards(Protocol):
    """Shards of a store on workers, which keep and search them; its arguments are those of `swsdist.searcher.on_ray`."""

    def search(self, examples: pa.Table) -> Iterator[tuple[Unit, list[pa.Table]]]:
        """Candidates of some queries (EXAMPLES), unit by unit."""
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


class Hits(NamedTuple):
    """The hits of a search in progress.

    Attributes:
        part: of the store's frames that have been searched, 0 to 1.
        table: makes DETECTIONS without `decision` and `system`, best first within each query, of the part searched when it is
            called; scores are normalised by the candidates so far, and so are final once all has been searched.
    """

    part: float
    table: Callable[[], pa.Table]


class Searcher:
    """A store that is searched again and again, without a run folder.

    The store is marked as in use, so its files are not removed, until `close`, the end of a `with`, or the end of the
    process. `search` gives the hits of a run with the same settings on the same store.

    Args:
        store: a store, or its folder; or a run's folder, to search its store with its settings (`search`,
            `reduce`, `queries.trim`, `calibrate.steps`).
        options: keys of the config's section `search`; they override a run's.
        calibrate: keys of the section `calibrate`; they override a run's. Without a run, the default is q-norm, and for
            posteriors no step. Fitted steps need a run's calibration (`fit`: a file, or a run's folder); steps may not need a
            cohort or the number of trials. A run's steps from the first of these on are left out, with a warning.
        terms: keys of `options.terms` of the chain lattices, for written queries; they override a run's.
        trim: trim recorded queries to their speech; a query or a place without speech is an error.
        texts: search texts: of a store of frames the words in it, if it has some.
        memory: bytes for prepared shards in each process; other shards are prepared again in each search.
        executor: keys of the section `executor`; with `kind: ray`, Ray actors search, each with its part of the
            shards; by default this process does, and with executors whose entry names no `shards`.
        shared: searches of several threads share passes over the store (`swsdist.searcher.searcher`).

    Attributes:
        store: what is searched.
        setup: the store with its search settings.
        options, settings: keys of the section `search`, and the section.
        calibrate: the section, with the steps that are used.
        scores: what scores are after them, in words.
        steps_left_out: names of the chain's steps that need a run.
        trim: whether queries are trimmed.

    Raises:
        ConfigError: an option is not valid, or a step needs more than a search without a run has.
        StoreError: there is no store.
        UserError: the method does not read such a store, or takes other queries; the run has several plans, of several
            stores; or `memory` is no number of bytes.
    """

    def __init__(
        self,
        store: str | Store,
        *,
        options: Mapping[str, object] | None = None,
        calibrate: Mapping[str, object] | None = None,
        terms: Mapping[str, object] | None = None,
        trim: bool = True,
        texts: bool = False,
        memory: int = MEMORY,
        executor: Mapping[str, object] | None = None,
        shared: bool = False,
    ) -> None:
        memory = integer(memory, "memory", 0)
        self.setup = setup_of(store, texts)
        self.settings = section_from(Search, "search", self.setup.options, options)
        self.options, self.trim = {**self.setup.options, **(options or {})}, trim and self.setup.trim
        self._terms = section_from(Terms, "terms", self.setup.terms, terms)
        of_posteriors: dict[str, object] = {} if METHODS[self.settings.method].score == "cost" else {"steps": []}
        of_run, left_out = ({}, ()) if "steps" in (calibrate or {}) else self.setup.usable_steps()
        self.calibrate = section_from(Calibrate, "calibrate", of_posteriors, of_run, calibrate)
        self.scores = scores_after(self.settings.method, self.calibrate.steps)
        self._calibration = _calibration(self.calibrate, self.settings)
        self._method = create(self.settings)
        if self.settings.documents_by == "pooled":
            raise families.UNSUPPORTED.of(ConfigError)(
                "pooled statistics are of all queries of a run, and these are no queries of it",
                "set search.documents_by and search.queries_by to collection",
                where="search.documents_by",
            )
        given = None if isinstance(store, str) or store.folder.root != self.setup.store else store
        storage = {} if isinstance(store, str) else store.folder.storage
        opened = given or Store(Folder(self.setup.store, storage))
        demand_readable(self.settings, opened)
        ending = ExitStack()
        self._end = weakref.finalize(self, ending.close)
        now = ending.enter_context(reading(opened))
        where = section_from(Executor, "executor", {"kind": "serial"}, executor)
        memory_store = Memory(memory) if memory and not where.entry.shards else None
        self.store = (given or now).with_memory(memory_store)
        self._shards: Shards | None = None
        settings = self.setup.config or DEFAULTS
        corpus = settings.corpus.model_copy(update={"cohort": None})
        sections = {"search": self.settings, "calibrate": self.calibrate, "corpus": corpus}
        self._config = settings.model_copy(update=sections)
        self._chain_steps = self.setup.steps(self._config)
        ways = (Way.between(self._chain_steps, *labels) for labels in (("groups", "groups"), ("candidates", "scored")))
        self.steps_left_out = tuple(name for way in ways for name in way.left_out)
        self._way = Way.between(self._chain_steps, "detections", "scored")
        if left_out := (*left_out, *self.steps_left_out):
            text = line_of(codes.STEPS_LEFT_OUT, steps=", ".join(left_out), scores=self.scores)
            self.setup = self.setup._replace(warnings=(*self.setup.warnings, text))
        self._inputs, self._memory = QuestionInputs(self._config, self.store), dict[str, tuple[object, Any]]()
        if where.entry.shards:
            create_shards = Entry(where.entry.shards, 1).load()
            self._shards = create_shards(self.store, self.settings, self._units, memory, where)
            ending.callback(self._shards.close)
        self._passes = Passes(opened.folder.path()) if shared else None
        if self._passes is not None:
            ending.callback(self._passes.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Search no more: the store is not marked any longer."""
        self._end()

    def _demand_open(self) -> None:
        if not self._end.alive:  # what it read may be gone
            raise codes.CLOSED_SEARCHER(where=self.store.folder.path())

    def __repr__(self) -> str:
        return f"<Searcher of {self.store!r}>"

    def among(self, documents: pa.Table) -> Searcher:
        """A searcher of some of the store's documents, which are searched exactly, in this process.

        Hits get the scores that they have among all documents (of a large store: by those of a sample,
        `swsdist.methods.sample`).

        Args:
            documents: columns doc_id and channel.

        Returns:
            The searcher, which ends with this one.
        """
        self._demand_open()
        narrowed, queries, store = copy(self), self.queries, self.store  # queries may be places in all documents
        narrowed.__dict__.pop("_units", None)
        narrowed.settings = section_from(Search, "search", self.options, {"first_pass": {"name": "none"}})
        narrowed._method, narrowed._shards = create(narrowed.settings), None
        sample = limit_of(self.settings.first_pass.sample or math.inf, store.manifest.counts)
        among = Among(keys_of(documents["doc_id"], documents["channel"]), sample)
        narrowed._inputs = copy(self._inputs)
        narrowed._inputs.among = among
        everything = store.documents(columns=["doc_id", "channel", "shard"])
        wanted = pc.is_in(keys_of(everything["doc_id"], everything["channel"]), among.keys)
        wanted = everything.filter(pc.or_(wanted, pa.array(in_sample(everything, sample))))
        narrowed.store, narrowed.queries = store.among(wanted), queries
        shards = set(pc.unique(wanted["shard"]).to_pylist())
        narrowed._units = [unit for unit in narrowed._method.plan(narrowed.store) if shards.intersection(unit.shards)]
        return narrowed

    def search(self, queries: object, top: int = 20) -> pd.DataFrame:
        """The best hits of each query.

        Args:
            queries: as `swsdist.search` takes them.
            top: detections kept per query.

        Returns:
            Best first within each query: query_id, doc_id, channel, start, end, score, cost, frames, example.

        Warns:
            UserWarning: what was chosen that nobody said, such as the channel of a recording, and what is odd.

        Raises:
            AudioError, UserError: a query cannot be used. Also where others can: then nothing has been searched.
        """

        def say(text: str) -> None:
            warnings.warn(text, stacklevel=4)  # of whoever searches

        for warning in self.setup.warnings:
            say(warning)
        *_, hits = self.stream(queries, top, say=say, warn=say)
        frame: pd.DataFrame = hits.table().to_pandas()
        return frame

    def stream(
        self,
        queries: object,
        top: int = 20,
        *,
        on_cut: Callable[[Cut], None] | None = None,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> Iterator[Hits]:
        """Yield the hits so far: once the queries are read, and each time that a part of the store has been searched.

        The last result is that of `search`.

        Args:
            queries, top: as for `search`.
            on_cut: called with the parts of the query that are cut off.
            skip: called for each unusable example, and the others are searched; without it, an unusable example is an error.
            say: called with each choice that the caller did not make.
            warn: called with each oddity.
        """
        top = integer(top, "top", 1)
        self._demand_open()
        examples, covariates = self.queries.examples(queries, on_cut, skip, say)
        if not examples.num_rows:  # `skip` was told of all
            yield Hits(1.0, lambda: DETECTIONS.empty_table().drop_columns(_NOT_SHOWN))
            return
        if warn is not None:
            for warning in self.queries.warnings(examples):
                warn(warning)
        steps = self._steps(examples, covariates, top)
        examples = steps.read("groups")
        results = [CANDIDATES.empty_table()]

        def table() -> pa.Table:
            steps.give("candidates", pa.concat_tables(results), ALL_SLOTS)
            return _best(steps.read("scored"), top).drop_columns(_NOT_SHOWN)

        searched, frames = 0, sum(unit.frames for unit in self._units)
        yield Hits(0.0, table)
        search = self._candidates
        for unit, tables in search(examples) if self._passes is None else self._passes.search(search, examples):
            results += (part.cast(CANDIDATES) for part in tables)
            searched += unit.frames
            yield Hits(searched / max(frames, 1), table)
        if not self._units:
            yield Hits(1.0, table)

    def _steps(self, examples: pa.Table, covariates: dict[str, Tally], top: int) -> InMemory:
        """The steps of the chain for a question, with its queries."""
        count = top
        if not all(step.stage.keeps_order(self._config) for step in self._way.steps):
            count = max(top, self._config.reduce.nbest.count(self.store.manifest.counts["seconds"]))
        reduce = self._config.reduce.model_copy(
            update={"buckets": 1, "nbest": KeepDetections(least=count, per_second=0)}
        )
        context = MemoryContext(self.store.folder, {}, self._memory)
        config = self._config.model_copy(update={"reduce": reduce})
        steps = InMemory(self._chain_steps, config, self._inputs, context)
        query_ids = pc.unique(examples["query_id"]).to_pylist()
        steps.give("groups", examples, ALL_SLOTS, Extracted(examples.num_rows, query_ids, 0, 0.0))
        if covariates:
            steps.give("described", to_table(covariates), ALL_SLOTS)
        if self._calibration is not None:
            steps.give("calibration", self._calibration, ALL_SLOTS)
        return steps

    def query_rows(
        self,
        queries: object,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
        folder: Path | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES, which can be changed and searched; see `swsdist.searcher.queries.query_rows`."""
        self._demand_open()
        return self.queries.rows(queries, skip, say, folder)

    def spoken_rows(
        self,
        texts: object,
        voices: Sequence[str],
        folder: Path,
        skip: Skip | None = None,
        say: Callable[[str], None] | None = None,
    ) -> list[dict[str, Any]]:
        """Rows of QUERIES of texts that voices speak, which can be searched by example as long as `folder` exists.

        Args:
            texts: texts, or tables (.csv, .tsv, .parquet) of them.
            voices: `SYNTHESISER:VOICE`; each makes an example of a text.
            folder: for the recordings.
            skip, say: as for `stream`.

        Raises:
            UserError: the store is not of frames, or a voice is not there.
            TermError: without `skip`: a text cannot be spoken.
        """
        self._demand_open()
        if not isinstance(self.queries, SpokenQueries):
            raise families.UNSUPPORTED(
                "the store has words and no frames, in which a spoken text could be searched",
                "search it without --speak, or index the recordings: swsdist index FOLDER",
                where=self.store.folder.path(),
            )

        def refuse(row: Mapping[str, Any], error: TermError) -> None:
            with skipping(skip, row["query_id"], row["example"]):
                raise error

        return spoken_rows(written_rows(texts, self.store, say), voices, Folder(str(folder)), refuse)

    def curve(self, query: str, doc_id: str, channel: int = 1) -> pd.DataFrame:
        """How well a spoken query fits if it ends at each frame of a document; see `swsdist.curve`."""
        frame: pd.DataFrame = self._pair(query, doc_id, channel).curve().to_pandas()
        return frame

    def warping_path(self, query: str, doc_id: str, end: float, channel: int = 1) -> pd.DataFrame:
        """Which frame of a document meets which frame of a query; see `swsdist.warping_path`."""
        frame: pd.DataFrame = self._pair(query, doc_id, channel).path(end).to_pandas()
        return frame

    def _pair(self, query: str, doc_id: str, channel: int) -> Pair:
        channel = integer(channel, "channel", 1)
        for warning in self.setup.warnings:
            warnings.warn(warning, stacklevel=4)
        self._demand_open()
        if not isinstance(self.queries, SpokenQueries):
            raise families.UNSUPPORTED(
                "the method {method} does not compare frames: there is no curve of it",
                "name a store of frames",
                where="search.method",
                method=self.settings.method,
            )
        examples, _ = self.queries.examples([self.queries.typed(query)])
        return Pair.of(self.store, examples, doc_id, channel, self.settings)

    def _candidates(self, examples: pa.Table) -> Iterator[tuple[Unit, Iterable[pa.Table]]]:
        """CANDIDATES of each unit, as they come."""
        if self._shards is not None:
            yield from self._shards.search(examples)
            return
        prepared = self._method.prepare(examples, self.store)
        for unit in self._units:
            yield unit, self._method.search(prepared, self.store, unit.shards, 1).tables

    # What every search wants to know of a store, read once.

    @cached_property
    def _units(self) -> list[Unit]:
        return list(self._method.plan(self.store))

    @cached_property
    def queries(self) -> SpokenQueries | WrittenQueries:
        """Reads queries of the method's kind."""
        if METHODS[self.settings.method].queries == "text":
            return WrittenQueries(self.store, self._terms)
        return SpokenQueries(self.store, self.settings, self.calibrate, self.trim)


def _best(detections: pa.Table, top: int) -> pa.Table:
    """The first so many detections of each query."""
    if not detections.num_rows:
        return detections
    codes = detections["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    rank = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return detections.filter(pa.array(rank < top))


def _calibration(calibrate: Calibrate, search: Search) -> bytes | None:
    """The fitted steps of a section, with what a run has fitted; None: no step is fitted.

    Raises:
        ConfigError: a step needs more than a search without a run has.
    """
    score, entries = METHODS[search.method].score, calibrate.entries()
    if error := misfit_of(calibrate, score, references=False, where="calibrate.steps"):
        raise error
    check_steps(calibrate, score)
    needs = {
        "a cohort of queries": [name for name in entries if entries[name].cohort],
        "the number of trials": [name for name in entries if entries[name].operating_point],
    }
    for what, names in needs.items():
        for name in names:
            raise families.MISSING_INPUT.of(ConfigError)(
                "step {step} needs {input}, which only a run has",
                "leave it out, or run a config: `swsdist run`",
                where="calibrate.steps",
                step=name,
                input=what,
            )
    _, fitted = procedures(calibrate, TwvParameters(1, 1.0))  # which no step looks at
    if not fitted.steps:
        return None
    fitted = fitted.with_file(calibration_file(calibrate.fit, {}), calibrate.fit, thresholds=False)
    return replace(fitted, thresholds=(None,)).to_json()
