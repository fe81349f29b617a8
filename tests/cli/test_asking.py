"""`swsdist search`: what may be asked for, and how: channels, documents of the store, tables, several examples, bad queries."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import Command, Ended, hits, untold

from swsdist.core.codes import families
from swsdist.core.codes import searcher as searcher_codes
from tests.support.coded import says

WORD, OTHER, THIRD = (f"corpus/queries/q00{k}_1.wav" for k in (1, 2, 3))


@pytest.fixture
def talk(place: Path, tmp_path: Path) -> Path:
    """A recording with a speaker a channel: silence on the first, a word on the second."""
    samples, rate = soundfile.read(place / WORD)
    soundfile.write(tmp_path / "talk.flac", np.stack([np.zeros_like(samples), samples], 1), rate)
    return tmp_path / "talk.flac"


KEYS = ("doc_id", "start", "end", "score")


def values(ended: Ended) -> list[list[str]]:
    return [[row[key] for key in KEYS] for row in hits(ended)]


def test_a_channel_that_is_named(swsdist: Command, place: Path, talk: Path) -> None:
    ask = ("search", "run", "--top", "3", "--csv", "--query")
    alone, second = swsdist(*ask, WORD, cwd=place), swsdist(*ask, f"{talk}#2", cwd=place)
    assert values(second) == values(alone)
    assert "channel" not in second.err
    assert "channel 3, only 2 [no-such-channel]" in swsdist(*ask, f"{talk}#3", cwd=place, code=3).err
    seconds = soundfile.info(talk).duration
    whole, part = (hits(swsdist(*ask, f"{talk}#2:{start}-{seconds:.3f}", cwd=place))[0] for start in ("0", "0:00.1"))
    assert int(whole["frames"]) > int(part["frames"])


def test_a_channel_that_nobody_named_is_told(swsdist: Command, place: Path, talk: Path) -> None:
    """The first one in which there is speech, also of a place; a file that is called like a channel has one."""
    ask = ("search", "run", "--top", "1", "--query")
    for query in (f"{talk}", f"{talk}:0-{soundfile.info(talk).duration:.3f}"):
        said = f"only channel 2 of the 2 channels of {query} is searched: no speech in channel 1"
        assert said in swsdist(*ask, query, cwd=place).err
    samples, rate = soundfile.read(talk)
    soundfile.write(talk, samples[:, ::-1], rate)
    told = f"only channel 1 of the 2 channels of {talk} is searched; others: {talk}#2"
    assert told in swsdist(*ask, talk, cwd=place).err
    named = talk.with_name("talk.flac#2")
    named.write_bytes((place / WORD).read_bytes())
    assert "channel" not in swsdist(*ask, named, cwd=place).err


def test_a_hit_is_a_query(swsdist: Command, place: Path, talk: Path) -> None:
    """As it is printed; a file of that name wins over the document."""
    ask = ("search", "run", "--top", "2", "--query")
    best = best_of(swsdist(*ask, WORD, cwd=place))
    again = swsdist(*ask, best, cwd=place)
    assert best_of(again).partition("-")[0] == best.partition("-")[0]
    assert f"hit 1 of {best} is the query itself" in again.err
    name = best.partition(":")[0]
    assert says(swsdist(*ask, "d001#2:0-1", cwd=place, code=2).err, families.UNKNOWN_NAME)
    missing = {
        "search run --query d999:0-1": "there is no file d999",
        f"search run --query {name}:50-51": "[place-outside]",
        f"search run --query {talk}#1:0-0.4": f"{talk}#1:0-0.4:  .. [no-speech]",
    }
    (place / name).write_bytes((place / OTHER).read_bytes())
    try:
        assert untold(swsdist, missing, place, code=3) == {}
        assert "is the query itself" not in swsdist(*ask, f"{name}:0-0.3", cwd=place).err
    finally:
        (place / name).unlink()
    swsdist("search", "run", "--no-trim", "--query", f"{talk}#1:0-0.4", cwd=place)


def best_of(ended: Ended) -> str:
    (best,) = (line.split()[-1] for line in ended.out.splitlines() if line.split()[:1] == ["1"])
    return best


def test_channels_are_queries_and_the_same_sound_on_both_counts_once(
    swsdist: Command, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "audio").mkdir()
    files = sorted((place / "corpus/audio").glob("*.flac"))
    for source, beside in zip(files[:3], (files[3], *files[1:3]), strict=True):
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
    assert best_of(ended).partition("-")[0] == second.partition("-")[0]
    ask = ("search", tmp_path / "run", "--query", f"{files[1]}:0.50-1.10", "--top", "5")
    assert "5 hits shown" in swsdist(*ask).out
    channels: dict[tuple[str, str], list[str]] = {}
    for row in hits(swsdist(*ask, "--csv")):
        channels.setdefault((row["doc_id"], row["start"]), []).append(row["channel"])
    assert len(channels) == 5
    both = {files[1].stem, files[2].stem}
    assert {tuple(found) for (doc_id, _), found in channels.items() if doc_id in both} == {("1", "2")}


def test_a_table_of_queries(swsdist: Command, place: Path, tmp_path: Path) -> None:
    """As a run reads it: paths relative to it, examples by query, documents by name."""
    (tmp_path / "word.wav").write_bytes((place / WORD).read_bytes())
    table = tmp_path / "words.csv"
    table.write_text("query_id,path,doc_id,start,end\nmine,word.wav,,,\nother,,d003,0.6,1.2\n")
    ask = ("search", "run", "--top", "2", "--csv", "--query")
    found = swsdist(*ask, table, cwd=place)
    assert [row["query_id"] for row in hits(found)] == ["mine"] * 2 + ["other"] * 2
    assert values(found) == values(swsdist(*ask, WORD, "--query", "d003:0.6-1.2", cwd=place))
    table.write_text("query_id,path,start,end\nq,word.wav,3,2\n")
    wrong = {f"search run --query {table}": "words.csv, line 2: end 2.0 is not after start 3.0"}
    assert untold(swsdist, wrong, place, code=3) == {}
    for name in ("words.csv", "more.csv"):
        (tmp_path / name).write_text("query_id,path\nq,word.wav\n")
    twice = f"[{searcher_codes.DUPLICATE_QUERY_EXAMPLE.name}]"
    assert untold(swsdist, {f"search run --query {table} --query {tmp_path}/more.csv": twice}, place) == {}


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
    rows = "".join(f"mubhu,{file.name}\n" for file in files)
    (tmp_path / "words.csv").write_text(f"query_id,path\n{rows}")
    assert swsdist(*ask, "--query", tmp_path / "words.csv", cwd=place).out == together.out
    assert [row["query_id"] for row in hits(together)] == ["mubhu"] * 4
    page = tmp_path / "hits.html"
    swsdist("search", "run", "--top", "1", *given, "--word", "mubhu", "--html", page, cwd=place)
    assert page.read_text().count("<audio") == 2
    cases = {
        f"search run --query {tmp_path}/words.csv --word mubhu": "[conflicting-options]",
        "search config.yaml --word x": "--word needs --query",
    }
    assert untold(swsdist, cases, place) == {}


def test_one_bad_query_does_not_end_the_list(swsdist: Command, place: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent.wav"
    soundfile.write(silent, np.zeros(8000, np.float32), 8000)
    bad = [part for query in (silent, "gone.wav", "corpus/queries", f"{WORD}:0.1") for part in ("--query", query)]
    ask = ("search", "run", "--top", "2", "--csv")
    ended = swsdist(*ask, *bad, "--query", WORD, cwd=place, code=4)
    assert ended.out == swsdist(*ask, "--query", WORD, cwd=place).out
    last = ended.err[ended.err.index("error: ") :]
    for one in ("4 of 5 queries skipped", "silent.wav: the query contains no speech", "gone.wav: there is no file"):
        assert one in last
    alone = swsdist(*ask, *bad[:2], cwd=place, code=3).err
    assert alone.startswith(f"error: {silent}: the query contains no speech")
    assert swsdist(*ask, *bad, cwd=place, code=3).err.count("warning: skipped") == 4
    word = (*ask, "--word", "w", "--query", WORD)
    ended = swsdist(*word, "--query", "gone.wav", cwd=place, code=4)
    assert ended.out == swsdist(*word, cwd=place).out
    assert "1 of 2 examples skipped: gone.wav: " in ended.err


def test_one_set_of_columns(swsdist: Command, place: Path, tmp_path: Path) -> None:
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
