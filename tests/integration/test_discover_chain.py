"""The chain discover finds the same, whatever the cut, the executor and interruptions; and what it makes of odd recordings."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.config import Config, config_from_dict
from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.status import digests
from swsdist.testing.conformance import check_chain
from tests.support.coded import raises
from tests.support.tables import read_rows, write_rows

RATE = 16000
GAUSSIANS = [
    {"name": "mean-variance"},
    {"name": "gmm", "options": {"components": 8, "values": "posteriors", "iterations": 3}},
]
#: Ways to pairs of segments.
WAYS: dict[str, dict[str, Any]] = {
    "segments": {},
    "diagonals": {
        "segments": {"frames": 1, "hop": 1, "parts": 1, "bits": 64, "speech": 1},
        "neighbours": {"by": "diagonals", "orders": 8, "beam": 25, "unlike": 0.42},
        "matching": {"reach": 60},
    },
    "exact": {"neighbours": {"by": "exact"}},
}
#: What it finds, without the tables of the store.
FINDINGS = {"matches", "classes", "parse"}


def config(folder: Path, run: Path, **values: Any) -> Config:
    given = {"chain": "discover", "run": str(run), "corpus": {"documents": "docs.csv"}, "executor": {"kind": "serial"}}
    return config_from_dict({**given, **values}, folder)


def discovered(given: Config) -> Outcome:
    outcome = run_stages(given, StepSelection(), Progress())
    assert not outcome.failures
    return outcome


def rows(outcome: Outcome, table: str) -> list[dict[str, Any]]:
    return [row for part in outcome.chain_run.read(table) for row in part.to_pylist()]


def findings(outcome: Outcome) -> dict[str, str]:
    return {name: digest for name, digest in digests(outcome.chain_run).items() if name in FINDINGS}


def corpus_of(folder: Path, small_corpus: Path, names: list[str], **sounds: np.ndarray) -> Path:
    """Some documents of the small corpus, and others."""
    folder.mkdir()
    table = [
        {"doc_id": row["doc_id"], "path": str(small_corpus / row["path"])}
        for row in read_rows(small_corpus / "docs.csv")
        if row["doc_id"] in names
    ]
    for name, samples in sounds.items():
        soundfile.write(folder / f"{name}.wav", samples, RATE, subtype="PCM_16")
        table.append({"doc_id": name, "path": f"{name}.wav"})
    write_rows(folder / "docs.csv", table)
    return folder


def sound(small_corpus: Path, name: str) -> np.ndarray:
    samples, rate = soundfile.read(small_corpus / "audio" / f"{name}.flac", dtype="int16")
    assert rate == RATE
    return samples


@pytest.fixture(scope="module")
def undisturbed(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("undisturbed")
    return discovered(config(small_corpus, folder, index={"shards": 1}, reduce={"buckets": 1}))


def test_what_it_finds(undisturbed: Outcome) -> None:
    """Stretches of matches and members are speech of their documents; a parse overlaps nowhere, and has each class's tokens."""
    assert set(digests(undisturbed.chain_run)) >= FINDINGS
    matches = rows(undisturbed, "matches")
    assert len(matches) > 50
    for match in matches:
        left, right = (match["doc_id"], match["channel"]), (match["other_doc_id"], match["other_channel"])
        assert left <= right
        assert min(match["stop"] - match["first"], match["other_stop"] - match["other_first"]) >= 30
        assert match["score"] > 0
        assert left != right or match["stop"] <= match["other_first"] or match["other_stop"] <= match["first"]
    members = rows(undisturbed, "classes")
    sizes = [sum(row["class"] == number for row in members) for number in range(members[-1]["class"] + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) >= 2
    places = [(row["doc_id"], row["channel"], row["start"], row["end"]) for row in members]
    assert len(places) == len(set(places))
    parse = rows(undisturbed, "parse")
    for before, after in itertools.pairwise(parse):
        if (before["doc_id"], before["channel"]) == (after["doc_id"], after["channel"]):
            assert before["end"] <= after["start"]
    tokens = [row for row in parse if row["class"] is not None]
    assert len(tokens) > 20
    assert all(row in members for row in tokens)
    assert all(row["sure"] is None for row in parse if row["class"] is None)
    assert {row["doc_id"] for row in parse} == {f"d{k:03d}" for k in range(1, 9)}


#: Ways and frames that are cut in shards and buckets: values of a config.
CUT: dict[str, dict[str, Any]] = {
    "segments": {},
    "diagonals": {"options": WAYS["diagonals"]},
    "grouped by components": {"options": {"clustering": {"by": "components", "score": 0.8}}},
    "tracks": {
        "features": [{"name": "mfcc"}, {"name": "mfcc", "track": "low", "options": {"fmax": 3000}}],
        "search": {"distance": "cosine-squared", "streams": [{"track": "mfcc", "weight": 2}, {"track": "low"}]},
        "options": {"neighbours": {"unlike": 0.42}, "matching": {"level": 0.45}},
    },
    "posteriors": {
        "features": {"name": "mfcc", "transforms": GAUSSIANS},
        "search": {"distance": "kl", "normalise": "none"},
        "options": {"neighbours": {"unlike": 0.49}},
    },
}


@pytest.mark.parametrize("name", ["segments", *(pytest.param(one, marks=pytest.mark.slow) for one in [*CUT][1:])])
def test_the_cut_does_not_matter(small_corpus: Path, tmp_path: Path, undisturbed: Outcome, name: str) -> None:
    whole = undisturbed
    if CUT[name]:
        one = {"index": {"shards": 1}, "reduce": {"buckets": 1}}
        whole = discovered(config(small_corpus, tmp_path / "1", **one, **CUT[name]))
        assert digests(whole.chain_run) != digests(undisturbed.chain_run)
    cut = discovered(config(small_corpus, tmp_path / "3", index={"shards": 3}, reduce={"buckets": 7}, **CUT[name]))
    assert digests(cut.chain_run) == digests(whole.chain_run)
    assert len(rows(cut, "matches")) > 10
    done = {name: ended.done for name, ended in cut.chain_run.outcomes.items()}
    assert (done["cut-segments"], done["select-pairs"], done["align-pairs"]) == (3, 7, 7)


@pytest.mark.parametrize("way", WAYS)
def test_a_stretch_of_two_documents_is_found_every_way(small_corpus: Path, tmp_path: Path, way: str) -> None:
    """A second of a third recording, at other places in both; beside it, recordings too short, and without speech."""
    planted = sound(small_corpus, "d003")[2 * RATE : 3 * RATE + RATE // 2]
    left, right = sound(small_corpus, "d001"), sound(small_corpus, "d002")
    sounds = {"short": planted[: RATE // 6], "zeros": np.zeros(2 * RATE, np.int16)}
    sounds["left"] = np.concatenate([left[: 2 * RATE], planted, left[2 * RATE : 3 * RATE]])
    sounds["right"] = np.concatenate([right[:RATE], planted, right[RATE : 2 * RATE]])
    folder = corpus_of(tmp_path / "corpus", small_corpus, [], **sounds)
    outcome = discovered(config(folder, tmp_path / "run", index={"shards": 2}, options=WAYS[way]))
    found = [
        (row["first"], row["stop"])
        for row in rows(outcome, "matches")
        if (row["doc_id"], row["other_doc_id"]) == ("left", "right")
        and abs(row["first"] - row["other_first"] - 100) <= 2
    ]
    assert any(first <= 230 and stop >= 320 for first, stop in found), found


@pytest.mark.ray
def test_the_executor_does_not_matter(small_corpus: Path, tmp_path: Path, cluster: Any, undisturbed: Outcome) -> None:
    sets = dict(item.split("=", 1) for item in cluster.sets)
    ray = {key.removeprefix("executor."): value for key, value in sets.items()}
    given = config(small_corpus, tmp_path, index={"shards": 3}, executor={**ray, "workers": 2})
    assert digests(discovered(given).chain_run) == digests(undisturbed.chain_run)


@pytest.mark.slow
def test_a_document_more(small_corpus: Path, tmp_path: Path, undisturbed: Outcome) -> None:
    """The old ones are not read again, and the findings are those of all from the start."""
    folder = corpus_of(tmp_path / "corpus", small_corpus, [f"d{k:03d}" for k in range(1, 8)])
    first = discovered(config(folder, tmp_path / "run", index={"shards": 2}))
    assert findings(first) != findings(undisturbed)
    more = corpus_of(tmp_path / "all", small_corpus, [f"d{k:03d}" for k in range(1, 9)])
    shutil.copy(more / "docs.csv", folder / "docs.csv")
    second = discovered(config(folder, tmp_path / "run", index={"shards": 1}))
    outcomes = second.chain_run.outcomes
    assert (outcomes["index"].done, outcomes["cut-segments"].done, outcomes["cut-segments"].skipped) == (1, 1, 2)
    assert "d008" in {row["doc_id"] for row in rows(second, "classes")}
    assert findings(second) == findings(discovered(config(folder, tmp_path / "anew")))


@pytest.mark.slow
def test_other_options_take_what_is_there(small_corpus: Path, tmp_path: Path) -> None:
    store = {"store": str(tmp_path / "store")}
    discovered(config(small_corpus, tmp_path / "run", index=store))
    assert discovered(config(small_corpus, tmp_path / "run", index=store)).tasks_done == 0
    for options, first in (
        ({"boundaries": {"fall": 3.0}}, "find-boundaries"),
        ({"clustering": {"by": "components"}}, "group-matches"),
        ({"matching": {"gap": 0.5}}, "align-pairs"),
        ({"neighbours": {"kept": 2}}, "select-pairs"),
        ({"neighbours": {"beam": 5}}, "propose-pairs"),
        ({"segments": {"hop": 7}}, "cut-segments"),
    ):
        outcome = discovered(config(small_corpus, tmp_path / "run", index=store, options=options))
        worked = [name for name, ended in outcome.chain_run.outcomes.items() if ended.done]
        assert worked[0] == first, options
    more = discovered(config(small_corpus, tmp_path / "run", index=store, options={"neighbours": {"orders": 17}}))
    assert (more.chain_run.outcomes["propose-pairs"].done, more.chain_run.outcomes["propose-pairs"].skipped) == (1, 16)
    other = discovered(config(small_corpus, tmp_path / "other", index=store))
    assert other.chain_run.outcomes["index"].done == 0


def found(outcome: Outcome, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows(outcome, table)]


@pytest.fixture(scope="module")
def two(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = corpus_of(tmp_path_factory.mktemp("two") / "corpus", small_corpus, ["d003", "d004"])
    return discovered(config(folder, folder / "run"))


def test_copies_change_nothing(small_corpus: Path, tmp_path: Path, two: Outcome) -> None:
    """Equal channels, recordings with equal bytes, and one in another format: one is searched, the others are named."""
    first, second = sound(small_corpus, "d003"), sound(small_corpus, "d004")
    soundfile.write(tmp_path / "d003.wav", np.stack([first, first], axis=1), RATE, subtype="PCM_16")
    for name in ("d004", "x-d004"):
        soundfile.write(tmp_path / f"{name}.wav", second, RATE, subtype="PCM_16")
    soundfile.write(tmp_path / "y-d004.ogg", second / 32768, RATE)
    documents = "d003,1,d003.wav\nd003,2,d003.wav\nd004,1,d004.wav\nx-d004,1,x-d004.wav\ny-d004,1,y-d004.ogg\n"
    (tmp_path / "docs.csv").write_text(f"doc_id,channel,path\n{documents}")
    outcome = discovered(config(tmp_path, tmp_path / "run"))
    assert len(found(two, "classes")) > 4
    for table in ("classes", "parse"):
        assert found(outcome, table) == found(two, table)
    (line,) = (line for line in outcome.chain_run.chain.notices(outcome.chain_run) if "copies" in line)
    assert "3 documents" in line


def test_no_class_lies_in_digital_silence(small_corpus: Path, tmp_path: Path) -> None:
    sounds, rng = {}, np.random.default_rng(2)
    for name in ("d003", "d004", "d005"):
        parts = np.split(sound(small_corpus, name), range(RATE, 8 * RATE, RATE))
        sounds[f"x{name}"] = np.concatenate(
            [part for piece in parts for part in (piece, np.zeros(rng.choice([5000, 6400, 9600]), np.int16))]
        )
    outcome = discovered(config(corpus_of(tmp_path / "corpus", small_corpus, [], **sounds), tmp_path / "run"))
    members = rows(outcome, "classes")
    assert len(members) > 4
    for row in members:
        samples = sounds[row["doc_id"]][round(row["start"] * RATE) : round(row["end"] * RATE)]
        assert np.mean(samples == 0) < 0.3


@pytest.mark.slow
def test_nothing_to_compare(small_corpus: Path, tmp_path: Path) -> None:
    """No segment at all, and segments that are not alike: no class, and a parse of what speech there is."""
    speech = sound(small_corpus, "d001")[RATE : 2 * RATE]
    folder = corpus_of(tmp_path / "none", small_corpus, [], a=speech[: RATE // 3], b=speech[: RATE // 4])
    nothing = discovered(config(folder, tmp_path / "run1", index={"shards": 2}))
    assert rows(nothing, "classes") == []
    assert {row["class"] for row in rows(nothing, "parse")} == {None}
    unlike = {"neighbours": {"unlike": 0.001}}
    folder = corpus_of(tmp_path / "unlike", small_corpus, ["d001", "d002"])
    apart = discovered(config(folder, tmp_path / "run3", index={"shards": 2}, options=unlike))
    assert rows(apart, "classes") == []
    assert {row["doc_id"] for row in rows(apart, "parse")} == {"d001", "d002"}


@pytest.mark.slow
def test_the_chain_conforms(small_corpus: Path, tmp_path: Path) -> None:
    tables = check_chain(lambda word: config(small_corpus, tmp_path / word, index={"shards": 2}))
    assert set(tables) >= FINDINGS


def test_settings_that_are_wrong(small_corpus: Path, tmp_path: Path) -> None:
    wrong: list[tuple[str, Any]] = [
        *(("segments.bits", 72), ("segments.frames", 0), ("segments.hop", 0), ("segments.speech", 1.5)),
        *(("neighbours.beam", 0), ("neighbours.unlike", 1.0), ("neighbours.by", "chance"), ("matching.level", 0)),
        *(("matching.gap", -0.1), ("matching.level", 2.0), ("boundaries.fall", 0), ("boundaries.reach", -1)),
        *(("clustering.by", "chance"), ("clustering.overlap", 0), ("rest", 0)),
    ]
    for key, value in wrong:
        section, _, name = key.partition(".")
        with raises(families.INVALID_VALUE, where="options") as caught:
            discovered(config(small_corpus, tmp_path, options={section: {name: value} if name else value}))
        assert key in str(caught.value)
    for by, key in (("segments", "window"), ("diagonals", "kept"), ("exact", "orders")):
        with raises(families.UNUSED_OPTION, where="options", key=key, by=by):
            discovered(config(small_corpus, tmp_path, options={"neighbours": {"by": by, key: 9}}))
    for key, value in (("method", "windows"), ("first_pass", {"name": "quantised"}), ("skip_silence", True)):
        with raises(families.UNUSED_OPTION, where=f"search.{key}", key=key):
            discovered(config(small_corpus, tmp_path, search={key: value}))
    right = config(small_corpus, tmp_path, options={"matching": {"level": 1.999}})
    DiscoverInputs(right, Ledger(Folder(str(tmp_path))))
    assert not (tmp_path / "store").exists()
