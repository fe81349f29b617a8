"""The section `search` of a config: distances, recurrence, first pass and candidates.

Names are those of `swsdist.registry.registries`, whose entries also list the options. A few options have keys (`floor`, `cap`,
`band`, `factor`); the others are in a mapping beside the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from swsdist.config.section import NameIn, Section, error_for_pydantic, execution_only
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.registry.entries import Options, checked, names_where
from swsdist.registry.registries import BACKENDS, DISTANCES, FIRST_PASSES, METHODS, RECURRENCES


class Dropping(NamedTuple):
    """Which frames are dropped, in columns of all tracks side by side; each pair is the first and the one after the last.

    Attributes:
        track: columns of the track.
        columns: those of its classes that are dropped.
        above: see `Drop`.
    """

    track: tuple[int, int]
    columns: tuple[int, int]
    above: float | None

    def moved(self, by: int) -> Dropping:
        """The same in columns that are counted from elsewhere."""
        (first, stop), (start, end) = self.track, self.columns
        return Dropping((first + by, stop + by), (start + by, end + by), self.above)


class Drop(Section):
    """Leaves out frames that are of some classes, such as silence, by a track of theirs."""

    track: str | None = Field(
        None,
        description="track with a column for each class; default: the track that is searched, if it is a single one",
    )
    columns: tuple[Annotated[int, Field(ge=0)], PositiveInt] = Field(
        description="first column of the classes to drop, counted from the track's first, and the one after the last"
    )
    above: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="drop a frame if the sum of these columns is greater; default: if the track's greatest is among them",
    )

    @model_validator(mode="after")
    def _has_columns(self) -> Drop:
        first, stop = self.columns
        if stop <= first:
            raise codes.EMPTY_STREAM.invalid(place="", first=first, stop=stop)
        return self

    def placed(self, tracks: Mapping[str, tuple[int, int]]) -> Dropping:
        """The same in columns of all tracks side by side.

        Args:
            tracks: by name: first column, and the one after the last.

        Raises:
            ConfigError: there is no such track or column, no class is left, or several tracks are searched and none is named.
        """
        track = next(iter(tracks)) if self.track is None and len(tracks) == 1 else self.track
        if track is None:
            raise families.MISSING_INPUT.of(ConfigError)(
                "several tracks are searched, and none is named that says which frames to drop",
                "name one of: {tracks}",
                where="search.drop.track",
                tracks=", ".join(tracks),
            )
        if track not in tracks:
            raise codes.NO_SUCH_TRACK(where="search.drop.track", track=track, tracks=", ".join(tracks))
        first, stop = tracks[track]
        start, end = self.columns
        if end > stop - first:
            raise codes.NO_SUCH_COLUMNS(where="search.drop.columns", track=track, columns=stop - first, stop=end)
        if end - start == stop - first:
            raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                "every column of the track {track} is of a class to drop",
                "name fewer of its columns",
                where="search.drop.columns",
                track=track,
            )
        return Dropping((first, stop), (first + start, first + end), self.above)


T = TypeVar("T")


class Keep(Section):
    """How many to keep: the larger of `least` and `per_second` times the seconds searched."""

    least: PositiveInt = Field(2, description="keep at least this many")
    per_second: float = Field(0.3, ge=0, description="and this many per second of searched audio")

    def count(self, seconds: float) -> int:
        """How many to keep from `seconds` of audio."""
        return max(self.least, int(self.per_second * seconds))


#: Normalisation of features before a distance.
Normalise = Literal["none", "mean", "mean-variance"]

#: Keys of the section `search` about parts of queries.
PARTS_KEYS = ("parts", "parts_gap", "parts_least")

#: Local distances.
DistanceName = Annotated[str, NameIn(DISTANCES)]

#: Added to probabilities, or to their inner product, before the logarithm.
Floor = Annotated[float, Field(ge=1e-10, le=0.1)]


class FeatureStream(Section):
    """A track, or columns of the features, with its own distance; null: as for the whole search."""

    track: str | None = Field(None, description="track of the store; default: columns count over all tracks")
    columns: tuple[Annotated[int, Field(ge=0)], PositiveInt] | None = Field(
        None, description="first column, from 0, and the one after the last; default: all of the track"
    )
    distance: DistanceName | None = Field(None, description="local distance of these columns")
    weight: Annotated[int, Field(ge=1, le=16)] = Field(1, description="weight of the distance in the sum")
    normalise: Normalise | None = Field(None, description="normalisation of these columns")
    floor: Floor | None = Field(None, description="as search.floor")
    cap: PositiveFloat | None = Field(None, description="as search.cap")
    options: dict[str, object] = Field(default_factory=dict, description="as search.distance_options")

    @model_validator(mode="after")
    def _has_columns(self) -> FeatureStream:
        if self.track is None and self.columns is None:
            raise (
                families.MISSING_INPUT.of(ConfigError)
                .saying("the stream has neither a track nor columns", "set track, or columns: [first, after the last]")
                .invalid()
            )
        return self


class DistanceTerm(NamedTuple):
    """A term of the search's distance with all settings but the last column; defaults of its options are not filled in.

    With a track, columns count from the track's first (`Search.placed` makes them those of all tracks side by side).
    """

    first: int
    stop: int | None
    distance: str
    weight: int
    normalise: Normalise
    options: dict[str, object]
    track: str | None = None


class KeepWindows(Keep):
    """How many windows of a first pass to keep."""

    least: PositiveInt = Field(10, description="keep at least this many")
    per_second: float = Field(0.06, ge=0, description="and this many per second of searched audio")


class FirstPass(Section):
    """A first pass that proposes windows for the exact search."""

    name: Annotated[str, NameIn(FIRST_PASSES, ("none",))] = Field(
        "none", description="none: search everything; see swsdist help first-passes"
    )
    factor: PositiveInt | None = Field(
        None, description="frames averaged in the first pass; default: quantised 3, coarse 1"
    )
    windows: KeepWindows = Field(KeepWindows(), description="windows kept per query example")
    over: Literal["collection", "document"] = Field(
        "collection",
        description="choose the best windows over the collection, or within each document",
    )
    sample: float = Field(
        28800.0,
        ge=0,
        description="about so many s of audio, in documents chosen by hash, are searched exactly, and their candidates alone "
        "make the statistics of scores; 0: those of all candidates found",
    )
    verify: NonNegativeInt = Field(
        0,
        description="queries, chosen by hash, that are also searched exactly; the report says how many of their 20 best hits "
        "the first pass found",
    )
    options: dict[str, object] = Field(default_factory=dict, description="other options of the first pass")

    def complete(self) -> dict[str, object]:
        """All options of the first pass, defaults included; its name is not none.

        Raises:
            ConfigError: the first pass does not take an option, or its value.
        """
        given = _not_none(factor=self.factor)
        if given and "factor" not in FIRST_PASSES[self.name].takes():
            raise families.UNUSED_OPTION(
                "the first pass {name} takes no factor", "remove search.first_pass.factor", name=self.name
            )
        if "factor" in self.options:
            raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                "{options} among the options of a first pass", "set search.first_pass.{options}", options="factor"
            )
        return checked(FIRST_PASSES, self.name, given | self.options)

    @model_validator(mode="after")
    def _verifies_the_collection(self) -> FirstPass:
        if self.verify and self.over == "document":
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying(
                    "verify compares the best hits of the collection, and windows are chosen over: document",
                    "set over: collection, or remove verify",
                )
                .invalid()
            )
        return self

    @model_validator(mode="after")
    def _options_are_taken(self) -> FirstPass:
        if self.name != "none":
            _validated(self.complete)
        return self


def _validated(check: Callable[[], T], place: str = "") -> T:
    """The result of a check, whose `ConfigError` becomes an error for pydantic; `place` begins its message."""
    try:
        return check()
    except ConfigError as error:
        if not error.code:
            raise codes.INVALID_SETTING.invalid(reason=f"{place}{error.message}") from None
        raise error_for_pydantic(error, place) from None


class Search(Section):
    """The search method and its settings."""

    distance: DistanceName = Field(
        "cosine",
        description="local distance of frames; for posteriors: bhattacharyya, log-posterior-cosine, kl, inner-product",
    )
    normalise: Normalise = Field(
        "mean-variance",
        description="normalisation of each feature dimension; none for posteriors",
    )
    streams: Annotated[tuple[FeatureStream, ...], Field(max_length=8)] = Field(
        (),
        description="weighted sum of distances over tracks or columns, such as [{track: mfcc, distance: cosine, weight: 2}, "
        "{columns: [39, 90], distance: kl, normalise: none}]; default: `distance` over all columns",
    )
    floor: Floor | None = Field(
        None,
        description="log-posterior-cosine, kl, inner-product: added before the logarithm; inner-product: at least 1e-4; "
        "default: 1e-4",
    )
    cap: PositiveFloat | None = Field(
        None,
        description="euclidean: greatest norm of normalised frames, the unit of distances; default: 2.5 sqrt(dimension)",
    )
    distance_options: dict[str, object] = Field(default_factory=dict, description="other options of the distance")
    documents_by: Literal["document", "speaker", "collection", "pooled"] = Field(
        "document",
        description="statistics that normalise a document; pooled: of all frames of documents and of queries together, with "
        "queries_by: pooled",
    )
    queries_by: Literal["speaker", "collection", "pooled"] = Field(
        "speaker",
        description="statistics that normalise a query that is a short recording; a place in a recording is normalised as "
        "documents are",
    )
    corpus_frames: PositiveInt | None = Field(
        None,
        description="frames that the mean of `queries_by` counts as, beside the mean of the query's own frames; 100 for words "
        "cut out of speech; null: its own mean does not count",
    )
    least_query_frames: PositiveInt = Field(
        1,
        description="query examples of fewer frames are not searched, with a warning; they count in pooled statistics",
    )
    row_range: bool = Field(
        False,
        description="in each document, map the distances of each query frame to 0..1, by the least and the greatest of them; "
        "documents are held complete, see swsdist help normalisation",
    )
    examples: Literal["best", "mean", "template"] = Field(
        "best",
        description="several examples of a query: best score, mean of normalised scores, or search with an averaged template",
    )
    recurrence: Annotated[str, NameIn(RECURRENCES)] = Field(
        "bounded-slope", description="steps of the warping path, see swsdist help recurrences"
    )
    band: PositiveInt | None = Field(
        None,
        description="segmental: greatest distance from the diagonal, and spacing of start points, frames; default: 10",
    )
    recurrence_options: dict[str, object] = Field(default_factory=dict, description="other options of the recurrence")
    candidate_window: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10, description="a candidate has the least cost within this many frames on both sides"
    )
    skip_silence: bool = Field(
        False,
        description="skip document frames without speech; a match may span them; see swsdist help speech-marks",
    )
    drop: Drop | None = Field(
        None,
        description="leave out frames of documents and queries that a track of posteriors gives to some classes, as silence: "
        "{track: cz, columns: [42, 43]}; a match may span them; see swsdist help speech-marks",
    )
    candidates: Keep = Field(Keep(), description="candidates kept per query example and document")
    first_pass: FirstPass = Field(FirstPass(), description="a first pass before the exact search")
    parts: bool = Field(
        False,
        description="search halves, beginnings and ends of queries too, for words in another order or with another ending; see "
        "swsdist help find-harder-queries",
    )
    parts_gap: Annotated[float, Field(ge=0, le=60)] = Field(
        1.0, description="parts: greatest gap between the halves of a query in a document, s"
    )
    parts_least: PositiveFloat = Field(0.25, description="parts: shorter ones are not searched, s")
    method: Annotated[str, NameIn(METHODS)] = Field("dtw", description="search method")
    method_options: dict[str, object] = Field(
        default_factory=dict,
        description="options of the methods windows (swsdist help first-passes) and lattice (swsdist help search-lattices); "
        "dtw has the other keys of this section",
    )
    lanes: PositiveInt = execution_only(16, "pieces of documents searched in parallel; 16 fill a vector")
    piece_seconds: PositiveFloat = execution_only(20.0, "longest piece of a document in a lane, s")
    backend: Annotated[str, NameIn(BACKENDS)] = execution_only(
        "cpu",
        "implementation: int16 (CPU, integer product), blas (CPU, numpy), cpu (the faster of both), cuda (NVIDIA GPU), auto "
        "(GPU if there is one, else cpu); results are identical",
    )
    device_memory_gb: PositiveFloat | None = execution_only(
        None, "GPU memory limit, GB = 1e9 bytes; default: half of the free memory, at most 4"
    )

    def changed(self) -> list[str]:
        """Keys with other values than the defaults."""
        return list(self.model_dump(exclude_defaults=True))

    def matters(self) -> dict[str, object]:
        """What the search of examples depends on: their mean is taken after it.

        Distances, recurrence and first pass are there with their versions and with the options that they take, complete.
        """
        named = {"method", "method_options", "distance", "normalise", "streams", "floor", "cap", "distance_options"}
        named |= {"recurrence", "band", "recurrence_options", "first_pass"}
        values = {key: value for key, value in super().matters().items() if key not in named}
        if self.examples != "template":
            del values["examples"]
        for key in ("skip_silence", "row_range", "least_query_frames", "drop"):
            if values[key] == type(self).model_fields[key].default:
                del values[key]
        if not self.parts:
            for key in PARTS_KEYS:
                del values[key]
        values["distance"] = [
            [
                *([] if term.track is None else [term.track]),
                *[*term[:2], term.weight, term.normalise, *DISTANCES.identity(term.distance), self._complete(term)],
            ]
            for term in self.terms()
        ]
        values["recurrence"] = [*RECURRENCES.identity(self.recurrence), self.recurrence_settings()]
        first_pass = self.first_pass
        if first_pass.name != "none":
            kept = [first_pass.windows.model_dump(mode="json"), first_pass.over, first_pass.sample]
            values["first_pass"] = [*FIRST_PASSES.identity(first_pass.name), first_pass.complete(), *kept]
        return values

    def dropping(self, tracks: Mapping[str, tuple[int, int]]) -> Dropping | None:
        """What `drop` leaves out, in columns of all tracks side by side; arguments and errors as for `Drop.placed`."""
        return None if self.drop is None else self._drop_with_track().placed(tracks)

    def _drop_with_track(self) -> Drop:
        """`drop`, with the track that is searched if it names none and there is one."""
        assert self.drop is not None
        searched = {stream.track for stream in self.streams}
        if self.drop.track is not None or len(searched) != 1:
            return self.drop
        return self.drop.model_copy(update={"track": searched.pop()})

    def terms(self) -> tuple[DistanceTerm, ...]:
        """The distance as a sum of terms: one, over all columns, or those of `streams`."""
        if not self.streams:
            return (self._term((0, None), self.distance, 1, self.normalise, {}),)
        return tuple(
            self._term(
                stream.columns or (0, None),
                stream.distance or self.distance,
                stream.weight,
                stream.normalise or self.normalise,
                _merged(_not_none(floor=stream.floor, cap=stream.cap), stream.options),
                stream.track,
            )
            for stream in self.streams
        )

    def _term(
        self,
        columns: tuple[int, int | None],
        name: str,
        weight: int,
        normalise: Normalise,
        options: dict[str, object],
        track: str | None = None,
    ) -> DistanceTerm:
        takes = DISTANCES[name].takes()
        common = {key: value for key, value in self._common().items() if key in takes}
        return DistanceTerm(*columns, name, weight, normalise, common | options, track)

    def placed(self, tracks: Mapping[str, tuple[int, int]], *, alike: bool = True) -> Search:
        """The same search with streams in columns of all tracks side by side.

        Args:
            tracks: by name: first column, and the one after the last.
            alike: refuse streams that share columns and normalise them differently.

        Raises:
            ConfigError: there is no such track or column, or two streams normalise the same columns differently.
        """
        if not any(stream.track is not None for stream in self.streams):
            return self
        streams = []
        for k, stream in enumerate(self.streams):
            if stream.track is None:
                streams.append(stream)
                continue
            where = f"search.streams[{k}]"
            if stream.track not in tracks:
                raise codes.NO_SUCH_TRACK(where=f"{where}.track", track=stream.track, tracks=", ".join(tracks))
            first, stop = tracks[stream.track]
            start, end = stream.columns or (0, stop - first)
            if end > stop - first:
                raise codes.NO_SUCH_COLUMNS(
                    where=f"{where}.columns", track=stream.track, columns=stop - first, stop=end
                )
            streams.append(stream.model_copy(update={"track": None, "columns": (first + start, first + end)}))
        drop = None if self.drop is None else self._drop_with_track()
        search = self.model_copy(update={"streams": tuple(streams), "drop": drop})
        if alike:
            search._check_normalisation()
        return search

    @staticmethod
    def _complete(term: DistanceTerm) -> dict[str, object]:
        return checked(DISTANCES, term.distance, term.options)

    def _common(self) -> dict[str, object]:
        """Options that are given for all distances that take them."""
        return _merged(_not_none(floor=self.floor, cap=self.cap), self.distance_options)

    def recurrence_settings(self) -> dict[str, object]:
        """All options of the recurrence, defaults included.

        Raises:
            ConfigError: the recurrence does not take an option, or its value.
        """
        return checked(RECURRENCES, self.recurrence, _merged(_not_none(band=self.band), self.recurrence_options))

    def _check_normalisation(self) -> None:
        """Check that no two streams normalise the same columns differently; of different tracks that is not known yet."""
        for term, other in combinations(self.terms(), 2):
            first, stop = max(term.first, other.first), min(_end(term), _end(other))
            if term.track == other.track and first < stop and term.normalise != other.normalise:
                place = f"{'columns' if term.track is None else f'columns of {term.track}'} {first}"
                raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                    "{place} to {stop} are in two streams with different normalise",
                    "set the same normalise in both",
                    place=place,
                    stop=stop,
                )

    @model_validator(mode="after")
    def _check_recurrence(self) -> Search:
        _validated(self.recurrence_settings)
        return self

    @model_validator(mode="after")
    def _check_first_pass(self) -> Search:
        recurrence = RECURRENCES[self.recurrence]
        if self.first_pass.name != "none" and not recurrence.first_pass:
            recurrences = " or ".join(names_where(RECURRENCES, "first_pass"))
            raise codes.FIRST_PASS_CONFLICT.invalid(
                setting=f"recurrence: {self.recurrence}", remedy=f"recurrence: {recurrences}"
            )
        if self.skip_silence and self.first_pass.name != "none":
            raise codes.FIRST_PASS_CONFLICT.invalid(setting="skip_silence: true", remedy="skip_silence: false")
        if self.drop is not None and self.first_pass.name != "none":
            raise codes.FIRST_PASS_CONFLICT.invalid(setting="drop", remedy="drop: null")
        if self.row_range and self.first_pass.name != "none":
            raise codes.FIRST_PASS_CONFLICT.invalid(setting="row_range: true", remedy="row_range: false")
        if (
            self.documents_by == "pooled"
            and self.first_pass.name != "none"
            and FIRST_PASSES[self.first_pass.name].first
        ):
            # What is prepared before is for any queries.
            raise codes.FIRST_PASS_CONFLICT.invalid(
                setting="documents_by: pooled", remedy="documents_by and queries_by: collection"
            )
        if BACKENDS[self.backend].gpu is not False and self.first_pass.name != "none":
            raise codes.FIRST_PASS_CONFLICT.invalid(setting=f"backend: {self.backend}", remedy="backend: cpu")
        return self

    @model_validator(mode="after")
    def _check_parts(self) -> Search:
        for key in PARTS_KEYS[1:]:
            if not self.parts and key in self.changed():
                raise families.UNUSED_OPTION.saying(
                    "{key} has no use where no parts are searched", "set parts: true, or remove {key}"
                ).invalid(key=key)
        if self.parts and self.examples == "mean":
            raise codes.PARTS_CONFLICT.invalid(setting="examples: mean", remedy="examples: best, or template")
        if self.parts and self.first_pass.name != "none":
            raise codes.PARTS_CONFLICT.invalid(
                setting=f"first_pass: {self.first_pass.name}", remedy="first_pass: {name: none}"
            )
        return self

    @model_validator(mode="after")
    def _check_distances(self) -> Search:
        terms = _validated(self.terms)
        for k, term in enumerate(terms):
            place = f"streams[{k}]: " if self.streams else ""
            if term.stop is not None and term.stop <= term.first:
                raise codes.EMPTY_STREAM.invalid(place=place, first=term.first, stop=term.stop)
            if DISTANCES[term.distance].posteriors and term.normalise != "none":
                raise (
                    families.CONFLICTING_OPTIONS.of(ConfigError)
                    .saying(
                        "{place}{distance} compares posteriors, and normalise is {normalise}", "set normalise: none"
                    )
                    .invalid(place=place, distance=term.distance, normalise=term.normalise)
                )
            _validated(partial(self._complete, term), place)
        _validated(self._check_normalisation)
        if (self.documents_by == "pooled") != (self.queries_by == "pooled"):
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying(
                    (
                        "documents_by is {documents_by} and queries_by is {queries_by}: pooled statistics are of "
                        "both together"
                    ),
                    "set both to pooled, or neither",
                )
                .invalid(documents_by=self.documents_by, queries_by=self.queries_by)
            )
        if self.documents_by == "pooled" and self.drop is not None:
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying(
                    "pooled statistics are of all frames, and search.drop leaves some out",
                    "set normalise: none, or remove drop",
                )
                .invalid()
            )
        for option in self._common():
            if not any(option in term.options for term in terms):
                raise families.UNUSED_OPTION.saying(
                    "the distance {distance} takes no {option}", "remove {option}"
                ).invalid(distance=terms[0].distance, option=option)
        for key in ("documents_by", "queries_by", "corpus_frames"):
            unset = getattr(self, key) == type(self).model_fields[key].default
            if not unset and all(term.normalise == "none" for term in terms):
                raise codes.NOTHING_NORMALISED.invalid(key=key)
        return self


def _end(term: DistanceTerm) -> float:
    return math.inf if term.stop is None else term.stop


def _not_none(**options: object) -> dict[str, object]:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _merged(keys: dict[str, object], options: dict[str, object]) -> dict[str, object]:
    """Options that have keys, and others.

    Raises:
        ConfigError: an option is given in both ways.
    """
    if both := sorted(set(keys) & set(options)):
        raise families.CONFLICTING_OPTIONS.of(ConfigError)(
            "{options} is given as a key and among the options", "remove one of the two", options=", ".join(both)
        )
    return keys | options


# Options of entries, here so that a config is checked without loading the entries.


class FloorOptions(Options):
    """Added to probabilities before their logarithm."""

    floor: float = Field(1e-4, ge=1e-10, le=0.1)


class FloorOfProductOptions(Options):
    """Added to an inner product of probabilities: in 12 bits, smaller products are mostly rounding."""

    floor: float = Field(1e-4, ge=1e-4, le=0.1)


class CapOptions(Options):
    """Norm at which frames are cut off; None: 2.5 sqrt(dimension)."""

    cap: PositiveFloat | None = None


class BandOptions(Options):
    """Most frames off the diagonal, and frames between start points: R of the recurrence segmental."""

    band: PositiveInt = 10


class CoarseOptions(Options):
    """Of windows of the query's size; `factor` is a key of `search.first_pass`."""

    factor: PositiveInt = 1


class QuantisedOptions(Options):
    """Of the index of quantised frames; `factor` is a key of `search.first_pass`."""

    factor: PositiveInt = 3
    bytes: Annotated[int, Field(ge=1, le=64)] = 10
    margin: NonNegativeInt = 36


class WindowsOptions(Options):
    """Of the coarse search and the fine one.

    Attributes:
        windows: kept of each document by the coarse search.
        ends: of the fine search's paths. `free`: from any frame of a window to any; `pinned`: from its first to its last.
        apart: s, at least, from the end of one detection to that of another.
    """

    windows: Keep = Keep(least=100, per_second=1.0)
    ends: Literal["free", "pinned"] = "free"
    apart: Annotated[float, Field(gt=0)] = 0.5


class LatticeOptions(Options):
    """Of the search of lattices.

    Attributes:
        gap: s, at most, between two words of a term.
        least: places of a smaller posterior are left out.
        mode: `exact`: posteriors of all places. `kaldi`: the answers of Kaldi's kws-search, where chains of one sequence of
            words and clusters are one place, and some of these are lost (`swsdist.methods.lattice.kaldi`).
    """

    gap: Annotated[float, Field(ge=0)] = 0.5
    least: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    mode: Literal["exact", "kaldi"] = "exact"
