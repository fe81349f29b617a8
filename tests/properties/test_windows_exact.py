"""The method windows against its definition, on any documents, however they are cut and held."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.kernels.alignment import Packed, packed
from swsdist.kernels.distances.interface import create
from swsdist.kernels.products import local_distances
from swsdist.methods.first_pass import interface as buffering
from swsdist.methods.query.example import Example
from swsdist.methods.windows.search import Limits, best_in, search
from swsdist.testing import scenes
from tests.oracles import windows as oracle

DISTANCE = create("euclidean", 3)


def frames(values: np.ndarray, side: Any) -> np.ndarray:
    return scenes.prepared(DISTANCE, values.astype(np.float32), side)


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    """Frames of few values, so that many costs are equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = draw(st.integers(2, 4))
    queries = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    documents = draw(st.lists(st.integers(1, 70), min_size=1, max_size=4))
    return {
        "queries": [rng.integers(0, values, (count, 3)) for count in queries],
        "documents": [rng.integers(0, values, (count, 3)) for count in documents],
        "windows": draw(st.integers(1, 12)),
        "candidates": draw(st.integers(1, 9)),
        "apart": draw(st.integers(1, 12)),
        "free": draw(st.booleans()),
        "block": draw(st.integers(1, 40)),
    }


def found(case: dict[str, Any], order: list[int]) -> list[tuple[int, ...]]:
    def documents() -> Iterator[tuple[int, list[np.ndarray]]]:
        for k in order:
            whole = frames(case["documents"][k], "document")
            yield k, [whole[first : first + case["block"]] for first in range(0, len(whole), case["block"])]

    number = len(order)
    limits = Limits(
        np.array([len(one) for one in case["documents"]]),
        np.full(number, case["windows"]),
        case["apart"],
        np.full(number, case["candidates"]),
        case["free"],
    )
    examples = [Example(str(k), 1, frames(one, "query")) for k, one in enumerate(case["queries"])]
    made = search(examples, documents(), limits, DISTANCE)
    columns = (made.query, made.document, made.end_frame - made.frames + 1, made.end_frame, made.cost)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=60)
@given(case=cases())
def test_is_its_definition(case: dict[str, Any]) -> None:
    wanted = [
        (q, d, *path)
        for q, query in enumerate(case["queries"])
        for d, document in enumerate(case["documents"])
        for path in oracle.candidates(
            local_distances(frames(query, "query"), frames(document, "document"), DISTANCE).tolist(),
            case["windows"],
            case["candidates"],
            case["apart"],
            free=case["free"],
        )
    ]
    order = list(range(len(case["documents"])))
    assert found(case, order) == wanted
    assert found(case, order[::-1]) == wanted


def scene(seed: int, queries: tuple[int, ...], documents: tuple[int, ...], **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sides = {"queries": queries, "documents": documents}
    return {name: [rng.integers(0, 4, (count, 3)) for count in counts] for name, counts in sides.items()} | more


def test_a_document_that_is_not_held_at_once() -> None:
    more = {"windows": 9, "candidates": 5, "apart": 4, "free": True, "block": 11}
    for held in (1, 16, 50):
        case = scene(held, (7, 1, 12), (300, 3, 200), **more)
        wanted = found(case, [0, 1, 2])
        assert len(wanted) > 20
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(buffering, "_BUFFER_FRAMES", held)
            assert found(case, [0, 1, 2]) == found(case, [2, 0, 1]) == wanted


def test_states_of_64_bits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of more than 300 frames have them."""
    assert (packed(45, 45).dtype, packed(300, 300).dtype, packed(600, 600).dtype) == (np.int32, np.int32, np.int64)
    case = scene(5, (30, 9), (400, 20), windows=30, candidates=9, apart=3, block=100)
    wanted = [found({**case, "free": free}, [0, 1]) for free in (False, True)]
    monkeypatch.setattr("swsdist.methods.windows.search.packed", lambda n, columns: Packed(np.int64, 21))
    assert [found({**case, "free": free}, [0, 1]) for free in (False, True)] == wanted


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), query=st.integers(1, 9), span=st.integers(1, 40), free=st.booleans())
def test_the_best_in_a_span_is_that_of_its_windows(seed: int, query: int, span: int, free: bool) -> None:
    rng = np.random.default_rng(seed)
    example = Example("q", 1, frames(rng.integers(0, 3, (query, 3)), "query"))
    part = frames(rng.integers(0, 3, (span, 3)), "document")
    distances = local_distances(example.frames, part, DISTANCE).tolist()
    paths = [oracle.path(distances, window, free=free) for window in oracle.windows(query, span)]
    assert best_in(example, part, DISTANCE, free=free) == min(paths, key=lambda path: path[2])
