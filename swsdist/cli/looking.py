"""Commands that look at a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.status import Status


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --follow each event, a line each.")
@click.option("--follow", is_flag=True, help="Go on until the run ends, and tell what changes.")
@click.option("--every", type=click.FloatRange(0.1), default=2.0, show_default=True, help="Seconds between two looks.")
@click.option("--endpoint-url", metavar="URL", help="Server of an s3:// run, where the environment does not name it.")
def status(folder: str, as_json: bool, follow: bool, every: float, endpoint_url: str | None) -> None:
    """What RUN (a run folder, or its config) is doing, or was doing when it died."""
    from dataclasses import asdict

    from swsdist.cli.following import follow_run, show
    from swsdist.cli.options import is_config
    from swsdist.config import load_config
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.status import status as look

    storage: dict[str, object] = {"endpoint_url": endpoint_url} if endpoint_url else {}
    if is_config(folder):
        config = load_config(folder)
        folder, storage = config.run, {**config.storage, **storage}
    run = Folder(folder, storage)
    if follow:
        follow_run(run, as_json, every)
        return
    found = look(run)
    if as_json:
        print(json.dumps(asdict(found), indent=1))
        return
    show(found)
    if found.state in ("died", "incomplete", "cancelled"):
        print(f"  {_next(run, folder, found)}")


def _next(run: Folder, folder: str, found: Status) -> str:
    """What there is to do with a run that has not come to its end."""
    from swsdist.pipeline.plan import load_plans

    configs = [plan.config for plan in load_plans(run).values()]
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
