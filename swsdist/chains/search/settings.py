"""What of a config results depend on, and scores: plain text by key, for people who compare two of them."""

from __future__ import annotations

import json
from typing import Any

from swsdist.config import Config
from swsdist.config.section import Section

#: Keys whose change makes a score mean something else, so that a threshold of before is none of now.
_OF_SCORES = ("features", "search.", "reduce.merge", "calibrate.steps", "calibrate.options", "calibrate.alpha")


def settings_of(config: Config) -> dict[str, str]:
    """Every key that results depend on, as the user writes it, with its value as text."""
    found: dict[str, str] = {}
    for name in ("features", "queries", "search", "reduce", "calibrate", "score"):
        section = getattr(config, name)
        # `matters` of a section may be its own, which adds versions and resolves names.
        values = (
            Section.matters(section) if isinstance(section, Section) else {"": config.model_dump(mode="json")[name]}
        )
        for key, value in values.items():
            place = f"{name}.{key}" if key else name
            found[place] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found


def scores_of(config: Config) -> dict[str, str]:
    """Of these, those that scores depend on."""
    return {key: value for key, value in settings_of(config).items() if key.startswith(_OF_SCORES)}


def other_scores(config: Config, known: object) -> list[str]:
    """Where scores that something was fitted on were made otherwise than those of a config; empty where it is not known."""
    if not isinstance(known, dict):
        return []
    return [
        f"{key} was {known[key]}, here {value}"
        for key, value in scores_of(config).items()
        if key in known and known[key] != value
    ]


def describe(extractor: dict[str, Any]) -> str:
    """An extractor in one line, with its transforms."""

    def told(one: dict[str, Any]) -> str:
        options = ", ".join(f"{key}={value}" for key, value in one["options"].items())
        return f"{one['name']} version {one['version']} ({options})"

    return ", then ".join(map(told, [extractor, *extractor.get("transforms", ())]))
