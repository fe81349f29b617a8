"""The protocol and the data of a run determine its operating point and how its trials are made."""

from __future__ import annotations

import pyarrow as pa

from swsdist.chains.search.inputs.known import SearchInputs
from swsdist.errors import UserError
from swsdist.io.corpora.places import Places, by_document, stored, stretches
from swsdist.io.filesystem import identify
from swsdist.io.nist.speech import read_speech
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Values
from swsdist.score.measures.protocol import OperatingPoint, operating_point, protocol_of
from swsdist.score.trials.making import check_needs, in_every_document, segments_for
from swsdist.store.reading import Store

_COLUMNS = ["doc_id", "channel", "duration", "recording", "start"]


def point_of(inputs: Inputs) -> OperatingPoint:
    """Trials, beta and all else that turns counts into values.

    Raises:
        UserError: the protocol's trials need what is not given, or beta cannot be taken from the data.
    """
    own, settings = inputs.own(SearchInputs), inputs.config.score
    rules = protocol_of(settings)
    check_needs(rules, {"speech": settings.speech is not None, "documents": True}, "score.speech")
    store = own.open_store()
    segments = None
    if rules.trials == "segment":
        speech = read_speech(str(settings.speech), inputs.config.storage)
        found = segments_for(rules, spans_of(store), speech)
        segments = found.num_rows if found is not None else None
    references = own.references
    left_out = left_out_of(inputs)
    true = 0 if references is None else sum(query not in left_out for query in references["query_id"].to_pylist())
    return operating_point(
        rules,
        seconds=own.seconds,
        true=true,
        queries=len(asked_of(inputs)),
        documents=int(store.manifest.counts["documents"]),
        segments=segments,
    )


def asked_of(inputs: Inputs) -> set[str]:
    """Queries whose trials count, whatever was found of them."""
    return set(inputs.own(SearchInputs).queries["query_id"].to_pylist()) - left_out_of(inputs)


def left_out_of(inputs: Inputs) -> set[str]:
    """Queries that cannot be scored: of document trials those that occur in every document, which have no non-targets."""
    own = inputs.own(SearchInputs)
    if protocol_of(inputs.config.score).trials != "document" or own.references is None:
        return set()
    store = own.open_store()
    references = by_document(own.references, places_of(store)) if own.placed else own.references
    return set(in_every_document(references, int(store.manifest.counts["documents"])))


def places_of(store: Store) -> Places:
    """Where the documents of a store lie in recordings."""
    return Places(stored(store.documents(columns=_COLUMNS)))


def placed_store(inputs: Inputs) -> list[str]:
    """Root and state of the store where documents are places in recordings; else nothing."""
    own = inputs.own(SearchInputs)
    return [own.store.root, own.open_store().manifest.fingerprint] if own.placed else []


def spans_of(store: Store) -> pa.Table:
    """What was searched: doc_id, channel, start, duration (s); of places in recordings, by recording."""
    documents = store.documents(columns=_COLUMNS)
    if documents["recording"].null_count == documents.num_rows:
        return documents.select(["doc_id", "channel", "duration"])
    return stretches(documents)


def trial_settings(inputs: Inputs) -> Values:
    """What a task needs to make trials, JSON values; with the identity of what they depend on besides the config."""
    own, settings = inputs.own(SearchInputs), inputs.config.score
    values: Values = {"score": settings.model_dump(mode="json"), "left_out": sorted(left_out_of(inputs))}
    if protocol_of(settings).trials == "segment":
        check_needs(protocol_of(settings), {"speech": settings.speech is not None}, "score.speech")
        try:
            values["speech"] = identify(str(settings.speech), inputs.config.storage)
        except FileNotFoundError:
            raise UserError("there is no such file", where=f"score.speech: {settings.speech}") from None
        values["store"] = [own.store.root, own.open_store().manifest.fingerprint]
    if protocol_of(settings).trials == "document" and own.placed:
        values["store"] = placed_store(inputs)
    return values
