"""Fitting of models to a corpus: interfaces, model files, and the choice of a common band.

A model is fitted in rounds. In each round every document adds totals, and a step turns their sum into the next model.
Totals are integers, so the model has the same bytes whatever the order, shards or tasks. `Rounds.totals` depends only
on the document and on the model of the round before. A chain runs the rounds (`stages.fit_transforms`); `fit` runs them
in this process.

Model files: NumPy's `.npz` with one array of each name, and `settings`, JSON as bytes; loading one executes no code.
A model is identified by its content. The fingerprint covers names, types, shapes, bytes and settings, and so does not
depend on the writer or the path.

Common band (`BandRounds`): 3700 Hz if more than one document in 20 is telephone speech, whatever the sampling rate of
its file; otherwise half the rate. The model states the choice and not the counts, so collections that choose alike have
the same features.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, DataError, recast
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import Folder, local_file, locate
from swsdist.io.frames.numpy_files import bounded_arrays

T = TypeVar("T")

#: Setting of a model with fewer components than were wanted, for lack of frames: the number that was.
FEWER = "instead_of"

_SETTINGS = "settings"


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model: a codebook, a projection, weights.

    Attributes:
        name: its type, for example `codebook`.
        version: raised whenever the meaning of the numbers changes.
        arrays: by name; of numbers or booleans.
        settings: plain JSON values.
    """

    name: str
    version: int
    arrays: Mapping[str, NDArray[np.generic]]
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            if name == _SETTINGS or array.dtype.kind not in "biuf":
                raise ValueError(f"array {name!r} of a model has the type {array.dtype}: use numbers or booleans")

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the SHA-256 of its content."""
        running = hashlib.sha256(self._header())
        for name in sorted(self.arrays):
            array = _little_endian(self.arrays[name])
            running.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            running.update(array.tobytes())
        return running.hexdigest()[:32]

    def _header(self) -> bytes:
        values = {"name": self.name, "version": self.version, "settings": dict(self.settings)}
        return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    def save(self, folder: Folder, name: str) -> None:
        """Publish it as a file of a folder; the same model always has the same bytes."""
        folder.write_bytes(name, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of its file."""
        out = io.BytesIO()
        arrays = {array: _little_endian(self.arrays[array]) for array in sorted(self.arrays)}
        np.savez(out, allow_pickle=False, **{_SETTINGS: np.frombuffer(self._header(), np.uint8)}, **arrays)
        return out.getvalue()


def load_model(folder: Folder, name: str, expected: str | None = None) -> Model:
    """Read a model; no code of the file runs.

    Args:
        folder, name: place of the file.
        expected: fingerprint that the model must have.

    Raises:
        DataError: the file is missing or damaged, or holds another model.
    """
    where = folder.path(name)
    try:
        data = folder.read_bytes(name)
    except FileNotFoundError:
        raise codes.MISSING_MODEL(where=where) from None
    except OSError as error:
        fault = as_file_fault(error, where)
        raise families.UNUSABLE_MODEL.of(DataError)(
            "the model file cannot be read: {detail}",
            "{fix}",
            where=where,
            detail=fault.message,
            fix=fault.remedy or "",
        ) from error
    try:
        arrays = bounded_arrays(io.BytesIO(data))
        header = json.loads(arrays.pop(_SETTINGS).tobytes())
        model = Model(header["name"], header["version"], arrays, header["settings"])
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise codes.NOT_A_MODEL(where=where, error=error) from None
    if expected is not None and model.fingerprint != expected:
        raise families.CHANGED_INPUT.of(DataError)(
            "the model differs from the one that was used",
            "restore the right file, or fit the model again",
            where=where,
        )
    return model


def read_model(path: str, where: str, read: Callable[[Model], T]) -> T:
    """Read a model file that a config names.

    Args:
        path: the file.
        where: its place in the config, for messages.
        read: converts the model; raises a ConfigError if it is invalid.

    Raises:
        ConfigError: the file is missing or damaged, or `read` rejects it.
    """
    try:
        return read(load_model(*locate(str(local_file(path)))))
    except FileNotFoundError:
        raise codes.NO_MODEL_OBJECT(where=where) from None
    except ConfigError as error:
        raise recast(error, ConfigError, where=error.where or where) from None
    except DataError as error:
        if error.code == codes.MISSING_MODEL.name:
            raise codes.NO_MODEL_OBJECT(where=where) from None
        raise families.UNUSABLE_MODEL(
            "{detail}", "{fix}", where=where, detail=error.message, fix=error.remedy or ""
        ) from None


def _little_endian(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


#: Arrays by name, int64 or Python integers (dtype object); they are summed.
Totals = Mapping[str, NDArray[Any]]


class Document(NamedTuple):
    """The data of one document that a model is fitted on.

    Attributes:
        blocks: float32 (frames, columns) each, in order.
        speaker: the speaker; None if unknown.
        labels: int64 (frames of all blocks,), the label of each frame, below 0 if unknown; None if the model uses no
            labels.
        bandwidth: Hz (`audio.speech`); None if unknown.
        positions: int64 (frames of all blocks,), of each frame in the stretch that it is computed in
            (`features.blocks.positions`); None if it does not matter.
    """

    blocks: list[Singles]
    speaker: str | None = None
    labels: Ints | None = None
    bandwidth: float | None = None
    positions: Ints | None = None


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
        labels: a label file (`features.fitting.files`); None: the labels of the corpus, `corpus.alignments.phones`.
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
        raise families.NOTHING_TO_FIT.of(DataError)("there are no frames to fit a model to", "add documents")
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
#: Hz: greatest bandwidth of telephone speech (`audio.speech`).
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
