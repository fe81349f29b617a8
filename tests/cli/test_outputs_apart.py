"""No command writes over what it reads: each is refused before any work, and what was there stays."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commands import Command

from swsdist.cli.options import FOLDER, Integer, OutputCommand, written
from swsdist.registry.registries import COMMANDS

LIST = "query_id,doc_id,start,end,score\nq1,d1,1.0,1.5,3.0\nq1,d2,2.0,2.5,1.0\n"
TRUE = "query_id,doc_id,start,end\nq1,d1,1.0,1.5\n"
TASK = ("--references", "true.csv", "--seconds", "1000")


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    for name, text in (("one", LIST), ("two", LIST), ("a-values", LIST), ("true", TRUE), ("about", LIST)):
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "fitted.json").write_text("{}")
    (tmp_path / "plot.svg").write_text("<svg/>")
    (tmp_path / "link.csv").symlink_to("one.csv")
    return tmp_path


def all_commands(group: click.Command | None = None) -> Iterator[click.Command]:
    for command in (
        [entry.load() for entry in COMMANDS.available.values()] if group is None else group.commands.values()  # type: ignore[attr-defined]
    ):
        if isinstance(command, click.Group):
            yield from all_commands(command)
        else:
            yield command


def test_every_command_that_writes_files_looks() -> None:
    kinds = (type(FOLDER), type(written()))
    writing = [one for one in all_commands() if any(isinstance(param.type, kinds) for param in one.params)]
    assert {"search", "fuse", "calibrate"} <= {one.name for one in writing}
    assert [one.name for one in writing if not isinstance(one, OutputCommand)] == []


def test_every_number_of_an_option_is_checked() -> None:
    numbers = (click.types.FloatParamType, click.types.IntParamType)
    options = [param for one in all_commands() for param in one.params if isinstance(param.type, numbers)]
    assert len(options) > 50
    for option in options:
        for text in ("nan", "inf", "-inf", "1e400", "1_0x", str(2**70) if isinstance(option.type, Integer) else "-nan"):
            with pytest.raises(click.BadParameter):
                option.type.convert(text, option, None)


@pytest.mark.parametrize(
    ("arguments", "harmed"),
    [
        (("fuse", "one.csv", "two.csv", "--out", "one.csv"), "one.csv"),
        (("fuse", "a=one.csv", "b=two.csv", "--out", "./two.csv"), "two.csv"),
        (("fuse", "one.csv", "two.csv", "--out", "link.csv"), "one.csv"),
        (("fuse", "link.csv", "two.csv", "--out", "one.csv"), "link.csv"),
        (("fuse", "one.csv", "two.csv", *TASK, "--out", "true.csv"), "true.csv"),
        (
            ("fuse", "one.csv", "two.csv", "--fit", "fitted.json", "--out", "x.csv", "--save", "fitted.json"),
            "fitted.json",
        ),
        (("calibrate", "-s", "one.csv", "--method", "none", "--out", "one.csv"), "one.csv"),
        (("score", "-s", "one.csv", *TASK, "--per-term", "one.csv"), "one.csv"),
        (("score", "-s", "one.csv", *TASK, "--table", "true.csv"), "true.csv"),
        (("compare", "one.csv", "two.csv", *TASK, "--det", "two.csv"), "two.csv"),
        (("compare", "one.csv", "a-values.csv", *TASK, "--table", "a.csv"), "a-values.csv"),
        (("compare", "one.csv", "about.csv", *TASK, "--csv", "."), "one.csv"),
        (("paper", "table", "one.csv", "one.csv"), "one.csv"),
        (("paper", "figure", "plot.svg", "plot.svg"), "plot.svg"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_file_that_is_read(swsdist: Command, lists: Path, arguments: tuple[str, ...], harmed: str) -> None:
    before = {path.name: path.read_bytes() for path in lists.iterdir()}
    told = swsdist(*arguments, cwd=lists, code=2).err
    assert (
        f"this would overwrite {harmed}, which the command reads [output-refused]\n  remedy: name another file" in told
    )
    assert {path.name: path.read_bytes() for path in lists.iterdir()} == before


def test_two_outputs_are_two_files(swsdist: Command, lists: Path) -> None:
    told = swsdist("fuse", "one.csv", "two.csv", "-o", "x.json", "--save", "./x.json", cwd=lists, code=2).err
    assert "--save ./x.json: --out names the same file [output-refused]\n  remedy: name two files" in told


def test_files_that_inputs_name(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """Of a corpus file, of a config and of a run's folder."""
    shutil.copytree(place / "corpus", tmp_path / "corpus")
    (tmp_path / "mine.yaml").write_text("documents: corpus/docs.csv\nqueries: corpus/queries.csv\n")
    for out in ("corpus/queries.csv", "corpus/docs.csv"):
        told = swsdist("corpus", "describe", "mine.yaml", "--table", out, cwd=tmp_path, code=2).err
        assert f"this would overwrite {tmp_path}/{out}, which the command reads" in told
        assert (tmp_path / out).read_bytes() == (place / out).read_bytes()
    shutil.copytree(place / "run", tmp_path / "run")
    for option, out in (("--table", "run/report.json"), ("--per-query", "run/exports/detections.csv")):
        before = (tmp_path / out).read_bytes()
        told = swsdist("report", "run", option, out, cwd=tmp_path, code=2).err
        assert "this would overwrite a file of run, which the command reads" in told
        assert (tmp_path / out).read_bytes() == before
    told = swsdist("report", "run", "--per-query", place / "corpus/refs.csv", cwd=tmp_path, code=2).err
    assert f"this would overwrite {place}/corpus/refs.csv, which the command reads" in told
    for _ in range(2):  # a file of its own may be written again, there too
        swsdist("report", "run", "--det", "run/det.svg", cwd=tmp_path)


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


def test_files_that_a_run_names(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """A command that is given a run's folder writes over nothing that the run's config names."""
    shutil.copytree(place / "corpus", tmp_path / "corpus")
    shutil.copytree(place / "run", tmp_path / "run")
    plan = tmp_path / "run" / "plan.json"
    plan.write_text(plan.read_text().replace(f"{place}/corpus", f"{tmp_path}/corpus"))
    for arguments in (
        ("compare", "run", f"again={tmp_path}/run", "--csv", "corpus"),
        ("search", "run", "--query", place / "corpus/queries/q001_1.wav", "--table", "corpus/docs.csv"),
    ):
        told = swsdist(*arguments, cwd=tmp_path, code=2).err
        assert "[output-refused]" in told
    for name in ("docs.csv", "queries.csv"):
        assert (tmp_path / "corpus" / name).read_bytes() == (place / "corpus" / name).read_bytes()


def test_outputs_of_several_files(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """Tables that make files of their own, and a folder, do not meet another output."""
    run = place / "run"
    for arguments in (
        ("report", run, "--table", "z.csv", "--per-query", "z-measures.csv"),
        ("compare", run, f"again={run}", "--csv", ".", "--det", "pairs.csv"),
    ):
        assert "[output-refused]" in swsdist(*arguments, cwd=tmp_path, code=2).err
    assert not [*tmp_path.iterdir()]


def test_a_store_is_not_made_among_its_frames(swsdist: Command, tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    stated = ("--shift", "0.01", "--dimension", "3")
    told = swsdist("store", "import", "frames", "frames/.", *stated, cwd=tmp_path, code=2).err
    assert "[output-refused]" in told
    assert not [*(tmp_path / "frames").iterdir()]
