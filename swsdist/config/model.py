"""The model of a config: keys, defaults and descriptions.

`swsdist init` writes it as commented YAML, and docs/reference/config.md is generated from it. An `execution_only` field changes
how work is split or where it runs, never the results, and is in no fingerprint.
"""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import (
    Field,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from swsdist.config.search import Keep, Search
from swsdist.config.section import (
    ONE_OR_MORE,
    ChainOptions,
    IsPath,
    NameIn,
    Section,
    error_for_pydantic,
    execution_only,
)
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import SLOTS
from swsdist.core.needs import Needs
from swsdist.core.text import suggestion
from swsdist.registry.entries import Configured, ExecutorEntry, StepEntry, is_chain, misfit, statistics_wanted, unfitted
from swsdist.registry.entries import Score as ScoreKind
from swsdist.registry.registries import (
    CALIBRATION,
    CHAINS,
    EXECUTORS,
    EXPORTS,
    FEATURES,
    METHODS,
    PROTOCOLS,
    TRANSFORMS,
)

#: Steps that people call z-norm.
_Z_NORM = "; did you mean q-norm (z-norm per query), or zt-norm (with a cohort)?"


class Calibrate(Section):
    """Calibration of scores across queries, and the decision threshold."""

    steps: tuple[str, ...] = Field(
        ("q-norm",),
        description="steps, in order: "
        + ", ".join(f"{name} ({entry.says})" for name, entry in CALIBRATION.available.items()),
    )
    options: dict[str, dict[str, object]] = Field(
        default_factory=dict, description="options of steps, for example {kst: {alpha: 2}}"
    )
    alpha: PositiveFloat = Field(
        1.5, description="kst, sto: factor on the sum of probabilities, the expected occurrences"
    )
    threshold: Literal["own", "fitted"] = Field(
        "own",
        description="own: the last step's threshold, if it has one (llr, at-prior, kst, sto); fitted: a fitted threshold",
    )
    fit: Literal["none", "crossfit", "oracle"] | IsPath = Field(
        "crossfit",
        description="fit thresholds and fitted steps by: crossfit (cross-validation over queries), oracle (the scored data), "
        "a fitted file or a run folder, none",
    )
    folds: Annotated[int, Field(ge=2, le=1000)] = Field(5, description="query folds of crossfit")

    def entries(self) -> dict[str, StepEntry]:
        """The registry entry of each step.

        Raises:
            ConfigError: there is no such step.
        """
        return {name: CALIBRATION[name] for name in self.steps}

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The steps before the first fitted one; they need no aligned lists."""
        return self.steps[: unfitted(self.steps, self.entries())]

    @property
    def fitted(self) -> tuple[str, ...]:
        """The other steps; the first of them is fitted."""
        return self.steps[len(self.unfitted) :]

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the candidate statistics that the steps need."""
        return statistics_wanted(self.steps, self.entries())

    @field_validator("steps")
    @classmethod
    def _steps_are_registered(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in CALIBRATION:
                z_norm = name.lower().replace("-", "").replace("_", "") == "znorm"
                hint = _Z_NORM if z_norm else suggestion(name, CALIBRATION)
                raise (
                    families.UNKNOWN_NAME.of(ConfigError)
                    .saying("no calibration step {step}{meant}", "name one of {steps}")
                    .invalid(step=name, meant=hint, steps=", ".join(CALIBRATION))
                )
        return names

    @model_validator(mode="after")
    def _options_are_of_steps(self) -> Calibrate:
        if others := sorted(set(self.options) - set(self.steps)):
            raise families.UNUSED_OPTION.saying(
                "options of {step}, which is not among the steps", "add the step, or remove the options"
            ).invalid(step=others[0])
        return self


def misfit_of(
    calibrate: Calibrate, score: ScoreKind, *, references: bool, joined: bool = False, where: str | None = None
) -> ConfigError | None:
    """The error in the steps of a run: they do not fit together, or a fitted step has nothing to be fitted on.

    Args:
        calibrate: the section.
        score: the kind of score that the search gives.
        references: whether there are references to fit on.
        joined: whether the lists are merged from several systems.
        where: of the error.
    """
    if reason := misfit(calibrate.steps, calibrate.entries(), score, joined=joined):
        return families.MISMATCH.of(ConfigError)(
            "the calibration steps do not fit: {reason}", "change calibrate.steps", where=where, reason=reason
        )
    if not calibrate.fitted:
        return None
    first = calibrate.fitted[0]
    if calibrate.fit == "none":
        lacks, remedy = "calibrate.fit is none", "calibrate.fit: crossfit"
    elif calibrate.fit in ("crossfit", "oracle") and not references:
        lacks, remedy = "there are no references", "corpus.references, or calibrate.fit to a fitted file"
    else:
        return None
    return families.UNFITTED(
        "the step {step} must be fitted, and {lacks}",
        "set {remedy}, or remove the step",
        where=where,
        step=first,
        lacks=lacks,
        remedy=remedy,
    )


class Alignments(Section):
    """Time-aligned transcripts of the documents, to train models on or to search as text."""

    words: IsPath | None = Field(None, description="CTM of words")
    phones: IsPath | None = Field(None, description="CTM of phones")


#: Documents by name, or a table of them.
PartOf = Annotated[tuple[str, ...], Field(min_length=1)] | IsPath


class Parts(Section):
    """Parts of the documents that models may be trained or fitted on. A search always covers all documents."""

    train: PartOf | None = Field(None, description="list of doc_ids, or table with column doc_id")
    development: PartOf | None = Field(None, description="as train")
    test: PartOf | None = Field(None, description="as train")


class QueriesFrom(Section):
    """The corpus of the queries, if it is another one: a section, or the path of its corpus file."""

    documents: IsPath | None = Field(
        None, description="documents of that corpus, as corpus.documents; queries refer to their doc_ids"
    )
    audio: IsPath | None = Field(None, description="as corpus.audio")
    prefer: tuple[str, ...] = Field((), description="as corpus.prefer")
    speakers: IsPath | None = Field(None, description="as corpus.speakers")
    same_speakers: bool = Field(False, description="equal speaker names are the same person in both corpora")
    statistics: Literal["theirs", "ours"] = Field(
        "theirs",
        description="normalise queries by the statistics of that corpus (see search.queries_by), or of the searched one",
    )
    hours: PositiveFloat = Field(
        0.5, description="most audio used for these statistics, and for those of each query speaker, h"
    )

    @model_validator(mode="after")
    def _of_documents(self) -> QueriesFrom:
        changed = [name for name, field in QueriesFrom.model_fields.items() if getattr(self, name) != field.default]
        if self.documents is None and changed:
            raise (
                families.MISSING_INPUT.of(ConfigError)
                .saying("queries_from.{name} is given, but not queries_from.documents", "give queries_from.documents")
                .invalid(name=changed[0])
            )
        return self


#: Named sets of rules of counting.
Protocol = Annotated[str, NameIn(PROTOCOLS)]


class Corpus(Section):
    """Documents, queries and, optionally, references; or the path of a corpus file.

    A corpus file is YAML with the keys of this section; its paths are relative to itself.
    """

    documents: IsPath = Field(
        description="table (CSV or Parquet: doc_id, path; optionally channel, duration, speaker), folder of audio, recording, "
        "Kaldi data folder or wav.scp, lhotse manifest, Hugging Face data set (save_to_disk), or NIST ECF"
    )
    audio: IsPath | None = Field(
        None,
        description="base folder of relative paths in a wav.scp, manifest or ECF; default: folder of the list",
    )
    queries: IsPath | None = Field(
        None,
        description="table (query_id, path or doc_id; optionally example, channel, start, end, speaker, term), folder of "
        "audio, lhotse manifest, Hugging Face data set, glossary, or NIST TLIST or KWLIST",
    )
    spoken: IsPath | None = Field(
        None,
        description="spoken examples for a TLIST or KWLIST, as `queries`; query_id is the term's id",
    )
    queries_from: QueriesFrom = QueriesFrom()
    references: IsPath | None = Field(
        None,
        description="true occurrences: table (query_id, doc_id, start, end; optionally channel, verdict); glossary; or RTTM, "
        "CTM or lhotse supervisions with alignments, in which terms are looked up; null: no scoring",
    )
    text: IsPath | None = Field(
        None,
        description="Kaldi text (document word word ...) instead of references, for document trials",
    )
    examples: Literal["primary", "all"] = Field(
        "primary", description="use the first example of each query, or all (see search.examples)"
    )
    own_places: Literal["keep", "leave-out"] | None = Field(
        None,
        description="for queries cut from the searched audio: keep hits and references at their own places, or leave them "
        "out; default: leave-out for queries with doc_id, keep for queries with path; q-norm always includes them",
    )
    prefer: tuple[str, ...] = Field(
        (),
        description="endings in order, such as [wav, flac, mp3]: of files that differ only in the ending, use the first",
    )
    speakers: IsPath | None = Field(
        None,
        description="where documents have no speaker: table (doc_id, speaker; optionally channel), or folder whose ELAN and "
        "TextGrid files name those of the recordings beside them",
    )
    alignments: Alignments = Alignments()
    parts: Parts = Parts()
    cohort: IsPath | None = Field(
        None,
        description="queries, as `queries`, that only normalise the scores of others (step zt-norm)",
    )
    protocol: Protocol | None = Field(None, description="default of score.protocol")

    @property
    def has_references(self) -> bool:
        """Whether true occurrences of the queries are given."""
        return self.references is not None or self.text is not None

    @model_validator(mode="after")
    def _one_kind_of_references(self) -> Corpus:
        if self.references is not None and self.text is not None:
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying("references and text both say where queries occur", "give references or text")
                .invalid()
            )
        return self


class Transforming(Section):
    """A transform of each frame of an extractor."""

    registry = TRANSFORMS

    name: str = Field(description="name of the transform")
    options: dict[str, object] = Field(default_factory=dict, description="options of the transform")


class Features(Section):
    """The extractor of a track of the store; or a list of such sections, one per track.

    Tracks have one shift. Searched together, each document is cut to its shortest track.
    """

    registry = FEATURES

    name: str = Field(
        "mfcc",
        description="extractor, or external for precomputed features; `swsdist doctor` lists extractors",
    )
    options: dict[str, object] = Field(
        default_factory=dict, description="options of the extractor, see swsdist help features"
    )
    transforms: tuple[Transforming, ...] = Field(
        (),
        description="transforms of each frame, in order: {name, options} each",
    )
    track: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="name of the track in the store; default: the extractor's name"
    )
    dtype: Literal["float32", "float16"] = Field(
        "float32",
        description="what the store keeps: float16 takes half the space, and rounds numbers to 11 bits before anything else "
        "sees them; a document with a value of 65520 or more is rejected",
    )

    @model_serializer(mode="wrap")
    def _plain(self, serialise: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Without the default `dtype`, which keeps the names of what was made before there was one."""
        values: dict[str, object] = serialise(self)
        if values["dtype"] == "float32":
            del values["dtype"]
        return values

    @property
    def track_name(self) -> str:
        """The name of the track."""
        return self.track or self.name


class Queries(Section):
    """Preparation of spoken queries."""

    trim: Literal["auto", "none"] = Field(
        "auto",
        description="auto: trim non-speech at both ends of a recorded query, and reject queries without speech; given "
        "start and end times stay",
    )
    speak: tuple[str, ...] = Field(
        (),
        description="voices, such as [espeak-ng:en-us, flite:slt], that speak written queries; each makes an example (see "
        "search.examples); recordings lie in the run folder",
    )


class Index(Section):
    """The feature store and its shards."""

    store: IsPath | None = Field(None, description="store folder, local or s3://; default: `store` in the run folder")
    shard_hours: PositiveFloat = execution_only(1.0, "target size of a shard, hours of audio; at most 4096 documents")
    shards: PositiveInt | None = execution_only(None, "number of shards instead (for experiments)")


class KeepDetections(Keep):
    """How many detections to keep per query."""

    least: PositiveInt = Field(1000, description="keep at least this many")
    per_second: float = Field(0.1, ge=0, description="and this many per second of the collection")


class Reduce(Section):
    """Reduction of candidates to detections."""

    buckets: Annotated[int, Field(ge=1, le=SLOTS)] | None = execution_only(
        None,
        "partitions of the queries; default: a power of two, at least 16, so that each has some 2^20 candidates at most",
    )
    merge: Literal["best", "sum"] | None = Field(
        None,
        description="score of overlapping candidates: the best, or the sum of their posteriors (at most 1); default: the "
        "method's",
    )
    overlap: float = Field(
        0.5,
        ge=0,
        le=1,
        description="greatest overlap of two detections, as a fraction of the shorter one; beyond it the better one stays",
    )
    nbest: KeepDetections = Field(KeepDetections(), description="detections kept per query")

    def buckets_for(self, rows: int) -> int:
        """The number of buckets for a number of rows."""
        return self.buckets or min(SLOTS, 1 << max(4, ((rows - 1) >> 20).bit_length()))


class Score(Section):
    """The scoring protocol; null: the protocol's value."""

    protocol: Protocol = Field("sws2013", description="named set of the values below")
    beta: PositiveFloat | None = Field(None, description="weight of false alarms; sws2012 computes it from the data")
    tolerance: Annotated[float, Field(ge=0)] | None = Field(
        None, description="greatest distance between a detection's mid-point and the reference, s"
    )
    trials_per_second: PositiveFloat | None = Field(None, description="trials per second of audio")
    trials: Literal["time", "segment", "document"] | None = Field(
        None, description="unit of a trial: time, segment (OpenKWS13), or document (QUESST)"
    )
    cnxe_prior: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="effective prior of Cnxe; default: 1 / (1 + beta)",
    )
    speech: IsPath | None = Field(
        None,
        description="speech segments, for segment trials: RTTM with SPEAKER records, or table (doc_id, start, end)",
    )


class Report(Section):
    """Exports and the report."""

    exports: tuple[Annotated[str, NameIn(EXPORTS)], ...] | None = Field(
        None,
        description="files in RUN/exports; default: csv, labels, clips; with references also stdlist, kwslist; of classes: csv",
    )
    labels: Annotated[int, Field(ge=0)] = Field(20, description="labels per query without decisions: the best hits")
    clips: Annotated[int, Field(ge=0)] = Field(
        20, description="audio clips of the best hits, first the best hit of each query; of classes, players of members"
    )


class Executor(Section):
    """The executor of tasks."""

    kind: Annotated[str, NameIn(EXECUTORS)] = execution_only(
        "ray", "serial: in this process; ray: on Ray actors; dask: on workers of Dask"
    )
    address: str | None = execution_only(
        None, "address of the cluster; default: RAY_ADDRESS, of dask DASK_SCHEDULER_ADDRESS, or a private local one"
    )
    workers: PositiveInt | None = execution_only(
        None, "number of workers; default: limited by CPUs and memory; of an existing Dask cluster, all are used"
    )
    cpus_per_worker: PositiveInt = execution_only(1, "CPUs and threads per worker")
    gpus_per_worker: PositiveFloat = execution_only(
        1.0, "GPUs per worker, with search.backend: cuda; 0.25: four workers share one"
    )
    memory_per_worker_gb: PositiveFloat = execution_only(1.0, "memory reserved per worker, GB = 1e9 bytes")
    cache_gb: Annotated[float, Field(ge=0)] = execution_only(
        0.0, "disk cache on each node for a store on S3, GB; 0: none"
    )
    cache: str = execution_only(
        "/tmp/swsdist-cache",
        "folder of that cache, to which `-` and the user's id are added; `$$NAME`: a variable of the node",
    )
    in_flight: PositiveInt = execution_only(2, "tasks sent to a worker at once")
    attempts: PositiveInt = execution_only(3, "attempts before a task counts as failed")
    actor_restarts: Annotated[int, Field(ge=0)] = execution_only(
        20, "Ray actors that are replaced in a run after they died; then it goes on with those that are left"
    )

    @property
    def entry(self) -> ExecutorEntry:
        """The entry of the kind."""
        return EXECUTORS[self.kind]

    @property
    def cluster(self) -> str | None:
        """Address of the cluster that runs tasks; None: this machine does."""
        variable = self.entry.address_variable
        return (self.address or os.environ.get(variable) or None) if variable else None

    @property
    def worker(self) -> Needs:
        """The resources of a worker; GPUs only with a GPU backend."""
        return Needs(self.cpus_per_worker, self.memory_per_worker_gb, self.gpus_per_worker)


class Config(Section):
    """The config of a run."""

    run: IsPath = Field(description="run folder, local or s3://")
    system: str = Field(
        "mfcc-cosine",
        description="name of the system, in a column of its detections; default: the config file's name without ending",
        min_length=1,
    )
    corpus: Corpus
    features: Annotated[tuple[Features, ...], ONE_OR_MORE] = (Features(),)
    index: Index = Index()
    queries: Queries = Queries()
    search: Search = Search()
    reduce: Reduce = Reduce()
    calibrate: Calibrate = Calibrate()
    score: Score = Score()
    report: Report = Report()
    executor: Executor = Executor()
    chain: Annotated[str, NameIn(CHAINS)] = Field("search", description="chain of stages, see swsdist help stages")
    options: dict[str, object] = Field({}, description="options of the chain, see below")
    storage: dict[str, object] = execution_only(
        {}, "options of s3fs, such as {endpoint_url: ...}; access keys come from the environment"
    )
    strict: bool = execution_only(False, "warnings and rejected inputs end with exit code 4")
    force: bool = execution_only(False, "continue with implausible inputs (otherwise exit code 5)")

    @model_validator(mode="after")
    def _check_tracks(self) -> Config:
        names = [features.track_name for features in self.features]
        if not names:
            raise (
                families.MISSING_INPUT.of(ConfigError)
                .saying("the list features is empty", "name an extractor")
                .invalid()
            )
        for name in names:
            if names.count(name) > 1:
                raise (
                    families.DUPLICATE_NAME.of(ConfigError)
                    .saying("{count} tracks are called {track}", "set features.track of each")
                    .invalid(count=names.count(name), track=name)
                )
        return self

    @model_validator(mode="after")
    def _check_examples(self) -> Config:
        examples = self.search.examples
        if examples != "mean":
            return self
        if not any(CALIBRATION[name].first for name in self.calibrate.steps):
            raise codes.EXAMPLES_CONFLICT.invalid(examples=examples, needs="calibrate.steps: [q-norm, ...]")
        if self.reduce.merge == "sum":
            raise codes.EXAMPLES_CONFLICT.invalid(examples=examples, needs="reduce.merge: best")
        if self.reduce.overlap == 1:
            raise codes.EXAMPLES_CONFLICT.invalid(examples=examples, needs="reduce.overlap below 1")
        return self

    @model_validator(mode="after")
    def _check_calibration(self) -> Config:
        joined = is_chain(CHAINS, self.chain, "joined")
        score = "any" if joined else METHODS[self.search.method].score
        error = misfit_of(self.calibrate, score, references=self.corpus.has_references, joined=joined)
        if error is not None:
            raise error_for_pydantic(error)
        return self

    @model_validator(mode="after")
    def _check_merge(self) -> Config:
        score = METHODS[self.search.method].score
        if self.reduce.merge == "sum" and score != "posterior":
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying(
                    "reduce.merge: sum adds posteriors, and {method} gives the score {score}", "set reduce.merge: best"
                )
                .invalid(method=self.search.method, score=score)
            )
        return self

    @property
    def exports(self) -> tuple[str, ...]:
        """The files in RUN/exports; lists for scorers only with references."""
        if self.report.exports is not None:
            return self.report.exports
        lists = ("stdlist", "kwslist") if self.corpus.references is not None else ()
        return ("csv", *lists, "labels", "clips")

    @property
    def store(self) -> str:
        """The store folder."""
        return self.index.store or self.run.rstrip("/") + "/store"

    @property
    def searched_store(self) -> str:
        """Folder of the store that the method reads: the config's, or what the chain makes of it."""
        return self.chain_options.second_store(self.options, self.run.rstrip("/")) or self.store

    @property
    def chain_options(self) -> type[ChainOptions]:
        """The model of the chain's options; of a chain without one, or without options, the base."""
        entry = CHAINS[self.chain]
        model = entry.model() if isinstance(entry, Configured) and self.options else None
        return model if model is not None and issubclass(model, ChainOptions) else ChainOptions
