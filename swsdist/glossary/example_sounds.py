"""The sound of examples, kept in the project's folder `examples/`: words are heard and searched where recordings are missing.

A file holds one channel of a place of a document, with `PAD` s on both sides; its name has a digest of the document's id, the
channel, and its own start and end in the document, µs.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from swsdist.audio.clips import as_bytes, read_clip
from swsdist.core.errors import AudioError
from swsdist.glossary.documents import replaced
from swsdist.glossary.words import Place, Token
from swsdist.io.filesystem import Folder, is_remote
from swsdist.store.reading import Store

_LOG = logging.getLogger(__name__)
#: In the project's folder.
NAME = "examples"
#: Around an example, s.
PAD = 0.5


class Sound(NamedTuple):
    """A file, and the place of a document that it holds."""

    path: str
    place: Place

    def within(self, place: Place) -> Place:
        """A place of the document, in the file."""
        return place._replace(
            channel=1, start=max(0.0, place.start - self.place.start), end=place.end - self.place.start
        )


def is_missing(path: str) -> bool:
    """Whether no recording is known, or the local file is not there."""
    return not path or not (is_remote(path) or Path(path).exists())


def kept(project: Path, place: Place) -> Sound | None:
    """The sound of a place of a document that a project keeps; None: it keeps none."""
    found = (each for each in _of(project, str(place.doc_id)) if each.place.channel == place.channel)
    return next((each for each in found if each.place.start <= place.start and place.end <= each.place.end), None)


def _of(project: Path, doc_id: str) -> Iterator[Sound]:
    for file in sorted((project / NAME).glob(f"{_digest(doc_id)}-*.flac")):
        with suppress(ValueError):
            _, channel, start, end = file.stem.split("-")
            yield Sound(str(file), Place(doc_id, int(channel), int(start) / 1e6, int(end) / 1e6))


def _digest(doc_id: str) -> str:
    return hashlib.blake2b(doc_id.encode(), digest_size=8).hexdigest()


def _is_current(project: Path, token: Token) -> bool:
    """Whether the sound of a token is kept, as of its last judgement: another recording may have come before that."""
    sound = kept(project, token.place)
    return sound is not None and Path(sound.path).stat().st_mtime >= datetime.fromisoformat(token.at).timestamp()


def keep(project: Path, tokens: Sequence[Token], store: Store) -> int:
    """Keep the sounds of all examples among tokens that have none yet; gives their number.

    Left out are those whose recording cannot be read, or holds another sound than was judged.
    """
    examples = [token for token in tokens if token.example and token.place.doc_id and not _is_current(project, token)]
    wrong = replaced(examples, store)
    paths = store.recordings(sorted({str(token.place.doc_id) for token in examples}))
    count = 0
    for token in examples:
        doc_id, channel, start, end, _ = token.place
        if token in wrong or not (path := paths.get((str(doc_id), channel), ("",))[0]):
            continue
        try:
            clip = read_clip(path, start, end, pad=PAD, channel=channel, storage=store.folder.storage)
        except AudioError as error:
            _LOG.info("the sound of an example is not kept: %s", error)
            continue
        last = max(end, clip.begin + len(clip.samples) / clip.rate)  # a place may exceed its recording by little
        name = f"{NAME}/{_digest(str(doc_id))}-{channel}-{round(clip.begin * 1e6)}-{round(last * 1e6)}.flac"
        Folder(str(project)).write_bytes(name, as_bytes(clip.samples, clip.rate, "FLAC"))
        count += 1
    return count


def forget(project: Path, doc_ids: Collection[str], *, dry: bool = False) -> int:
    """Remove the sounds of documents; gives their number."""
    files = [sound.path for doc_id in doc_ids for sound in _of(project, doc_id)]
    for file in () if dry else files:
        Path(file).unlink(missing_ok=True)
    return len(files)
