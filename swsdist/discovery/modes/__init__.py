"""Modes: which program's or paper's numbers a result has.

A mode is a function of a module of its own, loaded when it is asked for:

    score(corpus: Corpus, classes: Fragments, setup: EvaluationSetup) -> dict[str, object]

`swsdist.discovery.units` has the types. The result is nested plain dicts and lists: counts are int, ratios float, undefined
is None; its keys are documented in the mode's module. The corpus is as the files have it: a mode drops silences itself. It
gets what its `needs` name; a document of the classes may be without phones. Errors are coded
(`swsdist.core.codes.discovery`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from swsdist.discovery.units import Corpus, EvaluationSetup, Fragments
from swsdist.registry.registry import Entry

#: What a mode computes.
Score = Callable[[Corpus, Fragments, EvaluationSetup], dict[str, object]]


@dataclass(frozen=True)
class Mode(Entry):
    """A mode by the place of its function.

    Attributes:
        needs: what it does not work without, besides phones and classes.
        instants: whether a fragment may have no length.
        known: whether each document of the classes must have phones.
        partial: whether it scores lists of pairs, and a parse, too.
    """

    needs: tuple[Literal["words", "split", "gold_classes", "folds"], ...] = ()
    instants: bool = False
    known: bool = False
    partial: bool = False


_M = "swsdist.discovery.modes"

MODES: Mapping[str, Mode] = {
    "seed": Mode(f"{_M}.seed:score", 1, partial=True),
    "tdev2": Mode(f"{_M}.tdev2:score", 1, needs=("words",), known=True),
    "tde1": Mode(f"{_M}.tde1:score", 1, needs=("words", "split", "gold_classes", "folds"), instants=True),
}
