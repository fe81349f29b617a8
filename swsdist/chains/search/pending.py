"""Transforms of a config that are fitted: which model of the store each has, and which are still to be fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.config.model import Features, Transforming
from swsdist.errors import ConfigError
from swsdist.features.registry import create, identity, recipe_fingerprint
from swsdist.features.transforms.fitted import Fitted
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.registries import TRANSFORMS


class Pending(NamedTuple):
    """A transform that is fitted by the chain.

    Attributes:
        track: that it is of, for people.
        place: number of its extractor in the config, and its own behind it.
        payload: what makes the extractor with the transforms before it (`features.sources.planned`).
        transform, options: it, and its options, without a model.
        file: the model's name in the store: of the extractor, the transforms before, and the options.
    """

    track: str
    place: tuple[int, int]
    payload: dict[str, object]
    transform: Fitted
    options: dict[str, object]
    file: str


def is_fitted(features: Sequence[Features]) -> bool:
    """Whether a config has a transform that is fitted."""
    return any(_fitted(each) is not None for one in features for each in one.transforms)


def _fitted(one: Transforming) -> Fitted | None:
    made = TRANSFORMS[one.name].load()
    if not all(hasattr(made, name) for name in ("solve", "with_model")):
        return None
    transform: Fitted = made(**one.options)
    return transform if transform.model is None else None


def fitted_of(features: Sequence[Features]) -> list[Pending]:
    """All of them.

    Raises:
        ConfigError: an extractor has two.
    """
    found = []
    for k, one in enumerate(features):
        places = [(j, made) for j, each in enumerate(one.transforms) if (made := _fitted(each)) is not None]
        if len(places) > 1:
            raise ConfigError(
                "an extractor has two transforms that are fitted",
                where=f"features[{k}].transforms",
                remedy="leave one out, or name its model",
            )
        for j, transform in places:
            before = tuple((each.name, dict(each.options)) for each in one.transforms[:j])
            recipe = recipe_fingerprint(identity(create(one.name, one.options, transforms=before)))
            payload: dict[str, object] = {
                "name": one.name,
                "options": dict(one.options),
                "recipe": recipe,
                "transforms": [list(each) for each in before],
            }
            options = dict(one.transforms[j].options)
            described = {name: value for name, value in transform.with_model("").items() if name != "model"}
            named = fingerprint("fit-transforms", 1, recipe, transform.name, transform.version, described)
            file = f"models/{transform.name}-{named}.npz"
            found.append(Pending(one.track or one.name, (k, j), payload, transform, options, file))
    return found


def with_models(features: Sequence[Features], fitted: Sequence[Pending], store: Folder) -> list[Features]:
    """The same, with the models that the store has in their places."""
    made = list(features)
    for one in fitted:
        if not store.exists(one.file):
            continue
        if store.local(one.file) is None:
            raise ConfigError(
                f"the model of {one.transform.name} lies on S3, and extractors read theirs from a disk",
                where="index.store",
                remedy="keep the store on a disk, or name the model: a copy of it on a disk of every machine",
            )
        k, j = one.place
        transforms = list(made[k].transforms)
        options = one.transform.with_model(store.path(one.file))
        transforms[j] = transforms[j].model_copy(update={"options": options})
        made[k] = made[k].model_copy(update={"transforms": tuple(transforms)})
    return made
