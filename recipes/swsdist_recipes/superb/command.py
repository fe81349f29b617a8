"""The command that measures SUPERB's query-by-example number."""

from __future__ import annotations

import click

from swsdist.cli.options import SET
from swsdist_recipes.superb import VARIANTS


@click.command()
@click.option("--upstream", required=True, metavar="NAME|FOLDER", help="Model: a folder, or an id in the hub's cache.")
@click.option(
    "--data",
    required=True,
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="quesst14Database, as its archive has it.",
)
@click.option("--layers", default="all", show_default=True, metavar="all|0,3,6", help="Layers to search with.")
@click.option("--run", "run_folder", metavar="FOLDER", help="Run folder. [default: superb-NAME, superb-NAME-VARIANT]")
@click.option(
    "--variant",
    type=click.Choice(list(VARIANTS)),
    default="default",
    show_default=True,
    help="Other searches of papers.",
)
@SET
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def superb(
    upstream: str, data: str, layers: str, run_folder: str | None, variant: str, sets: tuple[str, ...], as_json: bool
) -> int:
    """Measure the query-by-example number of SUPERB: QUESST 2014 in English, with each layer of a speech encoder.

    The dev queries choose the layer, the eval queries are searched with it. The same command continues after a crash. Writes
    layers.csv, mtwv.svg, superb.json and the configs that it runs to the folder superb of the run.

    \b
    swsdist superb --upstream facebook/hubert-base-ls960 --data quesst14Database
    """
    import json
    import sys
    from pathlib import Path

    from swsdist.cli.progress import progress
    from swsdist.io.filesystem import is_remote
    from swsdist_recipes.quesst.database import read_quesst_database
    from swsdist_recipes.superb.plans import LANGUAGE, PLACE, System, chosen_layers, upstream_folder
    from swsdist_recipes.superb.publishing import as_json as values_of
    from swsdist_recipes.superb.publishing import publish, text_lines
    from swsdist_recipes.superb.running import run_superb

    folder = upstream_folder(upstream)
    name = Path(upstream).name
    system = System.of_model(name, folder, chosen_layers(layers, folder), variant, sets)
    database = read_quesst_database(data, LANGUAGE)
    run = run_folder or f"superb-{name}" + (f"-{variant}" if variant != "default" else "")
    run = run if is_remote(run) else str(Path(run).absolute())
    result = run_superb(system, database, run, progress())
    publish(result, database)
    for notice in result.notices:
        print(f"warning: {notice}", file=sys.stderr)
    if as_json:
        print(json.dumps(values_of(result), indent=1))
    else:
        print("\n".join([*text_lines(result), "", f"written: {result.folder.path(PLACE)}"]))
    return 0
