"""The four ways to a threshold, through a run; one run folder, whose last stages are done again each time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import swsdist
from swsdist.api import RunResult
from swsdist.calibrate.procedure import fold_of
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.codes import score as codes
from swsdist.report.summary import summary_lines
from tests.support.coded import raises, says

#: One after the other, in this order: a run that has nothing to do makes no report.
pytestmark = pytest.mark.xdist_group("calibrate-modes")

RATE = 8000


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Eight queries of coloured noise, each planted in two of six documents."""
    root = tmp_path_factory.mktemp("modes")
    rng = np.random.default_rng(8)
    words = [np.cumsum(rng.normal(size=round(0.4 * RATE))) * 0.003 for _ in range(8)]
    documents = [rng.normal(scale=0.05, size=3 * RATE) for _ in range(6)]
    refs = ["query_id,doc_id,start,end"]
    for k, word in enumerate(words):
        soundfile.write(root / f"q{k}.wav", word.clip(-1, 1), RATE)
        for d, start in ((k % 6, 0.2 + 0.6 * (k % 4)), ((k + 2) % 6, 0.5 + 0.6 * (k % 4))):
            first = round(start * RATE)
            documents[d][first : first + len(word)] += word
            refs.append(f"q{k},d{d},{start:.1f},{start + 0.4:.1f}")
    for d, samples in enumerate(documents):
        soundfile.write(root / f"d{d}.wav", samples.clip(-1, 1), RATE)
    (root / "docs.csv").write_text("doc_id,path\n" + "".join(f"d{d},d{d}.wav\n" for d in range(6)))
    (root / "queries.csv").write_text("query_id,path\n" + "".join(f"q{k},q{k}.wav\n" for k in range(8)))
    (root / "refs.csv").write_text("\n".join(refs) + "\n")
    return root


def run(place: Path, fit: str, *sets: str, references: bool = True) -> RunResult:
    config: dict[str, Any] = {
        "run": str(place / "run"),
        "corpus": {"documents": str(place / "docs.csv"), "queries": str(place / "queries.csv")},
        "queries": {"trim": "none"},  # made-up noise is no speech
        "features": {"options": {"sample_rate": RATE, "n_fft": 256, "win_length": 200, "hop_length": 80}},
        "calibrate": {"fit": fit},
        "score": {"beta": 1.0},  # a few seconds of audio: one false alarm must not outweigh all hits
        "report": {"exports": []},
        "executor": {"kind": "serial"},
    }
    if references:
        config["corpus"]["references"] = str(place / "refs.csv")
    return swsdist.run(config, sets=sets)


def decisions(result: RunResult) -> set[tuple[Any, ...]]:
    frame = result.detections()
    return set(zip(frame["query_id"], frame["score"], frame["decision"], strict=True))


def calibration_file(result: RunResult) -> Path:
    (receipt,) = result.outcome.chain_run.outcomes["fit"].receipts
    return Path(result.folder) / receipt.outputs[0].name


def test_crossfit_decides_each_query_by_the_others(place: Path) -> None:
    result = run(place, "crossfit")
    measures = result.measures()
    assert measures["calibration"] == "crossfit"
    assert measures["atwv"] <= measures["mtwv"] + 1e-12
    thresholds = measures["atwv_thresholds"]
    assert len(thresholds) == 5
    for query_id, score, decision in decisions(result):
        assert decision == (score >= thresholds[fold_of(query_id, 5)])


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "lonely"), [([0], [0]), ([0, 3], [0, 3]), ([0, 1], []), (range(8), [])])
def test_a_query_that_no_other_query_decides_is_told(place: Path, asked: Sequence[int], lonely: list[int]) -> None:
    """A run shows the thresholds of folds that have a query, and warns of queries that have none."""
    names = [f"q{k}" for k in asked]
    assert (len({fold_of(name, 5) for name in names}) == 1) == bool(lonely)
    first, *rows = (place / "refs.csv").read_text().splitlines()
    (place / "some.csv").write_text("query_id,path\n" + "".join(f"{name},{name}.wav\n" for name in names))
    (place / "true.csv").write_text("\n".join([first, *(row for row in rows if row.split(",")[0] in names)]) + "\n")
    tables = {"queries": "some", "references": "true"}
    result = run(place, "crossfit", *(f"corpus.{name}={place / table}.csv" for name, table in tables.items()))
    limits = result.measures()["atwv_thresholds"]
    deciding = {fold_of(name, 5) for k, name in zip(asked, names, strict=True) if k not in lonely}
    assert [value is not None for value in limits] == [fold in deciding for fold in range(5)]
    told = [text for text in result.outcome.chain_run.notices() if says(text, chains_codes.UNDECIDED_QUERIES)]
    assert [text.split()[0] for text in told] == [str(len(lonely))] * bool(lonely)
    if lonely:
        assert {decision for _, _, decision in decisions(result)} == {False}
        assert f"(first: q{lonely[0]})" in told[0]
        assert "more queries" in told[0]
        assert "calibrate.fit" in told[0]
        assert result.report is not None
        (line,) = (line for line in summary_lines(result.report) if line.startswith("ATWV"))
        assert "no threshold" in line


@pytest.mark.parametrize(
    ("fit", "references", "seen"),
    [
        ("none", True, ("own query",)),
        ("crossfit", True, ("own query", "other queries", "references")),
        ("crossfit", False, ("own query",)),  # nothing was fitted
    ],
)
def test_a_report_says_what_decisions_looked_at(place: Path, fit: str, references: bool, seen: tuple[str, ...]) -> None:
    (place / "run" / "report.json").unlink(missing_ok=True)  # an earlier test's, of the same config, would stay
    result = run(place, fit, references=references)
    assert result.report is not None
    assert result.report.looked_at == seen
    (line,) = (line for line in summary_lines(result.report) if line.startswith("decisions"))
    assert line.split(None, 1)[1].startswith("independent" if len(seen) == 1 else "dependent")
    written = json.loads((place / "run" / "report.json").read_text())
    assert written["looked_at"] == list(seen)


def test_oracle_reaches_the_maximum(place: Path) -> None:
    result = run(place, "oracle")
    measures = result.measures()
    assert measures["calibration"] == "oracle"
    assert measures["atwv"] == pytest.approx(measures["mtwv"], abs=1e-12)
    assert {decision for _, _, decision in decisions(result)} == {True, False}


def test_none_decides_nothing(place: Path) -> None:
    result = run(place, "none")
    assert {decision for _, _, decision in decisions(result)} == {None}
    assert result.measures()["atwv"] is None
    assert result.measures()["mtwv"] > 0


@pytest.mark.slow
def test_a_file_decides_as_it_was_fitted(place: Path, tmp_path: Path) -> None:
    """An oracle's file gives the same decisions; a crossfit's its mean; references are not needed."""
    oracle = run(place, "oracle")
    kept = tmp_path / "kept.json"
    kept.write_bytes(calibration_file(oracle).read_bytes())
    by_file = run(place, str(kept))
    # Of what is scored, and so called; else it is "file".
    assert by_file.measures()["calibration"] == "oracle"
    assert decisions(by_file) == decisions(oracle)
    bare = run(place, str(kept), references=False)
    assert decisions(bare) == decisions(oracle)
    assert bare.measures() == {}
    crossfit = json.loads(calibration_file(run(place, "crossfit")).read_bytes())
    (tmp_path / "folds.json").write_text(json.dumps(crossfit))
    mean = np.mean([value for value in crossfit["thresholds"] if value is not None])
    assert run(place, str(tmp_path / "folds.json")).measures()["atwv_thresholds"] == [pytest.approx(mean)]


def test_a_changed_file_decides_anew(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "threshold.json"
    kept = {"schema": "swsdist-steps/1", "fit": "oracle", "steps": [], "trained_on": {}}
    for threshold, decided in ((-1e9, {True}), (1e9, {False})):
        path.write_text(json.dumps({**kept, "thresholds": [threshold]}))
        assert {decision for _, _, decision in decisions(run(place, str(path)))} == decided


def test_wrong_files_end_the_run(place: Path, tmp_path: Path) -> None:
    with raises(families.MISSING_FILE):
        run(place, str(tmp_path / "gone.json"))
    (tmp_path / "wrong.json").write_text("{}")
    with raises(codes.NOT_FITTED_STEPS):
        run(place, str(tmp_path / "wrong.json"))


def test_without_references_nothing_decides(place: Path) -> None:
    result = run(place, "crossfit", references=False)
    assert {decision for _, _, decision in decisions(result)} == {None}
    assert result.measures() == {}
