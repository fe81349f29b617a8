"""The operating point of a run: number of trials and weight of false alarms, of its protocol and its data."""

from __future__ import annotations

from typing import Any

from swsdist.chains.search.inputs import SearchInputs
from swsdist.pipeline.inputs import Inputs
from swsdist.score import beta, number_of_trials, protocol


def operating_point(inputs: Inputs) -> dict[str, Any]:
    """Trials and beta of this run's protocol, from its data where the protocol says so."""
    own, settings = inputs.own(SearchInputs), inputs.config.score
    rules = protocol(
        settings.protocol,
        beta=settings.beta,
        tolerance=settings.tolerance,
        trials_per_second=settings.trials_per_second,
    )
    true = own.references.num_rows if own.references is not None else 0
    return {
        "protocol": rules.name,
        "trials": number_of_trials(rules, own.seconds),
        "beta": beta(rules, own.seconds, true),
        "true": true,
    }
