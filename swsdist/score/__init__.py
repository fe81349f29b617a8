"""Scoring: how well were the queries found?

The task: a system gives each query a list of detections (document, start, end, score, YES or NO); references say where
the queries truly occur. Detections are aligned one to one with references; what is paired is a hit, what is left over
on one side a false alarm, on the other a miss.

Conventions: times in seconds, higher scores are more likely, a detection is accepted at a threshold if its score is at
least the threshold. Trials of a query are the seconds of audio times the trials per second, so N - Ntrue of them are
non-targets. The rules are those of NIST's STDEval 0.7, which MediaEval SWS used, or of KWSEval (F4DE 3.5), of OpenKWS, to
the last count; which, a protocol says.

Step by step, so that parts can be aligned anywhere and added up::

    rules = protocol("sws2013")
    low, high = score_limits(detections["score"])
    aligned = align(detections, references, tolerance=rules.tolerance, low=low, high=high)
    counts = Counts.of(aligned)  # counts of parts add
    trials = number_of_trials(rules, seconds)
    weight = beta(rules, seconds, total_true=references.num_rows)
    best = mtwv(twv_curve(counts, trials=trials, beta=weight))
    actual = atwv(counts, trials=trials, beta=weight)

Where each measure is: Pmiss, Pfa, TWV, ATWV, MTWV in `twv`, OTWV and STWV in `optimum`, DET with bands in `det`,
precision, recall, F, P@N, MAP, EER in `retrieval`, cross entropies in `cnxe`, the QUESST scorer in `quesst` (all in
`swsdist.score.measures`); alignment, segment and document trials are in `swsdist.score.trials`, comparisons of systems and
breakdowns in `swsdist.score.compare`. Whole lists from files are evaluated by `swsdist.evaluation`.

Sources: NIST STD 2006 evaluation plan; Fiscus et al., "Results of the 2006 spoken term detection evaluation", 2007;
Anguera, "Description of 2012 MediaEval SWS scoring"; Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web
search task: system performance measures", 2013.
"""

from swsdist.score.measures.curve import Curve, CurvePoint
from swsdist.score.measures.det import Det, det, ppndf
from swsdist.score.measures.protocol import PROTOCOLS, Protocol, beta, number_of_trials, protocol
from swsdist.score.measures.twv import (
    PER_TERM,
    Counts,
    atwv,
    mtwv,
    per_term,
    total,
    twv_curve,
)
from swsdist.score.trials.align import align, score_limits

__all__ = [
    "PER_TERM",
    "PROTOCOLS",
    "Counts",
    "Curve",
    "CurvePoint",
    "Det",
    "Protocol",
    "align",
    "atwv",
    "beta",
    "det",
    "mtwv",
    "number_of_trials",
    "per_term",
    "ppndf",
    "protocol",
    "score_limits",
    "total",
    "twv_curve",
]
