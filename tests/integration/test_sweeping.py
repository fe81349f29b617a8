"""Sweeps: each point is the run that it would be, shared work is done once, and nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.api import SweepResult
from swsdist.calibrate.procedure import fit_models
from swsdist.core.codes import families
from swsdist.core.codes import fuse as sweep_codes
from swsdist.core.codes import score as calibrate_codes
from swsdist.core.errors import ConfigError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import load_plans
from swsdist.testing.conformance.chain import with_identities
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows

KST, STO = ["q-norm", "logistic", "kst"], ["q-norm", "logistic", "sto"]
FEW = ["atwv", "atwv_pmiss", "atwv_pfa"]


def write(scene: Any, name: str = "sweep", **values: Any) -> Path:
    """A sweep's file beside the scene's config."""
    path: Path = scene.folder / f"{name}.yaml"
    given = {"config": str(scene.config), "run": str(scene.folder / name), "set": {"index.shards": 2}, **values}
    path.write_text(json.dumps(given))  # JSON is YAML
    return path


def rows(done: SweepResult) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = done.table.to_pylist()
    return found


def alone(scene: Any, point: dict[str, Any], run: str, *sets: str) -> dict[str, Any]:
    """Measures of a run at a point."""
    keys = [f"{key}={value}" for key, value in keys_of(point).items()]
    found: dict[str, Any] = scene.run("index.shards=2", *sets, *keys, run=run).measures()
    return found


def keys_of(row: dict[str, Any]) -> dict[str, Any]:
    """The keys of a row."""
    return {key: value for key, value in row.items() if "." in key and value is not None}


@pytest.mark.slow
def test_random_points_are_the_runs_that_they_would_be(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fit(*arguments: Any, **options: Any) -> Any:
        asked.append(set(options["query_ids"]))
        return fit_models(*arguments, **options)

    monkeypatch.setattr("swsdist.chains.sweep.chain.fit_models", fit)
    keys = {
        "calibrate.steps": {"choice": [KST, STO]},
        "calibrate.alpha": {"log-uniform": [0.05, 4]},
        "score.beta": {"uniform": [1, 200]},
        "calibrate.fit": {"choice": ["crossfit", "oracle"]},
    }
    path = write(scene, points={"random": {"draws": 20, "seed": 3, "keys": keys}}, measures=FEW)
    done = swsdist.sweep(path)
    queries = {row["query_id"] for row in read_rows(scene.corpus / "queries.csv")}
    assert asked == [queries] * 2  # as a run's, silent ones among them
    points = rows(done)
    assert len(points) == 20
    assert len({row["atwv"] for row in points}) > 3
    kinds = [(row["calibrate.fit"], "kst" in row["calibrate.steps"]) for row in points]
    assert len(set(kinds)) == 4
    for number in {kind: k for k, kind in enumerate(kinds)}.values():
        found = alone(scene, points[number], f"alone-{number}")
        assert {name: points[number][name] for name in FEW} == {name: found[name] for name in FEW}
    # One search and alignment for all of them, and a fit of each kind.
    assert len(load_plans(Folder(str(scene.folder / "sweep")))) == 4
    assert sum(one.stage == "align" for one in scene.all_receipts("sweep")) == 3


@pytest.mark.slow
def test_the_objective_is_the_mean_of_what_is_tested(scene: Any) -> None:
    """Also where the query with the highest score has no threshold that rejects everything, so that OTWV is below 0."""
    poor = {"name": "mfcc", "transforms": [{"name": "columns", "options": {"keep": [3]}}]}
    points = {"list": [{"score.beta": 1, "calibrate.fit": "oracle"}, {"score.beta": 300, "calibrate.fit": "oracle"}]}
    measures = ["atwv", "mtwv", "otwv"]  # OTWV makes each point a run
    for objective in measures:  # all in one folder, where the runs are there after the first
        path = write(scene, points=points, objective=objective, measures=measures, set={"features": poor})
        done = swsdist.sweep(path)
        assert not done.failed
        values = pq.read_table(f"{done.folder}/queries.parquet").to_pandas().groupby("point")["value"].mean()
        found = {row["point"]: row[objective] for row in rows(done)}
        assert values.to_dict() == pytest.approx(found, abs=1e-12)
    assert min(row["otwv"] for row in rows(done)) < 0


@pytest.mark.slow
def test_a_step_at_each_edge_changes_nothing(scene: Any) -> None:
    points = {"grid": {"score.beta": [1, 20], "calibrate.steps": [KST, ["q-norm"]]}}
    plain = rows(swsdist.sweep(write(scene, points=points, measures=FEW)))
    with with_identities("sweep"):
        handed = rows(swsdist.sweep(write(scene, "handed", points=points, measures=FEW)))
    assert [{name: row[name] for name in FEW} for row in handed] == [{name: row[name] for name in FEW} for row in plain]
    plans = load_plans(Folder(str(scene.folder / "handed")))
    assert any(step.startswith("identity-") for plan in plans.values() for step in plan.steps)


@pytest.mark.slow
def test_points_of_the_whole_chain_are_runs_too(scene: Any) -> None:
    features = [{"name": "mfcc"}, {"name": "mfcc", "options": {"deltas": 0}}]
    points = {"grid": {"features": features, "search.distance": ["cosine", "euclidean"]}}
    done = swsdist.sweep(write(scene, points=points, objective="mtwv"))
    assert not done.failed
    assert len(load_plans(Folder(str(scene.folder / "sweep")))) == 4
    found = rows(done)
    for number, text in ((1, "{name: mfcc}"), (4, "{name: mfcc, options: {deltas: 0}}")):
        row = found[number - 1]
        distance = f"search.distance={row['search.distance']}"
        measures = scene.run("index.shards=2", f"features={text}", distance, run=f"alone-{number}").measures()
        same = {name: measures[name] for name in measures if name in done.table.column_names}
        assert len(same) > 20
        assert {name: row[name] for name in same} == same
    # Each kind of features has a store; both distances search in it.
    assert len(list((scene.folder / "sweep/stores").iterdir())) == 2
    assert sum(one.stage == "index" for one in scene.all_receipts("sweep")) == 2 * 2
    assert sum(one.stage == "queries" for one in scene.all_receipts("sweep")) == 2
    again = swsdist.sweep(scene.folder / "sweep.yaml")
    assert again.tasks_done == 0
    assert again.table.drop_columns(["cpu_s"]).equals(done.table.drop_columns(["cpu_s"]))


def test_further_points_leave_the_old_ones_alone(scene: Any) -> None:
    grid = {"calibrate.steps": [KST, STO], "calibrate.alpha": [0.5, 1.5]}
    first = swsdist.sweep(write(scene, points={"grid": grid}, measures=FEW, oracle_kst=True))
    before = scene.receipts("sweep")
    grid["calibrate.alpha"] = [0.5, 1.0, 1.5, 2.0]
    second = swsdist.sweep(write(scene, points={"grid": grid}, measures=FEW, oracle_kst=True))
    after = scene.receipts("sweep")
    assert before.items() <= after.items()
    assert second.tasks_done == 1
    (name,) = after.keys() - before.keys()
    (new,) = (one for one in scene.all_receipts("sweep") if name == f"score_points-{one.fingerprint}")
    assert len(new.result["points"]) == 4
    values = {row["id"]: row["atwv"] for row in rows(second)}
    assert {row["id"]: row["atwv"] for row in rows(first)}.items() <= values.items()
    assert second.table.num_rows == 9
    assert [row["calibrate.steps"] for row in rows(second) if row["oracle"]] == ["[q-norm, logistic, oracle-kst]"]
    assert swsdist.sweep(scene.folder / "sweep.yaml").tasks_done == 0


def test_beside_a_run_its_search_is_not_done_again(finished: Any) -> None:
    before = finished.receipts()
    points = {"grid": {"calibrate.steps": [KST, STO, ["q-norm"]], "calibrate.alpha": [1, 2]}}
    path = write(finished, points=points, measures=FEW, set={}, run=str(finished.folder / "run"))
    done = swsdist.sweep(path)
    assert not done.failed
    assert any("changes nothing at 2 points (the first is point 5)" in notice for notice in done.notices)
    stages = {name.rpartition("-")[0] for name in finished.receipts().keys() - before.keys()}
    assert stages == {"fit-calibration", "sort-scores", "score_points"}
    assert (finished.folder / "run/report.json").exists()
    assert finished.run().outcome.tasks_done == 0


@pytest.mark.slow
def test_a_file_of_what_was_fitted_here_is_an_oracle(finished: Any) -> None:
    """It is no better than one that says so: neither is ranked beside a point that is fitted on others."""
    steps = ["q-norm", "llr"]
    run = finished.run(f"calibrate.steps={json.dumps(steps)}", run="llr")
    file = str(finished.folder / "llr")
    values = {"measures": [*FEW, "mtwv", "cnxe"], "set": {"calibrate.steps": steps}}
    done = swsdist.sweep(write(finished, points={"grid": {"calibrate.fit": ["crossfit", "oracle", file]}}, **values))
    assert any("[calibration-on-test-data]" in notice for notice in done.notices)
    assert [row["oracle"] for row in rows(done)] == [False, True, True]
    assert [row["rank"] for row in rows(done)] == [1, None, None]
    again = finished.run(f"calibrate.steps={json.dumps(steps)}", f"calibrate.fit={file}", run="again")
    assert run.measures()["calibration"] == "crossfit"
    assert again.measures()["calibration"] == "oracle"


@pytest.mark.slow
def test_a_point_that_fails_is_told_and_the_others_go_on(scene: Any) -> None:
    (scene.folder / "wrong.json").write_text('{"schema": "something else"}')
    points = {"grid": {"calibrate.fit": ["crossfit", str(scene.folder / "wrong.json"), "oracle"]}}
    done = swsdist.sweep(write(scene, points=points))
    assert set(done.failed) == {2}
    assert says(done.failed[2], calibrate_codes.NOT_FITTED_STEPS)
    found = rows(done)
    assert [row["mtwv"] is None for row in found] == [False, True, False]
    assert [row["oracle"] for row in found] == [False, False, True]
    # Points that are scored together fail together; another group is scored.
    points = {"grid": {"calibrate.fit": ["crossfit", str(scene.folder / "wrong.json")], "calibrate.alpha": [1, 2]}}
    done = swsdist.sweep(write(scene, "groups", points=points, measures=FEW, set={"calibrate.steps": KST}))
    assert set(done.failed) == {3, 4}
    assert [row["atwv"] is None for row in rows(done)] == [False, False, True, True]


def test_what_a_sweep_leaves(scene: Any) -> None:
    grid = {"calibrate.steps": [KST, STO], "calibrate.alpha": [0.5, 1.0, 2.0]}
    path = write(scene, points={"grid": grid}, measures=FEW, oracle_kst=True, report="kst", report_alpha=1.5)
    done = swsdist.sweep(path)
    folder = scene.folder / "sweep/sweeps/sweep"
    assert done.folder == str(folder)
    table = pq.read_table(folder / "points.parquet")
    assert table.equals(done.table)
    assert (folder / "points.csv").read_text().count("\n") == 1 + table.num_rows
    best = done.best[0]
    values = json.loads((folder / "sweep.json").read_text())
    assert values["best"][0]["point"] == best
    for row in table.to_pylist():
        assert row["atwv_low"] <= row["atwv"] <= row["atwv_high"]
        assert (row["p_max_t"] is None) == (row["point"] == best)
        assert row["digest"]
        assert row["cpu_s"] >= row["cpu_share_s"] > 0
    assert not any(row["oracle"] for row in table.to_pylist() if row["point"] == best)
    queries = pq.read_table(folder / "queries.parquet").to_pandas()
    means = queries.groupby("point")["value"].mean()
    assert means.to_numpy() == pytest.approx(table["atwv"].to_numpy(), abs=1e-12)
    study = json.loads((folder / "study/study.json").read_text())
    assert study["best_alpha"] == {"kst": 1.5, "sto": 1.5}
    curves = study["atwv_by_alpha"]
    assert [*curves["kst"], *curves["sto"], study["atwv"]["oracle-kst"]] == table["atwv"].to_pylist()
    assert not (scene.folder / "sweep/report.json").exists()
    assert not (scene.folder / "sweep/config.yaml").exists()


@pytest.mark.ray
def test_on_ray_the_same(scene: Any, cluster: Any) -> None:
    few = {"calibrate.steps": [KST, STO], "calibrate.alpha": [0.5, 2], "search.distance": ["cosine", "euclidean"]}
    points = {"grid": few}
    serial = swsdist.sweep(write(scene, "serial", points=points, measures=FEW))
    ray = swsdist.sweep(write(scene, "ray", points=points, measures=FEW), sets=cluster.sets)
    assert not ray.failed
    assert [row["digest"] for row in rows(ray)] == [row["digest"] for row in rows(serial)]
    assert {one.host for one in scene.all_receipts("ray")}


def test_points_that_are_not_valid(scene: Any) -> None:
    """What a point names, and what that takes, is looked at before the first of them is worked on."""
    pca = [{"name": "pca", "options": {"columns": 0}}]
    fuse = {
        "set": {"chain": "fuse"},
        "points": {"list": [{"options": {"systems": [{"name": "a", "config": "gone.yaml"}]}}]},
    }
    points: list[tuple[dict[str, Any], str]] = [
        ({"grid": {"search.distnace": ["cosine"]}}, "point 1 (search.distnace: cosine)"),
        ({"grid": {"search.distance": ["cosine", "cosin"]}}, "point 2 (search.distance: cosin)"),
        ({"list": [{"reduce.overlap": 0.5}, {"reduce.overlap": 0.5}]}, "points 1 and 2 are the same"),
        ({"list": [{"reduce.overlap": 0.5}, {}]}, "points 1 and 2 are the same"),
        ({"grid": {"run": ["a", "b"]}}, "run cannot differ between points"),
        ({"grid": {"executor.workers": [1, 2]}}, "executor.workers cannot differ"),
        ({"list": [{}, {"features": {"name": "mfccc"}}]}, "point 2 (features: {name: mfccc"),
        ({"list": [{}, {"features.transforms": [{"name": "pcaa"}]}]}, "point 2 (features.transforms"),
        ({"list": [{}, {"features": {"transforms": pca}}]}, "point 2 (features: "),
        ({"list": [{}, {"options": {"systems": []}}]}, "point 2 (options: "),
        ({"list": [{}, {"corpus.references": "gone.csv"}]}, "point 2 (corpus.references: gone.csv)"),
        ({"list": [{}, {"calibrate.fit": "gone.json"}]}, "point 2 (calibrate.fit: gone.json)"),
    ]
    alone = {"points": {"list": [{}]}}
    wrong = [*(({"points": some}, complaint) for some, complaint in points), (fuse, "point 1 (options: ")]
    wrong += [({**alone, **more}, "[conflicting-options]") for more in ({"oracle_kst": True}, {"report": "kst"})]
    for values, complaint in wrong:
        with pytest.raises(ConfigError) as caught:
            swsdist.sweep(write(scene, **values))
        assert complaint in str(caught.value)
        assert "sweep.yaml" in str(caught.value)
        assert not (scene.folder / "sweep").exists()


@pytest.mark.slow
def test_what_is_scored_by_something_else_is_ranked_apart(own_corpus: Any) -> None:
    """Other references, in a file, or another beta: a ranking each; a protocol and its rules by their keys are one."""
    lines = (own_corpus.corpus / "refs.csv").read_text().splitlines()
    query = lines[1].split(",")[lines[0].split(",").index("query_id")]
    fewer = own_corpus.corpus / "fewer.csv"
    fewer.write_text("\n".join(line for line in lines if query not in line.split(",")) + "\n")
    alike = [{"score.protocol": "stdeval"}, {"score.protocol": "nist-std06", "search.distance": "euclidean"}]
    points = [{"corpus.references": str(fewer), "search.distance": distance} for distance in ("cosine", "euclidean")]
    done = swsdist.sweep(write(own_corpus, points={"list": [*points, *alike]}))
    assert not done.failed
    found = rows(done)
    assert len({row["scored_by"] for row in found}) == len(done.best) == 2
    for k in (0, 2):
        assert found[k]["scored_by"] == found[k + 1]["scored_by"]
        assert sorted([found[k]["rank"], found[k + 1]["rank"]]) == [1, 2]
    assert any("The points have 2 scoring setups" in notice for notice in done.notices)
    queries = pq.read_table(own_corpus.folder / "sweep/sweeps/sweep/queries.parquet").to_pandas()
    assert query not in set(queries[queries["point"] == 1]["query_id"])
    for row in found:  # no query that a point was never asked for counts as missed
        assert row["atwv_low"] <= row["atwv"] <= row["atwv_high"]


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
    keys = ("query_id", "doc_id", "start", "end")
    write_rows(tmp_path / "refs.csv", [dict(zip(keys, row, strict=True)) for row in occurrences])
    write_rows(tmp_path / "terms.csv", [{"query_id": word, "term": word} for word in WORDS])
    write_rows(tmp_path / "docs.csv", [{"doc_id": f"d{k}", "path": f"d{k}.wav", "duration": 100} for k in range(3)])
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


def write_sweep(folder: Path, name: str, **values: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"run": "run", "measures": FEW, **values}))
    return path


GRID = {"calibrate.steps": [["kst"], ["sto"], ["power", "kst"]], "calibrate.alpha": [0.1, 1.5]}


@pytest.mark.slow
def test_points_of_lattices_are_runs_and_sums_are_before_duplicates_are_removed(
    tmp_path: Path, systems: list[dict[str, Any]]
) -> None:
    """S(w) is of all candidates, and more than that of the list: its overlaps are merged, and it has 8 a query."""
    path = write_sweep(tmp_path, "sweep", config=systems[0], points={"grid": GRID}, oracle_kst=True, report="kst")
    done = swsdist.sweep(path)
    assert not done.failed
    config, rows = tmp_path / "config.yaml", done.table.to_pylist()
    assert len({row["atwv"] for row in rows}) > 3
    for row in [row for row in rows if row["calibrate.alpha"] == 1.5 and not row["oracle"]]:
        steps = row["calibrate.steps"].strip("[]").split(", ")
        config.write_text(json.dumps({**systems[0], "calibrate": {"steps": steps, "alpha": 1.5}, "run": "alone"}))
        measured = swsdist.run(config).measures()
        assert {name: row[name] for name in FEW} == {name: measured[name] for name in FEW}
    assert len(load_plans(Folder(str(tmp_path / "run")))) == 4  # kst and sto share a search; a power aligns anew
    studied = json.loads((Path(done.folder) / "study/study.json").read_text())["systems"][0]
    assert studied["logistic"] == "none"
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
    path = write_sweep(tmp_path, "several", points=points, oracle_kst=True, report="kst")
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
    more = swsdist.sweep(write_sweep(tmp_path, "more", config=first, points={"list": [{"calibrate.alpha": 2}]}))
    assert more.tasks_done < 3, "of the same search"
    assert more.table["atwv"][0].as_py() == study["systems"][0]["atwv_by_alpha"]["kst"][1]


def test_configs_of_points_are_checked(tmp_path: Path) -> None:
    of_b = {"list": [{"config": "b.yaml"}]}
    for values, code, at in (
        ({"config": "a.yaml", "points": of_b}, families.CONFLICTING_OPTIONS, "point 1"),
        ({"points": {"list": [{"config": "b.yaml"}, {}]}}, sweep_codes.CONFIG_OR_LISTS, "point 2"),
        ({"points": {"list": [{"config": 3}]}}, families.INVALID_VALUE, "point 1"),
        ({"points": of_b, "run": None}, sweep_codes.NO_RESULT_FOLDER, "sweep.yaml"),
    ):
        with raises(code, where=at):
            swsdist.sweep(write_sweep(tmp_path, "sweep", **values))
