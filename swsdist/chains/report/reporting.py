"""The report's data, from receipts and journals."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.costs import GB, Costs, by_type
from swsdist.accounts.hardware import versions
from swsdist.accounts.records import records
from swsdist.audio.reader import PAGE_RATE, data_uri, probe, read_clip
from swsdist.chains.report.notices import heard, makers_of_queries
from swsdist.config import dump_config, without_secrets
from swsdist.core.errors import AudioError
from swsdist.core.types import DETECTIONS, REJECTED
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.pipeline.status import digests, of_all_keys, unlabelled
from swsdist.pipeline.task import Receipt
from swsdist.registry.entries import Dependency, decision_dependencies
from swsdist.report import data as report
from swsdist.report.data import Hit
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.paired import Settings
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages import summarise
from swsdist.stages.buckets import Bucket, Extracted, Fitted, Measured, Searched, Summarised
from swsdist.stages.inputs.corpus import takes_query_statistics
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.queries import Summed, seconds_in
from swsdist.stages.summarise import edges_of
from swsdist.store.reading import combined


def scored_rows(
    chain_run: ChainRun,
) -> tuple[tuple[report.QueryRow, ...], report.DetCurve | None, report.ScoreHistogram | None]:
    """The table of queries, the DET curve and the histograms, if available."""
    inputs: CorpusInputs = chain_run.chain.inputs
    terms = inputs.corpus.terms
    durations: dict[str, float] = {}
    for (query_id, _), seconds in seconds_in(chain_run).items():
        durations[query_id] = durations.get(query_id, 0.0) + seconds
    cuts: dict[str, float] = {}
    for group in chain_run.results("groups", Extracted):
        for query_id, _, before, after in group.cuts:
            cuts[query_id] = cuts.get(query_id, 0.0) + before + after
    detections = {
        row["query_id"]: row["detections"]
        for table in chain_run.read("summary", ["query_id", "detections"])
        for row in table.to_pylist()
    }
    rates: dict[str, dict[str, Any]] = {}
    det = scores = None
    for table in chain_run.read("terms"):
        rates.update({row["query_id"]: row for row in table.drop_columns(["best_threshold"]).to_pylist()})
    for curve in chain_run.read("det"):
        det = report.DetCurve(*(curve[column].to_numpy() for column in ("pmiss", "pfa", "threshold")))
        scores = _histogram(chain_run)
    rows = tuple(
        report.QueryRow(
            **{"query_id": query_id, **rates.get(query_id, {})},
            term=terms.get(query_id),
            duration=durations.get(query_id),
            cut=round(cuts[query_id], 3) if query_id in cuts else None,
            detections=detections.get(query_id, 0),
        )
        for query_id in sorted({*terms, *rates})
    )
    return rows, det, scores


def mtwv_interval(chain_run: ChainRun) -> tuple[float, float] | None:
    """Bootstrap interval of MTWV over queries, at a fixed threshold, as of `swsdist compare`."""
    result = chain_run.results("measures", Measured)
    if not result or result[0].measures.get("mtwv") is None:
        return None
    values = {
        row["query_id"]: row["twv"]
        for table in chain_run.read("summary", ["query_id", "twv"])
        for row in table.to_pylist()
        if row["twv"] is not None
    }
    if len(values) < 2:
        return None
    settings = Settings()
    draws = bootstrap_terms(
        np.array([[values[name] for name in sorted(values)]]), resamples=settings.resamples, seed=settings.seed
    )
    return draws.interval(0, level=settings.level, method=settings.method)[:2]


def _histogram(chain_run: ChainRun) -> report.ScoreHistogram | None:
    """Histograms of the scores of target and non-target detections, on common edges."""
    parts = chain_run.results("summary", Summarised)
    if not any(bucket.rows for bucket in chain_run.results("scored", Bucket)):
        return None
    true, false = (np.array([each[k] for each in parts], np.int64).sum(axis=0) for k in (1, 2))
    return report.ScoreHistogram(edges_of(parts[0].range), true, false)


def best_hits(chain_run: ChainRun) -> tuple[Hit, ...]:
    """The best hits, with sound of hit and query."""
    inputs: CorpusInputs = chain_run.chain.inputs
    queries: dict[str, dict[str, Any]] = {}
    if inputs.store.manifest is None:
        return ()
    if chain_run.config.corpus.queries is not None:
        for row in inputs.corpus.queries.to_pylist():
            queries.setdefault(row["query_id"], row)
    hits = []
    for row in summarise.best_hits(chain_run.read("best"), inputs.store.open(), chain_run.config.report.clips):
        query = queries.get(row["query_id"], {})
        hits.append(
            Hit(
                query_id=row["query_id"],
                term=inputs.corpus.terms[row["query_id"]] if query else None,
                doc_id=row["doc_id"],
                channel=row["channel"],
                start=row["start"],
                end=row["end"],
                score=row["score"],
                verdict=row["verdict"],
                audio=_sound(chain_run, row["path"], row["channel"], row["start"], row["end"], 0.2),
                query_audio=_sound(
                    chain_run, query["path"], query["channel"], query.get("start"), query.get("end"), 0.0
                )
                if query
                else None,
            )
        )
    return tuple(hits)


def _sound(
    chain_run: ChainRun, path: str | None, channel: int, start: float | None, end: float | None, pad: float
) -> str | None:
    """A data URI; None without a readable recording: the page then shows the hit without sound."""
    if not path:
        return None
    storage = chain_run.config.storage
    try:
        last = probe(path, storage).duration if end is None else end
        return data_uri(read_clip(path, start, last, channel=channel, pad=pad, rate=PAGE_RATE, storage=storage))
    except AudioError:
        return None


#: Tables of the result digest: the last ones, which are quick to read.
FINAL = ("scored", "terms", "measures")


def build_report(outcome: Outcome, chain_run: ChainRun) -> report.ReportData:
    """The report's data for a finished run."""
    inputs: CorpusInputs = chain_run.chain.inputs
    rejected = rejected_rows(chain_run)
    before = _earlier_searches(chain_run)
    all_spent = receipts_by_phase(*before, chain_run)
    accounts = Costs(records(*(item.run for item in (*before, chain_run))), all_spent.all())
    queries, det, scores = scored_rows(chain_run)
    measures = _measures(chain_run)
    # A task that two systems of a fusion did is not a lost attempt.
    separate = [Costs(records(item.run), receipts_by_phase(item).all()) for item in before]
    costs = Costs(records(chain_run.run), receipts_by_phase(chain_run).all()) if before else accounts
    repeated = math.fsum(item.repeated() for item in (*separate, costs))
    resources = _resources(outcome, chain_run, accounts, all_spent, repeated)
    return report.ReportData(
        name=chain_run.run.root.rstrip("/").rpartition("/")[2],
        folder=chain_run.run.root,
        system=chain_run.config.system,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=combined(result_digests(chain_run)),
        config_yaml=dump_config(without_secrets(chain_run.config)),
        versions=versions(),
        resources=resources,
        counts=_counts(chain_run, rejected),
        protocol=_protocol(chain_run),
        measures=measures,
        mtwv_interval=mtwv_interval(chain_run),
        unscored=None if measures is not None else _why_unscored(inputs),
        looked_at=_dependencies(chain_run),
        queries_from=_queries_from(chain_run),
        warnings=tuple(chain_run.notices()),
        stages=_stages(chain_run, all_spent, accounts),
        hardware=tuple(report.NodeType(nodes=count, **described) for described, count in accounts.hardware()),
        nodes=_nodes(accounts),
        accounts=accounts,
        types=by_type(
            accounts,
            _phases(chain_run, all_spent.complete),
            query_s=resources.query_seconds,
            audio_s=resources.audio_seconds,
            weight=resources.pl_lambda,
        ),
        rejected=tuple(report.RejectedRow(**row) for row in rejected.to_pylist()),
        queries=queries,
        det=det,
        scores=scores,
        hits=best_hits(chain_run),
    )


def result_digests(chain_run: ChainRun) -> dict[str, str]:
    """Those of the tables `FINAL`; of the list, which is long, from its queries' hashes if these are there."""
    if not chain_run.table("summary").parts:
        return digests(chain_run, FINAL)
    listed, *others = FINAL
    hashes: dict[str, str] = {}
    for table in chain_run.read("summary", ["query_id", "sha256"]):
        found = table.filter(pc.is_valid(table["sha256"]))
        hashes.update(zip(*(found[name].to_pylist() for name in ("query_id", "sha256")), strict=True))
    columns = unlabelled(DETECTIONS.empty_table()).column_names
    made = {listed: of_all_keys(columns, hashes)} if chain_run.table(listed).parts else {}
    return {**made, **digests(chain_run, tuple(others))}


def _queries_from(chain_run: ChainRun) -> report.QueriesFrom | None:
    """The other corpus of the queries, if any."""
    source = chain_run.config.corpus.queries_from
    if source.documents is None or chain_run.config.corpus.queries is None:
        return None
    normalised = any(term.normalise != "none" for term in chain_run.config.search.terms())
    taken = chain_run.results("query_statistics", Summed) if takes_query_statistics(chain_run.config) else []
    return report.QueriesFrom(
        documents=source.documents,
        same_speakers=source.same_speakers,
        statistics=source.statistics if normalised else "none",
        taken_from=sum(item.documents for item in taken if item.extractor == 0),
    )


def _nodes(accounts: Costs) -> tuple[report.NodeRow, ...]:
    def gb(peaks: Mapping[str, int], phase: str) -> float | None:
        return peaks[phase] / GB if phase in peaks else None

    return tuple(
        report.NodeRow(
            host=node.host,
            tasks=node.tasks,
            cpu_s=node.cpu_s,
            peak_index_gb=gb(node.peaks, "index"),
            peak_search_gb=gb(node.peaks, "search"),
            gpu_s=node.gpu_s,
            gpu_index_gb=gb(node.gpu_peaks, "index"),
            gpu_search_gb=gb(node.gpu_peaks, "search"),
        )
        for node in accounts.nodes(("index", "search"))
    )


def _earlier_searches(chain_run: ChainRun) -> list[ChainRun]:
    """Other plans whose searches this report includes."""
    inputs: CorpusInputs = chain_run.chain.inputs
    return [search for search in inputs.searches(chain_run) if search is not chain_run]


def rejected_rows(chain_run: ChainRun) -> pa.Table:
    """REJECTED: documents and queries of the present corpus that could not be used, and tasks that failed; each once."""
    tables = [REJECTED.empty_table()]
    rows: list[dict[str, Any]] = []
    for item in (*_earlier_searches(chain_run), chain_run):
        inputs: CorpusInputs = item.chain.inputs
        for each in dict.fromkeys([inputs, inputs.others.get("words", inputs)]):
            if each.store.manifest is not None:
                tables.append(each.store.open().rejected().drop_columns(["identity"]))
        rows += [row for name in makers_of_queries(item) for receipt in item.receipts(name) for row in receipt.rejected]
    rows += [failure.row() for ended in chain_run.outcomes.values() for failure in ended.failures]
    tables.append(pa.Table.from_pylist(rows, REJECTED))
    complete = pa.concat_tables(tables)
    if not _earlier_searches(chain_run) and "words" not in chain_run.chain.inputs.others:
        return complete
    return pa.Table.from_pylist(list({json.dumps(row): row for row in complete.to_pylist()}.values()), REJECTED)


@dataclass(frozen=True)
class ReceiptsByPhase:
    """Receipts of a run by phase. This class defines what ISF and SSF include.

    Attributes:
        index: of products of the documents alone: shards of the store, fitted models, indexes of first passes; of any
            run.
        search: of products for the queries.
        score: of the rest, which no factor includes.
        complete: whether `index` has all receipts; those of other runs' shards may be missing.
    """

    index: list[Receipt]
    search: list[Receipt]
    score: list[Receipt]
    complete: bool

    def all(self) -> list[Receipt]:
        """All receipts."""
        return [*self.index, *self.search, *self.score]


def receipts_by_phase(*chain_runs: ChainRun) -> ReceiptsByPhase:
    """Receipts of some plans; those of a shared store count once."""
    index: dict[str, Receipt] = {}
    rest: dict[str, list[Receipt]] = {"search": [], "score": []}
    complete = True
    for course in chain_runs:
        store = course.chain.makers("documents")[:1]
        for step in (step for step in course.chain.steps if store and step.phase == "index"):
            made = step.stage.makers(course.inputs(step))
            complete = complete and bool(made or step not in store)
            index |= {receipt.fingerprint: receipt for receipt in made}
        for step in (step for step in course.steps if step.phase in rest and step.name in course.outcomes):
            rest[step.phase] += course.outcomes[step.name].receipts
    return ReceiptsByPhase(list(index.values()), rest["search"], rest["score"], complete and bool(index))


def _phases(chain_run: ChainRun, complete: bool) -> dict[str, str]:
    """Phases of all stages, by name; without the index phase if its receipts are incomplete."""
    steps = [step for item in (*_earlier_searches(chain_run), chain_run) for step in item.chain.steps]
    return {step.stage.name: step.phase for step in steps if complete or step.phase != "index"}


def _cpu(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.cost.cpu for receipt in receipts)


def _gpu(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.cost.gpu_s for receipt in receipts)


def _resources(
    outcome: Outcome, chain_run: ChainRun, accounts: Costs, all_spent: ReceiptsByPhase, repeated: float
) -> report.Resources:
    inputs: CorpusInputs = chain_run.chain.inputs
    wall: dict[str, float] = {}
    for step in (step for step in chain_run.steps if step.name in chain_run.outcomes):
        wall[step.phase] = wall.get(step.phase, 0.0) + chain_run.outcomes[step.name].wall
    queries = chain_run.results("groups", Extracted)
    searched = math.fsum(group.seconds for group in queries)
    manifest = inputs.store.manifest
    return report.Resources(
        index_cpu_s=_cpu(all_spent.index) if all_spent.complete else None,
        search_cpu_s=_cpu(all_spent.search),
        score_cpu_s=_cpu(receipts_by_phase(chain_run).score),
        warm_up_cpu_s=accounts.warm_up(),
        repeated_cpu_s=repeated,
        queries=len({query_id for group in queries for query_id in group.query_ids}),
        query_seconds=searched + math.fsum(cut[2] + cut[3] for group in queries for cut in group.cuts),
        searched_query_seconds=searched,
        audio_seconds=float(manifest.counts["seconds"]) if manifest is not None else 0.0,
        pmu_index_gb=accounts.pmu("index"),
        pmu_search_gb=accounts.pmu("search"),
        index_gpu_s=_gpu(all_spent.index),
        search_gpu_s=_gpu(all_spent.search),
        gpu_index_gb=accounts.gpu_peak("index"),
        gpu_search_gb=accounts.gpu_peak("search"),
        wall_s=time.time() - outcome.began,
        phase_wall_s=wall,
        executor_start_s=outcome.executor_start,
        executor_stop_s=outcome.executor_stop,
    )


def _stages(chain_run: ChainRun, all_spent: ReceiptsByPhase, accounts: Costs) -> tuple[report.StageRow, ...]:
    rows, gpu_peaks = [], accounts.gpu_peaks_by_stage()
    for step in (step for step in chain_run.steps if step.name in chain_run.outcomes):
        ended = chain_run.outcomes[step.name]
        receipts_by_file = [item for item in all_spent.index if item.stage == step.stage.name and step.phase == "index"]
        receipts = receipts_by_file or ended.receipts
        tasks = max(ended.tasks, len(receipts))
        rows.append(
            report.StageRow(
                stage=step.name,
                tasks=tasks,
                done=ended.done,
                skipped=tasks - ended.done - len(ended.failures),
                failed=len(ended.failures),
                cpu_s=_cpu(receipts),
                wall_s=ended.wall,
                bytes=sum(receipt.cost.bytes_written for receipt in receipts),
                peak_gb=max((receipt.cost.peak_bytes for receipt in receipts), default=0) / GB or None,
                gpu_s=_gpu(receipts),
                gpu_gb=gpu_peaks.get(step.stage.name),
            )
        )
    return tuple(rows)


def _counts(chain_run: ChainRun, rejected: pa.Table) -> report.Counts:
    inputs: CorpusInputs = chain_run.chain.inputs
    groups = chain_run.results("groups", Extracted)
    counts = inputs.store.manifest.counts if inputs.store.manifest is not None else {}
    searched = chain_run.results("candidates", Searched) if chain_run.chain.makers("candidates") else []
    languages, left_out = heard(inputs)
    return report.Counts(
        documents=int(counts.get("documents", 0)),
        speech=counts["speech_seconds"] / counts["heard_seconds"] if counts.get("heard_seconds") else None,
        languages=languages,
        left_out=left_out,
        queries=len({query_id for group in groups for query_id in group.query_ids}),
        examples=sum(group.examples for group in groups),
        trimmed=sum(len(group.cuts) for group in groups),
        detections=sum(bucket.rows for bucket in chain_run.results("scored", Bucket)),
        references=inputs.corpus.references.num_rows if inputs.corpus.references is not None else None,
        rejected=rejected.num_rows,
        best=sum(task.best for task in searched),
        best_found=sum(task.best_found for task in searched),
    )


def _measured(chain_run: ChainRun) -> Measured | None:
    scored = chain_run.results("measures", Measured)
    return scored[0] if scored else None


def _protocol(chain_run: ChainRun) -> report.Protocol | None:
    measured = _measured(chain_run)
    if measured is None:
        return None
    point, rules = measured.point, protocol_of(chain_run.config.score)
    inputs: CorpusInputs = chain_run.chain.inputs
    return report.Protocol(
        name=rules.name,
        beta=point["beta"],
        tolerance=rules.tolerance if rules.trials == "time" else None,
        trials_are=rules.trials,
        trials_per_second=rules.trials_per_second,
        trials=point["trials"],
        seconds=inputs.seconds,
        conventions=rules.conventions,
    )


def _measures(chain_run: ChainRun) -> report.Measures | None:
    measured = _measured(chain_run)
    if measured is None:
        return None
    values = dict(measured.measures)
    calibration, thresholds = values.pop("calibration"), values.pop("atwv_thresholds")
    return report.Measures.of(values, calibration=calibration, thresholds=thresholds)


def _dependencies(chain_run: ChainRun) -> tuple[Dependency, ...]:
    settings, fitted = chain_run.config.calibrate, chain_run.results("calibration", Fitted)
    how = fitted[0].fit if fitted else "none"
    counts = chain_run.config.corpus.cohort is not None
    return decision_dependencies(
        settings.steps, settings.entries(), fit=how, threshold=settings.threshold, cohort=counts
    )


def _why_unscored(inputs: CorpusInputs) -> str:
    if not inputs.config.corpus.has_references:
        return "no references were given (corpus.references)"
    if inputs.corpus.references is not None and inputs.corpus.references.num_rows == 0:
        return "the table of references has no rows"
    return "scoring was not reached"
