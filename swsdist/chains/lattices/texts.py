"""Texts without times of recordings: TXT files or transcripts named after them, or a table.

A table (.csv, .tsv) has columns of recordings and of texts; several rows of a recording are joined. Of transcripts, such as
subtitles, the words are read, not their times.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from typing import Any

import pyarrow as pa

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import UserError
from swsdist.corpora.documents import ENDINGS
from swsdist.io.compressed import lines
from swsdist.io.filesystem import Folder, locate
from swsdist.io.tables import names_in, read_table
from swsdist.lattices.collection import document_id, find_files, read_file
from swsdist.lattices.lattice import Lattice, Origin
from swsdist.lattices.packed import Recipe, pack

_TABLES = (".csv", ".tsv")
#: Columns of a table, the first that there is.
_RECORDING, _TEXT = ("doc_id", "path", "file", "recording", "id"), ("text", "sentence", "transcript")


class Texts:
    """The texts of a table, a folder or a file.

    Args:
        path: local or `s3://`.
        storage: options for S3.

    Raises:
        UserError: there is no such path, or no text.
        TableError: a table lacks a column, or cannot be read.
    """

    def __init__(self, path: str, storage: Mapping[str, Any]) -> None:
        self.path, self._storage = path, storage
        texts: defaultdict[str, list[str]] = defaultdict(list)
        is_table = path.lower().removesuffix(".gz").removesuffix(".xz").endswith(_TABLES)
        for name, text in self._of_table() if is_table else self._of_files():
            texts[name].append(text)
        self._texts = {name: " ".join(some).strip() for name, some in texts.items()}
        if not any(self._texts.values()):
            raise codes.NO_GIVEN_TEXTS(where=path)

    def of(self, doc_ids: Set[str]) -> tuple[dict[str, str], list[str]]:
        """The text of each recording that has one, and names of the texts without a recording.

        A text has the name of its recording, with or without ending; or one of the two names is the end of the other's path,
        and this is so of no other.
        """
        stems = {name: _without_ending(name) for name in self._texts}
        found = {name: name for name in stems if name in doc_ids}
        for name, stem in stems.items():
            if name not in found and stem in doc_ids:
                found.setdefault(stem, name)
        others: defaultdict[str, list[str]] = defaultdict(list)
        for doc_id in doc_ids - found.keys():
            others[doc_id.rpartition("/")[2]].append(doc_id)
        taken = set(found.values())
        pairs = [
            (doc_id, name)
            for name, stem in stems.items()
            if name not in taken
            for doc_id in others[stem.rpartition("/")[2]]
            if f"/{stem}".endswith(f"/{doc_id}") or f"/{doc_id}".endswith(f"/{stem}")
        ]
        times = Counter(doc_id for doc_id, _ in pairs), Counter(name for _, name in pairs)
        found |= {doc_id: name for doc_id, name in pairs if times[0][doc_id] == times[1][name] == 1}
        left = sorted(stems.keys() - set(found.values()))
        return {doc_id: self._texts[name] for doc_id, name in found.items()}, left

    def _of_table(self) -> Iterator[tuple[str, str]]:
        header = names_in(self.path, self._storage)
        name, text = (next((column for column in some if column in header), some[0]) for some in (_RECORDING, _TEXT))
        schema = pa.schema([pa.field(name, pa.string(), False), pa.field(text, pa.string(), text in header)])
        for row in read_table(self.path, schema, storage=self._storage).to_pylist():
            yield row[name].strip(), row[text] or ""

    def _of_files(self) -> Iterator[tuple[str, str]]:
        """TXT files, and transcripts of recordings that have none."""
        alone, name = locate(self.path, self._storage)
        folder = alone if alone.exists(name) else Folder(self.path, self._storage)
        names = [name] if folder is alone else sorted(folder.listing())
        texts = {file[: -len(".txt")]: folder.path(file) for file in names if file.lower().endswith(".txt")}
        for stem, path in texts.items():
            yield stem, "".join(line for _, line in lines(path, self._storage))
        paths = set(texts.values())
        try:
            files = find_files(self.path, None, self._storage, lambda path, better: None)
        except UserError:
            return
        for found in files:
            for item in read_file(found.format, Origin(found.path, self._storage)):
                doc_id = document_id(item.key, found.path, self.path)
                if isinstance(item, Lattice) and found.path not in paths and doc_id not in texts:
                    yield doc_id, " ".join(word.text for word in pack(item, Recipe()).words)


def _without_ending(name: str) -> str:
    """A name, or path, of a recording without its ending."""
    stem, dot, ending = name.replace("\\", "/").rpartition(".")
    return stem if dot and ending.lower() in ENDINGS else name.replace("\\", "/")
