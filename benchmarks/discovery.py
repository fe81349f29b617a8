"""Term discovery on Mboshi dev: how well pairs, classes and a parse fit phones and words, by ways to pairs and by systems, and
what more hours cost.

NED is read from the curve of the best pairs where their coverage reaches a level. Chance is the same classes in random
places. Thresholds are chosen on one half of the documents, by a hash of their names, and their figures are those of the
other half; the mean of both ways is shown. What the level of a match parts is shown too: distances of frames of equal
words, matched by their phones, and of any two. For the growth, the hour is repeated HOURS times (by default 4), each
time at another speed (0.9 to 1.1) and with noise at 25 dB, so that a recording's copies are alike and not the same.
`swsdist discover` does one hour and all with two workers, then all with one, by the way to pairs WAY (by default
segments). CPU is that of the chain's own stages, without indexing; wall time is that of the whole command, the page
included. Of a worker the highest PSS counts, sampled once a second.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.corpora import ROOT, Corpus, mboshi, write
from benchmarks.encoders import MODEL
from benchmarks.perturbations import Sound, changed, faster, noisy
from benchmarks.rows import Row, at_least, at_most, main, say
from swsdist import api
from swsdist.accounts.records import records
from swsdist.chains.discover.inputs import DiscoverOptions, stretches, unit_of
from swsdist.config import Config, config_from_dict, dump_config, load_config
from swsdist.discovery.evaluate import Files, read_evaluation
from swsdist.discovery.measures import Value, evaluated, restricted
from swsdist.discovery.results import halves
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import Given
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.kernels.products import local_distances
from swsdist.pipeline.status import load_partial_run
from swsdist.registry.registries import DISCOVERY_MEASURES
from swsdist.stages.buckets import Bucket
from swsdist.store.reading import Store

_HOURS = int(os.environ.get("HOURS", "4"))
_WAY = os.environ.get("WAY", "segments")
_SHARED = ROOT.parent / "shared"
_DATA = _SHARED / "data" / "mboshi" / "dev"
_CORPUS = str(ROOT / "configs" / "corpora" / "mboshi-dev.yaml")  # with alignments

#: Options of each way to pairs.
_WAYS: dict[str, dict[str, Any]] = {
    "segments": {},
    "diagonals": {
        "segments": {"frames": 1, "hop": 1, "parts": 1, "bits": 64, "speech": 1},
        "neighbours": {"by": "diagonals", "orders": 8, "beam": 25, "unlike": 0.42},
    },
    "exact": {"neighbours": {"by": "exact", "kept": 10}},
}

#: Of some systems the greatest NED of pairs at a coverage of 0.25 and 0.60, and of 0.15 across speakers.
_GOALS = {"segments": (0.30, 0.50, 0.50), "discover-encoder": (0.12, 0.36, 0.50)}

#: Levels of a match, and the scores of matches that make classes; and where words may begin and end.
_CLASSES = [
    {"matching": {"level": level}, "clustering": {"score": score}}
    for level, scores in (
        (0.5, (0.5, 0.6, 0.7, 0.8, 0.9)),
        (0.6, (1.1, 1.2, 1.3, 1.4, 1.5)),
        (0.7, (1.7, 1.8, 1.9, 2.0, 2.1)),
    )
    for score in scores
]
_BOUNDARIES = [{"boundaries": {"margin": margin, "fall": fall}} for margin in (6, 8, 10) for fall in (0.5, 1.0, 2.0)]
#: Classes have the greatest coverage at which a third of the phones of a pair of members differ, or little more.
_MOST_NED = 0.35

_NAMES: dict[Given, tuple[str, ...]] = {
    "classes": ("ned", "coverage", "token", "type", "boundary"),
    "parse": ("token", "type", "boundary"),
}

#: Of one half: the measures of `seed`, each with its figures by name.
Figures = Mapping[str, Mapping[str, Value]]


def measure(scratch: Path) -> list[Row]:
    """Quality, then thresholds, then growth."""
    corpus = mboshi()
    if corpus is None:
        return [Row("discovery (Mboshi dev is not beside the checkout)", None, "")]
    rows = [row for way, options in _WAYS.items() for row in quality(way, _config(scratch / way, _CORPUS, options))]
    for name in ("discover-best", *(["discover-encoder"] if MODEL.is_dir() else []), "zrtools"):
        sets = ["executor.kind=serial"]
        file = ROOT / "configs" / "systems" / f"{name}.yaml"
        rows += quality(name, load_config(file, sets, corpus=_CORPUS, run=str(scratch / name)))
    for name in ("segments", "discover-best", "discover-encoder"):
        if (scratch / name).exists():
            rows += likeness(name, load_config(scratch / name / "config.yaml"))
    return [*rows, *thresholds(scratch / "segments"), *growth(corpus, scratch)]


def quality(name: str, config: Config) -> list[Row]:
    """Figures of a run with the hour's phones and words; those in _GOALS have goals."""
    say(f"discovery: {name}")
    _run(config)
    run = Path(config.run)
    (path,) = (run / "tables" / "measures").glob("*.json")
    result: dict[str, Any] = json.loads(path.read_text())
    rows = [
        Row(
            f"{name}: NED at coverage {level}{' across speakers' if part == 'across' else ''}",
            ned_at(result, part, level),
            "",
            at_most(_GOALS[name][k]) if name in _GOALS else None,
        )
        for k, (part, level) in enumerate((("all", 0.25), ("all", 0.60), ("across", 0.15)))
    ]
    if name == "segments":
        rows.append(Row("NED of pairs by chance", result["pairs"]["chance"]["ned"]["ned"], ""))
    for given in ("classes", "parse"):
        for figure in ("token", "type", "boundary"):
            value, chance = (result[given][of][figure]["fscore"] for of in ("all", "chance"))
            rows.append(Row(f"{name}: {figure} F of {given} (by chance {chance:.3f})", value, ""))
    rows += [Row(f"{name}: {of} of classes", result["classes"]["all"][of][of], "") for of in ("ned", "coverage")]
    cost = Cost.of(run)
    return [
        *rows,
        Row(f"{name}: aligned pairs", cost.pairs, ""),
        Row(f"{name}: matches", cost.matches, ""),
        *(Row(f"{name}: CPU of {stage}", cpu, "s") for stage, cpu in cost.cpu.items()),
    ]


def likeness(name: str, config: Config) -> list[Row]:
    """Distances of frames of equal words by one speaker and by two, and of any two frames of speech: the median, and the share
    below the level of a match.
    """
    store, random = Store(Folder(config.store)), np.random.default_rng(0)
    read = [item for shard in store.manifest.shards for item in stretches(store, shard.name, config.search)]
    documents, distance = {doc_id: document for (doc_id, _), document, _ in read}, read[0][-1]
    with (_DATA / "docs.csv").open(newline="") as file:
        speakers = {row["doc_id"]: row["speaker"] for row in csv.DictReader(file)}
    found = defaultdict(list)
    for left, right in _equal_words(random):
        counts = np.maximum(1, np.rint(np.minimum(left.length, right.length) / store.manifest.shift)).astype(int)
        places = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        sides = []
        for word in (left, right):
            times = np.repeat(word.onset, counts) + places * np.repeat(word.length, counts)
            frames = documents[word.document].frames
            sides.append(frames[np.minimum(times / store.manifest.shift, len(frames) - 1).astype(int)])
        of = "of one speaker" if speakers[left.document] == speakers[right.document] else "of two speakers"
        found[of].append(np.diagonal(local_distances(*sides, distance)))
    spoken = [document.frames[document.spoken] for document in documents.values() if document.spoken.any()]
    for _ in range(1500):
        one, other = (random.choice(spoken[k], 20) for k in random.choice(len(spoken), 2, replace=False))
        found["any"].append(local_distances(one, other, distance).ravel())
    level, unit = DiscoverOptions.model_validate(config.options).matching.level, unit_of(config.search)
    rows = []
    for of, pieces in found.items():
        values = np.concatenate(pieces) / unit
        rows.append(Row(f"{name}: median distance of frames, {of}", float(np.median(values)), ""))
        rows.append(Row(f"{name}: share below the level {level}, {of}", float((values < level).mean()), ""))
    return rows


class _Word(NamedTuple):
    """A word of a document, by the onsets and the lengths of its phones, s."""

    document: str
    onset: NDArray[np.float64]
    length: NDArray[np.float64]


def _equal_words(random: np.random.Generator) -> Iterator[tuple[_Word, _Word]]:
    """Up to 30 pairs of each string of at least four phones that is a word in two documents."""
    lines = [line.split() for line in (_DATA / "phones.ctm").read_text().splitlines()]
    phones = defaultdict(list)
    for document, _, onset, length, phone in lines:
        phones[document].append((float(onset), float(length), phone))
    words = defaultdict(list)
    for line in (_DATA / "align.ctm").read_text().splitlines():
        document, _, begin, seconds, _ = line.split()
        first, last = float(begin) - 0.001, float(begin) + float(seconds) + 0.001
        inside = [phone for phone in phones[document] if first <= phone[0] and phone[0] + phone[1] <= last]
        if len(inside) >= 4:
            onsets, lengths, names = zip(*inside, strict=True)
            words[names].append(_Word(document, np.array(onsets), np.array(lengths)))
    for same in words.values():
        pairs = [pair for pair in combinations(same, 2) if pair[0].document != pair[1].document]
        yield from (pairs[k] for k in random.permutation(len(pairs))[:30])


def thresholds(run: Path) -> list[Row]:
    """Figures with thresholds chosen on the other half of the documents: of classes by coverage, of parses by boundary F."""
    rows = []
    for given, options, worth in _CHOICES:
        names = _NAMES[given]
        say(f"discovery: thresholds of {given}")
        tried = [(some, of_halves(run, given, some)) for some in options]
        shown: dict[str, list[float]] = {name: [] for name in names}
        for chosen_on in (0, 1):
            best, figures = max(tried, key=lambda item: worth(item[1][chosen_on]))
            say(f"discovery: half {chosen_on + 1} chooses {json.dumps(best)}")
            for name in names:
                shown[name].append(_main(figures[1 - chosen_on][name]))
        for name, values in shown.items():
            each = ", ".join(f"{value:.3f}" for value in values)
            rows.append(Row(f"{name} of {given}, thresholds of the other half ({each})", float(np.mean(values)), ""))
    return rows


def of_halves(run: Path, given: Given, options: Mapping[str, object]) -> list[Figures]:
    """Figures of both halves of the documents with some options."""
    _run(_config(run, {"documents": str(_DATA / "docs.csv")}, options))
    fragments = run / "exports" / "classes.txt"
    if given == "parse":
        with (run / "exports" / "parse.csv").open(newline="") as file:
            lines = [f"{row['doc_id']} {row['start']} {row['end']}\n" for row in csv.DictReader(file)]
        fragments = run.with_suffix(".parse.txt")
        fragments.write_text("".join(lines))
    files = Files(str(fragments), str(_DATA / "phones.ctm"), str(_DATA / "align.ctm"))
    corpus, found, _ = read_evaluation(files, "seed", Notices(), given=given)
    measures = {name: DISCOVERY_MEASURES[name].load()() for name in _NAMES[given]}
    return [evaluated(measures, Scene.of(*restricted(corpus, found, half))) for half in halves(corpus)]


def _main(values: Mapping[str, Value]) -> float:
    (value,) = (values[name] for name in ("ned", "coverage", "fscore") if name in values)
    assert value is not None
    return value


def _covered(figures: Figures) -> float:
    """The coverage, if NED is low enough."""
    return _main(figures["coverage"]) if _main(figures["ned"]) <= _MOST_NED else -1.0


def _bounded(figures: Figures) -> float:
    return _main(figures["boundary"])


#: What is scored, the thresholds that are tried, and what is greatest for the best.
_CHOICES: tuple[tuple[Given, list[dict[str, Any]], Callable[[Figures], float]], ...] = (
    ("classes", _CLASSES, _covered),
    ("parse", _BOUNDARIES, _bounded),
)


def ned_at(result: dict[str, Any], part: str, coverage: float) -> float | None:
    """NED of the fewest pairs whose coverage is at least so much, between points of the curve."""
    points = [(point["coverage"], point["ned"]) for point in result["curve"] if point["part"] == part]
    covered, ned = zip(*sorted(points), strict=True)
    return float(np.interp(coverage, covered, ned)) if covered[-1] >= coverage else None


class Cost(NamedTuple):
    """CPU seconds of the chain's own stages by name, pairs that were aligned, and matches."""

    cpu: dict[str, float]
    pairs: int
    matches: int

    @classmethod
    def of(cls, run: Path) -> Cost:
        """What a run cost."""
        chain_run = load_partial_run(Folder(str(run)))
        cpu = {}
        for step in chain_run.chain.steps:
            if step.stage.phase == "search":
                table = chain_run.receipts(step.name)
                cpu[step.name] = float(sum(sum(table.column(name).to_pylist()) for name in ("cpu_user", "cpu_system")))
        kept = (
            sum(result.rows for result in chain_run.results(name, Bucket)) for name in ("select-pairs", "align-pairs")
        )
        return cls(cpu, *kept)


def growth(corpus: Corpus, scratch: Path) -> list[Row]:
    """What the command costs by hours and workers."""
    big = perturbed(corpus, _HOURS, scratch / "audio")
    one = Cost.of(commanded(corpus, 2, scratch / "one-hour")[0])
    (run, wall), (_, alone) = (commanded(big, workers, scratch / f"workers-{workers}") for workers in (2, 1))
    more = Cost.of(run)
    before, after = sum(one.cpu.values()), sum(more.cpu.values())
    pss = {"worker": 0, "driver": 0}
    for table in records(Folder(str(run))):
        role = table["role"][0].as_py()
        pss[role] = max(pss[role], pc.max(table["pss"]).as_py() or 0)
    options = DiscoverOptions.model_validate(_WAYS[_WAY])
    most = 2 * options.neighbours.orders * options.neighbours.beam / options.segments.hop
    what = f"{_WAY}, {_HOURS} h"
    return [
        Row(f"{_WAY}: candidates a frame, at most", most, ""),
        Row(f"{_WAY}, 1 h: CPU", before, "s"),
        Row(f"{what}: CPU", after, "s"),
        *(Row(f"{what}: CPU of {stage}", cpu, "s") for stage, cpu in more.cpu.items()),
        Row(f"{what}: CPU over {_HOURS} times that of one", after / before / _HOURS, "x", at_most(1.3)),
        Row(f"{what}: aligned pairs", more.pairs, ""),
        Row(f"{what}: CPU an aligned pair", 1000 * after / more.pairs, "ms"),
        Row(f"{what}: matches", more.matches, ""),
        Row(f"{what}: CPU a match", 1000 * after / more.matches, "ms"),
        *(
            Row(f"{what}: highest PSS of a {role}", peak / 1e6, "MB", at_most(600) if role == "worker" else None)
            for role, peak in pss.items()
        ),
        Row(f"{what}: wall time of the command an hour, two workers", wall / _HOURS, "s", at_most(900 / 16)),
        Row(f"{what}: wall time of one worker to that of two", alone / wall, "x", at_least(1.85)),
    ]


def commanded(corpus: Corpus, workers: int, run: Path) -> tuple[Path, float]:
    """The run folder, and the wall time of the command."""
    say(f"discovery: {corpus.name}, {workers} workers")
    config = _config(run, {"documents": str(corpus.documents)}, _WAYS[_WAY], {"workers": workers})
    file = run.with_suffix(".yaml")
    file.write_text(dump_config(config))
    began = time.monotonic()
    words = [sys.executable, "-m", "swsdist.cli.main", "discover", str(file)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return run, time.monotonic() - began


def perturbed(corpus: Corpus, times: int, folder: Path) -> Corpus:
    """The recordings several times over, at other speeds and with noise."""
    # Without speakers, which a copy at another speed does not share.
    given = [{"doc_id": row["doc_id"], "path": row["path"]} for row in corpus.rows()]
    rows: list[dict[str, Any]] = []
    for k in range(times):
        speed = 0.9 + 0.2 * (k + 0.5) / times

        def change(sound: Sound, rate: int, random: np.random.Generator, speed: float = speed) -> Sound:
            return noisy(faster(sound, rate, speed), 25, random)

        rows += changed(given, folder, change, f"~{k}")
    return replace(corpus, name=f"{times} h", documents=write(folder.with_suffix(".csv"), rows), references=None)


def _config(
    run: Path, corpus: str | dict[str, str], options: Mapping[str, object], executor: Mapping[str, object] | None = None
) -> Config:
    sections = {"corpus": corpus, "options": options, "executor": executor or {"kind": "serial"}}
    return config_from_dict({"chain": "discover", "run": str(run), **sections})


def _run(config: Config) -> None:
    result = api.run(config)
    if result.outcome.failures:
        raise RuntimeError(result.outcome.failures[0].message)


if __name__ == "__main__":
    main(measure, __doc__)
