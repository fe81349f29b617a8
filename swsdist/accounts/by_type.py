"""ISF, SSF, PMU and PL of each type of node in a run: what the run would have cost on nodes of that type alone.

A stage's CPU time on a type is divided by the part of the stage's work that was done there, by the stage's own measure of work
(seconds of audio, cells of the search, ...). A stage that a type had no part in counts with what it cost where it was done; a
phase that it had no part in has no factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from swsdist.accounts.costs import GB, Costs
from swsdist.accounts.factors import Factors, factors
from swsdist.accounts.hardware import Description


class TypeCost(NamedTuple):
    """A type of node, what it is, the nodes of it that worked, and its factors."""

    name: str
    hardware: Description
    nodes: tuple[str, ...]
    factors: Factors


def by_type(
    costs: Costs, phases: Mapping[str, str], *, query_s: float, audio_s: float, weight: float
) -> tuple[TypeCost, ...]:
    """One a type of node that worked on the run's tasks.

    Args:
        costs: of the run.
        phases: of its stages by name: `index`, `search`, others count for nothing.
        query_s: s of all query examples.
        audio_s: s of the documents.
        weight: lambda of PL.
    """
    done = costs.done()
    worked = {host for host, _ in done}
    found = []
    for name, (described, hosts) in costs.types().items():
        mine = [host for host in hosts if host in worked]
        if not mine:
            continue
        index, search = (
            _cpu(costs, mine, [s for s, p in phases.items() if p == phase]) for phase in ("index", "search")
        )
        peaks = [
            [bytes_ / GB for host, bytes_ in costs.peaks(phase).items() if host in mine]
            for phase in ("index", "search")
        ]
        made = factors(
            index_cpu_s=index,
            search_cpu_s=search,
            query_s=query_s,
            audio_s=audio_s,
            index_peaks_gb=peaks[0],
            search_peaks_gb=peaks[1],
            weight=weight,
        )
        found.append(TypeCost(name, described, tuple(mine), made))
    return tuple(found)


def _cpu(costs: Costs, hosts: Sequence[str], stages: Sequence[str]) -> float | None:
    """CPU s of a phase, had it been done on these nodes alone."""
    parts, any_here = [], False
    for stage in stages:
        every = [item for (_, name), item in costs.done().items() if name == stage]
        here = [item for (host, name), item in costs.done().items() if name == stage and host in hosts]
        if not every:
            continue
        work, part = (math.fsum(item.work for item in some) for some in (every, here))
        if here and part > 0:
            any_here = True
            parts.append(math.fsum(item.cpu for item in here) * work / part)
        else:
            parts.append(math.fsum(item.cpu for item in every))
    return math.fsum(parts) if any_here else None
