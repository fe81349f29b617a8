"""Codes of what tests and synthetic corpora need."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import UserError

NOT_A_CHECKOUT = Code(
    "not-a-checkout",
    UserError,
    "swsdist.testing.{program} runs from a checkout of the project, and this package is an installed copy",
    "clone the project, and run it there after pip install -e .",
)
SYNTHETIC_CORPUS_TOO_SMALL = Code(
    "synthetic-corpus-too-small",
    UserError,
    "{name} is {value}, but must be at least {least}",
    "ask for {name} of {least} or more",
)
