"""Codes of registries: names, options, entry points."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError

UNKNOWN_NAME = Code("unknown-name", ConfigError, "unknown {kind} {name!r}{meant}", "use one of: {known}")
UNKNOWN_ENTRY_OPTION = Code(
    "unknown-entry-option", ConfigError, "the {kind} {name} has no option {option}{meant}", "its options: {options}"
)
INVALID_ENTRY_OPTION = Code(
    "invalid-entry-option", ConfigError, "invalid options of {name}: {problems}", "correct the options"
)
ENTRY_NOT_LOADED = Code(
    "entry-not-loaded",
    ConfigError,
    "{target} cannot be loaded ({error})",
    "install its dependencies",
)
BROKEN_ENTRY_POINT = Code(
    "broken-entry-point",
    ConfigError,
    "the {kind} {name} cannot be loaded from {target} ({error})",
    "repair, reinstall or uninstall its package",
)
NOT_AN_ENTRY = Code(
    "not-an-entry",
    ConfigError,
    "{target} is not a {kind}: its type is not {type}, or it has no version",
    "see docs/ on how to add one",
)
DUPLICATE_QUANTITY = Code("duplicate-quantity", ConfigError, "two measures give {key}", "rename one")
