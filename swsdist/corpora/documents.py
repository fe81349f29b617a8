"""Read documents from tables, folders of audio and lists of other programs.

Documents: a table has `doc_id, path`, and optionally `channel, duration, speaker`. In a folder every recording below it
is read, recognised by its suffix; `doc_id` is the relative path without suffix, with `/`; each channel in the header is
a document. A recording with an unreadable header becomes a document of channel 1, so that indexing rejects it with a
reason. Files whose names begin with a dot, and files written by swsdist, are left out. A single recording is read as in
a folder. Kaldi's data folders, lhotse's manifests, data sets of Hugging Face and an ECF: see `swsdist.corpora`.

Speakers: a table of `doc_id, speaker`, and optionally `channel`, for documents without one in their own
table; or the annotations beside the recordings (`swsdist.lattices.collection`).

Parts: a list of `doc_id`s, or a table with such a column.

Paths in a table are relative to the table's folder, and are returned absolute, or as `s3://` urls.

The kind of a file or folder that a key of the section `corpus` names is recognised by content where possible. A folder
with a `wav.scp` is a Kaldi data folder, one with a `state.json` and a `dataset_info.json` a data set of Hugging Face; a
folder of files of frames holds no recordings. Files are recognised by their first bytes: XML by its outermost element,
a manifest of lhotse by its first line, an RTTM by the type at the beginning of its first line, Parquet and recordings
by their magic. A `wav.scp` and a CTM are recognised by their names, other files of a Kaldi data folder by name and
first line. Any other file is a table, whose reader reports its faults. On S3 a name with the suffix of a file is a
file, any other a folder.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio import streams
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import MARKER, AudioInfo, probe_all
from swsdist.core.codes import corpora as codes
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.text import shown
from swsdist.core.types import CORPUS, with_values
from swsdist.corpora import huggingface
from swsdist.corpora.huggingface import entries
from swsdist.corpora.kaldi import kaldi_documents
from swsdist.corpora.lhotse import Manifest, lhotse_documents, manifest_kind
from swsdist.corpora.nist import ecf_documents
from swsdist.corpora.places import absolute, is_placed
from swsdist.io.compressed import LONGEST_LINE, opened
from swsdist.io.filesystem import Folder, is_remote, locate
from swsdist.io.notices import Notices, sample
from swsdist.io.project_file import project_file
from swsdist.io.tables import place, read_table, unknown_names, without_nobody

#: Kinds of files and folders that a key may name.
Kind = (
    Literal[
        "table", "folder", "Kaldi data folder", "wav.scp", "ECF", "term list", "RTTM", "CTM", "recording", "data set"
    ]
    | Manifest
)

#: Kinds of lhotse.
LHOTSE: tuple[Manifest, ...] = ("lhotse recordings", "lhotse supervisions", "lhotse cuts")

#: Kinds that each key of the section `corpus` reads.
READS: Mapping[str, tuple[Kind, ...]] = {
    "documents": ("table", "folder", "Kaldi data folder", "wav.scp", "ECF", "recording", "data set", *LHOTSE),
    "queries": ("table", "folder", "term list", "recording", "data set", *LHOTSE),
    "spoken": ("table", "folder"),
    "references": ("table", "RTTM", "CTM", "lhotse supervisions"),
}

#: Kinds of Kaldi.
KALDI: tuple[Kind, ...] = ("Kaldi data folder", "wav.scp")

_TABLES = (".csv", ".parquet", ".pq")
_LISTS = (".scp", ".xml", ".rttm", ".ctm")
_ROOTS: Mapping[str, Kind] = {"ecf": "ECF", "kwlist": "term list", "termlist": "term list"}
_SPELLED: Mapping[Kind, str] = {
    "table": "a table (CSV or Parquet), or a glossary",
    "folder": "a folder of recordings",
    "Kaldi data folder": "a Kaldi data folder (it holds a wav.scp)",
    "wav.scp": "a Kaldi wav.scp",
    "ECF": "an ECF (<ecf>)",
    "term list": "a TLIST or KWLIST (<termlist>, <kwlist>)",
    "RTTM": "an RTTM",
    "CTM": "a CTM (its name ends in .ctm)",
    "recording": "a recording",
    "data set": "a data set of Hugging Face (a folder of save_to_disk)",
    "lhotse recordings": "lhotse's recordings (JSON lines)",
    "lhotse supervisions": "lhotse's supervisions",
    "lhotse cuts": "lhotse's cuts",
}

#: Types at the beginning of an RTTM's lines (NIST, RTTM-format-v13).
_TYPES = frozenset(
    (
        *("SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH", "FILLER"),
        *("EDIT", "SU", "IP", "CB", "A/P", "SPEAKER", "SPKR-INFO"),
    )
)
#: First bytes of recordings.
_SOUNDS = (b"RIFF", b"RF64", b"RIFX", b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b".snd", b"caff", b"\xff\xfb")
#: First bytes of files often confused with tables.
_OTHERS = (
    (b"PK\x03\x04", "a spreadsheet or a zip archive"),
    (b"%PDF", "a PDF"),
    (b"\x93NUMPY", "an array"),
)

_HEAD = 4096

#: Lines of files in a Kaldi data folder, by name; none is read alone. Source: Kaldi's page on data preparation.
_DATA: Mapping[str, re.Pattern[str]] = {
    "segments": re.compile(r"[^\s,]+\s+[^\s,]+\s+[\d.]+\s+-?[\d.]+"),
    "utt2spk": re.compile(r"[^\s,]+\s+[^\s,]+"),
    "spk2utt": re.compile(r"[^\s,]+(\s+[^\s,]+)+"),
    "reco2dur": re.compile(r"[^\s,]+\s+[\d.]+"),
    "utt2dur": re.compile(r"[^\s,]+\s+[\d.]+"),
    "text": re.compile(r"[^\s,;]+(\s.*)?"),
}
_OF_DATA = " of a Kaldi data folder"
_SEVERAL_SETS = "a folder of several data sets of Hugging Face"
_FOLDER_OF_FRAMES = "a folder of files of frames"
#: Entries of a folder that are inspected to find its kind.
_INSPECTED = 100
#: Endings of frames, which are often confused with recordings.
_FRAMES = frozenset((".htk", ".npy", ".npz", ".ark", ".h5", ".hdf5"))


def kind_of(source: str, key: str, endings: frozenset[str], storage: Mapping[str, object] | None = None) -> Kind:
    """The kind of a file or folder, if the key reads that kind.

    Args:
        source: file or folder, local or `s3://`.
        key: of the section `corpus`: one of READS.
        endings: of recordings.
        storage: options for s3fs.

    Raises:
        UserError: the source does not exist, or is of a kind that the key does not read, which the message names.
    """
    result = _kind(source, endings, storage)
    reads = READS[key]
    if result in reads:
        return result
    spelled = _SPELLED.get(result, result)  # type: ignore[call-overload]
    better = [f"corpus.{other}" for other, kinds in READS.items() if result in kinds and other != "spoken"]
    hint = f"{spelled[0].upper()}{spelled[1:]} belongs to {' or '.join(better)}. " if better else ""
    if result == _FOLDER_OF_FRAMES:
        hint = "Frames belong to features (name: external, options: path and queries). "
    elif result == _SEVERAL_SETS:
        hint = f"Name one of them, {source.rstrip('/')}/NAME: {huggingface.splits(source)}. "
    elif result.endswith(_OF_DATA):
        hint = (
            f"Name the folder, {source.rpartition('/')[0] or '.'}, in corpus.documents: it is read with its wav.scp. "
        )
        hint += "The spoken text belongs in corpus.text. " if result.startswith("the text ") else ""
    raise families.WRONG_KIND(
        "corpus.{key} names {kind}",
        "{hint}corpus.{key} reads: {reads}",
        where=source,
        key=key,
        kind=spelled,
        hint=hint,
        reads="; ".join(_SPELLED[read] for read in reads),
    )


def _kind(source: str, endings: frozenset[str], storage: Mapping[str, object] | None) -> str:
    name = source.rstrip("/").rpartition("/")[2].lower()
    plain = re.sub(r"\.(gz|xz)$", "", name)
    sounds = plain.rpartition(".")[2] in endings and "." in plain
    if is_remote(source):
        if plain.endswith(_TABLES):
            return "table"
        if not plain.endswith(_LISTS) and not sounds:
            return "Kaldi data folder" if Folder(source, storage or {}).exists("wav.scp") else "folder"
    else:
        local = Path(source)
        if not local.exists():
            raise families.MISSING_FILE(
                "there is no such table or folder", "name a table or folder that exists", where=source
            )
        if project_file(source) is not None:
            return "table"
        if local.is_dir():
            if (local / huggingface.SPLITS).is_file():
                return _SEVERAL_SETS
            if (local / huggingface.STATE).is_file() and (local / huggingface.INFO).is_file():
                return "data set"
            kind = "Kaldi data folder" if (local / "wav.scp").is_file() else "folder"
            return _FOLDER_OF_FRAMES if kind == "folder" and _holds_frames(local) else kind
    if plain.endswith(".scp"):
        return "wav.scp"
    if plain.endswith(".ctm"):
        return "CTM"
    if sounds:
        return "recording"
    with opened(source, storage, what="table") as stream:
        head = stream.read(_HEAD)
        if head.lstrip().startswith(b"{") and b"\n" not in head:
            head += stream.readline(LONGEST_LINE)  # a line may continue beyond the cut
        return _kind_of_head(head, plain)


def _kind_of_head(head: bytes, name: str) -> str:
    """The kind of a file by its first bytes, and its name without folder and packing."""
    if head.startswith(_SOUNDS):
        return "recording"
    for magic, spelled in _OTHERS:
        if head.startswith(magic):
            return spelled
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return manifest_kind(text.decode("utf-8", "replace").partition("\n")[0]) or "JSON"
    if text.startswith(b"<"):
        root = re.search(rb"<([A-Za-z_][\w:.-]*)", text)
        name = root[1].decode() if root else ""
        return _ROOTS.get(name, f"XML (<{name}>)" if name else "XML")
    for line in text.decode("utf-8", "replace").splitlines():
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        return "RTTM" if fields[0].upper() in _TYPES and len(fields) >= 5 else _of_kaldi(name, line)
    return "table"


def is_rttm(head: bytes) -> bool:
    """Whether the first bytes of a file are an RTTM's."""
    return _kind_of_head(head, "") == "RTTM"


def _of_kaldi(name: str, line: str) -> str:
    """A Kaldi file, if it has the usual name and form of first line; else a table."""
    if name not in _DATA or not _DATA[name].fullmatch(line.strip()):
        return "table"
    return f"the {name}{_OF_DATA}"


def _holds_frames(folder: Path) -> bool:
    """Whether a folder contains only files of frames; inspects the first entries."""
    with os.scandir(folder) as entries:
        names = [item.name for item in islice(entries, _INSPECTED) if not item.name.startswith(".")]
    return bool(names) and all(Path(name).suffix.lower() in _FRAMES for name in names)


_READ = "aif aiff au caf flac mp3 oga ogg opus rf64 snd sph w64 wav"
#: Endings of recordings. Those of unsupported formats are rejected with a reason, not skipped.
ENDINGS = ffmpeg.ENDINGS | {*_READ.split(), "raw"}
#: Of files that differ only in ending, the first in this order takes the name without ending: masters before copies.
_BEST = ("wav", "rf64", "w64", "aiff", "aif", "au", "caf", "flac", "sph", "opus", "ogg", "oga", "mp3")

_SPEAKERS = pa.schema([CORPUS.field("doc_id"), CORPUS.field("channel").with_nullable(True), CORPUS.field("speaker")])
_PART = pa.schema([CORPUS.field("doc_id")])

#: Paths made absolute at a time.
_PIECE = 1 << 16

#: Kinds of ignored files that a notice lists.
_SHOWN_KINDS = 6


def read_documents(
    source: str,
    storage: Mapping[str, object] | None = None,
    speakers: str | Callable[[str], str | None] | None = None,
    notices: Notices | None = None,
    prefer: Sequence[str] = (),
    audio_folder: str | None = None,
    audio: bool = True,
) -> pa.Table:
    """The documents of a table, a folder, a recording, lists of Kaldi or lhotse, a data set, or an ECF.

    Args:
        source: local or `s3://`.
        storage: options for s3fs.
        speakers: for documents without speaker: a table, or what gives that of a recording's path.
        notices: collects oddities.
        prefer: endings, the best first: of a folder's files that differ only in ending, only one becomes a document.
        audio_folder: base of relative paths in Kaldi's lists and an ECF.
        audio: if false, rows of a table need no recording; the path is then empty.

    Returns:
        table CORPUS, or PLACED if documents are places in recordings; in the table's order, or by path and channel.

    Raises:
        UserError: the source does not exist, is empty, or of another kind.
        DataError: a row or line is impossible.
    """
    documents = without_nobody(_documents(source, storage, notices, prefer, audio_folder, audio))
    if speakers is None or isinstance(speakers, str):
        return documents if speakers is None else _with_speakers(documents, speakers, storage)
    pairs = zip(documents["speaker"].to_pylist(), documents["path"].to_pylist(), strict=True)
    return with_values(
        documents, "speaker", pa.array([speaker or speakers(path) for speaker, path in pairs], pa.string())
    )


def _documents(
    source: str,
    storage: Mapping[str, object] | None,
    notices: Notices | None,
    prefer: Sequence[str],
    audio_folder: str | None,
    audio: bool,
) -> pa.Table:
    kind = kind_of(source, "documents", ENDINGS, storage)
    if audio_folder is not None and kind not in (*KALDI, *LHOTSE, "ECF"):
        raise families.UNUSED_OPTION.of(UserError)(
            "corpus.audio is for lists of Kaldi or lhotse and for an ECF, and the documents are none",
            "leave corpus.audio out",
            where="corpus.audio",
        )
    if kind == "table":
        path = CORPUS.get_field_index("path")
        schema = CORPUS if audio else CORPUS.set(path, CORPUS.field(path).with_nullable(True))
        table = read_table(source, schema, key=("doc_id", "channel"), storage=storage, notices=notices)
        table = require_rows(source, with_absolute_paths(table, source, storage), "documents")
        return table if audio else table.set_column(path, CORPUS.field(path), pc.fill_null(table["path"], ""))
    if kind in KALDI:
        return kaldi_documents(source, storage, audio_folder, notices)
    if kind in LHOTSE:
        return lhotse_documents(source, kind, storage, audio_folder)
    if kind == "ECF":
        return ecf_documents(source, ENDINGS, storage, audio_folder, notices)
    speakers: dict[str, str | None] = {}
    if kind == "data set":
        listed = entries(source)
        result, speakers = {item.id: item.path for item in listed}, {item.id: item.speaker for item in listed}
    else:
        result = single_recording(source) if kind == "recording" else recordings(source, storage, prefer, notices)
    rows: list[dict[str, object]] = []
    headers = probe_all(result.values(), storage)
    for doc_id, path in result.items():
        info = headers[path]
        header = info if isinstance(info, AudioInfo) else None  # indexing finds the fault again, and records the reason
        for channel in range(1, (header.channels if header else 1) + 1):
            length = header.duration if header else None
            rows.append(
                {
                    "doc_id": doc_id,
                    "channel": channel,
                    "path": path,
                    "duration": length,
                    "speaker": speakers.get(doc_id),
                }
            )
    return pa.Table.from_pylist(rows, CORPUS)


def _with_speakers(documents: pa.Table, source: str, storage: Mapping[str, object] | None) -> pa.Table:
    """Fill in missing speakers from a table; a row without channel applies to the whole recording, and a row of a
    recording to all documents that are places in it.
    """
    table = read_table(source, _SPEAKERS, key=("doc_id", "channel"), storage=storage)
    by_key = {(row["doc_id"], row["channel"]): row["speaker"] for row in table.to_pylist()}
    doc_ids = _names(documents)
    strange = [row for row, name in enumerate(table["doc_id"].to_pylist()) if name not in doc_ids]
    if strange:
        names = [repr(table["doc_id"][row].as_py()) for row in strange]
        remedy = "look at the spelling, add them to the documents, or drop the rows"
        raise unknown_names("document", names, strange, source, doc_ids, storage, remedy)

    def speaker(row: Mapping[str, Any]) -> str | None:
        if row["speaker"]:
            return str(row["speaker"])
        names = [row[name] for name in ("doc_id", "recording") if name in row]
        return next(
            (by_key[key] for name in names for key in ((name, row["channel"]), (name, None)) if key in by_key), None
        )

    columns = ["doc_id", "channel", "speaker", *(["recording"] if is_placed(documents) else [])]
    return with_values(
        documents, "speaker", pa.array([speaker(row) for row in documents.select(columns).to_pylist()], pa.string())
    )


def part_of(documents: pa.Table, part: Sequence[str] | str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """The documents of a part of the corpus, all their channels.

    Args:
        documents: table CORPUS.
        part: doc_ids, or recordings that documents are places in, or the path of a table with a column `doc_id` (a
            value of `corpus.parts`).
        storage: options for s3fs.

    Returns:
        table CORPUS, in the order of `documents`.

    Raises:
        TableError: a row names no document.
        UserError: a name of the list is no document, or there is no such table.
    """
    names = read_table(part, _PART, storage=storage)["doc_id"].to_pylist() if isinstance(part, str) else list(part)
    doc_ids = _names(documents)
    strange = [row for row, name in enumerate(names) if name not in doc_ids]
    remedy = "look at the spelling, or take them out of the part"
    if strange and isinstance(part, str):
        raise unknown_names("document", [repr(names[row]) for row in strange], strange, part, doc_ids, storage, remedy)
    if strange:
        first = sample(names[row] for row in strange)
        raise families.UNKNOWN_NAME(
            "no document {documents} in the corpus",
            "check the spelling, or take them out of the part; there are {known}",
            where="corpus.parts",
            documents=first,
            known=sample(doc_ids),
        )
    chosen = pa.array(names, pa.string())
    kept = pc.is_in(documents["doc_id"], chosen)
    return documents.filter(pc.or_(kept, pc.is_in(documents["recording"], chosen)) if is_placed(documents) else kept)


def _names(documents: pa.Table) -> set[str]:
    """Names of the documents, and of the recordings that contain them."""
    return {
        name
        for column in ("doc_id", "recording")
        if column in documents.column_names
        for name in _ids(documents, column)
    }


def _ids(documents: pa.Table, column: str) -> list[str]:
    result: list[str] = pc.unique(documents[column]).to_pylist()
    return result


def require_rows(source: str, table: pa.Table, what: str) -> pa.Table:
    """The table, unless it is empty.

    Raises:
        UserError: it has no rows.
    """
    if table.num_rows == 0:
        raise families.EMPTY_INPUT("the table has no {what}", "add rows below the header", where=source, what=what)
    return table


def with_absolute_paths(table: pa.Table, source: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """The table with absolute paths; relative ones start from the table's folder.

    Raises:
        DataError: a path is a command.
    """
    paths = table["path"]
    row = pc.index(pc.ends_with(paths, streams.ENDING), True).as_py()
    if row >= 0:
        streams.require_file(paths[row].as_py(), "a table", place(source, row, storage))
    if pc.all(pc.and_(pc.starts_with(paths, "/"), pc.invert(pc.match_substring(paths, "://")))).as_py():
        return table  # no path is relative; avoids a million Python strings
    folder, _ = locate(source)
    pieces = []
    for first in range(0, len(paths), _PIECE):
        some = paths.slice(first, _PIECE).to_pylist()
        pieces.append(pa.array([None if path is None else absolute(path, folder.root) for path in some], pa.string()))
    return with_values(table, "path", pa.chunked_array(pieces, pa.string()))


def single_recording(source: str) -> dict[str, str]:
    """A single recording, by its name as a document."""
    folder, name = locate(source)
    return {name.rpartition(".")[0] or name: folder.path(name)}


def recordings(
    source: str, storage: Mapping[str, object] | None, prefer: Sequence[str] = (), notices: Notices | None = None
) -> dict[str, str]:
    """The recordings of a folder: path by id, sorted by id.

    Args:
        source: the folder.
        storage: options for s3fs.
        prefer: endings, the best first: of files that differ only in ending, only the best is used. By default all are:
            the best by `_BEST` takes the name without ending, the others their full names.
        notices: collects files that are left out.
    """
    folder, noted = Folder(source, storage or {}), notices if notices is not None else Notices()

    def unreadable(path: str, error: OSError) -> None:
        if not os.path.isdir(path):  # noqa: PTH112 (Path's raises where a folder above is closed)
            if path.rpartition(".")[2].lower() in ENDINGS:
                noted.add(
                    families.LEFT_OUT.saying(
                        "{count} recording{s} left out: unreadable, or a broken link",
                        "check the links and permissions, or remove them",
                    ),
                    where=f"{path} ({error.strerror})",
                    count=1,
                )
            return
        noted.add(codes.UNREADABLE_FOLDER, where=f"{path} ({error.strerror})", count=1)

    stems, ignored = _by_stem(folder, folder.listing(unreadable=unreadable), noted)
    if not stems:
        raise families.EMPTY_INPUT(
            "there is no audio in this folder",
            "these endings are read: {endings}; a table's name ends in .csv or .parquet",
            where=folder.root,
            endings=readable_endings(),
        )
    if ignored:
        kinds = sorted(ignored, key=lambda kind: (-len(ignored[kind]), kind))
        listed_kinds = ", ".join(f"{kind} {len(ignored[kind])}" for kind in kinds[:_SHOWN_KINDS])
        listed_kinds += ", ..." if len(kinds) > _SHOWN_KINDS else ""
        noted.inform(
            codes.IGNORED_FILES,
            where=f"{folder.root}/{ignored[kinds[0]][0]}",
            count=sum(map(len, ignored.values())),
            kinds=listed_kinds,
        )
    order = [ending.lower().lstrip(".") for ending in prefer] or list(_BEST)
    names: dict[str, str] = {}
    for stem, several in stems.items():
        names[stem], *others = sorted(several, key=lambda name: (_rank(name, order), name))
        if prefer and others:
            where = f"{folder.root}/{others[0]} beside {names[stem].rpartition('/')[2]}"
            noted.inform(
                families.LEFT_OUT.saying(
                    "{count} recording{s} left out: there is a better format", "corpus.prefer says so"
                ),
                where=where,
                count=len(others),
            )
        elif others:
            names.update(zip(others, others, strict=True))
    # A line break in a name would break listings and tables by line.
    plain = {doc_id: shown(doc_id) for doc_id in names}
    times = Counter(plain.values())
    return {
        plain[doc_id] if times[plain[doc_id]] == 1 else doc_id: folder.path(names[doc_id]) for doc_id in sorted(names)
    }


def _by_stem(
    folder: Folder, listed: Collection[str], noted: Notices
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Recordings of a listing by name without ending; and other files by kind, but those that swsdist wrote."""
    ours = tuple(_written_by_swsdist(listed))
    stems: dict[str, list[str]] = {}
    ignored: dict[str, list[str]] = {}
    for name in listed:
        if name.startswith(ours):
            continue
        stem, dot, ending = name.rpartition(".")
        hidden = any(part.startswith(".") for part in name.split("/"))
        if hidden or not dot or ending.lower() not in ENDINGS:
            kind = "hidden" if hidden else f".{ending.lower()}" if dot and "/" not in ending else "without ending"
            ignored.setdefault(kind, []).append(name)
            continue
        try:
            name.encode()
        except UnicodeEncodeError:
            noted.add(codes.FILE_NAME_NOT_UTF8, where=repr(f"{folder.root}/{name}"), count=1)
        else:
            stems.setdefault(stem, []).append(name)
    return stems, ignored


def readable_endings() -> str:
    """The readable endings, for a message; and those that need ffmpeg, if it is not installed."""
    builtin, others = ", ".join(_READ.split()), ", ".join(sorted(ffmpeg.ENDINGS))
    return (
        f"{builtin}, {others}"
        if ffmpeg.program() is not None
        else f"{builtin} (with ffmpeg, which is not installed, also {others})"
    )


def _rank(name: str, order: Sequence[str]) -> int:
    ending = name.rpartition(".")[2].lower()
    return order.index(ending) if ending in order else len(order)


def _written_by_swsdist(listed: Iterable[str]) -> list[str]:
    """Folders written by swsdist, with a final slash: of runs and clips, which are no recordings of the archive.

    For a run in the listed folder itself these are its exports: a run writes audio nowhere else, and all else is the
    archive's.
    """
    names = set(listed)
    runs = [place for place in _holding("plan.json", names) if f"{place}config.yaml" in names]
    clips = [place for place in _holding(MARKER, names) if place]  # the source itself is intended
    return [*(place or "exports/" for place in runs), *clips]


def _holding(name: str, names: set[str]) -> list[str]:
    """Folders that contain a file of this name, with a final slash; empty string: the listed folder."""
    return [item[: -len(name)] for item in names if item == name or item.endswith(f"/{name}")]
