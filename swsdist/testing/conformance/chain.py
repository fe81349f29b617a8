"""Checks a chain and its stages by several complete runs in separate folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from swsdist.config import Config
from swsdist.core.errors import SwsdistError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Chain, Context, Inputs, Source, Stage, Step
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.estimate import estimates
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests, load_chain_run, status
from swsdist.pipeline.task import Part, Task, TaskOutput, Values
from swsdist.registry.registries import CHAINS
from swsdist.testing.conformance.entry import check_entry, require


def check_chain(configured: Callable[[str], Config]) -> dict[str, str]:
    """Check the chain that a config names.

    A second run has nothing left to do, and a dry run says so. A run that ends after each step and goes on, one whose steps
    are all done again, one in another folder, and one with a step at every edge that hands its table on all make the same
    tables. Status and digest need the folder alone.

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

    handed = configured("conformance-3")
    with with_identities(config.chain):
        outcome = run_stages(handed, StepSelection(), Progress())
        require(_complete(handed, outcome, what) == tables, what, "a step reads a table past its input of that name")

    redone = run_stages(config, StepSelection(redo_from=first.chain_run.steps[0].name), Progress())
    require(redone.tasks_done > 0, what, "nothing was done again")
    require(_complete(config, redone, what) == tables, what, "done again, it makes something else")
    return tables


class _Handed(dict[str, Any]):
    """A task's result, as its receipt has it."""

    def _asdict(self) -> dict[str, Any]:
        return dict(self)


class _Identity(Stage[tuple[Sequence[Part], Values]]):
    """A step that hands a table on, with the results of its tasks: files of a run are copied, those of a store are the same."""

    version = 1
    unit = "files"
    in_driver = True

    def __init__(self, number: int, maker: Step, table: str) -> None:
        self.name, self.maker = f"identity-{number}", maker  # type: ignore[misc]
        self.takes = {table: table}  # type: ignore[misc]
        self.tables = {table: replace(maker.stage.tables[table], digested=False)}  # type: ignore[misc]

    def place(self, inputs: Inputs) -> str:
        return self.maker.stage.place(inputs)

    def plan(self, inputs: Inputs) -> Iterator[Task[tuple[Sequence[Part], Values]]]:
        (table,) = self.takes
        for receipt in inputs.receipts(table):
            parts, label = receipt.parts(table), receipt.label
            yield inputs.task(receipt.fingerprint, label=label, work=len(parts), payload=(parts, receipt.result or {}))

    def run(self, task: Task[tuple[Sequence[Part], Values]], context: Context) -> TaskOutput:
        parts, result = task.payload
        if not task.place:
            parts = [self._copied(part, task, context) for part in parts]
        return TaskOutput(tuple(parts), _Handed(result))

    def _copied(self, part: Part, task: Task[Any], context: Context) -> Part:
        suffix = f"-{PurePath(part.name).name}"
        copy = context.write(task, f"{self.name}-{part.table}", context.read_bytes(part.name), suffix)
        return part._replace(name=copy.name)


@contextmanager
def with_identities(chain: str) -> Iterator[None]:
    """Build the chain of a name with an identity step at each of its edges."""
    entry, added = CHAINS[chain], CHAINS.available.get(chain)

    def build(config: Config, ledger: Ledger) -> Chain:
        made: Chain = entry.load()(config, ledger)
        steps: list[Step] = []
        for step in made.steps:
            reads: dict[str, Source | tuple[Source, ...]] = {}
            for word in step.reads:
                sources: list[Source] = []
                for source in step.sources(word):
                    if isinstance(source, str):
                        name, _, table = source.partition(":")
                        maker = made.step(name)
                        stage = _Identity(len(steps), maker, table)
                        label = {table: maker.label(table)}
                        steps.append(Step(stage.name, stage, {table: source}, label, maker.inputs))
                        source = f"{stage.name}:{table}"
                    sources.append(source)
                reads[word] = tuple(sources)
            steps.append(replace(step, reads=reads))
        return replace(made, stages=tuple(steps))

    wired = copy(entry)
    object.__setattr__(wired, "load", lambda: build)
    CHAINS.add(chain, wired)
    try:
        yield
    finally:
        if added is None:
            CHAINS.remove(chain)
        else:
            CHAINS.add(chain, added)


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
