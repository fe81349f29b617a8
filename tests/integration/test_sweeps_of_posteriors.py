"""Sweeps of posteriors of lattices, over several systems: points are runs, and S(w) is of all candidates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsdist
from swsdist.chains.lattices.options import LatticesOptions
from swsdist.chains.sweep.planning import plan_sweep
from swsdist.chains.sweep.reading import read_sweep
from swsdist.core.codes import families
from swsdist.core.codes import fuse as sweep_codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import load_plans
from tests.support.coded import raises

FEW = ["atwv", "atwv_pmiss", "atwv_pfa"]
WORDS = ("one", "two", "three", "four")
STEPS = 12


def write_lattices(folder: Path, seed: int, documents: int = 3) -> list[tuple[str, str, float, float]]:
    """Lattices whose words overlap: from each node to the next, and to the one after it. Returns some occurrences."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    occurrences = []
    for k in range(documents):
        nodes = [f"I={n} t={n / 4:.2f}" for n in range(STEPS + 1)]
        links = []
        for n in range(STEPS):
            for ahead in (1, 2):
                if n + ahead <= STEPS:
                    chosen = rng.choice(len(WORDS), size=2, replace=False)
                    links += [(n, n + ahead, WORDS[word], -rng.exponential(2.0)) for word in chosen]
            occurrences.append((WORDS[rng.integers(len(WORDS))], f"d{k}", n / 4, (n + 1) / 4))
        lines = [f"J={j} S={a} E={b} W={word} a={score:.4f}" for j, (a, b, word, score) in enumerate(links)]
        head = ["VERSION=1.0", f"UTTERANCE=d{k}", f"N={len(nodes)} L={len(links)}"]
        (folder / f"d{k}.slf").write_text("\n".join([*head, *nodes, *lines, ""]))
    return occurrences


@pytest.fixture
def systems(tmp_path: Path) -> list[dict[str, Any]]:
    """Configs of two systems on the same audio."""
    occurrences = write_lattices(tmp_path / "first", 1)
    write_lattices(tmp_path / "second", 2)
    rows = [f"{word},{doc},{start},{end}" for word, doc, start, end in occurrences]
    (tmp_path / "refs.csv").write_text("\n".join(["query_id,doc_id,start,end", *rows, ""]))
    (tmp_path / "terms.csv").write_text("\n".join(["query_id,term", *(f"{word},{word}" for word in WORDS), ""]))
    (tmp_path / "docs.csv").write_text("doc_id,path,duration\n" + "".join(f"d{k},d{k}.wav,100\n" for k in range(3)))
    corpus = {"documents": "docs.csv", "queries": "terms.csv", "references": "refs.csv"}
    return [
        {
            "chain": "lattices",
            "system": name,
            "corpus": corpus,
            "options": {"lattices": {"path": name}},
            "search": {"method": "lattice"},
            "calibrate": {"steps": ["kst"]},
            "reduce": {"nbest": {"least": 8, "per_second": 0}},
            "score": {"beta": 100},
            "executor": {"kind": "serial"},
            "report": {"clips": 0, "exports": []},
        }
        for name in ("first", "second")
    ]


def write(folder: Path, name: str, **values: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"run": "run", "measures": FEW, **values}))
    return path


GRID = {"calibrate.steps": [["kst"], ["sto"], ["power", "kst"]], "calibrate.alpha": [0.1, 1.5]}


@pytest.mark.slow
def test_points_are_runs(tmp_path: Path, systems: list[dict[str, Any]]) -> None:
    done = swsdist.sweep(write(tmp_path, "sweep", config=systems[0], points={"grid": GRID}, oracle_kst=True))
    assert not done.failed
    rows = done.table.to_pylist()
    assert len({row["atwv"] for row in rows}) > 3
    for row in rows:
        if row["oracle"]:
            continue
        config = tmp_path / "config.yaml"
        steps, alpha = row["calibrate.steps"].strip("[]").split(", "), row["calibrate.alpha"]
        config.write_text(json.dumps({**systems[0], "calibrate": {"steps": steps, "alpha": alpha}, "run": "alone"}))
        measured = swsdist.run(config).measures()
        assert {name: row[name] for name in FEW} == {name: measured[name] for name in FEW}
    plans = load_plans(Folder(str(tmp_path / "run")))
    assert len(plans) == 4  # kst and sto share a search and what is scored; a power needs another alignment


@pytest.mark.slow
def test_the_sums_are_before_duplicates_are_removed(tmp_path: Path, systems: list[dict[str, Any]]) -> None:
    """S(w) is of all candidates, and more than that of the list: its overlaps are merged, and it has 8 a query."""
    grid = {**GRID, "calibrate.steps": [["kst"], ["sto"]]}
    done = swsdist.sweep(write(tmp_path, "sweep", config=systems[0], points={"grid": grid}, report="kst"))
    (studied,) = json.loads((Path(done.folder) / "study/study.json").read_text())["systems"]
    assert studied["logistic"] == "none"
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({**systems[0], "calibrate": {"steps": []}, "run": "alone"}))
    chain_run = swsdist.run(config).outcome.chain_run
    candidates = [row for table in chain_run.read("candidates") for row in table.to_pylist()]
    listed = [row for table in chain_run.read("detections") for row in table.to_pylist()]
    for query, swept in zip(studied["terms"]["query_id"], studied["terms"]["posterior_sum"], strict=True):
        every = [-row["cost"] / row["scale"] for row in candidates if row["query_id"] == query]
        kept = [row["score"] for row in listed if row["query_id"] == query]
        assert len(kept) == 8 < len(every)
        assert swept == pytest.approx(sum(every), rel=1e-12)
        assert swept > sum(kept) + 0.1


@pytest.mark.slow
def test_points_of_several_systems_are_one_study(tmp_path: Path, systems: list[dict[str, Any]]) -> None:
    """Chains may differ; a system of another corpus is ranked apart, and has another task in the study."""
    first, second = systems
    other = {**second, "system": "elsewhere", "corpus": {**first["corpus"], "documents": "others.csv"}}
    (tmp_path / "others.csv").write_text((tmp_path / "docs.csv").read_text())
    (tmp_path / "first.yaml").write_text(json.dumps(first))
    points = {
        "grid": [
            {"config": ["first.yaml", second, other], "calibrate.steps": [["kst"], ["sto"]], "calibrate.alpha": [1, 2]},
            {
                "config": ["first.yaml"],
                "reduce.overlap": [0.1],
                "calibrate.steps": [["sto"]],
                "calibrate.alpha": [1, 2],
            },
        ]
    }
    path = write(tmp_path, "several", points=points, oracle_kst=True, report="kst")
    done = swsdist.sweep(path)
    assert not done.failed
    study = json.loads((Path(done.folder) / "study/study.json").read_text())
    named = [(system["name"], system["task"]) for system in study["systems"]]
    assert named == [
        ("first", "docs.csv"),
        ("second", "docs.csv"),
        ("elsewhere", "others.csv"),
        ("first, reduce.overlap: 0.1", "docs.csv"),
    ]
    rows = done.table.to_pylist()
    assert len(rows) == 14 + 4
    assert len({row["scored_by"] for row in rows}) == 2
    assert study["systems"][0]["atwv_by_alpha"]["kst"] != study["systems"][1]["atwv_by_alpha"]["kst"]
    more = swsdist.sweep(write(tmp_path, "more", config=first, points={"list": [{"calibrate.alpha": 2}]}))
    assert more.tasks_done < 3, "of the same search"
    assert more.table["atwv"][0].as_py() == study["systems"][0]["atwv_by_alpha"]["kst"][1]


@pytest.mark.parametrize(
    ("values", "code", "at"),
    [
        ({"config": "a.yaml", "points": {"list": [{"config": "b.yaml"}]}}, families.CONFLICTING_OPTIONS, "point 1"),
        ({"points": {"list": [{"config": "b.yaml"}, {}]}}, sweep_codes.CONFIG_OR_LISTS, "point 2"),
        ({"points": {"list": [{"config": 3}]}}, families.INVALID_VALUE, "point 1"),
        ({"points": {"list": [{"config": "b.yaml"}]}, "run": None}, sweep_codes.NO_RESULT_FOLDER, "sweep.yaml"),
    ],
)
def test_configs_of_points_are_checked(tmp_path: Path, values: dict[str, Any], code: Any, at: str) -> None:
    path = write(tmp_path, "sweep", **values)
    with raises(code, where=at):
        swsdist.sweep(path)


def test_points_with_other_lattices_have_other_stores(tmp_path: Path, systems: list[dict[str, Any]]) -> None:
    """Of frames there is one store for all scales, of lattices one for each; terms of phone lattices are phones."""
    (tmp_path / "dictionary.txt").write_text("one w ah n\n")
    options = {"source": "frames", "terms": {"dictionary": "dictionary.txt"}}
    spoken = {**systems[0], "chain": "lattices", "features": {"name": "mfcc"}, "options": options}
    grid = {
        "config": [spoken, {**spoken, "system": "other", "options": {**options, "decoding": {"least": 0.1}}}],
        "options.decoding.scale": [0.3, 0.5],
        "calibrate.steps": [["kst"], ["sto"]],
    }
    path = write(tmp_path, "sweep", points={"grid": grid})
    plans = plan_sweep(read_sweep(path), run=str(tmp_path / "run"))
    configs = [group.config for group in plans.groups.values()]
    assert len(configs) == 4
    assert len({config.store for config in configs}) == 1
    assert len({config.options["store"] for config in configs}) == 4
    assert LatticesOptions.model_validate(configs[0].options).written.units == "phones"
    own = {**spoken, "options": {**options, "store": "lattices"}}
    (point,) = plan_sweep(read_sweep(write(tmp_path, "own", config=own, points={"list": [{}]}))).points
    assert point.config.options["store"] == str(tmp_path / "lattices")
