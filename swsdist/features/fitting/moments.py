"""Means, covariances and linear discriminants (LDA, HLDA) of frames, by integer sums.

Integer sums do not depend on the order of documents, on shards or tasks.

Means and covariances: first `Sums`, for each document the sums of its columns and of their squares, in float64, each
rounded to 2^-60. Then, with the mean and deviation, `products`: normalised numbers are rounded to 2^-12, clipped at 64,
and multiplied in float64 block by block, where every partial sum is an integer below 2^53.

Discriminants: labelled frames are normalised in the same way, by the mean and deviation of all labelled frames. Classes
with fewer frames than columns are pooled, because their covariance cannot be estimated. LDA's directions v solve the
generalised eigenproblem B v = lambda W v, with v' W v = 1, for B the covariance between classes and W that within them.
HLDA has diagonal covariances, and its likelihood is maximised row by row.

Sources: LDA: Fisher (1936), Rao (1948); HLDA: Kumar and Andreou (1998), "Heteroscedastic discriminant analysis and
reduced rank HMMs for improved speech recognition", maximised as in Gales (1999), "Semi-tied covariance matrices for
hidden Markov models", and Burget (2004), "Combination of speech features using smoothed heteroscedastic linear
discriminant analysis".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, DataError
from swsdist.features.fitting.interface import Document, Model, Step, Totals
from swsdist.features.statistics import Statistics
from swsdist.features.transforms.project import directed, projection

_FINE = 1 << 60
_STEPS, _CUT = 1 << 12, 1 << 18

#: Positions whose frames are summed, and frames for the sum of one to be used.
_POSITIONS, _LEAST = 512, 100

#: Frames per product: 2^18 squared times this is below 2^53.
_ROWS = 4096


class Moments(NamedTuple):
    """Moments of the frames.

    Attributes:
        frames: number of frames.
        mean: float64 (columns,).
        covariance: float64 (columns, columns).
        at_positions: float64 (positions, columns), of each position in a stretch (`Document.positions`) with `_LEAST` frames:
            their sum, less as many means, divided by the root of their number; None if they were not summed.
    """

    frames: int
    mean: Floats
    covariance: Floats
    at_positions: Floats | None = None


class Sums(NamedTuple):
    """Sums of frames and of their squares, in units of 2^-60; addable."""

    frames: int
    sums: list[int]
    squares: list[int]

    @classmethod
    def from_blocks(cls, blocks: Iterable[Singles], columns: int) -> Sums:
        """Sums over the blocks of one document."""
        frames, sums, squares = 0, np.zeros(columns), np.zeros(columns)
        for block in blocks:
            values = block.astype(np.float64)
            frames += len(values)
            sums += values.sum(axis=0)
            squares += (values**2).sum(axis=0)
        return cls(frames, [round(x * _FINE) for x in sums.tolist()], [round(x * _FINE) for x in squares.tolist()])

    def __add__(self, other: tuple[object, ...]) -> Sums:
        assert isinstance(other, Sums)
        return Sums(
            self.frames + other.frames,
            [a + b for a, b in zip(self.sums, other.sums, strict=True)],
            [a + b for a, b in zip(self.squares, other.squares, strict=True)],
        )

    @classmethod
    def of_document(cls, document: Document) -> Sums:
        """Sums over one document."""
        return cls.from_blocks(document.blocks, document.blocks[0].shape[1])

    @classmethod
    def of_totals(cls, totals: Totals) -> Sums:
        """Convert from totals."""
        return cls(int(totals["frames"][0]), totals["sums"].tolist(), totals["squares"].tolist())

    def totals(self) -> Totals:
        """Convert to totals."""
        return {
            "frames": np.array([self.frames]),
            "sums": np.array(self.sums, object),
            "squares": np.array(self.squares, object),
        }

    def model(self) -> Model:
        """Mean and deviation, as the model after a round."""
        mean, deviation = self.mean_and_deviation()
        return Model("moments", 1, {"mean": mean, "deviation": deviation}, {"frames": self.frames})

    def statistics(self) -> Statistics:
        """Mean and sum of squared deviations, each from integers of any size, rounded once; of at least one frame."""
        mean = [total / (self.frames * _FINE) for total in self.sums]
        scatter = [
            max(self.frames * squares * _FINE - total * total, 0) / (self.frames * _FINE * _FINE)
            for total, squares in zip(self.sums, self.squares, strict=True)
        ]
        return Statistics(self.frames, np.array(mean), np.array(scatter))

    def mean_and_deviation(self) -> tuple[Floats, Floats]:
        """Float64 (columns,) each; a constant column has the deviation 1."""
        count = self.frames * _FINE
        mean = np.array([total / count for total in self.sums])  # integers of any size, rounded once
        squares = np.array([total / count for total in self.squares])
        variance = squares - mean**2
        return mean, np.sqrt(np.where(variance > 1e-12 * squares, variance, 1.0))


def products(blocks: Iterable[Singles], mean: Floats, deviation: Floats) -> Ints:
    """Sums of products of columns, in deviations from the mean and units of 2^-24: int64 (columns, columns); addable."""
    total = np.zeros((len(mean), len(mean)), np.int64)
    for block in _gathered(blocks):
        for first in range(0, len(block), _ROWS):
            integers = _integers(block[first : first + _ROWS], mean, deviation)
            total += (integers.T @ integers).astype(np.int64)
    return total


def _integers(frames: Singles, mean: Floats, deviation: Floats) -> Floats:
    """Deviations from the mean, in units of 2^-12, rounded."""
    integers = frames - mean
    integers /= deviation
    integers *= _STEPS
    np.rint(integers, out=integers)
    return np.clip(integers, -_CUT, _CUT, out=integers)


def _gathered(blocks: Iterable[Singles]) -> Iterator[Singles]:
    """The same frames in blocks of `_ROWS` or more but for the last: a product of few frames costs much more each."""
    held: list[Singles] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) >= _ROWS:
            yield held[0] if len(held) == 1 else np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def moments(totals: Totals, mean: Floats, deviation: Floats) -> Moments:
    """Moments from the sums over all documents."""
    frames, unit = int(totals["frames"][0]), deviation / _STEPS
    at_positions = None
    if "counts" in totals:
        enough = totals["counts"] >= _LEAST
        at_positions = totals["sums"][enough] / np.sqrt(totals["counts"][enough])[:, None] * unit
    return Moments(frames, mean, totals["products"] / frames * unit * unit[:, None], at_positions)


class OfMean:
    """The fitting procedure of a model that depends on the mean and deviation of columns, in one round."""

    speech = False

    def __init__(self, solve: Callable[[Floats, Floats], Model]) -> None:
        self._solve = solve

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Sums of frames and of their squares."""
        return Sums.of_document(document).totals()

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The model."""
        return Step(self._solve(*Sums.of_totals(totals).mean_and_deviation()), True)


class OfCovariance:
    """Two rounds, for a model that depends on the covariance of columns: first `Sums`, then `products`.

    Args:
        solve: makes the model.
        positions: whether sums of the frames at each position are needed too.
    """

    speech = False

    def __init__(self, solve: Callable[[Moments], Model], positions: bool = False) -> None:
        self._solve, self._positions = solve, positions

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of a document: sums of frames; in the second round of products of columns, and of positions."""
        if model is None:
            return Sums.of_document(document).totals()
        mean, deviation = mean_and_deviation(model)
        totals: Totals = {
            "frames": np.array([sum(map(len, document.blocks))]),
            "products": products(document.blocks, mean, deviation),
        }
        if not self._positions or document.positions is None:
            return totals
        placed = np.flatnonzero(document.positions < _POSITIONS)
        sums = np.zeros((_POSITIONS, len(mean)), np.int64)
        integers = _integers(np.concatenate(document.blocks)[placed], mean, deviation)
        np.add.at(sums, document.positions[placed], integers.astype(np.int64))
        return {**totals, "counts": np.bincount(document.positions[placed], minlength=_POSITIONS), "sums": sums}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The mean and deviation, or the model."""
        if model is None:
            return Step(Sums.of_totals(totals).model(), False)
        return Step(self._solve(moments(totals, *mean_and_deviation(model))), True)


def mean_and_deviation(model: Model) -> tuple[Floats, Floats]:
    """The mean and deviation of a model: float64 (columns,) each."""
    return np.asarray(model.arrays["mean"], np.float64), np.asarray(model.arrays["deviation"], np.float64)


def moments_of(model: Model, name: str) -> tuple[Floats, Floats]:
    """The checked mean and deviation of the model of type `name`: float64 (columns,) each.

    Raises:
        ConfigError: it is another model, or its arrays are not finite numbers with a deviation above 0.
    """
    arrays = [np.asarray(model.arrays.get(key, ()), np.float64) for key in ("mean", "deviation")]
    right = arrays[0].ndim == 1 and arrays[0].shape == arrays[1].shape and len(arrays[0]) and (arrays[1] > 0).all()
    if (model.name, model.version) != (name, 1) or not right or not np.isfinite(arrays).all():
        raise codes.WRONG_MODEL(name=model.name, wanted="a mean and deviation of columns")
    return arrays[0], arrays[1]


_STEPS_PER_DEVIATION = 1 << 12

#: Most covariance elements of all classes, 8 bytes each, that a task holds.
_MOST = 1 << 26

#: Sweeps over the rows of an HLDA.
_SWEEPS = 24


class Classes(NamedTuple):
    """Statistics of labelled frames, in deviations from their mean.

    Attributes:
        counts: float64 (classes,), frames.
        means: float64 (classes, columns).
        covariances: float64 (classes, columns, columns), per class; for LDA a single one, within all classes.
    """

    counts: Floats
    means: Floats
    covariances: Floats

    @property
    def between(self) -> Floats:
        """Covariance of the classes' means, weighted by their frames: float64 (columns, columns)."""
        return np.asarray((self.means.T * self.counts) @ self.means / self.counts.sum(), np.float64)


class OfClasses:
    """Two rounds: mean and deviation, then products by class.

    Args:
        names: labels.
        columns: number of output columns.
        heteroscedastic: whether each class has its own covariance (HLDA).
        transform: its name, for errors.
    """

    speech = False

    def __init__(self, names: Sequence[str], columns: int, *, heteroscedastic: bool, transform: str) -> None:
        self.names, self.columns, self.heteroscedastic, self.transform = (
            tuple(names),
            columns,
            heteroscedastic,
            transform,
        )

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of a document: sums of frames; in the second round of frames and column products by class.

        Raises:
            ConfigError: the covariances of all classes are too large for memory.
        """
        frames, labels = labelled(document)
        if model is None:
            return Sums.from_blocks([frames], frames.shape[1]).totals()
        mean, deviation = mean_and_deviation(model)
        columns, classes = len(mean), len(self.names)
        of_products = classes if self.heteroscedastic else 1
        if of_products * columns**2 > _MOST:
            raise families.TOO_LARGE.of(ConfigError)(
                "covariances of {classes} classes and {columns} columns are too large",
                "put pca before it, or splice fewer frames",
                where=f"features.transforms: {self.transform}",
                classes=classes,
                columns=columns,
            )
        sums, counts = np.zeros((classes, columns), np.int64), np.bincount(labels, minlength=classes).astype(np.int64)
        matrices = np.zeros((of_products, columns, columns), np.int64)
        for k in np.flatnonzero(counts).tolist():
            of_class = frames[labels == k]
            steps = np.clip(
                np.rint((of_class - mean) / deviation * _STEPS_PER_DEVIATION),
                -64 * _STEPS_PER_DEVIATION,
                64 * _STEPS_PER_DEVIATION,
            )
            sums[k] = steps.sum(axis=0).astype(np.int64)
            if self.heteroscedastic:
                matrices[k] = products([of_class], mean, deviation)
        if not self.heteroscedastic:
            matrices[0] = products([frames], mean, deviation)
        return {"counts": counts, "sums": sums, "products": matrices}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The mean and deviation; then the projection.

        Raises:
            DataError: no frame has a label.
            ConfigError: there are fewer discriminants than requested columns.
        """
        if model is None:
            sums = Sums.of_totals(totals)
            if not sums.frames:
                raise no_labels(self.transform)
            return Step(sums.model(), False)
        mean, deviation = mean_and_deviation(model)
        classes = _classes(totals, self.heteroscedastic)
        axes = hlda(classes, self.columns) if self.heteroscedastic else lda(classes, self.columns, self.transform)
        made = projection(mean, directed(axes) / deviation[:, None], deviation)
        return Step(Model(made.name, made.version, made.arrays, {"labels": list(self.names)}), True)


def labelled(document: Document) -> tuple[Singles, Ints]:
    """The labelled frames of a document, float32 (frames, columns), and their labels, int64 (frames,)."""
    assert document.labels is not None
    model = document.labels >= 0
    return np.concatenate(document.blocks)[model], document.labels[model]


def no_labels(transform: str) -> DataError:
    """The error for a corpus without a labelled frame."""
    return families.NOTHING_TO_FIT.of(DataError)(
        "no frame of the training documents has a label",
        "check the labels: their document names must be those of the corpus",
        where=f"features.transforms: {transform}",
    )


def _classes(totals: Totals, heteroscedastic: bool) -> Classes:
    counts, sums, matrices = totals["counts"], totals["sums"], totals["products"]
    rare = counts < sums.shape[1]
    if heteroscedastic and rare.any():  # classes without enough frames are pooled
        counts, sums, matrices = (_joined(item, rare) for item in (counts, sums, matrices))
    used = counts > 0
    counts, sums = counts[used].astype(np.float64), sums[used] / _STEPS_PER_DEVIATION
    means = sums / counts[:, None]
    second = (matrices[used] if heteroscedastic else matrices) / float(_STEPS_PER_DEVIATION) ** 2
    if heteroscedastic:
        covariances = second / counts[:, None, None] - means[:, :, None] * means[:, None, :]
    else:
        covariances = second / counts.sum() - ((means.T * counts) @ means / counts.sum())[None]
    return Classes(counts, means, covariances)


def _joined(array: NDArray[Any], rare: Bools) -> NDArray[Any]:
    return np.concatenate([array[~rare], array[rare].sum(axis=0, keepdims=True)])


def lda(classes: Classes, columns: int, transform: str = "lda") -> Floats:
    """Discriminants: float64 (input columns, columns), the best first, with v' W v = 1.

    Raises:
        ConfigError: there are fewer, or the covariance within classes is singular.
    """
    from scipy.linalg import LinAlgError, eigh

    (within,) = classes.covariances
    most = min(len(classes.counts) - 1, len(within))
    if columns > most:
        raise families.INVALID_VALUE(
            "{wanted} discriminants are more than {classes} classes and {dimension} columns allow",
            "set columns to {available} at most",
            where=f"features.transforms: {transform}, columns",
            wanted=columns,
            classes=len(classes.counts),
            dimension=len(within),
            available=most,
        )
    try:
        _, axes = eigh(classes.between, within)
    except LinAlgError:
        raise families.NOTHING_TO_FIT.of(ConfigError)(
            "the covariance within classes is singular: columns are sums of each other",
            "put pca before it",
            where=f"features.transforms: {transform}",
        ) from None
    return np.asarray(axes[:, ::-1][:, :columns], np.float64)


def hlda(classes: Classes, columns: int) -> Floats:
    """Directions that maximise the likelihood of diagonal Gaussians.

    There is one Gaussian per class in `columns` dimensions, and one for all classes in the others.

    Returns:
        float64 (input columns, columns), each of variance 1 over all frames.

    Raises:
        ConfigError: there are fewer.
    """
    counts, covariances = classes.counts, classes.covariances
    frames, dimension = counts.sum(), covariances.shape[1]
    if columns > dimension:
        raise codes.TOO_MANY_COMPONENTS(
            where="features.transforms: hlda, columns", wanted=columns, kind="dimensions", available=dimension
        )
    within = (counts[:, None, None] * covariances).sum(axis=0) / frames
    total = within + classes.between
    rows = _beginning(classes.between, within)
    for _ in range(_SWEEPS):
        for k in range(dimension):
            row = rows[k]
            if k < columns:
                variances = np.maximum(np.einsum("i,cij,j->c", row, covariances, row), 1e-12)
                weighed = ((counts / variances)[:, None, None] * covariances).sum(axis=0)
            else:
                weighed = frames / max(float(row @ total @ row), 1e-12) * total
            cofactors = np.linalg.inv(rows)[:, k]
            moved = np.linalg.solve(weighed, cofactors)
            rows[k] = moved * np.sqrt(frames / (cofactors @ moved))
    kept = rows[:columns]
    kept = kept / np.sqrt(np.einsum("ki,ij,kj->k", kept, total, kept))[:, None]
    return np.asarray(kept.T, np.float64)


def _beginning(between: Floats, within: Floats) -> Floats:
    """The directions of LDA, as rows: the starting point."""
    from scipy.linalg import eigh

    floor = 1e-6 * np.trace(within) / len(within)
    _, axes = eigh(between, within + floor * np.eye(len(within)))
    return np.ascontiguousarray(axes[:, ::-1].T)
