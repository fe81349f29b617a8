"""How systems carry over: Mboshi dev through other channels, by other voices, and without what is known of speakers.

Queries are files of their own and stay as they are, the first example of each; the documents are changed, at the same times:

- voice+15, voice-15: pitch and formants 15 % higher or lower, at the same tempo; the band stays as wide.
- 8khz: down to 8 kHz and up again; mu-law: the 8 bits of G.711, at 16 kHz.
- reverb: a room with 0.5 s until sound falls by 60 dB, its tail as strong as the direct sound.
- noise-10db: white noise, another for each recording, 10 dB below the mean power.
- no-speakers: the sound as it is, without the column speaker.
- speakers-out: queries of each speaker in the documents of the others only, also for what is fitted to the documents; MTWV
  at one threshold for all. References by the query's speaker are gone too, so it is no figure to hold against clean.
- ten-minutes: three parts of ten minutes, each with models of its own; MTWV at one threshold for all. Fewer documents have
  fewer false alarms, so this too is only to be held against other systems.

Of a folder, finished runs and changed recordings are taken as they are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks import perturbations
from benchmarks.corpora import Corpus, mboshi, read, write
from benchmarks.perturbations import Change, changed
from benchmarks.rows import Row, at_least, say, show
from benchmarks.systems import SYSTEMS, report_in, row, run_of
from swsdist.chains.report.publish import from_run
from swsdist.score.measures.curve import Counts, Curve
from swsdist.score.measures.twv import twv_curve

CHANGES: dict[str, Change] = {
    "voice+15": lambda sound, rate, _: perturbations.warped(sound, rate, 1.15),
    "voice-15": lambda sound, rate, _: perturbations.warped(sound, rate, 0.85),
    "8khz": lambda sound, rate, _: perturbations.narrow(sound, rate, 8000),
    "mu-law": lambda sound, rate, _: perturbations.mu_law(sound, rate),
    "reverb": lambda sound, rate, _: perturbations.reverberant(sound, rate, 0.5),
    "noise-10db": lambda sound, _, random: perturbations.noisy(sound, 10, random),
}
#: Those with several runs.
SEVERAL = ("speakers-out", "ten-minutes")
CONDITIONS = ("clean", *CHANGES, "no-speakers", *SEVERAL)
#: Each is to be no worse than the one before it.
ORDER = ("mboshi-dev", "systems/best-untrained", "systems/best-single", "systems/best-encoder")
#: The least share of its clean MTWV that a system keeps, by condition.
SHARES: dict[str, dict[str, float]] = {
    **{name: {"8khz": 0.8} for name in ORDER[:3]},
    "systems/best-encoder": {
        "8khz": 0.85,
        "mu-law": 0.85,
        "reverb": 0.8,
        "noise-10db": 0.6,
        "voice+15": 0.6,
        "voice-15": 0.6,
        "no-speakers": 0.95,
        "speakers-out": 0.7,
    },
}
_MEASURES = ("MTWV", "min Cnxe")

#: Of a table.
Rows = list[dict[str, Any]]


def documents(corpus: Corpus, condition: str, folder: Path) -> list[str]:
    """What sets the documents of a condition, which are made if they are not in the folder."""
    if condition == "clean":
        return []
    path = folder / "documents.csv"
    if not path.is_file():
        rows = corpus.rows()
        if condition in CHANGES:
            write(path, list(changed(rows, folder / "audio", CHANGES[condition])))
        else:
            write(path, [{key: value for key, value in one.items() if key != "speaker"} for one in rows])
    return [f"corpus.documents={path.resolve()}"]


def parts(corpus: Corpus, condition: str) -> dict[str, tuple[Rows, Rows]]:
    """Queries and documents of each run of a condition with several, by a name."""
    documents = corpus.rows()
    queries = [query for query in read(corpus.queries) if query["example"] == "1"]
    if condition == "ten-minutes":
        sixth = {row["doc_id"]: crc32(row["doc_id"].encode()) % 6 for row in documents}
        return {str(k): (queries, [row for row in documents if sixth[row["doc_id"]] == k]) for k in range(3)}
    return {
        speaker: (
            [query for query in queries if query["speaker"] == speaker],
            [row for row in documents if row["speaker"] != speaker],
        )
        for speaker in sorted({query["speaker"] for query in queries})
    }


def tables_of(corpus: Corpus, queries: Rows, documents: Rows, folder: Path) -> list[str]:
    """What sets some queries and documents of a corpus, and their references."""
    assert corpus.references is not None
    ids = {query["query_id"] for query in queries}, {document["doc_id"] for document in documents}
    kept = [one for one in read(corpus.references) if one["query_id"] in ids[0] and one["doc_id"] in ids[1]]
    tables = {"documents": documents, "queries": queries, "references": kept}
    paths = {name: write(folder / f"{name}.csv", rows) for name, rows in tables.items()}
    return [f"corpus.{name}={path.resolve()}" for name, path in paths.items()]


def curve_of(run: Path) -> tuple[Curve, int]:
    """TWV of a run by threshold, and the number of queries that it is a mean of."""
    one = from_run("one", str(run))
    assert one.trials is not None
    assert one.beta is not None
    counts = sum((Counts.of(part) for part in one.aligned("MTWV")), Counts.zero())
    return twv_curve(counts, trials=one.trials, beta=one.beta), int(counts.terms.sum())


def pooled(curves: Sequence[tuple[Curve, int]]) -> float:
    """MTWV at one threshold of runs with different queries and seconds, over all queries with references."""
    thresholds = np.append(np.unique(np.concatenate([curve.threshold for curve, _ in curves])), np.inf)
    values = [curve.twv[np.searchsorted(curve.threshold[:-1], thresholds)] for curve, _ in curves]
    return float(np.average(values, axis=0, weights=[queries for _, queries in curves]).max())


def figures(name: str, condition: str, corpus: Corpus, folder: Path, sets: list[str]) -> dict[str, float]:
    """MTWV, and min Cnxe but for several runs."""
    run = partial(run_of, name, "primary")
    if condition in SEVERAL:
        runs = [
            run(folder / part, [*sets, *tables_of(corpus, *tables, folder / part)])
            for part, tables in parts(corpus, condition).items()
        ]
        return {"MTWV": pooled([curve_of(path) for path in runs])}
    measures = report_in(run(folder, [*sets, *documents(corpus, condition, folder)]))["measures"]
    return {"MTWV": measures["mtwv"], "min Cnxe": measures["further"]["cnxe_min"]}


def measure(
    corpus: Corpus, folder: Path, names: list[str], conditions: list[str], sets: list[str]
) -> tuple[list[Row], str]:
    """Rows with goals, and the tables as Markdown."""
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
    for condition in conditions:
        for name in names:
            say(f"perturbed: {condition}, {name}")
            found[name][condition] = figures(name, condition, corpus, folder / condition, sets)
    lines = []
    for label in _MEASURES:
        lines += [f"{label}:", "", row("system", *conditions), "|---" * (len(conditions) + 1) + "|"]
        for name, by in found.items():
            cells = (f"{by[condition][label]:.3f}" if label in by[condition] else "" for condition in conditions)
            lines.append(row(Path(name).name, *cells))
        lines.append("")
    rows = [
        Row(f"{Path(name).name}, {condition}: {label}", value, "")
        for name, by in found.items()
        for condition, values in by.items()
        for label, value in values.items()
    ]
    return rows + targets({name: {key: by[key]["MTWV"] for key in by} for name, by in found.items()}), "\n".join(lines)


def targets(mtwv: dict[str, dict[str, float]]) -> list[Row]:
    """Of MTWV by system and condition: the order of systems in each, and what a condition costs."""
    systems = [name for name in ORDER if name in mtwv]
    rows = [
        Row(
            f"{condition}: MTWV of {Path(better).name} less {Path(worse).name}",
            value - mtwv[worse][condition],
            "",
            at_least(0),
        )
        for worse, better in pairwise(systems)
        for condition, value in mtwv[better].items()
    ]
    for name, by in mtwv.items():
        rows += [
            Row(f"{Path(name).name}, {condition}: MTWV / clean", by[condition] / by["clean"], "", at_least(least))
            for condition, least in SHARES.get(name, {}).items()
            if {"clean", condition} <= set(by)
        ]
    return rows


def main() -> None:
    """Print the tables, and the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="of the runs; by default one that is thrown away")
    parser.add_argument(
        "--systems", nargs="+", choices=SYSTEMS, default=list(ORDER), metavar="NAME", help="by default the best"
    )
    parser.add_argument(
        "--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS), metavar="NAME", help="only these"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="sets", metavar="KEY=VALUE", help="as of swsdist run"
    )
    given = parser.parse_args()
    corpus = mboshi()
    if corpus is None:
        rows = [Row("perturbed (Mboshi dev is not beside the checkout)", None, "")]
    else:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            rows, text = measure(corpus, given.runs or Path(scratch), given.systems, given.conditions, given.sets)
        print(text)
    show(rows, given.json)


if __name__ == "__main__":
    main()
