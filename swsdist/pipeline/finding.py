"""The result of one check: of a machine (`swsdist doctor`), or of a config's inputs (`swsdist check`)."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """The result of one check.

    Attributes:
        name: name of the check.
        good: True: passed; False: failed; None: passed with a warning.
        text: details.
    """

    name: str
    good: bool | None
    text: str
