"""This module reads systems' lists of any kind, and the names that a command line gives them.

The content tells what a list is: the first element tells a STDLIST or KWSLIST, the first line Kaldi's results, and the first
bytes Parquet; anything else is CSV.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from swsdist.errors import UserError
from swsdist.evaluation.task import System
from swsdist.io.kaldi_data import Utterances
from swsdist.io.notices import Notices
from swsdist.score.conventions import STDEVAL, Conventions, conventions_of
from swsdist.score.tables import in_schema
from swsdist.types import DETECTIONS, REFERENCES

_NAME = pa.dictionary(pa.int32(), pa.string())
_DETECTED = pa.schema([*(DETECTIONS.field(n) for n in (*REFERENCES.names, "score")), DETECTIONS.field("decision")])

#: Endings of files that are no part of a system's name.
_ENDINGS = frozenset({".xml", ".csv", ".parquet", ".txt", ".gz", ".bz2", ".xz", ".zst"})


@dataclass(frozen=True)
class Kaldi:
    """Kaldi's results tell places by utterance and frame; this says where utterances lie, and how long a frame is, in s."""

    utterances: Utterances = field(default_factory=Utterances)
    frame_shift: float = 0.01


def named_paths(arguments: Iterable[str]) -> dict[str, str]:
    """Paths by name, of `NAME=PATH`, or of `PATH`, whose name is its last part without the endings of lists.

    Raises:
        UserError: two have one name.
    """
    found: dict[str, str] = {}
    for given in arguments:
        name, equals, path = given.partition("=")
        if not equals or "/" in name:
            last, path = PurePosixPath(given.rstrip("/")), given
            while last.suffix.lower() in _ENDINGS:
                last = last.with_suffix("")
            name = last.name
        if name in found:
            raise UserError(
                f"two systems are called {name!r}", where=path, remedy=f"name them: one={found[name]} another={path}"
            )
        found[name] = path
    return found


def read_system(
    path: str,
    *,
    conventions: Conventions | str = STDEVAL,
    notices: Notices | None = None,
    storage: Mapping[str, Any] | None = None,
    kaldi: Kaldi | None = None,
    is_kaldi: bool | None = None,
) -> System:
    """Read a STDLIST (QUESST's too), KWSLIST, table (CSV, Parquet) of detections, or Kaldi's results, told by its content.

    Args:
        path: plain or packed, local or `s3://`.
        conventions: whose rules for document names and for oddities.
        notices: takes what is odd; None: oddities are errors.
        storage: options for s3fs.
        kaldi: how results tell places; by default each utterance is a document.
        is_kaldi: whether they are results; None: as the first line tells.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
    """
    from swsdist.io.compressed import opened
    from swsdist.io.kaldi import looks_like_results

    conventions = conventions_of(conventions)
    if is_kaldi:
        return _results(path, kaldi or Kaldi(), storage)
    with opened(path, storage) as stream:
        head = stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        from swsdist.io.nist.systemlist import read_systemlist

        # KWSEval stops at what STDEval passes over.
        tolerant = not conventions.strict_lists
        raw = read_systemlist(path, storage, notices=notices if tolerant else None, duplicates=tolerant)
        names = raw.detections["doc_id"].unify_dictionaries().combine_chunks()
        known = pa.array([conventions.system_document(name) for name in names.dictionary.to_pylist()], pa.string())
        # Two names may become one, so the codes are made anew.
        documents = known.take(names.indices).dictionary_encode() if len(names) else pa.array([], _NAME)
        place = raw.detections.schema.get_field_index("doc_id")
        detections = raw.detections.set_column(place, "doc_id", documents)
        return System(detections, raw.attributes, raw.queries, path)
    if is_kaldi is None and looks_like_results(path, storage):
        return _results(path, kaldi or Kaldi(), storage)
    return System(_table_of_detections(path, storage), {}, None, path)


def _results(path: str, kaldi: Kaldi, storage: Mapping[str, Any] | None) -> System:
    from swsdist.io.kaldi import read_results

    detections = read_results(path, kaldi.utterances, frame_shift=kaldi.frame_shift, storage=storage)
    # What Kaldi's recipes make of results is a KWSLIST, so that is what an ending .xml asks for.
    return System(detections, {"kwlist_filename": "kwlist.xml"}, None, path)


def make_system(detections: Any, name: str = "system") -> System:
    """A system's answer from what is in memory.

    Args:
        detections: arrow table, pandas DataFrame or mapping of columns: query_id, doc_id, start, end (s), score, maybe
            channel and decision (bool).
        name: of the system.

    Raises:
        TableError: a column is missing or of another kind.
    """
    table = in_schema(detections, _DETECTED, "detections")
    return System(_with_durations(table), {"system_id": name}, None, name)


def _with_durations(table: pa.Table) -> pa.Table:
    from swsdist.score.trials.align import decimals

    duration = decimals(table["end"].to_numpy() - table["start"].to_numpy(), 6)
    return table.add_column(table.schema.get_field_index("score"), "duration", pa.array(duration))


def _table_of_detections(path: str, storage: Mapping[str, Any] | None) -> pa.Table:
    from swsdist.io.tables import read_table

    return _with_durations(read_table(path, _DETECTED, storage=storage))
