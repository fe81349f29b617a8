"""Files of lattices and transcripts: their discovery, formats and contents.

A path is a file, or a folder of files of any of the registered formats, searched with its subfolders; hidden files and
files of no format, or whose names are not UTF-8, are left out, and reported.

Annotations beside recordings are `talk.eaf`, `talk.TextGrid`, `talk.csv`, ... beside `talk.wav`, in the same folder. Of
several files of one recording the first counts. A recording has a speaker if its tiers name exactly one: in ELAN their
participant, in a TextGrid the name before ` - words`, as aligners write it, in a table its column. A recording of
several speakers has none; its stretches then belong to voices (`swsdist.store.voices`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from swsdist.core.codes import families
from swsdist.core.errors import DataError, SwsdistError, UserError
from swsdist.core.fingerprint import stable_hash
from swsdist.core.text import kept
from swsdist.io.compressed import opened
from swsdist.io.filesystem import Folder, Info, identify, locate
from swsdist.lattices.formats import elan, praat, table
from swsdist.lattices.lattice import BREAK, Broken, Lattices, LeftOut, Origin
from swsdist.lattices.words import MEDIA, Annotation, Annotations, key_of, written
from swsdist.registry.registries import LATTICE_FORMATS
from swsdist.registry.registry import Entry

#: Bytes by which a format is detected.
HEAD = 4096
#: Files of a task end with one whose name has a hash of 0 modulo this, so that a new file changes one task only; and bytes and
#: files of a task at most.
_FILES, _MOST_FILES, _MOST_BYTES = 64, 1024, 1 << 25


class LatticeFile(NamedTuple):
    """A file of lattices: its path, identity, bytes, and format."""

    path: str
    identity: str
    size: int
    format: str


def find_files(
    path: str, form: str | None, storage: Mapping[str, object], skipped: Callable[[str, str | None], None]
) -> list[LatticeFile]:
    """Files of a path, in the order of their names. Of files that differ only in their endings, and in format, the one of the
    first format is taken: a recogniser often writes each transcript in several.

    Args:
        path: file or folder, local or s3://.
        form: their format; None: detected. In a folder, files that only other formats take for their own are left out.
        storage: options for S3.
        skipped: receives files of a folder, and folders without permission, that are left out, with the format of the one
            taken instead; None: there is none.

    Raises:
        UserError: there is no such file or folder, or no file of a format.
    """
    if alone := not _is_folder(path, storage):
        folder, name = locate(path, storage)
        listing: Mapping[str, Info] = {name: folder.info(name)}
    else:
        folder = Folder(path, storage)
        listing = folder.listing(unreadable=lambda where, error: skipped(where, None))
    files: list[LatticeFile] = []
    for file in sorted(listing):
        if any(part.startswith(".") for part in file.split("/")):
            continue
        where = folder.path(file)
        if not alone and posixpath.splitext(file)[1].lower() in MEDIA:
            skipped(where, None)
            continue
        detected = form if form and alone else detect(where, storage, form) or form
        if kept(file) and detected is not None and form in (None, detected):
            files.append(LatticeFile(where, listing[file].identity, listing[file].size, detected))
        elif alone:
            raise families.UNKNOWN_NAME(
                "the format of this file is none that is known",
                "name its format (options.lattices.format): one of {formats}",
                where=path,
                formats=", ".join(LATTICE_FORMATS),
            )
        else:
            skipped(where, None)
    rank = {format_name: k for k, format_name in enumerate(LATTICE_FORMATS)}
    first: dict[str, str] = {}
    for item in files:
        first[_stem(item.path)] = min(item.format, first.get(_stem(item.path), item.format), key=rank.__getitem__)
    result = []
    for item in files:
        better = first[_stem(item.path)]
        if item.format == better:
            result.append(item)
        else:
            skipped(item.path, better)
    if not result:
        raise families.EMPTY_INPUT(
            "no lattices or transcripts here",
            "name a file or folder of them; formats: {formats}; or name their format (options.lattices.format)",
            where=path,
            formats=", ".join(LATTICE_FORMATS),
        )
    return result


def _stem(path: str) -> str:
    """A path without packing and the last ending."""
    return posixpath.splitext(_unpacked(path))[0]


def _unpacked(path: str) -> str:
    return path.removesuffix(".gz").removesuffix(".xz")


def document_id(key: str, file: str, path: str) -> str:
    """The document of a lattice: its key; with the folder below `path` where the key is the file's name without ending."""
    folder, _, name = file.removeprefix(path).lstrip("/").rpartition("/")
    return f"{folder}/{key}" if folder and name.startswith(f"{key}.") else key


def detect(path: str, storage: Mapping[str, object], expected: str | None = None) -> str | None:
    """The first format that takes a file for its own, the expected one before all others; None: none does."""
    try:
        with opened(path, storage) as stream:
            head = stream.read(HEAD)
    except SwsdistError:
        head = b""  # unreadable: its name may still say what it is, and reading it raises the error
    name = _unpacked(posixpath.basename(path))
    forms = sorted(LATTICE_FORMATS, key=lambda form: form != expected)
    return next((form for form in forms if _detector(form)(name, head)), None)


@cache
def _detector(form: str) -> Callable[[str, bytes], bool]:
    entry = LATTICE_FORMATS[form]
    result: Callable[[str, bytes], bool] = Entry(entry.detect, entry.version).load()
    return result


def read_file(form: str, origin: Origin) -> Lattices:
    """Lattices of a file; an error of the whole file is one `Broken`, too.

    Raises:
        StorageError: the storage failed, not the file.
    """
    read: Callable[[Origin], Lattices] = LATTICE_FORMATS[form].load()
    try:
        yield from read(origin)
    except DataError as error:
        yield Broken(posixpath.basename(origin.path), error)


def chunks(files: Iterable[LatticeFile]) -> Iterator[list[LatticeFile]]:
    """Files by task. A file ends a task by a hash of its name, so adding a file leaves other tasks as they are."""
    some: list[LatticeFile] = []
    size = 0
    for file in files:
        if some and (size + file.size > _MOST_BYTES or len(some) == _MOST_FILES):
            yield some
            some, size = [], 0
        some.append(file)
        size += file.size
        if stable_hash(posixpath.basename(file.path)) % _FILES == 0:
            yield some
            some, size = [], 0
    if some:
        yield some


#: Formats whose files have tiers.
TIERED = ("elan", "textgrid", "table")


def name_of(path: str) -> str:
    """What a recording and the files beside it have in common: folder, and name without endings."""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{key_of(path)}"


def files_in(folder: str, storage: Mapping[str, object]) -> dict[str, LatticeFile]:
    """Files of annotations in a folder and those below it, by `name_of`; of a recording or a table there are none."""
    if not _is_folder(folder, storage):
        return {}
    try:
        files = find_files(folder, None, storage, lambda path, better: None)
    except UserError:
        return {}
    return {name_of(file.path): file for file in files}


def tiers_of(file: LatticeFile, storage: Folder) -> tuple[tuple[Annotations, ...], LeftOut]:
    """The tiers of a file as it is now, each in order of time, without annotations that have no text; and what of it cannot be
    used.

    A transcript is one tier without a name, and words that begin and end together are one annotation of it.

    Args:
        file: itself.
        storage: a folder that knows how to read it.

    Raises:
        DataError, UserError, OSError: it cannot be read.
    """
    return _tiers_of(file._replace(identity=identify(file.path, storage.storage)), storage)


@lru_cache(64)
def _tiers_of(file: LatticeFile, storage: Folder) -> tuple[tuple[Annotations, ...], LeftOut]:
    origin, left_out = Origin(file.path, storage.storage), LeftOut()
    if file.format == "elan":
        tiers = elan.annotated(origin, left_out).tiers
    elif file.format == "textgrid":
        tiers = praat.annotated(origin, left_out)
    elif file.format == "table":
        tiers = table.annotated(origin, left_out)
    else:
        tiers = [Annotations("", True, _phrases(file, origin))]
    return tuple(tier._replace(rows=[row for row in tier.rows if row.text.strip()]) for tier in tiers), left_out


def _phrases(file: LatticeFile, origin: Origin) -> list[Annotation]:
    from swsdist.lattices.packed import Recipe, pack  # compiles

    rows = []
    for item in read_file(file.format, origin):
        if isinstance(item, Broken):
            raise item.error
        words = [word for word in pack(item, Recipe()).words if word.text != BREAK]
        for (start, end), some in groupby(words, lambda word: (word.start, word.end)):
            rows.append(Annotation(start, end, written(word.text for word in some), file.path))
    return sorted(rows)


def speakers_in(folder: str, storage: Mapping[str, object]) -> dict[str, str]:
    """Speakers of recordings, by `name_of`; see the module. Files that cannot be read name none."""
    speakers = {}
    for name, file in files_in(folder, storage).items():
        try:
            tiers, _ = tiers_of(file, Folder(folder, storage)) if file.format in TIERED else ((), None)
        except (SwsdistError, OSError):
            continue
        if len(named := {tier.speaker for tier in tiers if tier.speaker and tier.rows}) == 1:
            speakers[name] = named.pop()
    return speakers


def speakers_of(source: str | None, storage: Mapping[str, object]) -> str | Callable[[str], str | None] | None:
    """What `corpus.speakers` gives: the path of a table as it is; of a folder, the speaker of a recording's path."""
    if source is None or not _is_folder(source, storage):
        return source
    speakers = speakers_in(source, storage)
    return lambda path: speakers.get(name_of(path))


def _is_folder(path: str, storage: Mapping[str, object]) -> bool:
    folder, name = locate(path, storage)
    local = folder.local(name)
    return not folder.exists(name) if local is None else local.is_dir()
