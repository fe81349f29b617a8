"""Settings that results and scores depend on: plain text by key, for comparison by people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from swsdist.config import Config
from swsdist.config.section import Section
from swsdist.registry.entries import Configured, is_chain
from swsdist.registry.registries import CHAINS

#: Keys whose change gives scores another meaning, so earlier thresholds become invalid.
_OF_SCORES = ("features", "search.", "reduce.merge", "calibrate.steps", "calibrate.options", "calibrate.alpha")


def settings_of(config: Config) -> dict[str, str]:
    """Every key that results depend on, spelled as in the config, with its value as text."""
    result: dict[str, str] = {}
    searching: tuple[str, ...] = ("features", "queries", "search", "reduce")
    if is_chain(CHAINS, config.chain, "joined"):
        searching = ()
    for name in ("corpus", "chain", "options", *searching, "calibrate", "score"):
        section = getattr(config, name)
        # A section may define `matters`, which adds versions and resolves names.
        values = (
            Section.matters(section) if isinstance(section, Section) else {"": config.model_dump(mode="json")[name]}
        )
        result |= as_text(name, values)
    return result


def stored(config: Config) -> dict[str, object]:
    """What the store of a config holds besides its corpus: features, or the lattices that a chain's options make.

    Of a chain that makes a second store of it and searches that it holds features alone.
    """
    entry = CHAINS[config.chain]
    values = config.model_dump(mode="json", include={"features"})
    takes_options = isinstance(entry, Configured) and bool(entry.options)
    beside = config.chain == Config.model_fields["chain"].default  # its options make what is not searched
    if takes_options and config.searched_store == config.store and not beside:
        values |= {"chain": config.chain, "options": config.options}
    return values


def as_text(name: str, values: Mapping[str, object]) -> dict[str, str]:
    """Full keys of a section, with their values as text."""
    return {
        f"{name}.{key}" if key else name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }


def scores_of(config: Config) -> dict[str, str]:
    """The subset of settings that scores depend on."""
    return {key: value for key, value in settings_of(config).items() if key.startswith(_OF_SCORES)}


def score_differences(current: Mapping[str, str], fitted: object) -> list[str]:
    """Differences between current settings and those of the fitted scores; empty if the latter are unknown.

    Args:
        current: from `scores_of`, or a subset.
        fitted: the settings at fitting.
    """
    if not isinstance(fitted, dict):
        return []
    return [
        f"{key} was {fitted[key]}, here {value}"
        for key, value in current.items()
        if key in fitted and fitted[key] != value
    ]


def describe(extractor: Mapping[str, Any]) -> str:
    """Describe an extractor and its transforms in one line."""

    def text_of(mapping: Mapping[str, Any]) -> str:
        options = ", ".join(f"{key}={value}" for key, value in mapping["options"].items())
        return f"{mapping['name']} version {mapping['version']} ({options})"

    kept = f", kept as {extractor['dtype']}" if "dtype" in extractor else ""
    return ", then ".join(map(text_of, [extractor, *extractor.get("transforms", ())])) + kept
