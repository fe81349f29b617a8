"""Chains, stages, ledger, on a chain of three small stages: what a stranger's chain can rely on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from swsdist.config import Config, config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import ConfigError
from swsdist.core.needs import Needs
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Chain, ChainInputs, Context, ExternalTable, Inputs, Stage, Step, Table, read
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_plans, run_stages
from swsdist.pipeline.ledger import Ledger, pack_name
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registries import CHAINS
from swsdist.registry.registry import Entry
from tests.support.coded import raises

NUMBERS = pa.schema([pa.field("slot", pa.int32()), pa.field("key", pa.string()), pa.field("value", pa.int64())])


class Told(NamedTuple):
    """The sum of a task's values."""

    total: int


class Own(ChainInputs):
    """What the chain knows: how many numbers there are."""

    def __init__(self, count: int) -> None:
        self.count = count

    @property
    def state(self) -> dict[str, str]:
        return {"count": str(self.count)}


class Make(Stage):
    """A task a number."""

    name = "make"
    version = 1
    unit = "numbers"
    phase = "index"
    tables = {"numbers": Table(NUMBERS, "key", order=("value",))}
    ran: ClassVar[list[str]] = []

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        for k in range(inputs.chain_inputs(Own).count):
            yield inputs.task(k, label=f"number {k}", work=1, payload=k)

    def run(self, task: Task, context: Context) -> TaskOutput:
        Make.ran.append(task.label)
        k = task.payload
        table = pa.Table.from_pylist([{"slot": k, "key": "ab"[k % 2], "value": k}], NUMBERS)
        return TaskOutput((context.publish(task, "numbers", [table], NUMBERS),), Told(k))


class Halve(Stage):
    """Halves the sum in rounds, until it is 0."""

    name = "halve"
    version = 1
    unit = "rounds"
    takes = {"numbers": "numbers"}
    rounds = True
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        before = inputs.outcome.receipts
        made = (told.total for _, told in inputs.results("numbers", Told))
        total = before[-1].result_as(Told).total if before else sum(made)
        if total:
            yield inputs.task(total, label=f"round {inputs.round}", work=1, payload=total)

    def run(self, task: Task, context: Context) -> TaskOutput:
        return TaskOutput((), Told(task.payload // 2))


class Times(Stage):
    """The sum of the numbers, times the plan's alpha."""

    name = "times"
    version = 1
    unit = "numbers"
    phase = "score"
    takes = {"numbers": "numbers"}
    tables = {"products": Table(None, None)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        alpha, parts = inputs.config.calibrate.alpha, [part.name for part in inputs.parts("numbers")]
        yield inputs.task(alpha, parts, label=f"times {alpha:g}", work=1, payload=(alpha, parts))

    def run(self, task: Task, context: Context) -> TaskOutput:
        alpha, parts = task.payload
        values = [value for name in parts for value in context.read(name)["value"].to_pylist()]
        return TaskOutput(
            (context.write(task, "products", f"{alpha * sum(values)}".encode(), ".txt"),), Told(len(values))
        )


def build(config: Config, ledger: Ledger) -> Chain:
    return Chain("small", (Make(), Halve(), Times()), Own(config.options.get("count", 5)))


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    CHAINS.add("small", Entry(f"{__name__}:build", 1))
    Make.ran.clear()
    yield
    CHAINS.remove("small")


def config(tmp_path: Path, run: str = "run", **more: Any) -> Config:
    values = {"run": str(tmp_path / run), "chain": "small", "corpus": {"documents": "none.csv"}}
    return config_from_dict({**values, "executor": {"kind": "serial"}, **more}, tmp_path)


def go(made: Config, selection: StepSelection | None = None) -> Outcome:
    return run_stages(made, selection or StepSelection(), Progress())


def test_rounds_go_on_until_none_is_left(tmp_path: Path) -> None:
    first = go(config(tmp_path)).chain_run
    assert [told.total for told in first.receipts("halve").results(Told)] == [5, 2, 1, 0]
    assert [ended.done for ended in first.outcomes.values()] == [5, 4, 1]
    again = go(config(tmp_path))
    assert again.tasks_done == 0
    assert [ended.skipped for ended in again.chain_run.outcomes.values()] == [5, 4, 1]
    # One round is lost: it is done again, and no other.
    pack = tmp_path / "run" / pack_name("halve")
    known = pq.read_table(pack)
    pq.write_table(known.filter(pc.not_equal(known["fingerprint"], first.receipts("halve")[1].fingerprint)), pack)
    assert [ended.done for ended in go(config(tmp_path)).chain_run.outcomes.values()] == [0, 1, 0]


def test_what_comes_later_is_added_and_receipts_are_packed_a_stage(tmp_path: Path) -> None:
    go(config(tmp_path, options={"count": 3}))
    assert Make.ran == ["number 0", "number 1", "number 2"]
    more = go(config(tmp_path, options={"count": 5})).chain_run
    assert Make.ran[3:] == ["number 3", "number 4"]
    assert more.outcomes["times"].done == 1
    names = sorted(path.name for path in (tmp_path / "run" / "receipts").iterdir())
    assert names == ["halve.parquet", "make.parquet", "times.parquet"]
    receipts = Ledger(Folder(str(tmp_path / "run"))).receipts("make")
    assert sorted(receipt.result_as(Told).total for receipt in receipts.values()) == [*range(5)]


def test_a_chain_is_checked_and_wired() -> None:
    a, b, other = Step("a", Make()), Step("b", Make()), Step("b", Make(), labels={"numbers": "others"})
    for made, code, values in (
        ((a, Step("a", Make())), families.DUPLICATE_NAME, {"step": "a"}),
        ((Step("a", Halve(), {"numbers": "b:numbers"}),), families.UNKNOWN_NAME, {"step": "a", "source": "b:numbers"}),
        ((a, Step("b", Halve(), {"numbers": "a:nombres"})), families.UNKNOWN_NAME, {"source": "a:nombres"}),
        ((Step("b", Halve(), {"numbers": "a:numbers"}), a), families.UNKNOWN_NAME, {"source": "a:numbers"}),
        ((a, b), families.DUPLICATE_NAME, {"names": "numbers, numbers"}),
        ((Halve(), Make()), families.MISSING_INPUT, {"step": "halve", "chain": "wrong", "table": "numbers"}),
        ((Make(), other, Halve()), families.AMBIGUOUS, {"step": "halve", "table": "numbers", "makers": "make, b"}),
    ):
        with raises(code, **values):
            Chain("wrong", made, Own(1))
    chain = Chain("twice", (a, other), Own(1))
    assert [label for step in chain.steps for label, _ in chain.digested(step)] == ["numbers", "others"]

    # By the names of tables; what a stage can do without is wired where it is made.
    class May(Halve):
        name = "may"
        takes: ClassVar[dict[str, str]] = {}
        may_take: ClassVar[dict[str, str]] = {"numbers": "numbers", "products": "products"}

    chain, made = Chain("wired", (Make(), Halve(), May(), Times()), Own(1)), {"numbers": "make:numbers"}
    assert {step.name: step.reads for step in chain.steps} == {"make": {}, "halve": made, "may": made, "times": made}
    assert [step.phase for step in chain.steps] == ["index", "", "", "score"]


def test_tables_of_another_run_and_what_a_plan_knows_of_its_chain(tmp_path: Path) -> None:
    go(config(tmp_path))
    run = str(tmp_path / "run")
    made = read(ExternalTable(run, "numbers"), {})
    assert len(made.parts) == 5
    assert all(part.name.startswith(f"{run}/tables/numbers/") for part in made.parts)
    with raises(families.UNKNOWN_NAME, table="nonsense", plan="run", plans="run"):
        read(ExternalTable(run, "nonsense"), {})
    with raises(codes.NOT_A_RUN, where="nowhere"):
        read(ExternalTable(str(tmp_path / "nowhere"), "numbers"), {})
    next((tmp_path / "run" / "tables" / "numbers").iterdir()).unlink()
    with raises(families.NOT_FINISHED, step="make"):
        read(ExternalTable(run, "numbers"), {})
    with pytest.raises(KeyError, match=r"no step of .* makes 'number'"):
        go(config(tmp_path)).chain_run.table("number")
    with pytest.raises(ConfigError, match="did you mean small"):
        config(tmp_path, chain="smal")
    with raises(families.CONFLICTING_OPTIONS, where="run"):
        run_plans({"a": config(tmp_path, "a"), "b": config(tmp_path, "b")}, StepSelection(), Progress())
    other = config(tmp_path, executor={"kind": "serial", "attempts": 5})
    with raises(families.CONFLICTING_OPTIONS, where="executor"):
        run_plans({"a": config(tmp_path), "b": other}, StepSelection(), Progress())


class Granted(Stage):
    """Tells how many GPUs it was granted; a plan needs as many as its options say."""

    name = "granted"
    version = 1
    unit = "tasks"

    def needs(self, config: Config) -> tuple[Needs, ...]:
        return (Needs(gpus=config.options["gpus"]),)

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        gpus = inputs.config.options["gpus"]
        for name in ("shared", f"own {gpus}"):
            yield inputs.task(name, label=name, work=1, payload=None)

    def run(self, task: Task, context: Context) -> TaskOutput:
        return TaskOutput((), Told(int(context.granted.gpus)))


def build_needing(config: Config, ledger: Ledger) -> Chain:
    return Chain("needing", (Granted(),), Own(0))


def test_each_plan_of_a_ledger_is_given_what_it_needs(tmp_path: Path) -> None:
    CHAINS.add("needing", Entry(f"{__name__}:build_needing", 1))
    try:
        plans = {f"{n}": config(tmp_path, chain="needing", options={"gpus": float(n)}) for n in (0, 3, 7)}
        chain_runs = run_plans(plans, StepSelection(), Progress()).chain_runs
    finally:
        CHAINS.remove("needing")
    # What all have was done once, for the first; what is a plan's own, as that plan says.
    granted = [[told.total for told in chain_runs[name].receipts("granted").results(Told)] for name in plans]
    assert granted == [[0, 0], [0, 3], [0, 7]]
