"""The key `search.drop`: classes of a track whose frames are left out of documents and queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import Field, PositiveInt, model_validator

from swsdist.config.section import Section
from swsdist.core.codes import config as codes


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
            raise codes.DROP_TRACK_MISSING(where="search.drop.track", tracks=", ".join(tracks))
        if track not in tracks:
            raise codes.NO_SUCH_TRACK(where="search.drop.track", track=track, tracks=", ".join(tracks))
        first, stop = tracks[track]
        start, end = self.columns
        if end > stop - first:
            raise codes.NO_SUCH_COLUMNS(where="search.drop.columns", track=track, columns=stop - first, stop=end)
        if end - start == stop - first:
            raise codes.ALL_DROPPED(where="search.drop.columns", track=track)
        return Dropping((first, stop), (first + start, first + end), self.above)
