"""Each system call on a file of a corpus or a store fails once: stages in forked processes, into which a library is loaded.

`failing.c` is the library, `driver.py` the process (folder `shim`). What a stage finds is prepared once, and put back before
each case.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent / "shim"
#: What may pass: of reading, and of writing.
READING = (errno.EIO, errno.ESTALE, errno.EINTR)
WRITING = (errno.ENOSPC, errno.EIO)
#: What does not.
REFUSING = (errno.EACCES, errno.EPERM)
_NAMES = re.compile(r"[0-9a-f]{12,}|\.tmp/.*|\d{3,}")


class Call(NamedTuple):
    """A system call of a stage: its number from 0, whether it reads (`r`) or writes (`w`), its name, and the file."""

    number: int
    kind: str
    name: str
    path: str

    @property
    def like(self) -> tuple[str, str]:
        """What it has in common with others: name, and file without what is random in its name."""
        return self.name, _NAMES.sub("#", self.path)


@dataclass
class Prepared:
    """A stage: what it finds, the calls that it makes, and what it comes to."""

    name: str
    found: Path
    calls: list[Call]
    digest: dict[str, str]


@dataclass
class Failing:
    """A process with the library; the run is `run` in its folder, and files of the corpus and the store are watched."""

    folder: Path
    config: dict[str, Any]
    corpus: Path
    process: Any = None
    stages: list[Prepared] = field(default_factory=list)
    without: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def start(self) -> None:
        library = self.folder / "failing.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "failing.c", "-ldl"], check=True)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py")],
            env={**os.environ, "LD_PRELOAD": str(library)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()

    def ask(
        self, until: str, at: int = -1, number: int = 0, log: Path | None = None, config: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Run as far as a stage, with a call that fails."""
        order = {
            "config": {**(config or self.config), "run": str(self.run)},
            "until": until,
            "watch": [str(self.corpus), str(self.run / "store")],
            "at": at,
            "number": number,
            "log": str(log) if log else "",
        }
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))

    def prepare(self, names: list[str]) -> None:
        """Run all stages, one after the other; keep what each finds."""
        for name in names:
            found = self.folder / f"before-{name}"
            shutil.copytree(self.run, found, symlinks=True) if self.run.exists() else found.mkdir()
            log = self.folder / "log"
            told = self.ask(name, log=log)
            assert told["code"] == 0, told
            rows = [line.split(" ", 2) for line in log.read_text().splitlines()]
            calls = [Call(k, *row) for k, row in enumerate(rows)]
            self.stages.append(Prepared(name, found, calls, told["digest"]))

    def back(self, stage: Prepared) -> None:
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.copytree(stage.found, self.run, symlinks=True)

    def case(self, stage: Prepared, call: Call, number: int) -> tuple[str, dict[str, Any]]:
        """What is wrong with how a stage takes a call that fails with an error; empty if nothing is. And what it said."""
        self.back(stage)
        told = self.ask(stage.name, call.number, number)
        if told["code"] == 0:
            wrong = other(told["digest"], stage.digest)
            if wrong and number in REFUSING:
                return self.refused(told), told
            return (f"it ends well, with other {wrong}" if wrong else ""), told
        if told["code"] not in (2, 3, 4):
            return f"it ends with {told['code']}", told
        again = self.ask(stage.name)
        if again["code"] != 0:
            return f"it does not go on: {again['said']}", told
        wrong = other(again["digest"], stage.digest)
        return (f"going on gives other {wrong}" if wrong else ""), told

    def refused(self, told: dict[str, Any]) -> str:
        """What is wrong with a run whose rights did not suffice for one document: empty if it is that of the others."""
        path = told["failed"].split(" ", 2)[2]
        lacking = [one for one in told["rejected"] if one[0] == "document"]
        if [one[1] for one in lacking] != [Path(path).stem]:
            return f"{path} may not be read, and rejected are {lacking}"
        if path not in self.without:
            rest = self.folder / f"without-{Path(path).stem}"
            shutil.copytree(self.corpus, rest)
            (rest / Path(path).relative_to(self.corpus)).unlink()
            for table in ("docs.csv", "refs.csv"):
                lines = (rest / table).read_text().splitlines(keepends=True)
                (rest / table).write_text("".join(line for line in lines if Path(path).stem not in line))
            shutil.rmtree(self.run, ignore_errors=True)
            config = json.loads(json.dumps(self.config).replace(str(self.corpus), str(rest)))
            self.without[path] = self.ask("index", config=config)["digest"]
        wrong = other(told["digest"], self.without[path])
        return f"without {path} there are other {wrong}" if wrong else ""


def other(found: dict[str, str], wanted: dict[str, str]) -> str:
    return ", ".join(sorted(name for name in wanted if found.get(name) != wanted[name]))


def chosen(stages: list[Prepared], like: int) -> Iterator[tuple[Prepared, Call]]:
    """Of calls of a stage that are alike the first ones and the last, `like` of them; those that an earlier stage makes as well
    are the driver's. With 0 all calls of all stages.
    """
    seen: set[tuple[str, str]] = set()
    for stage in stages:
        groups: dict[tuple[str, str], list[Call]] = {}
        for call in stage.calls:
            groups.setdefault(call.like, []).append(call)
        for key, calls in groups.items():
            if key not in seen or like < 1:
                some = calls if like < 1 else [*calls[: like - 1], calls[-1]]
                yield from ((stage, call) for call in dict.fromkeys(some))
        seen |= groups.keys()


def errors(call: Call, corpus: Path) -> tuple[int, ...]:
    """With which a call may fail."""
    if call.kind == "w":
        return WRITING
    document = call.path.startswith(f"{corpus}/audio/") and call.name in ("open", "access", "stat", "stat64")
    refused = REFUSING if document else ()
    return READING + refused
