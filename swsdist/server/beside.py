"""Annotations beside the recordings of an archive: what there is, tiers of a stretch, and what of them cannot be used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError
from swsdist.glossary.documents import documents_beside, lengths_of
from swsdist.io.filesystem import Folder
from swsdist.lattices.beside import TIERED, files_in, name_of, tiers_of
from swsdist.lattices.collection import LatticeFile
from swsdist.lattices.words import Annotations
from swsdist.server.archive import Archive

#: Seconds that an annotation may begin after its recording ends, and most annotations of an answer.
_BEYOND, _MOST = 0.5, 1000


@dataclass(frozen=True)
class Beside:
    """Annotations beside recordings.

    Attributes:
        folder: of the recordings.
        files: by what they have in common with their recording (`swsdist.lattices.beside.name_of`).
        tiers: of files that can be imported, most annotations first: name, speakers, annotations and recordings (counts).
        recordings: so many have annotations beside them.
        faults: files, and annotations, that cannot be used; as `Archive.rejected`.
    """

    folder: Folder
    files: Mapping[str, LatticeFile]
    tiers: list[dict[str, Any]]
    recordings: int
    faults: list[dict[str, Any]]

    @classmethod
    def of(cls, archive: Archive, folder: str) -> Beside:
        """Read all files that lie beside recordings of an archive."""
        store = archive.searcher.store
        where, documents = Folder(folder, store.folder.storage), documents_beside(store)
        lengths = lengths_of(store, {doc_id for doc_id, _ in documents.values()})
        files = {name: file for name, file in files_in(folder, where.storage).items() if name in documents}
        tiers: defaultdict[str, dict[str, Any]] = defaultdict(
            lambda: {"speakers": set(), "annotations": 0, "recordings": 0}
        )
        faults = []
        for name, file in files.items():
            doc_id = documents[name][0]
            try:
                of_file, left_out = tiers_of(file, where)
            except (SwsdistError, OSError) as error:
                faults.append(_fault(file, doc_id, error))
                continue
            faults += [_fault(file, doc_id, error) for error in left_out.errors]
            end = lengths.get(documents[name], float("inf")) + _BEYOND
            late = [row for tier in of_file for row in tier.rows if row.start > end]
            if late:
                faults.append(
                    _fault(file, doc_id, codes.LATE_ANNOTATIONS(where=late[0].where, count=len(late), end=end))
                )
            for tier in of_file if file.format in TIERED else ():
                if tier.rows and tier.intervals:
                    counts = tiers[tier.name]
                    counts["speakers"] |= {tier.speaker} - {""}
                    counts["annotations"] += len(tier.rows)
                    counts["recordings"] += 1
        listed = [{"name": name, **each, "speakers": sorted(each["speakers"])} for name, each in tiers.items()]
        listed.sort(key=lambda tier: (-tier["annotations"], tier["name"]))
        return cls(where, files, listed, len(files), faults)

    @property
    def facts(self) -> dict[str, Any]:
        """What the page says of them."""
        return {"recordings": self.recordings, "tiers": self.tiers}

    def tiers_at(self, path: str, start: float, end: float) -> list[dict[str, Any]]:
        """Tiers of a recording with annotations in a stretch of it (s): name, speaker, annotations."""
        file = self.files.get(name_of(path))
        if file is None:
            return []
        try:
            tiers, _ = tiers_of(file, self.folder)
        except (SwsdistError, OSError):  # it is among the faults
            return []
        return [tier for tier in (_shown(each, start, end) for each in tiers) if tier["annotations"]]


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
