"""Reads, evaluates, calibrates and compares detection lists from any system.

From files, or from tables (arrow, pandas, mappings of columns)::

    task = read_task(ecf="ecf.xml", rttm="ref.rttm", terms="tlist.xml", protocol="sws2013")
    result = evaluate(task, read_system("stdlist.xml"))
    values(result)  # every measure by its name

    task = make_task(references, total_seconds=72440, protocol="openkws13")
    result = evaluate(task, make_system(detections))
"""

from swsdist.evaluation.evaluate import Evaluation, evaluate, more_values, values
from swsdist.evaluation.reading import make_task, read_task
from swsdist.evaluation.scoring_task import ScoringTask, System, make_system, read_system

__all__ = [
    "Evaluation",
    "ScoringTask",
    "System",
    "evaluate",
    "make_system",
    "make_task",
    "more_values",
    "read_system",
    "read_task",
    "values",
]
