"""query-statistics: documents of the queries' corpus -> their means and variances, of all and of each speaker.

It precedes search if a config names a corpus of queries (`corpus.queries_from`). A hash of names selects documents: up
to a number of hours of all, and of each speaker of a query. Only sums are kept. Sums are integers
(`features.fitting.moments.Sums`), so any division into tasks gives the same statistics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio.commands import are_permitted, permitted
from swsdist.config import Config
from swsdist.core.codes import stages as codes
from swsdist.core.errors import AudioError
from swsdist.core.needs import Needs
from swsdist.core.types import STATISTICS
from swsdist.corpora.kaldi import demand_permission
from swsdist.features.fitting.moments import Sums
from swsdist.features.interface import Extractor
from swsdist.features.sources import Planned, needs_of_all
from swsdist.io.filesystem import Folder
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.fit_transforms import in_random_order
from swsdist.stages.inputs.cross_corpus import speaker_of
from swsdist.stages.inputs.features import row_for
from swsdist.stages.inputs.recordings import Row, document_seconds, parts_of
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store.writing import raise_transient, read_recording

#: Seconds of documents per task.
_TASK_SECONDS = 300.0

#: `("collection", "")` or `("speaker", name)`.
Scope = tuple[str, str]


class Summed(NamedTuple):
    """Result: sums of some documents are in a file; index of their extractor."""

    extractor: int
    documents: int


class Summing(NamedTuple):
    """The payload of a task of the first round: documents, each with its scopes, and the index of their extractor."""

    number: int
    extractor: Planned
    documents: list[Row]
    commands: bool


class Merging(NamedTuple):
    """The payload of the task of the second round: indices of extractors, each with a file of sums; and the documents'
    folder.
    """

    sums: list[tuple[int, str]]
    where: str


class QueryStatistics(Stage[Summing | Merging]):
    """Two rounds: sums over some minutes of documents, for each extractor; then the total as STATISTICS, side by side."""

    name = "query-statistics"
    version = 1
    needs_run = "all queries"
    unit = "s"
    phase = "search"
    grows_with_hours = "same"
    grows_with_queries = "same"
    rounds = True
    # Candidates contain their effect on queries.
    tables = {
        "query_sums": Table(None, None, digested=False),
        "query_statistics": Table(STATISTICS, None, digested=False),
    }
    # Without them queries would be normalised by other statistics.
    all_or_nothing = True

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The needs of each extractor."""
        return needs_of_all(config.features)

    def plan(self, inputs: Inputs) -> Iterator[Task[Summing | Merging]]:
        """A task for some minutes of documents and an extractor; then one that sums up."""
        chain_inputs = inputs.chain_inputs(SearchInputs)
        if inputs.round == 0:
            yield from self._summing(inputs, chain_inputs)
        elif inputs.round == 1:
            sums = [
                (receipt.result_as(Summed).extractor, part.name)
                for receipt in inputs.outcome.receipts
                for part in receipt.parts("query_sums")
            ]
            label = "means and variances of the queries' corpus"
            where = inputs.config.corpus.queries_from.documents
            yield inputs.task(sums, label=label, work=1, payload=Merging(sums, str(where)))

    @staticmethod
    def _summing(inputs: Inputs, chain_inputs: SearchInputs) -> Iterator[Task[Summing | Merging]]:
        query_inputs = chain_inputs.query_inputs
        assert query_inputs is not None  # else the chain lacks this stage
        rows = _chosen(chain_inputs, query_inputs)
        demand_permission(
            [row["path"] for row, _ in rows], query_inputs.config.corpus.documents, chain_inputs.config.storage
        )
        seconds = document_seconds([row for row, _ in rows], chain_inputs.config.storage)
        for k, source in enumerate(query_inputs.features.sources):
            if not isinstance(source.extractor, Extractor):
                raise codes.NO_STATISTICS_OF_FRAMES(where="corpus.queries_from", source=source.name)
            for part in parts_of(seconds, _TASK_SECONDS):
                documents = [{**row_for(source, rows[j][0]), "scopes": rows[j][1]} for j in part]
                key_parts = [[row["path"], row["identity"], row["channel"], row["scopes"]] for row in documents]
                payload = Summing(k, source.planned, documents, are_permitted())
                label = f"{source.tracks[0].name}: {len(part)} documents that queries are from"
                work = sum(seconds[j] for j in part)
                yield inputs.task(k, source.fingerprint, key_parts, label=label, work=work, payload=payload)

    def run(self, task: Task[Summing | Merging], context: Context) -> TaskOutput:
        """Sum frames, or sums."""
        payload = task.payload
        if isinstance(payload, Merging):
            rows = _merged(payload, context)
            return TaskOutput((context.publish(task, "query_statistics", [rows], STATISTICS),), Summed(-1, 0))
        extractor = payload.extractor.granted(context.granted)
        assert isinstance(extractor, Extractor)
        total: dict[Scope, Sums] = {}
        folder, count = Folder(".", context.storage), 0
        with permitted(payload.commands):
            for row in payload.documents:
                try:
                    result = Sums.from_blocks(read_recording(row, extractor, folder), extractor.dimension)
                except AudioError as error:
                    raise_transient(row, error)
                    continue  # other documents remain
                count += 1
                for kind, name in row["scopes"]:
                    total[kind, name] = total[kind, name] + result if (kind, name) in total else result
        data = json.dumps([[*scope, *sums] for scope, sums in sorted(total.items())])
        return TaskOutput((context.write(task, "query_sums", data.encode()),), Summed(payload.number, count))


def _chosen(chain_inputs: SearchInputs, query_inputs: SearchInputs) -> list[tuple[Row, list[Scope]]]:
    """Documents, each with its scopes, in a reproducible random order, until every scope is filled."""
    config = chain_inputs.config
    most = config.corpus.queries_from.hours * 3600
    required: dict[Scope, float] = {("collection", ""): 0.0}
    if config.search.queries_by == "speaker":
        names = {name for name in chain_inputs.corpus.queries["speaker"].to_pylist() if name}
        required |= {("speaker", name): 0.0 for name in names}
    rows = in_random_order(query_inputs.corpus_documents.values())
    chosen = []
    for row, seconds in zip(rows, document_seconds(rows, config.storage), strict=True):
        speaker = speaker_of(row["speaker"], config)
        scopes: list[Scope] = [("collection", ""), *([("speaker", speaker)] if speaker else [])]
        scopes = [scope for scope in scopes if required.get(scope, most) < most]
        for scope in scopes:
            required[scope] += seconds
        if scopes:
            chosen.append((row, scopes))
    return chosen


def _merged(payload: Merging, context: Context) -> pa.Table:
    """STATISTICS of the columns of all extractors, side by side.

    Raises:
        DataError: there are no frames.
    """
    by_extractor: dict[int, dict[Scope, Sums]] = {}
    for extractor, name in payload.sums:
        totals = by_extractor.setdefault(extractor, {})
        for kind, of, *sums in json.loads(context.read_bytes(name)):
            result = Sums(*sums)
            totals[kind, of] = totals[kind, of] + result if (kind, of) in totals else result
    parts = [by_extractor[k] for k in sorted(by_extractor)]
    scopes = [scope for scope in parts[0] if all(scope in part for part in parts[1:])] if parts else []
    if ("collection", "") not in scopes:
        raise codes.NO_QUERY_DOCUMENT_READ(where=f"corpus.queries_from.documents: {payload.where}")
    rows = []
    for kind, name in sorted(scopes):
        several = [part[kind, name] for part in parts]
        means, deviations = zip(*(item.mean_and_deviation() for item in several), strict=True)
        rows.append(
            {
                "scope": kind,
                "name": name,
                "frames": min(item.frames for item in several),
                "mean": np.concatenate(means).tolist(),
                "variance": (np.concatenate(deviations) ** 2).tolist(),
                "frozen": True,
                "taken_from": [],
            }
        )
    return pa.Table.from_pylist(rows, STATISTICS)
