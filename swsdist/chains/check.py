"""Checks of a config's inputs for `swsdist check`: tables, headers of recordings, and queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from swsdist.audio.formats.ffmpeg import OVERSHOOT
from swsdist.audio.reader import probe_all
from swsdist.calibrate.procedure import required_statistics
from swsdist.chains.report.publish import FILES, publish_report
from swsdist.chains.report.reporting import barrier, counts, notices, rejected_rows, summary
from swsdist.config import Config
from swsdist.core.codes import line_of
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import AudioError, SwsdistError, UnusableError
from swsdist.corpora import documents as kinds
from swsdist.corpora.documents import ENDINGS
from swsdist.corpora.kaldi import demand_permission
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import Source
from swsdist.features.interface import Precomputed, columns_of, for_speaker, frame_shift, kind_of
from swsdist.features.transforms.interface import TransformedPrecomputed
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.notices import FEW, REJECTED, Notices
from swsdist.methods.query.speech_trimming import trim_to_speech
from swsdist.pipeline.chain import Chain, Finding, Stage, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CHAINS, METHODS
from swsdist.score.measures.protocol import number_of_trials, protocol_of
from swsdist.stages.inputs.corpus_documents import compare, document_seconds, places_in, row_for
from swsdist.stages.inputs.provenance import calibration_file, files_of, note_provenance
from swsdist.stages.inputs.search_inputs import (
    MEASURED,
    SearchInputs,
    check_scorable,
    document_checks,
    folds_of_steps,
    note_durations,
    note_late_references,
    note_query_lengths,
    seconds_of,
)
from swsdist.stages.lattice_store import demand_lattices
from swsdist.stages.queries import demand_posteriors
from swsdist.stages.steps import steps
from swsdist.store.manifest import load
from swsdist.store.writing import precomputed_frames

#: Sample rate of queries, Hz.
_RATE = 16_000
#: Keys of frames that a finding shows.
_KEYS = 4


def check(inputs: SearchInputs) -> Iterator[Finding]:
    """Check everything that is cheap to read, and report all findings, including all errors."""
    yield from findings(inputs, Checking(inputs))


def findings(inputs: SearchInputs, checking: Checking) -> Iterator[Finding]:
    """The findings of a check's parts."""
    parts, complaints = dict(checking.parts()), set[str]()
    for name, look in parts.items():
        result, documents = len(inputs.notices.entries), len(inputs.notices.requested)
        try:
            results = [*look()]
            inputs.check_tables()
        except SwsdistError as error:
            text = str(error).replace("\n  remedy:", "; remedy:")
            # Several parts may need the same broken input: it is reported once, by the part of its section.
            section = (error.where or "").split(".")[0]
            results = [] if text in complaints else [Finding(section if section in parts else name, False, text)]
            complaints.add(text)
        yield from results
        for notice in list(inputs.notices.entries.values())[result:]:
            yield Finding(name, False if notice.forced else None, str(notice))
        for notice in list(inputs.notices.requested.values())[documents:]:
            yield Finding(name, True, str(notice))


def more_than_trials(name: str, listed: int, trials: int | None) -> Iterator[Finding]:
    """A finding where a query may have more detections than trials."""
    if trials is not None and listed > trials:
        yield Finding(name, None, line_of(codes.MORE_THAN_TRIALS, listed=listed, trials=trials))


class Checking:
    """The parts of a check; later ones use the tables of earlier ones."""

    def __init__(self, inputs: SearchInputs) -> None:
        self._inputs = inputs
        inputs.notices.force = True  # implausible inputs become findings
        self._corpus, self._storage = inputs.config.corpus, inputs.config.storage
        self._seconds: dict[tuple[str, int], float] = {}

    def parts(self) -> Iterator[tuple[str, Callable[[], Iterator[Finding]]]]:
        """Names and checks, in their order."""
        yield "documents", self._documents
        if self._corpus.queries is not None:
            yield "queries", self._queries
        if self._corpus.cohort is not None:
            yield "cohort", self._cohort
        if self._corpus.has_references:
            yield "references", self._references
        yield "features", self._features
        yield "store", self._store
        yield "search", self._search
        yield "calibration", self._calibration
        yield "run", self._run

    def _documents(self) -> Iterator[Finding]:
        table, notices = self._inputs.corpus.documents, Notices(force=True)
        if not self._inputs.from_audio:
            rows = list(self._inputs.corpus_documents.values())
            lengths = document_seconds(rows, self._storage)
            self._seconds = {(r["doc_id"], r["channel"]): n for r, n in zip(rows, lengths, strict=True) if n}
            hours, silent = sum(lengths) / 3600, sum(not row["path"] for row in rows)
            text = f"{table.num_rows}, about {hours:.4g} h; their frames are given"
            yield Finding("documents", True, f"{text}; {silent} have no recording" if silent else text)
            return
        paths = dict.fromkeys(table["path"].to_pylist())
        demand_permission(paths, self._corpus.documents, self._storage)
        results = probe_all(paths, self._storage)
        bad = [(path, item) for path, item in results.items() if isinstance(item, AudioError)]
        for row in table.to_pylist():
            info = results[row["path"]]
            if isinstance(info, AudioError):
                continue
            length = info.duration
            if "start" in row:
                if row["start"] >= length or row["end"] > length + OVERSHOOT:
                    notices.add(
                        codes.SEGMENT_OUTSIDE_RECORDING,
                        count=1,
                        where=f"{row['listed']}: {row['start']:g} to {row['end']:g} s, and there are {length:.2f} s",
                    )
                    continue
                length = min(length, row["end"]) - row["start"]
            self._seconds[row["doc_id"], row["channel"]] = length
        several = [path for path, item in results.items() if not isinstance(item, AudioError) and item.channels > 1]
        if several and kinds.kind_of(self._corpus.documents, "documents", ENDINGS, self._storage) in kinds.KALDI:
            notices.add(codes.UNCHOSEN_CHANNEL, where=several[0], count=len(several))
        rows = [{"doc_id": name, "channel": k, "duration": length} for (name, k), length in self._seconds.items()]
        note_durations(table, pa.Table.from_pylist(rows, MEASURED), self._corpus.documents, self._storage, notices)
        hours = sum(self._seconds.values()) / 3600
        where = f", places in {len(paths)} recordings" if self._inputs.corpus.placed else ""
        counted = "" if len(results) == table.num_rows or where else f" channels of {len(results)} recordings"
        text = f"{len(self._seconds)} of {table.num_rows}{counted}, {hours:.4g} h{where}"
        yield Finding("documents", bool(self._seconds), text)
        yield from rejection_finding("documents", bad, len(paths), "recordings")
        yield from _notice_findings("documents", notices)

    def _queries(self) -> Iterator[Finding]:
        table, trim = self._inputs.corpus.queries, self._inputs.config.queries.trim == "auto"
        if any(isinstance(source.extractor, Precomputed) for source in self._inputs.features.sources):
            ids = set(table["query_id"].to_pylist())
            text = f"{len(ids)}, {table.num_rows} examples; not trimmed: their frames are given"
            yield Finding("queries", True, text)
            return
        lengths: dict[tuple[str, int], float] = {}
        bad: list[tuple[str, AudioError]] = []
        cut = texts = 0
        for row in table.to_pylist():
            if row["path"] is None:
                texts += 1
                continue
            try:
                speech = trim_to_speech(row, _RATE, self._storage, trim)
            except AudioError as error:
                bad.append((f"{row['query_id']}, example {row['example']}", error))
                continue
            lengths[row["query_id"], row["example"]] = speech.seconds
            cut += bool(speech.before or speech.after)
        text = f"{len({key[0] for key in lengths})} spoken ones, {len(lengths)} examples, {sum(lengths.values()):.4g} s"
        text += f"; of {cut} the background around the speech is cut off" if cut else ""
        text += f"; {texts} {'query is' if texts == 1 else 'queries are'} text only" if texts else ""
        if self._inputs.query_inputs is not None:
            text += f"; of another corpus, {self._inputs.query_inputs.config.corpus.documents}"
        method = self._inputs.config.search.method
        if texts and not lengths and METHODS[method].queries == "spoken":
            text += f", and the method {method} takes spoken ones: give recordings of them (corpus.spoken, or the column path)"
            yield Finding("queries", False, text)
        else:
            yield Finding("queries", bool(lengths or texts), text)
        yield from rejection_finding("queries", bad, table.num_rows, "examples")
        notices = Notices(force=True)
        note_query_lengths(lengths, max(self._seconds.values(), default=0.0), str(self._corpus.queries), notices)
        yield from _notice_findings("queries", notices)

    def _cohort(self) -> Iterator[Finding]:
        table = self._inputs.corpus.cohort
        ids = set(table["query_id"].to_pylist())
        yield Finding(
            "cohort", True, f"{len(ids)} queries, {table.num_rows} examples; they are searched, and never scored"
        )

    def _references(self) -> Iterator[Finding]:
        table, notices = self._inputs.corpus.references, Notices(force=True)
        assert table is not None
        if table.num_rows:
            check_scorable(self._inputs.corpus.documents, self._corpus.documents, table, self._inputs.folds)
        reference_seconds = seconds_of(self._inputs.corpus.documents, table["doc_id"])
        rest = {key: seconds for key, seconds in self._seconds.items() if key not in reference_seconds}
        if self._inputs.corpus.tabled and not self._inputs.corpus.placed:
            note_late_references(table, rest, str(self._corpus.references), self._storage, notices)
        query_ids = set(self._inputs.corpus.queries["query_id"].to_pylist())
        never = query_ids - set(table["query_id"].to_pylist())
        text = f"{table.num_rows} true occurrences of {len(query_ids) - len(never)} queries"
        text += f"; {len(never)} queries have none, the first: {min(never)}" if never else ""
        yield Finding("references", True, text)
        yield from _notice_findings("references", notices)
        yield from more_than_trials("references", self.listed, self.trials)

    @property
    def trials(self) -> int | None:
        """N, trials of a query, if trials are of time and something is searched."""
        rules, seconds = protocol_of(self._inputs.config.score), sum(self._seconds.values())
        return number_of_trials(rules, seconds) if rules.trials == "time" and round(seconds) else None

    @property
    def listed(self) -> int:
        """The most detections that a query may have, of a single example."""
        config = self._inputs.config
        candidates = sum(map(config.search.candidates.count, self._seconds.values()))
        return min(candidates, config.reduce.nbest.count(sum(self._seconds.values())))

    def _features(self) -> Iterator[Finding]:
        features = self._inputs.features
        unfitted = {item.place[0] for item in features.fitted if not features.has_model(item)}
        for k, source in enumerate(features.sources):
            for track in source.tracks:
                width = track.stop - track.first
                shift = 1000 * frame_shift(source.extractor)
                kind = kind_of(source.extractor)
                text = f"{track.name}: {width} {kind} each {shift:g} ms ({', '.join(columns_of(source.extractor)[:3])}, ...)"
                yield Finding("features", True, text)
            if isinstance(source.extractor, Precomputed):
                readable = source.extractor
                if k in unfitted and isinstance(readable, TransformedPrecomputed):
                    readable = readable.inner  # what the transforms are fitted to
                yield from self._precomputed(source, readable)
            elif k not in unfitted:  # a second of noise
                noise = np.random.default_rng(0).normal(0, 0.01, source.extractor.sample_rate).astype(np.float32)
                for _ in in_blocks(for_speaker(source.extractor, None), [noise]):
                    pass

    def _precomputed(self, source: Source, extractor: Precomputed) -> Iterator[Finding]:
        """Count documents with frames, and read those of the first."""
        query_ids = {"documents": list(self._inputs.corpus_documents.values())}
        if self._corpus.queries is not None:
            query_ids["examples of queries"] = self._inputs.examples
        for word, rows in query_ids.items():
            lacking = [row for row in rows if row["items"][source.fingerprint] is None]
            text = f"{source.tracks[0].name}: frames of {len(rows) - len(lacking)} of {len(rows)} {word}"
            text += f"; the first without: {lacking[0]['key']}" if lacking else ""
            none = bool(rows) and len(lacking) == len(rows)
            if none:
                keys = list(islice(extractor.items(word != "documents", self._storage), _KEYS))
                text += f"; there are frames of the keys {', '.join(keys)}, ..." if keys else "; there are none at all"
            yield Finding("features", False if none else None if lacking else True, text)
        for row in query_ids["documents"]:
            if row["items"][source.fingerprint] is not None:
                for _ in precomputed_frames(row_for(source, row), extractor, Folder(".", self._storage)):
                    pass
                return

    def _store(self) -> Iterator[Finding]:
        state = self._inputs.store.load()
        manifest = self._inputs.store.manifest
        if manifest is None:
            text = f"{self._inputs.store.folder.path()}: there is none yet"
        else:
            documents = self._inputs.corpus_documents
            reference_seconds, same = compare(documents, state, dict(self._inputs.features.recipes))
            new, changed = int((~reference_seconds).sum()), int((reference_seconds & ~same).sum())
            gone = int((places_in(state.keys, documents.keys_) < 0).sum())
            text = f"{self._inputs.store.folder.path()}: {manifest.counts['documents']:.0f} documents; "
            text += f"the corpus has {new} new, {changed} changed, {gone} gone"
        yield Finding("store", True, text)

    def _calibration(self) -> Iterator[Finding]:
        settings = self._inputs.config.calibrate
        for check in document_checks(self._inputs.config):
            check(self._inputs.corpus.documents)
        if settings.fit in ("none", "crossfit", "oracle"):
            return
        data = calibration_file(settings.fit, self._storage)
        note_provenance(data, settings.fit, self._inputs.config, self._inputs, self._inputs.notices)
        yield Finding("calibration", True, settings.fit)

    def _search(self) -> Iterator[Finding]:
        config = self._inputs.config
        if config.corpus.queries is not None or not is_chain(CHAINS, config.chain, "searches"):
            self._inputs.demand_searchable()
        yield from ()

    def _run(self) -> Iterator[Finding]:
        root = self._inputs.config.run
        if is_remote(root):
            return
        place = Path(root)
        while not place.exists():
            place = place.parent
        writable = place.is_dir() and os.access(place, os.W_OK)
        yield Finding("run", writable, root if writable else f"{root}: {place} cannot be written to")


def _notice_findings(name: str, notices: Notices) -> Iterator[Finding]:
    return (Finding(name, False if item.forced else None, str(item)) for item in notices.entries.values())


def rejection_finding(name: str, bad: Sequence[tuple[str, UnusableError]], of: int, what: str) -> Iterator[Finding]:
    """A finding of the rows of a table that cannot be used, if there are any.

    Args:
        name: of the part.
        bad: place and error of each unusable row.
        of: number of rows.
        what: the rows, a plural noun.
    """
    if bad:
        place, error = bad[0]
        first = str(error).replace("\n  remedy:", "; remedy:")
        first = first if place == error.where else f"{place}: {first}"
        good = False if len(bad) == of or (len(bad) > FEW and len(bad) > REJECTED * of) else None
        yield Finding(name, good, f"{len(bad)} of {of} {what} cannot be used and will be rejected; the first: {first}")


def lattice_store_finding(folder: Folder) -> Finding:
    """A finding of the contents of a store of lattices.

    Raises:
        UserError: the folder holds another kind of store.
    """
    manifest = load(folder)
    demand_lattices(folder, manifest)
    documents = "there is none yet" if manifest is None else f"{manifest.counts['documents']:.0f} documents"
    return Finding("store", True, f"{folder.path()}: {documents}")


def assemble(
    config: Config, ledger: Ledger, stages: Sequence[Step | Stage] = (), inputs: SearchInputs | None = None
) -> Chain:
    """A chain that reports on a scored list, of these steps or of others.

    Args:
        config: of the chain.
        ledger: of the run.
        stages: instead of `steps`.
        inputs: instead of `SearchInputs`.

    Raises:
        ConfigError: see `steps`.
    """
    stages, inputs = stages or steps(config), inputs or SearchInputs.of(config, ledger)
    demand_posteriors(inputs, required_statistics(config.calibrate))
    inputs.document_checks.update(document_checks(config))
    inputs.folds.update(folds_of_steps(config.calibrate))
    inputs.files.update(files_of(config))
    return Chain(
        *(config.chain, stages, inputs, publish_report, FILES, notices, rejected_rows, check, summary),
        barrier=barrier,
        counts=counts,
    )
