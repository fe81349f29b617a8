"""Write the report of a run to its folder, with the system description that SWS 2013 requires.

The description has the number and types of nodes, for each type the computer's brand, the CPU's model, cores and clock,
RAM and operating system; and ISF, SSF, PMU of both phases, and PL.

Source: Rodriguez-Fuentes and Penagarikano (2013), section 4.3.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from swsdist.accounts.journal import cpu_seconds
from swsdist.chains.report.reporting import build_report, rejected_rows, result_digests
from swsdist.config import Config, config_from_dict
from swsdist.config.section import Section
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import NODES, REJECTED
from swsdist.evaluation.comparison import ScoredSystem
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.pipeline.status import config_of, load_chain_run, plan_of
from swsdist.report.costs import Factors, TypeCost
from swsdist.report.data import SCHEMA, ReportData, Resources, StageRow, read_report_json, write_report_json
from swsdist.report.page import render_page
from swsdist.report.summary import NOTHING, fixed, gpu_figures, short
from swsdist.report.tables import Table, latex, markdown
from swsdist.score.compare.results import SystemInfo
from swsdist.score.measures.det import Det, ppndf
from swsdist.score.measures.protocol import OperatingPoint, protocol_of
from swsdist.stages.buckets import Bucket, Measured
from swsdist.stages.inputs.corpus import COLUMNS, spans_of
from swsdist.stages.inputs.corpus_documents import settings_of
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.store import parquet
from swsdist.store.reading import combined

MARKDOWN, LATEX = "system-description.md", "system-description.tex"

_HARDWARE = ("type", "nodes", "computer", "CPU", "cores", "GHz", "RAM, GB", "GPU", "operating system")
_COSTS = ("nodes", "ISF", "SSF, 1/s", "SSF, 1/h", "PMU index, GB", "PMU search, GB", "PL", "PL, hours")


def system_description(types: tuple[TypeCost, ...], resources: Resources) -> list[Table]:
    """Two tables: the hardware, and the costs by type of node and in total.

    Args:
        types: of the nodes used.
        resources: of the run.
    """
    hardware = [
        [
            _letter(number),
            str(len(item.nodes)),
            item.hardware["brand"],
            item.hardware["cpu"],
            str(item.hardware["cores"]),
            fixed(item.hardware["clock_ghz"], 2),
            fixed(item.hardware["ram_gb"], 1),
            item.hardware.get("gpu") or NOTHING,
            item.hardware["os"],
        ]
        for number, item in enumerate(types)
    ]
    costs = [[f"type {_letter(number)} alone", *_figures(item.factors)] for number, item in enumerate(types)]
    costs.append(["all", *_figures(resources)])
    count = sum(len(item.nodes) for item in types)
    kinds = "1 type" if len(types) == 1 else f"{len(types)} types"
    nodes = "node" if count == 1 else "nodes"
    used = f"Indexing and searching ran on {count} {nodes} of {kinds}. {NOTHING}: none, or not known"
    note = (
        f"CPU times are totals over all processors: {short(resources.audio_seconds / 3600)} h of audio, "
        f"{short(resources.query_seconds)} s of query examples as they were given; PMU is the highest over nodes, GB = 1e9 "
        f"bytes; PL with lambda {short(resources.pl_lambda)}. A row of a type is what the whole would have taken on nodes of "
        f"that type alone, by its part of each stage's work. {NOTHING}: it had no part in that phase, or the figure is not "
        "known"
    )
    if gpu_lines := [f"{name} {text} {why}" for name, why, text, value in gpu_figures(resources) if value]:
        note += f". {'; '.join(gpu_lines)}"
    return [
        Table("Computing hardware", _HARDWARE, hardware, f"{used}.", texts=(0, 2, 3, 7, 8)),
        Table("Processing resources (SWS 2013, section 4.3)", _COSTS, costs, f"{note}."),
    ]


def _figures(results: Factors | Resources) -> list[str]:
    return [
        *map(short, (results.isf, results.ssf, results.ssf_hours)),
        *(fixed(value, 3) for value in (results.pmu_index_gb, results.pmu_search_gb)),
        *map(short, (results.pl, results.pl_hours)),
    ]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


JSON, PAGE, REJECTED_NAME = "report.json", "report.html", "rejected.parquet"


NODES_NAME = "nodes.parquet"
#: The scored references, if source places of queries are excluded.
SCORED = "references.csv"
FILES = (JSON, PAGE, REJECTED_NAME, NODES_NAME, MARKDOWN, LATEX, SCORED)


def publish_report(
    outcome: Outcome,
    chain_run: ChainRun,
    force: bool = False,
    made: Callable[[Outcome, ChainRun], ReportData] | None = None,
) -> ReportData | None:
    """Write rejected.parquet, nodes.parquet, the system's description, report.html, and at last report.json.

    report.json, written last, holds the fingerprint of all.

    Args:
        outcome: of the whole run.
        chain_run: that came to its last step, or stopped earlier by choice.
        force: write even if nothing was done and the report exists.
        made: makes the data; by default for a search.

    Returns:
        The report's data; None if the present report is up to date.
    """
    run = chain_run.run
    if chain_run.ended("summary") is None:
        return None  # stopped early by choice
    made_of = _report_fingerprint(chain_run)
    unchanged = outcome.tasks_done == 0 and not outcome.failures and run.exists(PAGE)
    if not force and unchanged and present_fingerprint(run) == made_of:
        return None
    data = replace((made or build_report)(outcome, chain_run), made_of=made_of)
    if outcome.tasks_done == 0:
        data = _with_history_of(run, data)
    parquet.publish(run, REJECTED_NAME, [rejected_rows(chain_run)], REJECTED)
    if chain_run.chain.inputs.corpus.own_places and (scored := chain_run.chain.inputs.corpus.references) is not None:
        table = io.BytesIO()  # for `swsdist score`, which gives the same values with these
        pyarrow.csv.write_csv(scored, table)
        run.write_bytes(SCORED, table.getvalue())
    described = system_description(data.types, data.resources)
    run.write_bytes(MARKDOWN, markdown(described).encode())
    run.write_bytes(LATEX, latex(described).encode())
    run.write_bytes(PAGE, render_page(data).encode())
    if data.accounts is not None:
        # Last, so that the driver's cost of the report is included.
        table = data.accounts.table((os.getpid(), sum(cpu_seconds())) if outcome.tasks_done else None)
        parquet.publish(run, NODES_NAME, [table], NODES)
    run.write_bytes(JSON, json.dumps(write_report_json(data), indent=1, ensure_ascii=False).encode())
    return data


def _report_fingerprint(chain_run: ChainRun) -> str:
    """Fingerprint of a report's contents: the plan's tables, the config, and the texts of queries, which are in no table."""
    inputs: CorpusInputs = chain_run.chain.inputs
    queries = inputs.corpus.queries if inputs.config.corpus.queries is not None else None
    terms = [] if queries is None else queries.select(["query_id", "term"]).to_pylist()
    sections = ((name, getattr(chain_run.config, name)) for name in type(chain_run.config).model_fields)
    settings = {name: section.matters() for name, section in sections if isinstance(section, Section)}
    chain, state, steps = chain_run.plan.tables()
    passing = chain_run.chain.passing  # exports are not in the report
    tables = {name: list(tasks) for name, tasks in steps.items() if name not in passing}
    return fingerprint("report", SCHEMA, chain, state, tables, settings, chain_run.config.system, terms)


def present_fingerprint(run: Folder, name: str = JSON) -> object:
    """The fingerprint of the present report, from its JSON file; None: there is none."""
    try:
        return json.loads(run.read_bytes(name))["made_of"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _with_history_of(run: Folder, data: ReportData) -> ReportData:
    """A report that is only written anew keeps what the run that did the work says of its execution: wall times, tasks done."""
    try:
        earlier = json.loads(run.read_bytes(JSON))
        times, stages = earlier["resources"], {row["stage"]: row for row in earlier["stages"]}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return data
    names = ("wall_s", "phase_wall_s", "executor_start_s", "executor_stop_s")
    kept = {name: times[name] for name in names if name in times}
    rows = tuple(_with_earlier_counts(row, stages.get(row.stage, {})) for row in data.stages)
    return replace(data, resources=replace(data.resources, **kept), stages=rows)


def _with_earlier_counts(row: StageRow, earlier: Mapping[str, Any]) -> StageRow:
    """The stage of an earlier report, if its counts of tasks and failures are the same."""
    if any(earlier.get(name) != getattr(row, name) for name in ("tasks", "failed")):
        return row
    return replace(row, **{name: earlier[name] for name in ("done", "skipped", "wall_s") if name in earlier})


def run_config(folder: str, sets: Sequence[str] = ()) -> Config:
    """The config of a run folder's plan, with absolute paths.

    Args:
        folder: local or `s3://`.
        sets: as of `swsdist.load_config`.

    Raises:
        StoreError: not a run folder, or written by another version of swsdist.
        ConfigError: invalid `sets`.
    """
    run = Folder(folder.rstrip("/"))
    return config_from_dict(config_of(run, plan_of(run)).model_dump(mode="json"), run.root, sets)


def from_run(name: str, path: str) -> ScoredSystem:
    """A run folder that has been scored, local or `s3://`.

    Raises:
        UserError: not scored.
    """
    return scored_of(name, load_chain_run(Folder(path)))


def scored_of(name: str, chain_run: ChainRun) -> ScoredSystem:
    """A plan that has been scored.

    Raises:
        UserError: not scored.
    """
    path = chain_run.run.path()
    result = chain_run.results("measures", Measured)
    if not result:
        raise families.NOT_FINISHED.of(UserError)(
            "this run was not scored", "give references (corpus.references) and run it again", where=path
        )
    measures = result[0].measures
    inputs: CorpusInputs = chain_run.chain.inputs
    return ScoredSystem.of(
        _about(name, path, chain_run, result[0]),
        protocol_of(chain_run.config.score),
        measures,
        pa.concat_tables(chain_run.read("terms")).sort_by("query_id"),
        lambda: chain_run.read("trials"),
        lambda: _det(chain_run),
        documents=_searched_seconds(inputs),
    )


def _searched_seconds(inputs: CorpusInputs) -> pa.Table:
    """Seconds of each document named by trials, which is its recording if documents are segments."""
    results = spans_of(inputs.store.open().documents(columns=COLUMNS))
    seconds = pc.if_else(pc.equal(results["channel"], 1), results["duration"], 0.0)
    return pa.table({"doc_id": results["doc_id"], "seconds": seconds})


def _about(name: str, path: str, chain_run: ChainRun, result: Measured) -> SystemInfo:
    """Facts of a run; date and versions are those of its report, if any."""
    config, inputs = chain_run.config, chain_run.chain.inputs
    report: dict[str, Any] = {}
    if chain_run.run.exists("report.json"):
        report = read_report_json(chain_run.run)
    frames = {} if inputs.store.manifest is None else inputs.store.manifest.libraries
    corpus, rules = config.corpus, protocol_of(config.score)
    return SystemInfo(
        name=name,
        kind="run",
        path=path,
        label=config.system,
        digest=combined(result_digests(chain_run)),
        corpus=tuple(str(item) for item in (corpus.documents, corpus.queries, corpus.references) if item is not None),
        point=(point := OperatingPoint(**result.point)),
        protocol_text=rules.describe(point),
        tolerance=rules.tolerance if rules.trials == "time" else None,
        detections=sum(bucket.rows for bucket in chain_run.results("scored", Bucket)),
        made=report.get("created"),
        versions={
            **{key: ", ".join(versions_of_library) for key, versions_of_library in frames.items()},
            **report.get("versions", {}),
        },
        settings=settings_of(config),
    )


def _det(chain_run: ChainRun) -> Det | None:
    """The DET curve of the run's report."""
    for curve in chain_run.read("det"):
        threshold, pmiss, pfa = (curve[column].to_numpy() for column in ("threshold", "pmiss", "pfa"))
        return Det(threshold, pmiss, pfa, ppndf(pfa), ppndf(pmiss))
    return None
