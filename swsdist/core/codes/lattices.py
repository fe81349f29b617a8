"""Codes of lattices and transcripts."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError

# Lattices.

LATTICE_CYCLE = Code(
    "lattice-cycle",
    DataError,
    "the lattice has a cycle: a path can return to a state that it left",
    "write a lattice without cycles; programs that prune or determinise lattices do",
)

IMPOSSIBLE_COST = Code(
    "impossible-cost",
    DataError,
    "a cost is {value}",
    "a cost is a number from -1e30 to 1e30, or Infinity; decode again, or repair the file",
)

# Kaldi's lattices.

MALFORMED_LATTICE_LINE = Code(
    "malformed-lattice-line",
    DataError,
    "this is no line of a lattice: {text}",
    "a line is an arc (source, target, word, graph,acoustic,ids; or source, target, id, word, graph,acoustic) or a final state"
    " (state, graph,acoustic), and an empty line ends the lattice",
)

LATTICE_CUT_OFF = Code(
    "lattice-cut-off",
    DataError,
    "the file ends within a lattice",
    "write, or copy, it again; an empty line ends each lattice that is text",
)

NO_LATTICE_HERE = Code(
    "no-lattice-here",
    DataError,
    "no lattice begins here: {fault}",
    "write, or copy, it again; lattice-copy converts it",
)

DAMAGED_LATTICE = Code(
    "damaged-lattice", DataError, "the lattice is damaged: {fault}", "write, or copy, the file again"
)

UNKNOWN_LABEL = Code(
    "unknown-label",
    DataError,
    "the list of words has no number {label}",
    "name the words.txt with which the lattices were made",
)

STATE_AT_TWO_TIMES = Code(
    "state-at-two-times",
    DataError,
    "paths reach state {state} at frames {first} and {second}",
    "paths to a state must have as many frames; write the lattice again without removing ids",
)

LATTICE_FROM_COMMAND = Code(
    "lattice-from-command",
    DataError,
    "the lattice comes from a command, which is not run",
    "run it yourself, and name the archive that it writes (lattice-copy ... ark,scp:x.ark,x.scp)",
)
