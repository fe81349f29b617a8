"""Scoring of detections against references.

A system lists the detections of each query (document, start, end, score, YES or NO); references are the true
occurrences. Detections are aligned one to one with references; a pair is a hit, an unpaired detection a false alarm, an
unpaired reference a miss.

Conventions: times are in seconds. Higher scores are more likely, and a threshold accepts scores that are at least the
threshold. Trials of a query are the seconds of audio times the trials per second, so N - Ntrue of them are non-targets.
A protocol selects the rules: exactly those of NIST's STDEval 0.7, used by MediaEval SWS, or of KWSEval (F4DE 3.5), used
by OpenKWS.

Step by step; parts can be aligned separately and added::

    rules = protocol("sws2013")
    low, high = score_limits(detections["score"])
    aligned = align(detections, references, tolerance=rules.tolerance, low=low, high=high)
    counts = Counts.of(aligned)  # counts of parts add
    trials = number_of_trials(rules, seconds)
    weight = beta(rules, seconds, total_true=references.num_rows)
    best = mtwv(twv_curve(counts, trials=trials, beta=weight))
    actual = atwv(counts, trials=trials, beta=weight)

Modules: `align` (pairs), `trials` (segments, documents, references looked up in transcripts), `events` (tables that
add, and the interface of measures), `measures.protocol` (operating points), `measures.curve` (counts and curves),
`measures.twv` (TWV, ATWV, MTWV, OTWV, STWV), `measures.det` (DET with bands), `measures.retrieval` (precision, recall,
F, P@N, MAP, EER), `measures.cnxe` (cross entropies), and `compare` (comparisons of systems, breakdowns). Lists in files
are evaluated by `swsdist.evaluation`.

Sources: NIST STD 2006 evaluation plan; Fiscus et al., "Results of the 2006 spoken term detection evaluation", 2007;
Anguera, "Description of 2012 MediaEval SWS scoring"; Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web
search task: system performance measures", 2013.
"""
