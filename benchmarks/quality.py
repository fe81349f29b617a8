"""How well the default system finds: Mboshi dev with `configs/mboshi-dev.yaml`, and variants of it beside.

MTWV and ATWV are those of the run's report. The utterance AUC asks of every query and document whether the document holds
the query: the score of a pair is that of its best candidate, q-normed; pairs without a candidate rank below all others, and
share their rank. Goals are what a prototype of the same recipe measured; without the recordings nothing is measured.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_least, main, say
from swsdist import api
from swsdist.calibrate.qnorm import moments
from swsdist.config import load_config
from swsdist.run.stages.reduce import statistics_name
from swsdist.run.stages.search import candidates_name
from swsdist.run.state import State
from swsdist.store import parquet

_VARIANTS = {
    "default": (),
    "cosine-squared": ("search.distance=cosine-squared",),
    "all examples, the best counts": ("corpus.examples=all",),
    "queries_by collection": ("search.queries_by=collection",),
}
_MTWV, _AUC = 0.107, 0.816


def measure(scratch: Path) -> list[Row]:
    """The default with goals, the variants without."""
    if mboshi() is None:
        where = "Mboshi dev is not beside the checkout"
        return [
            Row(f"MTWV ({where})", None, "", at_least(_MTWV)),
            Row(f"utterance AUC ({where})", None, "", at_least(_AUC)),
        ]
    rows = []
    for k, (name, sets) in enumerate(_VARIANTS.items()):
        say(f"quality: {name}")
        places = (f"run={scratch / f'run{k}'}", f"index.store={scratch / 'store'}")
        config = load_config(ROOT / "configs" / "mboshi-dev.yaml", [*places, *sets])
        result = api.run(config)
        if result.outcome.failures:
            raise RuntimeError(f"{len(result.outcome.failures)} tasks failed: {result.outcome.failures[0].message}")
        measures = result.measures()
        default = not sets
        rows += [
            Row(f"{name}: MTWV", measures["mtwv"], "", at_least(_MTWV) if default else None),
            Row(f"{name}: ATWV, crossfit", measures["atwv"], ""),
            Row(f"{name}: utterance AUC", utterance_auc(result.outcome.state), "", at_least(_AUC) if default else None),
        ]
    return rows


def utterance_auc(state: State) -> float:
    """AUC over all pairs of a query that was searched and a document of the collection."""
    found = pa.concat_tables(
        parquet.read(state.run, candidates_name(r.fingerprint)) for r in state.ended["search"].receipts
    )
    sums = pa.concat_tables(
        parquet.read(state.run, statistics_name(r.fingerprint)) for r in state.ended["reduce"].receipts
    )
    normalising = moments(sums, state.unit)
    queries = {name: k for k, name in enumerate(sorted(set(state.queries["query_id"].to_pylist())))}
    documents = {
        key: k
        for k, key in enumerate(
            zip(state.documents["doc_id"].to_pylist(), state.documents["channel"].to_pylist(), strict=True)
        )
    }
    scores = np.full((len(queries), len(documents)), -np.inf)
    row, column = _places(found, queries, documents)
    mean, deviation = np.array([normalising.get(name, (0.0, 1.0)) for name in queries]).T
    raw = -found["cost"].to_numpy() / (found["query_frames"].to_numpy() * state.unit)
    np.maximum.at(scores, (row, column), (raw - mean[row]) / deviation[row])
    target = np.zeros(scores.shape, bool)
    references = state.references
    if references is None:
        raise RuntimeError("the config names no references")
    target[_places(references, queries, documents)] = True
    return auc(scores.ravel(), target.ravel())


def _places(
    table: pa.Table, queries: dict[str, int], documents: dict[tuple[str, int], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    keys = zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)
    row = np.array([queries[name] for name in table["query_id"].to_pylist()], np.int64)
    return row, np.array([documents[key] for key in keys], np.int64)


def auc(scores: NDArray[np.float64], target: NDArray[np.bool_]) -> float:
    """Part of all (target, non-target) pairs that are in the right order; equal scores count half (Mann and Whitney)."""
    ranks = rankdata(scores)
    targets = int(target.sum())
    others = len(target) - targets
    return float((ranks[target].sum() - targets * (targets + 1) / 2) / (targets * others))


if __name__ == "__main__":
    main(measure, __doc__)
