"""A measured figure with its goal, and how figures are shown and written.

In JSON a row is `{"name", "value", "unit", "goal", "reached"}`: `goal` is text such as `<= 1.15`, or null where a figure is
only for information; `reached` is true, false, or null without a goal or without a value. A value is null where the figure
could not be measured here, and its name says why.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Goal:
    """`at_most` (or, if it is false, at least) so much."""

    bound: float
    at_most: bool

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.bound:g}"

    @classmethod
    def parse(cls, text: str) -> Goal:
        """From what `str` gives."""
        sign, bound = text.split()
        if sign not in ("<=", ">="):
            raise ValueError(f"a goal begins with <= or >=, not with {sign!r}")
        return cls(float(bound), sign == "<=")

    def met(self, value: float) -> bool:
        """Whether a value reaches it; NaN does not."""
        return value <= self.bound if self.at_most else value >= self.bound


def at_most(bound: float) -> Goal:
    """Reached by values up to the bound."""
    return Goal(bound, True)


def at_least(bound: float) -> Goal:
    """Reached by values from the bound on."""
    return Goal(bound, False)


@dataclass(frozen=True)
class Row:
    """A figure. Whether it reaches its goal is decided on the value as measured, not as shown."""

    name: str
    value: float | None
    unit: str
    goal: Goal | None = None

    @property
    def reached(self) -> bool | None:
        """None without a goal, or without a value."""
        return None if self.goal is None or self.value is None else self.goal.met(self.value)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        goal = None if self.goal is None else str(self.goal)
        return {**asdict(self), "goal": goal, "reached": self.reached}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Row:
        """From plain values; `reached` follows from the others."""
        goal = None if values["goal"] is None else Goal.parse(values["goal"])
        return cls(values["name"], values["value"], values["unit"], goal)


def table(rows: Sequence[Row]) -> str:
    """The rows as text: name, value, unit, goal, and whether it was reached."""
    words = {True: "reached", False: "NOT REACHED", None: ""}
    cells = [("", "value", "unit", "goal", "")]
    for row in rows:
        value = "not measured" if row.value is None else f"{row.value:.4g}"
        cells.append((row.name, value, row.unit, "" if row.goal is None else str(row.goal), words[row.reached]))
    widths = [max(len(line[k]) for line in cells) for k in range(5)]
    lines = [
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {unit:<{widths[2]}}  {goal:<{widths[3]}}  {word}".rstrip()
        for name, value, unit, goal, word in cells
    ]
    goals = [row for row in rows if row.goal is not None]
    missed = sum(row.reached is False for row in goals)
    unknown = sum(row.reached is None for row in goals)
    reached = f"{len(goals) - missed - unknown} of {len(goals)} goals reached"
    return "\n".join([*lines, "", reached + (f", {unknown} not measured" if unknown else "")])


def write_json(path: Path, rows: Iterable[Row]) -> None:
    """A list of rows."""
    path.write_text(json.dumps([row.to_json() for row in rows], indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> list[Row]:
    """What `write_json` wrote."""
    return [Row.from_json(values) for values in json.loads(path.read_text(encoding="utf-8"))]


def show(rows: Sequence[Row], path: Path | None) -> None:
    """Print the rows, and write them to a file if one is named."""
    print(table(rows))
    if path is not None:
        write_json(path, rows)


def say(text: str) -> None:
    """What is being done, for who waits."""
    print(text, file=sys.stderr, flush=True)


def main(measure: Callable[[Path], list[Row]], text: str | None) -> None:
    """Command line of a benchmark.

    Args:
        measure: measures, given an empty folder that is removed afterwards.
        text: its module's docstring, whose first paragraph is the help.
    """
    parser = argparse.ArgumentParser(description=(text or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        rows = measure(Path(scratch))
    show(rows, arguments.json)
