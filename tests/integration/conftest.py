"""A small corpus, and drivers in processes of their own that can be killed."""

from __future__ import annotations

import csv
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from commands import Ended, in_this_process
from kept_receipts import receipts_in

import swsdist
from swsdist.chains.report.reporting import FINAL
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.pipeline.status import digests
from swsdist.pipeline.task import Receipt
from swsdist.store.reading import Store, combined
from swsdist.testing.synthesis import make_corpus
from tests.support.journals import read_journals

HERE = Path(__file__).parent
TABLES = {"documents": "docs", "queries": "queries", "references": "refs"}
SHARED = HERE.parents[1].parent / "shared"


def _heed_interrupts() -> None:
    """Also where the tests run in the background of a script, which ignores SIGINT, and all below it with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Scene:
    """A folder with a config, and what can be done with it. Runs have neither sound nor many exports, which take time."""

    folder: Path
    #: Tables and audio.
    corpus: Path
    #: Of the drivers; SABOTAGE in it names a file that does not exist yet.
    env: dict[str, str]
    #: What the config says besides, or instead.
    base: dict[str, Any] = field(default_factory=dict)
    #: The stage at which runs in this process end, and digests with them, where no later one is what a test is about.
    until: str | None = None
    chain_runs: dict[str, ChainRun] = field(default_factory=dict, repr=False)

    @property
    def config(self) -> Path:
        """The config file; it says serial."""
        path = self.folder / "config.yaml"
        if not path.exists():
            corpus = {name: str(self.corpus / f"{table}.csv") for name, table in TABLES.items()}
            small = {"executor": {"kind": "serial"}, "report": {"clips": 0, "exports": ["csv"]}}
            values = {"run": str(self.folder / "run"), "corpus": corpus, **small, **self.base}
            path.write_text(json.dumps(values))  # JSON is YAML
        return path

    def store(self, run: str = "run", name: str = "store") -> Store:
        """A run's store: of its documents, or of its `queries`."""
        return Store(Folder(str(self.folder / run / name)))

    @property
    def order(self) -> Path:
        return Path(self.env["SABOTAGE"])

    def sabotage(self, **values: Any) -> None:
        """Tell it, all at once."""
        written = self.order.with_suffix(".new")
        written.write_text(json.dumps(values))
        written.replace(self.order)

    def select(self, *numbers: int) -> None:
        """Let the corpus, which must be this scene's own, be these documents; other rows wait in `<table>.all.csv`."""
        wanted = {f"d{k:03d}" for k in numbers}
        for table in ("docs", "refs"):
            path, whole = self.corpus / f"{table}.csv", self.corpus / f"{table}.all.csv"
            if not whole.exists():
                path.rename(whole)
            with whole.open(newline="") as source, path.open("w", newline="") as target:
                rows = csv.DictReader(source)
                writer = csv.DictWriter(target, rows.fieldnames or [])
                writer.writeheader()
                writer.writerows(row for row in rows if row["doc_id"] in wanted)

    def run(
        self,
        *sets: str,
        run: str = "run",
        until: str | None = None,
        selection: StepSelection | None = None,
        **keywords: Any,
    ) -> Any:
        """In this process; as far as `until` says, or the scene, and with "" to the end."""
        selection, last = selection or StepSelection(), self.until if until is None else until
        if last and not (selection.until or selection.only):
            selection = replace(selection, until=last)
        result = swsdist.run(self.config, sets=[f"run={self._place(run)}", *sets], selection=selection, **keywords)
        self.chain_runs[run] = result.outcome.chain_run
        return result

    def _place(self, run: str) -> str:
        return run if "://" in run else str(self.folder / run)

    def start(
        self,
        *sets: str,
        run: str = "run",
        command: str = "run",
        flags: tuple[str, ...] = (),
        under: tuple[str, ...] = (),
    ) -> Any:
        """A driver process, in a process group of its own; `under` another command if need be."""
        return subprocess.Popen(
            [*under, sys.executable, "-m", "swsdist.cli.main", *self._words(sets, run, command, flags)],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        )

    def _words(self, sets: tuple[str, ...], run: str, command: str, flags: tuple[str, ...]) -> list[str]:
        given = [word for one in (f"run={self._place(run)}", *sets) for word in ("--set", one)]
        return [command, str(self.config), *flags, *given]

    def here(self, *sets: str, run: str = "run", command: str = "run", flags: tuple[str, ...] = ()) -> Ended:
        """A driver's command in this process, where what it says and its exit code are the point, and the process is not."""
        return in_this_process(*self._words(sets, run, command, flags))

    def go(self, *sets: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
        process = self.start(*sets, **keywords)
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def digest(self, run: str = "run", storage: dict[str, Any] | None = None) -> dict[str, str]:
        """Of all tables, or of those that are made until the scene's last stage."""
        return _digests(self.chain_runs[run], self.until) if self.until else swsdist.digest(self._place(run), storage)

    def reported(self, run: str = "run") -> bool:
        """Whether the report's digest, which is of the end of the way only, is of the tables that are there."""
        digests = self.digest(run)
        return bool(self.report(run)["digest"] == combined({name: digests[name] for name in FINAL if name in digests}))

    def report(self, run: str = "run") -> dict[str, Any]:
        return dict(json.loads((self.folder / run / "report.json").read_text()))

    def receipts(self, run: str = "run") -> dict[str, float]:
        """All receipts by stage and fingerprint, with the time at which each task ended."""
        return {f"{one.stage}-{one.fingerprint}": one.finished for one in self.all_receipts(run)}

    def all_receipts(self, run: str = "run") -> list[Receipt]:
        """Of a run and its store."""
        return receipts_in(Folder(str(self.folder / run)))

    def rejected(self, run: str = "run") -> list[dict[str, Any]]:
        """Rows of rejected.parquet, which comes with the report; before that, what will be in it."""
        if self.until:
            return list(self.chain_runs[run].rejected().to_pylist())
        return list(pq.read_table(self.folder / run / "rejected.parquet").to_pylist())

    def journals(self, run: str = "run") -> list[list[dict[str, Any]]]:
        return read_journals(Folder(str(self.folder / run)))

    def move_to_s3(self, s3: Any, storage: dict[str, Any]) -> None:
        """Let its corpus be a copy on a server, and its runs, too, with these options for s3fs; `base["run"]` says where."""
        place = f"s3://{s3.bucket}/{uuid.uuid4().hex[:8]}"
        target = Folder(f"{place}/corpus", s3.storage)
        for path in sorted(self.corpus.rglob("*")):
            if path.is_file():
                target.write_bytes(path.relative_to(self.corpus).as_posix(), path.read_bytes())
        self.base = {
            "corpus": {name: f"{place}/corpus/{table}.csv" for name, table in TABLES.items()},
            "run": f"{place}/run",
            "storage": storage,
        }

    def wait(self, what: Callable[[], Any], process: Any = None, seconds: float = 240.0) -> Any:
        """Wait until something is true; fail if the driver ends before that."""
        deadline = time.monotonic() + seconds
        while not (value := what()):
            assert process is None or process.poll() is None, f"the driver ended: {process.communicate()}"
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.01)
        return value


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder, documents=8, queries=3, voices=3)
    return folder


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Environment of drivers: with the saboteur installed, a temporary folder of their own, and no cluster near."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "AWS_"))}
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as short:
        path = os.pathsep.join([str(HERE / "saboteur"), *filter(None, [env.get("PYTHONPATH")])])
        own = {"PYTHONPATH": path, "SABOTAGE": str(tmp_path / "sabotage.json"), "TMPDIR": short}
        yield {**env, **own}


def _digests(chain_run: ChainRun, until: str) -> dict[str, str]:
    """Of the tables of a stage and of those before it."""
    names = [step.name for step in chain_run.chain.steps]
    there = names[: names.index(until) + 1]
    return digests(replace(chain_run, outcomes={k: one for k, one in chain_run.outcomes.items() if k in there}))


@pytest.fixture
def until(request: pytest.FixtureRequest) -> str | None:
    """What the test's mark of that name says, or its module's."""
    mark = request.node.get_closest_marker("until")
    return mark.args[0] if mark else None


@pytest.fixture(scope="session")
def new_scene() -> type[Scene]:
    return Scene


@pytest.fixture
def scene(tmp_path: Path, small_corpus: Path, env: dict[str, str], until: str | None) -> Scene:
    """The small corpus, read only."""
    return Scene(tmp_path, small_corpus, env, until=until)


@pytest.fixture
def own_corpus(tmp_path: Path, small_corpus: Path, env: dict[str, str], until: str | None) -> Scene:
    """A copy of the small corpus, to be changed."""
    corpus = tmp_path / "corpus"
    shutil.copytree(small_corpus, corpus)
    return Scene(tmp_path, corpus, env, until=until)


@pytest.fixture(scope="session")
def _finished(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A serial run of the small corpus that nothing happened to; to be read only."""
    scene = Scene(tmp_path_factory.mktemp("undisturbed"), small_corpus, {})
    scene.run()
    return scene


@pytest.fixture
def undisturbed(_finished: Scene, until: str | None) -> dict[str, str]:
    """Digests of a serial run of the small corpus that nothing happened to; of as many tables as the scene's."""
    return _digests(_finished.chain_runs["run"], until) if until else _finished.digest()


@pytest.fixture
def finished(scene: Scene, _finished: Scene) -> Scene:
    """The scene with a copy of that run in its folder, times of changes included: as after `scene.run()`."""
    shutil.copytree(_finished.folder / "run", scene.folder / "run")  # with copy2
    return scene


@pytest.fixture(scope="session")
def tiny() -> Path:
    """Sixty real sentences of Mboshi and twelve queries."""
    folder = SHARED / "data" / "mboshi" / "tiny"
    if not folder.is_dir():
        pytest.skip("the shared corpus is not beside the checkout")
    return folder


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster of one node that serves all tests of a session that are not about starting Ray."""

    #: Of a config, to use it.
    sets: tuple[str, str]
    #: What its drivers need in their environment: another cluster's driver that errs is not let in.
    secret: dict[str, str]
    #: What the saboteur is told by tests on this cluster, whose workers do not have a driver's environment.
    order: Path


def _end_with_parent() -> None:
    """Let this process be terminated when its parent dies, however that dies; Ray (`--block`) then ends its others."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def ray_head(place: Path, address: str, env: dict[str, str], *options: str) -> Iterator[None]:
    """A head of Ray at an address, with its files in a folder whose path is short; in the end all its processes are ended."""
    log = place / "log"
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--temp-dir={place}/ray"]
    command += [f"--port={address.split(':')[1]}", "--object-store-memory=80000000", *options]
    command += ["--include-dashboard=false", "--disable-usage-stats"]
    with log.open("w") as said:
        own = {"env": env, "start_new_session": True, "preexec_fn": _end_with_parent}
        process = subprocess.Popen(command, stdout=said, stderr=said, **own)
    try:
        deadline = time.monotonic() + 180
        while "Ray runtime started" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        for left in RayLeft(place).processes():
            if left.pid != os.getpid():  # this one was a driver
                with suppress(psutil.Error):
                    left.kill()
        process.wait(timeout=60)


@pytest.fixture(scope="session")
def new_ray_head() -> Any:
    """`ray_head` for tests with a cluster of their own."""
    return ray_head


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="c-", dir="/tmp", ignore_cleanup_errors=True) as short:
        address, order = free_address(), Path(short) / "sabotage.json"
        env = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "AWS_"))}
        path = os.pathsep.join([str(HERE / "saboteur"), *filter(None, [env.get("PYTHONPATH")])])
        secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
        env |= {**secret, "PYTHONPATH": path, "SABOTAGE": str(order), "TMPDIR": short}
        with ray_head(Path(short), address, env, "--num-cpus=2", "--memory=8000000000"):
            yield Cluster(("executor.kind=ray", f"executor.address={address}"), secret, order)


@pytest.fixture
def cluster(_cluster: Cluster, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The session's Ray cluster, for this test and the drivers that it starts."""
    env |= {"SABOTAGE": str(_cluster.order), **_cluster.secret}
    for name, value in _cluster.secret.items():
        monkeypatch.setenv(name, value)
    yield _cluster
    _cluster.order.unlink(missing_ok=True)


@dataclass
class RayLeft:
    """Private instances of Ray that this test's drivers made, found by where they keep their files."""

    place: Path

    def folders(self) -> list[str]:
        return [path.name for path in self.place.glob("sws-ray-*")]

    def processes(self) -> list[psutil.Process]:
        """Their processes: each holds a file of its instance open, or names it."""
        found = []
        for process in psutil.process_iter():
            try:
                words = [*process.cmdline(), *(file.path for file in process.open_files())]
                if any(str(self.place) in word for word in words) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue  # gone meanwhile, or another user's
        return found


@pytest.fixture
def ray_left(env: dict[str, str]) -> Iterator[RayLeft]:
    """To see what is left of Ray; what is left in the end is ended."""
    ours = RayLeft(Path(env["TMPDIR"]))
    yield ours
    for process in ours.processes():
        process.kill()
