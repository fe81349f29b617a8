"""The search chain leads from audio and spoken queries to a scored report.

::

    index -> queries -> search -> reduce -> normalise -> align.train -> fit -> decide -> align.final -> measure -> score
                                                                                         decide -> export

A first pass that reads an index of its own has the stage that makes it in front of search, queries of another corpus the stage
that takes its means and variances; transforms that are fitted have the stage that fits them in front of index, and where steps
of calibration want to know something of queries, `describe` stands in front of normalise. A step that normalises by a cohort
has it searched by steps of their own, which nothing else reads::

    queries.cohort -> search.cohort -> cohort -> normalise
"""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.procedure import check_steps, sides_wanted
from swsdist.calibrate.statistics import made
from swsdist.chains.search.align import Align
from swsdist.chains.search.check import check
from swsdist.chains.search.cohort import Cohort
from swsdist.chains.search.cohort_queries import CohortQueries
from swsdist.chains.search.decide import Decide
from swsdist.chains.search.describe import Describe, demand_posteriors
from swsdist.chains.search.export import Export
from swsdist.chains.search.fit import Fit
from swsdist.chains.search.fit_transforms import FitTransforms
from swsdist.chains.search.index import Index
from swsdist.chains.search.inputs.across import takes_theirs
from swsdist.chains.search.inputs.known import SearchInputs
from swsdist.chains.search.inputs.oddities import demands_of, folds_of_steps
from swsdist.chains.search.inputs.pending import is_fitted
from swsdist.chains.search.inputs.provenance import files_of
from swsdist.chains.search.measure import Measure
from swsdist.chains.search.normalise import Normalise
from swsdist.chains.search.queries import Queries
from swsdist.chains.search.query_statistics import QueryStatistics
from swsdist.chains.search.reduce import Reduce
from swsdist.chains.search.report.notices import barrier, notices, summary
from swsdist.chains.search.report.publish import FILES, publish_report
from swsdist.chains.search.report.reporting import rejected_rows
from swsdist.chains.search.score import Score
from swsdist.chains.search.search import Search
from swsdist.config import Config
from swsdist.entries import those
from swsdist.errors import ConfigError
from swsdist.methods.registry import create
from swsdist.pipeline.chain import Chain, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Stage
from swsdist.registries import CALIBRATION, FIRST_PASSES, METHODS
from swsdist.registry import Entry
from swsdist.score.measures.protocol import protocol_of

_QUERIES = {"queries": "queries:groups"}


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: it has options, of which this chain takes none; a cohort, which no step uses; options that its method or
            a step does not take; or steps that do not fit together.
    """
    if config.options:
        raise ConfigError(
            f"the chain search takes no options: {', '.join(config.options)}", where="options", remedy="leave them out"
        )
    by_cohort = any(entry.cohort for entry in config.calibrate.entries().values())
    if config.corpus.cohort is not None and not by_cohort:
        raise ConfigError(
            f"none of the steps {', '.join(config.calibrate.steps)} normalises by a cohort",
            where="corpus.cohort",
            remedy=f"leave it out, or name {' or '.join(those(CALIBRATION, 'cohort'))} in calibrate.steps",
        )
    if config.corpus.own_places == "leave-out" and protocol_of(config.score).trials != "time":
        raise ConfigError(
            "queries' own places are left out where trials are seconds of audio: "
            "of a document nobody knows which part is meant",
            where="corpus.own_places",
            remedy="leave it out, or leave the recordings that queries were cut from out of the documents",
        )
    create(config.search)
    check_steps(config.calibrate, METHODS[config.search.method].score)
    sides = sides_wanted(config.calibrate)
    described = [Step("describe", Describe(), "search", {**_QUERIES})] if made(sides, "examples") else []
    known = {"statistics": "reduce:statistics", **({"described": "describe:described"} if described else {})}
    proposer = config.search.proposer.name
    stage = FIRST_PASSES[proposer].first if proposer != "none" else ""
    first = [Step(one.name, one, "index", {"shards": "index:features"}) for one in _made(stage)]
    cohort = list(_cohort(config.corpus.cohort is not None)) if by_cohort else []
    judged = {"cohort": "cohort:sums"} if by_cohort else {}
    fitted = [Step("fit-transforms", FitTransforms(), "index")] if is_fitted(config.features) else []
    theirs = [Step("query-statistics", QueryStatistics(), "search")] if takes_theirs(config) else []
    normalised_by = {"theirs": "query-statistics:query_statistics"} if theirs else {}
    steps = (
        *fitted,
        Step("index", Index(), "index"),
        Step("queries", Queries(), "search"),
        *theirs,
        *first,
        Step("search", Search(), "search", {**_QUERIES, "shards": "index:features", **normalised_by}),
        Step("reduce", Reduce(), "search", {**_QUERIES, "candidates": "search:candidates"}),
        *described,
        *cohort,
        Step("normalise", Normalise(), "search", {"detections": "reduce:detections", **known, **judged}),
        Step("align.train", Align(), "score", {"detections": "normalise:normalised"}, {"trials": "aligned"}),
        Step("fit", Fit(), "score", {"trials": "align.train:trials", **known}),
        Step(
            "decide",
            Decide(),
            "score",
            {"detections": "normalise:normalised", "calibration": "fit:calibration", **known},
        ),
        Step("align.final", Align(), "score", {"detections": "decide:scored"}),
        Step("measure", Measure(), "score", {"trials": "align.final:trials"}),
        Step("score", Score(), "score", {"parts": "measure:parts", "calibration": "fit:calibration"}),
        Step(
            "export",
            Export(),
            "score",
            {**_QUERIES, "scored": "decide:scored", "trials": "align.final:trials"},
        ),
    )
    own = SearchInputs.of(config, ledger)
    demand_posteriors(own, sides)
    own.demands.update(demands_of(config))
    own.folds.update(folds_of_steps(config.calibrate))
    own.files.update(files_of(config))
    return Chain("search", steps, own, publish_report, FILES, notices, rejected_rows, check, summary, barrier=barrier)


def _cohort(given: bool) -> Iterator[Step]:
    """The steps that search a cohort, if the corpus has one, and sum up what it, or all queries, come to at each place."""
    if given:
        yield Step("queries.cohort", CohortQueries(), "search")
        reads = {"queries": "queries.cohort:groups", "shards": "index:features"}
        yield Step("search.cohort", Search(), "search", reads, {"candidates": "candidates.cohort"})
    of = ".cohort" if given else ""
    yield Step("cohort", Cohort(), "search", {"queries": f"queries{of}:groups", "candidates": f"search{of}:candidates"})


def _made(target: str) -> list[Stage]:
    """The stage that a registered thing needs first, if any."""
    return [Entry(target, 1).load()()] if target else []
