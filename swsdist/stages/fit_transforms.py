"""The stage fit-transforms: documents to models of fitted extractors and transforms (PCA, GMM), pinned in the store.

It precedes index if a config has a fitted extractor or transform. A hash of names selects documents, up to a number of
hours. In each round tasks sum totals over some minutes of documents each, and a further task processes their sum, until
the model is complete (`features.fitting`). Totals are integers, so any division into tasks gives the same model. The
tasks of the first round keep the frames for later ones. A model in the store is reused, also for later documents.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from swsdist.audio.streams import are_permitted, permitted
from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.codes import features as features_codes
from swsdist.core.codes import stages as codes
from swsdist.core.errors import AudioError, DataError, FramesError
from swsdist.core.needs import Needs
from swsdist.corpora.documents import part_of
from swsdist.features.blocks import positions
from swsdist.features.extractors import Planned, needs_of_all
from swsdist.features.fitting.files import (
    Labels,
    read_documents,
    read_labels,
    read_totals,
    summed,
    write_document,
    write_totals,
)
from swsdist.features.fitting.interface import FEWER, Document, Model, Rounds, Totals, load_model
from swsdist.features.interface import Extractor, one_thread
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.task import Part, Receipt, Task, TaskOutput
from swsdist.registry.registries import FEATURES, TRANSFORMS
from swsdist.stages.inputs.corpus_documents import Row, UnfittedModel, document_seconds, parts_of, row_for
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import parquet
from swsdist.store.writing import KeptFrames, WithResult, raise_transient

#: Seconds of documents per task.
_TASK_SECONDS = 300.0


class Added(NamedTuple):
    """Result of summing a part of a model's documents in a round.

    Attributes:
        frames: their number.
        documents: hashes of those whose labels were used.
        refused: path and fault of the unreadable ones, where there are no frames.
    """

    model: str
    round: int
    frames: int
    documents: list[str] = []
    refused: list[str] = []


class Stepped(NamedTuple):
    """Result of a round for a model; done: the model is complete."""

    model: str
    step: int
    done: bool


class Fitting(NamedTuple):
    """The payload of a task: a model, and one of its inputs: documents, kept frames, or totals.

    Attributes:
        model: file of the model.
        round: number of the round, from 0.
        last: file of the previous round's result.
        labels: path and SHA-256 of the labels for fitting.
        of_extractor: whether the model is of an extractor, or else of a transform.
        name, options: of the extractor or transform.
        documents: rows, in the first round; when totals are summed, hashes of the documents with labels.
        extractor: computes the documents' frames.
        commands: whether commands may be run to read audio.
        frames: file of frames.
        totals: files of totals.
    """

    model: str
    round: int
    last: str | None
    labels: tuple[str, str] | None
    of_extractor: bool
    name: str
    options: dict[str, object]
    documents: list[Any] = []
    extractor: Planned | None = None
    commands: bool = False
    frames: str = ""
    totals: list[str] = []


class FitTransforms(Stage[Fitting]):
    """Rounds for the models that the store lacks; those of an extractor in the order of the config."""

    name = "fit-transforms"
    version = 2
    unit = "s"
    phase = "index"
    grows_with_hours = "more"
    grows_with_queries = "same"
    rounds = True
    all_or_nothing = True
    # The model's content is in the fingerprint of all frames that depend on it.
    tables = {
        "frames": Table(None, None, digested=False),
        "totals": Table(None, None, digested=False),
        "known": Table(None, None, digested=False),
        "model": Table(None, None, digested=False),
    }

    def needs(self, config: Config) -> tuple[Needs, ...]:
        """The needs of each extractor."""
        return needs_of_all(config.features)

    def place(self, inputs: Inputs) -> str:
        """The store."""
        return inputs.chain_inputs(SearchInputs).store.folder.root

    def plan(self, inputs: Inputs) -> Iterator[Task[Fitting]]:
        """The next tasks of each model: those that sum, or the one that processes the sum; of an extractor only its
        first model.
        """
        chain_inputs = inputs.chain_inputs(SearchInputs)
        chain_inputs.features.anew = inputs.redo
        of_this_round: dict[str, UnfittedModel] = {}
        busy: set[int] = set()
        for item in chain_inputs.features.fitted:
            ended = any(each.parts("model") for each in _of(inputs, item))
            if not ended and (inputs.redo or not chain_inputs.features.has_model(item)):
                if item.place[0] not in busy:
                    of_this_round[item.file] = item
                busy.add(item.place[0])
        for item in of_this_round.values():
            yield from self._next(inputs, item)

    def _next(self, inputs: Inputs, unfitted_model: UnfittedModel) -> Iterator[Task[Fitting]]:
        done = _of(inputs, unfitted_model)
        steps = [each for each in done if "step" in each.result]
        number = len(steps)
        now = [each for each in done if each.result.get("round") == number]
        last = steps[-1].parts("known")[0].name if steps else None
        shared = Fitting(
            unfitted_model.file,
            number,
            last,
            unfitted_model.labels,
            unfitted_model.of_extractor,
            unfitted_model.fitted.name,
            unfitted_model.options,
        )
        if now:
            if not sum(each.result_as(Added).frames for each in now):
                if refused := [text for each in now for text in each.result_as(Added).refused]:
                    raise codes.NO_USABLE_DOCUMENT(
                        where=inputs.config.corpus.documents,
                        documents=len(inputs.chain_inputs(SearchInputs).corpus_documents),
                        track=f" to fit {unfitted_model.fitted.name}",
                        advice=f"the first: {refused[0]}",
                    )
                raise families.NOTHING_TO_FIT.of(DataError)(
                    "there are no frames to fit {transform} on",
                    "check the documents: swsdist check",
                    where=f"features.transforms of {unfitted_model.track}",
                    transform=unfitted_model.fitted.name,
                )
            parts = [part.name for each in now for part in each.parts("totals")]
            label = f"{unfitted_model.fitted.name} of {unfitted_model.track}, round {number + 1}: step"
            of = sorted(key for each in done if "documents" in each.result for key in each.result_as(Added).documents)
            payload = shared._replace(totals=parts, documents=of)
            yield inputs.task(unfitted_model.file, last, parts, label=label, work=1, payload=payload)
            return
        if last is not None:
            first = [each for each in done if each.result.get("round") == 0]
            for each in first:
                (frames,) = each.parts("frames")
                label = f"{unfitted_model.fitted.name} of {unfitted_model.track}, round {number + 1}"
                payload = shared._replace(frames=frames.name)
                yield inputs.task(unfitted_model.file, last, frames.name, label=label, work=each.work, payload=payload)
            return
        for rows, seconds in _chosen(inputs.chain_inputs(SearchInputs), unfitted_model):
            payload = shared._replace(extractor=unfitted_model.planned, documents=rows, commands=are_permitted())
            label = f"{unfitted_model.fitted.name} of {unfitted_model.track}, round 1: {len(rows)} documents"
            # Labels are found by the document's name; otherwise the name has no influence on frames.
            named = ("path", "identity", "channel", "speaker", *(() if unfitted_model.labels is None else ("doc_id",)))
            key_parts = [[*(row[name] for name in named), row.get("start"), row.get("end")] for row in rows]
            yield inputs.task(unfitted_model.file, key_parts, label=label, work=seconds, payload=payload)

    def run(self, task: Task[Fitting], context: Context) -> TaskOutput:
        """Sum totals, or process their sum."""
        payload, folder = task.payload, context.folder(task)
        fitted: Any = (FEATURES if payload.of_extractor else TRANSFORMS)[payload.name].load()(**payload.options)
        last = None if payload.last is None else load_model(folder, payload.last)
        labels = None if payload.labels is None else read_labels(*payload.labels)
        rounds = fitted.rounds() if labels is None else fitted.rounds(labels.names)
        if payload.totals:
            return self._go_on(task, folder, rounds, last)
        if payload.frames:
            with folder.open(payload.frames) as file:
                return self._add_up(task, folder, rounds, last, read_documents(file))
        with permitted(payload.commands), folder.temporary(".frames") as path:
            with path.open("wb") as file:
                refused: list[str] = []
                documents = _readable_documents(payload, context, rounds, labels, file, refused)
                done = self._add_up(task, folder, rounds, last, documents, refused)
            name = f"models/rounds/{task.fingerprint}.frames"
            output = parquet.describe(path, name)
            folder.publish(path, name)
        return TaskOutput((*done.outputs, Part("frames", *output)), done.result)

    def _add_up(
        self,
        task: Task[Fitting],
        folder: Folder,
        rounds: Rounds,
        last: Model | None,
        documents: Iterator[Document],
        refused: Sequence[str] = (),
    ) -> TaskOutput:
        frames, origin = 0, (task.payload.model, task.payload.round)
        # The model records the documents whose labels it used: results on these are no test of it.
        supervision = [] if task.payload.labels is None else [document_hash(row) for row in task.payload.documents]

        def totals() -> Iterator[Totals]:
            nonlocal frames
            for document in documents:
                frames += sum(map(len, document.blocks))
                yield rounds.totals(last, document)

        with one_thread():
            total = summed(totals())
        if not frames:
            return TaskOutput((), Added(*origin, 0, refused=[*refused]))
        out = io.BytesIO()
        write_totals(out, total)
        output = parquet.publish_bytes(folder, f"models/rounds/{task.fingerprint}.totals", out.getvalue())
        return TaskOutput((Part("totals", *output),), Added(*origin, frames, supervision))

    def _go_on(self, task: Task[Fitting], folder: Folder, rounds: Rounds, last: Model | None) -> TaskOutput:
        from threadpoolctl import threadpool_limits

        payload = task.payload
        total = summed(read_totals(io.BytesIO(folder.read_bytes(part))) for part in payload.totals)
        with threadpool_limits(limits=1):  # LAPACK rounds differently with several threads
            model, done = rounds.go_on(last, total)
        if done and payload.labels is not None:
            file, sha256 = payload.labels
            supervision = {"file": Path(file).name, "sha256": sha256, "documents": payload.documents}
            known_by = {**supervision, "automatic": payload.options.get("automatic", False)}
            model = Model(model.name, model.version, model.arrays, {**model.settings, "taught_by": known_by})
        table, name = ("model", payload.model) if done else ("known", f"models/rounds/{task.fingerprint}.npz")
        output = parquet.publish_bytes(folder, name, model.to_bytes())
        return TaskOutput((Part(table, *output),), Stepped(payload.model, payload.round, done))

    def makers(self, inputs: Inputs) -> Sequence[Receipt]:
        """Receipts of the models that the store has pinned."""
        pinned = {item.file for item in inputs.chain_inputs(SearchInputs).features.fitted}
        receipts = inputs.ledger.receipts(self.name, inputs.place).values()
        return [receipt for receipt in receipts if receipt.result.get("model") in pinned]

    def most_hours(self, inputs: Inputs) -> float:
        """Most hours of documents that models are fitted to."""
        return max((item.fitted.hours for item in inputs.chain_inputs(SearchInputs).features.fitted), default=inf)

    def finish(self, inputs: Inputs) -> None:
        """Use the new models for transforms from now on; delete the frames and totals behind them."""
        chain_inputs, ended = inputs.chain_inputs(SearchInputs), inputs.outcome
        for part in (part for each in ended.receipts for part in each.parts("model")):
            settings: Any = load_model(chain_inputs.store.folder, part.name).settings
            if FEWER in settings:
                chain_inputs.notices.inform(
                    features_codes.FEWER_COMPONENTS,
                    where=part.name,
                    count=1,
                    components=settings["most"],
                    usual=settings[FEWER],
                )
        chain_inputs.models_were_fitted()
        used = [part.name for each in ended.receipts for part in each.outputs if part.table != "model"]
        if used and not ended.failures:
            inputs.commits()
            for name in used:
                chain_inputs.store.folder.remove(name)


def _of(inputs: Inputs, unfitted_model: UnfittedModel) -> list[Receipt]:
    """Receipts of a model."""
    return [each for each in inputs.outcome.receipts if each.result.get("model") == unfitted_model.file]


def _readable_documents(
    payload: Fitting, context: Context, rounds: Rounds, labels: Labels | None, file: BinaryIO, refused: list[str]
) -> Iterator[Document]:
    """Yield each readable document, and also write it to a file; `refused` takes the others, which index reports."""
    assert payload.extractor is not None
    extractor = payload.extractor.granted(context.granted)
    folder = Folder(".", context.storage)
    kept = context.cached(KeptFrames.__name__, None, KeptFrames)
    reading = kept.reading(extractor, listen=True, keep=True)  # for other models, and for index, which marks speech
    for row in payload.documents:
        try:
            read = WithResult(reading(row, extractor, folder))
            blocks = list(read)
        except (AudioError, FramesError) as error:
            raise_transient(row, error)
            refused.append(f"{row['path']}: {error.message}")
            continue
        count, classes = sum(map(len, blocks)), None
        at = positions(extractor, count)
        if labels is not None:
            classes = labels.of_frames(row["doc_id"], row["channel"], count, extractor)
        if rounds.speech and (speech := read.result.speech) is not None:
            edges = np.cumsum([0, *map(len, blocks)]).tolist()
            blocks = [block[speech[first:last]] for block, (first, last) in zip(blocks, pairwise(edges), strict=True)]
            classes, at = (None if item is None else item[speech] for item in (classes, at))
        filled = [block for block in blocks if len(block)]
        document = Document(filled, row["speaker"], classes, read.result.bandwidth, at)
        if filled:
            write_document(file, document)
            yield document


def _chosen(chain_inputs: SearchInputs, unfitted_model: UnfittedModel) -> Iterator[tuple[list[Row], float]]:
    """Documents for fitting, in parts of some minutes, each with its seconds: from the corpus's part `train` if it has
    one, and only labelled ones if labels are required.
    """
    rows, corpus = list(chain_inputs.corpus_documents.values()), chain_inputs.config.corpus
    if corpus.parts.train is not None:
        part = part_of(chain_inputs.corpus.documents, corpus.parts.train, chain_inputs.config.storage)
        of_part = set(zip(part["doc_id"].to_pylist(), part["channel"].to_pylist(), strict=True))
        rows = [row for row in rows if (row["doc_id"], row["channel"]) in of_part]
    if unfitted_model.labels is not None:
        labels = read_labels(*unfitted_model.labels)
        rows = [row for row in rows if labels.has(row["doc_id"], row["channel"])]
        if not rows:
            raise families.NOTHING_TO_FIT.of(DataError)(
                "no document to fit {transform} on has a label",
                "its names of documents must be those of the corpus",
                where=unfitted_model.labels[0],
                transform=unfitted_model.fitted.name,
            )
    rows = in_random_order(rows)
    lengths = document_seconds(rows, chain_inputs.config.storage)
    sources = chain_inputs.features.sources
    source = sources[unfitted_model.place[0]]
    if isinstance(source.extractor, Extractor):  # all of audio read the same files
        source = next(source for source in sources if isinstance(source.extractor, Extractor))
        if unfitted_model.labels is None:
            rows, lengths = _in_pieces(rows, lengths)
    before = accumulate(lengths, initial=0.0)
    enough = [
        length for length, total in zip(lengths, before, strict=False) if total < unfitted_model.fitted.hours * 3600
    ]
    for part in parts_of(enough, _TASK_SECONDS):
        yield [row_for(source, rows[k]) for k in part], sum(lengths[k] for k in part)


def _in_pieces(rows: Sequence[Row], lengths: Sequence[float]) -> tuple[list[Row], list[float]]:
    """Long recordings as places of a task's length, in random order among the others: none holds a fit back or fills it."""
    cut: list[tuple[bytes, Row, float]] = []
    for row, length in zip(rows, lengths, strict=True):
        pieces = 1 if row.get("start") is not None else max(1, int(length / _TASK_SECONDS))
        edges = [length * k / pieces for k in range(pieces + 1)]
        for k, (start, end) in enumerate(pairwise(edges)):
            place = {"recording": row["doc_id"], "start": start, "end": end, "listed": row["path"]}
            piece = {**row, **place} if pieces > 1 else {**row}
            cut.append((_order(row["doc_id"], row["channel"], k), piece, end - start))
    cut.sort(key=lambda item: item[0])
    return [row for _, row, _ in cut], [length for *_, length in cut]


def document_hash(row: Mapping[str, Any]) -> str:
    """The hash that identifies a document in the settings of a model fitted by its labels."""
    return _order(row["doc_id"], row["channel"])[:8].hex()


def in_random_order(rows: Iterable[Row]) -> list[Row]:
    """Documents ordered by a hash of their names."""
    return sorted(rows, key=lambda row: _order(row["doc_id"], row["channel"]))


def _order(doc_id: str, channel: int, piece: int = 0) -> bytes:
    name = f"{doc_id}\0{channel}" + (f"\0{piece}" if piece else "")
    return hashlib.blake2b(name.encode(), digest_size=16).digest()
