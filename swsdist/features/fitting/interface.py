"""What is fitted, and how: in rounds, each of totals that documents add to, and of a step that goes on with their sum.

Totals are whole numbers, so they are the same in whatever order, shards or tasks documents are added, and so is the model to
the last byte. Between two rounds a model says what is known: `Rounds.totals` of a document may depend on it and on nothing
else. A chain runs the rounds (`stages.fit_transforms`); `fit` does so in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.features.model import Model

#: Arrays by name, int64 or Python's integers (dtype object), which add.
Totals = Mapping[str, NDArray[Any]]


class Document(NamedTuple):
    """What a model is fitted on, of one document.

    Attributes:
        blocks: float32 (frames, columns) each, in their order.
        speaker: who speaks; None: it is not known.
        labels: int64 (frames of all blocks,), what is said; below 0: it is not known. None: nobody asked.
    """

    blocks: list[NDArray[np.float32]]
    speaker: str | None = None
    labels: NDArray[np.int64] | None = None


class Step(NamedTuple):
    """What is known after a round, and whether it is the model that was to be fitted."""

    model: Model
    done: bool


class Rounds(Protocol):
    """How a model is fitted.

    Attributes:
        speech: it is fitted on frames of speech only (`swsdist.audio.marks`).
    """

    speech: bool

    def totals(self, model: Model | None, document: Document) -> Totals:
        """What a document adds; `known` is what the step before came to, None at first."""
        ...

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The step at the end of a round, from the sum over all documents.

        Raises:
            ConfigError: what was asked for cannot be fitted on these documents.
        """
        ...


@runtime_checkable
class Fitted(Protocol):
    """What a transform that is fitted says besides (`features.transforms.interface.Transform`).

    Attributes:
        name, version: in the name of the model.
        hours: of documents that it is fitted on, at most.
        model: the file that was fitted; None: it is not fitted yet.
    """

    name: str
    version: int
    hours: float
    model: str | None

    def rounds(self) -> Rounds:
        """How its model is fitted."""
        ...

    def matters(self) -> dict[str, object]:
        """Options that the model depends on, `hours` among them, as plain JSON."""
        ...

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted."""
        ...


@runtime_checkable
class Supervision(Protocol):
    """What is fitted by labels says besides: who uses it is not zero resource. It is never an extractor.

    Attributes:
        labels: a file of them (`features.fitting.labels`); None: those of the corpus, `corpus.alignments.phones`.
        automatic: a program made them, which heard the documents and was told nothing.
    """

    labels: str | None
    automatic: bool

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """How its model is fitted, where labels have these names."""
        ...


@runtime_checkable
class Learning(Fitted, Protocol):
    """What an extractor that is fitted says besides.

    Attributes:
        learns: whether it is to be fitted.
    """

    learns: bool

    def learns_from(self) -> dict[str, object]:
        """Options of the extractor, of the same name, whose frames it is fitted on."""
        ...


def added(totals: Totals, other: Totals) -> Totals:
    """Both together; what only one has is 0 in the other."""
    both = {name: totals[name] + other[name] for name in totals if name in other}
    return {**totals, **other, **both}


def fit(rounds: Rounds, documents: Sequence[Document]) -> Model:
    """Fit a model to documents that are in memory.

    Raises:
        DataError: there are no frames.
        ConfigError: as of `Rounds.go_on`.
    """
    if not any(map(len, (block for document in documents for block in document.blocks))):
        raise codes.NO_FRAMES_TO_FIT()
    model: Model | None = None
    while True:
        totals: Totals = {}
        for document in documents:
            totals = added(totals, rounds.totals(model, document))
        model, done = rounds.go_on(model, totals)
        if done:
            return model
