"""Placement of workers on nodes.

A stage lists alternative resource needs of a worker, the best first. For a stage with `Stage.any_device`, each node takes the
first alternative that fits it: GPU workers on nodes with a GPU, CPU workers on the others. Workers are counted node by node:
two nodes with 3 GB each hold no worker of 4 GB.

Ray's executor and the simulator of forecasts place workers by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.core.needs import Needs


def at_least(needs: Needs, configured: Needs) -> Needs:
    """The larger of a stage's needs and the configured resources of a worker; the share of a GPU is the config's."""
    gpus = configured.gpus if needs.gpus else 0.0  # Ray hides GPUs from an actor that requests none
    return Needs(max(needs.cpus, configured.cpus), max(needs.memory_gb, configured.memory_gb), gpus)


def fit_on(node: Mapping[str, float], needs: Needs) -> int:
    """Number of workers that fit on a node.

    Args:
        node: resources by Ray's names: CPU, memory in bytes, GPU.
        needs: resources of a worker.
    """
    fit = int(min(node.get("CPU", 0) // needs.cpus, node.get("memory", 0) / (needs.memory_gb * 1e9)))
    return min(fit, int(node.get("GPU", 0) / needs.gpus + 1e-9)) if needs.gpus else fit


def kind_on(node: Mapping[str, float], alternatives: Sequence[Needs]) -> tuple[int, int] | None:
    """Index of the first alternative that fits a node, and the number of such workers; None if none fits."""
    fits = ((k, fit_on(node, needs)) for k, needs in enumerate(alternatives))
    return next((fit for fit in fits if fit[1] > 0), None)


def workers_for(
    nodes: Iterable[Mapping[str, float]], alternatives: Sequence[Needs], most: int | None, tasks: int
) -> list[Needs]:
    """Resources of each worker of a stage, the best alternatives first; empty if none fits any node.

    Args:
        nodes: resources of each node.
        alternatives: alternative resources of a worker, the best first.
        most: most workers; None: all that fit.
        tasks: number of tasks, which bounds the workers.
    """
    counts: dict[int, int] = {}
    for node in nodes:
        if (taken := kind_on(node, alternatives)) is not None:
            counts[taken[0]] = counts.get(taken[0], 0) + taken[1]
    every = [alternatives[k] for k in sorted(counts) for _ in range(counts[k])]
    return every[: min(len(every) if most is None else most, tasks)]


def matched(existing: Sequence[Needs], required: Sequence[Needs]) -> tuple[list[int], list[Needs]]:
    """Match existing workers to the required ones.

    Returns:
        Indices of the existing workers to keep, each for the first requirement that it covers, and unmatched requirements.
    """
    kept, missing = [], list(required)
    for k, has in enumerate(existing):
        for needs in missing:
            if has.satisfies(needs):
                missing.remove(needs)
                kept.append(k)
                break
    return kept, missing


def lacking(nodes: Iterable[Mapping[str, float]], needs: Needs, growing: bool) -> str | None:
    """What no node has, and an autoscaler may still add: CPUs, or a GPU that it was asked for (`growing`); None: nothing."""
    nodes = list(nodes)
    if not any(node.get("CPU") for node in nodes):
        return "CPUs for workers"
    return "a GPU for workers" if growing and needs.gpus and not any(fit_on(node, needs) for node in nodes) else None


def nothing_fits(nodes: Iterable[Mapping[str, float]], needs: Needs) -> UserError:
    """The error if no worker fits any node."""
    # The resources of a single node count, not their sum.
    have = max(nodes, key=lambda node: (node.get("CPU", 0), node.get("memory", 0)), default={})
    wants, has = (f"{needs.gpus:g} GPUs, ", f"{have.get('GPU', 0):g} GPUs, ") if needs.gpus else ("", "")
    return codes.NO_FITTING_NODE(
        where="executor",
        needs=f"{wants}{needs.cpus} CPUs and {needs.memory_gb:g} GB",
        node=f"{has}{have.get('CPU', 0):g} CPUs and {have.get('memory', 0) / 1e9:.1f} GB",
        gpu="set search.backend, or the device of an extractor, to cpu, " if needs.gpus else "",
    )
