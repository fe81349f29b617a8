"""The description of hardware and processing resources that SWS 2013 requires of every system.

Rodriguez-Fuentes and Penagarikano (2013), section 4.3: number and type of nodes; of each type the computer's brand, the CPU's
model, cores and clock, RAM and operating system; ISF, SSF, PMU of both phases, and PL.
"""

from __future__ import annotations

from swsdist.accounts.factors import TypeCost
from swsdist.accounts.factors import Factors
from swsdist.report.data import Resources
from swsdist.report.summary import NOTHING, fixed, gpu_figures, short
from swsdist.report.tables import Table

MARKDOWN, LATEX = "system-description.md", "system-description.tex"

_HARDWARE = ("type", "nodes", "computer", "CPU", "cores", "GHz", "RAM, GB", "GPU", "operating system")
_COSTS = ("nodes", "ISF", "SSF, 1/s", "SSF, 1/h", "PMU index, GB", "PMU search, GB", "PL", "PL, hours")


def system_description(types: tuple[TypeCost, ...], resources: Resources) -> list[Table]:
    """Two tables: the hardware, and the costs by type of node and in total.

    Args:
        types: of the nodes used.
        resources: of the run.
    """
    hardware = [
        [
            _letter(number),
            str(len(item.nodes)),
            item.hardware["brand"],
            item.hardware["cpu"],
            str(item.hardware["cores"]),
            fixed(item.hardware["clock_ghz"], 2),
            fixed(item.hardware["ram_gb"], 1),
            item.hardware.get("gpu") or NOTHING,
            item.hardware["os"],
        ]
        for number, item in enumerate(types)
    ]
    costs = [[f"type {_letter(number)} alone", *_figures(item.factors)] for number, item in enumerate(types)]
    costs.append(["all", *_figures(resources)])
    count = sum(len(item.nodes) for item in types)
    kinds = "1 type" if len(types) == 1 else f"{len(types)} types"
    nodes = "node" if count == 1 else "nodes"
    used = f"Indexing and searching ran on {count} {nodes} of {kinds}. {NOTHING}: none, or not known"
    note = (
        f"CPU times are totals over all processors: {short(resources.audio_seconds / 3600)} h of audio, "
        f"{short(resources.query_seconds)} s of query examples as they were given; PMU is the highest over nodes, GB = 1e9 "
        f"bytes; PL with lambda {short(resources.pl_lambda)}. A row of a type is what the whole would have taken on nodes of "
        f"that type alone, by its part of each stage's work. {NOTHING}: it had no part in that phase, or the figure is not "
        "known"
    )
    if gpu_lines := [f"{name} {text} {why}" for name, why, text, value in gpu_figures(resources) if value]:
        note += f". {'; '.join(gpu_lines)}"
    return [
        Table("Computing hardware", _HARDWARE, hardware, f"{used}.", texts=(0, 2, 3, 7, 8)),
        Table("Processing resources (SWS 2013, section 4.3)", _COSTS, costs, f"{note}."),
    ]


def _figures(results: Factors | Resources) -> list[str]:
    return [
        *map(short, (results.isf, results.ssf, results.ssf_hours)),
        *(fixed(value, 3) for value in (results.pmu_index_gb, results.pmu_search_gb)),
        *map(short, (results.pl, results.pl_hours)),
    ]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)
