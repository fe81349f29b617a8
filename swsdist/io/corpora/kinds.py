"""What a key of the section `corpus` names, told by the content where a file can say it, and what each key reads.

A folder that holds a `wav.scp` is one of Kaldi's. Of a file the first bytes tell: XML by its outermost element, an RTTM by the
type that its first line begins with, Parquet and recordings by their magic; a `wav.scp` and a CTM have nothing of the kind, and
are told by their names. What is none of these is a table, whose reader says what is wrong with it.

On S3 a name that ends as a file does is a file; what else there is, is a folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from swsdist.errors import UserError
from swsdist.io.compressed import opened
from swsdist.io.filesystem import Folder, is_remote

#: What a key may name.
Kind = Literal["table", "folder", "Kaldi data folder", "wav.scp", "ECF", "term list", "RTTM", "CTM", "recording"]

#: What each key of the section `corpus` reads.
READS: Mapping[str, tuple[Kind, ...]] = {
    "documents": ("table", "folder", "Kaldi data folder", "wav.scp", "ECF", "recording"),
    "queries": ("table", "folder", "term list", "recording"),
    "spoken": ("table", "folder"),
    "references": ("table", "RTTM", "CTM"),
}

#: Kaldi's.
KALDI: tuple[Kind, ...] = ("Kaldi data folder", "wav.scp")

_TABLES = (".csv", ".parquet", ".pq")
_LISTS = (".scp", ".xml", ".rttm", ".ctm")
_ROOTS: Mapping[str, Kind] = {"ecf": "ECF", "kwlist": "term list", "termlist": "term list"}
_SPELLED: Mapping[Kind, str] = {
    "table": "a table (CSV or Parquet)",
    "folder": "a folder of recordings",
    "Kaldi data folder": "a Kaldi data folder (it holds a wav.scp)",
    "wav.scp": "a Kaldi wav.scp",
    "ECF": "an ECF (<ecf>)",
    "term list": "a TLIST or KWLIST (<termlist>, <kwlist>)",
    "RTTM": "an RTTM",
    "CTM": "a CTM (its name ends in .ctm)",
    "recording": "a recording",
}

#: What the lines of an RTTM begin with (NIST, RTTM-format-v13).
_TYPES = frozenset(
    (
        *("SEGMENT", "NOSCORE", "NO_RT_METADATA", "LEXEME", "NON-LEX", "NON-SPEECH", "FILLER"),
        *("EDIT", "SU", "IP", "CB", "A/P", "SPEAKER", "SPKR-INFO"),
    )
)
#: First bytes of recordings.
_SOUNDS = (b"RIFF", b"RF64", b"RIFX", b"fLaC", b"OggS", b"ID3", b"NIST_1A", b"FORM", b".snd", b"caff", b"\xff\xfb")
#: First bytes of what is often given instead of a table.
_OTHERS = (
    (b"PK\x03\x04", "a spreadsheet or a zip archive"),
    (b"%PDF", "a PDF"),
    (b"{", "JSON"),
    (b"\x93NUMPY", "an array"),
)

_HEAD = 4096


def kind_of(source: str, key: str, endings: frozenset[str], storage: Mapping[str, object] | None = None) -> Kind:
    """What there is under a name, if the key reads that.

    Args:
        source: file or folder, local or `s3://`.
        key: of the section `corpus`: one of READS.
        endings: of recordings.
        storage: options for s3fs.

    Raises:
        UserError: there is nothing of that name, or something that the key does not read; with what was found.
    """
    found = _kind(source, endings, storage)
    reads = READS[key]
    if found in reads:
        return found
    spelled = _SPELLED.get(found, found)  # type: ignore[call-overload]
    better = [f"corpus.{other}" for other, kinds in READS.items() if found in kinds and other != "spoken"]
    hint = f"{spelled[0].upper()}{spelled[1:]} belongs to {' or '.join(better)}. " if better else ""
    raise UserError(
        f"corpus.{key} names {spelled}",
        where=source,
        remedy=f"{hint}corpus.{key} reads: {'; '.join(_SPELLED[one] for one in reads)}",
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
            raise UserError("there is no such table or folder", where=source, remedy="look at the path")
        if local.is_dir():
            return "Kaldi data folder" if (local / "wav.scp").is_file() else "folder"
    if plain.endswith(".scp"):
        return "wav.scp"
    if plain.endswith(".ctm"):
        return "CTM"
    if sounds:
        return "recording"
    with opened(source, storage, what="table") as stream:
        return _told(stream.read(_HEAD))


def _told(head: bytes) -> str:
    """What the first bytes of a file say."""
    if head.startswith(_SOUNDS):
        return "recording"
    for magic, spelled in _OTHERS:
        if head.startswith(magic):
            return spelled
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<"):
        root = re.search(rb"<([A-Za-z_][\w:.-]*)", text)
        name = root[1].decode() if root else ""
        return _ROOTS.get(name, f"XML (<{name}>)" if name else "XML")
    for line in text.decode("utf-8", "replace").splitlines():
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        return "RTTM" if fields[0].upper() in _TYPES and len(fields) >= 5 else "table"
    return "table"
