"""The sound of examples, kept in the project's folder `examples/`: words are heard and searched where recordings are missing.

A file holds one channel of a place of a document, with `PAD` s on both sides; its name has a digest of the document's id, the
channel, its own start and end in the document, µs, and a digest of what the document held when it was judged.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from swsdist.audio.clips import as_bytes, read_clip
from swsdist.glossary.words import Place, Token, replaced
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


class Kept:
    """The sounds that a project keeps, as its folder is listed now."""

    def __init__(self, project: Path) -> None:
        self._files: dict[str, list[tuple[Path, int, float, float, str]]] = {}
        for file in sorted((project / NAME).glob("*.flac")):
            with suppress(ValueError):
                of, channel, start, end, content = file.stem.split("-")
                self._files.setdefault(of, []).append((file, int(channel), int(start) / 1e6, int(end) / 1e6, content))

    def files(self, doc_id: str) -> list[Path]:
        """All of a document."""
        return [file for file, *_ in self._files.get(_digest(doc_id), ())]

    def of(self, place: Place, content: str | None) -> Sound | None:
        """The newest sound of a place of a document.

        Args:
            place: it.
            content: that the document holds; another recording's sound is not its own. None: unknown.
        """
        found = [
            Sound(str(file), Place(place.doc_id, channel, start, end))
            for file, channel, start, end, held in self._files.get(_digest(str(place.doc_id)), ())
            if channel == place.channel and start <= place.start and place.end <= end
            if content is None or held in ("", _digest(content))
        ]
        return max(found, key=lambda sound: Path(sound.path).stat().st_mtime, default=None)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def keep(project: Path, tokens: Sequence[Token], store: Store) -> int:
    """Keep the sounds of all examples among tokens that have none yet; gives their number.

    Left out are those whose recording cannot be read, or holds another sound than was judged.
    """
    there = Kept(project)
    examples = [token for token in tokens if token.example and token.place.doc_id]
    examples = [token for token in examples if there.of(token.place, token.content) is None]
    if not examples:
        return 0
    wrong = replaced(examples, store)
    paths = store.recordings(sorted({str(token.place.doc_id) for token in examples}))
    count = 0
    for token in examples:
        path = paths.get((str(token.place.doc_id), token.place.channel), ("",))[0]
        if token not in wrong and not is_missing(path):
            try:
                _keep(project, token, path, store.folder.storage)
                count += 1
            except Exception as error:  # whatever is wrong with this one, the others are kept
                _LOG.info("the sound of an example is not kept: %s", error)
    return count


def _keep(project: Path, token: Token, path: str, storage: Mapping[str, object]) -> None:
    doc_id, channel, start, end, _ = token.place
    clip = read_clip(path, start, end, pad=PAD, channel=channel, storage=storage)
    last = max(end, clip.begin + len(clip.samples) / clip.rate)  # a place may exceed its recording by little
    content = "" if token.content is None else _digest(token.content)
    name = f"{_digest(str(doc_id))}-{channel}-{round(clip.begin * 1e6)}-{round(last * 1e6)}-{content}.flac"
    Folder(str(project)).write_bytes(f"{NAME}/{name}", as_bytes(clip.samples, clip.rate, "FLAC"))


def forget(project: Path, doc_ids: Collection[str], *, dry: bool = False) -> int:
    """Remove the sounds of documents; gives their number."""
    there = Kept(project)
    files = [file for doc_id in doc_ids for file in there.files(doc_id)]
    for file in () if dry else files:
        file.unlink(missing_ok=True)
    return len(files)
