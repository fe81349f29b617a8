"""Kaldi's archives of matrices, written as Kaldi writes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_ark(ark: Path, frames: Mapping[str, np.ndarray], scp: Path | None = None) -> None:
    """Write matrices (or vectors), float32 or float64, in binary; and a list of where they lie."""
    lines = []
    with ark.open("wb") as file:
        for key, each in frames.items():
            file.write(f"{key} ".encode())
            lines.append(f"{key} {ark}:{file.tell()}\n")
            kind = {4: b"F", 8: b"D"}[each.dtype.itemsize] + {1: b"V", 2: b"M"}[each.ndim]
            file.write(b"\0B" + kind + b" " + b"".join(struct.pack("<bi", 4, n) for n in each.shape))
            file.write(each.tobytes())
    if scp is not None:
        scp.write_text("".join(lines))
