"""Writes a corpus of spoken English: the same bytes each time, given the same versions of flite and numpy.

    folder/
      audio/            a WAV file per document, 16 kHz, 16 bits: three sentences by one voice, in white noise
      documents.csv     doc_id, path, duration, speaker
      dev.txt, test.txt doc_ids of the two parts, which share no sentence; half of the time each
      words.ctm         words with the synthesiser's times
      phones.ctm        phones, likewise; they tile the documents
      terms.csv         query_id, text
      terms.tlist.xml   the same as a TLIST
      references.csv    query_id, doc_id, start, end of every occurrence of a term
      corpus.yaml       a corpus file
      README.txt        how it was made, counts

`tools.english.queries` adds spoken queries. Times are seconds, multiples of 1 ms. The noise of a voice is loud enough
that pocketsphinx gets .3 to .5 of the words wrong.
"""

from __future__ import annotations

import hashlib
import math
import wave
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.types import CORPUS, LEXEMES, REFERENCES, TERMS
from swsdist.io.nist.ctm import write_ctm
from swsdist.io.nist.termlist import write_termlist
from swsdist.io.tables import write_csv
from swsdist.score.trials import look_up
from tools.english.grammar import sentences
from tools.english.speech import RATE, VOICES, Span, Voices, voices
from tools.english.terms import choose_terms, phrase_counts

SEED = 1
PARTS = ("dev", "test")
SENTENCES = 3
#: Amplitude of the noise, uniform in plus or minus that, in thousandths of the root mean square of a document.
NOISE = {"kal16": 80, "awb": 50, "rms": 85, "slt": 45}
#: Most seconds between the words of a term (NIST STD 2006).
WORD_GAP = 0.5

CORPUS_FILE = """\
documents: documents.csv
queries: terms.tlist.xml
references: references.csv
alignments:
  words: words.ctm
  phones: phones.ctm
parts:
  development: dev.txt
  test: test.txt
"""


class Document(NamedTuple):
    """A document; times are ms."""

    name: str
    part: str
    voice: str
    length: int
    words: list[Span]
    phones: list[Span]


def make(folder: Path, hours: float, clean: bool = False) -> str:
    """Write the corpus.

    Args:
        folder: new, or empty.
        hours: of speech.
        clean: without noise.

    Returns:
        what README.txt says.
    """
    (folder / "audio").mkdir(parents=True)
    documents = list(_documents(folder, hours, clean))
    words, phones = (_lexemes(documents, kind) for kind in ("words", "phones"))
    spoken = [[word for word, _, _ in document.words] for document in documents]
    texts = choose_terms(spoken, SEED)
    terms = pa.table([[f"E{k:03d}" for k in range(1, len(texts) + 1)], texts], schema=TERMS)
    references = look_up(terms, words, word_gap=WORD_GAP, conventions="kwseval").references
    write_ctm(words, folder / "words.ctm")
    write_ctm(phones, folder / "phones.ctm")
    write_termlist(terms, folder / "terms.tlist.xml", language="english")
    _write(folder / "terms.csv", terms.rename_columns(["query_id", "text"]))
    _write(folder / "references.csv", references.select([name for name in REFERENCES.names if name != "channel"]))
    rows = [(item.name, f"audio/{item.name}.wav", item.length / 1000, item.voice) for item in documents]
    schema = pa.schema([CORPUS.field(name) for name in ("doc_id", "path", "duration", "speaker")])
    _write(folder / "documents.csv", pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema))
    for part in PARTS:
        names = [document.name for document in documents if document.part == part]
        (folder / f"{part}.txt").write_text("\n".join(["doc_id", *names, ""]), encoding="utf-8")
    (folder / "corpus.yaml").write_text(CORPUS_FILE, encoding="utf-8")
    text = _summary(documents, texts, references, hours, clean)
    (folder / "README.txt").write_text(text, encoding="utf-8")
    return text


def digest(*paths: Path) -> str:
    """SHA-256 of all files below folders, of their names and their bytes."""
    total = hashlib.sha256()
    for folder in paths:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            total.update(path.relative_to(folder).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _documents(folder: Path, hours: float, clean: bool) -> Iterator[Document]:
    """Speak and write documents, voice by voice, until each part lasts its half of the time."""
    texts = sentences(SEED)
    with voices() as speakers:
        for part in PARTS:
            length, count = 0, 0
            while length < hours * 3_600_000 / len(PARTS):
                voice = VOICES[count % len(VOICES)]
                count += 1
                name = f"{part}{count:04d}"
                document, samples = _spoken(name, part, voice, [next(texts) for _ in range(SENTENCES)], speakers)
                if not clean:
                    samples = with_noise(samples, NOISE[voice], [SEED, PARTS.index(part), count])
                write_audio(folder / "audio" / f"{name}.wav", samples)
                length += document.length
                yield document


def _spoken(name: str, part: str, voice: str, texts: list[str], speakers: Voices) -> tuple[Document, NDArray[np.int16]]:
    pieces: list[NDArray[np.int16]] = []
    words: list[Span] = []
    phones: list[Span] = []
    begin = 0
    for text in texts:
        speech = speakers.say(text, voice)
        for spans, into in ((speech.words, words), (speech.phones, phones)):
            into += [(item, _ms(begin + first), _ms(begin + end)) for item, first, end in spans]
        pieces.append(speech.samples)
        begin += len(speech.samples)
    return Document(name, part, voice, _ms(begin), words, phones), np.concatenate(pieces)


def with_noise(samples: NDArray[np.int16], level: int, seed: list[int]) -> NDArray[np.int16]:
    """Samples and white noise, uniform in plus or minus `level` thousandths of their root mean square, in integers."""
    wide = samples.astype(np.int64)
    most = level * math.isqrt(int((wide * wide).sum()) // len(wide)) // 1000
    noise = np.random.Generator(np.random.PCG64(seed)).integers(-most, most, len(wide), endpoint=True)
    noisy: NDArray[np.int16] = np.clip(wide + noise, -(2**15), 2**15 - 1).astype(np.int16)
    return noisy


def _ms(sample: int) -> int:
    return (1000 * sample + RATE // 2) // RATE


def _lexemes(documents: list[Document], kind: str) -> pa.Table:
    rows = [
        {"doc_id": item.name, "channel": 1, "start": begin / 1000, "duration": (end - begin) / 1000, "word": name}
        for item in documents
        for name, begin, end in getattr(item, kind)
    ]
    return pa.Table.from_pylist(rows, LEXEMES)


def _write(path: Path, table: pa.Table) -> None:
    write_csv(table, table.schema, path)


def write_audio(path: Path, samples: NDArray[np.int16]) -> None:
    """Write a WAV file of one channel, 16 kHz."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.astype("<i2").tobytes())


def _summary(documents: list[Document], texts: list[str], references: pa.Table, hours: float, clean: bool) -> str:
    spoken = [[word for word, _, _ in document.words] for document in documents]
    counts = phrase_counts(spoken)
    ids = Counter(references["query_id"].to_pylist())
    frequency = Counter(ids.values())
    sizes = Counter(text.count(" ") + 1 for text in texts)
    noise = ", ".join(f"{voice} {level}" for voice, level in NOISE.items())
    lines = [
        "English sentences by flite, with the synthesiser's times of words and phones.",
        "",
        f"seed {SEED}, {hours} hours; noise in thousandths of the signal: {'none' if clean else noise}",
        "",
    ]
    for part in PARTS:
        chosen = [document for document in documents if document.part == part]
        seconds = sum(document.length for document in chosen) / 1000
        number = sum(len(document.words) for document in chosen)
        rows = [row for row in references["doc_id"].to_pylist() if row.startswith(part)]
        present = len({row["query_id"] for row in references.to_pylist() if row["doc_id"].startswith(part)})
        lines.append(
            f"{part}: {len(chosen)} documents, {seconds:.3f} s, {number} words, {present} terms, {len(rows)} references"
        )
    lines += [
        f"vocabulary: {len([text for text in counts if ' ' not in text])} different words",
        f"terms: {len(texts)}; of one, two, three words: {sizes[1]}, {sizes[2]}, {sizes[3]}",
        "",
        "occurrences  terms",
        *(f"{number:11d}  {frequency[number]:5d}" for number in sorted(frequency)),
    ]
    return "\n".join(lines) + "\n"
