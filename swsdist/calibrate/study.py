"""KST against STO: the study of Wang and Metze 2014 on any systems.

Each system is an aligned list of probabilities with its operating point; systems may have different tasks (languages). ATWV
is computed at each alpha, per system and as the mean over systems; the best alpha of a method has the greatest mean (the
lowest of equal ones: values within 1e-12 are equal), or is given. At these alphas table 1, the tests, and the gains of
each term, by S(w) and by Ntrue, are computed.

The pairs of a test are values of the terms of one system, or ATWVs of systems; over terms the t test's assumption of normal
differences does not hold (section 3.2), and Wilcoxon's is of ranks, not of the mean: the test of the mean by changes of sign
stands beside the paper's two. Over fewer than two systems a test is not defined.

Source: Wang and Metze 2014, "An in-depth comparison of keyword specific thresholding and sum-to-one score normalization",
section 3, table 1, figures 3 and 5 to 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.calibrate.rescoring import Rescoring, query_values
from swsdist.calibrate.thresholding import Method, Thresholding
from swsdist.core.codes import score as codes
from swsdist.score.compare.paired import SignFlip, TTest, Wilcoxon, paired_t, rank_biserial, sign_flips, wilcoxon
from swsdist.score.measures.curve import TIE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Most bins of S(w) that are as wide as 1.
MOST_BINS = 100

#: 1.0 to 3.0 by 0.1.
ALPHAS: Floats = np.arange(10, 31) / 10


@dataclass(frozen=True, eq=False)
class StudyEntry:
    """A system to study.

    Attributes:
        name: label.
        task: name of what was searched; systems of one task share references.
        sweep: its aligned list of probabilities.
        trials, beta: its operating point.
        logistic: how probabilities were computed: `none` if the scores are probabilities, else the kind of fit.
    """

    name: str
    task: str
    sweep: Rescoring
    trials: int
    beta: float
    logistic: str = "none"


class Tests(NamedTuple):
    """Paired tests of two rows of values, and the direction of the ranks; None for fewer than two pairs."""

    sign_flip: SignFlip | None = None
    t: TTest | None = None
    wilcoxon: Wilcoxon | None = None
    rank_biserial: float | None = None


@dataclass(frozen=True, eq=False)
class SystemStudy:
    """Results of a system.

    Attributes:
        entry: the input.
        curves: ATWV at each alpha, of kst and sto.
        atwv: of the three methods, at their alphas.
        values: of its terms (Q,), by the three methods.
        thresholds: on its terms' probabilities (Q,).
        over_terms: tests of kst against sto.
    """

    entry: StudyEntry
    curves: dict[Method, Floats]
    atwv: dict[Method, float]
    values: dict[Method, Floats]
    thresholds: dict[Method, Floats]
    over_terms: Tests


class Breakdown(NamedTuple):
    """A difference of ATWV by bins of terms.

    Attributes:
        edges: (n + 1,), bin i is [edges[i], edges[i + 1]).
        terms: (n,), terms in each, the mean over systems.
        total: (n,), their contributions to the difference of the mean ATWVs.
        per_term: (n,), total over terms; 0 for empty bins.
    """

    edges: Floats
    terms: Floats
    total: Floats
    per_term: Floats


@dataclass(frozen=True, eq=False)
class Study:
    """Results of the study.

    Attributes:
        alphas: (A,).
        systems: in the given order; the first is the example that is shown alone.
        mean: ATWV at each alpha, the mean over systems, of kst and sto.
        best: alpha of kst and sto.
        chosen: whether `best` was given.
        atwv: mean over systems, of the three methods.
        over_systems: tests of kst against sto on ATWVs; None without pairs.
        by_sum: kst - sto by S(w), the mean over systems (fig. 7), in bins of 1; where there is a sum above `MOST_BINS`, in
            bins from 2^k - 1 to 2^(k + 1) - 1.
        by_ntrue: kst - oracle-kst by Ntrue, of the single system (fig. 8).
    """

    alphas: Floats
    systems: tuple[SystemStudy, ...]
    mean: dict[Method, Floats]
    best: dict[Method, float]
    chosen: bool
    atwv: dict[Method, float]
    over_systems: Tests
    by_sum: Breakdown
    by_ntrue: Breakdown


def study(entries: Sequence[StudyEntry], *, alphas: ArrayLike = ALPHAS, alpha: float | None = None) -> Study:
    """Compare KST and STO on some systems.

    Args:
        entries: at least one; the first is the example that is shown alone.
        alphas: to try, positive.
        alpha: compare at this alpha; None: at the best of each method.

    Raises:
        UserError: there is no system, two have one name, or an alpha is not positive.
    """
    if not entries:
        raise codes.NO_SYSTEMS_TO_STUDY()
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise codes.DUPLICATE_SYSTEM_NAME(name=twice)
    tried = np.asarray(alphas, dtype=np.float64)
    methods: tuple[Method, ...] = ("kst", "sto")
    curves: list[dict[Method, Floats]] = [
        {method: entry.sweep.at(method, tried, entry.beta, trials=entry.trials).points.twv for method in methods}
        for entry in entries
    ]
    mean = {method: _mean_rows([curve[method] for curve in curves]) for method in methods}
    best = {method: _best(tried, mean[method]) if alpha is None else alpha for method in methods}
    systems = tuple(_studied(item, curve, best) for item, curve in zip(entries, curves, strict=True))
    every: tuple[Method, ...] = ("oracle-kst", "kst", "sto")
    return Study(
        alphas=tried,
        systems=systems,
        mean=mean,
        best=best,
        chosen=alpha is not None,
        atwv={method: math.fsum(system.atwv[method] for system in systems) / len(systems) for method in every},
        over_systems=_tests(*([system.atwv[method] for system in systems] for method in methods)),
        by_sum=_by_sum(systems),
        by_ntrue=_by_ntrue(systems[0]),
    )


def _studied(study_entry: StudyEntry, curves: dict[Method, Floats], best: dict[Method, float]) -> SystemStudy:
    values: dict[Method, Floats] = {}
    limits: dict[Method, Floats] = {}
    atwv: dict[Method, float] = {}
    methods: tuple[Method, ...] = ("oracle-kst", "kst", "sto")
    for method in methods:
        thresholding = Thresholding(method, study_entry.trials, study_entry.beta, best.get(method, 1.0))
        rescored, ntrue = (
            study_entry.sweep.at(method, thresholding.alpha, study_entry.beta, trials=study_entry.trials),
            study_entry.sweep.ntrue,
        )
        kept = rescored.hits[:, 0], rescored.false_alarms[:, 0]
        values[method] = query_values(ntrue, *kept, beta=study_entry.beta, trials=study_entry.trials)
        limits[method] = thresholding.thresholds(study_entry.sweep.sums, ntrue)
        atwv[method] = float(rescored.points.twv[0])
    return SystemStudy(study_entry, curves, atwv, values, limits, _tests(values["kst"], values["sto"]))


def _tests(first: ArrayLike, second: ArrayLike) -> Tests:
    if len(np.atleast_1d(first)) < 2:
        return Tests()
    return Tests(
        sign_flips([(first, second)])[0],
        paired_t(first, second),
        wilcoxon(first, second),
        rank_biserial(first, second),
    )


def _mean_rows(rows: Sequence[Floats]) -> Floats:
    return np.array([math.fsum(column) / len(rows) for column in zip(*rows, strict=True)])


def _best(alphas: Floats, values: Floats) -> float:
    return float(alphas[np.flatnonzero(values >= values.max() - TIE)].min())


def _by_sum(systems: Sequence[SystemStudy]) -> Breakdown:
    sums = [system.entry.sweep.sums for system in systems]
    most = max(float(values_of_sums.max()) for values_of_sums in sums)
    edges = np.arange(math.floor(most) + 2, dtype=np.float64)
    if most > MOST_BINS:
        edges = np.exp2(np.arange(math.floor(math.log2(1 + most)) + 2)) - 1
    parts = [
        _binned(
            np.searchsorted(edges, values_of_sums, side="right") - 1,
            item.values["kst"] - item.values["sto"],
            len(edges) - 1,
        )
        for values_of_sums, item in zip(sums, systems, strict=True)
    ]
    terms, total = (_mean_rows([part[k] for part in parts]) for k in range(2))
    return _breakdown(edges, terms, total)


def _by_ntrue(system_study: SystemStudy) -> Breakdown:
    ntrue = system_study.entry.sweep.ntrue
    edges = np.arange(1, int(ntrue.max()) + 2, dtype=np.float64)
    return _breakdown(
        edges, *_binned(ntrue - 1, system_study.values["kst"] - system_study.values["oracle-kst"], len(edges) - 1)
    )


def _binned(member: Ints, gains: Floats, bins: int) -> tuple[Floats, Floats]:
    """Terms of each bin, and the sum of their gains over the number of all terms."""
    terms, total = np.bincount(member, minlength=bins).astype(np.float64), np.zeros(bins)
    np.add.at(total, member, gains)
    return terms, total / len(member)


def _breakdown(edges: Floats, terms: Floats, total: Floats) -> Breakdown:
    return Breakdown(edges, terms, total, np.where(terms > 0, total / np.maximum(terms, 1e-300), 0.0))
