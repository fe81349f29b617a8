"""With every recurrence the engine finds what its oracle finds; how it cuts documents, lays them out and keeps the best."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.kernels.distances.interface import create
from swsdist.kernels.products import layout
from swsdist.kernels.recurrences import interface as recurrences
from swsdist.methods.dtw import search as search_module
from swsdist.methods.dtw.backends import cpu
from swsdist.methods.dtw.backends.cpu import batches
from swsdist.methods.dtw.backends.interface import Room, cut
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.registry.registries import RECURRENCES
from tests.oracles import patterns as oracle
from tests.oracles.patterns import row_range
from tests.oracles.search import bounded_slope, candidates, keep_best
from tests.support.coded import raises
from tests.support.engine import as_rows, frames

COSINE = create("cosine", 3)

PATTERN = st.sampled_from(list(RECURRENCES))
KIND = st.sampled_from(["random", "few", "constant", "zeros", "opposite"])


def local(name: str, query: np.ndarray, document: np.ndarray, ranged: bool = False) -> list[list[int]]:
    dots = query.astype(int) @ document.astype(int).T
    (from_dot,) = create(name, 3).maps(ranged)
    table = [[int(from_dot(dot)) for dot in row] for row in dots.tolist()]
    return row_range(table) if ranged else table


def options(name: str, band: int) -> dict[str, int]:
    return {"band": band} if name == "segmental" else {}


def curve(name: str, table: list[list[int]], band: int) -> list[tuple[int, int] | None]:
    """By the oracle of that name."""
    if name == "segmental":
        return oracle.segmental(table, band)
    return list(bounded_slope(table) if name == "bounded-slope" else getattr(oracle, name.replace("-", "_"))(table))


def expected(name, band, examples, data, distance, window, most, ranged=False):
    rows = []
    for q, query in enumerate(examples):
        for k, document in enumerate(data):
            found = candidates(curve(name, local(distance, query.frames, document, ranged), band), window)
            rows += [(q, k, end, length, cost) for end, length, cost in keep_best(found, most)]
    return rows


@settings(max_examples=120)
@given(
    name=PATTERN,
    queries=st.lists(st.tuples(KIND, st.integers(1, 9)), min_size=1, max_size=3),
    documents=st.lists(st.tuples(KIND, st.integers(1, 60)), min_size=1, max_size=5),
    distance=st.sampled_from(["cosine", "cosine-squared", "euclidean"]),
    window=st.integers(1, 5),
    most=st.integers(1, 6),
    lanes=st.integers(1, 20),
    piece=st.integers(1, 80),
    segment=st.sampled_from([4, 8, 20, 4096]),
    backend=st.sampled_from(["int16", "blas"]),
    threads=st.integers(1, 3),
    band=st.integers(1, 7),
    ranged=st.booleans(),
    seed=st.integers(0, 2**20),
)
@example(
    name="averages",
    queries=[("random", 9)],
    documents=[("few", 2)],
    distance="cosine",
    window=1,
    most=1,
    lanes=3,
    piece=1,
    segment=4,
    backend="int16",
    threads=1,
    band=1,
    ranged=False,
    seed=0,
)  # a query much longer than the document
def test_engine_is_the_oracle(
    name, queries, documents, distance, window, most, lanes, piece, segment, backend, threads, band, ranged, seed
) -> None:
    rng = np.random.default_rng(seed)
    examples = [Example(f"q{k}", 1, frames(rng, kind, n, distance)) for k, (kind, n) in enumerate(queries)]
    data = [frames(rng, kind, n, distance, "document") for kind, n in documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "_SEGMENT", segment)
        found = search(
            examples,
            ((k, np.array_split(d, 1 + len(d) // 7)) for k, d in enumerate(data)),
            np.full(len(data), most),
            Settings(create(distance, 3), window, lanes, piece, name, backend, threads, options(name, band), ranged),
        )
    assert as_rows(found) == expected(name, band, examples, data, distance, window, most, ranged)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    name=PATTERN,
    lengths=st.lists(st.integers(1, 900), min_size=1, max_size=6),
    lanes=st.sampled_from([1, 3, 64]),
    piece=st.sampled_from([1, 50, 333, 10_000]),
    segment=st.sampled_from([4, 64, 100, 512]),
    backend=st.sampled_from(["int16", "blas"]),
    window=st.sampled_from([1, 3, 40]),
    band=st.sampled_from([1, 2, 5, 12]),
    ranged=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_cuts_segments_and_lanes_change_nothing(
    name, lengths, lanes, piece, segment, backend, window, band, ranged, seed
) -> None:
    rng = np.random.default_rng(seed)
    data = [frames(rng, "few", n) for n in lengths]
    examples = [Example(f"q{k}", 1, frames(rng, "random", n)) for k, n in enumerate((1, 4, 5, 17, 300))]
    most = np.full(len(data), 1000)
    chosen = Settings(COSINE, window, 7, 10_000, name, "int16", 1, options(name, band), ranged)
    whole = search(examples, ((k, [d]) for k, d in enumerate(data)), most, chosen)
    shuffled = ((k, [data[k]]) for k in rng.permutation(len(data)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "_SEGMENT", segment)
        cut_otherwise = chosen._replace(lanes=lanes, piece=piece, backend=backend, threads=2)
        other = search(examples, shuffled, most, cut_otherwise)
    assert as_rows(other) == as_rows(whole)
    assert len(whole.cost) > 0


@pytest.mark.parametrize("name", list(RECURRENCES))
def test_a_thousand_documents(name: str) -> None:
    rng = np.random.default_rng(3)
    data = [frames(rng, "random", int(n)) for n in rng.integers(1, 12, 1000)]
    query = Example("q", 1, frames(rng, "random", 3))
    chosen = Settings(COSINE, 2, 64, 99, name, options=options(name, 2))
    found = search([query], ((k, [d]) for k, d in enumerate(data)), np.full(len(data), 3), chosen)
    assert as_rows(found) == expected(name, 2, [query], data, "cosine", 2, 3)


def test_long_documents_have_wider_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """int64 sums say what int32 sums say, where those suffice; the limit is where they do not."""
    rng = np.random.default_rng(1)
    data = [frames(rng, kind, n) for kind, n in (("random", 300), ("few", 70), ("constant", 200))]
    examples = [Example("a", 1, frames(rng, "random", 20)), Example("b", 1, frames(rng, "constant", 1))]
    most = np.full(len(data), 50)
    chosen = Settings(COSINE, 3, 64, 99, "averages")
    narrow = search(examples, ((k, [d]) for k, d in enumerate(data)), most, chosen)
    made = recurrences.create("averages")
    monkeypatch.setattr(search_module, "create_recurrence", lambda name, options: made._replace(int32_frames=100))
    wide = search(examples, ((k, [d]) for k, d in enumerate(data)), most, chosen)
    assert as_rows(wide) == as_rows(narrow)
    monkeypatch.setattr(search_module, "create_recurrence", lambda name, options: made._replace(most_frames=299))
    with pytest.raises(UserError, match="a document of 300 frames is too long for the recurrence averages"):
        search(examples, ((k, [d]) for k, d in enumerate(data)), most, chosen)


def test_a_path_longer_than_int32_holds() -> None:
    """Distances to the query's last frame rise slowly, so that a path stays in it; at the end they fall, to a candidate."""
    steps, each = 500, 4400
    angle = np.arccos(1 - np.arange(steps) / steps * 0.97)
    kinds = np.stack([np.cos(angle), np.sin(angle), np.zeros(steps)], axis=1)
    prepare = COSINE.prepare(kinds.astype(np.float32), np.zeros(3), np.ones(3), "document").frames
    document = np.concatenate([prepare, prepare[:1]]).repeat(each, axis=0)
    query = COSINE.prepare(np.array([[0, 0, 1], [1, 0, 0]], np.float32), np.zeros(3), np.ones(3), "query").frames
    chosen = Settings(COSINE, 10, 64, 99, "averages")
    found = search([Example("q", 1, query)], [(0, [document])], np.array([1000]), chosen)

    first, last = local("cosine", query, prepare)
    sums = first[0] + np.cumsum(np.repeat([*last, last[0]], each))
    assert sums[-1] > 2**31
    costs = [oracle.candidate_cost(total, t + 2, 2) for t, total in enumerate(sums.tolist()) if t >= steps * each]
    end = steps * each + costs.index(min(costs))  # each fall of the rounded average is a candidate; the last one
    assert costs[0] > costs[-1]
    assert as_rows(found)[-1] == (0, 0, end, end + 1, costs[-1])


def test_queries_that_are_too_long() -> None:
    for name, longest in (("averages", 1 << 15), ("non-segmental", 1 << 14), ("segmental", (1 << 18) - 10)):
        recurrence = recurrences.create(name)
        assert recurrence.packing(longest).infinity > 0
        with pytest.raises(UserError, match=f"too long for the recurrence {name}"):
            recurrence.packing(longest + 1)


def test_a_document_too_long_for_its_row_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not run out of memory."""
    rng = np.random.default_rng(0)
    document, query = frames(rng, "random", 300, side="document"), Example("q", 1, frames(rng, "random", 6))
    monkeypatch.setattr(cpu, "_RANGED_BYTES", 50_000)
    made = Settings(COSINE, 3, 16, 100, row_range=True)
    with raises(families.TOO_LARGE, where="search.row_range"):
        search([query], [(0, [document])], np.array([2]), made)


# How documents are cut, laid out and kept


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
    stream = [(k, [d]) for k, d in enumerate(data)]
    found = search([Example("q", 1, data[2][:9])], stream, np.ones(3, np.int64), Settings(COSINE, 2, 16, 999))
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
        chosen = Settings(COSINE, 3, 16, 100, pattern)
        found = search([Example("q", 1, data[5:9])], stream, np.ones(3, np.int64), chosen)
        assert found.document.tolist() == [1]
