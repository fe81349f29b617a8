"""The inputs of scoring: the task, and a system's list in any registered format.

The content determines the format of a list: the first element of a STDLIST or KWSLIST, the first line of Kaldi's
results, the first bytes of Parquet, or another package's test. Everything else is CSV. Names of lists on a command line
are parsed here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import NamedTuple

import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.corpora.documents import is_rttm
from swsdist.corpora.kaldi import Utterances
from swsdist.corpora.places import Places
from swsdist.io.filesystem import Folder
from swsdist.io.notices import Notices
from swsdist.registry.registries import READERS
from swsdist.score.conventions import STDEVAL, Conventions, conventions_of, in_schema
from swsdist.score.measures.protocol import OperatingPoint, Protocol
from swsdist.score.trials import excerpt_documents, named_documents


@dataclass(frozen=True, eq=False)
class ScoringTask:
    """Queries, references and operating point that systems are scored against.

    Attributes:
        protocol: the rules.
        references: table REFERENCES, of the queries in `terms`.
        terms: table TERMS, in the order of the list, maybe with more columns.
        excerpts: table EXCERPTS; None if only the seconds are known.
        point: the operating point.
        segments: table SEGMENTS of segment trials, else None.
        notices: oddities.
        judged: places judged `yes` or `no`, REFERENCES, outside of which nothing is counted; None: everything is.
    """

    protocol: Protocol
    references: pa.Table
    terms: pa.Table
    excerpts: pa.Table | None
    point: OperatingPoint
    segments: pa.Table | None = None
    notices: Notices = field(default_factory=Notices)
    judged: pa.Table | None = None

    @cached_property
    def places(self) -> Places | None:
        """The documents of an ECF, one per excerpt; None without an ECF, or if names alone count."""
        if self.excerpts is None or self.conventions.by_name:
            return None
        return Places(excerpt_documents(self.excerpts, self.conventions))

    @property
    def document_names(self) -> list[str] | None:
        """Documents that the excerpts of an ECF name, in its order; None without an ECF."""
        return None if self.excerpts is None else named_documents(self.excerpts, self.conventions)

    @property
    def seconds(self) -> float:
        """T, s of audio."""
        return self.point.seconds

    @property
    def trials(self) -> int:
        """N of every query."""
        return self.point.trials

    @property
    def beta(self) -> float:
        """Weight of false alarms."""
        return self.point.beta

    @property
    def conventions(self) -> Conventions:
        """Rules of the scoring program."""
        return self.protocol.rules


@dataclass(frozen=True, eq=False)
class System:
    """A system's list.

    Attributes:
        detections: query_id, doc_id, channel, start, end, duration (s), score, decision (may be null).
        attributes: of the list's outermost element; of a table, nothing.
        search_times: by query with a list (maybe empty), as written; None for a table, which does not distinguish
            queries without detections from queries that were not searched.
        path: its file.
    """

    detections: pa.Table
    attributes: dict[str, str]
    search_times: dict[str, str] | None
    path: str


#: Bytes of a file that are read to detect its format.
HEAD = 4096

#: Columns of a table of detections.
DETECTED = pa.schema([*(DETECTIONS.field(n) for n in (*REFERENCES.names, "score")), DETECTIONS.field("decision")])

#: Lists that a run exports.
_EXPORTED = ("exports/detections.csv", "exports/stdlist.xml", "exports/kwlist.xml")

#: Endings of files that are no part of a system's name.
_ENDINGS = frozenset({".xml", ".csv", ".parquet", ".txt", ".gz", ".bz2", ".xz", ".zst"})


@dataclass(frozen=True)
class KaldiOptions:
    """How Kaldi's results locate detections: the places of utterances, and the length of a frame, s."""

    utterances: Utterances = field(default_factory=Utterances)
    frame_shift: float = 0.01


class ReadOptions(NamedTuple):
    """Options of reading a list.

    Attributes:
        conventions: whose rules for document names and for oddities.
        notices: takes what is odd; None: oddities are errors.
        storage: options for s3fs.
        kaldi: how Kaldi's results locate detections.
    """

    conventions: Conventions
    notices: Notices | None
    storage: Mapping[str, object] | None
    kaldi: KaldiOptions


def named_paths(arguments: Iterable[str]) -> dict[str, str]:
    """Paths by name: `NAME=PATH`, or `PATH`, named by its file name without list endings.

    Raises:
        UserError: two have one name.
    """
    paths: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if equals and not name:
            raise families.MISSING_INPUT(
                "the system has no name", "name it: one={path}; or give the path alone", where=argument, path=path
            )
        if not equals or "/" in name or (Path(argument).exists() and not Path(path).exists()):
            last, path = PurePosixPath(argument.rstrip("/")), argument
            while last.suffix.lower() in _ENDINGS:
                last = last.with_suffix("")
            name = last.name
        if name in paths:
            raise codes.DUPLICATE_SYSTEM_NAME(where=path, name=name)
        paths[name] = path
    return paths


def read_system(
    path: str,
    *,
    conventions: Conventions | str = STDEVAL,
    notices: Notices | None = None,
    storage: Mapping[str, object] | None = None,
    kaldi: KaldiOptions | None = None,
    reader: str | None = None,
) -> System:
    """Read a list of any registered format (`swsdist.registry.registries.READERS`), detected by its content.

    Formats: STDLIST (also QUESST's), KWSLIST, tables of detections (CSV, Parquet), Kaldi's results, and those of other
    packages.

    Args:
        path: plain or packed, local or `s3://`.
        conventions: whose rules for document names and for oddities.
        notices: takes what is odd; None: oddities are errors.
        storage: options for s3fs.
        kaldi: how results locate detections; by default each utterance is a document.
        reader: name of the reader; None: detected by content.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
        ConfigError: there is no such reader.
    """
    read_options = ReadOptions(conventions_of(conventions), notices, storage, kaldi or KaldiOptions())
    system: System = READERS[reader or reader_of(path, storage)].load()(path, read_options)
    return system


def reader_of(path: str, storage: Mapping[str, object] | None = None) -> str:
    """The name of the reader for a file's content.

    Raises:
        UserError: there is no such file, or it is an RTTM, or a run folder.
        DataError: it is packed and damaged.
    """
    from swsdist.io.compressed import opened

    _refuse_run(Folder(path.rstrip("/"), storage or {}))
    with opened(path, storage) as stream:
        head = stream.read(HEAD)
    reader = next((name for name in READERS if READERS[name].recognises(head)), None)
    if reader is None and is_rttm(head):
        raise families.WRONG_KIND(
            "this is an RTTM, not a system's list",
            "give it as --rttm; a list is a STDLIST, a KWSLIST, a table or Kaldi's results",
            where=path,
        )
    return reader or next(name for name in READERS if not READERS[name].detector)


def _refuse_run(folder: Folder) -> None:
    if not folder.exists("plan.json"):
        return
    there = [name for name in _EXPORTED if folder.exists(name)]
    make = f"write its list: swsdist export {quote(folder.path('config.yaml'))} --set 'report.exports=[csv]'; then "
    raise families.WRONG_KIND(
        "this is a run folder, not a list",
        "{export}name its list: {path}",
        where=folder.path(),
        export="" if there else make,
        path=folder.path((*there, *_EXPORTED)[0]),
    )


def make_system(detections: object, name: str = "system") -> System:
    """A system's list from tables in memory.

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
    """Add durations (s) to detections of the schema DETECTED."""
    from swsdist.score.align import decimals

    duration = decimals(table["end"].to_numpy() - table["start"].to_numpy(), 6)
    return table.add_column(table.schema.get_field_index("score"), "duration", pa.array(duration))
