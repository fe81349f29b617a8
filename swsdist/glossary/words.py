"""The words of a glossary: entries, tokens, places, sounds and changes, and which texts they may hold."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.streams import sha256
from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import UserError
from swsdist.core.fingerprint import plain
from swsdist.core.text import kept
from swsdist.exports.lists import label_file
from swsdist.io.filesystem import is_remote
from swsdist.lattices.collection import name_of
from swsdist.lattices.words import key_of
from swsdist.stages.inputs.corpus_documents import identities
from swsdist.store.reading import Store

T = TypeVar("T")

YES, NO, UNSURE = VERDICTS = ("yes", "no", "unsure")

#: Most characters of a line and of several lines, most names in a list, and the latest time, s.
_LINE, _LINES, _NAMES, _LATEST = 500, 20_000, 200, 1e7
#: Categories of characters, and characters besides, that XML and tables cannot have.
_NO_TEXT, _NO_XML = ("Cc", "Cs", "Zl", "Zp"), {"\ufffe", "\uffff"}
#: Seconds that a place may exceed its recording by: players round.
_OVERSHOOT = 0.5


class Place(NamedTuple):
    """A stretch of a document of the store, or of a recorded sound.

    Attributes:
        doc_id: as detections name it: a recording, where documents are places in recordings; None for a sound.
        channel: from 1.
        start, end: s in the document or sound.
        sound: the sound's sha256; None for a document.
    """

    doc_id: str | None
    channel: int
    start: float
    end: float
    sound: str | None = None


class Entry(NamedTuple):
    """A word.

    Attributes:
        entry_id: never used again.
        form: unique in the glossary; the query's id in tables.
        gloss: meaning.
        variants: other forms.
        speaker: whose word it is, where that matters.
        note: may have several lines.
        yes, no, unsure: number of places in recordings of the archive, by verdict.
        sounds: number of sounds that somebody recorded or uploaded.
        examples: number of tokens to search by.
    """

    entry_id: int
    form: str
    gloss: str
    variants: tuple[str, ...]
    speaker: str
    note: str
    yes: int
    no: int
    unsure: int
    sounds: int
    examples: int


class Token(NamedTuple):
    """A place judged for an entry.

    Attributes:
        token_id: never used again.
        verdict: `yes`, `no` or `unsure`.
        example: whether the entry is searched by it; only where the verdict is `yes`.
        score: of the hit that was judged, if it was one.
        person: who judged it last.
        at: when, ISO 8601 in UTC.
        content: of the document when it was judged (`contents`); None: unknown.
    """

    token_id: int
    entry_id: int
    place: Place
    verdict: str
    example: bool
    score: float | None
    variant: str
    speaker: str
    note: str
    person: str
    at: str
    content: str | None = None


class Correction(NamedTuple):
    """What is said in a stretch of a recording, as a person writes it, whatever was recognised there.

    Attributes:
        correction_id: never used again.
        text: instead of the words in the stretch; empty: nothing is said there.
        person, at: who wrote it, and when (ISO 8601 in UTC).
        content: of the document then, as of a token.
    """

    correction_id: int
    place: Place
    text: str
    person: str
    at: str
    content: str | None = None


class Sound(NamedTuple):
    """A recorded or uploaded sound, kept in `sounds/`: duration in s, rate in Hz."""

    sound: str
    name: str
    duration: float
    rate: int
    person: str
    at: str


class Change(NamedTuple):
    """What a person changed in one go.

    Attributes:
        change_id: ascending.
        at: ISO 8601 in UTC.
        kind: for example `judge`, `merge`, `undo`.
        entry_id: the entry concerned.
        before, after: changed rows: `entries`, `tokens`, `corrections` and `asides`, each row by its id; None: no row.
        undoes: the change that it takes back.
    """

    change_id: int
    at: str
    person: str
    kind: str
    entry_id: int | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    undoes: int | None


def line(field: str, value: object, *, empty: bool = True) -> str:
    """A text of one line, in Unicode's composed form, with single blanks.

    Args:
        field: its name, for messages.
        value: as given.
        empty: whether it may be empty.

    Raises:
        UserError: it is no text, has control characters, or is empty or too long.
    """
    text = _clean(field, " ".join(value.split()) if isinstance(value, str) else value, _LINE)
    if not text and not empty:
        raise codes.INVALID_TEXT(field=field, problem="empty")
    return text


def lines(field: str, value: object) -> str:
    """A text that may have several lines; as `line`."""
    text = "\n".join(value.expandtabs().splitlines()).strip() if isinstance(value, str) else value
    return _clean(field, text, _LINES)


def _clean(field: str, value: object, most: int) -> str:
    if not isinstance(value, str):
        raise codes.INVALID_TEXT(field=field, problem="no text")
    if len(value) > most:
        raise codes.INVALID_TEXT(field=field, problem=f"longer than {most} characters")
    if any(unicodedata.category(item) in _NO_TEXT and item != "\n" for item in value) or _NO_XML & set(value):
        raise codes.INVALID_TEXT(field=field, problem="a text with control characters")
    return unicodedata.normalize("NFC", value)


def names(field: str, value: object) -> tuple[str, ...]:
    """Texts of one line each, without empty and repeated ones.

    Raises:
        UserError: it is no list of such texts, or too long.
    """
    if isinstance(value, str) or not isinstance(value, list | tuple) or len(value) > _NAMES:
        raise codes.INVALID_TEXT(field=field, problem=f"no list of at most {_NAMES} texts")
    return tuple(dict.fromkeys(text for item in value if (text := line(field, item))))


def folded(text: str) -> str:
    """A text to find others by: in lower case, without accents and tones."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(item for item in parts if not unicodedata.combining(item))


def verdict(value: object) -> str:
    """A verdict.

    Raises:
        UserError: it is none.
    """
    if value not in VERDICTS:
        raise families.INVALID_VALUE.of(UserError)(
            "{verdict!r} is no verdict", "judge `yes`, `no` or `unsure`", verdict=value
        )
    return str(value)


def place(value: Place | Mapping[str, Any]) -> Place:
    """A place, its times rounded to µs.

    Raises:
        UserError: it is none.
    """
    fields = value._asdict() if isinstance(value, Place) else dict(value)
    try:
        doc_id, sound = fields.get("doc_id"), fields.get("sound")
        channel, start, end = (
            int(fields.get("channel") or 1),
            round(float(fields["start"]), 6),
            round(float(fields["end"]), 6),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise codes.INVALID_PLACE(place=plain(fields)) from None
    named = sound if doc_id is None else doc_id
    one_name = isinstance(named, str) and named and (doc_id is None or sound is None) and kept(named)
    if not (one_name and 1 <= channel < 2**31 and 0 <= start < end <= _LATEST):
        raise codes.INVALID_PLACE(place=plain(fields))
    return Place(doc_id, channel, start, end, sound)


def within(place: Place, length: float | None) -> Place:
    """A place, cut at the end of its recording, of a length in s; None: unknown.

    Raises:
        UserError: it lies outside.
    """
    if length is None:
        return place
    if place.start >= length or place.end > length + _OVERSHOOT:
        raise codes.PLACE_BEYOND(where=place.doc_id or place.sound, start=place.start, end=place.end, length=length)
    return place._replace(end=min(place.end, length))


class Places(Generic[T]):
    """Things at places, found by overlap in a time that hardly grows with their number.

    Places of about one length lie in one list by their starts: those that may overlap another place are neighbours in it.
    """

    def __init__(self) -> None:
        self._lists: dict[tuple[Any, ...], dict[int, list[tuple[float, float, int, Place, T]]]] = {}
        self._count = 0

    def add(self, place: Place, thing: T) -> None:
        """Put a thing at a place."""
        self._count += 1
        insort(self._list(place), (place.start, place.end, self._count, place, thing), key=_start)

    def remove(self, place: Place, thing: T) -> None:
        """Take a thing from its place."""
        listed = self._list(place)
        first = bisect_left(listed, place.start, key=_start)
        del listed[next(k for k in range(first, len(listed)) if listed[k][4] == thing)]

    def same(self, place: Place) -> T | None:
        """The thing whose place is one with another (`is_same`), of several the one that shares most, or begins first."""
        best: tuple[float, float, int, T] | None = None
        for size, listed in self._lists.get(_document(place), {}).items():
            first = bisect_left(listed, place.start - 2.0**size, key=_start)
            for k in range(first, len(listed)):
                start, end, number, other, thing = listed[k]
                if start >= place.end:
                    break
                if end > place.start:
                    part = overlap(other, place)
                    if best is None or (part, -start, -number) > best[:3]:
                        best = (part, -start, -number, thing)
                    if part >= 1:  # none that begins later shares more
                        break
        return best[3] if best is not None and is_same(best[0]) else None

    def _list(self, place: Place) -> list[tuple[float, float, int, Place, T]]:
        size = math.ceil(math.log2(place.end - place.start))
        return self._lists.setdefault(_document(place), {}).setdefault(size, [])


def _document(place: Place) -> tuple[Any, ...]:
    return place.doc_id, place.channel, place.sound


def _start(item: tuple[Any, ...]) -> float:
    return float(item[0])


def overlap(place: Place, other: Place) -> float:
    """Part of the shorter of two places that the other covers; 0 in different documents, channels or sounds."""
    if (place.doc_id, place.channel, place.sound) != (other.doc_id, other.channel, other.sound):
        return 0.0
    shared = min(place.end, other.end) - max(place.start, other.start)
    return max(0.0, shared) / min(place.end - place.start, other.end - other.start)


def is_same(part: float) -> bool:
    """Whether places of such an `overlap` are one: more than half of the shorter, whatever floats round to."""
    return part > 0.5 + 1e-9


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
            raise families.AMBIGUOUS(
                "{count} recordings may be meant: {names}",
                "name the one: --document NAME, or NAME#2 for its second channel",
                where=file,
                count=len(meant),
                names=", ".join(sorted(meant)[:3]),
            )
    if exported is not None:
        return exported
    raise families.UNKNOWN_NAME(
        "the store has no recording of the name {names}",
        "name the one that the annotations are of: --document NAME",
        where=file,
        names=", ".join(dict.fromkeys(names)),
    )


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
