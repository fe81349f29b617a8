"""A sweep over lists that anybody made: each system's probabilities are read and aligned once, and scored at every point.

The keys of such points are those of a config that a list depends on: `calibrate.steps` (its last is kst or sto),
`calibrate.alpha`, and `score.beta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from swsdist.calibrate.points.rescoring import Rescoring
from swsdist.calibrate.points.study import Entry
from swsdist.calibrate.thresholding import ALPHA, Method
from swsdist.chains.search.inputs.provenance import calibration_place
from swsdist.chains.sweep.planning import RESCORED, Point, told
from swsdist.chains.sweep.points import Keys
from swsdist.chains.sweep.reading import Given
from swsdist.chains.sweep.running import PointResult, values_by_query
from swsdist.config.suggest import closest, shown
from swsdist.errors import ConfigError
from swsdist.evaluation.reading import protocol_for
from swsdist.evaluation.study import entries
from swsdist.fingerprint import fingerprint
from swsdist.io.notices import Notices
from swsdist.score.measures.protocol import Protocol
from swsdist.score.parts.evaluating import measure_names

_KEYS = ("calibrate.steps", "calibrate.alpha", "score.beta")


@dataclass(frozen=True)
class _Wanted:
    """A point of a list: which method, alpha, and beta if it is not the task's."""

    method: Method
    alpha: float
    beta: float | None


def sweep_lists(given: Given, notices: Notices) -> tuple[list[PointResult], list[Entry], list[float]]:
    """Read all lists, and score them at all points: system by system.

    Args:
        given: a sweep with lists.
        notices: takes what is odd.

    Returns:
        Results of all points; the systems, by which they may be studied; and the values of alpha, ascending.

    Raises:
        ConfigError: a point has a key that no list depends on, or a measure takes more than decisions.
        UserError: files are missing, or a list has no hits or no false alarms to learn from.
        DataError: a file is broken.
    """
    assert given.file.lists is not None
    if others := sorted(set(measure_names(given.file.measures)) - set(RESCORED)):
        raise ConfigError(
            f"a sweep over lists gives {', '.join(RESCORED)}, and {others[0]} is asked for",
            where=given.at("measures"),
            remedy=f"set measures: [{', '.join(RESCORED)}]",
        )
    wanted = [_wanted(given, number, keys) for number, keys in enumerate(given.points, 1)]
    fit = given.file.lists.fit
    if fit not in (None, "none", "crossfit", "oracle"):
        fit = calibration_place(str(fit), {}, given.at("lists", "fit"))
    lists = given.file.lists
    systems = entries(lists, fit=fit, folds=lists.folds, notices=notices)
    rules = {name: protocol_for(lists.protocol, task.terms, beta=lists.beta) for name, task in lists.tasks.items()}
    results: list[PointResult] = []
    for one in systems:
        results += _scored(given, one, rules[one.task], wanted, len(results), len(systems) > 1)
    return results, systems, sorted({at.alpha for at in wanted})


def _wanted(given: Given, number: int, keys: Keys) -> _Wanted:
    every = {**given.file.set, **keys}
    for key in every:
        if key not in _KEYS:
            guess = closest(key, _KEYS)
            raise ConfigError(
                f"no list depends on {key}" + (f"; did you mean {guess}?" if guess else ""),
                where=given.where(number, key),
                remedy=f"keys of points over lists are {', '.join(_KEYS)}; others are of a config",
            )
    steps = every.get("calibrate.steps")
    last = steps[-1] if isinstance(steps, list | tuple) and steps else steps
    if last not in ("kst", "sto"):
        raise ConfigError(
            f"calibrate.steps is {shown(steps)}",
            where=given.where(number, "calibrate.steps"),
            remedy="give steps that end in kst or sto, such as [kst], in points or in set",
        )
    numbers = {}
    for key, default in (("calibrate.alpha", ALPHA), ("score.beta", None)):
        value = every.get(key, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
            raise ConfigError(
                f"{key} is {shown(value)}", where=given.where(number, key), remedy="give a number above 0"
            )
        numbers[key] = value
    alpha, beta = numbers["calibrate.alpha"], numbers["score.beta"]
    assert alpha is not None
    return _Wanted("kst" if last == "kst" else "sto", float(alpha), None if beta is None else float(beta))


def _scored(
    given: Given, one: Entry, rules: Protocol, wanted: Sequence[_Wanted], before: int, several: bool
) -> Iterator[PointResult]:
    scored = one.sweep
    assert isinstance(scored, Rescoring)
    rows = [(dict(keys), at) for keys, at in zip(given.points, wanted, strict=True)]
    if given.file.oracle_kst:
        betas = dict.fromkeys(at.beta for at in wanted)
        rows += [
            (
                {**({"score.beta": beta} if beta is not None else {}), "calibrate.steps": ["oracle-kst"]},
                _Wanted("oracle-kst", 1.0, beta),
            )
            for beta in betas
        ]
    for number, (keys, at) in enumerate(rows, before + 1):
        beta = one.beta if at.beta is None else at.beta
        found = scored.at(at.method, at.alpha, beta, trials=one.trials)
        point = Point(
            number,
            {"system": one.name, **keys} if several else keys,
            f"point-{fingerprint(one.name, told(keys))[:12]}",
            one.logistic,
            one.logistic == "oracle" or at.method == "oracle-kst",
            at.method,
            {"task": one.task, "score.beta": shown(beta)},
            replace(rules, beta=beta).told(),
        )
        yield PointResult(
            point,
            {name: float(value[0]) for name, value in zip(RESCORED, found.points, strict=True)},
            values_by_query(
                given.file.objective.measure,
                scored.names.to_pylist(),
                (scored.ntrue, found.hits[:, 0], found.false_alarms[:, 0]),
                beta=beta,
                trials=one.trials,
            ),
        )
