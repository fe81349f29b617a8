"""Which workers are made where.

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


def at_least(needs: Needs, given: Needs) -> Needs:
    """What a stage needs, or what the config gives each worker, if that is more; its part of a GPU is the config's."""
    gpus = given.gpus if needs.gpus else 0.0  # Ray hides the GPUs from an actor that asked for none
    return Needs(max(needs.cpus, given.cpus), max(needs.memory_gb, given.memory_gb), gpus)


def fit_on(node: Mapping[str, float], needs: Needs) -> int:
    """How many workers fit on a node.

    Args:
        node: its resources, as Ray names them: CPU, memory in bytes, GPU.
        needs: of each worker.
    """
    fit = int(min(node.get("CPU", 0) // needs.cpus, node.get("memory", 0) / (needs.memory_gb * 1e9)))
    return min(fit, int(node.get("GPU", 0) / needs.gpus + 1e-9)) if needs.gpus else fit


def kind_on(node: Mapping[str, float], alternatives: Sequence[Needs]) -> tuple[int, int] | None:
    """Which of the alternatives a node takes, by its place, and how many such workers fit on it; None if none does."""
    fits = ((k, fit_on(node, needs)) for k, needs in enumerate(alternatives))
    return next((one for one in fits if one[1] > 0), None)


def workers_for(
    nodes: Iterable[Mapping[str, float]], alternatives: Sequence[Needs], most: int | None, tasks: int
) -> list[Needs]:
    """What each worker of a stage is to have, the best kinds first; empty if none fits on any node.

    Args:
        nodes: resources of each node.
        alternatives: what a worker must have, the best first.
        most: workers that are wanted; None: all that fit.
        tasks: of the stage; there are no more workers than that.
    """
    found: dict[int, int] = {}
    for node in nodes:
        if (taken := kind_on(node, alternatives)) is not None:
            found[taken[0]] = found.get(taken[0], 0) + taken[1]
    every = [alternatives[k] for k in sorted(found) for _ in range(found[k])]
    return every[: min(len(every) if most is None else most, tasks)]


def matched(there: Sequence[Needs], wanted: Sequence[Needs]) -> tuple[list[int], list[Needs]]:
    """Places of the workers that are wanted, each for the first that it covers, and what is wanted and not there."""
    kept, missing = [], list(wanted)
    for k, has in enumerate(there):
        for needs in missing:
            if has.cover(needs):
                missing.remove(needs)
                kept.append(k)
                break
    return kept, missing


def nothing_fits(nodes: Iterable[Mapping[str, float]], needs: Needs) -> UserError:
    """What is wrong where no worker fits on any node."""
    # The sum says nothing of what a single node has.
    have = max(nodes, key=lambda node: (node.get("CPU", 0), node.get("memory", 0)), default={})
    wants, has = (f"{needs.gpus:g} GPUs, ", f"{have.get('GPU', 0):g} GPUs, ") if needs.gpus else ("", "")
    return codes.NO_FITTING_NODE(
        where="executor",
        needs=f"{wants}{needs.cpus} CPUs and {needs.memory_gb:g} GB",
        node=f"{has}{have.get('CPU', 0):g} CPUs and {have.get('memory', 0) / 1e9:.1f} GB",
        gpu="set search.backend, or the device of an extractor, to cpu, " if needs.gpus else "",
    )
