"""Figure of merit: the mean detection rate of a query from 0 to 10 false alarms an hour.

With p_i the part of a query's true occurrences that score above its i-th false alarm, T hours of audio, and N the whole part
of 10 T,

    FOM = (p_1 + ... + p_N + a p_(N+1)) / (10 T)        a = 10 T - N

so it is the mean of a step function. (HTK's HResults takes the whole number next to 10 T for N, and a may then be negative.)
Behind the last false alarm of a list the rate stays what it is; what was not submitted is never found. The figure of a list is
the mean over the queries with references.

Equal scores have no order: of h hits and f false alarms of one score, the j-th false alarm has h j / (f + 1) of the hits above
it, the mean over all orders.

Sources: Rohlicek, Russell, Roukos and Gish, "Continuous hidden Markov modeling for speaker-independent word spotting", ICASSP
1989, for the measure; The HTK Book 3.4, section 17.11 (HResults), for the formula.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.codes import score as codes
from swsdist.score.measures.ranking import Ranking

#: Maximum false alarms per hour of the average.
FALSE_ALARMS_PER_HOUR = 10

FIGURE = pa.schema([pa.field("query_id", pa.string(), False), pa.field("fom", pa.float64(), False)])


def figure_of_merit(ranking: Ranking, seconds: float) -> pa.Table:
    """The figure of merit of each query with references.

    Args:
        ranking: of an aligned list.
        seconds: T, s of audio.

    Returns:
        A table of schema FIGURE, by query_id; values in [0, 1].

    Raises:
        UserError: there is no audio.
    """
    if not 0 < seconds < math.inf:
        raise codes.VALUE_NOT_POSITIVE(name="seconds of audio", value=seconds)
    span = FALSE_ALARMS_PER_HOUR * seconds / 3600
    whole_hours = math.floor(span)
    size = len(ranking.ntrue)
    # One row for each of the first false alarms.
    many = np.clip(whole_hours + 1 - ranking.false_above, 0, ranking.false_alarms)
    row = np.repeat(np.arange(len(many)), many)
    order = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many) + 1
    above = ranking.hits_above[row] + ranking.hits[row] * order / (ranking.false_alarms[row] + 1)
    place = ranking.false_above[row] + order
    weight = np.where(place <= whole_hours, 1.0, span - whole_hours)
    query = ranking.query[row]
    # Whole hits and parts of hits are added in the order of the ranking, one query after the other.
    sums = np.bincount(query, weights=weight * above, minlength=size)
    hits = np.bincount(ranking.query, weights=ranking.hits, minlength=size)
    totals = np.bincount(query, minlength=size)
    # Behind the last false alarm; of the part of a place there is one, the last.
    rest = np.where(totals <= whole_hours, (whole_hours - np.minimum(totals, whole_hours)) + (span - whole_hours), 0.0)
    values: NDArray[np.float64] = (sums + rest * hits) / (span * ranking.ntrue)
    return pa.Table.from_arrays([ranking.names, pa.array(values)], schema=FIGURE)
