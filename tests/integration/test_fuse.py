"""Fusion of systems, end to end: those it runs first and those it takes, the same whatever the cut and wherever it runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import swsdist
from swsdist.chains.fuse.chain import check
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.config import Config, load_config
from swsdist.core.codes import families
from swsdist.core.codes import fuse as fuse_codes
from swsdist.core.codes import pipeline as codes
from swsdist.core.codes import stages as stages_codes
from swsdist.core.errors import ConfigError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.status import load_chain_run, status
from swsdist.searcher.searcher import setup_of
from swsdist.stages.buckets import Fitted
from swsdist.testing.conformance import check_chain
from tests.support.coded import raises, says


class Fusing:
    """Configs of two systems and their fusion, in a folder of its own."""

    def __init__(self, folder: Path, corpus: Path) -> None:
        self.folder = folder
        tables = {"documents": "docs", "queries": "queries", "references": "refs"}
        self.corpus = {name: str(corpus / f"{table}.csv") for name, table in tables.items()}
        self.write("one", search={"distance": "cosine"})
        self.write("two", search={"distance": "cosine-squared"})

    def write(self, name: str, **values: Any) -> str:
        path = self.folder / f"{name}.yaml"
        given = {"run": name, "corpus": self.corpus, "executor": {"kind": "serial"}, **values}
        path.write_text(json.dumps(given))
        return str(path)

    def fuse(
        self, run: str, *sets: str, systems: Any = None, config: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        """Run a fusion of the two, or of others, with all stages of the chain."""
        systems = systems or [{"name": name, "config": f"{name}.yaml"} for name in ("one", "two")]
        options = {"systems": systems, "between_queries": True, **options}
        given = {"chain": "fuse", "system": "fused", "options": options, **(config or {})}
        return swsdist.run(self.write(run, **given), sets=list(sets))

    def joined(self, run: str) -> pa.Table:
        chain_run = load_chain_run(Folder(str(self.folder / run)))
        return pa.concat_tables(chain_run.read("filled"))


@pytest.fixture(scope="module")
def fused(tmp_path_factory: pytest.TempPathFactory, small_corpus: Path) -> Fusing:
    """A fusion that nothing happened to, in `fused`; to be read only."""
    fusing = Fusing(tmp_path_factory.mktemp("fused"), small_corpus)
    assert not fusing.fuse("fused").outcome.failures
    return fusing


@pytest.fixture
def fusing(tmp_path: Path, fused: Fusing, small_corpus: Path) -> Fusing:
    """Two systems that were run, in `fused/systems`."""
    shutil.copytree(fused.folder / "fused", tmp_path / "fused")
    return Fusing(tmp_path, small_corpus)


TAKEN = [{"name": name, "run": f"fused/systems/{name}"} for name in ("one", "two")]


@pytest.mark.slow
def test_systems_are_run_first_and_share_what_they_can(fused: Fusing) -> None:
    place = fused.folder / "fused"
    assert sorted(path.name for path in (place / "systems").iterdir()) == ["one", "stores", "two"]
    assert len(list((place / "systems/stores").iterdir())) == 1, "one store serves both, whose features are the same"
    assert all(stage.done == stage.tasks for stage in status(Folder(str(place))).stages)
    report = json.loads((place / "report.json").read_text())
    assert report["looked_at"] == ["own query", "other queries", "references"]
    assert report["measures"]["calibration"] == "crossfit"
    assert report["measures"]["mtwv"] > 0.5
    parts = [json.loads((place / "systems" / name / "report.json").read_text()) for name in ("one", "two")]
    # Costs are those of all systems, the shared store counting once, and of the fusion.
    assert report["resources"]["index_cpu_s"] == pytest.approx(parts[0]["resources"]["index_cpu_s"])
    assert report["resources"]["search_cpu_s"] > sum(one["resources"]["search_cpu_s"] for one in parts)
    assert report["isf"] is not None
    assert report["counts"]["queries"] == 3
    told = report["fusion"]
    assert (told["missing"], told["between_queries"]) == ("average", True)
    assert told["joined"] == fused.joined("fused").num_rows
    assert told["offset"] is not None
    first, second = told["systems"]
    assert (first["system"], second["system"]) == ("one", "two")
    assert first["weight"] is not None
    # A place that one did not find was found by the other alone.
    assert first["given"] + second["alone"] == pytest.approx(1)
    assert first["mtwv"] == parts[0]["measures"]["mtwv"]
    assert first["gain"]["mtwv"] == pytest.approx(report["measures"]["mtwv"] - first["mtwv"], abs=1e-9)
    less = first["cnxe_min"] - report["measures"]["further"]["cnxe_min"]
    assert first["gain"]["cnxe_min"] == pytest.approx(less, abs=1e-9)
    assert not any(says(one, fuse_codes.DISJOINT_SYSTEMS) for one in report["warnings"])


@pytest.mark.slow
def test_it_resumes_and_is_the_same_from_runs_that_it_takes(fusing: Fusing) -> None:
    again = fusing.fuse("fused")
    assert again.outcome.tasks_done == 0
    assert [made.tasks_done for made in again.outcome.preceding.values()] == [0, 0]
    whole = swsdist.digest(str(fusing.folder / "fused"))
    # Taken, in another order, in other buckets.
    fusing.fuse("taken", "reduce.buckets=3", systems=TAKEN[::-1])
    assert swsdist.digest(str(fusing.folder / "taken")) == whole
    shutil.rmtree(fusing.folder / "taken/tables/filled")
    fusing.fuse("taken", "reduce.buckets=3", systems=TAKEN[::-1])
    assert swsdist.digest(str(fusing.folder / "taken")) == whole


@pytest.mark.ray
def test_the_same_on_ray(fusing: Fusing, cluster: Any) -> None:
    options = {"missing": "rescore"}
    fusing.fuse("serial", systems=TAKEN, **options)
    fusing.fuse("ray", *cluster.sets, systems=TAKEN, **options)
    assert swsdist.digest(str(fusing.folder / "ray")) == swsdist.digest(str(fusing.folder / "serial"))


def test_a_system_alone_keeps_its_list(fusing: Fusing) -> None:
    config = {"calibrate": {"steps": []}}
    found = fusing.fuse("alone", systems=TAKEN[:1], between_queries=False, config=config)
    part = load_chain_run(Folder(str(fusing.folder / "fused/systems/one")))
    before = pa.concat_tables(part.read("scored")).select(["query_id", "doc_id", "start", "end", "score"])
    order = [(name, "ascending") for name in before.column_names]
    after = pa.concat_tables(found.outcome.chain_run.read("scored")).select(before.column_names)
    assert after.sort_by(order).equals(before.sort_by(order))
    told = json.loads((fusing.folder / "fused/systems/one/report.json").read_text())["measures"]
    assert found.measures()["mtwv"] == told["mtwv"]
    assert found.measures()["cnxe_min"] == told["further"]["cnxe_min"]
    assert any(says(one, fuse_codes.UNFITTED_FUSION) for one in found.report.warnings)


@pytest.mark.slow
def test_fitted_elsewhere_and_applied_here(fusing: Fusing) -> None:
    config = {"calibrate": {"fit": str(fusing.folder / "fused")}}
    found = fusing.fuse("applied", systems=TAKEN, config=config)
    (told,) = found.outcome.chain_run.results("calibration", Fitted)
    # What is scored is the same, and that is told.
    assert told.fit == "oracle"
    assert any(says(one, stages_codes.CALIBRATION_ON_TEST_DATA) for one in found.report.warnings)
    others = [{"name": "one", "run": "fused/systems/one"}, {"name": "three", "run": "fused/systems/two"}]
    with raises(fuse_codes.FUSION_OF_OTHER_SYSTEMS, fitted="one, two", systems="one, three"):
        fusing.fuse("others", systems=others, config=config)
    oracle = fusing.fuse("oracle", systems=TAKEN, config={"calibrate": {"fit": "oracle"}})
    assert oracle.measures()["calibration"] == "oracle"


def test_what_cannot_be_fused_is_told(fusing: Fusing) -> None:
    with raises(families.CONFLICTING_OPTIONS, system="one"):
        fusing.fuse("bad", systems=[{"name": "one", "run": "a", "config": "b"}])
    with raises(families.DUPLICATE_NAME, count=2, system="one"):
        fusing.fuse("bad", systems=[TAKEN[0], TAKEN[0]])
    with raises(families.UNSUPPORTED, chain="fuse"):
        setup_of(str(fusing.folder / "fused"))
    with raises(families.INVALID_VALUE, found_by=3, systems=2):
        fusing.fuse("bad", systems=TAKEN, found_by=3)
    with raises(families.EMPTY_INPUT):
        swsdist.run(fusing.write("bad", chain="fuse"))
    with raises(codes.NOT_A_RUN, where="nowhere"):
        fusing.fuse("bad", systems=[{"name": "one", "run": "nowhere"}])
    with raises(families.WRONG_KIND, system="one", chain="fuse"):
        fusing.fuse("bad", systems=[{"name": "one", "run": "fused"}])
    with pytest.raises(ConfigError, match="is for the chain fuse"):
        swsdist.run(fusing.write("bad", calibrate={"steps": ["fusion"]}))
    with raises(families.UNSUPPORTED):
        fusing.fuse("bad", systems=TAKEN, scores="final", missing="rescore")
    cut = fusing.folder / "cut.csv"
    cut.write_text("query_id,doc_id,start,end\nq001,d001,1.0,1.5\n")
    (store,) = (fusing.folder / "fused/systems/stores").iterdir()
    index = {"store": str(store)}
    swsdist.run(fusing.write("logistic", calibrate={"steps": ["q-norm", "logistic"]}, index=index))
    with raises(families.MISMATCH, system="one"):
        fusing.fuse("bad", systems=TAKEN, config={"corpus": {**fusing.corpus, "queries": str(cut)}})
    with raises(fuse_codes.FINAL_SCORES_FITTED, system="one", steps="logistic", fit="crossfit"):
        fusing.fuse("bad", systems=[{"name": "one", "run": "logistic"}], scores="final")
    swsdist.run(fusing.write("half", index=index), selection=StepSelection(until="search"))
    with raises(fuse_codes.UNFINISHED_SYSTEM, system="one"):
        fusing.fuse("bad", systems=[{"name": "one", "run": "half"}])


@pytest.mark.slow
def test_systems_that_never_found_the_same_are_told(tmp_path: Path, small_corpus: Path) -> None:
    fusing = Fusing(tmp_path, small_corpus)
    header, *rows = (small_corpus / "docs.csv").read_text().splitlines()
    for name, mine in (("left", rows[:4]), ("right", rows[4:])):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *mine]).replace("audio/", f"{small_corpus}/audio/"))
        corpus = {**fusing.corpus, "documents": f"{name}.csv", "references": None}
        swsdist.run(fusing.write(name, corpus=corpus, report={"exports": []}))
    systems = [{"name": name, "run": name} for name in ("left", "right")]
    with raises(fuse_codes.UNSHARED_INPUTS, count=4, of=8, inputs="documents", system="left"):
        fusing.fuse("refused", systems=systems)
    found = check(FuseInputs(load_config(str(tmp_path / "refused.yaml")), Ledger(Folder(str(tmp_path / "refused")))))
    assert any(finding.good is False and "4 of 8 documents" in finding.text for finding in found)
    apart = fusing.fuse("apart", "force=true", systems=systems)
    (told,) = (one for one in apart.report.warnings if says(one, fuse_codes.DISJOINT_SYSTEMS))
    assert told.startswith("1 pair of systems ")
    assert "(first: left and right)" in told


@pytest.mark.slow
def test_the_chain_is_right(fusing: Fusing) -> None:

    def configured(word: str) -> Config:
        values = {"systems": TAKEN, "missing": "rescore", "between_queries": True}
        return load_config(fusing.write(word, system="fused", chain="fuse", options=values))

    tables = check_chain(configured)
    assert {"joined", "filled", "aligned", "combined", "scored", "measures"} <= set(tables)
