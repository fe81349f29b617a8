"""Names are nouns and verbs of the field: words that say nothing name no module, class, function, parameter or variable."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import swsdist

PACKAGE = Path(swsdist.__file__).parent

#: Each was the name of many things (reviews: `told` 702 times, `one` 3471).
EMPTY = {
    "told",
    "found",
    "one",
    "own",
    "asked",
    "heard",
    "whole",
    "ways",
    "mine",
    "theirs",
    "those",
    "taught",
    "telling",
}


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names that a module gives to things, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield 0, node.asname


def test_no_name_is_empty() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        found = [(0, path.stem), *names(ast.parse(path.read_text(encoding="utf-8")))]
        wrong += [
            f"{path.relative_to(PACKAGE)}:{line}: {name}" for line, name in found if name.strip("_").lower() in EMPTY
        ]
    assert Counter(line.partition("/")[0] for line in wrong) == {}, "\n".join(wrong)
