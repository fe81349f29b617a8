"""Queries of another corpus: documents are looked up there, its speakers differ from those of the searched corpus, and
its means and variances normalise its queries.

A method normalises a query like the searched documents, by mean and deviation of the collection. So a query of another
corpus, with mean m and deviation s of its own collection or speaker, is first moved there: (x - m) / s S + M. The
method then removes M and S, which leaves (x - m) / s.
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
    section = config.corpus.queries_from
    if section.documents is None:
        return None
    return Corpus(
        documents=section.documents,
        audio=section.audio,
        prefer=section.prefer,
        speakers=section.speakers,
    )


def takes_query_statistics(config: Config) -> bool:
    """Whether statistics of the queries' corpus are needed: the method takes frames, and normalises them by those alone."""
    method = METHODS[config.search.method]
    if (method.queries, method.reads) != ("spoken", "frames"):
        return False
    section, terms = config.corpus.queries_from, config.search.terms()
    named = section.documents is not None and section.statistics == "theirs" and config.corpus.queries is not None
    return named and config.search.queries_by != "pooled" and any(term.normalise != "none" for term in terms)


def speakers_meet(config: Config) -> bool:
    """Whether the searched documents of a query's speaker normalise the query."""
    section = config.corpus.queries_from
    return config.search.queries_by == "speaker" and (section.documents is None or section.same_speakers)


def speaker_of(name: str | None, config: Config) -> str | None:
    """The name here of a speaker of the queries' corpus: distinct from all others, unless speakers are declared the
    same.
    """
    same = name is None or config.corpus.queries_from.same_speakers
    return name if same else f"{name} (of the queries)"


def without_documents(queries: pa.Table, config: Config) -> pa.Table:
    """QUERIES of another corpus without `doc_id` and speakers, which have no meaning in the searched one."""
    rows = [{**row, "doc_id": None, "speaker": speaker_of(row["speaker"], config)} for row in queries.to_pylist()]
    return pa.Table.from_pylist(rows, QUERIES)


def renormalise(
    examples: pa.Table,
    statistics: Mapping[tuple[str, str], Statistics],
    ours: Statistics,
    search: Search,
) -> pa.Table:
    """EXAMPLES of another corpus, moved from its mean and deviation to those of the searched collection.

    Args:
        examples: speakers are named as in `statistics`.
        statistics: by scope; the query's speaker's are used if `search.queries_by` says so, and they exist.
        ours: of the collection.
        search: normalisation of columns, with tracks in their places.

    Returns:
        EXAMPLES without speakers, so that a method uses the collection's statistics.
    """
    from swsdist.methods.dtw.distance import offset_and_scale  # loads numba

    collection = statistics["collection", ""]
    to, stretch = offset_and_scale(search, ours)
    rows = []
    for row in examples.to_pylist():
        source = collection
        if search.queries_by == "speaker":
            source = statistics.get(("speaker", row["speaker"] or ""), collection)
        offset, scale = offset_and_scale(search, source)
        frames = np.frombuffer(row["features"], "<f4").reshape(-1, len(to)).astype(np.float64)
        frames = (frames - offset) / scale * stretch + to
        rows.append({**row, "speaker": None, "features": frames.astype("<f4").tobytes()})
    return pa.Table.from_pylist(rows, EXAMPLES)
