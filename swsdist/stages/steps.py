"""The steps that chains of queries share: from audio and queries to a scored report.

::

    index -> queries -> search -> reduce -> normalise -> align.train -> fit -> decide -> align.final -> measure -> score
                                                                                         decide -> format -> export

Optional stages: before index, one that fits transforms; before search, one that makes the index of a first pass, one that
takes means and variances of another corpus with the queries, and one that takes those of all queries; before normalise,
`describe`, for steps of calibration that need properties of queries, and the search of a cohort::

    queries.cohort -> search.cohort -> cohort -> normalise
"""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.procedure import check_steps, required_statistics
from swsdist.calibrate.statistics import load_statistics
from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.methods.method import create
from swsdist.pipeline.chain import Stage, Step
from swsdist.registry.entries import names_where
from swsdist.registry.registries import CALIBRATION, FIRST_PASSES, METHODS
from swsdist.registry.registry import Entry
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.export import Export, Format, Summarise
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.inputs.corpus import takes_query_statistics
from swsdist.stages.inputs.corpus_documents import is_fitted
from swsdist.stages.queries import Describe, Queries, QueryStatistics
from swsdist.stages.reduce import Cohort, CohortQueries, Normalise, PooledStatistics, Reduce
from swsdist.stages.score import Align, Decide, Fit, Measure, Score
from swsdist.stages.search import Search


def steps(config: Config) -> tuple[Step | Stage, ...]:
    """The steps of a config, for any method.

    Raises:
        ConfigError: a cohort that is not used or not searched; options that its method or a step does not take; or steps that
            do not fit together.
    """
    by_cohort = any(entry.cohort for entry in config.calibrate.entries().values())
    if config.corpus.cohort is not None and not by_cohort:
        raise families.UNUSED_OPTION(
            "no step of {steps} normalises by a cohort",
            "leave corpus.cohort out, or add {cohort_steps} to calibrate.steps",
            where="corpus.cohort",
            steps=", ".join(config.calibrate.steps),
            cohort_steps=" or ".join(names_where(CALIBRATION, "cohort")),
        )
    if config.corpus.cohort is not None and METHODS[config.search.method].queries != "spoken":
        raise families.UNSUPPORTED.of(ConfigError)(
            "a cohort is searched by its frames, and the method {method} by labels",
            "leave corpus.cohort out: zt-norm then normalises by the other queries",
            where="corpus.cohort",
            method=config.search.method,
        )
    if config.corpus.own_places == "leave-out" and protocol_of(config.score).trials != "time":
        raise families.UNSUPPORTED.of(ConfigError)(
            "queries' own places can be left out only where trials are seconds of audio",
            "leave corpus.own_places out, or remove the recordings that queries were cut from from the documents",
            where="corpus.own_places",
        )
    create(config.search)
    check_steps(config.calibrate, METHODS[config.search.method].score)
    covariates = required_statistics(config.calibrate)
    first_pass = config.search.first_pass.name
    first = FIRST_PASSES[first_pass].first if first_pass != "none" else ""
    return (
        *([FitTransforms()] if is_fitted(config.features) else []),
        Index(),
        *([Entry(first, 1).load()()] if first else []),
        Queries(),
        *([QueryStatistics()] if takes_query_statistics(config) else []),
        *([PooledStatistics()] if config.search.documents_by == "pooled" else []),
        Search(),
        Reduce(),
        *([Describe()] if load_statistics(covariates, "examples") else []),
        *(_cohort(config.corpus.cohort is not None) if by_cohort else []),
        Normalise(),
        Step("align.train", Align(), labels={"trials": "aligned"}),
        Fit(),
        Decide(),
        Step("align.final", Align(), {"detections": "decide:scored"}),
        Step("measure", Measure(), {"trials": "align.final:trials"}),
        Score(),
        Step("summarise", Summarise(), {"trials": "align.final:trials"}),
        Format(),
        Step("export", Export(), {"queries": "queries:groups"}),
    )


def _cohort(has_cohort: bool) -> Iterator[Step | Stage]:
    """The steps that search a cohort, if there is one, and sum the scores of the cohort, or of all queries, at each place."""
    if not has_cohort:
        yield Cohort()
        return
    queries = {"queries": "queries.cohort:groups"}
    yield Step("queries.cohort", CohortQueries(), labels={"groups": "groups.cohort"})
    yield Step("search.cohort", Search(), queries, {"candidates": "candidates.cohort"})
    yield Step("cohort", Cohort(), {**queries, "candidates": "search.cohort:candidates"})
