"""Word error rate: substitutions, deletions and insertions of the best alignment, over the words of the reference."""

from __future__ import annotations

from collections.abc import Sequence


def word_errors(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Least number of words to change, to leave out or to put in."""
    above = list(range(len(hypothesis) + 1))
    for row, word in enumerate(reference, start=1):
        line = [row]
        for column, other in enumerate(hypothesis, start=1):
            line.append(min(above[column] + 1, line[-1] + 1, above[column - 1] + (word != other)))
        above = line
    return above[-1]
