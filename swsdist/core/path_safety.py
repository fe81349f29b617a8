"""Names in a store or a run must not lead out of it.

A corpus is the user's, and may name files anywhere. Manifests, plans and receipts may come from others: the names in
them must be below their folder, and must not make us read or write elsewhere. Every such name passes `demand_inside`
when it is read, and every local file of a store or run `demand_no_detour` when it is opened or published.
"""

from __future__ import annotations

import os
from pathlib import Path

from swsdist.core.codes import store as codes
from swsdist.core.text import shown


def demand_inside(name: object, where: str, key: str) -> str:
    """The name, if it lies below the folder of the file that contains it.

    Args:
        name: with `/` between folders.
        where: the file that contains it.
        key: its place there, for example `tracks.documents`.

    Raises:
        StoreError: it is absolute, a url, has a part `..` or `.`, an empty part, or a character NUL; or it is no text.
    """
    if isinstance(name, str) and "\0" not in name and not {"", ".", ".."} & set(name.split("/")):
        return name
    raise codes.OUTSIDE_NAME(where=where, key=key, name=shown(str(name))[:200])


def demand_no_detour(root: Path, name: str) -> None:
    """Refuse links by other users that lead out of a local folder; the user's own links, and root's, are followed.

    Args:
        root: the folder, which may be a link itself.
        name: of a file below it, which need not exist.

    Raises:
        StoreError: there is such a link.
    """
    trusted = {0, os.geteuid()}
    base: str | None = None
    place = root
    for part in name.split("/"):
        place = place / part
        try:
            status = place.lstat()
        except OSError:
            return  # it is missing, or opening it will report the fault
        if not os.path.islink(place) or status.st_uid in trusted:  # noqa: PTH114
            continue
        base = base or os.path.realpath(root)
        if os.path.commonpath([base, os.path.realpath(place)]) != base:
            raise codes.FOREIGN_LINK(where=str(place))
