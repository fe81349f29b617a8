"""Queries: groups, features of places, averaged templates, distances looked up."""

import hashlib
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.config.search import Search
from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import methods as methods_codes
from swsdist.core.errors import UserError
from swsdist.core.types import QUERIES
from swsdist.features.interface import frame_count
from swsdist.features.mfcc import Mfcc
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.kernels.alignment import align
from swsdist.kernels.distances.interface import Distance, Part, create, weighted_sum
from swsdist.kernels.lookup import CHUNK, GROUP, INFINITE, ROWS, mark_gaps, scanner
from swsdist.kernels.lookup import DISTANCES as lookup_DISTANCES
from swsdist.kernels.recurrences import interface as recurrences
from swsdist.methods.query import extraction as queries
from swsdist.methods.query.extraction import GROUP_LEAST, GROUP_MOST, example_frames, extract, groups, prepared
from swsdist.methods.query.template import ROUNDS, template
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECURRENCES
from tests.oracles import examples as oracle
from tests.support.coded import raises

Frames = np.ndarray


def distances() -> dict[str, Distance]:
    names = ("cosine", "cosine-squared", "euclidean", "kl", "inner-product", "log-posterior-cosine")
    made = {name: create(name, 4) for name in names}
    made["sum"] = weighted_sum([Part(create("cosine", 3), 0, 3, 2), Part(create("euclidean", 2), 2, 4, 1)], 4)
    return made


DISTANCES = distances()


def drawn(rng: np.random.Generator, length: int, name: str, few: bool) -> Frames:
    """Frames with many ties, or none; probabilities for distances between such."""
    frames = rng.integers(-1, 2, (length, 4)).astype(float) if few else rng.normal(size=(length, 4))
    if name in ("kl", "inner-product", "log-posterior-cosine"):
        frames = np.exp(frames)
        frames /= frames.sum(axis=1, keepdims=True)
    return frames


def local(distance: Distance, left: Frames, right: Frames) -> list[list[int]]:
    query = distance.fill(np.array(left, float), "query", None).frames.astype(int)
    document = distance.fill(np.array(right, float), "document", None).frames.astype(int)
    table = np.full((len(query), len(document)), (1 << distance.shift) >> 1)
    for stream in distance.streams:
        dots = query[:, stream.first : stream.stop] @ document[:, stream.first : stream.stop].T
        table += [[stream.weight * stream.distance(dot) for dot in row] for row in dots.tolist()]
    return np.minimum(table >> distance.shift, 4095).tolist()


@settings(max_examples=100, deadline=None)
@given(
    rows=st.integers(1, 5), columns=st.integers(1, 5), most=st.sampled_from([0, 1, 4095]), seed=st.integers(0, 2**20)
)
def test_the_path_is_the_oracles(rows: int, columns: int, most: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, most + 1, (rows, columns)).astype(np.int16)
    cost, path = np.empty((rows, columns), np.int32), np.empty((rows + columns - 1, 2), np.int32)
    places = align(table, cost, path)
    expected = oracle.path(table.tolist())
    assert [tuple(place) for place in path[:places].tolist()][::-1] == expected
    assert cost[-1, -1] == sum(int(table[place]) for place in expected)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(DISTANCES)),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    few=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_template_is_the_oracle(name: str, lengths: list[int], few: bool, seed: int) -> None:
    """Also the same several times, under a distance of 0 to itself or not (`inner-product`)."""
    rng, distance = np.random.default_rng(seed), DISTANCES[name]
    examples = sorted((drawn(rng, n, name, few) for n in lengths), key=lambda frames: (len(frames), frames.tobytes()))
    mean = oracle.barycentre([e.tolist() for e in examples], lambda *pair: local(distance, *pair), ROUNDS)
    expected = distance.fill(np.array(mean), "query", None).frames
    assert template(examples, distance).tobytes() == expected.tobytes()
    alone = distance.fill(examples[0].copy(), "query", None).frames
    for times in (1, 2, 3, 7):
        assert template([examples[0].copy() for _ in range(times)], distance).tobytes() == alone.tobytes()


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(sorted(DISTANCES)),
    lengths=st.lists(st.integers(1, 30), min_size=2, max_size=5),
    few=st.booleans(),
    seed=st.integers(0, 2**20),
)
def test_order_does_not_matter(name: str, lengths: list[int], few: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    examples = [drawn(rng, n, name, few) for n in lengths]
    one = template(examples, DISTANCES[name])
    other = template([examples[k] for k in rng.permutation(len(examples))], DISTANCES[name])
    assert one.tobytes() == other.tobytes()
    assert len(one) in lengths


def test_the_bytes_are_held() -> None:
    """Numbers by a linear congruential generator and a correctly rounded division: the same template on any machine.

    When this fails and you meant it, raise `version` of the stage `search`: no one's old candidates may be taken for new ones.
    """

    def numbers(state: int):  # type: ignore[no-untyped-def] # Knuth's MMIX generator
        while True:
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            yield (state >> 49) / 1000

    drawn = numbers(1)
    examples = [np.array(list(islice(drawn, n * 13))).reshape(n, 13) - 16 for n in (40, 33, 51, 47)]
    digest = hashlib.sha256()
    for name in ("cosine", "euclidean-squared"):
        digest.update(template(examples, create(name, 13)).astype("<f4").tobytes())
    assert digest.hexdigest() == "604af1fb16927ca758c89b49f9b6f08892d93e9606a2182947649e71c3be6c97"


RATE = 8000
EXTRACTOR = Mfcc(sample_rate=RATE, n_fft=256, win_length=200, hop_length=80)
SAMPLES = np.random.default_rng(3).normal(scale=0.1, size=4 * RATE).astype(np.float32)
SPEECH = EXTRACTOR.extract(SAMPLES)


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("audio") / "talk.wav"
    soundfile.write(path, SAMPLES, RATE, subtype="FLOAT")
    return str(path)


def query(path: str, start: float | None = None, end: float | None = None, **more: Any) -> dict[str, Any]:
    known = {"query_id": "q", "example": 1, "channel": 1, "path": path, "start": start, "end": end}
    return {**dict.fromkeys(QUERIES.names), **known, **more}


def frames_of(path: str, start: float | None = None, end: float | None = None) -> np.ndarray:
    return example_frames(query(path, start, end), EXTRACTOR, Folder(str(Path(path).parent)))


@settings(max_examples=50, deadline=None)
@given(count=st.integers(0, 1500), seed=st.integers(0, 99))
def test_groups_hold_every_query_once(count: int, seed: int) -> None:
    ids = [f"{seed}-{k}" for k in range(count)]
    found = groups(ids[::-1] + ids[:5])
    assert [query_id for group in found for query_id in group] == sorted(ids)
    assert all(GROUP_LEAST <= len(group) <= GROUP_MOST for group in found[:-1])
    assert all(0 < len(group) <= GROUP_MOST for group in found)


def test_a_new_query_changes_few_groups() -> None:
    ids = [f"q{k:05d}" for k in range(5000)]
    before = {tuple(group) for group in groups(ids)}
    after = {tuple(group) for group in groups([*ids, "q02500x"])}
    assert len(before) > 10
    assert len(after - before) <= 3


def test_a_place_has_the_frames_of_running_speech(recording: str) -> None:
    """Deltas at its edges look into the speech around it, not at repeated edges; the place begins at its own sample."""
    assert frames_of(recording).tobytes() == SPEECH.tobytes()
    for start, end in [(0.0, 0.5), (0.01, 0.3), (1.0, 1.5), (2.34, 2.91), (3.5, 4.0), (1.23, None)]:
        found = frames_of(recording, start, end)
        first = round(start / 0.01)
        stop = len(SPEECH) if end is None else first + frame_count(EXTRACTOR, round((end - start) * RATE))
        assert found.shape == (stop - first, EXTRACTOR.dimension)
        assert np.abs(found - SPEECH[first:stop]).max() < 1e-3
    found, begin = frames_of(recording, 1.0035, 1.5), round(1.0035 * RATE)
    expected = EXTRACTOR.extract(SAMPLES[begin - 4 * 80 :])[4 : 4 + len(found)]
    assert np.abs(found - expected).max() < 1e-3
    outside = audio_codes.PLACE_OUTSIDE
    for start, end, code in (
        (1.0, 1.02, methods_codes.PLACE_TOO_SHORT),
        *((3.9, 4.5, outside), (5.0, 6.0, outside), (2.0, 1.0, outside)),
    ):
        with raises(code, where=recording):
            frames_of(recording, start, end)


def test_what_is_averaged_has_a_longest(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a query with several examples; one alone is not averaged, and is searched in its whole length."""
    monkeypatch.setattr(queries, "LONGEST_AVERAGED", 150)
    names = (("a", 1, 1), ("a", 2, 2), ("b", 1, 2))
    rows = [query(recording, 0.0, end, query_id=name, example=k) for name, k, end in names]
    found = extract(rows, EXTRACTOR, Folder("/"), Search(examples="template"))
    kept = zip(found.examples["query_id"].to_pylist(), found.examples["example"].to_pylist(), strict=True)
    assert list(kept) == [("a", 1), ("b", 1)]
    (refused,) = found.rejected.to_pylist()
    assert (refused["id"], refused["part"], refused["reason"]) == ("a", 2, "too-long")
    assert extract(rows, EXTRACTOR, Folder("/")).rejected.num_rows == 0


@pytest.mark.parametrize(
    "settings",
    [*({"recurrence": name} for name in ("averages", "non-segmental")), {"recurrence": "segmental", "band": 30}],
)
def test_a_recurrence_has_a_longest(recording: str, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
    """One that is longer is rejected and the others are extracted, whatever the recurrence holds of them."""
    most, name = 150 + settings.get("band", 0), settings["recurrence"]
    monkeypatch.setitem(RECURRENCES._entries, name, replace(RECURRENCES[name], longest_query=most))
    names = (("fits", 0.0, 1.5), ("longer", 0.0, 2.0))
    frames = [len(frames_of(recording, *place)) for _, *place in names]
    assert frames[0] <= 150 < frames[1]
    rows = [query(recording, start, end, query_id=name) for name, start, end in names]
    for search in (Search(**settings), Search(**settings, examples="template")):
        found = extract(rows, EXTRACTOR, Folder("/"), search)
        assert found.examples["query_id"].to_pylist() == ["fits"]
        (refused,) = found.rejected.to_pylist()
        assert (refused["id"], refused["part"], refused["reason"]) == ("longer", 1, "too-long")
    assert extract(rows, EXTRACTOR, Folder("/"), Search()).rejected.num_rows == 0


def test_what_planning_takes_is_what_the_recurrence_holds() -> None:
    for name, options in [*((name, {}) for name in RECURRENCES), *(("segmental", {"band": k}) for k in (1, 999))]:
        most = RECURRENCES[name].longest(checked(RECURRENCES, name, options))
        packing = recurrences.create(name, options).packing
        packing(most)
        with pytest.raises(UserError, match="too long"):
            packing(most + 1)
    assert Search(recurrence="segmental").recurrence_settings() == {"band": 10}
    assert RECURRENCES["segmental"].longest({"band": 10}) == 2**18 - 10
    assert RECURRENCES["segmental"].longest({"band": 2**19}) == 0


def test_a_template_of_each_query(recording: str) -> None:
    """Each example is normalised by its own speaker; the template has the least number, and the distance's fixed point."""
    places = (("b", 3, 1.0, "known"), ("b", 2, 1.3, "unknown"), ("a", 5, 2.0, "known"))
    rows = [query(recording, s, s + 0.4, query_id=name, example=k, speaker=who) for name, k, s, who in places]
    table = extract(rows, EXTRACTOR, Folder("/")).examples
    one, two = Statistics.of(SPEECH), Statistics.of(SPEECH[:20] * 2)
    statistics = {("collection", ""): one, ("speaker", "known"): two}
    found = prepared(table, statistics, Search(examples="template"), EXTRACTOR.dimension)
    assert [(each.query_id, each.example) for each in found] == [("b", 2), ("a", 5)]
    distance = create("cosine", EXTRACTOR.dimension)
    normalised = []
    for (_, _, start, _), by in zip(places, (two, one, two), strict=True):
        offset, scale = by.offset_and_scale("mean-variance")
        normalised.append((frames_of(recording, start, start + 0.4) - offset) / scale)
    assert np.array_equal(found[0].frames, template(normalised[:2], distance))
    alone = prepared(table.slice(2), statistics, Search(), EXTRACTOR.dimension)
    assert np.array_equal(found[1].frames, alone[0].frames)
    # By the collection: also one whose speaker is known.
    by_collection = prepared(table, statistics, Search(queries_by="collection"), EXTRACTOR.dimension)
    scaling = one.offset_and_scale("mean-variance")
    for (_, _, start, _), each in zip(places, by_collection, strict=True):
        expected = distance.prepare(frames_of(recording, start, start + 0.4), *scaling, "query").frames
        assert np.array_equal(each.frames, expected)


class Case(NamedTuple):
    """Codes of documents, and the tables of a query."""

    codes: np.ndarray
    gap: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    entries: np.ndarray
    less: np.ndarray
    factors: np.ndarray
    streams: np.ndarray

    @property
    def n(self) -> int:
        return len(self.less)

    def minima(self, plain: bool, cuts: tuple[int, ...] = ()) -> np.ndarray:
        groups = len(self.gap) // GROUP
        found = np.full(groups * GROUP // CHUNK, 7, np.uint16)
        bounds = [0, *cuts, groups]
        for first, stop in pairwise(bounds):
            rooms = [np.full(size, 3, np.uint16) for size in (2 * self.n, ROWS, lookup_DISTANCES)]
            doubled = np.concatenate([self.entries, self.entries], axis=3).reshape(-1)
            where = self.codes.reshape(-1), self.gap, first, stop, self.n, doubled
            scanner(plain)(*where, self.less.reshape(-1), self.factors, self.streams, *rooms, found)
        return found

    def expected(self) -> np.ndarray:
        """By the recurrence's definition, a document and a frame at a time, in Python's integers."""
        found = np.full(len(self.gap) // CHUNK, INFINITE, np.int64)
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            d = [[self._distance(i, start * GROUP + t) for t in range(length)] for i in range(self.n)]
            cost = [[INFINITE] * length for _ in range(self.n)]
            for i in range(self.n):
                for t in range(length):
                    best = 0 if i == 0 else min(cost[i - 1][max(0, t - 2) : t], default=INFINITE)
                    if i == 1 or (i > 1 and t > 0):
                        best = min(best, d[i - 1][t] + (0 if i == 1 else cost[i - 2][t - 1]))
                    cost[i][t] = min(INFINITE, best + d[i][t])
            for t in range(length):
                chunk = (start * GROUP + t) // CHUNK
                found[chunk] = min(found[chunk], cost[-1][t])
        return found

    def _distance(self, i: int, frame: int) -> int:
        pairs = self.codes[frame // GROUP, :, frame % GROUP].tolist()
        total, b = 0, 0
        for s, (size, power) in enumerate(self.streams.tolist()):
            part = 0
            for pair in pairs[b : b + size]:
                part += int(self.entries[i, b, 0, pair & 15]) + int(self.entries[i, b, 1, pair >> 4])
                b += 1
            part = max(0, min(255, part) - int(self.less[i, s]))
            total += (part * part if power == 2 else 256 * part) * int(self.factors[s]) >> 16
        return min(INFINITE, total)


def case(seed: int, n: int, streams: list[tuple[int, int]], lengths: list[int], largest: int = 60) -> Case:
    rng = np.random.default_rng(seed)
    width = sum(size for size, _ in streams)
    groups = [-(-(length + 2) // GROUP) for length in lengths]
    starts = np.cumsum([0, *groups[:-1]]).astype(np.int64)
    gap = np.empty(sum(groups) * GROUP, np.uint8)
    mark_gaps(starts, np.array(lengths, np.int64), gap)
    # A path of mean distances costs some 40000.
    typical = [min(255, largest * size) ** power * (1 if power == 2 else 256) for size, power in streams]
    factors = [min(65535, 40000 * 65536 // n // len(streams) // max(1, each)) for each in typical]
    return Case(
        rng.integers(0, 256, (sum(groups), width, GROUP), dtype=np.uint8),
        gap,
        starts,
        np.array(lengths, np.int64),
        rng.integers(0, largest, (n, width, 2, 16)).astype(np.uint8),
        rng.integers(0, 40, (n, len(streams))).astype(np.uint8),
        np.array(factors, np.uint16),
        np.array(streams, np.int64),
    )


CASES = [
    case(1, 1, [(1, 1)], [1]),
    case(2, 2, [(3, 2)], [30, 31, 32, 1, 90]),
    case(3, 9, [(5, 1)], [200, 5, 64]),
    case(4, 12, [(2, 2), (3, 1), (1, 2)], [70, 62, 30]),
    case(5, 25, [(5, 2)], [2500], largest=50),
    case(6, 8, [(5, 1)], [100], largest=256),
]


@pytest.mark.parametrize("one", CASES)
def test_both_forms_are_the_recurrence_of_the_definition(one: Case) -> None:
    expected = one.expected()
    assert expected.min() < INFINITE
    assert np.array_equal(one.minima(plain=True), expected)
    assert np.array_equal(one.minima(plain=False), expected)
