"""Which recording a file of annotations is of, and what recordings hold."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.streams import sha256
from swsdist.core.codes import server as codes
from swsdist.core.errors import UserError
from swsdist.exports.labels import label_file
from swsdist.glossary.words import Correction, Token
from swsdist.io.filesystem import is_remote
from swsdist.lattices.beside import name_of
from swsdist.lattices.words import key_of
from swsdist.stages.inputs.corpus_documents import identities
from swsdist.store.reading import Store

#: Columns of DOCUMENTS that `contents` needs.
CONTENT = ("identity", "sha256", "start")

#: Id and channel.
Document = tuple[str, int]

#: What a person says of a place.
J = TypeVar("J", Token, Correction)


def document_of(file: str, media: Sequence[str], store: Store | None) -> Document:
    """The document that annotations are of.

    By the first that names one: a recording that the file links, linked media by their names, the file's name. Of several that
    are meant, it is the one whose export has the file's name; a recording of several channels is else meant with its first.

    Args:
        file: path of the annotations.
        media: paths and urls of linked media, as written.
        store: where documents are known; None: the file's name is taken for the document's.

    Raises:
        UserError: there is no such document, or there are several.
    """
    if store is None:
        match = re.fullmatch(r"(.+)\.([1-9][0-9]*)", Path(file).stem)
        return (match[1], int(match[2])) if match else (Path(file).stem, 1)
    paths = {key: path for key, (path, _) in store.recordings().items()}
    exported = _exported(file, paths)
    linked = {path for link in media for path in _local(link, file)}
    names = [key_of(unquote(link)) for link in media] + [key_of(file)]
    for meant in (
        {name for (name, _), path in paths.items() if _real(path) in linked},
        *({name for (name, _), path in paths.items() if key in (name, key_of(name), key_of(path))} for key in names),
    ):
        if exported is not None and exported[0] in meant:
            return exported
        if len(meant) == 1:
            (name,) = meant
            return name, min(channel for other, channel in paths if other == name)
        if meant:
            raise codes.SEVERAL_RECORDINGS(where=file, count=len(meant), names=", ".join(sorted(meant)[:3]))
    if exported is not None:
        return exported
    raise codes.NO_RECORDING_OF(where=file, names=", ".join(dict.fromkeys(names)))


def documents_beside(store: Store) -> dict[str, Document]:
    """The recording that a file of annotations lies beside, by `name_of`: of several the first, with its first channel."""
    return {name_of(item.path): key for key, item in sorted(store.recordings().items(), reverse=True)}


def _exported(file: str, documents: Iterable[Document]) -> Document | None:
    """The document whose export has the file's name; of several that do, the one with most folders."""
    path = PurePosixPath(Path(file).absolute())
    matching = []
    for document in documents:
        try:
            name = label_file(*document, "import", path.suffix.removeprefix("."))
        except UserError:
            continue
        if f"{path}".endswith(f"/{name}"):
            matching.append((len(name), document))
    return max(matching, default=(0, None))[1]


def _local(link: str, file: str) -> set[str]:
    """Paths that a link may mean, which may be relative to the file of annotations; another url stays."""
    if "://" in link and not link.startswith("file:"):
        return {link}
    path = re.sub("^file:(//(?=/))?", "", link)
    folder = os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120
    return {_real(os.path.join(folder, each)) for each in (path, unquote(path))}  # noqa: PTH118 - ELAN writes no %20


def _real(path: str) -> str:
    return path if is_remote(path) else os.path.realpath(path)


def lengths_of(store: Store, names: Iterable[str | None]) -> dict[Document, float]:
    """Duration (s) of documents that are whole recordings."""
    table = store.documents(columns=["doc_id", "channel", "duration", "start"])
    are_recordings = pc.and_(pc.is_null(table["start"]), pc.is_in(table["doc_id"], pa.array(names, pa.string())))
    return {(row["doc_id"], row["channel"]): row["duration"] for row in table.filter(are_recordings).to_pylist()}


def contents(store: Store, documents: pa.Table) -> pa.Array:
    """What documents hold: the SHA-256 of a recording, or the size of the one that a document is a place in.

    Args:
        store: its documents.
        documents: with the columns CONTENT.

    Returns:
        strings; null where the store knows frames or lattices only.
    """
    recipe = store.manifest.tracks[0].recipe
    if store.manifest.kind != "frames" or recipe["name"] == "external":
        return pa.nulls(documents.num_rows, pa.string())
    sizes = pc.binary_join_element_wise("size", pc.replace_substring_regex(documents["identity"], ":.*", ""), ":")
    return pc.if_else(pc.is_null(documents["start"]), documents["sha256"], sizes)


def replaced(judged: Sequence[J], store: Store) -> set[J]:
    """Tokens or corrections of another sound than their documents hold, or than lies there now."""
    table = store.documents(columns=["doc_id", "channel", "duration", "recording", *CONTENT])
    name = pc.coalesce(table["recording"], table["doc_id"])
    table = table.append_column("name", name).append_column("content", contents(store, table))
    names = sorted({each.place.doc_id for each in judged if each.place.doc_id is not None})
    paths = store.recordings(names)
    held: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in table.filter(pc.is_in(name, pa.array(names, pa.string()))).to_pylist():
        end, key = (row["start"] or 0.0) + row["duration"], (row["name"], row["channel"])
        held.setdefault(key, []).append({**row, "end": end, "path": paths[key].path})
    pairs = []
    for each in judged:
        rows = sorted(held.get((each.place.doc_id or "", each.place.channel), ()), key=lambda row: float(row["end"]))
        pairs.append((each, next((row for row in rows if each.place.start < row["end"]), None)))
    return replaced_among(pairs, store.folder.storage)


def replaced_among(judged: Sequence[tuple[J, Mapping[str, Any] | None]], storage: Mapping[str, object]) -> set[J]:
    """Tokens or corrections of another sound than their documents hold, or than lies there now.

    Args:
        judged: each with its document, or None: unknown; see `replaced_files`.
        storage: options for s3fs.
    """
    known = [(each, row) for each, row in judged if row is not None]
    other_content = {each for each, row in known if differ(each.content, row["content"])}
    others = replaced_files([row for _, row in known], storage)
    return other_content | {each for each, row in known if row["path"] in others}


def replaced_files(documents: Sequence[Mapping[str, Any]], storage: Mapping[str, object]) -> set[str]:
    """Paths where another file lies than was indexed; a file that only has a new time is not.

    Args:
        documents: path, identity when it was indexed, and `contents`.
        storage: options for s3fs.
    """
    listed = [row for row in documents if row["content"] is not None and row["path"]]
    replaced = set[str]()
    for row, now in zip(listed, identities([row["path"] for row in listed], storage), strict=True):
        then, here = (identity.split(":")[:2] for identity in (row["identity"], now))
        if then == here or not now[:1].isdigit():  # nothing can be read there
            continue
        other_size = then[0] != here[0] or is_remote(row["path"])
        if other_size or (not row["content"].startswith("size:") and _digest(row["path"], now) != row["content"]):
            replaced.add(row["path"])
    return replaced


#: SHA-256 of a local file of a path and an identity.
_digest = lru_cache(100_000)(lambda path, _: sha256(path))


def differ(content: str | None, other: str | None) -> bool:
    """Whether both are known, comparable, and not the same."""
    if content is None or other is None:
        return False
    return content != other and content.startswith("size:") == other.startswith("size:")
