"""How the engine cuts documents, lays them out and keeps the best. That it finds what the oracle does: test_patterns_engine."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.kernels.distances.interface import create
from swsdist.kernels.products import layout
from swsdist.methods.dtw.backends.cpu import batches
from swsdist.methods.dtw.backends.interface import Room, cut
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example


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


def as_rows(found):
    return list(zip(*(column.tolist() for column in found[:5]), strict=True))


COSINE = create("cosine", 3)


@settings(max_examples=60)
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
        laid = batch.segment(0, batch.frames, Room()).reshape(batch.frames, len(order) // 2, 16, 2)
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
