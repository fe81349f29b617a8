"""What a test registers is gone after it."""

from collections.abc import Iterator
from typing import Any

import pytest

from swsdist.registry.registry import Registry


@pytest.fixture
def added() -> Iterator[Any]:
    """A function of (registry, name, entry) that registers it for this test, and returns the name."""
    names: list[tuple[Registry[Any], str]] = []

    def add(registry: Registry[Any], name: str, entry: Any) -> str:
        registry.add(name, entry)
        names.append((registry, name))
        return name

    yield add
    for registry, name in names:
        registry.remove(name)
