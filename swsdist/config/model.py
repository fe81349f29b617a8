"""What a config file may hold. Unknown keys are refused; every key has its default and its meaning here.

`swsdist init` writes this file's content as commented YAML, and docs/reference/config.md is made from it.
A field marked `effort` changes how the work is cut or where it runs, never what comes out, and so is not part of
any fingerprint.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.distances import TAKES, DistanceName
from swsdist.registries import PROTOCOLS

#: A string that names a file or folder (or a url): the loader makes it absolute, relative to the config's place.
IsPath = Annotated[str, "path", Field(min_length=1)]


class Section(BaseModel):
    """Base of all sections: frozen; unknown keys, infinity and NaN are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def matters(self) -> dict[str, Any]:
        """The part of this section that results depend on (see `effort` above), as plain JSON values."""
        effort = {
            name
            for name, field in type(self).model_fields.items()
            if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("effort")
        }
        return self.model_dump(mode="json", exclude=effort)


def effort(default: Any, description: str) -> Any:
    """A field that changes how the work is cut or where it runs, never what comes out."""
    return Field(default, description=description, json_schema_extra={"effort": True})


class Corpus(Section):
    """What is searched, what is looked for, and, optionally, where it truly occurs."""

    documents: IsPath = Field(
        description="table (CSV or Parquet: doc_id, path; optionally channel, duration, speaker), or a folder of audio"
    )
    queries: IsPath | None = Field(
        None,
        description="table (query_id, path or doc_id; maybe example, channel, start, end, speaker, term), or a folder",
    )
    references: IsPath | None = Field(
        None, description="table (query_id, doc_id, start, end; optionally channel); without it scoring is skipped"
    )
    examples: Literal["primary", "all"] = Field(
        "primary", description="use only the first example of each query, or all of them, as search.examples says"
    )


class Features(Section):
    """What is computed of the audio and kept in the store."""

    name: str = Field("mfcc", description="extractor; `swsdist doctor` lists those installed")
    options: dict[str, Any] = Field(
        default_factory=dict, description="options of that extractor, see its page in docs/"
    )


class Index(Section):
    """How the store is cut into shards."""

    store: IsPath | None = Field(None, description="store folder, local or s3://; default: `store` in the run folder")
    shard_hours: PositiveFloat = effort(1.0, "hours of audio a shard aims at; documents lie whole in one shard")
    shards: PositiveInt | None = effort(None, "cut into this many shards instead (for experiments)")


class Keep(Section):
    """How many to keep: the larger of `least` and `per_second` times the seconds searched."""

    least: PositiveInt = Field(2, description="keep at least this many")
    per_second: float = Field(0.3, ge=0, description="and this many a second of what was searched")

    def count(self, seconds: float) -> int:
        """How many to keep of what was found in so many seconds."""
        return max(self.least, int(self.per_second * seconds))


class KeepDetections(Keep):
    """The same of a query's detections, over the whole collection."""

    least: PositiveInt = Field(1000, description="keep at least this many")
    per_second: float = Field(0.1, ge=0, description="and this many a second of the collection")


#: What may be taken out of features before a distance.
Normalise = Literal["none", "mean", "mean-variance"]

#: Steps of the warping path, and how paths are compared.
Recurrence = Literal["bounded-slope", "asymmetric", "averages", "non-segmental", "segmental"]

#: Added to probabilities, or to their inner product, before the logarithm.
Floor = Annotated[float, Field(ge=1e-10, le=0.1)]


class FeatureStream(Section):
    """Columns of the features with a distance of their own; what is not given is as for the whole search."""

    columns: tuple[Annotated[int, Field(ge=0)], PositiveInt] = Field(
        description="first column, from 0, and the one after the last"
    )
    distance: DistanceName | None = Field(None, description="local distance between these columns")
    weight: Annotated[int, Field(ge=1, le=16)] = Field(1, description="times that the distance counts in the sum")
    normalise: Normalise | None = Field(None, description="what is taken out of these columns")
    floor: Floor | None = Field(None, description="as search.floor")
    cap: PositiveFloat | None = Field(None, description="as search.cap")


class Term(NamedTuple):
    """A term of the search's distance, nothing left open but the last column."""

    first: int
    stop: int | None
    distance: DistanceName
    weight: int
    normalise: Normalise
    options: dict[str, float]


class KeepWindows(Keep):
    """The same of a first pass's windows."""

    least: PositiveInt = Field(10, description="keep at least this many")
    per_second: float = Field(0.03, ge=0, description="and this many a second of what was searched")


class Proposer(Section):
    """A first pass that proposes where to search; what it does not propose is not found."""

    name: Literal["none", "coarse", "averaged", "quantised"] = Field(
        "none", description="none: everything is searched; see docs/concepts/proposers.md"
    )
    factors: Annotated[tuple[PositiveInt, ...], Field(min_length=1, max_length=4)] = Field(
        (5,),
        description="frames that are averaged in the first pass; averaged takes several, falling, and passes in turn",
    )
    windows: KeepWindows = Field(KeepWindows(), description="windows kept per query example")
    over: Literal["collection", "document"] = Field(
        "collection",
        description="the best windows are those of the whole collection (a task a group of queries), or of "
        "each document (a task a group and shard)",
    )
    visit: bool = Field(
        True, description="search the windows exactly; false, with averaged: the pass on averaged frames is the search"
    )

    @model_validator(mode="after")
    def _factors_fall(self) -> Proposer:
        if any(after >= before for before, after in pairwise(self.factors)):
            raise ValueError(f"factors {', '.join(map(str, self.factors))} do not fall")
        if self.name == "averaged" and self.factors[-1] == 1:
            raise ValueError("factors: of 1 frame there is no average")
        if self.name != "averaged" and len(self.factors) > 1:
            raise ValueError(f"{self.name} takes one of factors")
        if not self.visit and self.name != "averaged":
            raise ValueError("visit: false is for the proposer averaged")
        return self


class Search(Section):
    """Distances, recurrence and candidates."""

    distance: DistanceName = Field(
        "cosine",
        description="local distance between frames: 1 - cosine, or its square; between posteriors: bhattacharyya, "
        "log-posterior-cosine, kl, inner-product (-ln of it); euclidean",
    )
    normalise: Normalise = Field(
        "mean-variance",
        description="what is taken out of each feature dimension before the distance; none for posteriors",
    )
    streams: Annotated[tuple[FeatureStream, ...], Field(max_length=8)] = Field(
        (),
        description="sum of distances over columns, for example [{columns: [0, 39], distance: cosine, weight: 2}, "
        "{columns: [39, 90], distance: kl, normalise: none}]; default: `distance` over all columns",
    )
    floor: Floor | None = Field(
        None,
        description="log-posterior-cosine, kl: added to probabilities before their logarithm; inner-product: added to "
        "it, at least 1e-4; default: 1e-4",
    )
    cap: PositiveFloat | None = Field(
        None,
        description="euclidean: norm at which normalised frames are cut off; distances are in units of it; "
        "default: 2.5 sqrt(dimension)",
    )
    documents_by: Literal["document", "speaker", "collection"] = Field(
        "document", description="whose statistics normalise a document"
    )
    queries_by: Literal["speaker", "collection"] = Field(
        "speaker",
        description="whose statistics normalise a query (never its own cut: it is too short for a mean)",
    )
    examples: Literal["best", "mean", "template"] = Field(
        "best",
        description="several examples of a query: the best one counts, or the mean of their normalised scores, "
        "or one template is searched that is their average; see docs/how-to/use-several-examples.md",
    )
    recurrence: Recurrence = Field(
        "bounded-slope", description="steps of the warping path; see docs/concepts/recurrences.md"
    )
    band: PositiveInt | None = Field(
        None, description="segmental: most frames off the diagonal, and frames between start points; default: 10"
    )
    candidate_window: Annotated[int, Field(ge=1, le=10_000)] = Field(
        10, description="a candidate's cost is the least within plus or minus this many frames"
    )
    candidates: Keep = Field(Keep(), description="candidates kept per query example and document")
    proposer: Proposer = Field(Proposer(), description="a first pass that proposes where to search")
    lanes: PositiveInt = effort(16, "pieces of documents searched side by side; 16 fill a vector")
    piece_seconds: PositiveFloat = effort(20.0, "longest piece of a document in a lane; cuts change no result")
    product: Literal["auto", "int16", "numpy", "torch"] = effort(
        "auto", "who multiplies: our own int16 product, or a library's float32 matrix product; the bytes are the same"
    )
    device: Literal["cpu", "cuda"] = effort(
        "cpu", "where is searched: cuda is an NVIDIA GPU, with recurrence: bounded-slope"
    )
    device_memory_gb: PositiveFloat | None = effort(
        None, "memory of the GPU that a search may take, GB = 1e9 bytes; default: half of what is free, at most 4"
    )

    def matters(self) -> dict[str, Any]:
        """What the search of examples depends on: their mean is taken after it."""
        values = super().matters()
        if self.examples != "template":
            del values["examples"]
        return values

    def terms(self) -> tuple[Term, ...]:
        """The distance as a sum of terms: one, over all columns, or those of `streams`."""
        if not self.streams:
            return (self._term(0, None, self.distance, 1, self.normalise, {}),)
        return tuple(
            self._term(
                *one.columns,
                one.distance or self.distance,
                one.weight,
                one.normalise or self.normalise,
                {name: value for name, value in (("floor", one.floor), ("cap", one.cap)) if value is not None},
            )
            for one in self.streams
        )

    def _term(
        self, first: int, stop: int | None, name: DistanceName, weight: int, normalise: Normalise, own: dict[str, float]
    ) -> Term:
        common = {"floor": self.floor} if TAKES[name].least_floor is not None else {}
        common |= {"cap": self.cap} if TAKES[name].cap else {}
        options = {key: value for key, value in common.items() if value is not None} | own
        return Term(first, stop, name, weight, normalise, options)

    @model_validator(mode="after")
    def _band_is_of_segmental(self) -> Search:
        if self.band is not None and self.recurrence != "segmental":
            raise ValueError(f"{self.recurrence} takes no band")
        return self

    @model_validator(mode="after")
    def _windows_can_be_visited(self) -> Search:
        if self.proposer.name != "none" and self.recurrence != "bounded-slope":
            raise ValueError(f"a proposer needs recurrence: bounded-slope, not {self.recurrence}")
        if self.device != "cpu" and self.recurrence != "bounded-slope":
            raise ValueError(f"device: {self.device} knows recurrence: bounded-slope only, not {self.recurrence}")
        if self.device != "cpu" and self.proposer.name != "none":
            raise ValueError(f"a proposer searches on the CPU: set device: cpu, not {self.device}")
        return self

    @model_validator(mode="after")
    def _distances_take_what_is_given(self) -> Search:
        terms = self.terms()
        for k, term in enumerate(terms):
            place, takes = f"streams[{k}]: " if self.streams else "", TAKES[term.distance]
            if term.stop is not None and term.stop <= term.first:
                raise ValueError(f"{place}columns {term.first} to {term.stop} are none")
            if takes.posteriors and term.normalise != "none":
                raise ValueError(
                    f"{place}{term.distance} is between posteriors, which normalise: {term.normalise} would spoil; "
                    "set normalise: none"
                )
            for option, floor in term.options.items():
                least = takes.least_floor if option == "floor" else 0.0 if takes.cap else None
                if least is None:
                    raise ValueError(f"{place}{term.distance} takes no {option}")
                if floor < least:
                    raise ValueError(f"{place}{option} of {term.distance} is {least:g} or more")
        for term, other in combinations(terms, 2):
            common = max(term.first, other.first), min(term.stop or 0, other.stop or 0)
            if common[0] < common[1] and term.normalise != other.normalise:
                raise ValueError(
                    f"columns {common[0]} to {common[1]} are in two streams that normalise them differently"
                )
        for option in ("floor", "cap"):
            if getattr(self, option) is not None and not any(option in term.options for term in terms):
                raise ValueError(f"{terms[0].distance} takes no {option}")
        return self


class Reduce(Section):
    """From candidates to detections."""

    buckets: PositiveInt = effort(16, "parts that queries are spread over; memory falls as it grows")
    overlap: float = Field(
        0.5,
        ge=0,
        le=1,
        description="of two detections that overlap by more than this part of the shorter one, the better stays",
    )
    nbest: KeepDetections = Field(KeepDetections(), description="detections kept per query")


class Calibrate(Section):
    """Score normalisation, and the threshold that decides."""

    normalise: Literal["none", "q-norm", "logistic", "kst", "sto"] = Field(
        "q-norm",
        description="q-norm: scores of a query minus their mean, over their standard deviation; "
        "logistic: these as probabilities; kst, sto: and these by keyword specific thresholds, or to a sum of one",
    )
    alpha: PositiveFloat = Field(
        1.5, description="kst, sto: a query is taken to occur alpha times its sum of probabilities"
    )
    threshold: Literal["own", "fitted"] = Field(
        "own", description="kst, sto: decide by the method's own threshold, or by one that is fitted as without them"
    )
    fit: Literal["none", "crossfit", "oracle"] | IsPath = Field(
        "crossfit",
        description="threshold, logistic from: crossfit (other folds of queries), oracle (all that is scored), a file, none",
    )
    folds: Annotated[int, Field(ge=2)] = Field(5, description="folds of queries, by stable hash, for crossfit")

    @property
    def probabilities(self) -> bool:
        """Whether scores become probabilities, by a logistic that is fitted as `fit` says."""
        return self.normalise in ("logistic", "kst", "sto")


def _protocol(name: str) -> str:
    if name not in PROTOCOLS:
        raise ValueError(f"there is no protocol {name!r}; there are: {', '.join(PROTOCOLS)}")
    return name


class Score(Section):
    """The protocol: the operating point and the rules of counting. What is not given comes from the protocol."""

    protocol: Annotated[str, AfterValidator(_protocol)] = Field("sws2013", description="named set of the rules below")
    beta: PositiveFloat | None = Field(None, description="weight of false alarms; sws2012: from the data")
    tolerance: Annotated[float, Field(ge=0)] | None = Field(
        None, description="s between a detection's mid-point and the reference's span"
    )
    trials_per_second: PositiveFloat | None = Field(None, description="trials a second of audio")
    trials: Literal["time", "segment", "document"] | None = Field(
        None, description="what a trial is: a second or so of audio, a segment (OpenKWS13), or a document (QUESST)"
    )
    speech: IsPath | None = Field(
        None,
        description="stretches of speech, for segment trials: RTTM with SPEAKER records, or table (doc_id, start, end)",
    )


class Report(Section):
    """Exports and the page."""

    exports: tuple[Literal["csv", "stdlist", "kwslist", "labels", "clips"], ...] = Field(
        ("csv", "stdlist", "kwslist", "labels", "clips"), description="what is written to RUN/exports"
    )
    clips: Annotated[int, Field(ge=0)] = Field(20, description="how many best hits get an audio clip")
    pl_lambda: float = Field(0.1, ge=0, le=1, description="weight of indexing in the processing load PL (lambda)")


class Executor(Section):
    """Where the tasks run."""

    kind: Literal["serial", "ray"] = effort("ray", "in this process, or on Ray actors")
    address: str | None = effort(None, "Ray cluster; default: RAY_ADDRESS, else a private local instance")
    workers: PositiveInt | None = effort(None, "actors; default: as many as the CPUs allow")
    cpus_per_worker: PositiveInt = effort(1, "CPUs, and so threads, of an actor")
    gpus_per_worker: PositiveFloat = effort(
        1.0, "with search.device: cuda, GPUs of an actor; 0.25 for four actors a GPU"
    )
    memory_per_worker_gb: PositiveFloat = effort(1.0, "memory that Ray reserves for an actor, GB = 1e9 bytes")
    in_flight: PositiveInt = effort(2, "tasks handed to an actor at once")
    attempts: PositiveInt = effort(3, "times a task is tried before it is recorded as failed")
    actor_restarts: Annotated[int, Field(ge=0)] = effort(20, "actors replaced, over the run, before it gives up")


class Config(Section):
    """One run."""

    run: IsPath = Field(description="run folder, local or s3://")
    system: str = Field("mfcc-cosine", description="name of the system, a column of its detections", min_length=1)
    corpus: Corpus
    features: Features = Features()
    index: Index = Index()
    search: Search = Search()
    reduce: Reduce = Reduce()
    calibrate: Calibrate = Calibrate()
    score: Score = Score()
    report: Report = Report()
    executor: Executor = Executor()
    storage: dict[str, Any] = effort({}, "options for s3fs, for example {endpoint_url: ...}; keys from the environment")
    strict: bool = effort(False, "end with exit code 4 if any input was rejected")

    @model_validator(mode="after")
    def _several_examples_are_read(self) -> Config:
        how = self.search.examples
        if how != "best" and self.corpus.examples == "primary":
            raise ValueError(f"search.examples: {how} takes several examples of a query; set corpus.examples: all")
        if how == "mean" and self.calibrate.normalise == "none":
            raise ValueError(
                "search.examples: mean is one of normalised scores; calibrate.normalise: none keeps them as they are"
            )
        if how == "mean" and self.reduce.overlap == 1:
            raise ValueError("search.examples: mean needs reduce.overlap below 1, which says what is the same place")
        return self

    @model_validator(mode="after")
    def _logistic_can_be_fitted(self) -> Config:
        calibrate = self.calibrate
        if calibrate.probabilities and calibrate.fit == "none":
            raise ValueError(f"calibrate.normalise: {calibrate.normalise} fits a logistic, but calibrate.fit is none")
        if calibrate.probabilities and calibrate.fit in ("crossfit", "oracle") and self.corpus.references is None:
            raise ValueError(
                f"calibrate.normalise: {calibrate.normalise} fits a logistic, which needs corpus.references, "
                "or a fitted file in calibrate.fit"
            )
        return self

    @property
    def store(self) -> str:
        """The store folder."""
        return self.index.store or self.run.rstrip("/") + "/store"
