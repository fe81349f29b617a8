"""Create extractors and transforms by name, cache them, and identify them for fingerprints.

Names come from `swsdist.registry.registries.FEATURES` and from entry points of other packages. Interface:
`swsdist.features.interface`. Test: `swsdist.testing.conformance.check_extractor`.

The identity of an extractor is its name, version, options, chunking of long recordings, and the content (SHA-256) of
its files, without their paths: the same model in another folder is the same extractor.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from swsdist.config.model import Features
from swsdist.core.codes import error_of, families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, DataError, SwsdistError, UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.needs import Needs
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.interface import (
    Columns,
    Dtype,
    Extractor,
    Framed,
    Precomputed,
    WholeUtterance,
    columns_of,
    dtype_of,
    files_of,
    frame_shift,
    kind_of,
    needs_of,
    places_of,
    tracks_of,
    use,
)
from swsdist.features.transforms.interface import Transform, Transformed, transformed
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import local_file
from swsdist.io.local import retry_local
from swsdist.registry.registries import FEATURES, TRANSFORMS
from swsdist.registry.registry import Entry, Registry

#: Extractors cached per process: models are large, and a run uses few.
_CACHED = 8


class _FileState(NamedTuple):
    """Size and modification time of a file."""

    path: str
    size: int
    mtime_ns: int


_created: OrderedDict[str, tuple[Extractor | Precomputed, list[_FileState]]] = OrderedDict()
_sha256: dict[_FileState, str] = {}


def create(
    name: str,
    options: dict[str, object],
    where: str = "features",
    transforms: Sequence[tuple[str, dict[str, object]]] = (),
    dtype: Dtype = "float32",
) -> Extractor | Precomputed:
    """Create an extractor, or return the cached one if none of its files changed.

    Args:
        name: a registered one.
        options: by name; others have their defaults.
        where: place in the config, for errors.
        transforms: names and options of the transforms behind it, in order.
        dtype: that a store keeps the frames in.

    Raises:
        ConfigError: the name or an option is unknown, a value is invalid, or a file is missing, of the extractor or a
            transform; or a transform does not accept its input.
    """
    key = json.dumps([name, options, transforms, dtype], sort_keys=True, default=str)
    cached = _created.get(key)
    if cached is not None and cached[1] == _file_states(cached[0]):
        _created.move_to_end(key)
        return cached[0]
    extractor: Extractor | Precomputed = _build(FEATURES, name, options, where)
    if transforms or dtype != "float32":
        behind = [create_transform(transform, values, where) for transform, values in transforms]
        extractor = transformed(extractor, behind, dtype)
    _created[key] = extractor, _file_states(extractor)
    while len(_created) > _CACHED:
        _created.popitem(last=False)
    return extractor


def create_transform(name: str, options: dict[str, object], where: str = "features") -> Any:
    """Create a transform.

    Args:
        name: a registered one.
        options: by name; others have their defaults.
        where: the extractor before it, for errors.

    Raises:
        ConfigError: the options are invalid.
    """
    return _build(TRANSFORMS, name, options, f"{where}.transforms: {name}")


def _build(registry: Registry[Entry], name: str, options: dict[str, object], where: str) -> Any:
    """Create an extractor or a transform from its options."""
    entry = registry[name]
    try:
        return entry.load()(**options)
    except ValidationError as error:
        # Report invalid options before missing ones: a misspelt name is both.
        first = min(error.errors(), key=lambda problem: problem["type"] == "missing")
        # Pydantic reports each member of a union that a value is none of, and names the member last in the place.
        union = [
            other["msg"]
            for other in error.errors()
            if other["input"] is first["input"] and other["loc"][:-1] == first["loc"][:-1] != ()
        ]
        path = first["loc"][:-1] if len(union) > 1 else first["loc"]
        place = ".".join([f"{where}.options", *(str(part) for part in path)])
        if coded := error_of(first, place):
            raise coded from None
        if first["type"] == "extra_forbidden":
            fields = entry.load().model_fields
            raise registry.unknown_option(name, str(first["loc"][-1]), fields, place) from None
        problem = " or ".join(union or [first["msg"]]).removeprefix("Value error, ")
        raise codes.INVALID_FEATURE_OPTION(where=place, name=name, problem=problem) from None
    except (SwsdistError, OSError):
        raise
    except Exception as error:
        if entry.built_in:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise families.EXTENSION(
            "{name} cannot be created ({error}; {file}, line {line})",
            "check its options, or ask the author of {target}",
            where=where,
            name=name,
            error=f"{type(error).__name__}: {error}",
            file=last.filename,
            line=last.lineno,
            target=entry.target,
        ) from error


def identity(extractor: Extractor | Precomputed) -> dict[str, object]:
    """Everything the frames depend on except the samples, for fingerprints.

    Raises:
        ConfigError: one of its files cannot be read.
    """
    inner = extractor.inner if isinstance(extractor, Transformed) else extractor
    values = {**_identity(inner), "block_frames": BLOCK_FRAMES}
    if isinstance(extractor, Extractor) and extractor.context is None and isinstance(extractor, WholeUtterance):
        values["whole"] = [extractor.whole_frames, extractor.chunk_frames, extractor.overlap_frames]
    if kind_of(extractor) != "features":
        values["kind"] = kind_of(extractor)
    if isinstance(extractor, Transformed) and extractor.transforms:
        values["transforms"] = [_identity(transform) for transform in extractor.transforms]
    if dtype_of(extractor) != "float32":
        values["dtype"] = dtype_of(extractor)
    return values


def _identity(source: Framed | Transform) -> dict[str, object]:
    """Name, version and options, with the content of files and folders, without options that only name a place."""
    contents = {str(path): _content(state) for path, state in zip(files_of(source), _file_states(source), strict=True)}
    named = {name: _named(value, contents) for name, value in source.describe().items()}
    options = {
        name: value if named[name] is None else f"sha256:{named[name]}"
        for name, value in source.describe().items()
        if name not in places_of(source)
    }
    values: dict[str, object] = {"name": source.name, "version": source.version, "options": options}
    return {**values, "files": list(contents.values())} if contents else values


def recipe(extractor: Extractor | Precomputed) -> dict[str, object]:
    """The identity plus the options that name files, under `paths`, from which `create` can create the extractor again."""
    if not isinstance(extractor, Transformed):
        return {**identity(extractor), **_paths(extractor)}
    values: Any = identity(extractor)
    parts = zip(values.get("transforms", ()), extractor.transforms, strict=True)
    behind = [{**stored, **_paths(transform)} for stored, transform in parts]
    return {**values, **_paths(extractor.inner), **({"transforms": behind} if behind else {})}


def _paths(source: Framed | Transform) -> dict[str, object]:
    contents, places = {str(path): "" for path in files_of(source)}, places_of(source)
    paths = {
        name: value
        for name, value in source.describe().items()
        if name in places or _named(value, contents) is not None
    }
    return {"paths": paths} if paths else {}


def _named(value: object, contents: Mapping[str, str]) -> str | None:
    """Digest of the file, or of the files in a folder and their relative paths, that an option names; None if it names
    none.

    Args:
        value: of the option.
        contents: of the known files, by path.
    """
    if not isinstance(value, str) or not contents:  # without files, a string may still name a folder of frames
        return None
    path = local_file(value) if value.startswith("s3://") else Path(value)
    if str(path) in contents:
        return contents[str(path)]
    inside = {file: sha for file, sha in contents.items() if path.is_absolute() and Path(file).is_relative_to(path)}
    if not inside:
        return None
    places = sorted((Path(file).relative_to(path).as_posix(), sha) for file, sha in inside.items())
    return hashlib.sha256(json.dumps(places).encode()).hexdigest()


def recipe_fingerprint(stored: dict[str, Any]) -> str:
    """Fingerprint of an identity or a recipe, independent of the locations of files."""
    plain = _without_paths(stored)
    if "transforms" in stored:
        plain["transforms"] = [_without_paths(item) for item in stored["transforms"]]
    return fingerprint(plain)


def _without_paths(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in stored.items() if name != "paths"}


def from_recipe(stored: dict[str, Any]) -> Extractor | Precomputed:
    """Create the extractor of a recipe, for example of a store.

    Raises:
        ConfigError: it cannot be created here.
        DataError: the extractor created here differs.
    """
    (name, options), *transforms = (
        (item["name"], {**item["options"], **item.get("paths", {})}) for item in (stored, *stored.get("transforms", ()))
    )
    extractor = create(name, options, transforms=transforms, dtype=stored.get("dtype", "float32"))
    demand(extractor, recipe_fingerprint(stored))
    return extractor


def demand(extractor: Extractor | Precomputed, wanted: str) -> None:
    """Check that an extractor is the planned one; on another machine a file or a version may differ.

    Args:
        extractor: as created here.
        wanted: fingerprint of the planned identity.

    Raises:
        DataError: it differs.
    """
    if recipe_fingerprint(identity(extractor)) != wanted:
        files = ", ".join(str(path) for path in files_of(extractor)) or "it has no files"
        raise families.CHANGED_INPUT.of(DataError)(
            "extractor {name} differs from the one that was planned ({files})",
            "install the same version and the same files on every machine; or index again",
            where="features",
            name=extractor.name,
            files=files,
        )


def _file_states(source: Framed | Transform) -> list[_FileState]:
    """Current state of the files of an extractor or a transform."""
    states = []
    try:
        paths = files_of(source)
    except FileNotFoundError as error:
        raise families.MISSING_FILE.of(ConfigError)(
            "the object does not exist",
            "name a bucket and a key that exist: s3://BUCKET/KEY",
            where=f"features.options of {source.name}: {error.filename}",
        ) from error
    for path in paths:
        try:
            status = retry_local(Path(path).stat)
        except OSError as error:
            where = f"features.options of {source.name}: {path}"
            fault = as_file_fault(error, where)
            raise families.UNREADABLE_FILE(
                "the file cannot be read: {detail}", "{fix}", where=where, detail=fault.message, fix=fault.remedy or ""
            ) from error
        states.append(_FileState(str(path), status.st_size, status.st_mtime_ns))
    return states


def _content(state: _FileState) -> str:
    """SHA-256 of a file, computed once per state."""
    if state not in _sha256:
        with Path(state.path).open("rb") as file:
            _sha256[state] = hashlib.file_digest(file, "sha256").hexdigest()
    return _sha256[state]


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
            raise families.DUPLICATE_NAME.of(UserError)(
                "{count} tracks have the name {name}",
                "give each extractor its own `track`",
                where="features",
                count=names.count(name),
                name=name,
            )
    recipes = [source.fingerprint for source in sources]
    for source in sources:
        if recipes.count(source.fingerprint) > 1:
            fix = (
                "give each a different `what`, which describes the frames"
                if isinstance(source.extractor, Precomputed)
                else "name it once; search.streams may use a track several times"
            )
            raise families.DUPLICATE_NAME.of(UserError)(
                "extractor {name} occurs twice with the same options",
                "{fix}",
                where="features",
                name=source.name,
                fix=fix,
            )
    for source in sources[1:]:
        # A shift is a quotient of integers; compare without division.
        leading, other = sources[0].extractor, source.extractor
        if leading.hop * other.sample_rate != other.hop * leading.sample_rate:
            raise families.MISMATCH(
                "the frame shifts of {first} and {second} differ: {first_shift:g} s and {second_shift:g} s",
                "tracks of a store share one shift; {fix}, or make two stores",
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
