"""A comparison of systems: tables as text, for a terminal, a page and LaTeX; JSON and CSV; and one self-contained page,
without network requests and scripts, printable.

Names in the page are untrusted: jinja2 escapes all of them; only the plots are inserted unescaped. A content
security policy in the page forbids everything that it does not need.

Conventions: values from -inf to 1 (ATWV, MTWV), p values and probabilities from 0 to 1; `None` for undefined values.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from swsdist.core.arrays import Floats
from swsdist.core.fingerprint import fields, plain
from swsdist.registry.registries import quantities
from swsdist.report.plots.curves import Estimate, Line, Mark, det_svg, differences_svg, forest_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.report.summary import fixed, rendered, short
from swsdist.report.tables import Table
from swsdist.score.compare.bootstrap import Interval
from swsdist.score.compare.cross_entropy import EntropyPair
from swsdist.score.compare.paired import PairRow, Settings, SignFlip, Wilcoxon
from swsdist.score.compare.results import BreakdownTable, ComparisonData, DetLine, Measured, SystemInfo
from swsdist.score.measures.det import accepted_from

#: Marks of significance, and their upper limits of p.
MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_DIGITS = 16  # of a digest


#: Why a value is undefined.
_GAP = "not defined for so few values, or values that do not vary"


def measure_tables(data: ComparisonData, block: Measured) -> list[Table]:
    """Systems, and their pairs (differences and tests), by one measure."""
    return [_systems(block, data), _differences(block, data), _tests(block, data)]


def paper_table(
    values: Mapping[str, Mapping[str, float | None]], keys: Sequence[str], data: ComparisonData, note: str = ""
) -> Table:
    """The table of a paper: one row per system; one column per measure, with an arrow towards better values, and one for its
    interval over queries, where the comparison has it.

    Args:
        values: by system and key.
        keys: of the measures, in their order.
        data: the comparison.
        note: below the table.
    """
    intervals = {
        block.measure.lower(): {row.system: row.interval for row in block.comparison.systems} for block in data.blocks
    }
    worse = {block.measure.lower(): _worse_than_best(block) for block in data.blocks}
    notes = [note] if note else []
    settings, over = data.settings, data.units
    if data.entropies is not None:
        intervals["cnxe_min"] = {row.system: row.interval for row in data.entropies.systems}
        best = min(data.entropies.systems, key=lambda row: row.value).system
        worse["cnxe_min"] = {
            other: stars(row.p_holm) for row in data.entropies.pairs if (other := _other(row, best)) is not None
        }
    arrows = {"highest": " ↑", "lowest": " ↓", "": ""}
    columns, rows = ["system"], [[name] for name in values]
    plain: list[dict[str, object]] = [{"system": name} for name in values]
    for item in (quantities()[key] for key in keys):
        between = intervals.get(item.key)
        columns += [item.name + arrows[item.best], *([f"{_percent(settings)} interval"] if between else [])]
        for row, numbers, (name, its) in zip(rows, plain, values.items(), strict=True):
            row.append(fixed(its.get(item.key), item.decimals) + worse.get(item.key, {}).get(name, ""))
            numbers[item.key] = its.get(item.key)
            if between:
                row.append(_interval(between[name]))
                numbers |= {f"{item.key}_low": between[name].low, f"{item.key}_high": between[name].high}
    if intervals.keys() & {*keys}:
        kind = "BCa" if settings.method == "bca" else "percentile"
        notes.append(f"Intervals: {kind} bootstrap over {over}, {settings.resamples} draws, seed {settings.seed}.")
    if len(values) > 1 and worse.keys() & {*keys}:
        flips = sorted({_signs(row.sign_flip) for block in data.blocks for row in block.comparison.pairs})
        test = f"paired sign-flip test over {over} ({'; '.join(flips)})"
        if data.entropies is not None and "cnxe_min" in keys:
            test += f", of min Cnxe the draws of its intervals ({data.entropies.draws})"
        notes.append(f"Worse than the best of the column: {_limits()}; {test}, Holm's correction over all pairs.")
    return Table(
        "Systems", columns, rows, " ".join(notes), plain=plain, gap="not defined for the system, or not known of it"
    )


def _worse_than_best(block: Measured) -> dict[str, str]:
    """Marks of the systems whose mean differs from the best one's."""
    best = max(block.comparison.systems, key=lambda row: row.mean).system
    return {
        other: stars(row.sign_flip_holm) for row in block.comparison.pairs if (other := _other(row, best)) is not None
    }


def _other(row: PairRow | EntropyPair, system: str) -> str | None:
    """The other system of a pair; None: the pair is of others."""
    return {row.first: row.second, row.second: row.first}.get(system)


def _limits() -> str:
    return ", ".join(f"{mark} p < {limit:g}" for limit, mark in reversed(MARKS))


def entropy_tables(data: ComparisonData) -> list[Table]:
    """Min Cnxe of the systems and of their pairs; empty if not requested."""
    results = data.entropies
    if results is None:
        return []
    over = f"{_percent(data.settings)} over queries"
    rows = [[row.system, fixed(row.value), _interval(row.interval)] for row in results.systems]
    note = (
        f"Less is better. {results.queries} queries, with and without references; "
        f"intervals from {results.draws} "
        f"draws "
        f"of queries, seed {data.settings.seed}, the map fitted anew to each."
    )
    if results.undefined:
        note += f" {results.undefined} draws have no true occurrence and are left out."
    pairs = [
        [
            pair_name(row),
            f"{row.difference:+.4f}",
            stars(row.p_holm),
            _interval(row.interval),
            p_value(row.p),
            p_value(row.p_holm),
        ]
        for row in results.pairs
    ]
    text = (
        "Paired: all systems see the same draws. p: twice the part of the draws on the other side, at least "
        f"{short(2 / (results.draws - results.undefined + 1), 2)}; Holm's correction is over all pairs."
    )
    return [
        Table("min Cnxe", ["system", "min Cnxe", over], rows, note),
        Table("Differences of min Cnxe", ["pair", "difference", "", over, "p", "Holm"], pairs, text),
    ]


def breakdown_tables(data: ComparisonData) -> list[Table]:
    """The breakdowns in their order, the systems side by side."""
    columns = dict.fromkeys(part.column for part in data.breakdowns)
    return [
        table
        for column in columns
        for table in _breakdown([part for part in data.breakdowns if part.column == column], data.blocks[0].measure)
    ]


def protocol_lines(data: ComparisonData) -> list[str]:
    """The scoring rules, one line per distinct set of rules."""
    systems: dict[str, list[str]] = {}
    for item in data.about:
        systems.setdefault(item.protocol_text or "protocol unknown: not in per-term tables", []).append(item.name)
    return [text if len(systems) == 1 else f"{', '.join(names)}: {text}" for text, names in systems.items()]


def about_tables(data: ComparisonData) -> list[Table]:
    """Data, protocol, versions and digests: common ones, and differences."""
    common, differing = _common_and_other([_facts(item) for item in data.about])
    all_known = all(item.settings for item in data.about)
    settings = _common_and_other([item.settings for item in data.about])[1] if all_known else []  # differing ones
    differing += settings
    unknown = [item.name for item in data.about if item.point is None]
    note = ""
    if unknown:
        note = f"Data and protocol of {', '.join(unknown)} are unknown: not in per-term tables."
    first_rows = [["compared", data.made], ["compared with", _versions(data.versions)]] if data.made else []
    tables = [Table("Data, protocol and versions", ["", "all systems"], [*first_rows, *common], note, texts=(0, 1))]
    if differing:
        more = "The last rows are the config keys that affect results and differ."
        columns = ["", *(item.name for item in data.about)]
        note_text = more if settings else ""
        tables.append(Table("Where the systems differ", columns, differing, note_text, texts=range(len(columns))))
    return tables


def _common_and_other(values_by_system: Sequence[Mapping[str, str]]) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of common values (name, value), and of others (name, value of each system)."""
    common, differing = [], []
    for key in dict.fromkeys(key for item in values_by_system for key in item):
        values = [item.get(key, "not known") for item in values_by_system]
        if len({*values}) == 1 and len(values) > 1:
            common.append([key, values[0]])
        else:
            differing.append([key, *values])
    return common, differing


def p_value(p: float | None) -> str:
    """A p value for people: three significant digits, at least 4 decimals, or a power of ten."""
    return short(p, 3) if p is None or p < 1e-3 else f"{p:.4f}"


def stars(p: float | None) -> str:
    """The mark of a p of a difference of means, corrected by Holm for all pairs."""
    return next((mark for limit, mark in MARKS if p is not None and p < limit), "")


# -- systems and pairs ------------------------------------------------------------------------------------------------


def _interval(interval: Interval) -> str:
    return f"{fixed(interval.low)} to {fixed(interval.high)}"


def _percent(settings: Settings) -> str:
    return f"{100 * settings.level:g}%"


def _systems(block: Measured, data: ComparisonData) -> Table:
    results, settings = block.comparison, data.settings
    percent = _percent(settings)
    columns = [
        "system",
        block.measure,
        f"{percent} over {data.units}",
        *([f"{percent} over documents"] if block.systems else []),
    ]
    rows = []
    for k, row in enumerate(results.systems):
        over = [_interval(block.systems[k])] if block.systems else []
        rows.append([row.system, fixed(row.mean), _interval(row.interval), *over, str(row.absent or "")])
    what = "queries with references" if data.units == "queries" else data.units
    note = f"{len(results.paired.queries)} {what}; intervals from {settings.resamples} draws, seed "
    note += f"{settings.seed}, {'BCa' if settings.method == 'bca' else 'percentiles'}."
    if block.measure == "MTWV" and data.units == "queries":
        note += " The threshold that is best for all queries is kept in all draws."
    if block.undefined:
        note += f" {block.undefined} draws of documents have no value and are left out."
    if any(row.absent for row in results.systems):
        note += " Queries missing from a system count as all missed."
        columns.append("lacking")
    else:
        rows = [row[:-1] for row in rows]
    return Table(block.measure, columns, rows, note, gap=_GAP)


def pair_name(row: PairRow | EntropyPair) -> str:
    """The name of a difference."""
    return f"{row.first} − {row.second}"


def _differences(block: Measured, data: ComparisonData) -> Table:
    percent = _percent(data.settings)
    columns = ["pair", "difference", "", f"{percent} over {data.units}"]
    columns += [f"{percent} over documents"] if block.pairs else []
    columns += ["wins/losses/ties", "d"]
    rows = []
    for k, row in enumerate(block.comparison.pairs):
        over = [_interval(block.pairs[k])] if block.pairs else []
        counts = f"{row.wins}/{row.losses}/{row.ties}"
        rows.append(
            [
                pair_name(row),
                f"{row.difference:+.4f}",
                stars(row.sign_flip_holm),
                _interval(row.interval),
                *over,
                counts,
                fixed(row.cohen_d, 2),
            ]
        )
    note = (
        f"{_limits()}: p of the sign-flip test with Holm's correction, below. Wins: {data.units} on which the first is better. "
        "d is Cohen's d of paired values."
    )
    return Table(f"Differences of {block.measure}", columns, rows, note, gap=_GAP)


def _tests(block: Measured, data: ComparisonData) -> Table:
    columns = [
        "pair",
        *(f"{test}: {what}" for test in ("sign flip", "t", "Wilcoxon") for what in ("p", "Holm", "FDR")),
        "r",
    ]
    rows = [
        [
            pair_name(row),
            *map(p_value, (row.sign_flip.p, row.sign_flip_holm, row.sign_flip_fdr)),
            *map(p_value, (row.t.p, row.t_holm, row.t_fdr)),
            *map(p_value, (row.wilcoxon.p, row.wilcoxon_holm, row.wilcoxon_fdr)),
            fixed(row.rank_biserial, 2),
        ]
        for row in block.comparison.pairs
    ]
    signs = sorted({_signs(row.sign_flip) for row in block.comparison.pairs})
    variants = sorted({_variant(row.wilcoxon) for row in block.comparison.pairs})
    note = (
        f"Two-sided paired tests over {data.units}: of the mean by changes of sign ({'; '.join(signs)}) and Student's t; of "
        f"the ranks Wilcoxon's ({'; '.join(variants)}), which is in favour of the greater mean only if r, the rank-biserial "
        "correlation, has the sign of the difference. Holm's correction is for the chance of any false alarm among all pairs, "
        "FDR (Benjamini and Hochberg) for their share."
    )
    return Table(f"Tests of {block.measure}, p values", columns, rows, note, gap=_GAP)


def _signs(test: SignFlip) -> str:
    return "all signs" if test.exact else f"{test.draws} draws"


def _variant(test: Wilcoxon) -> str:
    zeros = {"wilcox": "dropped", "pratt": "ranked, then dropped (Pratt)", "zsplit": "halved"}[test.zero_method]
    return f"{'exact' if test.exact else 'normal approximation'}, zeros {zeros}"


# -- breakdowns -------------------------------------------------------------------------------------------------------

_Row = dict[str, Any]


def _breakdown(parts: Sequence[BreakdownTable], measure: str) -> list[Table]:
    """The breakdown by one column: values, maxima by group, counts, and contributions."""
    column = parts[0].column
    rows_by_system = {part.first: part.table.to_pylist() for part in parts if part.second is None}
    gains = {part.second or "": part.table.to_pylist() for part in parts if part.second is not None}
    systems = list(rows_by_system)
    groups = ["not known" if row["group"] is None else row["group"] for row in rows_by_system[systems[0]]]

    def table(caption: str, cell: Callable[[_Row], str], note: str = "", end: Sequence[str] = ()) -> Table:
        rows = []
        for k, group in enumerate(groups):
            system_rows = [rows_by_system[system][k] for system in systems]
            rows.append(
                [
                    group,
                    _common_or_all(system_rows, "terms"),
                    _common_or_all(system_rows, "ntrue"),
                    *map(cell, system_rows),
                ]
            )
        rows += [["all", "", "", *end]] if end else []
        columns = [column, "queries", "references", *systems]
        return Table(f"{caption}, by {column}", columns, rows, note, gap="no query of the group has a value")

    tables = [table(measure, lambda row: fixed(row["twv"]))]
    if any(row.get("mtwv") is not None for rows in rows_by_system.values() for row in rows):
        note = "In brackets: the best threshold for the group alone; none: rejecting all is best."
        tables.append(table("MTWV of the group", _group_maximum, note))
    tables.append(table("Hits/false alarms", lambda row: f"{_count(row['ncorr'])}/{_count(row['nfa'])}"))
    totals = [[row["total"] for row in rows_by_system[system]] for system in systems]
    if not any(None in values for values in totals):
        sums = [fixed(math.fsum(values)) for values in totals]
        note = "A group's part of the whole: the sum of its values over the number of all queries. The parts add up."
        tables.append(table(f"Part of {measure}", lambda row: fixed(row["total"]), note, sums))
    if gains:
        rows = [
            [group, *(_signed(results[k]["total"]) for results in gains.values())] for k, group in enumerate(groups)
        ]
        rows.append(["all", *(_signed(math.fsum(row["total"] for row in results)) for results in gains.values())])
        columns = [column, *(f"{parts[0].first} − {name}" for name in gains)]
        caption = f"Where the difference of {measure} comes from, by {column}"
        tables.append(Table(caption, columns, rows, "A group's part of the difference. The parts add up."))
    return tables


def _common_or_all(rows: Sequence[_Row], name: str) -> str:
    """A number common to all systems, or all numbers."""
    values = [_count(row[name]) for row in rows]
    return values[0] if len({*values}) == 1 else "/".join(values)


def _count(value: int | None) -> str:
    return short(None) if value is None else str(value)


def _signed(value: float | None) -> str:
    return short(None) if value is None else f"{value:+.4f}"


def _group_maximum(row: _Row) -> str:
    limit = row["mtwv_threshold"]
    return fixed(row["mtwv"]) + ("" if limit is None else f" ({short(limit)})")


# -- what was compared ------------------------------------------------------------------------------------------------


#: Sources of systems, in words.
_KINDS = {"run": "run folder", "list": "system list"}


def _facts(about: SystemInfo) -> dict[str, str]:
    """Facts of a system by name, in order."""
    results = {"read from": _KINDS.get(about.kind, about.kind), "path": about.path}
    if about.label is not None:
        results["system"] = about.label
    if about.digest is not None:
        results["digest"] = about.digest[:_DIGITS]
        results["digest of"] = "scored list and measures" if about.kind == "run" else "the file, SHA-256"
    if about.corpus:
        results["corpus"] = "; ".join(about.corpus)
    if (point := about.point) is not None:
        if point.documents is not None:
            results["documents"] = str(point.documents)
        results["audio"] = f"{point.seconds / 3600:.4g} h"
        results["queries"] = str(point.queries)
        results["references"] = str(point.true)
    if about.detections is not None:
        results["detections"] = str(about.detections)
    if point is not None:
        trials = {"time": "seconds of audio", "segment": "segments", "document": "documents"}[point.trials_are]
        results["protocol"] = f"{point.protocol}, conventions of {point.conventions}"
        results["operating point"] = f"beta {short(point.beta, 6)}, {point.trials} trials a query, which are {trials}"
    if about.tolerance is not None:
        results["tolerance"] = f"{short(about.tolerance)} s"
    if about.made is not None:
        results["report made"] = about.made
    if about.versions:
        results["made with"] = _versions(about.versions)
    return results


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


SCHEMA = "swsdist-comparison/1"

#: Names of the columns of a breakdown of differences, besides the systems.
_DIFFERENCE = {
    "first": "system_value",
    "second": "other_value",
    "mean": "mean_difference",
    "total": "part_of_difference",
}


def to_json(data: ComparisonData) -> dict[str, object]:
    """The comparison as dicts, lists, strings, numbers and None only, ready for `json.dump`."""
    return {
        "schema": SCHEMA,
        "made": data.made,
        "versions": dict(data.versions),
        "systems": list(data.systems),
        "units": data.units,
        "settings": dataclasses.asdict(data.settings),
        "about": plain(data.about),
        "measures": [
            {
                "measure": block.measure,
                "pairs_of_values": len(block.comparison.paired.queries),
                "systems": [
                    {**fields(row), "over_documents": plain(block.systems[k] if block.systems else None)}
                    for k, row in enumerate(block.comparison.systems)
                ],
                "pairs": [
                    {**fields(row), "over_documents": plain(block.pairs[k] if block.pairs else None)}
                    for k, row in enumerate(block.comparison.pairs)
                ],
                "undefined_draws": block.undefined,
            }
            for block in data.blocks
        ],
        "cross_entropies": None
        if data.entropies is None
        else {
            "queries": data.entropies.queries,
            "draws": data.entropies.draws,
            "undefined_draws": data.entropies.undefined,
            "systems": plain(data.entropies.systems),
            "pairs": plain(data.entropies.pairs),
        },
        "breakdowns": [
            {"column": part.column, "first": part.first, "second": part.second, "groups": plain(part.table.to_pylist())}
            for part in data.breakdowns
        ],
        "notices": list(data.notices),
    }


def csv_tables(data: ComparisonData) -> dict[str, pa.Table]:
    """The comparison as tables of plain numbers, by name: those of JSON, and values by query."""
    values = to_json(data)
    results: dict[str, list[dict[str, object]]] = {"about": [_flat(row) for row in _rows(values["about"])]}
    for block in _rows(values["measures"]):
        for name in ("systems", "pairs"):
            rows = results.setdefault(name, [])
            rows += [{"measure": block["measure"], **_flat(row)} for row in _rows(block[name])]
    queries = results.setdefault(data.units if data.units == "queries" else "conditions", [])
    for measured in data.blocks:
        joined = measured.comparison.paired
        for system, system_values in zip(joined.systems, joined.values.tolist(), strict=True):
            for query, ntrue, value in zip(joined.queries, joined.ntrue.tolist(), system_values, strict=True):
                row = {"measure": measured.measure, "system": system, "query_id": query, "ntrue": ntrue, "value": value}
                queries.append(row)
    if isinstance(entropies := values["cross_entropies"], Mapping):
        for name in ("systems", "pairs"):
            results[f"cnxe_{name}"] = [_flat(row) for row in _rows(entropies[name])]
    for part in _rows(values["breakdowns"]):
        place = {"column": part["column"], "system": part["first"]}
        if part["second"] is None:
            results.setdefault("breakdowns", []).extend({**place, **group} for group in _rows(part["groups"]))
        else:
            place["other"] = part["second"]
            results.setdefault("breakdowns_of_differences", []).extend(
                {**place, **{_DIFFERENCE.get(name, name): value for name, value in group.items()}}
                for group in _rows(part["groups"])
            )
    return {name: _table(rows) for name, rows in results.items() if rows}


def write_csv_tables(data: ComparisonData, folder: Path) -> list[Path]:
    """Write the tables to a new folder: `systems.csv`, `pairs.csv`, ...; return their paths."""
    from swsdist.io.tables import write_csv

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in csv_tables(data).items():
        paths.append(folder / f"{name}.csv")
        write_csv(table, table.schema, paths[-1])
    return paths


def det_table(data: ComparisonData) -> pa.Table:
    """The points of the DET curves: system, score, pmiss, pfa; by system, score ascending; infinite where nothing is
    accepted."""
    parts = [
        pa.table(
            {
                "system": pa.array([line.name] * len(line.pfa), pa.string()),
                "score": accepted_from(line.threshold, line.pmiss, line.pfa),
                "pmiss": line.pmiss,
                "pfa": line.pfa,
            }
        )
        for line in data.lines
    ]
    return pa.concat_tables(parts)


def _table(rows: list[dict[str, object]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _rows(values: object) -> list[dict[str, object]]:
    assert isinstance(values, list)
    return values


def _flat(row: Mapping[str, object], above: str = "") -> dict[str, object]:
    """A flat mapping: nested keys joined by `_`, lists as text."""
    results: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            results |= _flat(value, f"{above}{name}_")
        else:
            results[f"{above}{name}"] = "; ".join(map(str, value)) if isinstance(value, list) else value
    return results


#: Most pairs with a plot each: all pairs of six systems.
MOST_PAIRS = 15
#: Most systems with operating points in the legend of the DET curves.
_MOST_MARKED = 8
#: Pixels of the legend of the DET curves, of a plot of the page's width, and of a plot beside others.
_LEGEND, _WIDE, _NARROW = 300, 900, 560


def render_comparison(data: ComparisonData) -> str:
    """The page as HTML text, to be written as UTF-8."""
    lines = {line.name for line in data.lines}
    return rendered(
        "comparison",
        data=data,
        title=" · ".join(data.systems),
        about=about_tables(data),
        det=det_plot(data),
        without=[item.name for item in data.about if item.name not in lines],
        blocks=[
            {
                "measure": block.measure,
                "forest": _forest(block, data.units, _WIDE),
                "plots": _plots(block, data.units),
                "left_out": _left_out(block),
                "tables": measure_tables(data, block),
            }
            for block in data.blocks
        ],
        entropies=entropy_tables(data),
        breakdowns=breakdown_tables(data),
    )


def det_plot(data: ComparisonData) -> str | None:
    """The DET curves of all systems in one picture, with a legend; None without curves."""
    if not data.lines:
        return None
    marked = len(data.lines) <= _MOST_MARKED
    lines = [Line(line.name, line.pfa, line.pmiss, _marks(line) if marked else ()) for line in data.lines]
    points = [item.point for item in data.about if item.point is not None]
    return det_svg(lines, beta=points[0].beta if points else None, title="DET curves", legend_width=_LEGEND)


def _marks(line: DetLine) -> tuple[Mark, ...]:
    points = (("ATWV", line.actual), ("MTWV", line.maximum))
    return tuple(Mark(f"{name} {fixed(at.twv)}", at.pfa, at.pmiss) for name, at in points if at is not None)


def forest_plots(data: ComparisonData) -> str:
    """Values and differences with intervals as one picture, the measures side by side."""
    plots = [_forest(block, data.units, _NARROW)[1] for block in data.blocks]
    names = ", ".join(block.measure for block in data.blocks)
    return side_by_side(plots, title=f"{names}: values and differences with intervals")


def _forest(block: Measured, units: str, width: int) -> tuple[str, str]:
    """Caption and plot of all values and differences with their intervals."""
    results = block.comparison
    rows = [Estimate(row.system, row.mean, row.interval.low, row.interval.high) for row in results.systems]
    rows += [
        Estimate(
            f"{pair_name(row)} {stars(row.sign_flip_holm)}".strip(),
            row.difference,
            row.interval.low,
            row.interval.high,
            1,
        )
        for row in results.pairs
    ]
    caption = f"{block.measure} and its differences, intervals over {units}; stars as of the table of differences"
    return caption, forest_svg(rows, title=block.measure, axis=block.measure, width=width)


def _shown(block: Measured) -> list[PairRow]:
    """The pairs with a plot: all, or if too many, those of the first system."""
    pairs = list(block.comparison.pairs)
    return pairs if len(pairs) <= MOST_PAIRS else [row for row in pairs if row.first == pairs[0].first][:MOST_PAIRS]


def _left_out(block: Measured) -> str:
    """A note on pairs without a plot."""
    shown, pairs = _shown(block), block.comparison.pairs
    if len(shown) == len(pairs):
        return ""
    return (
        f"Drawn are {len(shown)} of {len(pairs)} pairs, those of {pairs[0].first}; all are in the tables. Name the system "
        "that matters most first."
    )


def _plots(block: Measured, units: str) -> list[tuple[str, str]]:
    """Captions and plots of differences by query, on one scale."""
    results = block.comparison
    place: Mapping[str, Floats] = dict(zip(results.paired.systems, results.paired.values, strict=True))
    shown = [(row, place[row.first] - place[row.second]) for row in _shown(block)]
    reach = (min((float(d.min()) for _, d in shown), default=0.0), max((float(d.max()) for _, d in shown), default=0.0))
    plots = []
    for row, values in shown:
        caption = (
            f"{pair_name(row)}, {units} from gain to loss: {row.wins} better, {row.losses} worse, {row.ties} the same"
        )
        plots.append((caption, differences_svg(values, title=caption, width=340, height=200, reach=reach)))
    return plots
