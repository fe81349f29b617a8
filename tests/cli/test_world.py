"""What the world does to the command line: no room, no rights, no place. Never a traceback, nothing computed is lost."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

SWSDIST = f"{sys.executable} -m swsdist.cli.main"


def in_a_namespace(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount what it likes, seen by nobody else; `$SWSDIST` is the command."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("mounts of one's own cannot be had here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"set -u; SWSDIST='{SWSDIST}'; {script}"],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "mount:" not in done.stderr, done.stderr
    return done


def without_root_s_rights(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `swsdist` as one for whom rights to files count, root or not."""
    words = ['exec "$@"', "sh", *SWSDIST.split(), *arguments]
    if shutil.which("capsh") is None:
        pytest.skip("capsh is not here")
    drop = "--drop=cap_dac_override,cap_dac_read_search"
    done = subprocess.run(["capsh", drop, "--", "-c", *words], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def copy(place: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the finished run, and its config; only the report is of the other place."""
    copy = tmp_path / "place"
    shutil.copytree(place / "run", copy / "run")
    config = (place / "config.yaml").read_text().replace("corpus/", f"{place}/corpus/")
    (copy / "config.yaml").write_text(config)
    return copy


@pytest.mark.slow
def test_a_finished_run_on_a_read_only_mount(copy: Path, swsdist: Command) -> None:
    """There is nothing to do, so nothing is written. What has something to do says why it cannot."""
    swsdist("run", "config.yaml", cwd=copy)
    done = in_a_namespace(
        "mount --bind . . && mount -o remount,ro,bind . && cd $PWD/../place && "
        "$SWSDIST run config.yaml; echo rc $?; $SWSDIST run config.yaml --set reduce.nbest.least=3; echo rc $?",
        copy,
    )
    assert done.stdout.count("rc 0") == 1, done.stdout + done.stderr
    assert "nothing to do" in done.stdout
    assert done.stdout.rstrip().endswith("rc 2")
    assert "the file system is read-only" in done.stderr
    assert f"{copy}/run" in done.stderr
    assert "--run" in done.stderr


@pytest.mark.slow
def test_a_run_folder_that_is_not_ours(copy: Path, swsdist: Command) -> None:
    swsdist("run", "config.yaml", cwd=copy)
    try:
        for mode, more, code, told in (
            (0o555, [], 0, "nothing to do"),
            (0o555, ["--set", "reduce.nbest.least=3"], 2, "permission denied"),
            (0o000, [], 2, "permission denied"),
        ):
            (copy / "run").chmod(mode)
            done = without_root_s_rights("run", "config.yaml", *more, cwd=copy)
            assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stderr
    finally:
        (copy / "run").chmod(0o755)


def test_folders_that_are_closed(place: Path, tmp_path: Path) -> None:
    """One among the recordings is told and left out; so is what cannot be searched."""
    folder = tmp_path / "archive"
    closed, unsearchable = folder / "lost+found", folder / "names only"
    for path in (folder / "good", closed, unsearchable):
        path.mkdir(parents=True)
        shutil.copy(place / "corpus/audio/d001.flac", path)
    (tmp_path / "a.yaml").write_text(f"run: run\ncorpus:\n  documents: {folder}\nexecutor:\n  kind: serial\n")
    closed.chmod(0o000)
    unsearchable.chmod(0o444)
    try:
        done = without_root_s_rights("index", "a.yaml", cwd=tmp_path)
    finally:
        closed.chmod(0o755)
        unsearchable.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert "warning: 1 folder left out: they cannot be read (first: " in done.stderr
    assert "lost+found (Permission denied)); check their permissions [left-out]" in done.stderr
    assert "warning: 1 recording left out: unreadable, or a broken link (first: " in done.stderr
    assert "names only/" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("room", ["48k", "600k"])
def test_a_disk_that_is_full(copy: Path, process: Command, room: str) -> None:
    """At the first small files, and while the store is written: no results of a part, and the same digest with more room."""
    before = process("digest", "run", cwd=copy).out.strip()
    shutil.rmtree(copy / "run")
    done = in_a_namespace(
        f"mkdir run && mount -t tmpfs -o size={room} none run && cd $PWD && "
        "$SWSDIST run config.yaml --set executor.attempts=1 --set index.shards=4; echo rc $?; "
        "mount -o remount,size=100m run; $SWSDIST run config.yaml >/dev/null 2>&1; echo rc $?; "
        "ls run/failed; $SWSDIST digest run",
        copy,
    )
    first, _, then = done.stdout.partition("rc 2\n")
    assert then.startswith("rc 0\n"), done.stdout + done.stderr
    assert "MTWV" not in first
    assert "no space left" in done.stderr
    assert "df -h" in done.stderr
    assert then.split()[2:] == [before]  # and no file of a failure is left


def test_outputs_that_cannot_be_written(copy: Path) -> None:
    (copy / "closed").mkdir(mode=0o555)
    done = without_root_s_rights("init", "closed/x.yaml", cwd=copy)
    assert done.returncode == 2
    assert "[output-refused]" in done.stderr


def test_a_damaged_plan(copy: Path, swsdist: Command) -> None:
    plan = copy / "run" / "plan.json"
    whole = plan.read_bytes()
    for text in (b"", whole[: len(whole) // 2], b"[]", b"null", b"\xff\xfe", b"[" * 100_000):
        plan.write_bytes(text)
        assert "plan.json" in swsdist("status", "run", cwd=copy, code=3).err
    swsdist("run", "config.yaml", cwd=copy)
    assert swsdist("status", "run", cwd=copy).out.startswith("done")


@pytest.mark.slow
def test_a_config_that_is_nested_too_deeply(tmp_path: Path, swsdist: Command) -> None:
    (tmp_path / "deep.yaml").write_text("run: " + "[" * 20_000)
    err = swsdist("run", "deep.yaml", cwd=tmp_path, code=2).err
    assert "nested too deeply" in err
    assert len(err.splitlines()) < 10
    (tmp_path / "set.yaml").write_text("run: x\n")
    assert "nested too deeply" in swsdist("run", "set.yaml", "--set", "run=" + "[" * 5000, cwd=tmp_path, code=2).err


def test_status_of_a_stage_with_nothing_to_do(copy: Path, swsdist: Command) -> None:
    """All was in the store already when the run was planned."""
    plan = json.loads((copy / "run" / "plan.json").read_text())
    assert plan["plans"]["run"]["steps"]["index"]["planned"] in (0, 1)
    swsdist("index", "config.yaml", "--run", "second", "--set", f"index.store={copy}/run/store", cwd=copy)
    out = swsdist("status", "second", cwd=copy).out
    assert "nothing to do" in out
    assert "0 of 0" not in out


def test_a_store_of_another_schema_says_what_helps(copy: Path, swsdist: Command) -> None:
    manifest = copy / "run" / "store" / "manifest.json"
    values = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**values, "schema": "swsdist-store/1"}))
    err = swsdist("index", "config.yaml", cwd=copy, code=3).err
    assert f"remove {copy}/run/store" in err
    shutil.rmtree(copy / "run" / "store")
    swsdist("index", "config.yaml", cwd=copy)
