"""What is found in windows is what the full search finds there, and proposals do not depend on how documents lie."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.kernels.distances.interface import create
from swsdist.kernels.windows import least_sums
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.first_pass import interface as buffering
from swsdist.methods.first_pass import search as rescoring
from swsdist.methods.first_pass.codebook import Codebook, Landmarks, fit
from swsdist.methods.first_pass.interface import Budget, Material, Windows
from swsdist.methods.first_pass.interface import create as create_first_pass
from swsdist.methods.first_pass.search import run
from swsdist.methods.query.example import Example, averaged
from swsdist.registry.registries import FIRST_PASSES as REGISTERED
from tests.oracles import search as oracle
from tests.support.engine import as_rows, frames

DIMENSION = 3
DISTANCES = ("cosine", "cosine-squared", "euclidean")
KIND = st.sampled_from(["random", "few", "constant", "zeros"])


def as_windows(rows: list[tuple[int, ...]]) -> Windows:
    table = np.array(sorted(rows), np.int64).reshape(-1, 5)
    return Windows(table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), *table[:, 2:].T)


def inside(row: tuple[int, ...], windows: list[tuple[int, ...]]) -> bool:
    return any(w[:2] == row[:2] and w[2] <= row[2] < w[3] for w in windows)


@settings(max_examples=80)
@given(
    queries=st.lists(st.tuples(KIND, st.integers(1, 40)), min_size=1, max_size=3),
    documents=st.lists(st.tuples(KIND, st.integers(1, 150)), min_size=1, max_size=5),
    distance=st.sampled_from(DISTANCES),
    window=st.integers(1, 5),
    most=st.integers(1, 6),
    wanted=st.lists(st.tuples(*map(st.integers, (0, 0, -5, 1), (2, 4, 150, 70))), max_size=8),
    seed=st.integers(0, 2**20),
    small=st.booleans(),
)
def test_a_visit_finds_what_the_oracle_finds_there(
    queries, documents, distance, window, most, wanted, seed, small
) -> None:
    rng = np.random.default_rng(seed)
    examples = [Example(f"q{k}", 1, frames(rng, kind, n, distance, "query")) for k, (kind, n) in enumerate(queries)]
    data = [frames(rng, kind, n, distance, "document") for kind, n in documents]
    rows = [(q % len(examples), d % len(data), first, first + size, 0) for q, d, first, size in wanted]
    with pytest.MonkeyPatch.context() as patch:
        if small:  # many stretches, parts and calls
            patch.setattr(rescoring, "_PART", 7)
            patch.setattr(buffering, "_BUFFER_FRAMES", 30)
            patch.setattr(rescoring, "_COLUMNS", 50)
        stream = ((k, np.array_split(d, 1 + len(d) // 7)) for k, d in enumerate(data))
        lengths, kept = np.array([len(d) for d in data]), np.full(len(data), most)
        made = create(distance, DIMENSION)
        visited = rescoring.visit(examples, stream, lengths, as_windows(rows), kept, made, window)
    expected = []
    for q, query in enumerate(examples):
        for k, document in enumerate(data):
            curve = oracle.bounded_slope(local_distances(distance, query.frames, document))
            there = [c for c in oracle.candidates(curve, window) if inside((q, k, c[0]), rows)]
            expected += [(q, k, *c) for c in oracle.keep_best(there, most)]
    assert as_rows(visited.matches) == expected
    assert (visited.work.cells > 0) == any(w[3] > 0 and w[2] < len(data[w[1]]) for w in rows)


def local_distances(name: str, query: np.ndarray, document: np.ndarray) -> list[list[int]]:
    (stream,) = create(name, DIMENSION).streams
    return [[stream.distance(int(dot)) for dot in row] for row in (query @ document.T).tolist()]


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), most=st.integers(1, 20))
def test_windows_everywhere_are_the_full_search(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    data = [frames(rng, "few", int(n), "cosine", "document") for n in rng.integers(1, 3000, 4)]
    examples = [Example(f"q{k}", 1, frames(rng, "random", n, "cosine", "query")) for k, n in enumerate((1, 5, 60, 300))]
    distance, kept = create("cosine", DIMENSION), np.full(len(data), most)
    stream = [(k, [d]) for k, d in enumerate(data)]
    full = search(examples, stream, kept, Settings(distance, 4, 16, 500))
    everywhere = as_windows([(q, k, 0, len(d), 0) for q in range(len(examples)) for k, d in enumerate(data)])
    lengths = np.array([len(d) for d in data])
    visited = rescoring.visit(examples, stream, lengths, everywhere, kept, distance, 4)
    assert as_rows(visited.matches) == as_rows(full)
    assert len(full.cost) > 0


def material(features: list[np.ndarray], queries: list[np.ndarray]) -> Material:
    """Of raw features."""
    distance = create("cosine", DIMENSION)
    zero, one = np.zeros(DIMENSION), np.ones(DIMENSION)

    def examples(factor: int) -> list[Example]:
        shorter = [np.concatenate(list(averaged([q], factor))) for q in queries]
        return [Example(f"q{k}", 1, distance.prepare(q, zero, one, "query").frames) for k, q in enumerate(shorter)]

    def documents(factor: int, chosen: np.ndarray | None):
        for k, one_document in enumerate(features):
            if chosen is None or chosen[k]:
                blocks = np.array_split(one_document, 1 + len(one_document) // 13)
                yield (k, [distance.prepare(b, zero, one, "document").frames for b in averaged(blocks, factor)])

    def codebook(factor: int, size: int) -> Codebook:
        known = frames(np.random.default_rng(5), "random", 500, "cosine", "document")
        return fit(Landmarks(known, known), distance, size)

    lengths = np.array([len(f) for f in features], np.int64)
    most = np.full(len(features), 3)
    return Material(examples, documents, lengths, most, 0.01, distance, 4, lengths < 0, lambda: (), codebook)


def by_name(found, names: list[int]) -> set[tuple[int, ...]]:
    return {(row[0], names[row[1]], *row[2:]) for row in as_rows(found)}


FIRST_PASSES = [("coarse", {"factor": 1}), ("coarse", {"factor": 2}), ("quantised", {"factor": 2, "bytes": 3})]


@pytest.mark.parametrize(("name", "options"), FIRST_PASSES)
@pytest.mark.parametrize("over", ["collection", "document"])
@example(seed=162)
@example(seed=247)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20))
def test_order_and_shards_change_nothing(name: str, options: dict, over: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(int(n), DIMENSION)).astype(np.float32) for n in rng.integers(1, 400, 6)]
    queries = [rng.normal(size=(n, DIMENSION)).astype(np.float32) for n in (1, 7, 30)]
    budget = Budget(2, 0.3, over)
    first_pass = create_first_pass(name, **options)
    whole, work, _ = run(first_pass, material(features, queries), budget)
    expected = by_name(whole, list(range(6)))
    order = rng.permutation(6).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffering, "_BUFFER_FRAMES", 50)
        patch.setattr(rescoring, "_COLUMNS", 64)
        other, *_ = run(first_pass, material([features[k] for k in order], queries), budget)
    assert by_name(other, order) == expected
    assert sum(work) > 0
    if over == "document":
        parts = set()
        for some in (order[:2], order[2:]):
            part, *_ = run(first_pass, material([features[k] for k in some], queries), budget)
            parts |= by_name(part, some)
        assert parts == expected


def sound(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.repeat(rng.normal(size=(count // 6 + 1, DIMENSION)), 6, axis=0)[:count].astype(np.float32)


def recurring(rng: np.random.Generator, word: int, gaps: list[int], noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A word, and a document in which it recurs with gaps after it."""
    said = sound(rng, word)
    again = [np.concatenate([said + rng.normal(size=said.shape) * noise, sound(rng, gap)]) for gap in gaps]
    return said, np.concatenate(again).astype(np.float32)


@pytest.mark.parametrize("name", list(REGISTERED))
@pytest.mark.parametrize("over", ["collection", "document"])
@settings(max_examples=25)
@given(
    word=st.integers(1, 60),
    distances=st.lists(st.integers(0, 150), min_size=2, max_size=8),
    factor=st.integers(1, 5),
    others=st.lists(st.integers(-1, 3), min_size=1, max_size=3),
    kind=KIND,
    seed=st.integers(0, 2**20),
)
def test_with_a_budget_for_everything_each_candidate_is_found(
    name, over, word, distances, factor, others, kind, seed
) -> None:
    """A word that recurs, documents about half as long, and what resembles nothing."""
    rng = np.random.default_rng(seed)
    said, again = recurring(rng, word, distances, 0.3)
    features = [again, *(sound(rng, max(1, word // 2 + more)) for more in others)]
    scene = material(features, [said, sound(rng, 7)])
    if kind != "random":
        odd = frames(rng, kind, 41, "cosine", "query")
        scene = scene._replace(examples=lambda factor: [Example("odd", 1, odd[::factor])])
    full = search(
        scene.examples(1), scene.documents(1, None), scene.most, Settings(scene.distance, scene.window, 16, 500)
    )
    found, *_ = run(create_first_pass(name, factor=factor), scene, Budget(100_000, 0, over))
    assert as_rows(found) == as_rows(full)


@pytest.mark.parametrize("name", list(REGISTERED))
@pytest.mark.parametrize(("word", "apart"), [(30, 48), (30, 60), (42, 60), (30, 72), (60, 90), (30, 150)])
def test_a_budget_of_as_many_windows_as_a_word_is_said_finds_it_each_time(name: str, word: int, apart: int) -> None:
    rng = np.random.default_rng(0)
    said, again = recurring(rng, word, [apart - word] * 20, 0.1)
    features = [again, *(sound(rng, 600) for _ in range(5))]
    scene = material(features, [said])._replace(most=np.full(6, 200))
    enough = 2 if name == "coarse" else 1  # its windows overlap by half
    found, *_ = run(create_first_pass(name), scene, Budget(20 * enough, 0, "collection"))
    ends = found.end_frame[found.document == 0]
    assert all((np.abs(ends - (k * apart + word - 1)) <= 5).any() for k in range(20))


@settings(max_examples=60)
@given(
    n=st.integers(1, 12),
    length=st.integers(1, 60),
    most=st.integers(1, 5),
    split=st.integers(1, 60),
    seed=st.integers(0, 2**20),
)
def test_coarse_sums_are_equation_3(n: int, length: int, most: int, split: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    minima = rng.integers(0, 5, length).astype(np.int16)
    hop = max(1, n // 2)
    begins = list(range(0, max(length - n, 0) + 1, hop))
    if begins[-1] + n < length:
        begins.append(length - n)
    sums = sorted((int(minima[b : b + n].sum()), b) for b in begins)
    found = set()
    for after, stop in ((0, min(split, length)), (min(split, length), length)):
        out = np.empty((100, 3), np.int64)
        table = np.array([[0, length, after, stop]], np.int64)
        count = least_sums(minima, table, n, np.array([100]), 10**9, out)
        found |= {(int(total), int(b)) for _, b, total in out[:count]}
    assert found == set(sums)
    out = np.empty((most, 3), np.int64)
    count = least_sums(minima, np.array([[0, length, 0, length]], np.int64), n, np.array([most]), 10**9, out)
    assert sorted((int(total), int(b)) for _, b, total in out[:count]) == sums[:most]
