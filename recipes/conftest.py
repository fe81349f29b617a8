"""Fixtures of the recipes' tests; how properties are tried, and that recipes are found, are as in tests/conftest.py."""

from __future__ import annotations

import pytest

import tests.conftest  # noqa: F401
from tests.commands import Command, expecting, in_this_process


@pytest.fixture(scope="session")
def swsdist() -> Command:
    """Run a command in this process; `code` is the exit code that is expected."""
    return expecting(in_this_process)
