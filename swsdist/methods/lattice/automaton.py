"""All terms of a search as one deterministic automaton over the labels of a shard, by subset construction.

A path through a lattice meets each node of the automaton at most once from a start, so a place of a term is counted
once, also where several of the term's alternatives or patterns match the same labels.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.kernels.lattice_search import BITS
from swsdist.lattices.lattice import BREAK

#: Most numbers in the table of an automaton: 64 MB.
_LARGEST = 1 << 24


class Written(NamedTuple):
    """A sequence of labels that a term stands for.

    Attributes:
        term: number of the term.
        labels: texts; with ? and * if `patterns`.
        weight: factor of its posterior.
        patterns: whether labels may be patterns.
    """

    term: int
    labels: tuple[str, ...]
    weight: float
    patterns: bool


class Automaton(NamedTuple):
    """An automaton as `swsdist.kernels.lattice_search.search` takes it.

    Attributes:
        columns: int32 (labels,), the column of each label of the shard; 0: no word.
        child: int32 (nodes, columns), the next node; the last columns are those of all other labels, and of `BREAK`.
        inner: bool (columns,), whether a term may continue after the column.
        mask: uint64 (nodes,), bits of columns with a next node.
        accepts: int64 (nodes + 1,), first entry of each node in the next two.
        terms: int32, terms that end at a node.
        weights: float64, of these.
    """

    columns: NDArray[np.int32]
    child: NDArray[np.int32]
    inner: Bools
    mask: NDArray[np.uint64]
    accepts: Ints
    terms: NDArray[np.int32]
    weights: Floats


#: Labels of a word of a term; None: any.
Choice = frozenset[int] | None


class _Numbered(NamedTuple):
    """A sequence: its term, weight, and the columns of each word."""

    term: int
    weight: float
    choices: tuple[tuple[int, ...] | None, ...]


class _Machine(NamedTuple):
    """What an automaton is besides the columns of labels."""

    child: NDArray[np.int32]
    inner: Bools
    mask: NDArray[np.uint64]
    accepts: Ints
    terms: NDArray[np.int32]
    weights: Floats


def is_pattern(written: Written, label: str) -> bool:
    """Whether a label of a sequence stands for others."""
    return written.patterns and ("?" in label or "*" in label)


def possible(written: Sequence[Written], numbers: Mapping[str, int]) -> list[tuple[Written, list[Choice]]]:
    """The sequences whose labels all occur among those of a shard, with the numbers of these.

    Args:
        written: sequences.
        numbers: labels of the shard by text, from 1: all of them, or, without patterns, those of the sequences.
    """
    texts = [text for text in numbers if text != BREAK]
    globs: dict[str, Choice] = {"?": None}

    def choice(item: Written, label: str) -> Choice:
        if not is_pattern(item, label):
            number = numbers.get(label) if label != BREAK else None
            return frozenset(() if number is None else (number,))
        if label not in globs:
            matches = re.compile(fnmatch.translate(re.sub(r"([\[\]])", r"[\1]", label))).match
            globs[label] = frozenset(numbers[text] for text in texts if matches(text))
        return globs[label]

    result = []
    for item in written:
        choices = [choice(item, label) for label in item.labels]
        if all(some is None or some for some in choices):
            result.append((item, choices))
    return result


def automaton(
    sequences: Sequence[tuple[Written, Sequence[Choice]]], numbers: Mapping[str, int], labels: int
) -> Automaton:
    """The automaton of some sequences.

    Args:
        sequences: from `possible`.
        numbers: as for `possible`, and that of `BREAK` if the shard has it.
        labels: number of labels of the shard, 0 (no word) included.

    Raises:
        UserError: the table would be too large.
    """
    # In the order of the sequences: shards whose labels have other numbers share the machine.
    column: dict[int, int] = {}
    numbered = tuple(
        _Numbered(
            written.term,
            written.weight,
            tuple(
                None if some is None else tuple(column.setdefault(number, len(column) + 1) for number in sorted(some))
                for some in choices
            ),
        )
        for written, choices in sequences
    )
    columns = np.full(labels, len(column) + 1, np.int32)
    columns[0] = 0
    if BREAK in numbers:
        columns[numbers[BREAK]] = len(column) + 2
    columns[list(column)] = list(column.values())
    return Automaton(columns, *_machine(numbered, len(column) + 1))


def automata(
    sequences: Sequence[tuple[Written, list[Choice]]], numbers: Mapping[str, int], labels: int
) -> Iterator[tuple[Sequence[tuple[Written, list[Choice]]], Automaton]]:
    """Automata and their sequences: one of all, or if its table would be too large, several of some terms each.

    Args:
        sequences, numbers, labels: as for `automaton`.

    Raises:
        UserError: the table of a term would be too large.
    """
    try:
        yield sequences, automaton(sequences, numbers, labels)
        return
    except UserError:
        terms = sorted({written.term for written, _ in sequences})
        if len(terms) == 1:
            raise
    first = set(terms[: len(terms) // 2])
    for half in (True, False):
        yield from automata([item for item in sequences if (item[0].term in first) == half], numbers, labels)


@lru_cache(8)
def _machine(sequences: tuple[_Numbered, ...], other: int) -> _Machine:
    """The automaton of sequences of columns.

    Args:
        sequences: with columns from 1.
        other: column of all other labels, the last but that of `BREAK`.
    """
    nodes: dict[frozenset[tuple[int, int]], int] = {}
    members: list[frozenset[tuple[int, int]]] = []

    def node(items: frozenset[tuple[int, int]]) -> int:
        if items not in nodes:
            nodes[items] = len(members)
            members.append(items)
        return nodes[items]

    rows: list[dict[int, int]] = []
    rest: list[int] = []
    node(frozenset((k, 0) for k in range(len(sequences))))
    while len(rows) < len(members):
        if len(members) * (other + 2) > _LARGEST:
            raise families.TOO_LARGE(
                "the patterns of {count} terms and alternatives together are too many to be searched at once",
                "search fewer at a time, or with fewer lone * and ?",
                where="queries",
                count=len(sequences),
            )
        specific: dict[int, list[tuple[int, int]]] = {}
        constant: list[tuple[int, int]] = []
        for k, place in members[len(rows)]:
            choices = sequences[k].choices
            if place == len(choices):
                continue
            some = choices[place]
            if some is None:
                constant.append((k, place + 1))
            else:
                for at in some:
                    specific.setdefault(at, []).append((k, place + 1))
        always = frozenset(constant)
        rows.append({at: node(always.union(items)) for at, items in sorted(specific.items())})
        rest.append(node(always) if always else -1)
    child = np.full((len(rows), other + 2), -1, np.int32)
    mask = np.zeros(len(rows), np.uint64)
    for k, row in enumerate(rows):
        child[k, 1 : other + 1] = rest[k]
        child[k, list(row)] = list(row.values())
        bits = 0
        for at in row:
            bits |= 1 << at % BITS
        mask[k] = bits if rest[k] < 0 else (1 << BITS) - 1
    ends = [_ends(items, sequences) for items in members]
    flat = [item for some in ends for item in some]
    return _Machine(
        child,
        ((child >= 0) & (mask[child] != 0)).any(axis=0),
        mask,
        np.concatenate(([0], np.cumsum([len(some) for some in ends]))).astype(np.int64),
        np.array([term for term, _ in flat], np.int32),
        np.array([weight for _, weight in flat], np.float64),
    )


def _ends(items: frozenset[tuple[int, int]], sequences: Sequence[_Numbered]) -> list[tuple[int, float]]:
    """Terms that end at a node, with the weight of the likeliest of their sequences."""
    best: dict[int, float] = {}
    for k, place in items:
        term, weight, choices = sequences[k]
        if place == len(choices):
            best[term] = max(weight, best.get(term, 0.0))
    return sorted(best.items())


def written_of(rows: Sequence[Mapping[str, object]], number: Mapping[str, int]) -> Iterator[Written]:
    """The sequences of rows of `swsdist.lattices.terms.WRITTEN`, with terms numbered by query."""
    for row in rows:
        labels, cost = row["labels"], row["cost"]
        assert isinstance(labels, list)
        assert isinstance(cost, float)
        yield Written(number[str(row["query_id"])], tuple(labels), math.exp(-cost), bool(row["patterns"]))
