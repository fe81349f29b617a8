"""Classes of a run of `discover`, to be asked for and named."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from swsdist.chains.discover.group_matches import MEMBERS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inspection.loading import load_chain_run


def classes_of(run: str) -> list[dict[str, Any]]:
    """name, members (their number), and place of the member in the middle by length; the largest class first.

    Raises:
        StoreError: not a run folder.
    """
    chain_run = load_chain_run(Folder(run.rstrip("/")))
    maker = chain_run.chain.maker("classes")
    parts = [] if maker is None else chain_run.read(maker.name, "classes")
    table = pa.concat_tables([MEMBERS.empty_table(), *parts])
    by_class: dict[Any, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        by_class.setdefault(row["class"], []).append(row)
    classes = []
    for name, members in sorted(by_class.items(), key=lambda item: -len(item[1])):
        members.sort(key=lambda row: row["end"] - row["start"])
        middle = members[len(members) // 2]
        place = {key: middle[key] for key in ("doc_id", "channel", "start", "end")}
        classes.append({"name": str(name), "members": len(members), "place": place})
    return classes
