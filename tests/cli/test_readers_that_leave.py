"""Whoever reads what a command prints may leave, as `head` does: its work is done all the same, with the exit code of that."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import swsdist as package
from swsdist.cli import main
from swsdist.core.errors import SwsdistError
from swsdist.glossary.project import Project
from swsdist.io.filesystem import Folder
from swsdist.pipeline.lock import locked
from swsdist.registry.registries import COMMANDS

LISTS = "--references refs.csv --seconds 600"
NEW = "--set run=new --set report.clips=1 --set report.exports=[csv]"

#: A line a command, in a folder with a config, a finished run, lists and frames.
QUICK = f"""\
run config.yaml
search run --query query.wav --html hits.html
score -s list.csv {LISTS} --per-query queries.csv
calibrate -s list.csv {LISTS} --method kst --out kst.csv --save kst.json
fuse list.csv other.csv {LISTS} --out fused.csv --save fused.json
compare a=run b=run --out compared
resources run
report run --table table.csv
forecast run
paper table list.csv --out list.tex
corpus describe config.yaml --out described
store import imported frames --shift 0.01 --dimension 39 --length 0.032
store check run/store
store check broken
store compact run/store
store refit run/store
store cat run/store d001 --npy d001.npy
store rejected run
clean run --older 0
cancel run
digest run --tables
status run
check config.yaml
init new.yaml
explain
help
score-discovery classes.txt --phones phones.txt
glossary list words
glossary export words csv --out words-csv""".splitlines()
SLOW = f"""\
discover config.yaml {NEW} --set chain=discover
run config.yaml {NEW} --strict --set corpus.documents=more.csv
run config.yaml {NEW} --events -
index config.yaml {NEW}
search config.yaml {NEW}
reduce config.yaml {NEW}
score config.yaml {NEW}
export config.yaml {NEW} --set export.formats=[csv]
sweep sweep.yaml
bench config.yaml --workers 1 --times 1 --repeats 1 --folder bench
demo made --documents 4 --queries 2 --executor serial""".splitlines()
#: Not here: `doctor` starts Ray,
#: `align`, `phones` and `transcribe` want a recogniser, and `serve` runs until it is ended.
ELSEWHERE = {"align", "doctor", "phones", "serve", "transcribe"}


@pytest.fixture
def work(place: Path, tmp_path: Path) -> Path:
    """What each command finds."""
    folder = tmp_path / "work"
    folder.mkdir()
    corpus = place / "corpus"
    (folder / "config.yaml").write_text((place / "config.yaml").read_text().replace("corpus/", f"{corpus}/"))
    points = "points: {grid: {calibrate.alpha: [0.5, 1]}}\nmeasures: [atwv]\n"
    (folder / "sweep.yaml").write_text(f"config: config.yaml\nrun: swept\n{points}")
    shutil.copytree(place / "run", folder / "run")
    shutil.copytree(place / "run/store", folder / "broken")
    next((folder / "broken/shards").glob("part-????????????????????????????????.parquet")).write_bytes(b"broken")
    shutil.copy(corpus / "queries/q001_1.wav", folder / "query.wav")
    docs = (corpus / "docs.csv").read_text().replace("audio/", f"{corpus}/audio/")
    (folder / "more.csv").write_text(f"{docs}gone,gone.wav,1.0,voice1\n")
    (folder / "refs.csv").write_text("query_id,doc_id,start,end\nq1,d1,1.0,1.5\nq1,d2,2.0,2.5\nq2,d1,1.0,1.5\n")
    for name, scores in (("list", (0.9, 0.4, 0.3)), ("other", (0.5, 0.6, 0.1))):
        rows = zip(("q1,d1,1.0,1.5", "q1,d3,1.0,1.5", "q2,d1,1.0,1.5"), scores, strict=True)
        lines = ["query_id,doc_id,start,end,score", *(f"{row},{score}" for row, score in rows), ""]
        (folder / f"{name}.csv").write_text("\n".join(lines))
    (folder / "phones.txt").write_text("d1 0.0 0.1 a\nd1 0.1 0.2 b\n")
    (folder / "classes.txt").write_text("Class 1\nd1 0.0 0.2\n\n")
    with Project.open(folder / "words") as project:
        project.add_entry(person="Ann", form="word")
    (folder / "frames").mkdir()
    np.save(folder / "frames/d1.npy", np.random.default_rng(0).normal(size=(300, 39)).astype(np.float32))
    return folder


def ended(typed: str, folder: Path, is_read: bool = True) -> int:
    """Exit code of a command, of which somebody reads what it prints and says, or nobody."""
    threads, streams = [], []
    for _ in range(2):
        reading, writing = os.pipe()
        streams.append(os.fdopen(writing, "w", encoding="utf-8"))
        if is_read:
            threads.append(threading.Thread(target=lambda number=reading: os.fdopen(number).read()))
            threads[-1].start()
        else:
            os.close(reading)
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(sys, "argv", ["swsdist", *typed.split()])
        patch.chdir(folder)
        for stream in streams:
            stack.callback(stream.close)
        stack.enter_context(contextlib.redirect_stdout(streams[0]))
        stack.enter_context(contextlib.redirect_stderr(streams[1]))
        code = main._run()
    for thread in threads:
        thread.join()
    return code


def made(folder: Path) -> tuple[list[str], dict[str, dict[str, str]]]:
    """What lies in a folder: names, but for what time and chance have put into them, and digests of the runs that are done."""
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    digests = {}
    for run in {Path(name).parent for name in files if name.endswith("plan.json")}:
        with contextlib.suppress(SwsdistError):
            digests[str(run)] = package.digest(str(folder / run))
    return sorted(re.sub(r"(?<=/events/).+|[0-9a-f]{32}", "*", name) for name in files), digests


@pytest.mark.parametrize("typed", [*QUICK, *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)])
def test_the_work_is_done(work: Path, typed: str) -> None:
    """Nobody reads from the start on."""
    kept = work.with_name("kept")
    shutil.copytree(work, kept)
    undisturbed = ended(typed, work), made(work)
    shutil.rmtree(work)
    shutil.copytree(kept, work)
    assert (ended(typed, work, is_read=False), made(work)) == undisturbed


def test_all_commands_are_held_to_it() -> None:
    assert {one.split()[0] for one in (*QUICK, *SLOW)} | ELSEWHERE == set(COMMANDS.available)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "| head -1"])
def test_in_a_shell(work: Path, closed: str) -> None:
    """Also where a stream is closed from the start."""
    command = f"'{sys.executable}' -m swsdist.cli.main run config.yaml --set run=new --events -"
    typed = ["bash", "-c", f"{command} {closed}; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(typed, cwd=work, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
    assert json.loads((work / "new/status.json").read_text())["state"] == "done"


def test_events_to_a_pipe_whose_reader_leaves(work: Path) -> None:
    os.mkfifo(work / "pipe")
    reader = threading.Thread(target=lambda: (work / "pipe").open().close())
    reader.start()
    assert ended(f"run config.yaml {NEW} --events pipe", work) == 0
    reader.join()
    assert json.loads((work / "new/status.json").read_text())["state"] == "done"


def test_nobody_is_followed_for_nobody(work: Path) -> None:
    """A run that goes on for ever, as far as one can see."""
    run = work / "run"
    with locked(Folder(str(run))):
        told = {"token": json.loads((run / "lock.json").read_text())["token"], "state": "running", "t": time.time()}
        (run / "status.json").write_text(json.dumps(json.loads((run / "status.json").read_text()) | told))
        assert ended("status run --follow --every 0.1", work, is_read=False) == 0
