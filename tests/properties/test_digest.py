"""The digest of a run: equal however the work was cut, different where the results are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import swsdist
from swsdist.core.errors import StoreError
from swsdist.store.reading import combined

RATE = 2000
FEATURES = {"options": {"sample_rate": RATE, "n_fft": 64, "win_length": 50, "hop_length": 20, "n_mels": 13}}
TABLES = {"documents", "features", "queries", "candidates", "statistics", "detections", "normalised", "aligned", "scored",
          "trials", "terms", "measures"}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("digest")
    rng = np.random.default_rng(2)
    documents = [np.cumsum(rng.normal(size=round(s * RATE))) * 0.01 for s in rng.uniform(0.5, 4, 9)]
    refs = ["query_id,doc_id,start,end"]
    rows = ["query_id,example,path"]
    for k in range(5):
        for number in (1, 2):
            word = documents[k + number - 1][:800] + rng.normal(scale=0.02, size=800)
            soundfile.write(root / f"q{k}_{number}.wav", (word * 0.1).clip(-1, 1), RATE)
            rows.append(f"q{k},{number},q{k}_{number}.wav")
        refs.append(f"q{k},d{k},0.0,0.4")
    for k, samples in enumerate(documents):
        soundfile.write(root / f"d{k}.wav", (samples * 0.1).clip(-1, 1), RATE)
    (root / "docs.csv").write_text("doc_id,path\n" + "".join(f"d{k},d{k}.wav\n" for k in range(9)))
    (root / "queries.csv").write_text("\n".join(rows))
    (root / "refs.csv").write_text("\n".join(refs))
    return root


def run(place: Path, folder: Path, **sections: dict[str, Any]) -> dict[str, str]:
    config: dict[str, Any] = {
        "run": str(folder),
        "corpus": {name: str(place / f"{table}.csv") for name, table in
                   (("documents", "docs"), ("queries", "queries"), ("references", "refs"))} | {"examples": "all"},
        "queries": {"trim": "none"},
        "features": FEATURES,
        "report": {"exports": []},
        "executor": {"kind": "serial"},
    }  # fmt: skip
    for name, section in sections.items():
        config[name] = {**config.get(name, {}), **section}
    swsdist.run(config)
    return swsdist.digest(str(folder))


@pytest.fixture(scope="module")
def known(place: Path, tmp_path_factory) -> dict[str, str]:
    return run(place, tmp_path_factory.mktemp("known"))


def test_every_table_is_in_it(known: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a run folder"):
        swsdist.digest(str(tmp_path))
    assert set(known) == TABLES | {"all"}
    assert known["all"] == combined({name: value for name, value in known.items() if name != "all"})
    assert len(set(known.values())) == len(known)


@pytest.mark.slow
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    shards=st.sampled_from([1, 2, 7, 64]),
    lanes=st.sampled_from([1, 3, 64]),
    seconds=st.sampled_from([0.01, 1.0, 100.0]),
    buckets=st.sampled_from([1, 2, 16, 1000]),
)
@example(shards=64, lanes=3, seconds=0.01, buckets=1)
@example(shards=2, lanes=1, seconds=100.0, buckets=1000)
def test_the_cut_does_not_matter(place, known, tmp_path_factory, shards, lanes, seconds, buckets) -> None:
    search = {"lanes": lanes, "piece_seconds": seconds}
    folder = tmp_path_factory.mktemp("cut")
    found = run(place, folder, index={"shards": shards}, search=search, reduce={"buckets": buckets})
    assert found == known


def test_the_order_of_the_tables_does_not_matter(place, known, tmp_path_factory) -> None:
    """Documents, queries and references in reverse; a query's examples stay in theirs."""
    other = tmp_path_factory.mktemp("order")
    for name in ("docs", "queries", "refs"):
        head, *rows = (place / f"{name}.csv").read_text().splitlines()
        turned = sorted(rows, key=lambda row: -int(row[1])) if name == "queries" else rows[::-1]
        (other / f"{name}.csv").write_text("\n".join([head, *turned]))
    for sound in place.glob("*.wav"):
        (other / sound.name).write_bytes(sound.read_bytes())
    assert run(other, other / "run") == known


@pytest.mark.slow
def test_only_what_depends_on_a_setting_changes(place, known, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("changed")
    fit = run(place, folder, calibrate={"fit": "none"})
    assert changed(fit, known) <= {"scored", "trials", "terms", "measures", "all"}
    normalised = run(place, folder, calibrate={"steps": []})
    assert {"normalised", "statistics"} <= changed(normalised, known)  # nobody wants statistics then
    assert not changed(normalised, known) & {"documents", "features", "queries", "candidates", "detections"}
    searched = run(place, folder, search={"distance": "cosine-squared"})
    assert not changed(searched, known) & {"documents", "features", "queries"}
    assert {"candidates", "all"} <= changed(searched, known)
    # And back: what was computed first is still there, and its digest is the same.
    assert run(place, folder) == known


def changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
