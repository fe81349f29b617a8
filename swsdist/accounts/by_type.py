"""ISF, SSF, PMU and PL by type of node: the cost of the run if all nodes were of that type.

A stage's CPU time on a type is divided by the type's share of the stage's work, in the stage's unit (seconds of audio,
cells of the search, ...). A stage in which a type had no part counts with its cost on the other nodes; a phase in which it
had no part has no factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from swsdist.accounts.costs import GB, Costs
from swsdist.accounts.factors import Factors, factors
from swsdist.accounts.hardware import Description


class TypeCost(NamedTuple):
    """A type of node: name, hardware, its nodes that worked, and its factors."""

    name: str
    hardware: Description
    nodes: tuple[str, ...]
    factors: Factors


def by_type(
    costs: Costs, phases: Mapping[str, str], *, query_s: float, audio_s: float, weight: float
) -> tuple[TypeCost, ...]:
    """Costs of each type of node that worked on the run's tasks.

    Args:
        costs: costs of the run.
        phases: phase of each stage, by name: `index`, `search`; others are not counted.
        query_s: duration of all query examples, s.
        audio_s: duration of the documents, s.
        weight: lambda of PL.
    """
    done = costs.done()
    worked = {host for host, _ in done}
    type_costs = []
    for name, (described, hosts) in costs.types().items():
        hosts_at_work = [host for host in hosts if host in worked]
        if not hosts_at_work:
            continue
        index, search = (
            _cpu(costs, hosts_at_work, [s for s, p in phases.items() if p == phase]) for phase in ("index", "search")
        )
        peaks = [
            [bytes_ / GB for host, bytes_ in costs.peaks(phase).items() if host in hosts_at_work]
            for phase in ("index", "search")
        ]
        factors_of_type = factors(
            index_cpu_s=index,
            search_cpu_s=search,
            query_s=query_s,
            audio_s=audio_s,
            index_peaks_gb=peaks[0],
            search_peaks_gb=peaks[1],
            weight=weight,
        )
        type_costs.append(TypeCost(name, described, tuple(hosts_at_work), factors_of_type))
    return tuple(type_costs)


def _cpu(costs: Costs, hosts: Sequence[str], stages: Sequence[str]) -> float | None:
    """CPU s of a phase if these nodes had done all of it."""
    parts, any_work = [], False
    for stage in stages:
        on_all = [item for (_, name), item in costs.done().items() if name == stage]
        on_these = [item for (host, name), item in costs.done().items() if name == stage and host in hosts]
        if not on_all:
            continue
        work, part = (math.fsum(item.work for item in some) for some in (on_all, on_these))
        if on_these and part > 0:
            any_work = True
            parts.append(math.fsum(item.cpu for item in on_these) * work / part)
        else:
            parts.append(math.fsum(item.cpu for item in on_all))
    return math.fsum(parts) if any_work else None
