"""Scoring's definitions in plain Python: slow, and short enough to be checked by reading.

`swsdist.score` is held against these. All that is summed or compared is summed and compared exactly, as fractions.
Conventions and sources are those of `swsdist.score.align.align` and `swsdist.score.measures.twv`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Detection(NamedTuple):
    """s, s, score."""

    start: float
    end: float
    score: float


class Reference(NamedTuple):
    """s, s."""

    start: float
    end: float


def kernel(found: Detection, true: Reference, *, tolerance: float, low: float, high: float) -> float | None:
    """STDEval's kernel of a pair, None if the mid-point rule forbids it."""
    duration = float(f"{found.end - found.start:.6f}")
    true_duration = float(f"{true.end - true.start:.4f}")
    end, true_end = found.start + duration, true.start + true_duration
    if not true.start - tolerance <= found.start + duration / 2 <= true_end + tolerance:
        return None
    t = (min(end, true_end) - max(found.start, true.start)) / max(1e-5, true_duration)
    s = (found.score - low) / (high - low) if high > low else 0.0
    return 1.0 + 1e-8 * t + 1e-6 * s


def kwseval_kernel(found: Detection, true: Reference, *, tolerance: float, low: float, high: float) -> float | None:
    """KWSEval's kernel of a pair: the reference's end is not formed again, and scores span at least 1e-5."""
    duration = float(f"{found.end - found.start:.6f}")
    end = found.start + duration
    if not true.start - tolerance <= found.start + duration / 2 <= true.end + tolerance:
        return None
    t = (min(end, true.end) - max(found.start, true.start)) / max(1e-5, float(f"{true.end - true.start:.4f}"))
    return 1.0 + 1e-8 * t + 1e-6 * ((found.score - low) / max(high - low, 1e-5))


Kernel = Callable[..., float | None]


def matchings(
    detections: Sequence[Detection], references: Sequence[Reference], *, weigh: Kernel = kernel, **limits: float
) -> Iterator[tuple[Fraction, dict[int, int]]]:
    """Every one-to-one pairing of one group: its sum of (kernel + 1), and detection index -> reference index."""
    if not detections:
        yield Fraction(0), {}
        return
    last = len(detections) - 1
    for gain, pairs in matchings(detections[:last], references, weigh=weigh, **limits):
        yield gain, pairs
        for index, true in enumerate(references):
            value = weigh(detections[last], true, **limits)
            if value is not None and index not in pairs.values():
                yield gain + Fraction(value) + 1, {**pairs, last: index}


def best_gain(
    detections: Sequence[Detection], references: Sequence[Reference], *, weigh: Kernel = kernel, **limits: float
) -> Fraction:
    """The greatest sum of (kernel + 1) that a pairing of one group reaches."""
    return max(gain for gain, _ in matchings(detections, references, weigh=weigh, **limits))


class Term(NamedTuple):
    """A query's true occurrences, and (score, is it a hit) of each of its detections."""

    ntrue: int
    detections: Sequence[tuple[float, bool]]


class ExactPoint(NamedTuple):
    """Means at a threshold; `threshold` None rejects everything."""

    threshold: float | None
    pmiss: Fraction
    pfa: Fraction
    twv: Fraction


def point(terms: Mapping[str, Term], threshold: float | None, *, trials: int, beta: float) -> ExactPoint:
    """Mean Pmiss, Pfa and TWV over the terms with references, detections with score >= threshold accepted."""
    pmiss, pfa = [], []
    for term in terms.values():
        if term.ntrue:
            accepted = [hit for score, hit in term.detections if threshold is not None and score >= threshold]
            pmiss.append(1 - Fraction(accepted.count(True), term.ntrue))
            pfa.append(Fraction(accepted.count(False), trials - term.ntrue))
    mean_pmiss, mean_pfa = sum(pmiss, Fraction(0)) / len(pmiss), sum(pfa, Fraction(0)) / len(pfa)
    return ExactPoint(threshold, mean_pmiss, mean_pfa, 1 - mean_pmiss - Fraction(beta) * mean_pfa)


def curve(terms: Mapping[str, Term], *, trials: int, beta: float) -> list[ExactPoint]:
    """The points at every distinct score of terms with references, ascending, and the one that rejects everything."""
    scores = {score for term in terms.values() if term.ntrue for score, _ in term.detections}
    return [point(terms, threshold, trials=trials, beta=beta) for threshold in [*sorted(scores), None]]


def maximum(points: Sequence[ExactPoint]) -> ExactPoint:
    """The point of greatest value, the first of equal ones."""
    return max(points, key=lambda each: each.twv)


class Word(NamedTuple):
    """A word of one chain (document, channel, speaker): s, s at 4 decimals, text, sub-type."""

    start: float
    end: float
    text: str
    kind: str


def stdeval_occurrences(term: Sequence[str], chain: Sequence[Word], gap: float) -> list[tuple[int, int]]:
    """First and last word of each occurrence: STDEval's single pass, token by token, in the order of the file."""
    found, position, begin = [], 0, 0
    token = 0
    while token < len(chain):
        if chain[token].text.lower() == term[position].lower():
            if position > 0 and float(f"{chain[token].start - chain[token - 1].end:.4f}") > gap:
                position = 0  # forget everything, and go on with the next token
                token += 1
                continue
            begin = token if position == 0 else begin
            position += 1
            token += 1
            if position == len(term):
                found.append((begin, token - 1))
                position = 0
        elif position > 0:
            position = 0  # the same token is tried as a first word
        else:
            token += 1
    return found


def kwseval_occurrences(term: Sequence[str], chain: Sequence[Word], gap: float) -> list[tuple[int, int]]:
    """First and last word of each occurrence: every word is tried; it is followed by the next in the order of time."""
    by_time = sorted(range(len(chain)), key=lambda k: chain[k].start)
    found = []
    for begin, word in enumerate(chain):
        if word.text.lower() != term[0].lower() or word.kind.lower() in ("fp", "frag"):
            continue
        at = begin
        for wanted in term[1:]:
            if at + 1 >= len(chain):
                break
            after = by_time[at + 1]
            late = float(f"{chain[after].start - chain[at].end:.4f}") > gap
            if chain[after].text.lower() != wanted.lower() or late:
                break
            at = after
        else:
            found.append((begin, at))
    return found
