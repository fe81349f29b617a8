"""Texts without times of recordings: TXT files or transcripts named after them, or a table.

A table (.csv, .tsv) has a row per recording, or several, which follow each other: its first column names the recording, the
second is the text, unless a header names columns. Of transcripts, such as subtitles, the words are read, not their times.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import Any

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import UserError
from swsdist.io.compressed import lines
from swsdist.io.filesystem import Folder, locate
from swsdist.lattices.collection import document_id, find_files, read_file
from swsdist.lattices.lattice import Lattice, Origin
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.words import key_of

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_RECORDING, _TEXT = ("doc_id", "path", "file", "recording", "id"), ("text", "sentence", "transcript")


class Texts:
    """The texts of a table, a folder or a file.

    Args:
        path: local or `s3://`.
        storage: options for S3.

    Raises:
        UserError: there is no such path, or no text.
        DataError: a row of a table has no text.
    """

    def __init__(self, path: str, storage: Mapping[str, Any]) -> None:
        self.path, self._storage = path, storage
        self._words: dict[str, tuple[str, ...]] = {}
        self._taken: set[str] = set()
        is_table = path.removesuffix(".gz").rpartition(".")[2].lower() in _DELIMITERS
        for name, text in self._of_table() if is_table else self._of_files():
            self._words[name] = (*self._words.get(name, ()), *text.split())
        if not any(self._words.values()):
            raise codes.NO_GIVEN_TEXTS(where=path)

    def of(self, doc_id: str) -> tuple[str, ...] | None:
        """The words of a recording, by its name, or by that without its folder; None: it has no text."""
        name = next((name for name in (doc_id, doc_id.rpartition("/")[2]) if name in self._words), None)
        if name is None:
            return None
        self._taken.add(name)
        return self._words[name]

    @property
    def left(self) -> list[str]:
        """Names of the texts that nobody asked for."""
        return sorted(self._words.keys() - self._taken)

    def _of_table(self) -> Iterator[tuple[str, str]]:
        ending = self.path.removesuffix(".gz").rpartition(".")[2].lower()
        read = csv.reader(
            (line for _, line in lines(self.path, self._storage)),
            delimiter=_DELIMITERS[ending],
            quoting=csv.QUOTE_NONE if ending == "tsv" else csv.QUOTE_MINIMAL,
        )
        name, text = 0, 1
        for row in read:
            if not any(row):
                continue
            header = [column.strip().lower() for column in row]
            if read.line_num == 1 and (named := [header.index(column) for column in _TEXT if column in header]):
                text = named[0]
                name = next((header.index(column) for column in _RECORDING if column in header), 0)
                continue
            if len(row) <= max(name, text) or not row[name].strip():
                raise codes.ROW_WITHOUT_TEXT(where=f"{self.path}:{read.line_num}")
            folder, slash, file = row[name].strip().rpartition("/")
            yield f"{folder}{slash}{key_of(file)}", row[text]

    def _of_files(self) -> Iterator[tuple[str, str]]:
        """TXT files, and transcripts of recordings that have none."""
        alone, name = locate(self.path, self._storage)
        folder = alone if alone.exists(name) else Folder(self.path, self._storage)
        names = [name] if folder is alone else sorted(folder.listing())
        texts = {file[: -len(".txt")]: folder.path(file) for file in names if file.lower().endswith(".txt")}
        for stem, path in texts.items():
            yield stem, "".join(line for _, line in lines(path, self._storage))
        try:
            files = find_files(self.path, None, self._storage, lambda path, better: None)
        except UserError:
            return
        for found in files:
            for item in read_file(found.format, Origin(found.path, self._storage)):
                doc_id = document_id(item.key, found.path, self.path)
                if isinstance(item, Lattice) and found.path not in texts.values() and doc_id not in texts:
                    yield doc_id, " ".join(word.text for word in pack(item, Recipe()).words)
