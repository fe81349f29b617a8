"""The operating point of a run: number of trials and weight of false alarms, of its protocol and its data."""

from __future__ import annotations

from typing import Any

from swsdist.pipeline.state import State
from swsdist.score import beta, number_of_trials, protocol


def operating_point(state: State) -> dict[str, Any]:
    """Trials and beta of this run's protocol, from its data where the protocol says so."""
    settings = state.config.score
    rules = protocol(
        settings.protocol,
        beta=settings.beta,
        tolerance=settings.tolerance,
        trials_per_second=settings.trials_per_second,
    )
    true = state.references.num_rows if state.references is not None else 0
    return {
        "protocol": rules.name,
        "trials": number_of_trials(rules, state.seconds),
        "beta": beta(rules, state.seconds, true),
        "true": true,
    }
