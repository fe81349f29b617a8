"""Members of classes, and tokens of a parse, in their recordings."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from swsdist.discovery.words import Stretch
from swsdist.store.reading import Store


def places(tables: Iterable[pa.Table], store: Store) -> list[Stretch]:
    """Rows of MEMBERS with speakers and recordings; a document that is a place has its recording's name and times.

    Args:
        tables: MEMBERS.
        store: of their documents.
    """
    columns = ["doc_id", "channel", "speaker", "recording", "start"]
    documents = {(row["doc_id"], row["channel"]): row for row in store.documents(columns=columns).to_pylist()}
    recordings = store.recordings()
    stretches = []
    for row in (row for table in tables for row in table.to_pylist()):
        document = documents[row["doc_id"], row["channel"]]
        name, begin = document["recording"] or row["doc_id"], document["start"] or 0.0
        start, end = (round(begin + row[key], 6) for key in ("start", "end"))
        path = recordings[name, row["channel"]].path
        speaker = document["speaker"] or ""
        stretches.append(Stretch(row["class"], name, row["channel"], start, end, row["sure"], speaker, path))
    return stretches
