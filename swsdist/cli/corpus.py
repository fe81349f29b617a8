"""Commands for corpora."""

from __future__ import annotations

import click

from swsdist.cli.options import allow_commands
from swsdist.cli.outputs import written
from swsdist.report.tables import TABLES


@click.group()
def corpus() -> None:
    """Describe a corpus."""


@corpus.command()
@click.argument("corpus", type=click.Path(exists=True, dir_okay=False))
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key: corpus.queries=FILE; may be repeated.")
@click.option("--table", type=written(*TABLES), help="Also write the tables: .csv, .tex, .md or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-audio", is_flag=True, help="Do not listen to the recordings: no speech, no signal-to-noise ratios.")
@click.option("--strict", is_flag=True, help="Warnings are errors.")
@allow_commands
def describe(corpus: str, sets: tuple[str, ...], table: str | None, as_json: bool, no_audio: bool, strict: bool) -> int:
    """What a CORPUS (a corpus file, or a config) holds: durations, speakers, signal-to-noise ratios, words, queries.

    \b
    swsdist corpus describe configs/corpora/mine.yaml --table mine.tex
    """
    import shutil
    import sys
    from pathlib import Path

    from swsdist.cli.outputs import write_data
    from swsdist.cli.progress import hearing
    from swsdist.config import load_corpus
    from swsdist.corpora.description import describe as work
    from swsdist.corpora.tables import tables_of, text_tables
    from swsdist.report.tables import text_lines, to_json, write_tables

    config = load_corpus(corpus, sets)
    with hearing() as show:
        found = work(config, Path(corpus).stem, listen=not no_audio, strict=strict, progress=show)
    if table is not None:
        write_tables(tables_of(found), table)
    if as_json:
        write_data()
        print(to_json(tables_of(found)), end="")
    else:
        width = shutil.get_terminal_size((110, 24)).columns
        shown = text_tables(found)
        for one in shown:
            print("\n".join([*text_lines(one, width), ""]))
        if len(shown) < len(tables_of(found)):
            print(f"{len(found.recordings)} recordings: --table FILE and --json have a row each")
    for notice in found.notices:
        print(f"warning: {notice}", file=sys.stderr)
    return 0
