"""Codes of the chain fuse: its systems, its options, and notices of its report."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, OddError, StoreError, UserError

NO_SYSTEMS = Code("no-systems", ConfigError, "no systems to fuse", "name some: {{name, run}} or {{name, config}} each")
DUPLICATE_SYSTEM = Code("duplicate-system", ConfigError, "{count} systems are named {system}", "give each another name")
CANDIDATES_OF_A_FUSION = Code(
    "candidates-of-a-fusion",
    ConfigError,
    "a step asks for {statistics}, and a fusion has no candidates of its own",
    "leave the covariates mean and deviation out; those of examples and of the list are known",
)
MAJORITY_TOO_LARGE = Code(
    "majority-too-large",
    ConfigError,
    "found_by asks for {found_by} systems, and there are {systems}",
    "give at most {systems}, or more systems",
)
RUN_OR_CONFIG = Code(
    "run-or-config", ConfigError, "system {system} needs either a run or a config", "give run or config"
)
SET_WITHOUT_CONFIG = Code(
    "set-without-config", ConfigError, "`set` of system {system} has no config to change", "give config instead of run"
)
NOT_A_SEARCH_RUN = Code(
    "not-a-search-run",
    ConfigError,
    "system {system} is a run of the chain {chain}, which has no search of its own",
    "name runs of the chain search",
)
UNFINISHED_SYSTEM = Code(
    "unfinished-system", StoreError, "the run of system {system} is not finished", "run it to its end first"
)
UNFUSIBLE_CHAIN = Code(
    "unfusible-chain",
    ConfigError,
    "the config of system {system} has the chain {chain}; a fusion takes runs of the chain {fusible}",
    "name configs of the chain {fusible}",
)
CHANGED_SYSTEM_CONFIG = Code(
    "changed-system-config",
    ConfigError,
    "the run of system {system} differs from its config in {keys}",
    "run the fusion again without --only; in a sweep give systems with different configs different names",
)
OWN_PLACES_DIFFER = Code(
    "own-places-differ",
    ConfigError,
    "either system {system} or the fusion leaves out queries' own places, but not both",
    "give all the same corpus.own_places and the same kind of trials",
)
UNSHARED_INPUTS = Code(
    "unshared-inputs",
    OddError,
    "{count} of {of} {inputs} are only in the corpus or only in system {system}",
    "run the systems on one corpus: inputs that a system did not search count as not found by it",
)
FINAL_SCORES_FITTED = Code(
    "final-scores-fitted",
    ConfigError,
    "the final scores of {system} were fitted on the references of its run ({steps}, {fit}); the fusion would be fitted on "
    "the same references",
    "set options.scores: normalised, or fit that system on other data (calibrate.fit: FILE)",
)
FINAL_SCORES_RESCORED = Code(
    "final-scores-rescored",
    ConfigError,
    "rescored places have normalised scores, not final ones",
    "set options.scores: normalised, or missing: average",
)
_NO_RESCORING = "set options.missing: average, or least"
RESCORED_SEGMENTS = Code(
    "rescored-segments",
    ConfigError,
    "{system} cannot rescore: its documents are segments of recordings, and detections name recordings",
    _NO_RESCORING,
)
RESCORED_MEANS = Code(
    "rescored-means",
    ConfigError,
    "{system} cannot rescore: its scores are means over examples, and a rescored place has one example's score",
    _NO_RESCORING,
)
RESCORED_PARTS = Code(
    "rescored-parts",
    ConfigError,
    "{system} cannot rescore: it searches parts of queries, and a rescored place has a whole query's score",
    _NO_RESCORING,
)
RESCORED_ACROSS_CORPORA = Code(
    "rescored-across-corpora",
    ConfigError,
    "{system} cannot rescore: its queries are normalised by other means and variances than the store's",
    _NO_RESCORING,
)
RESCORED_WITH_COHORT = Code(
    "rescored-with-cohort",
    ConfigError,
    "{system} cannot rescore: a step of {steps} needs a cohort, the operating point or references",
    _NO_RESCORING,
)
UNFITTED_FUSION = Code(
    "unfitted-fusion", OddError, "nothing was fitted: the fused score is the unweighted mean of the systems' scores"
)
DEPENDENT_QUERIES = Code(
    "dependent-queries",
    OddError,
    "of overlapping detections of different queries only the one with the highest fused score is kept "
    "(options.between_queries), so decisions about a query depend on the other queries",
)


_SAME_SYSTEMS = "fuse the lists of the same systems, under the same names"

NO_LISTS = Code("no-lists", UserError, "no lists to join", "name at least one system")
INCONSISTENT_SYSTEMS = Code(
    "inconsistent-systems",
    UserError,
    "the rows of a joined list name different systems",
    "join them again, all with one config",
)
DISJOINT_SYSTEMS = Code(
    "disjoint-systems",
    OddError,
    "{count} pair{s} of systems without a common detection: the scores of one are imputed for the other",
    "check that both have the same queries, document names and times",
)
MIXED_SYSTEMS = Code(
    "mixed-systems", UserError, "lists of {first} and of {second} cannot be fused together", _SAME_SYSTEMS
)
MISSING_SCORE = Code(
    "missing-score", UserError, "system {system} has no score in a joined detection", "impute missing scores first"
)
FUSION_OF_OTHER_SYSTEMS = Code(
    "fusion-of-other-systems",
    UserError,
    "the fusion was fitted for {fitted}, and these lists are of {systems}",
    _SAME_SYSTEMS,
)
INVALID_OVERLAP = Code("invalid-overlap", UserError, "the overlap is {overlap:g}", "give 0 or more, and less than 1")
NO_DETECTIONS = Code("no-detections", UserError, "the lists have no detections", "give lists with detections")
NO_COMMON_QUERIES = Code(
    "no-common-queries",
    UserError,
    "no two lists have a query in common",
    "name lists of one task; none of these has detections of queries that the task or another list has",
)
EMPTY_LISTS = Code(
    "empty-lists",
    OddError,
    "{count} list{s} without detections",
    "leave them out, or give the intended lists",
)
IDENTICAL_LISTS = Code("identical-lists", OddError, "{count} pair{s} of identical lists", "name each system once")
UNDECIDING_STEPS = Code(
    "undeciding-steps",
    UserError,
    "step {step} has no threshold, so no detection would be decided",
    "give --threshold fitted, or end with a step that has a threshold (fusion, at-prior)",
)
OPTION_WITHOUT_FUSION = Code(
    "option-without-fusion",
    UserError,
    "{option} belongs to the step fusion, which is not among the steps",
    "leave it out, or begin with fusion",
)
