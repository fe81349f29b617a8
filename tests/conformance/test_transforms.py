"""The suite for transforms, on those of this package and on wrong ones; and extractors with transforms behind them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from examples.signed_power import SignedPower
from swsdist.config import load_config
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, DataError
from swsdist.features.extractors import create, from_recipe, identity, recipe, recipe_fingerprint
from swsdist.features.fitting.interface import Model, Step
from swsdist.features.fitting.mixture import mixture_model
from swsdist.features.interface import Kind, columns_of, kind_of
from swsdist.features.transforms.interface import Log, Shape
from swsdist.features.transforms.project import Project, projection
from swsdist.features.transforms.projections import Pca
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import TRANSFORMS
from swsdist.registry.registry import Entry
from swsdist.testing.conformance import check_extractor, check_fitted, check_transform
from tests.support.coded import raises

RNG = np.random.default_rng(5)


def saved(folder: Path, name: str, mean: Any, matrix: Any, deviation: Any) -> str:
    projection(mean, matrix, deviation).save(Folder(str(folder)), name)
    return str(folder / name)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A projection of six columns to four; the same whatever was tested before."""
    rng = np.random.default_rng(6)
    return saved(tmp_path, "a.npz", rng.normal(size=6), rng.normal(size=(6, 4)), rng.uniform(0.1, 300, 6))


def wide(tmp_path: Path, columns: int = 39) -> str:
    return saved(tmp_path, "wide.npz", RNG.normal(size=columns), RNG.normal(size=(columns, 5)), np.full(columns, 50.0))


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("log", {}, "posteriors"),
        ("log", {"floor": 0.01}, "posteriors"),
        ("columns", {"keep": [3, 1]}, "features"),
        ("columns", {"keep": ["c5"]}, "posteriors"),
        ("project", {}, "features"),
        ("project", {"columns": 2}, "features"),
        ("pca", {"columns": 3}, "features"),
        ("gmm", {}, "features"),
        ("gmm", {"values": "logits", "scale": 0.5}, "features"),
        ("gmm", {"keep": 2, "floor": 0}, "features"),
        ("mean-variance", {}, "features"),
        ("mean-variance", {"variance": False, "corpus_frames": 0}, "features"),
        ("warp", {}, "features"),
        ("warp", {"frames": 7}, "posteriors"),
        ("splice", {}, "features"),
        ("splice", {"frames": 1}, "posteriors"),
        ("correspondence", {"columns": 3, "frames": 0}, "features"),
        ("lda", {"columns": 3}, "features"),
        ("hlda", {"columns": 4}, "features"),
        ("phones", {}, "features"),
        ("phones", {"values": "logits", "scale": 0.5}, "features"),
    ],
)
def test_those_of_this_package(name: str, options: dict[str, Any], kind: Kind, model: str, tmp_path: Path) -> None:
    known = {"mean": np.linspace(-1, 1, 6), "deviation": np.linspace(0.1, 3, 6)}
    mixture = mixture_model(np.ones(5), RNG.normal(size=(5, 6)), np.ones((5, 6)))
    phones = {**mixture.arrays, "conditional": RNG.dirichlet(np.ones(3), 5)}
    fitted = {
        "gmm": mixture,
        "phones": Model("phones", 1, phones, {"labels": ["a", "b", "c"]}),
        "mean-variance": Model("moments", 1, known),
        "warp": Model("warp", 1, known),
    }
    given: dict[str, Any] = {"components": 5} if name in ("gmm", "phones") else {}
    if name in fitted:
        fitted[name].save(Folder(str(tmp_path)), "fitted.npz")
        given["model"] = str(tmp_path / "fitted.npz")
    elif name not in ("log", "columns", "splice"):
        given["model"] = model
    check_transform(name, {**given, **options}, kind=kind)


def test_the_example(added: Any) -> None:
    added(TRANSFORMS, "signed-power", Entry(f"{SignedPower.__module__}:SignedPower", SignedPower.version))
    check_transform("signed-power", {"power": 0.25}, columns=39)


FITTED: dict[str, dict[str, Any]] = {
    "pca": {"columns": 3},
    "mean-variance": {},
    "gmm": {"components": 5, "iterations": 2},
    "correspondence": {"columns": 3, "frames": 2},
    "lda": {"columns": 3},
    "hlda": {"columns": 2},
    "phones": {"components": 3, "iterations": 1},
    "warp": {},
}


@pytest.mark.parametrize("name", FITTED)
def test_those_that_are_fitted(name: str) -> None:
    check_fitted(name, FITTED[name])


def test_all_that_are_fitted_are_tried() -> None:
    assert {name for name in TRANSFORMS if hasattr(TRANSFORMS[name].load(), "rounds")} == set(FITTED)


class ByOrder(Pca):
    """Sums in floating point: they depend on how documents are cut."""

    name: ClassVar[str] = "mine"

    def rounds(self) -> Any:
        return FloatSums()


class FloatSums:
    speech = False

    def totals(self, known: Any, document: Any) -> Any:
        return {"sums": np.concatenate(document.blocks).sum(axis=0, dtype=np.float64) / 3}

    def go_on(self, known: Any, totals: Any) -> Any:
        return Step(Model("mine", 1, {"sums": totals["sums"]}), True)


def test_float_sums_are_caught(added: Any) -> None:
    added(TRANSFORMS, "mine", Entry(f"{__name__}:ByOrder", 1))
    with pytest.raises(AssertionError, match="what a document adds in round 1 is not whole numbers"):
        check_fitted("mine", {"columns": 2})


class Mine(Log):
    name: ClassVar[str] = "mine"


def _changed(change: Callable[[np.ndarray], np.ndarray], **more: Any) -> type[Mine]:
    return type("Changed", (Mine,), {"apply": lambda self, frames: change(frames), **more})


def _in_place(frames: np.ndarray) -> np.ndarray:
    frames += 1
    return frames


Neighbours = _changed(lambda frames: (frames - frames.sum(axis=0)).astype(np.float32))
Wide = _changed(lambda frames: frames.astype(np.float64))
InPlace = _changed(_in_place)
Unsummed = _changed(lambda frames: (frames * 2).astype(np.float32), becomes=lambda self, given: given)


@pytest.mark.parametrize(
    ("made", "version", "complaint"),
    [
        ("Neighbours", 1, "frames 0 to 0 by themselves become others"),
        ("Wide", 1, "it does not make float32"),
        ("InPlace", 1, "it changes what it is given"),
        ("Unsummed", 1, "does not sum to 1"),
        ("Mine", 2, "its entry's is another"),
        ("Mine", 0, "its version is 0"),
    ],
)
def test_a_wrong_one_is_caught(added: Any, made: str, version: int, complaint: str) -> None:
    added(TRANSFORMS, "mine", Entry(f"{__name__}:{made}", version))
    with pytest.raises(AssertionError, match=complaint):
        check_transform("mine", kind="posteriors")


def test_another_packages(added: Any) -> None:
    added(TRANSFORMS, "mine", Entry(f"{__name__}:Mine", 1))
    check_transform("mine", kind="posteriors")
    with pytest.raises(ConfigError, match="unknown transform 'lgo'; did you mean log"):
        create("mfcc", {}, transforms=[("lgo", {})])


def test_the_projection_is_that_of_numpy_and_exact(model: str, tmp_path: Path) -> None:
    made = Project(model=model)
    assert made.becomes(Shape(tuple("abcdef"), "logits")) == Shape(("p0", "p1", "p2", "p3"), "features")
    with np.load(model) as file:
        mean, deviation, matrix = (file[name] for name in ("mean", "deviation", "projection"))
    frames = (RNG.normal(size=(300, 6)) * deviation + mean).astype(np.float32)
    expected = (frames - mean) @ matrix
    found = made.apply(frames)
    # A step of a column is 2^-12 of its deviation, and one of the matrix 2^-20 of its largest number.
    step = np.abs(deviation[:, None] * matrix)
    assert np.abs(found - expected).max() <= (step.sum(axis=0).max() + 30 * step.max()) * 2**-12
    # Sums do not depend on their order: another BLAS, or none, gives the same.
    order = RNG.permutation(6)
    projection(mean[order], matrix[order], deviation[order]).save(Folder(str(tmp_path)), "turned.npz")
    turned = Project(model=str(tmp_path / "turned.npz"))
    assert turned.apply(np.ascontiguousarray(frames[:, order])).tobytes() == found.tobytes()


def test_a_projection_that_is_none(tmp_path: Path, model: str) -> None:
    folder, shape = Folder(str(tmp_path)), Shape(tuple("abcdef"), "features")
    for name, mean, matrix, deviation in (
        ("flat.npz", np.zeros(6), np.zeros((6, 2)), np.zeros(6)),
        ("none.npz", np.zeros(6), np.zeros((6, 0)), np.full(6, 1e300)),
        ("huge.npz", np.zeros(6), np.full((6, 2), 1e300), np.full(6, 1e300)),
        ("narrow.npz", np.zeros(2), np.eye(2), np.ones(2)),
    ):
        projection(mean, matrix, deviation).save(folder, name)
    Model("projection", 1, {"mean": np.zeros(6)}).save(folder, "part.npz")
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    (tmp_path / "folder.npz").mkdir()
    for name, complaint in {
        "no.npz": "the model file does not exist",
        "bad.npz": "the file is not a model",
        **{f"{name}.npz": codes.BAD_PROJECTION_ARRAYS.name for name in ("flat", "none", "huge")},
        "part.npz": r"it has no deviation \[unusable-model\]",
        "folder.npz": r"the model file cannot be read: this is a folder.*\[unusable-model\]",
        "narrow.npz": "the model takes 2 columns, the features have 6",
    }.items():
        with pytest.raises(ConfigError, match=complaint):
            Project(model=str(tmp_path / name)).becomes(shape)
    with raises(codes.TOO_MANY_COMPONENTS, kind="columns of the projection", wanted=5, available=4):
        Project(model=model, columns=5).becomes(shape)
    narrow = Project(model=str(tmp_path / "narrow.npz"))
    assert narrow.apply(np.array([[1024, 0]], np.float32)).tolist() == [[1024, 0]]
    with pytest.raises(DataError, match="a frame's column 1 is more than 1024 deviations from the mean"):
        narrow.apply(np.array([[5, 0], [0, -1025]], np.float32))
    with pytest.raises(DataError, match="the logarithm of -1 is not defined"):
        Log().apply(np.array([[1, -1]], np.float32))


def test_columns_that_are_not_there() -> None:
    for keep, complaint in (
        (["c39"], "the features have no column"),
        ([39], "the features have no column"),
        (["c1", 1], "a column occurs twice"),
        ([True], "valid integer"),
        ([2.0], "valid integer"),
        ([], "at least 1 item"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            create("mfcc", {}, transforms=[("columns", {"keep": keep})])


def test_an_extractor_with_transforms_is_an_extractor(tmp_path: Path) -> None:
    model = wide(tmp_path, 12)
    transforms = [("columns", {"keep": [*range(1, 13)]}), ("project", {"model": model, "columns": 3})]
    made = create("mfcc", {}, transforms=transforms)
    assert create("mfcc", {}, transforms=transforms) is made
    assert (made.dimension, columns_of(made), kind_of(made)) == (3, ("p0", "p1", "p2"), "features")
    check_extractor(made)
    plain = create("mfcc", {})
    samples = RNG.normal(size=16000).astype(np.float32)
    frames = Project(model=model, columns=3).apply(np.ascontiguousarray(plain.extract(samples)[:, 1:13]))
    assert made.extract(samples).tobytes() == frames.tobytes()


def test_an_extractor_with_frames_around_is_an_extractor(tmp_path: Path) -> None:
    """A transform that looks at the frames around one, and one that looks at the whole recording."""
    projection(RNG.normal(size=14), RNG.normal(size=(14, 3)), np.full(14, 50.0)).save(Folder(str(tmp_path)), "m.npz")
    around = [("columns", {"keep": [1, 2]}), ("splice", {"frames": 3}), ("project", {"model": str(tmp_path / "m.npz")})]
    made = create("mfcc", {}, transforms=around)
    assert made.context == 4 + 3
    check_extractor(made)
    Model("moments", 1, {"mean": np.zeros(39), "deviation": np.full(39, 9.0)}).save(Folder(str(tmp_path)), "n.npz")
    whole = create("mfcc", {}, transforms=[("mean-variance", {"model": str(tmp_path / "n.npz")})])
    assert whole.context is None
    check_extractor(whole)


def test_the_content_of_a_model_counts_and_not_its_place(tmp_path: Path) -> None:
    first = wide(tmp_path)
    made = create("mfcc", {}, transforms=[("project", {"model": first})])
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "other.npz"
    copy.write_bytes(Path(first).read_bytes())
    same = create("mfcc", {}, transforms=[("project", {"model": str(copy)})])
    stored = json.loads(json.dumps(recipe(same)))
    assert stored["transforms"][0]["paths"] == {"model": str(copy)}
    assert recipe_fingerprint(stored) == recipe_fingerprint(identity(same)) == recipe_fingerprint(identity(made))
    assert recipe(from_recipe(stored)) == stored
    assert "transforms" not in identity(create("mfcc", {}))
    wide(tmp_path)  # another model under the same name
    other = create("mfcc", {}, transforms=[("project", {"model": first})])
    assert recipe_fingerprint(identity(other)) != recipe_fingerprint(stored)


def test_paths_are_relative_to_the_config(tmp_path: Path) -> None:
    one = "{name: mfcc, transforms: [{name: project, options: {model: m.npz}}]}"
    for features in (one, f"[{one}]"):
        (tmp_path / "c.yaml").write_text(f"run: r\ncorpus: {{documents: d.csv}}\nfeatures: {features}\n")
        (features,) = load_config(tmp_path / "c.yaml").features
        assert features.transforms[0].options == {"model": str(tmp_path / "m.npz")}
