"""The engine finds what the oracle finds, however documents are cut, laid out and ordered."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.kernels.distances.registry import create
from swsdist.kernels.products import layout
from swsdist.methods.dtw.lanes import batches, cut
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.testing import oracles_search as oracle

NAMES = ["cosine", "cosine-squared", "euclidean"]


def frames(rng: np.random.Generator, kind: str, length: int, name: str = "cosine", side: str = "query") -> np.ndarray:
    dimension = 3
    if kind == "zeros":
        data = np.zeros((length, dimension))
    elif kind == "constant":
        data = np.ones((length, dimension))
    elif kind == "few":
        data = rng.integers(-1, 2, (length, dimension)).astype(float)
    else:
        data = rng.normal(size=(length, dimension))
    distance = create(name, dimension)
    return distance.prepare(data.astype(np.float32), np.zeros(dimension), np.ones(dimension), side).frames


def local(distance, query: np.ndarray, document: np.ndarray) -> list[list[int]]:
    """Local distances by Python integers, query frames x document frames."""
    dots = query.astype(int) @ document.astype(int).T
    return [[distance.streams[0].distance(dot) for dot in row] for row in dots.tolist()]


def as_rows(found):
    return list(zip(*(column.tolist() for column in found[:5]), strict=True))


COSINE = create("cosine", 3)
KIND = st.sampled_from(["random", "few", "constant", "zeros"])


@settings(max_examples=60, deadline=None)
@given(
    queries=st.lists(st.tuples(KIND, st.integers(1, 9)), min_size=1, max_size=3),
    documents=st.lists(st.tuples(KIND, st.integers(1, 60)), min_size=1, max_size=7),
    name=st.sampled_from(NAMES),
    window=st.integers(1, 5),
    most=st.integers(1, 6),
    lanes=st.integers(1, 20),
    product=st.sampled_from(["int16", "numpy"]),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**20),
)
@example(
    queries=[("random", 9)],
    documents=[("few", 2)],
    name="cosine",
    window=1,
    most=1,
    lanes=3,
    product="int16",
    threads=1,
    seed=0,
)  # a query longer than twice the document: nothing is found
def test_engine_is_the_oracle(queries, documents, name, window, most, lanes, product, threads, seed) -> None:
    rng = np.random.default_rng(seed)
    distance = create(name, 3)
    examples = [Example(f"q{k}", 1, frames(rng, kind, n, name)) for k, (kind, n) in enumerate(queries)]
    data = [frames(rng, kind, n, name, "document") for kind, n in documents]
    found = search(
        examples,
        ((k, np.array_split(d, 1 + len(d) // 7)) for k, d in enumerate(data)),
        np.full(len(data), most),
        Settings(distance, window, lanes, 1, product=product, threads=threads),
    )
    expected = []
    for q, query in enumerate(examples):
        for k, document in enumerate(data):
            curve = oracle.bounded_slope(local(distance, query.frames, document))
            kept = oracle.keep_best(oracle.candidates(curve, window), most)
            expected += [(q, k, end, length, cost) for end, length, cost in kept]
    assert as_rows(found) == expected


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 900), min_size=1, max_size=6),
    lanes=st.sampled_from([1, 3, 64]),
    piece=st.sampled_from([1, 50, 333, 10_000]),
    product=st.sampled_from(["int16", "numpy"]),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**20),
)
def test_cuts_lanes_threads_and_products_change_nothing(lengths, lanes, piece, product, threads, seed) -> None:
    rng = np.random.default_rng(seed)
    data = [frames(rng, "few", n) for n in lengths]
    examples = [Example(f"q{k}", 1, frames(rng, "random", n)) for k, n in enumerate((1, 4, 5, 17))]
    most = np.full(len(data), 1000)
    whole = search(examples, ((k, [d]) for k, d in enumerate(data)), most, Settings(COSINE, 3, 7, 10_000))
    shuffled = rng.permutation(len(data))
    other = search(
        examples,
        ((k, [data[k]]) for k in shuffled),
        most,
        Settings(COSINE, 3, lanes, piece, product=product, threads=threads),
    )
    assert as_rows(other) == as_rows(whole)
    assert len(whole.cost) > 0


@settings(max_examples=60, deadline=None)
@given(
    length=st.integers(1, 200),
    block=st.integers(1, 50),
    piece=st.integers(1, 60),
    before=st.integers(0, 40),
    after=st.integers(0, 20),
)
def test_pieces_cover_a_document_once(length, block, piece, before, after) -> None:
    document = np.arange(length, dtype=np.float32)[:, None]
    reported = []
    for part in cut(0, (document[k : k + block] for k in range(0, length, block)), piece, before, after):
        assert (part.frames[:, 0] == np.arange(part.offset, part.offset + len(part.frames))).all()
        reported += range(part.offset + part.first, part.offset + part.stop)
        assert part.offset == 0 or part.first >= before
        assert part.offset + len(part.frames) >= min(length, part.offset + part.stop + after)
        assert part.stop - part.first <= piece
    assert reported == list(range(length))


def test_ten_thousand_documents() -> None:
    rng = np.random.default_rng(3)
    data = [frames(rng, "random", int(n)) for n in rng.integers(1, 12, 10_000)]
    query = Example("q", 1, frames(rng, "random", 3))
    found = search(
        [query],
        ((k, [d]) for k, d in enumerate(data)),
        np.ones(len(data), np.int64),
        Settings(COSINE, 2, 64, 99, threads=2),
    )
    reachable = [k for k, d in enumerate(data) if 2 * len(d) >= 3]
    assert found.document.tolist() == reachable


def test_lanes_hold_all_frames() -> None:
    rng = np.random.default_rng(0)
    parts = [p for k, n in enumerate((5, 40, 33)) for p in cut(k, [frames(rng, "random", n)], 100, 4, 2)]
    order = layout(COSINE).order
    made = list(batches(parts, 2, order))
    assert [batch.numbers[:, 0].sum() for batch in made] == [73, 5]
    for batch in made:
        laid = batch.segment(0, batch.frames).reshape(batch.frames, len(order) // 2, 16, 2)
        for lane, piece in enumerate(batch.pieces):
            mine = laid[:, :, lane].reshape(batch.frames, -1)
            assert np.array_equal(mine[: len(piece.frames), :3], piece.frames)
            assert not mine[len(piece.frames) :].any()
            assert not mine[:, 3:].any()
        assert not laid[:, :, len(batch.pieces) :].any()


def test_fill_tells_the_padding() -> None:
    rng = np.random.default_rng(0)
    data = [frames(rng, "random", n) for n in (100, 100, 50)]
    found = search(
        [Example("q", 1, data[2][:9])],
        ((k, [d]) for k, d in enumerate(data)),
        np.ones(3, np.int64),
        Settings(COSINE, 2, 16, 999),
    )
    assert found.fill == 250 / 1600


def test_all_hold_the_worst_and_the_best() -> None:
    """Every lane has more candidates than may be kept: those of least cost stay, earlier ends first among equals."""
    rng = np.random.default_rng(1)
    data = [frames(rng, "few", 700) for _ in range(33)]
    examples = [Example("q", 1, frames(rng, "few", n)) for n in (2, 7)]
    stream = [(k, [d]) for k, d in enumerate(data)]
    every = search(examples, stream, np.full(33, 10_000), Settings(COSINE, 3, 16, 100))
    few = search(examples, stream, np.full(33, 4), Settings(COSINE, 3, 16, 10_000))
    expected = []
    for q in range(2):
        for k in range(33):
            rows = [row for row in as_rows(every) if row[:2] == (q, k)]
            expected += sorted(sorted(rows, key=lambda row: (row[4], row[2]))[:4])
    assert as_rows(few) == expected


def test_documents_without_frames_hold_nothing() -> None:
    rng = np.random.default_rng(0)
    data = frames(rng, "random", 40)
    stream = [(0, []), (1, [data]), (2, [data[:0]])]
    for pattern in ("bounded-slope", "averages"):
        settings = Settings(COSINE, 3, 16, 100, pattern)
        found = search([Example("q", 1, data[5:9])], stream, np.ones(3, np.int64), settings)
        assert found.document.tolist() == [1]
