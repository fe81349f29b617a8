"""decode-queries makes queries as a method of lattices takes them: strings of phones, or lattices; a task per group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.chains.phones.inputs import PhoneInputs
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import TermError
from swsdist.lattices.decoding import Columns, Decoding, FrameDecoder
from swsdist.lattices.packed import Recipe
from swsdist.lattices.phone_loop import Reader
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.methods.lattice.query_lattices import QUERY_LATTICES, linear, query_row
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.registries import METHODS
from swsdist.stages.inputs.recordings import Row
from swsdist.stages.queries import demand_examples, read_group
from swsdist.stages.task_results import Extracted
from swsdist.store.tracks import Tracks


class DecodingQueries(NamedTuple):
    """The payload of a task.

    Attributes:
        group: file of a group of examples; empty: of none.
        columns: names and kind of the track's columns, and its place among all columns.
        shift: s between frames.
        texts: rows of written queries.
        decoding, terms: how they become phones.
        lattices: whether the method takes lattices.
        cuts: of the examples that were trimmed.
    """

    group: str
    columns: Columns
    place: tuple[int, int]
    shift: float
    texts: list[Row]
    decoding: Decoding
    terms: Terms
    lattices: bool
    cuts: list[list[Any]] = []


class DecodeQueries(Stage[DecodingQueries]):
    """A spoken example becomes its likeliest string, or its lattice; a written query its pronunciations."""

    name = "decode-queries"
    version = 4
    unit = "queries"
    phase = "search"
    with_hours = "same"
    with_queries = "more"
    takes = {"queries": "groups"}
    tables = {"groups": Table(None, None, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[DecodingQueries]]:
        """A task per group of spoken queries, and one for all written ones."""
        chain_inputs = inputs.chain_inputs(PhoneInputs)
        options, storage = chain_inputs.options, inputs.config.storage
        store = chain_inputs.frames.store.open()
        track = store.manifest.track(options.decoding.track)
        lattices = METHODS[inputs.config.search.method].queries == "lattices"
        queries = chain_inputs.corpus.queries.to_pylist()
        texts = [row for row in queries if row["path"] is None]
        common = Columns(track.columns, track.kind), Tracks(store).places[track.name], store.manifest.shift
        decoding = options.decoding.identities(storage), lattices
        groups = list(inputs.made("queries", Extracted))
        if not texts:
            demand_examples(inputs, groups)
        for receipt, group, (part,) in groups:
            if group.examples:
                payload = DecodingQueries(part.name, *common, [], options.decoding, options.terms, lattices, group.cuts)
                label = f"{group.examples} examples"
                yield inputs.task(
                    receipt.fingerprint, track.name, *decoding, label=label, work=group.examples, payload=payload
                )
        if texts:
            payload = DecodingQueries("", *common, texts, options.decoding, options.terms, lattices)
            matters = (
                sorted((row["query_id"], row["term"] or "") for row in texts),
                options.terms.identities(storage),
                list(track.columns),
                *decoding,
            )
            yield inputs.task(*matters, label=f"{len(texts)} texts", work=len(texts), payload=payload)

    def run(self, task: Task[DecodingQueries], context: Context) -> TaskOutput:
        """Decode the examples of a group, or look up texts."""
        payload = task.payload
        if payload.texts:
            return self._written(task, context)
        decoder = FrameDecoder(payload.decoding, payload.columns, context.storage)
        rows: list[dict[str, Any]] = []
        seconds, rejected = 0.0, []
        first, stop = payload.place
        for example in read_group(context, payload.group).to_pylist():
            frames = np.frombuffer(example["features"], "<f4").reshape(example["frames"], -1)[:, first:stop]
            key = example["query_id"], example["example"]
            seconds += example["duration"]
            try:
                rows.append(_spoken_row(*key, frames, decoder, payload))
            except TermError as error:
                rejected.append(_rejection(*key, error))
        return self._output(task, context, rows, len(rows), seconds, rejected)

    def _written(self, task: Task[DecodingQueries], context: Context) -> TaskOutput:
        payload = task.payload
        reader = term_reader(payload.terms, payload.decoding, payload.columns, context.storage)
        rows: list[dict[str, Any]] = []
        rejected = []
        for query in payload.texts:
            key = query["query_id"], query["example"]
            try:
                written = reader.rows(query)
                if payload.lattices:
                    weighted = [(row["labels"], float(np.exp(-row["cost"]))) for row in written]
                    written = [query_row(*key, linear(weighted))]
                rows += written
            except TermError as error:
                rejected.append(_rejection(*key, error))
        rows = rows if payload.lattices else cheapest(rows)
        return self._output(task, context, rows, len(payload.texts) - len(rejected), 0.0, rejected)

    def _output(
        self,
        task: Task[DecodingQueries],
        context: Context,
        rows: list[dict[str, Any]],
        examples: int,
        seconds: float,
        rejected: list[dict[str, Any]],
    ) -> TaskOutput:
        schema = QUERY_LATTICES if task.payload.lattices else WRITTEN
        part = context.publish(task, "groups", [pa.Table.from_pylist(rows, schema)], schema)
        query_ids = sorted({row["query_id"] for row in rows})
        return TaskOutput(
            (part,), Extracted(examples, query_ids, examples, seconds, task.payload.cuts), rejected=rejected
        )


def term_reader(
    terms: Terms, decoding: Decoding, columns: Columns, storage: Mapping[str, object] | None = None
) -> TermReader:
    """Reads written queries, of phones that a decoder finds in a track of these columns."""
    recipe = Recipe(spelling="exact", fillers=decoding.non_speech)
    return TermReader(terms, recipe, storage, FrameDecoder(decoding, columns, storage).words)


def _reader(frames: NDArray[np.float32]) -> Reader:
    return lambda first, stop: frames[first:stop]


def _spoken_row(
    query_id: str, example: int, frames: NDArray[np.float32], decoder: FrameDecoder, payload: DecodingQueries
) -> dict[str, Any]:
    """The row of an example.

    Raises:
        TermError: no phone is found in it, or too many.
    """
    if payload.lattices:
        packed = decoder.lattice(_reader(frames), len(frames), payload.shift)
        if (packed.labels > 0).any():
            return query_row(query_id, example, packed)
    elif labels := decoder.string(frames):
        return _written_row(query_id, example, labels)
    raise codes.NO_PHONES_IN_QUERY(where=query_id)


def _written_row(query_id: str, example: int, labels: list[str]) -> dict[str, Any]:
    return {"query_id": query_id, "example": example, "labels": labels, "cost": 0.0, "patterns": False}


def _rejection(query_id: str, example: int, error: TermError) -> dict[str, Any]:
    return {
        "kind": "query",
        "id": query_id,
        "part": example,
        "path": None,
        "reason": error.reason,
        "message": error.message,
        "remedy": error.remedy,
    }
