"""Spoken examples of the terms of a corpus, in voices of which few occurrences are; the same bytes each time.

    folder/
      audio_queries/    two WAV files a term, spoken alone, in noise as the documents are
      queries.csv       query_id, example, path, speaker, term
      spoken.yaml       a corpus file with these as queries

An example's voice is the one of fewest occurrences of its term in the documents, the second's that of the second fewest; of
equal ones the first in `VOICES`.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa

from swsdist.core.types import QUERIES
from swsdist.io.tables import write_csv
from tools.english.corpus import CORPUS_FILE, NOISE, SEED, with_noise, write_audio
from tools.english.speech import VOICES, voices

#: Of each term.
EXAMPLES = 2
#: Tells the noise of queries from that of documents, whose parts are 0 and 1.
_PART = 2


def speak_queries(folder: Path, clean: bool = False) -> int:
    """Add the examples to a corpus that is there.

    Args:
        folder: of the corpus.
        clean: without noise.

    Returns:
        number of examples.
    """
    (folder / "audio_queries").mkdir()
    speaker = {row["doc_id"]: row["speaker"] for row in _rows(folder / "documents.csv")}
    spoken_by: dict[str, Counter[str]] = defaultdict(Counter)
    for row in _rows(folder / "references.csv"):
        spoken_by[row["query_id"]][speaker[row["doc_id"]]] += 1
    columns: dict[str, list[object]] = {name: [] for name in ("query_id", "example", "path", "speaker", "term")}
    with voices() as speakers:
        for number, term in enumerate(_rows(folder / "terms.csv")):
            counts = spoken_by[term["query_id"]]
            rare = sorted(VOICES, key=lambda voice: (counts[voice], VOICES.index(voice)))
            for example, voice in enumerate(rare[:EXAMPLES], start=1):
                samples = speakers.say(term["text"], voice).samples
                if not clean:
                    samples = with_noise(samples, NOISE[voice], [SEED, _PART, EXAMPLES * number + example])
                path = f"audio_queries/{term['query_id']}-{example}.wav"
                write_audio(folder / path, samples)
                values = term["query_id"], example, path, voice, term["text"]
                for name, value in zip(columns, values, strict=True):
                    columns[name].append(value)
    schema = pa.schema([QUERIES.field(name) for name in columns])
    write_csv(pa.table(columns, schema=schema), schema, folder / "queries.csv")
    text = CORPUS_FILE.replace("queries: terms.tlist.xml", "queries: queries.csv")
    (folder / "spoken.yaml").write_text(text, encoding="utf-8")
    return len(columns["path"])


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))
