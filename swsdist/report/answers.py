"""Pages with players: hits of a search, and classes of term discovery (word candidates).

Hits are also shown as lines of a terminal and as a table, by query.

Pages are self-contained: no network requests, readable without scripts. Names in a page are untrusted: jinja2
escapes all of them; only waveforms and clips of this module are inserted unescaped. A content security policy forbids
everything that it does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from swsdist.calibrate.likelihood import word_of
from swsdist.core.errors import AudioError
from swsdist.core.text import shown
from swsdist.report.summary import clock, rendered
from swsdist.report.tables import Table
from swsdist.store.same_sound import Copies

if TYPE_CHECKING:
    import pyarrow as pa

    from swsdist.discovery.scene import Word


#: Context around a hit, s.
AROUND = 0.75
#: Longest sound on the page, s, without context.
LONGEST = 60.0
#: Sounds and bytes of sound that a browser opens with ease.
MOST_SOUNDS = 1000
MOST_BYTES = 40_000_000


@dataclass(frozen=True)
class Sound:
    """A clip.

    Attributes:
        uri: its data, MP3.
        svg: its waveform.
        seconds: its length.
        begin: where the matched stretch begins in it, s.
    """

    uri: str
    svg: str
    seconds: float
    begin: float


def sound_of(
    path: str,
    start: float | None,
    end: float | None,
    *,
    channel: int = 1,
    mark: tuple[float, float] | None = None,
    pad: float = AROUND,
    storage: Mapping[str, object] | None = None,
) -> Sound:
    """A place of a recording.

    Args:
        path: local or `s3://`.
        start, end: of the place, s; None: of the recording. At most `LONGEST`.
        channel: from 1.
        mark: the matched stretch, s in the recording; by default the place.
        pad: s around the place.
        storage: options for s3fs.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    first = start or 0.0
    if end is not None:
        end = min(end, first + LONGEST)
    # Loaded for pages only, as hits on a terminal have no sound.
    from swsdist.audio.reader import PAGE_RATE, data_uri, read_clip
    from swsdist.report.plots.timeline import waveform_svg

    clip = read_clip(path, start, end, pad=pad, channel=channel, rate=PAGE_RATE, storage=storage)
    clip = clip._replace(samples=clip.samples[: round((LONGEST + 2 * pad) * clip.rate)])
    seconds = len(clip.samples) / clip.rate
    marked = mark or (first, clip.begin + seconds if end is None else end)
    low, high = (min(max((at - clip.begin) / seconds, 0.0), 1.0) for at in marked)
    return Sound(data_uri(clip), waveform_svg(clip.samples, (low, high)), seconds, low * seconds)


class Sounds:
    """The sounds of a page.

    Args:
        storage: options for the file system of recordings.
        most: sounds, besides the limits `MOST_SOUNDS` and `MOST_BYTES`.

    Attributes:
        left_out: sounds beyond these.
    """

    def __init__(self, storage: Mapping[str, object] | None, most: int | None = None) -> None:
        self._storage = storage
        self._most = MOST_SOUNDS if most is None else min(most, MOST_SOUNDS)
        self._sounds = self._bytes = self.left_out = 0

    def of(
        self,
        path: str | None,
        start: float | None,
        end: float | None,
        *,
        channel: int,
        mark: tuple[float, float] | None = None,
        pad: float = AROUND,
    ) -> Sound | str:
        """A sound as of `sound_of`, or the reason for its absence."""
        if not path:
            return "no recording"
        if self._sounds >= self._most or self._bytes >= MOST_BYTES:
            self.left_out += 1
            return "left out"
        try:
            sound = sound_of(path, start, end, channel=channel, mark=mark, pad=pad, storage=self._storage)
        except AudioError as error:
            return error.message
        self._sounds += 1
        self._bytes += len(sound.uri) + len(sound.svg)
        return sound


@dataclass(frozen=True)
class AnswerHit:
    """A hit; times in s.

    Attributes:
        channels: of the recording with this hit.
        likely: its probability; None where it is not known.
        path: of the recording, local or a url; None or empty without a recording.
        also: other recordings with the same sound.
        rows: its detections, as places in the list of all.
    """

    query_id: str
    doc_id: str
    channels: tuple[int, ...]
    start: float
    end: float
    score: float
    likely: float | None
    path: str | None = None
    also: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()

    @property
    def called(self) -> str:
        """The word for that probability (`swsdist.calibrate.likelihood`)."""
        return word_of(self.likely)


@dataclass(frozen=True)
class Answer:
    """The hits of one query, best first."""

    query_id: str
    hits: tuple[AnswerHit, ...]

    @property
    def likely(self) -> int:
        """How many hits are called likely."""
        return sum(hit.called == "likely" for hit in self.hits)


def answers_by_query(
    rows: Sequence[Mapping[str, Any]],
    likely: Sequence[float | None],
    query_ids: Sequence[str] = (),
    paths: Mapping[tuple[str, int], str] | None = None,
    most: int | None = None,
    copies: Copies | None = None,
) -> tuple[Answer, ...]:
    """Hits by query, in the order of the queries.

    Args:
        rows: DETECTIONS, best first within each query.
        likely: probability of each row, or None.
        query_ids: of all queries, with or without hits; by default those of the rows.
        paths: of recordings, by document and channel.
        most: best hits per query. By default all.
        copies: recordings with the same sound; by default none are known.
    """
    copies, by_query = copies or Copies({}), dict[str, list[dict[str, Any]]]()
    for name in query_ids:
        by_query[name] = []
    for number, (row, probability) in enumerate(zip(rows, likely, strict=True)):
        by_query.setdefault(row["query_id"], []).append({**row, "number": number, "likely": probability})
    answers = []
    for name, found in by_query.items():
        hits = []
        for hit in copies.joined(found)[:most]:
            lead, best = hit[0], min(hit, key=lambda row: int(row["number"]))
            key = lead["doc_id"], lead["channel"]
            channels = tuple(row["channel"] for row in hit if row["doc_id"] == lead["doc_id"])
            place = {each: lead[each] for each in ("query_id", "doc_id", "start", "end")}
            told = {"score": best["score"], "likely": best["likely"], "path": (paths or {}).get(key)}
            numbers = tuple(row["number"] for row in hit)
            hits.append(AnswerHit(**place, **told, channels=channels, also=tuple(copies.also(key)), rows=numbers))
        answers.append(Answer(name, tuple(hits)))
    return tuple(answers)


@dataclass(frozen=True)
class PlayedQuery:
    """A searched query.

    Attributes:
        query_id: its name.
        path: of its recording; empty without a recording.
        channel: of the recording.
        start, end: of the given part, s; None: start, end of the recording.
        searched: the part after trimming, s in the recording.
    """

    query_id: str
    path: str
    channel: int = 1
    start: float | None = None
    end: float | None = None
    searched: tuple[float, float] | None = None


@dataclass(frozen=True)
class SearchFacts:
    """Facts of a search, for the page.

    Attributes:
        store: its folder.
        hours: of audio; what sounds the same counts once.
        recordings: how many.
        meaning: of the words for hits.
        scores: what they are, in words.
        settings: of the search, other than defaults.
    """

    store: str
    hours: float
    recordings: int
    meaning: str
    scores: str
    settings: Mapping[str, object]


def render_answers(
    answers: Sequence[Answer],
    queries: Sequence[PlayedQuery],
    searched: SearchFacts,
    storage: Mapping[str, object] | None = None,
) -> str:
    """The page as HTML text, to be written as UTF-8.

    The best hits of each query get a clip first, as many as `Sounds` gives; the page gives the number of others.

    Args:
        answers: in the order of the page.
        queries: in the same order.
        searched: see there.
        storage: options for the file system of recordings.
    """
    sounds = Sounds(storage)
    spoken = [_query_sound(query, sounds) for query in queries]
    sounds_by_hit: dict[int, Sound | str] = {}
    for hit in _best_first(answers):
        sounds_by_hit[id(hit)] = sounds.of(hit.path, hit.start, hit.end, channel=hit.channels[0])
    blocks = [
        {
            "answer": answer,
            "query": query,
            "sound": sound,
            "hits": [(rank, hit, sounds_by_hit[id(hit)]) for rank, hit in enumerate(answer.hits, 1)],
        }
        for answer, query, sound in zip(answers, queries, spoken, strict=True)
    ]
    return rendered(
        "answers",
        blocks=blocks,
        searched=searched,
        left_out=sounds.left_out,
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        total=sum(len(answer.hits) for answer in answers),
        likely=sum(answer.likely for answer in answers),
    )


def _query_sound(query: PlayedQuery, sounds: Sounds) -> Sound | str:
    pad = 0.0 if query.start is None and query.end is None else 0.25
    return sounds.of(query.path, query.start, query.end, channel=query.channel, mark=query.searched, pad=pad)


def _best_first(answers: Sequence[Answer]) -> Iterator[AnswerHit]:
    """The first hit of each query, then the second of each, and so on."""
    for rank in range(max((len(answer.hits) for answer in answers), default=0)):
        yield from (answer.hits[rank] for answer in answers if rank < len(answer.hits))


def hits_table(answers: Sequence[Answer], meaning: str, plain: pa.Table) -> Table:
    """Hits of all queries, one per row.

    Args:
        answers: of all queries.
        meaning: of the words for hits.
        plain: for programs, one row per channel.
    """
    columns = ("query", "document", "channel", "", "rank", "probability", "score", "begin", "end")
    rows = []
    for rank, hit in ((rank, hit) for answer in answers for rank, hit in enumerate(answer.hits, 1)):
        channels = " + ".join(map(str, hit.channels))
        times = _percent(hit), f"{hit.score:.3f}", clock(hit.start), clock(hit.end)
        rows.append((hit.query_id, hit.doc_id, channels, hit.called, str(rank), *times))
    return Table(
        "Hits",
        columns,
        rows,
        f"{meaning.capitalize()}.",
        texts=range(4),
        plain=plain.to_pylist(),
        names=plain.column_names,
    )


def _percent(hit: AnswerHit) -> str:
    return "" if hit.likely is None else f"{hit.likely:.0%}"


def lines(answers: Sequence[Answer], meaning: str) -> Iterator[str]:
    """Hits of each query in aligned columns; places are written as queries.

    Args:
        answers: of all queries.
        meaning: of the words for hits.
    """
    several = any(hit.channels != (1,) for answer in answers for hit in answer.hits)
    for answer in answers:
        yield f"{shown(answer.query_id)}: {len(answer.hits)} hits shown, {answer.likely} likely"
        cells = [
            (
                str(rank),
                hit.called,
                _percent(hit),
                f"{hit.score:.3f}",
                *([" + ".join(map(str, hit.channels))] if several else []),
                f"{shown(hit.doc_id)}{f'#{hit.channels[0]}' if several else ''}:{clock(hit.start)}-{clock(hit.end)}"
                + (f"  also {', '.join(map(shown, hit.also))}" if hit.also else ""),
            )
            for rank, hit in enumerate(answer.hits, 1)
        ]
        head = ("", "", "", "score", *(["channel"] if several else []), "place")
        widths = [max(len(row[k]) for row in [head, *cells]) for k in range(len(head))]
        for row in [head, *cells] if cells else ():
            padded = (item.rjust(widths[k]) if k in (0, 2, 3) else item.ljust(widths[k]) for k, item in enumerate(row))
            yield ("  " + "  ".join(padded)).rstrip()
        yield ""
    yield meaning


#: Rows of the word list, classes with their members, and members of a class on the page.
MOST_WORDS, MOST_CLASSES, MOST_MEMBERS = 2000, 200, 12


@dataclass(frozen=True)
class ClassCounts:
    """Counts of a discovery.

    Attributes:
        classes: how many.
        members: of all classes.
        speakers: known ones of the members.
        documents: recordings with members.
        tokens: of the parse.
        class_tokens: of these, those of a class.
        parsed_seconds: of all tokens.
        class_seconds: of the tokens of classes.
    """

    classes: int
    members: int
    speakers: int
    documents: int
    tokens: int
    class_tokens: int
    parsed_seconds: float
    class_seconds: float


def render_classes(
    words: Sequence[Word], counts: ClassCounts, clips: int, least: float, storage: Mapping[str, object] | None = None
) -> str:
    """The page as HTML text, to be written as UTF-8; the same for the same classes and recordings.

    Args:
        words: in the order of the page.
        counts: see there.
        clips: most players: of two members of each class, class by class, then of the others; the surest of each speaker first.
        least: of how sure a member of a class is.
        storage: options for the file system of recordings.
    """
    sounds = Sounds(storage, clips)
    shown = [list(word.in_turns())[:MOST_MEMBERS] for word in words[:MOST_CLASSES]]
    # Two of each class first: one alone does not tell what recurs.
    ranked = sorted((k >= 2, number, k) for number, members in enumerate(shown) for k in range(len(members)))
    players = {}
    for _, number, k in ranked:
        member = shown[number][k]
        players[number, k] = member, sounds.of(member.path, member.start, member.end, channel=member.channel)
    blocks = [
        {
            "word": words[number],
            "members": [players[number, k] for k in range(len(members))],
            "more": len(words[number].members) - len(members),
        }
        for number, members in enumerate(shown)
    ]
    from swsdist.discovery.scene import alike

    return rendered(
        "classes",
        words=words[:MOST_WORDS],
        total=len(words),
        blocks=blocks,
        counts=counts,
        least=least,
        alike=alike,
        left_out=sounds.left_out,
    )
