"""Each error has a code, each code is used, and each use gives the values of its message."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from swsdist.core import codes, errors
from swsdist.core.codes import Code, codes_of, every_code, families
from swsdist.registry.registry import COMMANDS
from tests.support.recipes import FOLDER
from tools.pages.architecture import ROOT, trees

PACKAGE = Path(codes.__file__).parents[2]
RECIPES = FOLDER / "swsdist_recipes"

#: What a call of a code, and of what takes one, has beside the values.
OF_CALLS = {"where", "count", "of", "most"}


CLASSES = {
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.SwsdistError)
}

#: Modules of codes by their full names: those of the package, and those of recipes.
AREAS = {
    name: importlib.import_module(name)
    for name in (
        *(f"{codes.__name__}.{module.name}" for module in pkgutil.iter_modules(codes.__path__)),
        *(f"{RECIPES.name}.{path.parent.name}.codes" for path in RECIPES.glob("*/codes.py")),
    )
}


def place_of(path: Path) -> Path:
    return path.relative_to(RECIPES.parent if path.is_relative_to(RECIPES) else PACKAGE)


def fields(code: Code[errors.SwsdistError]) -> set[str]:
    """Names of the values that message and remedy need."""
    parsed = (*string.Formatter().parse(code.message), *string.Formatter().parse(code.remedy))
    return {name.split(".")[0].split("[")[0] for _, name, _, _ in parsed if name} - {"s"}


@cache
def files() -> tuple[tuple[Path, list[ast.AST]], ...]:
    """The nodes of all modules but those of codes."""
    found = {ROOT / name: tree for name, tree in trees().items() if not name.startswith("swsdist/core/codes/")}
    for path in sorted(RECIPES.rglob("*.py")):
        if path.stem != "codes" and path.parent.name != "tests":
            found[path] = ast.parse(path.read_text(encoding="utf-8"))
    return tuple((path, [*ast.walk(tree)]) for path, tree in found.items())


def names_of(nodes: list[ast.AST]) -> dict[str, Code[errors.SwsdistError] | dict[str, object]]:
    """What names of a file are codes, or modules of codes: imported anywhere in it."""
    found: dict[str, Code[errors.SwsdistError] | dict[str, object]] = {}
    for node in nodes:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if (area := f"{node.module}.{alias.name}") in AREAS:
                found[name] = vars(AREAS[area])
            elif node.module in AREAS:
                found[name] = vars(AREAS[node.module])[alias.name]
    return found


def code_at(node: ast.expr, names: dict[str, object]) -> Code[errors.SwsdistError] | None:
    """The code that an expression names, with the texts that it gives a family."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("saying", "of"):
        code = code_at(node.func.value, names)
        return code.saying(*texts_in(node)) if code and node.func.attr == "saying" else code
    if isinstance(node, ast.Name):
        value = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        area = names.get(node.value.id)
        value = area.get(node.attr) if isinstance(area, dict) else None
    else:
        value = None
    return value if isinstance(value, Code) else None


def texts_in(call: ast.Call) -> list[str]:
    """The texts among the arguments of a call: of a family, or of its `saying`."""
    return [argument.value for argument in call.args if isinstance(argument, ast.Constant)]


@cache
def uses() -> tuple[tuple[Path, ast.Call, Code[errors.SwsdistError]], ...]:
    """Calls of codes, of their methods, and of what takes a code as an argument."""
    return tuple((path, call, code) for path, nodes in files() for call, code in uses_in(nodes))


def uses_in(nodes: list[ast.AST]) -> Iterator[tuple[ast.Call, Code[errors.SwsdistError]]]:
    names = names_of(nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if method in ("saying", "of"):
                continue
            called = node.func.value if isinstance(node.func, ast.Attribute) and method in ("invalid", "text") else None
            direct = code_at(node.func, names) or (code_at(called, names) if called is not None else None)
            if direct and (texts := texts_in(node)) and called is None:
                direct = direct.saying(*texts)
            for code in [direct] if direct else [one for argument in node.args if (one := code_at(argument, names))]:
                yield node, code


def test_names_are_those_of_the_constants() -> None:
    for area, module in AREAS.items():
        for name, value in vars(module).items():
            if isinstance(value, Code) and not value.family:
                assert value.name == name.lower().replace("_", "-"), f"{area}.{name}"


def test_names_are_unique() -> None:
    assert len(every_code()) == sum(len(codes_of(vars(module).values())) for module in AREAS.values())


def test_there_are_few() -> None:
    """What nobody would look up, count or test for shares the code of a family."""
    assert len(every_code(built_in=True)) <= 320


def test_each_is_used() -> None:
    used = {
        value.name
        for module in AREAS.values()
        for value in vars(module).values()
        if isinstance(value, Code) and value.family
    }
    for _, nodes in files():
        names = dict(names_of(nodes))
        named = (node for node in nodes if isinstance(node, ast.Name | ast.Attribute))
        used |= {code.name for node in named if (code := code_at(node, names))}
    assert sorted(set(every_code()) - used) == []


def test_families_bring_their_messages() -> None:
    """The text of a family says nothing about one mistake."""
    assert [
        f"{place_of(path)}:{call.lineno}: {code.name}" for path, call, code in uses() if code in vars(families).values()
    ] == []


def test_each_use_gives_the_values_of_the_message() -> None:
    wrong = []
    for path, call, code in uses():
        given = {word.arg for word in call.keywords if word.arg}
        if any(word.arg is None for word in call.keywords):
            wrong.append(f"{place_of(path)}:{call.lineno}: {code.name}: values must be named")
        elif not fields(code) <= given | ({"count", "of"} & OF_CALLS & given):
            wrong.append(f"{place_of(path)}:{call.lineno}: {code.name} lacks {fields(code) - given}")
        elif given - fields(code) - OF_CALLS:
            wrong.append(f"{place_of(path)}:{call.lineno}: {code.name} has no {given - fields(code) - OF_CALLS}")
    assert wrong == []


def test_errors_are_made_of_codes() -> None:
    assert [
        f"{place_of(path)}:{node.lineno}: {node.func.id}"
        for path, nodes in files()
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES
    ] == []


def texts_of_messages() -> Iterator[tuple[str, str]]:
    """Texts that may hold a command, by place: `{}` is a value as it is, `{q}` one that is quoted."""
    own = (code for module in AREAS.values() for code in vars(module).values() if isinstance(code, Code))
    for code in (*own, *(code for _, _, code in uses())):
        for text in (code.message, code.remedy):
            parts = string.Formatter().parse(text)
            yield (
                code.name,
                "".join(
                    f"{part}{'' if name is None else '{q}' if kind == 'q' else '{}'}" for part, name, _, kind in parts
                ),
            )
    for path, nodes in files():
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                values = (
                    part.value if isinstance(part, ast.Constant) else "{q}" if "quote(" in ast.unparse(part) else "{}"
                    for part in node.values
                )
                yield f"{place_of(path)}:{node.lineno}", "".join(map(str, values))


def test_a_shell_reads_the_commands_of_messages() -> None:
    """The first value of a command is a path or a name."""
    command = re.compile(r"swsdist [a-z-]+( [a-z-]+)? {}|swsdist [a-z-]+ [^;`]*--run {}")
    assert [f"{place}: {text}" for place, text in texts_of_messages() if command.search(text)] == []


def test_messages_advise_commands_that_exist() -> None:
    advised = {name for _, text in texts_of_messages() for name in re.findall(r"`swsdist ([a-z][a-z-]*)", text)}
    assert len(advised) > 10
    assert advised <= {*COMMANDS}


def test_texts_of_the_page_are_of_codes() -> None:
    """The page translates some codes by name: `reason.CODE`, `failure.CODE`."""
    texts = json.loads((PACKAGE / "server/static/texts/en.json").read_text(encoding="utf-8"))
    named = {key.split(".")[1] for key in texts if re.match(r"reason\.|failure\.\w+-", key)}
    assert named > {"no-speech", "too-short"}
    assert named <= {*every_code()}
