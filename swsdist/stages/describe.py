"""describe measures query examples as required by calibration steps: length, entropy, speech."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.audio.streams import are_permitted, permitted
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import (
    ExampleEntropies,
    ExampleGroup,
    ExampleSpeech,
    Tally,
    from_table,
    load_statistics,
    no_posteriors,
    summed,
    to_table,
)
from swsdist.core.codes import stages as codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import QUERY_STATISTICS
from swsdist.features.interface import Precomputed, kind_of
from swsdist.methods.query.extraction import examples_of
from swsdist.methods.query.speech_trimming import trim_to_speech
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.registry.registries import STATISTICS
from swsdist.stages.buckets import Extracted
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store.manifest import require
from swsdist.store.reading import Store, Tracks

#: Sampling rate for the analysis of queries, Hz.
_RATE = 16_000


class Describing(NamedTuple):
    """The payload of a task."""

    queries: str
    rows: list[Values]
    names: list[str]
    trim: bool
    commands: bool


class Describe(Stage[Describing]):
    """A task per group of queries. The chain contains this stage only if a step needs a statistic of examples."""

    name = "describe"
    version = 1
    unit = "examples"
    phase = "search"
    takes = {"queries": "groups"}
    grows_with_hours = "same"
    tables = {"described": Table(QUERY_STATISTICS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Describing]]:
        """A task for the statistics of each group, with the examples extracted for the search."""
        chain_inputs = inputs.chain_inputs(SearchInputs)
        names = list(load_statistics(required_statistics(inputs.config.calibrate), "examples"))
        needs_speech = ExampleSpeech.name in names
        precomputed = any(isinstance(source.extractor, Precomputed) for source in chain_inputs.features.sources)
        trim, rows = inputs.config.queries.trim == "auto" and not precomputed, defaultdict[str, list[Values]](list)
        for row in chain_inputs.examples if needs_speech else ():
            rows[row["query_id"]].append(row)
        for receipt, group, (part,) in inputs.made("queries", Extracted):
            members = [row for query_id in group.query_ids for row in rows[query_id]]
            payload = Describing(part.name, members, names, trim, are_permitted())
            key_parts = [STATISTICS.identity(name) for name in names], receipt.fingerprint
            label = f"{group.examples} examples"
            yield inputs.task(*key_parts, label=label, work=group.examples, payload=payload)

    def run(self, task: Task[Describing], context: Context) -> TaskOutput:
        """Measure the statistics."""
        payload = task.payload
        folder, state = context.place(payload.queries)
        store = Store(folder, require(folder, state))
        with permitted(payload.commands):
            result = measure_examples(
                examples_of(store), store, payload.rows, payload.names, payload.trim, context.storage
            )
        return TaskOutput((context.publish(task, "described", [to_table(result)], QUERY_STATISTICS),))


def measure_examples(
    examples: pa.Table,
    store: Store,
    rows: Iterable[Mapping[str, Any]],
    names: Iterable[str],
    trim: bool,
    storage: Mapping[str, object],
) -> dict[str, Tally]:
    """Statistics of examples for calibration steps, by name.

    Args:
        examples: EXAMPLES.
        store: of the same tracks.
        rows: of QUERIES, the source of the examples.
        names: of the statistics.
        trim: whether they were trimmed.
        storage: options for s3fs.

    Raises:
        UserError: speech is required of an example without a recording; or entropy without a track of posteriors.
    """
    row_by_example = {(row["query_id"], row["example"]): row for row in rows}

    def samples_of(query_id: str, example: int) -> tuple[NDArray[np.float32], int]:
        row = row_by_example[query_id, example]
        if row["path"] is None:
            raise codes.EXAMPLE_WITHOUT_SPEECH(where=f"query {query_id}, example {example}")
        result = trim_to_speech(row, _RATE, storage, trim)
        place = {"channel": row["channel"], "start": result.start, "end": result.end, "storage": storage}
        blocks = read_blocks(row["path"], rate=_RATE, **place)
        return np.concatenate([np.empty(0, np.float32), *blocks]), _RATE

    tracks, tables = Tracks(store), store.manifest.tracks
    posteriors = tuple(tracks.places[track.name] for track in tables if track.kind == "posteriors")
    group = ExampleGroup(examples, tracks.dimension, posteriors, tuple(track.name for track in tables), samples_of)
    return {name: each.of(group) for name, each in load_statistics(names).items()}


def demand_posteriors(chain_inputs: SearchInputs, names: Iterable[str]) -> None:
    """Refuse entropy without posteriors, before any work.

    Args:
        chain_inputs: the inputs of the plan.
        names: of the statistics that it needs.

    Raises:
        UserError: no track is of posteriors.
    """
    if ExampleEntropies.name not in names:
        return
    with suppress(ConfigError):  # code that makes the extractor reports the fault
        tracks = [
            (track.name, kind_of(source.extractor))
            for source in chain_inputs.features.sources
            for track in source.tracks
        ]
        if all(kind != "posteriors" for _, kind in tracks):
            raise no_posteriors(name for name, _ in tracks)


def query_covariates(inputs: Inputs, slots: tuple[int, int] | None = None) -> Values | None:
    """The files of statistics that steps need, for a task; None if they need no statistics.

    Args:
        inputs: of a stage that reads `described` (if present) and `statistics`.
        slots: of one bucket's queries; None: of all.
    """
    names = required_statistics(inputs.config.calibrate)
    if not names:
        return None
    files = [part.name for part in inputs.parts("statistics") if slots is None or part.slots == slots]
    return {"names": list(names), "files": [*files, *(part.name for part in inputs.parts("described"))]}


def read_covariates(context: Context, covariates: Values | None) -> dict[str, Tally]:
    """Read the files from `query_covariates`."""
    if covariates is None:
        return {}
    return joined((from_table(context.read(name)) for name in covariates["files"]), covariates["names"])


def joined(parts: Iterable[Mapping[str, Tally]], names: Iterable[str]) -> dict[str, Tally]:
    """Sums of statistics over several tables."""
    result = {name: [Tally(each.quantities)] for name, each in load_statistics(names).items()}
    for part in parts:
        for name in result.keys() & part.keys():
            result[name].append(part[name])
    return {name: summed(some) for name, some in result.items()}
