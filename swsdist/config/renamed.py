"""Old names of config keys, commands, options and stages, and the names that replace them.

An old key in a config, a corpus file or `--set` is the error `renamed-key`. docs/reference/renamed.md is generated from these
tables.
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
    Renamed("corpus.talkers", "corpus.speakers"),
    Renamed("corpus.queries_from.talkers", "corpus.queries_from.speakers"),
    Renamed("search.device", "search.backend", "values: cpu, cuda, auto"),
    Renamed("search.product", "search.backend", "values: int16, blas (was numpy), cpu (was auto)"),
    Renamed("calibrate.normalise", "calibrate.steps", "a list, such as [q-norm]; none is []"),
)

#: Commands and their options.
COMMANDS = (
    Renamed("swsdist kst-study", "swsdist sweep", "see configs/sweeps/kst_alpha.yaml"),
    Renamed("swsdist compare --latex FILE", "swsdist compare --table FILE.tex"),
    Renamed(
        "swsdist fuse --keep-overlaps",
        "swsdist fuse",
        "overlaps of different queries are kept by default; --between-queries drops them",
    ),
)

#: Stages, by chain.
STAGES = (
    Renamed("fuse: asked", "queries", "its tables: collect-queries"),
    Renamed("fuse: union", "merge-lists"),
    Renamed("fuse: fill", "impute-scores"),
    Renamed("fuse: apart", "find-overlaps"),
    Renamed("fuse: leave", "drop-overlaps"),
    Renamed("sweep: learn", "fit-calibration"),
    Renamed("sweep: compact", "sort-scores"),
    Renamed("search: align", "align.train, align.final", "two steps: for the fit, and for scoring"),
)


def replacement(key: str) -> Renamed | None:
    """The entry of an old key, or of a key below it: both names are then those of the key itself; None for other keys."""
    for entry in KEYS:
        if key == entry.old or key.startswith(f"{entry.old}."):
            rest = key.removeprefix(entry.old)
            return Renamed(key, entry.new + rest, entry.note)
    return None
