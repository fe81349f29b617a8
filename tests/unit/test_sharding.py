"""How documents are cut into shards."""

from hypothesis import given
from hypothesis import strategies as st

from swsdist.store.statistics import MOST_DOCUMENTS, cut

SECONDS = st.lists(st.floats(0, 1000, allow_subnormal=False), max_size=40)


def test_by_length_and_by_number() -> None:
    for seconds, target, expected in (
        ([], 10, []),
        ([5], 10, [1]),
        ([50], 10, [1]),
        ([4, 4, 4, 4], 8, [2, 2]),
        ([4, 4, 5, 4], 10, [3, 1]),
        ([1, 20, 1], 10, [2, 1]),
        ([0.1] * 10, 0.3, [3, 3, 3, 1]),  # sums that miss 0.3 by a last bit
        ([0.1] * (2 * MOST_DOCUMENTS + 5), 3600.0, [MOST_DOCUMENTS, MOST_DOCUMENTS, 5]),
    ):
        assert [len(one) for one in cut(seconds, target)] == expected
    for seconds, shards, expected in (
        ([1] * 6, 3, [2, 2, 2]),
        ([1] * 7, 2, [4, 3]),
        ([1] * 7, 7, [1] * 7),
        ([1, 1], 64, [1, 1]),
        ([100, 1, 1, 1], 2, [1, 3]),
        ([1, 1, 1, 100], 2, [3, 1]),
        ([1, 1, 0, 0], 2, [1, 3]),
        ([0] * 5, 2, [1, 4]),  # lengths that nobody could tell
        ([0.1] * 9, 3, [3, 3, 3]),
        ([], 4, []),
    ):
        assert [len(one) for one in cut(seconds, 3600, shards)] == expected


@given(seconds=SECONDS, target=st.floats(0.1, 2000), shards=st.none() | st.integers(1, 64))
def test_every_document_once_in_order(seconds: list[float], target: float, shards: int | None) -> None:
    ranges = cut(seconds, target, shards)
    assert [k for one in ranges for k in one] == list(range(len(seconds)))
    assert all(len(one) > 0 for one in ranges)
    if shards is not None:
        assert len(ranges) == min(shards, len(seconds))


@given(seconds=SECONDS, target=st.floats(0.1, 2000))
def test_a_shard_passes_its_target_by_one_document(seconds: list[float], target: float) -> None:
    for one in cut(seconds, target)[:-1]:
        lengths = [seconds[k] for k in one]
        assert sum(lengths) >= target * (1 - 1e-6)
        assert sum(lengths[:-1]) < target
