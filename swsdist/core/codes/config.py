"""Codes of configs, corpus files and `--set`."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError

# Files

UNREADABLE_CONFIG = Code("unreadable-config", ConfigError, "cannot read the {what}: {reason}", "name a YAML file{hint}")
CONFIG_NOT_TEXT = Code(
    "config-not-text",
    ConfigError,
    "this is no {what}, and no text: a recording, or another file of bytes",
    "name a {what}, or the folder of the recordings",
)
CONFIG_NOT_UTF8 = Code("config-not-utf8", ConfigError, "the {what} is not UTF-8 text", "save it as UTF-8")
UNREADABLE_CORPUS = Code("unreadable-corpus", ConfigError, "{path}: {reason}", "name a YAML file that can be read")
INVALID_CONFIG = Code("invalid-config", ConfigError, "{count} errors{listing}", "correct each of them")

# YAML

INVALID_YAML = Code("invalid-yaml", ConfigError, "not valid YAML: {reason}", "correct the line")
YAML_ANCHOR = Code("yaml-anchor", ConfigError, "anchors and aliases (&{anchor}) are not allowed", "write the value out")
YAML_TAG = Code("yaml-tag", ConfigError, "tags ({tag}) are not allowed", "remove the tag")
KEY_NOT_TEXT = Code("key-not-text", ConfigError, "a key must be plain text", "quote the key")
DUPLICATE_KEY = Code("duplicate-key", ConfigError, "duplicate key{earlier}", "keep one of them")
SINGLE_DOLLAR = Code(
    "single-dollar", ConfigError, "single dollar sign", "write ${{NAME}} for a variable, $$ for a dollar sign"
)
UNSET_VARIABLE = Code(
    "unset-variable",
    ConfigError,
    "the environment variable {name} is not set",
    "set it, or write ${{{name}:-default}}",
)
NOT_A_MAPPING = Code(
    "not-a-mapping",
    ConfigError,
    "this is no {what}, which maps keys to values",
    "write KEY: VALUE; recordings and transcripts are named by their folder",
)
SECTION_NOT_MAPPING = Code(
    "section-not-mapping", ConfigError, "{value} is not a mapping of keys to values", "give a dict: {{KEY: VALUE}}"
)

# Keys and values

UNKNOWN_KEY = Code("unknown-key", ConfigError, "unknown key{meant}", "use one of the keys {keys}")
MISSING_KEY = Code("missing-key", ConfigError, "missing key", "give it: {allowed}{meaning}")
INVALID_VALUE = Code("invalid-value", ConfigError, "{value} is not allowed{meant}", "write {allowed}{quote}")
INFINITE_VALUE = Code(
    "infinite-value", ConfigError, "{value} is not allowed", "write a finite number of at most 63 bits"
)
UNSUPPORTED_TYPE = Code(
    "unsupported-type",
    ConfigError,
    "a config cannot hold a value of type {type}",
    "give text, a number, a list or a mapping",
)
UNCLEAR_PATH = Code(
    "unclear-path", ConfigError, "{value} looks like {meant}", "write {meant}; or ./{value}, if it is a file"
)
INVALID_ASSIGNMENT = Code(
    "invalid-assignment", ConfigError, "{assignment} is not KEY=VALUE", "write, for example, search.distance=cosine"
)
NOT_A_SECTION = Code("not-a-section", ConfigError, "{above} is {value} and has no keys", "set {above} itself")
INVALID_SETTING = Code("invalid-setting", ConfigError, "the setting is refused: {reason}", "change the setting")

# Corpus

DOCUMENTS_NOT_GIVEN = Code(
    "documents-not-given",
    ConfigError,
    "queries_from.{name} is given, but not queries_from.documents",
    "give queries_from.documents",
)
REFERENCES_AND_TEXT = Code(
    "references-and-text", ConfigError, "references and text both say where queries occur", "give references or text"
)

# Features

NO_EXTRACTOR = Code("no-extractor", ConfigError, "the list features is empty", "name an extractor")
DUPLICATE_TRACK = Code(
    "duplicate-track", ConfigError, "{count} tracks are called {track}", "set features.track of each"
)
NO_SUCH_TRACK = Code("no-such-track", ConfigError, "no track {track!r}", "name one of the tracks {tracks}")
NO_SUCH_COLUMNS = Code(
    "no-such-columns",
    ConfigError,
    "the track {track} has {columns} columns, not {stop}",
    "count columns from the track's first one",
)

# Search

STREAM_WITHOUT_COLUMNS = Code(
    "stream-without-columns",
    ConfigError,
    "the stream has neither a track nor columns",
    "set track, or columns: [first, after the last]",
)
EMPTY_STREAM = Code(
    "empty-stream", ConfigError, "{place}no columns from {first} to {stop}", "give first < after the last"
)
ALL_DROPPED = Code(
    "all-dropped", ConfigError, "every column of the track {track} is of a class to drop", "name fewer of its columns"
)
NORMALISED_POSTERIORS = Code(
    "normalised-posteriors",
    ConfigError,
    "{place}{distance} compares posteriors, and normalise is {normalise}",
    "set normalise: none",
)
NOTHING_NORMALISED = Code(
    "nothing-normalised",
    ConfigError,
    "{key} chooses statistics, and no stream is normalised by any",
    "set normalise: mean-variance, or remove {key}",
)
POOLED_ALONE = Code(
    "pooled-alone",
    ConfigError,
    "documents_by is {documents_by} and queries_by is {queries_by}: pooled statistics are of both together",
    "set both to pooled, or neither",
)
POOLED_DROP = Code(
    "pooled-drop",
    ConfigError,
    "pooled statistics are of all frames, and search.drop leaves some out",
    "set normalise: none, or remove drop",
)
DROP_TRACK_MISSING = Code(
    "drop-track-missing",
    ConfigError,
    "several tracks are searched, and none is named that says which frames to drop",
    "name one of: {tracks}",
)
NORMALISATION_CONFLICT = Code(
    "normalisation-conflict",
    ConfigError,
    "{place} to {stop} are in two streams with different normalise",
    "set the same normalise in both",
)
OPTION_TWICE = Code(
    "option-twice", ConfigError, "{options} is given as a key and among the options", "remove one of the two"
)
UNUSED_OPTION = Code("unused-option", ConfigError, "the distance {distance} takes no {option}", "remove {option}")
FACTOR_NOT_TAKEN = Code(
    "factor-not-taken", ConfigError, "the first pass {name} takes no factor", "remove search.first_pass.factor"
)
KEYS_AMONG_OPTIONS = Code(
    "keys-among-options", ConfigError, "{options} among the options of a first pass", "set search.first_pass.{options}"
)
VERIFY_BY_DOCUMENT = Code(
    "verify-by-document",
    ConfigError,
    "verify compares the best hits of the collection, and windows are chosen over: document",
    "set over: collection, or remove verify",
)
FIRST_PASS_CONFLICT = Code(
    "first-pass-conflict",
    ConfigError,
    "a first pass does not work with {setting}",
    "set {remedy}, or first_pass: {{name: none}}",
)
PARTS_CONFLICT = Code(
    "parts-conflict",
    ConfigError,
    "search.parts does not work with {setting}",
    "set {remedy}, or parts: false",
)
NO_PARTS = Code(
    "no-parts", ConfigError, "{key} has no use where no parts are searched", "set parts: true, or remove {key}"
)

# Reduce, calibrate

EXAMPLES_CONFLICT = Code(
    "examples-conflict",
    ConfigError,
    "search.examples: {examples} needs {needs}",
    "set {needs}, or search.examples: best",
)
SUM_OF_SCORES = Code(
    "sum-of-scores",
    ConfigError,
    "reduce.merge: sum adds posteriors, and {method} gives the score {score}",
    "set reduce.merge: best",
)
NO_SUCH_STEP = Code("no-such-step", ConfigError, "no calibration step {step}{meant}", "name one of {steps}")
OPTIONS_WITHOUT_STEP = Code(
    "options-without-step",
    ConfigError,
    "options of {step}, which is not among the steps",
    "add the step, or remove the options",
)
STEPS_MISFIT = Code("steps-misfit", ConfigError, "the calibration steps do not fit: {reason}", "change calibrate.steps")
STEP_NOT_FITTED = Code(
    "step-not-fitted",
    ConfigError,
    "the step {step} must be fitted, and {lacks}",
    "set {remedy}, or remove the step",
)


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
