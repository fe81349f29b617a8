"""Recognises the corpus with pocketsphinx: lattices of words and of phones, and a transcript.

Each document is recognised by a copy of a new decoder, in a process of its own: a decoder that has seen other documents gives
other lattices, because its cepstral means go on.

Phones are recognised as words: in the dictionary each is a word, and the language model is that of phones which comes with the
package. So there are lattices, which pocketsphinx's own phone search has not.

Source: pocketsphinx 5.1.1, its documentation of `Config` and `Decoder`.
"""

from __future__ import annotations

import multiprocessing
import re
import tempfile
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pocketsphinx

#: Seconds per frame.
FRAME = 0.01
_DROPPED = re.compile(r"^(<.*>|\[.*\]|\+\+.*\+\+)$")

#: What the processes of a pool copy.
_decoder: Any = None


class Recognised(NamedTuple):
    """What a recogniser makes of a document: words with first and last frame and posterior, and CPU seconds."""

    name: str
    words: list[tuple[str, int, int, float]]
    seconds: float


def word_decoder() -> Any:
    """A decoder of the packaged US English."""
    return pocketsphinx.Decoder(pocketsphinx.Config(samprate=16000, loglevel="FATAL"))


def phone_decoder() -> Any:
    """A decoder whose words are the phones of the packaged acoustic model."""
    model = Path(pocketsphinx.get_model_path("en-us"))
    lines = (model / "cmudict-en-us.dict").read_text(encoding="utf-8").splitlines()
    phones = sorted({phone for line in lines for phone in line.split()[1:]})
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "phones.dict"
        words.write_text("".join(f"{phone} {phone}\n" for phone in phones), encoding="ascii")
        config = pocketsphinx.Config(
            samprate=16000,
            loglevel="FATAL",
            dict=str(words),
            lm=str(model / "en-us-phone.lm.bin"),
            lw=2.0,
            fwdflatlw=2.0,
            bestpathlw=2.0,
            wip=0.9,
            # The second pass has beams of its own. By default they are so wide that an hour of lattices takes 2 GB.
            beam=1e-30,
            wbeam=1e-14,
            fwdflatbeam=1e-30,
            fwdflatwbeam=1e-14,
        )
        return pocketsphinx.Decoder(config)


def recognise(
    folder: Path, names: list[str], lattices: Path, decoder: Callable[[], Any], jobs: int
) -> Iterator[Recognised]:
    """Recognise documents, in order; does not depend on `jobs`.

    Args:
        folder: of the corpus.
        names: doc_ids.
        lattices: new folder for an SLF file per document.
        decoder: makes a decoder.
        jobs: processes.

    Raises:
        ValueError: a document has no lattice.
    """
    global _decoder
    lattices.mkdir()
    _decoder = decoder()
    tasks = [(name, folder / "audio" / f"{name}.wav", lattices / f"{name}.slf") for name in names]
    # A forked process has the decoder as it is here, and ends after its document.
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(_recognise, tasks, chunksize=1)


def _recognise(task: tuple[str, Path, Path]) -> Recognised:
    name, audio, lattice = task
    began = time.process_time()
    with wave.open(str(audio), "rb") as stream:
        samples = stream.readframes(stream.getnframes())
    _decoder.start_utt()
    _decoder.process_raw(samples, full_utt=True)
    _decoder.end_utt()
    graph = _decoder.get_lattice()
    if _decoder.hyp() is None or graph is None:
        raise ValueError(f"{audio}: nothing is recognised; make it with less noise")
    # Posteriors of the lattice exist once this was asked for.
    _decoder.get_prob()
    graph.write_htk(str(lattice))
    words = [
        (re.sub(r"\(\d+\)$", "", item.word), item.start_frame, item.end_frame, item.prob)
        for item in _decoder.seg()
        if not _DROPPED.match(item.word)
    ]
    return Recognised(name, words, time.process_time() - began)


def write_transcripts(documents: list[Recognised], out: Path) -> None:
    """Write the words as a CTM with posteriors as confidences."""
    with out.open("w", encoding="utf-8") as text:
        for document in documents:
            for word, first, last, posterior in document.words:
                begin, length = first * FRAME, (last + 1 - first) * FRAME
                text.write(f"{document.name} 1 {begin:.2f} {length:.2f} {word} {min(posterior, 1):.6f}\n")
