"""Where the queries of a corpus truly occur: a table says so, or their terms are looked up in what was said.

- A table of references: see `swsdist.corpora.references`.
- An RTTM or CTM: the terms are looked up as the scorers do it, by the rules of the config's protocol, which also say what
  becomes of what lies outside of an ECF. A run then scores what `swsdist score` scores with the same lists.
- Kaldi's `text`: a query occurs in the documents in whose text its term stands, as whole words, whatever their case. That tells
  no times, so trials must be documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from swsdist.config import Config
from swsdist.core.codes import stages as codes
from swsdist.core.errors import UserError
from swsdist.core.types import REFERENCES, TERMS
from swsdist.corpora.documents import ENDINGS
from swsdist.corpora.kaldi import read_text
from swsdist.corpora.kinds import kind_of
from swsdist.corpora.places import Places, in_documents, is_placed
from swsdist.corpora.references import read_references
from swsdist.evaluation.eligible import references_within
from swsdist.evaluation.reading import look_up_references
from swsdist.io.nist.ecf import read_ecf
from swsdist.io.nist.termlist import read_termlist
from swsdist.io.notices import Notices, sample
from swsdist.score.measures.protocol import Protocol, protocol_of


class CorpusReferences(NamedTuple):
    """References, and whether they came from a table, whose rows messages name."""

    references: pa.Table
    tabled: bool


def depends_on_score(config: Config) -> bool:
    """Whether references or the seconds that are searched depend on the section `score`: where they are no plain tables.

    What cannot be read counts as a table; it is told of where it is read.
    """
    corpus, storage = config.corpus, config.storage

    def kind(path: str, key: str) -> str:
        try:
            return kind_of(path, key, ENDINGS, storage)
        except UserError:
            return "table"

    if corpus.text is not None or kind(corpus.documents, "documents") == "ECF":
        return True
    return corpus.references is not None and kind(corpus.references, "references") != "table"


def excerpts_of(config: Config) -> pa.Table | None:
    """The ECF that names the documents: EXCERPTS; None where something else does."""
    path, storage = config.corpus.documents, config.storage
    return read_ecf(path, storage) if kind_of(path, "documents", ENDINGS, storage) == "ECF" else None


def find_references(
    config: Config, documents: pa.Table, queries: pa.Table, notices: Notices
) -> CorpusReferences | None:
    """The references of a corpus; None where it tells none.

    Args:
        config: whose corpus, and whose protocol.
        documents: CORPUS or PLACED.
        queries: QUERIES.
        notices: told of what is odd.

    Raises:
        UserError: a file is not there, or is of another kind; or trials are not what the references tell of.
        DataError: a file is broken.
    """
    corpus, storage, rules = config.corpus, config.storage, protocol_of(config.score)
    if corpus.text is not None:
        return CorpusReferences(_from_text(corpus.text, rules, documents, queries, storage, notices), tabled=False)
    path = corpus.references
    if path is None:
        return None
    kind = kind_of(path, "references", ENDINGS, storage)
    if kind == "table":
        found = read_references(path, documents, queries, storage, notices)
        return CorpusReferences(_searched(found, documents, rules, path, notices), tabled=True)
    terms, lowercase = _terms(config, queries, notices)
    rttm, ctm = (path, None) if kind == "RTTM" else (None, path)
    found, first_end, _ = look_up_references(rttm, ctm, terms, rules, rules.rules, lowercase, notices, storage)
    excerpts = excerpts_of(config)
    if excerpts is not None:
        return CorpusReferences(references_within(found, first_end, excerpts, rules, False, notices), tabled=False)
    there = Places(documents).by_recording
    known = [key in there for key in zip(found["doc_id"].to_pylist(), found["channel"].to_pylist(), strict=True)]
    strange = found.filter(pa.array([not one for one in known], pa.bool_()))
    if strange.num_rows:
        first = f"{strange['doc_id'][0]}, channel {strange['channel'][0]}"
        notices.weigh(
            codes.OCCURRENCE_NOT_SEARCHED,
            where=f"{path}: {first}; recordings are {sample(key[0] for key in there)}",
            count=strange.num_rows,
            of=found.num_rows,
            most=1,
        )
    found = found.filter(pa.array(known, pa.bool_()))
    return CorpusReferences(_searched(found, documents, rules, path, notices), tabled=False)


def _terms(config: Config, queries: pa.Table, notices: Notices) -> tuple[pa.Table, bool]:
    """TERMS of the queries, and whether they are compared without regard to case."""
    source, storage = str(config.corpus.queries), config.storage
    if kind_of(source, "queries", ENDINGS, storage) == "term list":
        listed = read_termlist(source, storage, notices=Notices())  # told when the queries were read
        return listed.terms.select(TERMS.names), listed.lowercase
    known = {query_id: " ".join(words) for query_id, words in _words(queries, source, notices).items()}
    return pa.table({"query_id": list(known), "term": list(known.values())}, schema=TERMS), True


def _from_text(
    path: str,
    rules: Protocol,
    documents: pa.Table,
    queries: pa.Table,
    storage: Mapping[str, object],
    notices: Notices,
) -> pa.Table:
    if rules.trials != "document":
        raise codes.TEXT_NEEDS_DOCUMENT_TRIALS(where=f"corpus.text: {path}", protocol=rules.name, trials=rules.trials)
    said = read_text(path, storage)
    terms = {q: [word.lower() for word in words] for q, words in _words(queries, path, notices).items()}
    names = set(documents["doc_id"].to_pylist())
    strange = [name for name in said if name not in names]
    if strange:
        notices.weigh(
            codes.TEXT_OF_UNKNOWN_DOCUMENT,
            where=f"{said[strange[0]][1]}: {strange[0]}; documents are {sample(names)}",
            count=len(strange),
            of=len(said),
            most=1,
        )
    silent = [name for name in names if name not in said]
    if silent:
        notices.add(codes.DOCUMENT_WITHOUT_TEXT, where=f"{path}: {min(silent)}", count=len(silent))
    by_word: dict[str, list[str]] = {}
    for query_id, words in terms.items():
        by_word.setdefault(words[0], []).append(query_id)
    rows = []
    for row in documents.to_pylist():
        words = [word.lower() for word in said.get(row["doc_id"], ([], ""))[0]]
        found: dict[str, None] = {}
        for at, word in enumerate(words):
            for query_id in by_word.get(word, ()):
                if words[at : at + len(terms[query_id])] == terms[query_id]:
                    found[query_id] = None
        start = row.get("start", 0.0)
        place = {
            "doc_id": row.get("recording", row["doc_id"]),
            "channel": row["channel"],
            "start": start,
            "end": row.get("end", row["duration"] or 0.0),
        }
        rows += [{"query_id": query_id, **place} for query_id in found]
    return pa.Table.from_pylist(rows, REFERENCES)


def _words(queries: pa.Table, where: str, notices: Notices) -> dict[str, list[str]]:
    """The words of the first term of each query, of those that have one; of the others it is told."""
    texts: dict[str, str | None] = {}
    for row in queries.select(["query_id", "term"]).to_pylist():
        texts[row["query_id"]] = texts.get(row["query_id"]) or row["term"]
    known = {query_id: term.split() for query_id, term in texts.items() if term and term.split()}
    lacking = [query_id for query_id in texts if query_id not in known]
    if lacking:
        notices.add(codes.QUERY_WITHOUT_TERM, where=f"{where}: {lacking[0]}", count=len(lacking))
    return known


def _searched(references: pa.Table, documents: pa.Table, rules: Protocol, path: str, notices: Notices) -> pa.Table:
    """References without those of document trials that lie between the documents of their recording; these are noted."""
    if not is_placed(documents):
        return references
    inside = in_documents(references, Places(documents))
    if inside.all():
        return references
    first = references.filter(pa.array(~inside)).slice(0, 1).to_pylist()[0]
    left_out = rules.trials == "document"
    notices.weigh(
        codes.REFERENCE_IN_NO_DOCUMENT,
        where=f"{path}: {first['query_id']} in {first['doc_id']}, {first['start']:g} to {first['end']:g} s",
        count=int((~inside).sum()),
        of=references.num_rows,
        then="left out" if left_out else "counted as misses",
    )
    return references.filter(pa.array(inside)) if left_out else references
