"""Codes of sweeps: the file, its points, their plans."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError

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
