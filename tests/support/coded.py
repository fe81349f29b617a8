"""Errors and notices by their codes: tests assert codes and values, not English."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from swsdist.core.codes import Code
from swsdist.core.errors import SwsdistError


@contextmanager
def raises(
    code: Code[SwsdistError], *, where: str | None = None, **values: object
) -> Iterator[pytest.ExceptionInfo[SwsdistError]]:
    """Expect the error of a code.

    Args:
        code: of the error.
        where: a part of its place; None: any.
        values: of the message that must be these; others may be any.
    """
    with pytest.raises(SwsdistError) as caught:
        yield caught
    error = caught.value
    assert error.code == code.name, str(error)
    assert where is None or (error.where is not None and where in error.where), str(error)
    assert {name: error.values.get(name) for name in values} == values, str(error)


def says(text: str, code: Code[SwsdistError]) -> bool:
    """Whether an output has a line of a code."""
    return f"[{code.name}]" in text
