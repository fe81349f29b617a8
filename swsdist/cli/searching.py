"""The search command: a config's queries, or a few given ones in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("target", metavar="CONFIG|STORE")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="FILE[:START-END]",
    help="A recording, or a place in one in seconds (talk.flac:12.3-13.1), to search in STORE; may be repeated.",
)
@click.option("--top", default=20, type=click.IntRange(1), show_default=True, help="Detections shown per query.")
@click.option("--no-trim", is_flag=True, help="Search recorded queries whole, with the background around their speech.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@click.option(
    "--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config, or search.KEY of a store."
)
@click.option("--strict", is_flag=True, help="Exit code 4 if an input was rejected; warnings are errors.")
@click.option("--dry-run", is_flag=True, help="With a config: show the plan and do nothing.")
def search(
    target: str,
    queries: tuple[str, ...],
    top: int,
    no_trim: bool,
    as_csv: bool,
    sets: tuple[str, ...],
    strict: bool,
    dry_run: bool,
) -> int:
    """Search the queries of CONFIG, or those given with --query in STORE.

    \b
    swsdist search config.yaml
    swsdist search runs/mine/store --query hello.wav --query talk.flac:12.3-13.1
    """
    if not queries and Path(target).is_file():
        from swsdist.cli.running import go

        if no_trim:
            sets = (*sets, "queries.trim=none")
        return go(target, sets, strict, dry_run, until="search")
    from swsdist.config.loader import section_values
    from swsdist.errors import UserError

    if not queries:
        raise UserError(
            "there is nothing to search for",
            where=target,
            remedy="give a config file, or a store and --query FILE",
        )
    import sys

    from swsdist import api
    from swsdist.methods.direct import search_store

    def told(cut: Any) -> None:
        what = f"{cut.before:.2f} s before and {cut.after:.2f} s after the speech of {cut.query_id} are left out (--no-trim)"
        print(what, file=sys.stderr)

    options = section_values(sets, "search")
    found = search_store(api.open_store(target), list(queries), options, top, not no_trim, told).to_pandas()
    if as_csv:
        found.to_csv(sys.stdout, index=False)
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("query", "document", "channel", "start", "end", "score", box=None)
    for row in found.to_dict("records"):
        numbers = (f"{row['start']:.2f}", f"{row['end']:.2f}", f"{row['score']:.3f}")
        table.add_row(str(row["query_id"]), str(row["doc_id"]), str(row["channel"]), *numbers)
    Console().print(table)
    return 0
