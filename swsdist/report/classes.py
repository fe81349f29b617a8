"""Word candidates, the classes of term discovery, as one page with players: no network requests, readable without scripts.

Names in the page are untrusted: jinja2 escapes all of them; only waveforms and clips are inserted unescaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from swsdist.discovery.scene import Word, alike
from swsdist.report.answers.sounds import Sounds
from swsdist.report.summary import rendered

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
