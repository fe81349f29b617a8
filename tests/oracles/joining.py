"""What joining the lists of several systems means, written slowly and plainly."""

from collections.abc import Mapping, Sequence
from typing import Any

#: A detection: query_id, doc_id, channel, start, end (s), score.
Row = Mapping[str, Any]
#: A place: query_id, doc_id, start, end, score, and the score of each system that found it.
Place = tuple[str, str, float, float, float, dict[str, float]]


def joined(lists: Mapping[str, Sequence[Row]], *, meet: str, overlap: float) -> list[Place]:
    """Places in the order query, score descending, document, channel, start, end; see `swsdist.calibrate.fusion`."""
    left = [{**row, "system": name} for name, rows in lists.items() for row in rows]
    left.sort(key=lambda row: (-row["score"], _micro(row["start"]), _micro(row["end"]), row["system"]))
    places = []
    while left:
        best = left.pop(0)
        parts = {best["system"]: best["score"]}
        for row in list(left):
            same = all(row[name] == best[name] for name in ("query_id", "doc_id", "channel"))
            if same and row["system"] not in parts and _meet(best, row, meet, overlap):
                parts[row["system"]] = row["score"]
                left.remove(row)
        places.append((best, parts))
    places.sort(key=lambda place: _order(place[0]))
    return [
        (best["query_id"], best["doc_id"], best["start"], best["end"], best["score"], dict(sorted(parts.items())))
        for best, parts in places
    ]


def _order(row: Row) -> tuple[Any, ...]:
    return row["query_id"], -row["score"], row["doc_id"], row["channel"], row["start"], row["end"]


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)


def _meet(one: Row, other: Row, meet: str, overlap: float) -> bool:
    spans = [(_micro(row["start"]), _micro(row["end"])) for row in (one, other)]
    if meet == "overlap":
        common = min(end for _, end in spans) - max(start for start, _ in spans)
        return common > overlap * min(end - start for start, end in spans)
    (a, b), (c, d) = spans
    return 2 * c <= a + b <= 2 * d or 2 * a <= c + d <= 2 * b
