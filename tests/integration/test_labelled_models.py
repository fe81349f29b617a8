"""Models that are fitted by labels of the corpus: a run that has one says so, and on which documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.codes import stages as stages_codes
from swsdist.core.errors import ConfigError
from swsdist.features.fitting.interface import load_model
from swsdist.stages.fit_transforms import FitTransforms
from tests.support.coded import raises, says
from tests.support.tables import read_rows

STREAMS = "search.streams=[{track: made, normalise: none, distance: cosine}]"


def features(*transforms: tuple[str, dict[str, Any]]) -> str:
    behind = [{"name": name, "options": options} for name, options in transforms]
    return "features=" + json.dumps([{"name": "mfcc", "track": "made", "transforms": behind}])


LDA = features(("mean-variance", {"hours": 1}), ("splice", {"frames": 1}), ("lda", {"columns": 2, "hours": 1}))
PHONES = features(("mean-variance", {"hours": 1}), ("phones", {"components": 4, "iterations": 2, "hours": 1}))


@pytest.fixture
def labels(scene: Any, tmp_path: Path) -> str:
    """Which query is said: as good as phones."""
    path = tmp_path / "labels.ctm"
    rows = read_rows(scene.corpus / "refs.csv")
    lines = [
        f"{row['doc_id']} 1 {row['start']} {float(row['end']) - float(row['start']):.3f} {row['query_id']}\n"
        for row in rows
    ]
    path.write_text("".join(lines))
    return str(path)


def model_of(scene: Any, name: str, run: str = "run") -> Any:
    store = scene.store(run)
    return load_model(store.folder, store.manifest.models[name])


def warnings(scene: Any, run: str = "run") -> list[str]:
    return [one for one in scene.report(run)["warnings"] if "ORACLE" in one]


@pytest.mark.slow
def test_labels_of_what_is_searched_are_oracle(scene: Any, labels: str) -> None:
    named = f"corpus.alignments.phones={labels}"
    scene.run(LDA, STREAMS, named)
    taught = model_of(scene, "lda.made").settings["taught_by"]
    assert taught["file"] == "labels.ctm"
    (warning,) = warnings(scene)
    assert "ORACLE features, so results are optimistic" in warning
    assert f"trained on labels of {len(taught['documents'])} documents (labels.ctm)" in warning
    fitted = json.loads(next((scene.folder / "run" / "calibration").glob("*.json")).read_text())
    assert "trained on labels" in json.dumps(fitted["trained_on"])
    # Labels of a program that was told nothing are no oracle.
    scene.run(LDA.replace('"columns"', '"automatic": true, "columns"'), STREAMS, named, run="automatic")
    for run in ("run", "automatic"):
        (cost,) = (one for one in scene.report(run)["warnings"] if says(one, chains_codes.UNCOUNTED_LABEL_COST))
        assert "(first: labels.ctm)" in cost
    assert not warnings(scene, "automatic")
    # In any cut it is the same; and other labels make another model.
    scene.run(LDA, STREAMS, named, "index.shards=3", run="three")
    assert scene.digest("three") == scene.digest()
    before = model_of(scene, "lda.made").fingerprint
    Path(labels).write_text(Path(labels).read_text() + "d001 1 0 0.3 other\n")
    scene.run(LDA, STREAMS, named, until="index")
    assert model_of(scene, "lda.made").fingerprint != before


def test_phones_of_the_part_that_is_for_training(scene: Any, labels: str) -> None:
    scene.run(PHONES, STREAMS, f"corpus.alignments.phones={labels}", 'corpus.parts={train: ["d001", "d002", "d003"]}')
    store = scene.store()
    (track,) = store.manifest.tracks
    assert track.kind == "posteriors"
    model = model_of(scene, "phones.made")
    assert list(track.columns) == model.settings["labels"]
    assert len(model.settings["taught_by"]["documents"]) <= 3
    frames = store.features("d004", track="made")
    assert frames.sum(axis=1) == pytest.approx(np.ones(len(frames)), abs=1e-4)
    (warning,) = warnings(scene)
    assert says(warning, stages_codes.ORACLE_FEATURES)
    assert warning.startswith(f"{len(model.settings['taught_by']['documents'])} searched document")


@pytest.mark.slow
def test_a_model_of_other_documents_is_no_oracle(own_corpus: Any, tmp_path: Path) -> None:
    scene = own_corpus
    path = tmp_path / "labels.ctm"
    path.write_text("".join(f"d00{k} 1 {t / 5} 0.2 {'abc'[t % 3]}\n" for k in (1, 2, 3) for t in range(40)))
    scene.select(1, 2, 3)
    scene.run(LDA, STREAMS, f"corpus.alignments.phones={path}")
    assert warnings(scene)
    store = scene.store()
    behind = json.loads(LDA.partition("=")[2])
    for one in behind[0]["transforms"]:
        if f"{one['name']}.made" in store.manifest.models:
            one["options"]["model"] = store.folder.path(store.manifest.models[f"{one['name']}.made"])
    scene.select(4, 5, 6)
    scene.run("features=" + json.dumps(behind), STREAMS, run="others")
    assert not warnings(scene, "others")


def rename(scene: Any, before: str, after: str) -> None:
    """Another name for a document, in the tables of a scene's own corpus."""
    for table in ("docs", "refs"):
        path = scene.corpus / f"{table}.csv"
        path.write_text(path.read_text().replace(f"{before},", f"{after},"))


@pytest.mark.until("index")
def test_a_name_matters_where_labels_are_looked_up_by_it(
    own_corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was interrupted goes on with documents under other names: with the labels of these."""
    scene = own_corpus
    path = tmp_path / "labels.ctm"
    lines = [
        f"{name} 1 {t / 5} 0.2 {label[t % 4]}\n"
        for name, label in (("d001", "abca"), ("x001", "aabc"))
        for t in range(40)
    ]
    path.write_text("".join(lines))
    scene.select(1)
    named = f"corpus.alignments.phones={path}"
    sets = (features(("lda", {"columns": 2, "hours": 1})), STREAMS, named)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(FitTransforms, "_go_on", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scene.run(*sets)
    monkeypatch.undo()
    assert list((scene.folder / "run/store/models/rounds").glob("*.totals"))
    rename(scene, "d001", "x001")
    scene.run(*sets)
    scene.run(*sets, run="anew")
    models = [model_of(scene, "lda.made", run) for run in ("run", "anew")]
    assert models[0].settings["taught_by"] == models[1].settings["taught_by"]
    assert models[0].fingerprint == models[1].fingerprint


def test_without_labels(scene: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lda is fitted by labels, and the corpus has none"):
        scene.run(LDA, STREAMS)
    (tmp_path / "others.ctm").write_text("somewhere 1 0 1 a\n")
    with raises(families.NOTHING_TO_FIT, where="others.ctm", transform="lda"):
        scene.run(LDA, STREAMS, f"corpus.alignments.phones={tmp_path}/others.ctm")
