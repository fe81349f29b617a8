"""The scripts of deploy/: those for Slurm and ssh are run, with hosts that are this machine."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.testing.synthesis import make_corpus
from tools.markdown_pages import ROOT, run

DEPLOY = ROOT / "deploy"

#: Stand for Slurm's own: every node is this machine.
SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
if [ "$1" = hostname ]; then echo 127.0.0.1; else exec "$@"; fi
"""
SCONTROL = """#!/usr/bin/env bash
printf 'node1\\nnode2\\n'
"""
#: Stands for ssh: every host is this machine, in a session of its own, with its own idea of the home folder.
SSH = """#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift 2; done
echo "$@" >> "$SSH_CALLS"
stat -c %a /tmp/sws-ssh-"$(id -u)"-* >> "$SSH_CALLS.modes" 2>/dev/null
[ "$1" != gone ] || { echo "ssh: Could not resolve hostname gone" >&2; exit 255; }
shift
exec setsid --wait "$@"
"""


def _steps(job: str) -> list[int]:
    """Processes of Ray's nodes of a job."""
    return [p.pid for p in psutil.process_iter(["cmdline"]) if f"sws-{job}" in " ".join(p.info["cmdline"] or ())]


def _end_steps(job: str) -> None:
    """What Slurm does when a job has ended: its steps, here Ray's nodes, do not outlive it."""
    for group in {os.getpgid(pid) for pid in _steps(job)} - {os.getpgrp()}:
        os.killpg(group, signal.SIGKILL)


CONFIG = "run: run\ncorpus: {documents: corpus/docs.csv, queries: corpus/queries.csv}\nindex: {shards: 4}\n"


def _with_tools(tmp_path: Path, **tools: str) -> dict[str, str]:
    """An environment in which these shell scripts, and those that stand for Slurm and ssh, are found first."""
    (tmp_path / "tools").mkdir()
    for name, text in {"srun": SRUN, "scontrol": SCONTROL, "ssh": SSH, **tools}.items():
        (tmp_path / "tools" / name).write_text(text)
        (tmp_path / "tools" / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": os.pathsep.join([f"{tmp_path}/tools", str(Path(sys.executable).parent), os.environ["PATH"]]),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SSH_CALLS": str(tmp_path / "calls"),
    }


def _as_serially(tmp_path: Path, *sets: str) -> None:
    """The run has the bytes of a serial one, and two workers have done tasks."""
    local = swsdist.run(tmp_path / "config.yaml", sets=["executor.kind=serial", f"run={tmp_path / 'local'}", *sets])
    assert swsdist.digest(str(tmp_path / "run"))["all"] == swsdist.digest(local.folder)["all"]
    journals = pq.read_table(tmp_path / "run/accounts.parquet", columns=["journal", "role", "event"]).to_pylist()
    ended = {one["journal"] for one in journals if (one["role"], one["event"]) == ("worker", "end")}
    assert len(ended) == 2


@pytest.mark.ray
def test_slurm(tmp_path: Path) -> None:
    make_corpus(tmp_path / "corpus", documents=8, queries=2)
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    job = str(random.randrange(10**6, 10**7))
    environment = _with_tools(tmp_path) | {"SLURM_JOB_ID": job, "SLURM_SUBMIT_DIR": str(tmp_path)}
    environment |= {"SLURM_CPUS_PER_TASK": "1", "SLURM_MEM_PER_NODE": "4000"}
    command = ["bash", str(DEPLOY / "slurm/swsdist.sbatch"), "run", str(config), "--set", "executor.workers=2"]
    try:
        # Slurm sends the script a signal before its time is over.
        with (tmp_path / "first.log").open("w") as log:
            options = {"stdout": log, "stderr": log, "start_new_session": True}
            first = subprocess.Popen(command, cwd=tmp_path, env=environment, **options)
            while first.poll() is None and not (tmp_path / "run/lock.json").exists():
                time.sleep(0.1)
            modes = [oct(folder.stat().st_mode & 0o777) for folder in Path("/tmp").glob(f"sws-{job}*")]
            assert modes == ["0o700", "0o700"], "a folder a node, which nobody else may enter"
            first.terminate()
            assert first.wait(240) == 143, (tmp_path / "first.log").read_text()
        assert not (tmp_path / "run/lock.json").exists(), "the driver came to an end before its Ray"
        assert not list(Path("/tmp").glob(f"sws-{job}*"))
        _end_steps(job)
        code, said = run(command, tmp_path, environment, 300)
    finally:
        _end_steps(job)
    logs = "\n".join(log.read_text() for log in tmp_path.glob("ray-*.log"))
    assert code == 0, f"{said}\n{logs}"
    assert len(list(tmp_path.glob(f"ray-{job}-node*.log"))) == 2
    _as_serially(tmp_path)
    assert not list(Path("/tmp").glob(f"sws-{job}*")), "Ray's folders are removed"


@pytest.mark.slow
@pytest.mark.parametrize("script", ["slurm/swsdist.sbatch", "ssh/swsdist-on-hosts"])
def test_no_ray_is_started_in_a_folder_that_is_there(tmp_path: Path, script: str) -> None:
    """Somebody else has made it. Names of folders are chosen by `mktemp`."""
    chosen, started = f"#!/bin/sh\necho {tmp_path}/guessed\n", f"#!/bin/sh\ntouch {tmp_path}/started\n"
    environment = _with_tools(tmp_path, mktemp=chosen, ray=started)
    (tmp_path / "hosts").write_text("one 127.0.0.1\n")
    (tmp_path / "guessed-0").mkdir()
    hosts = ["hosts"] if script.startswith("ssh") else []
    code, said = run(["bash", str(DEPLOY / script), *hosts, "run", "config.yaml"], tmp_path, environment, 60)
    assert code == 1
    assert "File exists" in said
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
def test_slurm_waits_for_its_nodes_no_longer_than_it_says(tmp_path: Path) -> None:
    """Here it says 2 s, and no node ever comes: Ray itself would try for minutes."""
    text = (DEPLOY / "slurm/swsdist.sbatch").read_text()
    assert text.count("300 ") == 2
    (tmp_path / "script").write_text(text.replace("300 ", "2 "))
    environment = _with_tools(tmp_path, ray="#!/bin/sh\nexec sleep 200\n")
    code, said = run(["bash", "script", "run", "config.yaml"], tmp_path, environment, 60)
    assert (code, said.splitlines()[-1]) == (1, "not all of 2 Ray nodes came up within 2 s; see ray-*.log")


@pytest.mark.parametrize("gpus", [None, "2"])
def test_slurm_hands_out_the_gpus_of_the_job_and_no_others(tmp_path: Path, gpus: str | None) -> None:
    seen = f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n'
    both = f'#!/bin/sh\nuntil [ "$(wc -l < {tmp_path}/calls)" -eq 2 ]; do sleep 0.02; done\nexit 1\n'
    environment = _with_tools(tmp_path, ray=seen, timeout=both)
    environment |= {"SLURM_GPUS_ON_NODE": gpus} if gpus else {}
    code, said = run(["bash", str(DEPLOY / "slurm/swsdist.sbatch"), "run", "config.yaml"], tmp_path, environment, 60)
    assert code == 1, said
    starts = (tmp_path / "calls").read_text().splitlines()
    assert len(starts) == 2
    assert all(f" --num-gpus={gpus or 0} " in start for start in starts)


def test_the_slurm_script_has_its_options_where_slurm_reads_them() -> None:
    """Before the first command."""
    script = DEPLOY / "slurm/swsdist.sbatch"
    subprocess.run(["bash", "-n", str(script)], check=True)
    head = script.read_text().split("set -euo pipefail")[0]
    assert all(line.startswith("#") for line in head.splitlines() if line)
    assert re.search(r"^#SBATCH --ntasks-per-node=1$", head, re.M)


def _on_hosts(tmp_path: Path, hosts: str, *options: str) -> tuple[int, str]:
    """Run the script for hosts that ssh reaches, in a folder with a corpus and a config."""
    make_corpus(tmp_path / "corpus", documents=8, queries=2)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "hosts").write_text(hosts)
    environment = {name: value for name, value in _with_tools(tmp_path).items() if not name.startswith("RAY_")}
    environment |= {"SWSDIST_PORT": str(random.randrange(20000, 30000))}
    environment |= {"SWSDIST_RAY": "--num-cpus=1 --memory=4000000000"}
    command = ["bash", str(DEPLOY / "ssh/swsdist-on-hosts"), "hosts", "run", "config.yaml", *options]
    code, said = run(command, tmp_path, environment, 300)
    calls = (tmp_path / "calls").read_text()
    assert all(line.endswith(" bash -s") for line in calls.splitlines()), "nothing secret is in a command line"
    assert {*(tmp_path / "calls.modes").read_text().split()} == {"700"}, "nobody else may enter"
    return code, said


def _left_by_ssh() -> list[str]:
    """Folders of the script, and processes that have one in their command line."""
    mine = f"sws-ssh-{os.getuid()}-"
    processes = [p for p in psutil.process_iter(["cmdline"]) if mine in " ".join(p.info["cmdline"] or ())]
    return [*(str(path) for path in Path("/tmp").glob(f"{mine}*")), *(str(p.info["cmdline"]) for p in processes)]


@pytest.mark.ray
def test_hosts_by_ssh(tmp_path: Path) -> None:
    hosts = "# host, address\none 127.0.0.1\n\ntwo\n"
    code, said = _on_hosts(tmp_path, hosts, "--set", "executor.workers=2", "--set", "system=two words")
    assert code == 0, said
    calls = [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()]
    assert calls == ["one", "two", "one", "one", "two"], "up, up, run, down, down"
    _as_serially(tmp_path, "system=two words")
    assert _left_by_ssh() == []


@pytest.mark.ray
def test_a_host_that_is_gone(tmp_path: Path) -> None:
    """It is named, and what was started on the others is ended."""
    code, said = _on_hosts(tmp_path, "one 127.0.0.1\ngone\n")
    assert code == 1
    assert "error: Ray did not start on gone" in said
    assert "warning: gone could not be cleaned up" in said
    assert not (tmp_path / "run").exists()
    assert _left_by_ssh() == []


def test_the_script_says_how_it_is_called(tmp_path: Path) -> None:
    script = str(DEPLOY / "ssh/swsdist-on-hosts")
    subprocess.run(["bash", "-n", script], check=True)
    (tmp_path / "hosts").write_text("# none\n")
    for words, error in (([], ""), ([f"{tmp_path}/hosts", "run", "c.yaml"], "error: ")):
        done = subprocess.run(["bash", script, *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.startswith(error)) == (2, True)
