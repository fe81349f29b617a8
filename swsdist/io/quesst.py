"""The lists of QUESST (MediaEval 2014, 2015), whose trials are pairs of a query and a document.

They resemble the lists of STDEval (ECF, TLIST, STDLIST, RTTM), but follow stricter and different rules:

- A document is an excerpt of the ECF; its id is the last part of the name without its last extension.
- The RTTM has exactly nine fields, separated by **single** blanks; field 2 is the document, field 6 the **id** of the
  query, not its text. Type, channel and times are ignored, as are lines for other ids, like the NO_KEYWORD line of each
  document.
- In the STDLIST `file` is the document's id as written; channel and times are ignored.

Source: the behaviour of the evaluation's scoring program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from swsdist.core.codes import io as codes
from swsdist.core.types import REFERENCES, columns
from swsdist.io.compressed import lines, short
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.nist.systemlist import stdlist

_FIELDS = 9

#: Trials of a system.
SCORES = columns("query_id string, doc_id string, score float64, decision bool")


def read_quesst_documents(path: str, storage: Mapping[str, object] | None = None) -> list[str]:
    """Ids of the documents of an ECF, in the order of the file.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.

    Raises:
        UserError: there is no such file.
        DataError: it is no ECF, or two excerpts have one id.
    """
    names = read_ecf(path, storage)["file"].to_pylist()
    result: dict[str, str] = {}
    for name in names:
        last = name.rpartition("/")[2]
        document = last.rpartition(".")[0] if "." in last else last
        if document in result:
            raise codes.DUPLICATE_EXCERPT(
                where=path, first=short(result[document]), second=short(name), document=short(document)
            )
        result[document] = name
    return list(result)


def read_quesst_references(path: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """Query and document of each line of an RTTM, each pair once, in the order of the file; other fields are ignored.

    Empty lines are skipped.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.

    Returns:
        table REFERENCES, of channel 1, without times.

    Raises:
        UserError: there is no such file.
        DataError: a line has not nine fields separated by single blanks.
    """
    targets: dict[tuple[str, str], None] = {}
    for number, line in lines(path, storage):
        if not line:
            continue
        fields = line.split(" ")
        if len(fields) != _FIELDS or "" in fields:
            raise codes.QUESST_FIELD_COUNT(
                where=f"{path}, line {number}",
                fields=len(line.split()),
                separators=", not separated by single blanks" if "" in fields else "",
            )
        targets[fields[5], fields[1]] = None
    rows = [(query, document, 1, 0.0, 0.0) for query, document in targets]
    return pa.Table.from_pylist([dict(zip(REFERENCES.names, row, strict=True)) for row in rows], REFERENCES)


def write_quesst_list(trials: pa.Table, queries: Iterable[str], durations: Mapping[str, float], out: Path) -> None:
    """Write a system list: a detection per trial, which spans its document.

    Args:
        trials: schema SCORES, those of a query together.
        queries: ids of all queries.
        durations: s, of the documents, by id.
        out: local file to write.

    Raises:
        UserError: STDEval cannot process a name.
        DataError: a document is not among `durations`, or as in `ListWriter.write`.
    """
    documents = trials["doc_id"].to_pylist()
    if unknown := next((name for name in documents if name not in durations), None):
        raise codes.UNLISTED_DOCUMENT(where=str(out), document=unknown)
    spans = trials.append_column("channel", pa.array([1] * len(documents), pa.int32()))
    spans = spans.append_column("start", pa.array([0.0] * len(documents)))
    spans = spans.append_column("end", pa.array([float(durations[name]) for name in documents], pa.float64()))
    stdlist(str(out)).write(spans.to_batches(), queries, out)
