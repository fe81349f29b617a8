"""`swsdist transcribe`: what was heard, written beside a run."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import soundfile
from commands import Command, untold

import swsdist as package
from swsdist.cli.transcribing import _Published
from swsdist.core.codes import cli as cli_codes
from swsdist.core.codes import storage as store_codes

#: Words with times, two channels, nothing said; and a recording whose name is that of a channel's file.
TRANSCRIPTS = {
    "a/talk.json": '{"words": [{"word": "Hello,", "start": 0.5, "end": 0.9, "probability": 0.25}, '
    '{"word": "world!", "start": 1, "end": 1.4}, {"word": "So", "start": 1.4, "end": 1.4}]}',
    "b/talk.ctm": "talk 1 0.5 0.5 hi 0.5\ntalk 2 0.75 0.25 you\n",
    "b/talk.2.srt": "1\n00:00:01,000 --> 00:00:02,000\ntwo words\n",
    "none.vtt": "WEBVTT\n",
}


@pytest.fixture
def talks(tmp_path: Path, swsdist: Command) -> Path:
    """A folder with `talks/`, transcripts and a recording, and `talks-text/`, their store."""
    for name, text in TRANSCRIPTS.items():
        path = tmp_path / "talks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    soundfile.write(tmp_path / "talks/a/talk.wav", np.zeros(32000), 16000)
    swsdist("index", "talks", "--text", "--set", "executor.kind=serial", cwd=tmp_path)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name[0] != "."}


def test_all_formats(talks: Path, swsdist: Command) -> None:
    ended = swsdist("transcribe", "talks-text", cwd=talks)
    assert "4 recordings, 7 words, in talks-transcripts\nno words in 1 of them; the first: none\n" in ended.out
    folder = talks / "talks-transcripts"
    alone, of_channel = ("TextGrid", "eaf"), ("srt", "vtt", "json", "txt")
    assert files(folder) == {
        *(f"{name}.{end}" for name in ("a/talk", "b/talk", "b/talk.2.1", "none") for end in (*alone, *of_channel)),
        *(f"b/talk.2.{end}" for end in of_channel),
        "words.ctm",
    }
    subtitles = "1\n00:00:00,500 --> 00:00:01,399\nHello, world!\n\n2\n00:00:01,400 --> 00:00:01,401\nSo\n"
    words = (
        "a/talk 1 0.5 0.4 Hello 0.25\na/talk 1 1.0 0.4 world 1\na/talk 1 1.4 0.0 So 1\n"
        "b/talk 1 0.5 0.5 hi 0.5\nb/talk 2 0.75 0.25 you 1\n"
        "b/talk.2 1 1.0 1.0 two 1\nb/talk.2 1 1.0 1.0 words 1\n"
    )
    texts = {"a/talk.srt": subtitles, "a/talk.txt": "Hello, world!\nSo\n", "words.ctm": words, "none.srt": ""}
    assert {name: (folder / name).read_text() for name in texts} == texts
    assert "Hello,<00:00:00.900> <00:00:01.000>world!\n" in (folder / "a/talk.vtt").read_text()
    said = json.loads((folder / "a/talk.json").read_text())
    assert said["segments"][0]["words"][0] == {"word": " Hello,", "start": 0.5, "end": 0.9, "probability": 0.25}
    of_talk, of_both = (ElementTree.parse(folder / f"{name}/talk.eaf").getroot() for name in "ab")
    assert [tier.get("TIER_ID") for tier in of_both.iter("TIER")] == ["channel 1", "channel 2"]
    (medium,) = of_talk.iter("MEDIA_DESCRIPTOR")
    assert medium.get("MEDIA_URL") == (talks / "talks/a/talk.wav").as_uri()
    table = package.words(str(talks / "talks-text"))
    assert table.columns.tolist() == ["doc_id", "channel", "start", "end", "word", "confidence"]
    assert table.iloc[0].tolist() == ["a/talk", 1, 0.5, 0.9, "Hello,", 0.25]
    assert table["word"].tolist() == ["Hello,", "world!", "So", "hi", "you", "two", "words"]


def test_nothing_of_another_is_overwritten(talks: Path, swsdist: Command) -> None:
    folder = talks / "out"
    (folder / "b").mkdir(parents=True)
    (folder / "b/talk.srt").write_text("mine")
    told = swsdist("transcribe", "talks-text/store", "--to", "out", "--format", "srt,TXT", cwd=talks).err
    assert "b/talk.srt stays as it is" in told
    (folder / "a/talk.txt").write_text("corrected")
    (folder / "none.txt").unlink()
    (folder / "none.txt").symlink_to(folder / "b/talk.srt")
    (talks / "talks/a/talk.json").write_text(TRANSCRIPTS["a/talk.json"].replace("world", "moon"))
    swsdist("index", "talks", "--text", "--set", "executor.kind=serial", cwd=talks)  # else Ray is started for it
    told = swsdist("transcribe", "talks", "--to", "out", "--format", "srt,txt", cwd=talks).err
    assert told.count("stays as it is") == 3
    assert (folder / "b/talk.srt").read_text() == "mine"
    assert (folder / "a/talk.txt").read_text() == "corrected"
    assert "Hello, moon!" in (folder / "a/talk.srt").read_text()


def test_a_ctm_has_words_alone(talks: Path, swsdist: Command) -> None:
    text = TRANSCRIPTS["a/talk.json"].replace("Hello,", "--").replace("world", "mo\ufeffon")
    (talks / "talks/a/talk.json").write_text(text)
    swsdist("index", "talks", "--text", "--set", "executor.kind=serial", cwd=talks)
    swsdist("transcribe", "talks-text", "--format", "ctm,txt", cwd=talks)
    folder = talks / "talks-transcripts"
    words = "a/talk 1 1.0 0.4 mo 1\na/talk 1 1.0 0.4 on 1\na/talk 1 1.4 0.0 So 1\nb/"
    assert (folder / "words.ctm").read_text().startswith(words)
    assert (folder / "a/talk.txt").read_text() == "-- mo on!\nSo\n"


def test_two_write_to_one_folder(talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each remembers what the other wrote; what lies below another's file stays as it is."""
    (talks / "out").mkdir()
    (talks / "out/file").write_text("mine")
    published = []
    for name in ("a.txt", "b.txt"):
        (talks / name).mkdir()
        (talks / name / name).write_text(name)
        published.append(_Published(talks / "out", talks / name))
    for each, name in zip(published, ("a.txt", "b.txt"), strict=True):
        each.publish(name)
        each.publish("file/" + name)
        each.record()
    assert [each.kept for each in published] == [["file/a.txt"], ["file/b.txt"]]
    assert json.loads((talks / "out/.swsdist-transcripts.json").read_text()).keys() == {"a.txt", "b.txt"}


def test_what_cannot_be_written(talks: Path, place: Path, swsdist: Command) -> None:
    cases = {
        "transcribe talks-text --format srt,docx": "[unknown-name]",
        "transcribe talks-text --language sw": f"[{cli_codes.OF_RECORDINGS.name}]",
        "transcribe talks-text --model x": f"[{cli_codes.OF_RECORDINGS.name}]",
        "transcribe talks-text --to talks/none.vtt": "[output-refused]",
    }
    assert untold(swsdist, cases, talks) == {}
    without = {"transcribe run": f"[{store_codes.NO_WORDS_IN_STORE.name}]"}
    assert untold(swsdist, without, place, code=3) == {}
    assert not (place / "run-transcripts").exists()
