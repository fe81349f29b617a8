"""Collecting a word by judging hits, on Mboshi dev: a judge who knows the references judges 20 places of each word.

Plain: the 20 best hits of one search by the first example. Collecting: after each `--every` judgements, what was confirmed
becomes examples, and the word is searched again (what was judged does not come back). Told are true places among the 20, with
95 % intervals over words (bootstrap); and how well the page's "expected beyond those judged" fits: its mean against the true
number, and the part of words whose 80 % interval holds it.

`--run FOLDER` takes a run that there is, with its settings of the search.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.corpora import Corpus, mboshi, read
from benchmarks.rows import Row, at_least, say, show
from swsdist import api
from swsdist.glossary.likelihood import Likelihood
from swsdist.glossary.words import Place, is_same, overlap
from swsdist.pipeline.chain_run import StepSelection
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.searcher.searcher import Searcher

_JUDGEMENTS, _LISTED = 20, 1000
#: How a judge counts: the middle of a hit is within this of a reference (s).
_TOLERANCE = 0.1

Hit = dict[str, Any]


class Result(NamedTuple):
    """Of one word: true places found, expected and true number beyond, and whether the interval holds it."""

    plain: int
    collected: int
    expected: float
    left: int
    holds: bool


class Judge:
    """Knows where a word is."""

    def __init__(self, places: list[tuple[str, float, float]]) -> None:
        self._places = places

    def place(self, hit: Hit) -> int | None:
        """The reference that a hit is of."""
        middle = (hit["start"] + hit["end"]) / 2
        for k, (doc_id, start, end) in enumerate(self._places):
            if doc_id == hit["doc_id"] and start - _TOLERANCE <= middle <= end + _TOLERANCE:
                return k
        return None


def asked(searcher: Searcher, examples: list[Any]) -> list[Hit]:
    """Hits by several examples of one word, best first."""
    rows = searcher.query_rows(examples)
    word = [{**row, "query_id": "word", "example": k} for k, row in enumerate(rows, 1)]
    *_, hits = searcher.stream(word, _LISTED)
    found: list[Hit] = hits.table().to_pylist()
    return found


def collected(searcher: Searcher, example: str, judge: Judge, total: int, every: int) -> Result:
    """One word."""
    plain = asked(searcher, [example])
    judged: list[tuple[Hit, int | None]] = []
    hits, examples = plain, [example]
    while len(judged) < _JUDGEMENTS:
        fresh = [hit for hit in hits if not _overlaps(hit, judged)]
        if not fresh:
            break
        step = [(hit, judge.place(hit)) for hit in fresh[: min(every, _JUDGEMENTS - len(judged))]]
        judged += step
        new = [f"{hit['doc_id']}:{hit['start']}-{hit['end']}" for hit, place in step if place is not None]
        if new and len(judged) < _JUDGEMENTS:
            examples = [*examples, *new]
            hits = asked(searcher, examples)
    fitted = Likelihood.fit(
        np.array([hit["score"] for hit, _ in judged]), np.array([place is not None for _, place in judged])
    )
    summary = fitted.summary(np.array([hit["score"] for hit in hits if not _overlaps(hit, judged)]), 50)
    found = {place for _, place in judged if place is not None}
    left = total - len(found)
    first = {judge.place(hit) for hit in plain[:_JUDGEMENTS]} - {None}
    return Result(len(first), len(found), summary.expected, left, summary.low <= left <= summary.high)


def _overlaps(hit: Hit, judged: Sequence[tuple[Hit, int | None]]) -> bool:
    return any(is_same(overlap(_place(other), _place(hit))) for other, _ in judged)


def _place(hit: Hit) -> Place:
    return Place(hit["doc_id"], hit["channel"], hit["start"], hit["end"])


def measure(corpus: Corpus, run: Path, every: int, examples: str) -> list[Row]:
    """All figures."""
    assert corpus.references is not None
    places = defaultdict(list)
    for row in read(corpus.references):
        places[row["query_id"]].append((row["doc_id"], float(row["start"]), float(row["end"])))
    queries = [row for row in read(corpus.queries) if row["example"] == "1" and row["query_id"] in places]
    results = []
    with Searcher(str(run), options={"examples": examples}, trim=False) as searcher:
        for k, query in enumerate(queries):
            if k % 20 == 0:
                say(f"collecting: word {k} of {len(queries)}")
            of_word = places[query["query_id"]]
            results.append(collected(searcher, query["path"], Judge(of_word), len(of_word), every))
    plain, found, expected, left, holds = (np.array(values, float) for values in zip(*results, strict=True))

    def mean(name: str, values: Any, goal: Any = None) -> list[Row]:
        interval = bootstrap_terms(values[None]).interval(0)
        bounds = [
            Row(f"{name}, {side} 95 %", value, "a word")
            for side, value in zip(("low", "high"), interval[:2], strict=True)
        ]
        return [Row(name, float(values.mean()), "a word", goal), *bounds]

    return [
        Row("words", len(results), ""),
        *mean("true places, one plain search", plain),
        *mean("true places, collecting", found),
        *mean("more by collecting", found - plain),
        *mean("true ones beyond those judged", left),
        *mean("expected beyond those judged", expected),
        Row("correlation of both", float(np.corrcoef(expected, left)[0, 1]), ""),
        Row("words whose 80 % interval holds", float(holds.mean()), "of words", at_least(0.7)),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="a run on Mboshi dev; by default MFCC")
    parser.add_argument("--every", type=int, default=5, metavar="N", help="search again after so many judgements (5)")
    parser.add_argument("--examples", default="mean", help="search.examples (mean)")
    given = parser.parse_args(arguments)
    corpus = mboshi()
    if corpus is None:
        rows = [Row("collecting (Mboshi dev is not beside the checkout)", None, "")]
    else:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            run = given.run
            if run is None:
                run = Path(scratch) / "run"
                api.run(corpus.config(run, executor={"kind": "serial"}), selection=StepSelection(until="index"))
            rows = measure(corpus, run, given.every, given.examples)
    show(rows, given.json)


if __name__ == "__main__":
    main()
