"""Pictures as files: SVG, PDF or PNG, by the file's ending.

All plots are SVG text (`swsdist.report.plots`); vl-convert (extra `figures`) converts it to PDF and PNG, with its
font, Liberation Sans, which has the letters of Latin, Greek and Cyrillic. A PDF holds lines and letters, not pixels, and the
part of the font that it shows. Its size is that of the SVG at 96 pixels an inch; a PNG has 300 dots an inch, on white.

The same SVG gives the same bytes if no other font is requested (`docs/decisions/0021-figures-and-tables.md`).
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from swsdist.core.codes import families
from swsdist.core.errors import DataError, UserError

#: Endings of pictures.
PICTURES = (".svg", ".pdf", ".png")

#: Dots per inch of SVG in browsers, of PDF, and of our PNG.
_SVG_DOTS, _PDF_DOTS, _PNG_DOTS = 96, 72, 300
_FONT = "Liberation Sans, "

_ROOT = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"')


def demand_converter(path: str) -> None:
    """Check that a picture with this ending can be written here.

    Raises:
        UserError: PDF and PNG need a library that is not installed.
    """
    ending = Path(path).suffix.lower()
    if ending in (".pdf", ".png") and importlib.util.find_spec("vl_convert") is None:
        svg = Path(path).with_suffix(".svg")
        raise families.NOT_INSTALLED.of(UserError)(
            "{ending} needs vl-convert, which is not installed",
            (
                "pip install 'swsdist[figures]', or write {svg}, and convert it: rsvg-convert -f "
                "{format} -o {path!q} {svg!q}"
            ),
            where=path,
            ending=ending,
            svg=svg,
            format=ending[1:],
            path=path,
        )


def write_picture(svg: str, path: str | Path) -> None:
    """Write a plot to a file.

    Args:
        svg: one `<svg>` element with viewBox, width and height, as all plots here are.
        path: local file; it ends in `.svg`, `.pdf` or `.png`.

    Raises:
        UserError: another ending, or the library for PDF and PNG is not installed.
    """
    ending = Path(path).suffix.lower()
    if ending not in PICTURES:
        *others, last = PICTURES
        endings = f"{', '.join(others)} or {last}"
        raise families.UNKNOWN_NAME(
            "the name of a picture must end in {endings}",
            "name a file that ends in {endings}",
            where=str(path),
            endings=endings,
        )
    demand_converter(str(path))
    if ending == ".svg":
        Path(path).write_text(svg, encoding="utf-8")
        return
    import vl_convert

    if ending == ".pdf":
        data = vl_convert.svg_to_pdf(_with_font(_resized(svg, _PDF_DOTS / _SVG_DOTS)))
    else:
        data = vl_convert.svg_to_png(_with_font(_on_white(svg)), scale=_PNG_DOTS / _SVG_DOTS)
    Path(path).write_bytes(data)


def read_picture(path: str) -> str:
    """Read a plot of swsdist, local or `s3://`.

    Raises:
        UserError: no such file.
        DataError: not a plot of swsdist.
    """
    from swsdist.io.compressed import opened

    with opened(path) as stream:
        text = stream.read().decode("utf-8", "replace")
    if not _ROOT.match(text):
        raise families.WRONG_KIND.of(DataError)(
            "not a plot that swsdist has drawn", "name an .svg of a run, a sweep or a command", where=path
        )
    return text


def _resized(svg: str, factor: float) -> str:
    """The plot at another size."""
    size = _ROOT.match(svg)
    assert size is not None
    width, height = (factor * int(size[k]) for k in (1, 2))
    head = size[0].replace(f'width="{size[1]}" height="{size[2]}"', f'width="{width:g}" height="{height:g}"')
    return head + svg[size.end() :]


def _on_white(svg: str) -> str:
    """The plot on a white background."""
    end = svg.index(">") + 1
    return f'{svg[:end]}<rect width="100%" height="100%" fill="#ffffff"/>{svg[end:]}'


def _with_font(svg: str) -> str:
    """The plot with the bundled font first."""
    return svg.replace('font-family="', f'font-family="{_FONT}')
