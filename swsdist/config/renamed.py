"""Old config keys and the keys that replace them.

An old key in a config, a corpus file or `--set` is the error `renamed-key`. docs/reference/renamed.md lists them.
"""

from __future__ import annotations

from typing import NamedTuple


class Renamed(NamedTuple):
    """A name that has changed.

    Attributes:
        old: the name before; a key with its sections.
        new: the name now.
        note: what else changed, as a clause.
    """

    old: str
    new: str
    note: str = ""


#: Keys of configs and corpus files. An entry also holds for all keys below its old one.
KEYS = (
    Renamed("search.proposer", "search.first_pass"),
    Renamed("search.first_pass.factors", "search.first_pass.factor", "one number"),
    Renamed("corpus.talkers", "corpus.speakers"),
    Renamed("corpus.queries_from.talkers", "corpus.queries_from.speakers"),
    Renamed("search.device", "search.backend", "values: cpu, cuda, auto"),
    Renamed("search.product", "search.backend", "values: int16, blas (was numpy), cpu (was auto)"),
    Renamed("calibrate.normalise", "calibrate.steps", "a list, such as [q-norm]; none is []"),
)


def replacement(key: str) -> Renamed | None:
    """The entry of an old key, or of a key below it: both names are then those of the key itself; None for other keys."""
    for entry in KEYS:
        if key == entry.old or key.startswith(f"{entry.old}."):
            rest = key.removeprefix(entry.old)
            return Renamed(key, entry.new + rest, entry.note)
    return None
