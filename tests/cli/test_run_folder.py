"""Where a run may write: into a folder that is empty, not there, or a run's; into nobody's files."""

import json
from pathlib import Path

import pytest
from commands import Command, untold

from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import demand_run_folder
from tests.support.coded import raises

SWEEP = "config: config.yaml\nrun: mine\npoints: {grid: {reduce.overlap: [0.5, 0.6]}}\n"
LISTS = """\
lists: {tasks: {t: {rttm: no.rttm, ecf: no.xml, terms: no.xml, systems: {a: no.xml}}}}
run: mine
set: {calibrate.steps: [kst]}
points: {grid: {calibrate.alpha: [1, 2]}}
measures: [atwv, atwv_pmiss, atwv_pfa]
"""
FUSE = """\
chain: fuse
run: mine
corpus: {documents: %s/corpus/docs.csv, queries: %s/corpus/queries.csv, references: %s/corpus/refs.csv}
options: {systems: [{name: a, config: config.yaml}, {name: b, config: config.yaml}]}
executor: {kind: serial}
"""


@pytest.fixture
def here(tmp_path: Path, corpus: Path) -> Path:
    text = (corpus / "config.yaml").read_text().replace("corpus/", f"{corpus}/corpus/").replace("run: run", "run: mine")
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    (tmp_path / "lists.yaml").write_text(LISTS)
    (tmp_path / "fuse.yaml").write_text(FUSE.replace("%s", str(corpus)))
    return tmp_path


def test_nothing_is_written_between_other_files(here: Path, swsdist: Command) -> None:
    (here / "mine").mkdir()
    (here / "mine/thesis.tex").write_text("years of work")
    told = f"[{codes.FOREIGN_FOLDER.name}] .. {here}/mine:  .. thesis.tex"
    typed = ("run config.yaml", "sweep sweep.yaml", "sweep lists.yaml", "run fuse.yaml")
    assert untold(swsdist, dict.fromkeys(typed, told), here) == {}
    assert [path.name for path in (here / "mine").rglob("*")] == ["thesis.tex"]


def test_what_is_taken_for_a_run(tmp_path: Path) -> None:
    taken = """; .DS_Store .tmp/x; store/.tmp/half; lock.json; receipts/index.parquet x; accounts/host-1.jsonl config.yaml;
        systems/a/plan.json; sweeps/s/sweep.json; of-a-program/inputs.json"""
    foreign = "config.yaml; receipts/tax.pdf; sub/plan.json; manifest.json receipts/index.parquet; a b c d e"
    for names in f"{taken}; {foreign}".split(";"):
        place = tmp_path / names.strip().replace("/", "-").replace(" ", "_")
        for name in names.split():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text("{}")
        if names in taken.split(";"):
            demand_run_folder(Folder(str(place)))
            continue
        with pytest.raises(UserError) as caught:
            demand_run_folder(Folder(str(place)))
        assert len(names.split()) < 5 or caught.value.values["names"] == "a, b, c and 2 more"


def test_a_plan_of_another_program_is_none_of_ours(tmp_path: Path) -> None:
    demand_run_folder(Folder(str(tmp_path / "not there")))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"format_version": "1.2", "terraform_version": "1.9"}))
    with raises(codes.FOREIGN_FOLDER, names="plan.json"):
        demand_run_folder(Folder(str(tmp_path)))
    plan.write_text('{\n "schema": "swsdist-plan/1"')
    demand_run_folder(Folder(str(tmp_path)))
