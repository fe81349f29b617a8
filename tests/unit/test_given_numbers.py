"""What is no number, or out of bounds, is refused by every public function, with the argument's name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import swsdist
from swsdist import metrics
from swsdist.core.codes import families
from swsdist.core.codes import searcher as searcher_codes
from swsdist.core.errors import TableError, UserError
from swsdist.core.numbers import integer, number
from swsdist.pipeline.chain_run import StepSelection
from swsdist.searcher.searcher import Searcher
from tests.support.coded import raises

RATE = 8000
TRUE = {"query_id": ["a"], "doc_id": ["x"], "start": [10.0], "end": [10.5]}
FOUND = {**TRUE, "score": [2.0], "decision": [True]}
NUMBERS = {"int", "float", "int | None", "float | None"}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(swsdist, name) for name in swsdist.__all__ if inspect.isfunction(getattr(swsdist, name))},
    "Searcher": Searcher,
    **{f"Searcher.{name}": one for name, one in inspect.getmembers(Searcher, inspect.isfunction) if name[0] != "_"},
    **{
        f"metrics.{name}": one
        for name, one in inspect.getmembers(metrics, inspect.isfunction)
        if one.__module__ == metrics.__name__ and name[0] != "_"
    },
}


def numbers() -> Iterator[tuple[str, str, bool]]:
    """Public function, argument that is a number, and whether it may be None."""
    for name, function in FUNCTIONS.items():
        known = {key: str(one.annotation) for key, one in inspect.signature(function).parameters.items()}
        if name.startswith("metrics."):
            known |= {key: str(kind.__forward_arg__) for key, kind in metrics.Options.__annotations__.items()}
        yield from ((name, key, "None" in kind) for key, kind in known.items() if kind in NUMBERS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one document of noise; `hello.wav` is a cut of it."""
    root = tmp_path_factory.mktemp("numbers")
    noise = np.cumsum(np.random.default_rng(5).normal(size=3 * RATE)) * 0.002
    (root / "audio").mkdir()
    soundfile.write(root / "audio" / "x.wav", (noise - noise.mean()).clip(-1, 1), RATE)
    soundfile.write(root / "hello.wav", (noise - noise.mean()).clip(-1, 1)[RATE : round(1.6 * RATE)], RATE)
    features = {"options": {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}}
    corpus = {"documents": str(root / "audio")}
    config = {"run": str(root / "run"), "corpus": corpus, "features": features, "executor": {"kind": "serial"}}
    swsdist.run(config, selection=StepSelection(until="index"))
    return root


def given(name: str, place: Path) -> dict[str, Any]:
    """Arguments with which the function does its work."""
    hello, documents = str(place / "hello.wav"), str(place / "audio")
    mine: dict[str, Any] = {"store": str(place / "run" / "store"), "queries": hello, "query": hello, "doc_id": "x"}
    mine |= {"end": 1.6, "trim": False, "weights": "none", "documents": documents}
    if name.startswith("metrics."):
        mine = {"key": "mtwv", "references": TRUE, "detections": FOUND, "total_seconds": 100.0}
    known = inspect.signature(FUNCTIONS[name]).parameters
    return {key: value for key, value in mine.items() if key in known}


def call(name: str, place: Path, **more: object) -> object:
    arguments = {**given(name, place), **more}
    if not name.startswith("Searcher."):
        return FUNCTIONS[name](**arguments)
    with Searcher(str(place / "run" / "store"), trim=False, memory=0) as searcher:
        found = FUNCTIONS[name](searcher, **arguments)
        return list(found) if inspect.isgenerator(found) else found


def test_what_is_no_number_is_refused(place: Path) -> None:
    asked = list(numbers())
    found = {(name, key) for name, key, _ in asked}
    assert {("search", "top"), ("Searcher", "memory"), ("warping_path", "end"), ("metrics.mtwv", "documents")} <= found
    for name, key, optional in asked:
        for bad in ("5", True, math.nan, [1], -1, *(() if optional else (None,))):
            if (key, bad) != ("penalty", -1):
                with pytest.raises(UserError) as told:
                    call(name, place, **{key: bad})
                assert (name, key, bad, told.value.where) == (name, key, bad, key)
                assert f"{key}=" in str(told.value.remedy)
    for name in ("search", "Searcher.search", "Searcher.stream"):  # no hits at all
        with raises(families.INVALID_VALUE, value="0", expected="a whole number of at least 1"):
            call(name, place, top=0)


def test_numbers_of_numpy_are_numbers(place: Path) -> None:
    assert integer(np.int64(3), "top", 1) == 3
    assert number(np.float32(0.5), "end") == 0.5
    found = call("search", place, top=np.int16(2))
    assert found.equals(call("search", place, top=2))
    assert len(call("warping_path", place, end=np.float64(1.6)))


def test_a_closed_searcher_searches_no_more(place: Path) -> None:
    with Searcher(str(place / "run" / "store"), trim=False) as searcher:
        assert len(searcher.search(str(place / "hello.wav")))
    for name in ("search", "stream", "query_rows", "curve", "warping_path"):
        function = FUNCTIONS[f"Searcher.{name}"]
        with raises(searcher_codes.CLOSED_SEARCHER):
            list(function(searcher, **given(f"Searcher.{name}", place)))


def test_what_is_no_table_is_refused() -> None:
    for table in ([1, 2], ["a"], 5, None, "references.csv"):
        for pair, where in (((table, FOUND), "references"), ((TRUE, table), "detections")):
            with pytest.raises(TableError) as told:
                metrics.mtwv(*pair, 100.0)
            assert told.value.where == where
