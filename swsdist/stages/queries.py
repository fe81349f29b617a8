"""Stages of queries: queries, query-statistics, describe.

**queries** turns spoken examples into shards of a store of queries, a task per group.

**query-statistics** computes means and variances of the corpus of the queries, of all its documents and of each
speaker. It precedes search if a config names such a corpus (`corpus.queries_from`). A hash of names selects documents:
up to a number of hours of all, and of each speaker of a query. Only sums are kept. They are integers
(`features.fitting.moments.Sums`), so any division into tasks gives the same statistics.

**describe** computes statistics of the queries' examples, for steps of calibration that need them.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.audio import speech
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import read_blocks, write_silence
from swsdist.audio.streams import are_permitted, is_command, permitted, refusal
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
from swsdist.config import Config
from swsdist.config.search import Dropping, Search
from swsdist.core.arrays import Singles
from swsdist.core.codes import corpora as corpora_codes
from swsdist.core.codes import families
from swsdist.core.errors import AudioError, ConfigError, DataError, StoreError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.needs import Needs
from swsdist.core.types import DOCUMENTS, EXAMPLES, FRAMES, QUERIES, QUERY_STATISTICS, STATISTICS, table_of
from swsdist.corpora.kaldi import demand_permission
from swsdist.features.extractors import Planned, Source, needs_of_all, recipe
from swsdist.features.fitting.moments import Sums
from swsdist.features.interface import Columns, Extractor, Precomputed, kind_of, libraries_of
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.kernels.arithmetic import LONGEST_QUERY
from swsdist.methods.query.extraction import (
    examples_of,
    groups,
    uses_recording_statistics,
    with_statistics,
    write_group,
)
from swsdist.methods.query.speech_trimming import trim_to_speech
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.status import by_key
from swsdist.pipeline.task import Part, Receipt, Task, TaskOutput, Values
from swsdist.registry.registries import RECURRENCES
from swsdist.registry.registries import STATISTICS as registries_STATISTICS
from swsdist.stages.buckets import Extracted
from swsdist.stages.fit_transforms import in_random_order
from swsdist.stages.inputs.corpus import speaker_of
from swsdist.stages.inputs.corpus_documents import Row, document_seconds, parts_of, row_for
from swsdist.stages.inputs.search_inputs import CorpusInputs, SearchInputs, seconds_of
from swsdist.store.manifest import (
    GROUPS,
    REJECTED_DOCUMENTS,
    NewTrack,
    Shard,
    commit,
    load,
    made_with,
    require,
    write_state,
)
from swsdist.store.reading import Store, Tracks
from swsdist.store.writing import raise_transient, read_recording, shard_name


def _example(row: dict[str, Any]) -> int:
    return int(row["example"])


#: Columns that do not affect an example's frames.
_WITHOUT = ("term", "doc_id", "items", "expected")

#: Columns of examples that their frames do not determine; the digest of results covers them.
_OF_RECORDING = ["mean", "variance", "bandwidth"]

#: Path of the store of queries in a run folder.
STORE = "queries"


class Extracting(NamedTuple):
    """The payload of a task: examples, extractors with their tracks, and settings of extraction and search."""

    examples: list[dict[str, Any]]
    sources: list[tuple[Planned, tuple[Columns, ...]]]
    search: Search
    trim: bool
    commands: bool
    dropping: Dropping | None


def _granted(task: Task[Extracting], context: Context) -> list[Source]:
    """The extractors of a task, with the resources granted to this worker, and their tracks."""
    result = []
    for source, tracks in task.payload.sources:
        extractor = source.granted(context.granted)
        result.append(Source(extractor.name, {}, extractor, source.recipe, tracks))
    return result


class Queries(Stage[Extracting]):
    """Queries are searched in groups; only the ids determine the borders between groups.

    A group is a shard of the store of queries, and also a state of it: the search of a group reads that state,
    independent of other groups. The store's manifest names all groups of the latest finished plan.
    """

    name = "queries"
    version = 6
    unit = "examples"
    phase = "search"
    grows_with_hours = "same"
    grows_with_queries = "more"
    # Digests cover the examples as read by methods, not the files.
    tables = {
        "groups": Table(None, None, digested=False),
        "query_features": Table(FRAMES, None, digested=False),
        "query_documents": Table(DOCUMENTS, None, digested=False),
        "query_rejected": Table(REJECTED_DOCUMENTS, None, digested=False),
    }

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The needs of each extractor."""
        return needs_of_all(config.features)

    def place(self, inputs: Inputs) -> str:
        """The store of queries."""
        return f"{inputs.ledger.run.root}/{STORE}"

    def examples(self, chain_inputs: SearchInputs) -> list[dict[str, Any]]:
        """The examples to extract, with the identities of the sources of their frames."""
        return chain_inputs.examples

    def plan(self, inputs: Inputs) -> Iterator[Task[Extracting]]:
        """A task per group."""
        chain_inputs, search = inputs.chain_inputs(SearchInputs), inputs.config.search
        longest = RECURRENCES[search.recurrence].longest(search.recurrence_settings())
        # Templates and some recurrences refuse long examples, and `drop` those that it leaves nothing of; only these enter the
        # fingerprint of a group.
        refusing: list[Any] = ["template"] if search.examples == "template" else []
        refusing += [longest] if longest != LONGEST_QUERY else []
        dropping = search.dropping(chain_inputs.features.tracks)
        refusing += [["drop", *dropping]] if dropping else []
        precomputed = any(isinstance(source.extractor, Precomputed) for source in chain_inputs.features.sources)
        trim = inputs.config.queries.trim == "auto" and not precomputed
        refusing += [["least", search.least_query_frames]] if search.least_query_frames > 1 else []
        refusing += [["trim", speech.VERSION]] if trim else []
        by_query: dict[str, list[dict[str, Any]]] = {}
        rows = self.examples(chain_inputs)
        if chain_inputs.query_inputs is None and uses_recording_statistics(search):
            rows = with_statistics(rows, chain_inputs.store.open(), list(chain_inputs.features.tracks))
        for row in rows:
            by_query.setdefault(row["query_id"], []).append(row)
        cut = groups(list(by_query))
        # With a single extractor, track names do not affect columns.
        features = chain_inputs.features
        made_by: Any = features.sources[0].fingerprint if len(features.sources) == 1 else features.recipes
        sources = [(source.planned, source.tracks) for source in chain_inputs.features.sources]
        for k, query_ids in enumerate(cut):
            members = [row for query_id in query_ids for row in sorted(by_query[query_id], key=_example)]
            key_parts = [{key: value for key, value in row.items() if key not in _WITHOUT} for row in members]
            label = f"group {k + 1} of {len(cut)}: {len(query_ids)} queries"
            payload = Extracting(members, sources, search, trim, are_permitted(), dropping)
            yield inputs.task(made_by, key_parts, *refusing, label=label, work=len(members), payload=payload)

    def warm(self, task: Task[Extracting], context: Context) -> None:
        """Extract a second of silence: this loads decoder, extractor and writer."""
        sources = [source for source in _granted(task, context) if isinstance(source.extractor, Extractor)]
        if not sources:
            return  # precomputed frames need no decoder
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            path = f"{place}/silence.wav"
            write_silence(path, sources[0].extractor.sample_rate)
            row = dict.fromkeys(QUERIES.names)
            row |= {"query_id": "silence", "example": 1, "channel": 1, "path": path}
            write_group(Folder(place), "warm", [row], sources, trim=False)

    def run(self, task: Task[Extracting], context: Context) -> TaskOutput:
        """Features of the group's examples, and the state that holds them."""
        payload, folder, rows = task.payload, context.folder(task), task.payload.examples
        sources = _granted(task, context)
        reads = any(isinstance(source.extractor, Extractor) for source in sources)
        command_lines = [row["path"] for row in rows if row["path"] is not None and is_command(row["path"])]
        if reads and command_lines and not payload.commands:
            raise refusal(command_lines[0])  # not a rejection: permission is no property of the queries
        with permitted(payload.commands), ffmpeg.recorded_versions() as used:
            group = write_group(folder, task.fingerprint, rows, sources, payload.search, payload.trim, payload.dropping)
        examples = group.examples
        extracted = Extracted(
            examples.num_rows,
            sorted(set(examples["query_id"].to_pylist())),
            sum(examples["frames"].to_pylist()),
            sum(examples["duration"].to_pylist()),
            [list(cut) for cut in group.cuts],
            sorted(used),
            made_with(name for source in sources for name in libraries_of(source.extractor)),
            sum(frames < payload.search.least_query_frames for frames in examples["frames"].to_pylist()),
        )
        state = write_state(folder, group.manifest)
        parts = [Part("groups", state.name, state.size, state.sha256)]
        for output in group.outputs:
            table = next((word for word in ("documents", "rejected") if word in output.name), "features")
            parts.append(Part(f"query_{table}", *output))
        return TaskOutput(tuple(parts), extracted, rejected=group.rejected.drop_columns(["identity"]).to_pylist())

    def finish(self, inputs: Inputs) -> None:
        """Commit the groups of this plan as the store's state, unless current."""
        chain_inputs, folder = inputs.chain_inputs(SearchInputs), Folder(inputs.place, inputs.config.storage)
        states = _states(inputs)
        source = GROUPS + fingerprint(states, chain_inputs.features.recipes)
        listing = inputs.ledger.listing(inputs.place)
        try:
            old = load(folder)
        except StoreError:  # damaged; it is rebuilt from the groups
            old = None
        names = {
            shard_name(receipt.fingerprint)
            for receipt in inputs.outcome.receipts
            if receipt.result_as(Extracted).examples
        }
        kept = old is not None and old.source == source and all(name in listing for name in old.tables)
        if kept or not names:
            return
        inputs.commits()
        groups = [Store(folder, require(folder, name)) for name in states]
        # Tracks are matched by position, since a reused group may have another name for its track.
        result = [
            NewTrack(
                track.name,
                recipe(source.extractor),
                track.stop - track.first,
                pa.concat_tables(_joined(group, place) for group in groups).combine_chunks(),
                columns=source.columns(track),
                kind=kind_of(source.extractor),
            )
            for place, (source, track) in enumerate(
                (source, track) for source in chain_inputs.features.sources for track in source.tracks
            )
        ]
        shards = [
            Shard(
                shard.name,
                {
                    name: shard.files[track.name]
                    for (name, _), track in zip(chain_inputs.features.recipes, group.manifest.tracks, strict=True)
                },
                shard.documents,
                shard.frames,
            )
            for group in groups
            for shard in group.manifest.shards
            if shard.name in names
        ]
        rejected = pa.concat_tables(group.rejected() for group in groups)
        extracted = [receipt.result_as(Extracted) for receipt in inputs.outcome.receipts]
        libraries = chain_inputs.features.libraries({}, extracted)
        commit(folder, result, groups[0].manifest.tick, shards, rejected, source=source, libraries=libraries)
        inputs.ledger.forget(inputs.place)

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digests of the examples, independent of groups."""
        folder = Folder(inputs.place, inputs.config.storage)
        states = _states(inputs)
        tables = (examples_of(Store(folder, require(folder, name))).drop_columns(_OF_RECORDING) for name in states)
        return {"queries": by_key(tables, "query_id")} if states else {}


def _states(inputs: Inputs) -> list[str]:
    """Names of the groups' states in the store of queries."""
    return [part.name for receipt in inputs.outcome.receipts for part in receipt.parts("groups")]


def _joined(group: Store, place: int) -> pa.Table:
    """The live documents of a group's track that occur in all of its tracks."""
    keys = Tracks(group).documents(columns=["doc_id", "channel"])
    keys_in_all = set(zip(keys["doc_id"].to_pylist(), keys["channel"].to_pylist(), strict=True))
    table = group.documents(track=group.manifest.tracks[place].name)
    there = zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)
    return table.filter(pa.array([key in keys_in_all for key in there], pa.bool_()))


def demand_examples(inputs: Inputs, groups: Sequence[tuple[Receipt, Extracted, list[Part]]]) -> None:
    """Demand that an example of some groups can be searched.

    Raises:
        DataError: there are groups, and none has an example.
    """
    if groups and not any(group.examples for _, group, _ in groups):
        first, notices = groups[0][0].rejected[0], inputs.chain_inputs(SearchInputs).notices.entries.values()
        causes = [str(notice) for notice in notices if notice.code is corpora_codes.RECORDINGS_WITHOUT_PATH]
        raise families.EMPTY_INPUT.of(DataError)(
            "none of the {examples} query examples could be used",
            "the first: {path}: {error}",
            where=inputs.config.corpus.queries,
            examples=sum(len(receipt.rejected) for receipt, *_ in groups),
            path=first["path"] or first["id"],
            error="; ".join([first["message"], *causes]),
        )


def read_group(context: Context, name: str) -> pa.Table:
    """A group's queries as its method takes them, from a file: a state of the store of queries (EXAMPLES), or a table
    by a stage of another chain.
    """
    if not name.endswith(".json"):
        return context.read(name)
    folder, state = context.place(name)
    return examples_of(Store(folder, require(folder, state)))


def examples_in(chain_run: ChainRun) -> pa.Table:
    """All examples of a plan that searches spoken queries: EXAMPLES."""
    return pa.concat_tables([EXAMPLES.empty_table(), *map(examples_of, _groups_in(chain_run))])


def seconds_in(chain_run: ChainRun) -> dict[tuple[str, int], float]:
    """Seconds of each searched query example; empty for text queries."""
    result: dict[tuple[str, int], float] = {}
    chain_inputs: CorpusInputs = chain_run.chain.inputs
    for search in chain_inputs.searches(chain_run)[::-1]:  # the first search of an example determines its seconds
        for group in _groups_in(search):
            result |= seconds_of(Tracks(group).documents(columns=["doc_id", "channel", "duration"]))
    return result


def bandwidths_in(chain_run: ChainRun) -> pa.Table:
    """Highest frequency in each query example: `query_id`, `bandwidth` (Hz; null if unknown)."""
    names = ["doc_id", "bandwidth"]
    result = [
        group.documents(columns=names).rename_columns(["query_id", "bandwidth"]) for group in _groups_in(chain_run)
    ]
    schema = pa.schema([EXAMPLES.field("query_id"), EXAMPLES.field("bandwidth")])
    return pa.concat_tables([schema.empty_table(), *result])


def _groups_in(chain_run: ChainRun) -> Iterator[Store]:
    table = chain_run.table("groups")
    folder = chain_run.ledger.folder(table.root)
    for part in table.receipts.parts(table.table):
        if part.name.endswith(".json"):
            yield Store(folder, require(folder, part.name))


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
                raise families.UNSUPPORTED(
                    "frames of {source} are precomputed, so there are no statistics of the documents of the queries",
                    "set corpus.queries_from.statistics: ours, or normalise the frames where they are made",
                    where="corpus.queries_from",
                    source=source.name,
                )
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
        raise families.EMPTY_INPUT.of(DataError)(
            "none of the documents of the queries can be read, so there are no statistics to normalise them by",
            "check them (swsdist check), or set corpus.queries_from.statistics: ours",
            where=f"corpus.queries_from.documents: {payload.where}",
        )
    rows: list[tuple[object, ...]] = []
    for kind, name in sorted(scopes):
        several = [part[kind, name] for part in parts]
        means, deviations = zip(*(item.mean_and_deviation() for item in several), strict=True)
        mean, variance = np.concatenate(means).tolist(), (np.concatenate(deviations) ** 2).tolist()
        rows.append((kind, name, min(item.frames for item in several), mean, variance, True, []))
    return table_of(rows, STATISTICS)


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
    """The stage describe, a task per group of queries. A chain has it only if a step needs a statistic of examples."""

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
            key_parts = [registries_STATISTICS.identity(name) for name in names], receipt.fingerprint
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

    def samples_of(query_id: str, example: int) -> tuple[Singles, int]:
        row = row_by_example[query_id, example]
        if row["path"] is None:
            raise families.UNSUPPORTED(
                "the example is not a recording, so its speech cannot be measured",
                "leave the covariate speech out (calibrate.options)",
                where=f"query {query_id}, example {example}",
            )
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
