"""What a search found, for a terminal: hits by query, names whole, times as a clock shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swsdist.report.answers.hits import Answer, Word
from swsdist.report.summary import clock
from swsdist.report.tables import Table
from swsdist.text import shown


def hits_table(answers: Sequence[Answer], word: Word, said: str) -> Table:
    """Hits of all queries, a row each.

    Args:
        answers: of all queries.
        word: what the good ones are called.
        said: what makes a hit that, in words.
    """
    columns = ("query", "document", "channel", "", "rank", "score", "begin", "end")
    ranked = [(rank, hit) for answer in answers for rank, hit in enumerate(answer.hits, 1)]
    rows = []
    for rank, hit in ranked:
        channels = " + ".join(map(str, hit.channels))
        times = f"{hit.score:.3f}", clock(hit.start), clock(hit.end)
        rows.append((hit.query_id, hit.doc_id, channels, hit.word, str(rank), *times))
    plain = [
        {
            "query_id": hit.query_id,
            "rank": rank,
            "doc_id": hit.doc_id,
            "channels": " ".join(map(str, hit.channels)),
            "start": hit.start,
            "end": hit.end,
            "score": hit.score,
            "word": hit.word,
        }
        for rank, hit in ranked
    ]
    return Table("Hits", columns, rows, f"{word.capitalize()}: {said}.", texts=range(4), plain=plain)


def lines(answers: Sequence[Answer], word: Word, said: str) -> Iterator[str]:
    """Hits of each query; columns as wide as they must be.

    Args:
        answers: of all queries.
        word: what the good ones are called.
        said: what makes a hit that, in words.
    """
    several = any(hit.channels != (1,) for answer in answers for hit in answer.hits)
    for answer in answers:
        yield f"{shown(answer.query_id)}: {len(answer.hits)} hits shown, {answer.good} {word}"
        cells = [
            (
                str(rank),
                hit.word,
                f"{hit.score:.3f}",
                f"{clock(hit.start)} - {clock(hit.end)}",
                *([" + ".join(map(str, hit.channels))] if several else []),
                shown(hit.doc_id),
            )
            for rank, hit in enumerate(answer.hits, 1)
        ]
        head = ("", "", "score", "place", *(["channel"] if several else []), "document")
        widths = [max(len(row[k]) for row in [head, *cells]) for k in range(len(head))]
        for row in [head, *cells] if cells else ():
            padded = (one.rjust(widths[k]) if k in (0, 2, 3) else one.ljust(widths[k]) for k, one in enumerate(row))
            yield ("  " + "  ".join(padded)).rstrip()
        yield ""
    yield f"{word}: {said}"
