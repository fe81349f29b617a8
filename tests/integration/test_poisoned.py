"""Tasks that kill their process, raise, or find the user at fault: isolated, recorded, and tried again the next time."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import soundfile

from swsdist.core.codes import families
from swsdist.pipeline import driver
from tests.support.coded import says

on_ray = pytest.param("ray", marks=pytest.mark.ray)
SHARDS = ("features.name=saboteur", "index.shards=64", "executor.workers=2")


def samples(scene: Any, doc_id: str) -> int:
    """Length of a document, by which the saboteur knows it."""
    return int(soundfile.info(scene.corpus / "audio" / f"{doc_id}.flac").frames)


@pytest.mark.ray
def test_a_task_that_kills_its_process(scene: Any, cluster: Any, undisturbed: dict[str, str]) -> None:
    scene.sabotage(how="kill", samples=[samples(scene, "d003")])  # at once, while the answer before it is on its way
    first = scene.go(*cluster.sets, "executor.attempts=2", *SHARDS, flags=("--keep-going",))
    assert first.returncode == 4, first.stderr
    (row,) = scene.rejected()
    assert (row["kind"], row["reason"]) == ("task", "killed")
    assert "died 2 times" in row["message"]
    assert "FAILED shard 3 of 8" in first.stderr, "the progress says it at once"
    assert "died 2 times" in first.stderr.partition("error: ")[2], "and the last line says it again"
    report = scene.report()
    assert report["counts"]["documents"] == 7
    assert report["counts"]["rejected"] == 1
    # Of those in flight, the one at work was blamed each time, and no other.
    begun = [line["fingerprint"] for lines in scene.journals() for line in lines if line["event"] == "begin"]
    poisoned = row["id"].removeprefix("index-")
    assert begun.count(poisoned) == 2
    lost = [line["lost"] for lines in scene.journals() for line in lines if line["event"] == "died"]
    assert [names[0] for names in lost] == [poisoned] * 2
    # Mended, the next run does what failed, and what depends on it.
    before = scene.receipts()
    scene.order.unlink()
    second = scene.go(*SHARDS)
    assert second.returncode == 0, second.stderr
    assert scene.rejected() == []
    assert {k: v for k, v in before.items() if not k.startswith("export-")}.items() <= scene.receipts().items()
    now = scene.digest()
    assert {name: now[name] for name in ("documents", "features")} == {
        name: undisturbed[name] for name in ("documents", "features")
    }


@pytest.mark.ray
def test_a_process_that_dies_at_every_task(scene: Any, cluster: Any) -> None:
    lengths = [samples(scene, f"d{k:03d}") for k in range(1, 9)]
    scene.sabotage(how="kill", samples=lengths)
    done = scene.go(*cluster.sets, "executor.actor_restarts=1", *SHARDS)
    assert done.returncode == 3, done.stderr
    assert "none of the 8 documents could be used" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("where", "how", "reason", "attempts"),
    [
        pytest.param("serial", "bug", "bug", 1, marks=pytest.mark.slow),
        pytest.param("serial", "system", "io-error", 3, marks=pytest.mark.slow),
        pytest.param("cluster", "system", "io-error", 3, marks=pytest.mark.ray),
    ],
)
def test_a_task_that_raises(
    scene: Any, request: pytest.FixtureRequest, where: str, how: str, reason: str, attempts: int
) -> None:
    executor = request.getfixturevalue("cluster").sets if where == "cluster" else ("executor.kind=serial",)
    scene.sabotage(how=how, samples=[samples(scene, "d005")])
    done = scene.go(*executor, *SHARDS, flags=("--keep-going",))
    assert done.returncode == 4, done.stderr
    (row,) = scene.rejected()
    assert (row["kind"], row["reason"]) == ("task", reason)
    assert "sabotaged" in row["message"]
    assert scene.report()["counts"]["documents"] == 7
    errors = [line for lines in scene.journals() for line in lines if line["event"] == "error"]
    assert len(errors) == attempts
    assert all("saboteur.py" in line["traceback"] for line in errors), "the journal has the traceback"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["serial", on_ray])
def test_a_users_mistake_found_in_a_worker_ends_the_run(scene: Any, kind: str, ray_left: Any) -> None:
    scene.sabotage(how="user", samples=[samples(scene, "d005")])
    done = scene.go(f"executor.kind={kind}", *SHARDS)
    assert done.returncode == 2
    assert "sabotaged settings" in done.stderr
    assert "remedy: do not sabotage" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (scene.folder / "run" / "lock.json").exists()
    assert not ray_left.processes()


@pytest.mark.ray
def test_an_inexact_blas_in_a_worker_ends_the_run(scene: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    # Python runs this before anything else; only in Ray's workers it spoils the probe of the matrix product.
    (broken / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('default_worker' in word for word in sys.orig_argv):\n"
        "    import swsdist.methods.dtw.backends.cpu as module\n"
        "    from swsdist.core.errors import UserError\n"
        "    def probe(chosen):\n"
        "        raise UserError('not exact', where='BLAS probe', remedy='another BLAS')\n"
        "    module.probe = probe\n"
    )
    scene.env["PYTHONPATH"] += os.pathsep + str(broken)
    done = scene.go("executor.kind=ray", "executor.workers=2", "search.backend=blas")
    assert done.returncode == 2, done.stderr
    assert "BLAS probe: not exact" in done.stderr


@pytest.mark.slow
def test_no_cluster_at_the_address(scene: Any) -> None:
    done = scene.go("executor.kind=ray", "executor.address=127.0.0.1:1")
    assert done.returncode == 2, done.stderr
    assert says(done.stderr, families.NO_CLUSTER)


@pytest.mark.ray
def test_a_worker_that_fits_nowhere(scene: Any, cluster: Any) -> None:
    done = scene.go(*cluster.sets, "executor.memory_per_worker_gb=100000")
    assert done.returncode == 2, done.stderr
    assert says(done.stderr, families.NO_WORKER)


@pytest.mark.ray
@pytest.mark.parametrize("workers", [1, 99])
def test_workers_that_cannot_start(
    scene: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, str], workers: int
) -> None:
    """One node's disk is full: the others do the work. If all are, the run says why, and does not try for ever."""
    monkeypatch.delitem(sys.modules, "saboteur", raising=False)
    monkeypatch.syspath_prepend(Path(__file__).parent / "saboteur")
    saboteur = importlib.import_module("saboteur")
    monkeypatch.setattr(sys, "_is_driver", True, raising=False)
    monkeypatch.setenv("SABOTAGE", str(cluster.order))
    monkeypatch.setattr(driver, "Context", saboteur.Fussy)
    cluster.order.write_text(json.dumps({"how": "start", "workers": workers}))
    if workers > 1:
        with pytest.raises(OSError, match="No space left on device"):
            scene.run(*cluster.sets, "executor.workers=2", "index.shards=4")
        return
    result = scene.run(*cluster.sets, "executor.workers=2", "index.shards=4")
    assert cluster.order.with_suffix(".0").exists()
    assert result.outcome.failures == []
    assert scene.digest() == undisturbed
