"""What does not fit together in the tables of a corpus is told, with a count and the first case; --strict makes it an error."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import soundfile

from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.codes import stages as stages_codes
from swsdist.io.filesystem import Folder
from swsdist.stages.index import Index
from swsdist.stages.queries import Queries
from swsdist.store import manifest as libraries
from swsdist.store.maintaining import compact
from swsdist.store.manifest import load
from tests.support.coded import raises, says

Rows = list[dict[str, str]]


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def change(scene: Any, table: str, how: Callable[[Rows], Any]) -> None:
    """Rewrite a table of the corpus."""
    path: Path = scene.corpus / f"{table}.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    how(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="")
        writer.writeheader()
        writer.writerows(rows)


def every(**values: str) -> Callable[[Rows], Any]:
    return lambda rows: [row.update(values) for row in rows]


def warnings(scene: Any, *sets: str) -> list[str]:
    """Of a run, as its report repeats them."""
    result = scene.run("calibrate.fit=none", "report.exports=[]", *sets)
    found: list[str] = scene.report()["warnings"]
    assert found == result.outcome.chain_run.notices()
    return found


@pytest.mark.slow
def test_nothing_is_told_of_a_corpus_that_fits(scene: Any) -> None:
    assert warnings(scene) == []
    assert scene.here("strict=true", run="strict").code == 0


@pytest.mark.slow
def test_durations_that_the_audio_contradicts(scene: Any) -> None:
    def change_two(rows: Rows) -> None:
        rows[2]["duration"], rows[5]["duration"] = "7200", "60"

    real = soundfile.info(scene.corpus / "audio" / "d003.flac").duration
    change(scene, "docs", change_two)
    (warning,) = (one for one in warnings(scene) if says(one, stages_codes.CONTRADICTED_DURATION))
    assert warning.startswith("2 of 8 durations ")
    assert f"docs.csv, line 4: 7200 s, and there are {real:.2f} s" in warning
    done = scene.here("strict=true", run="strict")
    assert done.code == 4
    assert says(done.err, stages_codes.CONTRADICTED_DURATION)


@pytest.mark.parametrize("told", [True, False])
def test_references_outside_of_their_recording(scene: Any, told: bool) -> None:
    """Whether the table tells how long documents are, or only the audio."""
    if not told:
        change(scene, "docs", lambda rows: [row.pop("duration", None) for row in rows])
    change(scene, "refs", lambda rows: rows[1].update(start="500.0", end="500.7"))
    (warning,) = warnings(scene)
    assert says(warning, stages_codes.REFERENCE_AFTER_END)
    assert "refs.csv, line 3: to 500.7 s" in warning
    assert "check their times and recordings" in warning


def test_references_in_milliseconds(scene: Any) -> None:
    def thousandfold(rows: Rows) -> None:
        for row in rows:
            row["start"], row["end"] = (str(1000 * float(row[name])) for name in ("start", "end"))

    change(scene, "refs", thousandfold)
    with raises(stages_codes.REFERENCE_AFTER_END, count=6, of=6) as caught:
        scene.run(run="refused")
    assert "they could be milliseconds" in str(caught.value)
    assert not (scene.folder / "refused" / "store").exists()  # before any work
    (warning,) = (one for one in warnings(scene, "force=true") if says(one, stages_codes.REFERENCE_AFTER_END))
    assert warning.startswith("6 of 6 references")


@pytest.mark.slow
def test_speakers_that_do_not_match(scene: Any) -> None:
    change(scene, "docs", every(speaker="Anna"))
    change(scene, "queries", every(speaker="anna"))
    (warning,) = warnings(scene)
    assert says(warning, stages_codes.QUERY_SPEAKER_UNKNOWN)
    assert warning.startswith("1 speaker ")
    assert "'anna'; documents have 'Anna'" in warning
    assert warnings(scene, "search.queries_by=collection") == []
    for nobody in ("", "unknown", "Unknown", "<NA>"):
        change(scene, "docs", every(speaker=nobody))
        assert warnings(scene) == []
        (told,) = warnings(scene, "calibrate.steps=[speaker-norm]")
        count = len(list((scene.corpus / "audio").iterdir()))
        assert says(told, chains_codes.MISSING_SPEAKERS)
        assert told.startswith(f"{count} documents without a speaker")


def test_queries_cut_from_what_is_searched(scene: Any) -> None:
    def cut(rows: Rows) -> None:
        rows[0].update(path="", doc_id="d002", start="1.0", end="1.6")
        rows[3].update(path="audio/d004.flac", start="1.0", end="1.7")

    change(scene, "queries", cut)
    (warning,) = (one for one in warnings(scene, "corpus.examples=all") if "cut from" in one)
    assert says(warning, stages_codes.QUERY_FINDS_ITSELF)
    assert warning.startswith("1 ")
    assert "d004.flac" in warning  # the other names its document, so its own place is left out


def test_queries_longer_than_all_documents(scene: Any) -> None:
    lengths = {path.stem: soundfile.info(path).duration for path in (scene.corpus / "audio").iterdir()}
    longest = max(lengths, key=lengths.__getitem__)
    change(scene, "queries", lambda rows: rows[0].update(path=f"audio/{longest}.flac"))
    change(scene, "docs", lambda rows: rows.remove(next(row for row in rows if row["doc_id"] == longest)))
    change(scene, "refs", lambda rows: [rows.remove(row) for row in [*rows] if row["doc_id"] == longest])
    (warning,) = (one for one in warnings(scene, "queries.trim=none") if "longer" in one)
    assert says(warning, stages_codes.LONG_QUERY_EXAMPLE)
    assert (
        f"'q001', example 1, {lengths[longest] - 0.01:.2f} s; the longest document has" in warning
    )  # its last frame's end


@pytest.mark.slow
def test_libraries_of_another_machine(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of the same sound may differ in their last bits: the store says what made it, and a run compares."""
    assert warnings(scene) == []
    store = Folder(str(scene.folder / "run" / "store"))
    mine = load(store).libraries
    assert {"numpy", "soxr", "libsndfile"} <= mine.keys()
    real = libraries.versions()
    monkeypatch.setattr(libraries, "versions", lambda: {**real, "soxr": "9.9"})
    assert scene.run("calibrate.fit=none", "report.exports=[]").outcome.tasks_done == 0
    (warning,) = scene.run("calibrate.fit=none", "report.exports=[]").outcome.chain_run.notices()
    assert says(warning, chains_codes.OTHER_LIBRARY)
    assert f"soxr {real['soxr']} made features of this store, and 9.9 is" in warning
    compact(store, 1.0)
    assert load(store).libraries == mine  # no frame was made
    changed = scene.corpus / "audio" / "d008.flac"
    sound, rate = soundfile.read(changed, dtype="int16")
    soundfile.write(changed, sound[:-rate], rate)
    (warning,) = (one for one in warnings(scene) if says(one, chains_codes.OTHER_LIBRARY))
    assert load(store).libraries["soxr"] == tuple(sorted([real["soxr"], "9.9"]))
    assert f"soxr {', '.join(sorted([real['soxr'], '9.9']))} made" in warning


def test_a_store_names_what_its_workers_had(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what the driver has, which made no frame."""
    real = libraries.versions()
    for stage in (Index, Queries):
        whole = stage.run

        def elsewhere(self: Any, task: Any, context: Any, whole: Any = whole) -> Any:
            with monkeypatch.context() as there:
                there.setattr(libraries, "versions", lambda: {**real, "soxr": "9.9"})
                return whole(self, task, context)

        monkeypatch.setattr(stage, "run", elsewhere)
    (warning,) = warnings(scene)
    assert f"soxr 9.9 made features of this store, and {real['soxr']} is" in warning
    for store in (scene.folder / "run").rglob("manifest.json"):
        assert load(Folder(str(store.parent))).libraries["soxr"] == ("9.9",)


@pytest.mark.slow
def test_a_calibration_of_another_system_or_of_these_documents(scene: Any, tmp_path: Path) -> None:
    """Fitted on other documents and this system's scores, nothing is told; else what does not fit is."""
    rows = [f"d{k:03d}" for k in range(1, 100)]
    documents = (scene.corpus / "docs.csv").read_text().splitlines()
    numbers = [k for k, name in enumerate(rows, 1) if any(line.startswith(f"{name},") for line in documents)]
    half = len(numbers) // 2
    scene.select(*numbers[:half])
    scene.run(run="first")
    (fitted,) = (scene.folder / "first" / "calibration").iterdir()
    file = tmp_path / "fitted.json"
    file.write_bytes(fitted.read_bytes())

    scene.select(*numbers[half:])
    same = scene.run(f"calibrate.fit={file}", run="second")
    told = (stages_codes.CALIBRATION_OF_OTHER_SCORES, stages_codes.CALIBRATION_ON_TEST_DATA)
    assert not [one for one in same.report.warnings if any(says(one, code) for code in told)]
    other = scene.run(f"calibrate.fit={file}", "search.distance=cosine-squared", "system=squared", run="second")
    (warning,) = (one for one in other.report.warnings if says(one, stages_codes.CALIBRATION_OF_OTHER_SCORES))
    assert warning.startswith("1 calibration ")
    assert "fitted.json, of system config: search.distance was cosine, here cosine-squared" in warning
    # Nothing is left to do, and it is still told.
    again = scene.run(f"calibrate.fit={file}", "search.distance=cosine-squared", "system=squared", run="second")
    assert again.outcome.tasks_done == 0
    assert warning in again.outcome.chain_run.notices()
    strict = scene.here(
        f"calibrate.fit={file}", "search.distance=cosine-squared", "system=squared", "strict=true", run="second"
    )
    assert strict.code in (3, 4)
    assert says(strict.err, stages_codes.CALIBRATION_OF_OTHER_SCORES)

    scene.select(*numbers[:half])
    mixed = scene.run(f"calibrate.fit={file}", run="first")
    (warning,) = (one for one in mixed.report.warnings if says(one, stages_codes.CALIBRATION_ON_TEST_DATA))
    assert warning.startswith("1 calibration ")
