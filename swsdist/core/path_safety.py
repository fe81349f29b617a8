"""Names that stand in a store or a run may not lead out of it.

A corpus is the user's own, and may name files anywhere. Manifests, plans and receipts may be somebody else's: what they call
their files is a name below their folder, and nothing that makes us read or write elsewhere. Every such name passes
`demand_inside` where it is read, and every local file of a store or run `demand_no_detour` where it is opened or put.
"""

from __future__ import annotations

import os
from pathlib import Path

from swsdist.core.codes import store as codes
from swsdist.core.text import shown


def demand_inside(name: object, where: str, key: str) -> str:
    """The same name, if it is one of a file below the folder that it is written in.

    Args:
        name: with `/` between folders.
        where: the file that it stands in.
        key: its place there, for example `tracks.documents`.

    Raises:
        StoreError: it is absolute, a url, has a part `..` or `.`, an empty one, or a character NUL; or it is no text.
    """
    if isinstance(name, str) and "\0" not in name and not {"", ".", ".."} & set(name.split("/")):
        return name
    raise codes.OUTSIDE_NAME(where=where, key=key, name=shown(str(name))[:200])


def demand_no_detour(root: Path, name: str) -> None:
    """That no link of another user leads from a local folder to elsewhere; links of one's own, and root's, are obeyed.

    Args:
        root: the folder, which may be a link itself.
        name: of a file below it, which need not be there.

    Raises:
        StoreError: there is such a link.
    """
    trusted = {0, os.geteuid()}
    base: str | None = None
    place = root
    for part in name.split("/"):
        place = place / part
        try:
            found = place.lstat()
        except OSError:
            return  # it is not there, or who opens it tells what is wrong
        if not os.path.islink(place) or found.st_uid in trusted:  # noqa: PTH114
            continue
        base = base or os.path.realpath(root)
        if os.path.commonpath([base, os.path.realpath(place)]) != base:
            raise codes.FOREIGN_LINK(where=str(place))
