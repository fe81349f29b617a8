"""Term discovery on Mboshi dev: how well pairs, classes and a parse fit phones and words, and what more hours cost.

NED is read from the curve of the best pairs where their coverage reaches a level. Chance is the same classes in random places.
Thresholds are chosen on one half of the documents, by a hash of their names, and their figures are those of the other half; the
mean of both ways is shown.
For the growth, the hour is repeated HOURS times (by default 4), each time at another speed (0.9 to 1.1) and with noise at
25 dB, so that a recording's copies are alike and not the same; CPU is that of the chain's own stages, without indexing.
"""

from __future__ import annotations

import csv
import json
import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import soundfile
import soxr

from benchmarks.corpora import ROOT, Corpus, mboshi, write
from benchmarks.rows import Row, at_most, main, say
from swsdist import api
from swsdist.config import config_from_dict
from swsdist.discovery.folds import restricted
from swsdist.discovery.measures.evaluating import evaluated
from swsdist.discovery.ratios import Value
from swsdist.discovery.reading import Files, read_evaluation
from swsdist.discovery.results import halves
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import Given
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.pipeline.inspection.loading import load_partial_run
from swsdist.registry.registries import DISCOVERY_MEASURES
from swsdist.stages.task_results import Bucket

_HOURS = int(os.environ.get("HOURS", "4"))
_STAGES = ("cut-segments", "propose-pairs", "select-pairs", "align-pairs", "find-boundaries", "group-matches")
_DATA = ROOT.parent / "shared" / "data" / "mboshi" / "dev"

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
    """Quality, then growth."""
    corpus = mboshi()
    if corpus is None:
        return [Row("discovery (Mboshi dev is not beside the checkout)", None, "")]
    rows = [*quality(scratch / "one"), *thresholds(scratch / "one")]
    one = growth(corpus, 1, scratch / "growth-1")
    rows += [Row("CPU of an hour", one[0], "s"), Row("matches of an hour", one[1], "")]
    more = growth(perturbed(corpus, _HOURS, scratch / "audio"), _HOURS, scratch / f"growth-{_HOURS}")
    rows.append(Row(f"CPU of {_HOURS} hours", more[0], "s"))
    rows.append(
        Row(f"CPU of {_HOURS} hours over {_HOURS} times that of one", more[0] / one[0] / _HOURS, "x", at_most(1.3))
    )
    rows.append(Row(f"CPU a match, {_HOURS} hours", 1000 * more[0] / more[1], "ms"))
    rows.append(Row("peak memory of the process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB"))
    return rows


def quality(run: Path) -> list[Row]:
    """Figures of a run with the hour's phones and words."""
    alignments = {"phones": str(_DATA / "phones.ctm"), "words": str(_DATA / "align.ctm")}
    _run({"run": str(run), "corpus": {"documents": str(_DATA / "docs.csv"), "alignments": alignments}})
    (path,) = (run / "tables" / "measures").glob("*.json")
    result: dict[str, Any] = json.loads(path.read_text())
    rows = [
        Row("NED at coverage .25", ned_at(result, "all", 0.25), "", at_most(0.30)),
        Row("NED at coverage .60", ned_at(result, "all", 0.60), "", at_most(0.50)),
        Row("NED at coverage .15 across speakers", ned_at(result, "across", 0.15), "", at_most(0.50)),
        Row("NED of pairs by chance", result["pairs"]["chance"]["ned"]["ned"], ""),
    ]
    for given in ("classes", "parse"):
        for name in ("token", "type", "boundary"):
            value, chance = (result[given][of][name]["fscore"] for of in ("all", "chance"))
            rows.append(Row(f"{name} F of {given} (by chance {chance:.3f})", value, ""))
    rows.append(Row("NED of classes", result["classes"]["all"]["ned"]["ned"], ""))
    rows.append(Row("coverage of classes", result["classes"]["all"]["coverage"]["coverage"], ""))
    return rows


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
    _run({"run": str(run), "corpus": {"documents": str(_DATA / "docs.csv")}, "options": options})
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


def growth(corpus: Corpus, hours: int, run: Path) -> tuple[float, int]:
    """CPU seconds of the chain's own stages, and matches."""
    say(f"discovery: {hours} h")
    _run({"run": str(run), "corpus": {"documents": str(corpus.documents)}})
    chain_run = load_partial_run(Folder(str(run)))
    tables = [chain_run.receipts(stage) for stage in _STAGES]
    cpu = sum(pc.sum(table.column(name)).as_py() for table in tables for name in ("cpu_user", "cpu_system"))
    return float(cpu), sum(result.rows for result in chain_run.results("align-pairs", Bucket))


def perturbed(corpus: Corpus, times: int, folder: Path) -> Corpus:
    """The recordings several times over, at other speeds and with noise."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    rows = []
    for k in range(times):
        speed = 0.9 + 0.2 * (k + 0.5) / times
        for row in corpus.rows():
            sound, rate = soundfile.read(row["path"], dtype="float32")
            sound = soxr.resample(sound, rate * speed, rate)
            sound += random.standard_normal(len(sound), np.float32) * np.sqrt(np.mean(sound**2)) * 10 ** (-25 / 20)
            path = folder / f"{row['doc_id']}~{k}.flac"
            soundfile.write(path, sound, rate, "PCM_16", format="FLAC")
            rows.append({"doc_id": path.stem, "path": str(path), "duration": f"{len(sound) / rate:.3f}"})
    return replace(corpus, name=f"{times} h", documents=write(folder.with_suffix(".csv"), rows), references=None)


def _run(sections: dict[str, Any]) -> None:
    result = api.run(config_from_dict({"chain": "discover", "executor": {"kind": "serial"}, **sections}))
    if result.outcome.failures:
        raise RuntimeError(result.outcome.failures[0].message)


if __name__ == "__main__":
    main(measure, __doc__)
