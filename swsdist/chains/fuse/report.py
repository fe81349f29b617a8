"""The report of a fusion: that of a search, and the contribution of each system."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from swsdist.calibrate.fusion import Fusion, count_common_places, parts_of, warn_disjoint_systems
from swsdist.calibrate.steps.logistic import fusions_in, mean_of
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.report import notices as of_search
from swsdist.chains.report.publish import publish_report, scored_of
from swsdist.chains.report.reporting import build_report
from swsdist.core.codes import fuse as codes
from swsdist.core.codes import line_of
from swsdist.evaluation.comparison import compare_min_cnxe
from swsdist.io.notices import Notices
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.registry.entries import Dependency, decision_dependencies
from swsdist.report.data import FusedSystemRow, FusionReport, Gain, ReportData
from swsdist.score.compare.paired import Settings, compare
from swsdist.stages.buckets import Bucket, Measured

#: Draws of queries for the intervals of gains; `swsdist compare --cnxe` takes more.
DRAWS = 1000


def publish(outcome: Outcome, chain_run: ChainRun, force: bool = False) -> ReportData | None:
    """Write the report."""
    return publish_report(outcome, chain_run, force, _fusion_data)


def _fusion_data(outcome: Outcome, chain_run: ChainRun) -> ReportData:
    data = build_report(outcome, chain_run)
    inputs: FuseInputs = chain_run.chain.inputs
    looks: set[Dependency] = set(data.looked_at)
    if inputs.options.between_queries:
        looks.add("other queries")
    for system in inputs.chain_runs.values():
        looks |= _dependencies(system, final=inputs.options.scores == "final")
    order: tuple[Dependency, ...] = ("own query", "other queries", "references")
    return replace(data, looked_at=tuple(item for item in order if item in looks), fusion=_fusion(chain_run))


def _dependencies(system: ChainRun, *, final: bool) -> set[Dependency]:
    """The dependencies of a system's fused scores: final scores, or those before the first fitted step."""
    settings, cohort = system.config.calibrate, system.config.corpus.cohort is not None
    names = settings.steps if final else settings.unfitted
    fit = settings.fit if final else "none"
    return (
        set(decision_dependencies(names, settings.entries(), fit=fit, threshold="own", cohort=cohort))
        if names
        else set()
    )


def _fusion(chain_run: ChainRun) -> FusionReport:
    inputs: FuseInputs = chain_run.chain.inputs
    fusions: list[Fusion] = []
    for part in chain_run.table("calibration").parts:
        fusions = fusions_in(json.loads(chain_run.run.read_bytes(part.name)))
    joined, detected, alone = (
        0,
        dict.fromkeys(sorted(inputs.chain_runs), 0),
        dict.fromkeys(sorted(inputs.chain_runs), 0),
    )
    for table in chain_run.read("filled", ["parts"]):
        names, _, present = parts_of(table)
        joined += table.num_rows
        single = present.sum(axis=1) == 1
        for k, name in enumerate(names):
            detected[name] += int(present[:, k].sum())
            alone[name] += int((present[:, k] & single).sum())
    gains = _gains(chain_run)
    mean = mean_of(fusions) if fusions else None
    rows = []
    for name, system in inputs.chain_runs.items():
        result = system.results("measures", Measured)
        measures = result[0].measures if result else {}
        place = mean.systems.index(name) if mean is not None and name in mean.systems else None
        rows.append(
            FusedSystemRow(
                system=name,
                run=system.run.path(),
                weight=None if mean is None or place is None else mean.weights[place],
                mark=None if mean is None or place is None or not mean.marks else mean.marks[place],
                given=detected[name] / joined if joined else 0.0,
                alone=alone[name] / joined if joined else 0.0,
                **{key: measures.get(key) for key in ("mtwv", "atwv", "auc", "cnxe_min")},
                gain=gains.get(name),
            )
        )
    decided = "combined" if inputs.options.between_queries else "scored"
    counts = {
        label: sum(result.rows for result in chain_run.results(label, Bucket))
        for label in ("joined", "filled", decided, "scored")
    }
    return FusionReport(
        missing=inputs.options.missing,
        between_queries=inputs.options.between_queries,
        joined=joined,
        overlapping=counts["joined"] - counts["filled"],
        outdone=counts[decided] - counts["scored"],
        offset=None if mean is None else mean.offset,
        systems=tuple(rows),
    )


def _gains(chain_run: ChainRun) -> dict[str, Gain]:
    """Gains over each system with the same trials; empty if the fusion was not scored."""
    inputs: FuseInputs = chain_run.chain.inputs
    result = chain_run.results("measures", Measured)
    alike = {
        name: part
        for name, part in inputs.chain_runs.items()
        if (measured := part.results("measures", Measured)) and result and measured[0].point == result[0].point
    }
    if not alike or result[0].measures.get("cnxe_min") is None:
        return {}
    systems = [scored_of("the fusion", chain_run), *(scored_of(name, part) for name, part in alike.items())]
    settings = Settings(resamples=DRAWS)
    entropies = compare_min_cnxe(systems, settings)
    results: dict[str, Gain] = {}
    tables = {system.name: system.maximal for system in systems if system.maximal is not None}
    maxima = compare(tables, settings).pairs if len(tables) == len(systems) else ()
    for name in alike:
        pair = next(pair for pair in entropies.pairs if (pair.first, pair.second) == ("the fusion", name))
        best = next((item for item in maxima if (item.first, item.second) == ("the fusion", name)), None)
        twv = (
            {}
            if best is None
            else {"mtwv": best.difference, "mtwv_low": best.interval.low, "mtwv_high": best.interval.high}
        )
        results[name] = Gain(
            **twv,
            cnxe_min=-pair.difference,
            cnxe_min_low=-pair.interval.high,
            cnxe_min_high=-pair.interval.low,
            cnxe_min_p=pair.p,
        )
    return results


def notices(chain_run: ChainRun) -> list[str]:
    """Notices of a search, and of the fusion."""
    inputs: FuseInputs = chain_run.chain.inputs
    results = of_search.notices(chain_run)
    common, disjoint = Counter[tuple[str, str]](), Notices()
    if (ended := chain_run.ended("joined")) is not None and not ended.failures:
        for table in chain_run.read("joined", ["parts"]):
            common.update(count_common_places(table))
        warn_disjoint_systems(common, disjoint)
    results += [str(notice) for notice in disjoint.entries.values()]
    if not chain_run.config.calibrate.fitted:
        results.append(line_of(codes.UNFITTED_FUSION))
    if inputs.options.between_queries and len(inputs.options.systems):
        results.append(line_of(codes.DEPENDENT_QUERIES))
    return results
