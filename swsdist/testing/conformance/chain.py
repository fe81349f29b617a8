"""Checks a chain and its stages by several complete runs in separate folders."""

from __future__ import annotations

import json
from collections.abc import Callable

from swsdist.config import Config
from swsdist.core.errors import SwsdistError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.inspection.digest import digests
from swsdist.pipeline.inspection.estimate import estimates
from swsdist.pipeline.inspection.loading import load_chain_run
from swsdist.pipeline.inspection.status import status
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import CHAINS
from swsdist.testing.conformance.entry import check_entry, require


def check_chain(configured: Callable[[str], Config]) -> dict[str, str]:
    """Check the chain that a config names.

    A second run has nothing left to do, and a dry run says so. A run that ends after each step and goes on, one whose steps
    are all done again, and one in another folder all make the same tables. Status and digest need the folder alone.

    Args:
        configured: makes a small config, given a name for its run folder (and store).

    Returns:
        SHA-256 of each table, by name.

    Raises:
        AssertionError: a check fails; the message names it.
        UserError: it cannot run.
    """
    config = configured("conformance-1")
    _, what = check_entry(CHAINS, config.chain)
    first = run_stages(config, StepSelection(), Progress())
    for step in first.chain_run.steps:
        name, version = step.stage.name, step.stage.version
        require(bool(name) and isinstance(version, int) and version >= 1, what, f"{step.name}: no name or no version")
    require(first.tasks_done > 0, what, "its first run did nothing")
    tables = _complete(config, first, what)

    again = run_stages(config, StepSelection(), Progress())
    done = [name for name, ended in again.chain_run.outcomes.items() if ended.done]
    require(not done, what, f"a second run does work again: {', '.join(done)}")
    left = [estimate.stage for estimate in estimates(config, StepSelection()) if estimate.tasks != estimate.done]
    require(not left, what, f"a dry run of what is done plans work: {', '.join(left)}")

    steps = configured("conformance-2")
    for name in [step.name for step in first.chain_run.steps]:
        outcome = run_stages(steps, StepSelection(until=name), Progress())
    require(
        _complete(steps, outcome, what) == tables, what, "run step by step in another folder, it makes something else"
    )

    redone = run_stages(config, StepSelection(redo_from=first.chain_run.steps[0].name), Progress())
    require(redone.tasks_done > 0, what, "nothing was done again")
    require(_complete(config, redone, what) == tables, what, "done again, it makes something else")
    return tables


def _complete(config: Config, outcome: Outcome, what: str) -> dict[str, str]:
    """Digests of a run's tables, from its folder only."""
    require(not outcome.failures, what, f"a task failed: {[failure.message for failure in outcome.failures]}")
    folder = Folder(config.run, config.storage)
    for stage in status(folder).stages:
        require(stage.done == stage.tasks, what, f"status says that {stage.stage} has tasks left")
    try:
        chain_run = load_chain_run(folder)
    except SwsdistError as error:
        raise AssertionError(f"{what}: its folder does not tell how it was run ({error})") from None
    for ended in chain_run.outcomes.values():
        for receipt in ended.receipts:
            json.dumps(receipt.result)
    digests_after = digests(chain_run)
    require(digests_after == digests(outcome.chain_run), what, "its folder tells other tables than the run made")
    return digests_after
