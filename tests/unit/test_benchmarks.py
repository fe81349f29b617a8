"""The benchmarks' own logic: rows, tables, corpora made from others, AUC, halves; and that each one's --help works."""

from __future__ import annotations

import csv
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.harder_set import Piece, Query, Speech, match, swap_for

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(
    path.stem
    for path in (ROOT / "benchmarks").glob("*.py")
    if path.stem not in ("__init__", "__main__", "rows", "corpora", "harder_set", "perturbations", "word_encoder")
)


def test_a_goal_is_decided_on_the_value_as_measured_and_rows_come_back_from_json(tmp_path):
    from benchmarks.rows import Goal, Row, at_least, at_most, read_json, table, write_json

    rows = [Row("", value, "", at_most(1.15)) for value in (1.15, 1.1500001)]
    rows += [Row("", value, "", at_least(0.107)) for value in (0.107, 0.10699, None)] + [Row("", 3.0, "s")]
    assert [row.reached for row in rows] == [True, False, True, False, None, None]
    assert Row("", float("nan"), "", at_least(0.0)).reached is False
    assert table(rows).splitlines()[-1] == "2 of 5 goals reached, 1 not measured"
    write_json(tmp_path / "rows.json", rows)
    assert read_json(tmp_path / "rows.json") == rows
    written = json.loads((tmp_path / "rows.json").read_text())
    assert written[1] == {"name": "", "value": 1.1500001, "unit": "", "goal": "<= 1.15", "reached": False}
    with pytest.raises(ValueError, match="'<'"):
        Goal.parse("< 3")


def test_each_has_help_and_all_of_them_are_run(monkeypatch, capsys):
    from benchmarks import __main__ as every

    for name in NAMES:
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        assert ended.value.code == 0
        assert "--json FILE" in capsys.readouterr().out
    assert sorted(every.NAMES) == NAMES
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--list"])
    assert every.main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(every.NAMES)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "memorie"])
    with pytest.raises(SystemExit) as ended:
        every.main()
    assert ended.value.code == 2


def _corpus(folder: Path):
    from benchmarks.corpora import Corpus

    (folder / "audio").mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    rows = []
    for k, (rate, samples) in enumerate([(16_000, 4000), (8000, 1000)]):
        soundfile.write(folder / "audio" / f"{k}.wav", rng.integers(-999, 999, samples, np.int16), rate)
        rows.append({"doc_id": f"d{k}", "path": f"audio/{k}.wav", "speaker": "s"})
    with (folder / "docs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return Corpus("two", folder / "docs.csv", folder / "queries.csv", None)


def test_corpora_made_of_another(tmp_path):
    from benchmarks.corpora import one_recording, repeated

    rows = repeated(_corpus(tmp_path), 3, tmp_path / "made").rows()
    assert [row["doc_id"] for row in rows] == ["d0~0", "d1~0", "d0~1", "d1~1", "d0~2", "d1~2"]
    assert {row["path"] for row in rows} == {str(tmp_path / "audio/0.wav"), str(tmp_path / "audio/1.wav")}
    (row,) = one_recording(_corpus(tmp_path), 1.0, tmp_path / "whole").rows()
    samples, rate = soundfile.read(row["path"], dtype="int16")
    first, _ = soundfile.read(tmp_path / "audio/0.wav", dtype="int16")
    assert (rate, len(samples), row["duration"]) == (16_000, 16_000, "1.000")
    # 4000 samples of the first and 2000 (resampled) of the second, and again from the first.
    np.testing.assert_array_equal(samples[:4000], first)
    np.testing.assert_array_equal(samples[6000:10_000], first)


def _speech(folder: Path) -> Path:
    """A table of two recordings of 1.5 s: silence, and from .5 s to 1 s four harmonics."""
    time = np.arange(24_000) / 16_000
    tone = sum(np.sin(2 * np.pi * 150 * k * time) for k in (1, 4, 9, 17)) * 0.1 * (abs(time - 0.75) < 0.25)
    for name in "ab":
        soundfile.write(folder / f"{name}.flac", tone, 16_000)
    (folder / "docs.csv").write_text("doc_id,path,speaker\na,a.flac,s\nb,b.flac,t\n")
    return folder / "docs.csv"


@pytest.mark.parametrize("name", ["voice-15", "8khz", "reverb", "noise-10db"])
def test_changed_recordings_keep_their_times_and_are_the_same_again(name: str, tmp_path: Path) -> None:
    from benchmarks.corpora import read
    from benchmarks.perturbations import changed
    from benchmarks.perturbed import CHANGES

    given = read(_speech(tmp_path))
    made = [list(changed(given, tmp_path / folder, CHANGES[name])) for folder in ("one", "two")]
    assert [(row["doc_id"], row["duration"]) for row in made[0]] == [("a", "1.500"), ("b", "1.500")]
    bytes_of = [[Path(row["path"]).read_bytes() for row in rows] for rows in made]
    assert bytes_of[0] == bytes_of[1]
    assert (bytes_of[0][0] != bytes_of[0][1]) == (name == "noise-10db")  # which is another for each recording
    sound, _ = soundfile.read(made[0][0]["path"])
    power = np.mean(sound.reshape(150, 160) ** 2, axis=1)  # every 10 ms
    assert abs(np.argmax(power > power.max() / 3) - 50) <= 2


def test_noise_has_its_level_and_voices_their_pitch(tmp_path: Path) -> None:
    from benchmarks.corpora import read
    from benchmarks.perturbations import changed
    from benchmarks.perturbed import CHANGES

    (row, _) = read(_speech(tmp_path))
    plain, _ = soundfile.read(row["path"])

    def sound(name: str) -> np.ndarray:
        (made,) = changed([row], tmp_path / name, CHANGES[name])
        return soundfile.read(made["path"])[0]

    noise = sound("noise-10db") - plain
    assert 10 * np.log10(np.mean(plain**2) / np.mean(noise**2)) == pytest.approx(10, abs=0.1)
    for name, factor in (("voice+15", 1.15), ("voice-15", 0.85)):
        spectrum = np.abs(np.fft.rfft(sound(name)[9000:15_000]))
        highest = 700 + np.argmax(spectrum[700:])  # above the third harmonic
        assert highest * 16_000 / 6000 == pytest.approx(17 * 150 * factor, rel=0.01)
    wide = np.random.default_rng(0).standard_normal(16_000).astype(np.float32)
    top = [np.sum(np.abs(np.fft.rfft(one)[7200:]) ** 2) for one in (wide, CHANGES["voice-15"](wide, 16_000, None))]
    assert top[1] / top[0] == pytest.approx(1, abs=0.05)
    below = np.abs(np.fft.rfft(sound("8khz"))) ** 2
    assert below[6300:].sum() < 1e-4 * below.sum()  # above 4.2 kHz
    heard = sound("reverb")
    early, late = (np.mean(heard[at : at + 1600] ** 2) for at in (16_000, 19_200))  # .2 s apart: 24 dB
    assert 10 * np.log10(early / late) == pytest.approx(24, abs=3)


def test_queries_of_a_speaker_are_searched_in_documents_of_the_others(tmp_path: Path) -> None:
    from benchmarks.corpora import Corpus, read
    from benchmarks.perturbed import parts, tables_of

    (tmp_path / "queries.csv").write_text("query_id,example,path,speaker\np,1,p.wav,s\np,2,q.wav,t\nq,1,r.wav,t\n")
    (tmp_path / "refs.csv").write_text("query_id,doc_id,start,end\np,a,0,1\np,b,0,1\nq,a,0,1\nq,b,0,1\n")
    corpus = Corpus("two", _speech(tmp_path), tmp_path / "queries.csv", tmp_path / "refs.csv")
    found = {
        speaker: tables_of(corpus, *rows, tmp_path / speaker) for speaker, rows in parts(corpus, "speakers-out").items()
    }
    assert list(found) == ["s", "t"]
    for speaker, query, document in (("s", "p", "b"), ("t", "q", "a")):
        tables = {key: read(Path(path)) for key, path in (one.split("=") for one in found[speaker])}
        assert [row["doc_id"] for row in tables["corpus.documents"]] == [document]
        assert [(row["query_id"], row["example"]) for row in tables["corpus.queries"]] == [(query, "1")]
        assert [(row["query_id"], row["doc_id"]) for row in tables["corpus.references"]] == [(query, document)]
        assert Path(tables["corpus.queries"][0]["path"]).parent == tmp_path


def test_one_threshold_for_runs_of_other_queries() -> None:
    from benchmarks.perturbed import pooled
    from swsdist.score.measures.curve import Curve

    def curve(threshold: list[float], twv: list[float]) -> Curve:
        return Curve(np.array(threshold), np.zeros(0), np.zeros(0), np.array(twv))

    one, other = curve([1, 3, 3], [-1.0, 0.5, 0]), curve([2, 4, 4], [0.4, 0.1, 0])
    # At 2 one accepts what scores 3, and the other all.
    assert pooled([(one, 3), (other, 1)]) == pytest.approx((3 * 0.5 + 0.4) / 4)
    assert pooled([(other, 1)]) == pytest.approx(0.4)
    assert pooled([(curve([1, 1], [-2.0, 0]), 1)]) == 0  # where all is rejected


def test_auc_counts_ties_half_and_work_is_halved():
    from benchmarks.engine import _blocks, _cut
    from benchmarks.quality import auc
    from benchmarks.ray_cost import halved
    from swsdist.pipeline.task import Task

    low, first = -np.inf, np.array([True, False, False])
    assert [auc(np.array(scores), first) for scores in ([3.0, 2, 1], [1.0, 2, 3], [low, low, 1])] == [1.0, 0.0, 0.25]
    tasks = [Task("search", str(k), "", work, {}) for k, work in enumerate([1.0, 9.0, 5.0, 5.0, 2.0])]
    one, other = halved(tasks)
    assert sorted(task.fingerprint for task in (*one, *other)) == ["0", "1", "2", "3", "4"]
    assert {sum(task.work for task in one), sum(task.work for task in other)} == {11.0}
    documents = [np.arange(2.0 * n, dtype=np.float32).reshape(n, 2) for n in (10, 70, 64)]
    np.testing.assert_array_equal(_cut(documents, 30), documents[1][20:50])
    blocks = _blocks(documents[1], 32)
    assert [block.shape for block in blocks] == [(2, 32), (2, 32), (2, 6)]
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1).T, documents[1])


def test_halves_of_the_documents_have_their_references(tmp_path: Path) -> None:
    from benchmarks.corpora import Corpus, read
    from benchmarks.systems import halves

    (tmp_path / "docs.csv").write_text("doc_id,path\n" + "".join(f"d{k},d{k}.wav\n" for k in range(40)))
    rows = "".join(f"q,d{k},0,1\n" for k in range(0, 40, 2))
    (tmp_path / "refs.csv").write_text("query_id,doc_id,start,end\n" + rows)
    corpus = Corpus("made up", tmp_path / "docs.csv", tmp_path / "queries.csv", tmp_path / "refs.csv")
    seen: list[set[str]] = []
    for sets in halves(corpus, tmp_path / "runs").values():
        found = dict(one.removeprefix("corpus.").split("=") for one in sets)
        documents = {row["doc_id"]: row["path"] for row in read(Path(found["documents"]))}
        referred = {row["doc_id"] for row in read(Path(found["references"]))}
        assert 10 <= len(documents) <= 30
        assert all(path.startswith(str(tmp_path)) for path in documents.values())
        assert referred == {name for name in documents if int(name[1:]) % 2 == 0}
        seen.append(set(documents))
    assert not seen[0] & seen[1]
    assert len(seen[0] | seen[1]) == 40


def speech(*words: str) -> Speech:
    """Words of phones of 0.1 s, a letter each; `_` is a pause of 0.1 s."""
    pieces, phones = [], []
    time = 0.0
    for word in words:
        start = time
        for letter in word:
            if letter != "_":
                phones.append(Piece(round(time, 3), round(time + 0.1, 3), letter))
            time += 0.1
        if word.strip("_"):
            pieces.append(Piece(round(start, 3), round(time, 3), word))
    return Speech(pieces, phones)


def query(*words: str) -> Query:
    of = speech(*words)
    return Query("q", 0.0, of.words[-1].end, words, tuple(of.phones), tuple(map(len, words)))


def test_kinds() -> None:
    for words, expected in (
        (("xx", "abcd", "efgh"), ("T1", 0.2, 1.0)),
        (("ab", "cdefgh", "x"), ("T1", 0.0, 0.8)),
        (("abcd", "efgx"), ("T2", 0.0, 0.7)),
        (("abcd", "exxx"), None),
        (("abcd", "x", "efgh"), ("T3", 0.0, 0.9)),
        (("efgh", "xx", "abcd"), ("T3", 0.0, 1.0)),
        (("efgh", "xxxxxxxxxxxx", "abcd"), None),
    ):
        assert match(query("abcd", "efgh"), speech(*words)) == expected


def test_swaps() -> None:
    wanted = query("abcd", "efgh")
    for words, parted, expected in (
        (("xx", "abcd", "efgh"), False, ["xx", "efgh", "abcd"]),
        (("yy", "abcd", "efgh"), True, ["abcd", "yy", "efgh"]),
    ):
        swap = swap_for(wanted, speech(*words), parted)
        assert swap is not None
        swapped = speech(*words).swapped(*swap)
        assert [word.name for word in swapped.words] == expected
        assert (match(wanted, swapped) or ("none",))[0] == "T3"
    assert swap_for(wanted, speech("abcd", "efgh"), True) is None
