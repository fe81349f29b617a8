"""What fixed point does to the result: the same search in float64, on Mboshi dev, scored by sws2013.

Beside the engine stands a plain search in float64: cosines by float64 products of frames that were never rounded, costs summed
in float64, and rounded once, to 2^-22 of a distance, when a candidate is written down. Candidates, reduction, q-norm and
scoring are the same for both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.corpora import Corpus, mboshi
from benchmarks.rows import Row, at_most, main, say
from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.calibrate.statistics import from_table
from swsdist.config.model import Config, Reduce
from swsdist.config.search import Search
from swsdist.evaluation import make_system, make_task
from swsdist.evaluation.evaluate import evaluate
from swsdist.features.statistics import Statistics
from swsdist.methods.dtw.search import Matches
from swsdist.methods.dtw.shard import candidate_tables, distance_of, offset_and_scale, search_shard
from swsdist.methods.query.example import Example
from swsdist.methods.query.extraction import prepared
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.reduce.examples import Bucket
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.queries import examples_in

#: What stands for a distance of 1 where the float64 costs are written down.
_FINE = 1 << 22

Frames = NDArray[np.float64]


def measure(scratch: Path) -> list[Row]:
    """Both distances that a cosine gives."""
    corpus = mboshi()
    if corpus is None:
        return [Row("MTWV, float64 less fixed point (Mboshi dev is not beside the checkout)", None, "", at_most(0.002))]
    rows = []
    for name in ("cosine", "cosine-squared"):
        rows += _compared(corpus, scratch, name)
    return rows


def _compared(corpus: Corpus, scratch: Path, name: str) -> list[Row]:
    say(f"fixed_point: {name}")
    config = corpus.config(
        scratch / f"run-{name}",
        search={"distance": name},
        index={"store": str(scratch / "store")},
        executor={"kind": "serial"},
    )
    chain_run = run_stages(config, StepSelection(until="queries"), Progress()).chain_run
    state: SearchInputs = chain_run.chain.inputs
    examples = examples_in(chain_run)
    fixed = _fixed(state, config.search, examples)
    exact = _exact(state, config.search, examples, name == "cosine-squared")
    both = fixed.join(exact, ["query_id", "doc_id", "channel", "last"], right_suffix="_exact", join_type="inner")
    unit = distance_of(config.search, 39).unit
    length = both["scale"].to_numpy() // unit
    difference = np.abs(both["cost"].to_numpy() / unit - both["cost_exact"].to_numpy() / _FINE) / length
    mtwv = {kind: _mtwv(state, config, table) for kind, table in (("fixed", fixed), ("float64", exact))}
    return [
        Row(f"{name}: MTWV in fixed point", mtwv["fixed"], ""),
        Row(f"{name}: MTWV in float64", mtwv["float64"], ""),
        Row(f"{name}: difference of MTWV", abs(mtwv["fixed"] - mtwv["float64"]), "", at_most(0.002)),
        Row(f"{name}: candidates of float64 that fixed point has too", both.num_rows / exact.num_rows, "ratio"),
        Row(f"{name}: mean difference of their costs, a frame", float(difference.mean()), ""),
        Row(f"{name}: largest", float(difference.max()), ""),
    ]


def _fixed(state: SearchInputs, search: Search, examples: pa.Table) -> pa.Table:
    """Candidates as the run's stage finds them."""
    store = state.store.open()
    made = prepared(examples, store.statistics(), search, store.manifest.tracks[0].dimension)
    unit = distance_of(search, store.manifest.tracks[0].dimension).unit
    tables = []
    for shard in store.manifest.shards:
        documents, found, _ = search_shard(store, shard.name, made, search)
        tables += [table for _, table in candidate_tables(documents, made, found, unit, 1)]
    return pa.concat_tables(tables)


def _exact(state: SearchInputs, search: Search, examples: pa.Table, squared: bool) -> pa.Table:
    """The same in float64."""
    store = state.store.open()
    frozen = store.statistics()
    collection = frozen["collection", ""]
    queries = []
    for row in examples.to_pylist():
        offset, scale = offset_and_scale(search, frozen.get(("speaker", row["speaker"] or ""), collection))
        features = np.frombuffer(row["features"], "<f4").reshape(-1, store.manifest.tracks[0].dimension)
        queries.append(_unit_norm((features - offset) / scale))
    names = [
        Example(row["query_id"], row["example"], np.empty((len(q), 1), np.float32))
        for row, q in zip(examples.to_pylist(), queries, strict=True)
    ]
    tables = []
    for shard in store.manifest.shards:
        documents = store.documents(shard.name)
        rows = documents.to_pylist()
        number = {(row["doc_id"], row["channel"]): k for k, row in enumerate(rows)}
        features: dict[int, list[Frames]] = {}
        for block in store.blocks(shard.name):
            k = number[block.doc_id, block.channel]
            own = Statistics.from_variance(rows[k]["frames"], rows[k]["mean"], rows[k]["variance"])
            offset, scale = offset_and_scale(search, own)
            features.setdefault(k, []).append((block.features - offset) / scale)
        found: list[tuple[int, int, int, int, int]] = []
        for k, blocks in features.items():
            frames = _unit_norm(np.concatenate(blocks))
            most = search.candidates.count(len(frames) * store.manifest.shift)
            for q, query in enumerate(queries):
                distances = 1.0 - query @ frames.T
                cost, length = _curve(distances * distances if squared else distances)
                ends = _minima(cost, search.candidate_window)
                best = sorted(ends[np.lexsort((ends, cost[ends]))][:most].tolist())
                found += [(q, k, end, int(length[end]), round(cost[end] * _FINE)) for end in best]
        columns = np.array(sorted(found), np.int64).reshape(-1, 5).T
        made = Matches(
            columns[0].astype(np.int32),
            columns[1].astype(np.int32),
            columns[2],
            columns[3].astype(np.int32),
            columns[4],
            1.0,
        )
        tables += [table for _, table in candidate_tables(documents, names, made, _FINE, 1)]
    return pa.concat_tables(tables)


def _unit_norm(frames: Frames) -> Frames:
    norm = np.sqrt((frames * frames).sum(axis=1, keepdims=True))
    return frames / np.where(norm > 0, norm, 1.0)


@numba.njit
def _curve(distances: Any) -> Any:
    """Costs and document frames of the best paths in float64, by the recurrence of `kernels.recurrences.bounded_slope`."""
    n, frames = distances.shape
    cost = np.full((n + 2, frames), np.inf)
    length = np.zeros((n + 2, frames), np.int64)
    cost[1] = 0.0
    for i in range(n):
        for t in range(frames):
            best, steps = np.inf, 0
            diagonal = cost[i + 1, t - 1] if t >= 1 else (0.0 if i == 0 else np.inf)
            slow = cost[i + 1, t - 2] if t >= 2 else (0.0 if i == 0 else np.inf)
            skip = cost[i, t - 1] if t >= 1 and i >= 1 else (0.0 if i == 1 else np.inf)
            if diagonal < best:
                best, steps = diagonal, 1 + (length[i + 1, t - 1] if t >= 1 else 0)
            other = 2 + (length[i + 1, t - 2] if t >= 2 else 0)
            if slow < best or (slow == best and other < steps):
                best, steps = slow, other
            if i >= 1:
                skip += distances[i - 1, t]
                other = 1 + (length[i, t - 1] if t >= 1 else 0)
                if skip < best or (skip == best and other < steps):
                    best, steps = skip, other
            cost[i + 2, t] = best + distances[i, t]
            length[i + 2, t] = steps
    return cost[n + 1], length[n + 1]


@numba.njit
def _minima(cost: Any, window: int) -> Any:
    """End frames of locally least cost, see `kernels.scan`."""
    found = []
    for t in range(len(cost)):
        if np.isinf(cost[t]):
            continue
        good = True
        for u in range(max(0, t - window), min(len(cost), t + window + 1)):
            if (u < t and cost[u] <= cost[t]) or (u > t and cost[u] < cost[t]):
                good = False
                break
        if good:
            found.append(t)
    return np.array(found, dtype=np.int64)


def _mtwv(state: SearchInputs, config: Config, candidates: pa.Table) -> float:
    store = state.store.open()
    reduced = Bucket(
        tick=store.manifest.shift,
        overlap=Reduce().overlap,
        nbest=config.reduce.nbest.count(state.seconds),
        system="",
        statistics=("cost-sums",),
    ).all_of([candidates])
    scored = Procedure(make_steps(["q-norm"], {})).scores(reduced.detections, from_table(reduced.statistics))
    task = make_task(state.corpus.references, total_seconds=state.seconds, protocol="sws2013")
    best = evaluate(task, make_system(scored.drop_columns(["decision"]))).overall.maximum
    if best is None:
        raise RuntimeError("no query has a reference")
    return best.twv


if __name__ == "__main__":
    main(measure, __doc__)
