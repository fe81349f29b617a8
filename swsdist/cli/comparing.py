"""Commands that compare systems and their costs, and convert figures and tables for a paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from swsdist.cli.options import TABLES_FOLDER, Integer, Number, OutputCommand, task_files, task_options, warn, written
from swsdist.core.codes import families
from swsdist.report.pictures import PICTURES
from swsdist.report.tables import TABLES

if TYPE_CHECKING:
    from swsdist.score.compare.results import ComparisonData


@click.command(cls=OutputCommand)
@click.argument("systems", nargs=-1, required=True, metavar="SYSTEM...")
@task_options
@click.option(
    "--by", multiple=True, metavar="COLUMN[:BINS]", help="Break down by a property; BINS: unit, q4, or edges 0.2,0.5,1."
)
@click.option("--queries", type=click.Path(), help="Table of query properties: query_id, columns for --by.")
@click.option("--documents", type=click.Path(), help="Table of document properties: doc_id, seconds, columns for --by.")
@click.option("--over-documents", is_flag=True, help="Add confidence intervals over documents.")
@click.option("--cnxe", is_flag=True, help="Add a paired test of min Cnxe.")
@click.option(
    "--conditions", metavar="NAME,NAME", help="Conditions of the SYSTEMs, in turn: compare each system's conditions."
)
@click.option("--level", type=Number(), default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--resamples", type=Integer(), default=10_000, show_default=True, help="Bootstrap resamples.")
@click.option("--seed", type=Integer(min=0), default=0, show_default=True, help="Seed of the bootstrap.")
@click.option(
    "--interval",
    type=click.Choice(["percentile", "bca"]),
    default="percentile",
    show_default=True,
    help="Kind of bootstrap interval.",
)
@click.option(
    "--zeros",
    type=click.Choice(["wilcox", "pratt", "zsplit"]),
    default="wilcox",
    show_default=True,
    help="Equal pairs in the signed-rank test.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=written(".html", ".htm"), help="Write one HTML page.")
@click.option("--csv", type=TABLES_FOLDER, metavar="DIR", help="Write all numbers as CSV files.")
@click.option("--table", type=written(*TABLES, several=True), help="Write the tables: .csv, .tex, .md or .json.")
@click.option("--paper", type=written(*TABLES), help="Write a table of measures, a row per SYSTEM (one is enough).")
@click.option(
    "--columns",
    default="mtwv,atwv,cnxe_min,cnxe",
    show_default=True,
    metavar="NAME,...",
    help="Measures of --paper, named as in score --all-measures --json.",
)
@click.option("--det", type=written(*PICTURES, ".csv"), help="Write the DET curves: .svg, .pdf, .png; points: .csv.")
@click.option("--forest", type=written(*PICTURES), help="Draw values with intervals: .svg, .pdf, .png.")
def compare(systems: tuple[str, ...], **options: Any) -> int:
    """Compare systems: measures with intervals, paired tests, breakdowns.

    Each SYSTEM is a run folder, a per-term table (swsdist score --per-term), or, with --ecf, --rttm and --terms (or
    --references), a list. NAME=PATH names a system.

    \b
    swsdist compare runs/a runs/b --by duration:q4 --html ab.html
    swsdist compare one=a.xml two=b.xml --ecf ecf.xml --rttm ref.rttm --terms tlist.xml
    swsdist compare runs/* --paper results.tex --columns mtwv,atwv,map
    """
    import json
    import shutil
    import textwrap
    from dataclasses import replace

    from swsdist.chains.report.publish import from_run
    from swsdist.core.codes.score import TOO_FEW_SYSTEMS
    from swsdist.evaluation.comparison import ComparisonRequest, compare_conditions, compare_systems, gather_systems
    from swsdist.io.notices import Notices
    from swsdist.report.comparing import (
        about_tables,
        breakdown_tables,
        entropy_tables,
        measure_tables,
        paper_table,
        protocol_lines,
        to_json,
    )
    from swsdist.report.tables import text_lines, write_tables
    from swsdist.score.compare.paired import Settings
    from swsdist.score.events import measure_names

    notices = Notices(options["strict"], options["force"])
    files = task_files(options)
    task = None
    if any(files.values()):
        from swsdist.evaluation.reading import protocol_for, read_task

        rules = protocol_for(options["protocol"], options["terms"], beta=options["beta"])
        task = read_task(**files, protocol=rules, notices=notices)
    settings = Settings(options["level"], options["resamples"], options["seed"], options["interval"], options["zeros"])
    drawn = bool(options["html"] or options["det"])
    request = ComparisonRequest(
        options["by"], options["queries"], options["documents"], options["over_documents"], drawn, options["cnxe"]
    )
    keys = measure_names([name.strip() for name in options["columns"].split(",")], "--columns")
    gathered = gather_systems(systems, task, from_run, [str(file) for file in files.values() if isinstance(file, str)])
    if len(gathered) == 1:
        if not options["paper"]:
            raise TOO_FEW_SYSTEMS(systems=1)
        others = {"html": "--html", "csv": "--csv", "table": "--table", "det": "--det", "forest": "--forest"}
        others |= {"as_json": "--json", "by": "--by", "conditions": "--conditions"}
        if flags := [flag for key, flag in others.items() if options[key]]:
            raise families.TOO_FEW(
                "a comparison needs two systems; of one there is only --paper",
                "name another SYSTEM, or remove these options",
                where=", ".join(flags),
            )
    if options["conditions"]:
        data = compare_conditions(gathered, options["conditions"].split(","), settings)
    else:
        data = compare_systems(gathered, request, settings)
    data = replace(data, notices=tuple(str(notices).splitlines()))
    if options["paper"]:
        note = f"Scored by {'; '.join(protocol_lines(data))}."
        table = paper_table({item.name: item.measures() for item in gathered}, keys, data, note)
        write_tables([table], options["paper"])
        if len(gathered) == 1:
            warn(notices)
            print("\n".join(text_lines(table, shutil.get_terminal_size((110, 24)).columns)))
            return 0
    _write(data, options)
    warn(notices)
    if options["as_json"]:
        print(json.dumps(to_json(data), indent=1, allow_nan=False))
        return 0
    # Without a terminal the width is fixed.
    width = shutil.get_terminal_size((110, 24)).columns
    for line in protocol_lines(data):
        print("\n".join(textwrap.wrap(line, width)), end="\n\n")
    tables = [table for block in data.blocks for table in measure_tables(data, block)]
    for table in (*tables, *entropy_tables(data), *breakdown_tables(data), *about_tables(data)):
        print("\n".join([*text_lines(table, width), ""]))
    return 0


def _write(data: ComparisonData, options: Mapping[str, Any]) -> None:
    """Write the output files."""
    import sys
    from pathlib import Path

    from swsdist.report.comparing import (
        breakdown_tables,
        det_table,
        entropy_tables,
        measure_tables,
        write_csv_tables,
    )
    from swsdist.report.pictures import write_picture
    from swsdist.report.tables import write_tables

    if options["html"]:
        from swsdist.report.comparing import render_comparison

        Path(options["html"]).write_text(render_comparison(data), encoding="utf-8")
        print(f"page: {options['html']}", file=sys.stderr)
    if options["csv"]:
        write_csv_tables(data, Path(options["csv"]))
    if options["table"]:
        tables = [table for block in data.blocks for table in measure_tables(data, block)]
        write_tables([*tables, *entropy_tables(data), *breakdown_tables(data)], options["table"])
    if options["forest"]:
        from swsdist.report.comparing import forest_plots

        write_picture(forest_plots(data), options["forest"])
    if (det := options["det"]) is None:
        return
    if not data.lines:
        raise families.UNDEFINED(
            "no system has a DET curve",
            "name run folders, or lists with --ecf, --rttm and --terms; without --conditions",
            where=det,
        )
    if det.lower().endswith(PICTURES):
        from swsdist.report.comparing import det_plot

        write_picture(det_plot(data) or "", det)
    else:
        from swsdist.io.tables import write_csv

        points = det_table(data)
        write_csv(points, points.schema, Path(det))


@click.command(cls=OutputCommand)
@click.argument("folder", required=False, metavar="[RUN]")
@click.option("--indexing-cpu", "index_cpu_s", type=Number(), metavar="S", help="CPU seconds of indexing.")
@click.option("--searching-cpu", "search_cpu_s", type=Number(), metavar="S", help="CPU seconds of searching.")
@click.option("--audio", "audio_s", type=Number(), metavar="S", help="Seconds of audio.")
@click.option("--queries", "query_s", type=Number(), metavar="S", help="Seconds of all query examples.")
@click.option(
    "--indexing-gb",
    "index_peaks_gb",
    type=Number(),
    multiple=True,
    metavar="GB",
    help="Peak memory of a node; repeatable.",
)
@click.option(
    "--searching-gb",
    "search_peaks_gb",
    type=Number(),
    multiple=True,
    metavar="GB",
    help="Peak memory of a node; repeatable.",
)
@click.option("--lambda", "weight", type=Number(), help="Weight of indexing in PL. [default: the run's, or 0.1]")
@click.option("--table", type=written(*TABLES), help="Write a table: .csv, .tex, .md or .json.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def resources(folder: str | None, table: str | None, as_json: bool, **numbers: Any) -> int:
    """Compute ISF, SSF, PMU and PL of RUN (a run folder), or from numbers; numbers override those of RUN."""
    import json
    from dataclasses import asdict

    from swsdist.report.page import from_numbers, resource_lines, resource_table
    from swsdist.report.tables import write_tables

    gathered = from_numbers(folder, **numbers)
    if table is not None:
        write_tables([resource_table(gathered)], table)
    print(json.dumps(asdict(gathered), indent=1) if as_json else "\n".join(resource_lines(gathered)))
    return 0


@click.group()
def paper() -> None:
    """Convert figures and tables for a paper."""


@paper.command(cls=OutputCommand)
@click.argument("source")
@click.argument("out", type=written(*PICTURES))
def figure(source: str, out: str) -> int:
    """Convert the plot SOURCE (.svg) to OUT: .svg, .pdf or .png.

    \b
    swsdist paper figure study/fig5.svg fig5.pdf
    """
    from swsdist.report.pictures import read_picture, write_picture

    write_picture(read_picture(source), out)
    return 0


@paper.command(cls=OutputCommand)
@click.argument("source")
@click.argument("out", type=written(*TABLES))
@click.option("--columns", metavar="NAME,NAME=HEADING", help="Columns in order. [default: all]")
@click.option("--sort", "by", metavar="COLUMN|-COLUMN", help="Sort by a column; -: descending.")
@click.option("--first", type=Integer(1), metavar="N", help="Keep the first N rows.")
@click.option("--decimals", type=Integer(0, 12), help="Decimals of numbers. [default: six significant digits]")
@click.option("--caption", default="Results", show_default=True, help="Caption of the table.")
def table(
    source: str, out: str, columns: str | None, by: str | None, first: int | None, decimals: int | None, caption: str
) -> int:
    """Convert the table SOURCE (CSV, Parquet) to OUT: .csv, .tex, .md or .json.

    \b
    swsdist paper table points.csv best.tex --columns search.distance=distance,mtwv --sort -mtwv --first 5 --decimals 3
    """
    from swsdist.report.tables import read_rows, select_columns, table_of, write_tables

    names = [name for name in (columns or "").split(",") if name]
    headings = [name.partition("=")[2] or name for name in names]
    if twice := [heading for heading in headings if headings.count(heading) > 1]:
        raise click.UsageError(f"--columns: two columns are called {twice[0]!r}; give each a heading of its own.")
    rows = select_columns(read_rows(source), source, names, by, first)
    write_tables([table_of(rows, caption, decimals, names_first=False)], out)
    return 0
