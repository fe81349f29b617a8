"""The section `search` of a config: distances, recurrence, first pass and candidates.

Names are those of `swsdist.registry.registries`. What a named thing takes as options its entry says; a few of them have keys
of their own (`floor`, `cap`, `band`, `factors`, `visit`), all others stand in a mapping beside the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.names import NameIn
from swsdist.config.section import Section, effort, error_for_pydantic
from swsdist.core.codes import config as codes
from swsdist.core.errors import ConfigError
from swsdist.registry.entries import checked, names_where
from swsdist.registry.registries import BACKENDS, DISTANCES, FIRST_PASSES, METHODS, RECURRENCES

T = TypeVar("T")


class Keep(Section):
    """How many to keep: the larger of `least` and `per_second` times the seconds searched."""

    least: PositiveInt = Field(2, description="keep at least this many")
    per_second: float = Field(0.3, ge=0, description="and this many a second of what was searched")

    def count(self, seconds: float) -> int:
        """How many to keep of what was found in so many seconds."""
        return max(self.least, int(self.per_second * seconds))


#: What may be taken out of features before a distance.
Normalise = Literal["none", "mean", "mean-variance"]

#: Local distances.
DistanceName = Annotated[str, NameIn(DISTANCES)]

#: Added to probabilities, or to their inner product, before the logarithm.
Floor = Annotated[float, Field(ge=1e-10, le=0.1)]


class FeatureStream(Section):
    """A track, or columns of the features, with a distance of its own; what is not given is as for the whole search."""

    track: str | None = Field(
        None, description="track of the store; default: columns are those of all tracks side by side"
    )
    columns: tuple[Annotated[int, Field(ge=0)], PositiveInt] | None = Field(
        None, description="first column, from 0, and the one after the last; default, of a track: all"
    )
    distance: DistanceName | None = Field(None, description="local distance between these columns")
    weight: Annotated[int, Field(ge=1, le=16)] = Field(1, description="times that the distance counts in the sum")
    normalise: Normalise | None = Field(None, description="what is taken out of these columns")
    floor: Floor | None = Field(None, description="as search.floor")
    cap: PositiveFloat | None = Field(None, description="as search.cap")
    options: dict[str, object] = Field(default_factory=dict, description="as search.distance_options")

    @model_validator(mode="after")
    def _has_columns(self) -> FeatureStream:
        if self.track is None and self.columns is None:
            raise codes.STREAM_WITHOUT_COLUMNS.invalid()
        return self


class DistanceTerm(NamedTuple):
    """A term of the search's distance, nothing left open but the last column; its options are as they are given.

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
    """The same of a first pass's windows."""

    least: PositiveInt = Field(10, description="keep at least this many")
    per_second: float = Field(0.03, ge=0, description="and this many a second of what was searched")


class FirstPass(Section):
    """A first pass that proposes where to search; what it does not propose is not found."""

    name: Annotated[str, NameIn(FIRST_PASSES, ("none",))] = Field(
        "none", description="none: everything is searched; see docs/concepts/first-passes.md"
    )
    factors: Annotated[tuple[PositiveInt, ...], Field(min_length=1, max_length=4)] = Field(
        (5,),
        description="frames that are averaged in the first pass; averaged takes several, falling, and passes in turn",
    )
    windows: KeepWindows = Field(KeepWindows(), description="windows kept per query example")
    over: Literal["collection", "document"] = Field(
        "collection",
        description="the best windows are those of the whole collection (a task a group of queries), or of "
        "each document (a task a group and shard)",
    )
    visit: bool = Field(
        True, description="search the windows exactly; false, with averaged: the pass on averaged frames is the search"
    )
    options: dict[str, object] = Field(
        default_factory=dict, description="its options that have no key here; see docs/concepts/first-passes.md"
    )

    def complete(self) -> dict[str, object]:
        """All options of the first pass, defaults included; its name is not none.

        Raises:
            ConfigError: the first pass does not take an option, or its value.
        """
        takes = FIRST_PASSES[self.name].takes()
        if "factors" in takes:
            given: dict[str, object] = {"factors": self.factors}
        elif "factor" in takes and len(self.factors) == 1:
            given = {"factor": self.factors[0]}
        elif self.factors != type(self).model_fields["factors"].default:
            raise codes.WRONG_FACTORS(name=self.name, takes="one of the" if "factor" in takes else "no")
        else:
            given = {}
        if "visit" in takes:
            given["visit"] = self.visit
        elif not self.visit:
            raise codes.VISIT_NOT_TAKEN(name=self.name)
        if misplaced := sorted({"factor", "factors", "visit"} & set(self.options)):
            raise codes.KEYS_AMONG_OPTIONS(options=", ".join(misplaced))
        return checked(FIRST_PASSES, self.name, given | self.options)

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
    """The method, and its distances, recurrence and candidates."""

    distance: DistanceName = Field(
        "cosine",
        description="local distance between frames: 1 - cosine, or its square; between posteriors: bhattacharyya, "
        "log-posterior-cosine, kl, inner-product (-ln of it); euclidean",
    )
    normalise: Normalise = Field(
        "mean-variance",
        description="what is taken out of each feature dimension before the distance; none for posteriors",
    )
    streams: Annotated[tuple[FeatureStream, ...], Field(max_length=8)] = Field(
        (),
        description="sum of distances over tracks or columns, for example [{track: mfcc, distance: cosine, weight: 2}, "
        "{columns: [39, 90], distance: kl, normalise: none}]; default: `distance` over all columns of all tracks",
    )
    floor: Floor | None = Field(
        None,
        description="log-posterior-cosine, kl: added to probabilities before their logarithm; inner-product: added to "
        "it, at least 1e-4; default: 1e-4",
    )
    cap: PositiveFloat | None = Field(
        None,
        description="euclidean: norm at which normalised frames are cut off; distances are in units of it; "
        "default: 2.5 sqrt(dimension)",
    )
    distance_options: dict[str, object] = Field(
        default_factory=dict, description="options of the distance that have no key here"
    )
    documents_by: Literal["document", "speaker", "collection"] = Field(
        "document", description="whose statistics normalise a document"
    )
    queries_by: Literal["speaker", "collection"] = Field(
        "speaker",
        description="whose statistics normalise a query that is a cut by itself, which is too short for a mean; a marked place "
        "is normalised as documents are",
    )
    examples: Literal["best", "mean", "template"] = Field(
        "best",
        description="several examples of a query: the best one counts, or the mean of their normalised scores, "
        "or one template is searched that is their average; see docs/how-to/use-several-examples.md",
    )
    recurrence: Annotated[str, NameIn(RECURRENCES)] = Field(
        "bounded-slope", description="steps of the warping path; see docs/concepts/recurrences.md"
    )
    band: PositiveInt | None = Field(
        None, description="segmental: most frames off the diagonal, and frames between start points; default: 10"
    )
    recurrence_options: dict[str, object] = Field(
        default_factory=dict, description="options of the recurrence that have no key here"
    )
    candidate_window: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10, description="a candidate's cost is the least within plus or minus this many frames"
    )
    skip_silence: bool = Field(
        False,
        description="leave out frames of documents in which there is no speech; a match may reach across what is left out, "
        "and its times are the recording's; see docs/concepts/speech-marks.md",
    )
    candidates: Keep = Field(Keep(), description="candidates kept per query example and document")
    first_pass: FirstPass = Field(FirstPass(), description="a first pass that proposes where to search")
    method: Annotated[str, NameIn(METHODS)] = Field("dtw", description="how queries are found in the store")
    method_options: dict[str, object] = Field(
        default_factory=dict,
        description="options of the method: those of windows are in docs/concepts/windows.md, those of dtw are the keys below",
    )
    lanes: PositiveInt = effort(16, "pieces of documents searched side by side; 16 fill a vector")
    piece_seconds: PositiveFloat = effort(20.0, "longest piece of a document in a lane; cuts change no result")
    backend: Annotated[str, NameIn(BACKENDS)] = effort(
        "cpu",
        "implementation of the search: int16 (own product, on the CPU), blas (numpy's product), cpu (the faster one of these "
        "two), cuda (an NVIDIA GPU), auto (GPUs where nodes have some, else CPUs); the bytes are the same",
    )
    device_memory_gb: PositiveFloat | None = effort(
        None, "memory of the GPU that a search may take, GB = 1e9 bytes; default: half of what is free, at most 4"
    )

    def matters(self) -> dict[str, object]:
        """What the search of examples depends on: their mean is taken after it.

        Distances, recurrence and first pass are there with their versions and with the options that they take, complete.
        """
        named = {"method", "method_options", "distance", "normalise", "streams", "floor", "cap", "distance_options"}
        named |= {"recurrence", "band", "recurrence_options", "first_pass"}
        values = {key: value for key, value in super().matters().items() if key not in named}
        if self.examples != "template":
            del values["examples"]
        if not self.skip_silence:
            del values["skip_silence"]
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
            kept = [first_pass.windows.model_dump(mode="json"), first_pass.over]
            values["first_pass"] = [*FIRST_PASSES.identity(first_pass.name), first_pass.complete(), *kept]
        return values

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
        own: dict[str, object],
        track: str | None = None,
    ) -> DistanceTerm:
        takes = DISTANCES[name].takes()
        common = {key: value for key, value in self._common().items() if key in takes}
        return DistanceTerm(*columns, name, weight, normalise, common | own, track)

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
        search = self.model_copy(update={"streams": tuple(streams)})
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
                raise codes.NORMALISATION_CONFLICT(place=place, stop=stop)

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
        if BACKENDS[self.backend].gpu is not False and self.first_pass.name != "none":
            raise codes.FIRST_PASS_CONFLICT.invalid(setting=f"backend: {self.backend}", remedy="backend: cpu")
        return self

    @model_validator(mode="after")
    def _check_distances(self) -> Search:
        terms = _validated(self.terms)
        for k, term in enumerate(terms):
            place = f"streams[{k}]: " if self.streams else ""
            if term.stop is not None and term.stop <= term.first:
                raise codes.EMPTY_STREAM.invalid(place=place, first=term.first, stop=term.stop)
            if DISTANCES[term.distance].posteriors and term.normalise != "none":
                raise codes.NORMALISED_POSTERIORS.invalid(place=place, distance=term.distance, normalise=term.normalise)
            _validated(partial(self._complete, term), place)
        _validated(self._check_normalisation)
        for option in self._common():
            if not any(option in term.options for term in terms):
                raise codes.UNUSED_OPTION.invalid(distance=terms[0].distance, option=option)
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
        raise codes.OPTION_TWICE(options=", ".join(both))
    return keys | options
