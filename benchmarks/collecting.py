"""Collecting a word by judging hits, on Mboshi dev: a judge who knows the references judges 20 places of each word.

Plain: the 20 best hits of one search by the first example. Collecting: after each `--every` judgements, what was confirmed
becomes examples, and the word is searched again (what was judged does not come back). Told are true places among the 20, with
95 % intervals over words (bootstrap). Then what the page says of hits: how many that it calls at least 50 % likely before
anybody judges are true, and how many of the others have the letters of the word, but for accents and spaces; how well
"expected beyond those judged" fits: its mean against the true number, and the part of words whose 80 % interval holds it.

That rests on the prior of lines (`swsdist.calibrate.likelihood`). It is told with the one that the package has for such frames,
and with one that is fitted to four fifths of the words and tried on the others; the one of all words is printed.

`--run FOLDER` takes a run or a store that there is, with its settings of the search.
"""

from __future__ import annotations

import argparse
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import Corpus, mboshi, read
from benchmarks.rows import Row, at_least, say, show
from swsdist import api
from swsdist.calibrate.likelihood import WORDS, Likelihood, Prior, prior_of
from swsdist.glossary.words import Place, is_same, overlap
from swsdist.pipeline.chain_run import StepSelection
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.searcher.searcher import Searcher

_JUDGEMENTS, _LISTED = 20, 1000
#: How a judge counts: the middle of a hit is within this of a reference (s).
_TOLERANCE = 0.1

Hit = dict[str, Any]


#: Words of each of so many parts have a prior that is fitted to the others.
_FOLDS = 5


class Scored(NamedTuple):
    """Hits, best first: their scores, and whether each is true."""

    scores: NDArray[np.float64]
    truths: NDArray[np.bool_]


class Word(NamedTuple):
    """What was found of a word.

    Attributes:
        plain: hits of the search by its first example.
        alike: whether each has the letters of the word.
        judged: hits that the judge saw.
        rest: scores of those that the last search left, best first.
        first, found, left: true places among the 20 best of the plain search, among those judged, and beyond.
    """

    plain: Scored
    alike: NDArray[np.bool_]
    judged: Scored
    rest: NDArray[np.float64]
    first: int
    found: int
    left: int


class Judge:
    """Knows where a word is, and what is written elsewhere.

    Args:
        term: the word.
        places: document, start and end of each.
        spoken: start, end and word, of each document.
    """

    def __init__(self, term: str, places: list[tuple[str, float, float]], spoken: Mapping[str, Sequence[Any]]) -> None:
        self._term, self._places, self._spoken = _letters(term), places, spoken
        self.total = len(places)

    def scored(self, hits: Sequence[Hit]) -> Scored:
        """Hits, judged."""
        truths = [self.place(hit) is not None for hit in hits]
        return Scored(np.array([hit["score"] for hit in hits], np.float64), np.array(truths, bool))

    def is_alike(self, hit: Hit) -> bool:
        """Whether a hit is at words with the letters of this one."""
        words = self._spoken.get(hit["doc_id"], ())
        return self._term in "".join(
            _letters(word) for start, end, word in words if min(end, hit["end"]) > max(start, hit["start"])
        )

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


def collected(searcher: Searcher, example: str, judge: Judge, every: int) -> Word:
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
    found = {place for _, place in judged if place is not None}
    return Word(
        plain=judge.scored(plain),
        alike=np.array([judge.is_alike(hit) for hit in plain], bool),
        judged=judge.scored([hit for hit, _ in judged]),
        rest=np.array([hit["score"] for hit in hits if not _overlaps(hit, judged)]),
        first=len({judge.place(hit) for hit in plain[:_JUDGEMENTS]} - {None}),
        found=len(found),
        left=judge.total - len(found),
    )


def fitted(words: Sequence[Word]) -> Prior:
    """The prior of the plain searches' hits."""
    index = np.repeat(np.arange(len(words)), [len(word.plain.scores) for word in words])
    scores, truths = (np.concatenate(column) for column in zip(*(word.plain for word in words), strict=True))
    return Prior.of_words(index, scores, truths)


def _letters(text: str) -> str:
    """Letters without accents and spaces."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text.lower()) if letter.isalpha())


def _overlaps(hit: Hit, judged: Sequence[tuple[Hit, int | None]]) -> bool:
    return any(is_same(overlap(_place(other), _place(hit))) for other, _ in judged)


def _place(hit: Hit) -> Place:
    return Place(hit["doc_id"], hit["channel"], hit["start"], hit["end"])


def measure(corpus: Corpus, run: Path, every: int, examples: str) -> list[Row]:
    """All figures."""
    assert corpus.references is not None
    places, spoken = defaultdict(list), defaultdict(list)
    for row in read(corpus.references):
        places[row["query_id"]].append((row["doc_id"], float(row["start"]), float(row["end"])))
    for line in (corpus.documents.parent / "align.ctm").read_text(encoding="utf-8").splitlines():
        doc_id, _, start, seconds, word = line.split()
        spoken[doc_id].append((float(start), float(start) + float(seconds), word))
    queries = [row for row in read(corpus.queries) if row["example"] == "1" and row["query_id"] in places]
    words = []
    with Searcher(str(run), options={"examples": examples}, trim=False) as searcher:
        own = prior_of({str(track.recipe["name"]) for track in searcher.store.manifest.tracks})
        for k, query in enumerate(queries):
            if k % 20 == 0:
                say(f"collecting: word {k} of {len(queries)}")
            judge = Judge(query["term"], places[query["query_id"]], spoken)
            words.append(collected(searcher, query["path"], judge, every))
    say(f"collecting: the prior of all words is {fitted(words)}")
    parts = [fitted([word for k, word in enumerate(words) if k % _FOLDS != part]) for part in range(_FOLDS)]
    first, found, left = (
        np.array([getattr(word, name) for word in words], float) for name in ("first", "found", "left")
    )
    return [
        Row("words", len(words), ""),
        *_mean("true places, one plain search", first),
        *_mean("true places, collecting", found),
        *_mean("more by collecting", found - first),
        *_mean("true ones beyond those judged", left),
        *_told("", words, [own] * len(words)),
        *_told(", cross-validated", words, [parts[k % _FOLDS] for k in range(len(words))]),
    ]


def _told(name: str, words: Sequence[Word], priors: Sequence[Prior]) -> list[Row]:
    """What the page says with a prior for each word."""
    likely, expected, holds = [], [], []
    for word, prior in zip(words, priors, strict=True):
        likely.append(
            Likelihood.fit(np.empty(0), np.empty(0, bool), prior).likely(word.plain.scores) >= WORDS["likely"]
        )
        summary = Likelihood.fit(*word.judged, prior).summary(word.rest, 50)
        expected.append(summary.expected)
        holds.append(summary.low <= word.left <= summary.high)
    called = np.concatenate(likely)
    right = np.concatenate([word.plain.truths for word in words])[called]
    alike = np.concatenate([word.alike for word in words])[called]
    left = [word.left for word in words]
    return [
        Row(f"likely hits that are true{name}", float(right.mean()), "of them", at_least(0.8)),
        Row(f"likely hits that are true, or have its letters{name}", float((right | alike).mean()), "of them"),
        Row(f"likely hits{name}", len(right) / len(words), "a word"),
        *_mean(f"expected beyond those judged{name}", np.array(expected)),
        Row(f"correlation of both{name}", float(np.corrcoef(expected, left)[0, 1]), ""),
        Row(f"words whose 80 % interval holds{name}", float(np.mean(holds)), "of words", at_least(0.7)),
    ]


def _mean(name: str, values: NDArray[np.float64]) -> list[Row]:
    interval = bootstrap_terms(values[None]).interval(0)
    bounds = [
        Row(f"{name}, {side} 95 %", value, "a word") for side, value in zip(("low", "high"), interval[:2], strict=True)
    ]
    return [Row(name, float(values.mean()), "a word"), *bounds]


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
