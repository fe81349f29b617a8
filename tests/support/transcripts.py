"""Transcripts as lattices, read back: what they say, word by word."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from swsdist.lattices.lattice import Broken, Lattice, Origin, Word
from swsdist.registry.registries import LATTICE_FORMATS
from swsdist.registry.registry import Entry


def words_of_lattice(lattice: Lattice) -> list[Word]:
    """The words of a transcript, in their order."""
    return [
        Word(
            lattice.labels[label],
            round(int(lattice.times[source]) * lattice.tick, 9),
            round(int(lattice.times[target]) * lattice.tick, 9),
            round(float(np.exp(-cost)), 9),
        )
        for source, target, label, cost in zip(
            lattice.source, lattice.target, lattice.label, lattice.graph, strict=True
        )
        if label
    ]


def read_as(form: str, path: Path, tiers: tuple[str, ...] = ()) -> list[Lattice | Broken]:
    """What a format reads of a file."""
    return list(LATTICE_FORMATS[form].load()(Origin(str(path), tiers=tiers)))


def detected(name: str, content: bytes) -> str | None:
    """The first format that takes a file for its own."""
    detectors = ((form, Entry(LATTICE_FORMATS[form].detect, 1).load()) for form in LATTICE_FORMATS)
    return next((form for form, detect in detectors if detect(name, content[:4096])), None)


def words_in(form: str, path: Path, tiers: tuple[str, ...] = ()) -> list[Word]:
    """The words of a file with one transcript that is not broken."""
    (lattice,) = read_as(form, path, tiers)
    assert isinstance(lattice, Lattice), lattice
    return words_of_lattice(lattice)


def error_in(form: str, path: Path, tiers: tuple[str, ...] = ()) -> Broken:
    """Why the only transcript of a file, or the first of its items that are left out, cannot be read."""
    (item,) = read_as(form, path, tiers)
    if isinstance(item, Broken):
        return item
    assert item.left_out is not None
    return Broken(item.key, item.left_out.errors[0])
