"""The data of a run's report, from receipts and journals; notices and checks of finished steps."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.accounts.hardware import versions
from swsdist.accounts.records import records
from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import PAGE_RATE, data_uri, probe, read_clip
from swsdist.calibrate.procedure import queries_without_threshold
from swsdist.config import dump_config, without_secrets
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.codes.score import UNJUDGED_DETECTIONS
from swsdist.core.errors import AudioError
from swsdist.core.types import DETECTIONS, REJECTED
from swsdist.io.notices import FEW, MANY, Notices
from swsdist.io.notices import REJECTED as REJECTED_SHARE
from swsdist.lattices.terms import WRITTEN
from swsdist.methods.query import speech_trimming
from swsdist.pipeline.chain_run import ChainRun, Outcome
from swsdist.pipeline.status import digests, of_all_keys, unlabelled
from swsdist.pipeline.task import Receipt, Values
from swsdist.registry.entries import Dependency, decision_dependencies
from swsdist.registry.registries import METHODS
from swsdist.report import data
from swsdist.report.costs import GB, Costs, by_type
from swsdist.report.data import Hit, LeftOutRow
from swsdist.report.summary import heard_rows
from swsdist.score.compare.bootstrap import bootstrap_terms
from swsdist.score.compare.paired import Settings
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages import export
from swsdist.stages.buckets import Aligned, Bucket, Exported, Extracted, Fitted, Measured, Searched, Summarised
from swsdist.stages.export import edges_of
from swsdist.stages.inputs.corpus import takes_query_statistics
from swsdist.stages.inputs.corpus_documents import places_in
from swsdist.stages.inputs.provenance import note_supervision, supervisions
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.inputs.state import StoreState
from swsdist.stages.lattice_store import LATTICE_STORE
from swsdist.stages.queries import Summed, bandwidths_in, seconds_in
from swsdist.stages.score import Align
from swsdist.store import manifest as totals
from swsdist.store import parquet
from swsdist.store.lattice_shards import postings_of
from swsdist.store.manifest import made_with
from swsdist.store.reading import combined, keys_of

#: Growth of a store, in documents, from which what was fitted to its first ones is doubtful.
_OUTGROWN = 10


def notices(chain_run: ChainRun) -> list[str]:
    """All warnings: suspicious tables, omitted exports, queries that cannot be scored, statistics of missing recordings."""
    inputs: CorpusInputs = chain_run.chain.inputs
    inputs.notices.force = True  # implausible inputs ended the run before, or were forced
    inputs.check_tables()
    again = inputs.check_measured(seconds_in(chain_run))
    note_supervision(inputs, again)
    _note_bands(chain_run, again)
    settings = chain_run.config.calibrate
    by_speaker = [name for name, entry in settings.entries().items() if "speaker" in entry.columns]
    if by_speaker and (nameless := inputs.corpus.documents["speaker"].null_count):
        again.add(codes.MISSING_SPEAKERS, where=chain_run.config.corpus.documents, step=by_speaker[0], count=nameless)
    _note_undecided(chain_run, again)
    _note_absent_terms(chain_run, again)
    if unsearched := sum(result.unsearched for result in chain_run.results("groups", Extracted)):
        queries, least = str(chain_run.config.corpus.queries), chain_run.config.search.least_query_frames
        again.add(codes.UNSEARCHED_EXAMPLES, where=queries, count=unsearched, least=least)
    results = [
        str(notice) for notices in (*doubts(chain_run), inputs.notices, again) for notice in notices.entries.values()
    ]
    results += [warning for result in chain_run.results("exports", Exported) for warning in result.warnings]
    late = Notices()
    if inputs.corpus.has_read("references") and inputs.corpus.judged is not None:
        _note_unjudged(chain_run, late)
    references = str(chain_run.config.corpus.references or chain_run.config.corpus.documents)
    for result in chain_run.results("measures", Measured):
        measures, count = result.measures, result.point["true"]
        if measures.get("stwv") == 0:
            late.add(
                families.ALL_MISSED.saying(
                    "{count} of {count} true occurrences missed",
                    "compare names, channels and times of references and documents",
                ),
                where=references,
                count=count,
            )
        elif measures.get("pooled_maximum") == 1 and measures.get("mtwv") == 1 and count >= MANY:
            late.add(
                families.ALL_FOUND.saying(
                    "{count} of {count} true occurrences found, and no false alarm",
                    "check that the queries are not cut from the documents",
                ),
                where=references,
                count=count,
            )
        if result.left_out:
            late.add(codes.UNSCORED_QUERIES, where=result.left_out[0], count=len(result.left_out))
    if labels := sorted({source.file for source in supervisions(inputs)}):
        late.add(codes.UNCOUNTED_LABEL_COST, where=", ".join(labels), count=len(labels))
    return [*results, *(str(notice) for notice in (*late.entries.values(), *note_store(inputs).entries.values()))]


def _note_unjudged(chain_run: ChainRun, notices: Notices) -> None:
    """Note detections that are not scored because nobody judged their places."""
    for step in chain_run.chain.steps:
        if isinstance(step.stage, Align) and (results := chain_run.receipts(step.name).results(Aligned)):
            count, of = sum(result.unjudged for result in results), sum(result.detections for result in results)
            notices.add(UNJUDGED_DETECTIONS, where=str(chain_run.config.corpus.references), count=count, of=of)
            return


def note_store(inputs: CorpusInputs) -> Notices:
    """Notices of the store: made with other libraries, without recordings, or with statistics of missing ones."""
    late, store = Notices(), inputs.store.folder.path()
    if inputs.store.manifest is not None:
        libraries_here = made_with(inputs.store.manifest.libraries)
        for name, versions in inputs.store.manifest.libraries.items():
            if name == "ffmpeg" and (program := ffmpeg.program()) is not None:
                libraries_here = {**libraries_here, name: ffmpeg.version(program)}
            if set(versions) != {libraries_here.get(name)}:
                stored, installed = ", ".join(versions), libraries_here.get(name, "none")
                late.add(codes.OTHER_LIBRARY, where=store, library=name, stored=stored, installed=installed)
    if inputs.store.manifest is not None and not inputs.from_audio:
        paths = inputs.store.open().documents(columns=["path"])["path"].to_pylist()
        if 0 < paths.count("") < len(paths):  # where none has one, the export of clips says so
            late.add(
                families.NO_SOUND.saying("{count} of {of} documents without a recording: their hits have no sound"),
                where=store,
                count=paths.count(""),
                of=len(paths),
            )
    if inputs.store.manifest is not None and (gone := inputs.store.manifest.counts["statistics_gone"]):
        late.add(codes.GONE_RECORDINGS, where=store, count=int(gone), store=store)
    _note_outgrown(inputs.store, late)
    return late


def _note_outgrown(store: StoreState, notices: Notices) -> None:
    """Note a store that has outgrown the models of its features; where it has none, its statistics."""
    if (manifest := store.manifest) is None or manifest.kind != "frames":
        return
    documents = int(manifest.counts["documents"])
    fitted = parquet.read(
        store.folder, manifest.models[f"statistics.{manifest.tracks[0].name}"], ["scope", "taken_from"]
    )
    counts = pc.list_value_length(fitted["taken_from"]).filter(pc.equal(fitted["scope"], "collection"))
    first = int(manifest.counts.get("fitted_to", 0) if manifest.fitted else 0) or (
        counts[0].as_py() if len(counts) else documents
    )
    if documents >= _OUTGROWN * first:
        refit = f"`swsdist store refit {quote(store.folder.path())}` estimates means, variances and voices anew"
        if manifest.fitted:
            refit = "the same command with --from fit-transforms fits all models anew, and indexes all again"
        notices.add(codes.OUTGROWN_MODELS, where=store.folder.path(), documents=documents, first=first, refit=refit)


def _note_undecided(chain_run: ChainRun, notices: Notices) -> None:
    """Note queries without a threshold, whose occurrences ATWV counts as missed."""
    inputs: CorpusInputs = chain_run.chain.inputs
    for result in chain_run.results("calibration", Fitted):
        queries = queries_without_threshold(set(inputs.corpus.queries["query_id"].to_pylist()), result.thresholds)
        if queries:
            notices.add(codes.UNDECIDED_QUERIES, where=queries[0], count=len(queries))


def _note_absent_terms(chain_run: ChainRun, notices: Notices) -> None:
    """Note written queries, and spoken ones of recognised words, each of whose alternatives has a label of no document."""
    inputs: CorpusInputs = chain_run.chain.inputs
    method = METHODS[chain_run.config.search.method]
    if (method.queries, method.reads) != ("text", LATTICE_STORE) or chain_run.ended("candidates") is None:
        return
    tables = [WRITTEN.empty_table(), *chain_run.read("groups")]
    rows, store = pa.concat_tables(tables).to_pylist(), inputs.store.open()
    labels = {label for row in rows for label in row["labels"]}
    files = [shard.files for shard in store.manifest.shards]
    held = {label for item in files for label in postings_of(store.folder, item, labels).numbers}
    lacking: dict[str, list[list[str]]] = {}
    for row in rows:
        globbed = {label for label in row["labels"] if row["patterns"] and ("?" in label or "*" in label)}
        absent = [label for label in row["labels"] if label not in held | globbed]
        lacking.setdefault(row["query_id"], []).append(absent)
    if terms := {query_id: absent[0][0] for query_id, absent in sorted(lacking.items()) if all(absent)}:
        query_id, label = next(iter(terms.items()))
        notices.add(codes.ABSENT_TERMS, where=f"{query_id}: {label}", count=len(terms))


def _note_bands(chain_run: ChainRun, notices: Notices) -> None:
    inputs: CorpusInputs = chain_run.chain.inputs
    if inputs.store.manifest is None:
        return
    if not (highest := speech_trimming.reach(source.extractor for source in inputs.features.sources)):
        return
    documents = inputs.store.open().documents(columns=["doc_id", "bandwidth"])
    if (band := speech_trimming.narrow(documents, highest)) is not None:
        notices.add(codes.NARROW_BAND, where=str(band), count=band.documents)
    if chain_run.ended("groups") is not None:
        of = documents.num_rows
        several = speech_trimming.apart(bandwidths_in(chain_run), documents, highest)
        odd = [results for results in several if results.documents > of / 2]
        if odd:
            notices.add(codes.DIFFERENT_BAND, where=str(odd[0]), count=len(odd))


def barrier(chain_run: ChainRun, step: str, *, force: bool) -> Notices:
    """Check a finished step for implausible results: most documents or queries rejected, or inconsistent times.

    Args:
        chain_run: of the plan.
        step: name of the finished step.
        force: return notices instead of raising.

    Raises:
        ImplausibleError: see `swsdist.io.notices`.
    """
    ended = chain_run.chain.step(step)
    inputs: CorpusInputs = chain_run.chain.inputs_of(ended)
    results = Notices(force=force)
    if ended in chain_run.chain.makers("documents")[:1] and inputs.store.manifest is not None:
        inputs.check_measured({}, force=force)
        _weigh_rejected(
            inputs.store.open().rejected().to_pylist(),
            inputs.corpus.documents.num_rows,
            "documents",
            chain_run,
            results,
        )
    elif ended in chain_run.chain.makers("groups")[-1:] and isinstance(inputs.corpus.queries, pa.Table):
        makers = makers_of_queries(chain_run)
        makers = makers[: makers.index(step) + 1]  # later ones are of a cohort
        rows = [row for name in makers for receipt in chain_run.receipts(name) for row in receipt.rejected]
        _weigh_rejected(rows, inputs.corpus.queries.num_rows, "examples of queries", chain_run, results)
    return results


def doubts(chain_run: ChainRun) -> list[Notices]:
    """Implausible results of each finished step, as notices."""
    return [barrier(chain_run, step.name, force=True) for step in chain_run.steps if step.name in chain_run.outcomes]


def makers_of_queries(chain_run: ChainRun) -> list[str]:
    """Names of the steps that make groups of queries, and reject examples."""
    return [step.name for step in chain_run.chain.steps if "groups" in step.stage.tables]


def _weigh_rejected(rows: Sequence[Values], of: int, what: str, chain_run: ChainRun, notices: Notices) -> None:
    rows = [row for row in rows if row["kind"] != "item"]
    if len(rows) > FEW and REJECTED_SHARE * of < len(rows) < of:  # without any usable input the next step fails
        first = rows[0]
        notices.doubt(
            codes.MANY_REJECTED,
            where=f"{first['path'] or first['id']}: {first['message']}",
            inputs=what,
            run=chain_run.run.path(),
            count=len(rows),
            of=of,
        )


def languages_and_left_out(inputs: CorpusInputs) -> tuple[dict[str, int], tuple[LeftOutRow, ...]]:
    """Documents by the language of their words, and what was left out of these."""
    store = inputs.others.get("words", inputs).store
    if store.manifest is None:
        return {}, ()
    documents = store.open().documents(columns=["language", "left_out"])
    return totals.languages(documents), tuple(LeftOutRow(**row) for row in totals.left_out(documents))


def counts(chain_run: ChainRun) -> dict[str, int]:
    """Numbers of documents in the store and of its rejections; of new, changed, missing, moved and held ones, if it was
    compared with the corpus (`DocumentCounts`)."""
    store = chain_run.chain.inputs.store
    if store.manifest is None:
        return {}
    results = {name: int(store.manifest.counts[name]) for name in ("documents", "rejected")}
    if store.comparison is not None:
        results |= store.comparison.counts._asdict()
        refused = store.open().rejected()
        fresh = int((places_in(keys_of(refused["id"], refused["part"]), store.earlier_keys) < 0).sum())
        results["new"] = max(results["new"] - fresh, 0)
    return results


def summary(chain_run: ChainRun) -> list[str]:
    """The contents of the store, its changes, words in it, and exclusions that the user asked for."""
    inputs: CorpusInputs = chain_run.chain.inputs
    if inputs.store.manifest is None:
        return []
    its = counts(chain_run)
    hours = inputs.store.manifest.counts["seconds"] / 3600
    line = f"{inputs.store.folder.path()}: {its['documents']} documents, {hours:.3f} h of audio"
    if "new" in its:
        line += f"; {its['new']} new, {its['changed']} changed, {its['gone']} gone"
        line += f", {its['moved']} moved or touched" if its["moved"] else ""
        line += f" ({its['held']} renamed or copied: their frames were there)" if its["held"] else ""
    lines = [f"{line}, {its['rejected']} rejected"]
    if (words := inputs.others.get("words")) is not None and words.store.manifest is not None:
        of_words = words.store.manifest.counts
        lines.append(f"words of {of_words['documents']:.0f} documents, {of_words['rejected']:.0f} rejected")
    lines += [f"{row.name}: {'; '.join(filter(None, row[1:3]))}" for row in heard_rows(*languages_and_left_out(inputs))]
    return [*lines, *(str(notice) for notice in inputs.notices.requested.values())]


def scored_rows(
    chain_run: ChainRun,
) -> tuple[tuple[data.QueryRow, ...], data.DetCurve | None, data.ScoreHistogram | None]:
    """The table of queries, the DET curve and the histograms, if available."""
    inputs: CorpusInputs = chain_run.chain.inputs
    terms = inputs.corpus.terms
    durations: dict[str, float] = {}
    for (query_id, _), seconds in seconds_in(chain_run).items():
        durations[query_id] = durations.get(query_id, 0.0) + seconds
    cuts: dict[str, float] = {}
    for group in chain_run.results("groups", Extracted):
        for query_id, _, before, after in group.cuts:
            cuts[query_id] = cuts.get(query_id, 0.0) + before + after
    detections = {
        row["query_id"]: row["detections"]
        for table in chain_run.read("summary", ["query_id", "detections"])
        for row in table.to_pylist()
    }
    rates: dict[str, dict[str, Any]] = {}
    det = scores = None
    for table in chain_run.read("terms"):
        rates.update({row["query_id"]: row for row in table.drop_columns(["best_threshold"]).to_pylist()})
    for curve in chain_run.read("det"):
        det = data.DetCurve(*(curve[column].to_numpy() for column in ("pmiss", "pfa", "threshold")))
        scores = _histogram(chain_run)
    rows = tuple(
        data.QueryRow(
            **{"query_id": query_id, **rates.get(query_id, {})},
            term=terms.get(query_id),
            duration=durations.get(query_id),
            cut=round(cuts[query_id], 3) if query_id in cuts else None,
            detections=detections.get(query_id, 0),
        )
        for query_id in sorted({*terms, *rates})
    )
    return rows, det, scores


def mtwv_interval(chain_run: ChainRun) -> tuple[float, float] | None:
    """Bootstrap interval of MTWV over queries, at a fixed threshold, as of `swsdist compare`."""
    result = chain_run.results("measures", Measured)
    if not result or result[0].measures.get("mtwv") is None:
        return None
    values = {
        row["query_id"]: row["twv"]
        for table in chain_run.read("summary", ["query_id", "twv"])
        for row in table.to_pylist()
        if row["twv"] is not None
    }
    if len(values) < 2:
        return None
    settings = Settings()
    draws = bootstrap_terms(
        np.array([[values[name] for name in sorted(values)]]), resamples=settings.resamples, seed=settings.seed
    )
    return draws.interval(0, level=settings.level, method=settings.method)[:2]


def _histogram(chain_run: ChainRun) -> data.ScoreHistogram | None:
    """Histograms of the scores of target and non-target detections, on common edges."""
    parts = chain_run.results("summary", Summarised)
    if not any(bucket.rows for bucket in chain_run.results("scored", Bucket)):
        return None
    true, false = (np.array([each[k] for each in parts], np.int64).sum(axis=0) for k in (1, 2))
    return data.ScoreHistogram(edges_of(parts[0].range), true, false)


def best_hits(chain_run: ChainRun) -> tuple[Hit, ...]:
    """The best hits, with sound of hit and query."""
    inputs: CorpusInputs = chain_run.chain.inputs
    queries: dict[str, dict[str, Any]] = {}
    if inputs.store.manifest is None:
        return ()
    if chain_run.config.corpus.queries is not None:
        for row in inputs.corpus.queries.to_pylist():
            queries.setdefault(row["query_id"], row)

    @cache
    def said(query_id: str) -> str | None:
        query = queries[query_id]
        return _sound(chain_run, query["path"], query["channel"], query.get("start"), query.get("end"), 0.0)

    hits = []
    for row in export.best_hits(chain_run.read("best"), inputs.store.open(), chain_run.config.report.clips):
        query = queries.get(row["query_id"], {})
        hits.append(
            Hit(
                query_id=row["query_id"],
                term=inputs.corpus.terms[row["query_id"]] if query else None,
                doc_id=row["doc_id"],
                channel=row["channel"],
                start=row["start"],
                end=row["end"],
                score=row["score"],
                verdict=row["verdict"],
                audio=_sound(chain_run, row["path"], row["channel"], row["start"], row["end"], 0.2),
                query_audio=said(row["query_id"]) if query else None,
            )
        )
    return tuple(hits)


def _sound(
    chain_run: ChainRun, path: str | None, channel: int, start: float | None, end: float | None, pad: float
) -> str | None:
    """A data URI; None without a readable recording: the page then shows the hit without sound."""
    if not path:
        return None
    storage = chain_run.config.storage
    try:
        last = probe(path, storage).duration if end is None else end
        return data_uri(read_clip(path, start, last, channel=channel, pad=pad, rate=PAGE_RATE, storage=storage))
    except AudioError:
        return None


#: Tables of the result digest: the last ones, which are quick to read.
FINAL = ("scored", "terms", "measures")


def build_report(outcome: Outcome, chain_run: ChainRun) -> data.ReportData:
    """The report's data for a finished run."""
    inputs: CorpusInputs = chain_run.chain.inputs
    rejected = rejected_rows(chain_run)
    before = _earlier_searches(chain_run)
    all_spent = receipts_by_phase(*before, chain_run)
    accounts = Costs(records(*(item.run for item in (*before, chain_run))), all_spent.all())
    queries, det, scores = scored_rows(chain_run)
    measures = _measures(chain_run)
    # A task that two systems of a fusion did is not a lost attempt.
    separate = [Costs(records(item.run), receipts_by_phase(item).all()) for item in before]
    costs = Costs(records(chain_run.run), receipts_by_phase(chain_run).all()) if before else accounts
    repeated = math.fsum(item.repeated() for item in (*separate, costs))
    resources = _resources(outcome, chain_run, accounts, all_spent, repeated)
    return data.ReportData(
        name=chain_run.run.root.rstrip("/").rpartition("/")[2],
        folder=chain_run.run.root,
        system=chain_run.config.system,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=combined(result_digests(chain_run)),
        config_yaml=dump_config(without_secrets(chain_run.config)),
        versions=versions(),
        resources=resources,
        counts=_counts(chain_run, rejected),
        protocol=_protocol(chain_run),
        measures=measures,
        mtwv_interval=mtwv_interval(chain_run),
        unscored=None if measures is not None else _why_unscored(inputs),
        looked_at=_dependencies(chain_run),
        queries_from=_queries_from(chain_run),
        warnings=tuple(chain_run.notices()),
        stages=_stages(chain_run, all_spent, accounts),
        hardware=tuple(data.NodeType(nodes=len(hosts), **described) for described, hosts in accounts.types().values()),
        nodes=_nodes(accounts),
        accounts=accounts,
        types=by_type(
            accounts,
            _phases(chain_run, all_spent.complete),
            query_s=resources.query_seconds,
            audio_s=resources.audio_seconds,
            weight=resources.pl_lambda,
        ),
        rejected=tuple(data.RejectedRow(**row) for row in rejected.to_pylist()),
        queries=queries,
        det=det,
        scores=scores,
        hits=best_hits(chain_run),
    )


def result_digests(chain_run: ChainRun) -> dict[str, str]:
    """Digests of the tables `FINAL`; that of the list, which is long, from the hashes of its queries if available."""
    if not chain_run.table("summary").parts:
        return digests(chain_run, FINAL)
    listed, *others = FINAL
    hashes: dict[str, str] = {}
    for table in chain_run.read("summary", ["query_id", "sha256"]):
        found = table.filter(pc.is_valid(table["sha256"]))
        hashes.update(zip(*(found[name].to_pylist() for name in ("query_id", "sha256")), strict=True))
    columns = unlabelled(DETECTIONS.empty_table()).column_names
    made = {listed: of_all_keys(columns, hashes)} if chain_run.table(listed).parts else {}
    return {**made, **digests(chain_run, tuple(others))}


def _queries_from(chain_run: ChainRun) -> data.QueriesFrom | None:
    """The other corpus of the queries, if any."""
    source = chain_run.config.corpus.queries_from
    if source.documents is None or chain_run.config.corpus.queries is None:
        return None
    normalised = any(term.normalise != "none" for term in chain_run.config.search.terms())
    taken = chain_run.results("query_statistics", Summed) if takes_query_statistics(chain_run.config) else []
    return data.QueriesFrom(
        documents=source.documents,
        same_speakers=source.same_speakers,
        statistics=source.statistics if normalised else "none",
        taken_from=sum(item.documents for item in taken if item.extractor == 0),
    )


def _nodes(accounts: Costs) -> tuple[data.NodeRow, ...]:
    def gb(peaks: Mapping[str, int], phase: str) -> float | None:
        return peaks[phase] / GB if phase in peaks else None

    return tuple(
        data.NodeRow(
            host=node.host,
            tasks=node.tasks,
            cpu_s=node.cpu_s,
            peak_index_gb=gb(node.peaks, "index"),
            peak_search_gb=gb(node.peaks, "search"),
            gpu_s=node.gpu_s,
            gpu_index_gb=gb(node.gpu_peaks, "index"),
            gpu_search_gb=gb(node.gpu_peaks, "search"),
        )
        for node in accounts.nodes(("index", "search"))
    )


def _earlier_searches(chain_run: ChainRun) -> list[ChainRun]:
    """Other plans whose searches this report includes."""
    inputs: CorpusInputs = chain_run.chain.inputs
    return [search for search in inputs.searches(chain_run) if search is not chain_run]


def rejected_rows(chain_run: ChainRun) -> pa.Table:
    """REJECTED: documents and queries of the present corpus that could not be used, and tasks that failed; each once."""
    tables = [REJECTED.empty_table()]
    rows: list[dict[str, Any]] = []
    for item in (*_earlier_searches(chain_run), chain_run):
        inputs: CorpusInputs = item.chain.inputs
        for each in dict.fromkeys([inputs, inputs.others.get("words", inputs)]):
            if each.store.manifest is not None:
                tables.append(each.store.open().rejected().drop_columns(["identity"]))
        rows += [row for name in makers_of_queries(item) for receipt in item.receipts(name) for row in receipt.rejected]
    rows += [failure.row() for ended in chain_run.outcomes.values() for failure in ended.failures]
    tables.append(pa.Table.from_pylist(rows, REJECTED))
    complete = pa.concat_tables(tables)
    if not _earlier_searches(chain_run) and "words" not in chain_run.chain.inputs.others:
        return complete
    return pa.Table.from_pylist(list({json.dumps(row): row for row in complete.to_pylist()}.values()), REJECTED)


@dataclass(frozen=True)
class ReceiptsByPhase:
    """Receipts of a run by phase. This class defines what ISF and SSF include.

    Attributes:
        index: of products of the documents alone: shards of the store, fitted models, indexes of first passes; of any
            run.
        search: of products for the queries.
        score: of the rest, which no factor includes.
        complete: whether `index` has all receipts; those of other runs' shards may be missing.
    """

    index: list[Receipt]
    search: list[Receipt]
    score: list[Receipt]
    complete: bool

    def all(self) -> list[Receipt]:
        """All receipts."""
        return [*self.index, *self.search, *self.score]


def receipts_by_phase(*chain_runs: ChainRun) -> ReceiptsByPhase:
    """Receipts of some plans; those of a shared store count once."""
    index: dict[str, Receipt] = {}
    rest: dict[str, list[Receipt]] = {"search": [], "score": []}
    complete = True
    for course in chain_runs:
        store = course.chain.makers("documents")[:1]
        for step in (step for step in course.chain.steps if store and step.phase == "index"):
            made = step.stage.makers(course.inputs(step))
            complete = complete and bool(made or step not in store)
            index |= {receipt.fingerprint: receipt for receipt in made}
        for step in (step for step in course.steps if step.phase in rest and step.name in course.outcomes):
            rest[step.phase] += course.outcomes[step.name].receipts
    return ReceiptsByPhase(list(index.values()), rest["search"], rest["score"], complete and bool(index))


def _phases(chain_run: ChainRun, complete: bool) -> dict[str, str]:
    """Phases of all stages, by name; without the index phase if its receipts are incomplete."""
    steps = [step for item in (*_earlier_searches(chain_run), chain_run) for step in item.chain.steps]
    return {step.stage.name: step.phase for step in steps if complete or step.phase != "index"}


def _cpu(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.cost.cpu for receipt in receipts)


def _gpu(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.cost.gpu_s for receipt in receipts)


def _resources(
    outcome: Outcome, chain_run: ChainRun, accounts: Costs, all_spent: ReceiptsByPhase, repeated: float
) -> data.Resources:
    inputs: CorpusInputs = chain_run.chain.inputs
    wall: dict[str, float] = {}
    for step in (step for step in chain_run.steps if step.name in chain_run.outcomes):
        wall[step.phase] = wall.get(step.phase, 0.0) + chain_run.outcomes[step.name].wall
    queries = chain_run.results("groups", Extracted)
    searched = math.fsum(group.seconds for group in queries)
    manifest = inputs.store.manifest
    return data.Resources(
        index_cpu_s=_cpu(all_spent.index) if all_spent.complete else None,
        search_cpu_s=_cpu(all_spent.search),
        score_cpu_s=_cpu(receipts_by_phase(chain_run).score),
        warm_up_cpu_s=accounts.warm_up(),
        repeated_cpu_s=repeated,
        queries=len({query_id for group in queries for query_id in group.query_ids}),
        query_seconds=searched + math.fsum(cut[2] + cut[3] for group in queries for cut in group.cuts),
        searched_query_seconds=searched,
        audio_seconds=float(manifest.counts["seconds"]) if manifest is not None else 0.0,
        pmu_index_gb=accounts.pmu("index"),
        pmu_search_gb=accounts.pmu("search"),
        index_gpu_s=_gpu(all_spent.index),
        search_gpu_s=_gpu(all_spent.search),
        gpu_index_gb=accounts.gpu_peak("index"),
        gpu_search_gb=accounts.gpu_peak("search"),
        wall_s=time.time() - outcome.began,
        phase_wall_s=wall,
        executor_start_s=outcome.executor_start,
        executor_stop_s=outcome.executor_stop,
    )


def _stages(chain_run: ChainRun, all_spent: ReceiptsByPhase, accounts: Costs) -> tuple[data.StageRow, ...]:
    rows, gpu_peaks = [], accounts.gpu_peaks_by_stage()
    for step in (step for step in chain_run.steps if step.name in chain_run.outcomes):
        ended = chain_run.outcomes[step.name]
        receipts_by_file = [item for item in all_spent.index if item.stage == step.stage.name and step.phase == "index"]
        receipts = receipts_by_file or ended.receipts
        tasks = max(ended.tasks, len(receipts))
        rows.append(
            data.StageRow(
                stage=step.name,
                tasks=tasks,
                done=ended.done,
                skipped=tasks - ended.done - len(ended.failures),
                failed=len(ended.failures),
                cpu_s=_cpu(receipts),
                wall_s=ended.wall,
                bytes=sum(receipt.cost.bytes_written for receipt in receipts),
                peak_gb=max((receipt.cost.peak_bytes for receipt in receipts), default=0) / GB or None,
                gpu_s=_gpu(receipts),
                gpu_gb=gpu_peaks.get(step.stage.name),
            )
        )
    return tuple(rows)


def _counts(chain_run: ChainRun, rejected: pa.Table) -> data.Counts:
    inputs: CorpusInputs = chain_run.chain.inputs
    groups = chain_run.results("groups", Extracted)
    counts = inputs.store.manifest.counts if inputs.store.manifest is not None else {}
    searched = chain_run.results("candidates", Searched) if chain_run.chain.makers("candidates") else []
    languages, left_out = languages_and_left_out(inputs)
    return data.Counts(
        documents=int(counts.get("documents", 0)),
        speech=counts["speech_seconds"] / counts["heard_seconds"] if counts.get("heard_seconds") else None,
        languages=languages,
        left_out=left_out,
        queries=len({query_id for group in groups for query_id in group.query_ids}),
        examples=sum(group.examples for group in groups),
        trimmed=sum(len(group.cuts) for group in groups),
        detections=sum(bucket.rows for bucket in chain_run.results("scored", Bucket)),
        references=inputs.corpus.references.num_rows if inputs.corpus.references is not None else None,
        rejected=rejected.num_rows,
        best=sum(task.best for task in searched),
        best_found=sum(task.best_found for task in searched),
    )


def _measured(chain_run: ChainRun) -> Measured | None:
    scored = chain_run.results("measures", Measured)
    return scored[0] if scored else None


def _protocol(chain_run: ChainRun) -> data.Protocol | None:
    measured = _measured(chain_run)
    if measured is None:
        return None
    point, rules = measured.point, protocol_of(chain_run.config.score)
    inputs: CorpusInputs = chain_run.chain.inputs
    return data.Protocol(
        name=rules.name,
        beta=point["beta"],
        tolerance=rules.tolerance if rules.trials == "time" else None,
        trials_are=rules.trials,
        trials_per_second=rules.trials_per_second,
        trials=point["trials"],
        seconds=inputs.seconds,
        conventions=rules.conventions,
    )


def _measures(chain_run: ChainRun) -> data.Measures | None:
    measured = _measured(chain_run)
    if measured is None:
        return None
    values = dict(measured.measures)
    calibration, thresholds = values.pop("calibration"), values.pop("atwv_thresholds")
    return data.Measures.of(values, calibration=calibration, thresholds=thresholds)


def _dependencies(chain_run: ChainRun) -> tuple[Dependency, ...]:
    settings, fitted = chain_run.config.calibrate, chain_run.results("calibration", Fitted)
    how = fitted[0].fit if fitted else "none"
    counts = chain_run.config.corpus.cohort is not None
    return decision_dependencies(
        settings.steps, settings.entries(), fit=how, threshold=settings.threshold, cohort=counts
    )


def _why_unscored(inputs: CorpusInputs) -> str:
    if not inputs.config.corpus.has_references:
        return "no references were given (corpus.references)"
    if inputs.corpus.references is not None and inputs.corpus.references.num_rows == 0:
        return "the table of references has no rows"
    return "scoring was not reached"
