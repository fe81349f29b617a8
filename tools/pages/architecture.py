"""docs/concepts/architecture.md's table of rooms, and its picture, from the imports and docstrings of the package.

A room is a folder or a module of `swsdist/`. It stands one storey above the highest room that it imports. The picture shows the
imports that no others imply.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "swsdist"
_PAGE = ROOT / "docs" / "concepts" / "architecture.md"
_BEGIN, _END = "<!-- rooms: python -m tools.pages -->\n", "<!-- end of rooms -->\n"
_WIDTH, _BOX, _HIGH, _ROW = 860, 92, 24, 62


@cache
def trees() -> Mapping[str, ast.Module]:
    """The package's files, parsed, by their paths in the checkout."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a tree, at any depth; much quicker than all of its nodes."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(tree, field, ())
        for node in below if isinstance(below, list) else ():
            yield node
            yield from statements(node)


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that is imported, anywhere; relative ones as they are written."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            # `from swsdist import api` imports a room, `from swsdist.pipeline import plan` a module of one.
            yield from (
                (node.lineno, f"{module}.{alias.name}" if module == "swsdist" else module) for alias in node.names
            )


@cache
def rooms() -> Mapping[str, frozenset[str]]:
    """The rooms that each room imports."""
    names = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    found: dict[str, set[str]] = {name: set() for name in sorted(names - {"__init__"})}
    for path, tree in trees().items():
        if (room := Path(path).parts[1].removesuffix(".py")) in found:
            parts = (module.split(".") for _, module in imports(tree))
            found[room] |= {each[1] for each in parts if each[0] == "swsdist" and len(each) > 1} & names - {room}
    return {name: frozenset(below) for name, below in found.items()}


def storeys() -> list[list[str]]:
    """The rooms of each storey, the lowest first. Raises graphlib.CycleError."""
    rank: dict[str, int] = {}
    for name in TopologicalSorter(rooms()).static_order():
        rank[name] = 1 + max((rank[below] for below in rooms()[name]), default=-1)
    return [sorted(name for name in rank if rank[name] == storey) for storey in range(max(rank.values()) + 1)]


def page() -> str:
    """The page with its table anew."""
    head, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    lines = ["| room | holds |", "|---|---|"]
    lines += [f"| `{name}` | {_sentence(name)} |" for storey in reversed(storeys()) for name in storey]
    return head + _BEGIN + "\n" + "\n".join(lines) + "\n\n" + _END + rest.partition(_END)[2]


def _sentence(name: str) -> str:
    tree = trees().get(f"swsdist/{name}/__init__.py") or trees()[f"swsdist/{name}.py"]
    doc = ast.get_docstring(tree) or ""
    return " ".join(doc.split("\n\n")[0].split())


def picture() -> str:
    """The picture, as SVG."""
    rows = storeys()
    high = _ROW * len(rows)
    at = {}
    for storey, names in enumerate(rows):
        gap = _WIDTH / len(names)
        for k, name in enumerate(names):
            at[name] = (gap * (k + 0.5), high - _ROW * (storey + 0.5))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {high}" font-family="sans-serif" font-size="13">',
        "<title>Rooms of swsdist by layers, with the imports that no others imply</title>",
        f'<rect width="{_WIDTH}" height="{high}" fill="#fff"/>',
    ]
    lines += [
        f'<path d="M{at[name][0]:.0f} {at[name][1]:.0f}L{at[below][0]:.0f} {at[below][1]:.0f}" stroke="#9ab"/>'
        for name in at
        for below in sorted(_not_implied(name))
    ]
    for name, (x, y) in at.items():
        lines.append(
            f'<rect x="{x - _BOX / 2:.0f}" y="{y - _HIGH / 2:.0f}" width="{_BOX}" height="{_HIGH}" rx="4" fill="#eef3f8"'
            ' stroke="#357"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" fill="#123">{escape(name)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


@cache
def _reached(name: str) -> frozenset[str]:
    return rooms()[name].union(*(_reached(below) for below in rooms()[name]))


def _not_implied(name: str) -> frozenset[str]:
    return rooms()[name].difference(*(_reached(below) for below in rooms()[name]))
