"""HTK's label files.

A line is a label, `start end label score`, times in 100 ns. A master label file (MLF) begins with `#!MLF!#` and holds
the labels of many files, each between its quoted name and a line with a dot. (Young et al., The HTK Book, 6.2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from swsdist.core.codes import io as codes

_TICK = 1e7  # a second

_FIRST = "#!MLF!#"


class TimedLabel(NamedTuple):
    """A line of a label file; times in seconds."""

    start: float
    end: float
    label: str
    score: float


def label_lines(labels: Iterable[TimedLabel]) -> list[str]:
    """The lines of a label file: times in 100 ns, scores with 6 decimals."""
    return [
        f"{round(label.start * _TICK)} {round(label.end * _TICK)} {label.label} {label.score:.6f}\n" for label in labels
    ]


def write_mlf(labels: Mapping[str, Sequence[TimedLabel]], out: Path) -> None:
    """Write a master label file.

    Args:
        labels: by the name in the file, for example `*/talk.rec`.
        out: local file to write.

    Raises:
        DataError: the format cannot represent a name or label.
    """
    lines = [f"{_FIRST}\n"]
    for name, items in labels.items():
        if '"' in name or not name.isprintable() or any(not item.label or " " in item.label for item in items):
            raise codes.INVALID_MLF_NAME(where=str(out), name=name)
        lines += [f'"{name}"\n', *label_lines(items), ".\n"]
    out.write_text("".join(lines), encoding="utf-8")


def read_mlf(path: Path) -> dict[str, list[TimedLabel]]:
    """Read a master label file with lines `start end label [score]`; the score is 0 by default.

    Raises:
        DataError: a line has another form, or a name comes twice.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0].strip() != _FIRST:
        raise codes.NOT_AN_MLF(where=str(path), first=_FIRST)
    labels: dict[str, list[TimedLabel]] = {}
    name: str | None = None
    for number, line in enumerate(lines[1:], 2):
        if name is None and line.startswith('"') and line.rstrip().endswith('"'):
            name = line.strip()[1:-1]
            if name in labels:
                raise codes.DUPLICATE_MLF_NAME(where=f"{path}, line {number}", name=name)
            labels[name] = []
        elif name is not None and line.strip() == ".":
            name = None
        else:
            try:
                start, end, label, *score = line.split()
                if name is None or len(score) > 1:
                    raise ValueError(line)
                times = int(start) / _TICK, int(end) / _TICK
                labels[name].append(TimedLabel(*times, label, float(score[0]) if score else 0.0))
            except ValueError:
                raise codes.NOT_AN_MLF_LABEL(where=f"{path}, line {number}", line=line) from None
    return labels
