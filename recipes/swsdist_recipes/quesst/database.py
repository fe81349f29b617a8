"""The database of QUESST 2014 as it was distributed: recordings by language, and what they are scored against.

::

    quesst14Database/
      Audio/  dev_queries/  eval_queries/         recordings, 8 kHz
      scoring/
        language_key_utterances.lst               a document a line: its path, from the folder above, and its language
        language_key_dev.lst  language_key_eval.lst   likewise the queries
        groundtruth_quesst14_dev/  groundtruth_quesst14_eval/   an ECF, a TLIST and an RTTM each, of all languages

An id is the file's name without its ending. The ground truth is of all languages, and so are the trials of a score, even where
one language alone is searched.

The lists resemble those of STDEval (ECF, TLIST, STDLIST, RTTM), but follow stricter and different rules:

- A document is an excerpt of the ECF; its id is the last part of the name without its last extension.
- In the STDLIST `file` is the document's id as written; channel and times are ignored.

Source of these rules: the behaviour of the evaluation's scoring program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from swsdist.io.compressed import lines, short
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.nist.rttm import read_query_documents
from swsdist.io.nist.systemlist import stdlist
from swsdist.io.nist.termlist import read_termlist
from swsdist.io.notices import Notices
from swsdist_recipes.quesst import codes

#: Sets of queries.
Split = Literal["dev", "eval"]
SPLITS: tuple[Split, ...] = ("dev", "eval")

#: Trials of a system.
SCORES = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("doc_id", pa.string(), False),
        pa.field("score", pa.float64(), False),
        pa.field("decision", pa.bool_(), False),
    ]
)

#: Name of the folder with all lists, and the endings of those of a ground truth.
_SCORING, _ENDINGS = "scoring", {"ecf": "ecf.xml", "terms": "tlist.xml", "rttm": ".rttm"}


@dataclass(frozen=True)
class GroundTruth:
    """What the queries of a set are scored against.

    Attributes:
        folder: of its files.
        documents: ids, in the order of the ECF.
        queries: ids, in the order of the TLIST.
        references: table REFERENCES, a row for each target document.
        files: `ecf`, `terms` and `rttm`, their paths.
    """

    folder: Path
    documents: tuple[str, ...]
    queries: tuple[str, ...]
    references: pa.Table
    files: Mapping[str, str]


@dataclass(frozen=True)
class QuesstDatabase:
    """The recordings of one language, by id, and the ground truth of all.

    Attributes:
        documents: paths of the documents.
        queries: of the queries of each set.
        truth: of each set.
    """

    documents: Mapping[str, Path]
    queries: Mapping[Split, Mapping[str, Path]]
    truth: Mapping[Split, GroundTruth]


def read_quesst_database(folder: str | Path, language: str) -> QuesstDatabase:
    """Read the lists of a database; recordings must exist, and are not opened.

    Args:
        folder: `quesst14Database`.
        language: as the lists have it; `nnenglish` is the English of non-natives.

    Raises:
        UserError: the folder, a list or a recording is missing.
        DataError: a list is malformed, names an id twice or nothing of the language, or names what the ground truth does not.
    """
    root = Path(folder).absolute()
    if not (root / _SCORING).is_dir():
        raise codes.NO_QUESST_DATABASE(where=str(root), folder=_SCORING)
    documents = _recordings(root, "utterances", language)
    queries = {split: _recordings(root, split, language) for split in SPLITS}
    truth = {split: _ground_truth(root / _SCORING / f"groundtruth_quesst14_{split}") for split in SPLITS}
    for split in SPLITS:
        _demand_scored("query", queries[split], truth[split].queries, truth[split].folder)
        _demand_scored("document", documents, truth[split].documents, truth[split].folder)
    return QuesstDatabase(documents, queries, truth)


def _recordings(root: Path, of: str, language: str) -> dict[str, Path]:
    """Paths of the files of a language, by id, in the order of their list."""
    path = root / _SCORING / f"language_key_{of}.lst"
    if not path.is_file():
        raise codes.QUESST_FILE_MISSING(where=str(path.parent), file=path.name)
    result: dict[str, Path] = {}
    languages: dict[str, None] = {}
    for number, line in lines(str(path)):
        fields = line.split()
        if not fields:
            continue
        where = f"{path}, line {number}"
        if len(fields) != 2:
            raise codes.QUESST_LANGUAGE_FIELDS(where=where, fields=len(fields))
        name, spoken = fields
        languages[spoken] = None
        if spoken != language:
            continue
        recording = root / name.partition("/")[2]
        if recording.stem in result:
            raise codes.DUPLICATE_QUESST_FILE(where=where, id=short(recording.stem))
        if not recording.is_file():
            raise codes.QUESST_RECORDING_MISSING(where=where, path=recording)
        result[recording.stem] = recording
    if not result:
        raise codes.NOTHING_OF_LANGUAGE(where=str(path), language=language, languages=", ".join(languages) or "none")
    return result


def _ground_truth(folder: Path) -> GroundTruth:
    if not folder.is_dir():
        raise codes.QUESST_FILE_MISSING(where=str(folder.parent), file=folder.name)
    files = {name: _file_ending(folder, ending) for name, ending in _ENDINGS.items()}
    queries = read_termlist(files["terms"], notices=Notices()).terms["query_id"].to_pylist()
    documents, references = read_documents(files["ecf"]), read_query_documents(files["rttm"])
    return GroundTruth(folder, tuple(documents), tuple(queries), references, files)


def _file_ending(folder: Path, ending: str) -> str:
    """The one file with an ending."""
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(ending))
    if not names:
        raise codes.QUESST_FILE_MISSING(where=str(folder), file=f"*{ending}")
    if len(names) > 1:
        raise codes.SEVERAL_QUESST_FILES(where=str(folder), ending=ending, names=", ".join(names[:3]))
    return str(folder / names[0])


def _demand_scored(what: str, ids: Collection[str], scored: Collection[str], folder: Path) -> None:
    if others := sorted(set(ids) - set(scored)):
        raise codes.NOT_IN_GROUND_TRUTH(where=str(folder), what=what, first=short(others[0]), count=len(others))


def read_documents(path: str, storage: Mapping[str, object] | None = None) -> list[str]:
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


def write_list(trials: pa.Table, queries: Iterable[str], durations: Mapping[str, float], out: Path) -> None:
    """Write a system list: a detection per trial, which spans its document.

    Args:
        trials: schema SCORES, those of a query together.
        queries: ids of all queries.
        durations: s, of the documents, by id.
        out: local file to write.

    Raises:
        UserError: STDEval cannot process a name.
        DataError: a document is not among `durations`, or as in `SystemList.write`.
    """
    documents = trials["doc_id"].to_pylist()
    if unknown := next((name for name in documents if name not in durations), None):
        raise codes.UNLISTED_DOCUMENT(where=str(out), document=unknown)
    spans = trials.append_column("channel", pa.array([1] * len(documents), pa.int32()))
    spans = spans.append_column("start", pa.array([0.0] * len(documents)))
    spans = spans.append_column("end", pa.array([float(durations[name]) for name in documents], pa.float64()))
    stdlist(str(out)).write(spans.to_batches(), queries, out)
