"""A transform that is fitted to the corpus first: PCA, by sums of integers, pinned in the store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import swsdist
from swsdist.audio.reader import read_blocks
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.fitting.interface import load_model
from swsdist.features.phnrec.extractor import Phnrec
from swsdist.io.filesystem import Folder
from swsdist.store.maintaining import compact
from swsdist.store.reading import Store
from swsdist.testing.synthesis.recogniser import make_recogniser
from tests.support.coded import raises

pytestmark = pytest.mark.until("search")

STREAMS = 'search.streams=[{"track": "mfcc"}, {"track": "pca", "normalise": "none"}]'


def features(**options: Any) -> str:
    pca = [{"name": "pca", "options": {"columns": 8, "hours": 1, **options}}]
    return "features=" + json.dumps([{"name": "mfcc"}, {"name": "mfcc", "track": "pca", "transforms": pca}])


def store_of(scene: Any, run: str = "run") -> Store:
    return Store(Folder(str(scene.folder / run / "store")))


def frames_of(store: Store, track: str) -> np.ndarray:
    names = sorted(store.documents()["doc_id"].to_pylist())
    return np.concatenate([store.features(name, track=track) for name in names]).astype(np.float64)


@pytest.mark.slow
def test_it_is_the_pca_of_the_corpus(scene: Any) -> None:
    scene.run(features(), STREAMS)
    store = store_of(scene)
    assert set(store.manifest.models) > {"pca.pca"}
    whole = frames_of(store, "mfcc")
    made = frames_of(store, "pca")
    values, axes = np.linalg.eigh(np.cov(whole.T, bias=True))
    plain = (whole - whole.mean(axis=0)) @ axes[:, ::-1][:, :8] / np.sqrt(values[::-1][:8])
    signs = np.sign((made * plain).sum(axis=0))
    assert np.abs(made - plain * signs).max() < 0.01
    assert np.cov(made.T, bias=True) == pytest.approx(np.eye(8), abs=0.01)
    # Nothing is left to do; a search by hand makes the extractor of the store again.
    assert scene.run(features(), STREAMS).outcome.tasks_done == 0
    query = str(sorted((scene.corpus / "queries").iterdir())[0])
    assert len(swsdist.search(str(scene.folder / "run/store"), query, options={"streams": [{"track": "pca"}]}))
    # A model that was lost is fitted again to the same; another option is another model and another track.
    (scene.folder / "run/store" / store.manifest.models["pca.pca"]).unlink()
    before = scene.digest()
    assert scene.run(features(), STREAMS).outcome.tasks_done > 0
    assert scene.digest() == before
    scene.run(features(whiten=False), STREAMS)
    assert store_of(scene).manifest.models["pca.pca"] != store.manifest.models["pca.pca"]
    assert np.abs(frames_of(store_of(scene), "pca") - made * np.sqrt(values[::-1][:8])).max() < 1.0


@pytest.mark.slow
def test_documents_that_come_later_go_through_it(own_corpus: Any) -> None:
    scene = own_corpus
    scene.select(1, 2, 3)
    scene.run(features(), STREAMS)
    before = store_of(scene)
    frames = before.features("d002", track="pca")
    scene.select(1, 2, 3, 4, 5)
    scene.run(features(), STREAMS)
    after = store_of(scene)
    assert after.manifest.models["pca.pca"] == before.manifest.models["pca.pca"]
    assert np.array_equal(after.features("d002", track="pca"), frames)
    assert after.documents(track="pca").num_rows == 5
    compact(after.folder, 1.0)
    assert scene.run(features(), STREAMS).outcome.failures == []


@pytest.mark.slow
def test_of_a_few_documents(scene: Any) -> None:
    """As many as fill so many hours, chosen by their names, whatever their order in the table."""
    scene.run(features(hours=0.002), STREAMS, "index.shards=1")
    model = store_of(scene).manifest.models["pca.pca"]
    table = (scene.corpus / "docs.csv").read_text().splitlines()
    turned = scene.folder / "docs.csv"
    turned.write_text("\n".join([table[0], *table[:0:-1]]) + "\n")
    for name in ("audio", "documents", "docs"):
        if (scene.corpus / name).is_dir():
            shutil.copytree(scene.corpus / name, scene.folder / name)
    scene.run(features(hours=0.002), STREAMS, f"corpus.documents={turned}", run="turned")
    again = store_of(scene, "turned").manifest.models["pca.pca"]
    assert model == again
    models = [load_model(Folder(str(scene.folder / run / "store")), model).fingerprint for run in ("run", "turned")]
    assert models[0] == models[1]


def test_an_extractor_that_is_fitted_and_a_transform_behind_it(scene: Any) -> None:
    """The mean of the corpus counts beside that of a recording; first it is fitted, then PCA of what comes of it."""
    make_recogniser(str(scene.folder / "made-up"))
    options = {"weights": str(scene.folder / "made-up"), "values": "logits", "non_speech": "drop"}
    plain = {"name": "phnrec", "track": "plain", "options": options}
    energies = {"name": "phnrec", "track": "energies", "options": {**options, "values": "energies"}}
    prior = {**options, "corpus_frames": 300, "hours": 1}
    pca = {
        "name": "phnrec",
        "track": "pca",
        "options": prior,
        "transforms": [{"name": "pca", "options": {"columns": 2}}],
    }
    fitted = {"name": "phnrec", "track": "fitted", "options": prior}
    named = f"features={json.dumps([plain, energies, fitted, pca])}"
    sets = (named, "search.streams=[{track: pca}]", "index.shards=3")
    scene.run(*sets, until="")
    store = store_of(scene)
    model = store.manifest.models["phnrec.fitted"]
    assert model == store.manifest.models["phnrec.pca"]
    assert "pca.pca" in store.manifest.models
    mean = load_model(store.folder, model).arrays["mean"]
    assert mean == pytest.approx(frames_of(store, "energies").mean(axis=0), rel=1e-6)
    one = Phnrec(**{**prior, "model": store.folder.path(model)})
    document = store.documents().to_pylist()[0]
    samples = np.concatenate(list(read_blocks(document["path"], rate=8000)))
    found = store.features(document["doc_id"], track="fitted")
    assert np.array_equal(one.extract(samples), found)
    assert np.abs(found - store.features(document["doc_id"], track="plain")).max() > 1e-4
    assert scene.run(*sets, until="").outcome.tasks_done == 0
    assert scene.report()["resources"]["index_cpu_s"] > 0
    with pytest.raises(ConfigError, match="the mean of the corpus is not fitted"):
        Phnrec(**prior).extract(samples)


def test_what_cannot_be(scene: Any, tmp_path: Path) -> None:
    with raises(codes.TOO_MANY_COMPONENTS, where="pca, columns", wanted=40, available=39):
        scene.run(features(columns=40), STREAMS)
    gmm = {"name": "gmm", "options": {"components": 4096, "hours": 0.001}}
    with raises(families.NOTHING_TO_FIT, where="components", components=4096):
        scene.run(f"features={json.dumps({'name': 'mfcc', 'transforms': [gmm]})}")


@pytest.mark.slow
def test_a_long_recording_is_read_in_pieces(own_corpus: Any) -> None:
    """It takes neither one task nor all of the hours; the cut into tasks is no matter."""
    scene = own_corpus
    files = sorted((scene.corpus / "audio").iterdir())
    parts = [soundfile.read(file)[0] for file in files]
    rate = soundfile.info(files[0]).samplerate
    samples = np.concatenate(parts)
    soundfile.write(scene.corpus / "long.flac", np.resize(samples, 1000 * rate), rate)
    (scene.corpus / "docs.csv").write_text("doc_id,path\nlong,long.flac\n" + f"short,audio/{files[0].name}\n")
    scene.run(features(hours=0.1), STREAMS, "corpus.references=null")
    summed = [each for each in scene.chain_runs["run"].receipts("fit-transforms") if each.work > 1 and not each.round]
    assert {round(each.work, 1) for each in summed} <= {333.3, round(333.3 + len(parts[0]) / rate, 1)}
    assert 360 < sum(each.work for each in summed) < 700
    whole = np.cov(frames_of(store_of(scene), "pca").T, bias=True)
    assert whole == pytest.approx(np.eye(8), abs=0.2), "a part of it is as good as all"
