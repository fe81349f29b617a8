"""Frames that somebody else made, in a plan: which item is a document's, or an example's, and what it is identified by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from swsdist.core.codes import stages as codes
from swsdist.core.types import PLACED
from swsdist.corpora.places import Places
from swsdist.features.interface import Precomputed, document_key, example_key, frame_shift
from swsdist.features.sources import Source
from swsdist.io.frames.item import MISSING, Item

#: Columns of a document that a task of an extractor is given.
_COLUMNS = ("doc_id", "channel", "path", "speaker", "duration")
#: Of a document that is a place in a recording.
_PLACE = ("recording", "start", "end", "listed")

_FLOAT32 = 4


def add_items(rows: list[dict[str, Any]], sources: Sequence[Source], storage: Mapping[str, object]) -> None:
    """Add to rows of documents what their given frames are identified by (`identities`), and where they are (`items`), by
    extractor; and `expected`, about how many seconds they are.

    Args:
        rows: doc_id, channel, duration and `identities` of all documents.
        sources: extractors; others than given frames are passed over.
        storage: options for s3fs.

    Raises:
        UserError: frames are not there at all, or two documents have one key.
        DataError: a file of them is damaged.
    """
    found = _found(sources, False, storage)
    if not found:
        return
    rates = _rates(found)
    channels = Counter(row["doc_id"] for row in rows)
    seen: dict[str, tuple[str, int]] = {}
    for row in rows:
        key = row["key"] = document_key(row["doc_id"], row["channel"], channels[row["doc_id"]] > 1)
        if key in seen:
            raise codes.DUPLICATE_FRAMES_KEY(
                where="corpus.documents", first=seen[key], second=(row["doc_id"], row["channel"]), key=key
            )
        seen[key] = row["doc_id"], row["channel"]
        row["items"] = {recipe: items.get(key) for recipe, (_, items) in found.items()}
        for recipe, item in row["items"].items():
            row["identities"][recipe] = _identity(item, row["duration"]) + place_of(row)
        row["expected"] = _seconds(row["items"], rates)


def add_items_of_examples(
    rows: list[dict[str, Any]],
    sources: Sequence[Source],
    documents: Mapping[tuple[str, int], Mapping[str, Any]],
    storage: Mapping[str, object],
) -> None:
    """Add to rows of examples what their given frames are identified by (`given`), and where they are (`items`), by extractor;
    and `expected`, about how many seconds they are.

    An example without frames of its own that is a place in a document, or in a recording of which a document holds that place,
    has that document's, of which the place is cut out: then `cut` is true, and `begins` (s) is where a document that is a place
    in a recording begins in it.

    Args:
        rows: of QUERIES.
        sources: as for `add_items`.
        documents: by key, as `add_items` left them.
        storage: options for s3fs.
    """
    found = _found(sources, True, storage)
    rates, holding = _rates(found), _Holding(documents)
    for row in rows if found else ():
        key, document = example_key(row["query_id"], row["example"]), holding.document(row)
        row["key"], row["items"], row["given"], row["cut"] = key, {}, {}, {}
        for recipe, (_, items) in found.items():
            item = items.get(key)
            row["cut"][recipe] = item is None and document is not None
            identity = _identity(item, None)
            if item is None and document is not None:
                item = document["items"][recipe]
                identity = _identity(item, None) + place_of(document)
            row["items"][recipe], row["given"][recipe] = item, identity
        if document is not None and document.get("start") is not None and any(row["cut"].values()):
            row["begins"] = document["start"]
        row["expected"] = _seconds(row["items"], rates)


class _Holding:
    """From an example to the document that its place is in; recordings are looked into when one is first named."""

    def __init__(self, documents: Mapping[tuple[str, int], Mapping[str, Any]]) -> None:
        self._documents = documents

    @cached_property
    def _places(self) -> Places:
        names = ("doc_id", "channel", "recording", "start", "end")
        rows = [{name: row[name] for name in names} for row in self._documents.values() if row.get("start") is not None]
        return Places(pa.Table.from_pylist(rows, pa.schema([PLACED.field(name) for name in names])))

    def document(self, example: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The document that an example names, or, of those in the recording that it names, the first that holds its place."""
        name, channel, start, end = (example[column] for column in ("doc_id", "channel", "start", "end"))
        if name is None or (name, channel) in self._documents or start is None or end is None:
            return self._documents.get((name, channel))
        held = self._places.containing(name, channel, start, end)
        return self._documents[held[0].doc_id, channel] if held else None


def row_for(source: Source, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a document as a task of one extractor is given it."""
    made = {name: row[name] for name in (*_COLUMNS, *_PLACE) if name in row}
    made["identity"] = row["identities"][source.fingerprint]
    if source.fingerprint in row.get("items", ()):
        item = row["items"][source.fingerprint]
        made |= {"key": row["key"], "item": None if item is None else list(item)}
    return made


def _found(
    sources: Sequence[Source], queries: bool, storage: Mapping[str, object]
) -> dict[str, tuple[Precomputed, Mapping[str, Item]]]:
    """Items of each extractor whose frames are given."""
    return {
        source.fingerprint: (source.extractor, source.extractor.items(queries, storage))
        for source in sources
        if isinstance(source.extractor, Precomputed)
    }


def place_of(row: Mapping[str, Any]) -> str:
    """What of a document's identity is its place in a recording; nothing where it is none."""
    return "" if row.get("start") is None else f":{row['recording']}:{row['start']!r}-{row['end']!r}"


def _identity(item: Item | None, duration: float | None) -> str:
    """What changes when frames change, or the duration that they are held against."""
    if item is None:
        return MISSING
    return item.identity if duration is None else f"{item.identity} of {duration!r} s"


def _rates(found: Mapping[str, tuple[Precomputed, Mapping[str, Item]]]) -> dict[str, float]:
    """Seconds a byte of each extractor's frames, as far as their size tells."""
    return {recipe: frame_shift(given) / (_FLOAT32 * given.dimension) for recipe, (given, _) in found.items()}


def _seconds(items: Mapping[str, Item | None], rates: Mapping[str, float]) -> float:
    """About how long the longest of some items is."""
    return max(0.0 if item is None else item.size * rates[recipe] for recipe, item in items.items())
