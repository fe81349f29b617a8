"""`swsdist search`: its page, its clips, what makes a hit likely, and what it says where nothing can be found."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import soundfile

import swsdist as package
from swsdist.audio.clips import MARKER
from swsdist.core.codes import searcher as searcher_codes
from swsdist.report.answers import page as pages
from swsdist.report.answers import sounds
from swsdist.report.answers.hits import answers_by_query
from swsdist.report.plots.waveform import waveform_svg
from tests.support.coded import says

WORD, OTHER = "corpus/queries/q001_1.wav", "corpus/queries/q002_1.wav"


class Elements(HTMLParser):
    """All elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.found if name == tag)


def test_the_page(swsdist, place: Path, tmp_path: Path) -> None:
    """A player and a waveform a hit and a query, all of it in the file, under the report's policy."""
    out = tmp_path / "hits.html"
    ended = swsdist("search", "run", "--query", WORD, "--query", OTHER, "--top", "3", "--html", out, cwd=place)
    assert "6 hits" not in ended.out
    text = out.read_text()
    page = Elements(text)
    sounds = [one["src"] or "" for one in page.all("audio")]
    assert len(sounds) == 2 + 6
    assert all(one.startswith("data:audio/mpeg;base64,") for one in sounds)
    assert len([one for one in page.all("svg") if one["class"] == "wave"]) == 8
    assert re.search(r'http-equiv="Content-Security-Policy" content="default-src \'none\'', text)
    report = (place / "run" / "report.html").read_text()
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    assert policy.findall(text) == policy.findall(report)
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    words = [one for one in page.all("span") if (one.get("class") or "").startswith("verdict ")]
    assert len(words) == 6
    lines = [line.split() for line in ended.out.splitlines() if line[:3].strip().isdigit()]
    assert [one["class"] for one in words] == [f"verdict {line[1]}" for line in lines]
    for line in lines:
        name, begin, end = re.fullmatch(r"(.+?):(.+)-(.+)", line[3]).groups()
        assert f"{begin} – {end}" in page.text
        assert name in page.text


def test_names_of_others_stay_text(tmp_path: Path, place: Path) -> None:
    evil = '<script>alert("x")</script>/"&amp;'
    row = {"query_id": evil, "doc_id": evil, "channel": 1, "start": 0.5, "end": 1.0, "score": 9.0}
    found = answers_by_query([row], ["strong"], paths={(evil, 1): str(place / "corpus/audio/d001.flac")})
    about = pages.SearchFacts(evil, 1.0, 1, "strong", evil, evil, {"distance": evil})
    text = pages.render_answers(found, [pages.PlayedQuery(evil, str(place / WORD))], about)
    page = Elements(text)
    assert len(list(page.all("script"))) == 1
    assert page.text.count(evil) >= 4
    assert len(list(page.all("audio"))) == 2


def test_a_page_does_not_grow_without_bound(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of each query are heard first; the page says how many are not."""
    monkeypatch.setattr(sounds, "MOST_SOUNDS", 5)
    recording = str(place / "corpus/audio/d001.flac")
    rows = [
        {"query_id": query, "doc_id": f"{query}-{k}", "channel": 1, "start": 0.5, "end": 1.0, "score": 9.0 - k}
        for query in ("q1", "q2")
        for k in range(3)
    ]
    found = answers_by_query(rows, ["strong"] * 6, paths={(row["doc_id"], 1): recording for row in rows})
    asked = [pages.PlayedQuery(query, str(place / WORD)) for query in ("q1", "q2")]
    text = pages.render_answers(found, asked, pages.SearchFacts("s", 1.0, 1, "strong", "so", "deviations", {}))
    heard = [one["aria-label"] for one in Elements(text).all("audio")]
    assert heard == ["query q1", "hit 1 in q1-0", "hit 2 in q1-1", "query q2", "hit 1 in q2-0"]
    assert "3 clips are left out" in text


def test_a_recording_that_has_gone_has_no_player(place: Path) -> None:
    row = {"query_id": "q", "doc_id": "d", "channel": 1, "start": 0.5, "end": 1.0, "score": 9.0}
    found = answers_by_query([row], ["strong"], paths={("d", 1): "gone.wav"})
    text = pages.render_answers(
        found,
        [pages.PlayedQuery("q", "gone too.wav")],
        pages.SearchFacts("s", 1.0, 1, "strong", "so", "deviations", {}),
    )
    assert "No sound: there is no such file." in text
    assert "The query cannot be played: there is no such file." in text


def test_the_waveform_shows_where_it_is_loud(place: Path) -> None:
    samples = np.zeros(1500, np.float32)
    samples[750:] = np.where(np.arange(750) % 2, 0.5, -0.5)
    svg = waveform_svg(samples, (0.5, 1.0))
    inside = re.search(r'class="inside".* d="([^"]*)"', svg)
    around = re.search(r'class="around"[^>]* d="([^"]*)"', svg)
    assert inside is not None
    assert around is not None
    tall = [float(b) - float(a) for a, b in re.findall(r"M\d+ ([\d.]+)V([\d.]+)", inside[1])]
    flat = [float(b) - float(a) for a, b in re.findall(r"M\d+ ([\d.]+)V([\d.]+)", around[1])]
    assert (len(tall), len(flat)) == (75, 75)
    assert min(tall) > 40
    assert max(flat) < 2
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
    assert "[output-not-empty]" in told


def test_a_calibration_says_what_is_likely(swsdist, place: Path, tmp_path: Path) -> None:
    """That of a run, by its folder or by its file; of a logistic by probabilities; of another search with a warning."""
    ask = ("search", "run/store", "--query", WORD, "--top", "3")
    (calibration,) = (place / "run" / "calibration").glob("*.json")
    by_run = swsdist(*ask, "--calibration", "run", cwd=place)
    by_file = swsdist(*ask, "--calibration", calibration, cwd=place)
    least = np.mean(json.loads(calibration.read_text())["thresholds"])
    assert f"strong: score at least {least:.3f}, the threshold of run" in by_run.out
    assert f"strong: score at least {least:.3f}, fitted in {calibration}" in by_file.out
    assert by_run.out.splitlines()[:-1] == by_file.out.splitlines()[:-1]
    assert "score at least 4" in swsdist(*ask, cwd=place).out
    other = swsdist(*ask, "--calibration", "run", "--set", "search.distance=cosine-squared", cwd=place)
    assert "warning: run was fitted on other scores: search.distance was cosine, here cosine-squared" in other.err
    values = json.loads(calibration.read_text())
    features = json.loads(values["trained_on"]["scores"]["features"])
    assert "features was" not in other.err
    features[0]["options"] = {"n_mels": 30}
    values["trained_on"]["scores"]["features"] = json.dumps(features)
    (tmp_path / "other.json").write_text(json.dumps(values))
    odd = swsdist(*ask, "--calibration", tmp_path / "other.json", cwd=place).err
    assert "other.json was fitted on other scores: features was" in odd
    assert says(odd, searcher_codes.OTHER_CALIBRATION)
    assert "here mfcc version 2" in odd
    steps = ("--set", "calibrate.steps=[q-norm, logistic]", "--set", "report.exports=[csv]")
    swsdist("run", "config.yaml", "--run", tmp_path / "log", *steps, cwd=place)
    shown = swsdist(*ask, "--calibration", tmp_path / "log", cwd=place).out
    values = json.loads(next((tmp_path / "log" / "calibration").glob("*.json")).read_text())
    slope, offset = (np.mean([model[key] for model in values["steps"][0]["models"]]) for key in ("slope", "offset"))
    limit = np.mean(values["thresholds"])
    rows = [line.split() for line in shown.splitlines() if line[:3].strip().isdigit()]
    for row in rows:
        probability = 1 / (1 + np.exp(-(slope * float(row[2]) + offset)))
        assert (row[1] == "strong") == (probability >= limit)
    assert f"strong: probability at least {limit:.3f}, the threshold of {tmp_path}/log" in shown
    mine = swsdist("search", tmp_path / "log", "--query", WORD, "--top", "3", cwd=place).out
    assert f"strong: probability at least {limit:.3f}, the threshold of that run" in mine


@pytest.mark.slow
def test_ratios_say_what_is_likely(swsdist, place: Path, tmp_path: Path) -> None:
    """By the Bayes threshold of their run; with side information they need more than hits."""
    steps = ("--set", "calibrate.steps=[q-norm, llr]", "--set", "report.exports=[csv]")
    swsdist("run", "config.yaml", "--run", tmp_path / "a", *steps, cwd=place)
    (file,) = (tmp_path / "a" / "calibration").glob("*.json")
    values = json.loads(file.read_text())
    limit = np.log(values["beta"])
    shown = swsdist("search", tmp_path / "a", "--query", WORD, "--top", "3", cwd=place).out
    assert f"strong: log-likelihood ratio at least {limit:.3f}, the threshold of that run" in shown
    slope, offset = (np.mean([model[key] for model in values["steps"][0]["models"]]) for key in ("score", "offset"))
    for row in (line.split() for line in shown.splitlines() if line[:3].strip().isdigit()):
        assert (row[1] == "strong") == (slope * float(row[2]) + offset >= limit)
    sides = ("--set", "calibrate.options={llr: {covariates: [duration]}}")
    swsdist("run", "config.yaml", "--run", tmp_path / "b", *steps, *sides, cwd=place)
    told = swsdist("search", "run/store", "--query", WORD, "--calibration", tmp_path / "b", cwd=place, code=2).err
    assert says(told, searcher_codes.CALIBRATION_SCORES)
    assert "its steps are q-norm, llr" in told


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("gone.json", "[no-fitted-file]"),
        ("corpus", "[not-a-run-to-fit-by]"),
        ("config.yaml", "[not-fitted-steps]"),
        ("run/report.json", "schema swsdist-report/1 [not-fitted-steps]"),
    ],
)
def test_a_calibration_that_is_none(swsdist, place: Path, given: str, complaint: str) -> None:
    told = swsdist("search", "run/store", "--query", WORD, "--calibration", given, cwd=place, code=2).err
    assert complaint in told
    assert f"--calibration {given}" in told
    assert "remedy: name " in told


def test_a_run_that_decided_nothing_is_no_calibration(swsdist, place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "run", tmp_path / "run")
    swsdist("run", "config.yaml", "--run", tmp_path / "run", "--set", "calibrate.fit=none", cwd=place)
    told = swsdist("search", "run/store", "--query", WORD, "--calibration", tmp_path / "run", cwd=place, code=2).err
    assert f"--calibration {tmp_path}/run: the run has no fitted calibration [run-without-calibration]" in told


@pytest.mark.parametrize(
    ("query", "code", "complaint", "remedy"),
    [
        ("corpus/queries", 2, "[query-is-folder]", "ls corpus/queries/*.wav | swsdist search STORE --query -"),
        (":0.1", 2, "[incomplete-place]", "FILE:START-END"),
        (f"{WORD}:0.1", 2, "[incomplete-place]", "FILE:START-END"),
        (f"{WORD}:0.1-", 2, "[incomplete-place]", "FILE:START-END"),
        ("s3:/bucket/a.wav", 2, "an S3 url begins with s3://", "s3://bucket/a.wav"),
        (f"{WORD}:1:00-1:01", 3, "does not contain 60.0 s to 61.0 s", "inside the recording"),
        ("silent.wav", 3, "the query contains no speech", "--no-trim"),
    ],
)
def test_queries_that_are_none(
    swsdist, place: Path, tmp_path: Path, query: str, code: int, complaint: str, remedy: str
) -> None:
    if query == "silent.wav":
        query = str(tmp_path / query)
        soundfile.write(query, np.zeros(8000, np.float32), 8000)
    told = swsdist("search", "run", "--query", query, cwd=place, code=code).err
    assert complaint in told
    assert remedy in told.partition("remedy: ")[2]


@pytest.mark.slow
def test_a_query_that_is_longer_than_all_documents(swsdist, place: Path, tmp_path: Path) -> None:
    files = sorted((place / "corpus" / "audio").glob("*.flac"))[:4]
    parts = [soundfile.read(path) for path in files]
    long = tmp_path / "long.wav"
    soundfile.write(long, np.concatenate([samples for samples, _ in parts]), parts[0][1])
    ended = swsdist("search", "run", "--query", long, "--no-trim", cwd=place)
    assert f"warning: no hits of {long}; the longest document lasts" in ended.err
    assert f"{long}: 0 hits shown, 0 strong" in ended.out


@pytest.mark.parametrize("option", [("--html", "x.html"), ("--clips", "x"), ("--csv",), ("--calibration", "run")])
def test_what_a_config_does_not_take(swsdist, place: Path, option: tuple[str, ...]) -> None:
    told = swsdist("search", "config.yaml", *option, cwd=place, code=2).err
    assert f"{option[0]} needs --query [option-needs-query]" in told


def test_hours_are_counted_while_a_store_is_searched(place: Path) -> None:
    """What a store tells while it is read adds up to what it holds."""
    from swsdist.store.reading import Store

    opened = package.open_store(str(place / "run" / "store"))
    told: list[int] = []
    watched = Store(opened.folder, opened.manifest, told.append)
    found = package.search(watched, str(place / WORD), top=3)
    assert found.equals(package.search(opened, str(place / WORD), top=3))
    assert sum(told) == opened.manifest.counts["frames"]
    assert len(told) >= 8
