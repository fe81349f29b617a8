"""Checks formats of lattices and transcripts; see `swsdist.registry.entries.LatticeFormatEntry` for the requirements."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from swsdist.core.arrays import Singles
from swsdist.core.errors import DataError, UserError
from swsdist.core.needs import LEAST
from swsdist.io.compressed import opened
from swsdist.lattices.collection import HEAD, detect, read_file
from swsdist.lattices.lattice import BREAK, Broken, Lattice, Origin
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.recognition import Recognition
from swsdist.registry.registries import LATTICE_FORMATS, RECOGNISERS
from swsdist.registry.registry import Entry
from swsdist.testing.conformance.entry import check_entry, require

#: Contents of which no reader makes lattices.
BROKEN = (b"", b"one two 3 4 five\n", b"\x00\x01\x02", b"\xff\xfe<\x00", b"\xff" * 40)


def check_lattice_format(name: str, file: str, content: bytes, files: Mapping[str, bytes] | None = None) -> int:
    """Check one registered format.

    Its file is detected as this format and no file of nonsense is; packed or plain, and repeatedly, it gives the same lattices,
    each of a name and channel of its own, with arrays that fit together, words that do not end before they start, and costs
    that are numbers; they can be prepared for search. A file that is cut off anywhere, or is nonsense, gives lattices or says
    what is wrong.

    Args:
        name: registered in `swsdist.registry.registries.LATTICE_FORMATS`.
        file: name of a file.
        content: of it, with at least one lattice that has words.
        files: contents of the files that it needs, by name.

    Returns:
        Number of lattices.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    entry, what = check_entry(LATTICE_FORMATS, name)
    require(bool(entry.says), what, "it does not say what it is")
    detects = Entry(entry.detect, entry.version).load()
    require(not any(detects("x", broken) for broken in BROKEN), what, "it takes nonsense for its own")
    with tempfile.TemporaryDirectory(prefix="swsdist-") as place:
        root = Path(place)
        for other, data in (files or {}).items():
            (root / other).write_bytes(data)
        path = root / file
        path.write_bytes(content)
        require(detect(str(path), {}) == name, what, f"its file is taken for {detect(str(path), {})}")
        lattices = _read(name, path, what)
        require(any(lattice.label.any() for lattice in lattices), what, "its file has no words")
        keys = [(lattice.key, lattice.channel) for lattice in lattices]
        require(all(key for key, _ in keys) and len(set(keys)) == len(keys), what, f"its lattices are named {keys}")
        for lattice in lattices:
            check_lattice(lattice, what)
        require(same_lattices(lattices, _read(name, path, what)), what, "it reads something else the second time")
        packed = root / f"{file}.gz"
        packed.write_bytes(gzip.compress(content))
        require(detect(str(packed), {}) == name, what, "its file is not detected when it is packed")
        with opened(str(packed), {}) as stream:
            require(bool(detects(file, stream.read(HEAD))), what, "it is not detected by its first bytes")
        require(same_lattices(lattices, _read(name, packed, what)), what, "it reads something else when it is packed")
        step = max(1, len(content) // 50)
        for damaged in (*BROKEN, *(content[:size] for size in range(1, len(content), step))):
            path.write_bytes(damaged)
            _read_damaged(name, path, what)
    return len(lattices)


def _read(name: str, path: Path, what: str) -> list[Lattice]:
    result = []
    for item in read_file(name, Origin(str(path))):
        require(isinstance(item, Lattice), what, f"it cannot read its own file: {item}")
        assert isinstance(item, Lattice)
        result.append(item)
    return result


def _read_damaged(name: str, path: Path, what: str) -> None:
    try:
        for item in read_file(name, Origin(str(path))):
            if isinstance(item, Broken):
                require(bool(item.key) and bool(item.error.code), what, f"it says too little of a damaged file: {item}")
            else:
                check_lattice(item, what)
    except (UserError, DataError) as error:
        require(bool(error.code), what, f"it says too little of a damaged file: {error}")


def check_lattice(lattice: Lattice, what: str) -> None:
    """Check that the arrays of a lattice fit together, and that it can be prepared for search."""
    where = f"lattice {lattice.key}"
    columns = (lattice.source, lattice.target, lattice.label, lattice.graph, lattice.acoustic)
    require(len({len(column) for column in columns}) == 1, what, f"{where}: arcs have columns of different lengths")
    finals = (lattice.times, lattice.final_graph, lattice.final_acoustic)
    require(len({len(column) for column in finals}) == 1, what, f"{where}: states have columns of different lengths")
    states = lattice.states
    require(-1 <= lattice.start < max(states, 1), what, f"{where}: there is no state {lattice.start}")
    for ends in (lattice.source, lattice.target):
        require(bool(((ends >= 0) & (ends < states)).all()), what, f"{where}: an arc has a state that is not there")
    require(lattice.labels[0] == "" and "" not in lattice.labels[1:], what, f"{where}: its first label alone is empty")
    in_range = (lattice.label >= 0) & (lattice.label < len(lattice.labels))
    require(bool(in_range.all()), what, f"{where}: an arc has a label that is not there")
    costs = (lattice.graph, lattice.acoustic, lattice.final_graph, lattice.final_acoustic)
    require(not any(np.isnan(column).any() for column in costs), what, f"{where}: a cost is not a number")
    require(lattice.tick > 0 and lattice.channel >= 1, what, f"{where}: its tick or its channel is impossible")
    try:
        packed = pack(lattice, Recipe(spelling="exact", fillers=()))
    except DataError:
        return  # such as one with a cycle
    source = np.repeat(np.arange(len(packed.times)), packed.arcs)
    back = packed.times[source + packed.steps] < packed.times[source]  # as what is no word does where words overlap
    words = np.array([text not in ("", BREAK) for text in packed.texts])[packed.labels]
    require(not (back & words).any(), what, f"{where}: a word ends before it starts")
    require(int(packed.times.max(initial=0)) <= packed.ticks, what, f"{where}: it is shorter than its last state")


def same_lattices(ours: list[Lattice], others: list[Lattice]) -> bool:
    """Whether lattices are equal, one by one."""
    names = ("times", "source", "target", "label", "graph", "acoustic", "final_graph", "final_acoustic")
    return len(ours) == len(others) and all(
        (item.key, item.channel, item.labels, item.start, item.length, item.tick)
        == (other.key, other.channel, other.labels, other.start, other.length, other.tick)
        and all(np.array_equal(getattr(item, name), getattr(other, name)) for name in names)
        for item, other in zip(ours, others, strict=True)
    )


def check_recogniser(name: str, samples: Singles, options: Mapping[str, object] | None = None) -> None:
    """Check a registered recogniser with a recording.

    Its lattice and its texts are the same whatever the blocks and after other recordings; the lattice is of the key and
    channel, fits together and holds words; of no samples there are none.

    Args:
        name: registered in `swsdist.registry.registries.RECOGNISERS`.
        samples: float32 (samples,) at its rate, of words that it recognises.
        options: of the recogniser.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(RECOGNISERS, name)
    recognition = Recognition(name=name, options=dict(options or {}))
    identity = recognition.identities()
    require(json.loads(json.dumps(identity)) == recognition.identities(), what, f"its identity is no JSON: {identity}")
    recogniser = recognition.loaded(LEAST[0])
    parts = np.array_split(samples, 7)
    lattice, texts = recogniser.lattice("a", 2, [samples]), recogniser.texts([samples])
    check_lattice(lattice, what)
    require((lattice.key, lattice.channel) == ("a", 2), what, f"its lattice is of {lattice.key}, {lattice.channel}")
    require(bool(texts) and all(text.labels for text in texts) and any(lattice.labels), what, "it recognises nothing")
    costs = [text.cost for text in texts]
    require(costs == sorted(costs) and min(costs) >= 0, what, f"costs of its texts fall, or are below 0: {costs}")
    require(recogniser.texts([]) == [], what, "it makes words of nothing")
    check_lattice(recogniser.lattice("b", 1, []), what)
    require(same_lattices([lattice], [recogniser.lattice("a", 2, parts)]), what, "its lattices depend on blocks")
    require(texts == recogniser.texts(parts), what, "its texts depend on blocks")
