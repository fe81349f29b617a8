"""Readers of list formats, and the detection of each format by its first bytes.

`swsdist.registry.registries.READERS` registers them; `swsdist.evaluation.lists.read_system` calls them.
"""

from __future__ import annotations

import pyarrow as pa

from swsdist.evaluation.lists import DETECTED, ReadOptions, with_durations
from swsdist.evaluation.scoring_task import System

_NAME = pa.dictionary(pa.int32(), pa.string())


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


def read_rows(path: str, options: ReadOptions) -> System:
    """A table of detections, CSV or Parquet.

    Raises:
        UserError: there is no such file.
        TableError: a column is missing, or a value is impossible; with the line.
    """
    from swsdist.io.tables import read_table

    return System(with_durations(read_table(path, DETECTED, storage=options.storage)), {}, None, path)
