"""The version of a step of calibration, or of a statistic, is raised when its bytes change: held by constants.

The input is that of the conformance suite, made of integers alone; what follows are correctly rounded operations in a fixed
order, so the constants are the same everywhere. When this test fails and you meant to change the numbers, raise `version` of
the step (in its class, and in swsdist/registries.py) and put what the message prints here; else you have found a bug before
it was one.
"""

from __future__ import annotations

import hashlib

import pytest

from swsdist.calibrate.procedure import make_steps
from swsdist.calibrate.statistics import made, to_table
from swsdist.registries import CALIBRATION, STATISTICS
from swsdist.testing.conformance.calibration import POINT, kind_for, lists

#: Version, and digest of the scores it makes: with its statistics, and without where it can do without.
STEPS: dict[str, tuple[int, str]] = {
    "q-norm": (1, "c3ac4bee1451de7f0bedeb9f60416e37747687c96b0ea00ed29b3e18f5c80bf4"),
    "logistic": (1, "2d32afef75eca58b4c92baa26d2a044ce8b414688b694b99c3d20b6dc1d64c40"),
    "fusion": (1, "32aacc2e3eb857a3bc337957c6702f51e247a1f13194eabfb3e52e7c072ed492"),
    "kst": (1, "30185cc6c6d7ec8fce54b1ab1089f43b7bbea394a4a055a6c9d5c879646b102f"),
    "sto": (1, "4f7815c0152b70874365d393f000d83ec4dde10fb3c36b61887ab8e881be05d6"),
}

#: The same of what it sums up.
SUMS: dict[str, tuple[int, str]] = {
    "cost-sums": (1, "9387abcb38d217579810723442bc12997ccc5ef28d3acfad0ea28f94ec663b88"),
    "posterior-sums": (1, "3cf68e064c7513cd667956110e77a63c849f18d2e94349ee46ad87d9b04f5f61"),
}


def digest_of_step(name: str) -> str:
    entry = CALIBRATION[name]
    tried = lists(kind_for(entry))
    (step,) = make_steps([name], {})
    fitted = step.fit([step.gather(tried.aligned)]) if entry.fits else None
    statistics = {name: each.of(tried.candidates) for name, each in made(entry.statistics).items()}
    running = hashlib.sha256()
    for known in [statistics or None, *([None] if entry.statistics and not entry.first else [])]:
        running.update(step.apply(tried.detections, fitted, known, POINT).tobytes())
    return running.hexdigest()


def digest_of_sums(name: str) -> str:
    (statistic,) = made([name]).values()
    rows = to_table({name: statistic.of(lists("posterior").candidates)}).to_pylist()
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
