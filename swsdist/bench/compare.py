"""Comparison of two benchmarks: which differences exceed noise.

Each figure at each common point has one Welch test on the logarithms of its repetitions; all tests are corrected
by Holm's method, so that of all that is called beyond noise a single false alarm has at most a chance of 5 %.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from swsdist.bench.results import FIGURES, Ratio, Results, ratio
from swsdist.report.summary import short
from swsdist.score.compare.paired import holm

COMPARISON_SCHEMA = "swsdist-bench-comparison/1"
_ALPHA = 0.05


class Difference(NamedTuple):
    """One figure at one point: the second benchmark over the first, and corrected p; None: not tested."""

    figure: str
    workers: int
    times: int
    ratio: Ratio
    p: float | None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether it is significant; None if not tested."""
        return None if self.p is None else self.p < _ALPHA


class Comparison(NamedTuple):
    """Differences of figures, and notices on other differences, which may be their causes."""

    differences: tuple[Difference, ...]
    notices: tuple[str, ...]


def compare_results(first: Results, second: Results) -> Comparison:
    """The second against the first, point by point."""
    results = []
    for figure in FIGURES:
        before, after = first.values(figure), second.values(figure)
        for key in sorted(before.keys() & after.keys()):
            comparison = ratio(after[key], before[key])
            if comparison is not None:
                results.append((figure, key, comparison))
    corrected = holm([comparison.p for _, _, comparison in results])
    differences = tuple(
        Difference(figure, *key, comparison, p) for (figure, key, comparison), p in zip(results, corrected, strict=True)
    )
    return Comparison(differences, tuple(_notices(first, second, bool(results))))


def _notices(first: Results, second: Results, some: bool) -> list[str]:
    results = []
    if first.hardware != second.hardware:
        results.append(
            f"the hardware differs: {'; '.join(sorted(first.hardware))} against {'; '.join(sorted(second.hardware))}"
        )
    libraries = [
        {name: value for item in item.measured for name, value in item.versions.items()} for item in (first, second)
    ]
    for name in sorted(libraries[0].keys() | libraries[1].keys()):
        if libraries[0].get(name) != libraries[1].get(name):
            results.append(f"{name} {libraries[0].get(name, 'absent')} against {libraries[1].get(name, 'absent')}")
    lines = [set(item.config.splitlines()) for item in (first, second)]
    for line in sorted(lines[1] - lines[0]):
        if not line.strip().startswith("run:"):
            results.append(f"only the second config says: {line.strip()}")
    points = [set(item.values("wall_s")) for item in (first, second)]
    for workers, times in sorted(points[0] ^ points[1]):
        results.append(f"only one of them has {workers} worker(s) at {times} times the data")
    if not some:
        results.append("there is no point that both have")
    return results


def comparison_lines(comparison: Comparison) -> list[str]:
    """Lines for a terminal, significant differences first."""
    rank = {True: 0, None: 1, False: 2}
    lines = [f"note: {notice}" for notice in comparison.notices]
    for difference in sorted(comparison.differences, key=lambda item: rank[item.beyond_noise]):
        verdict = {True: "beyond noise", False: "within noise", None: "measured once: unknown"}[difference.beyond_noise]
        interval = (
            "" if difference.ratio.low is None else f" [{short(difference.ratio.low)}, {short(difference.ratio.high)}]"
        )
        chance = "" if difference.p is None else f", p {short(difference.p, 2)}"
        where = f"{difference.workers} worker(s), {difference.times} times the data"
        lines.append(
            f"{difference.figure} at {where}: {short(difference.ratio.value)} times{interval}{chance}: {verdict}"
        )
    return lines


def comparison_json(comparison: Comparison) -> str:
    """Every number."""
    rows = [
        {**difference._asdict(), "ratio": difference.ratio._asdict(), "beyond_noise": difference.beyond_noise}
        for difference in comparison.differences
    ]
    return json.dumps(
        {"schema": COMPARISON_SCHEMA, "differences": rows, "notices": comparison.notices}, indent=1, ensure_ascii=False
    )
