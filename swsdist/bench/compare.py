"""Two benchmarks beside each other: what of their differences is beyond noise.

Each figure at each point that both have takes one Welch test of the logarithms of its repetitions; all together are corrected
by Holm's method, so that of all that is called beyond noise a single false alarm has at most a chance of 5 %.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from swsdist.bench.results import FIGURES, Results
from swsdist.bench.statistics import Ratio, ratio
from swsdist.report.summary import short
from swsdist.score.compare.significance import holm

SCHEMA = "swsdist-bench-comparison/1"
_ALPHA = 0.05


class Difference(NamedTuple):
    """Of one figure at one point: the second benchmark over the first, and p after the correction; None: not tested."""

    figure: str
    workers: int
    times: int
    ratio: Ratio
    p: float | None

    @property
    def beyond_noise(self) -> bool | None:
        """None where it was measured too rarely to tell."""
        return None if self.p is None else self.p < _ALPHA


class Comparison(NamedTuple):
    """Differences, and what else is not alike: then not everything comes from what was changed."""

    differences: tuple[Difference, ...]
    notices: tuple[str, ...]


def compare_results(first: Results, second: Results) -> Comparison:
    """The second against the first, point by point."""
    found = []
    for figure in FIGURES:
        one, other = first.values(figure), second.values(figure)
        for key in sorted(one.keys() & other.keys()):
            told = ratio(other[key], one[key])
            if told is not None:
                found.append((figure, key, told))
    corrected = holm([told.p for _, _, told in found])
    differences = tuple(
        Difference(figure, *key, told, p) for (figure, key, told), p in zip(found, corrected, strict=True)
    )
    return Comparison(differences, tuple(_notices(first, second, bool(found))))


def _notices(first: Results, second: Results, some: bool) -> list[str]:
    found = []
    if first.hardware != second.hardware:
        found.append(
            f"the hardware differs: {'; '.join(sorted(first.hardware))} against {'; '.join(sorted(second.hardware))}"
        )
    libraries = [
        {name: value for one in each.measured for name, value in one.versions.items()} for each in (first, second)
    ]
    for name in sorted(libraries[0].keys() | libraries[1].keys()):
        if libraries[0].get(name) != libraries[1].get(name):
            found.append(f"{name} {libraries[0].get(name, 'absent')} against {libraries[1].get(name, 'absent')}")
    lines = [set(each.config.splitlines()) for each in (first, second)]
    for line in sorted(lines[1] - lines[0]):
        if not line.strip().startswith("run:"):
            found.append(f"only the second config says: {line.strip()}")
    points = [set(each.values("wall_s")) for each in (first, second)]
    for workers, times in sorted(points[0] ^ points[1]):
        found.append(f"only one of them has {workers} worker(s) at {times} times the data")
    if not some:
        found.append("there is no point that both have")
    return found


def comparison_lines(told: Comparison) -> list[str]:
    """For a terminal: what is beyond noise first."""
    rank = {True: 0, None: 1, False: 2}
    lines = [f"note: {notice}" for notice in told.notices]
    for one in sorted(told.differences, key=lambda each: rank[each.beyond_noise]):
        verdict = {True: "beyond noise", False: "within noise", None: "measured once: cannot be told"}[one.beyond_noise]
        interval = "" if one.ratio.low is None else f" [{short(one.ratio.low)}, {short(one.ratio.high)}]"
        chance = "" if one.p is None else f", p {short(one.p, 2)}"
        where = f"{one.workers} worker(s), {one.times} times the data"
        lines.append(f"{one.figure} at {where}: {short(one.ratio.value)} times{interval}{chance}: {verdict}")
    return lines


def as_json(told: Comparison) -> str:
    """Every number."""
    rows = [
        {**one._asdict(), "ratio": one.ratio._asdict(), "beyond_noise": one.beyond_noise} for one in told.differences
    ]
    return json.dumps({"schema": SCHEMA, "differences": rows, "notices": told.notices}, indent=1, ensure_ascii=False)
