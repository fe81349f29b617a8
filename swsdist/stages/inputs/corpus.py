"""The corpus of a plan: immutable tables for any chain, each read once, on demand.

True occurrences of the queries come from a table, or are looked up in a transcript:

- A table of references: see `swsdist.corpora.references`.
- An RTTM or CTM: terms are looked up as in the scorers, by the rules of the config's protocol, which also decides about
  words outside of an ECF. A run then scores like `swsdist score` with the same lists.
- Kaldi's `text`: a query occurs in the documents whose text contains its term as whole words, ignoring case. The text
  has no times, so trials must be documents.

The scored population is all documents of a corpus, readable or not. Trials (seconds, segments, documents), true
occurrences, pairs, and queries that every document contains are all counted in it. So an unreadable document affects
measures like one that is searched without hits.

Queries of another corpus: documents are looked up there, its speakers differ from those of the searched corpus, and its
means and variances normalise its queries. A method normalises a query like the searched documents, by mean M and
deviation S of the collection. So a query of another corpus, with mean m and deviation s of its own collection or
speaker, is first moved there: (x - m) / s S + M. The method then removes M and S, which leaves (x - m) / s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.synthesis import spoken_rows
from swsdist.config import Config
from swsdist.config.model import Corpus as Section
from swsdist.config.search import Search
from swsdist.core.arrays import Bools, Floats
from swsdist.core.codes import families
from swsdist.core.codes import stages as codes
from swsdist.core.errors import TermError, UserError
from swsdist.core.types import DOCUMENTS, EXAMPLES, QUERIES, REFERENCES, TERMS
from swsdist.corpora.documents import ENDINGS, kind_of, read_documents
from swsdist.corpora.kaldi import read_text
from swsdist.corpora.places import Places, in_documents, is_placed, stretches
from swsdist.corpora.queries import read_queries
from swsdist.corpora.references import has_verdicts, read_judgements, read_references
from swsdist.evaluation.reading import look_up_references, references_within
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.nist.termlist import read_termlist
from swsdist.io.notices import Notices, sample
from swsdist.lattices.collection import speakers_of
from swsdist.reduce.spans import SourcePlaces, outside_places, source_places
from swsdist.registry.registries import METHODS
from swsdist.score.measures.protocol import Protocol, protocol_of
from swsdist.stages.inputs.corpus_documents import places_in
from swsdist.store.reading import Store, keys_of


def corpus_of_queries(config: Config) -> Section | None:
    """The corpus of the queries; None if it is the searched one."""
    section = config.corpus.queries_from
    if section.documents is None:
        return None
    return Section(documents=section.documents, audio=section.audio, prefer=section.prefer, speakers=section.speakers)


def takes_query_statistics(config: Config) -> bool:
    """Whether statistics of the queries' corpus are needed: the method takes frames, and normalises them by those alone."""
    method = METHODS[config.search.method]
    if (method.queries, method.reads) != ("spoken", "frames"):
        return False
    section, terms = config.corpus.queries_from, config.search.terms()
    named = section.documents is not None and section.statistics == "theirs" and config.corpus.queries is not None
    return named and config.search.queries_by != "pooled" and any(term.normalise != "none" for term in terms)


def speakers_meet(config: Config) -> bool:
    """Whether the searched documents of a query's speaker normalise the query."""
    section = config.corpus.queries_from
    return config.search.queries_by == "speaker" and (section.documents is None or section.same_speakers)


def speaker_of(name: str | None, config: Config) -> str | None:
    """The name here of a speaker of the queries' corpus: distinct from all others, unless speakers are declared the
    same.
    """
    same = name is None or config.corpus.queries_from.same_speakers
    return name if same else f"{name} (of the queries)"


def without_documents(queries: pa.Table, config: Config) -> pa.Table:
    """QUERIES of another corpus without `doc_id` and speakers, which have no meaning in the searched one."""
    rows = [{**row, "doc_id": None, "speaker": speaker_of(row["speaker"], config)} for row in queries.to_pylist()]
    return pa.Table.from_pylist(rows, QUERIES)


def renormalise(
    examples: pa.Table, statistics: Mapping[tuple[str, str], Statistics], ours: Statistics, search: Search
) -> pa.Table:
    """EXAMPLES of another corpus, moved from its mean and deviation to those of the searched collection.

    Args:
        examples: speakers are named as in `statistics`.
        statistics: by scope; the query's speaker's are used if `search.queries_by` says so, and they exist.
        ours: of the collection.
        search: normalisation of columns, with tracks in their places.

    Returns:
        EXAMPLES without speakers, so that a method uses the collection's statistics.
    """
    from swsdist.methods.dtw.shard import offset_and_scale  # loads numba

    collection = statistics["collection", ""]
    to, stretch = offset_and_scale(search, ours)
    rows = []
    for row in examples.to_pylist():
        source = collection
        if search.queries_by == "speaker":
            source = statistics.get(("speaker", row["speaker"] or ""), collection)
        offset, scale = offset_and_scale(search, source)
        frames = np.frombuffer(row["features"], "<f4").reshape(-1, len(to)).astype(np.float64)
        frames = (frames - offset) / scale * stretch + to
        rows.append({**row, "speaker": None, "features": frames.astype("<f4").tobytes()})
    return pa.Table.from_pylist(rows, EXAMPLES)


class CorpusReferences(NamedTuple):
    """References of a corpus.

    Attributes:
        references: REFERENCES.
        tabled: whether they are from a table (messages name its rows).
        judged: of judgements: places judged `yes` or `no`, REFERENCES; None: what is no reference is known to be false.
    """

    references: pa.Table
    tabled: bool
    judged: pa.Table | None = None


def depends_on_score(config: Config) -> bool:
    """Whether references or the searched seconds depend on the section `score`: true unless they are plain tables.

    An unreadable file counts as a table; the code that reads it reports the fault.
    """
    corpus, storage = config.corpus, config.storage

    def kind(path: str, key: str) -> str:
        try:
            return kind_of(path, key, ENDINGS, storage)
        except UserError:
            return "table"

    if corpus.text is not None or kind(corpus.documents, "documents") == "ECF":
        return True
    return corpus.references is not None and kind(corpus.references, "references") != "table"


def excerpts_of(config: Config) -> pa.Table | None:
    """The ECF that names the documents: EXCERPTS; None if documents are from elsewhere."""
    path, storage = config.corpus.documents, config.storage
    return read_ecf(path, storage) if kind_of(path, "documents", ENDINGS, storage) == "ECF" else None


def find_references(
    config: Config, documents: pa.Table, queries: pa.Table, notices: Notices
) -> CorpusReferences | None:
    """The references of a corpus; None if it has none.

    Args:
        config: defines corpus and protocol.
        documents: CORPUS or PLACED.
        queries: QUERIES.
        notices: collects oddities.

    Raises:
        UserError: a file is missing, or of the wrong kind; or the references do not suit the kind of trials.
        DataError: a file is broken.
    """
    corpus, storage, rules = config.corpus, config.storage, protocol_of(config.score)
    if corpus.text is not None:
        return CorpusReferences(_from_text(corpus.text, rules, documents, queries, storage, notices), tabled=False)
    path = corpus.references
    if path is None:
        return None
    kind = kind_of(path, "references", ENDINGS, storage)
    if kind == "table" and has_verdicts(path, storage):
        true, judged = read_judgements(path, documents, queries, notices, storage)
        return CorpusReferences(_searched(true, documents, rules, path, notices), tabled=False, judged=judged)
    if kind == "table":
        result = read_references(path, documents, queries, storage, notices)
        return CorpusReferences(_searched(result, documents, rules, path, notices), tabled=True)
    terms, lowercase = _terms(config, queries, notices)
    rttm, ctm = (path, None) if kind == "RTTM" else (None, path)
    result, first_end, _ = look_up_references(rttm, ctm, terms, rules, rules.rules, lowercase, notices, storage)
    excerpts = excerpts_of(config)
    if excerpts is not None:
        return CorpusReferences(references_within(result, first_end, excerpts, rules, False, notices), tabled=False)
    there = Places(documents).by_recording
    inside = [key in there for key in zip(result["doc_id"].to_pylist(), result["channel"].to_pylist(), strict=True)]
    strange = result.filter(pa.array([not item for item in inside], pa.bool_()))
    if strange.num_rows:
        first = f"{strange['doc_id'][0]}, channel {strange['channel'][0]}"
        notices.weigh(
            codes.OCCURRENCE_NOT_SEARCHED,
            where=f"{path}: {first}; recordings are {sample(key[0] for key in there)}",
            count=strange.num_rows,
            of=result.num_rows,
            most=1,
        )
    result = result.filter(pa.array(inside, pa.bool_()))
    return CorpusReferences(_searched(result, documents, rules, path, notices), tabled=False)


def _terms(config: Config, queries: pa.Table, notices: Notices) -> tuple[pa.Table, bool]:
    """TERMS of the queries, and whether comparison ignores case."""
    source, storage = str(config.corpus.queries), config.storage
    if kind_of(source, "queries", ENDINGS, storage) == "term list":
        listed = read_termlist(source, storage, notices=Notices())  # oddities were noted when the queries were read
        return listed.terms.select(TERMS.names), listed.lowercase
    rows = [{"query_id": query_id, "term": " ".join(words)} for query_id, words in _words(queries, source, notices)]
    return pa.Table.from_pylist(rows, TERMS), True


def _from_text(
    path: str, rules: Protocol, documents: pa.Table, queries: pa.Table, storage: Mapping[str, object], notices: Notices
) -> pa.Table:
    if rules.trials != "document":
        raise families.UNSUPPORTED(
            "a text says in which documents terms occur, and trials of protocol {protocol} are {trials}s",
            "set score.trials: document (or score.protocol: quesst), or give corpus.references with times",
            where=f"corpus.text: {path}",
            protocol=rules.name,
            trials=rules.trials,
        )
    text = read_text(path, storage)
    names = set(documents["doc_id"].to_pylist())
    strange = [name for name in text if name not in names]
    if strange:
        notices.weigh(
            codes.TEXT_OF_UNKNOWN_DOCUMENT,
            where=f"{text[strange[0]][1]}: {strange[0]}; documents are {sample(names)}",
            count=len(strange),
            of=len(text),
            most=1,
        )
    silent = [name for name in names if name not in text]
    if silent:
        notices.add(codes.DOCUMENT_WITHOUT_TEXT, where=f"{path}: {min(silent)}", count=len(silent))
    by_word: dict[str, list[tuple[str, list[str]]]] = {}
    for query_id, words in _words(queries, path, notices):
        lower = [word.lower() for word in words]
        by_word.setdefault(lower[0], []).append((query_id, lower))
    rows = []
    for row in documents.to_pylist():
        words = [word.lower() for word in text.get(row["doc_id"], ([], ""))[0]]
        result: dict[str, None] = {}
        for at, word in enumerate(words):
            for query_id, term in by_word.get(word, ()):
                if words[at : at + len(term)] == term:
                    result[query_id] = None
        start = row.get("start", 0.0)
        place = {
            "doc_id": row.get("recording", row["doc_id"]),
            "channel": row["channel"],
            "start": start,
            "end": row.get("end", row["duration"] or 0.0),
        }
        rows += [{"query_id": query_id, **place} for query_id in result]
    return pa.Table.from_pylist(rows, REFERENCES)


def _words(queries: pa.Table, where: str, notices: Notices) -> list[tuple[str, list[str]]]:
    """Queries, and the words of each of their terms; notes queries without."""
    texts: dict[str, dict[tuple[str, ...], None]] = {}
    for row in queries.select(["query_id", "term"]).to_pylist():
        words = tuple((row["term"] or "").split())
        texts.setdefault(row["query_id"], {}).update({words: None} if words else {})
    lacking = [query_id for query_id, some in texts.items() if not some]
    if lacking:
        notices.add(codes.QUERY_WITHOUT_TERM, where=f"{where}: {lacking[0]}", count=len(lacking))
    return [(query_id, list(words)) for query_id, some in texts.items() for words in some]


def _searched(references: pa.Table, documents: pa.Table, rules: Protocol, path: str, notices: Notices) -> pa.Table:
    """References, except those of document trials between the documents of their recording; these are noted."""
    if not is_placed(documents):
        return references
    inside = in_documents(references, Places(documents))
    if inside.all():
        return references
    first = references.filter(pa.array(~inside)).slice(0, 1).to_pylist()[0]
    left_out = rules.trials == "document"
    notices.weigh(
        codes.REFERENCE_IN_NO_DOCUMENT,
        where=f"{path}: {first['query_id']} in {first['doc_id']}, {first['start']:g} to {first['end']:g} s",
        count=int((~inside).sum()),
        of=references.num_rows,
        then="left out" if left_out else "counted as misses",
    )
    return references.filter(pa.array(inside)) if left_out else references


def documents_of(section: Section, storage: Mapping[str, object], notices: Notices, audio: bool) -> pa.Table:
    """The documents that a section `corpus` names: CORPUS, or PLACED where they are places in recordings.

    Args:
        section, storage: of the config.
        notices: collects oddities of the tables.
        audio: whether recordings are needed.
    """
    speakers = speakers_of(section.speakers, storage)
    return read_documents(section.documents, storage, speakers, notices, section.prefer, section.audio, audio=audio)


class Corpus:
    """The tables that a config's section `corpus` names.

    Args:
        config: its protocol defines how terms are looked up, and the trials.
        notices: collects oddities of the tables.
        audio: whether recordings are needed, not only precomputed frames.
        documents_audio: whether documents need theirs, too; where they are searched by text, they do not.
    """

    def __init__(self, config: Config, notices: Notices, audio: bool, documents_audio: bool = True) -> None:
        self.config, self._notices, self._audio, self._documents_audio = config, notices, audio, documents_audio

    @cached_property
    def documents(self) -> pa.Table:
        """CORPUS, or PLACED where documents are places in recordings."""
        audio = self._audio and self._documents_audio
        return documents_of(self.config.corpus, self.config.storage, self._notices, audio)

    @cached_property
    def placed(self) -> bool:
        """Whether documents are places in recordings."""
        return is_placed(self.documents)

    @cached_property
    def query_inputs(self) -> Corpus | None:
        """The corpus of the queries, if it is another one."""
        corpus = corpus_of_queries(self.config)
        if corpus is None:
            return None
        return Corpus(
            self.config.model_copy(update={"corpus": corpus}), self._notices, self._audio, self._documents_audio
        )

    @cached_property
    def queries(self) -> pa.Table:
        """The query examples in use: QUERIES.

        Raises:
            UserError: the config names none.
        """
        section, query_inputs = self.config.corpus, self.query_inputs
        if section.queries is None:
            raise families.EMPTY_INPUT(
                "there are no queries to search", "name a table or a folder of queries", where="corpus.queries"
            )
        if query_inputs is None:
            return self._queries(section.queries, section.spoken, self.documents)
        return without_documents(self._queries(section.queries, section.spoken, query_inputs.documents), self.config)

    @cached_property
    def terms(self) -> dict[str, str | None]:
        """The text of each query; alternatives are separated by bars."""
        texts: dict[str, dict[str, None]] = {}
        for row in self.queries.select(["query_id", "term"]).to_pylist():
            texts.setdefault(row["query_id"], {}).update({row["term"]: None} if row["term"] else {})
        return {query_id: " | ".join(some) or None for query_id, some in texts.items()}

    @cached_property
    def cohort(self) -> pa.Table:
        """Examples of cohort queries, used only to judge others: QUERIES."""
        return self._queries(str(self.config.corpus.cohort), None, self.documents)

    def _queries(self, source: str, spoken: str | None, documents: pa.Table) -> pa.Table:
        examples, storage, voices = self.config.corpus.examples, self.config.storage, self.config.queries.speak
        table = read_queries(source, documents, examples, storage, self._notices, spoken, audio=self._audio)
        if not voices or METHODS[self.config.search.method].queries == "text":
            return table

        unspoken: list[Mapping[str, Any]] = []  # are rejected, as texts

        def refuse(row: Mapping[str, Any], error: TermError) -> None:
            self._notices.add(codes.UNSPOKEN_QUERIES, where=row["query_id"], count=1, reason=error.message)
            unspoken.append(row)

        rows = spoken_rows(table.to_pylist(), voices, Folder(f"{self.config.run}/spoken", storage), refuse)
        return pa.Table.from_pylist([*rows, *unspoken], QUERIES)

    @cached_property
    def references(self) -> pa.Table | None:
        """True occurrences: REFERENCES; None if the corpus has no references."""
        return self._truth[0]

    @property
    def judged(self) -> pa.Table | None:
        """Places that were judged `yes` or `no`, REFERENCES; None: all other detections are known to be false."""
        return self._truth[2]

    @property
    def tabled(self) -> bool:
        """Whether references were read from a table."""
        return self.has_read("references") and self._truth[1]

    @cached_property
    def _truth(self) -> tuple[pa.Table | None, bool, pa.Table | None]:
        if not self.config.corpus.has_references:
            return None, False, None
        if (truth := find_references(self.config, self.documents, self.queries, self._notices)) is None:
            return None, False, None
        return outside_places(truth.references, self.own_places), truth.tabled, truth.judged

    @cached_property
    def own_places(self) -> SourcePlaces:
        """Places that queries were cut from, if detections there are excluded: for trials in seconds."""
        section, trials = self.config.corpus, protocol_of(self.config.score).trials
        if section.own_places == "keep" or self.query_inputs is not None or section.queries is None or trials != "time":
            return {}
        return source_places(self.queries.to_pylist(), self.documents, by_path=section.own_places == "leave-out")

    def has_read(self, name: str) -> bool:
        """Whether a table has been read."""
        return name in vars(self)


#: Columns of a store's documents in use.
COLUMNS = ["doc_id", "channel", "recording", "start", "duration"]

#: `recording` and `start` (s) are null if a document is a recording of its own; `duration` (s) is measured, or, for an
#: unreadable document, from the corpus, or null; `read`: whether the store has it. The table is used unless the audio
#: contradicts it, so an ECF of the same corpus has the same numbers.
POPULATION = pa.schema(
    [
        *(DOCUMENTS.field(name).with_nullable(name not in COLUMNS[:2]) for name in COLUMNS),
        pa.field("read", pa.bool_(), False),
    ]
)


#: Tolerance of durations, s and relative: tables are rounded, and decoders pad.
_ROUNDED, _PART = 0.1, 0.01


def agree(stated: Floats, measured: Floats) -> Bools:
    """Whether stated durations (s) agree with measured ones; false for NaN (not stated)."""
    return np.less_equal(np.abs(stated - measured), np.maximum(_ROUNDED, _PART * measured))


def population_of(documents: pa.Table, store: Store | None) -> pa.Table:
    """The population of a corpus: POPULATION, in its order.

    Args:
        documents: CORPUS or PLACED.
        store: documents read so far; None before indexing.
    """
    placed, nulls = is_placed(documents), pa.nulls(documents.num_rows, pa.string())
    stated = pc.subtract(documents["end"], documents["start"]) if placed else documents["duration"]
    lengths, read = stated.to_numpy().copy(), np.zeros(documents.num_rows, bool)  # NaN where the table does not say
    if store is not None:
        table = store.documents(columns=["doc_id", "channel", "duration"])
        keys = keys_of(documents["doc_id"], documents["channel"])
        at = places_in(keys, keys_of(table["doc_id"], table["channel"]))
        read = at >= 0
        measured = np.append(table["duration"].to_numpy(), np.nan)[at]
        wrong = read & ~agree(lengths, measured)
        lengths[wrong] = measured[wrong]
    columns = {
        "doc_id": documents["doc_id"],
        "channel": documents["channel"],
        "recording": documents["recording"] if placed else nulls,
        "start": documents["start"] if placed else nulls.cast(pa.float64()),
        "duration": pa.array(lengths, pa.float64(), mask=np.isnan(lengths)),
        "read": pa.array(read),
    }
    return pa.table(columns, schema=POPULATION)


def seconds_of_channel_1(population: pa.Table) -> float:
    """Seconds of audio, of channel 1 only, as in STDEval; overlaps between places in a recording count once.

    Unreadable documents without a stated duration count as zero.
    """
    lengths = spans_of(population.filter(pc.equal(population["channel"], 1)))["duration"]
    return round(math.fsum(lengths.to_pylist()), 6)


def spans_of(population: pa.Table) -> pa.Table:
    """Searchable spans: doc_id, channel, start, duration (s); for places in recordings, by recording."""
    with_duration = population.filter(pc.is_valid(population["duration"]))
    if with_duration["recording"].null_count == with_duration.num_rows:
        return with_duration.select(["doc_id", "channel", "duration"])
    return stretches(with_duration)
