"""A stage's version is raised when its bytes change: held by constants, a version and a digest a stage.

The input is made here of integers alone (a linear congruential generator, 16-bit sound, an extractor that only reshapes), so
that nothing in it depends on a CPU, a library's random numbers or a logarithm. Search works on exact integers, and what
follows on a few correctly rounded operations, so the constants are the same everywhere.

Of `index` only the structure is held: features in general differ in their last bits between types of CPU.

When this test fails
- and you meant to change the numbers: raise `version` of the stage (swsdist/chains/search/), so that nobody's old results are
  taken for new ones, and put what the message prints into GOLDEN;
- and you did not: you have found a bug before it was one.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import soundfile
from pydantic import BaseModel, ConfigDict

from swsdist.chains.search.align import aligned_name
from swsdist.chains.search.decide import scored_name, trials_name
from swsdist.chains.search.fit import calibration_name
from swsdist.chains.search.normalise import normalised_name
from swsdist.chains.search.queries import examples_name
from swsdist.chains.search.reduce import detections_name, statistics_name
from swsdist.chains.search.score import measures_name, terms_name
from swsdist.chains.search.search import candidates_name
from swsdist.chains.search.stages import STAGES
from swsdist.config import config_from_dict
from swsdist.pipeline.driver import Choice, Outcome, Progress, run_stages
from swsdist.registries import FEATURES
from swsdist.registry import Entry
from swsdist.store import parquet
from swsdist.store.reading import Store

#: Of each stage, in their order: its version, and the digest of what it makes of the input below.
GOLDEN: dict[str, tuple[int, str]] = {
    "queries": (1, "211ba2958d79f3c00c2c515ed58b613900fbd13f220ce1ddc039ae3394c04de7"),
    "search": (1, "20b39d31346018d5ab8163f69ad8474e7bca932d323dd9f055896933ad03aef9"),
    "reduce": (1, "8433a537d15d70ecedb1cae8140fda426b391f63d59a310674a49c98a8b1459c"),
    "normalise": (1, "eae0edabed0d6a3f06f9a73e84889f264d0207ad6b7665b8fc2a6ff4edfc0e3f"),
    "align": (1, "5dbfd693cedf5eb8a7cbab2d8af6ab5d47844ef6a274eea38dc87c4689b9ded9"),
    "fit": (1, "12c6e2382231069a33886ac5909453147026613a7a68fb3a57c46ea3cf5ef1ef"),
    "decide": (1, "6c656b39cbcedcfbc9d8b436ca5c0535af9e2eca7400815579686a0baa1ee373"),
    "score": (1, "53099013a4d76aa615877d3732d44d0851b7a2bf0f69f7bd48253011aa9d1ac8"),
    "export": (1, "63f749e513c6138612f74e8c54c620a462808e73a77c89e4638c22871d8d0f60"),
}

#: Where a stage's tables lie, by the fingerprint of a task.
TABLES: dict[str, tuple[Callable[[str], str], ...]] = {
    "queries": (examples_name,),
    "search": (candidates_name,),
    "reduce": (detections_name, statistics_name),
    "normalise": (normalised_name,),
    "align": (aligned_name,),
    "fit": (calibration_name,),
    "decide": (scored_name, trials_name),
    "score": (terms_name, measures_name),
}

WORD_FRAMES, WIDTH, RATE = 20, 8, 800


class Reshape(BaseModel):
    """Frames are eight samples each, as the integers that they were: 10 ms at 800 Hz."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str] = "reshape"
    version: ClassVar[int] = 1
    sample_rate: ClassVar[int] = RATE
    frame_length: ClassVar[int] = WIDTH
    hop: ClassVar[int] = WIDTH
    context: ClassVar[int] = 0
    dimension: ClassVar[int] = WIDTH

    def extract(self, samples: np.ndarray) -> np.ndarray:
        whole = len(samples) // WIDTH * WIDTH
        return samples[:whole].reshape(-1, WIDTH) * np.float32(32768)

    def describe(self) -> dict[str, Any]:
        return {}


def numbers(seed: int) -> Iterator[int]:
    """Knuth's MMIX generator, its upper 15 bits."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 49


def sound(seed: int, frames: int, loudness: int) -> np.ndarray:
    drawn = np.fromiter(islice(numbers(seed), frames * WIDTH), np.int64)
    return (drawn % (2 * loudness + 1) - loudness).astype(np.int16)


def spoken(word: int, seed: int) -> np.ndarray:
    """A word is a pattern of 20 frames, said with a little noise."""
    return sound(1000 + word, WORD_FRAMES, 8000) + sound(seed, WORD_FRAMES, 3000)


def make_corpus(root: Path) -> None:
    """Twelve documents of eight words out of sixteen, and six of the words as queries, two examples each."""
    draw = numbers(1)
    docs, refs, queries = (
        [["doc_id", "path"]],
        [["query_id", "doc_id", "start", "end"]],
        [["query_id", "example", "path"]],
    )
    for d in range(12):
        words = [next(draw) % 16 for _ in range(8)]
        parts = [spoken(word, 5000 + 10 * d + k) for k, word in enumerate(words)]
        soundfile.write(root / f"d{d:02d}.wav", np.concatenate(parts), RATE, subtype="PCM_16")
        docs.append([f"d{d:02d}", f"d{d:02d}.wav"])
        for k, word in enumerate(words):
            if word < 6:
                refs.append([f"q{word}", f"d{d:02d}", f"{k * 0.2:.1f}", f"{(k + 1) * 0.2:.1f}"])
    for word in range(6):
        for k in (1, 2):
            soundfile.write(root / f"q{word}_{k}.wav", spoken(word, 9000 + 10 * word + k), RATE, subtype="PCM_16")
            queries.append([f"q{word}", str(k), f"q{word}_{k}.wav"])
    for name, rows in (("docs", docs), ("refs", refs), ("queries", queries)):
        with (root / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Iterator[Outcome]:
    root = tmp_path_factory.mktemp("golden")
    make_corpus(root)
    FEATURES.add("reshape", Entry(f"{__name__}:Reshape", Reshape.version))
    try:
        values = {
            "run": str(root / "run"),
            "corpus": {"documents": str(root / "docs.csv"), "queries": str(root / "queries.csv"), "examples": "all"}
            | {"references": str(root / "refs.csv")},
            "features": {"name": "reshape"},
            "index": {"shards": 3},
            "search": {"normalise": "none", "candidate_window": 5},
            "report": {"exports": ["csv", "labels"]},
            "executor": {"kind": "serial"},
        }
        yield run_stages(config_from_dict(values, root), Choice(), Progress())
    finally:
        FEATURES.remove("reshape")


def digest(outcome: Outcome, stage: str) -> str:
    """SHA-256 of the rows of all tables of a stage, and of its other files as they are; whatever the order of either."""
    found = []
    run = outcome.state.run
    for receipt in outcome.state.ended[stage].receipts:
        if stage == "export":
            found += [run.read_bytes(output.name).decode() for output in receipt.outputs]
        for place, name_of in enumerate(TABLES.get(stage, ())):
            name = name_of(receipt.fingerprint)
            if name.endswith(".json"):
                values = json.loads(run.read_bytes(name))
                values.pop("trained_on", None)  # holds fingerprints, which hold times of files
                found.append(json.dumps(values))
            elif run.exists(name):
                found += [f"{place} {row}" for row in _rows(parquet.read(run, name))]
    assert found
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


def _rows(table: pa.Table) -> Iterator[str]:
    for row in table.to_pylist():
        yield json.dumps(row, default=lambda value: value.hex() if isinstance(value, bytes) else str(value))


def test_bytes_change_with_versions_only(outcome: Outcome) -> None:
    found = {name: (STAGES[name].version, digest(outcome, name)) for name in STAGES if name != "index"}
    changed = [name for name in found if found[name] != GOLDEN.get(name)]
    if not changed:
        return
    # What comes after a stage that changed may only have been given other input.
    first = changed[0]
    new = "\n".join(f'    "{name}": ({version}, "{value}"),' for name, (version, value) in found.items())
    if found[first][0] == GOLDEN.get(first, (0, ""))[0]:
        pytest.fail(
            f"the bytes of stage {first} changed and its version did not. If you meant it, raise `version` in "
            f"swsdist/chains/search/{first}.py and put this here:\n{new}"
        )
    pytest.fail(f"stage {first} has a new version: put this here:\n{new}")


def test_every_stage_is_held() -> None:
    assert ["index", *GOLDEN] == list(STAGES)


def test_index_has_its_structure(outcome: Outcome) -> None:
    store = Store(outcome.state.store)
    rows = store.documents().to_pylist()
    assert [row["doc_id"] for row in rows] == [f"d{k:02d}" for k in range(12)]
    assert {(row["frames"], row["duration"], row["rows"]) for row in rows} == {(160, 1.6, 1)}
    assert [shard.documents for shard in store.manifest.shards] == [4, 4, 4]
    # This extractor is exact, so here the frames are too.
    samples, _ = soundfile.read(rows[5]["path"], dtype="int16")
    assert store.features("d05").tobytes() == samples.reshape(-1, WIDTH).astype("<f4").tobytes()


def test_the_input_is_worth_it(outcome: Outcome) -> None:
    """Hits, misses and false alarms are among what is held, and decisions of both kinds."""
    measures = outcome.state.ended["score"].receipts[0].summary["measures"]
    assert 0.3 < measures["mtwv"] < 1
    assert 0 < measures["mtwv_pmiss"] < 1
    decisions = set()
    for receipt in outcome.state.ended["decide"].receipts:
        decisions |= set(parquet.read(outcome.state.run, trials_name(receipt.fingerprint))["decision"].to_pylist())
    assert {True, False} <= decisions
