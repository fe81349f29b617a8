"""The stage export-classes: classes and parse for other programs, below `exports/` in the run folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from swsdist.chains.discover.group_matches import MEMBERS
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import files_of
from swsdist.core.types import columns
from swsdist.discovery.files import write_classes
from swsdist.discovery.scene import WORDS, Stretch, fragments_of, word_list
from swsdist.exports.tiers import WRITERS, Labelled, Recordings, write_tiers
from swsdist.io.tables import write_csv
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.export import keep_exports, write_exports
from swsdist.store.reading import Store


def places(tables: Iterable[pa.Table], store: Store) -> list[Stretch]:
    """Rows of MEMBERS with speakers and recordings; a document that is a place has its recording's name and times.

    Args:
        tables: MEMBERS.
        store: of their documents.
    """
    columns = ["doc_id", "channel", "speaker", "recording", "start"]
    documents = {(row["doc_id"], row["channel"]): row for row in store.documents(columns=columns).to_pylist()}
    recordings = store.recordings()
    stretches = []
    for row in (row for table in tables for row in table.to_pylist()):
        document = documents[row["doc_id"], row["channel"]]
        name, begin = document["recording"] or row["doc_id"], document["start"] or 0.0
        start, end = (round(begin + row[key], 6) for key in ("start", "end"))
        path = recordings[name, row["channel"]].path
        speaker = document["speaker"] or ""
        stretches.append(Stretch(row["class"], name, row["channel"], start, end, row["sure"], speaker, path))
    return stretches


#: Columns of classes.csv and parse.csv.
STRETCHES = pa.schema([*MEMBERS, pa.field("speaker", pa.string())])
#: Columns of queries.csv, a table of queries: places in documents.
_QUERIES = columns("query_id string?, example int32?, doc_id string?, channel int32?, start float64?, end float64?")


#: Columns of classes-names.csv.
_NAMES = pa.schema([("name", pa.string()), ("document", pa.string())])
_BLANKS = re.compile(r"\s")


def write_tables(classes: Sequence[Stretch], parse: Sequence[Stretch], folder: Path) -> None:
    """Write `classes.csv`, `parse.csv` and the word list, `words.csv`."""
    for name, stretches in (("classes", classes), ("parse", parse)):
        rows = [(*stretch[:6], stretch.speaker or None) for stretch in stretches]
        write_csv(_table(rows, STRETCHES), STRETCHES, folder / f"{name}.csv")
    words = pa.Table.from_pylist([word.row() for word in word_list(classes)], WORDS)
    write_csv(words, WORDS, folder / "words.csv")


def write_queries(classes: Sequence[Stretch], folder: Path) -> None:
    """Write `queries.csv`: a query for each class, named by its number; its members, surest first, are the examples."""
    rows = [
        (str(word.group), number, *member[1:5])
        for word in word_list(classes)
        for number, member in enumerate(word.members, 1)
    ]
    write_csv(_table(rows, _QUERIES), _QUERIES, folder / "queries.csv")


def write_class_file(classes: Sequence[Stretch], folder: Path) -> None:
    """Write `classes.txt`, a class file of the ZeroSpeech challenges; a channel after the first is a document `NAME#CHANNEL`.

    The format has no blanks in names: they are `_` there, and `classes-names.csv` has such names and what they stand for.
    """
    documents = sorted({stretch.document for stretch in classes})
    names = [_BLANKS.sub("_", name) for name in documents]
    while len(set(names)) < len(names):  # of "a b" and "a_b"
        names = [name + "_" * names[:number].count(name) for number, name in enumerate(names)]
    fragments = fragments_of(classes, {name: number for number, name in enumerate(documents)})
    write_classes(fragments, names, folder / "classes.txt")
    renamed = [pair for pair in zip(names, documents, strict=True) if pair[0] != pair[1]]
    if renamed:
        write_csv(_table(renamed, _NAMES), _NAMES, folder / "classes-names.csv")


def labelled(classes: Sequence[Stretch], parse: Sequence[Stretch]) -> Iterator[Labelled]:
    """Annotations: a stretch's text is the number of its class; of a token of no class it is `-`."""
    for tier, stretches in (("classes", classes), ("parse", parse)):
        for stretch in stretches:
            text = "-" if stretch.group is None else str(stretch.group)
            yield Labelled(*stretch[1:3], tier, *stretch[3:5], stretch.sure or 0.0, text)


#: Names in `report.exports`, and what they write.
KINDS = ("csv", *WRITERS)


def writers(
    kinds: Sequence[str], classes: Sequence[Stretch], parse: Sequence[Stretch], recordings: Recordings
) -> dict[str, Callable[[Path], None]]:
    """What writes the files, by name: those of `kinds`, the queries and the class file."""
    annotations, tables = list(labelled(classes, parse)), partial(write_tables, classes, parse)
    chosen = {
        kind: partial(write_tiers, kind, annotations, recordings) if kind in WRITERS else tables for kind in kinds
    }
    return {**chosen, "queries": partial(write_queries, classes), "zerospeech": partial(write_class_file, classes)}


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


class Exporting(NamedTuple):
    """The payload of the task."""

    store: tuple[str, str]
    classes: tuple[str, ...]
    parse: tuple[str, ...]
    kinds: tuple[str, ...]


class ExportClasses(Stage[Exporting]):
    """One task writes all files."""

    name = "export-classes"
    version = 2
    unit = "members"
    phase = "score"
    takes = {"classes": "classes", "parse": "parse"}
    grows_with_hours = "larger"
    grows_with_queries = "same"
    tables = {"exports": Table(None, None, digested=False)}
    replaces = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Exporting]]:
        """One task."""
        store = inputs.chain_inputs(DiscoverInputs).store.state
        classes, parse = (files_of(inputs.parts(word)) for word in ("classes", "parse"))
        payload = Exporting(store, classes, parse, inputs.config.report.exports or ("csv",))
        rows = sum(part.rows for part in inputs.parts("classes"))
        yield inputs.task(*payload, label=", ".join(payload.kinds), work=rows, payload=payload)

    def finish(self, inputs: Inputs) -> None:
        """Remove the exports of other configs."""
        keep_exports(inputs)

    def run(self, task: Task[Exporting], context: Context) -> TaskOutput:
        """Write each format to a temporary folder, then publish its files."""
        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        classes, parse = (places(map(context.read, names), store) for names in (payload.classes, payload.parse))
        return write_exports(writers(payload.kinds, classes, parse, store.recordings), context.run)
