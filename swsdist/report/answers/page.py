"""Hits of a search as one self-contained page with players: no network requests, readable without scripts.

Names in the page are untrusted: jinja2 escapes all of them; only waveforms and clips of this module are inserted unescaped.
A content security policy in the page forbids everything that it does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from swsdist.core.errors import AudioError
from swsdist.report.answers.hits import Answer, AnswerHit, Verdict
from swsdist.report.answers.sounds import Sound, sound_of
from swsdist.report.summary import rendered

#: Sounds and bytes of sound that a browser opens with ease.
MOST_SOUNDS = 1000
MOST_BYTES = 40_000_000


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
        hours: of audio.
        documents: how many.
        verdict: on hits above the threshold.
        description: of the threshold.
        settings: of the search, other than defaults.
    """

    store: str
    hours: float
    documents: int
    verdict: Verdict
    description: str
    settings: Mapping[str, object]


def render_answers(
    answers: Sequence[Answer],
    queries: Sequence[PlayedQuery],
    searched: SearchFacts,
    storage: Mapping[str, object] | None = None,
) -> str:
    """The page as HTML text, to be written as UTF-8.

    The page has at most `MOST_SOUNDS` clips of `MOST_BYTES` in all, best of each query first, and gives the number of others.

    Args:
        answers: in the order of the page.
        queries: in the same order.
        searched: see there.
        storage: options for the file system of recordings.
    """
    sounds = _Sounds(storage)
    spoken = [sounds.of_query(query) for query in queries]
    sounds_by_hit: dict[int, Sound | str] = {}
    for hit in _best_first(answers):
        sounds_by_hit[id(hit)] = sounds.of_hit(hit)
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
        confident=sum(answer.confident for answer in answers),
    )


class _Sounds:
    """Clips, within the limits of the page."""

    def __init__(self, storage: Mapping[str, object] | None) -> None:
        self._storage = storage
        self._sounds = self._bytes = self.left_out = 0

    def of_query(self, query: PlayedQuery) -> Sound | str:
        if not query.path:
            return "no recording"
        pad = 0.0 if query.start is None and query.end is None else 0.25
        return self._of(query.path, query.start, query.end, query.channel, query.searched, pad)

    def of_hit(self, hit: AnswerHit) -> Sound | str:
        if not hit.path:
            return "no recording"
        return self._of(hit.path, hit.start, hit.end, hit.channels[0], None, None)

    def _of(
        self,
        path: str,
        start: float | None,
        end: float | None,
        channel: int,
        mark: tuple[float, float] | None,
        pad: float | None,
    ) -> Sound | str:
        """A clip, or the reason for its absence."""
        if self._sounds >= MOST_SOUNDS or self._bytes >= MOST_BYTES:
            self.left_out += 1
            return "left out"
        around = {} if pad is None else {"pad": pad}
        try:
            sound = sound_of(path, start, end, channel=channel, mark=mark, storage=self._storage, **around)
        except AudioError as error:
            return error.message
        self._sounds += 1
        self._bytes += len(sound.uri) + len(sound.svg)
        return sound


def _best_first(answers: Sequence[Answer]) -> Iterator[AnswerHit]:
    """The first hit of each query, then the second of each, and so on."""
    for rank in range(max((len(answer.hits) for answer in answers), default=0)):
        yield from (answer.hits[rank] for answer in answers if rank < len(answer.hits))
