"""A forecast as JSON; its schema is in docs/how-to/benchmark-a-cluster.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version

from swsdist.core.plain import plain
from swsdist.pipeline.forecast.forecast import Forecast

SCHEMA = "swsdist-forecast/1"


def as_json(told: Forecast) -> str:
    """All numbers; null where one is infinite."""
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "cluster": asdict(told.cluster),
        "hours": told.hours,
        "query_examples": told.queries,
        "took": None if told.took is None else dict(zip(("hours", "wall_s", "workers"), told.took, strict=True)),
        "wall_s": told.wall_s,
        "low_s": told.low_s,
        "high_s": told.high_s,
        "workers": told.run.workers,
        "node_hours": told.node_hours,
        "price": told.price,
        "efficiency": told.efficiency,
        "shares": {"driver": told.share("driver"), "ideal": told.share("ideal"), "waiting": told.share("waiting")},
        "task_s": told.seconds,
        "node_failures": told.run.failures,
        "lost_s": told.run.lost,
        "failed_tasks": told.run.failed,
        "second_attempts": told.run.again,
        "steps": [{**asdict(step), "waiting": step.waiting, "bound": step.bound} for step in told.steps],
    }
    return json.dumps(plain(values), indent=1, allow_nan=False)
