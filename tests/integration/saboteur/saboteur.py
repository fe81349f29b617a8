"""An extractor from a third party, found through an entry point: MFCC that misbehaves where a file tells it to.

The environment variable SABOTAGE names a JSON file (no file: it behaves)::

    {"how": "kill" | "memory" | "tell" | "system" | "user", "samples": [150480], "seconds": 0.5}

or ``{"how": "start", "workers": 1}``: so many workers cannot start, since their disks are full (`Fussy`).
``{"sleep": {"index": 0.5, "search": 1.0}}``: so many seconds more a recording, to index, or to search (`slow-cosine`).
``{"writing": "rows" | "tail"}``: the export `killed-csv` kills its process there, once.
``{"hold": 2}``: all recordings but the first two wait until there is no order, or another.
Meanwhile there is a file beside the order, ``sabotage.<stage>@<host>@<pid>``, that tells who is at work.

A recording of one of these lengths, in samples, meets that fate; each other one costs so many CPU seconds more. Queries,
which are shorter than 2 s, are left alone; and where there is no order any more, nothing takes longer.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.errors import UserError
from swsdist.exports.lists import CsvTable
from swsdist.features.mfcc import Mfcc
from swsdist.kernels.distances.cosine import plain
from swsdist.kernels.distances.interface import Distance, Prepared, Side
from swsdist.pipeline.chain import Context
from swsdist.registry.entries import DistanceEntry, ExportEntry


class Saboteur(Mfcc):
    """Its options are those of MFCC, and so are its frames."""

    name: ClassVar[str] = "saboteur"

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        order = Path(os.environ["SABOTAGE"])
        if len(samples) > 2 * self.sample_rate and order.exists():
            hold(order)
        if len(samples) > 2 * self.sample_rate and order.exists():
            told = json.loads(order.read_text())
            if len(samples) in told.get("samples", ()):
                misbehave(told["how"])
            rest(order, "index")
            busy_until = time.process_time() + told.get("seconds", 0.0)
            while time.process_time() < busy_until and order.exists():
                np.sqrt(np.arange(10_000.0)).sum()
        return super().extract(samples)


def slow(name: str, unit: int, dimension: int) -> Distance:
    """Cosine distance, which takes a document's frames its time."""
    cosine = plain(name, unit, dimension)

    def fill(values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
        order = Path(os.environ["SABOTAGE"])
        if side == "document" and order.exists():
            rest(order, "search")
        return cosine.fill(values, side, where)

    return replace(cosine, fill=fill)


def hold(order: Path) -> None:
    """Wait as long as the order says so; as many recordings as it lets through do not."""
    while (many := _told(order).get("hold")) is not None:
        for number in range(many):
            with suppress(FileExistsError):
                order.with_suffix(f".through-{number}").touch(exist_ok=False)
                return
        time.sleep(0.01)


def _told(order: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(order.read_text()))
    except FileNotFoundError:
        return {}


def rest(order: Path, stage: str) -> None:
    """Take the time that the order gives a stage, and show it."""
    seconds = json.loads(order.read_text()).get("sleep", {}).get(stage, 0.0)
    if seconds:
        shown = order.with_suffix(f".{stage}@{socket.gethostname()}@{os.getpid()}")
        shown.touch()
        time.sleep(seconds)
        shown.unlink(missing_ok=True)


SLOW = DistanceEntry("saboteur:slow", 1)


class KillsWriters(CsvTable):
    """The CSV export, whose task for a part (`{"writing": "rows"}`), or that puts parts together (`"tail"`), is killed once."""

    file = "killed.csv"

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        self._kill("rows")
        return super().rows(batches)

    def tail(self, queries: Sequence[str]) -> bytes:
        self._kill("tail")
        return super().tail(queries)

    def _kill(self, writing: str) -> None:
        order = Path(os.environ["SABOTAGE"])
        if _told(order).get("writing") == writing:
            order.unlink(missing_ok=True)
            misbehave("kill")


kills_writers = KillsWriters()
KILLED_CSV = ExportEntry("saboteur:kills_writers", 1, rows=True)


def misbehave(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "memory":
        raise MemoryError("sabotaged: 99 GB")
    elif how == "tell":  # as libraries do that put into a message what they were given
        raise RuntimeError(f"cannot reach {os.environ['TELL']} as {os.environ['AWS_SECRET_ACCESS_KEY']}")
    elif how == "system":
        raise OSError(5, "sabotaged disk")
    elif how == "user":
        raise UserError("sabotaged settings", where="features", remedy="do not sabotage")
    raise ValueError(f"unknown order {how!r}")


class Fussy(Context):
    """A context that some of the workers cannot use: their accounts have no place."""

    def __getattribute__(self, name: str) -> Any:
        order = Path(os.environ["SABOTAGE"])
        if name == "run" and "ray" in sys.modules and not hasattr(sys, "_is_driver") and order.exists():
            for number in range(json.loads(order.read_text()).get("workers", 0)):
                try:
                    order.with_suffix(f".{number}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().__getattribute__(name)
