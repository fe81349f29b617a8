"""What reduce, normalisation and decision mean, written slowly and plainly: the fast versions are held against these.

Rows are dicts with the columns of `swsdist.core.types`; nothing is sorted by codes, cut into files or kept in columns.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from swsdist.core.fingerprint import stable_hash
from swsdist.core.numbers import frames_to_seconds

#: Rows of CANDIDATES, with frames from `first` to `last`; of DETECTIONS; of STATISTICS; of TRIALS.
Candidate = dict[str, Any]
Detection = dict[str, Any]
Statistic = dict[str, Any]
Trial = dict[str, Any]


def detections(
    candidates: list[Candidate], *, shift: float, overlap: float, nbest: int, system: str
) -> list[Detection]:
    """Detections of all queries, in total order: query, then score descending, doc_id, channel, start, end, example.

    Of two that overlap by more than `overlap` of the shorter one, in the same document and for the same query, whatever their
    examples, the better stays; of what then remains, the `nbest` best of each query.
    """
    kept: list[Detection] = []
    for query_id in sorted({row["query_id"] for row in candidates}):
        mine = [(scored(row, shift, system), row) for row in candidates if row["query_id"] == query_id]
        standing: list[tuple[Detection, Candidate]] = []
        for detection, row in sorted(mine, key=lambda pair: order(pair[0])):
            if not any(clash(row, better, overlap) for _, better in standing):
                standing.append((detection, row))
        kept += [detection for detection, _ in standing[:nbest]]
    return kept


def summed(candidates: list[Candidate], *, shift: float, overlap: float, nbest: int, system: str) -> list[Detection]:
    """The same where the posteriors of what is at one place are added: that of the best, which claims what it overlaps."""
    kept: list[Detection] = []
    for query_id in sorted({row["query_id"] for row in candidates}):
        mine = [(scored(row, shift, system), row) for row in candidates if row["query_id"] == query_id]
        places: list[list[Candidate]] = []
        for _, row in sorted(mine, key=lambda pair: order(pair[0])):
            for place in places:
                if clash(row, place[0], overlap):
                    place.append(row)
                    break
            else:
                places.append([row])
        found = []
        for place in places:
            total = min(1 << 40, sum(round(Fraction(-row["cost"], row["scale"]) * (1 << 40)) for row in place))
            found.append(scored({**place[0], "cost": -total, "scale": 1 << 40}, shift, system))
        kept += sorted(found, key=order)[:nbest]
    return kept


def scored(candidate: Candidate, shift: float, system: str) -> Detection:
    """A candidate as a detection."""
    return {
        **{name: candidate[name] for name in ("query_id", "doc_id", "channel", "cost", "example")},
        "start": frames_to_seconds(candidate["first"], shift),
        "end": frames_to_seconds(candidate["last"] + 1, shift),
        "score": -candidate["cost"] / candidate["scale"],
        "decision": None,
        "frames": candidate["last"] - candidate["first"] + 1,
        "system": system,
    }


def order(row: Detection) -> tuple[float, str, int, float, float, int]:
    """The key that detections of a query are sorted by."""
    return -row["score"], row["doc_id"], row["channel"], row["start"], row["end"], row["example"]


def clash(row: Candidate, better: Candidate, overlap: float) -> bool:
    """Whether candidates overlap by more than that part of the shorter one, in frames."""
    if (row["doc_id"], row["channel"]) != (better["doc_id"], better["channel"]):
        return False
    frames = [set(range(each["first"], each["last"] + 1)) for each in (row, better)]
    return len(frames[0] & frames[1]) > overlap * min(len(each) for each in frames)


def statistics(candidates: list[Candidate]) -> list[Statistic]:
    """Count, sum and sum of squares of the costs of each example, over all candidates; Python integers."""
    sums: dict[tuple[str, int, int], list[int]] = {}
    for row in candidates:
        total = sums.setdefault((row["query_id"], row["example"], row["scale"]), [0, 0, 0])
        total[0] += 1
        total[1] += row["cost"]
        total[2] += row["cost"] ** 2
    return [row for key, total in sorted(sums.items()) for row in cost_sums(*key, total)]


def cost_sums(query_id: str, example: int, scale: int, sums: Sequence[int]) -> list[Statistic]:
    """Rows of a count, a sum and a sum of squares."""
    about = {"statistic": "cost-sums", "query_id": query_id, "example": example, "scale": scale}
    names = ("candidates", "cost_sum", "cost_square_sum")
    return [{**about, "quantity": name, "value": value} for name, value in zip(names, sums, strict=True)]


def moments(candidates: list[Candidate]) -> dict[str, tuple[float, float]]:
    """Mean and population standard deviation of each query's scores, in fractions to the end."""
    found = {}
    for query_id in {row["query_id"] for row in candidates}:
        scores = [Fraction(-r["cost"], r["scale"]) for r in candidates if r["query_id"] == query_id]
        mean = sum(scores) / Fraction(len(scores))
        variance = sum((score - mean) ** 2 for score in scores) / Fraction(len(scores))
        found[query_id] = float(mean), math.sqrt(variance)
    return found


def crossfit_decisions(trials: list[Trial], folds: int, *, number_of_trials: float, beta: float) -> list[bool | None]:
    """YES or NO of each row of an aligned list: by the threshold of the maximum TWV of all other folds of queries.

    The lowest threshold wins among equal maxima (1e-12); None for what is no detection. A fold is decided NO where the others
    hold nothing to learn from.
    """

    def fold_of(row: Trial) -> int:
        return stable_hash(f"fold {row['query_id']}") % folds

    others = ([row for row in trials if fold_of(row) != fold] for fold in range(folds))
    thresholds = [_best_threshold(rows, number_of_trials, beta) for rows in others]
    return [None if row["score"] is None else row["score"] >= thresholds[fold_of(row)] for row in trials]


def _best_threshold(trials: list[Trial], number_of_trials: float, beta: float) -> float:
    """Over the distinct scores of queries with references, and above the highest; infinite where nothing can be learnt."""
    true: dict[str, int] = {}
    for row in trials:
        true[row["query_id"]] = true.get(row["query_id"], 0) + (row["ref_start"] is not None)
    terms = sorted(query_id for query_id, count in true.items() if count > 0)
    rows = [row for row in trials if row["score"] is not None and row["query_id"] in terms]
    found = [(row["query_id"], row["score"], row["ref_start"]) for row in rows]
    scores = sorted({score for _, score, _ in found})
    if not scores:
        return math.inf
    values: list[tuple[float, float]] = []
    for threshold in [*scores, math.nextafter(scores[-1], math.inf)]:
        value = 0.0
        for query_id in terms:
            accepted = [start for query, score, start in found if query == query_id and score >= threshold]
            hits = sum(start is not None for start in accepted)
            false_alarms = len(accepted) - hits
            value += hits / true[query_id] - beta * false_alarms / (number_of_trials - true[query_id])
        values.append((value / len(terms), threshold))
    most = max(value for value, _ in values)
    return next(threshold for value, threshold in values if value >= most - 1e-12)
