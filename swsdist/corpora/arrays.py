"""A corpus from memory: recordings as arrays and references as a data frame, written as the files that a config names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.io import wavfile

from swsdist.core.codes import audio as audio_codes
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.text import suggestion
from swsdist.io.tables import write_csv

if TYPE_CHECKING:
    import pandas as pd


#: Larger samples are a mistake in scale.
_LARGEST_SAMPLE = 10.0


def is_recording(value: object) -> bool:
    """Whether a value is a single pair of samples and rate, as opposed to a collection of recordings."""
    return hasattr(value, "ndim") or (
        isinstance(value, tuple) and len(value) == 2 and not isinstance(value[0], str | Path | tuple | dict)
    )


def check_samples(recording: object, where: str) -> tuple[NDArray[np.floating], int]:
    """Check a pair of samples and rate.

    Args:
        recording: (samples, rate): floats of shape (n,), full scale 1; Hz.
        where: name of the recording, for messages.

    Returns:
        Samples and rate.

    Raises:
        UserError: the pair is invalid.
    """
    if not isinstance(recording, tuple) or len(recording) != 2:
        raise audio_codes.NOT_A_RECORDING(where=where, type=type(recording).__name__)
    try:
        samples, rate = np.asarray(recording[0]), np.asarray(recording[1])
    except ValueError as error:  # lists of several lengths
        raise audio_codes.RAGGED_SAMPLES(where=where, error=error) from error
    if rate.ndim or rate.dtype.kind not in "iuf" or not rate >= 1 or rate % 1:
        raise audio_codes.BAD_SAMPLE_RATE(where=where, rate=recording[1])
    if samples.dtype.kind != "f":
        raise audio_codes.SAMPLES_NOT_FLOAT(where=where, dtype=str(samples.dtype))
    if samples.ndim != 1 or not samples.size:
        raise audio_codes.SAMPLES_NOT_MONO(where=where, shape=samples.shape)
    finite = np.isfinite(samples)
    if not finite.all():
        index = int(np.argmin(finite))
        raise audio_codes.NON_FINITE_SAMPLES(where=where, index=index, value=float(samples[index]))
    if (peak := float(np.abs(samples).max())) > _LARGEST_SAMPLE:
        raise audio_codes.SAMPLES_TOO_LARGE(where=where, peak=peak)
    return samples, int(rate)


def write_samples(path: Path, samples: NDArray[np.floating], rate: int) -> None:
    """Write checked samples as a WAV file of float32; equal samples give equal bytes."""
    wavfile.write(path, rate, samples.astype(np.float32))  # libsndfile would add the time


#: Floats of shape (n,), full scale 1, and their rate in Hz.
Sound: TypeAlias = tuple[NDArray[np.floating], float]

#: Files that identify folders of other kinds.
_OTHERS = {"plan.json": "the folder of a run", "manifest.json": "a feature store"}


def save_corpus(
    folder: str | Path,
    documents: Mapping[str, Sound],
    queries: Mapping[str, Sound | Sequence[Sound]] | None = None,
    references: pd.DataFrame | pa.Table | None = None,
) -> dict[str, str]:
    """Write an in-memory corpus as WAV files of float32 and tables. Equal arrays give equal bytes.

    All inputs are checked before anything is written.

    Args:
        folder: output folder; files of the same names are replaced. Must not be a run or store.
        documents: by name.
        queries: by name: one example, or several.
        references: columns query_id, doc_id, start, end, and maybe channel, as in a table of references; only of given
            documents and queries (any queries if `queries` is None).

    Returns:
        The section `corpus` of a config, for `swsdist.run`.

    Raises:
        UserError: an array is no recording, there are no documents, references lack a column or contain an unknown
            name, or the folder is a run or store.
    """
    if not documents:
        raise families.EMPTY_INPUT("no documents are given", "give at least one recording", where="documents")
    root = _new_place(folder)
    sounds = dict[str, tuple[NDArray[np.floating], int]]()  # by path

    def recording(kind: str, number: int, sound: object, where: str) -> tuple[str, float]:
        path = f"audio/{kind}{number:06d}.wav"
        samples, rate = sounds[path] = check_samples(sound, where)
        return path, samples.size / rate

    recorded = [recording("d", k, sound, f"documents[{name!r}]") for k, (name, sound) in enumerate(documents.items())]
    paths, durations = zip(*recorded, strict=True)
    tables = {"documents": pa.table({"doc_id": list(documents), "path": paths, "duration": durations})}
    if queries is not None:
        examples = [
            (name, number, sound)
            for name, value in queries.items()
            for number, sound in enumerate([value] if is_recording(value) else _examples(value, name), 1)
        ]
        cut = [
            recording("q", k, sound, f"queries[{name!r}], example {number}")[0]
            for k, (name, number, sound) in enumerate(examples)
        ]
        names, numbers = [example[0] for example in examples], [example[1] for example in examples]
        tables["queries"] = pa.table({"query_id": names, "example": numbers, "path": cut})
    if references is not None:
        tables["references"] = _references(references, {"query_id": queries, "doc_id": documents})
    (root / "audio").mkdir(parents=True, exist_ok=True)
    for path, sound in sounds.items():
        write_samples(root / path, *sound)
    for name, table in tables.items():
        write_csv(table, table.schema, root / f"{name}.csv")
    return {name: str(root / f"{name}.csv") for name in tables}


def _new_place(folder: str | Path) -> Path:
    """The output folder of a corpus, not created yet.

    Raises:
        UserError: it is not local, it is a file, or it is a run or store.
    """
    if "://" in str(folder):
        raise families.UNSUPPORTED(
            "arrays are written to a folder of this machine", "name a local folder", where=str(folder)
        )
    root = Path(folder).absolute()
    existing = next(parent for parent in (root, *root.parents) if parent.exists())
    if not existing.is_dir():
        raise families.OUTPUT_REFUSED(
            "this is a file, and a folder is needed", "name another path", where=str(existing)
        )
    for name, what in _OTHERS.items():
        if (root / name).is_file():
            raise families.OUTPUT_REFUSED(
                "this is {what}: a corpus cannot be written there",
                "name another folder; nothing was written",
                where=str(folder),
                what=what,
            )
    return root


def _references(references: object, names_by_column: Mapping[str, Mapping[str, object] | None]) -> pa.Table:
    """The table of references, checked.

    Raises:
        UserError: it is no table, lacks a column, or contains an unknown name.
    """
    if not isinstance(references, pa.Table) and not hasattr(references, "to_parquet"):
        raise families.INVALID_VALUE.of(UserError)(
            "the references are a {type}, not a table",
            "give a data frame or an arrow table",
            where="references",
            type=type(references).__name__,
        )
    table = references if isinstance(references, pa.Table) else pa.Table.from_pandas(references, preserve_index=False)
    lacking = [name for name in ("query_id", "doc_id", "start", "end") if name not in table.column_names]
    if lacking:
        raise families.MISSING_COLUMN.of(UserError)(
            "the references have no column {columns}",
            "give query_id, doc_id, start and end, in s",
            where="references",
            columns=", ".join(lacking),
        )
    for column, kind in (("query_id", "queries"), ("doc_id", "documents")):
        allowed = names_by_column[column]
        names = {str(name) for name in allowed or ()}
        other = [name for name in table[column].unique().to_pylist() if allowed is not None and str(name) not in names]
        if other:
            raise families.UNKNOWN_NAME(
                "{column} {name!r} is not among the {kind}{meant}",
                "give the recording in {kind}, or leave these references out; nothing was written",
                where="references",
                column=column,
                name=other[0],
                kind=kind,
                meant=suggestion(str(other[0]), names),
            )
    return table


def _examples(value: object, name: str) -> Sequence[object]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        what = (
            "there is no example"
            if isinstance(value, Sequence) and not value
            else f"{type(value).__name__} is no example"
        )
        raise families.INVALID_VALUE.of(UserError)(
            "no query example: {what}",
            "give (samples, rate), or a list of several",
            where=f"queries[{name!r}]",
            what=what,
        )
    return value
