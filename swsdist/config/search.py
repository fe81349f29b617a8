"""The section `search` of a config: distances, recurrence, first pass and candidates.

Names are those of `swsdist.registry.registries`. What a named thing takes as options its entry says; a few of them have keys
of their own (`floor`, `cap`, `band`, `factors`, `visit`), all others stand in a mapping beside the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.names import NameIn
from swsdist.config.section import Section, effort
from swsdist.core.errors import ConfigError
from swsdist.registry.entries import checked, those
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
    def _columns_are_told(self) -> FeatureStream:
        if self.track is None and self.columns is None:
            raise ValueError("name a track, or columns [first, after the last]")
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
        """All options of the first pass that is named; it is not none.

        Raises:
            ConfigError: it does not take what is given.
        """
        takes = FIRST_PASSES[self.name].takes()
        if "factors" in takes:
            given: dict[str, object] = {"factors": self.factors}
        elif "factor" in takes and len(self.factors) == 1:
            given = {"factor": self.factors[0]}
        elif self.factors != type(self).model_fields["factors"].default:
            raise ConfigError(f"{self.name} takes {'one of' if 'factor' in takes else 'no'} factors")
        else:
            given = {}
        if "visit" in takes:
            given["visit"] = self.visit
        elif not self.visit:
            raise ConfigError(f"visit: false is not for the first pass {self.name}")
        own = {"factor", "factors", "visit"} & set(self.options)
        if own:
            raise ConfigError(f"{', '.join(sorted(own))} in options: factors and visit are keys of their own")
        return checked(FIRST_PASSES, self.name, given | self.options)

    @model_validator(mode="after")
    def _options_are_taken(self) -> FirstPass:
        if self.name != "none":
            _of_the_model(self.complete)
        return self


def _of_the_model(check: Callable[[], T]) -> T:
    """What a check gives; what it refuses is refused as pydantic wants it."""
    try:
        return check()
    except ConfigError as error:
        raise ValueError(error.message) from None


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
        values["recurrence"] = [*RECURRENCES.identity(self.recurrence), self.of_recurrence()]
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
                one.columns or (0, None),
                one.distance or self.distance,
                one.weight,
                one.normalise or self.normalise,
                _once(_given(floor=one.floor, cap=one.cap), one.options),
                one.track,
            )
            for one in self.streams
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
        """The same, in columns of all tracks side by side.

        Args:
            tracks: by name: first column, and the one after the last.
            alike: refuse streams that share columns and normalise them differently.

        Raises:
            ConfigError: a stream names a track that is not there, or columns that it lacks, or two normalise the same
                columns differently.
        """
        if not any(one.track is not None for one in self.streams):
            return self
        streams = []
        for k, one in enumerate(self.streams):
            if one.track is None:
                streams.append(one)
                continue
            where = f"search.streams[{k}]"
            if one.track not in tracks:
                raise ConfigError(
                    f"there is no track {one.track!r}",
                    where=f"{where}.track",
                    remedy=f"tracks are: {', '.join(tracks)}",
                )
            first, stop = tracks[one.track]
            own = one.columns or (0, stop - first)
            if own[1] > stop - first:
                raise ConfigError(
                    f"the track {one.track} has {stop - first} columns, not {own[1]}",
                    where=f"{where}.columns",
                    remedy="columns of a stream with a track count from the track's first",
                )
            streams.append(one.model_copy(update={"track": None, "columns": (first + own[0], first + own[1])}))
        made = self.model_copy(update={"streams": tuple(streams)})
        if alike:
            made._normalised_alike()
        return made

    @staticmethod
    def _complete(term: DistanceTerm) -> dict[str, object]:
        return checked(DISTANCES, term.distance, term.options)

    def _common(self) -> dict[str, object]:
        """Options that are given for all distances that take them."""
        return _once(_given(floor=self.floor, cap=self.cap), self.distance_options)

    def of_recurrence(self) -> dict[str, object]:
        """All options of the recurrence.

        Raises:
            ConfigError: it does not take what is given.
        """
        return checked(RECURRENCES, self.recurrence, _once(_given(band=self.band), self.recurrence_options))

    def _normalised_alike(self) -> None:
        """Of two tracks it cannot be told yet whether their columns meet, unless they are one."""
        for term, other in combinations(self.terms(), 2):
            first, stop = max(term.first, other.first), min(_end(term), _end(other))
            if term.track == other.track and first < stop and term.normalise != other.normalise:
                place = f"{'columns' if term.track is None else f'columns of {term.track}'} {first}"
                raise ConfigError(f"{place} to {stop} are in two streams that normalise them differently")

    @model_validator(mode="after")
    def _recurrence_takes_what_is_given(self) -> Search:
        _of_the_model(self.of_recurrence)
        return self

    @model_validator(mode="after")
    def _windows_can_be_visited(self) -> Search:
        recurrence = RECURRENCES[self.recurrence]
        if self.first_pass.name != "none" and not recurrence.first_pass:
            known = " or ".join(those(RECURRENCES, "first_pass"))
            raise ValueError(f"a first pass needs recurrence: {known}, not {self.recurrence}")
        if self.skip_silence and self.first_pass.name != "none":
            raise ValueError("a first pass reads all frames: set skip_silence: false, or first_pass: {name: none}")
        if BACKENDS[self.backend].gpu is not False and self.first_pass.name != "none":
            raise ValueError(f"a first pass searches on the CPU: set backend: cpu, not {self.backend}")
        return self

    @model_validator(mode="after")
    def _distances_take_what_is_given(self) -> Search:
        terms = _of_the_model(self.terms)
        for k, term in enumerate(terms):
            place = f"streams[{k}]: " if self.streams else ""
            if term.stop is not None and term.stop <= term.first:
                raise ValueError(f"{place}columns {term.first} to {term.stop} are none")
            if DISTANCES[term.distance].posteriors and term.normalise != "none":
                raise ValueError(
                    f"{place}{term.distance} is between posteriors, which normalise: {term.normalise} would spoil; "
                    "set normalise: none"
                )
            try:
                self._complete(term)
            except ConfigError as error:
                raise ValueError(f"{place}{error.message}") from None
        _of_the_model(self._normalised_alike)
        for option in self._common():
            if not any(option in term.options for term in terms):
                raise ValueError(f"the distance {terms[0].distance} takes no {option}")
        return self


def _end(term: DistanceTerm) -> float:
    return math.inf if term.stop is None else term.stop


def _given(**options: object) -> dict[str, object]:
    """Those that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _once(keys: dict[str, object], options: dict[str, object]) -> dict[str, object]:
    """Options that have keys of their own, and others; none may be given as both."""
    if both := sorted(set(keys) & set(options)):
        raise ConfigError(f"{', '.join(both)} is given twice: as a key, and among options")
    return keys | options
