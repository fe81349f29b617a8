"""In every chain that takes recordings, each query that cannot be used is rejected, reported, and counted by the limit."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import swsdist
from swsdist.config import Config, config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.io.notices import FEW
from swsdist.registry.registries import CHAINS
from tests.integration.test_phones_chain import DECODING, FEATURES
from tests.support.coded import raises
from tests.support.english.words import small_corpus as english_corpus
from tests.support.english.words import small_recogniser

#: What may be wrong with a recording.
FAULTS: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(missing_ok=True),
    "empty": lambda path: path.write_bytes(b""),
    "no-samples": lambda path: soundfile.write(path, np.zeros(0), 16000),
    "too-short": lambda path: soundfile.write(path, np.zeros(40), 16000),
}
#: A search in each chain; chains without spoken queries are left out.
SEARCHES: dict[str, dict[str, Any]] = {
    "search": {"chain": "search"},
    **{
        f"frames, {method}": {
            "chain": "lattices",
            "features": FEATURES,
            "options": {"source": "frames", "decoding": DECODING},
            "search": {"method": method},
            "calibrate": {"steps": ["q-norm"]},
        }
        for method in ("lattice", "lattice-edits")
    },
    "recogniser": {"chain": "lattices", "search": {"method": "lattice"}, "calibrate": {"steps": ["kst"]}},
}


@pytest.fixture(
    params=[*(name for name in SEARCHES if name != "recogniser"), pytest.param("recogniser", marks=pytest.mark.slow)]
)
def searching(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Config]:
    """Makes the config of a search of good recordings, six or as many as told, and some bad ones."""
    given = dict(SEARCHES[request.param])
    if request.param == "recogniser":
        folder = english_corpus(tmp_path / "english")
        given["options"] = {"source": "recogniser", "recogniser": {"options": small_recogniser(folder)}}
        tables = {"documents": "documents.csv", "queries": "queries.csv"}
    else:
        folder = request.getfixturevalue("small_corpus")
        tables = {"documents": "docs.csv", "queries": "queries.csv"}

    def make(bad: int, good: int = 6) -> Config:
        with (folder / tables["queries"]).open(newline="") as file:
            there = [folder / row["path"] for row in csv.DictReader(file)]
        rows = [(f"good{k}", there[k % len(there)]) for k in range(good)]
        for k in range(bad):
            path = tmp_path / f"bad{k}.wav"
            list(FAULTS.values())[k % len(FAULTS)](path)
            rows.append((path.stem, path))
        with (tmp_path / f"{bad}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("query_id", "path"), *rows])
        values = {"run": str(tmp_path / str(bad)), "executor": {"kind": "serial"}, "report": {"clips": 0}}
        corpus = {**tables, "queries": str(tmp_path / f"{bad}.csv")}
        return config_from_dict({"corpus": corpus, **values, **given}, folder)

    return make


def test_every_chain_that_takes_recordings_is_here() -> None:
    assert {given["chain"] for given in SEARCHES.values()} == set(CHAINS) - {"fuse", "sweep", "discover"}


@pytest.mark.slow
def test_what_cannot_be_used_is_rejected_reported_and_limited(searching: Callable[..., Config]) -> None:
    config = searching(FEW)
    rejected = swsdist.run(config).outcome.chain_run.rejected().to_pylist()
    names = {f"bad{k}" for k in range(FEW)}
    assert {(row["kind"], row["id"]) for row in rejected} == {("query", name) for name in names}
    report = json.loads((Path(config.run) / "report.json").read_text())
    assert report["counts"]["rejected"] == FEW
    with raises(codes.MANY_REJECTED, count=len(FAULTS), of=6 + len(FAULTS)) as caught:
        swsdist.run(searching(len(FAULTS)))
    assert caught.value.exit_code == 5
    forced = swsdist.run(searching(len(FAULTS)).model_copy(update={"force": True})).outcome.chain_run
    assert len(forced.rejected()) == len(FAULTS)
    (told,) = (line for line in forced.notices() if "[many-rejected]" in line)
    assert told.startswith(f"{len(FAULTS)} of {6 + len(FAULTS)} examples of queries")
    with raises(families.EMPTY_INPUT, examples=1):
        swsdist.run(searching(1, good=0))
