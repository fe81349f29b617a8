"""What searching lattices by text costs: indexing, 1000 phone strings, words in an open store; workers, memory and bytes.

Phone lattices are those of a free loop of phones over CZ's states (scale 0.5, arcs of a posterior of 1e-3), of an hour of
Mboshi dev, HOURS times over (by default 10), an archive of Kaldi an hour. The 1000 strings of 4 to 9 phones are random walks
through them. Runs with two Ray workers and with one index and search them. Word lattices are pocketsphinx's of the English
corpus (ENGLISH, the folder of its SLF files), pruned at a posterior of 1e-4, as many hours. Goals of seconds are for 100
hours, and scaled to those measured. Of a worker the highest PSS counts (sampled once a second).

The peer is OpenFst (pynini) in the same process, on ten minutes of the same phone lattices: timed factor transducers, made
before, united and sorted by label, so that composing a string with them visits the chains that begin with its first label
only. Both give all places with their posteriors, with silences of any length between phones.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import pynini
import pywrapfst
from numpy.typing import NDArray

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist.accounts.records import records
from swsdist.audio.reader import read_blocks
from swsdist.config import Config, config_from_dict, dump_config
from swsdist.config.search import LatticeOptions
from swsdist.features.phnrec.extractor import Phnrec
from swsdist.io.filesystem import Folder
from swsdist.lattices.collection import read_file
from swsdist.lattices.decoding import Decoder, PhoneArcs, packed_arcs, phone_arcs
from swsdist.lattices.lattice import Lattice, Origin
from swsdist.lattices.packed import Packed, Recipe, pack
from swsdist.methods.lattice import search as lattice_search
from swsdist.methods.lattice.automaton import Written, automaton, possible
from swsdist.methods.lattice.places import Prepared
from swsdist.methods.lattice.search import places_in
from swsdist.pipeline.status import load_partial_run
from swsdist.searcher.searcher import Searcher
from swsdist.store.lattice_shards import Lattices, read_lattices
from swsdist.store.reading import Store
from tests.support.lattices import together

_HOURS = int(os.environ.get("HOURS", "10"))
_ENGLISH = Path(os.environ.get("ENGLISH", ROOT.parent / "english" / "pocketsphinx"))
_MODEL = ROOT.parent / "shared" / "models" / "phnrec" / "CZ"
_SHIFT = 0.01
_SCALE, _LEAST, _LEAST_OF_WORDS = 0.5, 1e-3, 1e-4
_STRINGS = 1000
_QUIET = ("int", "pau", "spk")
_INFINITE = np.float32(np.inf).view(np.int32)
_PEER_SECONDS, _LEAST_OF_PEER = 600.0, 1e-6


class Collection(NamedTuple):
    """Lattices of about an hour: keys and archive entries, and what is known of them."""

    entries: list[tuple[str, bytes]]
    arcs: int
    seconds: float
    labels: Sequence[str]


def measure(scratch: Path) -> list[Row]:
    """Phones, then words."""
    return [*_phones(scratch), *_words(scratch)]


def _phones(scratch: Path) -> list[Row]:
    corpus = mboshi()
    if corpus is None or not _MODEL.is_dir():
        return [Row("phone lattices: neither Mboshi nor CZ's weights lie beside the checkout", None, "", at_most(1))]
    say("lattices: an hour of phone lattices")
    extractor = Phnrec(weights=str(_MODEL), units="states", values="logits", non_speech="keep")
    phones = [name[:-2] for name in extractor.columns[::3]]
    texts = ["" if phone in _QUIET else phone for phone in phones]
    rng = np.random.default_rng(1)
    entries, few = list[tuple[str, bytes]](), list[Packed]()
    strings: list[str] = []
    arcs, frames, spent = 0, 0, 0.0
    for row in corpus.rows():
        samples = np.concatenate(list(read_blocks(row["path"], channel=1, rate=extractor.sample_rate)))
        logits = extractor.extract(samples)
        begin = time.process_time()
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        states = logits.reshape(len(logits), -1, 3)
        made = phone_arcs(lambda first, stop, states=states: states[first:stop], len(states), Decoder(_SCALE), _LEAST)
        spent += time.process_time() - begin
        if not len(made.starts):
            continue
        order = np.lexsort((made.ends, made.starts))
        made = made._replace(
            **{name: getattr(made, name)[order] for name in ("starts", "ends", "phones", "posteriors", "visits")}
        )
        entries.append((row["doc_id"], _of_phones(made)))
        if frames * _SHIFT < _PEER_SECONDS:
            few.append(packed_arcs(made, texts, _SHIFT))
        arcs += len(made.starts)
        frames += len(logits)
        strings += [*_walk(rng, made, texts), *_walk(rng, made, texts)]  # some end too early
    hour = Collection(entries, arcs, frames * _SHIFT, phones)
    strings = [strings[k] for k in rng.permutation(len(strings))[:_STRINGS]]
    rows = [
        Row("phone lattices: arcs a second", hour.arcs / hour.seconds, ""),
        Row("phone_arcs, CPU / audio", spent / hour.seconds, "ratio", at_most(0.008)),
    ]
    rows += _peer(few, strings)
    place, hours = _archives(hour, scratch / "phones")
    terms = scratch / "terms.csv"
    with terms.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("query_id", "term"), *((f"q{k:04d}", text) for k, text in enumerate(strings))])
    walls = []
    for workers in (2, 1):
        config = config_from_dict(
            {
                "run": str(scratch / f"phones-{workers}"),
                "chain": "lattices",
                "corpus": {"documents": str(place), "queries": str(terms)},
                "options": {
                    "lattices": {"words": str(scratch / "phones.txt")},
                    "recipe": {"spelling": "exact", "fillers": list(_QUIET)},
                    "terms": {"units": "phones"},
                },
                "search": {"method": "lattice"},
                "calibrate": {"steps": []},
                "executor": {"kind": "ray", "workers": workers},
                "report": {"clips": 0, "exports": []},
            }
        )
        some, both = _run(config, hour, hours, workers, len(strings))
        rows += some
        walls.append(both)
        if workers == 2:
            rows += _parts(config, strings)
        shutil.rmtree(config.run)
    rows.append(Row("two workers against one, index and search together", walls[1] / walls[0], "", at_least(1.85)))
    shutil.rmtree(place)
    return rows


def _walk(rng: np.random.Generator, made: PhoneArcs, texts: Sequence[str]) -> list[str]:
    """A string of phones along a random path, or none."""
    length, string = int(rng.integers(4, 10)), list[str]()
    place = int(made.starts[rng.integers(len(made.starts))])
    while len(string) < length:
        first, stop = np.searchsorted(made.starts, (place, place + 1))
        if first == stop:
            return []
        weights = made.posteriors[first:stop]
        arc = first + rng.choice(stop - first, p=weights / weights.sum())
        string += filter(None, [texts[made.phones[arc]]])
        place = int(made.ends[arc])
    return [" ".join(string)]


def _of_phones(made: PhoneArcs) -> bytes:
    """An entry of an archive, without key, of arcs by their starts."""
    starts, ends = made.starts, made.ends
    costs = -np.log(made.posteriors / made.visits)
    return _compact(made.frames + 1, starts, ends, made.phones + 1, costs, ends - starts)


def _of_words(packed: Packed, numbers: dict[str, int]) -> bytes:
    """The same; `numbers` of the labels' texts grow."""
    source = np.repeat(np.arange(len(packed.times)), packed.arcs)
    target = source + packed.steps
    labels = np.array([numbers.setdefault(text, len(numbers)) for text in packed.texts])[packed.labels]
    frames = np.rint(packed.times / (1000 * _SHIFT)).astype(np.int64)
    return _compact(len(packed.times), source, target, labels, -np.log(packed.chances), frames[target] - frames[source])


def _compact(
    states: int,
    source: NDArray[np.integer],
    target: NDArray[np.integer],
    label: NDArray[np.integer],
    graph: NDArray[np.float64],
    frames: NDArray[np.integer],
) -> bytes:
    """A binary CompactLattice of Kaldi, of arcs sorted by source; states without arcs are final."""
    kind = b"compactlattice44"
    head = np.array([2, 0, 0, 0, 0, 0, states, states >> 32, 0, 0], np.int32)
    count = np.bincount(source, minlength=states)
    sizes = 6 + frames.astype(np.int64)
    before = np.cumsum(sizes) - sizes
    at_state = 5 * np.arange(states) + np.concatenate(([0], np.cumsum(sizes)))[np.cumsum(count) - count]
    at = 5 * (source.astype(np.int64) + 1) + before
    words = np.ones(5 * states + int(sizes.sum()), np.int32)
    for k, value in enumerate((np.where(count > 0, _INFINITE, 0), np.where(count > 0, _INFINITE, 0), 0, count, 0)):
        words[at_state + k] = value
    for k, column in enumerate((label, label, graph.astype(np.float32).view(np.int32), 0, frames)):
        words[at + k] = column
    words[at + 5 + frames] = target
    parts = np.array([2125659606, 6], "<i4").tobytes(), b"vector", np.array([len(kind)], "<i4").tobytes(), kind
    return b"".join((*parts, head.astype("<i4").tobytes(), words.astype("<i4").tobytes()))


def _archives(hour: Collection, place: Path) -> tuple[Path, float]:
    """An archive an hour, and words.txt beside the folder; and the hours that they are."""
    place.mkdir()
    times = max(1, round(_HOURS * 3600 / hour.seconds))
    for k in range(times):
        with (place / f"lat.{k:03d}.ark").open("wb") as file:
            for key, entry in hour.entries:
                file.write(f"h{k:03d}-{key} ".encode() + entry)
    lines = [f"{label} {k}\n" for k, label in enumerate(hour.labels, 1)]
    place.with_suffix(".txt").write_text("".join(["<eps> 0\n", *lines]), "utf-8")
    return place, times * hour.seconds / 3600


def _swsdist(*words: str) -> float:
    """Wall seconds of a command."""
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "swsdist.cli.main", *words], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def _run(config: Config, hour: Collection, hours: float, workers: int, strings: int) -> tuple[list[Row], float]:
    """Figures of a run, and the wall seconds of index and search together."""
    name = f"phones, {hours:.0f} h, {workers} worker{'s' if workers > 1 else ''}"
    say(f"lattices: {name}")
    file = Path(config.run).with_suffix(".yaml")
    file.write_text(dump_config(config), "utf-8")
    _swsdist("run", str(file))
    chain_run = load_partial_run(Folder(config.run))
    cpu, wall = dict[str, float](), dict[str, float]()
    for step in chain_run.chain.steps:
        table = chain_run.receipts(step.name)
        if len(table):
            cpu[step.name] = float(
                pc.sum(table.column("cpu_user")).as_py() + pc.sum(table.column("cpu_system")).as_py()
            )
            wall[step.name] = pc.max(table.column("finished")).as_py() - pc.min(table.column("started")).as_py()
    peak = max(
        pc.max(table["pss"]).as_py() or 0
        for table in records(Folder(config.run))
        if table["role"][0].as_py() == "worker"
    )
    rows = [
        Row(f"{name}: ISF of index, CPU s / audio s", cpu["index"] / (hours * 3600), ""),
        Row(f"{name}: index", wall["index"], "s"),
        Row(
            f"{name}: search of {strings} strings",
            wall["search"],
            "s",
            at_most(max(2.0, 0.3 * hours)) if workers == 2 else None,
        ),
        Row(f"{name}: CPU of search", cpu["search"], "s"),
        Row(f"{name}: CPU of reduce", cpu["reduce"], "s"),
        Row(f"{name}: highest PSS of a worker", peak / 1e6, "MB", at_most(450)),
    ]
    if workers == 2:
        shards = Store(Folder(f"{config.run}/store")).manifest.shards
        size = sum(file.size for shard in shards for file in shard.files.values())
        arcs = hour.arcs * hours * 3600 / hour.seconds
        rows.append(Row(f"{name}: bytes an arc of the store, shards and postings", size / arcs, "B", at_most(20)))
    return rows, wall["index"] + wall["search"]


def _written(strings: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"query_id": f"q{k:04d}", "labels": text.split(), "cost": 0.0, "patterns": False}
        for k, text in enumerate(strings)
    ]


def _parts(config: Config, strings: Sequence[str]) -> list[Row]:
    """CPU of the search of some shards in this process: of reading them, and of the kernel."""
    store = Store(Folder(f"{config.run}/store"))
    shards = [shard.name for shard in store.manifest.shards[:4]]
    kernel, spent = lattice_search.search, [0.0]

    def timed(*arguments: Any, **named: Any) -> Any:
        begin = time.process_time()
        result = kernel(*arguments, **named)
        spent[0] += time.process_time() - begin
        return result

    queries = Prepared([f"q{k:04d}" for k in range(len(strings))], _written(strings))
    lattice_search.search = timed
    begin = time.process_time()
    for shard in shards:
        lattice_search.search_shard(queries, store, shard, LatticeOptions())
    searched = time.process_time() - begin
    lattice_search.search = kernel
    begin = time.process_time()
    for shard in shards:
        for _ in read_lattices(store.folder, store.manifest.shard(shard).files):
            pass
    read = time.process_time() - begin
    return [
        Row("phones: part of the kernel in the CPU of search", spent[0] / searched, ""),
        Row("phones: part of reading in the CPU of search", read / searched, ""),
    ]


def _words(scratch: Path) -> list[Row]:
    files = sorted(_ENGLISH.glob("*.slf"))
    if not files:
        return [Row(f"words: no SLF files in {_ENGLISH}, the folder of ENGLISH", None, "", at_most(1))]
    say("lattices: words")
    numbers: dict[str, int] = {"": 0}
    entries: list[tuple[str, bytes]] = []
    expected, holders = Counter[str](), Counter[str]()
    phrases: list[str] = []
    arcs, seconds = 0, 0.0
    for file in files:
        for lattice in read_file("pocketsphinx", Origin(str(file))):
            if not isinstance(lattice, Lattice):
                raise lattice.error
            packed = pack(lattice, Recipe(least=_LEAST_OF_WORDS))
            entries.append((lattice.key, _of_words(packed, numbers)))
            arcs += len(packed.steps)
            seconds += lattice.length * lattice.tick
            sums = np.bincount(packed.labels, packed.expected(), len(packed.texts)).tolist()
            expected.update(dict(zip(packed.texts, sums, strict=True)))
            holders.update(packed.texts)
            phrases += _likeliest(packed)
    del expected[""]
    hour = Collection(entries, arcs, seconds, list(numbers)[1:])
    place, hours = _archives(hour, scratch / "words")
    config = config_from_dict(
        {
            "run": str(scratch / "words-run"),
            "chain": "lattices",
            "corpus": {"documents": str(place)},
            "options": {"lattices": {"words": str(place.with_suffix(".txt"))}},
            "search": {"method": "lattice"},
            "executor": {"kind": "ray", "workers": 2},
        }
    )
    path = Path(config.run).with_suffix(".yaml")
    path.write_text(dump_config(config), "utf-8")
    _swsdist("index", str(path))
    shutil.rmtree(place)
    name = f"words, {hours:.0f} h"
    frequent = max(expected, key=expected.__getitem__)
    # The fewest lattices hold it, and it was said.
    rare = min((text for text in expected if expected[text] > 0.5), key=holders.__getitem__)
    rows = [Row(f"{name}: arcs a second", hour.arcs / hour.seconds, "")]
    goal = at_most(max(0.1, hours / 100))
    begin = time.monotonic()
    with Searcher(f"{config.run}/store") as searcher:
        rows.append(Row(f"{name}: opening the store", time.monotonic() - begin, "s"))
        for kind, text in (
            ("a rare word", rare),
            ("a frequent word", frequent),
            ("a phrase of 3", phrases[len(phrases) // 2]),
        ):
            walls, cpu = [], []
            for _ in range(2):
                begin, spent = time.monotonic(), time.process_time()
                hits = searcher.search(text)
                walls.append(time.monotonic() - begin)
                cpu.append(time.process_time() - spent)
            say(f"lattices: {kind}: {text}, {len(hits)} hits shown")
            rows += [
                Row(f"{name}: {kind}, first search", walls[0], "s", goal),
                Row(f"{name}: {kind}, again", walls[1], "s", goal),
                Row(f"{name}: {kind}, again, CPU", cpu[1], "s"),
            ]
    rows.append(
        Row(f"{name}: the command, a rare word", _swsdist("search", f"{config.run}/store", "--text", rare), "s")
    )
    return rows


def _likeliest(packed: Packed) -> Iterator[str]:
    """The first three words of the path of likeliest arcs."""
    first = np.cumsum(packed.arcs) - packed.arcs
    state, words = 0, list[str]()
    while packed.arcs[state] and len(words) < 3:
        arc = first[state] + np.argmax(packed.chances[first[state] :][: packed.arcs[state]])
        words += filter(None, [packed.texts[packed.labels[arc]]])
        state += int(packed.steps[arc])
    if len(words) == 3:
        yield " ".join(words)


def _peer(few: Sequence[Packed], strings: Sequence[str]) -> list[Row]:
    """CPU of searching the same strings in the same lattices, here and by composition."""
    numbers, lattices = together(few)
    begin = time.process_time()
    numbers = {text: number for text, number in numbers.items() if number}
    written = [Written(k, tuple(string.split()), 1.0, False) for k, string in enumerate(strings)]
    sequences = possible(written, numbers)
    here = places_in(lattices, automaton(sequences, numbers, len(numbers) + 1), 1 << 30, _LEAST_OF_PEER)
    ours = time.process_time() - begin
    factors = _factors(lattices)
    begin = time.process_time()
    there = [_composed(factors, [numbers[label] for label in string.split()]) for string in strings]
    by_composition = time.process_time() - begin
    places = sum(posterior >= _LEAST_OF_PEER for some in there for posterior in some.values())
    if abs(places - len(here.term)) > 0.01 * places:
        raise AssertionError(f"{len(here.term)} places, but {places} by composition")
    return [
        Row(
            f"{len(strings)} strings in ten minutes of phones, CPU / OpenFst's",
            ours / by_composition,
            "ratio",
            at_most(0.1),
        ),
        Row(f"{len(strings)} strings in ten minutes of phones, OpenFst", by_composition, "CPU s"),
    ]


def _factors(lattices: Lattices) -> pynini.Fst:
    """The timed factor transducers of all lattices, united: what the first label of a string begins is at the start."""
    fst = pynini.Fst(arc_type="log64")
    states = len(lattices.times)
    fst.add_states(states + 2)
    start, end = states, states + 1
    fst.set_start(start)
    fst.set_final(end)
    source = np.repeat(np.arange(states), np.diff(lattices.first))
    target = source + lattices.steps
    with np.errstate(divide="ignore"):
        chances, visits = -np.log(lattices.chances), -np.log(lattices.visits)
    for s, t, label, cost in zip(source.tolist(), target.tolist(), lattices.labels.tolist(), chances, strict=True):
        fst.add_arc(s, pywrapfst.Arc(label + 1, 0, pywrapfst.Weight("log64", cost), t))
        if label:
            fst.add_arc(start, pywrapfst.Arc(label + 1, s + 1, pywrapfst.Weight("log64", visits[s] + cost), t))
    for s in range(states):
        fst.add_arc(s, pywrapfst.Arc(0, s + 1, pywrapfst.Weight("log64", 0.0), end))
    return fst.arcsort("ilabel")


def _composed(factors: pynini.Fst, labels: Sequence[int]) -> dict[tuple[int, int], float]:
    """Posterior of a string by the states between which it stands."""
    spoken = pynini.Fst(arc_type="log64")
    spoken.add_states(len(labels) + 1)
    spoken.set_start(0)
    spoken.set_final(len(labels))
    free = pywrapfst.Weight("log64", 0.0)
    for k, label in enumerate(labels):
        spoken.add_arc(k, pywrapfst.Arc(label + 1, label + 1, free, k + 1))
        if k:
            spoken.add_arc(k, pywrapfst.Arc(1, 1, free, k))
    places = pynini.determinize(pynini.compose(spoken, factors).project("output").rmepsilon(), delta=1e-12)
    return {
        (begin.ilabel, end.ilabel): math.exp(-sum(float(str(w)) for w in (begin.weight, end.weight, last)))
        for begin in (places.arcs(places.start()) if places.num_states() else ())
        for end in places.arcs(begin.nextstate)
        for last in [places.final(end.nextstate)]
    }


if __name__ == "__main__":
    main(measure, __doc__)
