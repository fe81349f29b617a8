"""Codes of evaluating, calibrating and comparing lists from any system."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError, OddError, TableError, UserError

_SAME_SCORING = "re-score both with the same references, audio and protocol"
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
