"""ELAN files (EAF 2.8), one per document and linked to its recording; of detections a tier per query.

ELAN looks for the recording at its path; one on S3 is linked by its url, and ELAN asks for a copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pympi import Eaf

from swsdist.exports.interface import Material
from swsdist.exports.tiers import Annotated, annotated
from swsdist.io.filesystem import is_remote

#: Not that of writing: equal detections give equal bytes.
_DATE = "1970-01-01T00:00:00+00:00"
#: As ELAN calls types; of others it looks into the file.
_TYPES = {".wav": "audio/x-wav", ".mp4": "video/mp4", ".mpg": "video/mpeg", ".mpeg": "video/mpeg"}


def write(material: Material, folder: Path) -> None:
    """Write `eaf/`.

    Raises:
        UserError: a query's id cannot name a tier, or a document's a file.
    """
    write_annotated(annotated(material, folder, "eaf", "eaf"))


def write_annotated(documents: Iterable[Annotated]) -> None:
    """Write the files of documents."""
    for document in documents:
        eaf = Eaf(author="swsdist")
        eaf.adocument["DATE"] = _DATE
        eaf.header = {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"}
        eaf.remove_tier("default")
        if document.path:
            path = document.path
            kind = _TYPES.get(Path(path).suffix.lower(), "unknown")
            eaf.add_linked_file(path if is_remote(path) else Path(path).absolute().as_uri(), mimetype=kind)
        for tier, rows in document.tiers.items():
            eaf.add_tier(tier)
            for start, end, text in rows:
                eaf.add_annotation(tier, start, end, text)
        eaf.properties = [("lastUsedAnnotationId", eaf.maxaid)]
        eaf.to_file(str(document.file))
