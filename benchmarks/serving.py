"""The server under load: ten people who ask every 20 seconds, over a store that there is.

`swsdist serve STORE` runs as a process of its own; each person asks with another query of Mboshi dev, or of the corpus of the
demo, over HTTP. Told are the seconds until the first hits and until the end of an answer (median and 95th percentile), errors,
and the server's PSS without file pages at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import base, read
from benchmarks.rows import Row, at_most, say, show
from swsdist import api
from swsdist.pipeline.chain_run import StepSelection


class Person:
    """A browser without a page."""

    def __init__(self, address: str) -> None:
        self._root = address.split("?")[0].rstrip("/")
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self._opener.open(address).read()

    def post(self, path: str, body: bytes, **headers: str) -> Any:
        """The open answer to a request."""
        request = urllib.request.Request(f"{self._root}{path}", body, {"X-Swsdist": "1", **headers})
        return self._opener.open(request)

    def place(self, path: Path) -> dict[str, Any]:
        """A recording, sent, as a place."""
        sound = json.load(self.post("/api/sounds", path.read_bytes()))
        return {"sound": sound["sound"], "channel": 1, "start": 0.0, "end": sound["duration"]}

    def ask(self, place: dict[str, Any]) -> tuple[float, float, int]:
        """Seconds until the first hits and the end, and the number of hits."""
        began = time.perf_counter()
        first, hits = None, 0
        with self.post("/api/search", json.dumps({"examples": [place]}).encode()) as answer:
            for line in answer:
                found = json.loads(line)
                if "error" in found:
                    raise RuntimeError(found["error"])
                hits = len(found["hits"])
                if first is None and hits:
                    first = time.perf_counter() - began
        end = time.perf_counter() - began
        return first or end, end, hits


def private(pid: int) -> float:
    """PSS without file pages of a process and its children, GB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilobytes = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return (kilobytes["Pss_Anon"] + kilobytes["Pss_Shmem"]) * 1024 / 1e9


def measure(store: str, people: int, seconds: float, every: float, scratch: Path, sets: list[str]) -> list[Row]:
    """All figures."""
    corpus = base(scratch)
    queries = [Path(row["path"]) for row in read(corpus.queries) if row["example"] == "1"]
    command = [
        sys.executable,
        "-m",
        "swsdist.cli.main",
        "serve",
        store,
        "--project",
        str(scratch / "words"),
        "--port",
        "0",
    ]
    for each in sets:
        command += ["--set", each]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(line.split()[1] for line in process.stdout if line.startswith("open:"))
        alone = Person(address)
        places = [alone.place(path) for path in queries[: people + 2]]
        say("serving: alone")
        times = [alone.ask(places[k % len(places)]) for k in range(8)][2:]
        rows = [
            Row("alone: first hits", float(np.median([first for first, *_ in times])), "s", at_most(1)),
            Row("alone: the whole answer", float(np.median([end for _, end, _ in times])), "s", at_most(3)),
        ]
        say(f"serving: {people} people for {seconds:.0f} s")
        asked: list[tuple[float, float, int]] = []
        errors: list[str] = []

        def person(number: int) -> None:
            me = Person(address)
            place = me.place(queries[number % len(queries)])
            time.sleep(every * number / people)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                began = time.monotonic()
                try:
                    asked.append(me.ask(place))
                except Exception as error:  # told as a figure
                    errors.append(repr(error))
                time.sleep(max(0.0, every - (time.monotonic() - began)))

        threads = [threading.Thread(target=person, args=(k,)) for k in range(people)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        first, end, _ = (np.array(values) for values in zip(*asked, strict=True))
        rows += [
            Row(f"{people} people: answers", len(asked), ""),
            Row(f"{people} people: errors", len(errors), "", at_most(0)),
            Row(f"{people} people: first hits, median", float(np.median(first)), "s"),
            Row(f"{people} people: first hits, 95 %", float(np.quantile(first, 0.95)), "s", at_most(3)),
            Row(f"{people} people: the whole answer, 95 %", float(np.quantile(end, 0.95)), "s"),
            Row("PSS without file pages", private(process.pid), "GB", at_most(1.5)),
        ]
        if errors:
            say(errors[0])
        return rows
    finally:
        process.terminate()
        process.wait(20)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "store",
        nargs="?",
        help="a store or a run, as of `python -m benchmarks.questions --store`; by default one hour's",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SECONDS_OF_LOAD", "600")))
    parser.add_argument("--every", type=float, default=20.0, help="seconds between one's questions")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="search.KEY=VALUE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        store = given.store
        if store is None:
            store = str(Path(scratch) / "run")
            config = base(Path(scratch)).config(Path(store), executor={"kind": "serial"})
            api.run(config, selection=StepSelection(until="index"))
        rows = measure(store, given.people, given.seconds, given.every, Path(scratch), given.sets)
    show(rows, given.json)


if __name__ == "__main__":
    main()
