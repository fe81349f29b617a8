"""Extractors and transforms of a config that are fitted, and the models that the store has of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.config.model import Features, Transforming
from swsdist.errors import ConfigError
from swsdist.features.interface import Given
from swsdist.features.registry import create, identity, recipe_fingerprint
from swsdist.features.transforms.fitted import Fitted, Learning
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.registries import FEATURES, TRANSFORMS


class Pending(NamedTuple):
    """A transform, or an extractor, that is fitted by the chain.

    Attributes:
        track: that it is of, for people.
        place: number of its extractor in the config, and its own behind it; of an extractor -1.
        payload: what makes the extractor of what it is fitted on (`features.sources.planned`).
        transform, options: it, and its options, without a model.
        file: the model's name in the store: of the extractor, the transforms before, and the options.
    """

    track: str
    place: tuple[int, int]
    payload: dict[str, object]
    transform: Fitted
    options: dict[str, object]
    file: str

    @property
    def of_extractor(self) -> bool:
        """Whether it is an extractor."""
        return self.place[1] < 0


def is_fitted(features: Sequence[Features]) -> bool:
    """Whether a config has an extractor or a transform that is fitted."""
    try:
        return any(_extractor(one) or any(_transform(each) for each in one.transforms) for one in features)
    except (ConfigError, ValueError):
        return False  # what is wrong with one is told where it is made


def _transform(one: Transforming) -> Fitted | None:
    """It, if it is to be fitted."""
    made = TRANSFORMS[one.name].load()
    if not all(hasattr(made, name) for name in ("solve", "with_model")):
        return None
    transform: Fitted = made(**one.options)
    return transform if transform.model is None else None


def _extractor(one: Features) -> Learning | None:
    """The same of an extractor."""
    if not hasattr(FEATURES[one.name].load(), "learns_from"):
        return None
    made = create(one.name, one.options)
    return made if isinstance(made, Learning) and made.learns else None


def extractors_of(features: Sequence[Features]) -> list[Pending]:
    """Extractors that are fitted."""
    return [
        _pending(one, (k, -1), made, one.options, (one.name, made.learns_from(), ()))
        for k, one in enumerate(features)
        if (made := _extractor(one)) is not None
    ]


def transforms_of(features: Sequence[Features]) -> list[Pending]:
    """Transforms that are fitted; those of extractors that are to be fitted first are left out.

    Raises:
        ConfigError: an extractor has two.
    """
    found = []
    for k, one in enumerate(features):
        places = [(j, made) for j, each in enumerate(one.transforms) if (made := _transform(each)) is not None]
        if len(places) > 1:
            raise ConfigError(
                "an extractor has two transforms that are fitted",
                where=f"features[{k}].transforms",
                remedy="leave one out, or name its model",
            )
        for j, made in places if _extractor(one) is None else ():
            before = tuple((each.name, dict(each.options)) for each in one.transforms[:j])
            found.append(_pending(one, (k, j), made, one.transforms[j].options, (one.name, dict(one.options), before)))
    return found


def _pending(
    one: Features,
    place: tuple[int, int],
    made: Fitted,
    options: dict[str, object],
    source: tuple[str, dict[str, object], tuple[tuple[str, dict[str, object]], ...]],
) -> Pending:
    name, of, before = source
    extractor = create(name, of, transforms=before)
    if isinstance(extractor, Given):
        raise ConfigError(
            f"{made.name} is fitted to what is computed of audio, and the frames of {name} are given",
            where="features",
            remedy="fit it where they were made, or name its model",
        )
    recipe = recipe_fingerprint(identity(extractor))
    payload: dict[str, object] = {
        "name": name,
        "options": of,
        "recipe": recipe,
        "transforms": [list(x) for x in before],
    }
    # What an extractor makes of its mean is not in the model's name: recognisers that share their energies share it.
    described = {"hours": made.hours} if place[1] < 0 else made.with_model("")
    described = {key: value for key, value in described.items() if key != "model"}
    named = fingerprint("fit-transforms", 1, recipe, made.name, made.version, described)
    return Pending(one.track or one.name, place, payload, made, dict(options), f"models/{made.name}-{named}.npz")


def with_models(features: Sequence[Features], fitted: Sequence[Pending], store: Folder) -> list[Features]:
    """The same, with the models that the store has in their places.

    Raises:
        ConfigError: the store is on S3.
    """
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
        (k, j), options = one.place, one.transform.with_model(store.path(one.file))
        if j < 0:
            made[k] = made[k].model_copy(update={"options": options})
            continue
        transforms = list(made[k].transforms)
        transforms[j] = transforms[j].model_copy(update={"options": options})
        made[k] = made[k].model_copy(update={"transforms": tuple(transforms)})
    return made
