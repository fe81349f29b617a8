"""What a search found, for a terminal: hits by query, names whole, times as a clock shows them, each place as a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from swsdist.core.text import shown
from swsdist.report.answers.hits import Answer, Verdict
from swsdist.report.summary import clock
from swsdist.report.tables import Table


def hits_table(
    answers: Sequence[Answer], verdict: Verdict, description: str, plain: Sequence[Mapping[str, object]]
) -> Table:
    """Hits of all queries, a row each.

    Args:
        answers: of all queries.
        verdict: what the good ones are called.
        description: what makes a hit that, in words.
        plain: for programs, the same sound on several channels a row each.
    """
    columns = ("query", "document", "channel", "", "rank", "score", "begin", "end")
    rows = []
    for rank, hit in ((rank, hit) for answer in answers for rank, hit in enumerate(answer.hits, 1)):
        channels = " + ".join(map(str, hit.channels))
        times = f"{hit.score:.3f}", clock(hit.start), clock(hit.end)
        rows.append((hit.query_id, hit.doc_id, channels, hit.verdict, str(rank), *times))
    return Table("Hits", columns, rows, f"{verdict.capitalize()}: {description}.", texts=range(4), plain=plain)


def lines(answers: Sequence[Answer], verdict: Verdict, description: str) -> Iterator[str]:
    """Hits of each query; columns as wide as they must be. A place is written as one asks for it.

    Args:
        answers: of all queries.
        verdict: what the good ones are called.
        description: what makes a hit that, in words.
    """
    several = any(hit.channels != (1,) for answer in answers for hit in answer.hits)
    for answer in answers:
        yield f"{shown(answer.query_id)}: {len(answer.hits)} hits shown, {answer.confident} {verdict}"
        cells = [
            (
                str(rank),
                hit.verdict,
                f"{hit.score:.3f}",
                *([" + ".join(map(str, hit.channels))] if several else []),
                f"{shown(hit.doc_id)}{f'#{hit.channels[0]}' if several else ''}:{clock(hit.start)}-{clock(hit.end)}",
            )
            for rank, hit in enumerate(answer.hits, 1)
        ]
        head = ("", "", "score", *(["channel"] if several else []), "place")
        widths = [max(len(row[k]) for row in [head, *cells]) for k in range(len(head))]
        for row in [head, *cells] if cells else ():
            padded = (one.rjust(widths[k]) if k in (0, 2) else one.ljust(widths[k]) for k, one in enumerate(row))
            yield ("  " + "  ".join(padded)).rstrip()
        yield ""
    yield f"{verdict}: {description}"
