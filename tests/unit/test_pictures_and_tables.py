"""Figures and tables for papers: what a file's ending says is what it holds."""

from __future__ import annotations

import json
import re
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.report.pictures import PICTURES, write_picture
from swsdist.report.plots.curves import Axes, Series, lines_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.report.tables import TABLES, Table, latex, markdown, to_json, write_tables
from tests.support.coded import raises

ODD = r"50% of a_b & {x} #1 $~^\ <q> a--b | `*` " "[q]"


def plot(label: str = "Größe") -> str:
    return lines_svg([Series(label, [0, 1, 2], [0, 1, 0.5])], Axes("alpha", "ATWV"), title="A plot")


def table(**more: object) -> Table:
    rows = [("q_1", "0.1287", "–"), ("[q2]", "1.5", "3")]
    return Table("50% of all", ("query", "value", "n"), rows, "p < 0.05.", **more)  # type: ignore[arg-type]


def streams(data: bytes) -> bytes:
    """The streams of a PDF, unpacked."""
    packed = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    return b"\n".join(zlib.decompressobj().decompress(one) for one in packed if one[:1] == b"x")


def test_a_pdf_holds_lines_and_letters(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    write_picture(plot(), tmp_path / "p.pdf")
    data = (tmp_path / "p.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert not re.search(rb"/Subtype\s*/Image\b", data)  # no pixels
    assert re.search(rb"/BaseFont\s*/[A-Z]{6}\+LiberationSans", data)  # the part of it that is shown
    width, height = (float(one) for one in re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", data).groups())  # type: ignore[union-attr]
    told = re.match(r'<svg [^>]*width="(\d+)" height="(\d+)"', plot())
    assert told is not None
    assert (width, height) == pytest.approx((int(told[1]) * 0.75, int(told[2]) * 0.75))
    assert streams(data).count(b"BT") >= 10  # letters are letters
    write_picture(plot(), tmp_path / "again.pdf")
    assert (tmp_path / "again.pdf").read_bytes() == data
    write_picture(plot(), tmp_path / "p.SVG")
    assert (tmp_path / "p.SVG").read_text(encoding="utf-8") == plot()
    for name in ("p", "p.eps", "p.svg.gz"):
        with pytest.raises(UserError):
            write_picture(plot(), tmp_path / name)


def test_a_png_has_300_dots_an_inch_on_white(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    write_picture(side_by_side([plot(), plot()], title="Two"), tmp_path / "p.png")
    data = (tmp_path / "p.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, _ = struct.unpack(">II", data[16:24])
    assert width == pytest.approx(2 * 460 * 300 / 96, abs=2)
    chunks = b"".join(re.findall(rb"IDAT(.*?)....(?=....(?:IDAT|IEND))", data, re.DOTALL))
    first = zlib.decompressobj().decompress(chunks, 64)
    assert first[1:5] == b"\xff\xff\xff\xff"  # the corner: white, and not transparent


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from swsdist.cli.options import written
    from swsdist.report import pictures

    monkeypatch.setattr(pictures.importlib.util, "find_spec", lambda name: None)
    path = str(tmp_path / "p.pdf")
    for call in (lambda: write_picture(plot(), path), lambda: written(*PICTURES).convert(path, None, None)):
        with raises(families.NOT_INSTALLED) as caught:
            call()
        assert "pip install 'swsdist[figures]'" in (caught.value.remedy or "")
        assert f"rsvg-convert -f pdf -o {path}" in (caught.value.remedy or "")
    write_picture(plot(), tmp_path / "p.svg")


def test_latex_takes_nothing_for_its_own() -> None:
    text = latex([Table(ODD, ("name", "value"), [(ODD, "–"), ("[x] *", "1±2")], "p < 0.05\nnext")])
    assert text.startswith("% needs \\usepackage{booktabs}\n")
    assert r"\{x\} \#1 \$\textasciitilde{}\textasciicircum{}\textbackslash{} \textless{}q" in text
    assert "\n{[}x] * & 1$\\pm$2 \\\\\n" in text  # else the row before it would take it for its own
    assert r"\begin{tabular}{lr}" in text
    text = latex([Table("Queries", ("query",), [("kyέrε",), ("ω",)])])
    assert text.splitlines()[1] == "% needs XeLaTeX or LuaLaTeX, and a font with έ ε ω"
    text = latex([Table("Queries", ("query", "n"), [(f"q{k}", str(k)) for k in range(99)])])
    assert r"\usepackage{longtable}" in text
    assert text.count(r"\begin{longtable}{lr}") == text.count(r"\end{longtable}") == 1
    assert r"\begin{table}" not in text


def test_negative_numbers_have_a_minus_in_latex() -> None:
    """Hyphens of names, dates, ranges and exponents stay."""
    row = ("q-norm, mfcc-13 of 2013-05-01", "-0.0868", "-.5 [-inf, -0.25], 3-5, 1e-05")
    text = latex([Table("t", ("a - b", "c", "d"), [row], "from -1 to 2")])
    assert r"q-norm, mfcc-13 of 2013-05-01 & $-$0.0868 & $-$.5 [$-$inf, $-$0.25], 3-5, 1e-05 \\" in text
    assert r"a - b & c & d \\" in text
    powers = latex([Table("Tests of A, p", ("pair", "p"), [("x", "1e-05"), ("y", "-2.28e-06")])])
    assert r"x & $10^{-5}$ \\" in powers
    assert r"y & $-2.28\times 10^{-6}$ \\" in powers
    assert r"\label{tab:tests-of-a-p}" in powers
    assert "t. from $-$1 to 2" in text


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_name_is_one_cell(one: str, other: str) -> None:
    """Whatever a name holds, LaTeX and Markdown see one row of two cells, and no command of the name's own."""
    table = Table("t", ("a", "b"), [(one, other)])
    text = latex([table])
    row = text.split("\\midrule\n")[1].split("\n\\bottomrule")[0]
    assert "\n" not in row
    # Without what stands for a letter, nothing that LaTeX obeys is left but the end of the cell and of the row.
    bare = re.sub(
        r"\\(text[a-z]+|dots)\{\}|\{\\char34\}|\$(\\[a-z]+|-)\$|\\[&%$#_{}]|-\{\}", "", row.removesuffix(r" \\")
    )
    bare = re.sub(r"^\{([\[*])\}", r"\1", bare)
    assert bare.count("&") == 1
    assert not set(bare) & set('\\{}$%#_~^<>|`"')
    lines = markdown([table]).splitlines()
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[4])) == 3


def test_programs_get_values(tmp_path: Path) -> None:
    rows = [{"query": "q_1", "value": "0.1287", "n": None}, {"query": "[q2]", "value": "1.5", "n": "3"}]
    assert json.loads(to_json([table()]))["tables"][0]["rows"] == rows
    plain = [{"query_id": "q_1", "value": 0.128712345, "n": None}, {"query_id": "[q2]", "value": float("nan"), "n": 3}]
    found = json.loads(to_json([table(plain=plain)]))["tables"][0]["rows"][1]
    assert found == {"query_id": "[q2]", "value": None, "n": 3}
    (path,) = write_tables([table(plain=plain)], tmp_path / "t.csv")
    assert path.read_text(encoding="utf-8").split() == ["query_id,value,n", "q_1,0.128712345,", "[q2],,3"]
    paths = write_tables([table(), table(), Table("Other: b/c", ("a",), [])], tmp_path / "t.csv")
    assert [path.name for path in paths] == ["t-50-of-all.csv", "t-50-of-all-1.csv", "t-other-b-c.csv"]
    assert paths[2].read_text(encoding="utf-8") == "a\n"
    for ending in TABLES:
        assert write_tables([table()], tmp_path / f"one{ending}") == [tmp_path / f"one{ending}"]
    with pytest.raises(UserError):
        write_tables([table()], tmp_path / "t.xlsx")
    lines = markdown([table(), Table(ODD, ("a|b",), [("x|y\nz",)])]).splitlines()
    assert lines[:4] == ["**50% of all**", "", "| query | value | n |", "| --- | ---: | ---: |"]
    assert {r"| \[q2\] | 1.5 | 3 |", r"| x\|y\\nz |"} <= set(lines)
