"""Spoken queries from written ones, by a speech synthesiser.

A voice is `SYNTHESISER:NAME`, and NAME one that the program lists: `espeak-ng:en-us`, `espeak-ng:en-us+f3` (with a
variant), `flite:slt`. The text goes to the program by its standard input, without a shell: no text is an option, a file
or a command. espeak-ng speaks its phonemes from double brackets: `[[h@l'oU]]`.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile

from swsdist.core.codes import audio as codes
from swsdist.core.codes import families
from swsdist.core.codes.searcher import QUERY_TEXT_NOT_UTF8
from swsdist.core.errors import TermError, UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.text import kept, suggestion
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch

#: Most characters of a text.
LONGEST = 200
#: Seconds that a program may take.
TIMEOUT = 10.0
#: Least peak of a sound; full scale is 1.
_AUDIBLE = 0.01
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
#: Marks of stress, pauses and languages among espeak-ng's phonemes.
_MARKS = re.compile(r"[\s',_:|^-]|\([\w-]+\)")
#: Languages whose letters are syllables: how they are read is their name.
_SYLLABIC = {"cmn", "hak", "ko", "yue"}


class Synthesiser(NamedTuple):
    """A program that speaks.

    Attributes:
        lists: arguments that list voices, one at a time.
        voice_of: has the name of a voice in each match.
        speak: arguments by which it speaks standard input, before the path of a WAV file.
        voice: argument before the name of the voice.
        reads: whether a voice reads a word; words in a script that it does not know are spelled, or left out.
    """

    lists: tuple[str, ...]
    voice_of: re.Pattern[str]
    speak: tuple[str, ...]
    voice: str
    reads: Callable[[str, str], bool]


def _is_spoken_whole(word: str, voice: str) -> bool:
    """Whether the phonemes of a word are others than those of its letters' names."""
    language = re.split("[-+]", voice.rsplit("/", 1)[-1])[0]
    if word.isascii() or word.isupper() or sum(map(str.isalpha, word)) < 2 or language in _SYLLABIC:
        return True
    options = ("--stdin", "-q", "-x", "-b", "1", "-v", voice)
    whole, spelled = (_MARKS.sub("", _run("espeak-ng", *options, text=text).stdout) for text in (word, " ".join(word)))
    return whole != spelled


#: By name, which is the program's.
SYNTHESISERS = {
    "espeak-ng": Synthesiser(
        ("--voices", "--voices=variant"),
        re.compile(r"^ *\d+ +(?:variant|(\S+)) +\S+ +\S+ +(\S+)", re.MULTILINE),
        ("--stdin", "-z", "-b", "1", "-w"),
        "-v",
        _is_spoken_whole,
    ),
    "flite": Synthesiser(
        ("-lv",),
        re.compile(r"(?<= )([\w-]+)(?!\S)"),
        ("-f", "/dev/stdin", "-o"),
        "-voice",
        lambda word, _: word.isascii(),
    ),
}


def speak(text: str, voice: str) -> bytes:
    """A text as a WAV file.

    Raises:
        TermError: it is too long, not UTF-8, in a script that the voice does not read, or has no sound.
        UserError: the program or the voice is not there, or the program fails.
    """
    program, name = demand_voice(voice)
    if not kept(text):
        raise QUERY_TEXT_NOT_UTF8(where=text)
    line = " ".join(_CONTROL.sub(" ", text).split())
    if len(line) > LONGEST:
        raise codes.SPOKEN_TEXT_TOO_LONG(where=f"{line[:40]}...", most=LONGEST)
    synthesiser = SYNTHESISERS[program]
    for word in line.split():
        if not word.startswith("[[") and not synthesiser.reads(word, name):
            raise codes.UNREADABLE_SCRIPT(where=text, word=word, voice=voice)
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        path = Path(place) / "word.wav"
        ended = _run(program, *synthesiser.speak, str(path), synthesiser.voice, name, text=line)
        if ended.returncode != 0:
            ending = f"exit status {ended.returncode}"
            raise codes.SYNTHESISER_FAILED(
                where=text, program=program, ending=ending, stderr=ended.stderr.strip()[-600:]
            )
        sound = path.read_bytes() if path.exists() else b""
    samples = soundfile.read(io.BytesIO(sound))[0] if sound else np.zeros(0)
    if np.abs(samples).max(initial=0.0) < _AUDIBLE:
        raise codes.SOUNDLESS_TEXT(where=text, voice=voice)
    return sound


def spoken_rows(
    rows: Iterable[Mapping[str, Any]],
    voices: Sequence[str],
    folder: Folder,
    skip: Callable[[Mapping[str, Any], TermError], None],
) -> list[dict[str, Any]]:
    """Speak written queries.

    Args:
        rows: of QUERIES.
        voices: each speaks an example of a query.
        folder: for recordings, each named by its text, voice and the synthesiser's version; those that are there stay.
        skip: receives each row that a voice does not speak.

    Returns:
        The rows, recorded ones first, and in place of each written one, whose path is null, those that voices speak.

    Raises:
        UserError: as `speak`.
    """
    rows = list(rows)
    result = [dict(row) for row in rows if row["path"] is not None or not row["term"]]
    numbers: dict[str, int] = {}
    for recorded in result:
        numbers[recorded["query_id"]] = max(numbers.get(recorded["query_id"], 0), recorded["example"])
    present = set(folder.listing())
    versions = {voice: _version(demand_voice(voice)[0]) for voice in voices}
    for row in rows:
        for voice, version in versions.items() if row["path"] is None and row["term"] else ():
            numbers[row["query_id"]] = number = numbers.get(row["query_id"], 0) + 1
            example = {**row, "example": number, "channel": 1}
            name = f"{fingerprint('spoken', version, voice, row['term'])}.wav"
            try:
                if name not in present:
                    folder.write_bytes(name, speak(row["term"], voice))
                    present.add(name)
                result.append({**example, "path": folder.path(name)})
            except TermError as error:
                skip(example, error)
    return result


def demand_voice(voice: str) -> tuple[str, str]:
    """Program and name of a voice.

    Raises:
        UserError: there is no such voice, or the program is not there.
    """
    program, _, name = voice.partition(":")
    if program not in SYNTHESISERS:
        choices = ", ".join(SYNTHESISERS)
        raise families.UNKNOWN_NAME(
            "there is no such synthesiser; there are {choices}",
            "write SYNTHESISER:VOICE, as espeak-ng:en-us{near}",
            where=voice,
            choices=choices,
            near=suggestion(program, SYNTHESISERS),
        )
    names = _voices(program)
    base, *variant = name.split("+", 1)
    if base not in names or any(f"!v/{each}" not in names for each in variant):
        listing, near = SYNTHESISERS[program].lists[0], suggestion(base, names)
        raise families.UNKNOWN_NAME(
            "{program} has no voice {name!r}",
            "choose one of `{program} {listing}`{near}",
            where=voice,
            program=program,
            name=name,
            listing=listing,
            near=near,
        )
    return program, name


@lru_cache
def _voices(program: str) -> frozenset[str]:
    """Names of a program's voices; variants begin with `!v/`."""
    synthesiser = SYNTHESISERS[program]
    listed = (synthesiser.voice_of.finditer(_run(program, listing).stdout) for listing in synthesiser.lists)
    return frozenset(name for matches in listed for match in matches for name in match.groups() if name)


@lru_cache
def _version(program: str) -> str:
    """The version of a program: the first number that it prints."""
    found = re.search(r"\d+(\.\d+)+", _run(program, "--version").stdout)
    return found[0] if found else ""


def _run(program: str, *options: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program with a text as its standard input.

    Raises:
        UserError: it is not there, or takes too long.
    """
    path = shutil.which(program)
    if path is None:
        raise families.NOT_INSTALLED.of(UserError)(
            "the program {program} is not installed",
            "install it as a package of the system: apt install {program}",
            where=program,
            program=program,
        )
    try:
        return subprocess.run(
            [path, *options],
            input=text,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        ending = f"more than {TIMEOUT:g} s"
        raise codes.SYNTHESISER_FAILED(where=text or program, program=program, ending=ending, stderr="") from None
