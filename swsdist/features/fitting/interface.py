"""Interfaces of fitted transforms and extractors.

A model is fitted in rounds. In each round every document adds totals, and a step turns their sum into the next model.
Totals are integers, so the model has the same bytes whatever the order, shards or tasks. `Rounds.totals` depends only
on the document and on the model of the round before. A chain runs the rounds (`stages.fit_transforms`); `fit` runs them
in this process.

Choose the band that a collection has in common: 3700 Hz if more than one document in 20 is telephone speech, whatever the
sampling rate of its file; otherwise half the rate.

The model states the choice and not the counts, so that collections that choose alike have the same features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.features.model import Model

#: Arrays by name, int64 or Python integers (dtype object); they are summed.
Totals = Mapping[str, NDArray[Any]]


class Document(NamedTuple):
    """The data of one document that a model is fitted on.

    Attributes:
        blocks: float32 (frames, columns) each, in order.
        speaker: the speaker; None if unknown.
        labels: int64 (frames of all blocks,), the label of each frame, below 0 if unknown; None if the model uses no
            labels.
        bandwidth: Hz (`audio.bandwidth`); None if unknown.
        positions: int64 (frames of all blocks,), of each frame in the stretch that it is computed in
            (`features.blocks.positions`); None if it does not matter.
    """

    blocks: list[NDArray[np.float32]]
    speaker: str | None = None
    labels: NDArray[np.int64] | None = None
    bandwidth: float | None = None
    positions: NDArray[np.int64] | None = None


class Step(NamedTuple):
    """The model after a round, and whether it is final."""

    model: Model
    done: bool


class Rounds(Protocol):
    """The fitting procedure of a model.

    Attributes:
        speech: whether it is fitted on speech frames only (`swsdist.audio.speech`).
    """

    speech: bool

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of a document; `model` is the result of the previous round, None at first."""
        ...

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """Finish a round with the sum of all documents' totals.

        Raises:
            ConfigError: the options cannot be fitted on these documents.
        """
        ...


@runtime_checkable
class Fitted(Protocol):
    """Additional members of a fitted transform (`features.transforms.interface.Transform`).

    Attributes:
        name, version: part of the model's name.
        hours: the most hours of documents used for fitting.
        model: the fitted file; None before fitting.
    """

    name: str
    version: int
    hours: float
    model: str | None

    def rounds(self) -> Rounds:
        """The fitting procedure."""
        ...

    def matters(self) -> dict[str, object]:
        """Options that the model depends on, including `hours`, as plain JSON."""
        ...

    def with_model(self, path: str) -> dict[str, object]:
        """The options with the path of the fitted model."""
        ...


@runtime_checkable
class Supervision(Protocol):
    """Additional members of a transform fitted on labels, which is not zero-resource. An extractor never has them.

    Attributes:
        labels: a label file (`features.fitting.labels`); None: the labels of the corpus, `corpus.alignments.phones`.
        automatic: whether a program labelled the documents from their audio alone.
    """

    labels: str | None
    automatic: bool

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """The fitting procedure for labels with these names."""
        ...


@runtime_checkable
class Learning(Fitted, Protocol):
    """Additional members of a fitted extractor.

    Attributes:
        learns: whether it still has to be fitted.
    """

    learns: bool

    def learns_from(self) -> dict[str, object]:
        """Options under which the same extractor yields the frames it is fitted on."""
        ...


def added(totals: Totals, other: Totals) -> Totals:
    """The sum of two sets of totals; missing entries count as 0."""
    both = {name: totals[name] + other[name] for name in totals if name in other}
    return {**totals, **other, **both}


def fit(rounds: Rounds, documents: Sequence[Document]) -> Model:
    """Fit a model to documents in memory.

    Raises:
        DataError: there are no frames.
        ConfigError: see `Rounds.go_on`.
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


#: Hz: upper edge of the common band of a collection with telephone speech.
COMMON = 3700.0
#: Hz: greatest bandwidth of telephone speech (`audio.bandwidth`).
_TELEPHONE = 4000.0
#: The choice is narrow if more than one document in so many is.
_ONE_IN = 20


class BandRounds:
    """One round that counts documents, and of them those of a narrow band; their frames do not matter.

    Args:
        rate: Hz, of their samples.
    """

    speech = False

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Count one document, and whether it is narrow; a near-silent one is not."""
        hz = document.bandwidth
        narrow = hz is not None and hz <= _TELEPHONE and hz < self._rate / 2
        return {"documents": np.array([1]), "narrow": np.array([int(narrow)])}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The choice."""
        documents, narrow = int(totals["documents"][0]), int(totals["narrow"][0])
        return Step(Model("band", 1, {}, {"fmax": COMMON if narrow * _ONE_IN > documents else None}), True)


def band_of(model: Model) -> float | None:
    """The choice of a model: Hz, or None for half the rate.

    Raises:
        ConfigError: it is another model.
    """
    if model.name != "band":
        raise codes.WRONG_MODEL(name=model.name, wanted="a choice of a band")
    fmax = model.settings["fmax"]
    assert fmax is None or isinstance(fmax, float)
    return fmax
