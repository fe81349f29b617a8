"""Modules and lines of code, without docstrings, comments and blank lines: python -m tools.lines [FOLDER ...]."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Lines of a module that have code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


if __name__ == "__main__":
    for folder in sys.argv[1:] or ["swsdist"]:
        counts = [code_lines(path.read_text(encoding="utf-8")) for path in Path(folder).rglob("*.py")]
        print(f"{folder}: {len(counts)} modules, {sum(counts)} lines of code")
