"""This checkout's recipes, found by this process and by those that it starts, whether they are installed or not."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "recipes"


def find_recipes() -> None:
    """Put the folder of recipes first on the path of modules, with the metadata that an installation would have."""
    place = str(FOLDER)
    if place in os.environ.get("PYTHONPATH", "").split(os.pathsep) and place in sys.path:
        return
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {target}" for key, target in entries.items()))
    ]
    folder = FOLDER / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    for file, text in (
        ("METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
        ("entry_points.txt", "".join(f"{line}\n" for line in lines)),
    ):
        aside = folder / f".{file}-{os.getpid()}"  # other processes may read it
        aside.write_text(text)
        aside.replace(folder / file)
    sys.path.insert(0, place)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH"))))
