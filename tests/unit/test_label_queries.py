"""Queries become labels: what their tasks depend on, and what one of several texts means."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from swsdist.chains.lattices.chain import LabelQueries
from swsdist.chains.lattices.options import LatticesOptions
from swsdist.chains.lattices.recordings import RecognisedSpeech
from swsdist.core.codes import lattices as codes
from swsdist.lattices.packed import Recipe
from swsdist.lattices.recognition import Text
from swsdist.lattices.terms import TermReader, Terms
from tests.support.coded import raises

ROWS = [
    {"query_id": term, "example": 1, "term": term, "path": None, "channel": 1, "start": None, "end": None}
    for term in ("velkran", "école")
]


def planned(known: set[str], **terms: Any) -> tuple[Any, ...]:
    """The key of the only task of two texts, and the labels in its payload."""
    source = SimpleNamespace(known=lambda: frozenset(known), speech=lambda: (None, None), queries=lambda: ROWS)
    chain_inputs = SimpleNamespace(options=LatticesOptions.model_validate({"terms": terms}), source=source)
    inputs: Any = SimpleNamespace(
        chain_inputs=lambda _: chain_inputs,
        config=SimpleNamespace(storage={}, search=SimpleNamespace(method="lattice")),
        made=lambda *_: [],
        task=lambda *key, payload, **_: (key, payload.known),
    )
    (task,) = LabelQueries().plan(inputs)
    return task  # type: ignore[return-value]


def test_texts_stay_where_no_word_like_theirs_comes() -> None:
    known = {"velkren", "l'école", "red"}
    before = planned(known, nearest=8)
    assert before[1] == {"velkren", "l'école"}
    assert planned({*known, "house", "velkran"}, nearest=8) == before
    assert planned({*known, "velkrin"}, nearest=8)[0] != before[0]
    assert planned({*known, "qu'école"}, nearest=8)[0] != before[0]


def labelled(texts: list[Text], dictionary: Path) -> list[tuple[str, float]]:
    dictionary.write_text("red R EH D\n")
    recogniser: Any = SimpleNamespace(loaded=lambda _: SimpleNamespace(rate=16_000, texts=lambda _: texts))
    context: Any = SimpleNamespace(granted=None, storage={})
    reader = TermReader(Terms(units="phones", dictionary=str(dictionary)), Recipe(spelling="exact"))
    example = {"query_id": "q", "example": 1, "path": "q.wav", "channel": 1, "start": None, "end": None}
    rows, _ = RecognisedSpeech(recogniser).labeller(context)(example, reader)
    return [(" ".join(row["labels"]), row["cost"]) for row in rows]


def test_a_text_that_cannot_be_searched_is_left_out(tmp_path: Path) -> None:
    for other in (("zzz",), ()):
        assert labelled([Text(other, 0.1), Text(("red",), 0.5)], tmp_path / "d.txt") == [("R EH D", 0.5)]
    with raises(codes.NO_PRONUNCIATION, word="zzz"):
        labelled([Text(("zzz",)), Text(())], tmp_path / "d.txt")
    with raises(codes.NOTHING_RECOGNISED, where="q.wav"):
        labelled([Text(())], tmp_path / "d.txt")
