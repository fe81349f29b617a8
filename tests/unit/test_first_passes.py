"""First passes: averaging, budgets, the registry, the index, the config, and a search through them from the store."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.kernels.distances.interface import create as distance
from swsdist.kernels.lookup import GROUP
from swsdist.methods.dtw.search import Matches
from swsdist.methods.first_pass.codebook import Codebook, Landmarks, fit
from swsdist.methods.first_pass.interface import Budget, Material, Windows, Work, create
from swsdist.methods.first_pass.quantised import CODES, build, index_of
from swsdist.methods.query.example import Example, averaged
from swsdist.methods.sample import landmark_documents
from swsdist.testing.conformance.entry import present, recall
from tests.support.coded import raises


def a_material(lengths: list[int], most: int = 2) -> Material:
    frames = np.random.default_rng(1).normal(size=(sum(lengths), 4)).astype(np.float32)
    cosine = distance("cosine", 4)
    zero, one = np.zeros(4), np.ones(4)
    parts = np.split(frames, np.cumsum(lengths)[:-1])

    def documents(factor: int, chosen: np.ndarray | None):
        for k, part in enumerate(parts):
            if chosen is None or chosen[k]:
                yield k, [cosine.prepare(x, zero, one, "document").frames for x in averaged([part], factor)]

    def codebook(factor: int, size: int) -> Codebook:
        known = cosine.prepare(frames, zero, one, "document").frames
        return fit(Landmarks(known, known), cosine, size)

    size = np.array(lengths, np.int64)
    most_of = np.full(len(size), most)
    return Material(lambda factor: [], documents, size, most_of, 0.01, cosine, 2, size < 0, lambda: (), codebook)


def some_windows(rows: list[tuple[int, int, int, int]]) -> Windows:
    example, document, first, cost = np.array(rows, np.int64).T
    return Windows(example.astype(np.int32), document.astype(np.int32), first, first + 5, cost)


def kept(windows: Windows) -> set[tuple[int, ...]]:
    return set(zip(*(column.tolist() for column in windows), strict=True))


def test_budgets() -> None:
    """Over documents so many of each are kept, over the collection all of equal cost; both count seconds."""
    rows = [(0, 0, 9, 4), (0, 0, 1, 4), (0, 0, 5, 3), (0, 1, 2, 9), (1, 0, 7, 8)]
    for over, left in (("document", rows[1:]), ("collection", [*rows[:3], rows[4]])):
        chosen = Budget(2, 0.0, over).choose(some_windows(rows), a_material([100, 100]))
        assert kept(chosen) == kept(some_windows(left))
    material = a_material([100, 1000], most=3)
    assert Budget(2, 0.5, "document").most(material).tolist() == [2, 5]
    assert Budget(2, 0.5, "collection").count(material) == 5
    assert Work(1, 2, 3) + Work(10, 20, 30) == Work(11, 22, 33)
    with raises(families.UNKNOWN_NAME, kind="first pass", name="oracle"):
        create("oracle")


def test_the_index_has_every_frame_s_codes() -> None:
    lengths = [30, 1, 75]
    material = a_material(lengths)
    book = material.codebook(1, 2)
    table = build(material, 1, book)
    assert table.schema == CODES
    assert table["frames"].to_pylist() == lengths
    for document, blocks in material.documents(1, None):
        laid = np.frombuffer(table["codes"][document].as_py(), np.uint8).reshape(-1, len(book.columns) // 2, GROUP)
        pairs = laid.transpose(0, 2, 1).reshape(-1, len(book.columns) // 2)
        unpacked = np.stack([pairs & 15, pairs >> 4], axis=2).reshape(len(pairs), -1)
        assert len(pairs) >= lengths[document] + 2  # so that no path goes on in the next document
        assert np.array_equal(unpacked[: lengths[document]], book.codes(np.concatenate(list(blocks))))
        assert not unpacked[lengths[document] :].any()


def test_an_index_made_before_gives_the_same_windows_and_fits_its_documents_alone() -> None:
    material = a_material([300, 400])
    examples = [next(iter(material.documents(1, None)))[1][0][40:70]]
    material = material._replace(examples=lambda factor: [Example("q", 1, examples[0][::factor])])
    budget = Budget(3, 0.0, "collection")
    first_pass = create("quantised", factor=2, bytes=2)
    anew = first_pass.propose(material, budget)
    book = material.codebook(2, 2)
    index = index_of([build(material, 2, book)], np.array([150, 200]), len(book.columns) // 2, "")
    again = replace(first_pass, index=index).propose(material, budget)
    assert kept(anew.windows) == kept(again.windows)
    assert anew.indexing == Work(distances=350)
    assert again.indexing == Work()
    assert again.work == Work(lookups=15 * index.groups * GROUP)
    material = a_material([300, 400])
    table = build(material, 2, material.codebook(2, 2))
    for lengths, size in (([150, 201], 2), ([150], 2), ([150, 200], 3), ([200, 150], 2)):
        with raises(families.MISMATCH):
            index_of([table], np.array(lengths), size, "store/codes")
    keys = [(f"document {k}", 1 + k % 2) for k in range(200)]
    chosen = landmark_documents(keys)
    assert chosen == landmark_documents(keys[::-1])
    assert len(set(chosen)) == 64
    assert set(landmark_documents(keys[:150])) >= set(chosen) & set(keys[:150])


def found_rows(rows: list[tuple[int, ...]]) -> Matches:
    columns, kinds = np.array(rows, np.int64).reshape(-1, 5).T, (np.int32, np.int32, np.int64, np.int32, np.int64)
    return Matches(*(column.astype(kind) for column, kind in zip(columns, kinds, strict=True)), 1.0)


def test_recall_and_configs_that_cannot_be_done() -> None:
    full = found_rows([(0, 0, 5, 4, 100), (0, 1, 9, 4, 200), (1, 0, 5, 4, 100), (1, 1, 5, 4, 100)])
    found, none = found_rows([(0, 0, 5, 4, 100), (0, 1, 9, 4, 201), (1, 1, 5, 4, 100)]), found_rows([])
    assert present(found, full).tolist() == [True, False, False, True]
    assert recall(found, full) == recall(found, full, np.array([True, True, False, False])) == 0.5
    assert (recall(none, full), recall(none, none)) == (0.0, 1.0)
    pooled = {"documents_by": "pooled", "queries_by": "pooled"}
    Search.model_validate({**pooled, "first_pass": {"name": "coarse"}})
    for options, message in (
        ({"first_pass": {"name": "coarse", "factor": 0}}, "greater than 0"),
        ({"first_pass": {"name": "coarse", "factor": 2, "options": {"margin": 3}}}, "no option margin"),
        ({"first_pass": {"name": "best"}}, "unknown name"),
        # Codes that are made before queries are not for statistics with them.
        ({**pooled, "first_pass": {"name": "quantised"}}, r"documents_by: pooled.*queries_by: collection"),
        ({"recurrence": "averages", "first_pass": {"name": "coarse"}}, "recurrence: bounded-slope"),
    ):
        with pytest.raises(ValidationError, match=message):
            Search.model_validate(options)
