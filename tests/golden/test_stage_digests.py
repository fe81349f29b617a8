"""A stage's version is raised when its bytes change: held by constants, a version and a digest a stage.

The input is made here of integers alone (a linear congruential generator, 16-bit sound, an extractor that only reshapes), so
that nothing in it depends on a CPU, a library's random numbers or a logarithm. Search works on exact integers, and what
follows on a few correctly rounded operations, so the constants are the same everywhere.

Of `index` only the structure is held: features in general differ in their last bits between types of CPU.

When this test fails
- and you meant to change the numbers: raise `version` of the stage (swsdist/stages/), so that nobody's old results are
  taken for new ones, and put what the message prints into GOLDEN;
- and you did not: you have found a bug before it was one.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import FEATURES
from swsdist.stages.queries import examples_in
from swsdist.store import parquet
from swsdist.store.reading import Store
from swsdist.testing.scenes import numbers
from tests.support.reshape import ENTRY, RATE, WIDTH, sound

#: Of each stage, in their order: its version, and the digest of what it makes of the input below.
GOLDEN: dict[str, tuple[int, str]] = {
    "queries": (6, "7703e78d1c42161bcb4488c992d9ffc59c12f3c98d0e856b886de181b24731ec"),
    "search": (2, "1b32c3bd837d49286bc0d5216779722dec03227d32fd015c003a6395b209c65e"),
    "reduce": (2, "40d7a7427bf680cbdc5df8ade8988e6fc86eb913c3f69e8789528201cca0a208"),
    "normalise": (1, "c0cd50a6db754cdc0593b44c0531140a967625d88187a91257cd071067add76c"),
    "align.train": (1, "c91a46b7b9868666b625b72597f394d24c34511c81d77774352823cd18ce5add"),
    "fit": (4, "f65f8c2e45d21533d6397aa0ec4886f4d5de570201c4cd2397ed8828b3e61591"),
    "decide": (1, "5c3305460814e5a1d13789dbc51debe7e0380be24180b9cfd8c0958a660f8ef1"),
    "align.final": (1, "118d6427eff77ab172579822485fde163f3ebda8125307987a32bb5cd3f9f626"),
    "measure": (1, "e212e6272b6b9ab6b7425d75f76795aecdde5d16425c66385f4db12441d785d2"),
    "score": (2, "1ba21393930d1f50038eb6ade98983174e46c4764f768d5de785aac9a40113b4"),
    "summarise": (1, "72c6d94a5054f36f522ba5ab6f88658ebb2ebdd5d7b362fadaabdf537fd153af"),
    "format": (1, "b7a53a996ab6197c7494d6ab58af6ab96676484063a5fc3765ed9f7ff1449c2f"),
    "export": (1, "963f93cb398c489846b9a75026898305ebfee5a4cdfd28a94f8c462423f26359"),
}

WORD_FRAMES = 20


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
    FEATURES.add("reshape", ENTRY)
    try:
        values = {
            "run": str(root / "run"),
            "corpus": {"documents": str(root / "docs.csv"), "queries": str(root / "queries.csv"), "examples": "all"}
            | {"references": str(root / "refs.csv")},
            "queries": {"trim": "none"},
            "features": {"name": "reshape"},
            "index": {"shards": 3},
            "search": {"normalise": "none", "candidate_window": 5},
            "report": {"exports": ["csv", "labels"]},
            "executor": {"kind": "serial"},
        }
        yield run_stages(config_from_dict(values, root), StepSelection(), Progress())
    finally:
        FEATURES.remove("reshape")


def digest(outcome: Outcome, name: str) -> str:
    """SHA-256 of the rows of all tables of a step, and of its other files as they are; whatever the order of either."""
    chain_run = outcome.chain_run
    # The files of the store of queries name paths and times: its examples are held, as methods take them.
    found = [f"examples {row}" for row in _rows(examples_in(chain_run))] if name == "queries" else []
    for receipt in chain_run.receipts(name) if name != "queries" else ():
        for part in receipt.outputs:
            if part.name.endswith(".parquet"):
                found += [f"{part.table} {row}" for row in _rows(parquet.read(chain_run.run, part.name))]
                continue
            data = chain_run.run.read_bytes(part.name)
            if part.name.endswith(".zst"):
                data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
            if part.name.endswith(".json"):
                values = json.loads(data)
                values.pop("trained_on", None)  # holds fingerprints, which hold times of files
                data = json.dumps(values).encode()
            found.append(f"{part.table} {data.decode()}")
    assert found
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


def _rows(table: pa.Table) -> Iterator[str]:
    for row in table.to_pylist():
        yield json.dumps(row, default=lambda value: value.hex() if isinstance(value, bytes) else str(value))


def test_bytes_change_with_versions_only(outcome: Outcome) -> None:
    steps = [step for step in outcome.chain_run.chain.steps if step.name != "index"]
    found = {step.name: (step.stage.version, digest(outcome, step.name)) for step in steps}
    changed = [name for name in found if found[name] != GOLDEN.get(name)]
    if not changed:
        return
    # What comes after a stage that changed may only have been given other input.
    first = changed[0]
    new = "\n".join(f'    "{name}": ({version}, "{value}"),' for name, (version, value) in found.items())
    if found[first][0] == GOLDEN.get(first, (0, ""))[0]:
        pytest.fail(
            f"the bytes of step {first} changed and its stage's version did not. If you meant it, raise `version` in "
            f"swsdist/stages/ and put this here:\n{new}"
        )
    pytest.fail(f"step {first} has a new version: put this here:\n{new}")


def test_every_step_is_held(outcome: Outcome) -> None:
    assert ["index", *GOLDEN] == [step.name for step in outcome.chain_run.chain.steps]


def test_index_has_its_structure(outcome: Outcome) -> None:
    store = Store(outcome.chain_run.chain.inputs.store.folder)
    rows = store.documents().to_pylist()
    assert [row["doc_id"] for row in rows] == [f"d{k:02d}" for k in range(12)]
    assert {(row["frames"], row["duration"], row["rows"]) for row in rows} == {(160, 1.6, 1)}
    assert [shard.documents for shard in store.manifest.shards] == [4, 4, 4]
    # This extractor is exact, so here the frames are too.
    samples, _ = soundfile.read(rows[5]["path"], dtype="int16")
    assert store.features("d05").tobytes() == samples.reshape(-1, WIDTH).astype("<f4").tobytes()


def test_the_input_is_worth_it(outcome: Outcome) -> None:
    """Hits, misses and false alarms are among what is held, and decisions of both kinds."""
    measures = outcome.chain_run.receipts("score")[0].result["measures"]
    assert 0.3 < measures["mtwv"] < 1
    assert 0 < measures["mtwv_pmiss"] < 1
    decisions = set()
    for table in outcome.chain_run.read("trials"):
        decisions |= set(table["decision"].to_pylist())
    assert {True, False} <= decisions
