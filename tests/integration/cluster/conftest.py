"""A cluster of a head and three workers on which faults are tried, one after the other, and the table of what came of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kept_receipts import receipts_in

import swsdist
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.task import Receipt
from swsdist.registry.entries import DistanceEntry, ExportEntry
from swsdist.registry.registries import DISTANCES, EXPORTS
from tests.support.cluster.faults import Fault, Table
from tests.support.cluster.hosts import Cluster, cluster
from tests.support.cluster.network import Host
from tests.support.journals import read_journals

SABOTEUR = Path(__file__).parents[1] / "saboteur"
#: The corpus in eight pieces, of which each takes its time when it is told to.
PIECES = ("features.name=saboteur", "search.distance=slow-cosine", "index.shards=64")
#: Of each fault, what ended the wait after it, and what the run came to.
ENDS = {
    "a host's network is cut": (
        "the task that it worked on was done elsewhere",
        "Ray takes the host for dead; the run goes on with the others",
    ),
    "a node cannot start a worker (swsdist is broken there)": ("a warning said so", "the others go on"),
    "a node comes late": ("it had started, and had done a task", "it is used"),
    "a node has another numpy": ("a warning named the node", "it is not used; the others go on"),
    "a node has another version of swsdist": ("a warning named the node", "it is not used; the others go on"),
    "a node is drained, and leaves": ("the task that it worked on was done", "its tasks go elsewhere; the run goes on"),
    "a node's disk is full (its TMPDIR)": (
        "two tasks had failed there, and a warning named the node",
        "tasks that fail there go elsewhere; the node rests for a minute",
    ),
    "a second driver, on another host": ("it was refused", "the first goes on"),
    "a task runs out of memory (MemoryError)": (
        "the run had ended, exit code 4",
        "tried again alone, then recorded as failed; after the fix, the next run completes it",
    ),
    "a worker host is killed": ("the run had ended", "the run goes on with the others"),
    "a worker's clock is an hour behind": (
        "the run had ended",
        "it is used as any other, its results too; spans between hosts in report and timeline are off by that hour",
    ),
    "a worker's process is killed": ("the run had ended", "the task is done again; each file is whole"),
    "the driver is killed": (
        "another host, which watched its lock for 60 s, had completed the run",
        "what was done is kept",
    ),
    "the driver's clock is an hour ahead": (
        "a second driver was refused",
        "it keeps its lock while it lives, and loses it when it is dead",
    ),
    "the head is killed": (
        "the driver had ended, exit code 2",
        "if the command is run again with a new head, the run goes on",
    ),
    "the network is healed": ("the host, on which Ray was started anew, had done a task", "it is used again"),
}


@pytest.fixture(scope="session")
def fault_table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """Is written at the end of the session, if FAULT_TABLE says where; no table with rows missing takes its place."""
    table = Table()
    yield table
    whole = not request.session.testsfailed and not request.config.option.keyword
    if table.rows and whole and os.environ.get("FAULT_TABLE"):
        table.write(Path(os.environ["FAULT_TABLE"]))


@pytest.fixture(scope="session")
def _hosts() -> Iterator[Cluster]:
    env = {**os.environ, "SABOTAGE": "", "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory(prefix="x-", dir="/tmp", ignore_cleanup_errors=True) as short:
        paths = [str(SABOTEUR), *filter(None, [os.environ.get("PYTHONPATH")])]
        env |= {"SABOTAGE": f"{short}/sabotage.json", "PYTHONPATH": os.pathsep.join(paths)}
        try:
            with cluster(3, Path(short), env) as made:
                yield made
        except UserError as error:
            if error.where != "hosts":
                raise
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def corpus_on_s3(_hosts: Cluster, small_corpus: Path) -> str:
    """The small corpus on the cluster's S3 server."""
    return _hosts.put(small_corpus, "corpus")


@dataclass
class OnCluster:
    """A run on the cluster, with its folder on S3."""

    hosts: Cluster
    #: Of this test, on the machine's disk: the config alone.
    folder: Path
    corpus: str
    #: The saboteur's.
    order: Path
    #: Digests of a serial run.
    undisturbed: dict[str, str]
    table: Table
    place: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    drivers: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def run(self) -> Folder:
        return Folder(f"{self.hosts.bucket}/{self.place}", self.hosts.storage)

    def sabotage(self, **values: Any) -> None:
        """Tell the saboteur; at once, since others read it meanwhile."""
        beside = self.order.with_suffix(".new")
        beside.write_text(json.dumps(values))
        beside.replace(self.order)

    def start(
        self, *sets: str, host: Host | None = None, env: dict[str, str] | None = None, flags: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """A driver on a host, the head's by default, of a search of the corpus's pieces."""
        tables = {"documents": "docs", "queries": "queries", "references": "refs"}
        config = self.folder / "config.yaml"
        values = {
            "run": self.run.root,
            "storage": self.hosts.storage,
            "report": {"clips": 0, "exports": ["csv"]},
            "corpus": {name: f"{self.corpus}/{table}.csv" for name, table in tables.items()},
        }
        config.write_text(json.dumps(values))  # JSON is YAML
        words = [sys.executable, "-m", "swsdist.cli.main", "run", str(config), *flags]
        for one in (*PIECES, *self.hosts.sets, *sets):
            words += ["--set", one]
        process = subprocess.Popen(
            (host or self.hosts.head).under(*words),
            env={**self.hosts.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.drivers.append(process)
        return process

    def end(self, process: subprocess.Popen[str], code: int = 0, seconds: float = 300.0) -> str:
        """Wait for a driver's end, of which the code is known; gives what it said."""
        _, err = process.communicate(timeout=seconds)
        assert process.returncode == code, err
        assert "Traceback" not in err
        return err

    def wait(
        self, what: Callable[[], Any], process: subprocess.Popen[str] | None = None, seconds: float = 240.0
    ) -> Any:
        """Wait until something is true; fail if the driver ends before that."""
        deadline = time.monotonic() + seconds
        while not (value := what()):
            assert process is None or process.poll() is None, f"the driver ended: {process.communicate()}"
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.1)
        return value

    def journals(self) -> list[list[Any]]:
        return read_journals(self.run)

    def at_work(self, stage: str) -> set[str]:
        """Names of hosts at work on a recording in a stage, by the saboteur's marks: a journal on S3 is ten seconds late."""
        marks = [mark.suffix[1:].split("@") for mark in self.order.parent.glob(f"{self.order.stem}.{stage}@*")]
        return {host for _, host, pid in marks if Path(f"/proc/{pid}").exists()}

    def told(self, begins: str) -> float:
        """When the driver first told something that begins so, by its clock."""
        return min(
            float(line["t"])
            for lines in self.journals()
            for line in lines
            if line["event"] == "note" and line["message"].startswith(begins)
        )

    def lost(self, host: Host) -> str | None:
        """Fingerprint of the task that the worker of a host had in hand when it died, as the driver's journal tells."""
        pids = {lines[0]["pid"] for lines in self.journals() if lines[0]["host"] == host.name}
        told = [line for lines in self.journals() for line in lines if line["event"] == "died" and line["pid"] in pids]
        return next((line["lost"][0] for line in told if line["lost"]), None)

    def node(self, host: Host) -> str:
        code = f"import json, ray; ray.init('{self.hosts.address}'); print('\\n' + json.dumps(ray.nodes()))"
        words = self.hosts.head.under(sys.executable, "-c", code)
        done = subprocess.run(words, env=self.hosts.env, capture_output=True, text=True, check=True, timeout=60)
        found = json.loads(done.stdout.splitlines()[-1])
        address = host.address
        return next(str(one["NodeID"]) for one in found if one["Alive"] and one["NodeManagerAddress"] == address)

    def receipts(self) -> dict[str, Receipt]:
        return {receipt.fingerprint: receipt for receipt in receipts_in(self.run)}

    def hosts_of(self, stage: str) -> set[str]:
        return {receipt.host for receipt in self.receipts().values() if receipt.stage == stage}

    def same(self) -> bool:
        return swsdist.digest(self.run.root, self.hosts.storage) == self.undisturbed

    def note(self, fault: str, when: str, seconds: float, until: str | None = None, same: bool | None = True) -> None:
        """Add a row to the table; `until`: if the wait ended otherwise than `ENDS` says."""
        usual, outcome = ENDS[fault]
        self.table.rows.append(Fault(fault, when, seconds, until or usual, outcome, same))


@pytest.fixture
def on_cluster(
    _hosts: Cluster, corpus_on_s3: str, tmp_path: Path, undisturbed: dict[str, str], fault_table: Table
) -> Iterator[OnCluster]:
    """A run on the cluster, all of whose hosts are up; dead ones are started anew."""
    for host in _hosts.network.hosts:
        host.heal()
    if not _hosts.head.has("raylet"):
        for host in _hosts.network.hosts:
            host.kill()
        _hosts.start_head()
    dead = [host for host in _hosts.workers if not host.has("raylet")]
    for host in dead:
        host.kill()
        host.disk = ""
    if dead:
        _hosts.start_workers(*dead)
    made = OnCluster(_hosts, tmp_path, corpus_on_s3, Path(_hosts.env["SABOTAGE"]), undisturbed, fault_table)
    # The saboteur is not installed in this process, which looks at runs that name it.
    DISTANCES.add("slow-cosine", DistanceEntry("swsdist.kernels.distances.cosine:plain", 1))
    EXPORTS.add("killed-csv", ExportEntry("swsdist.exports.lists:table", 1, rows=True))
    yield made
    EXPORTS.remove("killed-csv")
    DISTANCES.remove("slow-cosine")
    made.order.unlink(missing_ok=True)
    for process in made.drivers:
        if process.poll() is None:
            process.kill()
            process.communicate()
