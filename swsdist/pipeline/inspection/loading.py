"""Load a recorded chain run from its folder, for digests, comparisons and other readers."""

from __future__ import annotations

from pydantic import ValidationError

from swsdist.config import Config
from swsdist.config.names import UNKNOWN
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection, prepare_chain_run
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.ledger import ONLY, Plan, another_version, load_plans, receipts_of
from swsdist.pipeline.records.lists import ReceiptList


def load_chain_run(run: Folder, name: str = ONLY) -> ChainRun:
    """Load a finished chain run: its chain, and the receipts of its planned tasks.

    Raises:
        StoreError: not a run folder, no such plan, or a planned task is not done.
    """
    chain_run = _prepare(run, name)
    for step in chain_run.steps:
        planned = chain_run.plan.steps.get(step.name)
        if planned is None:
            break
        receipts = receipts_of(chain_run.ledger, planned)
        # A store may have been compacted since: its state identifies its tables.
        if len(receipts) < planned.planned and not chain_run.plan.in_state(planned.place):
            raise codes.INCOMPLETE_STAGE(
                where=chain_run.run.path(),
                stage=step.name,
                left=planned.planned - len(receipts),
                tasks=planned.planned,
            )
        chain_run.outcomes[step.name] = StepOutcome(receipts)
    chain_run.chain.inputs.recall(chain_run.plan.state)
    return chain_run


def load_partial_run(run: Folder, name: str = ONLY) -> ChainRun:
    """Load the finished steps of a chain run; the store need not exist.

    Raises:
        StoreError: not a run folder, or no such plan.
    """
    chain_run = _prepare(run, name)
    for step in chain_run.steps:
        planned = chain_run.plan.steps.get(step.name)
        receipts = ReceiptList() if planned is None else receipts_of(chain_run.ledger, planned)
        if planned is not None and len(receipts) == planned.planned:
            chain_run.outcomes[step.name] = StepOutcome(receipts)
    return chain_run


def config_of(run: Folder, plan: Plan) -> Config:
    """The config of a plan, with the present folder of the run.

    The run may come from a stranger: no environment variables are inserted, and the storage options, which determine the server
    that gets our keys, are those of the caller.

    Raises:
        StoreError: a name is not installed here, or another version of swsdist or another program wrote the plan.
    """
    try:
        return Config.model_validate({**plan.config, "run": run.root, "storage": dict(run.storage)})
    except ValidationError as error:
        raise _unknown_name(run, error) or another_version(run) from None
    except TypeError:
        raise another_version(run) from None


def _unknown_name(run: Folder, error: ValidationError) -> StoreError | None:
    """The error of a config whose only faults are names that are not registered here; None if it has others."""
    faults = error.errors(include_url=False)
    if any(item["type"] != UNKNOWN for item in faults):
        return None
    kind, group = (str(faults[0]["ctx"][key]) for key in ("kind", "group"))
    return codes.MISSING_EXTENSION(
        where=run.path(),
        kind=kind,
        name=faults[0]["input"],
        group=group,
        registry=group.removeprefix("swsdist.").upper(),
    )


def plan_of(run: Folder, name: str = ONLY) -> Plan:
    """Load a plan of a run folder.

    Raises:
        StoreError: not a run folder, or no such plan.
    """
    plans = load_plans(run)
    if name not in plans:
        raise codes.NO_SUCH_PLAN(where=run.path(), plan=name, plans=", ".join(plans))
    return plans[name]


def _prepare(run: Folder, name: str) -> ChainRun:
    plan = plan_of(run, name)
    chain_run = prepare_chain_run(name, config_of(run, plan), Ledger(run), StepSelection())
    chain_run.plan = plan
    return chain_run
