"""The version of a step of calibration, or of a statistic, is raised when its bytes change: held by constants.

The input is that of the conformance suite, made of integers alone; what follows are correctly rounded operations in a fixed
order, so the constants are the same everywhere. When this test fails and you meant to change the numbers, raise `version` of
the step (in its class, and in swsdist/registry/registries.py) and put what the message prints here; else you have found a bug
before it was one.
"""

from __future__ import annotations

import hashlib

import pytest

from swsdist.calibrate.procedure import make_steps
from swsdist.calibrate.statistics import to_table
from swsdist.calibrate.steps.norms import COHORT
from swsdist.registry.registries import CALIBRATION, STATISTICS
from swsdist.testing.conformance.calibration import POINT, cohort_for, kind_for, lists, statistics_of

#: Version, and digest of the scores it makes: with its statistics, and without where it can do without.
STEPS: dict[str, tuple[int, str]] = {
    "q-norm": (1, "c3ac4bee1451de7f0bedeb9f60416e37747687c96b0ea00ed29b3e18f5c80bf4"),
    "m-norm": (1, "a0caa3b3e1bd872208ea89f4c7a10ff4cab84bf905237d62efa8dd0c72b5c477"),
    "speaker-norm": (1, "0e9ebc0631f920b2969ac5e2661e2400c338f8ef5d6cbd9a98e9a248c84c7166"),
    "zt-norm": (1, "094561ace411f1a081a3d0eddffcee95343bc04f16277ff80da6da2660b64ec3"),
    "logistic": (1, "2d32afef75eca58b4c92baa26d2a044ce8b414688b694b99c3d20b6dc1d64c40"),
    "fusion": (2, "0e02d8ca1a8e47b78afca5d0fa939c8643d9cd5192c796d547074efae69142cb"),
    "power": (1, "9e67c541a3962c3e090f901351bdbaee1f13862d74f12dc694b44d6e245c8d61"),
    "llr": (2, "bdc49c925653213075b1ee10ad402b3d7cfcfeb2410934d5bbd2e1a65ac94fb2"),
    "at-prior": (1, "e9c55c0b03419150f10a60e1dbf7ec217f321c7bdd6a636cf09821f7790dfcb7"),
    "kst": (1, "30185cc6c6d7ec8fce54b1ab1089f43b7bbea394a4a055a6c9d5c879646b102f"),
    "sto": (1, "4f7815c0152b70874365d393f000d83ec4dde10fb3c36b61887ab8e881be05d6"),
}

#: The same of what it sums up.
SUMS: dict[str, tuple[int, str]] = {
    "cost-sums": (1, "9387abcb38d217579810723442bc12997ccc5ef28d3acfad0ea28f94ec663b88"),
    "speaker-cost-sums": (1, "1876930086cd8214582725a4159b4ed35dadf610874032a56f185802302451a7"),
    "score-histogram": (1, "f31da7a479ef2fce2f646a369b77375213c5160f3910990ba2294f5eb973d844"),
    "example-lengths": (1, "7a68eaea9b82fc72d9a0fa565894fae6e680e391b9658bcbd150afce85d86ceb"),
    "example-entropies": (1, "4c56b1ed02ec38fb2330c75bf9f8db1e0ff27985c5a4ca95aae735959e065ccf"),
    "example-speech": (1, "f8738b4048d84425a59824c48f9ccfa173327e3ed1b08c403b1476f573ab1927"),
    "posterior-sums": (1, "3cf68e064c7513cd667956110e77a63c849f18d2e94349ee46ad87d9b04f5f61"),
}


def digest_of_step(name: str) -> str:
    entry = CALIBRATION[name]
    tried = lists(kind_for(entry))
    (step,) = make_steps([name], {})
    fitted = step.fit([step.gather(tried.aligned, None, POINT)], POINT) if entry.fits else None
    statistics = statistics_of(tried, entry.statistics)
    if entry.cohort:
        statistics[COHORT] = cohort_for(tried)
    running = hashlib.sha256()
    for known in [statistics or None, *([None] if entry.statistics and not entry.first else [])]:
        running.update(step.apply(tried.detections, fitted, known, POINT).tobytes())
    return running.hexdigest()


def digest_of_sums(name: str) -> str:
    rows = to_table(statistics_of(lists("posterior"), [name])).to_pylist()
    return hashlib.sha256(str(sorted(str(sorted(row.items())) for row in rows)).encode()).hexdigest()


@pytest.mark.parametrize("name", list(CALIBRATION))
def test_step(name: str) -> None:
    found = CALIBRATION[name].version, digest_of_step(name)
    assert found == STEPS.get(name), f'"{name}": {found},'


@pytest.mark.parametrize("name", list(STATISTICS))
def test_statistic(name: str) -> None:
    found = STATISTICS[name].version, digest_of_sums(name)
    assert found == SUMS.get(name), f'"{name}": {found},'


def test_nothing_else_is_held() -> None:
    assert (list(STEPS), list(SUMS)) == (list(CALIBRATION), list(STATISTICS))
