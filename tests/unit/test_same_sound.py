"""Which documents sound the same: all pairs that are alike are found, whatever their order, and none besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from swsdist.audio.speech import pack_marks
from swsdist.store.same_sound import Copies, _is_same, copies

COLUMNS = 13


def document(rng: np.random.Generator, name: str) -> dict[str, Any]:
    frames = int(rng.integers(200, 400))
    speech = np.repeat(rng.random(frames // 20 + 1) < 0.6, 20)[:frames]
    speech[:60] = np.arange(60) < 30
    mean, variance = rng.normal(size=COLUMNS), np.exp(rng.normal(0, 0.2, COLUMNS))
    return row(name, frames, speech, mean, variance)


def row(name: str, frames: int, speech: Any, mean: Any, variance: Any, duration: float | None = None) -> dict[str, Any]:
    when = {"doc_id": name, "channel": 1, "recording": None, "start": None, "duration": duration or frames / 100}
    return {**when, "frames": frames, "mean": list(mean), "variance": list(variance), "speech": pack_marks(speech)}


def coded(rng: np.random.Generator, of: dict[str, Any], name: str) -> dict[str, Any]:
    """The same sound, as coding changes it at most."""
    frames, variance = of["frames"], np.array(of["variance"])
    speech = np.unpackbits(np.frombuffer(of["speech"], np.uint8), count=frames, bitorder="little").astype(bool)
    speech[: frames // 50] ^= True
    mean = np.array(of["mean"]) + rng.choice([-1, 1], COLUMNS) * 0.02 * np.sqrt(variance.min())
    return row(name, frames, speech, mean, variance * 1.1, of["duration"] + rng.choice([-1, 1]) * 0.04)


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_copies_and_only_they(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [document(rng, f"d{k:02}") for k in range(count)]
    chosen = [each for each in rows if rng.random() < 0.4]
    rows += [coded(rng, each, f"{each['doc_id']}-copy") for each in chosen]
    rows += [{**each, "doc_id": f"a-{each['doc_id']}"} for each in chosen[:3]]
    expected = {}
    for k, each in enumerate(chosen):
        first = f"a-{each['doc_id']}" if k < 3 else each["doc_id"]
        expected |= {(name, 1): (first, 1) for name in (each["doc_id"], f"{each['doc_id']}-copy") if name != first}
    rng.shuffle(rows)  # type: ignore[arg-type]
    schema = pa.Table.from_pylist(rows[:1]).schema.set(3, pa.field("start", pa.float64()))
    assert copies(pa.Table.from_pylist(rows, schema.set(2, pa.field("recording", pa.string())))) == expected


def test_hits_of_one_sound_are_one() -> None:
    same = Copies({("b", 1): ("a", 1), ("b", 2): ("a", 1), ("a", 2): ("a", 1)})
    hits = [("b", 1, 1.02), ("a", 2, 1.0), ("a", 1, 1.0), ("c", 1, 1.0), ("a", 1, 1.3), ("b", 1, 1.31)]
    rows = [
        {"doc_id": name, "channel": channel, "start": start, "end": start + 0.5, "score": -k}
        for k, (name, channel, start) in enumerate(hits)
    ]
    joined = [[(row["doc_id"], row["channel"]) for row in hit] for hit in same.joined(rows)]
    assert joined == [[("a", 1), ("a", 2), ("b", 1)], [("c", 1)], [("a", 1), ("b", 1)]]
    assert same.also(("a", 1)) == ["b"]
    assert same.most == 4


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(1, 25)), max_size=40))
def test_a_hit_takes_the_first_of_its_time(places: list[tuple[str, int, int]]) -> None:
    same = Copies({("b", 1): ("a", 1)})
    rows = [
        {"doc_id": name, "channel": 1, "start": start / 8, "end": (start + length) / 8, "score": -k}
        for k, (name, start, length) in enumerate(places)
    ]
    hits: list[list[dict[str, Any]]] = []
    for row in rows:
        alike = (hit for hit in hits if same.first((hit[0]["doc_id"], 1)) == same.first((row["doc_id"], 1)))
        first = next((hit for hit in alike if _is_same(hit, row)), None)
        hits.append([row]) if first is None else first.append(row)
    assert same.joined(rows) == [sorted(hit, key=lambda row: row["doc_id"]) for hit in hits]
