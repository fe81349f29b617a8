"""Search a shard of lattices for written terms."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import LatticeOptions
from swsdist.core.arrays import Bools, Floats
from swsdist.core.types import CANDIDATES
from swsdist.kernels.lattice_search import closures, label_masks, search
from swsdist.lattices.lattice import BREAK
from swsdist.methods.lattice.automaton import Automaton, Choice, Written, automata, is_pattern, possible, written_of
from swsdist.methods.lattice.kaldi import kaldi_places
from swsdist.methods.lattice.places import Places, Prepared, candidates, gap_ticks
from swsdist.store.lattice_shards import Lattices, Postings, postings_of, read_lattices, shard_rows
from swsdist.store.reading import Store

#: Chains of a smaller posterior are dropped while they are followed: far below what 1e-9 shows.
_NEGLIGIBLE = 1e-15
#: Occurrences that a path has begun: the automaton's node, and the time of the end of its last word.
_Begun = frozenset[tuple[int, int]]
#: Of a path that has held the term at the place.
_DONE: _Begun = frozenset([(-1, -1)])


def search_shard(
    queries: Prepared,
    store: Store,
    shard: str,
    options: LatticeOptions,
    only: Collection[tuple[str, int]] | None = None,
) -> pa.Table:
    """CANDIDATES of all queries in a shard.

    Args:
        queries: from the method's `prepare`.
        store: of lattices.
        shard: its name.
        options: of the method.
        only: documents to search; by default all live ones.
    """
    files = store.manifest.shard(shard).files
    terms = {query_id: k for k, query_id in enumerate(queries.query_ids)}
    written = list(written_of(queries.rows, terms))
    patterns = any(is_pattern(item, label) for item in written for label in item.labels)
    labels = None if patterns else {BREAK, *(label for item in written for label in item.labels)}
    postings = postings_of(store.folder, files, labels)
    sequences = possible(written, postings.numbers)
    if not sequences:
        return CANDIDATES.empty_table()
    live = store.live(shard)
    searched = live if only is None else live & set(only)
    exact = options.mode == "exact"
    parts = automata(sequences, postings.numbers, postings.labels + 1) if exact else [(sequences, None)]
    documents: tuple[list[str], list[int]] = [], []
    results: list[Places] = []
    for some, machine in parts:
        holders = _holders(some, postings, shard_rows(store.folder, files))
        for first, lattices in read_lattices(store.folder, files, holders, store.memory):
            keys = zip(lattices.doc_ids, lattices.channels, strict=True)
            chosen = np.array([key in searched for key in keys], bool) & holders[first : first + len(lattices.doc_ids)]
            if machine is not None:
                places = places_in(lattices, machine, gap_ticks(options), options.least, chosen)
            else:
                spoken = [item for item, _ in some]
                places = kaldi_places(lattices, spoken, postings.numbers, gap_ticks(options), options.least, chosen)
            results.append(places._replace(document=places.document + len(documents[0])))
            documents[0].extend(lattices.doc_ids)
            documents[1].extend(lattices.channels)
    if not results:
        return CANDIDATES.empty_table()
    return candidates(queries.query_ids, documents, *map(np.concatenate, zip(*results, strict=True)))


def places_in(lattices: Lattices, machine: Automaton, gap: int, least: float, chosen: Bools | None = None) -> Places:
    """All places of the terms of an automaton.

    Args:
        lattices: to be searched.
        machine: over their labels.
        gap: greatest time between two words, ticks.
        least: least posterior of a place.
        chosen: bool (documents,), those to search; by default all.
    """
    labels = machine.columns[lattices.labels]
    mask, silent = np.empty(len(lattices.times), np.uint64), np.empty(len(lattices.times), bool)
    any_empty = label_masks(labels, lattices.first, lattices.steps, lattices.times, mask, silent)
    visits = lattices.visits
    if chosen is not None and not chosen.all():
        visits = np.where(np.repeat(chosen, np.diff(lattices.documents)), visits, 0.0)
    reached = closures(
        labels, lattices.first, lattices.steps, lattices.chances, lattices.times, visits, silent, machine.inner, gap
    )
    rows, posterior, _ = search(
        labels,
        lattices.first,
        lattices.steps,
        lattices.chances,
        lattices.times,
        visits,
        lattices.documents,
        mask,
        *reached,
        child=machine.child,
        node_mask=machine.mask,
        accepts=machine.accepts,
        accepted=machine.terms,
        weight=machine.weights,
        least=_NEGLIGIBLE,
    )
    return _once(_added(rows, posterior, least), ZeroLength(lattices, labels, machine, gap, any_empty), least)


def _once(places: Places, empty: ZeroLength, least: float) -> Places:
    """The same, with paths that hold a term twice at a place counted once."""
    if not empty:
        return places
    for k, (term, document, start, end) in enumerate(zip(*places[:4], strict=True)):
        if empty.repeats(int(document), int(start), int(end)):
            places.posterior[k] = empty.posterior(int(term), int(document), int(start), int(end))
    kept = places.posterior >= least
    return Places(*(column[kept] for column in places))  # type: ignore[arg-type]


def _added(rows: NDArray[np.int32], posterior: Floats, least: float) -> Places:
    """Rows of one place are added, in their order."""
    wide = rows.astype(np.int64)
    where, when = wide[:, 0] << 32 | wide[:, 1], wide[:, 2] << 32 | wide[:, 3]
    order = np.lexsort((when, where))
    wide, where, when = wide[order], where[order], when[order]
    cuts = np.flatnonzero((np.diff(where, prepend=-1) != 0) | (np.diff(when, prepend=-1) != 0))
    sums = np.add.reduceat(posterior[order], cuts) if len(cuts) else np.empty(0)
    kept = sums >= least
    return Places(*wide[cuts[kept]].T, sums[kept])  # type: ignore[call-arg]


def _holders(sequences: Sequence[tuple[Written, list[Choice]]], postings: Postings, count: int) -> Bools:
    """Documents of a shard that hold all labels of a sequence: bool (count,)."""
    rows = {number: postings.rows[text] for text, number in postings.numbers.items()}
    holders: dict[frozenset[int], Bools] = {}

    def documents(choice: frozenset[int]) -> Bools:
        if choice not in holders:
            holders[choice] = np.zeros(count, bool)
            for number in choice:
                holders[choice][rows[number]] = True
        return holders[choice]

    result = np.zeros(count, bool)
    for _, choices in sequences:
        held = np.ones(count, bool)
        for choice in choices:
            if choice is not None:
                held &= documents(choice)
        result |= held
    return result


class ZeroLength:
    """Places at which one path may hold a term twice, because words of no length are at one of its ends.

    The sum over chains counts such a path twice there. The posterior is instead the sum over paths, each with the
    likeliest of the sequences that it holds: a path is followed with the set of occurrences that it has begun at the
    place's start, until one ends at the place's end.

    Args:
        lattices: that are searched.
        labels: int32 (arcs,), columns of the automaton.
        machine: the terms.
        gap: greatest time between two words, ticks.
        any_empty: whether there are words of no length.
    """

    def __init__(
        self, lattices: Lattices, labels: NDArray[np.int32], machine: Automaton, gap: int, any_empty: bool
    ) -> None:
        self._lattices, self._labels, self._machine, self._gap = lattices, labels, machine, gap
        self._at: set[tuple[int, int]] = set()
        if not any_empty:
            return
        source = np.repeat(np.arange(len(lattices.times)), np.diff(lattices.first))
        empty = np.flatnonzero((labels > 0) & (lattices.times[source] == lattices.times[source + lattices.steps]))
        document = np.searchsorted(lattices.documents, source[empty], side="right") - 1
        ticks = lattices.times[source[empty]].tolist()
        self._at = set(zip(document.tolist(), ticks, strict=True))

    def __bool__(self) -> bool:
        return bool(self._at)

    def repeats(self, document: int, start: int, end: int) -> bool:
        """Whether a path may hold a term twice at a place."""
        return (document, start) in self._at or (document, end) in self._at

    def posterior(self, term: int, document: int, start: int, end: int) -> float:
        """Sum over the paths that hold a term at a place, by the greatest of its weights there."""
        accepts = self._machine.accepts
        entries = np.flatnonzero(self._machine.terms == term)
        nodes, weights = np.searchsorted(accepts, entries, side="right") - 1, self._machine.weights[entries]
        total, greater = 0.0, np.inf
        for weight in (*np.unique(weights)[::-1].tolist(), 0.0):
            if greater < np.inf:
                paths = self._paths(frozenset(nodes[weights >= greater].tolist()), document, start, end)
                total += (greater - weight) * paths
            greater = weight
        return total

    def _paths(self, accepting: frozenset[int], document: int, start: int, end: int) -> float:
        """Probability of the paths that reach one of some nodes at a place."""
        lattices, machine = self._lattices, self._machine
        first, stop = lattices.documents[document : document + 2].tolist()
        # Where words overlap, time goes back.
        ahead = np.minimum.accumulate(lattices.times[first:stop][::-1])[::-1]
        reached: dict[int, dict[_Begun, float]] = {}
        total = 0.0
        for state in range(first, stop):
            time = int(lattices.times[state])
            paths = reached.pop(state, {})
            # Paths that did not pass a state of the start's time before this one.
            if time == start:
                fresh = lattices.visits[state] - sum(paths.values())
                paths[frozenset()] = paths.get(frozenset(), 0.0) + max(0.0, fresh)
            for begun, chance in paths.items():
                active = begun | ({(0, time)} if time == start else frozenset())
                for arc in range(lattices.first[state], lattices.first[state + 1]):
                    target = state + int(lattices.steps[arc])
                    then = int(lattices.times[target])
                    if ahead[target - first] > end:
                        continue
                    label, part = int(self._labels[arc]), chance * float(lattices.chances[arc])
                    into = reached.setdefault(target, {})
                    if begun == _DONE:
                        into[_DONE] = into.get(_DONE, 0.0) + part
                        continue
                    after = frozenset(
                        (int(machine.child[node, label]), then) if label else (node, last)
                        for node, last in active
                        if (machine.child[node, label] >= 0 and (node == 0 or time - last <= self._gap))
                        or (not label and node)
                    )
                    if label and then == end and any(node in accepting for node, _ in after):
                        total += part
                        after = _DONE
                    into[after] = into.get(after, 0.0) + part
        return min(total, 1.0)
