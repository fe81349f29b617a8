"""Documents with the same sound at the same time: channels of one recording, and copies.

A **copy** has the sound of an earlier document: a second channel with the same samples, a recording with the bytes of
another, or the same recording in another format. Whatever recurs or is found in it is counted once. Documents that
differ (two microphones, segments that overlap) still have one time if they are of one recording.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.audio.speech import unpack_marks
from swsdist.core.arrays import Bools, Floats
from swsdist.io.filesystem import Folder
from swsdist.store.manifest import WORDS, load
from swsdist.store.reading import Store

Key: TypeAlias = tuple[str, int]

#: Columns of DOCUMENTS that say when a document is, and how it sounds.
WHEN = ("doc_id", "channel", "recording", "start")
SOUND = (*WHEN, "duration", "frames", "mean", "variance", "speech")

#: What lossy coding changes at most: the duration (s); the share of frames whose mark of speech is another; of all columns the
#: mean difference of means, in standard deviations, and of logarithms of variances. Measured on 12 utterances by seven codings
#: (mp3 and opus from 24 kbit/s) against 720 000 pairs of different ones of one recorder, of which none has such means; and on
#: 277 recordings of 3 to 180 s (mp3 64, AAC 48, Opus 24 kbit/s), of which 99 % are found, against 205 000 pairs of different
#: ones of equal length by three speakers, of which none is.
_DURATION, _MARKS, _MEAN, _VARIANCE = 0.05, 0.03, 0.03, 0.25
#: Share of frames whose marks differ by chance, from which equal marks say something: where nobody pauses, all are equal.
_BY_CHANCE = 3 * _MARKS
#: Sums of means by which pairs are looked for.
_SUMS = 3
#: Where hardly anybody pauses, means and variances twice as near say enough up to this duration (s): those of long recordings
#: of one voice are all near.
_SHORT = 60.0


def times(documents: pa.Table, tick: float) -> dict[Key, tuple[str, int]]:
    """The recording of each document, and its first frame in it.

    Args:
        documents: columns WHEN.
        tick: seconds from one frame to the next.
    """
    return {
        (row["doc_id"], row["channel"]): (row["recording"] or row["doc_id"], round((row["start"] or 0.0) / tick))
        for row in documents.select(WHEN).to_pylist()
    }


def copies(documents: pa.Table) -> dict[Key, Key]:
    """The copies among documents (columns SOUND), and the original of each: the first by name and channel."""
    table = documents.select(SOUND).sort_by([("doc_id", "ascending"), ("channel", "ascending")]).combine_chunks()
    count = table.num_rows
    if count < 2:
        return {}
    duration, frames = table["duration"].to_numpy(), table["frames"].to_numpy()
    mean, variance = (pc.list_flatten(table[name]).to_numpy().reshape(count, -1) for name in ("mean", "variance"))
    speech, when = table["speech"].to_pylist(), table.select(["doc_id", "recording", "start"]).to_pylist()
    spoken = np.array([0 if each is None else int.from_bytes(each).bit_count() for each in speech])
    typical = variance.mean(axis=0)
    means = mean / np.sqrt(np.where(typical > 0, typical, 1.0))
    spreads = np.log(np.maximum(variance, np.finfo(np.float64).tiny))
    first = np.arange(count)
    for this, other in _near(duration, means):
        close = np.abs(duration[other] - duration[this]) <= _DURATION
        least = np.minimum(frames[this], frames[other])
        close &= np.abs(spoken[other] - spoken[this]) <= _MARKS * least + 1
        this, other = this[close], other[close]
        far = np.maximum(
            np.abs(means[other] - means[this]).mean(axis=1) / _MEAN,
            np.abs(spreads[other] - spreads[this]).mean(axis=1) / _VARIANCE,
        )
        for a, b, apart in zip(*(each[far <= 1].tolist() for each in (this, other, far)), strict=True):
            short = min(duration[a], duration[b]) <= _SHORT
            enough = (apart <= 0.5 and short) or _when(when[a]) == _when(when[b])
            marks, others = (_marks(speech[k], int(frames[k])) for k in (a, b))
            if apart == 0 or _alike(marks, others, enough):
                low, high = sorted((first[a], first[b]))
                first[first == high] = low
    keys = list(zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True))
    return {keys[k]: keys[least] for k, least in enumerate(first.tolist()) if least != k}


def _near(duration: Floats, means: Floats) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Pairs of documents among which all copies are: their durations and some sums of means fall into neighbouring cells.

    No sum with signs of differences is more than that of absolute ones, so copies differ in each by less than a cell.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (means.shape[1], _SUMS))
    values = np.column_stack([duration / _DURATION, means @ signs / means.shape[1] / _MEAN])
    cells = np.floor(values - values.min(axis=0)).astype(np.int64) + 1
    weights = np.cumprod([1, *(cells.max(axis=0) + 2)[:-1]])
    order = np.argsort(cells @ weights, kind="stable")
    cell = (cells @ weights)[order]
    for step in sorted(int(np.dot(steps, weights)) for steps in product((-1, 0, 1), repeat=len(weights))):
        if step < 0:
            continue
        begin = np.arange(1, len(cell) + 1) if step == 0 else np.searchsorted(cell, cell + step)
        counts = np.searchsorted(cell, cell + step, "right") - begin
        this = np.repeat(np.arange(len(cell)), counts)
        other = np.arange(len(this)) + np.repeat(begin - np.cumsum(counts) + counts, counts)
        yield order[this], order[other]


def copies_in(store: Store) -> Copies:
    """The copies among the recordings of a store of frames, or of the store of frames around a store of words.

    Other stores have none. Documents that are places in recordings are not copies.
    """
    if store.manifest.kind != "frames":
        outer = Folder(store.folder.root.removesuffix(f"/{WORDS}"), store.folder.storage)
        is_inside = outer != store.folder and load(outer) is not None
        return copies_in(Store(outer)) if is_inside else Copies({})
    documents = store.documents(columns=list(SOUND))
    return Copies(copies(documents.filter(pc.is_null(documents["start"]))))


class Copies:
    """Recordings with one sound: what is found in one of them is found in all.

    Args:
        first: the recording that each copy is a copy of.
    """

    def __init__(self, first: Mapping[Key, Key]) -> None:
        self._first, self._same = first, defaultdict[Key, list[Key]](list)
        for copy, key in first.items():
            self._same[key] = self._same[key] or [key]
            self._same[key].append(copy)

    @property
    def most(self) -> int:
        """The greatest number of channels with one sound."""
        return max(map(len, self._same.values()), default=1)

    def first(self, key: Key) -> Key:
        """The first channel with the sound of a channel, by name."""
        return self._first.get(key, key)

    def also(self, key: Key) -> list[str]:
        """Names of other recordings with the sound of a channel."""
        return sorted({name for name, _ in self._same.get(self.first(key), ())} - {key[0]})

    def joined(self, rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        """Detections of a query, grouped by the same sound at the same time; the first by name leads its group.

        Args:
            rows: DETECTIONS, best first, a row each.
        """
        hits: list[list[Mapping[str, Any]]] = []
        by_second: defaultdict[tuple[Key, int], list[int]] = defaultdict(list)
        equal: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in rows:
            sound, exact = self.first((row["doc_id"], row["channel"])), tuple(row[name] for name in _EQUAL)
            seconds = range(int(row["start"]), int(row["end"]) + 1) if sound in self._same else ()
            if (hit := equal.get(exact)) is None:
                near = sorted({k for second in seconds for k in by_second[sound, second]})
                hit = next((hits[k] for k in near if _is_same(hits[k], row)), None)
            if hit is None:
                for second in seconds:
                    by_second[sound, second].append(len(hits))
                hits.append(hit := [])
            hit.append(row)
            equal[exact] = hit
        return [sorted(hit, key=lambda row: (row["doc_id"], row["channel"])) for hit in hits]

    def recordings(self, documents: pa.Table) -> tuple[int, float]:
        """Number of recordings, and their seconds; copies count once.

        Args:
            documents: doc_id, channel, recording, duration.
        """
        seconds: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for row in documents.select(["doc_id", "channel", "recording", "duration"]).to_pylist():
            if self.first((row["doc_id"], row["channel"]))[0] == row["doc_id"]:
                seconds[row["recording"] or row["doc_id"]][row["channel"]] += row["duration"]
        return len(seconds), sum(max(channels.values()) for channels in seconds.values())


#: Columns of detections in which those of equal channels do not differ.
_EQUAL = ("doc_id", "start", "end", "score")


def _is_same(hit: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> bool:
    """Whether a detection is another's at the same time: they share more than half of the shorter."""
    if any((other["doc_id"], other["channel"]) == (row["doc_id"], row["channel"]) for other in hit):
        return False
    shared = min(hit[0]["end"], row["end"]) - max(hit[0]["start"], row["start"])
    return bool(shared > min(hit[0]["end"] - hit[0]["start"], row["end"] - row["start"]) / 2)


def _marks(speech: bytes | None, frames: int) -> Bools | None:
    return None if speech is None else unpack_marks(speech, frames)


def _when(row: dict[str, object]) -> tuple[object, object]:
    return row["recording"] or row["doc_id"], row["start"]


def _alike(marks: Bools | None, others: Bools | None, enough: bool) -> bool:
    """Whether speech and pauses of two documents are at the same times.

    Args:
        marks, others: of each; None: unknown.
        enough: whether there need not be pauses.
    """
    if marks is None or others is None:
        return False
    count = min(len(marks), len(others))
    marks, others = marks[:count], others[:count]
    same = np.count_nonzero(marks != others) <= _MARKS * count
    speech, others_speech = marks.mean(), others.mean()
    by_chance = speech + others_speech - 2 * speech * others_speech
    return bool(same and (enough or by_chance >= _BY_CHANCE))
