"""Finds golden cases below folders, runs them, and says where our numbers are not theirs.

A group is a module that knows one shape of case::

    NAME: str                            # what answers: a program, or a formula
    def handles(folder: Path) -> bool    # is that folder a case of mine?
    def run(folder: Path) -> Case

A new group is one file and one line in `GROUPS`. A case that raises is off, with the error as its difference, and the others
go on. What a case's files mark as depending on an order, or as the original's death, is not imitated: the case says in
`treated` what was done instead.
"""

import importlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from swsdist.core.errors import SwsdistError, UserError
from swsdist.io.compressed import opened

#: Modules of the groups, asked in this order: the lists of QUESST have the form of NIST's.
GROUPS = ["cnxe", "quesst", "nist", "lattices", "kws", "phrases", "zerospeech", "superb"]


class Difference(NamedTuple):
    """A value that is not what the case says."""

    what: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.what}: {self.ours!r} instead of {self.theirs!r}"


@dataclass
class Case:
    """What came of a case: values that are off, the largest difference of each measure, how many values were compared, and
    how what the case marks as undefined was treated, a sentence each.
    """

    name: str
    folder: Path
    differences: list[Difference] = field(default_factory=list)
    largest: dict[str, float] = field(default_factory=dict)
    compared: int = 0
    treated: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """A case of which nothing was compared yet."""
        return cls(folder.name, folder)

    def equal(self, what: str, ours: object, theirs: object) -> None:
        """Compare two values that must be the same."""
        self.compared += 1
        if ours != theirs:
            self.differences.append(Difference(what, ours, theirs))

    def close(
        self,
        measure: str,
        ours: float,
        theirs: float,
        tolerance: float,
        *,
        what: str | None = None,
        rounding: float = 0.0,
    ) -> None:
        """Compare two numbers; two that are not numbers, or the same infinity, are the same.

        The difference counts for `measure` in `largest`; only what goes beyond the rounding of the case's number as it is
        written is one.
        """
        self.compared += 1
        same = ours == theirs or (math.isnan(ours) and math.isnan(theirs))
        apart = abs(float(ours) - theirs) - rounding
        if same or apart < 0:
            apart = 0.0
        known = self.largest.get(measure, 0.0)
        self.largest[measure] = apart if math.isnan(apart) or apart > known else known  # not a number is the largest
        if not apart <= tolerance:
            self.differences.append(Difference(what or measure, float(ours), theirs))


class Found(NamedTuple):
    """A folder that is a case, and the group that knows it."""

    folder: Path
    group: Any


def groups() -> list[Any]:
    """The modules of `GROUPS`."""
    return [importlib.import_module(f"tests.support.golden.{name}") for name in GROUPS]


def cases_below(folder: Path) -> Iterator[Found]:
    """Every case in a folder, itself or at any depth, by name; it is a mistake if there is none."""
    if not folder.is_dir():
        raise UserError("there is no such folder", where=str(folder), remedy="look at the path")
    found = list(_walk(folder, groups()))
    yield from found
    if not found:
        names = ", ".join(group.NAME for group in groups())
        raise UserError("there is no case in it", where=str(folder), remedy=f"name a folder of cases of: {names}")


def run_case(found: Found) -> Case:
    """Run a case. Whatever it raises is a difference of it, and so is that nothing was compared."""
    try:
        case: Case = found.group.run(found.folder)
    except Exception as error:
        case = Case.of(found.folder)
        case.differences.append(Difference("it raised", f"{type(error).__name__}: {error}", "an answer"))
        return case
    if not case.compared:
        case.differences.append(Difference("values compared", 0, "some"))
    return case


def place(folder: Path, name: str) -> Path | None:
    """A case's file, plain or packed; None if there is none."""
    for path in (folder / name, folder / f"{name}.xz"):
        if path.is_file():
            return path
    return None


def needed(folder: Path, name: str) -> str:
    """The path of a file that the case must have."""
    path = place(folder, name)
    if path is None:
        raise UserError(f"the case has no {name}", where=str(folder), remedy="fetch the case again")
    return str(path)


def text(folder: Path, name: str) -> str:
    """Content of a file of the case, unpacked."""
    with opened(needed(folder, name)) as stream:
        return stream.read().decode("utf-8")


def values(folder: Path, name: str) -> Any:
    """A JSON object of the case."""
    return json.loads(text(folder, name))


def _walk(folder: Path, known: list[Any]) -> Iterator[Found]:
    for group in known:
        if _handles(group, folder):
            yield Found(folder, group)
            return
    for below in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from _walk(below, known)


def _handles(group: Any, folder: Path) -> bool:
    try:
        return bool(group.handles(folder))
    except (SwsdistError, ValueError):
        return True  # a broken case is a case: running it will say what is wrong
