"""From the lists of several systems to what is fitted and decided, in the one order in which that is done.

::

    comparable scores -> places, joined -> what systems were asked besides -> missing scores filled -> no overlaps in a query

The chain fuse does it by buckets of queries, in two stages; `swsdist fuse` does it with whole lists. All of it comes before
anything is fitted, so what is left out depends on no reference. Overlaps of different queries are left out after that, by the
fused score (`without_overlaps`, `between_queries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from swsdist.fusion.joining import Meeting, join_lists, without_overlaps
from swsdist.fusion.weights import Missing, impute_scores, standardise_lists, with_rescored


def join_systems(
    lists: Mapping[str, pa.Table], *, standardise: bool, meet: Meeting, overlap: float
) -> tuple[pa.Table, pa.Table]:
    """Lists as one, with null where a system made no detection.

    Args:
        lists: by name of the system, as of `join_lists`.
        standardise: scores less their query's mean, over the standard deviation; or as they are.
        meet, overlap: when detections of two systems mean one place.

    Returns:
        JOINED, and KNOWN of the scores of each system and query.

    Raises:
        UserError: there is no list.
    """
    scaled, statistics = standardise_lists(lists, standardise=standardise)
    return join_lists(scaled, meet=meet, overlap=overlap), statistics


def complete_list(
    table: pa.Table, statistics: pa.Table, *, missing: Missing, overlap: float, rescored: Iterable[pa.Table] = ()
) -> pa.Table:
    """A joined list in which no score is missing, and no places of one query overlap.

    Args:
        table, statistics: as `join_systems` gave them.
        missing: what stands for a missing score.
        overlap: of two places of a query that share more than this part of the shorter one, the better stays; 0 to 1.
        rescored: RESCORED, what systems say of places at which they made no detection.

    Returns:
        JOINED; the score is the mean of the systems' scores; in total order.
    """
    for answers in rescored:
        table = with_rescored(table, answers)
    return without_overlaps(impute_scores(table, missing, statistics).table, overlap)
