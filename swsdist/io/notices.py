"""Notices of oddities in the inputs, with a count and the place of the first; and the limits beyond which results are nonsense.

With `--strict` a notice is an error. Beyond these limits it always is one (`ImplausibleError`, exit code 5); what was
computed is kept, and `--force` goes on:

=============================================  =======================================================================
checked                                        limit
=============================================  =======================================================================
rejected documents                             a tenth, if more than two
rejected query examples                        a tenth, if more than two
durations that the audio contradicts           half of the given ones
references that end after their recording      half of those whose recording's length is known
references and detections of other documents   half; all, where only references name the documents
references and detections of other queries     the same
lengths of detections and of references        medians that differ a hundredfold (milliseconds or frames for seconds)
documents, queries that two systems share      less than nine tenths
=============================================  =======================================================================

To find everything, or nothing, is odd but no error: real systems do so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from swsdist.core.codes import Code
from swsdist.core.errors import ImplausibleError, OddError, SwsdistError
from swsdist.core.text import shown

#: Part of the documents, and of the examples of queries, that may be rejected; and how many may be of few.
REJECTED, FEW = 0.1, 2
#: Part of rows whose names or times do not fit that may be left out, or missed.
UNFIT = 0.5
#: How many times the lengths of detections those of references may be, and these those.
TIMES = 100.0
#: True occurrences from which it is odd that all are found.
MANY = 20
#: Part of what two systems searched that they must share.
SHARED = 0.9

#: Names that a message shows.
_SHOWN = 3


@dataclass
class Notice:
    """A kind of oddity, with the values of its message.

    Attributes:
        code: the kind.
        first: place of the first.
        values: of the message.
        count: how many.
        forced: whether it is implausible, and the run goes on because of `force`.
    """

    code: Code[OddError]
    first: str
    values: Mapping[str, object]
    count: int = 0
    forced: bool = False

    def text(self) -> tuple[str, str]:
        """Message and remedy."""
        return self.code.text(**{**self.values, "count": self.count})

    def __str__(self) -> str:
        message, remedy = self.text()
        end = f"; {remedy}" if remedy else ""
        return f"{message} (first: {shown(self.first)}){end} [{self.code.name}]"


@dataclass
class Notices:
    """A collection of notices, in the order of their first sight.

    Attributes:
        strict: raise instead of noting.
        force: note what is implausible, too.
        forced_by: option that goes on nevertheless, for messages; empty: there is none.
        query_source: what names the queries, for messages.
        entries: oddities, by code and values.
        requested: what the user asked for; never an error.
    """

    strict: bool = False
    force: bool = False
    forced_by: str = "--force"
    query_source: str = "the term list"
    entries: dict[tuple[str, str], Notice] = field(default_factory=dict)
    requested: dict[tuple[str, str], Notice] = field(default_factory=dict)

    def add(self, code: Code[OddError], *, where: str, count: int = 1, **values: object) -> None:
        """Note `count` of a kind; `values` are those of its message.

        Raises:
            OddError: with `strict`.
        """
        if count == 0:
            return
        if self.strict:
            raise _error(OddError, code, where, " (an error because of --strict)", {"count": count, **values})
        _entry(self.entries, code, where, values).count += count

    def doubt(self, code: Code[OddError], *, where: str, count: int, of: int, **values: object) -> None:
        """Refuse to go on with `count` of a kind among `of`, unless that is forced.

        Raises:
            ImplausibleError: it is not forced.
            OddError: it is forced, with `strict`.
        """
        if not self.force:
            forced = f"; {self.forced_by} goes on" if self.forced_by else ""
            raise _error(ImplausibleError, code, where, forced, {"count": count, "of": of, **values})
        values["of"] = of
        self.add(code, where=where, count=count, **values)
        _entry(self.entries, code, where, values).forced = True

    def weigh(
        self, code: Code[OddError], *, where: str, count: int, of: int, most: float = UNFIT, **values: object
    ) -> None:
        """Note `count` of a kind among `of`, or doubt it.

        Args:
            code, where, count, values: as of `add`; the message may have a field `{of}`.
            of: how many were checked.
            most: share beyond which it is doubted; 1: if it is all.

        Raises:
            OddError, ImplausibleError: as `add` and `doubt`.
        """
        if count > most * of or count == of > 0:
            self.doubt(code, where=where, count=count, of=of, **values)
        else:
            values["of"] = of
            self.add(code, where=where, count=count, **values)

    def inform(self, code: Code[OddError], *, where: str, count: int = 1, **values: object) -> None:
        """Note `count` of a kind that the user asked for."""
        _entry(self.requested, code, where, values).count += count

    def __str__(self) -> str:
        return "\n".join(str(notice) for notice in self.entries.values())


E = TypeVar("E", bound=SwsdistError)


def _error(kind: type[E], code: Code[OddError], where: str, end: str, values: Mapping[str, object]) -> E:
    message, remedy = code.text(**values)
    return kind(message, where=where, remedy=f"{remedy}{end}".lstrip("; "), code=code.name, values=values)


def _entry(
    entries: dict[tuple[str, str], Notice], code: Code[OddError], where: str, values: Mapping[str, object]
) -> Notice:
    """The entry of a code with these values, made where there is none."""
    return entries.setdefault((code.name, str(sorted(values.items()))), Notice(code, where, values))


def sample(names: Iterable[object]) -> str:
    """Some names, and how many there are, for a message."""
    distinct = sorted({str(name) for name in names})
    shown = ", ".join(map(repr, distinct[:_SHOWN])) or "none"
    return shown if len(distinct) <= _SHOWN else f"{shown}, ... ({len(distinct)} in all)"
