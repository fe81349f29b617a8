"""What of a config results depend on, and scores: plain text by key, for people who compare two of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from swsdist.config import Config
from swsdist.config.section import Section
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CHAINS

#: Keys whose change makes a score mean something else, so that a threshold of before is none of now.
_OF_SCORES = ("features", "search.", "reduce.merge", "calibrate.steps", "calibrate.options", "calibrate.alpha")


def settings_of(config: Config) -> dict[str, str]:
    """Every key that results depend on, as the user writes it, with its value as text."""
    result: dict[str, str] = {}
    sections: tuple[str, ...] = ("features", "queries", "search", "reduce", "calibrate", "score")
    if is_chain(CHAINS, config.chain, "joined"):  # it searches nothing itself
        sections = ("options", "calibrate", "score")
    for name in sections:
        section = getattr(config, name)
        # `matters` of a section may be its own, which adds versions and resolves names.
        values = (
            Section.matters(section) if isinstance(section, Section) else {"": config.model_dump(mode="json")[name]}
        )
        result |= as_text(name, values)
    return result


def as_text(name: str, values: Mapping[str, object]) -> dict[str, str]:
    """Keys of a section, in full, with their values as text."""
    return {
        f"{name}.{key}" if key else name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }


def scores_of(config: Config) -> dict[str, str]:
    """Of these, those that scores depend on."""
    return {key: value for key, value in settings_of(config).items() if key.startswith(_OF_SCORES)}


def score_differences(current: Mapping[str, str], known: object) -> list[str]:
    """Where scores that something was fitted on were made otherwise than these are; empty where it is not known.

    Args:
        mine: as `scores_of` gives them, or some of them.
        known: the same of what it was fitted on.
    """
    if not isinstance(known, dict):
        return []
    return [
        f"{key} was {known[key]}, here {value}"
        for key, value in current.items()
        if key in known and known[key] != value
    ]


def describe(extractor: Mapping[str, Any]) -> str:
    """An extractor in one line, with its transforms."""

    def told(mapping: Mapping[str, Any]) -> str:
        options = ", ".join(f"{key}={value}" for key, value in mapping["options"].items())
        return f"{mapping['name']} version {mapping['version']} ({options})"

    return ", then ".join(map(told, [extractor, *extractor.get("transforms", ())]))
