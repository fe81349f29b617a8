"""The scripts of deploy/: the Slurm one is run, with a Slurm that is two nodes on this machine; the others are well formed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from markdown_pages import ROOT, run
from ruamel.yaml import YAML

import swsdist
from swsdist.testing.synthesis import make_corpus

DEPLOY = ROOT / "deploy"

#: Stand for Slurm's own: every node is this machine.
SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
if [ "$1" = hostname ]; then echo 127.0.0.1; else exec "$@"; fi
"""
SCONTROL = """#!/usr/bin/env bash
printf 'node1\\nnode2\\n'
"""


def _end_steps(job: str) -> None:
    """What Slurm does when a job has ended: its steps, here Ray's nodes, do not outlive it."""
    with_name = [p.pid for p in psutil.process_iter(["cmdline"]) if f"sws-{job}" in " ".join(p.info["cmdline"] or ())]
    for group in {os.getpgid(pid) for pid in with_name} - {os.getpgrp()}:
        os.killpg(group, signal.SIGKILL)


@pytest.mark.ray
def test_slurm(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    make_corpus(tmp_path / "corpus", documents=8, queries=2)
    config = tmp_path / "config.yaml"
    config.write_text(
        "run: run\ncorpus: {documents: corpus/docs.csv, queries: corpus/queries.csv}\nindex: {shards: 4}\n"
    )
    job = str(random.randrange(10**6, 10**7))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "SLURM_JOB_ID": job,
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_MEM_PER_NODE": "4000",
        "SLURM_SUBMIT_DIR": str(tmp_path),
    }
    command = ["bash", str(DEPLOY / "slurm/swsdist.sbatch"), str(config), "--set", "executor.workers=2"]
    try:
        code, said = run(command, tmp_path, environment, 300)
    finally:
        _end_steps(job)
    logs = "\n".join(log.read_text() for log in tmp_path.glob("ray-*.log"))
    assert code == 0, f"{said}\n{logs}"
    assert len(list(tmp_path.glob(f"ray-{job}-node*.log"))) == 2

    local = swsdist.run(config, sets=["executor.kind=serial", f"run={tmp_path / 'local'}"])
    assert swsdist.digest(str(tmp_path / "run"))["all"] == swsdist.digest(local.folder)["all"]
    workers = set(pq.read_table(tmp_path / "run/accounts.parquet", columns=["journal"])["journal"].to_pylist())
    assert len(workers) == 3, "a driver and two workers"
    assert not Path(f"/tmp/sws-{job}").exists(), "Ray's folder is removed"


def test_the_slurm_script_has_its_options_where_slurm_reads_them() -> None:
    """Before the first command."""
    script = DEPLOY / "slurm/swsdist.sbatch"
    subprocess.run(["bash", "-n", str(script)], check=True)
    head = script.read_text().split("set -euo pipefail")[0]
    assert all(line.startswith("#") for line in head.splitlines() if line)
    assert re.search(r"^#SBATCH --ntasks-per-node=1$", head, re.M)


def test_kubernetes() -> None:
    job = YAML(typ="safe").load((DEPLOY / "kubernetes/rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["entrypoint"].startswith("swsdist run /config/config.yaml")
    cluster = job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    worker = cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
    assert head["containers"][0]["image"] == worker["image"] == f"registry.example.org/swsdist:{swsdist.__version__}"
    assert {mount["name"] for mount in head["containers"][0]["volumeMounts"]} == {v["name"] for v in head["volumes"]}


def test_dockerfile() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.*) \S+$", text, re.M):
        for name in line.split():
            assert (ROOT / name).exists(), name
    assert 'ENTRYPOINT ["swsdist"]' in text
