"""How well the default system finds: Mboshi dev with `configs/mboshi-dev.yaml`, its words as they are, and variants beside it.

MTWV and ATWV are those of the run's report. The pooled pair AUC asks of every query and document whether the document holds
the query: the score of a pair is that of its best detection, q-normed, with all detections kept; pairs without one rank below
all others, and share their rank. A cell is a frame of what is looked for against a frame of a document. Goals are what a
prototype of the same recipe measured; without the recordings nothing is measured.
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
from swsdist.config import load_config
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.stages.inputs.search_inputs import SearchInputs

_VARIANTS = {
    "default": (),
    "cosine-squared": ("search.distance=cosine-squared",),
    "all examples, best": ("corpus.examples=all",),
    "all examples, mean": ("corpus.examples=all", "search.examples=mean"),
    "all examples, template": ("corpus.examples=all", "search.examples=template"),
    "queries_by collection": ("search.queries_by=collection",),
}
_MTWV, _AUC = 0.107, 0.816


def measure(scratch: Path) -> list[Row]:
    """The default with goals, the variants without."""
    if mboshi() is None:
        where = "Mboshi dev is not beside the checkout"
        return [
            Row(f"MTWV ({where})", None, "", at_least(_MTWV)),
            Row(f"pooled pair AUC ({where})", None, "", at_least(_AUC)),
        ]
    rows = []
    for k, (name, sets) in enumerate(_VARIANTS.items()):
        say(f"quality: {name}")
        places = [f"run={scratch / f'run{k}'}", f"index.store={scratch / 'store'}", "queries.trim=none", *sets]
        result = _run(places)
        every = _run([*places, "reduce.nbest.least=1000000"], StepSelection(until="normalise"))
        measures = result.measures()
        cells = sum(receipt.cost.cells for receipt in result.outcome.chain_run.outcomes["search"].receipts)
        default = not sets
        rows += [
            Row(f"{name}: MTWV", measures["mtwv"], "", at_least(_MTWV) if default else None),
            Row(f"{name}: ATWV, crossfit", measures["atwv"], ""),
            Row(
                f"{name}: pooled pair AUC",
                pooled_pair_auc(every.outcome.chain_run),
                "",
                at_least(_AUC) if default else None,
            ),
            Row(f"{name}: cells", cells / 1e9, "1e9"),
        ]
    return rows


def _run(sets: list[str], choice: StepSelection | None = None) -> api.RunResult:
    result = api.run(load_config(ROOT / "configs" / "mboshi-dev.yaml", sets), selection=choice)
    if result.outcome.failures:
        raise RuntimeError(f"{len(result.outcome.failures)} tasks failed: {result.outcome.failures[0].message}")
    return result


def pooled_pair_auc(chain_run: ChainRun) -> float:
    """AUC over all pairs of a query that was searched and a document of the collection, from normalised detections."""
    state: SearchInputs = chain_run.chain.inputs
    found = pa.concat_tables(chain_run.read("normalised"))
    queries = {name: k for k, name in enumerate(sorted(set(state.corpus.queries["query_id"].to_pylist())))}
    documents = {
        key: k
        for k, key in enumerate(
            zip(
                state.corpus.documents["doc_id"].to_pylist(), state.corpus.documents["channel"].to_pylist(), strict=True
            )
        )
    }
    scores = np.full((len(queries), len(documents)), -np.inf)
    np.maximum.at(scores, _places(found, queries, documents), found["score"].to_numpy())
    target = np.zeros(scores.shape, bool)
    references = state.corpus.references
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
