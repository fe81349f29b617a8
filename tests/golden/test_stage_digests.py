"""A stage's version is raised when its bytes change: held by constants, a version and a digest a stage, of three chains.

Inputs are made here of integers alone (a linear congruential generator, 16-bit sound, an extractor that only reshapes, words
that are certain or of a probability that is a power of two), so that nothing in them depends on a CPU, a library's random
numbers or a logarithm. What follows are exact integers and correctly rounded operations, so the constants are the same
everywhere. Of `index` only the structure is held: features in general differ in their last bits between types of CPU.

When a test fails and you meant to change the numbers, raise `version` of the stage, so that nobody's old results are taken for
new ones, and put what the message prints here; else you have found a bug before it was one.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile

from swsdist.chains.discover import chain as score_discovery
from swsdist.config import config_from_dict
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests
from swsdist.registry.registries import FEATURES
from swsdist.stages.queries import examples_in
from swsdist.store import parquet
from swsdist.store.reading import Store
from swsdist.testing.scenes import numbers
from tests.support.reshape import ENTRY, RATE, WIDTH, sound

Golden = dict[str, tuple[int, str]]


def demand(outcome: Outcome, name: str, digest: str, golden: Golden) -> None:
    """Compare a step's version, and the digest of what it made, with the golden ones."""
    (stage,) = (step.stage for step in outcome.chain_run.steps if step.name == name)
    ours = stage.version, digest
    assert ours == golden[name], (
        f'if you meant it, raise the version of the stage, and put this here: "{name}": {ours},'
    )


def sha256(rows: Iterable[str]) -> str:
    """Whatever their order."""
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


@pytest.fixture(scope="module", autouse=True)
def reshape() -> Iterator[None]:
    FEATURES.add("reshape", ENTRY)
    yield
    FEATURES.remove("reshape")


def spoken(word: int, seed: int) -> np.ndarray:
    """A word is a pattern of 20 frames, said with a little noise."""
    return sound(1000 + word, 20, 8000) + sound(seed, 20, 3000)


def documents(root: Path, count: int, digits: int) -> Iterator[tuple[str, list[int]]]:
    """Documents of eight words out of sixteen, and a table of them."""
    draw, table = numbers(1), ["doc_id,path"]
    for d in range(count):
        name, words = f"d{d:0{digits}d}", [next(draw) % 16 for _ in range(8)]
        parts = [spoken(word, 5000 + 10 * d + k) for k, word in enumerate(words)]
        soundfile.write(root / f"{name}.wav", np.concatenate(parts), RATE, subtype="PCM_16")
        table.append(f"{name},{name}.wav")
        yield name, words
    (root / "docs.csv").write_text("\n".join([*table, ""]))


#: Of each stage, in their order: its version, and the digest of what it makes of the input below.
SEARCH: Golden = {
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


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Outcome:
    """Twelve documents, and six of the words as queries, two examples each."""
    root = tmp_path_factory.mktemp("golden")
    refs, queries = ["query_id,doc_id,start,end"], ["query_id,example,path"]
    for name, words in documents(root, 12, 2):
        refs += [f"q{w},{name},{k * 0.2:.1f},{(k + 1) * 0.2:.1f}" for k, w in enumerate(words) if w < 6]
    for word in range(6):
        for k in (1, 2):
            soundfile.write(root / f"q{word}_{k}.wav", spoken(word, 9000 + 10 * word + k), RATE, subtype="PCM_16")
            queries.append(f"q{word},{k},q{word}_{k}.wav")
    for name, rows in (("refs", refs), ("queries", queries)):
        (root / f"{name}.csv").write_text("\n".join([*rows, ""]))
    values = {
        "run": str(root / "run"),
        "corpus": {"documents": "docs.csv", "queries": "queries.csv", "examples": "all", "references": "refs.csv"},
        "queries": {"trim": "none"},
        "features": {"name": "reshape"},
        "index": {"shards": 3},
        "search": {"normalise": "none", "candidate_window": 5},
        "report": {"exports": ["csv", "labels"]},
        "executor": {"kind": "serial"},
    }
    return run_stages(config_from_dict(values, root), StepSelection(), Progress())


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
    return sha256(found)


def _rows(table: pa.Table) -> Iterator[str]:
    for row in table.to_pylist():
        yield json.dumps(row, default=lambda value: value.hex() if isinstance(value, bytes) else str(value))


def test_bytes_of_search_change_with_versions_only(outcome: Outcome) -> None:
    steps = [step for step in outcome.chain_run.chain.steps if step.name != "index"]
    assert [step.name for step in steps] == list(SEARCH)
    found = {step.name: (step.stage.version, digest(outcome, step.name)) for step in steps}
    changed = [name for name in found if found[name] != SEARCH[name]]
    # What comes after a stage that changed may only have been given other input.
    new = "\n".join(f'    "{name}": ({version}, "{value}"),' for name, (version, value) in found.items())
    assert not changed, (
        f"step {changed[0]} changed first: if you meant it, raise its version, and put this here:\n{new}"
    )


def test_index_has_its_structure(outcome: Outcome) -> None:
    store = Store(outcome.chain_run.chain.inputs.store.folder)
    rows = store.documents().to_pylist()
    assert [row["doc_id"] for row in rows] == [f"d{k:02d}" for k in range(12)]
    assert {(row["frames"], row["duration"], row["rows"]) for row in rows} == {(160, 1.6, 1)}
    assert [shard.documents for shard in store.manifest.shards] == [4, 4, 4]
    # This extractor is exact, so here the frames are too.
    samples, _ = soundfile.read(rows[5]["path"], dtype="int16")
    assert store.features("d05").tobytes() == samples.reshape(-1, WIDTH).astype("<f4").tobytes()


def test_the_input_of_search_is_worth_it(outcome: Outcome) -> None:
    """Hits, misses and false alarms are among what is held, and decisions of both kinds."""
    measures = outcome.chain_run.receipts("score")[0].result["measures"]
    assert 0.3 < measures["mtwv"] < 1
    assert 0 < measures["mtwv_pmiss"] < 1
    decisions = set()
    for table in outcome.chain_run.read("trials"):
        decisions |= set(table["decision"].to_pylist())
    assert {True, False} <= decisions


#: By the way to pairs, of each stage: its version, and the digest of what it makes of the input below.
DISCOVER: dict[str, Golden] = {
    "segments": {
        "cut-segments": (2, "7fbd9b16b9a96bc37a007917376e972a141b9c051ec63717ec75470463c518b6"),
        "propose-pairs": (3, "1c895602b6f910e01a0fe5ed7a9d2cbf39ba1aad24c13eff568478f692b8c557"),
        "select-pairs": (2, "98fc7601e6c75dfb5f9ed24e774be6a4c95cc54e90eee786aad9764f5e9b70f9"),
        "align-pairs": (3, "1bc07e35b63a9476f5244a3c270fba1cbe3b9a3240685b78b09bedce9c39765f"),
        "find-boundaries": (1, "223acbc3bdaec7c432080376103852ec316f38bc607db2f101d42c825ef63444"),
        "group-matches": (3, "17519232fc3a8951a0cca202e8c92a6588189cac4f44ce0003e96ee7c3c47890"),
    },
    "diagonals": {
        "propose-pairs": (3, "51df87f2475ed751e1588dba9fb6cbb4ef78d304b5f283c1b0e5056cbb9671f0"),
        "select-pairs": (2, "313a8bfc65af5d8135305020625bc57eb85ad03d7a47e41c8879841fa5bd80a7"),
    },
    "exact": {
        "search-segments": (2, "68969a2fb371bb8de80dcaa1ca359790cacef626fbe99461313c60b163a991ed"),
        "select-pairs": (2, "600993e71979e5a7f3ada182ed4b38a2a569227e965119618704390927e53e4d"),
    },
}

NEIGHBOURS = {
    "segments": {"orders": 3, "beam": 10},
    "diagonals": {"by": "diagonals", "orders": 3, "beam": 10, "window": 3},
    "exact": {"by": "exact", "every": 2},
}
OPTIONS = {
    "segments": {"frames": 16, "hop": 4, "parts": 8, "bits": 128},
    "matching": {"band": 4, "reach": 10, "frames": 14},
    "clustering": {"score": 1.0},
}


@pytest.fixture(scope="module")
def discovered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """By the way to pairs: what is found in eight documents; the first column of the frames stands for loudness."""
    root = tmp_path_factory.mktemp("golden")
    list(documents(root, 8, 1))
    values: dict[str, Any] = {
        "chain": "discover",
        "corpus": {"documents": "docs.csv"},
        "features": {"name": "reshape"},
        "index": {"shards": 3, "store": "store"},
        "search": {"normalise": "none"},
        "executor": {"kind": "serial"},
    }

    @cache
    def found(by: str) -> Outcome:
        run = {"run": by, "options": {**OPTIONS, "neighbours": NEIGHBOURS[by]}}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(score_discovery, "_loud_track", lambda store: (store.manifest.tracks[0].name, 500.0))
            result = run_stages(config_from_dict({**values, **run}, root), StepSelection(), Progress())
        assert not result.failures
        return result

    return found


def made(outcome: Outcome, name: str) -> str:
    """SHA-256 of the rows of a stage's tables."""
    (stage,) = (step.stage for step in outcome.chain_run.steps if step.name == name)
    tables = ((table, part) for table in stage.tables for part in outcome.chain_run.read(table))
    return sha256(f"{table} {json.dumps(row, default=bytes.hex)}" for table, part in tables for row in part.to_pylist())


@pytest.mark.parametrize("by", DISCOVER)
def test_bytes_of_discovery_change_with_versions_only(discovered: Callable[[str], Outcome], by: str) -> None:
    for name in DISCOVER[by]:
        demand(discovered(by), name, made(discovered(by), name), DISCOVER[by])
    run = discovered(by).chain_run  # the input is worth it
    members, parse = ([row for part in run.read(name) for row in part.to_pylist()] for name in ("classes", "parse"))
    assert len({row["class"] for row in members}) > 5
    assert sum(part.num_rows for part in run.read("boundaries")) > 50
    assert {row["class"] is None for row in parse} == {True, False}


#: Of each stage: its version, and the digest of what it makes of the input below.
TEXT: Golden = {
    "index": (4, "a12499324a8ca8ad78bee57b8995ae8345914476b047798058b5921ea4caef1d"),
    "queries": (1, "4baaf08eca27a90f888164ff895078e502c53f3386d1d9fbdaaade5db3977857"),
    "search": (2, "160ef763d8fa045ab51c20da83c5cc69c550f285587a772807c2e5a74fdfc9e9"),
}

_WORDS = ["the", "red", "house", "by", "the", "river", "the", "red", "river"]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    root = tmp_path_factory.mktemp("golden")
    (root / "talks").mkdir()
    for k in range(3):
        words = [
            {"word": word, "start": 0.5 * n, "end": 0.5 * n + 0.25, "probability": (1.0, 0.5)[n % 4 == k]}
            for n, word in enumerate(_WORDS[k:])
        ]
        (root / "talks" / f"t{k}.json").write_text(json.dumps({"segments": [{"text": "", "words": words}]}))
    (root / "queries.csv").write_text("query_id,text\na,red house\nb,(the|by) r*\nc,river\n")
    values = {
        "run": "run",
        "chain": "lattices",
        "corpus": {"documents": "talks", "queries": "queries.csv"},
        "search": {"method": "lattice"},
        "options": {"terms": {"patterns": True}},
        "calibrate": {"steps": []},
        "executor": {"kind": "serial"},
    }
    result = run_stages(config_from_dict(values, root), StepSelection(until="search"), Progress())
    assert not result.failures
    return result


def made_of_text(outcome: Outcome, name: str) -> str:
    chain_run = outcome.chain_run
    if name == "queries":
        rows = [row for table in chain_run.read("groups") for row in table.to_pylist()]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
    return digests(chain_run)[{"index": "documents", "search": "candidates"}[name]]


def test_bytes_of_lattices_change_with_versions_only(read: Outcome) -> None:
    for name in TEXT:
        demand(read, name, made_of_text(read, name), TEXT)
    rows = [row for table in read.chain_run.read("candidates") for row in table.to_pylist()]
    assert {row["query_id"] for row in rows} == {"a", "b", "c"}
    assert len({row["cost"] for row in rows}) == 2
