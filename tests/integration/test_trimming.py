"""Queries as people record them: what is around the speech is cut off, said, and of no account."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import expecting, in_this_process

import swsdist
from swsdist.core.errors import DataError
from swsdist.io.filesystem import Folder
from swsdist.store.reading import Store

DEV = Path(__file__).parents[2].parent / "shared/data/mboshi"
RNG = np.random.default_rng(3)
BEFORE, AFTER = 0.7, 0.5


@pytest.fixture
def scene(own_corpus: Any) -> Any:
    """A corpus that may be changed."""
    return own_corpus


def noise(seconds: float, rate: int) -> np.ndarray:
    return RNG.normal(scale=1e-3, size=round(seconds * rate))


@pytest.fixture
def recorded(scene: Any) -> list[dict[str, str]]:
    """The corpus's queries with faint noise around them; as rows."""
    with (scene.corpus / "queries.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["example"] == "1"]
    for row in rows:
        samples, rate = soundfile.read(scene.corpus / row["path"])
        soundfile.write(
            scene.corpus / row["path"], np.concatenate([noise(BEFORE, rate), samples, noise(AFTER, rate)]), rate
        )
    return rows


def ask(scene: Any, rows: list[dict[str, Any]]) -> None:
    with (scene.corpus / "queries.csv").open("w", newline="") as file:
        writer = csv.DictWriter(
            file, ["query_id", "example", "path", "start", "end"], restval="", extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.slow
def test_a_report_says_what_was_cut(scene: Any, recorded: list[dict[str, str]]) -> None:
    seconds = {row["query_id"]: soundfile.info(scene.corpus / row["path"]).duration for row in recorded}
    ask(scene, recorded)
    scene.run()
    report = scene.report()
    assert report["counts"]["trimmed"] == len(recorded)
    queries = Store(Folder(str(scene.folder / "run" / "queries")))
    kept = dict(zip(*(queries.documents()[name].to_pylist() for name in ("doc_id", "duration")), strict=True))
    for row in report["per_query"]:
        assert row["cut"] == pytest.approx(BEFORE + AFTER, abs=0.35)
        assert row["duration"] == pytest.approx(kept[row["query_id"]])
        assert row["duration"] + row["cut"] == pytest.approx(seconds[row["query_id"]], abs=0.002)
    # SSF is of the queries as they were given.
    cost = report["resources"]
    assert cost["query_seconds"] == pytest.approx(sum(seconds.values()), abs=0.01)
    assert cost["searched_query_seconds"] == pytest.approx(sum(kept.values()))
    assert report["ssf"] * cost["query_seconds"] * cost["audio_seconds"] == pytest.approx(cost["search_cpu_s"])
    page = (scene.folder / "run" / "report.html").read_text()
    assert f"{len(recorded)} trimmed to their speech" in page
    # Without it, all of a recording is the query.
    scene.run("queries.trim=none")
    report = scene.report()
    assert report["counts"]["trimmed"] == 0
    for row in report["per_query"]:
        assert row["cut"] is None
        assert row["duration"] == pytest.approx(seconds[row["query_id"]], abs=0.02)
    assert report["resources"]["query_seconds"] == report["resources"]["searched_query_seconds"]


def test_ends_that_were_given_stay(scene: Any, recorded: list[dict[str, str]]) -> None:
    one = recorded[0]
    whole = soundfile.info(scene.corpus / one["path"]).duration
    places = [("0.1", "0.9"), ("0.1", ""), ("", str(round(whole - 0.1, 3))), ("", "")]
    ask(scene, [{**one, "query_id": f"q{k}", "start": a, "end": b} for k, (a, b) in enumerate(places)])
    scene.run("corpus.references=null", "calibrate.fit=none")
    cut = {row["query_id"]: row["cut"] for row in scene.report()["per_query"]}
    assert cut["q0"] is None
    assert cut["q1"] == pytest.approx(AFTER, abs=0.2)
    assert cut["q2"] == pytest.approx(BEFORE, abs=0.2)
    assert cut["q3"] == pytest.approx(BEFORE + AFTER, abs=0.35)


@pytest.mark.until("queries")
def test_a_query_without_speech_is_rejected(scene: Any, recorded: list[dict[str, str]]) -> None:
    rate = soundfile.info(scene.corpus / recorded[0]["path"]).samplerate
    soundfile.write(scene.corpus / "queries" / "empty.wav", noise(1.0, rate), rate)
    ask(scene, [*recorded, {"query_id": "empty", "example": "1", "path": "queries/empty.wav"}])
    scene.run()
    (row,) = scene.rejected()
    assert (row["id"], row["reason"]) == ("empty", "no-speech")
    assert "queries.trim: none" in row["remedy"]
    scene.run("queries.trim=none")
    assert scene.rejected() == []


@pytest.mark.parametrize("kind", ["speech that goes on", "a word in a tape"])
@pytest.mark.until("queries")
def test_a_tape_is_no_query(scene: Any, recorded: list[dict[str, str]], kind: str) -> None:
    """It is rejected with what to do, where some phrase of it would be searched; as it is it may still be asked for."""
    word, rate = soundfile.read(scene.corpus / recorded[0]["path"])
    parts = [noise(20, rate), word, noise(20, rate)]
    if kind == "speech that goes on":  # no pauses, else there is one phrase a word
        speech = word[round(BEFORE * rate) : -round(AFTER * rate)]
        parts = [speech] * (round(35 * rate / len(speech)) + 1)
    soundfile.write(scene.corpus / "queries" / "tape.wav", np.concatenate(parts), rate)
    ask(scene, [*recorded, {"query_id": "tape", "example": "1", "path": "queries/tape.wav"}])
    scene.run()
    (row,) = scene.rejected()
    assert (row["id"], row["reason"]) == ("tape", "too-long")
    assert "mark a place: FILE:START-END" in row["remedy"]
    with pytest.raises(DataError, match="too long for a query"):
        swsdist.search(str(scene.folder / "run" / "store"), str(scene.corpus / "queries" / "tape.wav"))


@pytest.mark.slow
@pytest.mark.until("index")
def test_a_search_by_hand(scene: Any, recorded: list[dict[str, str]]) -> None:
    ask(scene, recorded)
    scene.run()
    store, path = str(scene.folder / "run" / "store"), str(scene.corpus / recorded[0]["path"])
    command = ("search", store, "--query", path, "--csv")
    printed = expecting(in_this_process)(*command)
    assert "s after the speech of" in printed.err
    assert expecting(in_this_process)(*command, "--no-trim").err == ""
    whole = swsdist.search(store, path, trim=False)
    trimmed = swsdist.search(store, path)
    assert trimmed["frames"].max() < whole["frames"].max()
    assert printed.out.splitlines()[1].split(",")[1] == trimmed["doc_id"][0]


@pytest.mark.slow
def test_columns_that_are_not_read_are_told(scene: Any, recorded: list[dict[str, str]]) -> None:
    """An `end` of which nothing says where it begins is no place: the query is trimmed as if it were not there."""
    ask(scene, recorded)
    scene.run(run="plain")
    path = scene.corpus / "queries.csv"
    lines = [line.split(",")[:3] for line in path.read_text().splitlines()]
    path.write_text(
        "\n".join(",".join([*line, *(("Begin", "end") if k == 0 else ("0.2", "0.9"))]) for k, line in enumerate(lines))
    )
    result = scene.run()
    warnings = scene.report()["warnings"]
    assert ["column 'end' without 'start'" in warnings[0], "[unread-column]" in warnings[1]] == [True, True]
    assert warnings[1].split("&")[0] in (scene.folder / "run" / "report.html").read_text().replace("&#39;", "'")
    assert result.outcome.chain_run.notices() == warnings
    assert scene.digest() == scene.digest("plain")
    with pytest.raises(DataError, match="an error because of --strict"):
        scene.run("strict=true", run="strict")


@pytest.mark.slow
@pytest.mark.skipif(not DEV.is_dir(), reason="needs ../shared beside the checkout, with the Mboshi corpus")
def test_margins_cost_next_to_nothing(mboshi_dev: Any, tmp_path: Path) -> None:
    """The goals of the corpus `dev-margins`, against the words as they were cut."""
    config = Path(__file__).parents[2] / "configs" / "mboshi-dev.yaml"
    assert mboshi_dev.outcome.chain_run.config.queries.trim == "none"
    shutil.copytree(Path(mboshi_dev.folder) / "store", tmp_path / "store")  # with copy2
    common = ["executor.kind=serial", "report.exports=[]", "report.clips=0", f"index.store={tmp_path / 'store'}"]
    found = {"whole": mboshi_dev.measures()}
    for name, sets in {
        "clean": ["queries.trim=auto"],
        "margins": ["queries.trim=auto", f"corpus.queries={DEV / 'dev-margins' / 'queries.csv'}"],
    }.items():
        result = swsdist.run(config, sets=[*common, f"run={tmp_path / name}", *sets])
        assert result.outcome.chain_run.outcomes["index"].done == 0
        found[name] = result.measures()
    before, clean, margins = (found[name] for name in ("whole", "clean", "margins"))
    for auc in ("auc", "pair_auc"):
        assert clean[auc] >= before[auc] - 0.003
        assert margins[auc] >= before[auc] - 0.01
    assert margins["cnxe_min"] <= before["cnxe_min"] + 0.02
    assert margins["mtwv"] >= 0.95 * before["mtwv"]
