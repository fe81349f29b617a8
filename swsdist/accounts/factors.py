"""Measures of processing cost of the SWS 2013 evaluation: ISF, SSF, PMU and PL.

Plain functions of numbers, from a run's accounts or measured otherwise. CPU time is the total over all processors, "as
if it was computed on a single CPU": 14 hours on 16 cores are 224 hours.

Conventions: time in s, memory in GB = 1e9 bytes; None: undefined.

**Two units of SSF.** Equation 46 divides a time by a product of two times, so it is 1/s or 1/h. The source's worked
example is in hours: 48 CPU hours for 0.25 h of queries in 300 h of audio. That is 0.64; the source prints 0.8, a slip.
`searching_speed_factor` is in 1/s, and 3600 times it is what the example computes. PL inherits the unit: name it.

Source: Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web search task: system performance measures", 2013,
section 4.3, "Required amount of processing resources", equations 46 to 48.

ISF, SSF, PMU and PL by type of node: the cost of the run if all nodes were of that type.

A stage's CPU time on a type is divided by the type's share of the stage's work, in the stage's unit (seconds of audio,
cells of the search, ...). A stage in which a type had no part counts with its cost on the other nodes; a phase in which it
had no part has no factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from swsdist.accounts.costs import GB, Costs
from swsdist.accounts.hardware import Description
from swsdist.core.codes import pipeline as codes


def indexing_speed_factor(cpu_s: float, audio_s: float) -> float | None:
    """ISF: CPU seconds of indexing, as if on a single CPU, per second of audio (section 4.3).

    The source's example, 224 CPU hours for 300 hours of audio, gives 0.7467. None where there was no audio.
    """
    return cpu_s / audio_s if audio_s > 0 else None


def query_seconds(examples: Mapping[str, Iterable[float]]) -> float:
    """T_Q of equation 47: the sum over queries q, and over the examples j in S(q) used to search for q, of T_j.

    Args:
        examples: query -> durations of its examples, s.
    """
    return math.fsum(seconds for durations in examples.values() for seconds in durations)


def searching_speed_factor(cpu_s: float, query_s: float, audio_s: float) -> float | None:
    """SSF = T_searching / (T_Q T_Omega), equation 46, with all three in s; so it is in 1/s.

    The source's example uses hours: 48 CPU hours, 0.25 hours of queries and 300 hours of audio give 0.64 (printed
    there as 0.8, a slip). That is 3600 times this function's value. None where there was nothing to search.

    Args:
        cpu_s: CPU seconds of searching, as if on a single CPU.
        query_s: T_Q of equation 47, see `query_seconds`.
        audio_s: T_Omega, the duration of the documents.
    """
    return cpu_s / (query_s * audio_s) if query_s > 0 and audio_s > 0 else None


def query_cost(cpu_s: float, queries: int, audio_s: float) -> float | None:
    """CPU seconds of searching per query and hour of audio: of written queries too, which have no duration.

    None where there was nothing to search.
    """
    return cpu_s / (queries * audio_s / 3600) if queries > 0 and audio_s > 0 else None


def peak_memory(gigabytes: Iterable[float]) -> float | None:
    """PMU of a phase: the single highest value over all steps and nodes (section 4.3). None if there are none.

    Args:
        gigabytes: highest memory of each node or step, GB.
    """
    return max(gigabytes, default=None)


def processing_load(
    isf: float | None, ssf: float | None, pmu_index_gb: float | None, pmu_search_gb: float | None, weight: float
) -> float | None:
    """PL = lambda ISF PMU_i + (1 - lambda) SSF PMU_s, equation 48; None where a factor is unknown.

    PL depends on the unit of `ssf` (1/s or 1/h): state it with the figure.

    Args:
        weight: lambda, from 0 to 1; the source suggests 0.1.

    Raises:
        UserError: lambda is outside 0 to 1.
    """
    if not 0 <= weight <= 1:
        raise codes.INVALID_PL_WEIGHT(weight=weight)
    if isf is None or ssf is None or pmu_index_gb is None or pmu_search_gb is None:
        return None
    return weight * isf * pmu_index_gb + (1 - weight) * ssf * pmu_search_gb


@dataclass(frozen=True, kw_only=True)
class Factors:
    """All measures of cost.

    Attributes:
        isf: indexing speed factor.
        ssf: searching speed factor, 1/s.
        ssf_hours: the same with all times in hours.
        pmu_index_gb, pmu_search_gb: peak memory of the two phases, GB.
        pl: processing load with `ssf`.
        pl_hours: with `ssf_hours`.
        pl_lambda: the weight of indexing in both.
        index_gpu_s, search_gpu_s: s for which tasks reserved a GPU; not part of any factor.
        gpu_index_gb, gpu_search_gb: GPU memory in use, GB; not part of any factor.
    """

    isf: float | None
    ssf: float | None
    ssf_hours: float | None
    pmu_index_gb: float | None
    pmu_search_gb: float | None
    pl: float | None
    pl_hours: float | None
    pl_lambda: float
    index_gpu_s: float | None = None
    search_gpu_s: float | None = None
    gpu_index_gb: float | None = None
    gpu_search_gb: float | None = None


def factors(
    *,
    index_cpu_s: float | None = None,
    search_cpu_s: float | None = None,
    query_s: float | None = None,
    audio_s: float | None = None,
    index_peaks_gb: Iterable[float] = (),
    search_peaks_gb: Iterable[float] = (),
    weight: float = 0.1,
) -> Factors:
    """Compute all measures that the given values define; the others are None.

    Args:
        index_cpu_s: CPU s of indexing.
        search_cpu_s: CPU s of searching.
        query_s: duration of all query examples, before trimming, s.
        audio_s: duration of the documents, s.
        index_peaks_gb: peak memory of each node while indexing, GB.
        search_peaks_gb: the same while searching.
        weight: lambda of PL.

    Raises:
        UserError: a number is negative or not finite, or lambda is outside 0 to 1.
    """
    index_peaks, search_peaks = list(index_peaks_gb), list(search_peaks_gb)
    quantities: dict[str, list[float | None]] = {
        "CPU time of indexing": [index_cpu_s],
        "CPU time of searching": [search_cpu_s],
        "duration of the queries": [query_s],
        "duration of the audio": [audio_s],
        "peak memory": [*index_peaks, *search_peaks],
    }
    for name, values in quantities.items():
        for value in values:
            if value is not None and not 0 <= value < math.inf:
                raise codes.INVALID_COST(quantity=name, value=value)
    isf = indexing_speed_factor(index_cpu_s, audio_s) if index_cpu_s is not None and audio_s is not None else None
    ssf = None
    if search_cpu_s is not None and query_s is not None and audio_s is not None:
        ssf = searching_speed_factor(search_cpu_s, query_s, audio_s)
    ssf_hours = None if ssf is None else 3600 * ssf
    pmu_index, pmu_search = peak_memory(index_peaks), peak_memory(search_peaks)
    return Factors(
        isf=isf,
        ssf=ssf,
        ssf_hours=ssf_hours,
        pmu_index_gb=pmu_index,
        pmu_search_gb=pmu_search,
        pl=processing_load(isf, ssf, pmu_index, pmu_search, weight),
        pl_hours=processing_load(isf, ssf_hours, pmu_index, pmu_search, weight),
        pl_lambda=weight,
    )


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
