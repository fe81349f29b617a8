"""A corpus out of memory: recordings as arrays and references as a data frame, written as the files that a config names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.arrays import is_sound, write_samples
from swsdist.core.errors import UserError
from swsdist.io.tables import write_csv

if TYPE_CHECKING:
    import pandas as pd

#: Floats of shape (n,), full scale 1, and their rate in Hz.
Sound: TypeAlias = tuple[NDArray[np.floating], float]


def save_corpus(
    folder: str | Path,
    documents: Mapping[str, Sound],
    queries: Mapping[str, Sound | Sequence[Sound]] | None = None,
    references: pd.DataFrame | pa.Table | None = None,
) -> dict[str, str]:
    """Write a corpus that is in memory, as WAV files of float32 and tables. The same arrays give the same bytes.

    Args:
        folder: that it is written to; what lies there under the same names is replaced.
        documents: by name.
        queries: by name: one example, or several.
        references: columns query_id, doc_id, start, end, and maybe channel, as in a table of references.

    Returns:
        The section `corpus` of a config, for `swsdist.run`.

    Raises:
        UserError: an array is no recording, there is none, or references lack a column.
    """
    if not documents:
        raise UserError("there are no documents", where="documents", remedy="give at least one recording")
    if "://" in str(folder):
        raise UserError("arrays are written to a folder of this machine", where=str(folder), remedy="name one")
    root = Path(folder).absolute()
    (root / "audio").mkdir(parents=True, exist_ok=True)
    corpus = {}

    def write(name: str, columns: Mapping[str, Sequence[object]] | pa.Table) -> None:
        corpus[name] = str(root / f"{name}.csv")
        table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
        write_csv(table, table.schema, Path(corpus[name]))

    def recording(kind: str, number: int, sound: object, where: str) -> tuple[str, float]:
        path = root / "audio" / f"{kind}{number:06d}.wav"
        return f"audio/{path.name}", write_samples(path, sound, where)

    written = [recording("d", k, sound, f"documents[{name!r}]") for k, (name, sound) in enumerate(documents.items())]
    paths, durations = zip(*written, strict=True)
    write("documents", {"doc_id": list(documents), "path": paths, "duration": durations})
    examples = [
        (name, number, sound)
        for name, given in (queries or {}).items()
        for number, sound in enumerate([given] if is_sound(given) else _examples(given, name), 1)
    ]
    if queries is not None:
        made = [
            recording("q", k, sound, f"queries[{name!r}], example {number}")[0]
            for k, (name, number, sound) in enumerate(examples)
        ]
        names, numbers = [one[0] for one in examples], [one[1] for one in examples]
        write("queries", {"query_id": names, "example": numbers, "path": made})
    if references is not None:
        if not isinstance(references, pa.Table) and not hasattr(references, "to_parquet"):
            raise UserError(
                f"{type(references).__name__} is no table",
                where="references",
                remedy="give a data frame or an arrow table",
            )
        table = (
            references if isinstance(references, pa.Table) else pa.Table.from_pandas(references, preserve_index=False)
        )
        lacking = [name for name in ("query_id", "doc_id", "start", "end") if name not in table.column_names]
        if lacking:
            raise UserError(
                f"the references have no column {', '.join(lacking)}",
                where="references",
                remedy="give query_id, doc_id, start and end, in s",
            )
        write("references", table)
    return corpus


def _examples(given: object, name: str) -> Sequence[object]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        what = (
            "there is no example"
            if isinstance(given, Sequence) and not given
            else f"{type(given).__name__} is no example"
        )
        raise UserError(what, where=f"queries[{name!r}]", remedy="give (samples, rate), or a list of several")
    return given
