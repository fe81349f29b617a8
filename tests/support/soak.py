"""A soak: random faults for as long as is wanted, and after each run its digest is compared with that of a serial run.

    python -m tests.support.soak --hours 1 --faults 100 --seed 1

A made-up corpus is indexed and searched on Ray, again and again, each time in a new run folder; now and then something is done
to it: the driver is killed, a worker is killed or stopped for some seconds, a file of results is lost, a receipt is cut off. A
driver that ended is started again until the run is done. With `--hosts`, which needs root, workers are on hosts of their own
(`tests.support.cluster`) with everything on an S3 server, and hosts die and their networks are cut, too.

What is done, when and to whom comes of the seed; what it meets depends on the machine. Each fault is a line on standard output;
the exit code is 1 if a digest differs, or if a run does not end.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click
import psutil

import swsdist
from swsdist.io.filesystem import Folder
from swsdist.testing.synthesis import make_corpus
from tests.support.cluster.hosts import Cluster, cluster
from tests.support.cluster.network import Host

#: Times that a driver is started for one run before the run is taken for stuck.
_STARTS = 30
#: Seconds between two faults, at least and at most: a driver takes some ten of them until its workers are up.
_PAUSE = 0.5, 18.0
_SETS = ("index.shards=64", "executor.workers=2", "executor.attempts=8", "executor.actor_restarts=1000")


def tables(corpus: str) -> dict[str, str]:
    """The section `corpus` of a config."""
    names = {"documents": "docs", "queries": "queries", "references": "refs"}
    return {name: f"{corpus}/{table}.csv" for name, table in names.items()}


@dataclass
class Soak:
    """What is done to runs, and what came of it.

    Attributes:
        folder: for configs, and for runs where there are no hosts.
        corpus: folder or url of its tables.
        hosts: a cluster; None for Ray on this machine.
        most: faults.
        until: on the monotonic clock.
        random: of the seed.
        done: faults by name.
        ended: drivers that ended by themselves, but not well, by exit code.
    """

    folder: Path
    corpus: str
    hosts: Cluster | None
    most: int
    until: float
    random: random.Random
    done: dict[str, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    driver: subprocess.Popen[bytes] | None = None

    @property
    def over(self) -> bool:
        """Whether no more faults are wanted."""
        return sum(self.done.values()) >= self.most or time.monotonic() > self.until

    def run(self, number: int) -> dict[str, str]:
        """A run to its end, with faults; its digests.

        Raises:
            TimeoutError: it does not end.
        """
        run = self._folder(f"run{number}")
        for _ in range(_STARTS):
            self.driver = self._start(run)
            while self.driver.poll() is None:
                self._rest()
                if self.driver.poll() is None and not self.over:
                    self._fault(run)
            code = self.driver.returncode
            if code == 0:
                return swsdist.digest(run.root, dict(run.storage))
            if code != -signal.SIGKILL:
                self.ended[code] = self.ended.get(code, 0) + 1
                print(f"{time.strftime('%H:%M:%S')} the driver ended with exit code {code}", flush=True)
        raise TimeoutError(f"{run.root} did not end in {_STARTS} starts: {self.folder / 'log'}")

    def _folder(self, name: str) -> Folder:
        if self.hosts is not None:
            return Folder(f"{self.hosts.bucket}/{name}", self.hosts.storage)
        return Folder(str(self.folder / name))

    def _start(self, run: Folder) -> subprocess.Popen[bytes]:
        config = self.folder / "config.yaml"
        values = {"run": run.root, "system": "soak", "corpus": tables(self.corpus), "storage": dict(run.storage)}
        config.write_text(json.dumps(values))
        words = [sys.executable, "-m", "swsdist.cli.main", "run", str(config)]
        for item in (*_SETS, *(self.hosts.sets if self.hosts is not None else ("executor.kind=ray",))):
            words += ["--set", item]
        env = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "AWS_"))}
        env |= self.hosts.env if self.hosts is not None else {}
        command = self.hosts.head.under(*words) if self.hosts is not None else words
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _rest(self) -> None:
        pause = self.random.uniform(*_PAUSE)
        assert self.driver is not None
        with suppress(subprocess.TimeoutExpired):
            self.driver.wait(pause)

    def _fault(self, run: Folder) -> None:
        faults: list[Callable[[Folder], bool]] = [self._kill_driver, self._kill_worker, self._stop_worker, self._lose]
        faults += [self._cut_receipt, *([self._kill_host, self._cut_network] if self.hosts is not None else [])]
        fault = self.random.choice(faults)
        while not fault(run):  # what it is done to is not there yet
            time.sleep(0.5)
            assert self.driver is not None
            if self.driver.poll() is not None:
                return
        name = fault.__name__.strip("_").replace("_", " ")
        self.done[name] = self.done.get(name, 0) + 1
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)

    def _kill_driver(self, run: Folder) -> bool:
        assert self.driver is not None
        found = [self.driver.pid]
        with suppress(psutil.Error):  # under `ip netns exec` it is the same process; under sh it may be a child
            found += [child.pid for child in psutil.Process(self.driver.pid).children()] if self.hosts else []
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.driver.wait()
        return True

    def _worker(self) -> int | None:
        """The process of an actor of ours."""
        found = []
        if self.hosts is not None:
            found = [pid for host in self.hosts.workers for pid in host.processes()]
        else:
            assert self.driver is not None
            with suppress(psutil.Error):
                found = [child.pid for child in psutil.Process(self.driver.pid).children(recursive=True)]
        actors = []
        for pid in sorted(found):
            with suppress(psutil.Error):
                if any("ray::Actor" in word for word in psutil.Process(pid).cmdline()):
                    actors.append(pid)
        return self.random.choice(actors) if actors else None

    def _kill_worker(self, run: Folder) -> bool:
        return self._signals(signal.SIGKILL)

    def _stop_worker(self, run: Folder) -> bool:
        return self._signals(signal.SIGSTOP, signal.SIGCONT)

    def _signals(self, first: signal.Signals, *later: signal.Signals) -> bool:
        """Send a worker signals, some seconds apart."""
        pid = self._worker()
        if pid is None:
            return False
        try:
            os.kill(pid, first)
            for number in later:
                time.sleep(self.random.uniform(0.5, 5.0))
                os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def _lose(self, run: Folder) -> bool:
        """A file of results, or of many receipts, is lost; it is noticed by the next start, so the driver is killed first."""
        return self._spoil(run, re.compile(r".*(tables|shards|receipts)/.*\.parquet"), run.remove)

    def _cut_receipt(self, run: Folder) -> bool:
        """That of one task; a damaged file of many is an error that asks to remove it."""

        def cut(name: str) -> None:
            with suppress(FileNotFoundError):  # packed before the driver died
                text = run.read_bytes(name)
                run.write_bytes(name, text[: len(text) // 2])

        return self._spoil(run, re.compile(r".*receipts/.*\.json"), cut)

    def _spoil(self, run: Folder, names: re.Pattern[str], do: Callable[[str], None]) -> bool:
        found = [name for name in run.listing() if names.fullmatch(name)]
        if not found:
            return False
        self._kill_driver(run)
        do(self.random.choice(found))
        return True

    def _host(self) -> Host:
        assert self.hosts is not None
        return self.random.choice(self.hosts.workers)

    def _kill_host(self, run: Folder) -> bool:
        host = self._host()
        host.kill()
        self._start_again(host)
        return True

    def _cut_network(self, run: Folder) -> bool:
        host = self._host()
        host.cut()
        time.sleep(self.random.uniform(0.5, 6.0))
        host.heal()
        time.sleep(3.0)
        if not host.has("raylet"):  # Ray took it for dead, and it ended itself
            self._start_again(host)
        return True

    def _start_again(self, host: Host) -> None:
        assert self.hosts is not None
        host.kill()
        self.hosts.start_workers(host)


@contextmanager
def _made(hosts: int, folder: Path) -> Iterator[tuple[str, Cluster | None, dict[str, str]]]:
    """Where the corpus is, the cluster, and the digests of a serial run."""
    make_corpus(folder / "corpus", documents=24, queries=3, voices=3)
    corpus = tables(str(folder / "corpus"))
    swsdist.run({"run": str(folder / "serial"), "system": "soak", "corpus": corpus, "executor": {"kind": "serial"}})
    digests = swsdist.digest(str(folder / "serial"))
    with ExitStack() as stack:
        if not hosts:
            yield str(folder / "corpus"), None, digests
            return
        made = stack.enter_context(cluster(hosts, folder / "h"))
        yield made.put(folder / "corpus", "corpus"), made, digests


@click.command()
@click.option("--hours", default=1.0, show_default=True, help="At most so long.")
@click.option("--faults", default=100, show_default=True, help="At most so many faults.")
@click.option("--seed", default=1, show_default=True, help="Of what is done, when and to whom.")
@click.option(
    "--hosts", default=0, show_default=True, help="Worker hosts, as namespaces (root); 0: Ray on this machine."
)
def main(hours: float, faults: int, seed: int, hosts: int) -> None:
    """Do random things to runs, and compare their digests with that of a serial run."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp", ignore_cleanup_errors=True) as short:
        folder = Path(short)
        with _made(hosts, folder) as (corpus, made, wanted):
            soak = Soak(folder, corpus, made, faults, began + 3600 * hours, random.Random(seed))
            runs = wrong = 0
            while not soak.over or not runs:
                wrong += soak.run(runs) != wanted
                runs += 1
    minutes = (time.monotonic() - began) / 60
    told = ", ".join(f"{count} x {name}" for name, count in sorted(soak.done.items())) or "none"
    ended = ", ".join(f"{count} x exit code {code}" for code, count in sorted(soak.ended.items())) or "none"
    print(f"drivers that gave up and were started again: {ended}")
    print(
        f"{sum(soak.done.values())} faults in {minutes:.1f} min ({told}); {runs} runs, {wrong} of them with other bytes"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
