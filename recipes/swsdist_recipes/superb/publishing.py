"""The files of SUPERB's number in the run folder: table, figure, lists, and lines for a terminal."""

from __future__ import annotations

import json
from importlib.metadata import version

from swsdist.report.plots.curves import Axes, Series, lines_svg
from swsdist.report.tables import Table, padded, write_tables
from swsdist_recipes.quesst.database import QuesstDatabase, write_list
from swsdist_recipes.superb.plans import PLACE, THRESHOLD
from swsdist_recipes.superb.running import Superb

SCHEMA = "swsdist-superb/1"


def publish(result: Superb, database: QuesstDatabase) -> None:
    """Write `layers.csv`, `superb.json`, `mtwv.svg` and the lists of the best layer into the folder `superb` of a run.

    Args:
        result: what was measured.
        database: what was searched.
    """
    run = result.folder
    run.write_bytes(f"{PLACE}/superb.json", json.dumps(as_json(result), indent=1, allow_nan=False).encode())
    run.write_bytes(f"{PLACE}/mtwv.svg", figure(result).encode())
    with run.temporary(".csv") as path:
        write_tables([table(result)], path)
        run.publish(path, f"{PLACE}/layers.csv")
    for split, trials in result.lists.items():
        with run.temporary(".xml") as path:
            durations = dict.fromkeys(database.documents, 0.0)
            write_list(trials, database.queries[split], durations, path)
            run.publish(path, f"{PLACE}/{split}.stdlist.xml")


def as_json(result: Superb) -> dict[str, object]:
    """Plain values of all results."""
    return {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "upstream": result.name,
        "variant": result.variant,
        "threshold": THRESHOLD,
        "dev": [{"layer": layer, **values} for layer, values in result.dev.items()],
        "best_layer": result.best,
        "eval": result.eval,
        "cpu_s": {stage: round(seconds, 3) for stage, seconds in result.cpu.items()},
        "notices": list(result.notices),
    }


def table(result: Superb) -> Table:
    """A row for each layer; that of the best has the values of eval too."""
    rows = []
    for layer, values in result.dev.items():
        numbers: dict[str, float | None] = {f"dev_{name}": value for name, value in values.items()}
        of_eval = result.eval if layer == result.best else dict.fromkeys(values)
        rows.append({"layer": layer, **numbers, **{f"eval_{name}": value for name, value in of_eval.items()}})
    columns = list(rows[0])
    cells = [[_cell(row[name]) for name in columns] for row in rows]
    return Table("MTWV by layer", columns, cells, texts=(), plain=rows)


def text_lines(result: Superb) -> list[str]:
    """The table, the CPU time, and the line to report."""
    made = table(result)
    cpu = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in result.cpu.items())
    return [*padded([made.columns, *made.rows]), "", f"CPU s: {cpu}", "", headline(result)]


def headline(result: Superb) -> str:
    """The line to report."""
    variant = "" if result.variant == "default" else f" ({result.variant})"
    return (
        f"{result.name}{variant}: QbE MTWV {result.eval['mtwv']:.4f} on eval with layer {result.best}, "
        f"{result.dev[result.best]['mtwv']:.4f} on dev"
    )


def figure(result: Superb) -> str:
    """MTWV on dev by layer, as SVG; the dot is the best layer."""
    values = [item["mtwv"] for item in result.dev.values()]
    axes = Axes("layer", "MTWV on dev", y_range=(0.0, max(0.01, *values) * 1.05))
    marks = [(float(result.best), result.dev[result.best]["mtwv"], 0)]
    return lines_svg([Series("", list(result.dev), values)], axes, marks=marks, title=f"MTWV of {result.name} by layer")


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "–" if value is None else str(value)
