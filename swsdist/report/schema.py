"""`report.json`: its keys and their meaning. docs/reference/report-json.md is generated from this module.

Version policy: within `swsdist-report/1` keys may be added; none is removed, renamed or changed in meaning. JSON has no
infinity and no NaN: such values are null.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from swsdist.core.plain import plain
from swsdist.report.data import (
    PL_CONVENTION,
    Counts,
    FusionReport,
    Hit,
    Measures,
    NodeRow,
    NodeType,
    Protocol,
    QueriesFrom,
    QueryRow,
    RejectedRow,
    ReportData,
    Resources,
    StageRow,
    thin_det,
)

SCHEMA = "swsdist-report/1"


class DetJson(BaseModel):
    """DET curve, thinned to what can be told apart on probit axes; three lists of one length."""

    points: int = Field(description="points before thinning")
    pfa: list[float] = Field(description="mean Pfa")
    pmiss: list[float] = Field(description="mean Pmiss")
    threshold: list[float | None] = Field(description="score threshold; null: infinite")


class ScoresJson(BaseModel):
    """Histograms of scores on common edges: n + 1 edges, n counts each."""

    edges: list[float] = Field(description="edges of the bins")
    target: list[int] = Field(description="detections that match a reference")
    nontarget: list[int] = Field(description="the others")


class ReportJson(BaseModel):
    """The top level of report.json."""

    model_config = ConfigDict(populate_by_name=True)

    version: Literal["swsdist-report/1"] = Field(alias="schema", description="version of this format")
    run: str = Field(description="name of the run")
    folder: str = Field(description="its folder")
    system: str = Field(description="name of the system")
    created: str = Field(description="when the report was made, ISO 8601, UTC")
    digest: str = Field(description="result digest: SHA-256 over the rows of the scored list and the measures")
    made_of: str = Field(description="fingerprint of the tables, the config and the queries' texts that it shows")
    protocol: Protocol | None = Field(description="operating point and rules of counting")
    measures: Measures | None = Field(description="how well the queries were found; null: not scored")
    mtwv_interval: list[float] | None = Field(
        description="of MTWV, 95 %, over queries at its threshold, as `swsdist compare` takes it; null: fewer than two queries "
        "have references"
    )
    unscored: str | None = Field(description="why `measures` is null")
    looked_at: list[str] = Field(
        description="what the decision about a query depends on: `own query`, `other queries`, `references`; evaluations that "
        "require independent decisions allow only the first"
    )
    queries_from: QueriesFrom | None = Field(
        description="the corpus that the queries are of; null: the one that is searched"
    )
    warnings: list[str] = Field(description="warnings")
    isf: float | None = Field(description="indexing speed factor: CPU s per s of audio")
    ssf: float | None = Field(description="searching speed factor: CPU s / (query s x audio s)")
    ssf_hours: float | None = Field(description="the same with hours: 3600 x ssf")
    query_cost: float | None = Field(description="CPU s of searching per query and hour of audio")
    pmu_index_gb: float | None = Field(description="peak memory of indexing, highest over nodes, GB = 1e9 bytes")
    pmu_search_gb: float | None = Field(description="peak memory of searching, highest over nodes, GB")
    pl: float | None = Field(description="processing load: lambda ISF PMU_i + (1 - lambda) SSF PMU_s, with `ssf`")
    pl_hours: float | None = Field(description="the same with `ssf_hours`")
    pl_convention: str = Field(description="how `pl` takes SSF")
    hours: float = Field(description="hours of audio searched")
    queries: int = Field(description="queries searched")
    rejected: int = Field(description="inputs that could not be used, and tasks that failed")
    repeated_cpu: float = Field(description="CPU s of lost attempts that were repeated")
    counts: Counts = Field(description="sizes of inputs and outputs")
    resources: Resources = Field(description="costs of the run")
    stages: list[StageRow] = Field(description="a row a stage")
    hardware: list[NodeType] = Field(description="a row a type of node")
    nodes: list[NodeRow] = Field(description="a row a node")
    per_query: list[QueryRow] = Field(description="a row a query")
    rejected_inputs: list[RejectedRow] = Field(description="a row a rejected input or failed task")
    det: DetJson | None = Field(description="DET curve; null: not scored")
    scores: ScoresJson | None = Field(description="histograms of target and non-target scores; null: not scored")
    hits: list[Hit] = Field(description="the best detections")
    fusion: FusionReport | None = Field(description="of the chain fuse: the systems and their weights; null: no fusion")
    versions: dict[str, str] = Field(description="versions of Python, swsdist and the libraries that it used")
    config_yaml: str = Field(description="the whole config, as YAML")


def write_report_json(data: ReportData) -> dict[str, object]:
    """The content of report.json: dicts, lists, strings, numbers, booleans and None only, ready for `json.dump`."""
    det = None if data.det is None else thin_det(data.det)
    named_otherwise = {
        "schema": SCHEMA,
        "run": data.name,
        "pl_convention": PL_CONVENTION,
        "queries": data.counts.queries,
        "rejected": data.counts.rejected,
        "repeated_cpu": data.resources.repeated_cpu_s,
        "per_query": data.queries,
        "rejected_inputs": data.rejected,
        "det": None if det is None or data.det is None else {"points": len(data.det), **vars(det)},
        "hits": [_without_audio(hit) for hit in data.hits],
    }
    report = {}
    for name, field in ReportJson.model_fields.items():
        key = field.alias or name
        whose = data if hasattr(data, key) else data.resources
        report[key] = plain(named_otherwise[key] if key in named_otherwise else getattr(whose, key))
    return report


def _without_audio(hit: Hit) -> Hit:
    return dataclasses.replace(hit, audio=None, query_audio=None)
