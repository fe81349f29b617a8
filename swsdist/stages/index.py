"""The stage index: audio to shards of the feature store, a task per shard and extractor."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio import speech
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import write_silence
from swsdist.audio.streams import are_permitted, permitted
from swsdist.config import Config
from swsdist.config.search import Search
from swsdist.core.arrays import Bools, Ints
from swsdist.core.codes import stages as codes
from swsdist.core.errors import SwsdistError
from swsdist.core.needs import Needs
from swsdist.core.types import DOCUMENTS, FRAMES
from swsdist.corpora.kaldi import demand_permission
from swsdist.features.extractors import Planned, Source, needs_of_all, recipe
from swsdist.features.interface import Extractor, frame_shift, kind_of, libraries_of, tracks_of
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch
from swsdist.methods.method import create
from swsdist.methods.sample import (
    EVERYTHING,
    codebook_file,
    codebook_name,
    codes_name,
    contents,
    landmark_documents,
    sample_limit,
)
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.task import Part, Receipt, Task, TaskOutput
from swsdist.stages.buckets import Indexed
from swsdist.stages.inputs.corpus_documents import (
    Row,
    RunFeatures,
    StoreContents,
    compare_tables,
    pinned_names,
    places_in,
    row_for,
    stem_of,
    still_rejected,
)
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.stages.inputs.state import StoreState, doubt_gone
from swsdist.store import parquet
from swsdist.store import reading as digest
from swsdist.store.manifest import (
    REJECTED_DOCUMENTS,
    File,
    Libraries,
    Manifest,
    NewTrack,
    Shard,
    Unfinished,
    commit,
    frozen_statistics,
    made_with,
    pin,
)
from swsdist.store.parquet import SpooledDocuments
from swsdist.store.reading import Store, keys_of
from swsdist.store.statistics import cut
from swsdist.store.writing import (
    KeptFrames,
    documents_name,
    rejected_name,
    reuse_frames,
    shard_name,
    track_file,
    with_progress,
    write_tracks,
)

#: Columns that a document's features and its row in the store depend on.
_MATTERS = ("doc_id", "channel", "path", "identity", "speaker")
#: Columns that identify a document of the store.
_KNOWN = [*_MATTERS, "shard"]
#: Paths compared at a time.
_PIECE = 1 << 16


class Indexing(NamedTuple):
    """The payload of a task.

    Attributes:
        documents: rows, each with the place of its stored frames, if any.
        extractor: computes their frames.
        partition: their shard; None: a new one.
        listen: whether speech is marked.
        keep: whether a further task has these documents and this extractor, with other transforms.
        commands: whether commands may be run to read audio.
    """

    documents: list[Row]
    extractor: Planned
    partition: str | None
    listen: bool
    keep: bool
    commands: bool


class Index(Stage[Indexing]):
    """Cut documents that the store lacks, in their current form, into new shards; stored documents stay in place.

    Each extractor has separate tasks, on the shards of the first; a new track is computed for all stored documents.
    """

    name = "index"
    version = 3
    unit = "s"
    phase = "index"
    grows_with_hours = "more"
    grows_with_queries = "same"
    # Statistics of all documents normalise queries, so results of a part would be useless later.
    all_or_nothing = True
    # Digests cover the live documents of all shards, not the files.
    tables = {
        "features": Table(FRAMES, None, digested=False),
        "documents": Table(DOCUMENTS, None, digested=False),
        "rejected": Table(REJECTED_DOCUMENTS, None, digested=False),
    }

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The needs of each extractor."""
        return needs_of_all(config.features)

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(SearchInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Indexing]]:
        """A task per new shard, and per shard that lacks frames of an extractor; for each extractor."""
        chain_inputs, config = inputs.chain_inputs(SearchInputs), inputs.config
        store, sources = chain_inputs.store, chain_inputs.features.sources
        state = store.load(anew=inputs.redo)
        for name in store.lost:
            code = codes.LOST_TABLE if store.manifest is None else codes.LOST_MODEL
            chain_inputs.notices.add(code, where=store.folder.path(name), count=1)
        corpus = chain_inputs.corpus_documents
        _, same, _, carry = store.compare(corpus)
        new = np.flatnonzero(~same)
        self._demand_permission(chain_inputs, new, sources)
        lengths = corpus.seconds(new, config.storage)
        ranges = cut(lengths, config.index.shard_hours * 3600, config.index.shards)
        store.planned.clear()
        listening = next((source for source in sources if isinstance(source.extractor, Extractor)), None)

        def task(
            source: Source, documents: list[Row], partition: str | None, label: str, work: float
        ) -> Task[Indexing]:
            rows = [row_for(source, row) for row in documents]
            for row in rows if carry else ():
                stored = carry.get((row["doc_id"], row["channel"]), {}).get(source.fingerprint)
                row |= {} if stored is None else {"held": stored}
            # Speech marks are stored with one track's documents: the first made from audio.
            marks_speech = source is listening
            key_parts = source.fingerprint, [[row[name] for name in _MATTERS] for row in rows]
            more = *([] if partition is None else [partition]), *([speech.VERSION] if marks_speech else [])
            label = label if len(sources) == 1 else f"{source.tracks[0].name}, {label}"
            later = sources[sources.index(source) + 1 :]
            keep = (source.name, source.options) in [(other.name, other.options) for other in later]
            payload = Indexing(rows, source.planned, partition, marks_speech, keep, are_permitted())
            result = inputs.task(*key_parts, *more, label=label, work=work, payload=payload)
            store.planned[result.fingerprint] = source, partition or shard_name(result.fingerprint), work
            return result

        for k, chosen in enumerate(ranges):
            rows = corpus.rows(new[chosen.start : chosen.stop])
            seconds = sum(lengths[chosen.start : chosen.stop])
            label = f"shard {k + 1} of {len(ranges)}: {len(rows)} documents"
            yield (leading := task(sources[0], rows, None, label, seconds))
            for source in sources[1:]:
                yield task(source, rows, shard_name(leading.fingerprint), label, seconds)
        for shard, keys in state.documents_of(state.lacking).items():
            places = corpus.places(keys)
            places = places[(places >= 0) & same[places]]
            self._demand_permission(chain_inputs, places, state.lacking[shard])
            for source in state.lacking[shard] if len(places) else ():
                seconds = sum(corpus.seconds(places, config.storage))
                label = f"{len(places)} documents of a shard that is there"
                yield task(source, corpus.rows(places), shard, label, seconds)
        state.tables = {}  # they are large; later plans read them again

    def hours(self, inputs: Inputs, tasks: Iterable[Task[Indexing]]) -> float:
        """Hours of the shards: all extractors process the same audio."""
        planned = inputs.chain_inputs(SearchInputs).store.planned
        return sum({shard: work for _, shard, work in (planned[task.fingerprint] for task in tasks)}.values()) / 3600

    @staticmethod
    def _demand_permission(chain_inputs: SearchInputs, places: Ints, sources: Iterable[Source]) -> None:
        """Refuse to run commands that are not permitted: at planning, so the user learns of it early."""
        if any(isinstance(source.extractor, Extractor) for source in sources):
            paths = chain_inputs.corpus_documents.table["path"].take(pa.array(places))
            for chunk in paths.chunks:
                for first in range(0, len(chunk), _PIECE):
                    some = chunk.slice(first, _PIECE).to_pylist()
                    demand_permission(some, chain_inputs.config.corpus.documents, chain_inputs.config.storage)

    def warm(self, task: Task[Indexing], context: Context) -> None:
        """Index a second of silence and discard it: this loads decoder, extractor and writer."""
        extractor = task.payload.extractor.granted(context.granted)
        if not isinstance(extractor, Extractor):
            return  # precomputed frames need no decoder
        with tempfile.TemporaryDirectory(dir=scratch()) as place:
            path = f"{place}/silence.wav"
            write_silence(path, extractor.sample_rate)
            row = {"doc_id": "silence", "channel": 1, "path": path, "speaker": None, "identity": "0:0"}
            write_tracks(Folder(place), "warm", [row], extractor)

    def run(self, task: Task[Indexing], context: Context) -> TaskOutput:
        """Decode, compute, write."""
        payload, extractor = task.payload, task.payload.extractor.granted(context.granted)
        kept = context.cached(KeptFrames.__name__, None, KeptFrames)
        reading = kept.reading(extractor, listen=payload.listen, keep=payload.keep)
        with permitted(payload.commands), ffmpeg.recorded_versions() as used:
            result = write_tracks(
                context.folder(task),
                task.fingerprint,
                payload.documents,
                extractor,
                payload.partition,
                with_progress(reuse_frames(reading), lambda seconds: context.report(seconds / max(task.work, 1e-3))),
            )
        frames = [sum(indexed.documents["frames"].to_pylist()) for indexed in result]
        parts: list[Part] = []
        for indexed, count in zip(result, frames, strict=True):
            rows = (count, indexed.documents.num_rows, indexed.rejected.num_rows)
            named = zip(self.tables, indexed.outputs, rows, strict=True)
            # All tracks of a pass share the list of rejected documents.
            parts += [Part(table, *out, n) for table, out, n in named if not parts or table != "rejected"]
        first, stored = result[0], sum("held" in row for row in payload.documents)
        libraries = made_with(libraries_of(extractor))
        made = Indexed(first.documents.num_rows, frames[0], first.seconds, sorted(used), libraries, stored)
        return TaskOutput(tuple(parts), made, rejected=first.rejected.drop_columns(["identity"]).to_pylist())

    def prepare(self, inputs: Inputs) -> None:
        """Refuse to lose most documents before others are indexed."""
        _doubt_gone(inputs)

    def makers(self, inputs: Inputs) -> Sequence[Receipt]:
        """Receipts of the store's shards."""
        return inputs.chain_inputs(SearchInputs).store.makers(self.name)

    def finish(self, inputs: Inputs) -> None:
        """Commit the store's state if it changed."""
        self._commit(inputs, None)

    def commit_partial(self, inputs: Inputs) -> None:
        """Commit a state of the finished part for searches; the index still resumes from the previous state, with the
        usual result.
        """
        chain_inputs = inputs.chain_inputs(SearchInputs)
        done = {receipt.fingerprint for receipt in inputs.outcome.receipts}
        planned, first = chain_inputs.store.planned, chain_inputs.features.sources[0]
        left = sum(work for name, (source, _, work) in planned.items() if name not in done and source is first)
        before = chain_inputs.store.manifest.fingerprint if chain_inputs.store.manifest is not None else None
        self._commit(inputs, Unfinished(len(done), len(planned), left, before))

    def _commit(self, inputs: Inputs, unfinished: Unfinished | None) -> None:
        """Commit what stays and what is new, unless the store's state says that already."""
        chain_inputs, ended = inputs.chain_inputs(SearchInputs), inputs.outcome
        store, features, old = chain_inputs.store, chain_inputs.features, chain_inputs.store.manifest
        if not unfinished:
            _doubt_gone(inputs)
        stay, remaining, unchanged = _stored(chain_inputs)
        # Of plans that share a store, the first commits everything.
        new = [
            receipt
            for receipt in ended.receipts
            if not _is_held(store.contents, *store.planned[receipt.fingerprint][:2])
        ]
        if not new and (unfinished or (unchanged and _is_final(store))):
            return
        files, added = _outputs(store, new)
        refusals = [parquet.read(store.folder, rejected_name(receipt.fingerprint)) for receipt in new]
        rejected = _once(pa.concat_tables([remaining, *refusals]).combine_chunks())
        live = {
            track.name: SpooledDocuments(
                _without(table, rejected)
                for table in _documents(chain_inputs, source, track.name, stay, added.get(track.name, ()))
            )
            for source in features.sources
            for track in source.tracks
        }
        empty = next((name for name, documents in live.items() if not documents.num_rows), None)
        if empty is not None and unfinished:
            return  # no document can be searched yet
        if empty is not None:
            raise _nothing_usable(inputs, rejected, f" for {empty}" if len(live) > 1 else "")
        _note_copies(chain_inputs, next(iter(live.values())))
        shards = [Shard(name, files[name], *counts) for name, counts in _by_shard(live.values()).items()]
        pinned = {stem_of(file): file for file in old.models.values()} if old is not None else {}
        now = [item.file for item in features.fitted]
        # Also where an interrupted run has fitted the models anew.
        anew = inputs.redo or any(pinned.get(stem_of(file), file) != file for file in now)
        tracks = [
            NewTrack(
                track.name,
                recipe(source.extractor),
                track.stop - track.first,
                live[track.name],
                # Frozen statistics stay even if other files of the store were lost, unless everything is redone.
                None if anew else frozen_statistics(store.folder, track.name, source.fingerprint),
                source.columns(track),
                kind_of(source.extractor),
            )
            for source in features.sources
            for track in source.tracks
        ]
        inputs.commits()
        state = commit(
            store.folder,
            tracks,
            frame_shift(features.sources[0].extractor),
            shards,
            rejected,
            provisional=bool(ended.failures) or unfinished is not None,
            models=_models(old, features),
            libraries=_libraries(old, features, [receipt.result_as(Indexed) for receipt in new]),
            unfinished=unfinished,
        )
        store.interrupted = unfinished is not None
        if not unfinished:
            store.manifest = state
            store.contents = StoreContents(
                kept=[track.name for track in state.tracks], files={shard.name: shard.files for shard in shards}
            )

    def digests(self, inputs: Inputs) -> dict[str, str]:
        """Digests of the live documents and their frames, independent of shards."""
        chain_inputs = inputs.chain_inputs(SearchInputs)
        return {} if chain_inputs.store.manifest is None else digest.of_store(chain_inputs.store.open())


def _doubt_gone(inputs: Inputs) -> None:
    chain_inputs = inputs.chain_inputs(SearchInputs)
    store = chain_inputs.store
    if store.manifest is not None and store.comparison is not None and chain_inputs.is_first("gone"):
        counts, of = store.comparison.counts, int(store.manifest.counts["documents"])
        doubt_gone(chain_inputs.notices, store.folder, counts.gone - counts.held, of)


def _stored(chain_inputs: SearchInputs) -> tuple[dict[str, Bools], pa.Table, bool]:
    """Which of the store's documents stay, by track; which of its rejections do; and whether all do, as they are."""
    store, corpus, stay = chain_inputs.store, chain_inputs.corpus_documents, dict[str, Bools]()
    if store.manifest is None:
        return stay, REJECTED_DOCUMENTS.empty_table(), False
    stored, contents, features = store.open(), store.contents, chain_inputs.features
    rejected = REJECTED_DOCUMENTS.empty_table() if contents.left else stored.rejected()
    still = rejected.filter(pa.array(still_rejected(corpus, rejected)))
    # The sources of frames are small to read; means and variances are large, and only read for a new state.
    kept = [name for name in features.tracks if name in contents.kept]
    matches = {name: stored.documents(columns=_KNOWN, track=name, codes=["shard"]) for name in kept}
    _, current = compare_tables(corpus, matches, dict(features.recipes))
    current[store.moved] = True
    for name, documents in matches.items():
        complete = [shard for shard, files in contents.files.items() if name in files]
        at = corpus.places(keys_of(documents["doc_id"], documents["channel"]))
        shards = pc.is_in(documents["shard"], pa.array(complete, pa.string())).to_numpy()
        stay[name] = (at >= 0) & current[at] & shards if len(current) else np.zeros(len(at), bool)
    changed = still.num_rows < rejected.num_rows or len(store.moved) or not all(mask.all() for mask in stay.values())
    return stay, still, not changed


def _is_final(store: StoreState) -> bool:
    """Whether a state has the recipes of the features, and nothing is pending."""
    if store.manifest is None or store.manifest.provisional or store.interrupted or store.lost:
        return False
    # A recipe contains paths of files, its fingerprint does not: a moved model is found again.
    recipes = [[track.name, recipe(source.extractor)] for source in store.features.sources for track in source.tracks]
    return bool(json.loads(json.dumps(recipes)) == [[track.name, track.recipe] for track in store.manifest.tracks])


def _outputs(store: StoreState, receipts: Iterable[Receipt]) -> tuple[dict[str, dict[str, File]], dict[str, list[str]]]:
    """The store's files with those of tasks, by shard and track; and the tasks' tables of documents, by track."""
    files = {shard: dict(tracks) for shard, tracks in store.contents.files.items()}
    added: dict[str, list[str]] = {}
    for receipt in receipts:
        source, shard, _ = store.planned[receipt.fingerprint]
        outputs = {output.name: output for output in receipt.outputs}
        for track, yielded in zip(source.tracks, tracks_of(source.extractor), strict=True):
            leads = yielded.first == 0
            end = receipt.fingerprint if leads else f"{receipt.fingerprint}-{yielded.name}"
            added.setdefault(track.name, []).append(documents_name(end))
            output = outputs[shard_name(end) if leads else track_file(receipt.fingerprint, yielded.name)]
            files.setdefault(shard, {})[track.name] = File(output.name, output.size, output.sha256)
    return files, added


def _documents(
    chain_inputs: SearchInputs, source: Source, track: str, stay: Mapping[str, Bools], added: Iterable[str]
) -> Iterator[pa.Table]:
    """Documents of a track that stay, then those of tables that are added."""
    store, first = chain_inputs.store, 0
    for batch in parquet.rows(store.folder, store.open().manifest.track(track).documents) if track in stay else ():
        mask = pa.array(stay[track][first : first + batch.num_rows])
        first += batch.num_rows
        yield _where_now(pa.table(batch).filter(mask), chain_inputs, source)
    for name in added:
        yield parquet.read(store.folder, name)


def _nothing_usable(inputs: Inputs, rejected: pa.Table, track: str) -> SwsdistError:
    """The error for a corpus all of whose documents are rejected, or whose tasks failed."""
    first = next(iter(rejected.slice(0, 1).to_pylist()), None)
    failed = [
        f"look at {inputs.ledger.run.path(failure.file)}: {failure.message}" for failure in inputs.outcome.failures[:1]
    ]
    return codes.NO_USABLE_DOCUMENT(
        where=inputs.config.corpus.documents,
        documents=len(inputs.chain_inputs(SearchInputs).corpus_documents),
        track=track,
        advice=f"the first: {first['path']}: {first['message']}" if first else "".join(failed),
    )


def _models(old: Manifest | None, features: RunFeatures) -> dict[str, str]:
    """Files of pinned models by name: those of the previous state, but statistics, and of those that the chain fits."""
    models = {} if old is None else old.models
    models = {name: file for name, file in models.items() if not name.startswith("statistics.")}
    return models | pinned_names(features.fitted)


def _libraries(old: Manifest | None, features: RunFeatures, results: Sequence[Indexed]) -> Libraries:
    """Versions of libraries of the previous state, and of tasks, unless these only copied."""
    libraries = {} if old is None else old.libraries
    computed = any(result.held < result.documents for result in results)
    return features.libraries(libraries, results) if computed or not libraries else libraries


def _note_copies(chain_inputs: SearchInputs, documents: SpooledDocuments) -> None:
    """Note recordings with equal bytes. All are indexed: benchmark corpora contain copies on purpose."""
    digests = documents.read(["sha256"])["sha256"].combine_chunks()
    digests = digests.take(pc.array_sort_indices(digests))
    again = pc.unique(digests.slice(1).filter(pc.equal(digests.slice(1), digests.slice(0, max(0, len(digests) - 1)))))
    if not len(again):
        return
    table = documents.read(["sha256", "doc_id"])
    table = table.filter(pc.is_in(table["sha256"], again))
    names = table.group_by("sha256").aggregate([("doc_id", "count_distinct")])
    if pc.max(names["doc_id_count_distinct"]).as_py() == 1:
        return
    several = names.filter(pc.greater(names["doc_id_count_distinct"], 1))
    equal = table.filter(pc.is_in(table["sha256"], several["sha256"].combine_chunks()))
    first, *copies = sorted(set(equal.filter(pc.equal(equal["sha256"], equal["sha256"][0]))["doc_id"].to_pylist()))
    chain_inputs.notices.inform(
        codes.DUPLICATE_RECORDING,
        where=f"{copies[0]!r} of {first!r}",
        count=pc.sum(several["doc_id_count_distinct"]).as_py() - several.num_rows,
    )


def _where_now(documents: pa.Table, chain_inputs: SearchInputs, source: Source) -> pa.Table:
    """Documents with current paths and identities of moved recordings."""
    if not len(chain_inputs.store.moved):
        return documents
    at = pa.array(chain_inputs.corpus_documents.places(keys_of(documents["doc_id"], documents["channel"])))
    now = {
        "path": chain_inputs.corpus_documents.table["path"].take(at),
        "identity": chain_inputs.corpus_documents.identities[source.fingerprint].take(at),
    }
    for name, column in now.items():
        k = documents.schema.get_field_index(name)
        documents = documents.set_column(k, DOCUMENTS.field(name), column.cast(pa.string()))
    return documents


def _is_held(state: StoreContents, source: Source, shard: str) -> bool:
    """Whether a store has all frames of an extractor for a shard."""
    return all(track.name in state.files.get(shard, {}) for track in source.tracks)


def _once(rejected: pa.Table) -> pa.Table:
    """Rejections without repetition: the first extractor's row for each document."""
    seen: set[tuple[str, int]] = set()
    mask = []
    for key in zip(rejected["id"].to_pylist(), rejected["part"].to_pylist(), strict=True):
        mask.append(key not in seen)
        seen.add(key)
    return rejected.filter(pa.array(mask, pa.bool_()))


def _without(documents: pa.Table, rejected: pa.Table) -> pa.Table:
    """Documents not rejected by any extractor."""
    if rejected.num_rows == 0:
        return documents
    keys = keys_of(documents["doc_id"], documents["channel"])
    return documents.filter(pa.array(places_in(keys, keys_of(rejected["id"], rejected["part"])) < 0))


def _by_shard(tracks: Iterable[SpooledDocuments]) -> dict[str, tuple[int, int]]:
    """Documents and frames of each shard; each document counts once, in its first track."""
    result: dict[str, tuple[int, int]] = {}
    several = [*tracks]
    seen = pa.array([], pa.large_string())
    for documents in several:
        table = documents.read(["shard", "frames"])
        if len(several) > 1:
            keys = keys_of(*documents.read(["doc_id", "channel"]).columns)
            table = table.filter(pa.array(places_in(keys, seen) < 0))
            seen = pa.concat_arrays([seen, keys])
        sums = table.group_by("shard", use_threads=False).aggregate([("frames", "count"), ("frames", "sum")])
        for name, count, total in zip(
            *(sums[name].to_pylist() for name in ("shard", "frames_count", "frames_sum")), strict=True
        ):
            before = result.get(name, (0, 0))
            result[name] = before[0] + count, before[1] + total
    return result


class Quantising(NamedTuple):
    """The payload of a task; without a shard, of the task for the codebook."""

    store: tuple[str, str]
    search: Search
    codebook: str = ""
    shard: str = ""
    content: str = ""


class Quantise(Stage[Quantising]):
    """The codebook is made of some documents, chosen once; it also codes later documents.

    Round 0 makes the codebook, unless one is pinned, and the next round the codes of each shard.
    """

    name = "quantise"
    version = 2
    unit = "frames"
    phase = "index"
    takes = {"shards": "features"}
    grows_with_hours = "more"
    grows_with_queries = "same"
    rounds = True
    # Digests cover search results instead; the pinned codebook is named by content.
    tables = {"codebook": Table(None, None, digested=False), "codes": Table(None, None, digested=False)}

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(SearchInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Quantising]]:
        """A task for the codebook, or one per shard."""
        chain_inputs, settings = inputs.chain_inputs(SearchInputs), inputs.config.search
        store = chain_inputs.store.open()
        if sample_limit(settings, store.manifest.counts) == EVERYTHING:
            return  # all is searched exactly
        codebook = codebook_file(store, settings)
        if codebook is None and inputs.round == 0:
            yield self._codebook(inputs, store)
            return
        if inputs.round > (1 if codebook is None else 0):
            return
        codebook = codebook or _new_codebook(inputs)
        if codebook is None:
            return  # its task failed: the search makes its own
        shards = store.manifest.shards
        index = contents(store, settings, [shard.name for shard in shards])
        for shard in shards:
            content, label = index[shard.name], f"{shard.documents} documents"
            payload = Quantising(chain_inputs.store.state, settings, codebook, shard.name, content)
            yield inputs.task(codebook, content, label=label, work=shard.frames, payload=payload)

    def _codebook(self, inputs: Inputs, store: Store) -> Task[Quantising]:
        settings = inputs.config.search
        rows = store.documents(columns=["doc_id", "channel", "shard", "frames"]).to_pylist()
        chosen = landmark_documents([(row["doc_id"], row["channel"]) for row in rows])
        used = [row for row in rows if (row["doc_id"], row["channel"]) in chosen]
        index = contents(store, settings, sorted({row["shard"] for row in used}))
        key_parts = codebook_name(store, settings), [list(key) for key in chosen], sorted(index.values())
        label = f"codebook, from {len(used)} documents"
        payload = Quantising(inputs.chain_inputs(SearchInputs).store.state, settings)
        return inputs.task(
            *key_parts, label=label, work=1, payload=payload
        )  # of so many documents, however many there are

    def warm(self, task: Task[Quantising], context: Context) -> None:
        """Load the search's modules."""
        create(task.payload.search).warm()

    def run(self, task: Task[Quantising], context: Context) -> TaskOutput:
        """Make the codebook, or code the frames of a shard."""
        from swsdist.methods.first_pass.search import fit_codebook, index_shard  # loads numba, which planning avoids

        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        if not payload.shard:
            model = fit_codebook(store, payload.search)
            name = f"models/codebook-{model.fingerprint}.npz"
            output = parquet.publish_bytes(store.folder, name, model.to_bytes())
            return TaskOutput((Part("codebook", *output, len(model.arrays["columns"])),))
        table = index_shard(store, payload.shard, payload.search, payload.codebook)
        name = codes_name(payload.codebook, payload.content)
        output = parquet.publish(store.folder, name, [table], table.schema)
        return TaskOutput((Part("codes", *output, table.num_rows),))

    def makers(self, inputs: Inputs) -> Sequence[Receipt]:
        """Receipts of this plan, and that of the pinned codebook."""
        manifest = inputs.chain_inputs(SearchInputs).store.manifest
        pinned = manifest and codebook_file(inputs.chain_inputs(SearchInputs).store.open(), inputs.config.search)
        made = inputs.ledger.receipts(self.name, inputs.place).values() if pinned else ()
        books = [receipt for receipt in made if any(part.name == pinned for part in receipt.outputs)]
        return [*books, *(receipt for receipt in inputs.outcome.receipts if receipt not in books)]

    def finish(self, inputs: Inputs) -> None:
        """Pin the codebook, unless documents for it are still to come."""
        chain_inputs = inputs.chain_inputs(SearchInputs)
        assert chain_inputs.store.manifest is not None  # index has finished
        name, result = codebook_name(chain_inputs.store.open(), inputs.config.search), _new_codebook(inputs)
        if result and name not in chain_inputs.store.manifest.models and not chain_inputs.store.manifest.provisional:
            inputs.commits()
            chain_inputs.store.manifest = pin(chain_inputs.store.folder, chain_inputs.store.manifest, {name: result})


def _new_codebook(inputs: Inputs) -> str | None:
    """The codebook made by round 0."""
    parts = [part for receipt in inputs.outcome.receipts for part in receipt.parts("codebook")]
    return parts[0].name if parts else None
