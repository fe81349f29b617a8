"""Every built-in thing that a config can name: a line each. What another package adds: see `swsdist.registry`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from swsdist.registry import Entry, Registry


@dataclass(frozen=True)
class MeasureEntry(Entry):
    """A measure of an aligned list.

    Attributes:
        takes: what it is about: trials of any kind, or pairs of a query and a document.
        basic: whether it is shown where not all measures are asked for.
    """

    takes: Literal["trials", "pairs"] = "trials"
    basic: bool = False


#: Samples to frames.
FEATURES: Registry[Entry] = Registry(
    "feature extractor", "swsdist.features", "features.name", {"mfcc": Entry("swsdist.features.mfcc:Mfcc", 1)}
)

#: An aligned list, to numbers.
MEASURES: Registry[MeasureEntry] = Registry(
    "measure",
    "swsdist.measures",
    "score.measures",
    {
        "term-weighted": MeasureEntry("swsdist.score.registered.term_weighted:TermWeighted", 1, basic=True),
        "optimum": MeasureEntry("swsdist.score.registered.term_weighted:OptimumAndSupremum", 1, basic=True),
        "pooled-maximum": MeasureEntry("swsdist.score.registered.pooled:PooledMaximum", 1, basic=True),
        "decisions": MeasureEntry("swsdist.score.registered.pooled:Decisions", 1, basic=True),
        "retrieval": MeasureEntry("swsdist.score.registered.ranked:Retrieval", 1),
        "equal-errors": MeasureEntry("swsdist.score.registered.ranked:EqualErrors", 1),
        "figure-of-merit": MeasureEntry("swsdist.score.registered.ranked:FigureOfMerit", 1),
        "pair-areas": MeasureEntry("swsdist.score.registered.ranked:PairAreas", 1, takes="pairs"),
        "cross-entropies": MeasureEntry("swsdist.score.registered.entropy:CrossEntropies", 1),
    },
    MeasureEntry,
)

_PROTOCOL = "swsdist.score.measures.protocol"

#: Operating points with their rules of counting.
PROTOCOLS: Registry[Entry] = Registry(
    "protocol",
    "swsdist.protocols",
    "score.protocol",
    {
        "stdeval": Entry(f"{_PROTOCOL}:STDEVAL", 1),
        "nist-std06": Entry(f"{_PROTOCOL}:NIST_STD06", 1),
        "sws2011": Entry(f"{_PROTOCOL}:SWS2011", 1),
        "sws2012": Entry(f"{_PROTOCOL}:SWS2012", 1),
        "sws2013": Entry(f"{_PROTOCOL}:SWS2013", 1),
        "kwseval": Entry(f"{_PROTOCOL}:KWSEVAL", 1),
        "openkws13": Entry(f"{_PROTOCOL}:OPENKWS13", 1),
        "quesst": Entry(f"{_PROTOCOL}:QUESST", 1),
    },
)
