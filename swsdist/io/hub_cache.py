"""Models in the cache of the Hugging Face hub; nothing is downloaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path


def folder_of(model: str) -> str:
    """The folder of a model; of one that ends in `owner/name` and does not exist, that model's in the cache."""
    place = Path(model)
    if place.is_dir() or len(place.parts) < 2:
        return model
    snapshot = _snapshot(_cache() / "models--{}--{}".format(*place.parts[-2:]))
    return model if snapshot is None else str(snapshot)


def way_to(model: str, files: str = "") -> str:
    """What to do where there is no such model: download it by its name; what is no name is a wrong path.

    Args:
        model: as it was asked for.
        files: options of `hf download`, for some files.
    """
    if re.fullmatch(r"[\w.-]*\w/\w[\w.-]*", model):
        return f"download it: hf download {model}{files}"
    return "check the path; or name a model in the cache: OWNER/NAME"


def cached_repositories() -> Iterator[tuple[str, Path]]:
    """Names of the models in the cache, and their folders."""
    for path in _cache().glob("models--*--*"):
        if (snapshot := _snapshot(path)) is not None:
            yield "/".join(path.name.split("--")[1:]), snapshot


def _cache() -> Path:
    """The cache, as huggingface_hub finds it."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()


def _snapshot(repository: Path) -> Path | None:
    """The folder of a model's newest revision in the cache."""
    try:
        revision = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    snapshot = repository / "snapshots" / revision
    return snapshot if snapshot.is_dir() else None
