"""A corpus of spoken English, made by a synthesiser, and what a recogniser finds in it.

    python -m tools.english FOLDER [--hours 1.0] [--clean]
    python -m tools.english speak FOLDER [--clean]
    python -m tools.english recognise FOLDER [--jobs 2]

The first writes the corpus (`tools.english.corpus`). The second adds spoken queries to it
(`tools.english.queries`), which the first does too, before it ends. The third writes pocketsphinx's lattices of words
and its transcript to `pocketsphinx/`, and its lattices of phones to `phones/`. The first and the third print a SHA-256 of all
files: made again, it is the same.

They need Debian's `flite1-dev` and `gcc`, and the Python package `pocketsphinx`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import click

from swsdist.core.types import CORPUS
from swsdist.io.nist.ctm import read_ctm
from swsdist.io.tables import read_table
from tools.english.corpus import PARTS, digest, make
from tools.english.errors import word_errors
from tools.english.queries import speak_queries

_folder = click.argument("folder", type=click.Path(path_type=Path))


@click.command()
@_folder
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Hours of speech."
)
@click.option("--clean", is_flag=True, help="Without noise.")
def make_corpus(folder: Path, hours: float, clean: bool) -> None:
    """Make the corpus in a new FOLDER; `recognise FOLDER` then recognises it."""
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty: name a new folder")
    click.echo(make(folder, hours, clean))
    click.echo(f"{speak_queries(folder, clean)} spoken examples of queries")
    click.echo(f"sha256 {digest(folder)}")


@click.command()
@_folder
@click.option("--clean", is_flag=True, help="Without noise.")
def speak(folder: Path, clean: bool) -> None:
    """Add spoken queries to the corpus in FOLDER."""
    if (folder / "audio_queries").exists():
        raise click.UsageError(f"{folder} has spoken queries already: remove {folder / 'audio_queries'}")
    click.echo(f"{speak_queries(folder, clean)} spoken examples of queries")


@click.command()
@_folder
@click.option(
    "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes; the files do not depend on it."
)
def recognise_corpus(folder: Path, jobs: int) -> None:
    """Recognise the corpus in FOLDER with pocketsphinx."""
    from tools.english import recognition

    documents = read_table(str(folder / "documents.csv"), CORPUS, key=("doc_id", "channel")).to_pylist()
    names = [row["doc_id"] for row in documents]
    seconds = sum(row["duration"] for row in documents)
    words, phones = folder / "pocketsphinx", folder / "phones"
    if words.exists() or phones.exists():
        raise click.UsageError(f"{folder} is recognised already: remove {words} and {phones}")
    recognised = list(recognition.recognise(folder, names, words, recognition.word_decoder, jobs))
    recognition.write_transcripts(recognised, words / "words.ctm")
    click.echo(f"words: {sum(item.seconds for item in recognised) / seconds:.3f} CPU seconds a second")
    decoded = recognition.recognise(folder, names, phones, recognition.phone_decoder, jobs)
    click.echo(f"phones: {sum(item.seconds for item in decoded) / seconds:.3f} CPU seconds a second")

    spoken = defaultdict(list)
    for row in read_ctm(str(folder / "words.ctm")).to_pylist():
        spoken[row["doc_id"]].append(row["word"])
    errors = {item.name: word_errors(spoken[item.name], [word for word, *_ in item.words]) for item in recognised}
    groups = {"all": names}
    for part in PARTS:
        groups[part] = [name for name in names if name.startswith(part)]
    for voice in sorted({row["speaker"] for row in documents}):
        groups[voice] = [row["doc_id"] for row in documents if row["speaker"] == voice]
    for group, members in groups.items():
        rate = sum(errors[name] for name in members) / sum(len(spoken[name]) for name in members)
        click.echo(f"word error rate, {group}: {rate:.3f}")
    click.echo(f"sha256 {digest(words, phones)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["recognise"]:
        recognise_corpus(sys.argv[2:], prog_name="python -m tools.english recognise")
    elif sys.argv[1:2] == ["speak"]:
        speak(sys.argv[2:], prog_name="python -m tools.english speak")
    else:
        make_corpus(prog_name="python -m tools.english")
