"""`swsdist search`: its page, its clips, what makes a hit likely, and what it says where nothing can be found."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from commands import untold

import swsdist as package
from swsdist.audio.reader import MARKER
from swsdist.calibrate.likelihood import word_of
from swsdist.core.codes import families
from swsdist.core.codes import searcher as searcher_codes
from swsdist.report import answers
from swsdist.report.answers import answers_by_query
from swsdist.report.plots.timeline import waveform_svg
from swsdist.searcher import hit_likelihood
from tests.support.coded import says

WORD, OTHER = "corpus/queries/q001_1.wav", "corpus/queries/q002_1.wav"


def elements(page: str, tag: str) -> list[dict[str, str]]:
    """Attributes of all elements of a page with this tag."""
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', inside)) for inside in re.findall(rf"<{tag}\b([^>]*)>", page)]


def test_the_page(swsdist, place: Path, tmp_path: Path) -> None:
    """A player and a waveform a hit and a query, all of it in the file, under the report's policy."""
    out = tmp_path / "hits.html"
    ended = swsdist("search", "run", "--query", WORD, "--query", OTHER, "--top", "3", "--html", out, cwd=place)
    text = out.read_text()
    sounds = elements(text, "audio")
    assert len(sounds) == 2 + 6
    assert all(one["src"].startswith("data:audio/mpeg;base64,") for one in sounds)
    assert len([one for one in elements(text, "svg") if one["class"] == "wave"]) == 8
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    assert policy.findall(text) == policy.findall((place / "run" / "report.html").read_text())
    assert "default-src 'none'" in policy.findall(text)[0]
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    words = [one["class"] for one in elements(text, "span") if one.get("class", "").startswith("called ")]
    lines = [line.split() for line in ended.out.splitlines() if line[:3].strip().isdigit()]
    assert words == [f"called {line[1]}" for line in lines]
    for line in lines:
        name, begin, end = re.fullmatch(r"(.+?):(.+)-(.+)", line[4]).groups()
        assert f"{begin} – {end}" in text
        assert name in text


def test_names_of_others_stay_text(tmp_path: Path, place: Path) -> None:
    evil = '<script>alert("x")</script>/"&amp;'
    row = {"query_id": evil, "doc_id": evil, "channel": 1, "start": 0.5, "end": 1.0, "score": 9.0}
    found = answers_by_query([row], [0.8], paths={(evil, 1): str(place / "corpus/audio/d001.flac")})
    about = answers.SearchFacts(evil, 1.0, 1, evil, evil, {"distance": evil})
    text = answers.render_answers(found, [answers.PlayedQuery(evil, str(place / WORD))], about)
    assert len(elements(text, "script")) == 1
    assert html.unescape(text).count(evil) >= 4
    assert len(elements(text, "audio")) == 2


def test_a_page_does_not_grow_without_bound(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of each query are heard first; the page says how many are not."""
    monkeypatch.setattr(answers, "MOST_SOUNDS", 5)
    recording = str(place / "corpus/audio/d001.flac")
    rows = [
        {"query_id": query, "doc_id": f"{query}-{k}", "channel": 1, "start": 0.5, "end": 1.0, "score": 9.0 - k}
        for query in ("q1", "q2")
        for k in range(3)
    ]
    found = answers_by_query(rows, [0.8] * 6, paths={(row["doc_id"], 1): recording for row in rows})
    asked = [answers.PlayedQuery(query, str(place / WORD)) for query in ("q1", "q2")]
    text = answers.render_answers(found, asked, answers.SearchFacts("s", 1.0, 1, "so", "deviations", {}))
    heard = [one["aria-label"] for one in elements(text, "audio")]
    assert heard == ["query q1", "hit 1 in q1-0", "hit 2 in q1-1", "query q2", "hit 1 in q2-0"]
    assert "3 clips are left out" in text


def test_a_recording_that_has_gone_has_no_player() -> None:
    row = {"query_id": "q", "doc_id": "d", "channel": 1, "start": 0.5, "end": 1.0, "score": 9.0}
    found = answers_by_query([row], [0.8], paths={("d", 1): "gone.wav"})
    facts = answers.SearchFacts("s", 1.0, 1, "so", "deviations", {})
    text = answers.render_answers(found, [answers.PlayedQuery("q", "gone too.wav")], facts)
    assert "<audio" not in text
    assert text.count("there is no such file.") == 2


def test_the_waveform_shows_where_it_is_loud() -> None:
    samples = np.zeros(1500, np.float32)
    samples[750:] = np.where(np.arange(750) % 2, 0.5, -0.5)
    svg = waveform_svg(samples, (0.5, 1.0))
    heights = {}
    for part in ("inside", "around"):
        (path,) = re.findall(rf'class="{part}"[^>]* d="([^"]*)"', svg)
        heights[part] = [float(b) - float(a) for a, b in re.findall(r"M\d+ ([\d.]+)V([\d.]+)", path)]
    assert [len(each) for each in heights.values()] == [75, 75]
    assert min(heights["inside"]) > 40
    assert max(heights["around"]) < 2
    assert 'class="mark"' in svg
    assert 'class="mark"' not in waveform_svg(samples, (0.0, 1.0))


def test_clips(swsdist, place: Path, tmp_path: Path) -> None:
    """A file a hit, in their order, of what was found and a little around it; never among other files."""
    out = tmp_path / "clips"
    swsdist("search", "run", "--query", WORD, "--query", OTHER, "--top", "2", "--clips", out, cwd=place)
    files = sorted(path.name for path in out.glob("*.wav"))
    assert (out / MARKER).exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        hits = package.search("run/store", [WORD, OTHER], top=2).to_dict("records")
    assert [name[:3] for name in files] == ["001", "002", "003", "004"]
    for name, hit in zip(files, hits, strict=True):
        assert name[4:] == f"{Path(hit['query_id']).name}-{hit['doc_id']}-{hit['start']:.2f}.wav"
        seconds = soundfile.info(out / name).duration
        assert hit["end"] - hit["start"] <= seconds <= hit["end"] - hit["start"] + 0.45
    told = swsdist("search", "run", "--query", WORD, "--clips", out, cwd=place, code=2).err
    assert "[output-refused]" in told


@pytest.mark.slow
def test_a_run_with_references_says_what_is_likely(swsdist, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ("search", "run/store", "--query", WORD, "--top", "3", "--json")
    plain = json.loads(swsdist(*ask, cwd=place).out)
    assert says(swsdist(*ask, "--calibration", "run", cwd=place, code=2).err, families.UNSUPPORTED)
    monkeypatch.setattr(hit_likelihood, "_QUERIES", 2)
    monkeypatch.setattr(hit_likelihood, "_HITS", 4)
    by_run = json.loads(swsdist(*ask, "--calibration", "run", cwd=place).out)
    assert by_run == json.loads(swsdist("search", "run", *ask[2:], cwd=place).out)
    assert all(row["called"] == word_of(row["likely"]) for row in by_run)
    assert [row["likely"] for row in by_run] != [row["likely"] for row in plain]
    other = swsdist(*ask, "--calibration", "run", "--set", "search.distance=cosine-squared", cwd=place)
    assert "search.distance was cosine, here cosine-squared" in other.err
    assert says(other.err, searcher_codes.OTHER_CALIBRATION)


def test_queries_that_are_none(swsdist, place: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "silent.wav", np.zeros(8000, np.float32), 8000)
    wrong = {
        "corpus/queries": "[wrong-kind] .. ls corpus/queries/*.wav | swsdist search STORE --query -",
        ":0.1": "[missing-input] .. FILE:START-END",
        f"{WORD}:0.1": "[missing-input] .. FILE:START-END",
        f"{WORD}:0.1-": "[missing-input] .. FILE:START-END",
        "s3:/bucket/a.wav": "an S3 url begins with s3:// .. s3://bucket/a.wav",
    }
    missing = {
        "gone.wav": "no document of this name .. check the path",
        "LJ999-0001:0.06-0.66": "no file LJ999-0001, and no document of this name .. swsdist store info --documents",
        f"{WORD}:1:00-1:01": "does not contain 60.0 s to 61.0 s .. inside the recording",
        f"{tmp_path}/silent.wav": "the query contains no speech .. --no-trim",
    }
    for code, cases in ((2, wrong), (3, missing)):
        assert untold(swsdist, {f"search run --query {one}": told for one, told in cases.items()}, place, code) == {}
    options = {
        "--html": "--html x.html",
        "--clips": "--clips x",
        "--csv": "--csv",
        "--calibration": "--calibration run",
    }
    cases = {f"search config.yaml {typed}": f"{name} needs --query [conf" for name, typed in options.items()}
    assert untold(swsdist, cases, place) == {}


def test_a_query_that_is_longer_than_all_documents(swsdist, place: Path, tmp_path: Path) -> None:
    parts = [soundfile.read(path) for path in sorted((place / "corpus" / "audio").glob("*.flac"))[:4]]
    long = "long.wav"  # a longer path would be told in part
    soundfile.write(tmp_path / long, np.concatenate([samples for samples, _ in parts]), parts[0][1])
    ended = swsdist("search", place / "run", "--query", long, "--no-trim", cwd=tmp_path)
    assert f"warning: no hits of {long}; the longest document lasts" in ended.err
    assert f"{long}: 0 hits shown, 0 likely" in ended.out
