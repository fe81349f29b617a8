"""Codes of calibration: steps, fits, thresholds."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, OddError, UserError

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
RANKS_OF_A_SAMPLE = Code(
    "ranks-of-a-sample",
    ConfigError,
    "{step} ranks among all candidates, and a first pass has only those of a sample: the best would tie",
    "use another step, or set search.first_pass.name: none",
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
