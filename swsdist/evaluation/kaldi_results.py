"""Kaldi's keyword search results, as `kws-search` prints them.

    keyword utterance first-frame end-frame cost

The cost is -ln(posterior), never negative; frames are 0.01 s and count from the begin of the utterance, the end frame is
the one after the last. In the recipes the utterance is a number, listed in `utter_id` (`name number`); later it is a
name. A detection's score is exp(-cost), its times are in the recording.

A Kaldi data folder locates the utterances (`swsdist.corpora.kaldi`).

`as_kwslist` processes results as Kaldi's recipes do.

Sources: Kaldi (kws-search.cc; utils/write_kwslist.pl, by reading it).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import DataError, UserError
from swsdist.core.types import DETECTIONS
from swsdist.corpora.kaldi import Segment, Utterances
from swsdist.io.compressed import lines
from swsdist.io.fields import batches, fits, integer, number, split

#: Detections of Kaldi: those columns of DETECTIONS that it knows, and the duration. `decision` is null until decided.
RESULTS = pa.schema(
    [
        *(DETECTIONS.field(name) for name in ("query_id", "doc_id", "channel", "start", "end")),
        pa.field("duration", pa.float64(), False),
        *(DETECTIONS.field(name) for name in ("score", "decision")),
    ]
)

_LINE = re.compile(r"[^ \t]+[ \t]+[^ \t]+([ \t]+[0-9]+){2}[ \t]+[+-]?[0-9.]+([eE][+-]?[0-9]+)?")

#: Starts of a keyword's detections that are nearer than this are duplicates, in s: `--duptime` of `write_kwslist.pl`.
_APART = 0.5


def looks_like_results(head: bytes) -> bool:
    """Whether the first non-blank line is a result; no line of a system list or table is.

    Args:
        head: what the file begins with, unpacked.
    """
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    first = next((line for line in text.split("\n") if line.strip()), "")
    return _LINE.fullmatch(first.strip()) is not None


def read_results(
    path: str,
    utterances: Utterances | None = None,
    *,
    frame_shift: float = 0.01,
    storage: Mapping[str, object] | None = None,
) -> pa.Table:
    """Results of `kws-search`, schema RESULTS, in the order of the file.

    Args:
        path: plain or packed, local or `s3://`.
        utterances: their places; by default each utterance is a document.
        frame_shift: s of a frame.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file, or the frame shift is not positive.
        DataError: a line has not five fields, a field is impossible, an utterance is not known; with the line.
    """
    _check_shift(frame_shift)
    rows = _rows(path, utterances or Utterances(), frame_shift, storage)
    return pa.Table.from_batches(batches(rows, RESULTS), RESULTS)


def _rows(
    path: str, segments_of: Utterances, frame_shift: float, storage: Mapping[str, object] | None
) -> Iterator[tuple[object, ...]]:
    places: dict[str, Segment] = {}
    for line_number, line in lines(path, storage):
        fields = split(line)
        if not fields:
            continue
        where = f"{path}, line {line_number}"
        if len(fields) != 5:
            raise families.MALFORMED_LINE(
                "{fields} fields instead of 5",
                "give five: keyword utterance first-frame end-frame cost",
                where=where,
                fields=len(fields),
            )
        if fields[1] not in places:
            places[fields[1]] = segments_of.place(fields[1], where)
        there = places[fields[1]]
        first, last = integer(fields[2], "first frame", where), integer(fields[3], "end frame", where)
        if last < first:
            raise families.INVALID_TIMES(
                "end frame {last} is before first frame {first}",
                "give the lower of the two first",
                where=where,
                last=last,
                first=first,
            )
        # Kaldi prints costs below 0 as 0; other tools may not.
        score = math.exp(-max(0.0, number(fields[4], "cost", where)))
        start, duration = there.start + _seconds(first, frame_shift), _seconds(last - first, frame_shift)
        yield fields[0], there.doc_id, there.channel, start, start + duration, duration, score, None


def write_results(
    detections: pa.Table | Iterable[pa.RecordBatch],
    out: Path,
    utterances: Utterances | None = None,
    *,
    frame_shift: float = 0.01,
) -> None:
    """Write detections as `kws-search` prints them, so that `read_results` reads them back.

    Times are rounded to frames, and scores to the precision of a cost in double precision (a few units of the last place);
    results of `read_results` are read back unchanged. The format has no decisions.

    Args:
        detections: query_id, doc_id, channel, start, end (s), score, a posterior.
        out: local file to write.
        utterances: their places; by default each document is an utterance.
        frame_shift: s of a frame.

    Raises:
        UserError: no utterance holds a detection, or the frame shift is not positive.
        DataError: a name holds a blank, a score is not within 0 and 1, a time is impossible.
    """
    segments_of = utterances or Utterances()
    _check_shift(frame_shift)
    columns = ("query_id", "doc_id", "channel", "start", "end", "score")
    with out.open("w", encoding="utf-8", newline="\n") as file:
        for batch in detections.to_batches() if isinstance(detections, pa.Table) else detections:
            for query, document, channel, start, end, score in zip(
                *(batch.column(name).to_pylist() for name in columns), strict=True
            ):
                if not 0 <= score <= 1:
                    raise families.INVALID_VALUE.of(DataError)(
                        "query {query!r} has the score {score}",
                        "Kaldi's scores are posteriors, from 0 to 1; calibrate the list first",
                        where=str(out),
                        query=query,
                        score=score,
                    )
                if not 0 <= start <= end < math.inf:
                    raise families.INVALID_TIMES(
                        "a detection from {start} to {end} s is impossible",
                        "give 0 <= start <= end",
                        where=str(out),
                        start=start,
                        end=end,
                    )
                utterance, begin = segments_of.find(document, channel, start, end)
                first, last = (round(max(0.0, time - begin) / frame_shift) for time in (start, end))
                for name in (query, utterance):
                    if not fits(name):
                        raise families.UNWRITABLE_NAME.of(DataError)(
                            "Kaldi's results cannot contain the name {name!r}", "rename it", where=str(out), name=name
                        )
                file.write(f"{query} {utterance} {first} {last} {_cost(score)!r}\n")


def as_kwslist(
    results: pa.Table,
    *,
    seconds: float,
    beta: float = 999.9,
    ntrue_scale: float = 1.0,
    normalize: bool = False,
    remove_duplicates: bool = False,
) -> pa.Table:
    """Process results as Kaldi's `write_kwslist.pl`: decide by keyword-specific thresholds, and round times.

    With S the sum of a keyword's posteriors, duplicates included, and N = ntrue_scale S, a detection is YES if its posterior
    is greater than thr = N / (T / beta + (beta - 1) / beta N): estimated KST (Wang and Metze 2014, eq. 4). Normalised scores
    are (1 - thr) s / ((1 - thr) s + thr (1 - s)), so that thr becomes 0.5.

    Of a keyword's detections in a document and channel whose starts differ by less than half a second, the best remains (of
    equal ones the longer, then the first). For a chain of three such starts the script's result depends on its sort; here the
    best of all is taken first, then the best of those not too close to a taken one.

    Args:
        results: schema RESULTS.
        seconds: T, `--duration`.
        beta: `--beta`.
        ntrue_scale: `--Ntrue-scale`.
        normalize: `--normalize`.
        remove_duplicates: `--remove-dup`.

    Returns:
        Schema RESULTS, rows in their order; start and duration have two decimals.

    Raises:
        UserError: T or beta is not positive.
    """
    for name, value in (("seconds", seconds), ("beta", beta)):
        if not 0 < value < math.inf:
            raise codes.VALUE_NOT_POSITIVE(name=name, value=value)
    sums: dict[str, list[float]] = {}
    for query, score in zip(results["query_id"].to_pylist(), results["score"].to_pylist(), strict=True):
        sums.setdefault(query, []).append(score)
    threshold = {}
    for query, scores in sums.items():
        ntrue = ntrue_scale * math.fsum(scores)
        threshold[query] = ntrue / (seconds / beta + (beta - 1) / beta * ntrue)
    start = np.array([float(f"{time:.2f}") for time in results["start"].to_pylist()], dtype=np.float64)
    duration = np.array([float(f"{time:.2f}") for time in results["duration"].to_pylist()], dtype=np.float64)
    kept = np.arange(results.num_rows)
    if remove_duplicates:
        kept = _without_duplicates(results, start, duration)
    rows = results.take(pa.array(kept))
    score = rows["score"].to_numpy()
    limit = np.array([threshold[query] for query in rows["query_id"].to_pylist()], dtype=np.float64)
    decision = score > limit
    if normalize:
        over, under = (1 - limit) * score, limit * (1 - score)
        score = np.where(over + under > 0, over / np.where(over + under > 0, over + under, 1.0), score)
    columns = {
        **{name: rows[name] for name in ("query_id", "doc_id", "channel")},
        "start": start[kept],
        "end": start[kept] + duration[kept],
        "duration": duration[kept],
        "score": score,
        "decision": decision,
    }
    return pa.table(columns, schema=RESULTS)


def _without_duplicates(results: pa.Table, start: np.ndarray, duration: np.ndarray) -> np.ndarray:
    """Indices of the remaining rows, ascending."""
    taken: dict[tuple[str, str, int], list[float]] = {}
    keys = list(zip(*(results[name].to_pylist() for name in ("query_id", "doc_id", "channel")), strict=True))
    stay = []
    for row in np.lexsort((-duration, -results["score"].to_numpy())).tolist():
        near = taken.setdefault(keys[row], [])
        if all(abs(other - start[row]) >= _APART for other in near):
            near.append(start[row])
            stay.append(row)
    return np.sort(np.array(stay, dtype=np.int64))


def _seconds(frames: int, shift: float) -> float:
    """A multiple of the frame shift, without the noise of the product: 3 frames of 0.01 s are 0.03 s."""
    return round(frames * shift, 9)


def _cost(score: float) -> float:
    """-ln(score), or the adjacent double whose exp is the score, if there is one."""
    if score == 0:
        return 746.0  # exp underflows beyond this
    cost = -math.log(score) + 0.0
    around = [cost, *(math.nextafter(cost, to) for to in (0.0, math.inf))]
    return next((item for item in around if math.exp(-item) == score), cost)


def _check_shift(frame_shift: float) -> None:
    if not 0 < frame_shift < math.inf:
        raise families.INVALID_VALUE.of(UserError)(
            "the frame shift is {frame_shift} s", "give seconds above 0; Kaldi's is 0.01", frame_shift=frame_shift
        )
