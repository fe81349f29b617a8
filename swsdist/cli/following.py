"""What a run does, in lines for people: once, or until it ends (`swsdist status --follow`)."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from swsdist.cli.outputs import is_read

if TYPE_CHECKING:
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.status import StageStatus, Status


def show(found: Status) -> None:
    """Print what a run is doing."""
    from swsdist.report.summary import span

    holder = f" ({found.holder})" if found.holder else f" ({found.ended})" if found.ended else ""
    print(f"{found.state}{holder}")
    for stage in found.stages:
        if stage.tasks:
            print(f"  {progress_of(stage)}")
        else:
            print(f"  {stage.stage:<10} nothing was left to do")
    for process in found.processes:
        doing = f"{process.stage} for {span(process.busy_s)}" if process.stage else "idle"
        doing += f" ({process.part:.0%} of the task)" if process.part is not None else ""
        print(
            f"  {process.role} {process.pid} on {process.host}: {doing}, "
            f"CPU {span(process.cpu_s)}, {process.memory_gb:.2f} GB"
        )
    if found.eta_s is not None:
        print(f"  this stage ends in about {span(found.eta_s)}")


def progress_of(stage: StageStatus) -> str:
    """How many tasks of a stage are done."""
    failed = f", {stage.failed} failed" if stage.failed else ""
    return f"{stage.stage:<10} {stage.done:>6} of {stage.tasks} tasks{failed}"


def follow_run(run: Folder, as_json: bool, every: float) -> None:
    """Print what a run does until it ends, or nobody reads it: events as they are written, or lines for people.

    Raises:
        StoreError: it is not a run folder.
    """
    from swsdist.pipeline.inspection.status import status
    from swsdist.pipeline.operation.events import Follower

    found = status(run)
    events = Follower(run, old=as_json)
    if not as_json:
        show(found)
        sys.stdout.flush()
    shown = {stage.stage: progress_of(stage) for stage in found.stages}
    while True:
        last = found.state != "running"  # what it wrote before it ended is still to be read
        for event in events.new():
            text = json.dumps(event, ensure_ascii=False) if as_json else told(event)
            if text is not None:
                print(text, flush=True)
        if last or not is_read():
            break
        time.sleep(every)
        found = status(run)
        for stage in found.stages if not as_json else ():
            line = progress_of(stage)
            if shown.get(stage.stage) != line:
                shown[stage.stage] = line
                print(line, flush=True)
    if not as_json:
        print(found.state + (f" ({found.ended})" if found.ended else ""))


def told(event: dict[str, Any]) -> str | None:
    """An event in a line for people; None for what the counts of tasks show."""
    at = time.strftime("%H:%M:%S", time.localtime(event["t"]))
    match event["event"]:
        case "task-failed":
            text = f"{event['stage']}: FAILED {event['label']}: {event['message']}"
        case "task-retried":
            text = f"{event['stage']}: {event['label']} is tried again: {event['message']}"
        case "worker-up":
            text = f"process {event['pid']} on {event['host']} is up"
        case "worker-died":
            text = f"process {event['pid']} died with {len(event['lost'])} tasks: {event['message']}"
        case "warning":
            text = f"warning: {event['message']}"
        case "stage-ended":
            text = f"{event['stage']}: ended after {event['wall']:.1f} s"
        case "run-ended":
            text = f"the run ended: {event['state']} {event['message']}".rstrip()
        case _:
            return None
    return f"{at} {text}"
