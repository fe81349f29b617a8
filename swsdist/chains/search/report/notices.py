"""A run ends with these warnings, and a part of it with a line on the store."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from swsdist.audio.formats import ffmpeg
from swsdist.calibrate.threshold import undecided
from swsdist.core.codes import chains as codes
from swsdist.io.notices import FEW, MANY, REJECTED, Notices
from swsdist.methods.query import bands
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.task import Values
from swsdist.stages.inputs.corpus_documents import keys_of, places_in
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.inputs.supervision import note_supervision, supervisions
from swsdist.stages.queries import bandwidths_in, seconds_in
from swsdist.stages.task_results import Exported, Fitted, Measured
from swsdist.store.libraries import made_with


def notices(chain_run: ChainRun) -> list[str]:
    """What is odd in the tables, exports left out, queries that cannot be scored, statistics of recordings that are gone."""
    own: CorpusInputs = chain_run.chain.inputs
    own.notices.force = True  # what is implausible has ended the run before, or is wanted
    own.check_tables()
    again = own.check_measured(seconds_in(chain_run))
    note_supervision(own, again)
    _tell_of_bands(chain_run, again)
    settings = chain_run.config.calibrate
    by_speaker = [name for name, entry in settings.entries().items() if "speaker" in entry.columns]
    if by_speaker and not any(own.corpus.documents["speaker"].to_pylist()):
        again.add(
            codes.MISSING_SPEAKERS,
            where=chain_run.config.corpus.documents,
            step=by_speaker[0],
            count=own.corpus.documents.num_rows,
        )
    _tell_of_undecided(chain_run, again)
    doubted = (barrier(chain_run, step, force=True) for step in ("index", "queries") if step in chain_run.outcomes)
    found = [str(notice) for notices in (*doubted, own.notices, again) for notice in notices.found.values()]
    found += [warning for told in chain_run.results("export", Exported) for warning in told.warnings]
    late, store = Notices(), own.store.folder.path()
    references = str(chain_run.config.corpus.references or chain_run.config.corpus.documents)
    for told in chain_run.results("score", Measured):
        measures, count = told.measures, told.point["true"]
        if measures.get("stwv") == 0:
            late.add(codes.ALL_MISSED, where=references, count=count)
        elif measures.get("pooled_maximum") == 1 and measures.get("mtwv") == 1 and count >= MANY:
            late.add(codes.ALL_FOUND, where=references, count=count)
        if told.left_out:
            late.add(codes.UNSCORED_QUERIES, where=told.left_out[0], count=len(told.left_out))
    if labels := sorted({source.file for source in supervisions(own)}):
        late.add(codes.UNCOUNTED_LABEL_COST, where=", ".join(labels), count=len(labels))
    if own.store.manifest is not None:
        here = made_with(own.store.manifest.libraries)
        for name, known in own.store.manifest.libraries.items():
            if name == "ffmpeg" and (program := ffmpeg.program()) is not None:
                here = {**here, name: ffmpeg.version(program)}
            if set(known) != {here.get(name)}:
                stored, installed = ", ".join(known), here.get(name, "none")
                late.add(codes.OTHER_LIBRARY, where=store, library=name, stored=stored, installed=installed)
    if own.store.manifest is not None and not own.from_audio:
        paths = own.store.open().documents(columns=["path"])["path"].to_pylist()
        if 0 < paths.count("") < len(paths):  # where none has one, the export of clips says so
            late.add(codes.SOUNDLESS_DOCUMENTS, where=store, count=paths.count(""), of=len(paths))
    if own.store.manifest is not None and (gone := own.store.manifest.counts["statistics_gone"]):
        late.add(codes.GONE_RECORDINGS, where=store, count=int(gone), store=store)
    return [*found, *(str(notice) for notice in late.found.values())]


def _tell_of_undecided(chain_run: ChainRun, notices: Notices) -> None:
    """ATWV counts all of a query as missed that no threshold decides."""
    own: CorpusInputs = chain_run.chain.inputs
    for told in chain_run.results("fit", Fitted):
        queries = undecided(set(own.corpus.queries["query_id"].to_pylist()), told.thresholds)
        if queries:
            notices.add(codes.UNDECIDED_QUERIES, where=queries[0], count=len(queries))


def _tell_of_bands(chain_run: ChainRun, notices: Notices) -> None:
    own: CorpusInputs = chain_run.chain.inputs
    highest = bands.reach(source.extractor for source in own.features.sources)
    if own.store.manifest is None or not highest:
        return
    documents = own.store.open().documents(columns=["doc_id", "bandwidth"])
    if (found := bands.narrow(documents, highest)) is not None:
        notices.add(codes.NARROW_BAND, where=str(found), count=found.documents)
    if "queries" in chain_run.outcomes:
        of = documents.num_rows
        several = bands.apart(bandwidths_in(chain_run), documents, highest)
        odd = [found for found in several if found.documents > of / 2]
        if odd:
            notices.add(codes.DIFFERENT_BAND, where=str(odd[0]), count=len(odd))


def barrier(chain_run: ChainRun, step: str, *, force: bool) -> Notices:
    """What is implausible of what a step has made: most of the documents, or of the queries, were rejected; times do not fit.

    Args:
        chain_run: of the plan.
        step: that has ended.
        force: note it, and do not raise.

    Raises:
        ImplausibleError: see `swsdist.io.notices`.
    """
    own: CorpusInputs = chain_run.chain.inputs
    found = Notices(force=force)
    if step == "index" and own.store.manifest is not None:
        own.check_measured({}, force=force)
        _weigh_rejected(
            own.store.open().rejected().to_pylist(), own.corpus.documents.num_rows, "documents", chain_run, found
        )
    elif step == "queries" and isinstance(own.corpus.queries, pa.Table):
        rows = [row for receipt in chain_run.receipts("queries") for row in receipt.rejected]
        _weigh_rejected(rows, own.corpus.queries.num_rows, "examples of queries", chain_run, found)
    return found


def _weigh_rejected(rows: Sequence[Values], of: int, what: str, chain_run: ChainRun, notices: Notices) -> None:
    if len(rows) > FEW and REJECTED * of < len(rows) < of:  # of none that can be used there is nothing to search
        first = rows[0]
        notices.doubt(
            codes.MANY_REJECTED,
            where=f"{first['path'] or first['id']}: {first['message']}",
            inputs=what,
            run=chain_run.run.path(),
            count=len(rows),
            of=of,
        )


def summary(chain_run: ChainRun) -> list[str]:
    """What the store holds, what was new to it, and what the user wanted to be left out."""
    own: CorpusInputs = chain_run.chain.inputs
    if own.store.manifest is None:
        return []
    counts = own.store.manifest.counts
    line = f"{own.store.folder.path()}: {counts['documents']:.0f} documents, {counts['seconds'] / 3600:.3f} h of audio"
    if own.store.comparison is not None:
        found, refused = own.store.comparison.counts, own.store.open().rejected()
        fresh = int((places_in(keys_of(refused["id"], refused["part"]), own.store.earlier_keys) < 0).sum())
        line += f"; {max(found.new - fresh, 0)} new, {found.changed} changed, {found.gone} gone"
        line += f", {found.moved} moved" if found.moved else ""
        line += f" ({found.held} renamed or copied: their frames were there)" if found.held else ""
    asked = [str(notice) for notice in own.notices.wanted.values()]
    return [f"{line}, {counts['rejected']:.0f} rejected", *asked]
