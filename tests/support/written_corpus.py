"""A small corpus for searches by text: what a recogniser wrote of it, written queries, and what was spoken."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

#: Words, and what the recogniser takes each for when it errs.
WORDS = ["red", "green", "blue", "one", "two", "three", "house", "river", "stone", "apple", "table", "window"]
QUERIES = {
    f"q{k}": text
    for k, text in enumerate(["red house", "river", "three green", "stone", "Apple!", "blue", "two", "window"], 1)
}
#: Seconds of a word, and of the silence after each fourth.
_WORD, _SILENCE = 0.4, 0.2


class Said:
    """A word that is spoken: its time, the recogniser's first guess and another one, and the probability of the first."""

    def __init__(self, word: str, start: float, guess: str, other: str, confidence: float) -> None:
        self.word, self.start, self.guess, self.other, self.confidence = word, start, guess, other, confidence
        self.end = round(start + _WORD, 2)


def spoken(documents: int = 12, seed: int = 1) -> dict[str, list[Said]]:
    """Documents of 24 words."""
    draw = random.Random(seed)
    result = {}
    for k in range(documents):
        time, words = 0.5, list[Said]()
        for number in range(24):
            word = draw.choice(WORDS)
            other = draw.choice([item for item in WORDS if item != word])
            wrong = draw.random() < 0.2
            confidence = 0.5 if wrong else draw.choice([0.625, 0.75, 0.875])
            guess, other = (other, word) if wrong else (word, other)
            words.append(Said(word, round(time, 2), guess, other, confidence))
            time += _WORD + (_SILENCE if number % 4 == 3 else 0.0)
        result[f"d{k:03}"] = words
    return result


def write_json(path: Path, words: Iterable[Said]) -> None:
    """As Whisper writes it."""
    written = [
        {"word": f" {item.guess.capitalize()},", "start": item.start, "end": item.end, "probability": item.confidence}
        for item in words
    ]
    segment = {"id": 0, "start": 0.0, "end": 60.0, "text": "", "words": written}
    path.write_text(json.dumps({"text": "", "segments": [segment], "language": "en"}))


def compact_text(key: str, words: Sequence[Said]) -> str:
    """A compact lattice as text, with both guesses at each place; words are their places in WORDS, from 1."""
    lines, time, state = [f"{key} "], 0, 0
    for item in words:
        first, last = round(item.start * 100), round(item.end * 100)
        if first > time:
            lines.append(f"{state} {state + 1} 0 0,0,{'_'.join(['1'] * (first - time))}")
            state += 1
        ids = "_".join(["2"] * (last - first))
        for guess, chance in ((item.guess, item.confidence), (item.other, 1 - item.confidence)):
            cost = -math.log(chance)
            lines.append(f"{state} {state + 1} {WORDS.index(guess) + 1} {cost / 2:.6f},{cost * 5:.6f},{ids}")
        time, state = last, state + 1
    lines.append(f"{state} 0,0,{'_'.join(['1'] * 50)}")
    return "\n".join(lines) + "\n\n"


def write_tables(folder: Path, documents: dict[str, list[Said]]) -> dict[str, str]:
    """Queries, references and documents, by their key of a config's section corpus."""
    references = []
    for query_id, text in QUERIES.items():
        words = text.lower().strip("!").split()
        for doc_id, items in documents.items():
            for k in range(len(items) - len(words) + 1):
                if [item.word for item in items[k : k + len(words)]] == words:
                    references.append([query_id, doc_id, items[k].start, items[k + len(words) - 1].end])
    tables: dict[str, tuple[str, list[list[object]]]] = {
        "queries": ("query_id text", [list(item) for item in QUERIES.items()]),
        "references": ("query_id doc_id start end", references),
        "documents": ("doc_id duration", [[doc_id, items[-1].end + 0.5] for doc_id, items in documents.items()]),
    }
    for name, (header, rows) in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header.split(), *rows])
    return {name: str(folder / f"{name}.csv") for name in tables}


def write_words(path: Path) -> None:
    """Kaldi's words.txt."""
    path.write_text("<eps> 0\n" + "".join(f"{word} {number}\n" for number, word in enumerate(WORDS, 1)))


def make(folder: Path) -> dict[str, str]:
    """Transcripts in `json/`, lattices in `kaldi/`, words.txt; and the tables, by their key."""
    documents = spoken()
    for name in ("json", "kaldi"):
        (folder / name).mkdir(parents=True)
    for doc_id, words in documents.items():
        write_json(folder / "json" / f"{doc_id}.json", words)
        (folder / "kaldi" / f"lat.{doc_id}").write_text(compact_text(doc_id, words))
    write_words(folder / "words.txt")
    return write_tables(folder, documents)
