"""A sweep: many plans in one ledger, which share every task that they agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from swsdist.config import Config
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_plans
from swsdist.pipeline.operation.progress import Progress


def plans(config: Config, alphas: Iterable[float], distances: Sequence[str] = ()) -> dict[str, Config]:
    """A plan for each alpha of keyword specific thresholds, and one for each other distance, by name.

    Args:
        config: with a step of calibration that takes an alpha.
        alphas: distinct.
        distances: for `search.distance`.
    """
    found = {}
    for alpha in alphas:
        calibrate = config.calibrate.model_copy(update={"alpha": alpha})
        found[f"alpha-{alpha:g}"] = config.model_copy(update={"calibrate": calibrate})
    for distance in distances:
        search = config.search.model_copy(update={"distance": distance})
        found[f"distance-{distance}"] = config.model_copy(update={"search": search})
    return found


def sweep(configs: dict[str, Config], until: str | None = None) -> Outcome:
    """Run what is left of all plans."""
    return run_plans(configs, StepSelection(until=until), Progress())


def shared(outcome: Outcome) -> dict[str, tuple[int, int]]:
    """Of each step: tasks that plans name, all plans together, and how many different tasks these are."""
    named: Counter[str] = Counter()
    distinct: dict[str, set[str]] = {}
    for chain_run in outcome.chain_runs.values():
        for step, ended in chain_run.outcomes.items():
            names = [receipt.fingerprint for receipt in ended.receipts]
            named[step] += len(names)
            distinct.setdefault(step, set()).update(names)
    return {step: (named[step], len(names)) for step, names in distinct.items()}
