"""Every error that swsdist raises on purpose.

Each says what was wrong, where, and what to do about it, and no secret (`swsdist.core.redaction`). The class fixes the exit
code of the command line:

====  ==========================================================
code  meaning
====  ==========================================================
0     done
1     a bug of ours, with a traceback (any other exception)
2     the user's mistake, or what a file system or server does: `UserError`
3     broken data: `DataError`
4     finished, but some tasks failed: `IncompleteError`; or, with `--strict`, inputs were rejected, or something was odd
      that is a warning without it: `OddError`
5     the inputs are so odd that results would be nonsense: `ImplausibleError`; `--force` goes on
130   interrupted; 143 terminated, or cancelled: `CancelledError`
====  ==========================================================
"""

from __future__ import annotations

from swsdist.core.redaction import redacted
from swsdist.core.text import shown


class SwsdistError(Exception):
    """Base of all errors that are not bugs.

    Args:
        message: what was wrong.
        where: file, line, row or query that it was found at.
        remedy: what the user can do.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.message = redacted(message)
        self.where = where and redacted(where)
        self.remedy = remedy and redacted(remedy)
        super().__init__(self.message)

    def __str__(self) -> str:
        # A name may hold a line break.
        text = f"{shown(self.where)}: {self.message}" if self.where else self.message
        return f"{text}\n  remedy: {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        # The default would lose the keyword arguments on the way back from a worker process.
        return _rebuild, (type(self), self.message, self.where, self.remedy)


def _rebuild(kind: type[SwsdistError], message: str, where: str | None, remedy: str | None) -> SwsdistError:
    return kind(message, where=where, remedy=remedy)


class UserError(SwsdistError):
    """The user asked for something that cannot be done as asked."""

    exit_code = 2


class ConfigError(UserError):
    """A configuration is not valid."""


class StorageError(UserError):
    """A file system, or a server of files, refuses or fails (`swsdist.io.failures`).

    Args:
        message, where, remedy: as of all.
        cause: one word, for example `full`.
        passing: it may pass, so a task that meets it is tried again.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        cause: str = "refused",
        passing: bool = False,
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.cause = cause
        self.passing = passing

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_storage, (self.message, self.where, self.remedy, self.cause, self.passing)


def _rebuild_storage(message: str, where: str | None, remedy: str | None, cause: str, passing: bool) -> StorageError:
    return StorageError(message, where=where, remedy=remedy, cause=cause, passing=passing)


class LockedError(UserError):
    """Another process is working in the same folder."""


class DataError(SwsdistError):
    """Data that was given, or found, is broken."""

    exit_code = 3


class OddError(DataError):
    """With `--strict`: what would be a warning without it (`swsdist.io.notices`)."""

    exit_code = 4


class ImplausibleError(UserError):
    """The inputs do not fit together, or most of them cannot be used: what is computed of them is nonsense.

    `swsdist.io.notices` states the limits. What was computed is kept, and `--force` goes on.
    """

    exit_code = 5


class UnusableError(DataError):
    """A document or an example cannot be used. `reason` is one word for tables, for example `truncated`."""

    def __init__(
        self, message: str, *, where: str | None = None, remedy: str | None = None, reason: str = "unreadable"
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_unusable, (type(self), self.message, self.where, self.remedy, self.reason)


def _rebuild_unusable(
    kind: type[UnusableError], message: str, where: str | None, remedy: str | None, reason: str
) -> UnusableError:
    return kind(message, where=where, remedy=remedy, reason=reason)


class AudioError(UnusableError):
    """A recording cannot be used."""


class FramesError(UnusableError):
    """Frames that somebody else made cannot be used."""


class TableError(DataError):
    """A table (CSV, Parquet) lacks a column, or a row of it holds an impossible value."""


class StoreError(DataError):
    """A feature store is missing, incomplete or damaged."""


class TransitError(StoreError):
    """A file that came over a network is damaged: perhaps on its way, so a task that meets it is tried again."""


class IncompleteError(SwsdistError):
    """The run came to its end, but some tasks failed, or inputs were rejected under `--strict`; or queries were skipped."""

    exit_code = 4


class CancelledError(UserError):
    """Somebody asked for the end of a run (`swsdist cancel`)."""

    exit_code = 143
