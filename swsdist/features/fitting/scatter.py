"""Linear discriminant analysis and its heteroscedastic variant, of labelled frames, by integer sums.

Frames are normalised to deviations from the mean of all labelled frames, in steps of 2^-12, clipped at 64
(`fitting.moments`). Classes with fewer frames than columns are pooled, because their covariance cannot be estimated.

Sources: LDA: Fisher (1936), Rao (1948); directions v of the generalised eigenproblem B v = lambda W v, B between
classes and W within them, with v' W v = 1. HLDA: Kumar and Andreou (1998), "Heteroscedastic discriminant analysis and
reduced rank HMMs for improved speech recognition", with diagonal covariances, maximised row by row as in Gales (1999),
"Semi-tied covariance matrices for hidden Markov models", and Burget (2004), "Combination of speech features using
smoothed heteroscedastic linear discriminant analysis".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.core.errors import DataError
from swsdist.features.fitting.interface import Document, Step, Totals
from swsdist.features.fitting.moments import Sums, mean_and_deviation, products
from swsdist.features.model import Model
from swsdist.features.transforms.project import directed, projection

Floats = NDArray[np.float64]

_STEPS = 1 << 12

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
        """Covariance of the classes' means, weighted by their frames."""
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
        """In the first round sums of frames, in the second sums of frames and of column products by class."""
        frames, labels = labelled(document)
        if model is None:
            return Sums.from_blocks([frames], frames.shape[1]).totals()
        mean, deviation = mean_and_deviation(model)
        columns, classes = len(mean), len(self.names)
        of_products = classes if self.heteroscedastic else 1
        if of_products * columns**2 > _MOST:
            raise codes.COVARIANCES_TOO_LARGE(
                where=f"features.transforms: {self.transform}", classes=classes, columns=columns
            )
        sums, counts = np.zeros((classes, columns), np.int64), np.bincount(labels, minlength=classes).astype(np.int64)
        matrices = np.zeros((of_products, columns, columns), np.int64)
        for k in np.flatnonzero(counts).tolist():
            of_class = frames[labels == k]
            steps = np.clip(np.rint((of_class - mean) / deviation * _STEPS), -64 * _STEPS, 64 * _STEPS)
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


def labelled(document: Document) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The labelled frames of a document, and their labels."""
    assert document.labels is not None
    model = document.labels >= 0
    return np.concatenate(document.blocks)[model], document.labels[model]


def no_labels(transform: str) -> DataError:
    """The error for a corpus without a labelled frame."""
    return codes.UNLABELLED_FRAMES(where=f"features.transforms: {transform}")


def _classes(totals: Totals, heteroscedastic: bool) -> Classes:
    counts, sums, matrices = totals["counts"], totals["sums"], totals["products"]
    rare = counts < sums.shape[1]
    if heteroscedastic and rare.any():  # classes without enough frames are pooled
        counts, sums, matrices = (_joined(item, rare) for item in (counts, sums, matrices))
    used = counts > 0
    counts, sums = counts[used].astype(np.float64), sums[used] / _STEPS
    means = sums / counts[:, None]
    second = (matrices[used] if heteroscedastic else matrices) / float(_STEPS) ** 2
    if heteroscedastic:
        covariances = second / counts[:, None, None] - means[:, :, None] * means[:, None, :]
    else:
        covariances = second / counts.sum() - ((means.T * counts) @ means / counts.sum())[None]
    return Classes(counts, means, covariances)


def _joined(array: NDArray[Any], rare: NDArray[np.bool_]) -> NDArray[Any]:
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
        raise codes.TOO_MANY_DISCRIMINANTS(
            where=f"features.transforms: {transform}, columns",
            wanted=columns,
            classes=len(classes.counts),
            dimension=len(within),
            available=most,
        )
    try:
        _, axes = eigh(classes.between, within)
    except LinAlgError:
        raise codes.SINGULAR_COVARIANCE(where=f"features.transforms: {transform}") from None
    return np.asarray(axes[:, ::-1][:, :columns], np.float64)


def hlda(classes: Classes, columns: int) -> Floats:
    """Rows that maximise the likelihood of diagonal Gaussians: one per class in `columns` dimensions, one for all in
    the rest.

    Returns:
        float64 (input columns, columns), each of variance 1 over all frames.
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
