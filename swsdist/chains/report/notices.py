"""Warnings at the end of a run, and a summary of its store."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.formats import ffmpeg
from swsdist.calibrate.procedure import queries_without_threshold
from swsdist.core.codes import pipeline as codes
from swsdist.core.codes.score import UNJUDGED_DETECTIONS
from swsdist.io.notices import FEW, MANY, REJECTED, Notices
from swsdist.lattices.terms import WRITTEN
from swsdist.methods.query import speech_trimming
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.task import Values
from swsdist.registry.registries import METHODS
from swsdist.report.data import LeftOutRow
from swsdist.report.summary import heard_rows
from swsdist.stages.align import Align
from swsdist.stages.buckets import Aligned, Exported, Extracted, Fitted, Measured
from swsdist.stages.inputs.corpus_documents import places_in
from swsdist.stages.inputs.provenance import note_supervision, supervisions
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.inputs.state import StoreState
from swsdist.stages.lattice_store import LATTICE_STORE
from swsdist.stages.queries import bandwidths_in, seconds_in
from swsdist.store import manifest as totals
from swsdist.store import parquet
from swsdist.store.lattice_shards import postings_of
from swsdist.store.manifest import made_with
from swsdist.store.reading import keys_of

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
        again.add(
            codes.MISSING_SPEAKERS,
            where=chain_run.config.corpus.documents,
            step=by_speaker[0],
            count=nameless,
        )
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
            late.add(codes.ALL_MISSED, where=references, count=count)
        elif measures.get("pooled_maximum") == 1 and measures.get("mtwv") == 1 and count >= MANY:
            late.add(codes.ALL_FOUND, where=references, count=count)
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
    """What is odd about the store: made with other libraries, without recordings, or with statistics of missing ones."""
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
            late.add(codes.SOUNDLESS_DOCUMENTS, where=store, count=paths.count(""), of=len(paths))
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
        force: note, do not raise.

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
    """The same for each finished step, noted."""
    return [barrier(chain_run, step.name, force=True) for step in chain_run.steps if step.name in chain_run.outcomes]


def makers_of_queries(chain_run: ChainRun) -> list[str]:
    """Names of the steps that make groups of queries, and reject examples."""
    return [step.name for step in chain_run.chain.steps if "groups" in step.stage.tables]


def _weigh_rejected(rows: Sequence[Values], of: int, what: str, chain_run: ChainRun, notices: Notices) -> None:
    rows = [row for row in rows if row["kind"] != "item"]
    if len(rows) > FEW and REJECTED * of < len(rows) < of:  # without any usable input the next step fails
        first = rows[0]
        notices.doubt(
            codes.MANY_REJECTED,
            where=f"{first['path'] or first['id']}: {first['message']}",
            inputs=what,
            run=chain_run.run.path(),
            count=len(rows),
            of=of,
        )


def heard(inputs: CorpusInputs) -> tuple[dict[str, int], tuple[LeftOutRow, ...]]:
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
    lines += [f"{row.name}: {'; '.join(filter(None, row[1:3]))}" for row in heard_rows(*heard(inputs))]
    return [*lines, *(str(notice) for notice in inputs.notices.requested.values())]
