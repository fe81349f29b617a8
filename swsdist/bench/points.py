"""The points of a benchmark: numbers of workers, multiples of the data, and repetitions, in random order.

Data are multiplied without copies of audio: each further copy of a document is another `doc_id` of the same recording. The
first copy keeps its name, so that queries and references stay valid.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.config import Config
from swsdist.core.codes import bench as codes
from swsdist.core.types import CORPUS
from swsdist.corpora.documents import read_documents
from swsdist.registry.registries import METHODS


class BenchPoint(NamedTuple):
    """One run of a benchmark: workers, times the data, and which repetition, from 0."""

    workers: int
    times: int
    repeat: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"w{self.workers}-x{self.times}-r{self.repeat}"


def points_of(workers: Sequence[int], times: Sequence[int], repeats: int, seed: int) -> list[BenchPoint]:
    """All points, in random order within each repetition, so that changes over time affect all equally.

    Raises:
        UserError: a number is below 1, or given twice.
    """
    for name, values in (("--workers", workers), ("--times", times), ("--repeats", [repeats])):
        if not values or min(values) < 1 or len(set(values)) < len(values):
            raise codes.INVALID_COUNTS(where=name, option=name, values=",".join(map(str, values)) or "empty")
    draw = random.Random(seed)
    results = []
    for repeat in range(repeats):
        some = [BenchPoint(w, x, repeat) for w in workers for x in times]
        draw.shuffle(some)
        results += some
    return results


def config_at(config: Config, point: BenchPoint, folder: Path) -> Config:
    """The config of a point: with its run in the folder, and its store in the run.

    Raises:
        UserError: the corpus cannot be multiplied, or a serial run has several workers.
    """
    if config.executor.entry.in_driver and point.workers > 1:
        raise codes.SERIAL_WORKERS(where="--workers", workers=point.workers)
    corpus = config.corpus
    if point.times > 1:
        place = folder / f"documents-x{point.times}.parquet"
        if not place.exists():
            _write(multiplied(config, point.times), place)
        # The table has absolute paths and speakers.
        corpus = corpus.model_copy(update={"documents": str(place), "audio": None, "prefer": (), "speakers": None})
    return config.model_copy(
        update={
            "run": str(folder / "runs" / point.name),
            "corpus": corpus,
            "index": config.index.model_copy(update={"store": None}),
            "executor": config.executor.model_copy(update={"workers": point.workers}),
            "strict": False,
        }
    )


def multiplied(config: Config, times: int) -> pa.Table:
    """The documents of a config, multiplied, as CORPUS.

    Raises:
        UserError: the documents are segments or of lattices, or their features are precomputed.
    """
    corpus = config.corpus
    if METHODS[config.search.method].queries == "text":
        raise codes.COPIED_LATTICES(where="--times")
    if any(feature.name == "external" for feature in config.features):
        raise codes.UNNAMED_COPIES(where="features")
    results = read_documents(
        corpus.documents, config.storage, corpus.speakers, prefer=corpus.prefer, audio_folder=corpus.audio
    )
    if results.schema.names != CORPUS.names:
        raise codes.COPIED_SEGMENTS(where="corpus.documents")
    copies = [results]
    for k in range(1, times):
        names = pa.array([f"{name}~{k}" for name in results["doc_id"].to_pylist()], pa.string())
        copies.append(results.set_column(0, results.schema.field(0), names))
    return pa.concat_tables(copies)


def _write(table: pa.Table, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(".part")
    pq.write_table(table, part)
    part.replace(place)
