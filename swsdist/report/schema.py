"""`report.json`: its keys, their meaning, and how it is made. docs/reference/report-json.md is made from this module.

Version policy: within `swsdist-report/1` keys may be added; none is removed, renamed or changed in meaning. JSON has no
infinity and no NaN: such values are null.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Literal, TypedDict, cast

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

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
    digest: str = Field(description="SHA-256 over the rows of the run's tables, as `swsdist digest` prints")
    made_of: str = Field(description="fingerprint of the tables, the config and the queries' texts that it shows")
    protocol: Protocol | None = Field(description="operating point and rules of counting")
    measures: Measures | None = Field(description="how well the queries were found; null: not scored")
    mtwv_interval: list[float] | None = Field(
        description="of MTWV, 95 %, over queries at its threshold, as `swsdist compare` takes it; null: fewer than two queries "
        "have references"
    )
    unscored: str | None = Field(description="why `measures` is null")
    looked_at: list[str] = Field(
        description="what the decision about a query looked at: `own query`, `other queries`, `references`; evaluations that "
        "demand independent decisions allow the first only"
    )
    queries_from: QueriesFrom | None = Field(
        description="the corpus that the queries are of; null: the one that is searched"
    )
    warnings: list[str] = Field(description="what was odd in the inputs, and what was left out")
    isf: float | None = Field(description="indexing speed factor: CPU s per s of audio")
    ssf: float | None = Field(description="searching speed factor: CPU s / (query s x audio s)")
    ssf_hours: float | None = Field(description="the same with hours: 3600 x ssf")
    pmu_index_gb: float | None = Field(description="peak memory of indexing, highest over nodes, GB = 1e9 bytes")
    pmu_search_gb: float | None = Field(description="peak memory of searching, highest over nodes, GB")
    pl: float | None = Field(description="processing load: lambda ISF PMU_i + (1 - lambda) SSF PMU_s, with `ssf`")
    pl_hours: float | None = Field(description="the same with `ssf_hours`")
    pl_convention: str = Field(description="how `pl` takes SSF")
    hours: float = Field(description="hours of audio searched")
    queries: int = Field(description="queries searched")
    rejected: int = Field(description="inputs that could not be used, and tasks that failed")
    repeated_cpu: float = Field(description="CPU s of attempts that were lost and made again")
    counts: Counts = Field(description="how much there was of what")
    resources: Resources = Field(description="what the run cost")
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
        report[key] = _plain(named_otherwise[key] if key in named_otherwise else getattr(whose, key))
    return report


def _without_audio(hit: Hit) -> Hit:
    return dataclasses.replace(hit, audio=None, query_audio=None)


def _plain(value: object) -> object:
    """The same value in JSON's own types."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


_PREFACE = """\
# report.json

What a run measured and what it cost, in `report.json` of the run folder. This page is made from the code
(`swsdist.report.schema`), and a test holds the two together.

The key `schema` names the version, now `{schema}`. Within a version keys may be added; none is removed,
renamed or changed in meaning. Infinite and undefined values are null. Times are seconds, GB are 1e9 bytes. The
block `measures` is the same, byte for byte, however the work was cut and wherever it ran.

The JSON Schema, for a validator:

```python
from swsdist.report.schema import ReportJson

schema = ReportJson.model_json_schema()
print(schema["properties"]["ssf"]["description"])
```
"""


def reference_page() -> str:
    """The Markdown text of docs/reference/report-json.md."""
    schema = cast(_Schema, ReportJson.model_json_schema())
    parts = [_PREFACE.format(schema=SCHEMA), *_section("Top level", schema), *_below(schema, schema["$defs"])]
    return "\n".join(parts)


def _below(schema: _Schema, defined: Mapping[str, _Schema], above: str = "") -> Iterator[str]:
    """Sections of the objects that fields hold, and of those that these hold."""
    for key, field in schema["properties"].items():
        name = _reference(field)
        if name:
            yield from _section(f"`{above}{key}`" + (", each row" if "items" in field else ""), defined[name])
            yield from _below(defined[name], defined, f"{above}{key}.")


#: What is looked at of a JSON schema.
_Schema = TypedDict(
    "_Schema",
    {
        "$defs": dict[str, "_Schema"],
        "$ref": str,
        "additionalProperties": "bool | _Schema",
        "anyOf": list["_Schema"],
        "const": object,
        "description": str,
        "enum": list[object],
        "items": "_Schema",
        "properties": dict[str, "_Schema"],
        "type": str,
    },
    total=False,
)


def _section(title: str, schema: _Schema) -> Iterator[str]:
    yield f"## {title}\n"
    if title != "Top level":
        yield schema["description"].replace("\n", " ") + "\n"
    yield "| key | type | meaning |"
    yield "|---|---|---|"
    for key, field in schema["properties"].items():
        yield f"| `{key}` | {_type(field)} | {field['description']} |"
    yield ""


def _reference(field: _Schema) -> str | None:
    """The definition that a field, its rows or one of its alternatives refer to."""
    none: _Schema = {}
    for place in (field, field.get("items", none), *field.get("anyOf", ())):
        if "$ref" in place:
            return str(place["$ref"]).rsplit("/", 1)[-1]
    return None


def _type(field: _Schema) -> str:
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return "object"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    values = field.get("additionalProperties")
    if isinstance(values, dict):
        return f"object of {_type(values)}"
    return str(field["type"])
