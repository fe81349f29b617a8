"""Codes of lattices and transcripts."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError, UserError

# Kaldi's keyword search.

LATTICE_WITH_CYCLE = Code(
    "lattice-with-cycle", DataError, "a path comes back to state {state}", "write the lattice without cycles"
)

KEYWORD_WITHOUT_WORDS = Code(
    "keyword-without-words",
    UserError,
    "keyword {keyword!r} has no words, or an empty word among them",
    "give the words as the lattices write them",
)
