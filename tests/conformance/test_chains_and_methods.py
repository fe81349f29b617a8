"""The chain search and the methods dtw and windows pass the suites of their kinds; what is wrong is caught."""

from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples import bag
from swsdist.config import Config, config_from_dict
from swsdist.config.search import Search
from swsdist.core.codes import config as registry_codes
from swsdist.core.codes import families
from swsdist.core.codes import methods as methods_codes
from swsdist.io.filesystem import Folder
from swsdist.methods.dtw.method import Dtw
from swsdist.methods.method import Result, Unit, create, identity
from swsdist.pipeline.chain import Chain, ChainInputs, Context, Inputs, Stage, Step, Table
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import load_chain_run
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import MethodEntry
from swsdist.registry.registries import CHAINS, METHODS
from swsdist.registry.registry import Entry
from swsdist.stages.queries import examples_in
from swsdist.store.reading import Store
from swsdist.testing.conformance import check_chain, check_method
from swsdist.testing.synthesis import make_corpus
from tests.support.coded import raises


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    make_corpus(place, documents=8, queries=4, voices=2)
    return place


CORPUS = {"documents": "docs.csv", "queries": "queries.csv", "references": "refs.csv"}


def config(folder: Path, run: str, **values: Any) -> Config:
    given = {"run": run, "corpus": CORPUS, "index": {"shards": 3}, "executor": {"kind": "serial"}}
    return config_from_dict({**given, **values}, folder)


@pytest.fixture(scope="module")
def searched(folder: Path) -> tuple[pa.Table, Store]:
    outcome = run_stages(config(folder, "searched"), StepSelection(until="queries"), Progress())
    assert not outcome.failures
    chain_run = load_chain_run(Folder(str(folder / "searched")))
    return examples_in(chain_run), chain_run.chain.inputs.store.open()


@pytest.mark.slow
def test_the_search_chain(folder: Path) -> None:
    """With a first pass, a cohort, covariates and fitted steps."""
    make_corpus(folder / "others", documents=2, queries=4, voices=2, seed=9)
    options = {"llr": {"covariates": ["speech"]}}
    values = {
        "corpus": {**CORPUS, "cohort": "others/queries.csv"},
        "calibrate": {"steps": ["zt-norm", "llr"], "options": options, "folds": 2},
        "search": {"first_pass": {"name": "quantised", "over": "document"}},
    }
    tables = check_chain(lambda word: config(folder, word, **values))
    names = {"documents", "queries", "candidates", "candidates.cohort", "described", "normalised", "scored", "measures"}
    assert names <= set(tables)


@pytest.mark.parametrize(
    "search",
    [
        {},
        {"recurrence": "asymmetric", "examples": "template"},
        {"first_pass": {"name": "coarse"}},
        {"first_pass": {"name": "quantised", "over": "document"}},
    ],
    ids=["exact", "template", "coarse", "quantised"],
)
def test_dtw(searched: tuple[pa.Table, Store], search: dict[str, Any]) -> None:
    assert check_method(Search.model_validate(search), *searched) > 1


@pytest.mark.parametrize(
    "options",
    [{}, {"ends": "pinned"}, {"windows": {"least": 2, "per_second": 0.5}, "apart": 0.05}],
    ids=["free", "pinned", "few"],
)
@pytest.mark.parametrize("examples", ["best", "template"])
def test_windows(searched: tuple[pa.Table, Store], options: dict[str, Any], examples: str) -> None:
    search = {"method": "windows", "method_options": options, "distance": "euclidean", "candidates": {"least": 5}}
    search["examples"] = examples
    assert check_method(Search.model_validate(search), *searched) > 1


def test_windows_refuses_what_it_does_not_look_at() -> None:
    unused = {
        "recurrence": "asymmetric",
        "first_pass": {"name": "coarse"},
        "skip_silence": True,
        "candidate_window": 20,
    }
    for key, value in unused.items():
        with raises(methods_codes.UNUSED_SEARCH_KEY, where="search", method="windows", key=key):
            create(Search.model_validate({"method": "windows", key: value}))
    for options, code, values in (
        ({"end": "free"}, registry_codes.UNKNOWN_ENTRY_OPTION, {"option": "end"}),
        ({"ends": "loose"}, families.INVALID_VALUE, {"name": "windows"}),
        ({"apart": 0}, families.INVALID_VALUE, {"problems": "apart must be more than 0"}),
    ):
        with raises(code, where="search", **values):
            create(Search.model_validate({"method": "windows", "method_options": options}))


def test_what_windows_does_not_look_at_is_no_part_of_its_identity() -> None:
    one = identity(Search.model_validate({"method": "windows", "lanes": 16}))
    assert "recurrence" not in str(one)
    for changed, same in (
        ({"lanes": 32}, True),
        ({"method_options": {"ends": "free"}}, True),
        ({"distance": "euclidean"}, False),
        ({"method_options": {"ends": "pinned"}}, False),
    ):
        assert (identity(Search.model_validate({"method": "windows", **changed})) == one) == same


def test_the_example_of_a_method(added: Any, searched: tuple[pa.Table, Store]) -> None:
    name = added(METHODS, "bag", bag.METHOD)
    assert check_method(Search.model_validate({"method": name}), *searched) > 1


class Forgetful(Dtw):
    """Its last table is not given."""

    def search(self, queries: Any, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        found = super().search(queries, store, shards, buckets)
        return found._replace(tables=iter(list(found.tables)[:-1]))


class Late(Dtw):
    """Its second matches end a tick late."""

    def rescore(self, queries: Any, store: Store, spans: pa.Table) -> pa.Table:
        found = super().rescore(queries, store, spans)
        return found.set_column(6, found.schema.field("last"), pc.add(found["last"], 1))


class Timely(Dtw):
    """Depends on what changes from one instance to the next."""

    def matters(self) -> Any:
        return id(self)


class Narrow(Dtw):
    """Forgets a shard."""

    def plan(self, store: Store) -> Iterator[Unit]:
        yield from islice(super().plan(store), 2)


class Uneven(Dtw):
    """Finds what the number of buckets lets it find."""

    def search(self, queries: Any, store: Store, shards: tuple[str, ...], buckets: int) -> Result:
        (table,) = super().search(queries, store, shards, 1).tables
        return Result(iter([table.slice(0, 1)]), 1) if buckets > 16 else super().search(queries, store, shards, buckets)


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        (Forgetful, "it says .* candidates and gives"),
        (Late, "rescore leaves the span"),
        (Timely, "`matters` says something else"),
        (Narrow, "a shard is not in just one unit"),
        (Uneven, "with 4096 buckets it finds something else"),
    ],
)
def test_a_wrong_method_is_caught(added: Any, searched: tuple[pa.Table, Store], method: type, complaint: str) -> None:
    name = added(METHODS, method.__name__.lower(), MethodEntry(f"{__name__}:{method.__name__}", 1))
    with pytest.raises(AssertionError, match=complaint):
        check_method(Search.model_validate({"method": name}), *searched)


class Note(Stage):
    """A task that writes a word."""

    name = "note"
    version = 1
    unit = "words"
    tables = {"words": Table(None, None)}
    word = staticmethod(lambda inputs: "always")
    matter = staticmethod(lambda: 0)

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        yield inputs.task(self.matter(), label="a word", work=1, payload=self.word(inputs))

    def run(self, task: Task, context: Context) -> TaskOutput:
        return TaskOutput((context.write(task, "words", task.payload.encode()),))


class Restless(Note):
    """Never done: its task has another name each time."""

    number = count()
    matter = staticmethod(lambda: next(Restless.number))


class Placed(Note):
    """Makes what depends on the folder that it runs in, and does not say so."""

    word = staticmethod(lambda inputs: inputs.config.run)


def _chain(stage: type[Note]) -> Callable[[Config, Ledger], Chain]:
    return lambda config, ledger: Chain(stage.__name__.lower(), (Step("note", stage()),), ChainInputs())


note, restless, placed = map(_chain, (Note, Restless, Placed))


def test_the_least_chain(added: Any, folder: Path) -> None:
    name = added(CHAINS, "note", Entry(f"{__name__}:note", 1))
    assert set(check_chain(lambda word: config(folder, f"note-{word}", chain=name))) == {"words"}


@pytest.mark.parametrize(("name", "complaint"), [("restless", "run does work again"), ("placed", "something else")])
def test_a_wrong_chain_is_caught(added: Any, folder: Path, name: str, complaint: str) -> None:
    added(CHAINS, name, Entry(f"{__name__}:{name}", 1))
    with pytest.raises(AssertionError, match=complaint):
        check_chain(lambda word: config(folder, f"{name}-{word}", chain=name))
