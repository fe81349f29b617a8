"""A run's operating point and trial settings, from protocol and data."""

from __future__ import annotations

import pyarrow.compute as pc

from swsdist.core.codes import stages as codes
from swsdist.corpora.places import Places, by_document
from swsdist.io.filesystem import identify
from swsdist.io.nist.speech import read_speech
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Values
from swsdist.score.measures.protocol import OperatingPoint, operating_point, protocol_of
from swsdist.score.trials.making import check_needs, in_every_document, segments_for
from swsdist.stages.inputs.population import spans_of
from swsdist.stages.inputs.search_inputs import CorpusInputs


def point_of(inputs: Inputs) -> OperatingPoint:
    """Trials, beta and the other parameters that turn counts into values.

    Raises:
        UserError: the protocol's trials need missing inputs, or beta cannot be taken from the data.
    """
    chain_inputs, settings = inputs.chain_inputs(CorpusInputs), inputs.config.score
    rules = protocol_of(settings)
    check_needs(rules, {"speech": settings.speech is not None, "documents": True}, "score.speech")
    segments = None
    if rules.trials == "segment":
        speech = read_speech(str(settings.speech), inputs.config.storage)
        result = segments_for(rules, spans_of(chain_inputs.population), speech)
        segments = result.num_rows if result is not None else None
    references = chain_inputs.corpus.references
    left_out = unscorable_queries(inputs)
    true = 0 if references is None else sum(query not in left_out for query in references["query_id"].to_pylist())
    return operating_point(
        rules,
        seconds=chain_inputs.seconds,
        true=true,
        queries=len(scored_queries(inputs)),
        documents=chain_inputs.population.num_rows,
        segments=segments,
    )


def scored_queries(inputs: Inputs) -> set[str]:
    """Queries whose trials count, with or without detections."""
    return set(inputs.chain_inputs(CorpusInputs).corpus.queries["query_id"].to_pylist()) - unscorable_queries(inputs)


def unscorable_queries(inputs: Inputs) -> set[str]:
    """Queries that cannot be scored: with document trials those in every document, which have no non-targets."""
    chain_inputs = inputs.chain_inputs(CorpusInputs)
    if protocol_of(inputs.config.score).trials != "document" or chain_inputs.corpus.references is None:
        return set()
    references = chain_inputs.corpus.references
    references = (
        by_document(references, Places(chain_inputs.corpus.documents)) if chain_inputs.corpus.placed else references
    )
    return set(in_every_document(references, chain_inputs.population.num_rows))


def population_for(inputs: Inputs) -> Values:
    """The population in a task's form (`documents.population_at`): the state of the store, and documents not in it."""
    chain_inputs = inputs.chain_inputs(CorpusInputs)
    unread = chain_inputs.population.filter(pc.invert(chain_inputs.population["read"]))
    return {"store": chain_inputs.store.state, "unread": unread.to_pylist()}


def trial_settings(inputs: Inputs) -> Values:
    """Trial settings besides the protocol: excluded queries, speech, and the population; JSON values."""
    chain_inputs, settings = inputs.chain_inputs(CorpusInputs), inputs.config.score
    values: Values = {"left_out": sorted(unscorable_queries(inputs))}
    if protocol_of(settings).trials == "segment":
        check_needs(protocol_of(settings), {"speech": settings.speech is not None}, "score.speech")
        try:
            values["speech"] = identify(str(settings.speech), inputs.config.storage)
        except FileNotFoundError:
            raise codes.NO_SPEECH_FILE(where=f"score.speech: {settings.speech}") from None
        values["population"] = population_for(inputs)
    if protocol_of(settings).trials == "document" and chain_inputs.corpus.placed:
        values["population"] = population_for(inputs)
    return values
