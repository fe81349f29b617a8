"""Candidates to detections, one bucket of queries at a time, and the merging of a query's examples.

A bucket reads its rows of each file of candidates. A document is in one shard only, and a query's examples in one
group, so overlaps are merged file by file (`swsdist.reduce.spans`), and the best N of each query are kept. All orders
are total (score descending, then doc_id, channel, first, last, example), so neither the order nor the number of the
files matters. Memory holds one file's rows of the bucket and some N detections a query.

Statistics for calibration (`swsdist.calibrate.statistics`) are over all candidates, before any is removed; after a
first pass over those of a sample of the documents (`swsdist.methods.sample`), or, for a query without candidates there,
over all its candidates.

Examples are searched separately, and merged by one of three rules:

**best**: the candidates of all examples compete by score.

**mean**: the mean score of a place over the examples, for a query of several examples.

1. The score of a candidate is q-normed by the candidates of the same example, since scores of examples of different
   length and quality are not comparable.
2. The best candidate in a document, of any example, is a place, with the times of that candidate. All candidates that
overlap
   it, by the rule of suppression, belong to this place only. The best remaining candidate is the next place, and so on.
3. The score of a place is the mean over all examples with candidates in the collection, each with its best candidate
   at the place. An example without a candidate there counts with its mean, 0: its other candidates show only that the
   place is not among its best.

A mean over many examples varies less than a mean over few, so the next stage q-norms the means again, with statistics
over the means of all places. Sums are exact: a q-normed score is rounded to a multiple of 1 / `fineness`; for K
examples, minus the sum of these integers is a cost of scale K `fineness`. A query of one example is merged as by
`best`.

**parts**: the best score of any part of an example (`swsdist.methods.query.example`).

1. The score of a candidate is q-normed by the candidates of the same part of the same example, since short parts match
better
   anywhere.
2. It is multiplied by the root of the part's share of the query's frames: a mean of n distances varies as 1 / sqrt(n),
so
   frames that are missing count as average ones.
3. The best candidate in a document, of any part and example, is a place, and candidates that overlap it belong to it.
The next
   stage q-norms the scores of places again, with statistics over all of them.

Scores are multiples of 1 / `fineness`, so the statistics are exact sums of integers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.calibrate.statistics import (
    CandidatePosteriors,
    CostSums,
    Statistic,
    Tally,
    completed,
    load_statistics,
    summed,
    to_table,
)
from swsdist.calibrate.steps.norms import example_moments, standardised
from swsdist.config.model import Reduce
from swsdist.config.search import Search
from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.types import DETECTIONS
from swsdist.kernels.arithmetic import weighted
from swsdist.kernels.coding import coded_documents
from swsdist.methods.query.example import PARTS
from swsdist.methods.sample import in_sample, sample_limit
from swsdist.reduce.spans import (
    Best,
    Merge,
    Names,
    SpanFilter,
    Spans,
    claim_places,
    merge_overlaps,
    scored_places,
    spans_of,
)
from swsdist.registry.registries import METHODS
from swsdist.store.voices import STRETCH

#: The columns of DOCUMENTS that are needed.
WHO = ("doc_id", "channel", "recording", "start", "duration", "speaker", "voices")

#: Bits of a time in a key, in units of 1 ms: up to two years.
_BITS = 36

#: A name and a channel.
Place = tuple[str, int]


class Turns(NamedTuple):
    """Who begins to speak when: place and time (`place << _BITS | ms`), ascending; and the speaker's number."""

    places: dict[Place, int]
    starts: Ints
    speakers: Ints

    @classmethod
    def of(cls, turns: Iterator[tuple[Place, float, int]]) -> Turns:
        """Turns in any order: place, second, speaker."""
        places: dict[Place, int] = {}
        of, seconds, speakers = zip(
            *((places.setdefault(place, len(places)), second, speaker) for place, second, speaker in turns), strict=True
        )
        starts, numbers = _at(np.array(of, np.int64), np.array(seconds)), np.array(speakers, np.int64)
        order = np.lexsort((numbers, starts))
        return cls(places, starts[order], numbers[order])


class Speakers:
    """Speakers of documents, and of recordings with several documents.

    A speaker's number is the place of the name among all, sorted; voices follow. Documents without name and voices have one
    speaker, whose name is empty. Where documents of a recording overlap, the one that begins last counts.

    Args:
        documents: columns WHO of DOCUMENTS.
        tick: seconds from one frame to the next.
    """

    def __init__(self, documents: pa.Table, tick: float) -> None:
        self._documents, self._tick = documents, tick

    def of_candidates(self, table: pa.Table) -> pa.Table:
        """Candidates with a column `speaker`, int64: the speaker in the middle.

        Args:
            table: columns doc_id and channel, and first and last (frames).
        """
        return self._added(table, pc.add(table["first"], table["last"]), self._tick / 2, self._in_documents)

    def of_detections(self, table: pa.Table, *, recordings: bool) -> pa.Table:
        """Detections with a column `speaker`, int64: the speaker in the middle.

        Args:
            table: columns doc_id and channel, and start and end (s).
            recordings: doc_id names the recording of documents that are segments.
        """
        turns = self._in_recordings if recordings else self._in_documents
        return self._added(table, pc.add(table["start"], table["end"]), 0.5, turns)

    @staticmethod
    def _added(table: pa.Table, twice: pa.ChunkedArray, unit: float, turns: Turns) -> pa.Table:
        if not table.num_rows:
            return table.append_column("speaker", pa.array([], pa.int64()))
        documents, row = coded_documents(table)
        places = np.array([turns.places[document] for document in documents], np.int64)
        middle = _at(places[row], twice.to_numpy() * unit)
        turn = np.searchsorted(turns.starts, middle, side="right") - 1
        return table.append_column("speaker", pa.array(turns.speakers[turn]))

    @cached_property
    def _in_documents(self) -> Turns:
        return Turns.of(((doc_id, channel), second, who) for doc_id, channel, _, _, _, second, who in self._turns())

    @cached_property
    def _in_recordings(self) -> Turns:
        spans: dict[Place, list[tuple[float, float, int]]] = {}
        for doc_id, channel, recording, start, end, second, speaker in self._turns():
            offset = start or 0.0
            spans.setdefault((recording or doc_id, channel), []).append((offset + second, offset + end, speaker))
        return Turns.of((place, second, speaker) for place, each in spans.items() for second, speaker in _latest(each))

    def _turns(self) -> Iterator[tuple[str, int, str | None, float | None, float, float, int]]:
        """Document, channel, recording, start; from and to which second of the document, and the speaker's number."""
        columns = {name: self._documents[name].to_pylist() for name in WHO}
        names = sorted({name or "" for name in columns["speaker"]})
        number = {name: k for k, name in enumerate(names)}
        stretch = STRETCH * self._tick
        for *document, duration, name, voices in zip(*columns.values(), strict=True):
            if name or not voices:
                yield *document, duration, 0.0, number[name or ""]
                continue
            for k, voice in enumerate(voices):
                end = duration if k + 1 == len(voices) else (k + 1) * stretch
                yield *document, end, k * stretch, len(names) + voice


def _latest(spans: list[tuple[float, float, int]]) -> Iterator[tuple[float, int]]:
    """Who speaks from which second on, of spans (from, to, speaker): of several at a time the one that begins last."""
    waiting = sorted(spans, reverse=True)
    current: list[tuple[float, float, int]] = []
    for second in sorted({edge for start, end, _ in spans for edge in (start, end)}):
        while waiting and waiting[-1][0] <= second:
            current.append(waiting.pop())
        # A span that began earlier and ends earlier lies below others, and is dropped when it comes up.
        while current and current[-1][1] <= second:
            current.pop()
        if current:
            yield second, current[-1][2]


def _at(place: Ints, second: NDArray[np.floating]) -> Ints:
    """Keys of places and times in them."""
    return np.asarray((place << _BITS) + np.rint(second * 1000).astype(np.int64))


class Reduced(NamedTuple):
    """The detections of a bucket (DETECTIONS, in total order) and its queries' statistics (QUERY_STATISTICS)."""

    detections: pa.Table
    statistics: pa.Table


class Sums:
    """Statistics of candidates that are added table by table.

    Args:
        wanted: statistics by name.
        sample: see `Bucket`.
    """

    def __init__(self, wanted: Mapping[str, Statistic], sample: int | None) -> None:
        self._wanted, self._sample = wanted, sample
        self._everything: dict[str, list[Tally]] = {name: [Tally(item.quantities)] for name, item in wanted.items()}
        self._sampled: dict[str, list[Tally]] = {name: [Tally(item.quantities)] for name, item in wanted.items()}

    def add(self, candidates: pa.Table) -> None:
        """Add CANDIDATES, with a column `speaker` if a statistic wants it."""
        drawn = None if self._sample is None else candidates.filter(pa.array(in_sample(candidates, self._sample)))
        for name, item in self._wanted.items():
            self._everything[name].append(item.of(candidates))
            if drawn is not None:
                self._sampled[name].append(item.of(drawn))

    def tallies(self, parts: int = 1) -> dict[str, Tally]:
        """The statistics so far, of the sample; of keys that lack it in their first `parts` parts of everything."""
        result = {name: summed(some) for name, some in self._everything.items()}
        if self._sample is None:
            return result
        return {name: completed(summed(self._sampled[name]), every, parts) for name, every in result.items()}

    def table(self) -> pa.Table:
        """The statistics so far as a table: QUERY_STATISTICS."""
        return to_table(self.tallies())


class Bucket:
    """The candidates of one bucket, added file by file in any order, and their detections at any time.

    Args:
        tick: s a unit of `first` and `last`.
        overlap: of two candidates that overlap by more than this part of the shorter, the better stays.
        nbest: detections kept per query.
        system: name to put into their column.
        merge: of the others: `best` drops them, `sum` adds their posteriors.
        statistics: names of those that calibration needs.
        speakers: of the documents, for statistics by speaker.
        span_filter: chooses among a document's detections; None: all.
        sample: limit of the documents that statistics are over (`swsdist.methods.sample`); None: all.

    Raises:
        ConfigError: no such statistic.
    """

    def __init__(
        self,
        *,
        tick: float,
        overlap: float,
        nbest: int,
        system: str,
        merge: Merge = "best",
        statistics: Sequence[str] = (),
        speakers: Speakers | None = None,
        span_filter: SpanFilter | None = None,
        sample: int | None = None,
    ) -> None:
        self._named, self._overlap, self._merge, self._speakers = (tick, system), overlap, merge, speakers
        self._names = Names()
        self._best = Best(self._names, nbest, span_filter)
        self._sums = Sums(load_statistics(statistics), sample)

    def add(self, candidates: pa.Table) -> None:
        """Merge the CANDIDATES of a file, in which its documents are whole.

        Raises:
            DataError: posteriors are to be summed, and a score is not in [0, 1].
        """
        with_speakers = candidates if self._speakers is None else self._speakers.of_candidates(candidates)
        self._sums.add(with_speakers)
        # Candidates below the N best suppress no better one, so they can be dropped before overlaps are removed.
        spans = spans_of(candidates, self._names, self._best.may_hold if self._merge == "best" else None)
        self._best.add(merge_overlaps(spans, self._overlap, self._merge))

    def all_of(self, candidates: Iterable[pa.Table]) -> Reduced:
        """The detections of some files, and of those added before; see `add`."""
        for table in candidates:
            self.add(table)
        return self.reduced()

    def reduced(self) -> Reduced:
        """The detections and statistics; no more candidates follow, so their memory is freed."""
        return Reduced(self._best.table(*self._named), self._sums.table())


#: Best hits of a query that are looked for.
BEST = 20

#: Columns that tell detections apart, without what the list was named.
_HIT = ["query_id", "doc_id", "channel", "start", "end", "cost", "example"]


def best_found(
    exact: Iterable[pa.Table], proposed: Iterable[pa.Table], *, tick: float, overlap: float
) -> tuple[int, int]:
    """The number of best hits of an exact search, and of those among them that are the other search's best hits too.

    Args:
        exact, proposed: tables of CANDIDATES of the same queries in the same documents; a document in one of them.
        tick, overlap: see `Bucket`.
    """
    hits = []
    for tables in (exact, proposed):
        best = Bucket(tick=tick, overlap=overlap, nbest=BEST, system="").all_of(tables).detections
        hits.append(set(zip(*(best[name].to_pylist() for name in _HIT), strict=True)))
    return len(hits[0]), len(hits[0] & hits[1])


#: By query and part of an example: mean and deviation of the scores, and the root of its share of the frames.
Scaling = Mapping[tuple[str, int], tuple[float, float, float]]


def scaling_of(sums: Tally) -> Scaling:
    """The scaling that makes the scores of parts comparable.

    Args:
        sums: of `cost-sums`. The scale of a part is its frames times a number that is the same for all.
    """
    scales = {key[:2]: key[2] for key in sums.values}
    most: dict[tuple[str, int], int] = {}
    for (query_id, part), scale in scales.items():
        example = query_id, part // PARTS
        most[example] = max(most.get(example, 0), scale)
    return {
        key: (*moments, math.sqrt(scales[key] / most[key[0], key[1] // PARTS]))
        for key, moments in example_moments(sums).items()
    }


def part_places(spans: Spans, names: Names, scaling: Scaling, overlap: float, fineness: int) -> tuple[Spans, pa.Table]:
    """A file's places with their scores; and these as statistics take candidates.

    Args:
        spans: all candidates.
        names: of their codes.
        scaling: of each part.
        overlap, fineness: see `swsdist.reduce.examples.reduce_examples`.
    """
    stride = int(spans.example.max(initial=0)) + 1
    keys, row = np.unique(spans.query * stride + spans.example, return_inverse=True)
    each = [scaling[names.query_ids[key // stride], key % stride] for key in keys.tolist()]
    mean, deviation, root = np.array(each).reshape(-1, 3)[row].T
    score = np.rint(standardised(spans.score, mean, deviation) * root * fineness) / fineness
    places = merge_overlaps(spans._replace(score=score), overlap, "best")
    cost = -np.rint(places.score * fineness).astype(np.int64)
    return places, scored_places(places, names, cost, np.full(places.rows, fineness))


def with_numbers(detections: pa.Table) -> pa.Table:
    """DETECTIONS with the numbers of examples instead of those of their parts."""
    place = DETECTIONS.get_field_index("example")
    number = pc.divide(detections["example"], pa.scalar(PARTS, pa.int32()))
    return detections.set_column(place, DETECTIONS.field(place), number)


def rules_of(
    search: Search,
    reduce: Reduce,
    *,
    tick: float,
    nbest: int,
    system: str,
    statistics: Sequence[str],
    counts: Mapping[str, float],
) -> dict[str, Any]:
    """Arguments of `reduce_examples` for a config, as plain JSON.

    Args:
        search, reduce: sections of the config.
        tick, nbest, system, statistics: see `Bucket`.
        counts: of the store's manifest.
    """
    # A template is one example.
    examples = "mean" if search.examples == "mean" else "best"
    if search.parts:
        examples = "parts"
    unit = weighted([(term.distance, term.weight) for term in search.terms()]).unit
    return {
        "examples": examples,
        "merge": reduce.merge or METHODS[search.method].merge,
        "nbest": nbest,
        "tick": tick,
        "overlap": reduce.overlap,
        "system": system,
        "statistics": list(statistics),
        "sample": sample_limit(search, counts),
        # Scores stay multiples of 1/1024 of the unit of one distance.
        "fineness": 1024 * unit if examples != "best" else 1,
    }


#: By default a q-normed score is a multiple of 1 / FINENESS.
FINENESS = 1 << 21


def reduce_examples(
    examples: Literal["best", "mean", "parts"],
    candidates: Callable[[], Iterable[pa.Table]],
    *,
    tick: float,
    overlap: float,
    nbest: int,
    system: str,
    merge: Merge = "best",
    statistics: Sequence[str] = (),
    fineness: int = FINENESS,
    speakers: Speakers | None = None,
    span_filter: SpanFilter | None = None,
    sample: int | None = None,
) -> Reduced:
    """Merge one bucket's candidates.

    Args:
        examples: whether the best of a query's examples counts, or their mean; `parts`: the best of their parts
            (`swsdist.reduce.examples`).
        candidates: gives CANDIDATES, one table per file; called twice except for the best.
        tick, overlap, nbest, system, merge, statistics, speakers, span_filter, sample: see `Bucket`.
        fineness: of q-normed scores that are averaged, or compared.

    Returns:
        For the mean: `cost`, `frames` and `example` of the place's best candidate, and statistics over the means
        of all places, with example 0. For parts: those of the best part, and the same statistics over the places' scores.

    Raises:
        ConfigError: posteriors of means would be summed, or no such statistic.
        DataError: see `Bucket`.
    """
    if examples == "best":
        return Bucket(
            tick=tick,
            overlap=overlap,
            nbest=nbest,
            system=system,
            merge=merge,
            statistics=statistics,
            speakers=speakers,
            span_filter=span_filter,
            sample=sample,
        ).all_of(candidates())
    if merge != "best" or CandidatePosteriors.name in statistics:
        raise families.UNSUPPORTED.of(ConfigError)(
            "means over examples are not posteriors and cannot be summed",
            "set reduce.merge: best, and calibrate.steps: [q-norm, ...]; or search.examples: best",
            where="search.examples: mean",
        )
    costs = Sums(load_statistics([CostSums.name]), sample)
    for table in candidates():
        costs.add(table)
    sums = costs.tallies(2)[CostSums.name]
    of_means = Sums(load_statistics(statistics), sample)
    names = Names()
    best = Best(names, nbest, span_filter)

    def whose(table: pa.Table) -> pa.Table:
        return table if speakers is None else speakers.of_candidates(table)

    if examples == "parts":
        scaling = scaling_of(sums)
        for table in candidates():
            places, scores = part_places(spans_of(table, names), names, scaling, overlap, fineness)
            best.add(places)
            of_means.add(whose(scores))
        return Reduced(with_numbers(best.table(tick, system)), of_means.table())
    several = Counter(query_id for query_id, _ in {key[:2] for key in sums.values})
    moments = example_moments(sums)
    single = pa.array([query_id for query_id, count in several.items() if count == 1], pa.string())
    for table in candidates():
        alone = pc.is_in(table["query_id"], single)
        best.add(merge_overlaps(spans_of(table.filter(alone), names), overlap, "best"))
        # Codes of documents hold until some are added.
        places, means = _places(
            spans_of(table.filter(pc.invert(alone)), names), names, moments, several, overlap, fineness
        )
        best.add(places)
        of_means.add(whose(table.filter(alone)))
        of_means.add(whose(means))
    return Reduced(best.table(tick, system), of_means.table())


def _places(
    spans: Spans,
    names: Names,
    moments: Mapping[tuple[str, int], tuple[float, float]],
    examples: Mapping[str, int],
    overlap: float,
    fineness: int,
) -> tuple[Spans, pa.Table]:
    """A file's places, with means for scores; and these as statistics take candidates, of example 0.

    Args:
        spans: all candidates.
        names: of their codes.
        moments: mean and deviation of each example's scores.
        examples: how many a query has.
        overlap, fineness: see `reduce_examples`.
    """
    if spans.rows == 0:
        return spans, scored_places(spans, names, spans.cost, spans.scale)
    spans, order, owner = claim_places(spans._replace(score=_normalised(spans, names, moments)), overlap)
    spans = spans.take(order)
    rounded = np.rint(spans.score * fineness).astype(np.int64)
    # Best first: of an example's candidates at a place the first counts.
    _, first = np.unique(owner * (spans.example.max() + 1) + spans.example, return_index=True)
    total = np.zeros(spans.rows, np.int64)
    np.add.at(total, owner[first], rounded[first])

    kept_rows = np.flatnonzero(owner == np.arange(spans.rows))
    places, total = spans.take(kept_rows), total[kept_rows]
    count = np.array([examples[names.query_ids[code]] for code in places.query.tolist()], np.int64)
    scale = fineness * count
    return places._replace(score=total / scale), scored_places(places, names, -total, scale)


def _normalised(spans: Spans, names: Names, moments: Mapping[tuple[str, int], tuple[float, float]]) -> Floats:
    """The scores, q-normed by example."""
    stride = spans.example.max() + 1
    keys, row = np.unique(spans.query * stride + spans.example, return_inverse=True)
    pairs = np.array([moments[names.query_ids[key // stride], key % stride] for key in keys.tolist()])
    return standardised(spans.score, *pairs[row].T)
