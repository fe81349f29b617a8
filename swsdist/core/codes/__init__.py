"""Codes: each error, notice and rejection has a stable name, a message and a remedy.

    raise codes.NO_SUCH_CHANNEL(where=path, channel=3, channels=2)
    notices.add(codes.DUPLICATE_ROWS, where=path, count=4)
    raise families.UNKNOWN_NAME("no track {track!r}", "there are {tracks}", where=path, track=name, tracks=known)

What someone would look up, count or test for has a code of its own, in the file of its room, with its message. Mistakes
that occur everywhere, such as unknown names, share one (`swsdist.core.codes.families`), and each call brings its message.

`swsdist explain CODE` and docs/reference/codes.md are made from them. Tests assert codes and values, not English.
"""

from __future__ import annotations

import importlib
import pkgutil
import shlex
import string
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic

from swsdist.core.errors import E, F, OddError, SwsdistError, UnusableError

if TYPE_CHECKING:
    from pydantic_core import PydanticCustomError


@dataclass(frozen=True)
class Code(Generic[E]):
    """A kind of error, notice or rejection.

    Attributes:
        name: words joined by hyphens. It is stable: scripts may depend on it.
        error: the class of error, which fixes the exit code.
        message: what is wrong, as a format string. A notice's message begins with `{count}`; `{s}` is the plural's ending;
            `{x!q}` is quoted for a shell.
        remedy: what to do about it, likewise.
        family: whether it has its name from a family (`swsdist.core.codes.families`), and only its texts are its own.
    """

    name: str
    error: type[E]
    message: str
    remedy: str = ""
    family: bool = False

    def __call__(self, *texts: str, where: str | None = None, **values: object) -> E:
        """The error, to be raised.

        Args:
            texts: message, or message and remedy, in place of the code's; see `saying`.
            where: file, line, row or query.
            values: of the fields of message and remedy; tests/arch/test_codes.py checks that none is missing.
        """
        message, remedy = (self.saying(*texts) if texts else self).text(**values)
        return self.error(message, where=where, remedy=remedy or None, code=self.name, values=values)

    def saying(self, message: str, remedy: str = "") -> Code[E]:
        """The code of this family with another message and remedy."""
        return Code(self.name, self.error, message, remedy, family=True)

    def of(self, error: type[F]) -> Code[F]:
        """The code of this family with another class of error."""
        return Code(self.name, error, self.message, self.remedy, family=True)

    def text(self, **values: object) -> tuple[str, str]:
        """Message and remedy with their values."""
        filled = {"s": "" if values.get("count") == 1 else "s", **values}
        return _FILL.vformat(self.message, (), filled), _FILL.vformat(self.remedy, (), filled)

    def invalid(self, **values: object) -> PydanticCustomError:
        """The same for pydantic's validators, which know the place: the loader of configs adds it."""
        return pydantic_error(self.name, *self.text(**values), values, self.error)

    @property
    def kind(self) -> str:
        """`rejection` of a document or an example, `notice`, or `error`."""
        if issubclass(self.error, UnusableError):
            return "rejection"
        return "notice" if issubclass(self.error, OddError) else "error"


class _Fill(string.Formatter):
    """Format strings with the conversion `q`: quoted for a shell, if that is necessary."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return shlex.quote(str(value)) if conversion == "q" else super().convert_field(value, conversion)


_FILL = _Fill()


def codes_by_area(*, built_in: bool = False) -> dict[str, list[Code[SwsdistError]]]:
    """The codes of each module of this package, then of those that other packages name; in alphabetical order.

    Another package names a module of codes in its `pyproject.toml`, as registries' entries
    (`swsdist.registry.registry`)::

        [project.entry-points."swsdist.codes"]
        mine = "my_package.codes"

    Args:
        built_in: leave other packages out.
    """
    areas = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = {area: importlib.import_module(f"{__name__}.{area}") for area in areas}
    if not built_in:
        modules |= dict(_modules_of_others())
    return {
        area: sorted(codes_of(vars(module).values()), key=lambda code: code.name) for area, module in modules.items()
    }


def _modules_of_others() -> Iterator[tuple[str, ModuleType]]:
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group="swsdist.codes"), key=lambda point: point.name):
        # One that cannot be imported is left out: whatever needs it says why.
        with suppress(Exception):
            yield f"{point.name} ({point.dist.name if point.dist else point.value})", point.load()


def error_of(problem: Mapping[str, Any], where: str | None, place: str = "") -> SwsdistError | None:
    """The error of a problem that a validator raised as `Code.invalid`; None: it is one of pydantic's own.

    Args:
        problem: of pydantic's `errors()`.
        where: file or key.
        place: begins the message.
    """
    context = problem.get("ctx", {})
    if "parts" not in context:
        return None  # by name too: `missing` is one of both
    message, remedy = context["parts"]
    error: type[SwsdistError] = context["error"]
    return error(
        f"{place}{message}", where=where, remedy=remedy or None, code=problem["type"], values=context["values"]
    )


def pydantic_error(
    name: str, message: str, remedy: str, values: Mapping[str, object], error: type[SwsdistError]
) -> PydanticCustomError:
    """An error of a code, by its parts, for pydantic's validators; `error_of` reads it."""
    from pydantic_core import PydanticCustomError

    context = {
        "message": f"{message}; {remedy}" if remedy else message,
        "parts": (message, remedy),
        "values": dict(values),
        "error": error,
    }
    return PydanticCustomError(name, "{message}", context)


def line_of(code: Code[E], **values: object) -> str:
    """Message, remedy and name of a code in one line, as notices have them."""
    return one_line(*code.text(**values), code.name)


def warning_text(code: Code[OddError], **values: object) -> str:
    """Message and name of a code, for `warnings.warn`."""
    return one_line(code.text(**values)[0], "", code.name)


def one_line(message: str, remedy: str, name: str) -> str:
    """The same by their parts."""
    return f"{message}{remedy and '; '}{remedy} [{name}]"


def every_code(*, built_in: bool = False) -> dict[str, Code[SwsdistError]]:
    """All codes by name, in alphabetical order; see `codes_by_area`."""
    codes = [code for members in codes_by_area(built_in=built_in).values() for code in members]
    return {code.name: code for code in sorted(codes, key=lambda code: code.name)}


def codes_of(values: Iterable[object]) -> list[Code[SwsdistError]]:
    """The codes among some values, without those of a family."""
    return [value for value in values if isinstance(value, Code) and not value.family]
