"""Acoustic word embeddings beside DTW on Mboshi dev: vectors of stretches of speech, as a method that this process registers.

Vectors are means of equal parts of a stretch, of the frames that DTW compares, or what an encoder makes of these means. It
learns from stretches with the same words or phones in the alignments, without those of a query's term; each half of the
documents has the encoder of the other half. It needs the extra `ssl`.

Windows of 13 lengths stand every 40 ms. A query meets those of 0.7 to 1.4 times its length, with the candidates per document
and the calibration of DTW. Search CPU of DTW is that of its stage; of vectors, that of the products and best windows.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.corpora import Corpus, mboshi
from benchmarks.first_pass_systems import spent
from benchmarks.perturbed import ORDER
from benchmarks.rows import Row, say, show
from benchmarks.systems import half_of, report_in, run_of
from benchmarks.word_encoder import encoders, means_of, sums_of
from swsdist.chains.report.publish import from_run
from swsdist.config.search import Search
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES
from swsdist.methods.dtw.method import Dtw
from swsdist.methods.dtw.shard import Documents
from swsdist.methods.method import Result, by_bucket
from swsdist.registry.entries import MethodEntry
from swsdist.registry.registries import METHODS
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.store.reading import Store

_LENGTHS = np.rint(14 * 1.2 ** np.arange(13))
_SHIFT, _SHORTEST, _LONGEST = 4, 0.7, 1.4
_SCALE = 1 << 20

#: CPU seconds of the present run: of `vectors`, and of the `search`.
_SPENT: Counter[str] = Counter()


class Embeddings(Dtw):
    """The method: options are `bins`, and `encoders`, files of the two halves."""

    def __init__(self, settings: Search) -> None:
        super().__init__(settings.model_copy(update={"method_options": {}}))
        self._options = settings.method_options
        self._encoders = [dict(np.load(path)) for path in self._options.get("encoders", ())] or [{}]

    def matters(self) -> Any:
        """The options."""
        return self._options

    def warm(self) -> None:
        """Compile what finds the best windows."""
        _best_windows(np.zeros((1, 1), np.float32), np.zeros(1), np.ones(1), 1)

    def search(self, queries: Any, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        """The best windows of each document, by the cosine of vectors."""
        documents, examples, rows = Documents(store, shards, self._settings), queries(1), []
        frames = np.array([len(example.frames) for example in examples])
        sums = [sums_of(documents, [example.frames]) for example in examples]
        of_queries = [
            np.vstack([self._vectors(each, np.zeros(1), np.array([len(each) - 1]), encoder) for each in sums])
            for encoder in self._encoders
        ]
        for k, blocks in documents.stream():
            place, begin = [documents.table[name][k].as_py() for name in ("doc_id", "channel")], time.process_time()
            half, of_document = half_of(place[0]) % len(self._encoders), sums_of(documents, blocks)
            starts, lengths = _windows(len(of_document) - 1)
            vectors = self._vectors(of_document, starts, lengths, self._encoders[half])
            middle = time.process_time()
            nearest = lengths[np.abs(lengths - frames[:, None]).argmin(axis=1)]
            first = np.searchsorted(lengths, np.minimum(frames * _SHORTEST, nearest))
            last = np.searchsorted(lengths, np.maximum(frames * _LONGEST, nearest), "right")
            groups = []
            for a, b in {*zip(first.tolist(), last.tolist(), strict=True)}:
                members = np.flatnonzero((first == a) & (last == b))
                scores = of_queries[half][members] @ vectors[a:b].T
                best = _best_windows(scores, starts[a:b], lengths[a:b], int(documents.most[k]))
                groups.append((a, members, scores, best))
            _SPENT.update(vectors=middle - begin, search=time.process_time() - middle)
            for a, members, scores, best in groups:
                for n, m in np.argwhere(best >= 0):
                    example, i = examples[members[n]], best[n, m]
                    start, cost = int(starts[a + i]), round((1 - float(scores[n, i])) * _SCALE)
                    query = slot_of(example.query_id), example.query_id, example.example
                    rows.append((*query, *place, start, start + int(lengths[a + i]) - 1, cost, _SCALE))
        return Result(by_bucket([dict(zip(CANDIDATES.names, row, strict=True)) for row in rows], buckets), len(rows))

    def _vectors(
        self, sums: np.ndarray, starts: np.ndarray, lengths: np.ndarray, encoder: dict[str, Any]
    ) -> np.ndarray:
        """float32 (windows, columns) of length 1, in steps of a 127th."""
        means = means_of(sums, starts, lengths, self._options["bins"])
        if encoder:
            means -= encoder["mean"]
            hidden = np.maximum(means @ encoder["weight"].T + encoder["bias"], 0)
            means = means @ encoder["components"] + hidden @ encoder["top"].T
        return np.rint(means / np.linalg.norm(means, axis=1, keepdims=True) * 127) / np.float32(127)


def _windows(frames: int) -> tuple[np.ndarray, np.ndarray]:
    """First frames and lengths, the shortest first; the document if it is shorter than all."""
    fitting = [length for length in _LENGTHS if length <= frames] or [float(frames)]
    starts = [np.arange(0, frames - length + 1, _SHIFT) for length in fitting]
    return np.concatenate(starts), np.repeat(fitting, [len(each) for each in starts])


@numba.njit
def _best_windows(scores, starts, lengths, most):  # type: ignore[no-untyped-def]
    """int64 (queries, most): of windows that share more than half of the shorter the best; -1 where there are no more."""
    best = np.full((len(scores), most), -1)
    left = np.empty(scores.shape[1], np.bool_)
    for j in range(len(scores)):
        left[:] = True
        for k in range(most):
            top = -1
            for i in range(len(left)):
                if left[i] and (top < 0 or scores[j, i] > scores[j, top]):
                    top = i
            if top < 0:
                break
            best[j, k] = top
            for i in range(len(left)):
                end = min(starts[i] + lengths[i], starts[top] + lengths[top])
                if end - max(starts[i], starts[top]) > 0.5 * min(lengths[i], lengths[top]):
                    left[i] = False
    return best


def measure(corpus: Corpus, folder: Path, names: list[str], bins: int) -> list[Row]:
    """Three rows of DTW, and six of each kind of vectors."""
    METHODS.add("word-embeddings", MethodEntry(f"{__name__}:Embeddings", 1))
    rows = []
    for name in names:
        say(f"word embeddings: {name}")
        dtw = run_of(name, "primary", folder, ["executor.kind=serial"])
        rows += _rows(f"{Path(name).name}, DTW", dtw, spent(dtw, "search"))
        kinds = {f"{bins} means": {"bins": bins}}
        if find_spec("torch"):
            kinds["encoder"] = {"bins": bins, "encoders": encoders(dtw, corpus, bins, folder)}
        else:
            rows.append(Row(f"{Path(name).name}, encoder (the extra ssl is not installed)", None, ""))
        for kind, options in kinds.items():
            label = f"{Path(name).name}, {kind}"
            _SPENT.clear()
            sets = [f"index.store={dtw / 'store'}", "executor.kind=serial", "search.method=word-embeddings"]
            run = run_of(name, "primary", folder / kind, [*sets, f"search.method_options={json.dumps(options)}"])
            rows += _rows(label, run, _SPENT["search"])
            values = [from_run("run", str(path)).maximal["twv"].drop_null().to_numpy() for path in (run, dtw)]
            less = bootstrap_terms(np.stack(values)).interval(0, 1)
            rows += [Row(f"{label}: MTWV less DTW's, {k} %", v, "") for k, v in ((2.5, less.low), (97.5, less.high))]
            rows.append(Row(f"{label}: CPU of the documents' vectors", _SPENT["vectors"], "s"))
    return rows


def _rows(label: str, run: Path, cpu: float) -> list[Row]:
    measures = report_in(run)["measures"]
    values = (measures["mtwv"], ""), (measures["further"]["cnxe_min"], ""), (cpu, "s")
    names = ("MTWV", "min Cnxe", "search CPU")
    return [Row(f"{label}: {name}", *value) for name, value in zip(names, values, strict=True)]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to this file")
    parser.add_argument("--systems", nargs="+", choices=ORDER, default=ORDER[:1], metavar="NAME", help="only these")
    parser.add_argument("--bins", type=int, default=16, metavar="N", help="means of a stretch (16)")
    given = parser.parse_args()
    corpus = mboshi()
    rows = [Row("word embeddings (Mboshi dev is not beside the checkout)", None, "")]
    if corpus is not None:
        with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
            rows = measure(corpus, Path(scratch), given.systems, given.bins)
    show(rows, given.json)


if __name__ == "__main__":
    main()
