"""The data of a report, as plain frozen values, and so the keys of `report.json` with their meaning. The formulas of the
required resources are in `report.costs`.

Conventions: CPU and wall time in s, memory and bytes in GB = 1e9 bytes where the name says so, times of detections in
s, probabilities from 0 to 1, `None` for undefined values. Field descriptions are the text of
docs/reference/report-json.md.

`report.json` holds the fields of `ReportData` that have a meaning; its JSON schema and docs/reference/report-json.md are
made of them. Version policy: within `swsdist-report/1` keys may be added; none is removed, renamed or changed in meaning.
JSON has no infinity and no NaN: such values are null.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, create_model
from pydantic.fields import FieldInfo

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.fingerprint import fields as dataclass_values
from swsdist.core.fingerprint import plain
from swsdist.io.filesystem import Folder
from swsdist.registry.entries import Dependency, Quantity
from swsdist.registry.registries import quantities
from swsdist.report.costs import (
    Costs,
    TypeCost,
    indexing_speed_factor,
    processing_load,
    query_cost,
    searching_speed_factor,
)
from swsdist.score.measures.curve import Curve
from swsdist.score.measures.det import det_of

Calibration = Literal["none", "crossfit", "oracle", "file", "own"]
Verdict = Literal["hit", "false alarm", "unknown"]

#: The unit of SSF in `pl`; `pl_hours` uses 3600 times as much.
PL_CONVENTION = "SSF in CPU seconds per (query second x audio second)"


#: The version of report.json.
SCHEMA = "swsdist-report/1"


def _says(text: str, key: str | None = None) -> object:
    """What a field means, and its key in report.json; None: its name."""
    return Field(description=text, alias=key)


def _from(value: Callable[[ReportData], object]) -> Any:
    """A field that is taken from others."""
    return field(init=False, metadata={"value": value})


def _list_of(item: Any, dtype: type[np.generic]) -> PlainValidator:
    """An array, in JSON a list."""
    return PlainValidator(lambda values: np.array(values, dtype), json_schema_input_type=list[item])


_Floats = Annotated[Floats, _list_of(float, np.float64), PlainSerializer(plain)]
_Thresholds = Annotated[Floats, _list_of(float | None, np.float64), PlainSerializer(plain)]
_Counts = Annotated[Ints, _list_of(int, np.int64), PlainSerializer(plain)]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The operating point and the rules of counting."""

    name: Annotated[str, _says("name of the protocol, as in the config")]
    beta: Annotated[float, _says("weight of false alarms in TWV = 1 - (Pmiss + beta Pfa)")]
    tolerance: Annotated[
        float | None, _says("s between a detection's mid-point and the reference's span; null: trials are not of time")
    ]
    trials_per_second: Annotated[float, _says("trials a second of audio")]
    trials: Annotated[int, _says("N, trials of each query")]
    trials_are: Annotated[Literal["time", "segment", "document"], _says("what a trial is")] = "time"
    seconds: Annotated[float, _says("T, seconds of audio that N was taken from")]
    conventions: Annotated[str, _says("the program or evaluation whose conventions were followed")]


def quantity_of(key: str) -> Quantity:
    """The metadata of a measure; minimal if it is no longer registered."""
    return quantities().get(key, Quantity(key))


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The measures, independent of the partition and place of the work."""

    mtwv: Annotated[float | None, _says("maximum term-weighted value; null: no curve")]
    mtwv_threshold: Annotated[float | None, _says("score threshold at which it is reached")]
    mtwv_pmiss: Annotated[float | None, _says("mean Pmiss at that threshold")]
    mtwv_pfa: Annotated[float | None, _says("mean Pfa at that threshold")]
    atwv: Annotated[float | None, _says("actual term-weighted value, of the decisions; null: no decisions")]
    atwv_pmiss: Annotated[float | None, _says("mean Pmiss of the decisions")]
    atwv_pfa: Annotated[float | None, _says("mean Pfa of the decisions")]
    atwv_thresholds: Annotated[
        tuple[float | None, ...],
        _says(
            "thresholds of the decisions: one, or one per fold with crossfit, or none; null: infinite, or a fold "
            "without queries, or without data to fit, which is decided NO"
        ),
    ] = ()
    calibration: Annotated[
        Calibration,
        _says(
            "source of the fit of the decisions: none; crossfit: other queries; oracle: the scored references, so "
            "ATWV is optimistic; file: other data; own: not fitted, threshold of the last calibration step"
        ),
    ]
    further: Annotated[
        Mapping[str, float | None], _says("all other measures by name, as `swsdist score --all-measures` has them")
    ] = field(default_factory=dict)

    @classmethod
    def of(
        cls, values: Mapping[str, float | None], *, calibration: Calibration, thresholds: Sequence[float | None] = ()
    ) -> Measures:
        """From all values of a list (`swsdist.score.events.values`).

        Args:
            values: by name; without decisions, measures of decisions are missing.
            calibration: source of the fitted decisions.
            thresholds: that decided.
        """
        single = ("mtwv", "mtwv_threshold", "mtwv_pmiss", "mtwv_pfa", "atwv", "atwv_pmiss", "atwv_pfa")
        return cls(
            **{name: values.get(name) for name in single},
            atwv_thresholds=tuple(thresholds),
            calibration=calibration,
            further={name: value for name, value in values.items() if name not in single},
        )

    def values(self) -> dict[str, float | None]:
        """All measures by name."""
        return {"mtwv": self.mtwv, "atwv": self.atwv, **self.further}

    def rows(self) -> Iterator[tuple[Quantity, float | None, float | None, float | None, float | None]]:
        """The further measures: metadata, value, threshold, Pmiss and Pfa, if defined."""
        for key, value in self.further.items():
            if (known := quantity_of(key)).of not in self.further:
                threshold, pmiss, pfa = (
                    self.further.get(f"{key}_{beside}") for beside in ("threshold", "pmiss", "pfa")
                )
                yield known, value, threshold, pmiss, pfa


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The costs of a run; ISF, SSF and PL are derived from them."""

    index_cpu_s: Annotated[
        float | None,
        _says(
            "CPU s on the documents before any query: decode, features, write, fitted models, indexes of first passes; null: "
            "unknown for a compacted store"
        ),
    ]
    search_cpu_s: Annotated[
        float, _says("CPU s of searching: query features, prepare, search, reduce, normalise; not scoring")
    ]
    score_cpu_s: Annotated[float, _says("CPU s of scoring")]
    warm_up_cpu_s: Annotated[float, _says("CPU s of starting workers and compiling; in no other figure")] = 0.0
    repeated_cpu_s: Annotated[float, _says("CPU s of lost attempts that were repeated; in no other figure")] = 0.0
    queries: Annotated[int, _says("queries searched")] = 0
    query_seconds: Annotated[float, _says("s of all searched query examples, before trimming; 0 of written queries")]
    searched_query_seconds: Annotated[float, _says("the same after trimming")]
    audio_seconds: Annotated[float, _says("s of the documents")]
    pmu_index_gb: Annotated[float | None, _says("peak memory of indexing, highest over nodes, GB")]
    pmu_search_gb: Annotated[float | None, _says("peak memory of searching, highest over nodes, GB")]
    index_gpu_s: Annotated[float, _says("s that tasks of indexing held a GPU; in no other figure")] = 0.0
    search_gpu_s: Annotated[float, _says("s that tasks of searching held a GPU; in no other figure")] = 0.0
    gpu_index_gb: Annotated[
        float | None, _says("GPU memory in use by any program while indexing, highest over nodes, GB; null: no GPU")
    ] = None
    gpu_search_gb: Annotated[float | None, _says("the same while searching")] = None
    pl_lambda: Annotated[float, _says("weight of indexing in PL")] = 0.1
    wall_s: Annotated[float, _says("wall s from the command's start to the report")]
    phase_wall_s: Annotated[Mapping[str, float], _says("wall s of each phase")] = field(default_factory=dict)
    executor_start_s: Annotated[float | None, _says("wall s until workers were ready; null: no workers")] = None
    executor_stop_s: Annotated[float | None, _says("wall s of their shutdown; null: no workers")] = None

    @property
    def isf(self) -> float | None:
        """Indexing speed factor."""
        if self.index_cpu_s is None:
            return None
        return indexing_speed_factor(self.index_cpu_s, self.audio_seconds)

    @property
    def ssf(self) -> float | None:
        """Searching speed factor, 1/s."""
        return searching_speed_factor(self.search_cpu_s, self.query_seconds, self.audio_seconds)

    @property
    def query_cost(self) -> float | None:
        """CPU s of searching per query and hour of audio."""
        return query_cost(self.search_cpu_s, self.queries, self.audio_seconds)

    @property
    def ssf_hours(self) -> float | None:
        """Searching speed factor with all times in hours: 3600 times `ssf`."""
        return None if self.ssf is None else 3600 * self.ssf

    @property
    def pl(self) -> float | None:
        """Processing load with `ssf`."""
        return processing_load(self.isf, self.ssf, self.pmu_index_gb, self.pmu_search_gb, self.pl_lambda)

    @property
    def pl_hours(self) -> float | None:
        """Processing load with `ssf_hours`."""
        return processing_load(self.isf, self.ssf_hours, self.pmu_index_gb, self.pmu_search_gb, self.pl_lambda)


@dataclass(frozen=True, kw_only=True)
class LeftOutRow:
    """What was left out of the words of documents, or is doubted, for one reason."""

    reason: Annotated[str, _says("its code (`swsdist explain CODE`)")]
    items: Annotated[int, _says("number of texts, words, cues or annotations")]
    seconds: Annotated[float, _says("s of sound of a recogniser's texts")]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Sizes of the run's inputs and outputs."""

    documents: Annotated[int, _says("documents searched")]
    speech: Annotated[float | None, _says("part of their audio in which there is speech, 0 to 1; null: not known")] = (
        None
    )
    languages: Annotated[
        Mapping[str, int], _says("documents by the language that a recogniser was given or detected; empty: unknown")
    ] = field(default_factory=dict)
    left_out: Annotated[tuple[LeftOutRow, ...], _says("items left out of words, or doubted: a row a reason")] = ()
    queries: Annotated[int, _says("queries searched")]
    examples: Annotated[int, _says("query examples searched")]
    trimmed: Annotated[int, _says("examples that were trimmed to their speech")] = 0
    detections: Annotated[int, _says("detections in the scored list")]
    references: Annotated[int | None, _says("true occurrences; null: no references were given")]
    rejected: Annotated[int, _says("inputs and tasks in rejected.parquet")]
    best: Annotated[int, _says("best hits of the exact search that were looked for (`first_pass.verify`)")] = 0
    best_found: Annotated[int, _says("of these, found with the first pass")] = 0


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """One stage."""

    stage: Annotated[str, _says("name of the stage")]
    tasks: Annotated[int, _says("tasks planned")]
    done: Annotated[int, _says("tasks done by the last call that did any")]
    skipped: Annotated[int, _says("tasks done by earlier calls")]
    failed: Annotated[int, _says("tasks that failed finally")]
    cpu_s: Annotated[float, _says("CPU s of all its tasks, earlier calls included")]
    wall_s: Annotated[float, _says("wall s from first task to last, in that call")]
    bytes: Annotated[int, _says("bytes written")]
    peak_gb: Annotated[float | None, _says("highest memory of a task, GB")]
    gpu_s: Annotated[float, _says("s that its tasks held a GPU")] = 0.0
    gpu_gb: Annotated[
        float | None, _says("GPU memory in use by any program during its tasks, highest over nodes, GB; null: no GPU")
    ] = None


@dataclass(frozen=True, kw_only=True)
class NodeType:
    """One type of node, with the hardware facts of section 4.3 of the SWS 2013 measures."""

    nodes: Annotated[int, _says("number of nodes of this type")]
    brand: Annotated[str, _says("brand and model of the computer")]
    cpu: Annotated[str, _says("CPU model")]
    cores: Annotated[int, _says("CPU cores of a node")]
    clock_ghz: Annotated[float | None, _says("clock, GHz")]
    ram_gb: Annotated[float, _says("memory of a node, GB")]
    os: Annotated[str, _says("operating system")]
    gpu: Annotated[str | None, _says("GPUs, where used")] = None


@dataclass(frozen=True, kw_only=True)
class NodeRow:
    """One node. Peaks are sums of PSS over the run's processes there."""

    host: Annotated[str, _says("host name or address")]
    tasks: Annotated[int, _says("tasks done there")]
    cpu_s: Annotated[float, _says("CPU s spent there")]
    peak_index_gb: Annotated[float | None, _says("peak memory while indexing, GB")]
    peak_search_gb: Annotated[float | None, _says("peak memory while searching, GB")]
    gpu_s: Annotated[float, _says("s that tasks held a GPU there")] = 0.0
    gpu_index_gb: Annotated[
        float | None, _says("peak memory of its GPUs, in use by any program, while indexing, GB; null: no GPU")
    ] = None
    gpu_search_gb: Annotated[float | None, _says("the same while searching")] = None


@dataclass(frozen=True, kw_only=True)
class RejectedRow:
    """One rejected input, or one failed task."""

    kind: Annotated[str, _says("document, item (of a transcript), query or task")]
    id: Annotated[str, _says("its id")]
    part: Annotated[int | None, _says("channel of a document, example of a query")] = None
    path: Annotated[str | None, _says("its file")] = None
    reason: Annotated[str, _says("its code (`swsdist explain CODE`)")]
    message: Annotated[str, _says("the error message")]
    remedy: Annotated[str | None, _says("the remedy")] = None


@dataclass(frozen=True, kw_only=True)
class QueryRow:
    """One query. Without references, or for a query without any, the counts and rates are null."""

    query_id: Annotated[str, _says("the query")]
    term: Annotated[str | None, _says("its text, where known")] = None
    duration: Annotated[float | None, _says("s of its examples that were searched")] = None
    cut: Annotated[float | None, _says("s trimmed off around the speech of its examples")] = None
    detections: Annotated[int, _says("its detections in the scored list")]
    ntrue: Annotated[int | None, _says("true occurrences")] = None
    ncorr: Annotated[int | None, _says("hits of the decisions")] = None
    nfa: Annotated[int | None, _says("false alarms of the decisions")] = None
    nmiss: Annotated[int | None, _says("misses of the decisions")] = None
    pmiss: Annotated[float | None, _says("nmiss / ntrue")] = None
    pfa: Annotated[float | None, _says("nfa / (N - ntrue)")] = None
    twv: Annotated[float | None, _says("1 - (pmiss + beta pfa)")] = None
    best_twv: Annotated[float | None, _says("its TWV at its best threshold")] = None


@dataclass(frozen=True, kw_only=True)
class Hit:
    """One of the best detections, with sound. `audio`, `query_audio` are data URIs (`data:audio/...`)."""

    query_id: Annotated[str, _says("the query")]
    term: Annotated[str | None, _says("its text, where known")] = None
    doc_id: Annotated[str, _says("the document")]
    channel: Annotated[int, _says("its channel, from 1")] = 1
    start: Annotated[float, _says("s")]
    end: Annotated[float, _says("s")]
    score: Annotated[float | None, _says("higher is more likely")]
    verdict: Annotated[Verdict, _says("unknown: there are no references")]
    audio: Annotated[str | None, _says("always null in report.json")] = None
    query_audio: Annotated[str | None, _says("always null in report.json")] = None


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Gains of a fusion over one of its systems; positive is better. Intervals: 95 %, over queries."""

    mtwv: Annotated[float | None, _says("difference of MTWV; null: not scored")] = None
    mtwv_low: Annotated[float | None, _says("lower end of its interval")] = None
    mtwv_high: Annotated[float | None, _says("upper end")] = None
    cnxe_min: Annotated[float | None, _says("reduction of min Cnxe")] = None
    cnxe_min_low: Annotated[float | None, _says("lower end of its interval")] = None
    cnxe_min_high: Annotated[float | None, _says("upper end")] = None
    cnxe_min_p: Annotated[float | None, _says("p of a paired test by resampling queries")] = None


@dataclass(frozen=True, kw_only=True)
class FusedSystemRow:
    """One system of a fusion."""

    system: Annotated[str, _says("its name in the fusion")]
    run: Annotated[str, _says("its run folder")]
    weight: Annotated[float | None, _says("weight of its score, mean over folds; null: not fitted")]
    mark: Annotated[float | None, _says("offset where it has no detection, mean over folds; null: none")] = None
    given: Annotated[float, _says("part of the joined detections that it made, 0 to 1; its other scores are imputed")]
    alone: Annotated[float, _says("part of the joined detections that only it made")]
    mtwv: Annotated[float | None, _says("its MTWV")] = None
    atwv: Annotated[float | None, _says("its ATWV")] = None
    auc: Annotated[float | None, _says("its AUC")] = None
    cnxe_min: Annotated[float | None, _says("its min Cnxe")] = None
    gain: Annotated[Gain | None, _says("gain of the fusion over it; null: not scored")] = None


@dataclass(frozen=True, kw_only=True)
class FusionReport:
    """Which systems were fused, and how."""

    missing: Annotated[str, _says("imputation of missing scores: average, least or rescore")]
    between_queries: Annotated[
        bool,
        _says(
            "only the best of overlapping detections of different queries was kept, so decisions depend on other queries"
        ),
    ]
    joined: Annotated[int, _says("joined detections: places detected by any system")]
    overlapping: Annotated[int, _says("places suppressed before by a better place of the same query")]
    outdone: Annotated[int, _says("detections suppressed at the end by a better one of another query")]
    offset: Annotated[float | None, _says("offset of the log-likelihood ratio, mean over folds; null: not fitted")]
    systems: Annotated[tuple[FusedSystemRow, ...], _says("a row a system")]


@dataclass(frozen=True)
class DetCurve:
    """DET curve, in report.json thinned to what can be told apart on probit axes; three lists of one length."""

    pmiss: Annotated[_Floats, _says("mean Pmiss")]
    pfa: Annotated[_Floats, _says("mean Pfa")]
    threshold: Annotated[_Thresholds, _says("score threshold; null: infinite")]
    points: Annotated[int, _says("points before thinning")] = 0

    def __len__(self) -> int:
        return len(self.pfa)


@dataclass(frozen=True)
class ScoreHistogram:
    """Histograms of scores on common edges: n + 1 edges, n counts each."""

    edges: Annotated[_Floats, _says("edges of the bins")]
    target: Annotated[_Counts, _says("detections that match a reference")]
    nontarget: Annotated[_Counts, _says("the others")]


@dataclass(frozen=True, kw_only=True)
class QueriesFrom:
    """The corpus of the queries, if not the searched one."""

    documents: Annotated[str, _says("path of its documents")]
    same_speakers: Annotated[bool, _says("whether speakers with the same name are the same people in both")]
    statistics: Annotated[
        Literal["theirs", "ours", "none"],
        _says("source of the means and variances that normalise the queries: this corpus, the searched one, or none"),
    ]
    taken_from: Annotated[int, _says("number of its documents for these statistics")]


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The data of a run's report: the top level of report.json, in its order."""

    version: Annotated[Literal["swsdist-report/1"], _says("version of this format", "schema")] = _from(lambda _: SCHEMA)
    name: Annotated[str, _says("name of the run", "run")]
    folder: Annotated[str, _says("its folder")]
    system: Annotated[str, _says("name of the system")]
    created: Annotated[str, _says("when the report was made, ISO 8601, UTC")]
    digest: Annotated[str, _says("result digest: SHA-256 over the rows of the scored list and the measures")]
    made_of: Annotated[str, _says("fingerprint of the tables, the config and the queries' texts that it shows")] = ""
    protocol: Annotated[Protocol | None, _says("operating point and rules of counting")] = None
    measures: Annotated[Measures | None, _says("how well the queries were found; null: not scored")] = None
    mtwv_interval: Annotated[
        tuple[float, ...] | None,
        _says(
            "of MTWV, 95 %, over queries at its threshold, as `swsdist compare` takes it; null: fewer than two queries have "
            "references"
        ),
    ] = None
    unscored: Annotated[str | None, _says("why `measures` is null")] = None
    looked_at: Annotated[
        tuple[Dependency, ...],
        _says(
            "what the decision about a query depends on; evaluations that require independent decisions allow only the first"
        ),
    ] = ("own query",)
    queries_from: Annotated[
        QueriesFrom | None, _says("the corpus that the queries are of; null: the one that is searched")
    ] = None
    warnings: Annotated[tuple[str, ...], _says("warnings")] = ()
    isf: Annotated[float | None, _says("indexing speed factor: CPU s per s of audio")] = _from(
        lambda data: data.resources.isf
    )
    ssf: Annotated[float | None, _says("searching speed factor: CPU s / (query s x audio s)")] = _from(
        lambda data: data.resources.ssf
    )
    ssf_hours: Annotated[float | None, _says("the same with hours: 3600 x ssf")] = _from(
        lambda data: data.resources.ssf_hours
    )
    query_cost: Annotated[float | None, _says("CPU s of searching per query and hour of audio")] = _from(
        lambda data: data.resources.query_cost
    )
    pmu_index_gb: Annotated[float | None, _says("peak memory of indexing, highest over nodes, GB = 1e9 bytes")] = _from(
        lambda data: data.resources.pmu_index_gb
    )
    pmu_search_gb: Annotated[float | None, _says("peak memory of searching, highest over nodes, GB")] = _from(
        lambda data: data.resources.pmu_search_gb
    )
    pl: Annotated[float | None, _says("processing load: lambda ISF PMU_i + (1 - lambda) SSF PMU_s, with `ssf`")] = (
        _from(lambda data: data.resources.pl)
    )
    pl_hours: Annotated[float | None, _says("the same with `ssf_hours`")] = _from(lambda data: data.resources.pl_hours)
    pl_convention: Annotated[str, _says("how `pl` takes SSF")] = _from(lambda _: PL_CONVENTION)
    hours: Annotated[float, _says("hours of audio searched")] = _from(lambda data: data.resources.audio_seconds / 3600)
    number_of_queries: Annotated[int, _says("queries searched", "queries")] = _from(lambda data: data.counts.queries)
    number_of_rejected: Annotated[int, _says("inputs that could not be used, and tasks that failed", "rejected")] = (
        _from(lambda data: data.counts.rejected)
    )
    repeated_cpu: Annotated[float, _says("CPU s of lost attempts that were repeated")] = _from(
        lambda data: data.resources.repeated_cpu_s
    )
    counts: Annotated[Counts, _says("sizes of inputs and outputs")]
    resources: Annotated[Resources, _says("costs of the run")]
    stages: Annotated[tuple[StageRow, ...], _says("a row a stage")] = ()
    hardware: Annotated[tuple[NodeType, ...], _says("a row a type of node")] = ()
    nodes: Annotated[tuple[NodeRow, ...], _says("a row a node")] = ()
    queries: Annotated[tuple[QueryRow, ...], _says("a row a query", "per_query")] = ()
    rejected: Annotated[tuple[RejectedRow, ...], _says("a row a rejected input or failed task", "rejected_inputs")] = ()
    det: Annotated[DetCurve | None, _says("DET curve; null: not scored")] = None
    scores: Annotated[ScoreHistogram | None, _says("histograms of target and non-target scores; null: not scored")] = (
        None
    )
    hits: Annotated[tuple[Hit, ...], _says("the best detections")] = ()
    fusion: Annotated[
        FusionReport | None, _says("of the chain fuse: the systems and their weights; null: no fusion")
    ] = None
    versions: Annotated[Mapping[str, str], _says("versions of Python, swsdist and the libraries that it used")]
    config_yaml: Annotated[str, _says("the whole config, as YAML")]
    #: For `nodes.parquet` and the timeline; and the types of nodes with their factors. Not in report.json.
    accounts: Costs | None = None
    types: tuple[TypeCost, ...] = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            if "value" in each.metadata:
                object.__setattr__(self, each.name, each.metadata["value"](self))

    @property
    def page_path(self) -> str:
        """The path of the page."""
        return self.folder.rstrip("/") + "/report.html"


def thin_det(curve: DetCurve, step: float = 0.005) -> DetCurve:
    """Fewer points of a curve that looks the same on probit axes.

    A point is dropped if it is in the same square of `step` probits as the previous one; the first and the last are kept.
    A monotone curve over 8 x 8 probits keeps some 3000 points at most, whatever its length.
    """
    points = det_of([Curve(curve.threshold, curve.pmiss, curve.pfa, curve.pmiss)], least=1e-9, step=step)
    return DetCurve(points.pmiss, points.pfa, points.threshold, len(curve))


_HINTS = get_type_hints(ReportData, include_extras=True)
#: What the fields of report.json mean, by name, in its order.
_FIELDS: dict[str, FieldInfo] = {
    name: hint.__metadata__[0] for name, hint in _HINTS.items() if get_origin(hint) is Annotated
}
_TYPES: dict[str, Any] = {name: (_HINTS[name], ...) for name in _FIELDS}
ReportJson: type[BaseModel] = create_model("ReportJson", __config__=ConfigDict(populate_by_name=True), **_TYPES)


def read_report_json(run: Folder) -> dict[str, Any]:
    """The content of a run's `report.json`.

    Raises:
        UserError: there is none.
        StoreError: it is damaged.
    """
    try:
        content = json.loads(run.read_bytes("report.json"))
        if not isinstance(content["resources"], dict) or not isinstance(content["versions"], dict):
            raise TypeError("it is no report")
    except FileNotFoundError:
        raise families.MISSING_FILE("no report.json", "name the folder of a finished run", where=run.path()) from None
    except (ValueError, KeyError, TypeError) as error:
        raise families.DAMAGED_FILE(
            "report.json is damaged ({error})",
            "write it anew: `swsdist report {run!q}`",
            where=run.path("report.json"),
            error=error,
            run=run.path(),
        ) from None
    return dict(content)


def write_report_json(data: ReportData) -> dict[str, object]:
    """The content of report.json: dicts, lists, strings, numbers, booleans and None only, ready for `json.dump`."""
    det = None if data.det is None else thin_det(data.det)
    hits = tuple(dataclasses.replace(hit, audio=None, query_audio=None) for hit in data.hits)
    shown = dataclasses.replace(data, det=det, hits=hits)
    report = {field.alias or name: plain(getattr(shown, name)) for name, field in _FIELDS.items()}
    if det is not None:
        report["det"] = {"points": det.points, **dataclass_values(det)}
    return report
