"""The report of a fusion: that of a search, and what each system has in it."""

from __future__ import annotations

from dataclasses import replace

from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.search.report import notices as of_search
from swsdist.chains.search.report.publish import publish_report
from swsdist.chains.search.report.reporting import build
from swsdist.pipeline.course import Course, Outcome
from swsdist.report.data import ReportData
from swsdist.steps import Looks


def publish(outcome: Outcome, course: Course, force: bool = False) -> ReportData | None:
    """Write the report, as the search chain does."""
    return publish_report(outcome, course, force, _made)


def _made(outcome: Outcome, course: Course) -> ReportData:
    data = build(outcome, course)
    own: FuseInputs = course.chain.own
    looks: list[Looks] = list(data.looked_at)
    if own.options.between_queries and "other queries" not in looks:
        looks.insert(1, "other queries")
    return replace(data, looked_at=tuple(looks))


def notices(course: Course) -> list[str]:
    """Those of a search, and what of a fusion its user should know."""
    own: FuseInputs = course.chain.own
    found = of_search.notices(course)
    if not course.config.calibrate.fitted:
        found.append(
            "nothing was fitted: the fused score is the mean of the systems' scores, each with the same weight"
        )
    if own.options.between_queries and len(own.options.systems):
        found.append(
            "of overlapping detections of different queries the one with the highest fused score stays "
            "(options.between_queries): what is decided of a query depends on the other queries"
        )
    return found
