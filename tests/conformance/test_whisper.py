"""Whisper recognises real English; hypotheses that differ become variants whose chances are their likelihoods'."""

import csv
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.needs import LEAST
from swsdist.lattices.lattice import Lattice, Word, confusion_network
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.recognition import Recognition
from swsdist.lattices.whisper import (
    RATE,
    Whisper,
    _Hypothesis,
    _loaded,
    _Recording,
    _Window,
    joined_words,
    repeated,
    settled,
    variants,
)
from swsdist.lattices.words import spelled
from swsdist.testing.conformance import check_recogniser
from swsdist.testing.conformance.lattices import check_lattice
from tests.support.coded import raises

SHARED = Path(__file__).parents[2].parent / "shared"
MODEL, SPEECH = SHARED / "models" / "whisper-base" / "ctranslate2-int8", SHARED / "data" / "ljspeech-small"

_there = pytest.mark.skipif(
    not MODEL.is_dir() or importlib.util.find_spec("faster_whisper") is None,
    reason="needs ../shared (models/whisper-base), and faster-whisper: pip install -e '.[whisper]'",
)


def needs_whisper(test: Callable[..., None]) -> Callable[..., None]:
    """Tests with the model take seconds each."""
    return pytest.mark.slow(_there(test))


WORDS = st.sampled_from(["a", "an", "and", "hand", "A"])


def best_of(texts: list[str], chances: list[float]) -> list[Word]:
    return [Word(text, float(k), k + 1.0, chance) for k, (text, chance) in enumerate(zip(texts, chances, strict=False))]


def recognised(samples: NDArray[np.float32], **options: object) -> Lattice:
    recogniser = Recognition(name="whisper", options={"model": str(MODEL), **options}).loaded(LEAST[0])
    return recogniser.lattice("talk", 1, [samples])


def clip(number: int) -> NDArray[np.float32]:
    return np.concatenate(list(read_blocks(str(SPEECH / "audio" / f"LJ001-000{number}.flac"), rate=RATE)))


def texts_of(lattice: Lattice) -> list[str]:
    return [spelled(word.text, "folded") for word in lattice.words or ()]


def test_words_settle_where_they_sound() -> None:
    """A pause is between the words at its ends, and lengths follow letters."""
    rng = np.random.default_rng(0)
    samples = (0.1 * rng.standard_normal(3 * RATE)).astype(np.float32)
    samples[RATE : round(1.4 * RATE)] *= 0.001
    found = settled([Word("abcde", 0.0, 0.4), Word("abcde", 0.4, 1.2), Word("abc", 1.2, 2.5)], samples, RATE)
    assert found[1].end == pytest.approx(1.0, abs=0.02)
    assert found[2].start == pytest.approx(1.4, abs=0.02)
    assert 0.44 < found[0].end < 0.54


@given(
    st.lists(WORDS, min_size=1, max_size=6),
    st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    st.lists(st.tuples(st.floats(1e-6, 1), st.lists(WORDS, max_size=7)), max_size=4),
)
def test_each_hypothesis_is_a_path(
    best: list[str], chances: list[float], others: list[tuple[float, list[str]]]
) -> None:
    places = list(variants(best_of(best, chances), others))
    assert [word.text for place in places for word in place[0].words] == best
    assert all(sum(variant.chance for variant in place) <= 1 + 1e-9 for place in places)
    ends = {()}
    for place in places:
        said = {tuple(spelled(word.text, "folded") for word in variant.words) for variant in place}
        ends = {before + after for before in ends for after in said}
    for _, words in others:
        assert tuple(spelled(word, "folded") for word in words) in ends or not words
    check_lattice(confusion_network("talk", 1, places, 1000 * len(best), ()), "a confusion network")


def test_a_variant_is_as_likely_as_its_hypothesis() -> None:
    best = best_of(["the", "famous", "lawyer"], [1.0, 1.0, 0.6])
    *_, (lawyer, _) = places = list(variants(best, [(0.5, ["the", "famous", "liar"])]))
    assert lawyer.chance * lawyer.words[0].confidence == pytest.approx(0.6)
    packed = pack(confusion_network("talk", 1, places, 3000, ()), Recipe())
    found = {packed.texts[label]: p for label, p in zip(packed.labels, packed.expected(), strict=True) if label}
    assert found == pytest.approx({"the": 1.0, "famous": 1.0, "lawyer": 0.6, "liar": 0.3})


@needs_whisper
def test_it_passes_the_suite() -> None:
    check_recogniser("whisper", clip(2), {"model": str(MODEL)})


@needs_whisper
def test_words_are_found_in_their_sentence() -> None:
    with (SPEECH / "transcripts.tsv").open(encoding="utf-8") as file:
        said = {int(row[0][-1]): row[1].split() for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    wanted, found = 0, 0
    for number in (1, 5, 7):
        lattice = recognised(clip(number))
        heard = set(texts_of(lattice)) | {spelled(label, "folded") for label in lattice.labels}
        words = [text for word in said[number] if len(text := spelled(word, "folded")) >= 4]
        wanted, found = wanted + len(words), found + sum(text in heard for text in words)
        assert lattice.language == "en"
    assert found / wanted >= 0.9


@needs_whisper
def test_silence_and_noise_have_no_words() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 10 * RATE).astype(np.float32)
    assert texts_of(recognised(noise)) == texts_of(recognised(np.zeros(10 * RATE, np.float32))) == []


@needs_whisper
def test_what_is_hardly_said_is_left_out_and_listed() -> None:
    """So is what is said in another language than is given."""
    lattice = recognised(clip(2), least_likely=0.0)
    assert texts_of(lattice) == []
    assert lattice.left_out is not None
    assert lattice.left_out.errors[0].code == codes.UNLIKELY_TEXT.name
    assert "modern" in lattice.left_out.errors[0].message
    (row,) = lattice.left_out.by_reason.values()
    assert row["seconds"] == pytest.approx(lattice.speech_seconds)
    assert 1 < row["seconds"] <= len(clip(2)) / RATE
    lattice = recognised(clip(1), language="sw")
    assert lattice.left_out is not None
    assert (lattice.language, lattice.left_out.errors[0].code) == ("sw", codes.OTHER_LANGUAGE.name)


@needs_whisper
def test_a_time_of_a_word_is_that_of_the_recording() -> None:
    sentence, pause = clip(2), np.zeros(40 * RATE, np.float32)
    first, second = recognised(sentence), recognised(np.concatenate([pause, sentence, pause]))
    assert texts_of(first) == texts_of(second)
    for one, other in zip(first.words or (), second.words or (), strict=True):
        assert math.isclose(other.start - 40, one.start, abs_tol=0.25)


@_there
def test_all_its_languages_may_be_given() -> None:
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    made = {name: Recognition(name="whisper", options={"model": str(MODEL), "language": name}) for name in ("sw", "xx")}
    assert made["sw"].identities()
    with raises(families.UNKNOWN_NAME, language="xx") as caught:
        made["xx"].identities()
    assert {*caught.value.values["languages"].split(", ")} == {*_LANGUAGE_CODES} - {"yue"}  # of large-v3


@needs_whisper
def test_what_the_model_cannot_do_is_refused() -> None:
    for options, code in (
        ({"hotwords": ["antidisestablishmentarianism"] * 40}, families.TOO_LARGE),
        ({"model": "nobody/no-such-model"}, codes.NO_WHISPER_MODEL),
        ({"model": str(MODEL.parent / "encoder")}, families.UNUSABLE_MODEL),
    ):
        with raises(code):
            Recognition(name="whisper", options={"model": str(MODEL), **options}).identities()


def test_parts_of_tokens_are_words() -> None:
    """And punctuation leaves a word its time."""
    for parts, words in (
        (" Sixty| years|,| ago|.", "Sixty|years,|ago."),
        (" je| m|'|appelle", "je|m'appelle"),
        (" ¿|Qué|?", "¿Qué?"),
        ("你|好|,|AI|技|术|。", "你|好,|AI|技|术。"),
        ("น|ี้|ค", "นี้|ค"),
        (" wood|-|cut", "wood-cut"),
        (",| a", ",|a"),
    ):
        timed = [Word(part, float(k), k + 1.0, 0.5) for k, part in enumerate(parts.split("|"))]
        assert "|".join(word.text for word in joined_words(timed, [1] * len(timed))) == words
    assert list(joined_words([], [])) == []
    timed = [Word(" a", 0, 1, 0.8), Word("m", 1, 2, 0.5), Word(".", 2, 3, 0.1)]
    assert list(joined_words(timed, [1, 2, 1])) == [Word("am.", 0, 2, pytest.approx(0.6))]


def test_what_copies_of_a_query_say_is_repeated() -> None:
    said = {
        ("a b", 1): "a b",
        ("a b a b a b", 3): "a b",
        ("a a", 3): "a",
        ("a a a a", 3): "a",
        ("a b a", 3): "",
        ("", 3): "",
    }
    assert {key: " ".join(repeated(key[0].split(), key[1])) for key in said} == said


@needs_whisper
def test_a_spoken_query_has_texts_whose_chances_add_up() -> None:
    recogniser = Recognition(name="whisper", options={"model": str(MODEL), "language": "en"}).loaded(LEAST[0])
    texts = recogniser.texts([clip(5)[round(0.1 * RATE) : round(0.5 * RATE)]])  # "invention"
    assert sum(math.exp(-text.cost) for text in texts) == pytest.approx(1, abs=0.1)
    assert recogniser.texts([np.zeros(RATE, np.float32)]) == []


@needs_whisper
def test_what_is_doubted_is_tried_again_in_halves() -> None:
    """It is cut in the pause between two sentences, not in the quiet at its end."""
    samples = np.concatenate([clip(2), np.zeros(RATE // 4, np.float32), clip(8), np.zeros(RATE, np.float32)])
    cuts: list[int] = []
    recording = _Recording(Whisper(model=str(MODEL), language="en"), _loaded(str(MODEL), "cpu", "int8"))
    window = _Window(samples, [(0, 0)])
    doubted = _Hypothesis([264], -1e9)
    with pytest.MonkeyPatch.context() as patch:
        half = lambda self, first, end: cuts.append(end) or _Window(self.samples[first:end], [(0, 0)])  # noqa: E731
        patch.setattr(_Window, "half", half)
        list(recording._checked(window, None, [doubted], 0.0))
    assert len(clip(2)) - RATE // 4 <= cuts[0] <= len(clip(2)) + RATE // 2
