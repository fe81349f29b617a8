"""Codes of scoring: measures, protocols, alignment, comparisons and breakdowns."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, OddError, TableError, UserError

_SAME_SCORING = "re-score both with the same references, audio and protocol"
_CHECK_AUDIO = "check seconds of audio, trials per second and the number of queries"
_SEARCHED = "give the durations of all documents"

# Tables and rows.
NOT_TABULAR = Code(
    "not-tabular",
    TableError,
    "not a table: {reason}",
    "give an arrow table, a pandas DataFrame, a mapping of columns or a list of rows",
)
ABSENT_COLUMN = Code("absent-column", TableError, "no column {column!r}", "add it; the columns are: {columns}")
WRONG_COLUMN_TYPE = Code(
    "wrong-column-type", TableError, "column {column} is {type}, not {expected}", "give {expected}"
)
INVALID_DECISION = Code(
    "invalid-decision", TableError, "decision {decision!r}", "give YES, NO or nothing, or true and false"
)
EMPTY_CELL = Code("empty-cell", TableError, "{column} is empty", "fill it in, or leave the row out")
NOT_FINITE_NUMBER = Code(
    "not-finite-number", TableError, "{column} is {value}, not a finite number", "correct the row or leave it out"
)
END_BEFORE_START = Code("end-before-start", TableError, "the end is before the start", "correct the times")
SCORE_RANGE_TOO_WIDE = Code(
    "score-range-too-wide",
    TableError,
    "scores from {lowest} to {highest} differ by more than a double can hold",
    "scale them",
)
INVALID_TERM_ROW = Code(
    "invalid-term-row",
    TableError,
    "query {query!r} has ntrue {ntrue} and {value} {number}",
    "correct the row, or score the system again",
)
DUPLICATE_TERM_ROW = Code("duplicate-term-row", TableError, "duplicate query {query!r}", "keep one of its rows")
CONFLICTING_DOCUMENT_ROWS = Code(
    "conflicting-document-rows", TableError, "document {doc_id!r} has two values of {column}", "keep one"
)

# Parameters.
VALUE_NOT_POSITIVE = Code(
    "value-not-positive", UserError, "{name} is {value}, not a finite number above 0", "give a finite number above 0"
)
INVALID_PRIOR = Code("invalid-prior", UserError, "the prior {prior} is not between 0 and 1", "give a probability")
INVALID_RANK = Code("invalid-rank", UserError, "P@{rank} is not defined", "give a rank of at least 1")
INVALID_CONFIDENCE_LEVEL = Code(
    "invalid-confidence-level",
    UserError,
    "the confidence level {level} is not between 0 and 1",
    "give one between 0 and 1, such as 0.95",
)
TOO_FEW_RESAMPLES = Code(
    "too-few-resamples", UserError, "{resamples} resamples are too few", "ask for at least 1, better 1000 or more"
)
UNKNOWN_CONVENTIONS = Code("unknown-conventions", UserError, "unknown conventions {name!r}", "choose one of: {names}")
UNKNOWN_PROTOCOL = Code("unknown-protocol", UserError, "unknown protocol {name!r}{meant}", "choose one of: {names}")
UNKNOWN_MEASURE = Code("unknown-measure", ConfigError, "unknown measure {key!r}{meant}", "measures are {measures}")

# Protocols and trials.
PROTOCOL_VALUE_OUT_OF_RANGE = Code("protocol-value-out-of-range", UserError, "{part} is {value}", "it must be {range}")
CONFLICTING_BETA = Code(
    "conflicting-beta",
    UserError,
    "beta and {parts} are both given, though beta is computed from them",
    "give either beta, or cost, value and prior",
)
BETA_OUT_OF_RANGE = Code(
    "beta-out-of-range", UserError, "cost, value and prior make beta {beta}", "give a prior farther from 0 and 1"
)
NO_AS_RUN_VARIANT = Code(
    "no-as-run-variant",
    UserError,
    "no as-run variant: only sws2012, for its African data, was run differently from its plan",
    "leave as_run out",
)
SEGMENT_TRIALS_UNSUPPORTED = Code(
    "segment-trials-unsupported",
    UserError,
    "segment trials are KWSEval's",
    "use kwseval or openkws13",
)
INVALID_TRIAL_COUNT = Code(
    "invalid-trial-count",
    UserError,
    "{seconds} s of audio with {rate} trials per second make no valid number of trials",
    "score at least one second of audio; check the trials per second, and the durations (of the ECF, or of a run's "
    "documents: those of channel 1 count)",
)
UNDEFINED_BETA = Code(
    "undefined-beta",
    UserError,
    "beta cannot be computed from {true} true occurrences in {trials} trials",
    "give score.beta, or use a protocol whose beta is fixed",
)
UNKNOWN_SEGMENT_COUNT = Code(
    "unknown-segment-count",
    UserError,
    "protocol {protocol} counts segments as trials, and their number is unknown",
    "give an ECF, and stretches of speech (SPEAKER records of an RTTM)",
)
UNKNOWN_DOCUMENT_COUNT = Code(
    "unknown-document-count",
    UserError,
    "protocol {protocol} counts documents as trials, and their number is unknown",
    "give the number of documents, or an ECF that lists them",
)
MISSING_SEGMENTS = Code(
    "missing-segments",
    UserError,
    "segment trials need stretches of speech",
    "name them in score.speech; for a list give an ECF, and an RTTM that has SPEAKER records besides the words",
)
NEGATIVE_FALSE_ALARM_RATES = Code(
    "negative-false-alarm-rates",
    OddError,
    "{count} term{s} with up to {largest} references in {trials} trials: false-alarm rates are negative",
    "check the trials per second and the ECF",
)
NO_NONTARGET_TRIALS = Code(
    "no-nontarget-trials",
    UserError,
    "a query has {trials} true occurrences in {trials} trials, so its false-alarm rate is not defined",
    "raise trials_per_second, or check that all the searched audio is counted",
)
NO_REFERENCES = Code(
    "no-references",
    UserError,
    "no query has a reference, so {measure} is not defined",
    "check that query ids of references and detections are the same; a run without references exports",
)
UNDECIDED_DETECTIONS = Code(
    "undecided-detections",
    UserError,
    "{count} detection{s} without a decision, so actual values are not defined",
    "decide them (calibrate.fit in a config, or swsdist calibrate), or take maximum values only",
)

# Cross entropies.
INVALID_COSTS = Code(
    "invalid-costs",
    UserError,
    "the costs are {cost_miss} (miss) and {cost_false_alarm} (false alarm)",
    "give positive, finite costs",
)
TOO_MANY_TRIALS = Code(
    "too-many-trials",
    UserError,
    "{submitted} {kind} trials were submitted, but the whole set has {total}",
    _CHECK_AUDIO,
)
TOO_MANY_QUERIES = Code(
    "too-many-queries", UserError, "the list has {listed} queries, the whole set {queries}", "count all queries"
)
UNDEFINED_CROSS_ENTROPY = Code(
    "undefined-cross-entropy",
    UserError,
    "no cross entropy is defined for {true} target and {false} non-target trials",
    "provide at least one of each: check references, seconds of audio and trials per second",
)

# Measures and their part tables.
DUPLICATE_PART_TABLE = Code(
    "duplicate-part-table", ConfigError, "two measures have a part table {part!r}", "rename one"
)
UNDECLARED_MEASURE_VALUE = Code(
    "undeclared-measure-value",
    ConfigError,
    "measure {measure} gives {names}, which its entry does not declare",
    "add a Quantity to `gives` of its MeasureEntry (swsdist help add-a-measure)",
)
PART_SCHEMA_MISMATCH = Code(
    "part-schema-mismatch", TableError, "the part has the columns {columns}", "its schema requires {expected}"
)
DUPLICATE_PART_KEY = Code("duplicate-part-key", TableError, "duplicate key", "sum the rows of one key")
MISMATCHED_SQUARES = Code(
    "mismatched-squares",
    UserError,
    "counts and squares are of different lists",
    "compute both from the same aligned list",
)

# Comparisons.
UNSEARCHED_DOCUMENT = Code(
    "unsearched-document", DataError, "document {doc_id} is in the list but was not searched", _SEARCHED
)
SPLIT_QUERY = Code(
    "split-query",
    UserError,
    "the list has no parts, or a query is in two of them",
    "put all detections of a query in one part",
)
DIFFERENT_DOCUMENTS = Code("different-documents", UserError, "the systems searched different documents", _SAME_SCORING)
DIFFERENT_REFERENCES = Code("different-references", UserError, "the systems have different references", _SAME_SCORING)
DIFFERENT_REFERENCE_COUNTS = Code(
    "different-reference-counts",
    UserError,
    "query {query!r} has {count} reference{s} here and {other_count} in {other}",
    _SAME_SCORING,
)
DIFFERENT_QUERIES = Code(
    "different-queries",
    UserError,
    "the two systems have different queries with references",
    f"{_SAME_SCORING}; or compare them with swsdist compare, which has a rule for it",
)
UNDEFINED_STATISTIC = Code(
    "undefined-statistic",
    UserError,
    "no value is defined: no query has a reference, or a query has no non-target trial",
    "check the references and the durations of the documents",
)
NOTHING_TO_RESAMPLE = Code(
    "nothing-to-resample", UserError, "no {unit} to resample", "check the references and the list of documents"
)
NO_TARGET_IN_RESAMPLES = Code(
    "no-target-in-resamples", UserError, "no resample of queries has a true occurrence", "check the references"
)
UNTESTABLE_VALUES = Code(
    "untestable-values",
    UserError,
    "no test is possible with {queries} queries and {permutations} permutations",
    "give queries with references, and ask for 1000 permutations or more",
)
UNKNOWN_TERM_VALUE = Code(
    "unknown-term-value", UserError, "{value!r} is not a value of a query", "choose one of: {values}"
)
TOO_FEW_SYSTEMS = Code(
    "too-few-systems", UserError, "a comparison needs two systems, not {systems}", "name two systems or more"
)
UNDECIDED_QUERY = Code(
    "undecided-query",
    UserError,
    "query {query!r} has no {value}: its detections have no decisions",
    "decide them (swsdist calibrate), or compare best_twv",
)
UNPAIRED_CONDITIONS = Code(
    "unpaired-conditions",
    UserError,
    "the systems of the conditions cannot be paired: {systems}",
    "give the value of each system under each of two conditions or more",
)
UNPAIRED_VALUES = Code(
    "unpaired-values",
    UserError,
    "values of shapes {first} and {second} cannot be paired",
    "give two sequences of one length",
)
NOT_FINITE_PAIR = Code("not-finite-pair", UserError, "a paired value is not finite", "leave its pair out")

# Breakdowns.
INVALID_BIN_EDGES = Code(
    "invalid-bin-edges", UserError, "bin edges {edges} are not finite and ascending", "give finite, ascending numbers"
)
TOO_MANY_BINS = Code(
    "too-many-bins",
    UserError,
    "values from {low} to {high} make too many bins of width 1",
    "give edges, or quantiles",
)
TOO_FEW_BINS = Code("too-few-bins", UserError, "{bins} bins are too few", "ask for at least 1")
NOT_NUMERIC = Code(
    "not-numeric", UserError, "bins {bins!r} need numbers: {reason}", "leave the bins out, or correct the values"
)
UNKNOWN_BINS = Code(
    "unknown-bins", UserError, "unknown bins {bins!r}", "give `unit`, quantiles such as q4, or edges such as 0.2,0.5,1"
)
UNSEARCHED_GROUP = Code(
    "unsearched-group",
    UserError,
    "the list has documents with {column} {value}, of which {seconds} s were searched",
    "check the durations of the documents",
)
MISMATCHED_REFERENCES = Code(
    "mismatched-references",
    UserError,
    "the aligned list and the per-term values have different references",
    "take both from one scoring",
)
MISMATCHED_GROUPS = Code(
    "mismatched-groups", UserError, "{queries} queries, but groups of {members}", "group the same rows"
)
UNJUDGED_DETECTIONS = Code(
    "unjudged-detections",
    OddError,
    "{count} detection{s} of {of} overlap no place that was judged yes or no, and count neither as hits nor as false alarms",
    "figures are of what was judged: judge more of what is found, best first",
)
UNREFERENCED_QUERY = Code(
    "unreferenced-query",
    UserError,
    "a query without references has no value",
    "take the rows whose ntrue is not 0",
)


NO_POSTERIOR_FEATURES = Code(
    "no-posterior-features",
    UserError,
    "no features of the queries are posteriors, so their frames have no entropy: {features}",
    "leave the covariate entropy out, or search features that are posteriors",
)
NO_SYSTEMS_TO_STUDY = Code("no-systems-to-study", UserError, "no system to study", "name one or more system lists")
DUPLICATE_SYSTEM_NAME = Code(
    "duplicate-system-name", UserError, "duplicate system name {name!r}", "name each system differently: NAME=PATH"
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
INVALID_STEP_OPTION = Code(
    "invalid-step-option", ConfigError, "step {step} refuses its options: {reason}", "options of {step}: {options}"
)
SCORE_KIND_REFUSED = Code(
    "score-kind-refused", ConfigError, "step {step} receives scores of the kind {kind}", "{remedy}"
)
NOT_FITTED_STEPS = Code(
    "not-fitted-steps",
    ConfigError,
    "not a file of fitted steps: {reason}",
    "name a file that --save of `swsdist calibrate` or `fuse` wrote, or a file in calibration/ of an earlier run",
)
THRESHOLDS_OF_OTHER_STEPS = Code(
    "thresholds-of-other-steps",
    ConfigError,
    "the thresholds are for {fitted}, not for {steps}",
    "decide by the step's own threshold (calibrate.threshold: own), or name a file of the same steps",
)
NO_FITTED_FILE = Code(
    "no-fitted-file",
    ConfigError,
    "no such file of fitted steps",
    "name the folder of a finished run, or a file of fitted steps (calibration/ in a run)",
)
NOT_A_RUN_TO_FIT_BY = Code(
    "not-a-run-to-fit-by",
    ConfigError,
    "this folder is not a run folder",
    "name the folder of a finished run, or a file of fitted steps (calibration/ in a run)",
)
CONFLICTING_PRIORS = Code(
    "conflicting-priors", ConfigError, "prior and vocabulary both set the prior", "give prior or vocabulary"
)
DUPLICATE_COVARIATE = Code("duplicate-covariate", ConfigError, "duplicate covariate {name}", "name it once")
NEGATIVE_SLOPE = Code(
    "negative-slope",
    OddError,
    "{count} fit{s} of {step} with slope {slope:.4g}: higher scores are not more likely hits",
    "check that higher scores are better, and the references",
)
NO_QUERIES_TO_FIT = Code(
    "no-queries-to-fit", UserError, "no query has a true occurrence to fit on", "give references, or a fitted file"
)
TOO_FEW_QUERIES_TO_FIT = Code(
    "too-few-queries-to-fit",
    UserError,
    "cross-fitting in {folds} folds has nothing to fit on: the queries that truly occur ({count}) are in one fold",
    "give references of more queries, or fit by oracle or a file of other data (calibrate.fit, --fit)",
)
UNKNOWN_THRESHOLDING = Code(
    "unknown-thresholding", UserError, "unknown thresholding method {method!r}", "choose one of: {methods}"
)
ORACLE_WITHOUT_REFERENCES = Code(
    "oracle-without-references",
    UserError,
    "oracle-kst needs the true occurrences",
    "give --references, or --rttm and --terms; or use kst",
)


_CHECK_ECF = "check the names, channels and times of the ECF"

# Steps of calibration on a list.
NEEDS_CANDIDATES = Code(
    "needs-candidates",
    UserError,
    "step {step} needs all candidates of a search, which a list does not contain",
    "leave it out",
)
UNFITTED_STEP = Code(
    "unfitted-step", UserError, "step {step} is neither fitted nor read", "give --fit crossfit, or --fit FILE"
)
STEPS_DO_NOT_FIT = Code("steps-do-not-fit", UserError, "the steps do not fit together: {reason}", "steps are {steps}")
UNKNOWN_STEP = Code(
    "unknown-step",
    UserError,
    "unknown calibration step {step!r}",
    "choose from: {steps}; `swsdist calibrate` also has, alone or last: {last}",
)
NOTHING_TO_FIT = Code("nothing-to-fit", UserError, "--method none fits nothing", "leave --fit out")
STEP_NOT_APPLIED = Code(
    "step-not-applied",
    UserError,
    "options are given for {step}, which is not among the steps {steps}",
    "write STEP.OPTION=VALUE, with one of the steps",
)
NEEDS_SEARCH_SETTINGS = Code(
    "needs-search-settings",
    UserError,
    "step {step} needs {settings} of the search, which a list does not contain",
    "leave out the options that need it",
)
TOO_FEW_FOLDS = Code("too-few-folds", UserError, "{folds} folds are too few", "give two folds or more")
FIT_WITHOUT_REFERENCES = Code(
    "fit-without-references",
    UserError,
    "{model} is fitted on true occurrences, and no references are given (--fit {fit})",
    "give --ecf, --rttm and --terms (or --references), or a fitted file: --fit FILE",
)

# What is searched, and what it is scored against.
CONFLICTING_AUDIO = Code(
    "conflicting-audio", UserError, "the searched audio is given twice", "give --ecf or --seconds, not both"
)
UNKNOWN_AUDIO = Code(
    "unknown-audio",
    UserError,
    "{purpose} needs the amount of searched audio",
    "give the searched audio: --ecf or --seconds",
)
AMBIGUOUS_REFERENCES = Code(
    "ambiguous-references",
    UserError,
    "references need one source, not {sources}",
    "give one of: an RTTM, a CTM, or a table of references",
)
NO_TERM_LIST = Code("no-term-list", UserError, "no term list", "give the TLIST or KWLIST with the terms to look up")
UNSUPPORTED_TRIAL_UNIT = Code(
    "unsupported-trial-unit",
    UserError,
    "protocol {protocol} counts {unit}s as trials",
    "give documents=, their number, if trials are documents; segments need files (read_task)",
)
CONFLICTING_TRIAL_UNITS = Code(
    "conflicting-trial-units", UserError, "trials are either segments or documents", "leave one of them out"
)
OPTIONS_OF_KWSEVAL = Code(
    "options-of-kwseval",
    UserError,
    "only KWSEval has -inc and -j",
    "use protocol kwseval or openkws13, or leave them out",
)
DUPLICATE_TASK_ROWS = Code("duplicate-task-rows", TableError, "{count} duplicate row{s}", "drop them, or rename one")

# Notices: lists against references.
NO_REFERENCED_TERMS = Code(
    "no-referenced-terms",
    OddError,
    "{count} term{s}, none of them with references: no rate is defined",
    "check that terms, transcript and ECF belong together",
)
DUPLICATE_TERM_TEXTS = Code(
    "duplicate-term-texts", OddError, "{count} term{s} with the text of another term", "list each text once"
)
SPELLED_OTHERWISE = Code(
    "spelled-otherwise",
    OddError,
    "{count} terms do not occur in the transcript as they are written, but do in another spelling (ß, accents, punctuation)",
    "spell terms as the transcript does; what is found there counts as false alarms",
)
DUPLICATE_TERM_TEXTS_COUNTED = Code(
    "duplicate-term-texts-counted",
    OddError,
    "{count} term{s} with the text of another term; as in STDEval, its occurrences count for both",
    "list each text once",
)
UNSORTED_WORDS = Code(
    "unsorted-words",
    OddError,
    "{count} document{s} with words out of time order; {effect}",
    "sort the transcript by file, channel and begin",
)
UNLISTED_REFERENCES = Code(
    "unlisted-references",
    OddError,
    "{count} of {of} references are of queries that are not in {listing}, and do not count",
    "give {listing} that belongs to the references",
)
DUPLICATE_TRIAL = Code(
    "duplicate-trial", DataError, "{count} scores of one trial", "give one score per query and document"
)
UNLISTED_QUERY = Code(
    "unlisted-query", DataError, "the query is not in {listing}", "give the list that the system answers"
)
UNLISTED_QUERIES = Code(
    "unlisted-queries",
    OddError,
    "{count} of {of} queries or detections are not of {listing}, and do not count",
    "give the list that the system answers",
)
UNANSWERED_TERMS = Code(
    "unanswered-terms",
    OddError,
    "{count} term{s} missing from the system's list, counted as not found",
    "write every term into the list, with or without detections",
)
REFERENCES_OUTSIDE_ECF = Code(
    "references-outside-ecf", OddError, "{count} of {of} references lie outside of the ECF and are {effect}", _CHECK_ECF
)
DOCUMENTS_NOT_IN_ECF = Code(
    "documents-not-in-ecf",
    OddError,
    "{count} of {of} detections are in documents that the ECF lacks, and are {effect}",
    _CHECK_ECF,
)
DETECTIONS_OUTSIDE_ECF = Code(
    "detections-outside-ecf",
    OddError,
    "{count} of {of} detections lie outside of the ECF's excerpts, and are {effect}",
    _CHECK_ECF,
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
ALL_REFERENCES_MISSED = Code(
    "all-references-missed",
    OddError,
    "{count} true occurrence{s} in the references, and none was found",
    "check names, channels and times of both, unless the system is as bad as that",
)
ALL_CORRECT = Code(
    "all-correct",
    OddError,
    "{count} detection{s}, all of them correct, and no true occurrence missed",
    "check whether the list was made from the references",
)
TERMS_IN_EVERY_DOCUMENT = Code(
    "terms-in-every-document",
    OddError,
    "{count} term{s} in every document, without a false-alarm rate, left out",
    "leave them out of the evaluation",
)
UNSCORED_SOURCE_TYPES = Code(
    "unscored-source-types", OddError, "{count} source type{s} not scored on its own", "check the ECF"
)

# Lists and their files.
UNNAMED_SYSTEM = Code(
    "unnamed-system", UserError, "the system has no name", "name it: one={path}; or give the path alone"
)
RTTM_AS_LIST = Code(
    "rttm-as-list",
    UserError,
    "this is an RTTM, not a system's list",
    "give it as --rttm; a list is a STDLIST, a KWSLIST, a table or Kaldi's results",
)
RUN_FOLDER_AS_LIST = Code(
    "run-folder-as-list", UserError, "this is a run folder, not a list", "{export}name its list: {path}"
)
UNKNOWN_LIST_ENDING = Code(
    "unknown-list-ending",
    UserError,
    "no list format has the ending {ending!r}",
    "end it in {endings}, or give --format",
)

# Kaldi's results.
WRONG_FIELD_COUNT = Code(
    "wrong-field-count",
    DataError,
    "{fields} fields instead of 5",
    "give five: keyword utterance first-frame end-frame cost",
)
END_FRAME_BEFORE_FIRST = Code(
    "end-frame-before-first",
    DataError,
    "end frame {last} is before first frame {first}",
    "give the lower of the two first",
)
SCORE_NOT_POSTERIOR = Code(
    "score-not-posterior",
    DataError,
    "query {query!r} has the score {score}",
    "Kaldi's scores are posteriors, from 0 to 1; calibrate the list first",
)
IMPOSSIBLE_TIMES = Code(
    "impossible-times", DataError, "a detection from {start} to {end} s is impossible", "give 0 <= start <= end"
)
BLANK_IN_NAME = Code("blank-in-name", DataError, "Kaldi's results cannot contain the name {name!r}", "rename it")
INVALID_KALDI_SHIFT = Code(
    "invalid-kaldi-shift",
    UserError,
    "the frame shift is {frame_shift} s",
    "give seconds above 0; Kaldi's is 0.01",
)

# Comparisons.
NO_SUCH_RESULT = Code("no-such-result", UserError, "no such run folder, list or table", "look at its spelling")
LIST_WITHOUT_TASK = Code(
    "list-without-task",
    UserError,
    "this is a system's list, without references to score it against",
    "give {needed}; or a per-term table of it (swsdist score --per-term)",
)
DIFFERENT_SCORING = Code(
    "different-scoring", UserError, "the systems were scored with different {setting}: {values}", _SAME_SCORING
)
NO_COMMON_VALUES = Code(
    "no-common-values",
    UserError,
    "there are no values that all systems have",
    "decide its detections (swsdist calibrate), or give all systems as lists or run folders",
)
DIFFERENT_CNXE_SETTINGS = Code(
    "different-cnxe-settings",
    UserError,
    "the systems were scored for different numbers of queries, or at different priors of Cnxe",
    _SAME_SCORING,
)
INCOMPLETE_CONDITIONS = Code(
    "incomplete-conditions",
    UserError,
    "{systems} systems cannot each have {conditions} conditions",
    "name each system under the first condition, then the second, ...: A1 B1 A2 B2 for two",
)
UNDECIDED_SYSTEMS = Code(
    "undecided-systems", UserError, "not all systems have decisions", "decide them (swsdist calibrate)"
)
NOT_TIME_TRIALS = Code(
    "not-time-trials",
    UserError,
    "documents can be {operation} only where trials are seconds of audio",
    "leave {option} out, or use a protocol with time trials",
)
BINS_OF_DOCUMENTS = Code(
    "bins-of-documents",
    UserError,
    "documents cannot be put in bins by {column}",
    "write the bins into its column {column}",
)
PER_TERM_TABLE_ONLY = Code(
    "per-term-table-only",
    UserError,
    "a per-term table does not have what {purpose} needs",
    "name a run folder, or a system list with --ecf, --rttm and --terms",
)
UNKNOWN_WORDS = Code(
    "unknown-words",
    UserError,
    "the words of the queries are unknown",
    "give the term list, or a table of queries with a column term",
)
UNKNOWN_PROPERTY = Code(
    "unknown-property",
    UserError,
    "no property {column!r} of queries or documents{meant}",
    "name one of {properties}, an attribute of the term list, or a column of a table: {tables}",
)
NEGATIVE_SECONDS = Code(
    "negative-seconds", TableError, "seconds are negative", "give the searched seconds of each document"
)
UNKNOWN_SEARCHED_SECONDS = Code(
    "unknown-searched-seconds",
    UserError,
    "the searched seconds of each document are unknown",
    "give an ECF, or --documents with the columns doc_id and seconds",
)
CONFLICTING_VALUES = Code(
    "conflicting-values",
    TableError,
    "{key} {name!r} has several values of {column}: {value!r}, ...",
    "keep one, or give numbers",
)
