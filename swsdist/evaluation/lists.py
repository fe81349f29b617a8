"""This module reads systems' lists of any kind, and the names that a command line gives them.

The content tells what a list is: the first element tells a STDLIST or KWSLIST, the first line Kaldi's results, and the first
bytes Parquet; another package says how its own are told; anything else is CSV.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pyarrow as pa

from swsdist.core.codes import calibrate as calibrate_codes
from swsdist.core.codes import evaluation as codes
from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.corpora.kaldi_data import Utterances
from swsdist.corpora.kinds import is_rttm
from swsdist.evaluation.scoring_task import System
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.registry.registries import READERS
from swsdist.score.conventions import STDEVAL, Conventions, conventions_of
from swsdist.score.tables import in_schema

#: Most bytes of a file that tell its form.
HEAD = 4096

#: Columns of a table of detections.
DETECTED = pa.schema([*(DETECTIONS.field(n) for n in (*REFERENCES.names, "score")), DETECTIONS.field("decision")])

#: Lists that a run exports.
_EXPORTED = ("exports/detections.csv", "exports/stdlist.xml", "exports/kwlist.xml")

#: Endings of files that are no part of a system's name.
_ENDINGS = frozenset({".xml", ".csv", ".parquet", ".txt", ".gz", ".bz2", ".xz", ".zst"})


@dataclass(frozen=True)
class KaldiOptions:
    """Kaldi's results tell places by utterance and frame; this says where utterances lie, and how long a frame is, in s."""

    utterances: Utterances = field(default_factory=Utterances)
    frame_shift: float = 0.01


class ReadOptions(NamedTuple):
    """How a list is to be read.

    Attributes:
        conventions: whose rules for document names and for oddities.
        notices: takes what is odd; None: oddities are errors.
        storage: options for s3fs.
        kaldi: how Kaldi's results tell places.
    """

    conventions: Conventions
    notices: Notices | None
    storage: Mapping[str, object] | None
    kaldi: KaldiOptions


def named_paths(arguments: Iterable[str]) -> dict[str, str]:
    """Paths by name, of `NAME=PATH`, or of `PATH`, whose name is its last part without the endings of lists.

    Raises:
        UserError: two have one name.
    """
    found: dict[str, str] = {}
    for given in arguments:
        name, equals, path = given.partition("=")
        if equals and not name:
            raise codes.UNNAMED_SYSTEM(where=given, path=path)
        if not equals or "/" in name or (Path(given).exists() and not Path(path).exists()):
            last, path = PurePosixPath(given.rstrip("/")), given
            while last.suffix.lower() in _ENDINGS:
                last = last.with_suffix("")
            name = last.name
        if name in found:
            raise calibrate_codes.DUPLICATE_SYSTEM_NAME(where=path, name=name)
        found[name] = path
    return found


def read_system(
    path: str,
    *,
    conventions: Conventions | str = STDEVAL,
    notices: Notices | None = None,
    storage: Mapping[str, object] | None = None,
    kaldi: KaldiOptions | None = None,
    reader: str | None = None,
) -> System:
    """Read a list of any kind that is registered (`swsdist.registry.registries.READERS`), told by its content.

    A STDLIST (QUESST's too) or KWSLIST, a table (CSV, Parquet) of detections, Kaldi's results, or what another package adds.

    Args:
        path: plain or packed, local or `s3://`.
        conventions: whose rules for document names and for oddities.
        notices: takes what is odd; None: oddities are errors.
        storage: options for s3fs.
        kaldi: how results tell places; by default each utterance is a document.
        reader: its name; None: as the content tells.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
        ConfigError: there is no such reader.
    """
    asked = ReadOptions(conventions_of(conventions), notices, storage, kaldi or KaldiOptions())
    system: System = READERS[reader or reader_of(path, storage)].load()(path, asked)
    return system


def reader_of(path: str, storage: Mapping[str, object] | None = None) -> str:
    """The name of the reader of a file, told by its content.

    Raises:
        UserError: there is no such file, or it is an RTTM, or a run folder.
        DataError: it is packed and damaged.
    """
    from swsdist.io.compressed import opened

    _refuse_run(Folder(path.rstrip("/"), storage or {}))
    with opened(path, storage) as stream:
        head = stream.read(HEAD)
    told = next((name for name in READERS if READERS[name].recognises(head)), None)
    if told is None and is_rttm(head):
        raise codes.RTTM_AS_LIST(where=path)
    return told or next(name for name in READERS if not READERS[name].detector)


def _refuse_run(folder: Folder) -> None:
    if not folder.exists("plan.json"):
        return
    there = [name for name in _EXPORTED if folder.exists(name)]
    make = f"write its list: swsdist export {folder.path('config.yaml')} --set report.exports=[csv]; then "
    raise codes.RUN_FOLDER_AS_LIST(
        where=folder.path(), export="" if there else make, path=folder.path((*there, *_EXPORTED)[0])
    )


def make_system(detections: object, name: str = "system") -> System:
    """A system's answer from what is in memory.

    Args:
        detections: arrow table, pandas DataFrame or mapping of columns: query_id, doc_id, start, end (s), score, maybe
            channel and decision (bool).
        name: of the system.

    Raises:
        TableError: a column is missing or of another kind.
    """
    table = in_schema(detections, DETECTED, "detections")
    return System(with_durations(table), {"system_id": name}, None, name)


def with_durations(table: pa.Table) -> pa.Table:
    """Detections of the schema DETECTED, with their durations (s)."""
    from swsdist.score.trials.align import decimals

    duration = decimals(table["end"].to_numpy() - table["start"].to_numpy(), 6)
    return table.add_column(table.schema.get_field_index("score"), "duration", pa.array(duration))
