"""Extractors and transforms of a config that need fitting, and their models in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.config.corpus import Corpus
from swsdist.config.model import Features, Transforming
from swsdist.core.codes import stages as codes
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import fingerprint
from swsdist.features.extractors import create, create_transform, identity, recipe_fingerprint
from swsdist.features.fitting.files import identity_of
from swsdist.features.fitting.interface import Fitted, Learning, Supervision
from swsdist.features.sources import Planned
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES, TRANSFORMS
from swsdist.store.manifest import load


class UnfittedModel(NamedTuple):
    """A transform or extractor that the chain fits.

    Attributes:
        track: its track, for people.
        place: index of its extractor in the config, and of the transform in it; -1 for the extractor itself.
        planned: the extractor of the frames that it is fitted on.
        fitted, options: the transform or extractor, and its options, without a model.
        file: the model's name in the store: of the extractor, the transforms before, the options that matter, and
            labels.
        labels: path and SHA-256 of the labels for fitting; None if it needs no labels.
    """

    track: str
    place: tuple[int, int]
    planned: Planned
    fitted: Fitted
    options: dict[str, object]
    file: str
    labels: tuple[str, str] | None = None

    @property
    def of_extractor(self) -> bool:
        """Whether it is an extractor."""
        return self.place[1] < 0


def is_fitted(features: Sequence[Features]) -> bool:
    """Whether a config has an extractor or a transform that is fitted."""
    try:
        return any(_extractor(feature) or any(_transform(each) for each in feature.transforms) for feature in features)
    except ConfigError:
        return False  # code that makes the extractor reports the fault


def _transform(transforming: Transforming) -> Fitted | None:
    """The transform, if it needs fitting.

    Raises:
        ConfigError: an option is not valid.
    """
    result = TRANSFORMS[transforming.name].load()
    if not all(hasattr(result, name) for name in ("rounds", "with_model")):
        return None
    transform: Fitted = create_transform(transforming.name, transforming.options)
    return transform if transform.model is None else None


def _extractor(features: Features) -> Learning | None:
    """The extractor, if it needs fitting."""
    if not hasattr(FEATURES[features.name].load(), "learns_from"):
        return None
    result = create(features.name, features.options)
    return result if isinstance(result, Learning) and result.learns else None


def with_models(
    features: Sequence[Features], corpus: Corpus, store: Folder, anew: bool = False
) -> tuple[list[Features], list[UnfittedModel]]:
    """The features with the store's models filled in; and the models to fit, as far as known.

    Models behind an unfitted one are unknown until that is fitted. With `anew` they are the successors of those that the
    store pins; without, too, as far as they are there: their index was interrupted.

    Raises:
        ConfigError: labels are required and missing.
    """
    result, matches, manifest = list(features), [], load(store)
    pinned = [] if manifest is None else [*manifest.models.values()]
    for k, item in enumerate(features):
        for j in range(-1, len(item.transforms)):
            fitted = _extractor(item) if j < 0 else _transform(item.transforms[j])
            if fitted is None:
                continue
            pending = _unfitted_model(result[k], (k, j), fitted, corpus)
            now = next((file for file in pinned if stem_of(file) == stem_of(pending.file)), None)
            after = pending.file if now is None else _successor(now)
            pending = pending._replace(file=after if now is None or anew or store.exists(after) else now)
            matches.append(pending)
            if not store.exists(pending.file):
                break
            result[k] = _with_model(result[k], pending, store)
    return result, matches


def stem_of(file: str) -> str:
    """What files of a model and of its successors have in common."""
    return file.partition(".")[0]


def _successor(file: str) -> str:
    """The file of the model that replaces another, which searches read until the store is indexed with the new one."""
    stem, *numbers, ending = file.split(".")
    return f"{stem}.{int(numbers[0]) + 1 if numbers else 2}.{ending}"


def _unfitted_model(features: Features, place: tuple[int, int], fitted: Fitted, corpus: Corpus) -> UnfittedModel:
    """The unfitted model at a place; everything before it has its models."""
    of, before = (
        dict(features.options),
        tuple((each.name, dict(each.options)) for each in features.transforms[: max(place[1], 0)]),
    )
    if isinstance(fitted, Learning):
        of = fitted.learns_from()
    extractor = create(features.name, of, transforms=before)
    recipe = recipe_fingerprint(identity(extractor))
    options = features.options if place[1] < 0 else features.transforms[place[1]].options
    labels = _labels(fitted, fitted.name, corpus) if isinstance(fitted, Supervision) else None
    # Keeps fingerprints of corpora without parts and labels unchanged.
    rest: list[object] = [labels[1]] if labels else []
    if (part := corpus.parts.train) is not None:
        rest.append(_table(part) if isinstance(part, str) else sorted(part))
    named = fingerprint("fit-transforms", 1, recipe, fitted.name, fitted.version, fitted.matters(), *rest)
    file = f"models/{fitted.name}-{named}.npz"
    return UnfittedModel(
        features.track or features.name,
        place,
        Planned(features.name, of, recipe, before),
        fitted,
        dict(options),
        file,
        labels,
    )


def _table(part: str) -> str:
    try:
        return identity_of(part)
    except ConfigError:
        raise codes.UNREADABLE_PART(where=f"corpus.parts.train: {part}") from None


def _labels(fitted: Supervision, name: str, corpus: Corpus) -> tuple[str, str]:
    path = fitted.labels or corpus.alignments.phones
    if path is None:
        raise codes.NO_LABELS(where="corpus.alignments.phones", transform=name)
    return path, identity_of(path)


def _with_model(features: Features, pending: UnfittedModel, store: Folder) -> Features:
    """An extractor with the store's model for it, or for one of its transforms."""
    options, place = pending.fitted.with_model(store.path(pending.file)), pending.place[1]
    if place < 0:
        return features.model_copy(update={"options": options})
    transforms = list(features.transforms)
    transforms[place] = transforms[place].model_copy(update={"options": options})
    return features.model_copy(update={"transforms": tuple(transforms)})


def pinned_names(fitted: Sequence[UnfittedModel]) -> dict[str, str]:
    """Pinned names and files of a store's models: `pca.TRACK`, and the second of a track `pca.2.TRACK`."""
    result: dict[str, str] = {}
    for item in fitted:
        names = (f"{item.fitted.name}{number}.{item.track}" for number in ("", *(f".{k}" for k in range(2, 100))))
        result[next(name for name in names if name not in result)] = item.file
    return result
