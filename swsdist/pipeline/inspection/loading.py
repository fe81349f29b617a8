"""This module restores a finished plan from its folder alone, for digests, comparisons and later readers."""

from __future__ import annotations

from pydantic import ValidationError

from swsdist.config import Config
from swsdist.config.names import UNKNOWN
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection, prepare_chain_run
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.plan import ONLY, Plan, another_version, load_plans, receipts_of
from swsdist.pipeline.records.lists import ReceiptList


def load_chain_run(run: Folder, name: str = ONLY) -> ChainRun:
    """A plan of a run folder, as it was run: its chain, and the receipts of the tasks that are planned.

    Raises:
        StoreError: it is not a run folder, it has no such plan, or a planned task is not done.
    """
    chain_run = _begun(run, name)
    for step in chain_run.steps:
        planned = chain_run.plan.steps.get(step.name)
        if planned is None:
            break
        found = receipts_of(chain_run.ledger, planned)
        # What lies in a store may have been compacted since: the store's state tells what there is.
        if len(found) < planned.planned and not chain_run.plan.in_state(planned.place):
            raise codes.INCOMPLETE_STAGE(
                where=chain_run.run.path(),
                stage=step.name,
                left=planned.planned - len(found),
                tasks=planned.planned,
            )
        chain_run.outcomes[step.name] = StepOutcome(found)
    chain_run.chain.inputs.recall(chain_run.plan.state)
    return chain_run


def load_partial_run(run: Folder, name: str = ONLY) -> ChainRun:
    """What is left of a plan, as far as all of a step's tasks are done; the store is not looked for.

    Raises:
        StoreError: it is not a run folder, or it has no such plan.
    """
    chain_run = _begun(run, name)
    for step in chain_run.steps:
        planned = chain_run.plan.steps.get(step.name)
        found = ReceiptList() if planned is None else receipts_of(chain_run.ledger, planned)
        if planned is not None and len(found) == planned.planned:
            chain_run.outcomes[step.name] = StepOutcome(found)
    return chain_run


def config_of(run: Folder, plan: Plan) -> Config:
    """The config of a plan. Where its run lies is where it is looked at, wherever it was made.

    The run may be a stranger's: no variable of the environment is put into it, and options of the storage, which say what
    server gets our keys, are those by which the folder is looked at.

    Raises:
        StoreError: it names what is not installed here; or another version of swsdist, or another program, wrote it.
    """
    try:
        return Config.model_validate({**plan.config, "run": run.root, "storage": dict(run.storage)})
    except ValidationError as error:
        raise _unknown_name(run, error) or another_version(run) from None
    except TypeError:
        raise another_version(run) from None


def _unknown_name(run: Folder, error: ValidationError) -> StoreError | None:
    """What to say where nothing is wrong with a config but names that were registered where it ran."""
    found = error.errors(include_url=False)
    if any(item["type"] != UNKNOWN for item in found):
        return None
    kind, group = (str(found[0]["ctx"][key]) for key in ("kind", "group"))
    return codes.MISSING_EXTENSION(
        where=run.path(),
        kind=kind,
        name=found[0]["input"],
        group=group,
        registry=group.removeprefix("swsdist.").upper(),
    )


def plan_of(run: Folder, name: str = ONLY) -> Plan:
    """A plan of a run folder.

    Raises:
        StoreError: it is not a run folder, or it has no such plan.
    """
    plans = load_plans(run)
    if name not in plans:
        raise codes.NO_SUCH_PLAN(where=run.path(), plan=name, plans=", ".join(plans))
    return plans[name]


def _begun(run: Folder, name: str) -> ChainRun:
    plan = plan_of(run, name)
    chain_run = prepare_chain_run(name, config_of(run, plan), Ledger(run), StepSelection())
    chain_run.plan = plan
    return chain_run
