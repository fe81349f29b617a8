"""No command writes over what it reads, and no run into others' files: each is refused before any work."""

import json
import shutil
from pathlib import Path

import click
import pytest
from commands import Command, untold

from swsdist.cli.options import FOLDER, Integer, OutputCommand, written
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.ledger import demand_run_folder
from tests.support.coded import raises
from tools.pages.commands import all_commands

LIST = "query_id,doc_id,start,end,score\nq1,d1,1.0,1.5,3.0\nq1,d2,2.0,2.5,1.0\n"
TRUE = "query_id,doc_id,start,end\nq1,d1,1.0,1.5\n"


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    for name, text in (("one", LIST), ("two", LIST), ("a-values", LIST), ("true", TRUE), ("about", LIST)):
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "fitted.json").write_text("{}")
    (tmp_path / "plot.svg").write_text("<svg/>")
    (tmp_path / "link.csv").symlink_to("one.csv")
    return tmp_path


def test_every_command_that_writes_files_looks() -> None:
    kinds = (type(FOLDER), type(written()))
    writing = [one for one in all_commands().values() if any(isinstance(param.type, kinds) for param in one.params)]
    assert {"search", "fuse", "calibrate"} <= {one.name for one in writing}
    assert [one.name for one in writing if not isinstance(one, OutputCommand)] == []


def test_every_number_of_an_option_is_checked() -> None:
    numbers = (click.types.FloatParamType, click.types.IntParamType)
    options = [param for one in all_commands().values() for param in one.params if isinstance(param.type, numbers)]
    assert len(options) > 50
    for option in options:
        for text in ("nan", "inf", "-inf", "1e400", "1_0x", str(2**70) if isinstance(option.type, Integer) else "-nan"):
            with pytest.raises(click.BadParameter):
                option.type.convert(text, option, None)


def test_a_file_that_is_read(swsdist: Command, lists: Path) -> None:
    before = {path.name: path.read_bytes() for path in lists.iterdir()}
    task = "--references true.csv --seconds 1000"
    harmed = {
        "fuse a=one.csv b=two.csv --out ./two.csv": "two.csv",
        "fuse one.csv two.csv --out link.csv": "one.csv",
        "fuse link.csv two.csv --out one.csv": "link.csv",
        f"fuse one.csv two.csv {task} --out true.csv": "true.csv",
        "fuse one.csv two.csv --fit fitted.json --out x.csv --save fitted.json": "fitted.json",
        "calibrate -s one.csv --method none --out one.csv": "one.csv",
        f"score -s one.csv {task} --table true.csv": "true.csv",
        f"compare one.csv two.csv {task} --det two.csv": "two.csv",
        f"compare one.csv a-values.csv {task} --table a.csv": "a-values.csv",
        f"compare one.csv about.csv {task} --csv .": "one.csv",
        "paper table one.csv one.csv": "one.csv",
        "paper figure plot.svg plot.svg": "plot.svg",
    }
    cases = {typed: f"this would overwrite {name}, which .. [output-refused]" for typed, name in harmed.items()}
    assert untold(swsdist, cases, lists) == {}
    same = {"fuse one.csv two.csv -o x.json --save ./x.json": "--save ./x.json: --out names the same .. [output-ref"}
    assert untold(swsdist, same, lists) == {}
    assert {path.name: path.read_bytes() for path in lists.iterdir()} == before


def test_files_that_inputs_name(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """Of a corpus file, of a config, of a run's folder and of its config."""
    for name in ("corpus", "run"):
        shutil.copytree(place / name, tmp_path / name)
    for _ in range(2):  # a file of its own may be written again, there too
        swsdist("report", "run", "--det", "run/det.svg", cwd=tmp_path)
    (tmp_path / "mine.yaml").write_text("documents: corpus/docs.csv\nqueries: corpus/queries.csv\n")
    plan = tmp_path / "run" / "plan.json"
    plan.write_text(plan.read_text().replace(f"{place}/corpus", f"{tmp_path}/corpus"))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    query, refused = place / "corpus/queries/q001_1.wav", "[output-refused]"
    cases = {
        "corpus describe mine.yaml --table corpus/queries.csv": f"overwrite {tmp_path}/corpus/queries.csv, which",
        "report run --table run/report.json": "overwrite a file of run, which",
        f"report run --per-query {tmp_path}/corpus/refs.csv": f"overwrite {tmp_path}/corpus/refs.csv, which",
        f"compare run again={tmp_path}/run --csv corpus": refused,
        f"search run --query {query} --table corpus/docs.csv": refused,
        "report run --table z.csv --per-query z-measures.csv": refused,  # tables make files of their own
        f"compare run again={tmp_path}/run --csv . --det pairs.csv": refused,
        "store import frames frames/. --shift 0.01 --dimension 3": refused,
    }
    (tmp_path / "frames").mkdir()
    assert untold(swsdist, cases, tmp_path) == {}
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_config_is_not_written_over(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """A run writes config.yaml to its folder; where that is the config itself, only a copy that a run wrote is taken."""
    text = (place / "config.yaml").read_text().replace("corpus/", f"{place}/corpus/").replace("run: run", "run: .")
    (tmp_path / "config.yaml").write_text(text)
    told = swsdist("index", "config.yaml", cwd=tmp_path, code=2).err
    assert "[output-refused]" in told
    assert (tmp_path / "config.yaml").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "mine.yaml").write_text(text.replace("run: .", "run: made"))
    made = tmp_path / "made" / "config.yaml"
    swsdist("index", "mine.yaml", cwd=tmp_path)
    swsdist("index", made, cwd=tmp_path)
    swsdist("index", made, "--set", "search.distance=cosine", cwd=tmp_path)
    made.write_text(made.read_text().replace("  cohort: null\n", ""))  # as a version wrote it that had no such key
    swsdist("index", made, cwd=tmp_path)
    made.write_text(f"# mine\n{made.read_text()}")
    assert "[output-refused]" in swsdist("index", made, cwd=tmp_path, code=2).err


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
