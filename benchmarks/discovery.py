"""Term discovery on Mboshi dev: how well pairs, classes and a parse fit phones and words, and what more hours cost; and how
well other ways to pairs do.

NED is read from the curve of the best pairs where their coverage reaches a level. Chance is the same classes in random places.
For the growth, the hour is repeated HOURS times (by default 4), each time at another speed (0.9 to 1.1) and with noise at
25 dB, so that a recording's copies are alike and not the same; CPU is that of the chain's own stages, without indexing.
"""

from __future__ import annotations

import json
import os
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from benchmarks.corpora import ROOT, Corpus, mboshi, write
from benchmarks.perturbations import Sound, changed, faster, noisy
from benchmarks.rows import Row, at_most, main, say
from swsdist import api
from swsdist.config import config_from_dict
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.inspection.loading import load_partial_run
from swsdist.stages.task_results import Bucket

_HOURS = int(os.environ.get("HOURS", "4"))
_STAGES = ("cut-segments", "propose-pairs", "search-segments", "select-pairs", "align-pairs", "group-matches")
#: Options of the ways to pairs that are not the default.
_WAYS: dict[str, dict[str, Any]] = {
    "exact": {"neighbours": {"by": "exact", "kept": 10}},
    "diagonals": {
        "segments": {"frames": 1, "hop": 1, "parts": 1, "bits": 64, "speech": 1},
        "neighbours": {"by": "diagonals", "orders": 8, "beam": 25, "unlike": 0.42},
    },
}


def measure(scratch: Path) -> list[Row]:
    """Quality, then growth, then other ways to pairs."""
    corpus = mboshi()
    if corpus is None:
        return [Row("discovery (Mboshi dev is not beside the checkout)", None, "")]
    rows = quality(scratch / "one")
    one = growth(corpus, 1, scratch / "growth-1")
    rows += [Row("CPU of an hour", one[0], "s"), Row("matches of an hour", one[1], "")]
    more = growth(perturbed(corpus, _HOURS, scratch / "audio"), _HOURS, scratch / f"growth-{_HOURS}")
    rows.append(Row(f"CPU of {_HOURS} hours", more[0], "s"))
    rows.append(
        Row(f"CPU of {_HOURS} hours over {_HOURS} times that of one", more[0] / one[0] / _HOURS, "x", at_most(1.3))
    )
    rows.append(Row(f"CPU a match, {_HOURS} hours", 1000 * more[0] / more[1], "ms"))
    rows.append(Row("peak memory of the process", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB"))
    return rows + [row for way, options in _WAYS.items() for row in quality_of(way, options, scratch / way)]


def quality(run: Path) -> list[Row]:
    """Figures of the default options."""
    result = _scored({}, run)
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


def quality_of(way: str, options: dict[str, Any], run: Path) -> list[Row]:
    """NED of another way to pairs, and what it costs."""
    say(f"discovery: {way}")
    result = _scored(options, run)
    rows = [Row(f"{way}: NED at coverage .{level}", ned_at(result, "all", level / 100), "") for level in (25, 60)]
    rows.append(Row(f"{way}: NED at coverage .15 across speakers", ned_at(result, "across", 0.15), ""))
    return [*rows, Row(f"{way}: CPU of an hour", _cpu(load_partial_run(Folder(str(run)))), "s")]


def _scored(options: dict[str, Any], run: Path) -> dict[str, Any]:
    """Measures of a run with the hour's phones and words."""
    data = ROOT.parent / "shared" / "data" / "mboshi" / "dev"
    alignments = {"phones": str(data / "phones.ctm"), "words": str(data / "align.ctm")}
    corpus = {"documents": str(data / "docs.csv"), "alignments": alignments}
    _run({"run": str(run), "corpus": corpus, "options": options})
    (path,) = (run / "tables" / "measures").glob("*.json")
    result: dict[str, Any] = json.loads(path.read_text())
    return result


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
    return _cpu(chain_run), sum(result.rows for result in chain_run.results("align-pairs", Bucket))


def _cpu(chain_run: ChainRun) -> float:
    """CPU seconds of the chain's own stages."""
    stages = {step.name for step in chain_run.steps} & set(_STAGES)
    tables = [chain_run.receipts(stage) for stage in stages]
    return float(sum(pc.sum(table.column(name)).as_py() for table in tables for name in ("cpu_user", "cpu_system")))


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


def _run(sections: dict[str, Any]) -> None:
    result = api.run(config_from_dict({"chain": "discover", "executor": {"kind": "serial"}, **sections}))
    if result.outcome.failures:
        raise RuntimeError(result.outcome.failures[0].message)


if __name__ == "__main__":
    main(measure, __doc__)
