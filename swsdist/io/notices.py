"""Notices of oddities in the inputs, with a count and the place of the first; and the limits beyond which results are
nonsense.

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
documents of a store that are gone             half, if ten or more (`most-are-gone`)
=============================================  =======================================================================

To find everything, or nothing, is odd but no error: real systems do so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from swsdist.core.codes import Code, one_line
from swsdist.core.errors import E, ImplausibleError, OddError
from swsdist.core.text import shown

#: Share of documents and query examples that may be rejected; and the number always tolerated.
REJECTED, FEW = 0.1, 2
#: Share of rows with mismatching names or times that may be left out or missed.
UNFIT = 0.5
#: Largest allowed ratio of the median lengths of detections and references, either way.
TIMES = 100.0
#: Number of true occurrences from which finding all is odd.
MANY = 20
#: Least share of the searched documents and queries that two systems must have in common.
SHARED = 0.9

#: Names shown in a message.
_SHOWN = 3


@dataclass
class Notice:
    """A kind of oddity, with the values of its message.

    Attributes:
        code: the kind.
        first: place of the first.
        values: of the message.
        count: number of occurrences.
        forced: whether it is implausible, and tolerated because of `force`.
    """

    code: Code[OddError]
    first: str
    values: Mapping[str, object]
    count: int = 0
    forced: bool = False

    def text(self) -> tuple[str, str]:
        """Message and remedy, with the count."""
        return self.code.text(**{**self.values, "count": self.count})

    def __str__(self) -> str:
        message, remedy = self.text()
        return one_line(f"{message} (first: {shown(self.first)})", remedy, self.code.name)


@dataclass
class Notices:
    """A collection of notices, in order of first occurrence.

    Attributes:
        strict: raise instead of noting.
        force: also note implausible inputs.
        forced_by: option that overrides the limits, for messages; empty if there is no such option.
        query_source: file that names the queries, for messages.
        entries: oddities, by code, and by message and values.
        requested: effects of the user's choices; never an error.
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
        """Refuse `count` of a kind among `of`, unless forced.

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
            code, where, count, values: as for `add`; the message may have a field `{of}`.
            of: number checked.
            most: share above which it is doubted; 1: if all are.

        Raises:
            OddError, ImplausibleError: as `add` and `doubt`.
        """
        if count > most * of or count == of > 0:
            self.doubt(code, where=where, count=count, of=of, **values)
        else:
            values["of"] = of
            self.add(code, where=where, count=count, **values)

    def inform(self, code: Code[OddError], *, where: str, count: int = 1, **values: object) -> None:
        """Note `count` of a kind that the user requested."""
        _entry(self.requested, code, where, values).count += count

    def __str__(self) -> str:
        return "\n".join(str(notice) for notice in self.entries.values())


def _error(kind: type[E], code: Code[OddError], where: str, end: str, values: Mapping[str, object]) -> E:
    message, remedy = code.text(**values)
    return kind(message, where=where, remedy=f"{remedy}{end}".lstrip("; "), code=code.name, values=values)


def _entry(
    entries: dict[tuple[str, str], Notice], code: Code[OddError], where: str, values: Mapping[str, object]
) -> Notice:
    """The entry of a code with this message and these values, created on demand."""
    return entries.setdefault((code.name, f"{code.message} {sorted(values.items())}"), Notice(code, where, values))


def sample(names: Iterable[object]) -> str:
    """Some names and their total number, for a message."""
    distinct = sorted({str(name) for name in names})
    shown = ", ".join(map(repr, distinct[:_SHOWN])) or "none"
    return shown if len(distinct) <= _SHOWN else f"{shown}, ... ({len(distinct)} in all)"
