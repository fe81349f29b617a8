"""Writes a list as STDLIST, KWSLIST, CSV, Parquet or Kaldi's results, with header and queries of its source list.

Attributes that the readers drop are not written: of search times only the mean is kept, of a table only the columns of a
list. Kaldi's results have no decisions. STDLIST and KWSLIST only have YES and NO, so undecided detections become NO.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
import pyarrow as pa

from swsdist.core.codes import families
from swsdist.evaluation.scoring_task import KaldiOptions, ScoringTask, System
from swsdist.io.nist import systemlist
from swsdist.io.tables import write_csv
from swsdist.registry.registries import WRITERS

_COLUMNS = ("query_id", "doc_id", "channel", "start", "end", "score", "decision")


class ListContext(NamedTuple):
    """Source and task of a list that is written.

    Attributes:
        system: the source list, with header and queries.
        task: the scoring task; None if unknown.
        kaldi: places of utterances for Kaldi's results.
    """

    system: System
    task: ScoringTask | None
    kaldi: KaldiOptions


def write_list(
    detections: pa.Table,
    out: Path,
    system: System,
    task: ScoringTask | None,
    kind: str | None = None,
    kaldi: KaldiOptions | None = None,
) -> str:
    """Write a list in the named format, or in that of the file's ending (.xml: the format that was read; KWSLIST for Kaldi's
    results; else STDLIST).

    Args:
        detections: the list.
        out: local file.
        system: the source list; its header and queries go into a STDLIST or KWSLIST.
        task: its terms go there, too.
        kind: a name of `swsdist.registry.registries.WRITERS`: stdlist, kwslist, csv, parquet, kaldi or one that another
        package adds. kaldi: of Kaldi's results; by default each document is an utterance.

    Returns:
        The kind.

    Raises:
        UserError: the ending tells nothing, a name cannot stand in such a list, or no utterance holds a detection.
        DataError: scores are no posteriors, which Kaldi's results want.
        ConfigError: there is no such kind.
    """
    kind = kind or _format_of(out, system)
    write = WRITERS[kind].load()
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    try:
        write(detections, partial, ListContext(system, task, kaldi or KaldiOptions()))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return kind


def kinds_of(out: Path) -> list[str]:
    """The formats of a file's ending.

    Raises:
        UserError: it tells none.
    """
    endings = {name: WRITERS[name].ending for name in WRITERS}
    kinds = [name for name, ending in endings.items() if ending and ending == out.suffix.lower()]
    if not kinds:
        *others, last = dict.fromkeys(filter(None, endings.values()))
        raise families.UNKNOWN_NAME(
            "no list format has the ending {ending!r}",
            "end it in {endings}, or give --format",
            where=str(out),
            ending=out.suffix,
            endings=f"{', '.join(others)} or {last}",
        )
    return kinds


def _format_of(out: Path, system: System) -> str:
    """The format of a file's ending; for XML that of the source list."""
    kinds = kinds_of(out)
    return "kwslist" if "kwslist" in kinds and "kwlist_filename" in system.attributes else kinds[0]


class _Header(TypedDict):
    """Fields common to the headers of STDLIST and KWSLIST."""

    language: str
    system: str
    search_seconds: float


def _listed(detections: pa.Table, about: ListContext) -> tuple[list[pa.RecordBatch], dict[str, int], _Header]:
    """Detections by query, all queries, and the header."""
    queries = list(about.system.search_times or {})
    if about.system.search_times is None and about.task is not None:
        queries = about.task.terms["query_id"].to_pylist()
    index_of = {name: k for k, name in enumerate(queries)}
    order = [index_of.setdefault(name, len(index_of)) for name in detections["query_id"].to_pylist()]
    rows = _printable(detections).take(pa.array(np.argsort(order, kind="stable")))
    attributes = about.system.attributes
    header: _Header = {
        "language": attributes.get("language", "unknown"),
        "system": attributes.get("system_id", "swsdist"),
        "search_seconds": _mean_time(about.system),
    }
    return rows.to_batches(), index_of, header


def _terms(about: ListContext, usual: str) -> str:
    """The file of the terms."""
    header = about.system.attributes
    return header.get("termlist_filename") or header.get("kwlist_filename") or usual


def stdlist(detections: pa.Table, out: Path, about: ListContext) -> None:
    """Write a STDLIST."""
    rows, queries, header = _listed(detections, about)
    seconds, size = (_number(about.system.attributes.get(name)) for name in ("indexing_time", "index_size"))
    termlist = _terms(about, "tlist.xml")
    made = systemlist.stdlist(str(out), termlist=termlist, indexing_seconds=seconds, index_bytes=int(size), **header)
    made.write(rows, queries, out)


def kwslist(detections: pa.Table, out: Path, about: ListContext) -> None:
    """Write a KWSLIST."""
    rows, queries, header = _listed(detections, about)
    made = systemlist.kwslist(str(out), kwlist=_terms(about, "kwlist.xml"), **header)
    made.write(rows, queries, out)


def _printable(detections: pa.Table) -> pa.Table:
    """Times as short decimals: a sum of doubles may be 1e-16 off, and would print 16 digits."""
    for name in ("start", "end"):
        time = detections[name].to_numpy()
        short = np.rint(time * 1e6) / 1e6
        place = detections.schema.get_field_index(name)
        detections = detections.set_column(place, name, pa.array(np.where(np.abs(short - time) < 1e-9, short, time)))
    return detections


def _number(text: str | None) -> float:
    """A number of a header, which programs write in many ways; 0 if it is none."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e15 else 0.0


def _mean_time(system: System) -> float:
    times = [_number(text) for text in (system.search_times or {}).values()]
    return round(sum(times) / len(times), 6) if times else 0.0


def csv(detections: pa.Table, out: Path, about: ListContext) -> None:
    """Write a table as CSV."""
    rows = _printable(detections).select(_COLUMNS)
    write_csv(rows, rows.schema, out)


def parquet(detections: pa.Table, out: Path, about: ListContext) -> None:
    """Write a table as Parquet."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(_printable(detections).select(_COLUMNS), out)


def kaldi_results(detections: pa.Table, out: Path, about: ListContext) -> None:
    """Write results as Kaldi's keyword search does.

    Raises:
        UserError: a name cannot stand there, or no utterance holds a detection.
        DataError: scores are no posteriors.
    """
    from swsdist.evaluation.kaldi_results import write_results

    write_results(detections, out, about.kaldi.utterances, frame_shift=about.kaldi.frame_shift)
