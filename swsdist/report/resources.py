"""ISF, SSF, PMU and PL from a run's report, from given numbers, or from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swsdist.accounts.costs import Factors, factors
from swsdist.core.codes import discovery as codes
from swsdist.io.filesystem import Folder
from swsdist.report.data import Resources
from swsdist.report.schema import read_report_json
from swsdist.report.summary import NOTHING, UNKNOWN_COSTS, fixed, gpu_figures, short
from swsdist.report.tables import Table

#: The inputs of the figures, and their names in `report.json` under `resources`.
_OF_RUN = {
    "index_cpu_s": "index_cpu_s",
    "search_cpu_s": "search_cpu_s",
    "audio_s": "audio_seconds",
    "query_s": "query_seconds",
    "index_peaks_gb": "pmu_index_gb",
    "search_peaks_gb": "pmu_search_gb",
    "weight": "pl_lambda",
}
_OF_GPUS = ("index_gpu_s", "search_gpu_s", "gpu_index_gb", "gpu_search_gb")


def from_numbers(
    run: str | None = None,
    *,
    index_cpu_s: float | None = None,
    search_cpu_s: float | None = None,
    audio_s: float | None = None,
    query_s: float | None = None,
    index_peaks_gb: Sequence[float] = (),
    search_peaks_gb: Sequence[float] = (),
    weight: float | None = None,
) -> Factors:
    """The figures of a run, where given numbers replace the run's.

    Args:
        run: folder of a run with a report; None: only the numbers.
        index_cpu_s, search_cpu_s: CPU s.
        audio_s, query_s: s.
        index_peaks_gb, search_peaks_gb: highest memory of each node, GB.
        weight: lambda of PL, 0.1 by default.

    Raises:
        UserError: the run has no report, nothing is given, or a number is impossible.
    """
    numbers: dict[str, Any] = {
        "index_cpu_s": index_cpu_s,
        "search_cpu_s": search_cpu_s,
        "audio_s": audio_s,
        "query_s": query_s,
        "index_peaks_gb": list(index_peaks_gb) or None,
        "search_peaks_gb": list(search_peaks_gb) or None,
        "weight": weight,
    }
    if run is None and all(value is None for name, value in numbers.items() if name != "weight"):
        raise codes.NO_NUMBERS()
    run_values, gpu = ({}, {}) if run is None else _run_inputs(run)
    values = run_values | {name: value for name, value in numbers.items() if value is not None}
    return replace(factors(**{name: value for name, value in values.items() if value is not None}), **gpu)


def _run_inputs(run: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of a run's figures, and its use of GPUs."""
    results = read_report_json(Folder(run))["resources"]
    run_values = {name: results[key] for name, key in _OF_RUN.items()}
    for name in ("index_peaks_gb", "search_peaks_gb"):
        run_values[name] = None if run_values[name] is None else [run_values[name]]
    return run_values, {name: results.get(name) for name in _OF_GPUS}  # a run of an earlier version has none


def resource_table(results: Factors | Resources) -> Table:
    """The figures as a table with meanings."""
    rows = _rows(results)
    return Table(
        "Processing resources",
        ("figure", "", "value"),
        [(name, note if value is not None else _unknown_cost(name), text) for name, note, text, value in rows],
        f"{NOTHING}: not known." if any(value is None for *_, value in rows) else "",
        texts=(0, 1),
        plain=[{"figure": name, "meaning": note, "value": value} for name, note, _, value in rows],
    )


def resource_lines(results: Factors) -> list[str]:
    """The figures as lines of text: name, value, meaning or reason for its absence."""
    return [
        f"{name:<10}  {text:>10}  {note if value is not None else _unknown_cost(name)}"
        for name, note, text, value in _rows(results)
    ]


def _unknown_cost(name: str) -> str:
    return f"not known: {UNKNOWN_COSTS[name.partition(',')[0]]}"


def _rows(results: Factors | Resources) -> list[tuple[str, str, str, float | None]]:
    """Name, meaning, value as text, and value of each figure."""
    weight = short(results.pl_lambda)
    return [
        ("ISF", "CPU s per s of audio", short(results.isf), results.isf),
        ("SSF", "CPU s per query s and audio s", short(results.ssf), results.ssf),
        ("SSF, hours", "the same with all times in hours: 3600 x SSF", short(results.ssf_hours), results.ssf_hours),
        ("PMU index", "GB, highest over nodes", fixed(results.pmu_index_gb, 3), results.pmu_index_gb),
        ("PMU search", "GB, highest over nodes", fixed(results.pmu_search_gb, 3), results.pmu_search_gb),
        ("PL", f"lambda {weight}, with SSF", short(results.pl), results.pl),
        ("PL, hours", f"lambda {weight}, with SSF in hours", short(results.pl_hours), results.pl_hours),
        *gpu_figures(results),
    ]
