"""Spoken examples: from a file, or a place in one, to frames.

A place is computed with the audio around it, as far as the extractor looks, and then cut: the frames at its edges are those
of running speech. A file that is a cut by itself has nothing around it, and the extractor repeats its edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.config.search import Search
from swsdist.errors import AudioError, DataError
from swsdist.features.blocks import in_blocks
from swsdist.features.interface import Extractor, frame_count, frame_shift, surroundings
from swsdist.features.statistics import Statistics
from swsdist.fingerprint import stable_hash
from swsdist.io.filesystem import Folder
from swsdist.kernels.scales import LONGEST_QUERY
from swsdist.methods.query.averaging import averaged
from swsdist.methods.query.example import Example
from swsdist.registries import RECURRENCES
from swsdist.types import EXAMPLES, REJECTED

#: Queries a group holds at least (but for the last) and at most.
GROUP_LEAST, GROUP_MOST = 64, 512

#: Frames of an example that is averaged with others: a table of two such has 2^24 places.
LONGEST_AVERAGED = 1 << 12


class Extracted(NamedTuple):
    """Features of a group's examples, and those that could not be used."""

    examples: pa.Table
    rejected: pa.Table
    seconds: float


def groups(query_ids: list[str]) -> list[list[str]]:
    """Cut a sorted list of query ids into groups that are searched together.

    Where a group ends is told by the ids themselves (a stable hash), so that adding a query changes its own group only.
    """
    found: list[list[str]] = []
    current: list[str] = []
    for query_id in sorted(set(query_ids)):
        current.append(query_id)
        ends = len(current) >= GROUP_LEAST and stable_hash(query_id) % 64 == 0
        if ends or len(current) == GROUP_MOST:
            found.append(current)
            current = []
    return [*found, current] if current else found


def extract(
    rows: list[dict[str, Any]], extractor: Extractor | Sequence[Extractor], folder: Folder, search: Search | None = None
) -> Extracted:
    """Features of examples, not normalised; those that cannot be used or are too long to be searched are rejected.

    Args:
        rows: of QUERIES; those without a path are rejected.
        extractor: the store's, or all of them: their columns stand side by side, cut to the shortest.
        folder: gives the storage options.
        search: names the recurrence, which holds so many frames, and whether examples of a query are averaged, which,
            if there are several, must not be too long for that either; by default what a config has by default.
    """
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    search = search or Search()
    extractors = [extractor] if isinstance(extractor, Extractor) else list(extractor)
    several = Counter(row["query_id"] for row in rows)
    for row in rows:
        average = search.examples == "template" and several[row["query_id"]] > 1
        try:
            if row["path"] is None:
                raise AudioError(
                    f"the query is text, and the method {search.method} takes spoken ones",
                    where=f"query {row['query_id']}",
                    reason="not-spoken",
                    remedy="give a recording of it (path), or a place in a document (doc_id), or search with a method for text",
                )
            frames = _bounded(_side_by_side(row, extractors, folder), row, search, average)
        except DataError as error:
            bad.append(
                {
                    "kind": "query",
                    "id": row["query_id"],
                    "part": row["example"],
                    "path": row["path"],
                    "reason": error.reason if isinstance(error, AudioError) else "unreadable",
                    "message": error.message,
                    "remedy": error.remedy,
                }
            )
            continue
        good.append(
            {
                "query_id": row["query_id"],
                "example": row["example"],
                "duration": _duration(row, frames, extractors[0]),
                "frames": len(frames),
                "speaker": row["speaker"],
                "features": np.ascontiguousarray(frames, "<f4").tobytes(),
            }
        )
    examples = pa.Table.from_pylist(good, EXAMPLES)
    return Extracted(examples, pa.Table.from_pylist(bad, REJECTED), sum(row["duration"] for row in good))


def _duration(row: dict[str, Any], frames: NDArray[np.float32], extractor: Extractor) -> float:
    if row["start"] is not None and row["end"] is not None:
        return float(row["end"] - row["start"])
    samples = (len(frames) - 1) * extractor.hop + extractor.frame_length
    return samples / extractor.sample_rate


def _side_by_side(row: dict[str, Any], extractors: Sequence[Extractor], folder: Folder) -> NDArray[np.float32]:
    parts = [example_frames(row, extractor, folder) for extractor in extractors]
    shortest = min(map(len, parts))
    return parts[0] if len(parts) == 1 else np.concatenate([part[:shortest] for part in parts], axis=1)


def example_frames(row: dict[str, Any], extractor: Extractor, folder: Folder) -> NDArray[np.float32]:
    """Frames of one example, float32 (frames, dimension).

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    rate, shift = extractor.sample_rate, frame_shift(extractor)
    start, end = row["start"], row["end"]
    context = surroundings(extractor)
    around = context * shift
    # Context to the left is a whole number of frames, so that the place begins on a frame.
    before = 0 if start is None else min(context, int(start / shift + 1e-6))
    parts = read_blocks(
        row["path"],
        channel=row["channel"],
        rate=rate,
        start=None if start is None else start - before * shift,
        end=None,
        storage=folder.storage,
    )
    if end is None:
        frames = np.concatenate(list(in_blocks(extractor, parts)))[before:]
        if len(frames) == 0:
            raise _too_short(row, extractor)
        return frames
    # Checked against the recording before the context is added to it.
    inside = sum(
        len(block)
        for block in read_blocks(
            row["path"], channel=row["channel"], rate=rate, start=start or 0.0, end=end, storage=folder.storage
        )
    )
    count = frame_count(extractor, inside)
    if count == 0:
        raise _too_short(row, extractor)
    need = round((before * shift + end - (start or 0.0) + around) * rate) + extractor.frame_length
    samples = np.concatenate(list(_first(parts, need)))
    return np.concatenate(list(in_blocks(extractor, [samples])))[before : before + count]


def _too_short(row: dict[str, Any], extractor: Extractor) -> AudioError:
    return AudioError(
        f"the place is shorter than one frame ({extractor.frame_length / extractor.sample_rate:g} s)",
        where=row["path"],
        reason="too-short",
        remedy="give a longer place",
    )


def _bounded(frames: NDArray[np.float32], row: dict[str, Any], search: Search, average: bool) -> NDArray[np.float32]:
    options = search.of_recurrence()
    longest = RECURRENCES[search.recurrence].longest(options)
    use, remedy = "searched", "cut it into shorter queries"
    if longest != LONGEST_QUERY:
        use += f" with search.recurrence: {search.recurrence}"
        use += "".join(f" and {name}: {value}" for name, value in options.items())
        remedy += f", or set search.recurrence: bounded-slope, which takes {LONGEST_QUERY}"
    if average and longest > LONGEST_AVERAGED:
        longest, use, remedy = LONGEST_AVERAGED, "averaged (search.examples: template)", "cut it into shorter queries"
    if len(frames) > longest:
        raise AudioError(
            f"the query has {len(frames)} frames, {longest} are the most that can be {use}",
            where=row["path"],
            reason="too-long",
            remedy=remedy,
        )
    return frames


def _first(blocks: Any, samples: int) -> Any:
    """The first so many samples of a stream."""
    for block in blocks:
        yield block[:samples]
        samples -= len(block)
        if samples <= 0:
            return


def prepared(
    table: pa.Table, statistics: dict[tuple[str, str], Statistics], search: Search, dimension: int, factor: int = 1
) -> list[Example]:
    """Examples ready for the engine, in the table's order; or a template of each query, by the order of their first ones.

    A template has the least number of its examples.

    Args:
        table: EXAMPLES.
        statistics: the store's frozen statistics; a query is normalised by its speaker's, where `search.queries_by` says
            so and the store knows the speaker, else by the collection's.
        search: names the distance, what is taken out of features before it, and whether examples are averaged.
        dimension: of the features.
        factor: frames of which the mean is taken first.

    Raises:
        DataError: the distance is one between posteriors, and a query's features are not.
    """
    from swsdist.methods.dtw.distance import distance_of, offset_and_scale  # loads numba: planning does without

    distance = distance_of(search, dimension)
    collection = statistics["collection", ""]
    by_speaker = search.queries_by == "speaker"
    made = []
    averaging: dict[str, list[tuple[int, NDArray[np.float64], int]]] = {}
    for row in table.to_pylist():
        known = statistics.get(("speaker", row["speaker"] or ""), collection) if by_speaker else collection
        features = np.frombuffer(row["features"], "<f4").reshape(-1, dimension)
        where = f"query {row['query_id']}, example {row['example']}"
        features = np.concatenate(list(averaged([features], factor)))
        offset, scale = offset_and_scale(search, known)
        spoken = distance.prepare(features, offset, scale, "query", where)
        if search.examples == "template":
            # What `prepare` does first: two operations that round correctly, so numpy has the same bytes.
            averaging.setdefault(row["query_id"], []).append(
                (row["example"], (features - offset) / scale, spoken.saturated)
            )
            continue
        made.append(Example(row["query_id"], row["example"], spoken.frames, spoken.saturated))
    if averaging:
        from swsdist.methods.query.template import template

        for query_id, several in averaging.items():
            numbers, values, saturated = zip(*several, strict=True)
            frames = template(values, distance, f"query {query_id}")
            made.append(Example(query_id, min(numbers), frames, sum(saturated)))
    return made
