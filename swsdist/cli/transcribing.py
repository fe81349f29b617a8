"""Commands that write what was heard, words or phones, for people and other programs."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import (
    ANY_FOLDER,
    FOLDER,
    LANGUAGE,
    MODELS,
    SET,
    TRANSCRIPTS_CONFIG,
    Number,
    OutputCommand,
    written,
)
from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.core.text import shown

if TYPE_CHECKING:
    from swsdist.features.phnrec.transcribe import SpokenPhone
    from swsdist.store.reading import Store


#: In the folder of transcripts: the SHA-256 of each file as this command wrote it.
_RECORD = ".swsdist-transcripts.json"
#: Files that are named on the terminal, of those that stay as they are.
_NAMED = 3


def _formats(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """Formats of transcripts, separated by commas.

    Raises:
        UserError: there is no such format.
    """
    from swsdist.exports.transcripts import FORMATS

    given = dict.fromkeys(part.strip().lower() for part in value.split(","))
    for name in given:
        if name not in FORMATS:
            raise families.UNKNOWN_NAME(
                "there is no format {format!r} of transcripts",
                "choose one of {formats}",
                where="--format",
                format=name,
                formats=", ".join(FORMATS),
            )
    return tuple(given)


_TO = click.option("--to", type=FOLDER, help="Folder to write to. [default: NAME-transcripts beside the run]")
_FORMAT = click.option(
    "--format",
    "formats",
    callback=_formats,
    metavar="NAMES",
    default="srt,vtt,textgrid,eaf,ctm,json,txt",
    show_default=True,
    help="Formats, separated by commas.",
)


@click.command(cls=OutputCommand)
@click.argument("target", type=ANY_FOLDER, metavar="FOLDER|RUN|STORE")
@_TO
@_FORMAT
@MODELS
@LANGUAGE
def transcribe(
    target: str, to: str | None, formats: tuple[str, ...], models: tuple[str, ...], language: str | None
) -> None:
    """Write what is heard in recordings: SRT, WebVTT, TextGrid, ELAN, JSON and TXT, a file each, and a CTM of all.

    Of a FOLDER, its recordings are recognised first, as by swsdist index FOLDER --text --force; of a RUN or STORE, the words it
    holds are written. A file that this command did not write, or that has been changed since, stays as it is.
    """
    from swsdist.cli.running import index, run_name
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.operation.cleaning import reading
    from swsdist.searcher.searcher import store_of_words

    folder, source = Folder(target.rstrip("/")), target.rstrip("/")
    of_recordings = not folder.exists("plan.json") and not folder.exists("manifest.json")
    if of_recordings:
        source = run_name(target, TRANSCRIPTS_CONFIG)
    elif models or language:
        option = "--model" if models else "--language"
        fix = f"leave out {option}, or name the recordings"
        raise codes.OF_RECORDINGS(where=target, option=option, what="a run or a store", fix=fix)
    place = FOLDER.convert(to or _default(source), None, None)
    if of_recordings:
        click.get_current_context().invoke(
            index, config=target, text=True, models=models, language=language, force=True
        )
    with reading(store_of_words(source)) as store:
        _write(store, Path(place), formats)


@click.command(cls=OutputCommand)
@click.argument("folder", type=ANY_FOLDER, metavar="FOLDER")
@click.option(
    "--text",
    "texts",
    metavar="TABLE|FOLDER",
    help="Table of recordings and their texts (.csv, .tsv), or folder of TXT files. [default: those beside the recordings]",
)
@_TO
@_FORMAT
@MODELS
@LANGUAGE
@SET
def align(
    folder: str,
    texts: str | None,
    to: str | None,
    formats: tuple[str, ...],
    models: tuple[str, ...],
    language: str | None,
    sets: tuple[str, ...],
) -> None:
    """Give the words of texts the times at which they are said in the recordings of FOLDER.

    A recogniser hears the recordings, and texts are aligned with what it hears; NAME.txt is the text of NAME.wav. The texts are
    then searched in FOLDER-aligned, and written as by swsdist transcribe.
    """
    from swsdist.cli.running import configured, go, run_name, source_of
    from swsdist.pipeline.operation.cleaning import reading
    from swsdist.searcher.searcher import store_of_words

    texts = source_of(texts or folder)
    run = run_name(folder, TRANSCRIPTS_CONFIG, texts)
    place = FOLDER.convert(to or _default(run), None, None)
    config = configured(
        folder, sets, force=True, template=TRANSCRIPTS_CONFIG, models=models, language=language, texts=texts
    )
    go(config, folder, table="documents")
    with reading(store_of_words(run)) as store:
        _write(store, Path(place), formats)
    print(f"search it: swsdist search {quote(run)} --text TEXT")


def _write(store: Store, folder: Path, formats: tuple[str, ...]) -> None:
    """Write the files, and print what was written."""
    from swsdist.exports.transcripts import CTM, Transcript, write
    from swsdist.store.lattice_shards import words_of_recordings

    recordings = store.recordings()
    names, silent, words = 0, list[str](), 0
    taken: set[str] = set()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".swsdist-", dir=folder) as staging:
        published = _Published(folder, Path(staging))
        try:
            for name, channels, language in words_of_recordings(store):
                place = recordings[name, next(iter(channels))]
                count = sum(map(len, channels.values()))
                silent += [] if count else [name]
                names, words = names + 1, words + count
                transcript = Transcript(name, place.path, place.duration, channels, language)
                for file in write(transcript, formats, Path(staging), taken):
                    published.publish(file)
            if "ctm" in formats:
                published.publish(CTM)
        finally:
            published.record()
    print(f"{published.count} files of {names} recordings, {words} words, in {folder}")
    if silent:
        print(f"no words in {len(silent)} of them; the first: {shown(silent[0])}")
    for file in published.kept[:_NAMED]:
        print(f"warning: {folder / shown(file)} stays as it is: it is another's, or was changed", file=sys.stderr)
    if len(published.kept) > _NAMED:
        print(f"warning: so do {len(published.kept) - _NAMED} more", file=sys.stderr)


class _Published:
    """Files that are put into a folder; of others there, none is overwritten.

    Attributes:
        count: files that are as they were written now.
        kept: names of files that stay as they were.
    """

    def __init__(self, folder: Path, staging: Path) -> None:
        self._folder, self._staging = folder, staging
        self._earlier, self._written = _recorded(folder), dict[str, str]()
        self.count = 0
        self.kept: list[str] = []

    def publish(self, name: str) -> None:
        """Put a file in place, unless one is there that this command did not write."""
        made, place = self._staging / name, self._folder / name
        digest = _sha256(made)
        if (there := _sha256(place)) not in (None, digest, self._earlier.get(name)):
            self.kept.append(name)
            return
        if there != digest:
            place.parent.mkdir(parents=True, exist_ok=True)
            made.replace(place)
        self._written[name] = digest or ""
        self.count += 1

    def record(self) -> None:
        """Remember what was written, by another process meanwhile too."""
        made, written = self._staging / _RECORD, _recorded(self._folder) | self._written
        made.write_text(json.dumps(written, indent=1, sort_keys=True), encoding="utf-8")
        made.replace(self._folder / _RECORD)


def _recorded(folder: Path) -> dict[str, str]:
    """Names of the files that this command wrote into a folder, and the SHA-256 of each."""
    with suppress(OSError, ValueError):
        read = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return read if isinstance(read, dict) else {}
    return {}


def _sha256(path: Path) -> str | None:
    """Of a file; None: there is nothing. Links, folders, and what cannot be read or lies below a file, have an empty one."""
    try:
        return "" if path.is_symlink() or path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _default(source: str) -> str:
    """Beside a run or store, named after it; of one on S3 in the working directory."""
    place = Path(source.partition("://")[2]) if "://" in source else Path(source).resolve()
    name = f"{place.name.removesuffix('-text').removesuffix('-swsdist')}-transcripts"
    return name if "://" in source else os.path.relpath(place.with_name(name))


@click.command(cls=OutputCommand)
@click.argument("weights", metavar="WEIGHTS")
@click.argument("documents", metavar="DOCUMENTS")
@click.option(
    "--out", "-o", required=True, type=written(".ctm", ".mlf"), help="CTM (.ctm) or HTK master label file (.mlf)."
)
@click.option(
    "--penalty", type=Number(), help="Log penalty per phone; lower: fewer phones. [default: the recogniser's]"
)
def phones(weights: str, documents: str, out: str, penalty: float | None) -> int:
    """Transcribe DOCUMENTS (a table, or a folder of audio) to phones with BUT's phnrec, in the folder WEIGHTS.

    Exit code 4 if a recording could not be used.
    """
    from swsdist.core.errors import AudioError
    from swsdist.corpora.documents import read_documents
    from swsdist.features.phnrec.transcribe import transcribe, transcriber

    by = transcriber(weights)
    rows = read_documents(documents).to_pylist()
    transcripts: dict[tuple[str, int], list[SpokenPhone]] = {}
    failed = 0
    for row in rows:
        try:
            phones_found = transcribe(row["path"], by, channel=row["channel"], penalty=penalty)
        except AudioError as error:
            failed += 1
            print(f"{row['doc_id']}: {error}", file=sys.stderr)
            continue
        transcripts[row["doc_id"], row["channel"]] = phones_found
    _phones_write(Path(out), transcripts)
    print(f"wrote {sum(map(len, transcripts.values()))} phones of {len(transcripts)} of {len(rows)} documents to {out}")
    return 4 if failed else 0


def _phones_write(out: Path, transcripts: dict[tuple[str, int], list[SpokenPhone]]) -> None:
    import pyarrow as pa

    from swsdist.core.types import LEXEMES
    from swsdist.io.frames.htk import TimedLabel, write_mlf
    from swsdist.io.nist.ctm import write_ctm

    if out.suffix.lower() == ".mlf":
        several = len({channel for _, channel in transcripts}) > 1
        write_mlf(
            {
                f"*/{doc_id}{f'.{channel}' if several else ''}.rec": [TimedLabel(*item) for item in phones_found]
                for (doc_id, channel), phones_found in transcripts.items()
            },
            out,
        )
        return
    lexemes = [
        {
            "doc_id": doc_id,
            "channel": channel,
            "start": item.start,
            "duration": item.end - item.start,
            "word": item.phone,
            "kind": None,
            "speaker": None,
        }
        for (doc_id, channel), phones_found in transcripts.items()
        for item in phones_found
    ]
    write_ctm(pa.Table.from_pylist(lexemes, LEXEMES), out)
