"""What is fitted to the corpus first, by its labels or without, and pinned in the store: PCA, mixtures, phones, a band."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

import swsdist
from swsdist.audio.reader import read_blocks
from swsdist.config import config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as chains_codes
from swsdist.core.codes import stages as stages_codes
from swsdist.core.errors import ConfigError
from swsdist.features.fitting.interface import load_model
from swsdist.features.phnrec.extractor import Phnrec
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.registry.registries import TRANSFORMS
from swsdist.searcher.searcher import Searcher
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.store.reading import Store
from swsdist.testing.synthesis.recogniser import make_recogniser
from tests.support.coded import raises, says
from tests.support.tables import read_rows, write_rows

pytestmark = pytest.mark.until("search")
STREAMS = 'search.streams=[{"track": "mfcc"}, {"track": "pca", "normalise": "none"}]'


def features(**options: Any) -> str:
    pca = [{"name": "pca", "options": {"columns": 8, "hours": 1, **options}}]
    return "features=" + json.dumps([{"name": "mfcc"}, {"name": "mfcc", "track": "pca", "transforms": pca}])


def frames_of(store: Store, track: str) -> np.ndarray:
    names = sorted(store.documents()["doc_id"].to_pylist())
    return np.concatenate([store.features(name, track=track) for name in names]).astype(np.float64)


def model_of(scene: Any, name: str, run: str = "run") -> Any:
    store = scene.store(run)
    return load_model(store.folder, store.manifest.models[name])


@pytest.mark.slow
def test_it_is_the_pca_of_the_corpus(scene: Any) -> None:
    scene.run(features(), STREAMS)
    store = scene.store()
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
    assert scene.store().manifest.models["pca.pca"] != store.manifest.models["pca.pca"]
    assert np.abs(frames_of(scene.store(), "pca") - made * np.sqrt(values[::-1][:8])).max() < 1.0


@pytest.mark.slow
def test_of_a_few_documents(own_corpus: Any) -> None:
    """As many as fill so many hours, chosen by their names, whatever their order in the table."""
    scene, models = own_corpus, []
    for run in ("run", "turned"):
        scene.run(features(hours=0.002), STREAMS, "index.shards=1", run=run, until="index")
        models.append(model_of(scene, "pca.pca", run).fingerprint)
        write_rows(scene.corpus / "docs.csv", read_rows(scene.corpus / "docs.csv")[::-1])
    assert models[0] == models[1]


def test_an_extractor_that_is_fitted_and_a_transform_behind_it(scene: Any) -> None:
    """The mean of the corpus counts beside that of a recording; first it is fitted, then PCA of what comes of it."""
    make_recogniser(str(scene.folder / "made-up"))
    options = {"weights": str(scene.folder / "made-up"), "values": "logits", "non_speech": "drop"}
    plain = {"name": "phnrec", "track": "plain", "options": options}
    energies = {"name": "phnrec", "track": "energies", "options": {**options, "values": "energies"}}
    prior = {**options, "corpus_frames": 300, "hours": 1}
    fitted = {"name": "phnrec", "track": "fitted", "options": prior}
    pca = {**fitted, "track": "pca", "transforms": [{"name": "pca", "options": {"columns": 2}}]}
    named = f"features={json.dumps([plain, energies, fitted, pca])}"
    sets = (named, "search.streams=[{track: pca}]", "index.shards=3")
    scene.run(*sets)
    store = scene.store()
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
    assert scene.run(*sets).outcome.tasks_done == 0
    with pytest.raises(ConfigError, match="the mean of the corpus is not fitted"):
        Phnrec(**prior).extract(samples)


def test_what_cannot_be_fitted(scene: Any) -> None:
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
    whole = np.cov(frames_of(scene.store(), "pca").T, bias=True)
    assert whole == pytest.approx(np.eye(8), abs=0.2), "a part of it is as good as all"


#: Two transforms that are fitted, one after the other; the second on speech only.
FITTED = [
    {"name": "mean-variance", "options": {"hours": 1}},
    {"name": "gmm", "options": {"components": 6, "iterations": 3, "hours": 1}},
]
FEATURES = "features=" + json.dumps([{"name": "mfcc", "track": "gmm", "transforms": FITTED}])
OF_MIXTURE = 'search.streams=[{"track": "gmm", "normalise": "none", "distance": "cosine"}]'


@pytest.mark.slow
def test_posteriors_of_a_run(scene: Any) -> None:
    scene.run(FEATURES, OF_MIXTURE)
    store = scene.store()
    assert {"mean-variance.gmm", "gmm.gmm"} < set(store.manifest.models)
    assert store.manifest.tracks[0].kind == "posteriors"
    frames = store.features(store.documents()["doc_id"].to_pylist()[0], track="gmm")
    assert frames.sum(axis=1) == pytest.approx(np.ones(len(frames)), abs=1e-4)
    likelihoods = model_of(scene, "gmm.gmm").settings["likelihoods"]
    assert len(likelihoods) == 2 + 2 + 3  # after splits into two, four and six
    assert likelihoods[-1] > likelihoods[0]
    assert scene.run(FEATURES, OF_MIXTURE).outcome.tasks_done == 0
    scene.run(FEATURES, OF_MIXTURE, "index.shards=4", run="four")
    assert scene.digest("four") == scene.digest()
    # What is made of posteriors does not matter to the mixture.
    sharper = json.loads(FEATURES.partition("=")[2])
    sharper[0]["transforms"][1]["options"] |= {"keep": 3, "floor": 0}
    scene.run("features=" + json.dumps(sharper), OF_MIXTURE)
    assert scene.store().manifest.models["gmm.gmm"] == store.manifest.models["gmm.gmm"]
    # Fitted anew it is the same.
    anew = StepSelection(redo_from="fit-transforms")
    assert scene.run(FEATURES, OF_MIXTURE, run="four", selection=anew).outcome.tasks_done > 0
    again = scene.store("four")
    assert again.manifest.models["gmm.gmm"] == store.manifest.models["gmm.gmm"].replace(".npz", ".2.npz")
    assert model_of(scene, "gmm.gmm", "four").fingerprint == model_of(scene, "gmm.gmm").fingerprint


@pytest.mark.slow
def test_killed_between_rounds(scene: Any) -> None:
    scene.run(FEATURES, OF_MIXTURE, run="whole")
    for target in (3, 8):
        process = scene.start(FEATURES, OF_MIXTURE)
        scene.wait(lambda target=target: len(scene.receipts()) >= target, process)
        process.kill()
        process.communicate()
    receipts = scene.receipts()
    scene.run(FEATURES, OF_MIXTURE)
    assert receipts.items() <= scene.receipts().items(), "a round that had its receipts was done again"
    assert scene.digest() == scene.digest("whole")


@pytest.mark.slow
def test_from_elsewhere(scene: Any, tmp_path: Path) -> None:
    """The models of one run, named in another: nothing is fitted, and the frames are the same."""
    scene.run(FEATURES, OF_MIXTURE)
    store = scene.store()
    features = json.loads(FEATURES.partition("=")[2])
    for one in features[0]["transforms"]:
        one["options"]["model"] = store.folder.path(store.manifest.models[f"{one['name']}.gmm"])
    scene.run("features=" + json.dumps(features), OF_MIXTURE, run="named")
    assert not any(name.startswith("fit-transforms") for name in scene.receipts("named"))
    assert scene.digest("named") == scene.digest()


def banded(fmax: object) -> str:
    low = {"name": "mfcc", "track": "normal", "options": {"fmax": fmax}, "transforms": [{"name": "mean-variance"}]}
    return "features=" + json.dumps([{"name": "mfcc", "options": {"fmax": fmax}}, low])


def narrowed(scene: Any, *numbers: int) -> None:
    for number in numbers:
        (path,) = scene.corpus.rglob(f"d{number:03d}.*")
        sound, rate = soundfile.read(path, dtype="float32")
        soundfile.write(path, soxr.resample(soxr.resample(sound, rate, 8000), 8000, rate)[: len(sound)], rate)


def same_frames(store: Store, other: Store, *tracks: str) -> bool:
    return all(np.array_equal(frames_of(store, track), frames_of(other, track)) for track in tracks)


def hits(scene: Any, run: str) -> Any:
    with Searcher(str(scene.folder / run)) as searcher:
        return list(searcher.stream(str(scene.corpus / "queries.csv"), 20))[-1].table()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("narrow", "fmax", "other"), [((1, 2), 3700.0, None), ((), None, 3700.0)], ids=["8khz", "wide"]
)
def test_frames_and_hits_are_those_of_the_chosen_band(
    own_corpus: Any, narrow: tuple[int, ...], fmax: float | None, other: float | None
) -> None:
    scene = own_corpus
    narrowed(scene, *narrow)
    scene.run(banded("common"), run="common")
    scene.run(banded(fmax), run="given")
    scene.run(banded(other), run="other")
    store = scene.store("common")
    models = store.manifest.models
    assert models["mfcc.mfcc"] == models["mfcc.normal"]
    assert load_model(store.folder, models["mfcc.mfcc"]).settings == {"fmax": fmax}
    assert same_frames(store, scene.store("given"), "mfcc", "normal")
    assert not same_frames(store, scene.store("other"), "mfcc")
    found = hits(scene, "common")
    assert found.num_rows > 10
    assert found.equals(hits(scene, "given"))
    assert not found.equals(hits(scene, "other"))
    assert scene.run(banded("common"), run="common").outcome.tasks_done == 0
    # Neither tasks nor shards matter.
    scene.run(banded("common"), "index.shards=3", run="cut")
    cut = scene.store("cut").folder
    assert store.folder.read_bytes(models["mfcc.mfcc"]) == cut.read_bytes(models["mfcc.mfcc"])


#: By transform, the least options; others have their defaults.
OPTIONS: dict[str, dict[str, Any]] = {
    "gmm": {"components": 4, "iterations": 1},
    "phones": {"components": 4, "iterations": 1},
    "pca": {"columns": 3},
    "lda": {"columns": 1},
    "hlda": {"columns": 1},
    "correspondence": {"columns": 3, "frames": 1},
}
FITTED_ONES = [name for name in TRANSFORMS if hasattr(TRANSFORMS[name].load(), "rounds")]


def write(folder: Path, count: int) -> None:
    """Frames of documents and of a query, and labels of each document: two sounds take turns."""
    (folder / "frames").mkdir(exist_ok=True)
    names, sounds = [f"d{k}" for k in range(count)], np.tile(np.repeat(np.eye(6)[:2], 10, axis=0), (20, 1))
    for k, name in enumerate(names):
        frames = sounds + np.random.default_rng(k).normal(scale=0.3, size=(400, 6))
        np.save(folder / "frames" / f"{name}.npy", frames.astype(np.float32))
    np.save(folder / "frames" / "q-1.npy", frames[:30].astype(np.float32))
    (folder / "docs.csv").write_text("\n".join(["doc_id", *names, ""]))
    (folder / "queries.csv").write_text("query_id,example,duration\nq,1,0.3\n")
    labels = [f"d{d} 1 {k / 10:.1f} 0.1 {'ab'[k % 2]}" for d in range(5) for k in range(40)]
    (folder / "labels.ctm").write_text("\n".join([*labels, ""]))


@pytest.mark.parametrize(
    "name", [name if name in ("pca", "lda") else pytest.param(name, marks=pytest.mark.slow) for name in FITTED_ONES]
)
def test_models_of_given_frames(tmp_path: Path, name: str) -> None:
    write(tmp_path, 4)
    behind = [{"name": name, "options": OPTIONS.get(name, {})}]
    options = {"path": "frames", "shift": 0.01, "dimension": 6}
    values = {
        "run": "run",
        "corpus": {"documents": "docs.csv", "queries": "queries.csv", "alignments": {"phones": "labels.ctm"}},
        "features": {"name": "external", "options": options, "transforms": behind},
        "executor": {"kind": "serial"},
    }
    config = config_from_dict(values, tmp_path)

    def index() -> tuple[Store, int]:
        outcome = run_stages(config, StepSelection(until="index"), Progress())
        assert not outcome.failures
        return outcome.chain_run.chain.inputs.store.open(), outcome.tasks_done  # type: ignore[attr-defined]

    before, done = index()
    (model,) = (file for key, file in before.manifest.models.items() if key.startswith(name))
    assert done > 2
    assert index()[1] == 0
    write(tmp_path, 5)
    after, done = index()
    assert done == 1
    assert model in after.manifest.models.values()
    assert np.array_equal(after.features("d0"), before.features("d0"))
    assert len(after.features("d4")) == 400
    assert not run_stages(config, StepSelection(until="reduce"), Progress()).failures


OF_MADE = "search.streams=[{track: made, normalise: none, distance: cosine}]"


def behind_mfcc(*transforms: tuple[str, dict[str, Any]]) -> str:
    behind = [{"name": name, "options": options} for name, options in transforms]
    return "features=" + json.dumps([{"name": "mfcc", "track": "made", "transforms": behind}])


LDA = behind_mfcc(("mean-variance", {"hours": 1}), ("splice", {"frames": 1}), ("lda", {"columns": 2, "hours": 1}))
PHONES = behind_mfcc(("mean-variance", {"hours": 1}), ("phones", {"components": 4, "iterations": 2, "hours": 1}))


@pytest.fixture
def labels(scene: Any, tmp_path: Path) -> str:
    """Which query is said: as good as phones."""
    path = tmp_path / "labels.ctm"
    with path.open("w") as file:
        for row in read_rows(scene.corpus / "refs.csv"):
            seconds = float(row["end"]) - float(row["start"])
            file.write(f"{row['doc_id']} 1 {row['start']} {seconds:.3f} {row['query_id']}\n")
    return str(path)


def warnings(scene: Any, run: str = "run") -> list[str]:
    return [one for one in scene.report(run)["warnings"] if says(one, stages_codes.ORACLE_FEATURES)]


@pytest.mark.slow
@pytest.mark.until("")
def test_labels_of_what_is_searched_are_oracle(scene: Any, labels: str) -> None:
    named = f"corpus.alignments.phones={labels}"
    scene.run(LDA, OF_MADE, named)
    taught = model_of(scene, "lda.made").settings["taught_by"]
    (warning,) = warnings(scene)
    assert f"trained on labels of {len(taught['documents'])} documents ({taught['file']})" in warning
    fitted = json.loads(next((scene.folder / "run" / "calibration").glob("*.json")).read_text())
    assert "trained on labels" in json.dumps(fitted["trained_on"])
    # Labels of a program that was told nothing are no oracle.
    scene.run(LDA.replace('"columns"', '"automatic": true, "columns"'), OF_MADE, named, run="automatic")
    for run in ("run", "automatic"):
        (cost,) = (one for one in scene.report(run)["warnings"] if says(one, chains_codes.UNCOUNTED_LABEL_COST))
        assert "(first: labels.ctm)" in cost
    assert not warnings(scene, "automatic")
    # In any cut it is the same; and other labels make another model.
    scene.run(LDA, OF_MADE, named, "index.shards=3", run="three")
    assert scene.digest("three") == scene.digest()
    before = model_of(scene, "lda.made").fingerprint
    Path(labels).write_text(Path(labels).read_text() + "d001 1 0 0.3 other\n")
    scene.run(LDA, OF_MADE, named, until="index")
    assert model_of(scene, "lda.made").fingerprint != before


@pytest.mark.until("")
def test_phones_of_the_part_that_is_for_training(scene: Any, labels: str) -> None:
    parts = 'corpus.parts={train: ["d001", "d002", "d003"]}'
    scene.run(PHONES, OF_MADE, f"corpus.alignments.phones={labels}", parts)
    store = scene.store()
    (track,) = store.manifest.tracks
    assert track.kind == "posteriors"
    model = model_of(scene, "phones.made")
    assert list(track.columns) == model.settings["labels"]
    assert len(model.settings["taught_by"]["documents"]) <= 3
    frames = store.features("d004", track="made")
    assert frames.sum(axis=1) == pytest.approx(np.ones(len(frames)), abs=1e-4)
    (warning,) = warnings(scene)
    assert warning.startswith(f"{len(model.settings['taught_by']['documents'])} searched document")


@pytest.mark.until("index")
def test_a_name_matters_where_labels_are_looked_up_by_it(
    own_corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was interrupted goes on with documents under other names: with the labels of these."""
    scene = own_corpus
    path, said = tmp_path / "labels.ctm", {"d001": "abca", "x001": "aabc"}
    path.write_text("".join(f"{name} 1 {t / 5} 0.2 {of[t % 4]}\n" for name, of in said.items() for t in range(40)))
    scene.select(1)
    named = f"corpus.alignments.phones={path}"
    sets = (behind_mfcc(("lda", {"columns": 2, "hours": 1})), OF_MADE, named)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(FitTransforms, "_go_on", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scene.run(*sets)
    monkeypatch.undo()
    assert list((scene.folder / "run/store/models/rounds").glob("*.totals"))
    for table in (scene.corpus / "docs.csv", scene.corpus / "refs.csv"):
        table.write_text(table.read_text().replace("d001,", "x001,"))
    scene.run(*sets)
    scene.run(*sets, run="anew")
    models = [model_of(scene, "lda.made", run) for run in ("run", "anew")]
    assert models[0].settings["taught_by"] == models[1].settings["taught_by"]
    assert models[0].fingerprint == models[1].fingerprint


def test_without_labels(scene: Any, tmp_path: Path) -> None:
    with raises(families.MISSING_INPUT, transform="lda"):
        scene.run(LDA, OF_MADE)
    (tmp_path / "others.ctm").write_text("somewhere 1 0 1 a\n")
    with raises(families.NOTHING_TO_FIT, where="others.ctm", transform="lda"):
        scene.run(LDA, OF_MADE, f"corpus.alignments.phones={tmp_path}/others.ctm")
