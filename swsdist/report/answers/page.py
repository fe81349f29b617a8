"""Hits of a search as one self-contained page with players: no network requests, readable without scripts.

Names in the page are untrusted: jinja2 escapes all of them; only waveforms and clips of this module are inserted unescaped.
A content security policy in the page forbids everything that it does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from swsdist.report.answers.hits import Answer, AnswerHit
from swsdist.report.answers.sounds import Sound, Sounds
from swsdist.report.summary import rendered


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
