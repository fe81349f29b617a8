"""Codes of the chain fuse: its systems, its options, and notices of its report."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import ConfigError, OddError

UNFINISHED_SYSTEM = families.NOT_FINISHED.saying(
    "the run of system {system} is not finished", "run it to its end first"
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
_NO_RESCORING = "set options.missing: average, or least"
RESCORED_SEGMENTS = families.UNSUPPORTED.of(ConfigError).saying(
    "{system} cannot rescore: its documents are segments of recordings, and detections name recordings", _NO_RESCORING
)
RESCORED_MEANS = families.UNSUPPORTED.of(ConfigError).saying(
    "{system} cannot rescore: its scores are means over examples, and a rescored place has one example's score",
    _NO_RESCORING,
)
RESCORED_PARTS = families.UNSUPPORTED.of(ConfigError).saying(
    "{system} cannot rescore: it searches parts of queries, and a rescored place has a whole query's score",
    _NO_RESCORING,
)
RESCORED_ACROSS_CORPORA = families.UNSUPPORTED.of(ConfigError).saying(
    "{system} cannot rescore: its queries are normalised by other means and variances than the store's", _NO_RESCORING
)
RESCORED_WITH_COHORT = families.UNSUPPORTED.of(ConfigError).saying(
    "{system} cannot rescore: a step of {steps} needs a cohort, the operating point or references", _NO_RESCORING
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

DISJOINT_SYSTEMS = Code(
    "disjoint-systems",
    OddError,
    "{count} pair{s} of systems without a common detection: the scores of one are imputed for the other",
    "check that both have the same queries, document names and times",
)
MIXED_SYSTEMS = families.MISMATCH.saying("lists of {first} and of {second} cannot be fused together", _SAME_SYSTEMS)
FUSION_OF_OTHER_SYSTEMS = families.MISMATCH.saying(
    "the fusion was fitted for {fitted}, and these lists are of {systems}", _SAME_SYSTEMS
)
EMPTY_LISTS = Code(
    "empty-lists",
    OddError,
    "{count} list{s} without detections",
    "leave them out, or give the intended lists",
)
IDENTICAL_LISTS = Code("identical-lists", OddError, "{count} pair{s} of identical lists", "name each system once")


_HOW_TO = "swsdist help sweep shows a sweep's file"

CONFIG_OR_LISTS = families.CONFLICTING_OPTIONS.of(ConfigError).saying(
    "a sweep needs either config or lists", f"give config or lists, or a config in each point; {_HOW_TO}"
)
NO_RESULT_FOLDER = families.MISSING_INPUT.of(ConfigError).saying("no folder to write to", "give run, or --run FOLDER")
