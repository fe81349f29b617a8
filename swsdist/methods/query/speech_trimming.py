"""Choice of what is searched: trimming of queries to speech, dropped frames, and checks of bandwidth.

`search.drop` drops frames of documents and queries that are of some classes, such as silence. A frame is judged
alone, so neither blocks nor shards matter.

Bandwidths of queries and documents are compared up to the highest frequency of the features. Features differ in a band
that only one of them has, whatever was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio.reader import read_blocks
from swsdist.audio.speech import find_speech
from swsdist.config.search import Dropping
from swsdist.core.arrays import Bools, Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.core.types import EXAMPLES
from swsdist.features.interface import Extractor, Precomputed, upper_edge_of
from swsdist.features.transforms.interface import Transformed

#: Seconds of a query that are examined for speech, far more than can be searched.
_EXAMINED_SECONDS = 600.0
#: Longest phrase, and longest rest, of a recording of a query (s): a tape has more.
_LONGEST_SPOKEN, _LONGEST_AROUND = 30.0, 30.0


class TrimmedPlace(NamedTuple):
    """The trimmed place of a recorded example.

    Attributes:
        start, end: of the search, s; None: ends of the recording.
        seconds: its length, as far as examined.
        before, after: s trimmed.
    """

    start: float | None
    end: float | None
    seconds: float
    before: float
    after: float


def trim_to_speech(row: Mapping[str, Any], rate: int, storage: Mapping[str, object], trim: bool = True) -> TrimmedPlace:
    """Trim an example to its speech; a start or end in the query table stays.

    Args:
        row: of QUERIES.
        rate: Hz.
        storage: options for s3fs.
        trim: False: trim nothing.

    Raises:
        AudioError: the recording cannot be used, has no speech, or is too long.
    """
    start, end = row["start"], row["end"]
    samples = np.concatenate([np.empty(0, np.float32), *_beginning(row, rate, storage)])
    seconds = len(samples) / rate
    if not trim or (start is not None and end is not None):
        return TrimmedPlace(start, end, seconds, 0.0, 0.0)
    place = find_speech(samples, rate)
    if place is None:
        raise families.NO_SPEECH(
            "the query contains no speech, only silence, hum, noise, a tone or clicks",
            "record it again, name the place (start, end), or do not trim it (queries.trim: none, --no-trim)",
            where=row["path"],
        )
    before = place.start if start is None else 0.0
    after = place.duration - place.end if end is None else 0.0
    if place.end - place.start > _LONGEST_SPOKEN or before + after > _LONGEST_AROUND:
        raise families.TOO_LONG(
            "the recording lasts {seconds:.0f} s, one phrase of it {phrase:.0f} s, too long for a query",
            "mark a place: FILE:START-END (in a table: start, end); or do not trim it: queries.trim: none, --no-trim",
            where=row["path"],
            seconds=seconds,
            phrase=place.end - place.start,
        )
    # An end that is not trimmed stays: it may lie beyond the examined part.
    kept = before if before else start, place.end + (start or 0.0) if after else end
    return TrimmedPlace(*kept, seconds - before - after, before, after)


def has_speech(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> bool:
    """Whether a recorded example, or its place, contains speech.

    Args:
        row, rate, storage: as of `trim_to_speech`.

    Raises:
        AudioError: the recording cannot be used.
    """
    return find_speech(np.concatenate([np.empty(0, np.float32), *_beginning(row, rate, storage)]), rate) is not None


def _beginning(row: Mapping[str, Any], rate: int, storage: Mapping[str, object]) -> Iterator[Singles]:
    """Samples of a recorded query, at most `_EXAMINED_SECONDS`."""
    left = round(_EXAMINED_SECONDS * rate)
    parts = read_blocks(
        row["path"], channel=row["channel"], rate=rate, start=row["start"], end=row["end"], storage=storage
    )
    for block in parts:
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return


def kept(features: Singles, dropping: Dropping) -> Bools:
    """Whether each frame is kept, that is not dropped.

    Args:
        features: float32 (frames, columns of all tracks side by side).
        dropping: the rule.

    Returns:
        bool (frames,).
    """
    classes = features[:, slice(*dropping.columns)]
    if dropping.above is None:
        return np.asarray(classes.max(1) < features[:, slice(*dropping.track)].max(1))
    # Column by column: numpy's sum of a row may depend on the CPU.
    return np.asarray(reduce(np.add, classes.T.astype(np.float64)) <= dropping.above)


def demand_kept(frames: Singles, row: Mapping[str, Any], dropping: Dropping | None, least: int) -> None:
    """Check that enough frames of a query are kept.

    Raises:
        AudioError: fewer than `least` are.
    """
    if dropping is not None and (count := int(kept(frames, dropping).sum())) < least:
        raise codes.TOO_FEW_KEPT(where=row["path"], kept=count, frames=len(frames), least=least)


def without_dropped(examples: pa.Table, dropping: Dropping, dimension: int) -> pa.Table:
    """Examples with the frames that are kept.

    Args:
        examples: EXAMPLES, each with such a frame.
        dropping: the rule.
        dimension: columns of a frame.
    """
    rows: list[dict[str, Any]] = []
    for row in examples.to_pylist():
        features = np.frombuffer(row["features"], "<f4").reshape(-1, dimension)
        features = features[kept(features, dropping)]
        rows.append({**row, "frames": len(features), "features": features.tobytes()})
    return pa.Table.from_pylist(rows, EXAMPLES)


#: Bandwidths differ if the ratio of the smaller to the larger is at most this: 4 or 5 kHz to 8.
_RATIO = 0.65


class Apart(NamedTuple):
    """Number of documents of another bandwidth, the first name, and both bandwidths (Hz)."""

    documents: int
    first: str
    hz: float
    other: float

    def __str__(self) -> str:
        return f"{self.first}: up to {self.hz / 1000:g} kHz, others up to {self.other / 1000:g} kHz"


def reach(extractors: Iterable[Extractor | Precomputed]) -> float:
    """Highest frequency of the features, Hz; 0 where all are precomputed.

    Raises:
        ConfigError: one is not fitted, or its model is unusable.
    """
    return max(
        (
            upper_edge_of(extractor.inner if isinstance(extractor, Transformed) else extractor)
            for extractor in extractors
            if isinstance(extractor, Extractor)
        ),
        default=0.0,
    )


def _seen(table: pa.Table, highest: float) -> Floats:
    """Bandwidths, at most the highest frequency of the features; NaN where unknown."""
    hz: Floats = np.minimum(table["bandwidth"].to_numpy(zero_copy_only=False).astype(np.float64), highest)
    return hz


def narrow(documents: pa.Table, highest: float) -> Apart | None:
    """Documents (`doc_id`, `bandwidth`) of a narrower band than the widest."""
    hz = _seen(documents, highest)
    if not np.isfinite(hz).any():
        return None
    widest = float(np.nanmax(hz))
    odd = np.flatnonzero(hz <= widest * _RATIO)
    if not len(odd):
        return None
    return Apart(len(odd), documents["doc_id"][int(odd[0])].as_py(), float(hz[odd[0]]), widest)


def apart(examples: pa.Table, documents: pa.Table, highest: float) -> Iterator[Apart]:
    """Documents of another band than an example, for each example of a query (`query_id`, `bandwidth`)."""
    hz = _seen(documents, highest)
    for name, left in zip(examples["query_id"].to_pylist(), _seen(examples, highest).tolist(), strict=True):
        odd = np.flatnonzero(np.minimum(hz, left) <= np.maximum(hz, left) * _RATIO)
        if len(odd):
            yield Apart(len(odd), name, left, float(hz[odd[0]]))
