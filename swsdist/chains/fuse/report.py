"""The report of a fusion: that of a search, and what each system has in it."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

from swsdist.calibrate.steps.fusion import fusions_in
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.search.report import notices as of_search
from swsdist.chains.search.report.finished import scored_of
from swsdist.chains.search.report.publish import publish_report
from swsdist.chains.search.report.reporting import build_report
from swsdist.core.codes import fuse as codes
from swsdist.core.codes import line_of
from swsdist.evaluation.comparison import compared_entropies
from swsdist.fusion.parts import parts_of, places_in_common, tell_of_apart
from swsdist.fusion.weights import Fusion
from swsdist.io.notices import Notices
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.registry.calibration_entries import Looks, looked_at
from swsdist.report.data import FusedSystemRow, FusionReport, Gain, ReportData
from swsdist.score.compare.paired import compare
from swsdist.score.compare.results import Settings
from swsdist.stages.task_results import Bucket, Measured

#: Draws of queries for the intervals of gains; `swsdist compare --cnxe` takes more.
DRAWS = 1000


def publish(outcome: Outcome, chain_run: ChainRun, force: bool = False) -> ReportData | None:
    """Write the report, as the search chain does."""
    return publish_report(outcome, chain_run, force, _made)


def _made(outcome: Outcome, chain_run: ChainRun) -> ReportData:
    data = build_report(outcome, chain_run)
    own: FuseInputs = chain_run.chain.inputs
    looks: set[Looks] = set(data.looked_at)
    if own.options.between_queries:
        looks.add("other queries")
    for system in own.chain_runs.values():
        looks |= _looked_at(system, final=own.options.scores == "final")
    order: tuple[Looks, ...] = ("own query", "other queries", "references")
    return replace(data, looked_at=tuple(one for one in order if one in looks), fusion=_fusion(chain_run))


def _looked_at(system: ChainRun, *, final: bool) -> set[Looks]:
    """What a system's scores look at that are fused: final ones, or those before the first step that is fitted."""
    settings, cohort = system.config.calibrate, system.config.corpus.cohort is not None
    names = settings.steps if final else settings.unfitted
    fit = settings.fit if final else "none"
    return set(looked_at(names, settings.entries(), fit=fit, threshold="own", cohort=cohort)) if names else set()


def _fusion(chain_run: ChainRun) -> FusionReport:
    own: FuseInputs = chain_run.chain.inputs
    fusions: list[Fusion] = []
    for part in chain_run.parts("fit", "calibration"):
        fusions = fusions_in(json.loads(chain_run.run.read_bytes(part.name)))
    joined, made, alone = 0, dict.fromkeys(sorted(own.chain_runs), 0), dict.fromkeys(sorted(own.chain_runs), 0)
    for table in chain_run.read("impute-scores", "filled", ["parts"]):
        names, _, given = parts_of(table)
        joined += table.num_rows
        single = given.sum(axis=1) == 1
        for k, name in enumerate(names):
            made[name] += int(given[:, k].sum())
            alone[name] += int((given[:, k] & single).sum())
    gains = _gains(chain_run)
    weights = _means(fusions)
    rows = []
    for name, system in own.chain_runs.items():
        told = system.results("score", Measured)
        measures = told[0].measures if told else {}
        weight, mark = weights.get(name, (None, None))
        rows.append(
            FusedSystemRow(
                system=name,
                run=system.run.path(),
                weight=weight,
                mark=mark,
                given=made[name] / joined if joined else 0.0,
                alone=alone[name] / joined if joined else 0.0,
                **{key: measures.get(key) for key in ("mtwv", "atwv", "auc", "cnxe_min")},
                gain=gains.get(name),
            )
        )
    offset = math.fsum(one.offset for one in fusions) / len(fusions) if fusions else None
    counts = {
        name: sum(told.rows for told in chain_run.results(name, Bucket))
        for name in ("merge-lists", "impute-scores", "combine", "decide")
    }
    return FusionReport(
        missing=own.options.missing,
        between_queries=own.options.between_queries,
        joined=joined,
        overlapping=counts["merge-lists"] - counts["impute-scores"],
        outdone=counts["combine"] - counts["decide"] if own.options.between_queries else 0,
        offset=offset,
        systems=tuple(rows),
    )


def _means(fusions: list[Fusion]) -> dict[str, tuple[float, float | None]]:
    """Weight and mark of each system, means over folds."""
    found: dict[str, tuple[float, float | None]] = {}
    for k, name in enumerate(fusions[0].systems if fusions else ()):
        weight = math.fsum(one.weights[k] for one in fusions) / len(fusions)
        mark = math.fsum(one.marks[k] for one in fusions) / len(fusions) if fusions[0].marks else None
        found[name] = weight, mark
    return found


def _gains(chain_run: ChainRun) -> dict[str, Gain]:
    """Over each system that was scored for the same trials; none where the fusion was not scored."""
    own: FuseInputs = chain_run.chain.inputs
    told = chain_run.results("score", Measured)
    alike = {
        name: part
        for name, part in own.chain_runs.items()
        if (mine := part.results("score", Measured)) and told and mine[0].point == told[0].point
    }
    if not alike or told[0].measures.get("cnxe_min") is None:
        return {}
    systems = [scored_of("the fusion", chain_run), *(scored_of(name, part) for name, part in alike.items())]
    settings = Settings(resamples=DRAWS)
    entropies = compared_entropies(systems, settings)
    found: dict[str, Gain] = {}
    tables = {one.name: one.maximal for one in systems if one.maximal is not None}
    maxima = compare(tables, **settings.options()).pairs if len(tables) == len(systems) else ()
    for name in alike:
        pair = next(one for one in entropies.pairs if (one.first, one.second) == ("the fusion", name))
        best = next((one for one in maxima if (one.first, one.second) == ("the fusion", name)), None)
        twv = (
            {}
            if best is None
            else {"mtwv": best.difference, "mtwv_low": best.interval.low, "mtwv_high": best.interval.high}
        )
        found[name] = Gain(
            **twv,
            cnxe_min=-pair.difference,
            cnxe_min_low=-pair.interval.high,
            cnxe_min_high=-pair.interval.low,
            cnxe_min_p=pair.p,
        )
    return found


def notices(chain_run: ChainRun) -> list[str]:
    """Those of a search, and what of a fusion its user should know."""
    own: FuseInputs = chain_run.chain.inputs
    found = of_search.notices(chain_run)
    common, apart = Counter[tuple[str, str]](), Notices()
    if (ended := chain_run.outcomes.get("merge-lists")) is not None and not ended.failures:
        for table in chain_run.read("merge-lists", "joined", ["parts"]):
            common.update(places_in_common(table))
        tell_of_apart(common, apart)
    found += [str(notice) for notice in apart.found.values()]
    if not chain_run.config.calibrate.fitted:
        found.append(line_of(codes.UNFITTED_FUSION))
    if own.options.between_queries and len(own.options.systems):
        found.append(line_of(codes.DEPENDENT_QUERIES))
    return found
