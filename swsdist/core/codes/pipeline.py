"""Codes of chains, runs and their locks, executors, forecasts and accounts."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import (
    CancelledError,
    IncompleteError,
    LockedError,
    OddError,
    StorageError,
    StoreError,
    UserError,
)

# -- chains -----------------------------------------------------------------------------------------------------------

NO_SUCH_TABLE = families.UNKNOWN_NAME.saying(
    "no step of the chain {chain} makes {table}", "use `swsdist run CONFIG`, with --until STEP to end earlier"
)

# -- runs -------------------------------------------------------------------------------------------------------------

NEEDS_RUN = Code(
    "needs-run",
    UserError,
    "a search without a run cannot execute the step {step} of the chain: it lacks {lacking}",
    "run the config with these queries: `swsdist run CONFIG`",
)
FOREIGN_FOLDER = Code(
    "foreign-folder",
    UserError,
    "this folder holds files that are not of a swsdist run: {names}",
    "name an empty or new folder, or that of a run: `run` in the file, or --run FOLDER; nothing was written",
)
NOT_A_RUN = Code("not-a-run", StoreError, "this is not a run folder: it has no plan.json", "name the folder of a run")
CONSECUTIVE_FAILURES = Code(
    "consecutive-failures", StorageError, "{count} tasks failed one after the other: {detail}", "{advice}"
)
STORAGE_FAILURES = Code(
    "storage-failures", StorageError, "{count} of {tasks} tasks of {stage} failed: {detail}", "{advice}"
)

# -- locks and operation ----------------------------------------------------------------------------------------------

FOLDER_IN_USE = Code(
    "folder-in-use",
    LockedError,
    "process {pid} on {host} is working here",
    "wait for it, or stop it (`swsdist cancel`); a dead process loses its lock {seconds:.0f} s after its last heartbeat",
)
LOCK_CONFLICT = Code(
    "lock-conflict", LockedError, "another process locked this folder at the same moment", "run again later"
)
LOCK_LOST = Code(
    "lock-lost",
    LockedError,
    "the lock was lost: another process took it over or removed it",
    "run again when no other process works here; computed results are kept",
)
STILL_RUNNING = Code(
    "still-running",
    IncompleteError,
    "process {pid} on {host} was asked to stop, and is still running",
    "wait: it stops after its present task at the latest; see `swsdist status`",
)
RUN_CANCELLED = Code(
    "run-cancelled",
    CancelledError,
    "cancelled from {host}",
    "run the same command again to go on; computed results are kept",
)
NEITHER_RUN_NOR_STORE = families.WRONG_KIND.of(StoreError).saying(
    "this is neither a run folder nor a store", "name a folder that has a plan or a manifest"
)

# -- executors --------------------------------------------------------------------------------------------------------

UNUSABLE_WORKERS = families.NO_WORKER.saying(
    "no worker can be used: {reason}", "install the same versions on all nodes, or add what the others lack"
)
WORKERS_CANNOT_START = families.NO_WORKER.saying(
    "no worker can start: {detail}", "check that swsdist is installed on the nodes, for the same Python"
)
NO_NODE_LEFT = families.NO_WORKER.saying(
    "no node is left on which a worker fits", "start nodes, and run again: computed results are kept"
)

NO_DASK_CLUSTER = families.NO_CLUSTER.saying(
    "no Dask scheduler answers ({detail})",
    "start it (`dask scheduler`), correct the address, or leave it out for a private local one; computed results are kept",
)

# -- forecasts and accounts -------------------------------------------------------------------------------------------


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
NARROW_BAND = families.OTHER_BAND.saying("{count} documents with a narrower band than others", BANDS)
DIFFERENT_BAND = families.OTHER_BAND.saying("{count} query examples with another band than most documents", BANDS)
MANY_REJECTED = Code(
    "many-rejected",
    OddError,
    "{count} of {of} {inputs} rejected",
    "correct or remove them; `swsdist store rejected {run!q}` lists all",
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
