"""The numbers of a comparison for other programs: JSON, and CSV tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from swsdist.core.fingerprint import fields, plain
from swsdist.score.compare.results import ComparisonData
from swsdist.score.measures.det import accepted_from

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
