"""Print the state of a run as text: once, or until the run ends (`swsdist status --follow`)."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from swsdist.cli.outputs import is_read

if TYPE_CHECKING:
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.status import StageStatus, Status


def show(run_status: Status) -> None:
    """Print the state of a run: stages in columns, processes, remaining time."""
    from swsdist.report.summary import span

    detail = run_status.holder or run_status.ended
    print(f"{run_status.state} ({detail})" if detail and detail != run_status.state else run_status.state)
    width = name_width(run_status)
    for stage in run_status.stages:
        print(f"  {progress_of(stage, width)}")
    for process in run_status.processes:
        doing = f"{process.stage} for {span(process.busy_s)}" if process.stage else "idle"
        doing += f" ({process.part:.0%} of the task)" if process.part is not None else ""
        print(
            f"  {process.role} {process.pid} on {process.host}: {doing}, "
            f"CPU {span(process.cpu_s)}, {process.memory_gb:.2f} GB"
        )
    if run_status.eta_s is not None:
        print(f"  this stage ends in about {span(run_status.eta_s)}")


def name_width(run_status: Status) -> int:
    """The width of the column of stage names."""
    return max((len(stage.stage) for stage in run_status.stages), default=0)


def progress_of(stage: StageStatus, width: int = 0) -> str:
    """The name of a stage, and how many of its tasks are done."""
    if not stage.tasks:
        return f"{stage.stage:<{width}}  nothing to do"
    failed = f", {stage.failed} failed" if stage.failed else ""
    return f"{stage.stage:<{width}}  {stage.done:>6} of {stage.tasks} tasks{failed}"


def follow_run(run: Folder, as_json: bool, every: float) -> None:
    """Print the changes of a run until it ends, or the reader of standard output leaves: events as JSON, or text.

    Raises:
        StoreError: the folder is not a run folder.
    """
    from swsdist.pipeline.inspection.status import status
    from swsdist.pipeline.operation.events import Follower

    run_status = status(run)
    events = Follower(run, old=as_json)
    if not as_json:
        show(run_status)
        sys.stdout.flush()
    shown = {stage.stage: progress_of(stage) for stage in run_status.stages}
    while True:
        last = run_status.state != "running"  # its last events are read once more
        for event in events.new():
            text = json.dumps(event, ensure_ascii=False) if as_json else event_line(event)
            if text is not None:
                print(text, flush=True)
        if last or not is_read():
            break
        time.sleep(every)
        run_status = status(run)
        for stage in run_status.stages if not as_json else ():
            line = progress_of(stage)
            if shown.get(stage.stage) != line:
                shown[stage.stage] = line
                print(line, flush=True)
    if not as_json:
        ended = run_status.ended if run_status.ended != run_status.state else ""
        print(f"{run_status.state} ({ended})" if ended else run_status.state)


def event_line(event: dict[str, Any]) -> str | None:
    """An event as a line of text; None for events that the task counts show."""
    at = time.strftime("%H:%M:%S", time.localtime(event["t"]))
    match event["event"]:
        case "task-failed":
            text = f"{event['stage']}: FAILED {event['label']}: {event['message']}"
        case "task-retried":
            text = f"{event['stage']}: {event['label']} is retried: {event['message']}"
        case "worker-up":
            text = f"process {event['pid']} on {event['host']} started"
        case "worker-died":
            text = f"process {event['pid']} died with {len(event['lost'])} tasks: {event['message']}"
        case "warning":
            text = f"warning: {event['message']}"
        case "stage-ended":
            text = f"{event['stage']}: finished in {event['wall']:.1f} s"
        case "run-ended":
            text = f"the run ended: {event['state']} {event['message']}".rstrip()
        case _:
            return None
    return f"{at} {text}"
