"""Mode seed gives the numbers of the definitions, whatever the cells, the blocks, and the order of classes and documents."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swsdist.discovery.cells import Block, cells
from swsdist.discovery.measures import evaluated
from swsdist.discovery.results import shuffled
from swsdist.discovery.scene import Scene
from swsdist.discovery.seed import score
from swsdist.discovery.units import Corpus, EvaluationSetup, Fragments, Units
from swsdist.registry.registries import DISCOVERY_MEASURES
from tests.oracles import discovery as oracle
from tests.support.discovered import evaluation as of_lines

MS = 1000
TALKERS = st.sampled_from(["all", "within", "across"])
MEASURES = {name: DISCOVERY_MEASURES[name].load()() for name in DISCOVERY_MEASURES}


@st.composite
def evaluations(draw) -> tuple[Corpus, Fragments]:
    """A few documents of short phones, with gaps and silences; words; classes of stretches anywhere."""
    rows, words = [], []
    documents = draw(st.integers(1, 3))
    for document in range(documents):
        time = 0
        for _ in range(draw(st.integers(1, 9))):
            time += draw(st.sampled_from([0, 0, 0, 0, 40 * MS]))
            end = time + draw(st.sampled_from([20, 50, 60, 100])) * MS
            rows.append((document, time, end, draw(st.sampled_from([0, 0, 1, 1, 2]))))
            time = end
        own = [row for row in rows if row[0] == document]
        for k in range(0, len(own) - 2, 3):
            words.append((document, own[k][1], own[k + 2][2], 0))
    edges = sorted({time for row in rows for time in row[1:3]})
    times = st.sampled_from(edges).flatmap(
        lambda edge: st.sampled_from([0, 10, 25, 29, 30, 31]).map(lambda off: edge + off * MS)
    )
    fragments = draw(
        st.lists(st.tuples(st.integers(0, documents - 1), times, times, st.integers(0, 2)), min_size=0, max_size=9)
    )
    fragments = [(d, *sorted((a, b)), g) for d, a, b, g in fragments if a != b]
    phones = Units(*columns(rows), ("a", "b", "SIL"))
    corpus = Corpus(tuple("xyz"[:documents]), phones, Units(*columns(words), ("w",)), np.array([0, 0, 1])[:documents])
    return corpus, Fragments(*columns(fragments), tuple("123"))


def fragments_of(scene: Scene) -> list[tuple[int, int]]:
    return list(zip(scene.spans.first[scene.span].tolist(), scene.spans.last[scene.span].tolist(), strict=True))


def columns(rows) -> list[np.ndarray]:
    return list(np.array(rows, np.int64).reshape(-1, 4).T)


def by_oracle(corpus: Corpus, classes: Fragments, talkers: str = "all") -> oracle.Scores:
    def stretches(of: Any) -> list[tuple[int, int, int]]:
        return list(zip(of.document.tolist(), of.onset.tolist(), of.offset.tolist(), strict=True))

    names = [corpus.phones.names[s] for s in corpus.phones.symbol]
    phones = [(*one, name) for one, name in zip(stretches(corpus.phones), names, strict=True) if name != "SIL"]
    stretched, words = stretches(classes), stretches(corpus.words)
    groups = [[stretched[k] for k in np.flatnonzero(classes.group == g)] for g in range(len(classes.names))]
    of = corpus.talker
    counts = {
        "all": lambda left, right: True,
        "within": lambda left, right: of[left] == of[right],
        "across": lambda left, right: of[left] != of[right],
    }[talkers]
    return oracle.scores(phones, words, groups, counts)


@settings(max_examples=150)
@given(evaluations(), TALKERS)
def test_values_are_those_of_the_definitions(evaluation, talkers) -> None:
    corpus, classes = evaluation
    scene = Scene.of(corpus, classes)
    expected = by_oracle(corpus, classes, talkers)
    values = evaluated(MEASURES, scene, talkers)
    assert {name: values[name] for name in expected.values} == expected.values
    assert scene.empty == expected.empty


def pairs_in(some) -> list[tuple[int, int]]:
    return [pair for cell in some for pair in zip(cell.first.tolist(), cell.second.tolist(), strict=True)]


@settings(max_examples=60)
@given(evaluations(), st.lists(st.integers(0, 2), min_size=3, max_size=3), TALKERS, st.integers(1, 4))
def test_any_partition_and_any_cells_give_the_same(evaluation, part, talkers, most) -> None:
    scene = Scene.of(*evaluation)
    blocks = [np.array(part) == k for k in range(3)]
    assert evaluated(MEASURES, scene, talkers, blocks) == evaluated(MEASURES, scene, talkers)
    block = Block(scene, "all", np.ones(3, bool))
    small = pairs_in(cells(block, most))
    assert sorted(small) == sorted(pairs_in(cells(block)))
    assert len({*small}) == len(small)
    countings = {name: measure.count(block) for name, measure in MEASURES.items()}
    for cell in cells(block, most):
        for counting in countings.values():
            counting.add(cell)
    values = {name: MEASURES[name].values(counting.parts()) for name, counting in countings.items()}
    assert values == evaluated(MEASURES, scene)


@settings(max_examples=40)
@given(evaluations(), st.permutations([0, 1, 2]), st.permutations([0, 1, 2]))
def test_names_do_not_matter(evaluation, documents, groups) -> None:
    corpus, classes = evaluation
    order = np.array(documents)
    count = len(corpus.documents)
    order = np.argsort(np.argsort(order[:count]))
    talker = np.empty(count, np.int64)
    talker[order] = corpus.talker
    moved = replace(
        corpus,
        phones=replace(corpus.phones, document=order[corpus.phones.document]),
        words=replace(corpus.words, document=order[corpus.words.document]),
        talker=talker,
    )
    renamed = replace(classes, document=order[classes.document], group=np.array(groups)[classes.group])
    here, there = score(corpus, classes, EvaluationSetup()), score(moved, renamed, EvaluationSetup())
    assert [here.get(key) for key in ("all", "within", "across")] == [
        there.get(key) for key in ("all", "within", "across")
    ]


@settings(max_examples=40)
@given(evaluations(), st.integers(0, 100))
def test_repeated_lines_and_jitter_vanish(evaluation, seed) -> None:
    """A fragment moved by less than what a phone or a boundary is decided by, and a line twice, change
    no measure but boundary, which is of times."""
    corpus, classes = evaluation
    draw = np.random.default_rng(seed)
    jitter = draw.integers(-400, 400, (2, len(classes)))
    moved = replace(classes, onset=np.maximum(classes.onset + jitter[0], 0), offset=classes.offset + jitter[1])
    scene = Scene.of(corpus, classes)
    other = Scene.of(corpus, moved)
    assume(scene.empty == other.empty and fragments_of(scene) == fragments_of(other))  # else a time lay at a limit
    twice = moved.take(np.tile(np.arange(len(moved)), 2))
    of_spans = {name: MEASURES[name] for name in MEASURES if not name.startswith("boundary")}
    assert evaluated(of_spans, Scene.of(corpus, twice)) == evaluated(of_spans, scene)


@settings(max_examples=60)
@given(evaluations())
def test_chance_stays_in_the_speech_of_documents(evaluation) -> None:
    """Fragments keep class and length, begin in a phone, and end before their document's speech does, if they fit anywhere."""
    corpus, classes = evaluation
    elsewhere, speech = shuffled(corpus, classes), corpus.speech
    assert np.array_equal(elsewhere.offset - elsewhere.onset, classes.offset - classes.onset)
    assert np.array_equal(elsewhere.group, classes.group)
    for document, onset, offset, *old in zip(
        elsewhere.document, elsewhere.onset, elsewhere.offset, classes.document, classes.onset, strict=True
    ):
        here = speech.take(speech.document == document)
        inside = any(begin <= onset < end for begin, end in zip(here.onset, here.offset, strict=True))
        fits = [speech.offset[speech.document == k].max(initial=0) - (offset - onset) for k in speech.document]
        some = any(begin <= last for begin, last in zip(speech.onset, fits, strict=True))
        assert (inside and offset <= here.offset.max()) if some else [document, onset] == old


def test_pauses_are_no_phones() -> None:
    for name in ("SIL", "sp", "SPN_S", "sil_B", "NSN", "<eps>", "!SIL", "[SIL]", "pau", "h#", "<p:>"):
        lines = ["d 0 0.1 a", f"d 0.1 0.4 {name}", "d 0.4 0.5 p", "d 0.5 0.6 s"]
        corpus, *_ = of_lines(lines, lines[:1], [])
        assert [corpus.phones.names[k] for k in corpus.speech.symbol] == ["a", "p", "s"], name
