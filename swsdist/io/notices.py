"""What is odd in an input but does not stop the work: said with a count and the first place, and under `--strict` an error."""

from __future__ import annotations

from dataclasses import dataclass, field

from swsdist.errors import OddError


@dataclass
class Notice:
    """One kind of oddity.

    Attributes:
        message: what it is, in the plural; the count stands before it.
        first: where it was seen first.
        remedy: what to do about it.
        count: how many times.
    """

    message: str
    first: str
    remedy: str
    count: int = 0

    def __str__(self) -> str:
        return f"{self.count} {self.message} (first: {self.first}); {self.remedy}"


@dataclass
class Notices:
    """A collection of them, by kind in the order of their first sight.

    Attributes:
        strict: raise instead of noting.
        found: what is odd.
        wanted: what the user asked for, and is told of: never an error.
    """

    strict: bool = False
    found: dict[str, Notice] = field(default_factory=dict)
    wanted: dict[str, Notice] = field(default_factory=dict)

    def add(self, message: str, *, where: str, remedy: str, count: int = 1) -> None:
        """Note `count` of a kind.

        Raises:
            OddError: it is not to be tolerated.
        """
        if count == 0:
            return
        if self.strict:
            raise OddError(f"{count} {message}", where=where, remedy=f"{remedy} (an error because of --strict)")
        notice = self.found.setdefault(message, Notice(message, where, remedy))
        notice.count += count

    def inform(self, message: str, *, where: str, remedy: str, count: int = 1) -> None:
        """Note `count` of a kind that the user asked for."""
        self.wanted.setdefault(message, Notice(message, where, remedy)).count += count

    def __str__(self) -> str:
        return "\n".join(str(notice) for notice in self.found.values())
