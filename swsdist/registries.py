"""Every built-in thing that a config can name: a line each. What another package adds: see `swsdist.registry`."""

from __future__ import annotations

from swsdist.registry import Entry, Registry
from swsdist.steps import Looks, Score, StepEntry

#: Samples to frames.
FEATURES: Registry[Entry] = Registry(
    "feature extractor", "swsdist.features", "features.name", {"mfcc": Entry("swsdist.features.mfcc:Mfcc", 1)}
)

_FITTED: tuple[Looks, ...] = ("own query", "other queries", "references")
_BY_TERM: tuple[Score, Score, tuple[str, ...]] = ("posterior", "any", ("posterior-sums",))

#: Scores to other scores: see `swsdist.steps`.
CALIBRATION: Registry[StepEntry] = Registry(
    "step of calibration",
    "swsdist.calibration",
    "calibrate.steps",
    {
        "q-norm": StepEntry("swsdist.calibrate.steps.q_norm:QNorm", 1, statistics=("cost-sums",), first=True),
        "logistic": StepEntry(
            "swsdist.calibrate.steps.logistic:LogisticStep", 1, gives="posterior", fits=True, looks_at=_FITTED
        ),
        "kst": StepEntry("swsdist.calibrate.steps.kst:Kst", 1, *_BY_TERM, own_threshold=True, operating_point=True),
        "sto": StepEntry("swsdist.calibrate.steps.sto:Sto", 1, *_BY_TERM, own_threshold=True, operating_point=True),
    },
    StepEntry,
)

#: What may be known of all candidates of a query: see `swsdist.calibrate.statistics`.
STATISTICS: Registry[Entry] = Registry(
    "statistic of candidates",
    "swsdist.statistics",
    "statistics of a step of calibration",
    {
        "cost-sums": Entry("swsdist.calibrate.statistics:CostSums", 1),
        "posterior-sums": Entry("swsdist.calibrate.statistics:CandidatePosteriors", 1),
    },
)
