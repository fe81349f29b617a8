"""What does not fit together in a corpus is told, with a count and the first case; what is implausible ends the run with an
error of its own, after it has kept its work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from swsdist.chains.check import check
from swsdist.cli.scoring import score
from swsdist.config import load_config
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.codes import stages as stages_codes
from swsdist.core.errors import ImplausibleError
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.io.notices import FEW, REJECTED
from swsdist.pipeline.ledger import Ledger
from swsdist.stages.inputs.search_inputs import SearchInputs
from swsdist.store import manifest as libraries
from swsdist.store.maintaining import compact
from swsdist.store.manifest import load
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows

Rows = list[dict[str, str]]


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def change(scene: Any, table: str, how: Callable[[Rows], Any]) -> None:
    """Rewrite a table of the corpus."""
    path: Path = scene.corpus / f"{table}.csv"
    rows = read_rows(path)
    how(rows)
    write_rows(path, rows)


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
def test_durations_references_and_queries_that_do_not_fit(scene: Any) -> None:
    def cut(rows: Rows) -> None:
        rows[0].update(path="", doc_id="d002", start="1.0", end="1.6")
        rows[3].update(path="audio/d004.flac", start="1.0", end="1.7")

    change(scene, "docs", lambda rows: [rows[k].update(duration=value) for k, value in ((2, "7200"), (5, "60"))])
    change(scene, "refs", lambda rows: rows[1].update(start="500.0", end="500.7"))
    change(scene, "queries", cut)
    told = warnings(scene, "corpus.examples=all")
    for code, many in (
        (stages_codes.CONTRADICTED_DURATION, "2 of 8 durations "),
        (stages_codes.REFERENCE_AFTER_END, "1 "),
        (stages_codes.QUERY_FINDS_ITSELF, "1 "),  # the other names its document, so its own place is left out
    ):
        (warning,) = (one for one in told if says(one, code))
        assert warning.startswith(many), warning
    done = scene.here("strict=true", run="strict")
    assert done.code == 4
    assert says(done.err, stages_codes.CONTRADICTED_DURATION)


def test_references_outside_of_a_recording_whose_table_does_not_tell_its_length(scene: Any) -> None:
    change(scene, "docs", lambda rows: [row.pop("duration", None) for row in rows])
    change(scene, "refs", lambda rows: rows[1].update(start="500.0", end="500.7"))
    (warning,) = warnings(scene)
    assert says(warning, stages_codes.REFERENCE_AFTER_END)


def test_references_in_milliseconds(scene: Any) -> None:
    def thousandfold(rows: Rows) -> None:
        for row in rows:
            row["start"], row["end"] = (str(1000 * float(row[name])) for name in ("start", "end"))

    change(scene, "refs", thousandfold)
    with raises(stages_codes.REFERENCE_AFTER_END, count=6, of=6):
        scene.run(run="refused")
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
    assert warnings(scene, "search.queries_by=collection") == []
    for nobody in ("", "unknown", "<NA>"):
        change(scene, "docs", every(speaker=nobody))
        assert warnings(scene) == []
    (told,) = warnings(scene, "calibrate.steps=[speaker-norm]")
    assert says(told, chains_codes.MISSING_SPEAKERS)
    assert told.startswith(f"{len(list((scene.corpus / 'audio').iterdir()))} documents without a speaker")


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
    # Nothing is left to do, and it is still told; strictly it is an error.
    again = ("search.distance=cosine-squared", "system=squared")
    told = scene.run(f"calibrate.fit={file}", *again, run="second").outcome
    assert (told.tasks_done, warning in told.chain_run.notices()) == (0, True)
    strict = scene.here(f"calibrate.fit={file}", *again, "strict=true", run="second")
    assert (strict.code in (3, 4), says(strict.err, stages_codes.CALIBRATION_OF_OTHER_SCORES)) == (True, True)

    scene.select(*numbers[:half])
    mixed = scene.run(f"calibrate.fit={file}", run="first")
    (warning,) = (one for one in mixed.report.warnings if says(one, stages_codes.CALIBRATION_ON_TEST_DATA))
    assert warning.startswith("1 calibration ")


def bad_lines(scene: Any, run: str) -> list[str]:
    """What `check` finds that keeps a run from its beginning."""
    config = load_config(str(scene.config), [f"run={scene.folder / run}", "corpus.examples=all"])
    found = check(SearchInputs.of(config, Ledger(Folder(str(scene.folder / run)))))
    return [f"{one.name}: {one.text}" for one in found if one.good is False]


def spoil(scene: Any, table: str, count: int) -> None:
    """Make recordings empty: documents, or examples of queries."""
    rows = read_rows(scene.corpus / f"{table}.csv")
    for row in rows[:count]:
        (scene.corpus / row["path"]).write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("table", ["docs", "queries"])
def test_what_is_rejected(scene: Any, table: str) -> None:
    """Up to `FEW` files, or a tenth, are rejections; more end the run, whose work is kept."""
    rows = len(read_rows(scene.corpus / f"{table}.csv"))
    most = max(FEW, int(REJECTED * rows))
    assert most + 1 < rows
    spoil(scene, table, most)
    assert bad_lines(scene, "few") == []
    scene.run("corpus.examples=all", run="few")
    assert len(scene.rejected("few")) == most
    spoil(scene, table, most + 1)
    (bad,) = bad_lines(scene, "many")
    assert f"{most + 1} of {rows}" in bad
    with raises(chains_codes.MANY_REJECTED, count=most + 1, of=rows) as caught:
        scene.run("corpus.examples=all", run="many")
    assert caught.value.exit_code == 5
    result = scene.run("corpus.examples=all", "force=true", run="many")
    assert "index" not in {name for name, end in result.outcome.chain_run.outcomes.items() if end.done}  # it was kept
    assert any(one.startswith(f"{most + 1} of {rows} ") for one in result.outcome.chain_run.notices())
    with pytest.raises(ImplausibleError):  # nor does it pass since it was forced once
        scene.run("corpus.examples=all", run="many")


@pytest.mark.slow
def test_durations_of_another_unit(scene: Any) -> None:
    true = scene.run(run="true").measures()
    real = {path.stem: soundfile.info(path).duration for path in (scene.corpus / "audio").iterdir()}
    change(scene, "docs", lambda rows: [row.update(duration=f"{1000 * real[row['doc_id']]:.0f}") for row in rows])
    assert any(says(line, stages_codes.CONTRADICTED_DURATION) for line in bad_lines(scene, "odd"))
    with raises(stages_codes.CONTRADICTED_DURATION, where="docs.csv, line 2", count=len(real), of=len(real)) as caught:
        scene.run(run="odd")
    assert isinstance(caught.value, ImplausibleError)
    assert scene.run("force=true", run="odd").measures() == true


def test_an_extractor_with_too_many_frames_is_found_before_the_run(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Mfcc.extract

    def longer(self: Any, samples: Any) -> Any:
        found = plain(self, samples)
        return np.concatenate([found, found[:3]])

    monkeypatch.setattr(Mfcc, "extract", longer)
    (bad,) = bad_lines(scene, "odd")
    assert says(bad, families.EXTENSION)


NAMES = {"ending": "[unreferenced-documents]", "unit": "[time-unit-mismatch]"}


@pytest.mark.parametrize("what", NAMES)
def test_a_list_whose_names_or_times_do_not_fit(tmp_path: Path, what: str) -> None:
    """An error with both sides' names; forced, a warning, and the measures."""
    references = ["query_id,doc_id,start,end", *(f"q1,talk{n},1.0,1.5" for n in range(4))]
    (tmp_path / "refs.csv").write_text("\n".join(references) + "\n")
    ending, unit = (".flac", 1) if what == "ending" else ("", 1000)
    found = [f"q1,talk{n}{ending},{1 * unit},{1.5 * unit},0.5,True" for n in range(4)]
    (tmp_path / "a.csv").write_text("query_id,doc_id,start,end,score,decision\n" + "\n".join(found) + "\n")
    call = ["-s", f"{tmp_path}/a.csv", "--references", f"{tmp_path}/refs.csv", "--seconds", "9000"]
    refused = CliRunner().invoke(score, call, standalone_mode=False)
    assert isinstance(refused.exception, ImplausibleError), refused.output
    assert "4 of 4" in str(refused.exception)
    assert NAMES[what] in str(refused.exception)
    forced = CliRunner().invoke(score, [*call, "--force", "--json"], standalone_mode=False)
    assert forced.exception is None
    found = json.loads(forced.stdout)
    assert found["measures"]["stwv"] == 0.0
    (notice,) = (one for one in found["notices"] if f"[{one['code']}]" == NAMES[what])
    assert notice["count"] == 4
    assert "4 of 4" in notice["message"]


def test_that_all_is_missed_is_a_warning(scene: Any) -> None:
    """It has no structural cause: references lie in the recordings, and of other moments."""
    change(scene, "refs", every(start="0.0", end="0.02"))
    assert any(says(one, families.ALL_MISSED) for one in warnings(scene))
