"""The order of joining and imputing the lists of several systems::

    comparable scores -> joined places -> rescored places -> imputed scores -> no overlaps in a query

The chain fuse processes buckets of queries in two stages; `swsdist fuse` processes whole lists. All of this precedes fitting,
so it does not depend on references. Overlaps of different queries are removed later, by the fused score (`without_overlaps`,
`between_queries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from swsdist.fusion.joining import Meeting, join_lists, without_overlaps
from swsdist.fusion.parts import parts_of
from swsdist.fusion.weights import Missing, impute_scores, standardise_lists, with_rescored


def join_systems(
    lists: Mapping[str, pa.Table], *, standardise: bool, meet: Meeting, overlap: float
) -> tuple[pa.Table, pa.Table]:
    """Join lists, with null for systems without a detection.

    Args:
        lists: by name of the system, as of `join_lists`.
        standardise: subtract the query's mean and divide by the standard deviation.
        meet, overlap: criterion for joining detections of two systems.

    Returns:
        JOINED, and KNOWN: statistics of scores by system and query.

    Raises:
        UserError: there is no list.
    """
    scaled, statistics = standardise_lists(lists, standardise=standardise)
    return join_lists(scaled, meet=meet, overlap=overlap), statistics


def complete_list(
    table: pa.Table,
    statistics: pa.Table,
    *,
    missing: Missing,
    overlap: float,
    rescored: Iterable[pa.Table] = (),
    found_by: int = 1,
) -> pa.Table:
    """Impute missing scores of a joined list, and remove overlapping places of a query.

    Args:
        table, statistics: from `join_systems`.
        missing: how missing scores are imputed.
        overlap: share of the shorter place, 0 to 1, above which only the better of two places of a query is kept.
        rescored: RESCORED, scores of systems at places without a detection of theirs.
        found_by: places that fewer systems detected are left out.

    Returns:
        JOINED; the score is the mean of the systems' scores; in total order.
    """
    for answers in rescored:
        table = with_rescored(table, answers)
    if found_by > 1:
        table = table.filter(pa.array(parts_of(table)[2].sum(1) >= found_by))
    return without_overlaps(impute_scores(table, missing, statistics).table, overlap)
