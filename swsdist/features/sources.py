"""Create the extractors of a config's section `features`, and name their tracks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.config.model import Features
from swsdist.core.codes import features as codes
from swsdist.core.needs import Needs
from swsdist.features.extractors import create, demand, identity, recipe_fingerprint
from swsdist.features.interface import (
    Columns,
    Dtype,
    Extractor,
    Precomputed,
    columns_of,
    dtype_of,
    frame_shift,
    needs_of,
    tracks_of,
    use,
)


class Planned(NamedTuple):
    """Name, options and recipe fingerprint of an extractor, enough for a task to create it."""

    name: str
    options: dict[str, object]
    recipe: str
    transforms: tuple[tuple[str, dict[str, object]], ...] = ()
    dtype: Dtype = "float32"

    def granted(self, needs: Needs) -> Extractor | Precomputed:
        """Create the extractor on this machine, with the resources of this worker.

        Raises:
            DataError: it differs from the planned one.
        """
        extractor = create(self.name, self.options, transforms=self.transforms, dtype=self.dtype)
        demand(extractor, self.recipe)
        use(extractor, needs)
        return extractor


class Source(NamedTuple):
    """An extractor of a config.

    Attributes:
        name, options: as in the config.
        extractor: created from them, with its transforms.
        fingerprint: of its recipe.
        tracks: names in the store, and columns of the extractor; one, or as many as it yields in a pass.
    """

    name: str
    options: dict[str, object]
    extractor: Extractor | Precomputed
    fingerprint: str
    tracks: tuple[Columns, ...]
    transforms: tuple[tuple[str, dict[str, object]], ...] = ()

    @property
    def planned(self) -> Planned:
        """The plan for tasks."""
        return Planned(self.name, self.options, self.fingerprint, self.transforms, dtype_of(self.extractor))

    def columns(self, track: Columns) -> tuple[str, ...]:
        """Names of a track's dimensions."""
        named = columns_of(self.extractor)[track.first : track.stop]
        plain = named == tuple(f"c{k}" for k in range(track.first, track.stop))
        return tuple(f"c{k}" for k in range(len(named))) if plain else named


def sources_of(features: Sequence[Features]) -> tuple[Source, ...]:
    """The sources of a config, in order.

    The name of an extractor's only track is `track` in the config, by default the name of the extractor. An extractor
    of several tracks names them itself; `track` is then a prefix: `track.name`.

    Raises:
        ConfigError: an extractor cannot be created.
        UserError: two tracks have one name, or frame shifts differ.
    """
    sources = []
    for feature in features:
        transforms = tuple((transform.name, dict(transform.options)) for transform in feature.transforms)
        extractor = create(feature.name, feature.options, transforms=transforms, dtype=feature.dtype)
        yielded = tracks_of(extractor)
        if len(yielded) == 1:
            tracks: tuple[Columns, ...] = (yielded[0]._replace(name=feature.track or feature.name),)
        else:
            tracks = tuple(
                item._replace(name=f"{feature.track}.{item.name}" if feature.track else item.name) for item in yielded
            )
        fingerprint = recipe_fingerprint(identity(extractor))
        sources.append(Source(feature.name, dict(feature.options), extractor, fingerprint, tracks, transforms))
    names = [track.name for source in sources for track in source.tracks]
    for name in names:
        if names.count(name) > 1:
            raise codes.DUPLICATE_TRACK_NAME(where="features", count=names.count(name), name=name)
    recipes = [source.fingerprint for source in sources]
    for source in sources:
        if recipes.count(source.fingerprint) > 1:
            fix = (
                "give each a different `what`, which describes the frames"
                if isinstance(source.extractor, Precomputed)
                else "name it once; search.streams may use a track several times"
            )
            raise codes.DUPLICATE_EXTRACTOR(where="features", name=source.name, fix=fix)
    for source in sources[1:]:
        # A shift is a quotient of integers; compare without division.
        leading, other = sources[0].extractor, source.extractor
        if leading.hop * other.sample_rate != other.hop * leading.sample_rate:
            raise codes.UNEQUAL_FRAME_SHIFTS(
                where="features",
                first=sources[0].tracks[0].name,
                second=source.tracks[0].name,
                first_shift=frame_shift(leading),
                second_shift=frame_shift(other),
                fix=_remedy(sources[0], source),
            )
    return tuple(sources)


def _remedy(leading: Source, other: Source) -> str:
    """The option that would equalise the shifts of two extractors: the `hop_length` of one that has it."""
    for changed, given in ((other, leading), (leading, other)):
        hop, rest = divmod(given.extractor.hop * changed.extractor.sample_rate, given.extractor.sample_rate)
        if hasattr(changed.extractor, "hop_length") and not rest:
            return f"give {changed.tracks[0].name} the option hop_length: {hop}"
    return "set the options of the extractors so"


def together(alternatives: Sequence[Sequence[Needs]]) -> tuple[Needs, ...]:
    """Needs that suffice for each of several extractors: the maximum of their best alternatives, of their second, and so on."""
    longest = max(len(alternative) for alternative in alternatives)
    rows = [[alternative[min(k, len(alternative) - 1)] for alternative in alternatives] for k in range(longest)]
    return tuple(
        Needs(max(item.cpus for item in row), max(item.memory_gb for item in row), max(item.gpus for item in row))
        for row in rows
    )


def needs_of_all(features: Sequence[Features]) -> tuple[Needs, ...]:
    """Needs that suffice for each extractor of a config."""
    return together([needs_of(source.extractor) for source in sources_of(features)])
