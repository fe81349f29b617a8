"""Speakers of documents, as numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.codes import chains as codes
from swsdist.kernels.coding import coded

#: The columns of DOCUMENTS that are needed.
WHO = ("doc_id", "channel", "recording", "speaker")


class Speakers:
    """Speakers of documents, and of recordings with several documents; an empty name is a speaker too.

    A speaker's number is the place of the name among all, sorted.

    Args:
        documents: columns WHO of DOCUMENTS.
    """

    def __init__(self, documents: pa.Table) -> None:
        columns = {name: documents[name].to_pylist() for name in WHO}
        names = [name or "" for name in columns["speaker"]]
        number = {name: k for k, name in enumerate(sorted(set(names)))}
        self._of: dict[tuple[str, int], int] = {}
        self._in: dict[tuple[str, int], set[int]] = {}
        for doc_id, channel, recording, name in zip(*(columns[item] for item in WHO[:3]), names, strict=True):
            self._of[doc_id, channel] = number[name]
            self._in.setdefault((recording or doc_id, channel), set()).add(number[name])

    def demand_single_speakers(self) -> None:
        """Check that each recording has one speaker, so that detections in recordings have a speaker.

        Raises:
            DataError: several speakers in a recording.
        """
        for key in sorted(self._in):
            self._speaker(key, recordings=True)

    def added(self, table: pa.Table, *, recordings: bool = False) -> pa.Table:
        """The same table with a column `speaker`, int64.

        Args:
            table: columns doc_id and channel.
            recordings: doc_id names the recording of documents that are segments.

        Raises:
            DataError: several speakers in a recording.
        """
        if not table.num_rows:
            return table.append_column("speaker", pa.array([], pa.int64()))
        names, document = coded(table["doc_id"])
        pairs, row = np.unique(
            np.stack([document, table["channel"].to_numpy().astype(np.int64)]), axis=1, return_inverse=True
        )
        results = [self._speaker((names[code], channel), recordings) for code, channel in pairs.T.tolist()]
        speaker: NDArray[np.int64] = np.array(results, np.int64)[row.reshape(-1)]
        return table.append_column("speaker", pa.array(speaker))

    def _speaker(self, key: tuple[str, int], recordings: bool) -> int:
        if not recordings:
            return self._of[key]
        speakers = self._in[key]
        if len(speakers) > 1:
            raise codes.SEVERAL_SPEAKERS(where=f"{key[0]}, channel {key[1]}", count=len(speakers))
        return next(iter(speakers))
