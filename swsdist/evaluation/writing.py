"""This module writes a system's list as STDLIST, KWSLIST, CSV, Parquet or Kaldi's results, with the header
and the queries of the list it was made of.

It does not write what the readers drop: only the mean of a list's search times, and only the columns of a list, are left.
Kaldi's results have no decisions. A STDLIST or KWSLIST has YES and NO only, so NO stands for what is not decided.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from swsdist.errors import UserError
from swsdist.evaluation.lists import Kaldi
from swsdist.evaluation.task import ScoringTask, System

_COLUMNS = ("query_id", "doc_id", "channel", "start", "end", "score", "decision")


def write_list(
    detections: pa.Table,
    out: Path,
    system: System,
    task: ScoringTask | None,
    kind: str | None = None,
    kaldi: Kaldi | None = None,
) -> str:
    """Write a list of the kind that is named, or that the ending tells (.xml: as the list was read, of
    Kaldi's results a KWSLIST, else STDLIST).

    Args:
        detections: the list.
        out: local file.
        system: the list that was read: its header and its queries go into a STDLIST or KWSLIST.
        task: its terms, too.
        kind: stdlist, kwslist, csv, parquet or kaldi.
        kaldi: of Kaldi's results; by default each document is an utterance.

    Returns:
        The kind.

    Raises:
        UserError: the ending tells nothing, a name cannot stand in such a list, or no utterance holds a detection.
        DataError: scores are no posteriors, which Kaldi's results want.
    """
    if kind is None:
        xml = "kwslist" if "kwlist_filename" in system.attributes else "stdlist"
        kind = {".xml": xml, ".csv": "csv", ".parquet": "parquet"}.get(out.suffix.lower())
    if kind is None:
        raise UserError(
            f"the ending {out.suffix!r} tells no format",
            where=str(out),
            remedy="end it in .xml, .csv or .parquet, or give --format",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial")
    try:
        if kind == "kaldi":
            _write_kaldi(detections, partial, kaldi or Kaldi())
        else:
            _WRITERS[kind](detections, partial, system, task)
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return kind


def _write_xml(kind: str) -> Callable[[pa.Table, Path, System, ScoringTask | None], None]:
    def write(detections: pa.Table, out: Path, system: System, task: ScoringTask | None) -> None:
        from swsdist.io.nist.systemlist_writing import write_kwslist, write_stdlist

        queries = list(system.search_times or {})
        if system.search_times is None and task is not None:
            queries = task.terms["query_id"].to_pylist()
        known = {name: k for k, name in enumerate(queries)}
        order = [known.setdefault(name, len(known)) for name in detections["query_id"].to_pylist()]
        rows = _printable(detections).take(pa.array(np.argsort(order, kind="stable")))
        about = system.attributes
        language, name = about.get("language", "unknown"), about.get("system_id", "swsdist")
        listed = (
            about.get("termlist_filename")
            or about.get("kwlist_filename")
            or ("tlist.xml" if kind == "stdlist" else "kwlist.xml")
        )
        time = _mean_time(system)
        if kind == "kwslist":
            write_kwslist(
                rows.to_batches(), known, out, kwlist=listed, language=language, system=name, search_seconds=time
            )
            return
        write_stdlist(
            rows.to_batches(),
            known,
            out,
            termlist=listed,
            language=language,
            system=name,
            indexing_seconds=_number(about.get("indexing_time")),
            index_bytes=int(_number(about.get("index_size"))),
            search_seconds=time,
        )

    return write


def _printable(detections: pa.Table) -> pa.Table:
    """With times as short decimals: a sum of doubles may be 1e-16 beside them, and would print 16 digits."""
    for name in ("start", "end"):
        time = detections[name].to_numpy()
        short = np.rint(time * 1e6) / 1e6
        place = detections.schema.get_field_index(name)
        detections = detections.set_column(place, name, pa.array(np.where(np.abs(short - time) < 1e-9, short, time)))
    return detections


def _number(text: str | None) -> float:
    """A figure of a header, which programs write in many ways; 0 where it is none."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if 0 <= value < 1e15 else 0.0


def _mean_time(system: System) -> float:
    times = [_number(text) for text in (system.search_times or {}).values()]
    return round(sum(times) / len(times), 6) if times else 0.0


def _write_csv(detections: pa.Table, out: Path, system: System, task: ScoringTask | None) -> None:
    from swsdist.io.tables import write_csv

    rows = _printable(detections).select(_COLUMNS)
    write_csv(rows, rows.schema, out)


def _write_parquet(detections: pa.Table, out: Path, system: System, task: ScoringTask | None) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(_printable(detections).select(_COLUMNS), out)


def _write_kaldi(detections: pa.Table, out: Path, kaldi: Kaldi) -> None:
    from swsdist.io.kaldi import write_results

    write_results(detections, out, kaldi.utterances, frame_shift=kaldi.frame_shift)


_WRITERS: dict[str, Callable[[pa.Table, Path, System, ScoringTask | None], None]] = {
    "stdlist": _write_xml("stdlist"),
    "kwslist": _write_xml("kwslist"),
    "csv": _write_csv,
    "parquet": _write_parquet,
}
