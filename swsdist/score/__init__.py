"""Scoring of detections against references.

A system lists the detections of each query (document, start, end, score, YES or NO); references are the true
occurrences. Detections are aligned one to one with references; a pair is a hit, an unpaired detection a false alarm, an
unpaired reference a miss.

Conventions: times in seconds, higher scores are more likely, a detection is accepted at a threshold if its score is at
least the threshold. Trials of a query are the seconds of audio times the trials per second, so N - Ntrue of them are
non-targets. The rules are exactly those of NIST's STDEval 0.7, used by MediaEval SWS, or of KWSEval (F4DE 3.5), used by
OpenKWS; the protocol selects them.

Step by step; parts can be aligned separately and added::

    rules = protocol("sws2013")
    low, high = score_limits(detections["score"])
    aligned = align(detections, references, tolerance=rules.tolerance, low=low, high=high)
    counts = Counts.of(aligned)  # counts of parts add
    trials = number_of_trials(rules, seconds)
    weight = beta(rules, seconds, total_true=references.num_rows)
    best = mtwv(twv_curve(counts, trials=trials, beta=weight))
    actual = atwv(counts, trials=trials, beta=weight)

In `swsdist.score.measures` are protocols and operating points (`protocol`), counts and curves (`curve`), TWV, ATWV, MTWV,
OTWV and STWV (`twv`), DET with bands (`det`), precision, recall, F, P@N, MAP, EER (`retrieval`), cross entropies (`cnxe`);
alignment is in `swsdist.score.align`, segment and document trials in `swsdist.score.trials`, comparisons of systems and
breakdowns in `swsdist.score.compare`. Whole lists from files are evaluated by `swsdist.evaluation`.

Sources: NIST STD 2006 evaluation plan; Fiscus et al., "Results of the 2006 spoken term detection evaluation", 2007;
Anguera, "Description of 2012 MediaEval SWS scoring"; Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web
search task: system performance measures", 2013.
"""
