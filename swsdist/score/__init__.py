"""Scoring: how well were the queries found?

The task: a system gives each query a list of detections (document, start, end, score, YES or NO); references say where
the queries truly occur. Detections are aligned one to one with references; what is paired is a hit, what is left over
on one side a false alarm, on the other a miss.

Conventions: times in seconds, higher scores are more likely, a detection is accepted at a threshold if its score is at
least the threshold. Trials of a query are the seconds of audio times the trials per second, so N - Ntrue of them are
non-targets. The rules are those of NIST's STDEval 0.7, which MediaEval SWS used, or of KWSEval (F4DE 3.5), of OpenKWS, to
the last count; which, a protocol says.

All at once, from files or from tables (arrow, pandas, mappings of columns)::

    task = read_task(ecf="ecf.xml", rttm="ref.rttm", terms="tlist.xml", protocol="sws2013")
    result = evaluate(task, read_system("stdlist.xml"))
    values(result)  # every measure by its name

    task = make_task(references, total_seconds=72440, protocol="openkws13")
    result = evaluate(task, make_system(detections))

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
precision, recall, F, P@N, MAP, EER in `retrieval`, cross entropies in `cnxe`, the QUESST scorer in `quesst`, segment and
document trials in `segments` and `documents`, ISF, SSF, PMU and PL in `resources`; comparisons of systems in `compare`,
breakdowns in `breakdown`.

Sources: NIST STD 2006 evaluation plan; Fiscus et al., "Results of the 2006 spoken term detection evaluation", 2007;
Anguera, "Description of 2012 MediaEval SWS scoring"; Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web
search task: system performance measures", 2013.
"""

from swsdist.score.align import align, score_limits
from swsdist.score.det import Det, det, ppndf
from swsdist.score.evaluation import Evaluation, evaluate
from swsdist.score.inputs import System, Task, make_system, make_task, read_system, read_task
from swsdist.score.measures import more_values, values
from swsdist.score.protocol import PROTOCOLS, Protocol, beta, number_of_trials, protocol
from swsdist.score.twv import PER_TERM, Counts, Curve, Point, atwv, fit_threshold, mtwv, per_term, total, twv_curve

__all__ = [
    "PER_TERM",
    "PROTOCOLS",
    "Counts",
    "Curve",
    "Det",
    "Evaluation",
    "Point",
    "Protocol",
    "System",
    "Task",
    "align",
    "atwv",
    "beta",
    "det",
    "evaluate",
    "fit_threshold",
    "make_system",
    "make_task",
    "more_values",
    "mtwv",
    "number_of_trials",
    "per_term",
    "ppndf",
    "protocol",
    "read_system",
    "read_task",
    "score_limits",
    "total",
    "twv_curve",
    "values",
]
