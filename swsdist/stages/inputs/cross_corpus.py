"""Queries of another corpus: its documents are looked up for them, its speakers are no speakers of ours, and its means and
variances normalise them.

A method takes out of a query what it takes out of the documents that are searched: mean and deviation of the
collection. So a query of another corpus, with mean m and deviation s of its own collection or speaker, is moved there
first: (x - m) / s S + M. What the method then takes out is M and S, and what is left is (x - m) / s.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from swsdist.config import Config
from swsdist.config.corpus import Corpus
from swsdist.config.search import Search
from swsdist.core.types import EXAMPLES, QUERIES
from swsdist.features.statistics import Statistics
from swsdist.registry.registries import METHODS


def corpus_of_queries(config: Config) -> Corpus | None:
    """The corpus of the queries; None if it is the searched one."""
    theirs = config.corpus.queries_from
    if theirs.documents is None:
        return None
    return Corpus(documents=theirs.documents, audio=theirs.audio, prefer=theirs.prefer, speakers=theirs.speakers)


def takes_query_statistics(config: Config) -> bool:
    """Whether statistics of the queries' corpus are wanted: the method takes frames, and of these something is normalised."""
    method = METHODS[config.search.method]
    if (method.queries, method.reads) != ("spoken", "frames"):
        return False
    theirs, terms = config.corpus.queries_from, config.search.terms()
    named = theirs.documents is not None and theirs.statistics == "theirs" and config.corpus.queries is not None
    return named and any(term.normalise != "none" for term in terms)


def speakers_meet(config: Config) -> bool:
    """Whether a query is normalised by the documents of its speaker among those that are searched."""
    theirs = config.corpus.queries_from
    return config.search.queries_by == "speaker" and (theirs.documents is None or theirs.same_speakers)


def speaker_of(name: str | None, config: Config) -> str | None:
    """What a speaker of the queries' corpus is called here: unlike any of ours, unless they are said to be the same."""
    same = name is None or config.corpus.queries_from.same_speakers
    return name if same else f"{name} (of the queries)"


def without_documents(queries: pa.Table, config: Config) -> pa.Table:
    """QUERIES of another corpus: a `doc_id` was looked up there, and means nothing here; and so with speakers."""
    rows = [{**row, "doc_id": None, "speaker": speaker_of(row["speaker"], config)} for row in queries.to_pylist()]
    return pa.Table.from_pylist(rows, QUERIES)


def renormalise(
    examples: pa.Table,
    theirs: Mapping[tuple[str, str], Statistics],
    ours: Statistics,
    search: Search,
) -> pa.Table:
    """EXAMPLES of another corpus, moved from its mean and deviation to those of the collection that is searched.

    Args:
        examples: their speakers are called as in `theirs`.
        theirs: by scope; a query's speaker's are taken where `search.queries_by` says so, and they are there.
        ours: of the collection.
        search: what is taken out of which columns, with tracks in their places.

    Returns:
        EXAMPLES without speakers, so that a method takes the collection's statistics.
    """
    from swsdist.methods.dtw.distance import offset_and_scale  # loads numba

    collection = theirs["collection", ""]
    to, stretch = offset_and_scale(search, ours)
    rows = []
    for row in examples.to_pylist():
        known = collection
        if search.queries_by == "speaker":
            known = theirs.get(("speaker", row["speaker"] or ""), collection)
        offset, scale = offset_and_scale(search, known)
        frames = np.frombuffer(row["features"], "<f4").reshape(-1, len(to)).astype(np.float64)
        frames = (frames - offset) / scale * stretch + to
        rows.append({**row, "speaker": None, "features": frames.astype("<f4").tobytes()})
    return pa.Table.from_pylist(rows, EXAMPLES)
