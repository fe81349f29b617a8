"""What of a config results depend on, and scores: plain text by key, for people who compare two of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from swsdist.config import Config
from swsdist.config.section import Section
from swsdist.entries import joins
from swsdist.registries import CHAINS

#: Keys whose change makes a score mean something else, so that a threshold of before is none of now.
_OF_SCORES = ("features", "search.", "reduce.merge", "calibrate.steps", "calibrate.options", "calibrate.alpha")


def settings_of(config: Config) -> dict[str, str]:
    """Every key that results depend on, as the user writes it, with its value as text."""
    found: dict[str, str] = {}
    sections: tuple[str, ...] = ("features", "queries", "search", "reduce", "calibrate", "score")
    if joins(CHAINS, config.chain):  # it searches nothing itself
        sections = ("options", "calibrate", "score")
    for name in sections:
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


def other_scores(mine: Mapping[str, str], known: object) -> list[str]:
    """Where scores that something was fitted on were made otherwise than these; empty where it is not known."""
    if not isinstance(known, dict):
        return []
    return [
        f"{key} was {known[key]}, here {value}" for key, value in mine.items() if key in known and known[key] != value
    ]
