"""Codes of configs, corpus files and `--set`."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import ConfigError

# Files

INVALID_CONFIG = Code("invalid-config", ConfigError, "{count} errors{listing}", "correct each of them")

# YAML

INVALID_YAML = families.INVALID_YAML.saying(
    "not valid YAML: {reason}", "write KEY: VALUE, with keys of one section indented alike"
)
NOT_A_MAPPING = families.INVALID_YAML.saying(
    "this is no {what}, which maps keys to values",
    "write KEY: VALUE; recordings and transcripts are named by their folder",
)

# Keys and values

UNKNOWN_KEY = families.UNKNOWN_KEY.saying("unknown key{meant}", "use one of the keys {keys}")
MISSING_KEY = Code("missing-key", ConfigError, "missing key", "give it: {allowed}{meaning}")
INVALID_SETTING = families.INVALID_VALUE.saying("the setting is refused: {reason}", "change the setting")

# Corpus


# Features

NO_SUCH_TRACK = families.UNKNOWN_NAME.of(ConfigError).saying("no track {track!r}", "name one of the tracks {tracks}")
NO_SUCH_COLUMNS = families.UNKNOWN_NAME.of(ConfigError).saying(
    "the track {track} has {columns} columns, not {stop}", "count columns from the track's first one"
)

# Search

EMPTY_STREAM = families.INVALID_VALUE.saying("{place}no columns from {first} to {stop}", "give first < after the last")
NOTHING_NORMALISED = families.UNUSED_OPTION.saying(
    "{key} chooses statistics, and no stream is normalised by any", "set normalise: mean-variance, or remove {key}"
)
FIRST_PASS_CONFLICT = families.CONFLICTING_OPTIONS.of(ConfigError).saying(
    "a first pass does not work with {setting}", "set {remedy}, or first_pass: {{name: none}}"
)
PARTS_CONFLICT = families.CONFLICTING_OPTIONS.of(ConfigError).saying(
    "search.parts does not work with {setting}", "set {remedy}, or parts: false"
)

# Reduce, calibrate

EXAMPLES_CONFLICT = families.CONFLICTING_OPTIONS.of(ConfigError).saying(
    "search.examples: {examples} needs {needs}", "set {needs}, or search.examples: best"
)


UNKNOWN_ENTRY_OPTION = families.UNKNOWN_KEY.saying(
    "the {kind} {name} has no option {option}{meant}", "its options: {options}"
)
ENTRY_NOT_LOADED = families.EXTENSION.saying("{target} cannot be loaded ({error})", "install its dependencies")
