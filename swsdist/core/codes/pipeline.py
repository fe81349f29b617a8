"""Codes of chains, runs and their locks, executors, forecasts and accounts."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import (
    CancelledError,
    ConfigError,
    IncompleteError,
    LockedError,
    OddError,
    StorageError,
    StoreError,
    UserError,
)

# -- chains -----------------------------------------------------------------------------------------------------------

DUPLICATE_STEP = Code(
    "duplicate-step", UserError, "the chain {chain} has two steps {step!r}", "give each step its own name"
)
UNKNOWN_SOURCE = Code(
    "unknown-source",
    UserError,
    "step {step} of the chain {chain} reads {source}, which no earlier step makes",
    "name a source `step:table` of an earlier step",
)
DUPLICATE_STAGE = Code(
    "duplicate-stage",
    UserError,
    "steps {first} and {second} of the chain {chain} use different stages of one name, {stage!r}",
    "rename one of the stages: tasks find their stage by its name",
)
DUPLICATE_DIGEST = Code(
    "duplicate-digest",
    UserError,
    "two tables of the chain {chain} are digested under one name: {names}",
    "give one of the steps other `labels`, or declare its table with digested=False",
)
MISSING_TABLE = Code(
    "missing-table",
    UserError,
    "step {step} of the chain {chain} takes {table}, which no earlier step makes",
    "name its source: Step({step!r}, ..., {{{input_name!r}: 'step:{table}'}})",
)
AMBIGUOUS_TABLE = Code(
    "ambiguous-table",
    UserError,
    "step {step} of the chain {chain} takes {table}, which several steps make: {makers}",
    "name its source: Step({step!r}, ..., {{{input_name!r}: 'step:{table}'}})",
)
NO_SUCH_TABLE = Code(
    "no-such-table",
    UserError,
    "no step of the chain {chain} makes {table}",
    "use `swsdist run CONFIG`, with --until STEP to end earlier",
)
NO_SUCH_STAGE = Code("no-such-stage", UserError, "the chain has no stage {stage!r}", "name one of the stages: {stages}")
MISSING_CHAIN_INPUTS = Code(
    "missing-chain-inputs",
    UserError,
    "the stage {stage} needs {kind}, which this chain does not have",
    "use the stage in a chain that has it",
)

# -- runs -------------------------------------------------------------------------------------------------------------

DIFFERENT_RUN_FOLDERS = Code(
    "different-run-folders", UserError, "plans of one ledger have different run folders", "give all the same `run`"
)
DIFFERENT_EXECUTORS = Code(
    "different-executors",
    UserError,
    "plans of one ledger have different executors",
    "give all the same section `executor`",
)
PREREQUISITE_FAILED = Code(
    "prerequisite-failed",
    IncompleteError,
    "{count} task{s} of the prerequisite run {name} failed: {failure}",
    "run again: computed results are kept",
)
EARLIER_STAGE_OPEN = Code(
    "earlier-stage-open",
    UserError,
    "stage {stage} is not done: {left} of {tasks} tasks are left",
    "leave --only out, or run that stage first",
)
EARLIER_STAGE_UNCOMMITTED = Code(
    "earlier-stage-uncommitted",
    UserError,
    "stage {stage} is not done: it has no task left, but its results are not committed",
    "leave --only out, or run that stage first",
)
INCOMPLETE_STAGE = Code(
    "incomplete-stage",
    StoreError,
    "stage {stage} is not done: {left} of {tasks} tasks are left",
    "finish the run; only a finished run has a digest",
)
INCOMPLETE_SOURCE = Code(
    "incomplete-source", StoreError, "step {step} of the source run is not done", "finish that run, then run this one"
)
NO_SUCH_SOURCE = Code(
    "no-such-source",
    StoreError,
    "the source run has no table {table} in a plan {plan!r}",
    "name one of its plans ({plans}) and one of their tables ({tables})",
)
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
STORE_AS_RUN = Code(
    "store-as-run",
    UserError,
    "this is a feature store, not the folder of a run",
    "name an empty or new folder, or that of a run: `run` in the file, or --run FOLDER; nothing was written",
)
NOT_A_RUN = Code("not-a-run", StoreError, "this is not a run folder: it has no plan.json", "name the folder of a run")
DAMAGED_PLAN = Code(
    "damaged-plan",
    StoreError,
    "plan.json is damaged ({detail})",
    "run the config again: the plan is written anew, and computed results are kept",
)
OTHER_PLAN_VERSION = Code(
    "other-plan-version",
    StoreError,
    "plan.json was written by another version of swsdist",
    "run the config again",
)
NO_SUCH_PLAN = Code("no-such-plan", StoreError, "the run has no plan {plan!r}", "name one of its plans: {plans}")
MISSING_EXTENSION = Code(
    "missing-extension",
    StoreError,
    "the run's {kind} {name!r} is not installed here",
    "install its package (an entry point of {group}), or call it from Python after {registry}.add",
)
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
NO_RUNNING_PROCESS = Code(
    "no-running-process",
    UserError,
    "no process works here",
    "see `swsdist status` for the state of the run; there is nothing to cancel",
)
DEAD_PROCESS = Code(
    "dead-process",
    UserError,
    "process {pid} on {host} is dead",
    "see `swsdist status` for the state of the run; there is nothing to cancel",
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
NEITHER_RUN_NOR_STORE = Code(
    "neither-run-nor-store",
    StoreError,
    "this is neither a run folder nor a store",
    "name a folder that has a plan or a manifest",
)

# -- executors --------------------------------------------------------------------------------------------------------

NO_FITTING_NODE = Code(
    "no-fitting-node",
    UserError,
    "no worker fits: it needs {needs}, the largest node has {node}",
    "lower executor.cpus_per_worker or executor.memory_per_worker_gb, {gpu}or add nodes (of Dask: "
    "workers with a GPU say `--resources GPU=1`)",
)
UNSCHEDULABLE_WORKER = Code(
    "unschedulable-worker",
    UserError,
    "Ray cannot place a worker: {detail}",
    "lower the resources of a worker, or add nodes",
)
UNUSABLE_WORKERS = Code(
    "unusable-workers",
    UserError,
    "no worker can be used: {reason}",
    "install the same versions on all nodes, or add what the others lack",
)
WORKERS_CANNOT_START = Code(
    "workers-cannot-start",
    UserError,
    "no worker can start: {detail}",
    "check that swsdist is installed on the nodes, for the same Python",
)
WORKER_START_TIMEOUT = Code(
    "worker-start-timeout",
    UserError,
    "no worker started within {seconds:.0f} s",
    "see `ray status`: the cluster may be full",
)
NO_NODE_LEFT = Code(
    "no-node-left",
    UserError,
    "no node is left on which a worker fits",
    "start nodes, and run again: computed results are kept",
)
RAY_HEAD_LOST = Code(
    "ray-head-lost",
    UserError,
    "the head of the Ray cluster is gone ({detail})",
    "restart it, and run again: computed results are kept",
)
RAY_NOT_STARTED = Code(
    "ray-not-started",
    UserError,
    "Ray does not start on this machine ({detail})",
    "run without it: --set executor.kind=serial; or try again when the machine is less busy",
)
NO_RAY_CLUSTER = Code(
    "no-ray-cluster",
    UserError,
    "no Ray cluster answers ({detail})",
    "start it (`ray start --head`), correct the address, or leave it out for a private local one",
)
OTHER_RAY_CONNECTION = Code(
    "other-ray-connection",
    UserError,
    "{requested} is requested, but this process is connected to the Ray at {address}",
    "call ray.shutdown() first, start another process (`swsdist run`), or leave the address out (RAY_ADDRESS too) to use "
    "the present connection",
)

NO_DASK_CLUSTER = Code(
    "no-dask-cluster",
    UserError,
    "no Dask scheduler answers ({detail})",
    "start it (`dask scheduler`), correct the address, or leave it out for a private local one; computed results are kept",
)

# -- forecasts and accounts -------------------------------------------------------------------------------------------

WORKER_TOO_LARGE = Code(
    "worker-too-large",
    UserError,
    "no worker fits a node: it needs {cpus} CPUs and {memory_gb:g} GB",
    "give the nodes more, or lower executor.cpus_per_worker or executor.memory_per_worker_gb",
)
UNKNOWN_CLUSTER_KEY = Code(
    "unknown-cluster-key", UserError, "{key} is not a key of a cluster", "see swsdist help benchmark-a-cluster"
)
INVALID_CLUSTER_VALUE = Code(
    "invalid-cluster-value", UserError, "{key} is not valid: {detail}", "see swsdist help benchmark-a-cluster"
)
UNKNOWN_HOURS = Code(
    "unknown-hours",
    UserError,
    "the hours of the documents are not known: index was not finished, or the chain has no documents",
    "finish the run (swsdist run CONFIG), or forecast from a run that did",
)
INVALID_FORECAST_SIZE = Code(
    "invalid-forecast-size", UserError, "hours and queries must be above 0", "give other numbers"
)
RUN_WITHOUT_QUERIES = Code(
    "run-without-queries", UserError, "the run had no queries", "forecast from a run that searched"
)
INVALID_PL_WEIGHT = Code(
    "invalid-pl-weight", UserError, "the weight lambda of PL is {weight}", "give a number between 0 and 1"
)
INVALID_COST = Code("invalid-cost", UserError, "the {quantity} is {value}", "give a finite number that is not negative")


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
