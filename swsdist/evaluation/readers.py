"""Readers of list formats, and the detection of each format by its first bytes.

`swsdist.registry.registries.READERS` registers them; `swsdist.evaluation.scoring_task.read_system` calls them.
"""

from __future__ import annotations

import re

import pyarrow as pa

from swsdist.evaluation.scoring_task import DETECTED, ReadOptions, System, with_durations

_NAME = pa.dictionary(pa.int32(), pa.string())
_IDS = ("termid", "kwid")


def is_nist_list(head: bytes) -> bool:
    """Whether a file is XML or UTF-16, which no other list format is."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"\xff\xfe", b"\xfe\xff"))


def is_parquet(head: bytes) -> bool:
    """Whether a file is Parquet."""
    return head.startswith(b"PAR1")


def read_nist(path: str, options: ReadOptions) -> System:
    """A STDLIST (QUESST's too) or KWSLIST, documents named by the conventions.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
    """
    from swsdist.io.nist.systemlist import read_systemlist

    conventions = options.conventions
    # KWSEval stops where STDEval continues.
    tolerant = not conventions.strict_lists
    raw = read_systemlist(path, options.storage, notices=options.notices if tolerant else None, duplicates=tolerant)
    names = raw.detections["doc_id"].unify_dictionaries().combine_chunks()
    renamed = pa.array([conventions.system_document(name) for name in names.dictionary.to_pylist()], pa.string())
    # Two names may become the same, so they are encoded again.
    documents = renamed.take(names.indices).dictionary_encode() if len(names) else pa.array([], _NAME)
    place = raw.detections.schema.get_field_index("doc_id")
    detections = raw.detections.set_column(place, "doc_id", documents)
    return System(detections, raw.attributes, raw.queries, path)


def read_kaldi(path: str, options: ReadOptions) -> System:
    """Results of Kaldi's keyword search.

    Raises:
        UserError: there is no such file.
        DataError: it is broken; with file and line.
    """
    from swsdist.evaluation.kaldi_results import read_results

    kaldi = options.kaldi
    detections = read_results(path, kaldi.utterances, frame_shift=kaldi.frame_shift, storage=options.storage)
    # Kaldi's recipes convert results to a KWSLIST, so an ending .xml means that.
    return System(detections, {"kwlist_filename": "kwlist.xml"}, None, path)


#: Columns of a list that have the names of a STDLIST's or KWSLIST's attributes.
_NIST = pa.schema(
    [
        pa.field("file", pa.string(), False),
        DETECTED.field("channel"),
        *(pa.field(name, pa.float64(), False) for name in ("tbeg", "dur")),
        DETECTED.field("score"),
        DETECTED.field("decision"),
    ]
)


def is_nist_table(head: bytes) -> bool:
    """Whether a file is CSV with columns named as the attributes of NIST's lists; in any case, so that the error of capital
    letters tells the columns' names.
    """
    names = {
        name.strip('" \r').lower() for name in re.split(r"[,;\t]", head.decode("utf-8-sig", "ignore").split("\n")[0])
    }
    return {"file", "tbeg", "dur"} <= names and not names.isdisjoint(_IDS)


def read_nist_table(path: str, options: ReadOptions) -> System:
    """CSV with the columns `termid` or `kwid`, `file`, `tbeg`, `dur`, `score`, maybe `channel` and `decision`; documents are
    named by the conventions.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or a value is impossible; with the line.
    """
    from swsdist.io.tables import names_in, read_table
    from swsdist.score.trials.align import decimals

    there = names_in(path, options.storage)
    query = pa.field(next((name for name in _IDS if name in there), _IDS[0]), pa.string(), False)
    table = read_table(path, _NIST.insert(0, query), storage=options.storage)
    names = table["file"].dictionary_encode().combine_chunks()
    documents = pa.array(
        [options.conventions.system_document(name) for name in names.dictionary.to_pylist()], pa.string()
    )
    start, duration = table["tbeg"].to_numpy(), table["dur"].to_numpy()
    columns = {
        "query_id": table[query.name],
        "doc_id": documents.take(names.indices),
        "channel": table["channel"],
        "start": table["tbeg"],
        "end": decimals(start + duration, 6),
        "duration": duration,
        "score": table["score"],
        "decision": table["decision"],
    }
    return System(pa.table(columns), {}, None, path)


def read_rows(path: str, options: ReadOptions) -> System:
    """A table of detections, CSV or Parquet.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or a value is impossible; with the line.
    """
    from swsdist.io.tables import read_table

    return System(with_durations(read_table(path, DETECTED, storage=options.storage)), {}, None, path)
