"""The result of one check: of a machine (`swsdist doctor`), or of a config's inputs (`swsdist check`)."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: what.
        good: whether it is as it must be; None: the work can be done, but something is odd.
        text: what was found.
    """

    name: str
    good: bool | None
    text: str
