"""`swsdist search`: what may be asked for, and how: channels, documents of the store, tables, several examples, bad queries."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import Command, Ended

from swsdist.core.codes import families
from swsdist.core.codes import searcher as searcher_codes
from tests.support.coded import says

WORD, OTHER, THIRD = (f"corpus/queries/q00{k}_1.wav" for k in (1, 2, 3))


def hits(ended: Ended) -> list[dict[str, str]]:
    """Of `--csv`."""
    return list(csv.DictReader(io.StringIO(ended.out)))


@pytest.fixture
def talk(place: Path, tmp_path: Path) -> Path:
    """A recording with a speaker a channel: silence on the first, a word on the second."""
    samples, rate = soundfile.read(place / WORD)
    soundfile.write(tmp_path / "talk.flac", np.stack([np.zeros_like(samples), samples], 1), rate)
    return tmp_path / "talk.flac"


# -- channels ---------------------------------------------------------------------------------------------------------


def test_a_channel_that_is_named(swsdist: Command, place: Path, talk: Path) -> None:
    """It is the word of one channel; nothing needs to be told."""
    ask = ("search", "run", "--top", "3", "--csv", "--query")
    alone, second = swsdist(*ask, WORD, cwd=place), swsdist(*ask, f"{talk}#2", cwd=place)
    keys = ("doc_id", "start", "end", "score")
    assert [[row[key] for key in keys] for row in hits(second)] == [[row[key] for key in keys] for row in hits(alone)]
    assert "channel" not in second.err
    assert (
        "#3: the recording has no channel 3, only 2 [no-such-channel]"
        in swsdist(*ask, f"{talk}#3", cwd=place, code=3).err
    )
    seconds = soundfile.info(talk).duration
    whole, part = (hits(swsdist(*ask, f"{talk}#2:{start}-{seconds:.3f}", cwd=place))[0] for start in ("0", "0:00.1"))
    assert int(whole["frames"]) > int(part["frames"])


def test_a_channel_that_nobody_named_is_told(swsdist: Command, place: Path, talk: Path) -> None:
    """The first one in which there is speech, also of a place."""
    ask = ("search", "run", "--top", "1", "--query")
    told = swsdist(*ask, talk, cwd=place).err
    said = f"only channel 2 of the 2 channels of {talk} is searched: no speech in channel 1; others: {talk}#1"
    assert said in told
    place_in = f"{talk}:0-{soundfile.info(talk).duration:.3f}"
    assert f"only channel 2 of the 2 channels of {place_in} is searched" in swsdist(*ask, place_in, cwd=place).err
    samples, rate = soundfile.read(talk)
    soundfile.write(talk, samples[:, ::-1], rate)
    assert (
        f"only channel 1 of the 2 channels of {talk} is searched; others: {talk}#2"
        in swsdist(*ask, talk, cwd=place).err
    )


def test_a_file_that_is_called_like_a_channel(swsdist: Command, place: Path, talk: Path) -> None:
    named = talk.with_name("talk.flac#2")
    named.write_bytes((place / WORD).read_bytes())
    ended = swsdist("search", "run", "--top", "1", "--query", named, cwd=place)
    assert "channel" not in ended.err
    assert f"{named}: 1 hits shown" in ended.out


# -- places -----------------------------------------------------------------------------------------------------------


def test_silence_that_is_marked(swsdist: Command, place: Path, talk: Path) -> None:
    told = swsdist("search", "run", "--query", f"{talk}#1:0-0.4", cwd=place, code=3).err
    assert f"{talk}#1:0-0.4: " in told
    assert says(told, families.NO_SPEECH)
    swsdist("search", "run", "--no-trim", "--query", f"{talk}#1:0-0.4", cwd=place)


def test_a_hit_is_a_query(swsdist: Command, place: Path) -> None:
    """As it is printed; a file of that name wins over the document."""
    ask = ("search", "run", "--top", "2", "--query")
    shown = swsdist(*ask, WORD, cwd=place)
    (best,) = (line.split()[-1] for line in shown.out.splitlines() if line.split()[:1] == ["1"])
    again = swsdist(*ask, best, cwd=place)
    (own,) = (line.split()[-1] for line in again.out.splitlines() if line.split()[:1] == ["1"])
    assert own.partition("-")[0] == best.partition("-")[0]
    assert f"hit 1 of {best} is the query itself" in again.err
    name = best.partition(":")[0]
    assert says(swsdist(*ask, "d001#2:0-1", cwd=place, code=2).err, families.UNKNOWN_NAME)
    assert "there is no file d999" in swsdist(*ask, "d999:0-1", cwd=place, code=3).err
    (place / name).write_bytes((place / OTHER).read_bytes())
    try:
        assert "[place-outside]" in swsdist(*ask, f"{name}:50-51", cwd=place, code=3).err
        own = swsdist(*ask, f"{name}:0-0.3", cwd=place)
        assert "is the query itself" not in own.err
    finally:
        (place / name).unlink()


def test_a_hit_on_a_second_channel_is_a_query(swsdist: Command, place: Path, tmp_path: Path) -> None:
    (tmp_path / "audio").mkdir()
    files = sorted((place / "corpus/audio").glob("*.flac"))
    for source, beside in zip(files[:3], files[3:6], strict=True):
        (samples, rate), (other, _) = soundfile.read(source), soundfile.read(beside)
        both = np.zeros((max(len(samples), len(other)), 2))
        both[: len(other), 0], both[: len(samples), 1] = other, samples
        soundfile.write(tmp_path / "audio" / source.name, both, rate)
    (tmp_path / "c.yaml").write_text("run: run\ncorpus: {documents: audio}\nexecutor: {kind: serial}\n")
    swsdist("index", "c.yaml", cwd=tmp_path)
    ask = ("search", "run", "--top", "1", "--query")
    second = f"{files[0].stem}#2:0:00.50-0:01.10"
    ended = swsdist(*ask, second, cwd=tmp_path)
    assert "channel" not in ended.err
    (best,) = (line.split()[-1] for line in ended.out.splitlines() if line.split()[:1] == ["1"])
    assert best.partition("-")[0] == second.partition("-")[0]


# -- tables, and examples of one word -----------------------------------------------------------------------------------


def test_a_table_of_queries(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """As a run reads it: paths relative to it, examples by query, documents by name."""
    (tmp_path / "word.wav").write_bytes((place / WORD).read_bytes())
    rows = ["query_id,path,doc_id,start,end", "mine,word.wav,,,", "other,,d003,0.6,1.2"]
    (tmp_path / "words.csv").write_text("\n".join(rows))
    ask = ("search", "run", "--top", "2", "--csv", "--query")
    found = hits(swsdist(*ask, tmp_path / "words.csv", cwd=place))
    assert [row["query_id"] for row in found] == ["mine"] * 2 + ["other"] * 2
    keys = ("doc_id", "start", "end", "score")
    typed = hits(swsdist(*ask, WORD, "--query", "d003:0.6-1.2", cwd=place))
    assert [[row[key] for key in keys] for row in found] == [[row[key] for key in keys] for row in typed]
    (tmp_path / "words.csv").write_text("query_id,path,start,end\nq,word.wav,3,2\n")
    assert (
        "words.csv, line 2: end 2.0 is not after start 3.0"
        in swsdist(*ask, tmp_path / "words.csv", cwd=place, code=3).err
    )
    (tmp_path / "words.csv").write_text("query_id,path\nq,word.wav\n")
    (tmp_path / "more.csv").write_text("query_id,path\nq,word.wav\n")
    both = (*ask, tmp_path / "words.csv", "--query", tmp_path / "more.csv")
    assert says(swsdist(*both, cwd=place, code=2).err, searcher_codes.DUPLICATE_QUERY_EXAMPLE)


def test_examples_of_one_word(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """As the examples of a table with one query_id; files that are called alike stay queries, and that is told once."""
    files = [tmp_path / f"mubhu_{k}.wav" for k in (1, 2, 3)]
    for file, source in zip(files, (WORD, OTHER, THIRD), strict=True):
        file.write_bytes((place / source).read_bytes())
    given = [part for file in files for part in ("--query", file)]
    ask = ("search", "run", "--top", "4", "--csv")
    apart = swsdist(*ask, *given, cwd=place)
    assert len({row["query_id"] for row in hits(apart)}) == 3
    assert apart.err.count("--word mubhu") == 1
    together = swsdist(*ask, *given, "--word", "mubhu", cwd=place)
    assert "are two queries" not in together.err
    rows = "".join(f"mubhu,{file.name}\n" for file in files)
    (tmp_path / "words.csv").write_text(f"query_id,path\n{rows}")
    assert swsdist(*ask, "--query", tmp_path / "words.csv", cwd=place).out == together.out
    assert {row["query_id"] for row in hits(together)} == {"mubhu"}
    assert len(hits(together)) == 4
    page = tmp_path / "hits.html"
    swsdist("search", "run", "--top", "1", *given, "--word", "mubhu", "--html", page, cwd=place)
    assert page.read_text().count("<audio") == 2
    table = ("--query", tmp_path / "words.csv", "--word", "mubhu")
    assert "[conflicting-options]" in swsdist(*ask, *table, cwd=place, code=2).err
    assert "--word needs --query" in swsdist("search", "config.yaml", "--word", "x", cwd=place, code=2).err


# -- what cannot be searched ------------------------------------------------------------------------------------------


def test_one_bad_query_does_not_end_the_list(swsdist: Command, place: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silent.wav", np.zeros(8000, np.float32), 8000)
    bad = (
        "--query",
        tmp_path / "silent.wav",
        "--query",
        "gone.wav",
        "--query",
        "corpus/queries",
        "--query",
        f"{WORD}:0.1",
    )
    ask = ("search", "run", "--top", "2", "--csv")
    alone = swsdist(*ask, "--query", WORD, cwd=place)
    ended = swsdist(*ask, *bad, "--query", WORD, cwd=place, code=4)
    assert ended.out == alone.out
    assert f"warning: skipped: {tmp_path}/silent.wav: " in ended.err
    last = ended.err[ended.err.index("error: ") :]
    assert "4 of 5 queries skipped" in last
    for one in (
        "silent.wav: the query contains no speech",
        "gone.wav: there is no file gone.wav",
        "the query is a folder",
        "neither a file nor a place",
    ):
        assert one in last
    alone = swsdist(*ask, *bad[:2], cwd=place, code=3).err
    assert alone.startswith(f"error: {tmp_path}/silent.wav: the query contains no speech")
    none = swsdist(*ask, *bad, cwd=place, code=3).err
    assert none.count("warning: skipped") == 4


def test_one_bad_example_of_a_word(swsdist: Command, place: Path) -> None:
    ask = ("search", "run", "--top", "2", "--csv", "--word", "w", "--query", WORD)
    ended = swsdist(*ask, "--query", "gone.wav", cwd=place, code=4)
    assert ended.out == swsdist(*ask, cwd=place).out
    assert "1 of 2 examples skipped: gone.wav: " in ended.err


# -- what is written ----------------------------------------------------------------------------------------------------


def test_one_set_of_columns(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """All that is known of a hit, its recording too, whatever the form."""
    ask = ("search", "run", "--query", WORD, "--top", "2")
    printed = swsdist(*ask, "--csv", "--table", tmp_path / "hits.csv", cwd=place).out
    written = list(csv.DictReader((tmp_path / "hits.csv").open(newline="")))
    assert written == list(csv.DictReader(io.StringIO(printed)))
    rows = json.loads(swsdist(*ask, "--json", "--table", tmp_path / "hits.json", cwd=place).out)
    assert rows == json.loads((tmp_path / "hits.json").read_text())["tables"][0]["rows"]
    assert printed.splitlines()[0].split(",") == list(rows[0])
    assert [row["rank"] for row in rows] == [1, 2]
    assert all(Path(row["path"]).is_file() for row in rows)
    assert {row["path"] for row in rows} == {row["path"] for row in hits(swsdist(*ask, "--csv", cwd=place))}
