"""Metrics of the workers, as Prometheus reads them from a node."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.ray
def test_a_node_s_metrics_port_tells_what_workers_have_done(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client", reason="Ray exports metrics with its extra `default` only")
    pytest.importorskip("opentelemetry.exporter.prometheus")
    secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
    for name, value in secret.items():
        monkeypatch.setenv(name, value)
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        port, metrics = one.getsockname()[1], other.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="m-", dir="/tmp", ignore_cleanup_errors=True) as short:
        log = Path(short) / "log"
        command = [sys.executable, "-c", "import sys; from ray.scripts.scripts import main; sys.exit(main())"]
        command += ["start", "--head", "--block", f"--port={port}", "--num-cpus=2", "--memory=8000000000"]
        command += ["--object-store-memory=80000000", "--include-dashboard=false", "--disable-usage-stats"]
        command += [f"--temp-dir={short}/ray", f"--metrics-export-port={metrics}"]
        with log.open("w") as said:
            env = {**scene.env, **secret, "TMPDIR": short, "RAY_metrics_report_interval_ms": "1000"}
            ray = subprocess.Popen(command, env=env, stdout=said, stderr=said, start_new_session=True)
        try:
            scene.wait(lambda: "Ray runtime started" in log.read_text(), ray)
            cluster = ("executor.kind=ray", f"executor.address=127.0.0.1:{port}", "executor.workers=2")
            scene.run("index.shards=4", *cluster)
            cells = sum(one.cost.cells for one in scene.all_receipts())

            def told() -> dict[tuple[str, str], float]:
                with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10) as page:
                    text = page.read().decode()
                found: dict[tuple[str, str], float] = {}
                for name, labels, value in re.findall(r"^ray_swsdist_(\w+)\{(.*)\} (\S+)$", text, re.M):
                    stage = re.search(r'stage="(\w+)"', labels)
                    key = name, stage[1] if stage else ""
                    found[key] = found.get(key, 0.0) + float(value)
                return found

            deadline = time.monotonic() + 240
            while told().get(("tasks_total", "search")) != 4 and time.monotonic() < deadline:
                time.sleep(0.5)
            found = told()
            assert found["tasks_total", "index"] == found["tasks_total", "search"] == 4
            assert found["cells_total", "search"] == cells
            seconds = sum(one.work for one in scene.all_receipts() if one.stage == "index")
            assert found["work_total", "index"] == pytest.approx(seconds)
            assert found["written_bytes_total", "index"] > 0
        finally:
            ray.send_signal(signal.SIGTERM)
            try:
                ray.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(ray.pid, signal.SIGKILL)
