"""Every command on a small run: what it prints, what it writes, and that Python gives the same numbers."""

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import soundfile
from commands import untold

import swsdist as package
from swsdist.calibrate.likelihood import WORDS
from swsdist.config import load_config
from swsdist.report.summary import clock

STEPS = """index queries search reduce normalise align.train fit decide align.final measure score
    summarise format export"""


def test_run_makes_a_report(first_run, place: Path) -> None:
    written = {path.name for path in (place / "run").iterdir()}
    assert {"config.yaml", "plan.json", "report.html", "report.json", "rejected.parquet", "store", "exports"} <= written
    assert not (place / "run" / "lock.json").exists()
    report = json.loads((place / "run" / "report.json").read_text())
    table = dict(line.split(maxsplit=1) for line in first_run.out.splitlines() if line and not line.startswith(" "))
    assert float(table["MTWV"].split()[0]) == pytest.approx(report["measures"]["mtwv"], abs=5e-5)
    assert float(table["ATWV"].split()[0]) == pytest.approx(report["measures"]["atwv"], abs=5e-5)
    assert str(place / "run" / "report.html") in first_run.out
    for stage in STEPS.split():
        assert f"{stage}: " in first_run.err


def contents(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_python_agrees(place: Path) -> None:
    result = package.run(place / "config.yaml")
    measures = json.loads((place / "run" / "report.json").read_text())["measures"]
    names = ("mtwv", "atwv", "mtwv_threshold")
    assert [result.measures()[name] for name in names] == [measures[name] for name in names]
    exported = pd.read_csv(place / "run" / "exports" / "detections.csv")
    mine = result.detections()
    assert len(exported) == len(mine)
    assert set(exported["score"]) == set(mine["score"])
    assert set(mine["system"]) == {"mine"}


def test_dry_run_says_what_is_left(swsdist, place: Path, tmp_path: Path) -> None:
    before = contents(place)
    done = swsdist("run", "config.yaml", "--dry-run", cwd=place).out
    assert "Nothing was done" in done
    assert "forecast" not in done  # nothing is left
    again = swsdist("run", "config.yaml", "--dry-run", "--set", "reduce.overlap=0.3", cwd=place).out
    assert re.search(r"forecast: [\d.]+ .*s \([\d.]+ .*s to [\d.]+ .*s\) with 1 worker,", again)
    assert contents(place) == before
    fresh = swsdist("run", "config.yaml", "--dry-run", "--set", f"run={tmp_path / 'new'}", cwd=place).out
    assert "later" in fresh
    assert "forecast:" not in fresh  # no receipt tells what a task takes
    assert "estimate: none" in fresh
    assert not (tmp_path / "new").exists()


def test_forecast_of_a_run_on_other_machines(swsdist, place: Path, tmp_path: Path) -> None:
    ask = ("forecast", "run", "--until", "normalise")
    assert re.search(r"hours with \d+ query examples on 1 node, 1 worker:", swsdist(*ask, cwd=place).out)
    itself = json.loads(swsdist(*ask, "--start-s", "0", "--json", cwd=place).out)
    assert itself["took"]["workers"] == 1
    assert itself["wall_s"] == pytest.approx(itself["took"]["wall_s"], rel=0.25)
    more = ("--hours", "100", "--nodes", "10", "--cpus", "4", "--price", "2")
    told = json.loads(swsdist(*ask, *more, "--json", cwd=place).out)
    assert (told["schema"], told["workers"]) == ("swsdist-forecast/1", 40)
    assert told["price"] == pytest.approx(2 * told["node_hours"])
    assert told["node_hours"] == pytest.approx(10 * told["wall_s"] / 3600)
    assert [step["name"] for step in told["steps"]] == ["start", "index", "queries", "search", "reduce", "normalise"]
    machines = tmp_path / "cluster.yaml"
    machines.write_text("start_s: 0\nkinds: [{nodes: 2, cpus: 8}, {speed: 2.0}]\n")
    typed = f"forecast run --until normalise --cluster {machines}"
    assert "on 3 nodes" in swsdist(*typed.split(), cwd=place).out
    assert untold(swsdist, {f"{typed} --nodes 3": "[conflicting-options]"}, place) == {}
    for text, told in (("cpu: 3\n", "[unknown-key]"), ("a: [\n", f"{machines}:")):
        machines.write_text(text)
        assert untold(swsdist, {typed: told}, place) == {}
    assert untold(swsdist, {"forecast run --until indx": "[unknown-name]"}, place) == {}
    assert untold(swsdist, {"forecast corpus": "[not-a-run]"}, place, code=3) == {}


def test_commands_of_stages(swsdist, place: Path) -> None:
    for command in ("run", "index", "search", "reduce", "score", "export"):
        assert "nothing to do" in swsdist(command, "config.yaml", cwd=place).out


@pytest.mark.slow
def test_stage_by_stage_is_the_same_as_at_once(swsdist, place: Path, tmp_path: Path) -> None:
    """And one alone leaves what comes after it."""
    folder = tmp_path / "steps"
    setting = ("config.yaml", "--set", f"run={folder}")
    for command, made in {
        "index": "store/manifest.json",
        "search": "tables/candidates",
        "reduce": "tables/normalised",
        "score": "tables/measures",
        "export": "exports/stdlist.xml",
    }.items():
        assert not (folder / made).exists()
        swsdist(command, *setting, cwd=place)
        assert (folder / made).exists()
    assert package.digest(str(folder)) == package.digest(str(place / "run"))
    only = swsdist("run", *setting, "--set", "calibrate.fit=none", "--only", "decide", cwd=place)
    assert "decide: 3 tasks" in only.err
    assert "score" not in only.err


def test_status(swsdist, place: Path) -> None:
    out = swsdist("status", place / "run").out
    assert out.splitlines()[0] == "done"
    assert out.count(" tasks") == len(STEPS.split())
    found = json.loads(swsdist("status", place / "run", "--json").out)
    assert found["state"] == "done"
    assert [stage["done"] for stage in found["stages"]] == [stage["tasks"] for stage in found["stages"]]
    assert swsdist("status", place / "config.yaml").out == out  # as `report` takes it
    assert json.loads(swsdist("status", "config.yaml", "--json", cwd=place).out) == found


def test_digest(swsdist, place: Path) -> None:
    known = package.digest(str(place / "run"))
    lines = swsdist("digest", place / "run", "--tables").out.splitlines()
    assert lines[-1] == known.pop("all")
    assert dict(reversed(line.split("  ")) for line in lines[:-1]) == known
    assert swsdist("digest", place / "run").out.strip() == lines[-1]


def test_search_in_a_store(swsdist, place: Path) -> None:
    """A file, and a place in a file; the same table as in Python, to the last digit."""
    reference = pd.read_csv(place / "corpus" / "refs.csv").iloc[0]
    talk = f"corpus/audio/{reference['doc_id']}.flac:{reference['start']}-{reference['end']}"
    word = f"corpus/queries/{reference['query_id']}_1.wav"
    out = swsdist("search", "run/store", "--query", talk, "--query", word, "--top", "3", "--csv", cwd=place).out
    found = pd.read_csv(io.StringIO(out), float_precision="round_trip")
    assert found.groupby("query_id").size().to_dict() == {talk: 3, word: 3}
    first = found[found["query_id"] == talk].iloc[0]
    assert first["doc_id"] == reference["doc_id"]
    assert abs(first["start"] - reference["start"]) < 0.05
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        same = package.search("run/store", [talk, word], top=3)
    pd.testing.assert_frame_equal(found[same.columns], same, check_dtype=False, check_exact=True)
    shown = swsdist("search", "run/store", "--query", word, "--top", "1", cwd=place).out
    best = same[same["query_id"] == word].iloc[0]
    assert f"{best['score']:.3f}" in shown
    assert best["doc_id"] in shown


def test_search_in_a_run(swsdist, place: Path, tmp_path: Path) -> None:
    word, other = "corpus/queries/q001_1.wav", "corpus/queries/q002_1.wav"
    shown = swsdist("search", "run", "--query", word, "--query", other, "--top", "4", cwd=place).out
    rows = [line.split() for line in shown.splitlines() if line.split()[:1] and line.split()[0].isdigit()]
    assert len(rows) == 8
    for _, called, share, *_ in rows:
        assert (called == "likely") == (int(share[:-1]) >= 50)
    squared = ("--set", "search.distance=cosine-squared")

    def scores(*ask: str | Path) -> pd.DataFrame:
        return pd.read_csv(io.StringIO(swsdist("search", *ask, "--query", word, "--csv", cwd=place).out))

    pd.testing.assert_frame_equal(scores("run"), scores("run/store"))
    # By a threshold of other scores, which is told.
    own = ("--run", tmp_path / "squared", "--set", f"index.store={place}/run/store", *squared)
    told = swsdist("run", "config.yaml", *own, "--set", f"calibrate.fit={place}/run", cwd=place).err
    assert "of system mine: search.distance was cosine, here cosine-squared" in told
    assert "other scores" in json.loads((tmp_path / "squared/report.json").read_text())["warnings"][0]
    pd.testing.assert_frame_equal(scores(tmp_path / "squared"), scores("run/store", *squared))
    assert not scores("run/store").equals(scores("run/store", *squared))
    values = json.loads(swsdist("search", "run", "--query", word, "--top", "2", "--json", cwd=place).out)
    columns = package.search(str(place / "run/store"), str(place / word), top=2).columns.tolist()
    assert [list(row) for row in values] == [[*columns, "rank", "likely", "called", "path"]] * 2
    assert all(Path(row["path"]).is_file() and row["called"] in WORDS for row in values)
    swsdist("search", "run", "--query", word, "--csv", "--json", cwd=place, code=2)


@pytest.mark.slow
def test_queries_from_the_standard_input(process, place: Path) -> None:
    words = b"corpus/queries/q001_1.wav\n\ncorpus/queries/q002_1.wav\n"
    command = [sys.executable, "-m", "swsdist.cli.main", "search", "run", "--query", "-", "--top", "1", "--csv"]
    sound = (place / "corpus/queries/q001_1.wav").read_bytes()
    for given, names, code in (
        (words, words.decode().split(), b""),
        (sound, [], b"malformed-file"),
        (b"\n", [], b"missing-input"),
    ):
        done = subprocess.run(command, input=given, cwd=place, capture_output=True, check=False)
        assert (done.returncode, code in done.stderr) == (2 if code else 0, True)
        assert [line.split(",")[0] for line in done.stdout.decode().splitlines()[1:]] == names


def test_times_as_a_clock_shows_them() -> None:
    shown = {0: "0:00.00", 59.994: "0:59.99", 59.996: "1:00.00", 3723.456: "1:02:03.46", 36000: "10:00:00.00"}
    assert {seconds: clock(seconds) for seconds in shown} == shown


def test_store_info(swsdist, place: Path) -> None:
    store = package.open_store(str(place / "run" / "store"))
    out = swsdist("store", "info", "run/store", "--documents", cwd=place).out
    assert "mfcc version 2" in out
    assert "kind        frames, 10 ms per tick" in out
    assert "mfcc: 39 features per tick" in out
    assert all(f"\n{doc_id}\t1\t" in out for doc_id in store.documents()["doc_id"].to_pylist())
    values = json.loads(swsdist("store", "info", "run/store", "--json", cwd=place).out)
    assert values["fingerprint"] == store.manifest.fingerprint
    assert values["counts"] == store.manifest.counts


def test_store_cat(swsdist, place: Path, tmp_path: Path) -> None:
    expected = package.open_store(str(place / "run" / "store")).features("d001")
    lines = swsdist("store", "cat", "run/store", "d001", cwd=place).out.splitlines()
    values = np.array([[float(value) for value in line.split("\t")] for line in lines])
    assert values[:3, 0].tolist() == [0.0, 0.01, 0.02]
    assert np.allclose(values[:, 1:], expected, rtol=1e-5)
    swsdist("store", "cat", "run/store", "d001", "--npy", tmp_path / "x.npy", cwd=place)
    assert np.load(tmp_path / "x.npy").tobytes() == expected.tobytes()


def test_store_compact_changes_no_result(swsdist, place: Path, tmp_path: Path) -> None:
    for name in ("run", "corpus"):
        shutil.copytree(place / name, tmp_path / name, copy_function=shutil.copy2)
    search = ("search", "run/store", "--query", "corpus/queries/q001_1.wav", "--csv")
    before = swsdist(*search, cwd=tmp_path).out
    assert "became 4" in swsdist("store", "compact", "run/store", "--hours", "0.003", cwd=tmp_path).out
    assert "complete: 4 shards, 8 documents" in swsdist("store", "check", "run/store", cwd=tmp_path).out
    assert swsdist(*search, cwd=tmp_path).out == before
    name = package.open_store(str(tmp_path / "run/store")).manifest.shards[0].name
    (tmp_path / "run/store" / name).write_bytes(b"PAR1")
    assert name in swsdist("store", "check", "run/store", cwd=tmp_path, code=3).out


def test_init_writes_a_config_that_loads(swsdist, tmp_path: Path) -> None:
    swsdist("init", cwd=tmp_path)
    assert load_config(tmp_path / "swsdist.yaml", []).corpus.documents == str(tmp_path / "docs.csv")
    assert untold(swsdist, {"init": "[output-refused] .. --force"}, tmp_path) == {}
    swsdist("init", "--force", cwd=tmp_path)
    swsdist("init", "other.yaml", cwd=tmp_path)
    assert (tmp_path / "other.yaml").read_text() == (tmp_path / "swsdist.yaml").read_text()


def test_doctor(swsdist) -> None:
    out = swsdist("doctor", "--no-executors").out
    assert "BLAS" in out
    assert "mfcc (swsdist.features.mfcc:Mfcc)" in out
    assert "BAD" not in out


def test_rejected_inputs_and_strict(swsdist, place: Path, tmp_path: Path) -> None:
    """Bad ones are told and left out; --strict makes that exit code 4, also when nothing else is left to do."""
    (tmp_path / "noise.flac").write_bytes(b"fLaC no more")
    soundfile.write(tmp_path / "short.wav", np.zeros(100), 16000)
    docs = (place / "corpus" / "docs.csv").read_text().replace("audio/", f"{place}/corpus/audio/")
    (tmp_path / "docs.csv").write_text(f"{docs}bad,noise.flac,1.0,voice1\ngone,gone.wav,1.0,voice1\n")
    queries = (place / "corpus" / "queries.csv").read_text().replace("queries/", f"{place}/corpus/queries/")
    (tmp_path / "queries.csv").write_text(f"{queries}qx,x,1,short.wav,0.1,voice1\n")
    config = (place / "config.yaml").read_text().replace("corpus/docs", "docs").replace("corpus/queries", "queries")
    (tmp_path / "config.yaml").write_text(config.replace("corpus/refs", f"{place}/corpus/refs"))
    swsdist("run", "config.yaml", cwd=tmp_path)
    rows = pq.read_table(tmp_path / "run" / "rejected.parquet").to_pylist()
    found = sorted((row["kind"], row["id"]) for row in rows)
    assert found == [("document", "bad"), ("document", "gone"), ("query", "qx")]
    assert (tmp_path / "run" / "report.html").is_file(), "it finished all the same"
    strict = swsdist("run", "config.yaml", "--strict", cwd=tmp_path, code=4).err
    assert "3 rejected inputs under --strict [strict]" in strict
