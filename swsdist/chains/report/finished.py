"""Finished runs, local or `s3://`: their configs, and their scored systems for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.report.reporting import result_digests
from swsdist.config import Config, config_from_dict
from swsdist.core.codes import pipeline as codes
from swsdist.evaluation.scored_system import ScoredSystem
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.status import config_of, load_chain_run, plan_of
from swsdist.report.schema import read_report_json
from swsdist.score.compare.results import SystemInfo
from swsdist.score.measures.det import Det, ppndf
from swsdist.score.measures.protocol import OperatingPoint, protocol_of
from swsdist.stages.buckets import Bucket, Measured
from swsdist.stages.inputs.corpus import COLUMNS, spans_of
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.inputs.settings import settings_of
from swsdist.store.reading import combined


def run_config(folder: str, sets: Sequence[str] = ()) -> Config:
    """The config of a run folder's plan, with absolute paths.

    Args:
        folder: local or `s3://`.
        sets: as of `swsdist.config.load_config`.

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
        raise codes.UNSCORED_RUN(where=path)
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
