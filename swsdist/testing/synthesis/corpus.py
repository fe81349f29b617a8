"""Writes a folder of synthetic speech with queries and references.

    folder/
      docs.csv       doc_id, path, duration, speaker
      queries.csv    query_id, term, example, path, duration, speaker; each query by two or three voices
      refs.csv       query_id, doc_id, channel, start, end
      audio/         one FLAC file per document: one to three sentences of 4 to 10 words by one voice, with pauses
      queries/       one WAV file per example: the isolated word

Sound is 16 kHz, mono, 16 bits. Times are seconds, multiples of 5 ms, so three decimals are exact. Paths are relative to
the folder. References contain every occurrence of a query's word; no other word contains it.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from swsdist.audio.reader import write_sound
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.testing.synthesis.signal import RATE, STEP, Speech, Voice, draw_voice, draw_words, speak, synthesise

# One random stream per purpose: adding a query does not change the documents' voices.
_LEXICON, _VOICE, _TEXT, _DOCUMENT, _EXAMPLE, _CAST = range(6)

_Row = tuple[str, ...]


def make_corpus(folder: Path, *, seed: int = 0, documents: int = 40, queries: int = 10, voices: int = 5) -> None:
    """Write a corpus of invented words; the default is about five minutes of speech.

    The same arguments give the same bytes, given the same versions of numpy and libsndfile on the same type of CPU.
    Each query's word occurs in at least one document, and in about a fifth of many.

    Args:
        folder: created if absent; files of the same names are replaced.
        seed: of all random choices, at least 0.
        documents: number of documents, at least 2.
        queries: number of queries, at least 1.
        voices: number of speakers, at least 2; they take turns with the documents.

    Raises:
        UserError: an argument is below its least value.
    """
    least_values = {"seed": (seed, 0), "documents": (documents, 2), "queries": (queries, 1), "voices": (voices, 2)}
    for name, (value, least) in least_values.items():
        if value < least:
            raise families.INVALID_VALUE.of(UserError)(
                "{name} is {value}, but must be at least {least}",
                "ask for {name} of {least} or more",
                where="make_corpus",
                name=name,
                value=value,
                least=least,
            )
    rng = np.random.default_rng([seed, _LEXICON])
    terms: list[str] = []
    while len(terms) < queries:
        (word,) = draw_words(rng, 1, syllables=(2, 3), avoid=terms)
        if not any(word in term for term in terms):
            terms.append(word)
    others = draw_words(rng, 3 * queries + 20, syllables=(1, 2, 3), avoid=terms)
    cast = [draw_voice(np.random.default_rng([seed, _VOICE, index]), index) for index in range(voices)]

    (folder / "audio").mkdir(parents=True, exist_ok=True)
    (folder / "queries").mkdir(exist_ok=True)
    docs, refs = _write_documents(folder, seed, documents, terms, others, cast)
    examples = _write_examples(folder, seed, terms, cast)
    _write_table(folder / "docs.csv", ("doc_id", "path", "duration", "speaker"), docs)
    _write_table(folder / "queries.csv", ("query_id", "term", "example", "path", "duration", "speaker"), examples)
    _write_table(folder / "refs.csv", ("query_id", "doc_id", "channel", "start", "end"), sorted(refs))


def _draw_texts(seed: int, documents: int, terms: list[str], others: list[str]) -> list[list[list[str]]]:
    """The sentences of each document. A term occurs in about every fifth document, and in one at least."""
    rng = np.random.default_rng([seed, _TEXT])
    texts = [
        [rng.choice(others, rng.integers(4, 10)).tolist() for _ in range(rng.integers(1, 4))] for _ in range(documents)
    ]
    for term in terms:
        for document in rng.choice(documents, max(1, round(0.2 * documents)), replace=False):
            sentence = min(texts[document], key=len)
            if len(sentence) == 10:
                sentence = rng.choice(others, 3).tolist()
                texts[document].append(sentence)
            sentence.insert(int(rng.integers(len(sentence) + 1)), term)
    return texts


def _write_documents(
    folder: Path, seed: int, documents: int, terms: list[str], others: list[str], cast: list[Voice]
) -> tuple[list[_Row], list[_Row]]:
    """Rows of the tables of documents and of references."""
    docs: list[_Row] = []
    refs: list[_Row] = []
    ids = {term: _query_id(index) for index, term in enumerate(terms)}
    for index, sentences in enumerate(_draw_texts(seed, documents, terms, others)):
        rng = np.random.default_rng([seed, _DOCUMENT, index])
        voice = cast[index % len(cast)]
        words = [word for sentence in sentences for word in sentence]
        sentence_ends = np.cumsum([len(sentence) for sentence in sentences]) - 1
        speech = speak(rng, voice, words, margin=rng.uniform(0.1, 0.4), pauses=set(sentence_ends[:-1].tolist()))
        doc_id, path = f"d{index + 1:03d}", f"audio/d{index + 1:03d}.flac"
        duration = _write_sound(folder / path, rng, voice, speech)
        docs.append((doc_id, path, duration, voice.name))
        refs += [
            (ids[word], doc_id, "1", f"{first * STEP:.3f}", f"{last * STEP:.3f}")
            for word, (first, last) in zip(words, speech.words, strict=True)
            if word in ids
        ]
    return docs, refs


def _write_examples(folder: Path, seed: int, terms: list[str], cast: list[Voice]) -> list[_Row]:
    rows: list[_Row] = []
    for index, term in enumerate(terms):
        rng = np.random.default_rng([seed, _CAST, index])
        speakers = rng.choice(len(cast), min(len(cast), int(rng.integers(2, 4))), replace=False)
        for example, speaker in enumerate(speakers, start=1):
            rng = np.random.default_rng([seed, _EXAMPLE, index, example])
            voice = cast[speaker]
            path = f"queries/{_query_id(index)}_{example}.wav"
            duration = _write_sound(folder / path, rng, voice, speak(rng, voice, [term], margin=0.02, pauses=set()))
            rows.append((_query_id(index), term, str(example), path, duration, voice.name))
    return rows


def _query_id(index: int) -> str:
    return f"q{index + 1:03d}"


def _write_sound(path: Path, rng: np.random.Generator, voice: Voice, speech: Speech) -> str:
    """Write the sound of tracks; returns its duration in s, as in the tables."""
    sound = synthesise(rng, voice, speech.tracks)
    write_sound(path, sound, RATE)
    return f"{sound.size / RATE:.3f}"


def _write_table(path: Path, columns: tuple[str, ...], rows: list[_Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
