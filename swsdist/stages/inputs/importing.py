"""Make a feature store of precomputed frames without a config, as `index` does for `features: external`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from swsdist.config import config_from_dict
from swsdist.core.codes import stages as codes
from swsdist.core.errors import StoreError, recast
from swsdist.features.extractors import create
from swsdist.features.interface import Precomputed
from swsdist.io.remote.scratch import scratch
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress

#: Arguments of `store import` by key of a config.
_OPTIONS = {"features.options.path": "SOURCE", "index.store": "STORE", "corpus.documents": "--documents"}
_OPTION = re.compile(r"features\.options\.(\w+)|index\.store|corpus\.documents")


def as_options(text: str) -> str:
    """Reword a message about a config for the arguments of `store import`, whose users have no config."""
    return _OPTION.sub(lambda result: _OPTIONS.get(result[0], f"--{result[1]}"), text)


def import_store(
    store: str,
    options: Mapping[str, object],
    *,
    track: str | None = None,
    documents: str | None = None,
    shard_hours: float = 1.0,
    storage: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Make or update a store in this process. Unchanged documents stay; missing ones are removed.

    Args:
        store: its folder, local or `s3://`.
        options: of the extractor `external`.
        track: name of the track; by default `external`.
        documents: table of the documents (doc_id, maybe channel, path, duration, speaker); by default each key is one.
        shard_hours: hours of audio per shard.
        storage: options for s3fs.
        progress: receives events.

    Returns:
        The result; its chain run's `rejected` lists unusable documents.

    Raises:
        UserError, DataError: an option is wrong, or no frames can be read.
        IncompleteError: some shards could not be made; repeat the call to continue.
    """
    extractor = create("external", dict(options))
    assert isinstance(extractor, Precomputed)
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        if documents is None:
            documents = str(Path(place) / "keys.parquet")
            pq.write_table(
                pa.table({"doc_id": pa.array(list(extractor.items(False, storage or {})), pa.string())}), documents
            )
        features: dict[str, Any] = {"name": "external", "options": dict(options)}
        values = {
            "run": str(Path(place) / "run"),
            "corpus": {"documents": documents},
            "features": features if track is None else {**features, "track": track},
            "index": {"store": store, "shard_hours": shard_hours},
            "executor": {"kind": "serial"},
            "storage": dict(storage or {}),
        }
        try:
            outcome = run_stages(config_from_dict(values), StepSelection(table="documents"), progress or Progress())
        except StoreError as error:
            if error.where is None or not error.where.startswith(place):
                raise
            # The temporary table of keys no longer exists.
            raise recast(error, type(error), where=str(options["path"])) from None
    if outcome.failures:
        raise codes.SHARDS_NOT_IMPORTED(
            where=store, shards=len(outcome.failures), error=outcome.failures[0].message.splitlines()[0]
        )
    return outcome
