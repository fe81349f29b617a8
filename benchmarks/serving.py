"""The server under load: ten people who ask every 10 seconds, over a store that there is.

`swsdist serve STORE` runs as a process of its own; each question is by another query of Mboshi dev, or of the demo's corpus.
Every second person collects: confirms the best hits of an answer as examples of an entry, and asks by these. The rows give the
seconds until the first hits and until the end of an answer (median and 95th percentile), those of the first question after a
start, errors, and the server's PSS without file pages at the end.
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

#: Hits that a person judges, and those of them that are examples.
_JUDGED, _EXAMPLES = 6, 3


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

    def ask(self, **question: Any) -> tuple[float, float, dict[str, Any]]:
        """Seconds until the first hits and the end, and the whole answer."""
        began = time.perf_counter()
        first, found = None, dict[str, Any]()
        with self.post("/api/search", json.dumps(question).encode()) as answer:
            for line in answer:
                found = json.loads(line)
                if "error" in found:
                    raise RuntimeError(found["error"])
                if first is None and found["hits"]:
                    first = time.perf_counter() - began
        end = time.perf_counter() - began
        return first or end, end, found

    def collect(self, place: dict[str, Any]) -> tuple[float, float, dict[str, Any]]:
        """The same of a question by a new entry, whose examples are a place and the best hits of a search by it."""
        entry = json.load(self.post("/api/entries", json.dumps({"form": place["sound"][:12]}).encode()))["entry_id"]
        _, _, found = self.ask(examples=[place], entry_id=entry)
        for k, hit in enumerate(found["hits"][:_JUDGED]):
            at = {name: hit[name] for name in ("doc_id", "start", "end")} | {"channel": hit["channels"][0]}
            verdict = {"verdict": "yes", "example": True} if k < _EXAMPLES else {"verdict": "no"}
            token = {"place": at, "score": hit["score"], "search": found["search"], **verdict}
            self.post(f"/api/entries/{entry}/tokens", json.dumps(token).encode()).read()
        return self.ask(entry_id=entry)


def private(pid: int) -> float:
    """PSS without file pages of a process and its children, GB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilobytes = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return (kilobytes["Pss_Anon"] + kilobytes["Pss_Shmem"]) * 1024 / 1e9


def measure(
    store: str, people: int, seconds: float, every: float, most: float, scratch: Path, sets: list[str]
) -> list[Row]:
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
        began, alone = time.perf_counter(), Person(address)
        places = [alone.place(path) for path in queries[: people + 2]]
        alone.ask(examples=[places[-1]])
        after_start = time.perf_counter() - began
        say("serving: alone")
        times = [alone.ask(examples=[places[k % len(places)]]) for k in range(8)][2:]
        rows = [
            Row("the first question after a start", after_start, "s", at_most(3)),
            Row("alone: first hits", float(np.median([first for first, *_ in times])), "s", at_most(1)),
            Row("alone: the whole answer", float(np.median([end for _, end, _ in times])), "s", at_most(3)),
        ]
        say(f"serving: {people} people for {seconds:.0f} s")
        asked: list[tuple[float, float]] = []
        errors: list[str] = []

        def person(number: int) -> None:
            me = Person(address)
            time.sleep(every * number / people)
            until, count = time.monotonic() + seconds, 0
            while time.monotonic() < until:
                began = time.monotonic()
                try:
                    place = me.place(queries[(number + people * count) % len(queries)])
                    first, end, _ = me.collect(place) if number % 2 else me.ask(examples=[place])
                    asked.append((first, end))
                except Exception as error:  # told as a figure
                    errors.append(repr(error))
                count += 1
                time.sleep(max(0.0, every - (time.monotonic() - began)))

        threads = [threading.Thread(target=person, args=(k,)) for k in range(people)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        first, end = (np.array(values) for values in zip(*asked, strict=True))
        rows += [
            Row(f"{people} people: answers", len(asked), ""),
            Row(f"{people} people: errors", len(errors), "", at_most(0)),
            Row(f"{people} people: first hits, median", float(np.median(first)), "s"),
            Row(f"{people} people: first hits, 95 %", float(np.quantile(first, 0.95)), "s", at_most(3)),
            Row(f"{people} people: the whole answer, median", float(np.median(end)), "s"),
            Row(f"{people} people: the whole answer, 95 %", float(np.quantile(end, 0.95)), "s", at_most(most)),
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
    parser.add_argument("--every", type=float, default=10.0, help="seconds between one's questions")
    parser.add_argument("--most", type=float, default=3.0, help="goal of an answer's 95th percentile, s")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="search.KEY=VALUE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        store = given.store
        if store is None:
            store = str(Path(scratch) / "run")
            config = base(Path(scratch)).config(Path(store), executor={"kind": "serial"})
            api.run(config, selection=StepSelection(until="index"))
        rows = measure(store, given.people, given.seconds, given.every, given.most, Path(scratch), given.sets)
    show(rows, given.json)


if __name__ == "__main__":
    main()
