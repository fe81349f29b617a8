"""All frames, by key, of a file, or of a folder of files of one format."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import UserError
from swsdist.io.filesystem import Folder, Info, identify, is_remote, locate
from swsdist.io.frames.ark import KALDI
from swsdist.io.frames.hdf5 import HDF5
from swsdist.io.frames.htk import HTK
from swsdist.io.frames.item import UNREADABLE, Format, Item, RawFrames, Reader
from swsdist.io.frames.numpy_files import NPY, NPZ
from swsdist.io.frames.parquet import PARQUET
from swsdist.io.local import is_readable

#: Names of the formats; `auto`: by the ending.
Form = Literal["auto", "kaldi", "htk", "npy", "npz", "hdf5", "parquet"]

FORMATS: dict[str, Format] = {"kaldi": KALDI, "htk": HTK, "npy": NPY, "npz": NPZ, "hdf5": HDF5, "parquet": PARQUET}

#: Files that a process keeps open.
_OPEN = 4

#: Endings shown in a message.
_SHOWN = 4

_opened: OrderedDict[tuple[str, str, str], Reader] = OrderedDict()


def find_items(path: str, form: Form = "auto", storage: Mapping[str, object] | None = None) -> dict[str, Item]:
    """Places of the frames of each key.

    Args:
        path: a file, or a folder of files of one format; local or `s3://`.
        form: the format; by default recognised by the ending.
        storage: options for s3fs.

    Returns:
        Items by key, in the order of the files. For a format with one item per file the key is the file's relative path
        without ending.

    Raises:
        UserError: there are no files, or several formats.
        DataError: a file is damaged, or two items have one key.
        ConfigError: the library of the format is not installed.
    """
    options = storage or {}
    result: dict[str, Item] = {}
    for name, file, key, info in _files(path, form, options):
        entry = FORMATS[name]
        if entry.find is None:
            # Identities ignore permissions: with permissions corrected the identity differs, and the item is tried
            # again.
            readable = is_remote(file) or is_readable(file)
            items: Iterator[tuple[str, Item]] = iter(
                [(key, Item(name, file, "", info.identity if readable else UNREADABLE, info.size))]
            )
        else:
            items = entry.find(file, info.identity, info.size, options)
        for each, item in items:
            if each in result:
                raise families.DUPLICATE_NAME(
                    "duplicate frames of {key!r}: {file} has some, too",
                    "take one out, or name one of the files",
                    where=item.file,
                    key=each,
                    file=result[each].file,
                )
            result[each] = item
    return result


def single_item(path: str, storage: Mapping[str, object] | None = None) -> Item | None:
    """The item of a file, if its format has one item per file; else None.

    Raises:
        UserError: there is no such file.
    """
    name = _form_of(path)
    if name is None or FORMATS[name].find is not None:
        return None
    info = _info(path, storage or {})
    return Item(name, path, "", info.identity, info.size)


def read_item(item: Item, storage: Mapping[str, object] | None = None) -> tuple[RawFrames, float | None]:
    """The frames of an item, unconverted; and their shift in seconds, if the file gives it.

    Raises:
        DataError: they are damaged.
        UserError: the file does not exist.
        OSError: it cannot be read.
        ConfigError: the library of the format is not installed.
    """
    options = storage or {}
    # A changed file is opened again.
    key = item.file, identify(item.file, options), json.dumps(dict(options), sort_keys=True, default=str)
    if key not in _opened:
        _opened[key] = FORMATS[item.form].open(item.file, options)
        while len(_opened) > _OPEN:
            _opened.popitem(last=False)[1].close()
    _opened.move_to_end(key)
    reader = _opened[key]
    return reader.read(item.at), reader.shift


def _files(path: str, form: Form, storage: Mapping[str, object]) -> Iterator[tuple[str, str, str, Info]]:
    """Format, path, key and Info of each file."""
    format_name = _form_of(path) if form == "auto" else form
    if not (Path(path).is_dir() if not is_remote(path) else _form_of(path) is None):
        if format_name is None and not is_remote(path) and not Path(path).exists():
            raise _nothing(path)
        if format_name is None:
            raise families.UNKNOWN_NAME(
                "the file ends in none of {endings}", "say the format (form)", where=path, endings=_endings()
            )
        stem = path.rpartition("/")[2].rpartition(".")[0]
        yield format_name, path, stem, _info(path, storage)
        return
    folder = Folder(path, storage)
    listed = {
        name: info
        for name, info in folder.listing().items()
        if not any(part.startswith(".") for part in name.split("/"))
    }
    forms = {name: _form_of(name) for name in listed}
    if form != "auto":
        forms = {name: form for name in listed if name.lower().endswith(FORMATS[form].endings)}
    several = {form for form in forms.values() if form is not None}
    if form != "auto" and not several:
        raise families.EMPTY_INPUT(
            "the format is {form}, and no file in this folder ends in {endings}",
            "{found}; say their format (form), or auto: by the ending",
            where=folder.path(),
            form=form,
            endings=" or ".join(FORMATS[form].endings),
            found=_endings_text(listed),
        )
    if len(several) != 1:
        what = f"files of several formats: {', '.join(sorted(several))}" if several else "no files of frames"
        raise families.AMBIGUOUS(
            "there are {what} in this folder",
            "name a file, or the format; {endings}{found}",
            where=folder.path(),
            what=what,
            endings=_endings(),
            found="" if several else f"; {_endings_text(listed)}",
        )
    lists = any(name.lower().endswith(".scp") for name in forms)
    for name, item in forms.items():
        if item is not None and not (lists and name.lower().endswith(".ark")):
            yield item, folder.path(name), name.rpartition(".")[0], listed[name]


def _form_of(path: str) -> str | None:
    return next((name for name, item in FORMATS.items() if path.lower().endswith(item.endings)), None)


def _endings_text(names: Iterable[str]) -> str:
    """The endings in a folder, the most frequent first, in words."""
    count = Counter(PurePosixPath(name).suffix.lower() or "none" for name in names)
    most = ", ".join(f"{ending} ({many})" for ending, many in count.most_common(_SHOWN))
    return f"the endings here: {most}" if most else "the folder is empty"


def _endings() -> str:
    return ", ".join(ending for item in FORMATS.values() for ending in item.endings)


def _info(path: str, storage: Mapping[str, object]) -> Info:
    folder, name = locate(path, storage)
    try:
        return folder.info(name)
    except (FileNotFoundError, NotADirectoryError):
        raise _nothing(path) from None


def _nothing(path: str) -> UserError:
    return codes.NO_SUCH_FILE(where=path, what="file or folder")
