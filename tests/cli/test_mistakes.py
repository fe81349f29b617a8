"""Mistakes: the exit code, and a message that says what, where and what to do. No traceback for what is not our bug."""

import re
import shutil
from pathlib import Path

import pytest
from commands import untold

from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.glossary.project import Project
from tests.support.coded import raises, says


def test_a_command_that_is_not(swsdist) -> None:
    for typed, meant in (("serch", "; did you mean search?"), ("indx", "; did you mean index?"), ("xyzzy", " [")):
        told = swsdist(typed, code=2).err
        assert says(told, families.UNKNOWN_NAME)
        assert f"unknown command '{typed}'{meant}" in told
        assert "init, check, run, " in told


def test_usage(swsdist, tmp_path: Path) -> None:
    typed = """run, run gone.yaml, run --nonsense, search, store chek x, store cat x, store import x y, corpus describe,
        corpus describe gone.yaml, status, cancel, clean, sweep, sweep gone.yaml, bench, bench gone.yaml,
        bench --compare gone gone, forecast, forecast . --hours 0"""
    told = {words: swsdist(*words.split(), cwd=tmp_path, code=2).err for words in re.split(r",\s+", typed)}
    assert [words for words, err in told.items() if "Usage: " not in err or "Error: " not in err] == []


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


def test_config(swsdist, place: Path, tmp_path: Path) -> None:
    pca = "features: {transforms: [{name: pca, options: {%s}}]}\n"
    base = (place / "config.yaml").read_text().replace("corpus/", f"{place}/corpus/")
    path = tmp_path / "config.yaml"
    for text, parts in {
        "serch: {}\n": (f"{path}:10", "serch: unknown key; did you mean search?", "[unknown-key]"),
        "features: {name: mfc}\n": ("unknown feature extractor 'mfc'; did you mean mfcc?", "use one of: "),
        pca % "components: 5000": ("pca.options.components: ", "its options: hours"),
        pca % "columns: 0": ("pca.options.columns: ", "of pca"),
    }.items():
        path.write_text(base + text)
        told = swsdist("index", path, code=2).err
        assert [part for part in parts if part not in told] == [], text


def test_set(swsdist, place: Path) -> None:
    asked = "search run/store --query corpus/queries/q001_1.wav --set "
    cases = {
        "run config.yaml --set search.lanes=0": "search.lanes",
        f"{asked}search.distanse=cosine": "search.distanse",
    }
    assert untold(swsdist, cases, place) == {}


def test_a_secret_on_the_command_line(swsdist, place: Path) -> None:
    for name in (
        "storage.secret=HUSHHUSH",
        "storage.client_kwargs.aws_session_token=HUSHHUSH",
        'storage={"key": "HUSHHUSH"}',
    ):
        done = swsdist("run", "config.yaml", "--set", name, cwd=place, code=2)
        assert "every user of the machine" in done.err
        assert "HUSH" not in done.err + done.out


def test_stages(swsdist, place: Path, tmp_path: Path) -> None:
    told = swsdist("run", "config.yaml", "--only", "serach", cwd=place, code=2).err
    assert says(told, families.UNKNOWN_NAME)
    assert "index, queries, search" in told
    early = {f"run config.yaml --only search --set run={tmp_path}/new": "[not-finished] .. index"}
    assert untold(swsdist, early, place) == {}


def test_tables(swsdist, place: Path, tmp_path: Path) -> None:
    """A broken table is exit code 3, and names the file and the row; one that is not there is the user's mistake."""
    (tmp_path / "docs.csv").write_text("doc_id,path\nd1,a.wav\nd1,b.wav\n")
    index = f"index config.yaml --set run={tmp_path}/run --set corpus.documents={tmp_path}"
    assert untold(swsdist, {f"{index}/docs.csv": f"{tmp_path}/docs.csv .. d1"}, place, code=3) == {}
    gone = f"{tmp_path}/gone.csv: there is no such table"
    assert untold(swsdist, {f"{index}/gone.csv": gone}, place) == {}


def test_a_calibration_that_is_not(swsdist, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    (tmp_path / "wrong.json").write_text('{"schema": "something else"}')
    fit = f"run config.yaml --set run={tmp_path}/run --set calibrate.fit="
    cases = {
        fit.replace("/run ", "/new ") + "gone.json": "[missing-file]",
        f"{fit}{tmp_path}/gone.json": f"calibrate.fit: {tmp_path}/gone.json .. [missing-file]",
        f"{fit}{place}/corpus": f"calibrate.fit: {place}/corpus:  .. [wrong-kind]",
        f"{fit}{tmp_path}/wrong.json": f"{tmp_path}/wrong.json:  .. something else [not-fitted-steps]",
    }
    assert untold(swsdist, cases, place) == {}
    assert not (tmp_path / "new").exists()  # before any work


def test_broken_data(swsdist, place: Path) -> None:
    cases = {
        **dict.fromkeys(("status corpus", "status corpus --follow", "cancel corpus", "digest corpus"), "[not-a-run]"),
        **dict.fromkeys(("report corpus", "report gone"), "[not-a-run]"),
        "clean corpus": "[wrong-kind]",
        **dict.fromkeys(("store info corpus", "store check gone", "store rejected corpus"), "no feature store here"),
        "store cat run/store nobody": "[unknown-name]",
        "search corpus --query corpus/queries/q001_1.wav": "no feature store here",
        "paper figure corpus/refs.csv x.pdf": "[wrong-kind]",
        "paper table run/report.html x.md": "[malformed-file]",
        "search run/store --query config.yaml": "[not-audio]",
        "search run/store --query corpus/audio/d001.flac:3-2": "[place-outside]",
    }
    assert untold(swsdist, cases, place, code=3) == {}


def test_what_is_missing_to_go_on(swsdist, place: Path) -> None:
    cases = {
        "search run/store": "[missing-input]",
        "store import x gone --shift 0.01 --dimension 3": "there is no such file or folder",
        "store import x corpus --shift 0.01 --dimension 3": "no files of frames",
        "store import x corpus --shift never --dimension 3": "[invalid-value]",
        "corpus describe corpus/docs.csv": "[invalid-yaml]",
        "paper figure gone.svg x.svg": "there is no such file",
        "paper table gone.csv x.csv": "there is no such file",
        "paper table corpus/refs.csv x.md --columns query": "did you mean query_id?",
        "paper table corpus/refs.csv x.md --sort -begin": "no column 'begin' [unknown-name]",
    }
    assert untold(swsdist, cases, place) == {}


_LIST = "run/exports/stdlist.xml --references corpus/refs.csv --seconds 9"


def test_what_cannot_be_written(swsdist, place: Path) -> None:
    """Before any work: another ending than is written, a folder that is not there, a file that is a folder."""
    before = set(place.iterdir())
    cases = {
        "report run --det d.eps": ".svg, .pdf, .png or .csv, not in .eps [unknown-name]",
        "paper figure a.svg a.eps": ".svg, .pdf or .png, not in .eps [unknown-name]",
        "report run --per-query t": "not in nothing [unknown-name] .. ends in .csv",
        "report run --histogram h.txt": ".svg, .pdf or .png, not in .txt [unknown-name]",
        "report run --det no/such/det.svg": "[output-refused] .. make it",
        f"score -s {_LIST} --det d.tex": ".svg, .pdf, .png, .csv or .det, not in .tex [unknown-name]",
        f"score -s {_LIST} --alignment terms": "not in nothing [unknown-name]",
        f"score -s {_LIST} -o no/such/table.txt": "[output-refused] .. make it",
        "compare run --html page.pdf": "must end in .html",
        "compare run --forest f.md": ".svg, .pdf or .png, not in .md [unknown-name]",
        "search run --query q --table t.png": "must end in .csv, .tex",
        "compare run --csv config.yaml": "[output-refused] .. name another",
        "compare run --csv config.yaml/tables": "[output-refused]",
        f"calibrate -s {_LIST} --method none --out l.doc": "[unknown-name] .. .xml",
        f"calibrate -s {_LIST} --method none --out corpus": "[output-refused] .. in it",
        f"fuse {_LIST} --out l.csv --save f.yaml": "must end in .json",
        "init no/such/dir.yaml": "[output-refused] .. make it",
        "init mine.json": "must end in .yaml or .yml, not in .json [unknown-name]",
        "phones weights corpus/docs.csv --out p.txt": "must end in .ctm or .mlf, not in .txt [unknown-name]",
        "demo config.yaml": "[output-refused] .. name another",
        "store cat run/store d001 --npy d.txt": "must end in .npy",
    }
    assert untold(swsdist, cases, place) == {}
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


def test_what_is_no_store_is_not_made(swsdist, tmp_path: Path) -> None:
    cases = dict.fromkeys((f"store {name} nowhere" for name in ("compact", "refit", "check")), "no feature store here")
    assert untold(swsdist, cases, tmp_path, code=3) == {}
    assert not (tmp_path / "nowhere").exists()
