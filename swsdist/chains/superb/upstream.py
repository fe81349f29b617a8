"""The folder of a speech encoder, by path or by its id on the hub of Hugging Face; nothing is fetched."""

from __future__ import annotations

from pathlib import Path

from swsdist.core.codes import superb as codes
from swsdist.features.ssl.folder import read_encoder
from swsdist.io.local import folder_of


def upstream_folder(name: str) -> str:
    """The folder of a model.

    Args:
        name: a folder, or an id (`facebook/hubert-base-ls960`) that the hub's cache on this machine has.

    Raises:
        ConfigError: it is no folder, and the cache does not have the model.
    """
    folder = Path(folder_of(name))
    if not folder.is_dir():
        raise codes.NO_SUCH_UPSTREAM(where="--upstream", name=name)
    return str(folder.absolute())


def chosen_layers(text: str, folder: str) -> tuple[int, ...]:
    """Layers of a model, ascending.

    Args:
        text: `all`, or numbers between commas.
        folder: of the model.

    Raises:
        ConfigError: not such a list, or the model has no such layer.
    """
    last = read_encoder(folder).layers
    if text == "all":
        return tuple(range(last + 1))
    numbers = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) <= last for part in numbers):
        raise codes.NO_SUCH_LAYERS(where="--layers", text=text, last=last)
    return tuple(sorted({int(part) for part in numbers}))
