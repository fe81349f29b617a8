"""Codes of scoring: measures, protocols, alignment, comparisons and breakdowns."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import ConfigError, DataError, OddError, UserError

_SAME_SCORING = "re-score both with the same references, audio and protocol"
_CHECK_AUDIO = "check seconds of audio, trials per second and the number of queries"
_SEARCHED = "give the durations of all documents"

# Tables and rows.
ABSENT_COLUMN = families.MISSING_COLUMN.saying("no column {column!r}", "add it; the columns are: {columns}")
NOT_FINITE_NUMBER = families.BAD_CELL.saying(
    "{column} is {value}, not a finite number", "give a number such as 12.5, or leave the row out"
)

# Parameters.
VALUE_NOT_POSITIVE = families.INVALID_VALUE.of(UserError).saying(
    "{name} is {value}, not a finite number above 0", "give a finite number above 0"
)
TOO_FEW_RESAMPLES = families.TOO_FEW.saying(
    "{resamples} resamples are too few", "ask for at least 1, better 1000 or more"
)

# Protocols and trials.
UNKNOWN_DOCUMENT_COUNT = families.MISSING_INPUT.saying(
    "protocol {protocol} counts documents as trials, and their number is unknown",
    "give the number of documents, or an ECF that lists them",
)
MISSING_SEGMENTS = families.MISSING_INPUT.saying(
    "segment trials need stretches of speech",
    "name them in score.speech; for a list give an ECF, and an RTTM that has SPEAKER records besides the words",
)
NEGATIVE_FALSE_ALARM_RATES = Code(
    "negative-false-alarm-rates",
    OddError,
    "{count} term{s} with up to {largest} references in {trials} trials: false-alarm rates are negative",
    "check the trials per second and the ECF",
)
NO_REFERENCES = Code(
    "no-references",
    UserError,
    "no query has a reference, so {measure} is not defined",
    "check that query ids of references and detections are the same; a run without references exports",
)
UNDECIDED_DETECTIONS = families.UNDECIDED.saying(
    "{count} detection{s} without a decision, so actual values are not defined",
    "decide them (calibrate.fit in a config, or swsdist calibrate), or take maximum values only",
)

# Cross entropies.
TOO_MANY_TRIALS = families.MISMATCH.saying(
    "{submitted} {kind} trials were submitted, but the whole set has {total}", _CHECK_AUDIO
)
TOO_MANY_QUERIES = families.MISMATCH.saying(
    "the list has {listed} queries, the whole set {queries}", "count all queries"
)

# Measures and their part tables.

# Comparisons.
UNSEARCHED_DOCUMENT = families.MISMATCH.of(DataError).saying(
    "document {doc_id} is in the list but was not searched", _SEARCHED
)
DIFFERENT_DOCUMENTS = families.NOT_COMPARABLE.saying("the systems searched different documents", _SAME_SCORING)
DIFFERENT_REFERENCES = families.NOT_COMPARABLE.saying("the systems have different references", _SAME_SCORING)
DIFFERENT_REFERENCE_COUNTS = families.NOT_COMPARABLE.saying(
    "query {query!r} has {count} reference{s} here and {other_count} in {other}", _SAME_SCORING
)
DIFFERENT_QUERIES = families.NOT_COMPARABLE.saying(
    "the two systems have different queries with references",
    f"{_SAME_SCORING}; or compare them with swsdist compare, which has a rule for it",
)
TOO_FEW_SYSTEMS = families.TOO_FEW.saying("a comparison needs two systems, not {systems}", "name two systems or more")
UNDECIDED_QUERY = families.UNDECIDED.saying(
    "query {query!r} has no {value}: its detections have no decisions",
    "decide them (swsdist calibrate), or compare best_twv",
)

# Breakdowns.
UNJUDGED_DETECTIONS = Code(
    "unjudged-detections",
    OddError,
    "{count} detection{s} of {of} overlap no place that was judged yes or no, and count neither as hits nor as false alarms",
    "figures are of what was judged: judge more of what is found, best first",
)


DUPLICATE_SYSTEM_NAME = families.DUPLICATE_NAME.of(UserError).saying(
    "duplicate system name {name!r}", "name each system differently: NAME=PATH"
)
NOT_PROBABILITIES = Code(
    "not-probabilities",
    UserError,
    "{count} of {of} scores are not probabilities: {score:.6g} is not in [0, 1]",
    "apply a logistic first: `swsdist calibrate --method logistic`, or --fit",
)
NOT_POSTERIORS = Code(
    "not-posteriors",
    DataError,
    "{count} of {of} scores of candidates are not posteriors: {score:.6g} is not in [0, 1]",
    "the search method must give posteriors: cost = -round(p 2^40), scale = 2^40",
)
NOT_FITTED_STEPS = Code(
    "not-fitted-steps",
    ConfigError,
    "not a file of fitted steps: {reason}",
    "name a file that --save of `swsdist calibrate` or `fuse` wrote, or a file in calibration/ of an earlier run",
)
NEGATIVE_SLOPE = Code(
    "negative-slope",
    OddError,
    "{count} fit{s} of {step} with slope {slope:.4g}: higher scores are not more likely hits",
    "check that higher scores are better, and the references",
)
ORACLE_WITHOUT_REFERENCES = families.MISSING_INPUT.saying(
    "oracle-kst needs the true occurrences", "give --references, or --rttm and --terms; or use kst"
)


_CHECK_ECF = "check the names, channels and times of the ECF"

# Steps of calibration on a list.
STEPS_DO_NOT_FIT = families.MISMATCH.saying("the steps do not fit together: {reason}", "steps are {steps}")

# What is searched, and what it is scored against.
CONFLICTING_AUDIO = families.CONFLICTING_OPTIONS.saying(
    "the searched audio is given twice", "give --ecf or --seconds, not both"
)
UNKNOWN_AUDIO = families.MISSING_INPUT.saying(
    "{purpose} needs the amount of searched audio", "give the searched audio: --ecf or --seconds"
)

# Notices: lists against references.
NO_REFERENCED_TERMS = Code(
    "no-referenced-terms",
    OddError,
    "{count} term{s}, none of them with references: no rate is defined",
    "check that terms, transcript and ECF belong together",
)
SPELLED_OTHERWISE = Code(
    "spelled-otherwise",
    OddError,
    "{count} terms do not occur in the transcript as they are written, but do in another spelling (ß, accents, punctuation)",
    "spell terms as the transcript does; what is found there counts as false alarms",
)
UNSORTED_WORDS = Code(
    "unsorted-words",
    OddError,
    "{count} document{s} with words out of time order; {effect}",
    "sort the transcript by file, channel and begin",
)
UNANSWERED_TERMS = Code(
    "unanswered-terms",
    OddError,
    "{count} term{s} missing from the system's list, counted as not found",
    "write every term into the list, with or without detections",
)
REFERENCES_OUTSIDE_ECF = families.OUTSIDE_ECF.saying(
    "{count} of {of} references lie outside of the ECF and are {effect}", _CHECK_ECF
)
DOCUMENTS_NOT_IN_ECF = families.OUTSIDE_ECF.saying(
    "{count} of {of} detections are in documents that the ECF lacks, and are {effect}", _CHECK_ECF
)
DETECTIONS_OUTSIDE_ECF = families.OUTSIDE_ECF.saying(
    "{count} of {of} detections lie outside of the ECF's excerpts, and are {effect}", _CHECK_ECF
)
UNREFERENCED_DOCUMENTS = Code(
    "unreferenced-documents",
    OddError,
    "{count} of {of} detections are in documents that no reference names",
    "{advice}",
)
TIME_UNIT_MISMATCH = Code(
    "time-unit-mismatch",
    OddError,
    "{count} of {of} detections: by their median length, list and references have different units of time",
    "give seconds in both",
)
INCONSISTENT_DECISIONS = Code(
    "inconsistent-decisions",
    OddError,
    "{count} list{s} with inconsistent decisions: in query {query} a NO has the score {highest_no} "
    "and a YES {lowest_yes}{reversed}",
    "decide each query by one threshold; the greater score must be the better hit",
)
THRESHOLDS_OF_FOLDS = Code(
    "thresholds-of-folds",
    OddError,
    "{count} list{s} of several thresholds, one for each query, as of folds: "
    "the highest score of a NO is {highest_no}, the lowest of a YES {lowest_yes}",
    "decide by one threshold, if a program needs one (KWSEval does)",
)
DUPLICATE_DETECTIONS = Code(
    "duplicate-detections",
    OddError,
    "{count} detection{s} repeat another of the list, with the same query, place and score; each counts",
    "give each detection once",
)
TERMS_IN_EVERY_DOCUMENT = Code(
    "terms-in-every-document",
    OddError,
    "{count} term{s} in every document, without a false-alarm rate, left out",
    "leave them out of the evaluation",
)
UNSCORED_SOURCE_TYPES = Code(
    "unscored-source-types",
    OddError,
    "{count} source type{s} not scored on its own",
    "give each source type of the ECF detections and references",
)

# Lists and their files.

# Kaldi's results.

# Comparisons.
DIFFERENT_SCORING = families.NOT_COMPARABLE.saying(
    "the systems were scored with different {setting}: {values}", _SAME_SCORING
)
DIFFERENT_CNXE_SETTINGS = families.NOT_COMPARABLE.saying(
    "the systems were scored for different numbers of queries, or at different priors of Cnxe", _SAME_SCORING
)
