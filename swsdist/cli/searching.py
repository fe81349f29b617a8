"""The search command: a config's queries, or a few given ones in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from swsdist.cli.options import allow_commands


@click.command()
@click.argument("target", metavar="CONFIG|RUN|STORE")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="FILE[:START-END]",
    help="A recording, or a place in one (talk.flac:12.3-13.1 or talk.flac:1:02:03-1:02:04), to search in the store; may be "
    "repeated; `-`: a query a line from the standard input.",
)
@click.option("--top", default=20, type=click.IntRange(1), show_default=True, help="Detections shown per query.")
@click.option("--no-trim", is_flag=True, help="Search recorded queries whole, with the background around their speech.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option(
    "--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config, or search.KEY of a store."
)
@click.option("--strict", is_flag=True, help="Exit code 4 if an input was rejected; warnings are errors.")
@click.option("--dry-run", is_flag=True, help="With a config: show the plan and do nothing.")
@allow_commands
def search(
    target: str,
    queries: tuple[str, ...],
    top: int,
    no_trim: bool,
    as_csv: bool,
    as_json: bool,
    sets: tuple[str, ...],
    strict: bool,
    dry_run: bool,
) -> int:
    """Search the queries of CONFIG, or those given with --query in a store, which a run's folder may stand for.

    \b
    swsdist search config.yaml
    swsdist search runs/mine --query hello.wav --query talk.flac:12:03.5-12:04.2
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
    import json
    import sys

    from swsdist import api
    from swsdist.cli.hits import lines
    from swsdist.methods.direct import search_store

    def told(cut: Any) -> None:
        what = f"{cut.before:.2f} s before and {cut.after:.2f} s after the speech of {cut.query_id} are left out (--no-trim)"
        print(what, file=sys.stderr)

    asked = [line.strip() for one in queries for line in (sys.stdin if one == "-" else [one])]
    if not any(asked):
        raise UserError("there is nothing to search for", where="--query -", remedy="give a query a line")
    place, known, threshold = _store_of(target)
    given = section_values(sets, "search")
    options = {**known, **given}
    found = search_store(
        api.open_store(place), [one for one in asked if one], options, top, not no_trim, told
    ).to_pandas()
    if as_csv:
        found.to_csv(sys.stdout, index=False)
    elif as_json:
        print(json.dumps(found.to_dict("records"), indent=1, ensure_ascii=False))
    else:
        print("\n".join(lines(found.to_dict("records"), None if given else threshold)))
    return 0


def _store_of(target: str) -> tuple[str, dict[str, object], float | None]:
    """The store that is meant; of a run also how it searched, and the score that decided, if scores there are q-normed."""
    from swsdist.chains.search.told import Fitted
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.inspection.recorded import recorded

    folder = Folder(target.rstrip("/"))
    if folder.exists("manifest.json") or not folder.exists("plan.json"):
        return target, {}, None
    course = recorded(folder)
    fitted = course.told("fit", Fitted)
    known = [one for one in fitted[0].thresholds if one is not None] if fitted else []
    normed = course.config.calibrate.steps == ("q-norm",)
    options = course.config.search.model_dump(mode="json", exclude_defaults=True)
    return course.config.store, options, sum(known) / len(known) if known and normed else None
