"""Search without a run: queries in a store, in this process, detections out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from swsdist.calibrate.qnorm import normalise
from swsdist.config.model import Reduce, Search
from swsdist.errors import ConfigError, DataError, UserError
from swsdist.features.registry import create
from swsdist.reduce.examples import reduce_examples
from swsdist.search.distance import distance_of
from swsdist.search.example import Example
from swsdist.search.proposers.searching import search_proposed
from swsdist.search.queries import extract, prepared
from swsdist.search.shard import candidate_tables, search_shard
from swsdist.store.reading import Store
from swsdist.types import DETECTIONS, QUERIES

_PLACE = re.compile(r"^(?P<path>.+):(?P<start>\d+(?:\.\d*)?)-(?P<end>\d+(?:\.\d*)?)$")


def parse_query(text: str) -> dict[str, Any]:
    """A query as it is typed: `hello.wav`, or a place in a recording, `talk.flac:12.3-13.1` (seconds).

    Returns:
        A row of QUERIES whose id is the text.
    """
    place = None if Path(text).exists() else _PLACE.match(text)
    row: dict[str, Any] = dict.fromkeys(QUERIES.names)
    row |= {"query_id": text, "example": 1, "channel": 1, "path": text}
    if place is not None:
        row |= {"path": place["path"], "start": float(place["start"]), "end": float(place["end"])}
    return row


def search_store(store: Store, queries: Any, options: Mapping[str, Any], top: int) -> pa.Table:
    """Detections of a few queries, best first within each query.

    Args:
        store: an open store.
        queries: text as `parse_query` takes it, several of them, or a table (pandas or arrow) of examples.
        options: keys of the config's section `search`.
        top: detections kept per query.

    Returns:
        DETECTIONS without `decision` and `system`; scores are q-normed.

    Raises:
        AudioError: a query cannot be used.
        ConfigError: an option is not valid.
    """
    rows = _rows(queries)
    settings = settings_of(options)
    extracted = extracted_from(store, rows, settings)
    statistics = store.statistics()

    def examples(factor: int) -> list[Example]:
        return prepared(extracted, statistics, settings, store.manifest.dimension, factor)

    shards = [shard.name for shard in store.manifest.shards]

    def candidates() -> Iterable[pa.Table]:
        if settings.proposer.name != "none":
            result = search_proposed(store, shards, examples, settings)
            for _, table in candidate_tables(result.documents, result.examples, result.found, 1):
                yield table
            return
        whole = examples(1)
        for shard in shards:
            documents, found = search_shard(store, shard, whole, settings)
            for _, table in candidate_tables(documents, whole, found, 1):
                yield table

    unit = distance_of(settings, store.manifest.dimension).unit
    found = list(candidates()) if settings.examples == "mean" else candidates()  # the mean reads them twice
    reduced = reduce_examples(
        settings.examples,
        lambda: found,
        shift=store.manifest.shift,
        unit=unit,
        overlap=Reduce().overlap,
        nbest=top,
        system="",
    )
    return normalise(reduced.detections, reduced.statistics, unit).drop_columns(["decision", "system"])


def settings_of(options: Mapping[str, Any]) -> Search:
    """The config's section `search` from some of its keys.

    Raises:
        ConfigError: an option is not valid.
    """
    try:
        return Search.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["search", *(str(part) for part in first["loc"])])
        raise ConfigError(first["msg"], where=place, remedy="see docs/reference/config.md") from None


def extracted_from(store: Store, rows: list[dict[str, Any]], settings: Search | None = None) -> pa.Table:
    """Features of queries by the extractor of a store, EXAMPLES.

    Args:
        store: an open store.
        rows: of QUERIES.
        settings: whose recurrence bounds a query's length; without, all that any can hold.

    Raises:
        DataError: a query cannot be used.
    """
    features = store.manifest.extractor
    extracted = extract(rows, create(features["name"], features["options"]), store.folder, settings)
    for bad in extracted.rejected.to_pylist():
        raise DataError(bad["message"], where=bad["path"], remedy=bad["remedy"])
    return extracted.examples


def _rows(queries: Any) -> list[dict[str, Any]]:
    if isinstance(queries, str):
        return [parse_query(queries)]
    if hasattr(queries, "to_dict") and hasattr(queries, "columns"):  # a pandas table
        queries = pa.Table.from_pandas(queries, preserve_index=False)
    if isinstance(queries, pa.Table):
        if "query_id" not in queries.column_names or "path" not in queries.column_names:
            raise UserError(
                f"the table of queries has the columns {', '.join(queries.column_names)}",
                remedy="it needs at least query_id and path",
            )
        rows = []
        for k, row in enumerate(queries.to_pylist()):
            known = {name: row.get(name) for name in QUERIES.names}
            known["example"] = known["example"] if known["example"] is not None else k + 1
            known["channel"] = known["channel"] if known["channel"] is not None else 1
            rows.append(known)
        return rows
    return [parse_query(text) for text in dict.fromkeys(str(one) for one in queries)]


def columns() -> list[str]:
    """Names of the columns that `search_store` returns."""
    return [name for name in DETECTIONS.names if name not in ("decision", "system")]
