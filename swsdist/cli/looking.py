"""Commands that look at a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from swsdist.pipeline.inspection.status import Status


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: str, as_json: bool) -> None:
    """What RUN (a run folder) is doing, or was doing when it died."""
    from dataclasses import asdict

    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.status import status as look
    from swsdist.report.summary import span

    found = look(Folder(folder))
    if as_json:
        print(json.dumps(asdict(found), indent=1))
        return
    holder = f" ({found.holder})" if found.holder else ""
    print(f"{found.state}{holder}")
    for stage in found.stages:
        if stage.tasks:
            print(f"  {stage.stage:<10} {stage.done:>6} of {stage.tasks} tasks")
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
    if found.state in ("died", "incomplete"):
        print(f"  {_next(folder, found)}")


def _next(folder: str, found: Status) -> str:
    """What there is to do with a run that has not come to its end."""
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.plan import load_plans

    configs = [plan.config for plan in load_plans(Folder(folder)).values()]
    whole = bool(found.stages) and all(stage.done == stage.tasks for stage in found.stages)
    if not whole or any(config.get("corpus", {}).get("queries") is not None for config in configs):
        return "run the same config again to go on"
    return (
        f"{found.stages[-1].stage} is done, and the config names no queries to search (corpus.queries): add them and run it, "
        f"or swsdist search {folder} --query FILE"
    )


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--tables", is_flag=True, help="Also print the digest of each table.")
def digest(folder: str, tables: bool) -> None:
    """One SHA-256 of what RUN computed, whatever the shards, workers and executor were."""
    from swsdist import api

    parts = api.digest(folder)
    whole = parts.pop("all")
    if tables:
        for name, value in parts.items():
            print(f"{value}  {name}")
    print(whole)
