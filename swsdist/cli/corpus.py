"""Commands for corpora."""

from __future__ import annotations

import click

from swsdist.cli.options import FILE, allow_commands
from swsdist.cli.outputs import OutputCommand, written
from swsdist.report.tables import TABLES


@click.group()
def corpus() -> None:
    """Describe a corpus."""


@corpus.command(cls=OutputCommand)
@click.argument("corpora", nargs=-1, required=True, type=FILE, metavar="CORPUS...")
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config; repeatable.")
@click.option("--table", type=written(*TABLES, several=True), help="Write the tables: .csv, .tex, .md or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-audio", is_flag=True, help="Skip the audio: no speech, no signal-to-noise ratio.")
@click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4.")
@allow_commands
@click.pass_context
def describe(
    context: click.Context,
    corpora: tuple[str, ...],
    sets: tuple[str, ...],
    table: str | None,
    as_json: bool,
    no_audio: bool,
    strict: bool,
) -> int:
    """Describe each CORPUS (a corpus file, or a config): durations, speakers, signal-to-noise ratios, words, queries.

    \b
    swsdist corpus describe configs/corpora/mine.yaml --table mine.tex
    """
    import shutil
    import sys
    from pathlib import Path

    from swsdist.chains.report.description import describe as work
    from swsdist.chains.report.description import tables_of, text_tables
    from swsdist.cli.outputs import refuse_overwriting_inputs, write_data
    from swsdist.cli.progress import showing_audio_read
    from swsdist.config import load_corpus
    from swsdist.config.section import paths_in
    from swsdist.core.codes import cli as codes
    from swsdist.report.tables import text_lines, to_json, write_tables

    names = [Path(corpus).stem for corpus in corpora]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise codes.DUPLICATE_CORPUS(name=twice)
    configs = [load_corpus(corpus, sets) for corpus in corpora]
    refuse_overwriting_inputs(context, [path for config in configs for path in paths_in(config.corpus)])
    descriptions = []
    with showing_audio_read() as show:
        for name, config in zip(names, configs, strict=True):
            descriptions.append(work(config, name, listen=not no_audio, strict=strict, progress=show))
    tables = tables_of(*descriptions)
    if table is not None:
        write_tables(tables, table)
    if as_json:
        write_data()
        print(to_json(tables), end="")
    else:
        width = shutil.get_terminal_size((110, 24)).columns
        shown = text_tables(*descriptions)
        for item in shown:
            print("\n".join([*text_lines(item, width), ""]))
        if len(descriptions) > 1:
            print("--table FILE and --json also have the recordings, speakers and queries of each")
        elif len(shown) < len(tables):
            print(f"{len(descriptions[0].recordings)} recordings: --table FILE and --json have a row each")
    for name, description in zip(names, descriptions, strict=True):
        for notice in description.notices:
            print(f"warning: {f'{name}: ' if len(descriptions) > 1 else ''}{notice}", file=sys.stderr)
    return 0
