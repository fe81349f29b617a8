"""Annotations beside recordings: `talk.eaf`, `talk.TextGrid`, `talk.csv`, ... beside `talk.wav`, in the same folder.

Of several files of one recording the first counts, as for its words (`swsdist.lattices.collection`). A recording has a speaker
if its tiers name exactly one: in ELAN their participant, in a TextGrid the name before ` - words`, as aligners write it, in a
table its column. Of several it has none: who speaks when is then a matter of voices (`swsdist.store.voices`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import groupby

from swsdist.core.errors import SwsdistError, UserError
from swsdist.io.filesystem import Folder, identify, locate
from swsdist.lattices.collection import LatticeFile, find_files, read_file
from swsdist.lattices.formats import elan, praat, table
from swsdist.lattices.lattice import BREAK, Broken, LeftOut, Origin
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.words import Annotation, Annotations, key_of, written

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
