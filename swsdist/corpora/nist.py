"""NIST's lists as a corpus: an ECF defines the searched audio, a TLIST or KWLIST the terms.

**Documents** are the excerpts of an ECF, places in recordings. A recording, also in references and detections, has the
name used by the scorers, the last part of its path without ending. Its only excerpt on a channel has the same name,
several are each `RECORDING:START-END`. Relative paths start from `corpus.audio`, by default the ECF's folder. If
`corpus.audio` is given and lacks the file, a file that differs only in folder and ending is used: copies are often
converted.

**Queries** are the terms of a list; their spoken examples are a separate table or folder (`corpus.spoken`), whose
`query_id` is the term's id. A term without an example stays in the list, as text.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from swsdist.audio import streams
from swsdist.core.codes import families
from swsdist.core.errors import TableError
from swsdist.core.types import PLACED, QUERIES
from swsdist.corpora.places import absolute
from swsdist.io.filesystem import Folder, is_remote, locate
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.nist.termlist import read_termlist
from swsdist.io.notices import Notices


def ecf_documents(
    source: str,
    endings: frozenset[str],
    storage: Mapping[str, object] | None = None,
    audio: str | None = None,
    notices: Notices | None = None,
) -> pa.Table:
    """The excerpts of an ECF.

    Args:
        source: of either dialect; local or `s3://`.
        endings: of recordings, removed from names.
        storage: options for s3fs.
        audio: base folder of relative paths.
        notices: collects channels that are not written as numbers.

    Returns:
        table PLACED, in the order of the file.

    Raises:
        UserError: there is no such file.
        DataError: it is no ECF; two recordings have one name; an excerpt is a duplicate, or lasts 0 s.
    """
    excerpts = read_ecf(source, storage, notices=notices).to_pylist()
    find = _Audio(source, audio, endings, storage)
    named: dict[str, str] = {}
    for row in excerpts:
        recording = _without_ending(row["file"], endings)
        streams.require_file(row["file"], "an ECF", source)
        if named.setdefault(recording, row["file"]) != row["file"]:
            raise families.DUPLICATE_NAME(
                "{first!r} and {second!r} would both be the recording {recording!r}",
                "rename one: the scorers take them for one file",
                where=source,
                first=named[recording],
                second=row["file"],
                recording=recording,
            )
    several = Counter((row["file"], row["channel"]) for row in excerpts)
    rows, seen = [], set()
    for number, row in enumerate(excerpts, 1):
        recording, start = _without_ending(row["file"], endings), row["start"]
        end = round(start + row["duration"], 6)
        alone = several[row["file"], row["channel"]] == 1
        doc_id = recording if alone else f"{recording}:{start:g}-{end:g}"
        where = f"{source}, excerpt {number}"
        if not end > start:
            raise families.INVALID_TIMES("the excerpt lasts 0 s", "drop it", where=where)
        if (doc_id, row["channel"]) in seen:
            raise families.DUPLICATE_NAME(
                "duplicate excerpt {excerpt!r}", "drop one of them", where=where, excerpt=doc_id
            )
        seen.add((doc_id, row["channel"]))
        rows.append(
            {
                "doc_id": doc_id,
                "channel": row["channel"],
                "path": find.path(row["file"]),
                "duration": row["duration"],
                "recording": recording,
                "start": start,
                "end": end,
                "listed": where,
            }
        )
    return pa.Table.from_pylist(rows, PLACED)


def listed_queries(
    source: str,
    spoken: pa.Table | None,
    spoken_source: str | None,
    storage: Mapping[str, object] | None = None,
    notices: Notices | None = None,
) -> pa.Table:
    """The terms of a list, with their spoken examples.

    Args:
        source: TLIST or KWLIST.
        spoken: table QUERIES of examples; None without examples.
        spoken_source: the file or folder of the examples.
        storage: options for s3fs.
        notices: collects oddities of the list.

    Returns:
        table QUERIES, in the list's order; a term without example is a row without path.

    Raises:
        UserError: there is no such list.
        DataError: it is broken.
        TableError: an example's term is not in the list, or has another text.
    """
    terms = read_termlist(source, storage, notices=notices).terms
    texts = dict(zip(terms["query_id"].to_pylist(), terms["term"].to_pylist(), strict=True))
    examples: dict[str, list[dict[str, object]]] = {}
    for row in spoken.to_pylist() if spoken is not None else ():
        query_id = row["query_id"]
        where = f"{spoken_source}: {query_id}"
        if query_id not in texts:
            raise families.UNKNOWN_NAME.of(TableError)(
                "no term {query!r} in {list}",
                "query_id is the id of a term there",
                where=where,
                query=query_id,
                list=source,
            )
        if row["term"] and " ".join(row["term"].split()).lower() != texts[query_id].lower():
            raise families.CONFLICTING_ROWS(
                "the term is {example!r}, and {listed!r} in {list}",
                "write {listed!r}, or drop the column term",
                where=where,
                example=row["term"],
                listed=texts[query_id],
                list=source,
            )
        examples.setdefault(query_id, []).append({**row, "term": texts[query_id]})
    rows: list[dict[str, object]] = []
    for query_id, term in texts.items():
        without_example = {"query_id": query_id, "example": 1, "channel": 1, "term": term}
        rows += examples.get(query_id, [without_example])
    return pa.Table.from_pylist(rows, QUERIES)


def _without_ending(file: str, endings: frozenset[str]) -> str:
    name = file.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and ending.lower() in endings else name


class _Audio:
    """Finds the files that an ECF names."""

    def __init__(
        self, source: str, audio: str | None, endings: frozenset[str], storage: Mapping[str, object] | None
    ) -> None:
        self._folder = Folder(audio, storage or {}) if audio else locate(source, storage)[0]
        self._endings = endings
        self._there = self._folder.listing(unreadable=lambda path, error: None) if audio else {}
        self._stems: dict[str, list[str]] = {}
        for name in self._there:
            if name.rpartition(".")[2].lower() in endings:
                self._stems.setdefault(_without_ending(name, endings), []).append(name)

    def path(self, file: str) -> str:
        """Path of the file, or its expected path if missing."""
        if is_remote(file) or file.startswith("/"):
            return file
        name = posixpath.normpath(file)
        if name not in self._there:
            same = self._stems.get(_without_ending(file, self._endings), [])
            name = same[0] if len(same) == 1 else name
        return absolute(name, self._folder.root)
