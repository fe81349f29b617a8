"""This module turns receipts and journals into the report's data."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from swsdist.accounts.by_type import by_type
from swsdist.accounts.costs import GB, Costs
from swsdist.accounts.hardware import versions
from swsdist.accounts.records import records
from swsdist.chains.search.fit_transforms import FitTransforms
from swsdist.chains.search.inputs.across import takes_theirs
from swsdist.chains.search.inputs.known import SearchInputs
from swsdist.chains.search.query_statistics import QueryStatistics, Summed
from swsdist.chains.search.report.hits import best_hits
from swsdist.chains.search.report.scored import mtwv_interval, scored_rows
from swsdist.chains.search.told import Bucket, Extracted, Fitted, Measured
from swsdist.config import dump_config, without_secrets
from swsdist.pipeline.course import Course, Outcome
from swsdist.pipeline.inspection.digest import digests
from swsdist.pipeline.task import Receipt
from swsdist.report import data as report
from swsdist.score.measures.protocol import protocol_of
from swsdist.steps import Looks, looked_at
from swsdist.store.digest import combined
from swsdist.store.reading import Store
from swsdist.types import REJECTED

#: Tables whose digest the report shows: the end of the way, which is quick to read.
FINAL = ("scored", "terms", "measures")


def build(outcome: Outcome, course: Course) -> report.ReportData:
    """All that the report shows of a run that has come to its end."""
    own: SearchInputs = course.chain.own
    rejected = rejected_rows(course)
    index = _index_receipts(course)
    before = _searched_before(course)
    accounts = costs_of(course)
    queries, det, scores = scored_rows(course)
    measures = _measures(course)
    # A task that two systems of a fusion did is no attempt that was lost.
    apart = [Costs(records(one.run), [*_of_store(one), *_not_of_index(one)]) for one in before]
    mine = Costs(records(course.run), _not_of_index(course)) if before else accounts
    repeated = math.fsum(one.repeated() for one in (*apart, mine))
    resources = _resources(outcome, course, accounts, index, repeated)
    return report.ReportData(
        name=course.run.root.rstrip("/").rpartition("/")[2],
        folder=course.run.root,
        system=course.config.system,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=combined(digests(course, FINAL)),
        config_yaml=dump_config(without_secrets(course.config)),
        versions=versions(),
        resources=resources,
        counts=_counts(course, rejected),
        protocol=_protocol(course),
        measures=measures,
        mtwv_interval=mtwv_interval(course),
        unscored=None if measures is not None else _why_unscored(own),
        looked_at=_looked_at(course),
        queries_from=_queries_from(course),
        warnings=tuple(course.notices()),
        stages=_stages(course, index),
        hardware=tuple(report.NodeType(nodes=count, **described) for described, count in accounts.hardware()),
        nodes=_nodes(accounts),
        accounts=accounts,
        types=by_type(
            accounts,
            _phases(course),
            query_s=resources.query_seconds,
            audio_s=resources.audio_seconds,
            weight=resources.pl_lambda,
        ),
        rejected=tuple(report.RejectedRow(**row) for row in rejected.to_pylist()),
        queries=queries,
        det=det,
        scores=scores,
        hits=best_hits(course),
    )


def costs_of(course: Course) -> Costs:
    """The costs of all that a run shows: of its own tasks, of the shards of its store, and of searches that came before."""
    before = _searched_before(course)
    receipts = [*_index_receipts(course), *(receipt for one in (course, *before) for receipt in _not_of_index(one))]
    return Costs(records(*(one.run for one in (*before, course))), receipts)


def _queries_from(course: Course) -> report.QueriesFrom | None:
    """Of another corpus, if they are."""
    theirs = course.config.corpus.queries_from
    if theirs.documents is None or course.config.corpus.queries is None:
        return None
    normalised = any(term.normalise != "none" for term in course.config.search.terms())
    taken = course.told(QueryStatistics.name, Summed) if takes_theirs(course.config) else []
    return report.QueriesFrom(
        documents=theirs.documents,
        same_speakers=theirs.same_speakers,
        statistics=theirs.statistics if normalised else "none",
        taken_from=sum(one.documents for one in taken if one.extractor == 0),
    )


def _nodes(accounts: Costs) -> tuple[report.NodeRow, ...]:
    return tuple(
        report.NodeRow(
            host=node.host,
            tasks=node.tasks,
            cpu_s=node.cpu_s,
            peak_index_gb=node.peaks["index"] / GB if "index" in node.peaks else None,
            peak_search_gb=node.peaks["search"] / GB if "search" in node.peaks else None,
        )
        for node in accounts.nodes(("index", "search"))
    )


def _searched_before(course: Course) -> list[Course]:
    """Other plans that searched what this one shows."""
    own: SearchInputs = course.chain.own
    return [one for one in own.searches(course) if one is not course]


def rejected_rows(course: Course) -> pa.Table:
    """REJECTED: documents and queries of the present corpus that could not be used, and tasks that failed; each once."""
    tables = [REJECTED.empty_table()]
    rows: list[dict[str, Any]] = []
    for one in (*_searched_before(course), course):
        own: SearchInputs = one.chain.own
        if own.manifest is not None:
            tables.append(Store(own.store, own.manifest).rejected().drop_columns(["identity"]))
        for receipt in (*one.receipts("queries"), *one.receipts("queries.cohort")):
            rows += receipt.rejected
    rows += [failure.row() for ended in course.ended.values() for failure in ended.failures]
    tables.append(pa.Table.from_pylist(rows, REJECTED))
    whole = pa.concat_tables(tables)
    if not _searched_before(course):
        return whole
    return pa.Table.from_pylist(list({json.dumps(row): row for row in whole.to_pylist()}.values()), REJECTED)


def _not_of_index(course: Course) -> list[Receipt]:
    return [receipt for name, ended in course.ended.items() if name != "index" for receipt in ended.receipts]


def _index_receipts(course: Course) -> list[Receipt]:
    """Receipts of the shards that the stores are made of now, whoever made them and when; none if one cannot tell."""
    own: SearchInputs = course.chain.own
    found = [_of_store(one) for one in own.searches(course)]
    if not all(found):
        return []
    return list({one.fingerprint: one for receipts in found for one in receipts}.values())


def _of_store(course: Course) -> list[Receipt]:
    own: SearchInputs = course.chain.own
    if own.manifest is None:
        return []
    stage = course.chain.step("index").stage.name
    made = {
        part.name: receipt
        for receipt in course.ledger.receipts(stage, own.store.root).values()
        for part in receipt.outputs
    }
    files = [file.name for shard in own.manifest.shards for file in shard.files.values()]
    if any(name not in made for name in files):
        return []  # somebody else made a part of it, so what it cost is not known
    # Several tracks of one pass are one receipt's.
    return list({made[name].fingerprint: made[name] for name in files}.values())


def _fitting_receipts(course: Course) -> list[Receipt]:
    """Receipts of the models that the stores' transforms were fitted to, whoever made them and when."""
    mine: SearchInputs = course.chain.own
    found: dict[str, Receipt] = {}
    for one in mine.searches(course):
        own: SearchInputs = one.chain.own
        files = {each.file for each in own.fitted}
        made = one.ledger.receipts(FitTransforms.name, own.store.root).values() if files else ()
        found |= {receipt.fingerprint: receipt for receipt in made if receipt.told.get("model") in files}
    return list(found.values())


def _phases(course: Course) -> dict[str, str]:
    """Phases of all stages, by the names that receipts have."""
    found = {step.stage.name: step.phase for one in (*_searched_before(course), course) for step in one.steps}
    return {**found, FitTransforms.name: "index"}


def _cpu(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.cost.cpu for receipt in receipts)


def _resources(
    outcome: Outcome, course: Course, accounts: Costs, index: list[Receipt], repeated: float
) -> report.Resources:
    own: SearchInputs = course.chain.own
    by_phase: dict[str, list[Receipt]] = {"index": index, "search": [], "score": []}
    wall: dict[str, float] = {}
    for one in _searched_before(course):
        for step in (step for step in one.steps if step.phase == "search" and step.name in one.ended):
            by_phase["search"] += one.ended[step.name].receipts
    for step in (step for step in course.steps if step.name in course.ended):
        ended = course.ended[step.name]
        if step.phase != "index":
            by_phase[step.phase] += ended.receipts
        wall[step.phase] = wall.get(step.phase, 0.0) + ended.wall
    manifest = own.manifest
    return report.Resources(
        index_cpu_s=_cpu([*index, *_fitting_receipts(course)]) if index else None,
        search_cpu_s=_cpu(by_phase["search"]),
        score_cpu_s=_cpu(by_phase["score"]),
        warm_up_cpu_s=accounts.warm_up(),
        repeated_cpu_s=repeated,
        query_seconds=math.fsum(group.seconds for group in course.told("queries", Extracted)),
        audio_seconds=float(manifest.counts["seconds"]) if manifest is not None else 0.0,
        pmu_index_gb=accounts.pmu("index"),
        pmu_search_gb=accounts.pmu("search"),
        pl_lambda=course.config.report.pl_lambda,
        wall_s=time.time() - outcome.began,
        phase_wall_s=wall,
        ray_start_s=outcome.ray_start,
        ray_stop_s=outcome.ray_stop,
    )


def _stages(course: Course, index: list[Receipt]) -> tuple[report.StageRow, ...]:
    rows = []
    for step in (step for step in course.steps if step.name in course.ended):
        ended = course.ended[step.name]
        of_the_store = {"index": index, FitTransforms.name: _fitting_receipts(course)}
        receipts = of_the_store.get(step.name) or ended.receipts
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
            )
        )
    return tuple(rows)


def _counts(course: Course, rejected: pa.Table) -> report.Counts:
    own: SearchInputs = course.chain.own
    groups = course.told("queries", Extracted)
    known = own.manifest.counts if own.manifest is not None else {}
    return report.Counts(
        documents=int(known.get("documents", 0)),
        speech=known["speech_seconds"] / known["heard_seconds"] if known.get("heard_seconds") else None,
        queries=len({query_id for group in groups for query_id in group.query_ids}),
        examples=sum(group.examples for group in groups),
        trimmed=sum(len(group.cuts) for group in groups),
        detections=sum(bucket.rows for bucket in course.told("decide", Bucket)),
        references=own.references.num_rows if own.references is not None else None,
        rejected=rejected.num_rows,
    )


def _measured(course: Course) -> Measured | None:
    scored = course.told("score", Measured)
    return scored[0] if scored else None


def _protocol(course: Course) -> report.Protocol | None:
    measured = _measured(course)
    if measured is None:
        return None
    point, rules = measured.point, protocol_of(course.config.score)
    own: SearchInputs = course.chain.own
    return report.Protocol(
        name=rules.name,
        beta=point["beta"],
        tolerance=rules.tolerance if rules.trials == "time" else None,
        trials_are=rules.trials,
        trials_per_second=rules.trials_per_second,
        trials=point["trials"],
        seconds=own.seconds,
        conventions=rules.conventions,
    )


def _measures(course: Course) -> report.Measures | None:
    measured = _measured(course)
    if measured is None:
        return None
    values = dict(measured.measures)
    calibration, thresholds = values.pop("calibration"), values.pop("atwv_thresholds")
    return report.Measures.of(values, calibration=calibration, thresholds=thresholds)


def _looked_at(course: Course) -> tuple[Looks, ...]:
    settings, fitted = course.config.calibrate, course.told("fit", Fitted)
    how = fitted[0].fit if fitted else "none"
    known = course.config.corpus.cohort is not None
    return looked_at(settings.steps, settings.entries(), fit=how, threshold=settings.threshold, cohort=known)


def _why_unscored(own: SearchInputs) -> str:
    if not own.config.corpus.tells_truth:
        return "no references were given (corpus.references)"
    if own.references is not None and own.references.num_rows == 0:
        return "the table of references has no rows"
    return "scoring was not reached"
