"""What several examples of a query make together, where each of them was searched: the best counts, or their mean.

**best**: the candidates of all examples compete, see `swsdist.reduce.detections`.

**mean**, for a query of several examples:

1. The score of a candidate is q-normed by the candidates of its own example: what is a good score differs between
   examples, as they differ in length and clearness.
2. The best candidate in a document, of whatever example, is a place, and takes its times from it. All that overlap it, by the
   rule of suppression, were found there too, and belong to no other place; then the best of those that are left, and so on.
3. The score of a place is the mean over all examples that found anything in the collection, each with its best candidate
   there. An example that found nothing there counts with its own mean, which is 0: that it kept other candidates
   says that the place is not among its best, and no more.

A mean over many examples varies less than one over few. So means are q-normed again, as all scores are, by the stage that
follows: the statistics are over the means of all places. They are exact sums: a q-normed score is rounded to a multiple of
1 / (1024 unit), and with K examples minus the sum of these integers stands as the cost of 1024 K query frames.

A query of one example has nothing to average, and is what `best` makes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.calibrate.qnorm import example_moments, standardised
from swsdist.reduce.detections import (
    Reduced,
    Sums,
    claimed,
    count_costs,
    n_best,
    reduce_bucket,
    scored,
    statistics_table,
    unsuppressed,
)
from swsdist.types import DETECTIONS

#: A q-normed score is a whole number of 1 / (FINENESS * unit).
FINENESS = 1024


def reduce_examples(
    how: Literal["best", "mean", "template"],
    candidates: Callable[[], Iterable[pa.Table]],
    *,
    shift: float,
    unit: int,
    overlap: float,
    nbest: int,
    system: str,
) -> Reduced:
    """Merge one bucket's candidates as the config's `search.examples` says; a template is a query's only example.

    Args:
        how: the config's.
        candidates: gives CANDIDATES, one table a file; asked twice for the mean.
        shift, unit, overlap, nbest, system: see `reduce_bucket`.

    Returns:
        Of a mean, `cost`, `frames` and `example` are those of the place's best candidate, and the query has one row of
        statistics, of example 0.
    """
    if how != "mean":
        return reduce_bucket(candidates(), shift=shift, unit=unit, overlap=overlap, nbest=nbest, system=system)
    sums: Sums = {}
    for table in candidates():
        count_costs(table, sums)
    known = example_moments(statistics_table(sums), unit)
    examples = Counter(query_id for query_id, _, _ in sums)
    single = pa.array([query_id for query_id, count in examples.items() if count == 1], pa.string())
    made: Sums = {key: total for key, total in sums.items() if examples[key[0]] == 1}
    kept = DETECTIONS.empty_table()
    for table in candidates():
        alone = pc.is_in(table["query_id"], single)
        one, several = table.filter(alone), table.filter(pc.invert(alone))
        best = unsuppressed(scored(one, shift, unit, system), _stop(one), overlap)
        places = _places(scored(several, shift, unit, system), _stop(several), known, examples, unit, overlap, made)
        kept = n_best(pa.concat_tables([kept, best, places]), nbest)
    return Reduced(kept.combine_chunks(), statistics_table(made))


def _stop(table: pa.Table) -> NDArray[np.int64]:
    return np.asarray(table["end_frame"].to_numpy() + 1)


def _places(
    table: pa.Table,
    stop: NDArray[np.int64],
    known: Mapping[tuple[str, int], tuple[float, float]],
    examples: Mapping[str, int],
    unit: int,
    overlap: float,
    sums: Sums,
) -> pa.Table:
    """A file's places, with means for scores; they are added to the sums.

    Args:
        table: DETECTIONS, all candidates.
        stop: the frame after each one's last.
        known: mean and deviation of each example's scores.
        examples: how many a query has.
        unit, overlap: see `reduce_bucket`.
        sums: of queries of several examples, `example` being 0.
    """
    if table.num_rows == 0:
        return table
    field = table.schema.get_field_index("score")
    table = table.set_column(field, table.schema.field(field), pa.array(_normalised(table, known)))
    table, owner = claimed(table, stop, overlap)
    whole = np.rint(table["score"].to_numpy() * (FINENESS * unit)).astype(np.int64)
    # Best first: of an example's candidates at a place the first counts.
    example = table["example"].to_numpy().astype(np.int64)
    _, first = np.unique(owner * (example.max() + 1) + example, return_index=True)
    total = np.zeros(len(owner), np.int64)
    np.add.at(total, owner[first], whole[first])

    here = np.flatnonzero(owner == np.arange(len(owner)))
    places, total = table.take(pa.array(here)), total[here]
    query = places["query_id"].to_pylist()
    frames = np.array([FINENESS * examples[query_id] for query_id in query], np.int64)
    for query_id, length, value in zip(query, frames.tolist(), total.tolist(), strict=True):
        row = sums.setdefault((query_id, 0, length), [0, 0, 0])
        row[0] += 1
        row[1] -= value
        row[2] += value * value
    return places.set_column(field, places.schema.field(field), pa.array(total / (frames * unit)))


def _normalised(table: pa.Table, known: Mapping[tuple[str, int], tuple[float, float]]) -> NDArray[np.float64]:
    """The scores, each q-normed by its own example."""
    query = table["query_id"].combine_chunks().dictionary_encode()
    example = table["example"].to_numpy().astype(np.int64)
    apart = example.max() + 1
    keys, row = np.unique(query.indices.to_numpy() * apart + example, return_inverse=True)
    names = query.dictionary.to_pylist()
    pairs = np.array([known[names[key // apart], key % apart] for key in keys.tolist()])
    return standardised(table["score"].to_numpy(), *pairs[row].T)
