"""The files of a sweep in its run folder: table, values of queries, page, plots, and the study of KST and STO."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from swsdist.calibrate.operating_points.rescoring import CompactList, Rescoring
from swsdist.calibrate.operating_points.study import Study, StudyEntry, study
from swsdist.chains.sweep.planning import PlannedPoint, Plans, SweepPoint, alpha_of, keys_text
from swsdist.chains.sweep.ranking import RankedPoints
from swsdist.chains.sweep.reading import CONFIG, SweepSpec
from swsdist.chains.sweep.running import PointResult, SweepRun, point_at
from swsdist.config import Config
from swsdist.core.codes import sweep as codes
from swsdist.core.text import counted
from swsdist.io.filesystem import Folder
from swsdist.io.tables import write_csv
from swsdist.registry.registries import CALIBRATION
from swsdist.report.study import captioned_figures, study_files, study_tables
from swsdist.report.summary import span
from swsdist.report.sweep import SweepData, plots, render_sweep

SCHEMA = "swsdist-sweep/1"

#: Names in the sweep's folder.
TABLE, TABLE_CSV, QUERIES, VALUES, PAGE = (
    "points.parquet",
    "points.csv",
    "queries.parquet",
    "sweep.json",
    "sweep.html",
)

#: Protocols shown in full.
_MOST_PROTOCOLS = 3


def data_of(
    spec: SweepSpec,
    name: str,
    ranked: RankedPoints,
    results: Sequence[PointResult],
    notices: Sequence[str] = (),
    studied: Study | None = None,
) -> SweepData:
    """The data of a sweep's page.

    Args:
        spec: its file.
        name: of the sweep.
        ranked: its table.
        results: of all points.
        notices: for readers.
        studied: the study of KST and STO, if requested.
    """
    objective = spec.file.objective
    failed = sum(bool(result.failed) for result in results)
    shared, alone = (sum(getattr(result, name) for result in results) for name in ("share", "cpu"))
    protocols = dict.fromkeys(result.point.protocol for result in results)
    if len(protocols) > _MOST_PROTOCOLS:
        protocols = dict.fromkeys(
            f"{protocol.partition(':')[0]}: values differ between points" for protocol in protocols
        )
    about = [
        *((name, rules) for name, _, rules in (protocol.partition(": ") for protocol in protocols)),
        ("points", f"{len(results)}" + (f", of which {failed} failed" if failed else "")),
        ("ranked by", f"{objective.measure}, the {'lowest' if objective.sign < 0 else 'highest'} first"),
    ]
    tests = spec.file.tests
    if any(ranking.tested for ranking in ranked.rankings):
        how = f"{tests.resamples} draws of queries; tests: {tests.permutations} changes of sign; seed {tests.seed}"
        about.append(("intervals", how))
    if shared:
        about.append(("CPU", f"{span(shared)}; without sharing: {span(alone)}"))
    notes = [*notices]
    if len(ranked.rankings) > 1:
        notes.append(
            f"The points have {len(ranked.rankings)} scoring setups (column scored_by). They are ranked and tested "
            "against each other only within a setup."
        )
    if unread := [result.point.number for result in results if _without_alpha(result.point)]:
        notes.append(
            f"calibrate.alpha changes nothing at {counted(len(unread), 'point')} (the first is point {unread[0]}): "
            "none of its steps reads it."
        )
    if spec.repeated:
        notes.append(f"{spec.repeated} draws repeated a point and are left out.")
    return SweepData(
        name,
        ranked.table,
        ranked.keys,
        ranked.measures,
        objective.measure,
        objective.sign < 0,
        ranked.rankings,
        tests.level,
        tuple(about),
        tuple(notes),
        tuple(captioned_figures(studied)) if studied is not None else (),
        tuple(study_tables(studied)) if studied is not None else (),
        (
            (TABLE, "the table"),
            (TABLE_CSV, "the same"),
            (QUERIES, "values of queries"),
            (VALUES, "settings and the best"),
        ),
    )


def _without_alpha(point: SweepPoint) -> bool:
    """Whether a point sets `calibrate.alpha` for steps that have no such option."""
    if "calibrate.alpha" not in point.keys or not isinstance(point, PlannedPoint):
        return False
    return not any("alpha" in CALIBRATION[name].load().model.model_fields for name in point.config.calibrate.steps)


def place_of(spec: SweepSpec) -> str:
    """The sweep's folder in the run folder; sweeps of other files may share its searches."""
    return f"sweeps/{Path(spec.path).stem}"


def publish(run: Folder, spec: SweepSpec, data: SweepData, ranked: RankedPoints, studied: Study | None) -> None:
    """Write all files into the sweep's folder in the run folder.

    Args:
        run: the run folder.
        spec: the sweep's file.
        data: of the page.
        ranked: the table.
        studied: the study of KST and STO, if requested.
    """
    texts = {VALUES: _values(spec, data, ranked), PAGE: render_sweep(data)}
    if studied is not None:
        texts |= {f"study/{name}": text for name, text in study_files(studied).items()}
    texts |= {f"plots/{name}.svg": svg for name, (_, svg) in plots(data).items()}
    place = place_of(spec)
    for name, table in ((TABLE, ranked.table), (QUERIES, ranked.queries)):
        with run.temporary(".parquet") as path:
            pq.write_table(table, path)
            run.publish(path, f"{place}/{name}")
    with run.temporary(".csv") as path:
        write_csv(ranked.table, ranked.table.schema, path)
        run.publish(path, f"{place}/{TABLE_CSV}")
    for name, text in texts.items():
        run.write_bytes(f"{place}/{name}", text.encode())


def _values(spec: SweepSpec, data: SweepData, ranked: RankedPoints) -> str:
    rows = {row["point"]: row for row in data.table.to_pylist()}
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "sweep": spec.path,
        "keys": data.keys,
        "measures": data.measures,
        "objective": {"measure": data.objective, "best": "lowest" if data.lowest else "highest"},
        "tests": spec.file.tests.model_dump(mode="json") if data.tested else None,
        "scored_by": [ranking.scored_by for ranking in data.rankings] if len(data.rankings) > 1 else None,
        "points": data.table.num_rows,
        "failed": {number: row["failed"] for number, row in rows.items() if row["failed"]},
        "best": [rows[number] for number in ranked.best[: None if len(data.rankings) > 1 else 10]],
    }
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)


# -- KST and STO ------------------------------------------------------------------------------------------------------


def study_of(plans: Plans, swept: SweepRun, alphas: Sequence[float], alpha: float | None) -> Study | None:
    """The study of Wang and Metze on the searches of a sweep; None without searches.

    Args:
        plans: of the sweep.
        swept: their results.
        alphas: of the curves.
        alpha: to compare at; None: the best of each method.
    """
    ranked: list[StudyEntry] = []
    oracles = {result.point.number for result in swept.results if result.point.oracle}
    tasks = tasks_of([group.config for group in plans.groups.values()])
    for number, (name, group) in enumerate(plans.groups.items(), 1):
        if name not in swept.rescorings or not group.by_term:
            continue
        chain_run, point = swept.rescorings[name], group.points[0]
        tables = [list(chain_run.read(table)) for table in ("terms", "ranks", "contested")]
        options = chain_run.config.options
        at = point_at(group.config, swept.searches[name])
        scored = Rescoring.of(
            [CompactList(*parts) for parts in zip(*tables, strict=True)],
            tolerance=options["tolerance"],  # type: ignore[arg-type]
            conventions=options["conventions"],  # type: ignore[arg-type]
        )
        inner = {
            key: value
            for key, value in point.keys.items()
            if not key.startswith(("calibrate.steps", "calibrate.alpha")) and key != CONFIG
        }
        system = group.config.system
        names = [*([system] if CONFIG in point.keys or not inner else []), *([keys_text(inner)] if inner else [])]
        label = ", ".join(names) if len(plans.groups) > 1 else system
        label = label if label not in [item.name for item in ranked] else f"{label} ({number})"
        fit = "oracle" if point.number in oracles else point.fit
        task = tasks.get(group.config.corpus.documents, system)
        ranked.append(
            StudyEntry(label, task, scored, at.trials, at.beta, fit if group.config.calibrate.fitted else "none")
        )
    return study(ranked, alphas=list(alphas), alpha=alpha) if ranked else None


def tasks_of(configs: Iterable[Config]) -> dict[str, str]:
    """Names of several corpora, by their documents: what differs in the paths of these; none of a single corpus."""
    paths = list(dict.fromkeys(config.corpus.documents for config in configs))
    if len(paths) < 2:
        return {}
    parts = [path.split("/") for path in paths]
    shared = next(k for k in range(max(map(len, parts))) if len({tuple(part[: k + 1]) for part in parts}) > 1)
    return {path: "/".join(part[shared:]) for path, part in zip(paths, parts, strict=True)}


def alphas_of(spec: SweepSpec, plans: Plans) -> list[float]:
    """Values of alpha among the points, ascending.

    Raises:
        ConfigError: no point has an alpha.
    """
    groups = [group for group in plans.groups.values() if group.by_term]
    values = {alpha_of(point.config.calibrate) for group in groups for point in group.points}
    if not values:
        raise codes.REPORT_WITHOUT_KST(where=spec.at("report"))
    return sorted(values)
