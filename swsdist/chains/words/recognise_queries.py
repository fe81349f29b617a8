"""recognise-queries makes queries into sequences of words: spoken ones by a recogniser, a task per group of queries.

Spoken queries are not trimmed: a recogniser needs the silence around a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.commands import are_permitted, is_command, permitted, refusal
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import read_blocks
from swsdist.chains.words.inputs import WordInputs
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError, TermError, UnusableError
from swsdist.lattices.packed import Recipe
from swsdist.lattices.recognition import RATE, Recogniser, Recognition
from swsdist.lattices.terms import WRITTEN, TermReader, Terms, cheapest
from swsdist.methods.query.extraction import groups
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.inputs.recordings import Row
from swsdist.stages.task_results import Extracted
from swsdist.store.writing import raise_transient

#: Columns that the words of a query depend on.
_MATTERS = ("query_id", "example", "path", "channel", "start", "end", "identity")


class RecognisingQueries(NamedTuple):
    """The payload of a task.

    Attributes:
        examples: rows of queries, in the order of queries and examples; without a path they are written.
        recogniser, recipe, terms: how they become labels.
        commands: whether commands may be run to read audio.
    """

    examples: list[Row]
    recogniser: Recognition
    recipe: Recipe
    terms: Terms
    commands: bool


class RecogniseQueries(Stage[RecognisingQueries]):
    """The best words of a spoken example are a written term; an example with a recording is spoken, whatever text it has."""

    name = "recognise-queries"
    version = 2
    unit = "examples"
    phase = "search"
    with_hours = "same"
    with_queries = "more"
    tables = {"groups": Table(WRITTEN, order=("query_id", "example", "cost", "labels"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[RecognisingQueries]]:
        """A task per group."""
        chain_inputs, config = inputs.chain_inputs(WordInputs), inputs.config
        options = chain_inputs.options
        by_query: dict[str, list[Row]] = {}
        for row in sorted(chain_inputs.examples, key=lambda row: (row["query_id"], row["example"])):
            by_query.setdefault(row["query_id"], []).append(row)
        terms = options.terms.identities(config.storage), options.recipe.spelling, list(options.recipe.fillers)
        spoken = options.recogniser.identities()
        cut = groups(list(by_query))
        for k, query_ids in enumerate(cut):
            members = [row for query_id in query_ids for row in by_query[query_id]]
            matters: list[Any] = [
                [row["query_id"], row["example"], row["term"]]
                if row["path"] is None
                else [row[name] for name in _MATTERS]
                for row in members
            ]
            if any(row["path"] is not None for row in members):
                matters.append(spoken)
            payload = RecognisingQueries(members, options.recogniser, options.recipe, options.terms, are_permitted())
            label = f"group {k + 1} of {len(cut)}: {len(query_ids)} queries"
            yield inputs.task(matters, *terms, label=label, work=len(members), payload=payload)

    def run(self, task: Task[RecognisingQueries], context: Context) -> TaskOutput:
        """Recognise spoken examples; look up the words of all."""
        payload = task.payload
        given = [row["path"] for row in payload.examples if row["path"] is not None and is_command(row["path"])]
        if given and not payload.commands:
            raise refusal(given[0])  # not a rejection: permission is no property of the queries
        reader = TermReader(payload.terms, payload.recipe, context.storage)
        rows: list[dict[str, Any]] = []
        rejected: list[dict[str, Any]] = []
        usable, seconds = 0, 0.0
        with permitted(payload.commands), ffmpeg.recorded_versions() as used:
            for example in payload.examples:
                try:
                    text = example["term"]
                    if example["path"] is not None:
                        text, length = _recognised(payload.recogniser, example, context)
                        seconds += length
                    rows += reader.rows({**example, "term": text})
                except DataError as error:
                    raise_transient(example, error)
                    rejected.append(_rejection(example, error))
                    continue
                usable += 1
        table = pa.Table.from_pylist(cheapest(rows), WRITTEN)
        query_ids = sorted({row["query_id"] for row in rows})
        result = Extracted(usable, query_ids, usable, seconds, ffmpeg=sorted(used))
        return TaskOutput((context.publish(task, "groups", [table], WRITTEN),), result, rejected=rejected)


def _recognised(options: Recognition, example: Row, context: Context) -> tuple[str, float]:
    """The best words of a spoken example, and its seconds.

    Raises:
        TermError: there are none.
        AudioError: the recording cannot be used.
    """
    samples = 0

    def counted() -> Iterator[NDArray[np.float32]]:
        nonlocal samples
        for block in read_blocks(
            example["path"],
            channel=example["channel"],
            rate=RATE,
            start=example["start"],
            end=example["end"],
            storage=context.storage,
        ):
            samples += len(block)
            yield block

    words = Recogniser(options).words(counted())
    if not words:
        raise codes.NO_WORDS_IN_QUERY(where=example["path"])
    return " ".join(words), samples / RATE


def _rejection(example: Row, error: DataError) -> dict[str, Any]:
    return {
        "kind": "query",
        "id": example["query_id"],
        "part": example["example"],
        "path": example["path"],
        "reason": error.reason if isinstance(error, TermError | UnusableError) else "unreadable",
        "message": error.message,
        "remedy": error.remedy,
    }
