"""The house keeps its shape: rooms on storeys, no circles, files that say what they are about.

How many branches a function may have is ruff's rule C901.

Read from the source with `ast`, imports inside functions and under TYPE_CHECKING included: a name from above is wrong wherever
it stands.
"""

from __future__ import annotations

import ast
import importlib.metadata
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tools.pages.architecture import PACKAGE, ROOT, imports, statements, storeys, trees

MOST_STOREYS, MOST_ROOMS, MOST_MODULES = 11, 33, 450

#: Libraries that one file alone knows.
AT_HOME = {
    "ray": {
        "swsdist/searcher/on_ray.py",
        *(f"swsdist/pipeline/execution/{name}.py" for name in ("actor", "ray_executor", "ray_instance")),
    },
    "dask": {"swsdist/pipeline/execution/dask_executor.py"},
    "distributed": {"swsdist/pipeline/execution/dask_executor.py"},
    "fsspec": {"swsdist/io/remote/objects.py"},
    "s3fs": {f"swsdist/io/remote/{name}.py" for name in ("client", "objects")},
    "botocore": {"swsdist/io/failures.py"},
    "imageio_ffmpeg": {"swsdist/audio/formats/ffmpeg.py"},
}

NO_NAMES = {"utils", "util", "misc", "helpers", "helper", "common", "tools"}


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def wrong_imports(name: str, tree: ast.AST) -> list[str]:
    """What a file imports although it should not, a line each."""
    found = []
    for line, module in imports(tree):
        top = module.split(".")[0]
        if module.startswith("."):
            found.append(f"{name}:{line}: relative import of {module}")
        elif top in ("tests", "examples", "benchmarks", "swsdist_recipes"):
            found.append(f"{name}:{line}: {module} is no part of the package")
        elif name not in AT_HOME.get(top, {name}):
            found.append(f"{name}:{line}: only {', '.join(sorted(AT_HOME[top]))} may import {top}")
    return found


def test_imports_are_in_order() -> None:
    assert len(trees()) > 50
    assert [line for name, tree in trees().items() for line in wrong_imports(name, tree)] == []


def test_the_house_is_small() -> None:
    """No room is in a circle: `storeys` raises CycleError if one is."""
    rooms = storeys()
    assert len(rooms) <= MOST_STOREYS
    assert sum(map(len, rooms)) <= MOST_ROOMS
    assert len(trees()) <= MOST_MODULES


def test_the_check_finds_what_is_wrong() -> None:
    ray = "swsdist/pipeline/execution/ray_instance.py, swsdist/searcher/on_ray.py may import ray"
    for name, source, complaint in (
        ("report/x.py", "if True:\n    import ray.util", ray),
        ("store/x.py", "from s3fs import S3FileSystem", "swsdist/io/remote/client.py"),
        (
            "store/x.py",
            "def f():\n    try:\n        from . import parquet\n    finally:\n        pass",
            "relative import",
        ),
        ("testing/x.py", "from tests.oracles import search", "no part of the package"),
    ):
        (found,) = wrong_imports(f"swsdist/{name}", ast.parse(source))
        assert complaint in found
    assert not wrong_imports("swsdist/chains/x.py", ast.parse("from swsdist.store.reading import Store\nimport numpy"))


def modules() -> dict[str, set[str]]:
    """Every module of the package, with the modules that it imports anywhere."""
    names = {module_of(path) for path in trees()}
    found: dict[str, set[str]] = {}
    for path, tree in trees().items():
        mine = found[module_of(path)] = set()
        for node in statements(tree):
            if isinstance(node, ast.Import):
                mine |= {alias.name for alias in node.names} & names
            elif isinstance(node, ast.ImportFrom) and node.module:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                mine |= full & names
                mine |= {node.module} & names if full - names else set()
    return found


def test_modules_do_not_import_each_other_in_circles() -> None:
    graph = {name: below - {name} for name, below in modules().items()}
    try:
        assert len(list(TopologicalSorter(graph).static_order())) == len(trees())
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' -> '.join(error.args[1])}")


def test_the_package_says_that_it_has_types() -> None:
    """`py.typed` is in the package, and everything in the package is in the wheel."""
    assert (PACKAGE / "py.typed").is_file()
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert wheel["packages"] == ["swsdist"]
    assert not {"exclude", "only-include", "artifacts"} & wheel.keys()


def test_each_module_and_each_public_name_says_what_it_is() -> None:
    """A module without any code, an `__init__.py`, need not."""
    silent = [name for name, tree in trees().items() if tree.body and not ast.get_docstring(tree)]
    silent += [f"{name}:{line}: {what}" for name, tree in trees().items() for line, what in without_docstring(tree)]
    assert silent == []


def test_names_of_modules_say_something() -> None:
    assert [name for name in trees() if NO_NAMES & {part.strip("_") for part in Path(name).with_suffix("").parts}] == []


def without_docstring(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Public functions and classes at the top of a module, and public methods of those classes, that say nothing.

    What is only a type, its body being `...` (an overload, a protocol of somebody else's class), needs none.
    """
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield from _silent(node, node.name)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield from _silent(member, f"{node.name}.{member.name}")


def _silent(node: ast.FunctionDef | ast.ClassDef, name: str) -> Iterator[tuple[int, str]]:
    if not ast.get_docstring(node) and ast.unparse(node.body[-1]) != "...":
        yield node.lineno, name


def test_registered_names_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"console_scripts": project["scripts"], **project.get("entry-points", {})}
    for group, entries in groups.items():
        found = {entry.name: entry for entry in importlib.metadata.entry_points(group=group)}
        for name, target in entries.items():
            assert name in found, f"{name} of {group} is not installed: install the project again"
            assert found[name].value == target
            assert callable(found[name].load())


def test_commands_exist() -> None:
    import click

    from swsdist.registry.registries import COMMANDS

    for name, entry in COMMANDS.available.items():
        command = entry.load()
        assert isinstance(command, click.Command)
        assert command.name == name
        assert entry.says.endswith(".")


def test_a_stage_has_a_file_of_its_name() -> None:
    """Its own, that of a stage of its chain which it prepares, or the chain's, among those that chains share or in its chain's
    folder; the machinery knows none of them.
    """
    from swsdist.config import config_from_dict
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.ledger import Ledger
    from swsdist.registry.registries import CHAINS

    more = {
        "fuse": {"options": {"systems": [{"name": "a", "run": "a"}], "missing": "rescore"}},
        "lattices": {"search": {"method": "lattice"}, "calibrate": {"steps": []}},
    }
    names = set()
    built_in = [name for name, target in CHAINS.targets() if target.startswith("swsdist.")]
    assert len(built_in) >= 5
    for name in built_in:
        values = {"run": "r", "corpus": {"documents": "d"}, "chain": name, **more.get(name, {})}
        chain = CHAINS[name].load()(config_from_dict(values, "/tmp"), Ledger(Folder("/tmp/r")))
        assert chain.name == name
        files = {step.stage.name.replace("-", "_") for step in chain.steps}
        for step in chain.steps:
            folder, _, file = type(step.stage).__module__.rpartition(".")
            assert folder in {"swsdist.stages", f"swsdist.chains.{name}"}
            assert file in files | {"chain"}
            assert step.stage.version >= 1
        names |= {step.stage.name for step in chain.steps}
    for path, tree in trees().items():
        if path.startswith("swsdist/pipeline/"):
            said = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str}
            assert not said & (names - {"index", "score", "search"}), path


def test_public_names_of_the_package_exist() -> None:
    import swsdist

    for name in swsdist.__all__:
        assert getattr(swsdist, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = swsdist.nonsense
