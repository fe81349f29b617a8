"""What a sweep leaves in its run folder: the table, values of queries, a page, plots, and the study of KST and STO."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from swsdist.calibrate.points.rescoring import Compacted, Rescoring
from swsdist.calibrate.points.study import Entry, Study, study
from swsdist.chains.sweep.planning import Plans, alpha_of, keys_text
from swsdist.chains.sweep.ranking import RankedPoints
from swsdist.chains.sweep.reading import SweepSpec
from swsdist.chains.sweep.running import PointResult, SweepRun, point_at
from swsdist.core.codes import sweep as codes
from swsdist.io.filesystem import Folder
from swsdist.io.tables import write_csv
from swsdist.report.study import captioned, study_files, study_tables
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

#: Protocols that are told in full.
_MOST_PROTOCOLS = 3


def data_of(
    given: SweepSpec,
    name: str,
    found: RankedPoints,
    results: Sequence[PointResult],
    notices: Sequence[str] = (),
    studied: Study | None = None,
) -> SweepData:
    """What a sweep shows.

    Args:
        given: its file.
        name: of the sweep.
        found: its table.
        results: of all points.
        notices: what a reader should know.
        studied: the study of KST and STO, where it was asked for.
    """
    objective = given.file.objective
    failed = sum(bool(one.failed) for one in results)
    shared, alone = (sum(getattr(one, name) for one in results) for name in ("share", "cpu"))
    protocols = dict.fromkeys(one.point.protocol for one in results)
    if len(protocols) > _MOST_PROTOCOLS:
        protocols = dict.fromkeys(
            f"{one.partition(':')[0]}: its values differ from point to point" for one in protocols
        )
    about = [
        *((name, rules) for name, _, rules in (one.partition(": ") for one in protocols)),
        ("points", f"{len(results)}" + (f", of which {failed} failed" if failed else "")),
        ("ranked by", f"{objective.measure}, the {'lowest' if objective.sign < 0 else 'highest'} first"),
    ]
    if shared:
        about.append(("CPU", f"{span(shared)}; each point by itself: {span(alone)}"))
    said = [*notices]
    if len(found.rankings) > 1:
        said.append(
            f"Points are scored in {len(found.rankings)} ways (column scored_by): their values can be drawn together, but they "
            "are ranked, and tested against each other, only where they are scored alike."
        )
    if given.repeated:
        said.append(f"{given.repeated} draws gave a point that was there already, and are left out.")
    return SweepData(
        name,
        found.table,
        found.keys,
        found.measures,
        objective.measure,
        objective.sign < 0,
        found.rankings,
        given.file.tests.level,
        tuple(about),
        tuple(said),
        tuple(captioned(studied)) if studied is not None else (),
        tuple(study_tables(studied)) if studied is not None else (),
        (
            (TABLE, "the table"),
            (TABLE_CSV, "the same"),
            (QUERIES, "values of queries"),
            (VALUES, "settings and the best"),
        ),
    )


def place_of(given: SweepSpec) -> str:
    """Where in the run folder a sweep's results lie: sweeps of other files may share its searches."""
    return f"sweeps/{Path(given.path).stem}"


def publish(run: Folder, given: SweepSpec, data: SweepData, found: RankedPoints, studied: Study | None) -> None:
    """Write all of it into a folder of its own in the run folder.

    Args:
        run: the run folder.
        given: the sweep's file.
        data: what the page shows.
        found: the table.
        studied: the study of KST and STO, where it was asked for.
    """
    texts = {VALUES: _values(given, data, found), PAGE: render_sweep(data)}
    if studied is not None:
        texts |= {f"study/{name}": text for name, text in study_files(studied).items()}
    texts |= {f"plots/{name}.svg": svg for name, (_, svg) in plots(data).items()}
    place = place_of(given)
    for name, table in ((TABLE, found.table), (QUERIES, found.queries)):
        with run.temporary(".parquet") as path:
            pq.write_table(table, path)
            run.publish(path, f"{place}/{name}")
    with run.temporary(".csv") as path:
        write_csv(found.table, found.table.schema, path)
        run.publish(path, f"{place}/{TABLE_CSV}")
    for name, text in texts.items():
        run.write_bytes(f"{place}/{name}", text.encode())


def _values(given: SweepSpec, data: SweepData, found: RankedPoints) -> str:
    rows = {row["point"]: row for row in data.table.to_pylist()}
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "sweep": given.path,
        "keys": data.keys,
        "measures": data.measures,
        "objective": {"measure": data.objective, "best": "lowest" if data.lowest else "highest"},
        "tests": given.file.tests.model_dump(mode="json") if data.tested else None,
        "scored_by": [one.scored_by for one in data.rankings] if len(data.rankings) > 1 else None,
        "points": data.table.num_rows,
        "failed": {number: row["failed"] for number, row in rows.items() if row["failed"]},
        "best": [rows[number] for number in found.best[: None if len(data.rankings) > 1 else 10]],
    }
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)


# -- KST and STO ------------------------------------------------------------------------------------------------------


def study_of(plans: Plans, swept: SweepRun, alphas: Sequence[float], alpha: float | None) -> Study | None:
    """The study of Wang and Metze on the searches of a sweep; None where none was done.

    Args:
        plans: of the sweep.
        swept: what came of them.
        alphas: to look at.
        alpha: to compare at; None: the best of each method.
    """
    found: list[Entry] = []
    oracles = {one.point.number for one in swept.results if one.point.oracle}
    for number, (name, group) in enumerate(plans.groups.items(), 1):
        if name not in swept.rescorings or not group.by_term:
            continue
        chain_run, point = swept.rescorings[name], group.points[0]
        tables = [list(chain_run.read("sort-scores", table)) for table in ("terms", "ranks", "contested")]
        options = chain_run.config.options
        at = point_at(group.config, swept.searches[name])
        scored = Rescoring.of(
            [Compacted(*parts) for parts in zip(*tables, strict=True)],
            tolerance=options["tolerance"],  # type: ignore[arg-type]
            conventions=options["conventions"],  # type: ignore[arg-type]
        )
        inner = {
            key: value
            for key, value in point.keys.items()
            if not key.startswith(("calibrate.steps", "calibrate.alpha"))
        }
        label = keys_text(inner) if inner and len(plans.groups) > 1 else group.config.system
        label = label if label not in [one.name for one in found] else f"{label} ({number})"
        fit = "oracle" if point.number in oracles else point.fit
        found.append(Entry(label, group.config.system, scored, at.trials, at.beta, fit))
    return study(found, alphas=list(alphas), alpha=alpha) if found else None


def alphas_of(given: SweepSpec, plans: Plans) -> list[float]:
    """Values of alpha among the points, ascending.

    Raises:
        ConfigError: no point has one.
    """
    groups = [group for group in plans.groups.values() if group.by_term]
    values = {alpha_of(point.config.calibrate) for group in groups for point in group.points}
    if not values:
        raise codes.REPORT_WITHOUT_KST(where=given.at("report"))
    return sorted(values)
