"""Commands that convert figures and tables for a paper."""

from __future__ import annotations

import click

from swsdist.cli.options import Integer
from swsdist.cli.outputs import OutputCommand, written
from swsdist.report.pictures import PICTURES
from swsdist.report.tables import TABLES


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
