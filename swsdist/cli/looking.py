"""Commands that show the state and the digest of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import Number

if TYPE_CHECKING:
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.status import Status


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --follow, one event per line.")
@click.option("--follow", is_flag=True, help="Show changes until the run ends.")
@click.option("--every", type=Number(0.1), default=2.0, show_default=True, help="Seconds between updates.")
@click.option("--endpoint-url", metavar="URL", help="S3 server. [default: AWS_ENDPOINT_URL]")
def status(folder: str, as_json: bool, follow: bool, every: float, endpoint_url: str | None) -> None:
    """Show the state of RUN (a run folder, or its config): stages, processes, remaining time. It only reads files."""
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
    run_status = look(run)
    if as_json:
        print(json.dumps(asdict(run_status), indent=1))
        return
    show(run_status)
    if run_status.state in ("died", "incomplete", "cancelled"):
        print(f"  {_next(run, folder, run_status)}")


def _next(run: Folder, folder: str, run_status: Status) -> str:
    """What to do with an unfinished run."""
    from swsdist.pipeline.plan import load_plans
    from swsdist.registry.registries import METHODS

    configs = [plan.config for plan in load_plans(run).values()]
    finished = bool(run_status.stages) and all(stage.done == stage.tasks for stage in run_status.stages)
    if not finished or any(config.get("corpus", {}).get("queries") is not None for config in configs):
        return "run the same config again to continue"
    last, method = run_status.stages[-1].stage, configs[0].get("search", {}).get("method")
    query = "--text TEXT" if method in METHODS and METHODS[method].queries == "text" else "--query FILE"
    return (
        f"{last} is done, and the config has no corpus.queries: add them and run it, or swsdist search {folder} {query}"
    )


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
