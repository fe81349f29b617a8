"""Extractors and transforms of a config that are fitted, and the models that the store has of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.config.corpus import Corpus
from swsdist.config.model import Features, Transforming
from swsdist.core.codes import stages as codes
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import fingerprint
from swsdist.features.extractors import create, create_transform, identity, recipe_fingerprint
from swsdist.features.fitting.interface import Fitted, Learning, Supervision
from swsdist.features.fitting.labels import identity_of
from swsdist.features.interface import Precomputed
from swsdist.features.sources import Planned
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES, TRANSFORMS


class UnfittedModel(NamedTuple):
    """A transform, or an extractor, that is fitted by the chain.

    Attributes:
        track: that it is of, for people.
        place: number of its extractor in the config, and its own behind it; of an extractor -1.
        planned: the extractor of what it is fitted on.
        fitted, options: it, and its options, without a model.
        file: the model's name in the store: of the extractor, the transforms before, the options that matter, and labels.
        labels: path and SHA-256 of the labels that it is fitted by; None: it needs none.
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
        return any(_extractor(one) or any(_transform(each) for each in one.transforms) for one in features)
    except ConfigError:
        return False  # what is wrong with one is told where it is made


def _transform(one: Transforming) -> Fitted | None:
    """It, if it is to be fitted.

    Raises:
        ConfigError: an option is not valid.
    """
    made = TRANSFORMS[one.name].load()
    if not all(hasattr(made, name) for name in ("rounds", "with_model")):
        return None
    transform: Fitted = create_transform(one.name, one.options)
    return transform if transform.model is None else None


def _extractor(one: Features) -> Learning | None:
    """The same of an extractor."""
    if not hasattr(FEATURES[one.name].load(), "learns_from"):
        return None
    made = create(one.name, one.options)
    return made if isinstance(made, Learning) and made.learns else None


def with_models(
    features: Sequence[Features], corpus: Corpus, store: Folder
) -> tuple[list[Features], list[UnfittedModel]]:
    """The same features, with the models that the store has in their places; and all that is fitted, as far as it is known.

    What is fitted behind something that is to be fitted first is not known before the model of that is there.

    Raises:
        ConfigError: labels are wanted and there are none.
    """
    made, found = list(features), []
    for k, one in enumerate(features):
        for j in range(-1, len(one.transforms)):
            fitted = _extractor(one) if j < 0 else _transform(one.transforms[j])
            if fitted is None:
                continue
            pending = _unfitted_model(made[k], (k, j), fitted, corpus)
            found.append(pending)
            if not store.exists(pending.file):
                break
            made[k] = _with_model(made[k], pending, store)
    return made, found


def _unfitted_model(one: Features, place: tuple[int, int], fitted: Fitted, corpus: Corpus) -> UnfittedModel:
    """Something of an extractor that is fitted; what stands before it has its models."""
    of, before = (
        dict(one.options),
        tuple((each.name, dict(each.options)) for each in one.transforms[: max(place[1], 0)]),
    )
    if isinstance(fitted, Learning):
        of = fitted.learns_from()
    extractor = create(one.name, of, transforms=before)
    if isinstance(extractor, Precomputed):
        raise codes.FIT_NEEDS_AUDIO(where="features", transform=fitted.name, extractor=one.name)
    recipe = recipe_fingerprint(identity(extractor))
    options = one.options if place[1] < 0 else one.transforms[place[1]].options
    labels = _labels(fitted, fitted.name, corpus) if isinstance(fitted, Supervision) else None
    # What a corpus without parts and labels has is as it was before there were any.
    rest: list[object] = [labels[1]] if labels else []
    if (part := corpus.parts.train) is not None:
        rest.append(_table(part) if isinstance(part, str) else sorted(part))
    named = fingerprint("fit-transforms", 1, recipe, fitted.name, fitted.version, fitted.matters(), *rest)
    file = f"models/{fitted.name}-{named}.npz"
    return UnfittedModel(
        one.track or one.name, place, Planned(one.name, of, recipe, before), fitted, dict(options), file, labels
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


def _with_model(one: Features, pending: UnfittedModel, store: Folder) -> Features:
    """An extractor with the model that the store has of it, or of a transform behind it."""
    options, place = pending.fitted.with_model(store.path(pending.file)), pending.place[1]
    if place < 0:
        return one.model_copy(update={"options": options})
    transforms = list(one.transforms)
    transforms[place] = transforms[place].model_copy(update={"options": options})
    return one.model_copy(update={"transforms": tuple(transforms)})


def pinned_names(fitted: Sequence[UnfittedModel]) -> dict[str, str]:
    """What the models of a store are pinned as, and their files: `pca.TRACK`, and a second one of a track `pca.2.TRACK`."""
    found: dict[str, str] = {}
    for one in fitted:
        names = (f"{one.fitted.name}{number}.{one.track}" for number in ("", *(f".{k}" for k in range(2, 100))))
        found[next(name for name in names if name not in found)] = one.file
    return found
