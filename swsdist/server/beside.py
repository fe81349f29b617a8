"""Annotations beside the recordings of an archive: what there is, tiers of a stretch, and what of them cannot be used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError
from swsdist.glossary.words import documents_beside, lengths_of
from swsdist.io.filesystem import Folder
from swsdist.lattices.beside import TIERED, files_in, name_of, tiers_of
from swsdist.lattices.collection import LatticeFile
from swsdist.lattices.words import Annotations
from swsdist.server.archive import Archive

#: Seconds that an annotation may begin after its recording ends, and most annotations of an answer.
_BEYOND, _MOST = 0.5, 1000


class _Read(NamedTuple):
    """What a file says: faults; and tiers that can be imported: name, speaker, number of annotations.

    Attributes:
        of: the file, its document, and the latest time of an annotation (s); the same again is not read again.
    """

    of: tuple[LatticeFile, str, float]
    faults: list[dict[str, Any]]
    tiers: list[tuple[str, str, int]]


@dataclass(frozen=True)
class Beside:
    """Annotations beside recordings.

    Attributes:
        store: of the recordings, which knows how to read beside them.
        read: files, by what they have in common with their recording (`swsdist.lattices.beside.name_of`).
    """

    store: Folder
    read: Mapping[str, _Read]

    @classmethod
    def of(cls, archive: Archive, before: Beside | None) -> Beside:
        """Read the files beside the recordings of an archive, and again those that changed."""
        store = archive.searcher.store
        documents = documents_beside(store)
        read = dict[str, _Read]()
        lengths = lengths_of(store, {doc_id for doc_id, _ in documents.values()})
        found = (item for folder in _folders(documents) for item in files_in(folder, store.folder.storage).items())
        for name, file in found:
            if name in documents:
                of = file, documents[name][0], lengths.get(documents[name], float("inf")) + _BEYOND
                known = None if before is None else before.read.get(name)
                read[name] = known if known is not None and known.of == of else _read(*of, store.folder)
        return cls(store.folder, read)

    @cached_property
    def faults(self) -> list[dict[str, Any]]:
        """Files, and annotations, that cannot be used; as `Archive.rejected`."""
        return [fault for each in self.read.values() for fault in each.faults]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the page says of them: so many recordings have some (`recordings`); and `tiers` that can be imported, most
        annotations first: name, speakers, annotations and recordings (counts).
        """
        tiers: defaultdict[str, dict[str, Any]] = defaultdict(
            lambda: {"speakers": set(), "annotations": 0, "recordings": 0}
        )
        for name, speaker, count in (tier for each in self.read.values() for tier in each.tiers):
            counts = tiers[name]
            counts["speakers"] |= {speaker} - {""}
            counts["annotations"] += count
            counts["recordings"] += 1
        listed = [{"name": name, **each, "speakers": sorted(each["speakers"])} for name, each in tiers.items()]
        listed.sort(key=lambda tier: (-tier["annotations"], tier["name"]))
        return {"recordings": len(self.read), "tiers": listed}

    def tiers_at(self, path: str, start: float, end: float) -> list[dict[str, Any]]:
        """Tiers of a recording with annotations in a stretch of it (s): name, speaker, annotations."""
        read = self.read.get(name_of(path))
        if read is None:
            return []
        try:
            tiers, _ = tiers_of(read.of[0], self.store)
        except (SwsdistError, OSError):  # it is among the faults
            return []
        return [tier for tier in (_shown(each, start, end) for each in tiers) if tier["annotations"]]


def _folders(names: Iterable[str]) -> list[str]:
    """The folders of files, without those below another."""
    folders = list[str]()
    for folder in sorted({f"{name.rpartition('/')[0]}/" for name in names} - {"/"}):
        if not folders or not folder.startswith(folders[-1]):
            folders.append(folder)
    return folders


def _read(file: LatticeFile, doc_id: str, end: float, store: Folder) -> _Read:
    of = file, doc_id, end
    try:
        tiers, left_out = tiers_of(file, store)
    except (SwsdistError, OSError) as error:
        return _Read(of, [_fault(file, doc_id, error)], [])
    faults = [_fault(file, doc_id, error) for error in left_out.errors]
    if late := [row for tier in tiers for row in tier.rows if row.start > end]:
        faults.append(_fault(file, doc_id, codes.LATE_ANNOTATIONS(where=late[0].where, count=len(late), end=end)))
    useful = [tier for tier in tiers if file.format in TIERED and tier.rows and tier.intervals]
    return _Read(of, faults, [(tier.name, tier.speaker, len(tier.rows)) for tier in useful])


def _shown(tier: Annotations, start: float, end: float) -> dict[str, Any]:
    rows = [row for row in tier.rows if row.start < end and row.end > start][:_MOST]
    annotations = [{"start": row.start, "end": row.end, "text": row.text} for row in rows]
    return {"name": tier.name, "speaker": tier.speaker, "annotations": annotations}


def _fault(file: LatticeFile, doc_id: str, error: Exception) -> dict[str, Any]:
    row = {"path": file.path, "id": doc_id, "reason": "unreadable", "message": str(error), "remedy": None}
    if isinstance(error, SwsdistError):
        where = f"{error.where}: " if error.where and error.where != file.path else ""
        row |= {"reason": error.code, "message": f"{where}{error.message}", "remedy": error.remedy}
    return row
