"""From receipts and journals to the report's data."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.costs import GB, Costs
from swsdist.accounts.hardware import versions
from swsdist.accounts.journal import read_journals
from swsdist.chains.search.decide import scored_name, trials_name
from swsdist.chains.search.report.best import best_hits
from swsdist.chains.search.score import det_name, terms_name
from swsdist.config import dump_config, without_secrets
from swsdist.pipeline.digest import FINAL, combined, digests
from swsdist.pipeline.driver import Outcome
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Receipt
from swsdist.report import data as report
from swsdist.score import protocol
from swsdist.store import parquet
from swsdist.store.reading import Store
from swsdist.types import REJECTED


def build(outcome: Outcome) -> report.ReportData:
    """All that the report shows of a run that has come to its end."""
    state = outcome.state
    receipts = [r for name, ended in state.ended.items() if name != "index" for r in ended.receipts]
    journals = read_journals(state.run)
    rejected = rejected_rows(outcome)
    index = _index_receipts(state)
    accounts = Costs(journals, [*index, *receipts])
    queries, det, scores = _scored(state)
    measures = _measures(state)
    return report.ReportData(
        name=state.run.root.rstrip("/").rpartition("/")[2],
        folder=state.run.root,
        system=state.config.system,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=combined(digests(state.run, state.store, FINAL)),
        config_yaml=dump_config(without_secrets(state.config)),
        versions=versions(),
        resources=_resources(outcome, accounts, index),
        counts=_counts(state, rejected),
        protocol=_protocol(state),
        measures=measures,
        unscored=None if measures is not None else _why_unscored(state),
        stages=_stages(outcome, index),
        hardware=accounts.hardware(),
        nodes=accounts.nodes(),
        rejected=tuple(report.RejectedRow(**row) for row in rejected.to_pylist()),
        queries=queries,
        det=det,
        scores=scores,
        hits=best_hits(state),
    )


def rejected_rows(outcome: Outcome) -> pa.Table:
    """REJECTED: documents and queries of the present corpus that could not be used, and tasks that failed."""
    state = outcome.state
    tables = [REJECTED.empty_table()]
    if state.manifest is not None:
        tables.append(Store(state.store, state.manifest).rejected().drop_columns(["identity"]))
    rows: list[dict[str, Any]] = []
    for receipt in state.ended["queries"].receipts if "queries" in state.ended else []:
        rows += receipt.rejected
    rows += [failure.row() for failure in outcome.failures]
    tables.append(pa.Table.from_pylist(rows, REJECTED))
    return pa.concat_tables(tables)


def _index_receipts(state: State) -> list[Receipt]:
    """Receipts of the shards that the store is made of now, whoever made them and when."""
    if state.manifest is None:
        return []
    listing = state.store.listing("receipts")
    found = []
    for shard in state.manifest.shards:
        name = f"receipts/index-{shard.name.removeprefix('shards/part-').removesuffix('.parquet')}.json"
        if name in listing:
            found.append(Receipt.from_json(state.store.read_bytes(name)))
    return found


def _cpu(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.cost.cpu for receipt in receipts)


def _resources(outcome: Outcome, accounts: Costs, index: list[Receipt]) -> report.Resources:
    state = outcome.state
    by_phase: dict[str, list[Receipt]] = {"index": index, "search": [], "score": []}
    wall: dict[str, float] = {}
    for stage in outcome.stages:
        ended = state.ended[stage.name]
        if stage.phase != "index":
            by_phase[stage.phase] += ended.receipts
        wall[stage.phase] = wall.get(stage.phase, 0.0) + ended.wall
    queries = state.ended["queries"].receipts if "queries" in state.ended else []
    return report.Resources(
        index_cpu_s=_cpu(index) if state.manifest and len(index) == len(state.manifest.shards) else None,
        search_cpu_s=_cpu(by_phase["search"]),
        score_cpu_s=_cpu(by_phase["score"]),
        warm_up_cpu_s=accounts.warm_up(),
        repeated_cpu_s=accounts.repeated(),
        query_seconds=math.fsum(receipt.summary["seconds"] for receipt in queries),
        audio_seconds=float(state.manifest.counts["seconds"]) if state.manifest is not None else 0.0,
        pmu_index_gb=accounts.pmu("index"),
        pmu_search_gb=accounts.pmu("search"),
        pl_lambda=state.config.report.pl_lambda,
        wall_s=time.time() - outcome.started,
        phase_wall_s=wall,
        ray_start_s=outcome.ray_start,
        ray_stop_s=outcome.ray_stop,
    )


def _stages(outcome: Outcome, index: list[Receipt]) -> tuple[report.StageRow, ...]:
    rows = []
    for stage in outcome.stages:
        ended = outcome.state.ended[stage.name]
        receipts = index if stage.phase == "index" else ended.receipts
        rows.append(
            report.StageRow(
                stage=stage.name,
                tasks=max(ended.tasks, len(receipts)),
                done=ended.done,
                skipped=max(ended.tasks, len(receipts)) - ended.done - len(ended.failures),
                failed=len(ended.failures),
                cpu_s=_cpu(receipts),
                wall_s=ended.wall,
                bytes=sum(receipt.cost.bytes_written for receipt in receipts),
                peak_gb=max((receipt.cost.peak_bytes for receipt in receipts), default=0) / GB or None,
            )
        )
    return tuple(rows)


def _counts(state: State, rejected: pa.Table) -> report.Counts:
    queries = state.ended["queries"].receipts if "queries" in state.ended else []
    decided = state.ended["decide"].receipts if "decide" in state.ended else []
    return report.Counts(
        documents=int(state.manifest.counts["documents"]) if state.manifest is not None else 0,
        queries=len({query_id for receipt in queries for query_id in receipt.summary["query_ids"]}),
        examples=sum(receipt.summary["examples"] for receipt in queries),
        detections=sum(receipt.summary.get("detections", 0) for receipt in decided),
        references=state.references.num_rows if state.references is not None else None,
        rejected=rejected.num_rows,
    )


def _score_receipt(state: State) -> Receipt | None:
    scored = state.ended["score"].receipts if "score" in state.ended else []
    return scored[0] if scored else None


def _protocol(state: State) -> report.Protocol | None:
    receipt = _score_receipt(state)
    if receipt is None:
        return None
    settings, point = state.config.score, receipt.summary["point"]
    rules = protocol(settings.protocol, tolerance=settings.tolerance, trials_per_second=settings.trials_per_second)
    return report.Protocol(
        name=rules.name,
        beta=point["beta"],
        tolerance=rules.tolerance,
        trials_per_second=rules.trials_per_second,
        trials=point["trials"],
        seconds=state.seconds,
        conventions=rules.conventions,
    )


def _measures(state: State) -> report.Measures | None:
    receipt = _score_receipt(state)
    if receipt is None:
        return None
    values = dict(receipt.summary["measures"])
    return report.Measures(**{**values, "atwv_thresholds": tuple(values["atwv_thresholds"])})


def _why_unscored(state: State) -> str:
    if state.config.corpus.references is None:
        return "no references were given (corpus.references)"
    if state.references is not None and state.references.num_rows == 0:
        return "the table of references has no rows"
    return "scoring was not reached"


def _scored(
    state: State,
) -> tuple[tuple[report.QueryRow, ...], report.DetCurve | None, report.ScoreHistogram | None]:
    """The table of queries, the DET curve and the histograms; what of them there is."""
    terms: dict[str, str | None] = {}
    for row in state.queries.select(["query_id", "term"]).to_pylist():
        terms.setdefault(row["query_id"], row["term"])
    durations: dict[str, float] = {}
    from swsdist.chains.search.queries import examples_name

    for receipt in state.ended["queries"].receipts if "queries" in state.ended else []:
        table = parquet.read(state.run, examples_name(receipt.fingerprint), ["query_id", "duration"])
        for row in table.to_pylist():
            durations[row["query_id"]] = durations.get(row["query_id"], 0.0) + row["duration"]
    detections: Counter[str] = Counter()
    for receipt in state.ended["decide"].receipts if "decide" in state.ended else []:
        if "detections" in receipt.summary:
            column = parquet.read(state.run, scored_name(receipt.fingerprint), ["query_id"])["query_id"]
            for value in pc.value_counts(column.combine_chunks()).to_pylist():
                detections[value["values"]] += value["counts"]
    receipt_or_none = _score_receipt(state)
    rates: dict[str, dict[str, Any]] = {}
    det = scores = None
    if receipt_or_none is not None:
        name = receipt_or_none.fingerprint
        for row in parquet.read(state.run, terms_name(name)).drop_columns(["best_threshold"]).to_pylist():
            rates[row["query_id"]] = row
        curve = parquet.read(state.run, det_name(name))
        det = report.DetCurve(*(curve[column].to_numpy() for column in ("pmiss", "pfa", "threshold")))
        scores = _histogram(state)
    rows = tuple(
        report.QueryRow(
            **{"query_id": query_id, **rates.get(query_id, {})},
            term=terms.get(query_id),
            duration=durations.get(query_id),
            detections=detections[query_id],
        )
        for query_id in sorted({*terms, *rates})
    )
    return rows, det, scores


def _histogram(state: State) -> report.ScoreHistogram | None:
    """Of the scores of paired and unpaired detections, a bucket at a time on common edges."""
    ends = [receipt.summary for receipt in state.ended["normalise"].receipts if receipt.summary["detections"]]
    if not ends:
        return None
    low, high = min(one["low"] for one in ends), max(one["high"] for one in ends)
    edges = np.linspace(low, high if high > low else low + 1.0, 61)
    true, false = np.zeros(60, np.int64), np.zeros(60, np.int64)
    for receipt in state.ended["decide"].receipts:
        if "trials" in receipt.summary:
            table = parquet.read(state.run, trials_name(receipt.fingerprint), ["score", "ref_start"])
            found = table.filter(pc.is_valid(table["score"]))
            paired = pc.is_valid(found["ref_start"])
            true += np.histogram(found.filter(paired)["score"].to_numpy(), edges)[0]
            false += np.histogram(found.filter(pc.invert(paired))["score"].to_numpy(), edges)[0]
    return report.ScoreHistogram(edges, true, false)
