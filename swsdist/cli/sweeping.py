"""The command that runs a sweep."""

from __future__ import annotations

import click

from swsdist.cli.options import CORPUS, FILE, allow_commands


@click.command()
@click.argument("sweep", metavar="SWEEP", type=FILE)
@CORPUS
@click.option("--run", "run_folder", metavar="FOLDER", help="Use this run folder instead of the config's.")
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of all points; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@allow_commands
def sweep(sweep: str, corpus: str | None, run_folder: str | None, sets: tuple[str, ...], as_json: bool) -> int:
    """Run a config, or score lists, at many points: a grid, a list, or random draws.

    SWEEP is a YAML file. Work that points share is done once; the same command continues after a crash, or with more points.
    Writes points.csv and a page to the folder sweeps of the run. Exit code 4 if a point failed.

    \b
    swsdist sweep configs/sweeps/kst_alpha.yaml
    """
    import sys

    from swsdist import api
    from swsdist.cli.progress import progress, with_point_count
    from swsdist.core.codes import cli as codes

    result = api.sweep(sweep, corpus=corpus, run=run_folder, sets=sets, progress=with_point_count(progress()))
    for notice in result.notices:
        print(f"warning: {notice}", file=sys.stderr)
    print(result.as_json() if as_json else "\n".join([*result.lines(), "", f"written: {result.folder}/sweep.html"]))
    if result.failed:
        number, message = next(iter(result.failed.items()))
        raise codes.POINTS_FAILED(
            where=result.folder,
            count=len(result.failed),
            of=result.table.num_rows,
            number=number,
            message=message,
        )
    return 0
