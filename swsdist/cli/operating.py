"""Commands that operate a run from outside."""

from __future__ import annotations

import click


@click.command()
@click.argument("folder", metavar="RUN")
@click.option("--wait", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait for its end.")
@click.option("--endpoint-url", metavar="URL", help="Server of an s3:// run, where the environment does not name it.")
def cancel(folder: str, wait: float, endpoint_url: str | None) -> None:
    """End the run that works in RUN (a run folder), from any host.

    What was computed is kept: the same config goes on from there.
    """
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.operation import cancelling

    run = Folder(folder, {"endpoint_url": endpoint_url} if endpoint_url else {})
    token = cancelling.request(run)
    if wait == 0:
        print("asked; its driver looks for it every few seconds")
        return
    state = cancelling.wait(run, token, wait)
    print(state if state == "cancelled" else f"it has ended by itself: {state}")


@click.command()
@click.argument("folder", metavar="RUN|STORE")
@click.option("--dry-run", is_flag=True, help="List what would go, with bytes and reasons; remove nothing.")
@click.option(
    "--older",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="Hours that temporary files and earlier states stay.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--endpoint-url", metavar="URL", help="Server of an s3:// url, where the environment does not name it.")
def clean(folder: str, dry_run: bool, older: float, as_json: bool, endpoint_url: str | None) -> None:
    """Remove what nothing needs: of RUN what no plan names, of STORE earlier states that nobody reads."""
    import json

    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.operation.cleaning import clean as remove

    found, kept = remove(Folder(folder, {"endpoint_url": endpoint_url} if endpoint_url else {}), older, dry_run)
    total = sum(one.size for one in found)
    if as_json:
        rows = [{"file": one.folder.path(one.name), "bytes": one.size, "why": one.why} for one in found]
        stays = [{"folder": one.folder.path(), "why": one.why} for one in kept]
        print(json.dumps({"removed": not dry_run, "bytes": total, "files": rows, "stays": stays}, indent=1))
        return
    for one in found if dry_run else ():
        print(f"{one.size:>12} {one.folder.path(one.name)}: {one.why}")
    for stay in kept:
        print(f"{stay.folder.path()}: {stay.why}")
    print(f"{len(found)} files of {total} bytes {'would go' if dry_run else 'are removed'}")
