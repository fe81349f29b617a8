"""Hits of a search for a terminal: by query, with full names, clock times, and places that can be typed as queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from swsdist.core.text import shown
from swsdist.report.answers.hits import Answer, AnswerHit
from swsdist.report.summary import clock
from swsdist.report.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


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
