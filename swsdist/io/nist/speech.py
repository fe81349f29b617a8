"""Stretches of speech, the basis of segment trials: SPEAKER records of an RTTM, or a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from swsdist.core.codes import io as codes
from swsdist.core.types import columns
from swsdist.io.compressed import opened
from swsdist.io.nist.rttm import read_rttm
from swsdist.io.tables import read_table

SPEECH = columns("doc_id string, channel int32, start float64, end float64")


def read_speech(path: str, storage: Mapping[str, object] | None = None) -> pa.Table:
    """Stretches of speech, recognised by content: a Parquet file, a CSV whose first line names `doc_id`, or an RTTM.

    Args:
        path: plain or packed, local or `s3://`.
        storage: options for s3fs.

    Returns:
        A table of schema SPEECH; ends of an RTTM's records are rounded to 4 decimals, as in KWSEval.

    Raises:
        UserError: there is no such file.
        DataError: it is broken, or an RTTM without SPEAKER records.
    """
    with opened(path, storage) as stream:
        head = stream.read(4096)
    if head.startswith(b"PAR1") or b"doc_id" in head.partition(b"\n")[0]:
        return read_table(path, SPEECH, storage=storage)
    turns = read_rttm(path, storage).speakers
    if not turns.num_rows:
        raise codes.NO_SPEAKER_RECORDS(where=path)
    ends = np.array([round(end, 4) for end in (turns["start"].to_numpy() + turns["duration"].to_numpy()).tolist()])
    columns = [turns["doc_id"].cast(pa.string()), turns["channel"], turns["start"], pa.array(ends, pa.float64())]
    return pa.table(columns, schema=SPEECH)
