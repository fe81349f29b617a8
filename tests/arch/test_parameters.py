"""Docstrings document what exists: each name of `Args:` is a parameter, each of `Attributes:` an attribute."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tools.pages.architecture import trees

Function = ast.FunctionDef | ast.AsyncFunctionDef
ENTRY = re.compile(r"    ([*\w]+(?:, [*\w]+)*):(?: |$)")


class Class(NamedTuple):
    """A class as documented and as it is, without what it inherits; `parameters` are None without an `__init__`."""

    place: str
    documented: dict[str, list[str]]
    parameters: list[str] | None
    attributes: set[str]
    bases: list[str]


def documented(node: Function | ast.ClassDef) -> dict[str, list[str]]:
    """Names that the sections of a docstring describe."""
    names = {}
    for section in ("Args", "Attributes"):
        _, _, rest = (ast.get_docstring(node) or "").partition(f"{section}:\n")
        entries = map(ENTRY.match, rest.partition("\n\n")[0].splitlines())
        names[section] = [name.lstrip("*") for entry in entries if entry for name in entry[1].split(", ")]
    return names


def parameters(node: Function) -> list[str]:
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
    return [argument.arg for argument in every if argument]


def attributes(node: ast.ClassDef) -> Iterator[str]:
    """Fields, methods, and what methods set."""
    for part in node.body:
        if isinstance(part, Function):
            yield part.name
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self":
            yield part.attr


def definitions(node: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """Functions and classes, with those inside them."""
    for part in getattr(node, "body", ()):
        if isinstance(part, Function | ast.ClassDef):
            yield part
        yield from definitions(part)


def class_of(node: ast.ClassDef, place: str) -> Class:
    inits = (parameters(part) for part in node.body if isinstance(part, Function) and part.name == "__init__")
    bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
    return Class(place, documented(node), next(inits, None), set(attributes(node)), bases)


def test_documented_names_exist() -> None:
    wrong, classes = [], defaultdict[str, list[Class]](list)
    for path, tree in trees().items():
        for node in definitions(tree):
            place = f"{path}:{node.lineno}: {node.name}"
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(class_of(node, place))
            else:
                names = documented(node)["Args"]
                wrong += [f"{place}: {name}" for name in names if name not in parameters(node)]

    def with_bases(each: Class) -> Iterator[Class]:
        yield each
        for base in (known for name in each.bases for known in classes.get(name, ())):
            yield from with_bases(base)

    for each in [each for named in classes.values() for each in named]:
        fields = {name for known in with_bases(each) for name in known.attributes}
        taken = next((known.parameters for known in with_bases(each) if known.parameters is not None), fields)
        wrong += [f"{each.place}: {name}" for name in each.documented["Args"] if name not in taken]
        wrong += [f"{each.place}: {name}" for name in each.documented["Attributes"] if name not in fields]
    assert not wrong, "\n".join(wrong)
