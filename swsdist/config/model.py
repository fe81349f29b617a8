"""What a config file may hold. Unknown keys are refused; every key has its default and its meaning here.

`swsdist init` writes this file's content as commented YAML, and docs/reference/config.md is made from it.
A field marked `effort` changes how the work is cut or where it runs, never what comes out, and so is not part of
any fingerprint.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.calibration import Calibrate, misfit_of
from swsdist.config.corpus import Corpus, Protocol
from swsdist.config.names import NameIn
from swsdist.config.search import Keep, Search
from swsdist.config.section import ONE_OR_MORE, IsPath, Section, effort, error_for_pydantic
from swsdist.core.codes import config as codes
from swsdist.core.needs import Needs
from swsdist.core.partition import SLOTS
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CALIBRATION, CHAINS, EXPORTS, METHODS


class Transforming(Section):
    """Something that is done to each frame of an extractor."""

    name: str = Field(description="transform: columns, log, project")
    options: dict[str, object] = Field(default_factory=dict, description="options of that transform")


class Features(Section):
    """What is computed of the audio and kept in the store; or a list of such sections, a track of the store each.

    Tracks have one shift. Searched together, each document is cut to its shortest one.
    """

    name: str = Field(
        "mfcc",
        description="extractor, or external for frames that another program made; `swsdist doctor` lists those installed",
    )
    options: dict[str, object] = Field(
        default_factory=dict, description="options of that extractor, see its page in docs/"
    )
    transforms: tuple[Transforming, ...] = Field(
        (),
        description="what is done to each of its frames on the way into the store, in this order: {name, options} each",
    )
    track: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="name of the track in the store; default: the extractor's name"
    )

    @property
    def track_name(self) -> str:
        """The name of the track."""
        return self.track or self.name


class Queries(Section):
    """What is done to spoken queries before they are searched."""

    trim: Literal["auto", "none"] = Field(
        "auto",
        description="cut off what is not speech at both ends of a recorded query, and reject one without speech; an end that "
        "was given (start, end) stays",
    )


class Index(Section):
    """How the store is cut into shards."""

    store: IsPath | None = Field(None, description="store folder, local or s3://; default: `store` in the run folder")
    shard_hours: PositiveFloat = effort(
        1.0, "hours of audio a shard aims at; 4096 documents at most, each whole in one shard"
    )
    shards: PositiveInt | None = effort(None, "cut into this many shards instead (for experiments)")


class KeepDetections(Keep):
    """The same of a query's detections, over the whole collection."""

    least: PositiveInt = Field(1000, description="keep at least this many")
    per_second: float = Field(0.1, ge=0, description="and this many a second of the collection")


class Reduce(Section):
    """From candidates to detections."""

    buckets: Annotated[int, Field(ge=1, le=SLOTS)] = effort(
        16, "parts that queries are spread over; memory falls as it grows"
    )
    merge: Literal["best", "sum"] | None = Field(
        None,
        description="of candidates at one place: best, the best stays; sum, it gets the sum of their posteriors, at most 1; "
        "default: the method's own (best)",
    )
    overlap: float = Field(
        0.5,
        ge=0,
        le=1,
        description="of two detections that overlap by more than this part of the shorter one, the better stays",
    )
    nbest: KeepDetections = Field(KeepDetections(), description="detections kept per query")


class Score(Section):
    """The protocol: the operating point and the rules of counting. What is not given comes from the protocol."""

    protocol: Protocol = Field("sws2013", description="named set of the rules below")
    beta: PositiveFloat | None = Field(None, description="weight of false alarms; sws2012: from the data")
    tolerance: Annotated[float, Field(ge=0)] | None = Field(
        None, description="s between a detection's mid-point and the reference's span"
    )
    trials_per_second: PositiveFloat | None = Field(None, description="trials a second of audio")
    trials: Literal["time", "segment", "document"] | None = Field(
        None, description="what a trial is: a second or so of audio, a segment (OpenKWS13), or a document (QUESST)"
    )
    cnxe_prior: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="effective prior of Cnxe: 0.5 is flat, 1 / words that queries are drawn from; default: 1 / (1 + beta)",
    )
    speech: IsPath | None = Field(
        None,
        description="stretches of speech, for segment trials: RTTM with SPEAKER records, or table (doc_id, start, end)",
    )


class Report(Section):
    """Exports and the page."""

    exports: tuple[Annotated[str, NameIn(EXPORTS)], ...] | None = Field(
        None,
        description="what is written to RUN/exports; default: csv, labels, clips, and with references stdlist and kwslist",
    )
    labels: Annotated[int, Field(ge=0)] = Field(
        20, description="how many best hits of a query get a label, where nothing was decided"
    )
    clips: Annotated[int, Field(ge=0)] = Field(
        20, description="how many best hits get an audio clip; the best of each query comes before any second"
    )
    pl_lambda: float = Field(0.1, ge=0, le=1, description="weight of indexing in the processing load PL (lambda)")


class Executor(Section):
    """Where the tasks run."""

    kind: Literal["serial", "ray"] = effort("ray", "in this process, or on Ray actors")
    address: str | None = effort(None, "Ray cluster; default: RAY_ADDRESS, else a private local instance")
    workers: PositiveInt | None = effort(None, "actors; default: as many as the CPUs allow")
    cpus_per_worker: PositiveInt = effort(1, "CPUs, and so threads, of an actor")
    gpus_per_worker: PositiveFloat = effort(
        1.0, "with search.backend: cuda, GPUs of an actor; 0.25 for four actors a GPU"
    )
    memory_per_worker_gb: PositiveFloat = effort(1.0, "memory that Ray reserves for an actor, GB = 1e9 bytes")
    cache_gb: Annotated[float, Field(ge=0)] = effort(
        0.0, "GB on each node's own disk for files of a store on S3 that its workers read; 0: none"
    )
    cache: str = effort(
        "/tmp/swsdist-cache",
        "folder for them on each node, less `-` and the number of its user; runs share it; `$$NAME` is a variable of the node",
    )
    in_flight: PositiveInt = effort(2, "tasks handed to an actor at once")
    attempts: PositiveInt = effort(3, "times a task is tried before it is recorded as failed")
    actor_restarts: Annotated[int, Field(ge=0)] = effort(20, "actors replaced, over the run, before it gives up")

    @property
    def worker(self) -> Needs:
        """What each worker is given at least; a GPU only if it needs one."""
        return Needs(self.cpus_per_worker, self.memory_per_worker_gb, self.gpus_per_worker)


class Config(Section):
    """One run."""

    run: IsPath = Field(description="run folder, local or s3://")
    system: str = Field(
        "mfcc-cosine",
        description="name of the system, a column of its detections; a config file's default is its own name without ending",
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
    chain: Annotated[str, NameIn(CHAINS)] = Field("search", description="chain of stages, see docs/concepts/stages.md")
    options: dict[str, object] = Field(
        {}, description="options of the chain; search has none, of fuse: systems, scores, missing, ..."
    )
    storage: dict[str, object] = effort(
        {}, "options for s3fs, for example {endpoint_url: ...}; keys from the environment"
    )
    strict: bool = effort(False, "end with exit code 4 if any input was rejected, and take warnings for errors")
    force: bool = effort(False, "go on although the inputs are so odd that results are nonsense, which is exit code 5")

    @model_validator(mode="after")
    def _check_tracks(self) -> Config:
        names = [features.track_name for features in self.features]
        if not names:
            raise codes.NO_EXTRACTOR.invalid()
        for name in names:
            if names.count(name) > 1:
                raise codes.DUPLICATE_TRACK.invalid(count=names.count(name), track=name)
        return self

    @model_validator(mode="after")
    def _check_examples(self) -> Config:
        examples = self.search.examples
        if examples != "best" and self.corpus.examples == "primary":
            raise codes.EXAMPLES_CONFLICT.invalid(examples=examples, needs="corpus.examples: all")
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
            raise codes.SUM_OF_SCORES.invalid(method=self.search.method, score=score)
        return self

    @property
    def exports(self) -> tuple[str, ...]:
        """What is written to RUN/exports: without references nobody asked for the lists that scorers read."""
        if self.report.exports is not None:
            return self.report.exports
        lists = ("stdlist", "kwslist") if self.corpus.references is not None else ()
        return ("csv", *lists, "labels", "clips")

    @property
    def store(self) -> str:
        """The store folder."""
        return self.index.store or self.run.rstrip("/") + "/store"
