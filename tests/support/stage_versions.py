"""Golden digests of stages: a stage whose bytes change has its version raised."""

from __future__ import annotations

from collections.abc import Mapping

from swsdist.pipeline.chain_run import Outcome


def demand_golden(outcome: Outcome, name: str, digest: str, golden: Mapping[str, tuple[int, str]]) -> None:
    """Compare a step's version, and the digest of what it made, with the golden ones."""
    (stage,) = (step.stage for step in outcome.chain_run.steps if step.name == name)
    ours = stage.version, digest
    assert ours == golden[name], (
        f'if you meant it, raise the version of the stage, and put this into GOLDEN: "{name}": {ours},'
    )
