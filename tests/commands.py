"""`swsdist` as a user types it: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def in_this_process(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ended:
    """Run `swsdist` as in a process of its own, but for the process: arguments, folder, environment, what it prints."""
    from swsdist.cli import main

    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(sys, "argv", ["swsdist", *map(str, arguments)])
        patch.chdir(cwd or Path.cwd())
        for name, value in {"COLUMNS": "200", **environment}.items():
            patch.setenv(name, value)
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        code = main._run()
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode())
    return Ended(code, *said)


def in_its_own_process(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> Ended:
    """The same where the process is the point: how it starts, how it ends, what it does with signals and pipes."""
    done = subprocess.run(
        [sys.executable, "-m", "swsdist.cli.main", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def hits(ended: Ended) -> list[dict[str, str]]:
    """Rows that a command printed with `--csv`."""
    return list(csv.DictReader(io.StringIO(ended.out)))


Command = Callable[..., Ended]


def expecting(run: Command) -> Command:
    """The same with a keyword `code`: the exit code that is expected, 0 if it is not given. Only a bug has a traceback."""

    def checked(*arguments: str | Path, code: int = 0, cwd: Path | None = None, **environment: str) -> Ended:
        ended = run(*arguments, cwd=cwd, **environment)
        assert ended.code == code, ended.out + ended.err
        assert ("Traceback" in ended.err) == (code == 1)
        return ended

    return checked


def untold(run: Command, cases: Mapping[str, str], cwd: Path | None = None, code: int = 2) -> dict[str, str]:
    """Of commands, typed as in a shell: those that did not tell what they should, and what they said.

    Args:
        run: `in_this_process`, or with an exit code that is checked.
        cases: by what is typed, parts of what is told, with `..` between them.
        cwd: where they run.
        code: the exit code of all. A remedy is told in any case.
    """
    wrong = {}
    for typed, parts in cases.items():
        ended = run(*shlex.split(typed), cwd=cwd, code=code)
        if not all(part in ended.err for part in (*parts.split(" .. "), "remedy: ")):
            wrong[typed] = ended.err
    return wrong


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """Entries of a folder below which files differ, came or went, by what is known of each file."""
    return {Path(name).parts[0] for name in after.keys() | before.keys() if after.get(name) != before.get(name)}
