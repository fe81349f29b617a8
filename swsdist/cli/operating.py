"""Commands that cancel a run, or clean its folder."""

from __future__ import annotations

import click

from swsdist.cli.options import Number


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
    from swsdist.pipeline.operation import cancelling

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
    import json

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
