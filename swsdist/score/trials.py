"""Trials of a protocol: aligned lists from detections and references, and the rules of ECF and transcript behind them.

============  =========================================  ==========================================================
trials are    what pairs a detection with a reference    what is needed besides detections and references
============  =========================================  ==========================================================
`time`        the mid-point rule (`score.align.align`)   least and greatest score of the list, by STDEval's rules
`segment`     both lie in one segment                    the segments: documents and their stretches of speech
              (`align_segments`)
`document`    both lie in one document                   how many documents there are, for the operating point
              (`document_trials`)
============  =========================================  ==========================================================

All rows of a query must be in one call; queries may be partitioned in any way. Whatever the trials, the aligned list
has schema TRIALS, and all measures apply to it, with the number of trials of a query as N. Times are in seconds.

Document trials: one trial for each query and document, a target if the query occurs in it at least once. The score of a
trial is the best of the query's detections in that document; times do not matter. A row is a trial with a detection, a
reference, or both. SWS 2011 and QUESST are scored this way.

Segment trials (KWSEval's option `-g`, of OpenKWS13): one trial for each term and segment. Segments of an excerpt come
from the stretches of speech (`SPEAKER` records) that lie wholly inside it, by begin time: a gap before one is a segment
of silence; one that begins exactly where the last segment ends is a new segment of speech; one that overlaps the last
extends it; what is left over is a segment of silence. All segments are trials of every term. A term's target is a
segment of speech in which it occurs, all its words lying in that segment, once or more. A detection belongs to the
first segment whose span, borders included, holds its mid-point; of a term's detections in a segment the one with the
highest score is kept, and detections in no segment are dropped. There is no tolerance and no kernel. Where a kept
detection lies exactly on the border of two segments KWSEval may lose it, or another one, from its counts, depending on
the order of a hash. Here it belongs to the earlier segment, for targets and false alarms.

Rules of an ECF: length of the audio (T), documents, and which times it includes. The programs, STDEval 0.7 and KWSEval
(F4DE 3.5), differ in all of them; each rule was read from the program's source, and confirmed by running it.

STDEval
    T is the sum of the durations of the excerpts whose channel is 1, each time they occur. Everything is scored, or,
    with its option -E, only what lies wholly in an excerpt. A document's name is the last part of the path without
    `.sph`, `.wav`, `.flac`; the excerpt ends at begin + duration.
KWSEval
    T is per file, all channels together, without overlaps: excerpts are sorted by begin, then end; each one's end is
    cut down to the least begin of a later one that starts before that end; half for `splitcts`. What lies in no excerpt
    is always left out. A document's name is the last part of the path without what follows its last dot; the excerpt
    ends at begin + duration, rounded to 4 decimals.

References looked up in a transcript: a term's words must follow one another, spoken by one speaker in one document and
channel, with gaps of at most `word_gap` seconds between them (at 4 decimals, inclusive; negative gaps are allowed).
Words are lower-cased, by Unicode's rules; no normal form is applied. The programs differ:

STDEval
    One pass from left to right that never goes back: occurrences do not overlap, and a word that breaks a match is
    tried as a first word, earlier ones are not; a word that comes too late is used up. The k-th id, in sorted order, of
    one text gets each occurrence k times. Words come in the order of the file.
KWSEval
    Every word that equals the first one begins an attempt, so occurrences may overlap. A filled pause or fragment
    (sub-type `fp`, `frag`) cannot be a first word. The word after the i-th is the one after the i-th by begin time: in
    a file that is not sorted by time these are the wrong words, and `Occurrences.unsorted` says so. The first word
    obeys compareNormalize, the others never do.

Sources: NIST STD 2006 evaluation plan, section 2.1; Rodriguez-Fuentes and Penagarikano 2013, section 2.2.1 (document
trials); F4DE 3.5, KWSEval, and NIST, OpenKWS13 evaluation plan (segment trials); the programs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import score as codes
from swsdist.core.types import PLACED, REFERENCES, TRIALS, columns
from swsdist.corpora.places import Places, by_document
from swsdist.score.align import align, decimals
from swsdist.score.conventions import KWSEVAL, Conventions, Name, conventions_of
from swsdist.score.measures.protocol import Protocol


def seconds(excerpts: pa.Table, conventions: Conventions | str) -> float:
    """T, s of counted audio.

    Args:
        excerpts: table EXCERPTS.
        conventions: the program whose rules apply, or its name.
    """
    rules = conventions_of(conventions)
    if rules.per_channel:
        total = 0.0
        for row in _rows(excerpts):
            # Sequential, as the program adds: half a second may change the rounding of N.
            total += row["duration"] if row["channel"] == 1 else 0.0
        return total
    files: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    ends = _ends(excerpts, rules)
    for row, end in zip(_rows(excerpts), ends, strict=True):
        files[rules.excerpt_document(row["file"])].append((row["start"], float(end), row["source_type"]))
    total = 0.0
    for file in sorted(files):
        total += _without_overlap(files[file])
    return total


def named_documents(excerpts: pa.Table, conventions: Conventions) -> list[str]:
    """The documents that excerpts name, each once, in their order."""
    return list(dict.fromkeys(conventions.excerpt_document(file) for file in excerpts["file"].to_pylist()))


def _without_overlap(excerpts: list[tuple[float, float, str]]) -> float:
    """Lengths of one file's excerpts without overlaps; excerpts are (begin, end, source type)."""
    ordered = sorted(excerpts, key=lambda excerpt: excerpt[:2])
    total = 0.0
    for k, (start, end, kind) in enumerate(ordered):
        # Begins ascend, so the next one is the least of the later ones.
        cut = min(end, ordered[k + 1][0]) if k + 1 < len(ordered) else end
        total += (cut - start) * (0.5 if kind == "splitcts" else 1.0)
    return total


def inside(
    table: pa.Table,
    excerpts: pa.Table,
    conventions: Conventions | str,
    *,
    tail: Floats | None = None,
) -> Bools:
    """Whether each row lies wholly in one excerpt of its document and channel: start >= tbeg and end <= its end.

    Args:
        table: doc_id, channel, start, end (s).
        excerpts: table EXCERPTS.
        conventions: whose rules for names and ends.
        tail: float64, the ends, instead of a column.

    Returns:
        bool (rows,).
    """
    spans: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    rules = conventions_of(conventions)
    ends = _ends(excerpts, rules)
    for row, end in zip(_rows(excerpts), ends, strict=True):
        spans[rules.excerpt_document(row["file"]), row["channel"]].append((row["start"], float(end)))
    result = np.zeros(table.num_rows, dtype=bool)
    begin, end = table["start"].to_numpy(), table["end"].to_numpy() if tail is None else tail
    for key, rows in rows_by_document(table):
        for low, high in spans.get(key, ()):
            result[rows] |= (begin[rows] >= low) & (end[rows] <= high)
    return result


def rows_by_document(table: pa.Table) -> Iterable[tuple[tuple[str, int], Ints]]:
    """The documents (doc_id, channel) of a table, and the rows of each."""
    if not table.num_rows:
        return
    names = table["doc_id"].cast(pa.dictionary(pa.int32(), pa.string())).combine_chunks()
    channel = table["channel"].to_numpy().astype(np.int64)
    code = names.indices.to_numpy().astype(np.int64) * (channel.max() + 1) + channel
    order = np.argsort(code, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        yield (names.dictionary[int(names.indices[int(rows[0])].as_py())].as_py(), int(channel[rows[0]])), rows


def _ends(excerpts: pa.Table, rules: Conventions) -> Floats:
    ends: Floats = pc.add(excerpts["start"], excerpts["duration"]).to_numpy()
    return ends if rules.sums_ends else decimals(ends, 4)


def excerpt_documents(excerpts: pa.Table, conventions: Conventions | str) -> pa.Table:
    """The excerpts as documents, in the columns of PLACED that `swsdist.corpora.places` reads.

    Args:
        excerpts: table EXCERPTS; one that is listed twice is one document.
        conventions: whose rules for names and ends.
    """
    rules = conventions_of(conventions)
    ends = zip(_rows(excerpts), _ends(excerpts, rules).tolist(), strict=True)
    rows = sorted({(rules.excerpt_document(row["file"]), row["channel"], row["start"], end) for row, end in ends})
    several = Counter(row[:2] for row in rows)
    ids = [name if several[name, channel] == 1 else f"{name}:{start!r}-{end!r}" for name, channel, start, end in rows]
    names = ("doc_id", "recording", "channel", "start", "end")
    columns = [ids, *(zip(*rows, strict=True) if rows else [()] * 4)]
    return pa.table([pa.array(c, PLACED.field(n).type) for n, c in zip(names, columns, strict=True)], names=names)


def _rows(excerpts: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = excerpts.select(["file", "channel", "start", "duration", "source_type"]).to_pylist()
    return rows


#: Begins and ends (s) by document and channel.
Spans = dict[tuple[str, int], list[tuple[float, float]]]

#: One row per segment, by document, channel and begin.
SEGMENTS = columns("doc_id string, channel int32, start float64, end float64, speech bool")


def segments(excerpts: pa.Table, speakers: pa.Table) -> pa.Table:
    """The segments of all excerpts.

    Args:
        excerpts: table EXCERPTS.
        speakers: table LEXEMES of the stretches of speech.

    Returns:
        table SEGMENTS.
    """
    ends = decimals(speakers["start"].to_numpy() + speakers["duration"].to_numpy(), 4)
    keys = zip(*(speakers[name].to_pylist() for name in ("doc_id", "channel", "start")), strict=True)
    talk: Spans = defaultdict(list)
    for (doc_id, channel, start), end in zip(keys, ends.tolist(), strict=True):
        talk[doc_id, channel].append((start, end))
    close = decimals(excerpts["start"].to_numpy() + excerpts["duration"].to_numpy(), 4)
    names = [KWSEVAL.excerpt_document(file) for file in excerpts["file"].to_pylist()]
    return _cut(
        zip(names, *(excerpts[name].to_pylist() for name in ("channel", "start")), close.tolist(), strict=True), talk
    )


def segments_of_documents(documents: pa.Table, speech: pa.Table) -> pa.Table:
    """The segments of documents, or of searched parts of recordings: each is one excerpt.

    Args:
        documents: doc_id, channel, duration (s), and maybe start (s), which else is 0.
        speech: doc_id, channel, start, end (s) of the stretches of speech; those that do not lie wholly in their document are
            ignored, as those outside of an excerpt.

    Returns:
        table SEGMENTS.
    """
    talk: Spans = defaultdict(list)
    for doc_id, channel, start, end in zip(
        *(speech[name].to_pylist() for name in ("doc_id", "channel", "start", "end")), strict=True
    ):
        talk[doc_id, channel].append((start, end))
    rows = documents.to_pylist()
    cut = ((row["doc_id"], row["channel"], row.get("start", 0.0), row["duration"]) for row in rows)
    return _cut(((doc_id, channel, start, start + duration) for doc_id, channel, start, duration in cut), talk)


def _cut(excerpts: Iterable[tuple[str, int, float, float]], talk: Spans) -> pa.Table:
    """Excerpts, as document, channel, begin and end, cut where speech begins and ends."""
    rows = []
    for doc_id, channel, begin, close in excerpts:
        inner = sorted(span for span in talk[doc_id, channel] if span[0] >= begin and span[1] <= close)
        parts: list[list[float]] = []  # begin, end, 1 for speech
        at = begin
        for start, end in inner:
            if start > at:
                parts.append([at, start, 0.0])
                parts.append([start, end, 1.0])
            elif start == at:
                parts.append([start, end, 1.0])
            else:
                parts[-1][1] = max(parts[-1][1], end)
            at = max(at, end)
        if at < close:
            parts.append([at, close, 0.0])
        rows += [(doc_id, channel, start, end, bool(speech)) for start, end, speech in parts]
    rows.sort()  # by document, in time order
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SEGMENTS)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SEGMENTS, strict=True)], SEGMENTS)


def align_segments(detections: pa.Table, references: pa.Table, spoken: pa.Table) -> pa.Table:
    """Segment trials of detections and references.

    Args:
        detections: query_id, doc_id, channel, start, end, score; optionally decision and duration.
        references: query_id, doc_id, channel, start, end; occurrences whose words may lie anywhere.
        spoken: table SEGMENTS.

    Returns:
        table TRIALS: `ref_start`, `ref_end` are a target segment's; a row a (query, segment) that is a target or holds
        a detection.
    """
    kept_detections = _kept(detections, spoken)
    targets = _targets(references, spoken)
    rows = []
    for key in sorted(set(kept_detections) | targets):
        query_id, segment = key
        start, end, score, decision = kept_detections.get(key, (None, None, None, None))
        ref = (spoken["start"][segment].as_py(), spoken["end"][segment].as_py()) if key in targets else (None, None)
        doc_id, channel = spoken["doc_id"][segment].as_py(), spoken["channel"][segment].as_py()
        rows.append((query_id, doc_id, channel, start, end, score, decision, *ref))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(TRIALS)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, TRIALS, strict=True)], TRIALS)


def _of_point(time: Floats, start: Floats, end: Floats) -> Ints:
    """Index of the first segment that holds each time, -1 for none; segments by begin."""
    first = np.searchsorted(end, time, side="left")  # segments do not overlap, so ends ascend with begins
    inside = (first < len(start)) & (np.append(start, np.inf)[first] <= time)
    return np.where(inside, first, -1)


def _kept(detections: pa.Table, spoken: pa.Table) -> dict[tuple[str, int], tuple[float, float, float, bool | None]]:
    start, end = detections["start"].to_numpy(), detections["end"].to_numpy()
    duration = detections["duration"].to_numpy() if "duration" in detections.column_names else end - start
    segment = _segment_of(detections, spoken, start + duration / 2)
    queries = detections["query_id"].cast(pa.string()).to_pylist()
    score = detections["score"].to_pylist()
    decided = detections["decision"].to_pylist() if "decision" in detections.column_names else [None] * len(score)
    kept: dict[tuple[str, int], tuple[float, float, float, bool | None]] = {}
    for k in np.lexsort((start, -detections["score"].to_numpy())).tolist():
        if segment[k] >= 0:
            kept.setdefault((queries[k], int(segment[k])), (float(start[k]), float(end[k]), score[k], decided[k]))
    return kept


def _targets(references: pa.Table, spoken: pa.Table) -> set[tuple[str, int]]:
    start, end = references["start"].to_numpy(), references["end"].to_numpy()
    first = _segment_of(references, spoken, start)
    speech, begins, ends = spoken["speech"].to_pylist(), spoken["start"].to_numpy(), spoken["end"].to_numpy()
    document = list(zip(spoken["doc_id"].to_pylist(), spoken["channel"].to_pylist(), strict=True))
    targets = set()
    for k, query_id in enumerate(references["query_id"].to_pylist()):
        segment = int(first[k])
        # A word that begins on a border lies in the segment after it.
        after = segment + 1
        on_border = segment >= 0 and start[k] == ends[segment] and end[k] > start[k]
        if on_border and after < len(ends) and document[after] == document[segment] and begins[after] == start[k]:
            segment = after
        if segment >= 0 and speech[segment] and begins[segment] <= start[k] and end[k] <= ends[segment]:
            targets.add((query_id, segment))
    return targets


def _segment_of(table: pa.Table, spoken: pa.Table, time: Floats) -> Ints:
    """Row of the segment that holds each row's time."""
    result = np.full(table.num_rows, -1, dtype=np.int64)
    of_document = {key: np.sort(rows) for key, rows in rows_by_document(spoken)}
    start, end = spoken["start"].to_numpy(), spoken["end"].to_numpy()
    for key, rows in rows_by_document(table):
        segment_rows = of_document.get(key)
        if segment_rows is not None:
            segment_rows = segment_rows[np.lexsort((end[segment_rows], start[segment_rows]))]
            at = _of_point(time[rows], start[segment_rows], end[segment_rows])
            result[rows] = np.where(at >= 0, segment_rows[at], -1)
    return result


KEY = ("query_id", "doc_id", "channel")

#: Places of a trial's query and of the trial, which decide between equal scores: without an order of a list 0, and of a target
#: that the list lacks, its place among the documents that the query lacks.
ORDER = (pa.field("query", pa.int64(), False), pa.field("row", pa.int64(), False))


def document_trials(detections: pa.Table, references: pa.Table) -> pa.Table:
    """One row for each query and document that has a detection or a reference.

    Args:
        detections: query_id, doc_id, channel, start, end (s), score; optionally decision. Rows in any order.
        references: query_id, doc_id, channel, start, end (s).

    Returns:
        A table of schema TRIALS, ordered by query_id, doc_id, channel. Times, score and decision are those of the
        detection with the best score (of equal ones a YES comes first, then the earliest), `ref_start` and `ref_end`
        of the earliest reference.

    Raises:
        TableError: a column is missing, or a score is null or not finite.
    """
    if "decision" not in detections.column_names:
        detections = detections.append_column("decision", pa.nulls(detections.num_rows, pa.bool_()))
    detected = _columns(detections, "detections", ("start", "end", "score", "decision"))
    true = _columns(references, "references", ("start", "end")).rename_columns([*KEY, "ref_start", "ref_end"])
    bad = pc.invert(pc.fill_null(pc.is_finite(detected["score"]), False)).to_numpy()
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        place = ", ".join(f"{name} {detected[name][row]}" for name in KEY)
        raise codes.NOT_FINITE_NUMBER(
            where=f"detections, row {row + 1} ({place})", column="score", value=detected["score"][row]
        )
    detected = _first(
        detected, [("score", "descending"), ("decision", "descending"), ("start", "ascending"), ("end", "ascending")]
    )
    true = _first(true, [("ref_start", "ascending"), ("ref_end", "ascending")])
    both = detected.join(true, list(KEY), join_type="full outer")
    return both.sort_by([(name, "ascending") for name in KEY]).select(TRIALS.names).cast(TRIALS).combine_chunks()


def pairs_of(aligned: pa.Table, places: Places | None = None) -> pa.Table:
    """Convert an aligned list of any kind of trials to document trials.

    Args:
        aligned: schema TRIALS.
        places: the documents, if they are places in the recordings named by the list.
    """
    detected = aligned.filter(pc.is_valid(aligned["score"]))
    true = aligned.filter(pc.is_valid(aligned["ref_start"])).select([*KEY, "ref_start", "ref_end"])
    true = true.rename_columns([*KEY, "start", "end"])
    if places is not None:
        detected, true = by_document(detected, places), by_document(true, places)
    return document_trials(detected, true)


def _columns(table: pa.Table, what: str, names: tuple[str, ...]) -> pa.Table:
    for name in (*KEY, *names):
        if name not in table.column_names:
            raise codes.ABSENT_COLUMN(where=what, column=name, columns=", ".join(table.column_names))
    return pa.table({name: table[name].cast(TRIALS.field(name).type) for name in (*KEY, *names)})


def _first(table: pa.Table, order: list[tuple[str, str]]) -> pa.Table:
    """The first row of each key in the given order."""
    table = table.sort_by([*((name, "ascending") for name in KEY), *order]).combine_chunks()
    if table.num_rows < 2:
        return table
    new = np.ones(table.num_rows, dtype=bool)
    same = (pc.equal(table[name].slice(1), table[name].slice(0, table.num_rows - 1)) for name in KEY)
    new[1:] = ~np.logical_and.reduce([column.to_numpy() for column in same])
    return table.filter(pa.array(new))


@dataclass(frozen=True)
class TrialRules:
    """How trials are made; plain values for a task's payload.

    Attributes:
        trials_are: what a trial is.
        conventions: name of the scoring program.
        tolerance: s, of the mid-point rule; None if unused.
        low, high: least and greatest score of the whole list; None: of each group (KWSEval).
    """

    trials_are: Literal["time", "segment", "document"]
    conventions: Name
    tolerance: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, rules: Protocol, low: float | None = None, high: float | None = None) -> TrialRules:
        """The rules of a protocol.

        Args:
            rules: the protocol.
            low, high: least and greatest score of the list. By KWSEval's conventions, of its header, if at all.
        """
        if rules.trials != "time":
            return cls(rules.trials, rules.conventions, None)
        return cls("time", rules.conventions, rules.tolerance, low, high)

    @property
    def needs_limits(self) -> bool:
        """Whether the least and greatest score of the whole list must be known first."""
        return self.trials_are == "time" and conventions_of(self.conventions).list_limits

    def as_json(self) -> dict[str, str | float | None]:
        """Plain values by name; `TrialRules(**values)` is the inverse."""
        return asdict(self)


def make_trials(
    detections: pa.Table, references: pa.Table, rules: TrialRules, segments: pa.Table | None = None
) -> pa.Table:
    """An aligned list (schema TRIALS).

    Args:
        detections: query_id, doc_id, channel, start, end (s), score; maybe decision and duration. All rows of each query.
        references: query_id, doc_id, channel, start, end (s), of the same queries.
        rules: how trials are made.
        segments: table SEGMENTS of segment trials.

    Raises:
        UserError: segment trials without segments.
        TableError: a column is missing, or a value cannot be scored.
    """
    if rules.trials_are == "segment":
        if segments is None:
            raise codes.MISSING_SEGMENTS(where="score")
        return align_segments(detections, references, segments)
    if rules.trials_are == "document":
        return document_trials(detections, references)
    assert rules.tolerance is not None
    return align(
        detections,
        references,
        tolerance=rules.tolerance,
        low=rules.low,
        high=rules.high,
        conventions=rules.conventions,
    )


def check_needs(rules: Protocol, available: Mapping[str, bool], where: str) -> None:
    """Check that the inputs of a protocol's trials are available, before anything is computed.

    Args:
        rules: the protocol.
        available: whether `speech` (stretches of speech) and `documents` (their number) are known.
        where: the config key or option, for messages.

    Raises:
        UserError: an input is missing.
    """
    if rules.trials == "segment" and not available.get("speech"):
        raise codes.MISSING_SEGMENTS(where=where)
    if rules.trials == "document" and not available.get("documents"):
        raise codes.UNKNOWN_DOCUMENT_COUNT(where=where, protocol=rules.name)


def segments_for(rules: Protocol, documents: pa.Table, speech: pa.Table | None) -> pa.Table | None:
    """The segments of a run's documents; None unless trials are segments.

    Args:
        rules: the protocol.
        documents: doc_id, channel, duration (s), all that were searched.
        speech: doc_id, channel, start, end (s) of stretches of speech.

    Raises:
        UserError: there is no speech.
    """
    if rules.trials != "segment":
        return None
    if speech is None or not speech.num_rows:
        raise codes.MISSING_SEGMENTS(where="score.speech")
    return segments_of_documents(documents, speech)


def in_every_document(references: pa.Table, documents: int) -> list[str]:
    """Queries that occur in every document, by id: they have no false-alarm rate for document trials, and are left out.

    Args:
        references: query_id, doc_id, channel, start, end.
        documents: how many there are.
    """
    pairs = (
        references.select(["query_id", "doc_id", "channel"]).group_by(["query_id", "doc_id", "channel"]).aggregate([])
    )
    counts = pairs.group_by("query_id").aggregate([("doc_id", "count")])
    in_all = counts.filter(pc.greater_equal(counts["doc_id_count"], documents))
    return sorted(in_all["query_id"].to_pylist())


#: Sub-types that KWSEval does not accept as first words.
_NO_FIRST_WORD = frozenset(("frag", "fp"))


class _Spoken(NamedTuple):
    """All words, those of a chain (one document, channel and speaker) together, in the order of the file.

    Attributes:
        row: int64 (W,), row of the transcript.
        word: int64 (W,), code of the lower-cased word.
        first: int64 (W,), code of the word for comparison with first words; -1 if it cannot be one.
        start, end: float64 (W,), s; the end at 4 decimals.
        limit: int64 (W,), where its chain ends.
        following: int64 (W,), the word that KWSEval links to it; -1 for none.
    """

    row: Ints
    word: Ints
    first: Ints
    start: Floats
    end: Floats
    limit: Ints
    following: Ints


class Occurrences(NamedTuple):
    """True occurrences of terms, and oddities.

    Attributes:
        references: table REFERENCES, by query in the order of the term list, then in the order of the transcript.
        first_end: float64 (rows,), end of the first word, s (KWSEval compares it with the ECF).
        repeated: ids with the text of an earlier id.
        unsorted: documents whose words are not in the order of time.
    """

    references: pa.Table
    first_end: Floats
    repeated: list[str]
    unsorted: list[str]


def look_up(
    terms: pa.Table,
    lexemes: pa.Table,
    *,
    word_gap: float,
    conventions: Conventions | str = "stdeval",
    lowercase: bool = True,
) -> Occurrences:
    """Find every occurrence of every term.

    Args:
        terms: table TERMS.
        lexemes: table LEXEMES, in the order of the file.
        word_gap: s, maximum gap between words, inclusive.
        conventions: the program whose rules apply, or its name.
        lowercase: compare first words without regard to case (KWSEval: compareNormalize; STDEval always does).
    """
    rules = conventions_of(conventions)
    fold = lowercase or rules.lowercases
    spoken, lower, exact, unsorted = _spoken(lexemes, rules, fold)
    by_first = np.argsort(spoken.first, kind="stable")
    sorted_first = spoken.first[by_first]
    ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    texts = [tuple((_lower(text) if fold else text).split()) for text in terms["term"].to_pylist()]
    terms_of_ids = list(dict.fromkeys(zip(terms["query_id"].to_pylist(), texts, strict=True)))
    names = [name for name, _ in terms_of_ids]
    for name, words in terms_of_ids:
        ids[words].append(name)

    find = _kwseval if rules.links else _stdeval
    cache: dict[tuple[str, ...], tuple[Ints, Ints]] = {}
    for words in ids:
        codes = [exact.get(words[0], -2), *(lower.get(_lower(word), -2) for word in words[1:])]
        firsts = by_first[slice(*np.searchsorted(sorted_first, [codes[0], codes[0] + 1]))]
        if len(words) > 1 and len(firsts):
            pairs = list(find(codes, spoken, firsts, word_gap))
            cache[words] = np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)
        else:
            cache[words] = firsts, firsts

    times, repeated = {}, []
    for same_words, same in ids.items():
        for k, name in enumerate(sorted(same)):
            times[same_words, name] = k + 1 if rules.repeats else 1
            repeated += [name] if k else []
    parts = [cache[words] for name, words in terms_of_ids for _ in range(times[words, name])]
    sizes = np.array([len(cache[words][0]) * times[words, name] for name, words in terms_of_ids], np.int64)
    none = np.zeros(0, np.int64)
    a, b = (np.concatenate([none, *(part[side] for part in parts)]) for side in (0, 1))
    rows = pa.array(spoken.row[a])
    columns = [
        pa.array(names, pa.string()).take(pa.array(np.repeat(np.arange(len(names)), sizes))),
        lexemes["doc_id"].combine_chunks().take(rows),
        lexemes["channel"].combine_chunks().take(rows),
        pa.array(spoken.start[a]),
        pa.array(spoken.end[b]),
    ]
    return Occurrences(pa.Table.from_arrays(columns, schema=REFERENCES), spoken.end[a], repeated, unsorted)


def _spoken(
    lexemes: pa.Table, rules: Conventions, fold: bool
) -> tuple[_Spoken, dict[str, int], dict[str, int], list[str]]:
    """The words; the codes of lower-cased words and of first words; documents with words out of time order."""
    size = lexemes.num_rows
    chain = np.zeros(size, dtype=np.int64)
    for name in ("doc_id", "channel", "speaker"):
        codes = lexemes[name].combine_chunks().dictionary_encode(null_encoding="encode")
        chain = chain * (len(codes.dictionary) + 1) + codes.indices.to_numpy()
    row = np.argsort(chain, kind="stable")
    chain = chain[row]
    start = lexemes["start"].to_numpy()[row]
    end = decimals(start + lexemes["duration"].to_numpy()[row], 4)

    words = lexemes["word"].combine_chunks().dictionary_encode()
    written = words.dictionary.to_pylist()
    at = words.indices.to_numpy()[row] if size else row
    lower: dict[str, int] = {}
    exact: dict[str, int] = {}
    code = np.array([lower.setdefault(_lower(word), len(lower)) for word in written], dtype=np.int64)
    first = np.array([exact.setdefault(_lower(word) if fold else word, len(exact)) for word in written], dtype=np.int64)
    first_of = first[at] if size else at
    if rules.links:
        kinds = lexemes["kind"].combine_chunks().dictionary_encode(null_encoding="encode")
        barred = [(kind or "").lower() in _NO_FIRST_WORD for kind in kinds.dictionary.to_pylist()]
        if any(barred):
            first_of = np.where(np.array(barred)[kinds.indices.to_numpy()[row]], -1, first_of)
    last = np.searchsorted(chain, chain, side="right")
    # KWSEval: the word after the i-th is the one after the i-th by begin time.
    by_time = np.lexsort((np.arange(size), start, chain))
    following = np.append(by_time[1:], -1)[:size]
    following[last - 1] = -1
    backwards = np.flatnonzero((np.diff(start) < 0) & (np.diff(chain) == 0))
    unsorted = sorted(set(lexemes["doc_id"].take(pa.array(row[backwards])).to_pylist()))
    spoken = _Spoken(row, code[at] if size else at, first_of, start, end, last, following)
    return spoken, lower, exact, unsorted


def _lower(text: str) -> str:
    """Lower-case letter by letter, as Perl does; Python treats a capital sigma at a word's end differently."""
    return "".join(map(str.lower, text)) if "\u03a3" in text else text.lower()


def _too_far(spoken: _Spoken, k: int, before: int, word_gap: float) -> bool:
    """Whether word k comes too late after the one before it."""
    return float(f"{spoken.start[k] - spoken.end[before]:.4f}") > word_gap


def _stdeval(codes: list[int], spoken: _Spoken, firsts: Ints, word_gap: float) -> Iterator[tuple[int, int]]:
    """First and last word of each occurrence of several words."""
    size = len(codes)
    reached = 0
    for begin in firsts.tolist():
        if begin < reached:
            continue
        limit = min(int(spoken.limit[begin]), begin + size)
        k = begin + 1
        while k < limit and spoken.word[k] == codes[k - begin]:
            if _too_far(spoken, k, k - 1, word_gap):
                k += 1  # this word is used up, too
                break
            k += 1
            if k - begin == size:
                yield begin, k - 1
        reached = k


def _kwseval(codes: list[int], spoken: _Spoken, firsts: Ints, word_gap: float) -> Iterator[tuple[int, int]]:
    """First and last word of each occurrence of several words."""
    for begin in firsts.tolist():
        k = begin
        for code in codes[1:]:
            before, k = k, int(spoken.following[k])
            if k < 0 or spoken.word[k] != code or _too_far(spoken, k, before, word_gap):
                break
        else:
            yield begin, k


def in_order(
    aligned: pa.Table, detections: pa.Table, queries: Sequence[str], documents: Sequence[str] | None
) -> pa.Table:
    """Add ORDER to an aligned list.

    Args:
        aligned: document trials of these detections, TRIALS.
        detections: query_id, doc_id, in the order of the list.
        queries: ids in the order of the term list.
        documents: ids in the order of the ECF; None: those that the list lacks have no order.
    """
    names = documents or sorted(set(aligned["doc_id"].to_pylist()))

    def places(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        query, document = (
            pc.index_in(table[column].cast(pa.string()), value_set=pa.array(ids, pa.string())).to_numpy()
            for column, ids in (("query_id", queries), ("doc_id", names))
        )
        return query.astype(np.int64), query.astype(np.int64) * len(names) + document

    query, cell = places(aligned)
    listed, first = np.unique(places(detections)[1], return_index=True)
    at = np.searchsorted(listed, cell)
    missed = aligned["score"].is_null().to_numpy()
    before = at - np.searchsorted(listed, query * len(names))
    lacking = cell % max(1, len(names)) - before if documents else place_in_query(query, missed)
    row = np.where(missed, lacking, first[np.minimum(at, len(first) - 1)] if len(first) else 0)
    for field, column in zip(ORDER, (query, row), strict=True):
        aligned = aligned.append_column(field, pa.array(column, pa.int64()))
    return aligned


def place_in_query(query: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The place of each chosen row among those of its query.

    Args:
        query: number of each row's query; rows of a query are together.
        chosen: whether the row counts.
    """
    total = np.cumsum(chosen)
    _, first, which = np.unique(query, return_index=True, return_inverse=True)
    places: np.ndarray = total - 1 - (total - chosen)[first][which]
    return places
