"""The tasks of the search chain tell the driver what later stages and the report need to know."""

from __future__ import annotations

from typing import Any, NamedTuple


class Indexed(NamedTuple):
    """The documents, frames and seconds that went into a shard.

    Attributes:
        documents, frames, seconds: as they say.
        ffmpeg: its versions, where it decoded something.
        libraries: versions of those that its frames depend on, where it was done.
        held: documents whose frames were copied: the store had them under another name.
    """

    documents: int
    frames: int
    seconds: float
    ffmpeg: list[str] = []
    libraries: dict[str, str] = {}
    held: int = 0


class Extracted(NamedTuple):
    """The examples of a group of queries that can be searched, with their queries, frames and seconds.

    Attributes:
        examples, query_ids, frames, seconds: as they say.
        cuts: query, example, and s that were cut off before and after its speech.
        ffmpeg: its versions, where it decoded something.
        libraries: versions of those that its frames depend on, where it was done.
    """

    examples: int
    query_ids: list[str]
    frames: int
    seconds: float
    cuts: list[list[Any]] = []
    ffmpeg: list[str] = []
    libraries: dict[str, str] = {}


class Searched(NamedTuple):
    """The candidates that a task found.

    Attributes:
        candidates: how many.
        fill: how much of the lanes was frames of documents, 0 to 1; None where no lanes were used.
        saturated: frames of both sides that the distance's cap has shortened.
    """

    candidates: int
    fill: float | None
    saturated: int


class Bucket(NamedTuple):
    """The list of one bucket of queries: its rows, and its least and greatest score."""

    rows: int
    low: float = 0.0
    high: float = 0.0


class Fitted(NamedTuple):
    """The source of decisions (`crossfit`, `oracle`, `file` or `none`), and its thresholds, one a fold or one for all."""

    fit: str
    thresholds: list[float | None]


class Counted(NamedTuple):
    """Names of the tables of counts of a bucket, in the order of its files."""

    names: list[str]


class Measured(NamedTuple):
    """Measures by name, the operating point that they are of, and queries that cannot be scored."""

    measures: dict[str, Any]
    point: dict[str, Any]
    left_out: list[str]


class Exported(NamedTuple):
    """Warnings of what could not be exported, and the number of files."""

    warnings: list[str]
    files: int
