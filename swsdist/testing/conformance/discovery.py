"""Checks measures of term discovery; see `swsdist.discovery.measures` for the requirements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swsdist.core.arrays import Bools
from swsdist.discovery.cells import Block, Talkers
from swsdist.discovery.measures import counted, evaluated
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import TICKS, Corpus, Fragments, Units
from swsdist.registry.registries import DISCOVERY_MEASURES
from swsdist.testing.conformance.entry import check_entry, require

_DOCUMENTS, _PHONES, _LENGTH = 6, 40, TICKS // 10


def example(seed: int = 5) -> tuple[Corpus, Fragments]:
    """Phones, words and classes of six documents of three talkers, with silences, overlaps and repeated fragments."""
    draw = np.random.default_rng(seed)
    document = np.repeat(np.arange(_DOCUMENTS), _PHONES)
    onset = np.tile(np.arange(_PHONES), _DOCUMENTS) * _LENGTH
    symbol = draw.integers(0, 4, len(document))
    phones = Units(document, onset, onset + _LENGTH, symbol, ("a", "b", "c", "SIL"))
    first = np.arange(0, len(document), 4)
    words = Units(document[first], onset[first], onset[first] + 4 * _LENGTH, first % 3, ("x", "y", "z"))
    count = 60
    start, group = draw.integers(0, _PHONES - 8, count), draw.integers(0, 7, count)
    begin = start * _LENGTH + draw.integers(0, _LENGTH, count)
    end = begin + draw.integers(1, 8, count) * _LENGTH
    corpus = Corpus(tuple("abcdef"), phones, words, np.arange(_DOCUMENTS) // 2)
    return corpus, Fragments(draw.integers(0, _DOCUMENTS, count), begin, end, group, tuple("0123456"))


def check_discovery_measure(name: str) -> None:
    """Check one registered measure of term discovery.

    Its parts are integers, and those of any blocks of documents add up to the values of all; its values are numbers or None,
    and have the keys that its entry names.

    Args:
        name: in the registry.

    Raises:
        AssertionError: a check fails.
    """
    entry, what = check_entry(DISCOVERY_MEASURES, name)
    measures = {name: entry.load()()}
    scene = Scene.of(*example())
    kinds: tuple[Talkers, ...] = ("all", "within", "across") if entry.pairs else ("all",)
    for talkers in kinds:
        values = evaluated(measures, scene, talkers)[name]
        require(
            set(entry.gives) <= set(values), what, f"its values are {sorted(values)}, its entry names {entry.gives}"
        )
        for key, value in values.items():
            require(
                value is None or isinstance(value, int | float), what, f"{key} is {value!r}, no number and not None"
            )
        for blocks in _partitions():
            for block in blocks:
                parts = counted(measures, Block(scene, talkers, block))[name]
                require(all(type(part) is int for part in parts.values()), what, f"its parts are not integers: {parts}")
            in_blocks = evaluated(measures, scene, talkers, blocks)[name]
            require(in_blocks == values, what, f"blocks of documents give {in_blocks}, all documents {values}")


def _partitions() -> Iterator[list[Bools]]:
    document = np.arange(_DOCUMENTS)
    for count in (2, 3, _DOCUMENTS):
        yield [document % count == k for k in range(count)]
