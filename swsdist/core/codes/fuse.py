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


_HOW_TO = "swsdist help sweep shows a sweep's file"

CONFIG_OR_LISTS = Code(
    "config-or-lists",
    ConfigError,
    "a sweep needs either config or lists",
    f"give config or lists, or a config in each point; {_HOW_TO}",
)
TWO_CONFIGS = Code(
    "two-configs",
    ConfigError,
    "the point has a config, and so has the sweep: {config}",
    "leave out one of them",
)
NOT_A_CONFIG = Code("not-a-config", ConfigError, "{value} is not a config", "give a path, or the keys of a config")
UNKNOWN_SWEEP_KEY = Code("unknown-sweep-key", ConfigError, "unknown key {key}{meant}", "keys are {known}")
SWEEP_OPTIONS = Code(
    "sweep-options",
    ConfigError,
    "the chain sweep has no options {options}",
    "leave chain: sweep to `swsdist sweep`, which writes its options",
)
SWEPT_CHAIN = Code("swept-chain", ConfigError, "points of a sweep cannot have the chain {chain}", "leave chain out")
LISTS_WITHOUT_CONFIG = Code(
    "lists-without-config",
    ConfigError,
    "a sweep over lists has no config, so --corpus and --set have no effect",
    "write what is the same for all points below set, in the file",
)
NO_RESULT_FOLDER = Code("no-result-folder", ConfigError, "no folder to write to", "give run, or --run FOLDER")

UNUSABLE_STORE_OF_POINT = Code(
    "unusable-store-of-point", ConfigError, "the store of a point cannot be used: {detail}", "{fix}"
)
UNRANKED_OBJECTIVE = Code(
    "unranked-objective",
    ConfigError,
    "neither the highest nor the lowest {measure} is best",
    "name a measure of quality, or set best: objective: {{measure: ..., best: highest}}",
)
UNMEASURED_OBJECTIVE = Code(
    "unmeasured-objective",
    ConfigError,
    "the objective {measure} is not among the measures",
    "add it to measures, or name another: {measures}",
)
UNUSED_REPORT_ALPHA = Code(
    "unused-report-alpha",
    ConfigError,
    "report_alpha has no effect without report: kst",
    "set report: kst, or leave report_alpha out",
)
UNUSED_SETTING = Code(
    "unused-setting",
    ConfigError,
    "{key} is set for all points and has no effect: every point sets {point_key} itself, the first in {first}",
    "leave it out here, or leave {point_key} out of the points",
)
FIXED_KEY = Code(
    "fixed-key",
    ConfigError,
    "{key} cannot differ between points, which share a run folder and its executor",
    "set it for all: by the key set, in the config, or by --set",
)
LIST_MEASURE = Code(
    "list-measure", ConfigError, "a sweep over lists has the measures {known}, not {measure}", "set measures: [{known}]"
)
LIST_KEY = Code(
    "list-key",
    ConfigError,
    "lists do not depend on {key}{meant}",
    "use keys of lists: {known}; other keys belong to a config",
)
LIST_STEPS = Code(
    "list-steps",
    ConfigError,
    "there is no calibrate.steps",
    "give steps, such as [kst], in points or in set; steps are {known}",
)
NOT_POSITIVE = Code("not-positive", ConfigError, "{key} is {value}", "give a number above 0")
DUPLICATE_POINTS = Code(
    "duplicate-points", ConfigError, "points {first} and {second} are the same: {keys}", "leave one of them out"
)
ORACLE_WITHOUT_KST = Code(
    "oracle-without-kst",
    ConfigError,
    "oracle_kst needs points that end in kst or sto and measure only ATWV",
    "set measures: [{measures}], or leave oracle_kst out",
)
REPORT_WITHOUT_KST = Code(
    "report-without-kst",
    ConfigError,
    "report: kst needs points that end in kst or sto and measure only ATWV",
    "see configs/sweeps/kst_alpha.yaml",
)
SHARED_STORE_FEATURES = Code(
    "shared-store-features",
    ConfigError,
    "points with different features cannot share a store",
    "leave index.store out: each kind of features then has a store in the run folder",
)

NO_POINTS = Code("no-points", ConfigError, "no points", "give grid, list or random")
EMPTY_GRID = Code("empty-grid", ConfigError, "the grid is empty", "name at least one key with its values")
EMPTY_LIST = Code("empty-list", ConfigError, "the list is empty", "name at least one point, {{key: value}}")
EMPTY_DRAW = Code("empty-draw", ConfigError, "no keys to draw", "name at least one key with its distribution")
LARGE_GRID = Code(
    "large-grid",
    ConfigError,
    "the grid has {count} points, more than {limit}",
    "take coarser steps, or draw points at random (points.random)",
)
NOT_A_POINT = Code("not-a-point", ConfigError, "{value} is not a point", "write it as {{key: value, ...}}")
NOT_GRID_VALUES = Code(
    "not-grid-values",
    ConfigError,
    "{value} is neither a list nor a range of values",
    "give a list, {{from: 1, to: 3, step: 0.1}}, {{from: 1, to: 9, count: 3}}, or {{subsets: [a, b]}}",
)
NO_GRID_VALUES = Code("no-grid-values", ConfigError, "this key has no values", "give at least one value")
SUBSETS_OF_LIST = Code("subsets-of-list", ConfigError, "subsets needs a list", "write {{subsets: [a, b, c]}}")
SUBSET_SIZES = Code(
    "subset-sizes",
    ConfigError,
    "{members} members have no subsets of {least} to {most} members",
    "give least and most between 0 and the number of members",
)
MANY_SUBSETS = Code(
    "many-subsets",
    ConfigError,
    "{count} subsets, more than {limit}",
    "name fewer members, or set least and most closer together",
)
RANGE_WITHOUT_END = Code("range-without-end", ConfigError, "a range needs `to`", "give to")
RANGE_SCALE = Code("range-scale", ConfigError, "scale is {value}", "set scale to linear or log")
STEP_OR_COUNT = Code("step-or-count", ConfigError, "a range needs either step or count", "give step, or count")
EMPTY_RANGE = Code(
    "empty-range",
    ConfigError,
    "no values from {first:g} to {last:g} by {step:g}",
    "give from below to, and a step above 0; scale: log goes with count",
)
RANGE_COUNT = Code("range-count", ConfigError, "count is {value}", "give the number of values, 1 or more")
LOG_OF_ZERO = Code("log-of-zero", ConfigError, "scale: log needs numbers above 0", "give from and to above 0")
NOT_A_DISTRIBUTION = Code(
    "not-a-distribution",
    ConfigError,
    "{value} is not a distribution",
    "give {{uniform: [LOW, HIGH]}}, {{log-uniform: [LOW, HIGH]}}, {{integer: [LOW, HIGH]}} or {{choice: [...]}}",
)
UNKNOWN_DISTRIBUTION = Code(
    "unknown-distribution", ConfigError, "unknown distribution {name!r}{meant}", "distributions are {known}"
)
DISTRIBUTION_BOUNDS = Code(
    "distribution-bounds", ConfigError, "the bounds of {name} are {value}", "write {{{name}: [LOW, HIGH]}}"
)
EMPTY_DISTRIBUTION = Code(
    "empty-distribution", ConfigError, "{name} from {low:g} to {high:g} has no values", "give the lower bound first"
)
NOT_ABOVE_ZERO = Code(
    "not-above-zero",
    ConfigError,
    "{name} from {low:g} to {high:g} has no values",
    "give the lower bound first, above 0",
)
FRACTIONAL_BOUNDS = Code(
    "fractional-bounds", ConfigError, "the bounds of integer are {value}", "give whole numbers, or take uniform"
)
NOT_FINITE_BOUND = Code("not-finite-bound", ConfigError, "{name} is {value}, not a finite number", "give a number")
