"""What a search found, for a terminal: hits by query, names whole, times as a clock shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swsdist.report.answers.hits import Answer
from swsdist.report.summary import clock
from swsdist.text import shown


def lines(answers: Sequence[Answer], said: str) -> Iterator[str]:
    """Hits of each query; columns as wide as they must be.

    Args:
        answers: of all queries.
        said: what makes a hit likely, in words.
    """
    several = any(hit.channels != (1,) for answer in answers for hit in answer.hits)
    for answer in answers:
        yield f"{shown(answer.query_id)}: {len(answer.hits)} hits shown, {answer.likely} likely"
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
    yield f"likely: {said}"
