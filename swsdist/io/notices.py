"""What is odd in an input: said with a count and the first place; and where so much is odd that what is computed is nonsense.

Under `--strict` what is odd is an error. Beyond these limits it is an error anyhow (`ImplausibleError`, exit code 5), what was
computed is kept, and `--force` goes on:

=============================================  =======================================================================
what is looked at                              limit
=============================================  =======================================================================
documents that are rejected                    a tenth of them, where these are more than two
query examples that are rejected               a tenth of them, where these are more than two
durations that the audio contradicts           half of those that are told
references that end after their recording      half of those whose recording's length is known
references and detections of other documents   half of them; all of them, where only references tell which there are
references and detections of other queries     the same
lengths of detections and of references        medians that differ a hundredfold: milliseconds or frames, not seconds
documents, queries that two systems share      less than nine tenths
=============================================  =======================================================================

That all is found, or nothing, is told, and no error: systems do that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from swsdist.core.codes import Code
from swsdist.core.errors import ImplausibleError, OddError
from swsdist.core.text import shown

#: Part of the documents, and of the examples of queries, that may be rejected; and how many may be of few.
REJECTED, FEW = 0.1, 2
#: Part of rows whose names or times do not fit that may be left out, or missed.
UNFIT = 0.5
#: How many times the lengths of detections those of references may be, and these those.
TIMES = 100.0
#: True occurrences of which it is told that all are found: of few that is nothing odd.
MANY = 20
#: Part of what two systems searched that they must share.
SHARED = 0.9

#: Names that a message shows.
_SHOWN = 3


@dataclass
class Notice:
    """One kind of oddity.

    Attributes:
        message: what it is, in the plural; the count stands before it.
        first: where it was seen first.
        remedy: what to do about it.
        count: how many times.
        doubted: whether it is implausible, and was forced.
    """

    message: str
    first: str
    remedy: str
    count: int = 0
    doubted: bool = False
    code: Code[OddError] | None = None
    values: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.code is None:
            return f"{self.count} {self.message} (first: {shown(self.first)}); {self.remedy}"
        message, remedy = self.code.text(count=self.count, **self.values)
        end = f"; {remedy}" if remedy else ""
        return f"{message} (first: {shown(self.first)}){end} [{self.code.name}]"


@dataclass
class Notices:
    """A collection of them, by kind in the order of their first sight.

    Attributes:
        strict: raise instead of noting.
        force: note what is implausible, too.
        forced_by: what goes on nevertheless, for messages; nothing, where nobody can force it.
        asked: what names the queries that were asked, for messages.
        found: what is odd.
        wanted: what the user asked for, and is told of: never an error.
    """

    strict: bool = False
    force: bool = False
    forced_by: str = "--force"
    asked: str = "the term list"
    found: dict[str, Notice] = field(default_factory=dict)
    wanted: dict[str, Notice] = field(default_factory=dict)

    def add(
        self, kind: Code[OddError] | str, *, where: str, remedy: str = "", count: int = 1, **values: object
    ) -> None:
        """Note `count` of a kind; `values` are those of its message.

        Raises:
            OddError: with `strict`.
        """
        if count == 0:
            return
        if self.strict:
            strict = "(an error because of --strict)"
            if isinstance(kind, str):
                raise OddError(f"{count} {kind}", where=where, remedy=f"{remedy} {strict}")
            message, remedy = kind.text(count=count, **values)
            raise OddError(
                message, where=where, remedy=f"{remedy} {strict}", code=kind.name, values={"count": count, **values}
            )
        notice = self.found.setdefault(*_keyed(kind, where, remedy, values))
        notice.count += count

    def doubt(
        self, kind: Code[OddError] | str, *, where: str, remedy: str = "", count: int, of: int, **values: object
    ) -> None:
        """Refuse to go on with `count` of a kind among so many, unless that is forced.

        Raises:
            ImplausibleError: it is not forced.
        """
        if not self.force:
            forced = f"; {self.forced_by} goes on" if self.forced_by else ""
            if isinstance(kind, str):
                raise ImplausibleError(f"{count} of {of} {kind}", where=where, remedy=f"{remedy}{forced}")
            message, remedy = kind.text(count=count, of=of, **values)
            raise ImplausibleError(
                message,
                where=where,
                remedy=f"{remedy}{forced}",
                code=kind.name,
                values={"count": count, "of": of, **values},
            )
        if isinstance(kind, str):
            self.add(f"of {of} {kind}", where=where, remedy=remedy, count=count)
            self.found[f"of {of} {kind}"].doubted = True
            return
        self.add(kind, where=where, remedy="", count=count, of=of, **values)
        self.found[_keyed(kind, where, "", {"of": of, **values})[0]].doubted = True

    def weigh(
        self,
        kind: Code[OddError] | str,
        *,
        where: str,
        remedy: str = "",
        count: int,
        of: int,
        most: float = UNFIT,
        **values: object,
    ) -> None:
        """Note `count` of a kind among so many, or doubt it.

        Args:
            kind, where, remedy, count, values: as of `add`. A message of a code may have a field `{of}`.
            of: how many were looked at.
            most: part of them beyond which it is doubted; 1: if it is all.

        Raises:
            OddError, ImplausibleError: as `add` and `doubt`.
        """
        if count > most * of or count == of > 0:
            self.doubt(kind, where=where, remedy=remedy, count=count, of=of, **values)
        elif isinstance(kind, str):
            self.add(kind, where=where, remedy=remedy, count=count)
        else:
            self.add(kind, where=where, count=count, of=of, **values)  # type: ignore[arg-type]

    def inform(
        self, kind: Code[OddError] | str, *, where: str, remedy: str = "", count: int = 1, **values: object
    ) -> None:
        """Note `count` of a kind that the user asked for."""
        self.wanted.setdefault(*_keyed(kind, where, remedy, values)).count += count

    def __str__(self) -> str:
        return "\n".join(str(notice) for notice in self.found.values())


def _keyed(kind: Code[OddError] | str, where: str, remedy: str, values: Mapping[str, object]) -> tuple[str, Notice]:
    """What tells a kind from others, and a notice of it."""
    if isinstance(kind, str):
        return kind, Notice(kind, where, remedy)
    return f"{kind.name} {sorted(values.items(), key=str)}", Notice("", where, "", code=kind, values=values)


def sample(names: Iterable[object]) -> str:
    """Some names, and how many there are, for a message."""
    known = sorted({str(name) for name in names})
    shown = ", ".join(map(repr, known[:_SHOWN])) or "none"
    return shown if len(known) <= _SHOWN else f"{shown}, ... ({len(known)} in all)"
