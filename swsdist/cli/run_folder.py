"""Commands on the folder of a run: its state, its digest, cancelling, cleaning."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from swsdist.cli.options import Number, is_config, is_read
from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.core.errors import CancelledError, IncompleteError, StoreError, SwsdistError

if TYPE_CHECKING:
    from swsdist.config import Config
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.status import StageStatus, Status


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --follow, one event per line.")
@click.option("--follow", is_flag=True, help="Show changes until the run ends.")
@click.option("--every", type=Number(0.1), default=2.0, show_default=True, help="Seconds between updates.")
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 0: done; 75: running; 4: died, stopped by an error, or tasks failed; 130: interrupted; 143: terminated or "
    "cancelled.",
)
@click.option("--endpoint-url", metavar="URL", help="S3 server. [default: AWS_ENDPOINT_URL]")
def status(folder: str, as_json: bool, follow: bool, every: float, check: bool, endpoint_url: str | None) -> None:
    """Show the state of RUN (a run folder, or its config): stages, processes, remaining time. It only reads files."""
    from dataclasses import asdict

    from swsdist.config import load_config
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.status import status as look

    storage: dict[str, object] = {"endpoint_url": endpoint_url} if endpoint_url else {}
    if is_config(folder):
        config = load_config(folder)
        folder, storage = config.run, {**config.storage, **storage}
    run = Folder(folder, storage)
    if follow:
        run_status = follow_run(run, as_json, every)
    else:
        run_status = look(run)
        if as_json:
            print(json.dumps(asdict(run_status), indent=1))
        else:
            show(run_status)
            if hint := _next(run, folder, run_status):
                print(f"  {hint}")
    if check:
        click.get_current_context().exit(_CODES[run_status.state])


#: Exit codes of `status --check`: those with which the driver ended, as far as it could; 75 is EX_TEMPFAIL.
_CODES = {
    "done": 0,
    "running": 75,
    "interrupted": 130,
    **dict.fromkeys(("died", "stopped", "incomplete"), IncompleteError.exit_code),
    **dict.fromkeys(("terminated", "cancelled"), CancelledError.exit_code),
}


def _next(run: Folder, folder: str, run_status: Status) -> str:
    """What to do with an unfinished run; empty if it is finished or running."""
    from swsdist.pipeline.ledger import load_plans
    from swsdist.registry.registries import METHODS

    plans = load_plans(run).values() if run_status.state != "running" else ()
    if all(plan.complete for plan in plans) and run_status.state in ("running", "done"):
        return ""
    configs = [plan.config for plan in plans]
    finished = bool(run_status.stages) and all(stage.done == stage.tasks for stage in run_status.stages)
    if not finished or any(config.get("corpus", {}).get("queries") is not None for config in configs):
        made_anew = "the same command again makes what is no longer there"  # of a store that forgot documents
        return made_anew if run_status.state == "done" else "run the same command again to continue"
    last, method = run_status.stages[-1].stage, configs[0].get("search", {}).get("method")
    query = "--text TEXT" if method in METHODS and METHODS[method].queries == "text" else "--query FILE"
    search = f"swsdist search {quote(folder)} {query}"
    return f"{last} is done, and the config has no corpus.queries: add them and run it, or {search}"


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--tables", is_flag=True, help="Print the digest of each table, too.")
def digest(folder: str, tables: bool) -> None:
    """Print one SHA-256 of the results of RUN. It does not depend on shards, workers or executor."""
    from swsdist import api

    parts = api.digest(folder)
    total = parts.pop("all")
    if tables:
        for name, value in parts.items():
            print(f"{value}  {name}")
    print(total)


@click.command()
@click.argument("folder", metavar="RUN")
@click.option(
    "--wait",
    type=Number(0),
    default=60.0,
    show_default=True,
    help="Seconds to wait for the end; 0: do not wait.",
)
@click.option("--endpoint-url", metavar="URL", help="S3 server. [default: AWS_ENDPOINT_URL]")
def cancel(folder: str, wait: float, endpoint_url: str | None) -> None:
    """End the run in the folder RUN, from any host, with exit code 143.

    Finished work is kept: the same config continues.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.operation import cleaning as cancelling

    run = Folder(folder, {"endpoint_url": endpoint_url} if endpoint_url else {})
    token = cancelling.request(run)
    if wait == 0:
        print("requested; the driver checks every few seconds")
        return
    state = cancelling.wait(run, token, wait)
    print(state if state == "cancelled" else f"the run had already ended: {state}")


@click.command()
@click.argument("folder", metavar="RUN|STORE")
@click.option("--dry-run", is_flag=True, help="List files with sizes and reasons; remove nothing.")
@click.option(
    "--older",
    type=Number(0),
    default=1.0,
    show_default=True,
    help="Age of temporary files and old states to remove, hours.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--endpoint-url", metavar="URL", help="S3 server. [default: AWS_ENDPOINT_URL]")
def clean(folder: str, dry_run: bool, older: float, as_json: bool, endpoint_url: str | None) -> None:
    """Remove unused files: of RUN, tables and receipts that no plan names; of STORE, old states that nobody reads.

    Also removes temporary files, and locks of dead processes. Reports, exports, events and accounts stay. Refuses a
    folder in which a process works.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.operation.cleaning import clean as remove

    files, kept = remove(Folder(folder, {"endpoint_url": endpoint_url} if endpoint_url else {}), older, dry_run)
    total = sum(file.size for file in files)
    if as_json:
        rows = [{"file": file.folder.path(file.name), "bytes": file.size, "why": file.why} for file in files]
        stays = [{"folder": item.folder.path(), "why": item.why} for item in kept]
        print(json.dumps({"removed": not dry_run, "bytes": total, "files": rows, "stays": stays}, indent=1))
        return
    for entry in files if dry_run else ():
        print(f"{entry.size:>12} {entry.folder.path(entry.name)}: {entry.why}")
    for stay in kept:
        print(f"{stay.folder.path()}: {stay.why}")
    print(f"{len(files)} files of {total} bytes {'can be removed' if dry_run else 'removed'}")


def what_is_there(error: StoreError) -> SwsdistError:
    """Of a folder in which no store or run was found, the error that says what is there instead: a run that is being indexed, a
    run whose store is elsewhere, or recordings of which runs were made. Other errors stay as they are.
    """
    from swsdist.core.codes import pipeline as pipeline_codes
    from swsdist.core.codes import storage as store_codes
    from swsdist.io.filesystem import Folder, is_remote
    from swsdist.pipeline.ledger import load_plans
    from swsdist.pipeline.status import config_of
    from swsdist.pipeline.status import status as look

    named = (store_codes.NO_STORE, store_codes.UNFINISHED_STORE, pipeline_codes.NOT_A_RUN)
    if error.code not in {code.name for code in named} or error.where is None or is_remote(error.where):
        return error
    place = Path(error.where)
    with suppress(StoreError):  # no run, or one that cannot be read: the first error says enough
        for run in (place, place.parent):
            if (run / "plan.json").exists() and (now := look(Folder(str(run)))).state == "running":
                stage = next((stage for stage in now.stages if stage.done < stage.tasks), None)
                progress = "the work is being planned" if stage is None else progress_of(stage)
                return families.NOT_FINISHED(
                    "this is being indexed, and nothing can be searched yet: {progress}",
                    "wait for it: swsdist status {run!q} --follow",
                    where=error.where,
                    progress=progress,
                    run=str(run),
                )
        if (place / "plan.json").exists():
            run_folder = Folder(str(place))
            stores = [config_of(run_folder, plan).store for plan in load_plans(run_folder).values()]
            store = next((store for store in stores if Folder(store).exists("manifest.json")), None)
            remedy = f"name its store: {store}" if store is not None else "make its store with `swsdist index`"
            return families.WRONG_KIND.of(StoreError)(
                "this is a run folder, not a feature store", "{remedy}", where=error.where, remedy=remedy
            )
    runs = [quote(run) for run in runs_of(error.where)]
    return codes.RECORDINGS_NOT_RUN(where=error.where, runs=" or ".join(runs)) if runs else error


def runs_of(folder: str) -> dict[str, Config]:
    """Runs that were made of a folder of recordings, or of words, with their configs: those named after it, in the working
    directory and beside it.
    """
    from glob import escape

    from swsdist.cli.running import is_made_of, source_of
    from swsdist.io.filesystem import Folder, is_remote
    from swsdist.pipeline.ledger import load_plans
    from swsdist.pipeline.status import config_of

    source = source_of(folder)
    beside = [] if is_remote(source) else [Path(source).parent]
    found: dict[str, Config] = {}
    for place in [Path(), *(parent for parent in beside if parent != Path().resolve())]:
        for plan in sorted(place.glob(f"{escape(source.rpartition('/')[2])}-*/plan.json")):
            run = Folder(str(plan.parent))
            with suppress(StoreError):  # of another version
                plans = list(load_plans(run).values())
                if plans and all(is_made_of(each, run, source) for each in plans):
                    found[str(plan.parent)] = config_of(run, plans[0])
    return found


def show(run_status: Status) -> None:
    """Print the state of a run: stages in columns, processes, remaining time."""
    from swsdist.report.summary import span

    detail = run_status.holder or run_status.ended
    print(f"{run_status.state} ({detail})" if detail else run_status.state)
    width = max((len(stage.stage) for stage in run_status.stages), default=0)
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


def progress_of(stage: StageStatus, width: int = 0) -> str:
    """The name of a stage, and how many of its tasks are done."""
    if not stage.tasks:
        return f"{stage.stage:<{width}}  nothing to do"
    failed = f", {stage.failed} failed" if stage.failed else ""
    return f"{stage.stage:<{width}}  {stage.done:>6} of {stage.tasks} tasks{failed}"


def follow_run(run: Folder, as_json: bool, every: float) -> Status:
    """Print the changes of a run until it ends, or the reader of standard output leaves: events as JSON, or text. Returns its
    last state.

    Raises:
        StoreError: the folder is not a run folder.
    """
    from swsdist.pipeline.operation.monitor import Follower
    from swsdist.pipeline.status import status

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
        print(f"{run_status.state} ({run_status.ended})" if run_status.ended else run_status.state)
    return run_status


def event_line(event: dict[str, Any]) -> str | None:
    """An event as a line of text; None for events that the task counts show."""
    at = time.strftime("%H:%M:%S", time.localtime(event["t"]))
    match event["event"]:
        case "task-failed":
            text = f"{event['stage']}: FAILED {event['label']}: {event['message']}"
        case "task-retried":
            text = f"{event['stage']}: {event['label']} is retried: {event['message']}"
        case "rejected":
            text = f"rejected: {event['path'] or event['id']}: {event['message']}"
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
