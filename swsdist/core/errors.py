"""Every error that swsdist raises on purpose.

Each states the fault, its place, and a remedy, without secrets (`swsdist.core.text`). The class fixes the exit
code of the command line:

====  ==========================================================
code  meaning
====  ==========================================================
0     done
1     a bug of ours, with a traceback (any other exception)
2     the user's mistake, or a failure of a file system or server: `UserError`
3     broken data: `DataError`
4     finished, but some tasks failed: `IncompleteError`; or, with `--strict`, inputs were rejected, or there is a notice:
      `OddError`
5     the inputs are so odd that results would be nonsense: `ImplausibleError`; `--force` goes on
130   interrupted; 143 terminated, or cancelled: `CancelledError`
====  ==========================================================
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping

from swsdist.core.text import redacted, shown


class SwsdistError(Exception):
    """Base of all errors that swsdist raises on purpose.

    Args:
        message: the fault.
        where: file, line, row or query.
        remedy: advice to the user.
        code: name of the code (`swsdist.core.codes`); empty for an error of an external extension.
        values: of the message's fields, by name.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        code: str = "",
        values: Mapping[str, object] | None = None,
    ) -> None:
        self.message = redacted(message)
        self.where = where and redacted(where)
        self.remedy = remedy and redacted(remedy)
        self.code = code
        self.values = {
            name: redacted(value) if isinstance(value, str) else value for name, value in (values or {}).items()
        }
        super().__init__(self.message)

    def __str__(self) -> str:
        # A name may hold a line break.
        text = f"{shown(self.where)}: {self.message}" if self.where else self.message
        first, line_break, others = text.partition("\n")
        coded = f"{first} [{self.code}]{line_break}{others}" if self.code else text
        return f"{coded}\n  remedy: {self.remedy}" if self.remedy else coded

    @property
    def details(self) -> dict[str, typing.Any]:
        """All arguments but the message."""
        return {"where": self.where, "remedy": self.remedy, "code": self.code, "values": self.values}

    def __reduce__(self) -> tuple[object, ...]:
        # The default would lose the keyword arguments when a worker process returns the error.
        return functools.partial(type(self), self.message, **self.details), ()


E = typing.TypeVar("E", bound=SwsdistError, covariant=True)
F = typing.TypeVar("F", bound=SwsdistError)


def recast(error: SwsdistError, kind: type[E], *, where: str | None = None) -> E:
    """An error of another class, or of another place unless that is None."""
    return kind(error.message, **{**error.details, "where": where or error.where})


class UserError(SwsdistError):
    """The user asked for something impossible."""

    exit_code = 2


class ConfigError(UserError):
    """A configuration is not valid."""


class StorageError(UserError):
    """A file system, or a server of files, refuses or fails; its `code` says how (`swsdist.io.failures`)."""


class TransientError(StorageError):
    """A possibly transient failure of a file system or server: the task is retried."""


class LockedError(UserError):
    """Another process is working in the same folder."""


class DataError(SwsdistError):
    """Input or stored data is broken."""

    exit_code = 3

    @property
    def reason(self) -> str:
        """The code, as in tables of rejections."""
        return self.code or "unreadable"


class OddError(DataError):
    """With `--strict`: what would be a warning without it (`swsdist.io.notices`)."""

    exit_code = 4


class ImplausibleError(UserError):
    """The inputs do not fit together, or most of them are unusable: results would be nonsense.

    `swsdist.io.notices` states the limits. Computed results are kept, and `--force` goes on.
    """

    exit_code = 5


class UnusableError(DataError):
    """A document or an example cannot be used."""


class AudioError(UnusableError):
    """A recording cannot be used."""


class ForeignError(AudioError):
    """libsndfile does not decode the recording, but ffmpeg may."""


class CutOffError(AudioError):
    """The recording ends early: it is truncated, or damaged up to its end. All samples before that were read.

    Attributes:
        expected_seconds: duration that the header states; None where it states none.
    """

    expected_seconds: float | None = None

    def expecting(self, seconds: float | None) -> CutOffError:
        """The same with that duration."""
        self.expected_seconds = seconds
        return self


class FramesError(UnusableError):
    """Frames from another program are unusable."""


class TermError(UnusableError):
    """A text query cannot be searched."""


class TableError(DataError):
    """A table (CSV, Parquet) lacks a column, or a row of it holds an impossible value."""


class StoreError(DataError):
    """A feature store is missing, incomplete or damaged."""


class DamagedTransferError(StoreError):
    """A file transferred over a network is damaged, possibly in transit: the task is retried."""


class IncompleteError(SwsdistError):
    """The run finished, but some tasks failed, or inputs were rejected under `--strict`; or queries were skipped."""

    exit_code = 4


class CancelledError(UserError):
    """A user cancelled the run (`swsdist cancel`)."""

    exit_code = 143
