"""Inputs of the stages: the corpus, the features, and the store's state; and notices of their oddities.

Oddities in the tables of a searchable corpus are noted with a count and the first case. Checks before the work use
durations from a table or header; checks afterwards use measured ones.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import SHORTEST
from swsdist.calibrate.procedure import check_folds, fold_of, procedures
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.core.codes import stages as codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import CORPUS, DOCUMENTS
from swsdist.corpora.documents import ENDINGS, kind_of
from swsdist.corpora.places import is_placed
from swsdist.features.interface import frame_shift
from swsdist.io.filesystem import Folder
from swsdist.io.notices import UNFIT, Notices
from swsdist.io.tables import place
from swsdist.methods.dtw.backends.create import missing
from swsdist.methods.query.example import WORK
from swsdist.pipeline.chain import ChainInputs
from swsdist.pipeline.ledger import Ledger
from swsdist.reduce.spans import SourcePlaces
from swsdist.registry.registries import BACKENDS, CALIBRATION, DISTANCES, METHODS
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.trials import seconds as excerpt_seconds
from swsdist.stages.inputs.corpus import (
    Corpus,
    agree,
    depends_on_score,
    excerpts_of,
    population_of,
    seconds_of_channel_1,
    speakers_meet,
)
from swsdist.stages.inputs.corpus_documents import (
    CorpusDocuments,
    RunFeatures,
    add_items_of_examples,
    corpus_documents_of,
    document_seconds,
    identities,
    places_in,
    scores_of,
)
from swsdist.stages.inputs.state import StoreState
from swsdist.store.reading import Store, keys_of, of_rows

if TYPE_CHECKING:
    from swsdist.pipeline.chain_run import ChainRun


#: Seconds, by document and channel.
Seconds = Mapping[tuple[str, int], float]

#: Measured durations of documents (s).
MEASURED = pa.schema([*(CORPUS.field(name) for name in ("doc_id", "channel", "duration")), DOCUMENTS.field("cut_off")])

#: Tolerated excess of a reference's end beyond its recording (s).
_BEYOND = 0.5


def note_durations(documents: pa.Table, measured: pa.Table, where: str, storage: Any, notices: Notices) -> None:
    """Note durations in the documents' table (CORPUS) that the audio (MEASURED) contradicts, and truncated recordings."""
    cut = measured.filter(pc.is_valid(measured["cut_off"]))
    measured = measured.filter(pc.is_null(measured["cut_off"]))
    if cut.num_rows:
        first = cut.slice(0, 1).to_pylist()[0]
        length = f"{first['cut_off']:.1f} s" if first["cut_off"] else "an unknown length"
        notices.add(
            codes.TRUNCATED_RECORDING_INDEXED,
            where=f"{first['doc_id']}, {first['duration']:.1f} of {length}",
            count=pc.count_distinct(cut["doc_id"]).as_py(),
        )
    stated = documents["duration"].to_numpy()  # NaN if not stated
    at = places_in(keys_of(documents["doc_id"], documents["channel"]), keys_of(measured["doc_id"], measured["channel"]))
    actual = np.append(measured["duration"].to_numpy(), np.nan)[at]
    wrong = np.flatnonzero(~(agree(stated, actual) | np.isnan(stated) | np.isnan(actual)))
    if len(wrong):
        row = int(wrong[0])
        shown = f"{_at(where, row, documents, storage)}: {stated[row]:g} s, and there are {actual[row]:.2f} s"
        if kind_of(where, "documents", ENDINGS, storage) in ("folder", "recording"):
            notices.add(codes.WRONG_HEADER_DURATION, where=shown, count=len(wrong))
            return
        notices.weigh(
            codes.CONTRADICTED_DURATION,
            where=shown,
            count=len(wrong),
            of=int((~(np.isnan(stated) | np.isnan(actual))).sum()),
        )


def note_unread(population: pa.Table, where: str, notices: Notices) -> None:
    """Note unreadable documents of unknown duration: the scored seconds are too few."""
    unknown = population.filter(pc.and_(pc.invert(population["read"]), pc.is_null(population["duration"])))
    if unknown.num_rows:
        notices.add(codes.UNREAD_WITHOUT_DURATION, where=f"{where}: {unknown['doc_id'][0]}", count=unknown.num_rows)


def note_late_references(references: pa.Table, seconds: Seconds, where: str, storage: Any, notices: Notices) -> None:
    """Note references (REFERENCES) that end after their recording, and the likely unit of their times."""
    keys = list(zip(references["doc_id"].to_pylist(), references["channel"].to_pylist(), strict=True))
    ends = references["end"].to_pylist()
    timed = [k for k, key in enumerate(keys) if key in seconds]
    outside = [k for k in timed if ends[k] > seconds[keys[k]] + _BEYOND]
    if not outside:
        return
    most = len(outside) > UNFIT * len(timed)
    units = {"milliseconds": 1000.0, "frames of 10 ms": 100.0, "samples": 8000.0}
    fitting = [unit for unit, n in units.items() if all(ends[k] / n <= seconds[keys[k]] + _BEYOND for k in timed)]
    row = outside[0]
    advice = "check their times and recordings: nothing after the end can be found"
    if most and fitting:
        advice = f"they could be {' or '.join(fitting)}: give seconds"
    notices.weigh(
        codes.REFERENCE_AFTER_END,
        where=f"{place(where, row, storage)}: to {ends[row]:g} s, and there are {seconds[keys[row]]:.2f} s",
        count=len(outside),
        of=len(timed),
        advice=advice,
    )


def note_unknown_speakers(documents: pa.Table, queries: pa.Table, where: str, notices: Notices) -> None:
    """Note speakers of queries that no document has, if documents have speakers."""
    speakers = set(pc.unique(documents["speaker"]).to_pylist()) - {None}
    requested = [name for name in dict.fromkeys(queries["speaker"].to_pylist()) if name is not None]
    strange = [name for name in requested if name not in speakers]
    if speakers and strange:
        notices.add(
            codes.QUERY_SPEAKER_UNKNOWN,
            where=f"{where}: {strange[0]!r}; documents have {sorted(speakers)[0]!r}",
            count=len(strange),
        )


def note_query_places(
    documents: pa.Table, queries: pa.Table, left_out: SourcePlaces, where: str, notices: Notices
) -> None:
    """Note queries that are places in searched recordings: each finds itself, unless its own place is left out."""
    if left_out:
        query_id, recording = next(iter(left_out))
        notices.inform(
            codes.QUERY_SOURCE_EXCLUDED, where=f"{query_id!r}, in {recording}", count=sum(map(len, left_out.values()))
        )
    cut = {query_id for query_id, _ in left_out}
    searched: dict[tuple[str, int], list[tuple[float, float]]] = {}
    columns = [name for name in ("path", "channel", "start", "end") if name in documents.column_names]
    meant = pc.is_in(documents["path"], pc.unique(queries["path"]).drop_null())
    for row in documents.select(columns).filter(meant).to_pylist():
        span = (row.get("start", 0.0), row.get("end", math.inf))
        searched.setdefault((row["path"], row["channel"]), []).append(span)
    chain_inputs = [
        row
        for row in queries.to_pylist()
        if row["path"]
        and row["query_id"] not in cut
        and any(
            start < (math.inf if row["end"] is None else row["end"]) and (row["start"] or 0.0) < end
            for start, end in searched.get((row["path"], row["channel"]), ())
        )
    ]
    if chain_inputs:
        notices.add(
            codes.QUERY_FINDS_ITSELF,
            where=f"{where}: {chain_inputs[0]['query_id']!r}, in {chain_inputs[0]['path']}",
            count=len(chain_inputs),
        )


def note_query_lengths(spoken: Seconds, longest: float, where: str, notices: Notices) -> None:
    """Note query examples longer than the longest document (s), which can hardly occur in any; and too short ones."""
    short = [key for key, length in spoken.items() if length < SHORTEST]
    if short:
        query_id, example = short[0]
        notices.add(
            families.SHORT_QUERY.saying(
                "{count} query example{s} shorter than {shortest:g} s: many other sounds are similar",
                "give a longer word, or its phrase",
            ),
            where=f"{where}: {query_id!r}, example {example}, {spoken[short[0]]:.2f} s",
            count=len(short),
            shortest=SHORTEST,
        )
    longer = [key for key, length in spoken.items() if length > longest > 0]
    if longer:
        (query_id, example), length = longer[0], spoken[longer[0]]
        notices.add(
            codes.LONG_QUERY_EXAMPLE,
            where=f"{where}: {query_id!r}, example {example}, {length:.2f} s; the longest document has {longest:.2f} s",
            count=len(longer),
        )


def _at(where: str, row: int, documents: pa.Table, storage: Any) -> str:
    if is_placed(documents):
        return str(documents["listed"][row])
    tabled = kind_of(where, "documents", ENDINGS, storage) == "table"
    return place(where, row, storage) if tabled else str(documents["path"][row])


def seconds_of(documents: pa.Table, some: pa.ChunkedArray | None = None) -> dict[tuple[str, int], float]:
    """Durations in a table of documents (CORPUS, or that of a store); of all, or of those with `some` names."""
    mask = pc.is_valid(documents["duration"])
    if some is not None:
        mask = pc.and_(mask, pc.is_in(documents["doc_id"], pc.unique(some)))
    timed = documents.select(["doc_id", "channel", "duration"]).filter(mask)
    keys = zip(timed["doc_id"].to_pylist(), timed["channel"].to_pylist(), strict=True)
    return dict(zip(keys, timed["duration"].to_pylist(), strict=True))


def folds_of_steps(settings: Calibrate) -> set[int]:
    """Numbers of folds by which steps are crossfit."""
    return {settings.folds} if settings.fitted and settings.fit == "crossfit" else set()


def check_scorable(documents: pa.Table, where: str, references: pa.Table, folds: Iterable[int]) -> None:
    """Check that documents and references suffice for scoring and fitting.

    Args:
        documents, where: see `demand_channel_1`.
        references: REFERENCES, at least one.
        folds: numbers of folds by which calibration steps are fitted.

    Raises:
        UserError: nothing can be scored, or steps cannot be fitted.
    """
    demand_channel_1(documents, where)
    for many in sorted(folds):
        check_folds(Counter(fold_of(name, many) for name in references["query_id"].unique().to_pylist()), many)


def demand_channel_1(documents: pa.Table, where: str) -> None:
    """Demand a document of channel 1: its seconds make the trials, as in STDEval, which counts a recording once for all
    channels.

    Raises:
        UserError: no document is of channel 1, so nothing can be scored.
    """
    channels = sorted(pc.unique(documents["channel"]).to_pylist())
    if channels and 1 not in channels:
        raise families.UNSUPPORTED(
            (
                "no document is of channel 1, whose seconds alone are counted in scoring (as in "
                "STDEval); there is channel {channels} only"
            ),
            (
                "list channel 1 of the recordings too, or make separate recordings of the channel that "
                "is searched (ffmpeg -i INPUT -af 'pan=mono|c0=c1' OUTPUT.flac), or search without "
                "references"
            ),
            where=f"corpus.documents: {where}",
            channels=", ".join(map(str, channels)),
        )


def document_checks(config: Config) -> list[Callable[[pa.Table], None]]:
    """Checks of documents by a config's steps; each raises if documents are unsuitable.

    Raises:
        ConfigError: steps use lists, and the trials of the protocol are segments.
    """
    settings = config.calibrate
    result: list[Callable[[pa.Table], None]] = []
    here = settings.fit in ("crossfit", "oracle")
    steps = [step for procedure in procedures(settings, TwvParameters(1, 1.0)) for step in procedure.steps]
    by_list = [step.name for step in steps if step.of_list() and (here or not CALIBRATION[step.name].fits)]
    trials = protocol_of(config.score).trials
    if by_list and trials == "segment":
        raise families.UNSUPPORTED.of(ConfigError)(
            "{step} uses all trials of a query, and segment trials are known only in scoring",
            "leave the step out (of llr the covariates best, gap, posterior-sum), or score by time",
            where="calibrate.steps",
            step=by_list[0],
        )
    if by_list and trials == "document":
        result.append(partial(demand_whole_recordings, by_list[0]))
    return result


def demand_whole_recordings(step: str, documents: pa.Table) -> None:
    """Demand documents that are recordings, for steps that use a query's document trials.

    Args:
        step: its name.
        documents: CORPUS or PLACED.

    Raises:
        UserError: documents are places in recordings.
    """
    if is_placed(documents):
        raise families.UNSUPPORTED(
            "{step} uses all trials of a query, which are documents, and these documents are places in recordings",
            "leave the step out (of llr the covariates best, gap, posterior-sum), or make recordings of the places",
            where="calibrate.steps",
            step=step,
        )


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
        if "references" in read and (references := self._timed) is not None:
            durations = seconds_of(self.corpus.documents, references["doc_id"])
            note_late_references(references, durations, str(corpus.references), storage, self.notices)

    @property
    def _timed(self) -> pa.Table | None:
        """References that were read from a table with times in whole recordings; None: there are none."""
        return self.corpus.references if self.corpus.tabled and not self.corpus.placed else None

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
        if (references := self._timed) is not None:
            meant = references["doc_id"]
            durations = seconds_of(self.corpus.documents, meant)  # noted before
            rest = {key: seconds for key, seconds in seconds_of(measured, meant).items() if key not in durations}
            note_late_references(references, rest, str(corpus.references), storage, result)
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
        """Rows of QUERIES with the `identity` of each file."""
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
                raise methods_codes.STREAM_COLUMNS_OUTSIDE(where=where, dimension=width, first=term.first, stop=stop)
            read = [
                f"{self.features.kinds[name]} of {name}"
                for name, (first, last) in self.features.tracks.items()
                if first < stop and term.first < last
            ]
            if DISTANCES[term.distance].posteriors and (
                len(read) > 1 or not read[0].startswith(("posteriors", "given"))
            ):
                raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                    "the distance {distance} takes posteriors, and its columns are {kinds}",
                    (
                        "name another distance, or search posteriors (the transform gmm makes some), each track "
                        "in a stream of its own"
                    ),
                    where=where,
                    distance=term.distance,
                    kinds=" and ".join(read),
                )

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
            raise families.MISSING_INPUT(
                "all frames are precomputed, so silence in them is unknown",
                (
                    "search all of them (search.skip_silence: false), or add a track that is made of the "
                    "recordings to features, such as mfcc"
                ),
                where="search.skip_silence",
            )
