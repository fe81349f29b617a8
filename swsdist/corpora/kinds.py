"""The kind of file or folder that a key of the section `corpus` names, recognised by content where possible.

A folder with a `wav.scp` is a Kaldi data folder, one with a `state.json` and a `dataset_info.json` a data set of
Hugging Face; a folder of files of frames holds no recordings. Files are recognised by their first bytes: XML by its
outermost element, a manifest of lhotse by its first line, an RTTM by the type at the beginning of its first line,
Parquet and recordings by their magic. A `wav.scp` and a CTM are recognised by their names, other files of a Kaldi data
folder by name and first line. Any other file is a table, whose reader reports its faults.

On S3 a name with the ending of a file is a file, any other a folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Literal

from swsdist.core.codes import corpora as codes
from swsdist.corpora import huggingface
from swsdist.corpora.lhotse import Manifest, manifest_kind
from swsdist.io.compressed import LONGEST_LINE, opened
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.project_file import project_file

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
    raise codes.WRONG_KIND_OF_FILE(
        where=source, key=key, kind=spelled, hint=hint, reads="; ".join(_SPELLED[read] for read in reads)
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
            raise codes.NO_SUCH_TABLE_OR_FOLDER(where=source)
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
