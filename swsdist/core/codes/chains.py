"""Codes of the search chain: its config, its checks, reduction of candidates, and notices of its report."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, OddError, UserError

UNUSED_COHORT = Code(
    "unused-cohort",
    ConfigError,
    "no step of {steps} normalises by a cohort",
    "leave corpus.cohort out, or add {cohort_steps} to calibrate.steps",
)
COHORT_OF_FRAMES = Code(
    "cohort-of-frames",
    ConfigError,
    "a cohort is searched by its frames, and the method {method} by labels",
    "leave corpus.cohort out: zt-norm then normalises by the other queries",
)
OWN_PLACES_WITHOUT_TIMES = Code(
    "own-places-without-times",
    ConfigError,
    "queries' own places can be left out only where trials are seconds of audio",
    "leave corpus.own_places out, or remove the recordings that queries were cut from from the documents",
)
SEGMENT_OUTSIDE_RECORDING = Code(
    "segment-outside-recording",
    OddError,
    "{count} document{s} outside the recording; a run rejects them",
    "correct their times, or remove them",
)
UNCHOSEN_CHANNEL = Code(
    "unchosen-channel",
    OddError,
    "{count} recording{s} of Kaldi's list with several channels: only the first channel is read",
    "to search the other channels, list each as a recording of its own",
)
MORE_THAN_TRIALS = Code(
    "more-than-trials",
    OddError,
    "a query may have {listed} detections, and has {trials} trials: more false alarms than non-target trials are as many "
    "non-target trials",
    "keep fewer (`reduce.nbest`; of a system of a fusion in its `set`), or count more trials per second "
    "(`score.trials_per_second`)",
)
UNSCORED_RUN = Code(
    "unscored-run", UserError, "this run was not scored", "give references (corpus.references) and run it again"
)
MEANS_AS_POSTERIORS = Code(
    "means-as-posteriors",
    ConfigError,
    "means over examples are not posteriors and cannot be summed",
    "set reduce.merge: best, and calibrate.steps: [q-norm, ...]; or search.examples: best",
)

MISSING_SPEAKERS = Code(
    "missing-speakers",
    OddError,
    "{count} document{s} without a speaker: {step} takes groups of similar voices instead",
    "give a column speaker, or corpus.speakers",
)
UNSEARCHED_EXAMPLES = Code(
    "unsearched-examples",
    OddError,
    "{count} query examples have fewer frames than search.least_query_frames, {least}: they are not searched",
    "give longer examples, or lower search.least_query_frames",
)
UNDECIDED_QUERIES = Code(
    "undecided-queries",
    OddError,
    "{count} queries without a threshold: all their detections are NO, since no query of the other folds has both references "
    "and detections",
    "give references of more queries, or fit by oracle or a file of other data (calibrate.fit)",
)
#: Remedy for recordings of different bands.
BANDS = (
    "set the option fmax of the features to a frequency that all reach (3700 for telephone speech), and index again; "
    "`fmax: common` does so only if more than 5 % of the documents, queries aside, are telephone speech"
)
NARROW_BAND = Code("narrow-band", OddError, "{count} documents with a narrower band than others", BANDS)
DIFFERENT_BAND = Code("different-band", OddError, "{count} query examples with another band than most documents", BANDS)
MANY_REJECTED = Code(
    "many-rejected",
    OddError,
    "{count} of {of} {inputs} rejected",
    "correct or remove them; `swsdist store rejected {run!q}` lists all",
)
ALL_MISSED = Code(
    "all-missed",
    OddError,
    "{count} of {count} true occurrences missed",
    "compare names, channels and times of references and documents",
)
ALL_FOUND = Code(
    "all-found",
    OddError,
    "{count} of {count} true occurrences found, and no false alarm",
    "check that the queries are not cut from the documents",
)
UNSCORED_QUERIES = Code("unscored-queries", OddError, "{count} queries occur in every document and are not scored")
UNCOUNTED_LABEL_COST = Code(
    "uncounted-label-cost",
    OddError,
    "{count} file{s} of labels that features were fitted on: the cost of making them is not in ISF",
)
OTHER_LIBRARY = Code(
    "other-library",
    OddError,
    "{library} {stored} made features of this store, and {installed} is installed here: the last bits of "
    "features may differ",
    "index again for the same digests everywhere",
)
SOUNDLESS_DOCUMENTS = Code(
    "soundless-documents", OddError, "{count} of {of} documents without a recording: their hits have no sound"
)
GONE_RECORDINGS = Code(
    "gone-recordings",
    OddError,
    "{count} recording{s} gone or changed whose means and variances normalise features",
    "`swsdist store refit {store!q}` estimates new ones",
)
OUTGROWN_MODELS = Code(
    "outgrown-models",
    OddError,
    "{documents} documents, and models or statistics of the first {first}",
    "{refit}",
)

ABSENT_TERMS = Code(
    "absent-terms",
    OddError,
    "{count} term{s} not in the documents: none holds a word of each alternative",
    "look at their spelling, and that of the documents (options.recipe.spelling)",
)
METHOD_TAKES_OTHER_QUERIES = Code(
    "method-takes-other-queries",
    ConfigError,
    "the method {method} takes {takes} queries, and the chain search spoken ones",
    "name the chain that belongs to the method (key chain)",
)

NOT_A_LATTICE_METHOD = Code(
    "not-a-lattice-method",
    ConfigError,
    "the method {method} does not search lattices of the source {source}",
    "set search.method to one of: {methods}",
)
