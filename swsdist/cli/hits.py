"""What a search found, for a person: hits by query, names whole, times as a clock shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: Without a threshold of a run a hit is likely from so many standard deviations above the mean of its query's candidates.
LIKELY = 4.0

Row = Mapping[str, Any]


def clock(seconds: float) -> str:
    """h:mm:ss.ss, hours only where there are any."""
    hundredths = round(seconds * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // 100:02d}.{rest % 100:02d}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def once(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same sound on several channels of a recording is one hit, with its `channels`."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["query_id"], row["doc_id"], row["start"], row["end"], row["score"]
        if key in found:
            found[key]["channels"].append(row["channel"])
        else:
            found[key] = {**row, "channels": [row["channel"]]}
    return list(found.values())


def lines(rows: Sequence[Row], threshold: float | None) -> Iterator[str]:
    """Hits of each query, best first; columns as wide as they must be.

    Args:
        rows: DETECTIONS, best first within each query.
        threshold: from which score on a hit is likely; None: LIKELY.
    """
    hits = once(rows)
    least = LIKELY if threshold is None else threshold
    several = any(row["channels"] != [1] for row in hits)
    for query_id in dict.fromkeys(row["query_id"] for row in hits):
        mine = [row for row in hits if row["query_id"] == query_id]
        likely = sum(row["score"] >= least for row in mine)
        yield f"{query_id}: {len(mine)} hits shown, {likely} likely"
        cells = [
            (
                str(rank),
                "likely" if row["score"] >= least else "unsure",
                f"{row['score']:.3f}",
                f"{clock(row['start'])} - {clock(row['end'])}",
                *([" + ".join(map(str, row["channels"]))] if several else []),
                row["doc_id"],
            )
            for rank, row in enumerate(mine, 1)
        ]
        head = ("", "", "score", "place", *(["channel"] if several else []), "document")
        widths = [max(len(row[k]) for row in [head, *cells]) for k in range(len(head))]
        for row in [head, *cells]:
            shown = (one.rjust(widths[k]) if k in (0, 2, 3) else one.ljust(widths[k]) for k, one in enumerate(row))
            yield ("  " + "  ".join(shown)).rstrip()
        yield ""
    by = f"a score of {least:.3f} decided in that run" if threshold is not None else f"a score of {LIKELY:g}"
    yield f"likely: {by}; scores are standard deviations above the mean of a query's candidates"
