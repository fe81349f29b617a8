"""Versions of the first stages of the chain lattices are raised when their bytes change; see `test_stage_digests`.

Words of the input are certain or of a probability that is a power of two, in transcripts and lattices: what is made of
them is the same on every machine.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from swsdist.config import config_from_dict
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests
from tests.support.stage_versions import demand_golden

#: Of each stage: its version, and the digest of what it makes of the input below.
GOLDEN: dict[str, tuple[int, str]] = {
    "index": (4, "a12499324a8ca8ad78bee57b8995ae8345914476b047798058b5921ea4caef1d"),
    "queries": (1, "4baaf08eca27a90f888164ff895078e502c53f3386d1d9fbdaaade5db3977857"),
    "search": (2, "160ef763d8fa045ab51c20da83c5cc69c550f285587a772807c2e5a74fdfc9e9"),
}

_WORDS = ["the", "red", "house", "by", "the", "river", "the", "red", "river"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
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


def made(outcome: Outcome, name: str) -> str:
    chain_run = outcome.chain_run
    if name == "queries":
        rows = [row for table in chain_run.read("groups") for row in table.to_pylist()]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
    return digests(chain_run)[{"index": "documents", "search": "candidates"}[name]]


@pytest.mark.parametrize("name", list(GOLDEN))
def test_bytes_change_with_versions_only(outcome: Outcome, name: str) -> None:
    demand_golden(outcome, name, made(outcome, name), GOLDEN)


def test_the_input_is_worth_it(outcome: Outcome) -> None:
    rows = [row for table in outcome.chain_run.read("candidates") for row in table.to_pylist()]
    assert {row["query_id"] for row in rows} == {"a", "b", "c"}
    assert len({row["cost"] for row in rows}) == 2
