"""Codes of joining and fusing lists."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import OddError, UserError

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
