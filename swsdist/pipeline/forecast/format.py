"""A forecast as JSON; its schema is in docs/how-to/benchmark-a-cluster.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

from swsdist.core.plain import plain
from swsdist.pipeline.forecast.forecast import Forecast

SCHEMA = "swsdist-forecast/1"


def as_json(forecast: Forecast, left_out: Sequence[str] = ()) -> str:
    """All numbers of a forecast, null for infinite ones, and what it lacks."""
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "cluster": asdict(forecast.cluster),
        "hours": forecast.hours,
        "query_examples": forecast.queries,
        "left_out": list(left_out),
        "took": None
        if forecast.took is None
        else dict(zip(("hours", "wall_s", "workers"), forecast.took, strict=True)),
        "wall_s": forecast.wall_s,
        "low_s": forecast.low_s,
        "high_s": forecast.high_s,
        "workers": forecast.run.workers,
        "node_hours": forecast.node_hours,
        "price": forecast.price,
        "efficiency": forecast.efficiency,
        "shares": {
            "driver": forecast.share("driver"),
            "ideal": forecast.share("ideal"),
            "waiting": forecast.share("waiting"),
        },
        "bound": forecast.run.total.bound,
        "task_s": forecast.seconds,
        "node_failures": forecast.run.failures,
        "lost_s": forecast.run.lost,
        "failed_tasks": forecast.run.failed,
        "second_attempts": forecast.run.again,
        "steps": [{**asdict(step), "waiting": step.waiting, "bound": step.bound} for step in forecast.steps],
    }
    return json.dumps(plain(values), indent=1, allow_nan=False)
