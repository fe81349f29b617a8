"""Gaussian mixtures, and what is estimated with them: posteriors of phones, and warps of speakers.

All sums are of integers, so a model does not depend on how documents are cut or divided into tasks.

Mixtures have diagonal covariances, and are fitted by expectation maximisation. Fitting begins with one Gaussian of the
frames' mean and variances. All Gaussians are split, each into two whose means are 0.2 deviations to either side, up or
down per column by a hash of its number, until there are enough. `_BETWEEN` rounds follow each split, and `iterations`
rounds the last. There is no randomness.

Numbers: frames are normalised to deviations from the overall mean, in steps of 2^-12, clipped at 32; their squares are
rounded to steps of 2^-12 too. Log densities are products of these and of integers that represent means and variances,
exact in float64 on any BLAS; posteriors are rounded to 2^-16 and multiplied with the frames, again exactly. A frame's
posteriors therefore do not depend on its block.

Phones: the mixture is fitted without labels, and one more round adds up the components' posteriors by label.

    p(phone | x) = sum over components c of p(c | x) p(phone | c)

p(phone | c) is a phone's share of a component's sum, smoothed by `prior` frames distributed as the phones of the
corpus.

Warps: a speaker's factor is the one of a grid under which the speaker's speech is most likely by a mixture of unwarped
speech. The columns of all factors are concatenated. The frames of a document are normalised to mean 0 and variance 1
for each factor separately, so that the effect of a warp on the scale does not count as likelihood. Likelihoods of a
speaker's documents are added in steps of 2^-20.

Sources: Dempster, Laird and Rubin (1977), "Maximum likelihood from incomplete data via the EM algorithm"; splitting:
Linde, Buzo and Gray (1980), "An algorithm for vector quantizer design"; phones: Tejedor and others (2016), the systems
P1L-STD and DTW-Spanish, and Gomez and Castro (2002), "Automatic segmentation of speech at the phonetic level"; warps:
the sources of `swsdist.features.vtln`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Ints, Singles
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.features.fitting.interface import FEWER, Document, Model, Step, Totals
from swsdist.features.fitting.moments import Sums, labelled, no_labels

_STEPS, _CUT = 1 << 12, 1 << 17
_POSTERIOR_STEPS, _LIKELIHOOD_STEPS = 1 << 16, 1 << 20
#: Finest step of the integers for means and variances: 2^-24.
_FINEST = 24
#: Frames per product: 2^16 (a posterior) times 2^22 (a square) times 2^12 frames would stay below 2^53; fewer fit the
#: cache.
_ROWS = 512
#: Rounds between two splits.
_BETWEEN = 2
#: Initial distance of the halves of a Gaussian from its mean, in deviations.
_APART = 0.2
#: Name of a model whose mixture is final, if another round follows.
_DONE = "mixture-done"
#: A Gaussian with fewer frames is not updated.
_FEWEST = 8.0


class Mixture:
    """A mixture of Gaussians, ready for evaluation.

    Args:
        mean, deviation: float64 (columns,), normalise the frames; a step is 2^-12 of a deviation.
        weights: float64 (components,), which sum to 1.
        means, variances: float64 (components, columns), in deviations.
    """

    def __init__(self, mean: Floats, deviation: Floats, weights: Floats, means: Floats, variances: Floats) -> None:
        self.mean, self.deviation = mean, deviation
        self.weights, self.means, self.variances = weights, means, variances
        linear, square = means / variances, -0.5 / variances
        # The finest step that keeps all sums of products below 2^53.
        most = float((np.abs(linear) * _CUT + np.abs(square) * (_CUT**2 / _STEPS)).sum(axis=1).max())
        self._bits = min(_FINEST, 52 - math.ceil(math.log2(most)))
        integers = np.rint(np.concatenate([linear, square], axis=1) * 2.0**self._bits)
        self._factors = np.ascontiguousarray(integers.T)
        constant = (means**2 / variances + np.log(2 * np.pi * variances)).sum(axis=1)
        self._constant = np.log(np.maximum(weights, 1e-300)) - 0.5 * constant

    @property
    def components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @classmethod
    def of(cls, model: Model) -> Mixture:
        """The mixture of a model."""
        return cls(*(np.asarray(model.arrays[name], np.float64) for name in NAMES))

    def demand(self, components: int) -> Mixture:
        """This mixture, with so many components.

        Raises:
            ConfigError: it has another number of them.
        """
        if self.components != components:
            raise families.MISMATCH.of(ConfigError)(
                "the model has {count} component{s}, and the option components is {components}",
                "set components: {count}, or name another model",
                count=self.components,
                components=components,
            )
        return self

    def model(self, settings: dict[str, object]) -> Model:
        """The mixture as a model."""
        arrays = (self.mean, self.deviation, self.weights, self.means, self.variances)
        return Model("gmm", 1, dict(zip(NAMES, arrays, strict=True)), settings)

    def logits(self, frames: NDArray[np.floating[Any]]) -> Floats:
        """Frames and their squares as integers: float64 (frames, 2 x columns)."""
        columns = len(self.mean)
        both = np.empty((len(frames), 2 * columns))
        steps, squares = both[:, :columns], both[:, columns:]
        np.subtract(frames, self.mean, out=steps)
        steps /= self.deviation
        steps *= _STEPS
        np.clip(np.rint(steps, out=steps), -_CUT, _CUT, out=steps)
        np.multiply(steps, steps, out=squares)
        squares /= _STEPS
        np.rint(squares, out=squares)
        return both

    def logarithms(self, integers: Floats) -> Floats:
        """ln of weight times density of each component: float64 (frames, components), for the result of `logits`.

        Densities are in units of the normalised frames.
        """
        logarithms: Floats = integers @ self._factors
        logarithms *= 2.0**-self._bits / _STEPS
        logarithms += self._constant
        return logarithms

    def posteriors(self, frames: NDArray[np.floating[Any]], scale: float = 1.0) -> Floats:
        """Posteriors of the components: float64 (frames, components); log densities are multiplied by `scale` first."""
        values = self.logarithms(self.logits(frames))
        values *= scale
        values -= values.max(axis=1, keepdims=True, initial=-np.inf)
        np.exp(values, out=values)
        values /= values.sum(axis=1, keepdims=True)
        return values


#: Arrays of a model.
NAMES = ("mean", "deviation", "weights", "means", "variances")


class Expected(NamedTuple):
    """Sums over frames for one round of expectation maximisation.

    Attributes:
        counts: int64 (components,), posteriors in steps of 2^-16.
        sums: int64 (components, 2 x columns), posteriors times frames, and times their squares.
        likelihood: sum of ln densities, in steps of 2^-20.
    """

    counts: Ints
    sums: Ints
    likelihood: int

    @classmethod
    def of(cls, mixture: Mixture, blocks: list[Singles]) -> Expected:
        """Sums over blocks of float32 (frames, columns)."""
        counts = np.zeros(mixture.components, np.int64)
        sums = np.zeros((mixture.components, 2 * len(mixture.mean)), np.int64)
        likelihood = 0
        for block in blocks:
            for first in range(0, len(block), _ROWS):
                integers = mixture.logits(block[first : first + _ROWS])
                logarithms = mixture.logarithms(integers)
                most = logarithms.max(axis=1, keepdims=True)
                logarithms -= most
                posteriors = np.exp(logarithms, out=logarithms)
                total = posteriors.sum(axis=1, keepdims=True)
                posteriors /= total
                posteriors *= _POSTERIOR_STEPS
                np.rint(posteriors, out=posteriors)
                counts += posteriors.sum(axis=0).astype(np.int64)
                sums += (posteriors.T @ integers).astype(np.int64)
                likelihood += int(np.rint((most + np.log(total)) * _LIKELIHOOD_STEPS).sum())
        return cls(counts, sums, likelihood)


class MixtureRounds:
    """The fitting procedure of a mixture.

    Args:
        components: number of components.
        iterations: rounds after the last split.
        least_variance: lower bound of a component's variance, relative to the variance of all frames.
        speech: whether to use speech frames only.
        chosen: whether somebody chose the number of components; otherwise few frames make fewer.
    """

    def __init__(
        self, components: int, iterations: int, least_variance: float, *, speech: bool = True, chosen: bool = True
    ) -> None:
        self.components, self.iterations, self.least_variance = components, iterations, least_variance
        self.speech, self._chosen = speech, chosen
        self._known: tuple[Model, Mixture] | None = None  # the mixture of a round

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of a document: in the first round sums of frames and squares, later sums weighted by posteriors."""
        if model is None:
            return Sums.of_document(document).totals()
        if self._known is None or self._known[0] is not model:
            self._known = model, Mixture.of(model)
        expected = Expected.of(self._known[1], document.blocks)
        frames = sum(map(len, document.blocks))
        return {"frames": np.array([frames, expected.likelihood]), "counts": expected.counts, "sums": expected.sums}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The next mixture.

        Raises:
            ConfigError: there are too few frames for the chosen number of components.
        """
        if model is None:
            sums = Sums.of_totals(totals)
            enough = max(1, int(sums.frames / _FEWEST))
            if enough < self.components and self._chosen:
                raise families.NOTHING_TO_FIT.of(ConfigError)(
                    "{frames} frames are too few for {components} components",
                    "use fewer components, or fit to more documents (hours)",
                    where="components",
                    frames=sums.frames,
                    components=self.components,
                )
            mean, deviation = sums.mean_and_deviation()
            unit = np.ones((1, len(mean)))
            first = Mixture(mean, deviation, np.ones(1), 0 * unit, unit)
            return self._going_on(first, [], 0, min(enough, self.components))
        before = Mixture.of(model)
        frames, likelihood = totals["frames"].tolist()
        likelihoods_so_far: Any = model.settings["likelihoods"]
        likelihoods = [*likelihoods_so_far, round(likelihood / _LIKELIHOOD_STEPS / frames, 6)]
        left: Any = model.settings["left"]
        most: Any = model.settings.get("most", self.components)
        return self._going_on(self._maximised(before, totals, frames), likelihoods, left - 1, most)

    def towards(self, previous: Model | None, totals: Totals) -> Step:
        """The next mixture, if another round follows the mixture's last; a final mixture `is_done`."""
        model, done = self.go_on(previous, totals)
        return Step(replace(model, name=_DONE) if done else model, False)

    @staticmethod
    def is_done(model: Model | None) -> TypeGuard[Model]:
        """Whether the mixture of `towards` is final."""
        return model is not None and model.name == _DONE

    def _going_on(self, mixture: Mixture, likelihoods: list[float], left: int, most: int) -> Step:
        """Continue with another round, a split, or the end, at so many components."""
        done = left <= 0 and mixture.components == most
        settings: dict[str, object] = {"likelihoods": likelihoods}
        if most < self.components:
            settings |= {"most": most, FEWER: self.components}
        if left <= 0 and not done:
            mixture = split(mixture, most)
            left = _BETWEEN if mixture.components < most else self.iterations
        elif done and not likelihoods and self.iterations:  # a mixture with one component is never split
            return Step(mixture.model(settings), True)
        return Step(mixture.model(settings if done else {**settings, "left": left}), done)

    def _maximised(self, before: Mixture, totals: Totals, frames: int) -> Mixture:
        counts, sums = totals["counts"] / _POSTERIOR_STEPS, totals["sums"] / (_POSTERIOR_STEPS * _STEPS)
        columns = len(before.mean)
        enough = (counts >= _FEWEST)[:, None]
        many = np.maximum(counts, _FEWEST)[:, None]
        means = np.where(enough, sums[:, :columns] / many, before.means)
        variances = np.where(enough, sums[:, columns:] / many - means**2, before.variances)
        weights = np.maximum(counts, 1.0)
        return Mixture(
            before.mean, before.deviation, weights / weights.sum(), means, np.maximum(variances, self.least_variance)
        )


def split(mixture: Mixture, most: int) -> Mixture:
    """Split each component in two, up to `most` in all; those of the largest weight first."""
    chosen = np.argsort(-mixture.weights, kind="stable")[: most - mixture.components]
    shift = _APART * _signs(chosen.tolist(), mixture) * np.sqrt(mixture.variances[chosen])
    weights, means = mixture.weights.copy(), mixture.means.copy()
    weights[chosen] /= 2
    means[chosen] -= shift
    return Mixture(
        mixture.mean,
        mixture.deviation,
        np.concatenate([weights, weights[chosen]]),
        np.concatenate([means, mixture.means[chosen] + shift]),
        np.concatenate([mixture.variances, mixture.variances[chosen]]),
    )


def _signs(chosen: list[int], mixture: Mixture) -> Floats:
    """1 or -1 for each column of some components. Equal signs throughout would never separate the two sides of a
    diagonal.
    """
    signs = np.empty((len(chosen), len(mixture.mean)))
    for row, component in enumerate(chosen):
        for column in range(signs.shape[1]):
            name = f"{mixture.components}.{component}.{column}".encode()
            signs[row, column] = 1 if hashlib.blake2b(name, digest_size=1).digest()[0] % 2 else -1
    return signs


def mixture_model(weights: Floats, means: Floats, variances: Floats) -> Model:
    """The model of a mixture that was fitted elsewhere; write it with `Model.save`.

    Args:
        weights: (components,), above 0.
        means, variances: (components, columns), in the units of the features; variances above 0.

    Raises:
        ValueError: shapes do not fit, or a number is out of range.
    """
    arrays = np.asarray(weights, np.float64), np.asarray(means, np.float64), np.asarray(variances, np.float64)
    part, centres, widths = arrays
    right = part.ndim == 1 and centres.ndim == 2 and centres.shape == widths.shape and len(part) == len(centres) > 0
    if (
        not right
        or not all(np.isfinite(item).all() for item in arrays)
        or not (part > 0).all()
        or not (widths > 0).all()
    ):
        raise ValueError(
            "weights must be (components,) above 0, means (components, columns), variances alike above 0; finite"
        )
    part = part / part.sum()
    mean = part @ centres
    deviation = np.sqrt(part @ (widths + centres**2) - mean**2)
    return Mixture(mean, deviation, part, (centres - mean) / deviation, widths / deviation**2).model({})


_PHONES_STEPS = 1 << 16


class Estimator(NamedTuple):
    """A mixture, and probabilities of phones given its components: float64 (components, phones), whose rows sum to 1."""

    mixture: Mixture
    conditional: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: Model) -> Estimator:
        """The estimator of a model."""
        labels = model.settings["labels"]
        assert isinstance(labels, list)
        return cls(Mixture.of(model), np.asarray(model.arrays["conditional"], np.float64), tuple(labels))

    def posteriors(self, frames: Singles, scale: float) -> Floats:
        """Posteriors of phones: float64 (frames, phones)."""
        posteriors = np.empty((len(frames), len(self.names)))
        # Integers, so that the sum over components is exact: 2^20 times 2^20 times at most 4096 components is below
        # 2^53.
        conditional = np.rint(self.conditional * 2**20)
        for first in range(0, len(frames), _ROWS):
            classes = np.rint(self.mixture.posteriors(frames[first : first + _ROWS], scale) * 2**20)
            posteriors[first : first + _ROWS] = classes @ conditional
        return np.asarray(posteriors / np.maximum(posteriors.sum(axis=1, keepdims=True), 1), np.float64)


class PhoneRounds:
    """The rounds of a mixture, and one that counts.

    Args:
        mixture: the rounds of the mixture.
        names: labels.
        prior: number of frames that smooth p(phone | component).
    """

    def __init__(self, mixture: MixtureRounds, names: Sequence[str], prior: float) -> None:
        self.mixture, self.names, self.prior = mixture, tuple(names), prior
        self.speech = mixture.speech

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of the mixture; in the last round posteriors by label."""
        if not self.mixture.is_done(model):
            return self.mixture.totals(model, document)
        frames, labels = labelled(document)
        mixture = Mixture.of(model)
        counts = np.zeros((len(self.names), mixture.components), np.int64)
        for first in range(0, len(frames), _ROWS):
            weights = np.rint(mixture.posteriors(frames[first : first + _ROWS]) * _PHONES_STEPS).astype(np.int64)
            np.add.at(counts, labels[first : first + _ROWS], weights)
        return {"counts": counts}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The next mixture; after the last round the estimator.

        Raises:
            DataError: no frame has a label.
        """
        if not self.mixture.is_done(model):
            return self.mixture.towards(model, totals)
        counts = totals["counts"] / _PHONES_STEPS
        used = counts.sum(axis=1) >= 1
        if not used.any():
            raise no_labels("phones")
        of_phones = counts[used]
        spread = of_phones.sum(axis=1) / of_phones.sum()
        smoothed = of_phones.T + self.prior * spread
        conditional = smoothed / smoothed.sum(axis=1, keepdims=True)
        names = [name for name, is_used in zip(self.names, used.tolist(), strict=True) if is_used]
        settings = {**model.settings, "labels": names}
        return Step(Model("phones", 1, {**model.arrays, "conditional": conditional}, settings), True)


#: Least number of frames of a speaker, and of a document.
_FEWEST_FRAMES = 30

_SPEAKER = "speaker."


class WarpRounds:
    """The rounds of a mixture on unwarped frames, and one for the factors.

    Args:
        mixture: the rounds of the mixture.
        factors: the grid, in the order of the columns; contains 1.
    """

    def __init__(self, mixture: MixtureRounds, factors: Sequence[float]) -> None:
        self.mixture, self.factors = mixture, list(factors)
        self.speech = mixture.speech

    def totals(self, model: Model | None, document: Document) -> Totals:
        """Totals of the mixture; in the last round likelihoods under each factor, by speaker."""
        frames = np.concatenate(document.blocks)
        under = np.split(frames, len(self.factors), axis=1)
        if not self.mixture.is_done(model):
            plain = under[self.factors.index(1.0)]
            block = normalised(plain) if len(plain) >= _FEWEST_FRAMES else plain[:0]
            return self.mixture.totals(model, Document([block.astype(np.float32)]))
        if document.speaker is None or len(frames) < _FEWEST_FRAMES:
            return {}
        sums = likelihoods(Mixture.of(model), under)
        return {f"{_SPEAKER}{document.speaker.encode().hex()}": np.array([len(frames), *sums], object)}

    def go_on(self, model: Model | None, totals: Totals) -> Step:
        """The next mixture; after the last round the best factor of each speaker."""
        if not self.mixture.is_done(model):
            return self.mixture.towards(model, totals)
        chosen: dict[str, float] = {}
        for name in sorted(totals):
            frames, *sums = totals[name].tolist()
            if frames >= _FEWEST_FRAMES:
                speaker = bytes.fromhex(name.removeprefix(_SPEAKER)).decode()
                chosen[speaker] = self.factors[self.best(sums, self.factors)]
        settings: dict[str, object] = {**model.settings, "speakers": list(chosen)}
        arrays: dict[str, NDArray[Any]] = {**model.arrays, "factors": np.array(list(chosen.values()), np.float64)}
        return Step(Model("vtln", 1, arrays, settings), True)

    @staticmethod
    def best(sums: Sequence[int], factors: Sequence[float]) -> int:
        """Index of the most likely factor; the one nearest to 1 wins ties."""
        return max(range(len(factors)), key=lambda k: (sums[k], -abs(factors[k] - 1), -k))


def normalised(frames: Singles) -> Floats:
    """Frames normalised to mean 0 and variance 1: float64 (frames, columns)."""
    values = frames.astype(np.float64)
    values -= values.mean(axis=0)
    deviation = values.std(axis=0)
    scaled: Floats = values / np.where(deviation > 1e-6, deviation, 1.0)
    return scaled


def likelihoods(mixture: Mixture, under: Sequence[Singles]) -> list[int]:
    """Sum of ln densities for each factor, in steps of 2^-20.

    Args:
        mixture: of unwarped frames.
        under: float32 (frames, columns), the same frames under each factor.
    """
    if not len(under[0]):
        return [0] * len(under)
    return [Expected.of(mixture, [normalised(item).astype(np.float32)]).likelihood for item in under]
