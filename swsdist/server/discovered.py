"""Classes of a run of `discover`, to be searched for and named."""

from __future__ import annotations

from typing import Any

from swsdist.chains.discover.report import stretches
from swsdist.discovery.words import Stretch
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inspection.loading import load_chain_run


def classes_of(run: str) -> list[dict[str, Any]]:
    """name, members (their number), and place of the member in the middle by length; the largest class first.

    Raises:
        StoreError: not a run folder.
    """
    chain_run = load_chain_run(Folder(run.rstrip("/")))
    if chain_run.chain.source("classes") is None:
        return []
    by_class: dict[int | None, list[Stretch]] = {}
    for member in stretches(chain_run, "classes"):
        by_class.setdefault(member.group, []).append(member)
    classes = []
    for name, members in sorted(by_class.items(), key=lambda item: -len(item[1])):
        members.sort(key=lambda member: member.end - member.start)
        middle = members[len(members) // 2]
        place = {key: getattr(middle, key) for key in ("doc_id", "channel", "start", "end")}
        classes.append({"name": str(name), "members": len(members), "place": place})
    return classes
