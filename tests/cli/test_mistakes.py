"""Mistakes: the exit code, and a message that says what, where and what to do. No traceback for what is not our bug."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.glossary.project import Project
from tests.support.coded import raises, says


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("serch", "search"), ("indx", "index"), ("reprot", "report"), ("stauts", "status"), ("xyzzy", None)],
)
def test_a_command_that_is_not(swsdist, typed: str, meant: str | None) -> None:
    told = swsdist(typed, code=2).err
    assert says(told, families.UNKNOWN_NAME)
    assert f"unknown command '{typed}'{f'; did you mean {meant}?' if meant else ' ['}" in told
    assert "init, check, run, " in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "gone.yaml"),
        ("run", "--nonsense"),
        ("search",),
        ("store", "chek", "x"),
        ("store", "cat", "x"),
        ("store", "import", "x", "y"),
        ("corpus", "describe"),
        ("corpus", "describe", "gone.yaml"),
        ("status",),
        ("cancel",),
        ("clean",),
        ("sweep",),
        ("sweep", "gone.yaml"),
        ("bench",),
        ("bench", "gone.yaml"),
        ("bench", "--compare", "gone", "gone"),
        ("forecast",),
        ("forecast", ".", "--hours", "0"),
    ],
    ids=" ".join,
)
def test_usage(swsdist, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    told = swsdist(*arguments, cwd=tmp_path, code=2).err
    assert "Usage: " in told
    assert "Error: " in told


def test_what_was_meant(swsdist, tmp_path: Path) -> None:
    (tmp_path / "My old interviews").mkdir()
    assert "'My old interviews'" in swsdist("serve", "My", "old", "interviews", cwd=tmp_path, code=2).err
    assert "--text 'grey parrot'" in swsdist("search", ".", "grey", "parrot", cwd=tmp_path, code=2).err
    assert "--text" not in swsdist("store", "info", ".", "parrot", cwd=tmp_path, code=2).err
    (tmp_path / "x.wav").write_bytes(b"RIFF\0\0\xff\xffWAVE")
    assert says(swsdist("discover", "x.wav", cwd=tmp_path, code=2).err, families.MALFORMED_FILE)
    assert "quotes" not in swsdist("serve", "x.wav", cwd=tmp_path, code=2).err
    Project.open(tmp_path / "My old interviews-words").close()
    swsdist("glossary", "list", "My old interviews", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "complaint", "help_"),
    [
        ("serch: {}\n", 10, "serch: unknown key; did you mean search?", "[unknown-key]"),
        ("search: {distance: cosin}\n", 10, "distance", "cosine-squared"),
        ("search: {lanes: many}\n", 10, "search.lanes", "integer"),
        ("run: twice\n", 10, "run", "twice"),
        ("features: {name: mfc}\n", None, "unknown feature extractor 'mfc'; did you mean mfcc?", "use one of: "),
        *(
            (f"features: {{transforms: [{{name: pca, options: {{{option}}}}}]}}\n", None, f"pca.options.{at}", help_)
            for option, at, help_ in (
                ("components: 5000", "components: ", "its options: hours"),
                ("columns: 0", "columns: ", "of pca"),
            )
        ),
    ],
)
def test_config(swsdist, place: Path, tmp_path: Path, text: str, line: int | None, complaint: str, help_: str) -> None:
    """The file and line, the key that was meant, what is allowed."""
    config = (place / "config.yaml").read_text().replace("corpus/", f"{place}/corpus/")
    path = tmp_path / "config.yaml"
    path.write_text(config + text)
    told = swsdist("index", path, code=2).err
    assert complaint in told
    assert help_ in told
    if line is not None:
        assert f"{path}:{line}" in told


@pytest.mark.parametrize(
    ("sets", "complaint"),
    [("serch.distance=x", "did you mean search"), ("search.distance", "="), ("search.lanes=0", "search.lanes")],
)
def test_set(swsdist, place: Path, sets: str, complaint: str) -> None:
    assert complaint in swsdist("run", "config.yaml", "--set", sets, cwd=place, code=2).err


@pytest.mark.parametrize(
    "sets",
    ["storage.secret=HUSHHUSH", "storage.client_kwargs.aws_session_token=HUSHHUSH", 'storage={"key": "HUSHHUSH"}'],
)
def test_a_secret_on_the_command_line(swsdist, place: Path, sets: str) -> None:
    done = swsdist("run", "config.yaml", "--set", sets, cwd=place, code=2)
    assert "every user of the machine" in done.err
    assert "HUSH" not in done.err + done.out


@pytest.mark.parametrize("sets", ["search.distance", "search.distanse=cosine", "search.distance=hamming"])
def test_set_of_a_search_in_a_store(swsdist, place: Path, sets: str) -> None:
    told = swsdist("search", "run/store", "--query", "corpus/queries/q001_1.wav", "--set", sets, cwd=place, code=2).err
    assert "error: " in told
    assert "search.dist" in told


def test_stages(swsdist, place: Path, tmp_path: Path) -> None:
    told = swsdist("run", "config.yaml", "--only", "serach", cwd=place, code=2).err
    assert says(told, families.UNKNOWN_NAME)
    assert "'serach'" in told
    assert "index, queries, search" in told
    told = swsdist("run", "config.yaml", "--only", "search", "--set", f"run={tmp_path}/new", cwd=place, code=2).err
    assert says(told, families.NOT_FINISHED)
    assert "index" in told
    assert "remedy: " in told


def test_tables(swsdist, place: Path, tmp_path: Path) -> None:
    """A broken table is exit code 3, and names the file and the row; one that is not there is the user's mistake."""
    (tmp_path / "docs.csv").write_text("doc_id,path\nd1,a.wav\nd1,b.wav\n")
    arguments = ("index", "config.yaml", "--set", f"run={tmp_path}/run", "--set")
    told = swsdist(*arguments, f"corpus.documents={tmp_path}/docs.csv", cwd=place, code=3).err
    assert f"{tmp_path}/docs.csv" in told
    assert "d1" in told
    assert "\n  remedy: " in told
    told = swsdist(*arguments, f"corpus.documents={tmp_path}/gone.csv", cwd=place, code=2).err
    assert f"{tmp_path}/gone.csv: there is no such table" in told


def test_a_calibration_that_is_not(swsdist, place: Path, tmp_path: Path) -> None:
    new = ("run", "config.yaml", "--set", f"run={tmp_path}/new", "--set", f"calibrate.fit={tmp_path}/gone.json")
    assert "[missing-file]" in swsdist(*new, cwd=place, code=2).err
    assert not (tmp_path / "new").exists()  # before any work
    shutil.copytree(place / "run", tmp_path / "run")
    own = ("run", "config.yaml", "--set", f"run={tmp_path}/run", "--set")
    told = swsdist(*own, f"calibrate.fit={tmp_path}/gone.json", cwd=place, code=2).err
    assert "[missing-file]" in told
    assert f"calibrate.fit: {tmp_path}/gone.json" in told
    told = swsdist(*own, f"calibrate.fit={place}/corpus", cwd=place, code=2).err
    assert f"calibrate.fit: {place}/corpus: " in told
    assert "[wrong-kind]" in told
    assert "name the folder of a finished run" in told
    (tmp_path / "wrong.json").write_text('{"schema": "something else"}')
    told = swsdist(*own, f"calibrate.fit={tmp_path}/wrong.json", cwd=place, code=2).err
    assert f"{tmp_path}/wrong.json: " in told
    assert "schema something else [not-fitted-steps]" in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("status", "corpus"), "[not-a-run]"),
        (("status", "corpus", "--follow"), "[not-a-run]"),
        (("cancel", "corpus"), "[not-a-run]"),
        (("clean", "corpus"), "[wrong-kind]"),
        (("digest", "corpus"), "[not-a-run]"),
        (("report", "corpus"), "[not-a-run]"),
        (("report", "gone"), "[not-a-run]"),
        (("store", "info", "corpus"), "there is no feature store here"),
        (("store", "check", "gone"), "there is no feature store here"),
        (("store", "rejected", "corpus"), "there is no feature store here"),
        (("store", "cat", "run/store", "nobody"), "[unknown-name]"),
        (("search", "corpus", "--query", "corpus/queries/q001_1.wav"), "there is no feature store here"),
        (("paper", "figure", "corpus/refs.csv", "x.pdf"), "[wrong-kind]"),
        (("paper", "table", "run/report.html", "x.md"), "[malformed-file]"),
        (("search", "run/store", "--query", "config.yaml"), "[not-audio]"),
        (("search", "run/store", "--query", "corpus/audio/d001.flac:3-2"), "[place-outside]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_broken_data(swsdist, place: Path, arguments: tuple[str, ...], complaint: str) -> None:
    told = swsdist(*arguments, cwd=place, code=3).err
    assert told.startswith("error: ")
    assert complaint in told
    assert "\n  remedy: " in told


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("search", "run/store"), "[missing-input]"),
        (("store", "import", "x", "gone", "--shift", "0.01", "--dimension", "3"), "there is no such file or folder"),
        (("store", "import", "x", "corpus", "--shift", "0.01", "--dimension", "3"), "no files of frames"),
        (("store", "import", "x", "corpus", "--shift", "never", "--dimension", "3"), "[invalid-value]"),
        (("corpus", "describe", "corpus/docs.csv"), "[invalid-yaml]"),
        (("paper", "figure", "gone.svg", "x.svg"), "there is no such file"),
        (("paper", "table", "gone.csv", "x.csv"), "there is no such file"),
        (("paper", "table", "corpus/refs.csv", "x.md", "--columns", "query"), "did you mean query_id?"),
        (("paper", "table", "corpus/refs.csv", "x.md", "--sort", "-begin"), "no column 'begin' [unknown-name]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_missing_to_go_on(swsdist, place: Path, arguments: tuple[str, ...], complaint: str) -> None:
    told = swsdist(*arguments, cwd=place, code=2).err
    assert complaint in told
    assert "\n  remedy: " in told


_LIST = ("-s", "run/exports/stdlist.xml", "--references", "corpus/refs.csv", "--seconds", "9")


@pytest.mark.parametrize(
    ("arguments", "complaint", "remedy"),
    [
        (
            ("report", "run", "--det", "d.eps"),
            "must end in .svg, .pdf, .png or .csv, not in .eps [unknown-name]",
            "or .csv",
        ),
        (
            ("report", "run", "--det", "d.tex"),
            "must end in .svg, .pdf, .png or .csv, not in .tex [unknown-name]",
            ".svg",
        ),
        (
            ("report", "run", "--table", "t.xlsx"),
            "must end in .csv, .tex, .md or .json, not in .xlsx [unknown-name]",
            "or .json",
        ),
        (
            ("paper", "figure", "a.svg", "a.eps"),
            "must end in .svg, .pdf or .png, not in .eps [unknown-name]",
            "ends in .svg",
        ),
        (
            ("paper", "table", "a.csv", "a.doc"),
            "must end in .csv, .tex, .md or .json, not in .doc [unknown-name]",
            "in .csv",
        ),
        (("report", "run", "--per-query", "t"), "not in nothing [unknown-name]", "ends in .csv"),
        (
            ("report", "run", "--histogram", "h.txt"),
            "must end in .svg, .pdf or .png, not in .txt [unknown-name]",
            "ends in .svg",
        ),
        (("report", "run", "--det", "no/such/det.svg"), "[output-refused]", "make it"),
        (("report", "run", "--det", "run"), "", "ends in .svg"),
        (
            ("score", *_LIST, "--det", "d.tex"),
            "must end in .svg, .pdf, .png, .csv or .det, not in .tex [unknown-name]",
            "ends in .svg, .pdf, .png, .csv or .det",
        ),
        (("score", *_LIST, "--per-term", "terms.xlsx"), "must end in .csv, .tex", ".csv"),
        (
            ("score", *_LIST, "--measures", "m.txt"),
            "must end in .csv, .tex, .md or .json, not in .txt [unknown-name]",
            ".csv",
        ),
        (("score", *_LIST, "--alignment", "terms"), "not in nothing [unknown-name]", "ends in .csv"),
        (("score", *_LIST, "-o", "no/such/table.txt"), "[output-refused]", "make it"),
        (("compare", "run", "--html", "page.pdf"), "must end in .html", "ends in .html"),
        (
            ("compare", "run", "--table", "t.doc"),
            "must end in .csv, .tex, .md or .json, not in .doc [unknown-name]",
            "ends in .csv",
        ),
        (
            ("compare", "run", "--forest", "f.md"),
            "must end in .svg, .pdf or .png, not in .md [unknown-name]",
            "ends in .svg",
        ),
        (("corpus", "describe", "config.yaml", "--table", "t.txt"), "must end in .csv, .tex", ".csv"),
        (("resources", "--audio", "9", "--table", "t.svg"), "must end in .csv, .tex", ".json"),
        (("search", "run", "--query", "q", "--table", "t.png"), "must end in .csv, .tex", ".json"),
        (("compare", "run", "--csv", "config.yaml"), "[output-refused]", "name another"),
        (("compare", "run", "--csv", "config.yaml/tables"), "[output-refused]", ""),
        (("calibrate", *_LIST, "--method", "none", "--out", "l.doc"), "[unknown-name]", ".xml"),
        (("calibrate", *_LIST, "--method", "none", "--out", "corpus"), "[output-refused]", "in it"),
        (("calibrate", *_LIST, "--method", "kst", "--out", "l.csv", "--save", "f.yaml"), "must end in .json", ".json"),
        (("fuse", *_LIST[1:], "--out", "l.doc"), "[unknown-name]", ".xml"),
        (("fuse", *_LIST[1:], "--out", "l.csv", "--save", "f.yaml"), "must end in .json", ".json"),
        (("init", "no/such/dir.yaml"), "[output-refused]", "make it"),
        (("init", "mine.json"), "must end in .yaml or .yml, not in .json [unknown-name]", "ends in .yaml"),
        (
            ("phones", "weights", "corpus/docs.csv", "--out", "p.txt"),
            "must end in .ctm or .mlf, not in .txt [unknown-name]",
            ".ctm",
        ),
        (("demo", "config.yaml"), "[output-refused]", "name another"),
        (("store", "cat", "run/store", "d001", "--npy", "d.txt"), "must end in .npy", ".npy"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_written(swsdist, place: Path, arguments: tuple[str, ...], complaint: str, remedy: str) -> None:
    """Before any work: another ending than is written, a folder that is not there, a file that is a folder."""
    before = set(place.iterdir())
    told = swsdist(*arguments, cwd=place, code=2).err
    assert told.startswith("error: ")
    assert complaint in told
    assert remedy in told.partition("\n  remedy: ")[2]
    assert set(place.iterdir()) == before


def test_a_file_that_is_not_ours_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root everything can be written, so the system's answer is made up."""
    from swsdist.cli import options as outputs

    monkeypatch.setattr(outputs.os, "access", lambda *_: False)
    for call in (
        lambda: outputs.check_place(f"{tmp_path}/x.svg"),
        lambda: outputs.FOLDER.convert(tmp_path, None, None),
    ):
        with raises(codes.OUTPUT_NOT_WRITABLE) as caught:
            call()
        assert caught.value.remedy


@pytest.mark.parametrize("command", ["compact", "refit", "check"])
def test_what_is_no_store_is_not_made(swsdist, tmp_path: Path, command: str) -> None:
    told = swsdist("store", command, "nowhere", cwd=tmp_path, code=3).err
    assert "there is no feature store here" in told
    assert not (tmp_path / "nowhere").exists()
