"""Texts of Python warnings, which have codes as errors have."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import OddError


def warning_text(code: Code[OddError], **values: object) -> str:
    """Message and code, for `warnings.warn`."""
    return f"{code.text(**values)[0]} [{code.name}]"
