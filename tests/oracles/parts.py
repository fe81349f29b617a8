"""What the parts of a query mean, written slowly and plainly: the fast versions are held against these."""

import math

from tests.oracles import reduce as oracles_reduce
from tests.oracles.reduce import Candidate, Detection, Statistic

#: First and last frame of a match in a document, and its cost.
Match = tuple[int, int, int]


def joined(halves: list[Match], others: list[Match], gap: int) -> list[Match]:
    """The best join of two halves for each last frame."""
    best: dict[int, Match] = {}
    for first, last, cost in halves:
        for other_first, other_last, other_cost in others:
            between = max(first, other_first) - min(last, other_last) - 1
            if not 0 <= between <= gap:
                continue
            join = min(first, other_first), max(last, other_last), cost + other_cost
            kept = best.get(join[1])
            if kept is None or (join[2], -join[0]) < (kept[2], -kept[0]):
                best[join[1]] = join
    return [best[last] for last in sorted(best)]


def kept(matches: list[Match], most: int) -> list[Match]:
    """The cheapest, earlier ends first, in the order of their ends."""
    return sorted(sorted(matches, key=lambda match: (match[2], match[1]))[:most], key=lambda match: match[1])


def best_of_parts(
    candidates: list[Candidate], *, shift: float, overlap: float, nbest: int, system: str, fineness: int
) -> tuple[list[Detection], list[Statistic]]:
    """Detections and statistics of queries whose examples come in four parts; see `swsdist.reduce.examples`."""
    detections: list[Detection] = []
    statistics: list[Statistic] = []
    for query_id in sorted({row["query_id"] for row in candidates}):
        mine = [row for row in candidates if row["query_id"] == query_id]
        scored: list[tuple[Detection, Candidate]] = []
        for number in sorted({row["example"] for row in mine}):
            rows = [row for row in mine if row["example"] == number]
            mean, deviation = oracles_reduce.moments(rows)[query_id]
            longest = max(row["scale"] for row in mine if row["example"] // 4 == number // 4)
            for row in rows:
                detection = oracles_reduce.scored(row, shift, system)
                score = (detection["score"] - mean) / (deviation or 1.0) * math.sqrt(row["scale"] / longest)
                scored.append(({**detection, "score": round(score * fineness) / fineness}, row))
        standing: list[tuple[Detection, Candidate]] = []
        for each in sorted(scored, key=lambda pair: oracles_reduce.order(pair[0])):
            if not any(oracles_reduce.clash(each[1], better, overlap) for _, better in standing):
                standing.append(each)
        places = [detection for detection, _ in standing]
        detections += [{**place, "example": place["example"] // 4} for place in places[:nbest]]
        costs = [-round(place["score"] * fineness) for place in places]
        sums = (len(costs), sum(costs), sum(cost * cost for cost in costs))
        statistics += oracles_reduce.cost_sums(query_id, 0, fineness, sums)
    return detections, statistics
