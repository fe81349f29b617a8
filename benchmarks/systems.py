"""What each system of `configs/systems` gives on Mboshi dev, with the first and with all examples of each query: a table.

A row a system: what it is, whether it knows a language, MTWV and ATWV with their 95 % intervals (as of `swsdist compare`),
misses and false alarms at ATWV, pair AUC (`pair_auc`), Cnxe and its least over time trials, and costs. Runs that are in the
folder are taken as they are, so the table is made again in no time.

With --halves the systems of Tejedor and others (2016) at their operating point, `nist-std06` (beta 999.9), on two halves of the
documents: what decides on the test half was fitted on the development half. Beside them, what the paper measured elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.corpora import ROOT, Corpus, mboshi, read, write
from benchmarks.rows import Row, at_least, at_most, say, show
from swsdist import api
from swsdist.chains.report.publish import from_run
from swsdist.config import load_config
from swsdist.score.compare.bootstrap import Interval, bootstrap_terms

#: Config: what it is, and what it knows of a language.
SYSTEMS = {
    "mboshi-dev": ("MFCC, DTW", "none"),
    "systems/mfcc-fingerprint": ("binary MFCC, windows", "none"),
    "systems/dtw-zero": ("Gaussian posteriors, DTW", "none"),
    "systems/phoneme-posteriorgram": ("phone posteriors, windows", "English"),
    "systems/phoneme-posteriorgram-plp": ("phone posteriors of PLP, windows", "its own (oracle labels)"),
    "systems/dtw-spanish": ("phone posteriors, segmental DTW", "its own (oracle labels)"),
    "systems/phnrec-posteriors": ("phone posteriors, DTW", "Czech, Hungarian, Russian"),
    "systems/phnrec-tracks": ("phone-state logits, MFCC, DTW", "Czech, Hungarian, Russian"),
    "systems/best-untrained": ("MFCC, Gaussian posteriors, projection, DTW", "none"),
    "systems/best-single": (
        "phone-state logits, MFCC, Gaussian posteriors, projection, DTW",
        "Czech, Hungarian, Russian",
    ),
    "systems/best-encoder": ("a layer of Whisper base, DTW", "99 languages"),
    "systems/fusion": ("fusion of three", "Czech, Hungarian, Russian"),
    "systems/fusion-paper": ("fusion of two", "English"),
    "systems/gtts-sws2013": ("phone posteriors, DTW; fusion of three", "Czech, Hungarian, Russian"),
}

#: Which examples: what is set of the corpus, and of a system that does not say how it takes several.
EXAMPLES = {
    "primary": ("corpus.examples=primary", "search.examples=best"),
    "all": ("corpus.examples=all", "search.examples=mean"),
}

#: Goals by system and examples: MTWV, pair AUC, least Cnxe.
GOALS = {
    ("systems/best-untrained", "primary"): (0.20, None, None),
    ("systems/best-untrained", "all"): (0.28, None, None),
    ("systems/best-single", "primary"): (0.27, 0.89, 0.53),
    ("systems/best-single", "all"): (0.36, 0.915, 0.45),
    ("systems/best-encoder", "primary"): (0.58, None, 0.27),
    ("systems/best-encoder", "all"): (0.65, None, 0.20),
}

#: MTWV and ATWV in the paper's tables 12 and 13 (data of 2012); the fusion there has words that Kaldi (SGMM) recognised, too.
PAPER = {
    "systems/mfcc-fingerprint": {},
    "systems/phoneme-posteriorgram": {},
    "systems/dtw-zero": {"development": (0.0455, 0.0455), "test": (0.0436, 0.0122)},
    "systems/dtw-spanish": {"development": (0.0612, 0.0612), "test": (0.0238, 0.0217)},
    "systems/fusion-paper": {"development": (0.2850, 0.2850), "test": (0.2691, 0.2691)},
}

_CORPUS = ROOT / "configs" / "corpora" / "mboshi-dev.yaml"
_FIGURES = ("MTWV", "ATWV", "p(Miss)", "p(FA)", "pair AUC", "Cnxe", "min Cnxe", "ISF", "SSF", "PMU (GB)")
_HALVES = "| system | what it is | half | MTWV | ATWV | p(Miss) | p(FA) | the paper's MTWV | ATWV |"


def run_of(name: str, examples: str, folder: Path, sets: list[str], half: str = "") -> Path:
    """The folder of a system's run, which is done if it is not there; of half of the documents, which `sets` names."""
    run = str(folder / f"{Path(name).name}-{half or examples}")
    path, of_corpus, how = ROOT / "configs" / f"{name}.yaml", *EXAMPLES[examples]
    asked = [of_corpus, *sets]
    config = load_config(path, asked, corpus=str(_CORPUS), run=run)
    if config.search.examples == "template":
        how = "search.examples=template"
    if config.chain == "fuse":  # the examples' way is that of its systems
        parts: Any = config.options["systems"]
        # Two lists of 1000 have more detections than half an hour has trials.
        each = [how, *(["reduce.nbest.least=500"] if half else [])]
        config = load_config(
            path,
            [*asked, f"options.systems={json.dumps([{**one, 'set': each} for one in parts])}"],
            corpus=str(_CORPUS),
            run=run,
        )
    else:
        config = load_config(path, [*asked, how], corpus=str(_CORPUS), run=run)
    result = api.run(config)
    if result.outcome.failures:
        raise RuntimeError(f"{name}: {result.outcome.failures[0].message}")
    return Path(run)


def report_in(run: Path) -> dict[str, Any]:
    """What a run says of itself."""
    found: dict[str, Any] = json.loads((run / "report.json").read_text(encoding="utf-8"))
    return found


def over_queries(run: Path) -> dict[str, Interval]:
    """Of MTWV and ATWV, over queries with references."""
    one = from_run("one", str(run))
    tables = {"MTWV": one.maximal, "ATWV": one.decided}
    values = {name: table["twv"].drop_null().to_numpy() for name, table in tables.items() if table is not None}
    return {name: bootstrap_terms(each[None]).interval(0) for name, each in values.items()}


def figures(run: Path) -> dict[str, str]:
    """A run's measures and costs, formatted, by the heads of the table."""
    report = report_in(run)
    measures = report["measures"]
    further, interval = measures["further"], over_queries(run)
    return {
        "MTWV": _with(measures["mtwv"], interval["MTWV"]),
        "ATWV": _with(measures["atwv"], interval["ATWV"]),
        "p(Miss)": f"{measures['atwv_pmiss']:.3f}",
        "p(FA)": f"{measures['atwv_pfa']:.5f}",
        "pair AUC": f"{further['pair_auc']:.3f}",
        "Cnxe": f"{further['cnxe']:.3f}",
        "min Cnxe": f"{further['cnxe_min']:.3f}",
        "ISF": f"{report['isf']:.4f}",
        "SSF": "" if report["ssf"] is None else f"{report['ssf']:.2e}",  # written queries last no time
        "PMU (GB)": f"{max(report['pmu_index_gb'] or 0.0, report['pmu_search_gb'] or 0.0):.2f}",
    }


def row(*cells: str) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def _with(value: float, interval: Interval) -> str:
    return f"{value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def measure(folder: Path, names: list[str], which: list[str], sets: list[str]) -> tuple[list[Row], str]:
    """Rows with goals, and the tables as Markdown."""
    rows: list[Row] = []
    lines: list[str] = []
    for examples in which:
        lines += [
            f"{'The first example' if examples == 'primary' else 'All examples'} of each query:",
            "",
            row("system", "what it is", "language", *_FIGURES),
        ]
        lines.append("|---" * 13 + "|")
        for name in names:
            say(f"systems: {name}, {examples}")
            run = run_of(name, examples, folder, sets)
            lines.append(row(Path(name).name, *SYSTEMS[name], *figures(run).values()))
            measures = report_in(run)["measures"]
            goals = GOALS.get((name, examples), (None, None, None))
            for label, value, goal, make in (
                ("MTWV", measures["mtwv"], goals[0], at_least),
                ("pair AUC", measures["further"]["pair_auc"], goals[1], at_least),
                ("min Cnxe", measures["further"]["cnxe_min"], goals[2], at_most),
            ):
                told = f"{Path(name).name}, {examples}: {label}"
                rows.append(Row(told, value, "", make(goal)) if goal is not None else Row(told, value, ""))
        lines.append("")
    return rows, "\n".join(lines)


def halves(corpus: Corpus, folder: Path) -> dict[str, list[str]]:
    """What sets the documents and references of each half, by a hash of the documents' names."""
    assert corpus.references is not None
    tables = {"documents": corpus.rows(), "references": read(corpus.references)}
    found = {}
    for which, half in enumerate(("development", "test")):
        paths = {
            name: write(folder / f"{half}-{name}.csv", [row for row in rows if half_of(row["doc_id"]) == which])
            for name, rows in tables.items()
        }
        found[half] = [f"corpus.{name}={path.resolve()}" for name, path in paths.items()]
    return found


def half_of(doc_id: str) -> int:
    """Which half a document is in, 0 or 1."""
    return hashlib.blake2b(doc_id.encode(), digest_size=1).digest()[0] % 2


def measure_halves(corpus: Corpus, folder: Path, sets: list[str]) -> str:
    """The table of both halves as Markdown; the test half is decided by what was fitted on the other."""
    lines = [_HALVES, "|---" * 9 + "|"]
    given = halves(corpus, folder)
    for name, paper in PAPER.items():
        fitted: list[str] = []
        for half, tables in given.items():
            say(f"systems: {name}, {half}")
            point = ["score.protocol=nist-std06", *tables, *fitted]
            run = run_of(name, "primary", folder, [*sets, *point], half)
            theirs = [f"{value:.4f}" for value in paper.get(half, ())] or ["", ""]
            found = figures(run)
            ours = (found[head] for head in ("MTWV", "ATWV", "p(Miss)", "p(FA)"))
            lines.append(row(Path(name).name, SYSTEMS[name][0], half, *ours, *theirs))
            fitted = [f"calibrate.fit={run.resolve()}"]
    return "\n".join(lines)


def main() -> None:
    """Print the tables, and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--runs", type=Path, help="folder of the runs; by default one that is thrown away")
    parser.add_argument(
        "--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="NAME", help="only these"
    )
    parser.add_argument(
        "--examples", nargs="+", choices=EXAMPLES, default=list(EXAMPLES), metavar="WHICH", help="only these"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="as of swsdist run"
    )
    parser.add_argument(
        "--halves",
        action="store_true",
        help="in place of these the systems of the paper, development and test, beta 999.9",
    )
    given = parser.parse_args()
    corpus = mboshi()
    if corpus is not None and given.halves:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            print(measure_halves(corpus, given.runs or Path(scratch), given.sets))
        return
    if corpus is None:
        rows = [Row("systems (Mboshi dev is not beside the checkout)", None, "")]
    else:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            rows, text = measure(given.runs or Path(scratch), given.systems, given.examples, given.sets)
        print(text)
    show(rows, given.json)


if __name__ == "__main__":
    main()
