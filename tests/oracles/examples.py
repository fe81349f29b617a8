"""What several examples of a query mean together, written slowly and plainly: the fast versions are held against these.

Python numbers, lists and dicts only. A list of distances is a row a frame of the first sequence.
"""

from collections.abc import Callable
from itertools import pairwise

from tests.oracles import reduce as oracles_reduce
from tests.oracles.reduce import Candidate, Detection, Statistic

Frames = list[list[float]]


def path(distances: list[list[int]]) -> list[tuple[int, int]]:
    """The path from the first place to the last that costs least, by trying all: exponential, for tiny tables.

    Of equal costs the one is taken whose last step is in both sequences, else in the first alone; then so on before it.
    """
    rank = {(1, 1): 0, (1, 0): 1, (0, 1): 2}

    def to(i: int, j: int) -> list[list[tuple[int, int]]]:
        if (i, j) == (0, 0):
            return [[(0, 0)]]
        return [[*before, (i, j)] for a, b in rank if i >= a and j >= b for before in to(i - a, j - b)]

    def key(places: list[tuple[int, int]]) -> tuple[int, list[int]]:
        steps = [rank[after[0] - before[0], after[1] - before[1]] for before, after in pairwise(places)]
        return sum(distances[i][j] for i, j in places), steps[::-1]

    return min(to(len(distances) - 1, len(distances[0]) - 1), key=key)


def barycentre(examples: list[Frames], local: Callable[[Frames, Frames], list[list[int]]], rounds: int) -> Frames:
    """The DTW barycentre average of sequences of frames; one of them if all are the same.

    Means are taken in the order of the examples, in which the first of equals is the medoid; `local` gives the distances
    between a template and an example; in each of the rounds all are aligned with the average.
    """
    if all(example == examples[0] for example in examples):
        return examples[0]

    def cost(left: Frames, right: Frames) -> int:
        table = local(left, right)
        return sum(table[i][j] for i, j in path(table))

    costs = [sum(cost(one, other) for j, other in enumerate(examples) if j != k) for k, one in enumerate(examples)]
    mean = examples[costs.index(min(costs))]
    for _ in range(rounds):
        met: list[Frames] = [[] for _ in mean]
        for example in examples:
            for i, j in path(local(mean, example)):
                met[i].append(example[j])
        mean = [[_mean([frame[d] for frame in frames]) for d in range(len(frames[0]))] for frames in met]
    return mean


def _mean(values: list[float]) -> float:
    """The mean as it grows with each value; of equal values it is that value."""
    mean = 0.0
    for count, value in enumerate(values, 1):
        mean = mean + (value - mean) / count
    return mean


def means(
    candidates: list[Candidate], *, shift: float, overlap: float, nbest: int, system: str, fineness: int
) -> tuple[list[Detection], list[Statistic]]:
    """Detections and statistics of queries whose examples' scores are averaged; see `swsdist.reduce.examples`."""
    kept: list[Detection] = []
    statistics: list[Statistic] = []
    for query_id in sorted({row["query_id"] for row in candidates}):
        mine = [row for row in candidates if row["query_id"] == query_id]
        numbers = sorted({row["example"] for row in mine})
        if len(numbers) == 1:
            kept += oracles_reduce.detections(mine, shift=shift, overlap=overlap, nbest=nbest, system=system)
            statistics += oracles_reduce.statistics(mine)
            continue
        normed: list[tuple[Detection, Candidate]] = []
        for number in numbers:
            rows = [row for row in mine if row["example"] == number]
            mean, deviation = oracles_reduce.moments(rows)[query_id]
            for row in rows:
                detection = oracles_reduce.scored(row, shift, system)
                normed.append(({**detection, "score": (detection["score"] - mean) / (deviation or 1.0)}, row))
        places: list[list[tuple[Detection, Candidate]]] = []
        for each in sorted(normed, key=lambda pair: oracles_reduce.order(pair[0])):
            for place in places:
                if oracles_reduce.clash(each[1], place[0][1], overlap):
                    place.append(each)
                    break
            else:
                places.append([each])
        found: list[Detection] = []
        totals: list[int] = []
        for place in places:
            best = {row["example"]: detection["score"] for detection, row in reversed(place)}
            totals.append(sum(round(score * fineness) for score in best.values()))
            found.append({**place[0][0], "score": totals[-1] / (fineness * len(numbers))})
        kept += sorted(found, key=oracles_reduce.order)[:nbest]
        sums = (len(places), -sum(totals), sum(total * total for total in totals))
        statistics += oracles_reduce.cost_sums(query_id, 0, fineness * len(numbers), sums)
    return kept, statistics
