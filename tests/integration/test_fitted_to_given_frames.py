"""Every fitted transform is fitted to frames of other programs, pinned, and used for queries and documents that come later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.config import config_from_dict
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection, prepare_chain_run
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.ledger import ONLY, Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import TRANSFORMS
from swsdist.store.reading import Store

#: By transform, the least options; others have their defaults.
OPTIONS: dict[str, dict[str, Any]] = {
    "gmm": {"components": 4, "iterations": 1},
    "phones": {"components": 4, "iterations": 1},
    "pca": {"columns": 3},
    "lda": {"columns": 1},
    "hlda": {"columns": 1},
    "correspondence": {"columns": 3, "frames": 1},
}
FITTED = [name for name in TRANSFORMS if hasattr(TRANSFORMS[name].load(), "rounds")]


def write(folder: Path, count: int) -> None:
    """Frames of documents and of a query, and labels of each document: two sounds take turns."""
    (folder / "frames").mkdir(exist_ok=True)
    names = [f"d{k}" for k in range(count)]
    for k, name in enumerate(names):
        rng = np.random.default_rng(k)
        sounds = np.repeat(np.eye(6)[:2], 10, axis=0)
        frames = np.tile(sounds, (20, 1)) + rng.normal(scale=0.3, size=(400, 6))
        np.save(folder / "frames" / f"{name}.npy", frames.astype(np.float32))
    np.save(folder / "frames" / "q-1.npy", frames[:30].astype(np.float32))
    (folder / "docs.csv").write_text("\n".join(["doc_id", *names, ""]))
    (folder / "queries.csv").write_text("query_id,example,duration\nq,1,0.3\n")
    labels = [f"d{d} 1 {k / 10:.1f} 0.1 {'ab'[k % 2]}" for d in range(5) for k in range(40)]
    (folder / "labels.ctm").write_text("\n".join([*labels, ""]))


@pytest.mark.parametrize(
    "name", [name if name in ("pca", "lda") else pytest.param(name, marks=pytest.mark.slow) for name in FITTED]
)
def test_models_of_given_frames(tmp_path: Path, name: str) -> None:
    write(tmp_path, 4)
    behind = [{"name": name, "options": OPTIONS.get(name, {})}]
    options = {"path": "frames", "shift": 0.01, "dimension": 6}
    config = config_from_dict(
        {
            "run": "run",
            "corpus": {"documents": "docs.csv", "queries": "queries.csv", "alignments": {"phones": "labels.ctm"}},
            "features": {"name": "external", "options": options, "transforms": behind},
            "executor": {"kind": "serial"},
        },
        tmp_path,
    )

    def index() -> tuple[Store, int]:
        outcome = run_stages(config, StepSelection(until="index"), Progress())
        assert not outcome.failures
        return outcome.chain_run.chain.inputs.store.open(), outcome.tasks_done  # type: ignore[attr-defined]

    chain = prepare_chain_run(ONLY, config, Ledger(Folder(config.run)), StepSelection()).chain
    assert chain.check is not None
    assert not [one for one in chain.check(chain.inputs) if one.good is False]
    before, done = index()
    (model,) = (file for key, file in before.manifest.models.items() if key.startswith(name))
    assert done > 2
    assert index()[1] == 0
    write(tmp_path, 5)
    after, done = index()
    assert done == 1
    assert model in after.manifest.models.values()
    assert np.array_equal(after.features("d0"), before.features("d0"))
    assert len(after.features("d4")) == 400
    assert not run_stages(config, StepSelection(until="reduce"), Progress()).failures
