"""Common checks of plug-ins: entry, version, options."""

from __future__ import annotations

import json
from typing import TypeVar

from swsdist.registry.entries import Configured, checked
from swsdist.registry.registry import Entry, Registry

E = TypeVar("E", bound=Entry)


def require(holds: bool, what: str, complaint: str) -> None:
    """Raise unless a condition holds. Not an assert, so that suites work under `python -O`.

    Raises:
        AssertionError: the condition is false.
    """
    if not holds:
        raise AssertionError(f"{what}: {complaint}")


def check_entry(registry: Registry[E], name: str) -> tuple[E, str]:
    """The entry of a name, and its label for messages.

    Raises:
        AssertionError: version or options are invalid.
    """
    entry, what = registry[name], f"{registry.kind} {name!r}"
    is_integer = isinstance(entry.version, int) and not isinstance(entry.version, bool)
    require(is_integer and entry.version >= 1, what, f"version is {entry.version!r}, not an integer of at least 1")
    if isinstance(entry, Configured):
        _check_options(registry, name, entry, what)  # type: ignore[arg-type]
    return entry, what


def _check_options(registry: Registry[Configured], name: str, entry: Configured, what: str) -> None:
    defaults = checked(registry, name, {})
    require(set(defaults) == set(entry.takes()), what, "an option has no default")
    try:
        written = json.loads(json.dumps(defaults, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what}: its default options are not plain JSON ({error})") from None
    require(checked(registry, name, written) == defaults, what, "its own default options are changed by its model")
