"""What a comparison of systems shows, as plain values: tables of text for a terminal and a page, and JSON.

Conventions: values from -inf to 1 (ATWV, MTWV), p values and probabilities from 0 to 1; `None` where a value does not
exist. The rows are made once, here; the rest is how they are laid out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from swsdist.report.summary import fixed, short
from swsdist.score.compare.bootstrap import Interval
from swsdist.score.compare.paired import PairRow
from swsdist.score.compare.results import BreakdownTable, ComparisonData, Measured, Settings
from swsdist.score.compare.significance import Wilcoxon

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = "swsdist-comparison/1"


@dataclass(frozen=True)
class Table:
    """A table of text; the columns from `numbers` on hold numbers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    numbers: int = 1


def measure_tables(data: ComparisonData, block: Measured) -> list[Table]:
    """Systems, and their pairs, by one measure."""
    return [_systems(block, data), _pairs(block, data)]


def breakdown_tables(data: ComparisonData) -> list[Table]:
    """The breakdowns, in their order."""
    return [_breakdown(part, data.blocks[0].measure) for part in data.breakdowns]


def text_lines(table: Table) -> list[str]:
    """A table as aligned lines of plain text, its caption above and its note below, whole whatever the screen."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(table.columns))]

    def line(row: Sequence[str]) -> str:
        cells = [f"{cell:{'>' if k >= table.numbers else '<'}{widths[k]}}" for k, cell in enumerate(row)]
        return "  ".join(cells).rstrip()

    return [table.caption, *map(line, rows), *([table.note] if table.note else [])]


def _interval(interval: Interval) -> str:
    return f"{fixed(interval.low)} to {fixed(interval.high)}"


def _percent(settings: Settings) -> str:
    return f"{100 * settings.level:g}%"


def _systems(block: Measured, data: ComparisonData) -> Table:
    found, settings = block.comparison, data.settings
    percent = _percent(settings)
    columns = [
        "system",
        block.measure,
        f"{percent} over {data.units}",
        *([f"{percent} over documents"] if block.systems else []),
    ]
    rows = []
    for k, row in enumerate(found.systems):
        over = [_interval(block.systems[k])] if block.systems else []
        rows.append([row.system, fixed(row.mean), _interval(row.interval), *over, str(row.absent or "")])
    what = "queries with references" if data.units == "queries" else data.units
    note = f"{len(found.paired.queries)} {what}; intervals from {settings.resamples} draws, seed "
    note += f"{settings.seed}, {'BCa' if settings.method == 'bca' else 'percentiles'}."
    if block.undefined:
        note += f" {block.undefined} draws of documents have no value and are left out."
    if any(row.absent for row in found.systems):
        note += " Queries that a system lacks count as all missed."
        columns.append("lacking")
    else:
        rows = [row[:-1] for row in rows]
    return Table(block.measure, columns, rows, note)


def _pairs(block: Measured, data: ComparisonData) -> Table:
    percent = _percent(data.settings)
    columns = ["pair", "difference", f"{percent} over {data.units}"]
    columns += [f"{percent} over documents"] if block.pairs else []
    columns += ["t: p", "Holm", "FDR", "Wilcoxon: p", "Holm", "FDR", "wins/losses/ties", "d", "r"]
    rows = []
    for k, row in enumerate(block.comparison.pairs):
        over = [_interval(block.pairs[k])] if block.pairs else []
        rows.append(
            [
                f"{row.first} - {row.second}",
                f"{row.difference:+.4f}",
                _interval(row.interval),
                *over,
                *map(p_value, (row.t.p, row.t_holm, row.t_fdr)),
                *map(p_value, (row.wilcoxon.p, row.wilcoxon_holm, row.wilcoxon_fdr)),
                f"{row.wins}/{row.losses}/{row.ties}",
                fixed(row.cohen_d, 2),
                fixed(row.rank_biserial, 2),
            ]
        )
    return Table(f"Differences of {block.measure}", columns, rows, _tests(block.comparison.pairs, data.units))


def _tests(pairs: Sequence[PairRow], units: str) -> str:
    ways = sorted({_way(row.wilcoxon) for row in pairs})
    return (
        f"Two-sided paired t and Wilcoxon signed-rank tests over {units}; Holm's correction is for the chance of any false "
        f"alarm among all pairs, FDR (Benjamini and Hochberg) for their share. Wilcoxon: {'; '.join(ways)}. d is Cohen's "
        "d of paired values, r the rank-biserial correlation."
    )


def _way(test: Wilcoxon) -> str:
    zeros = {"wilcox": "dropped", "pratt": "ranked, then dropped (Pratt)", "zsplit": "halved"}[test.zero_method]
    return f"{'exact' if test.exact else 'normal approximation'}, zeros {zeros}"


def p_value(p: float | None) -> str:
    """As a person reads it: three significant digits, at least 4 decimals, or a power of ten."""
    return short(p, 3) if p is None or p < 1e-3 else f"{p:.4f}"


def _breakdown(part: BreakdownTable, measure: str) -> Table:
    rows = part.table.to_pylist()
    # A maximum takes an aligned list, which not all systems have.
    blank = {"mtwv", "mtwv_threshold"} if all(row.get("mtwv") is None for row in rows) else set()
    names = [name for name in part.table.column_names if name not in {"group", *blank}]
    cells = [
        ["not known" if row["group"] is None else row["group"], *(_cell(name, row[name]) for name in names)]
        for row in rows
    ]
    labels = {
        "twv": measure,
        "first": part.first,
        "second": part.second or "",
        "mean": "mean difference",
        "total": "part of the whole",
        "mtwv": "MTWV of the group",
        "mtwv_threshold": "at threshold",
    }
    who = part.first if part.second is None else f"{part.first} - {part.second}"
    whole = [row["total"] for row in rows]
    note = "" if None in whole else f"The parts add up to {math.fsum(whole):.4f}."
    if "mtwv" in names:
        note += (
            " A group's MTWV is at the threshold that is best for it alone; where there is none, rejecting all is best."
        )
    columns = [part.column, *(labels.get(name, name) for name in names)]
    return Table(f"{who}, by {part.column}", columns, cells, note.strip())


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        return fixed(value, 6 if name == "pfa" else 4)
    return short(None) if value is None else str(value)


def to_json(data: ComparisonData) -> dict[str, object]:
    """The comparison as dicts, lists, strings, numbers and None only, ready for `json.dump`."""
    return {
        "schema": SCHEMA,
        "systems": list(data.systems),
        "units": data.units,
        "settings": dataclasses.asdict(data.settings),
        "measures": [
            {
                "measure": block.measure,
                "pairs_of_values": len(block.comparison.paired.queries),
                "systems": [
                    {**_fields(row), "over_documents": _plain(block.systems[k] if block.systems else None)}
                    for k, row in enumerate(block.comparison.systems)
                ],
                "pairs": [
                    {**_fields(row), "over_documents": _plain(block.pairs[k] if block.pairs else None)}
                    for k, row in enumerate(block.comparison.pairs)
                ],
                "undefined_draws": block.undefined,
            }
            for block in data.blocks
        ],
        "breakdowns": [
            {
                "column": part.column,
                "first": part.first,
                "second": part.second,
                "groups": _plain(part.table.to_pylist()),
            }
            for part in data.breakdowns
        ],
        "notices": list(data.notices),
    }


def _fields(value: DataclassInstance) -> dict[str, object]:
    return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}


def _plain(value: object) -> object:
    if isinstance(value, Interval):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
