"""A model file that a config names: another kind, another dimension and another number of components are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.extractors import create
from swsdist.features.fitting.interface import Model
from swsdist.features.fitting.mixture import mixture_model
from swsdist.features.transforms.project import projection
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES, TRANSFORMS
from swsdist.testing.synthesis.recogniser import make_recogniser
from tests.support.coded import raises

#: Options of all that take a model, and the kind of model.
TAKING: dict[str, tuple[dict[str, Any], str]] = {
    "mfcc": ({"fmax": "common"}, "band"),
    "mfcc-fingerprint": ({"fmax": "common"}, "band"),
    "vtln": ({"components": 3}, "vtln"),
    "phnrec": ({"corpus_frames": 300}, "mel-mean"),
    "ssl": ({}, "folder"),
    "gmm": ({"components": 3}, "gmm"),
    "phones": ({"components": 3}, "phones"),
    "mean-variance": ({}, "moments"),
    "warp": ({}, "warp"),
    "project": ({}, "projection"),
    "pca": ({"columns": 2}, "projection"),
    "lda": ({"columns": 2}, "projection"),
    "hlda": ({"columns": 2}, "projection"),
    "correspondence": ({"columns": 2, "frames": 0}, "projection"),
}


def models(columns: int) -> Iterator[Model]:
    """One of each kind, for frames of so many columns."""
    rng = np.random.default_rng(3)
    mixture = mixture_model(np.ones(3), rng.normal(size=(3, columns)), np.ones((3, columns)))
    moments = {"mean": np.zeros(columns), "deviation": np.ones(columns)}
    yield mixture
    yield Model("phones", 1, {**mixture.arrays, "conditional": np.ones((3, 2)) / 2}, {"labels": ["a", "b"]})
    yield Model("vtln", 1, {**mixture.arrays, "factors": np.ones(1)}, {"speakers": ["s"]})
    yield Model("moments", 1, moments)
    yield Model("warp", 1, moments)
    yield Model("mel-mean", 1, {"mean": moments["mean"]})
    yield projection(moments["mean"], np.ones((columns, 2)), moments["deviation"])
    yield Model("band", 1, {}, {"fmax": 3700.0})
    yield Model("codebook", 1, {**moments, "codewords": np.ones((4, columns))})


@pytest.fixture
def files(tmp_path: Path) -> dict[str, dict[int, str]]:
    """Files of models by kind and number of columns: 6 are bands, 39 MFCC."""
    found: dict[str, dict[int, str]] = {}
    for columns in (6, 13, 39):
        for model in models(columns):
            model.save(Folder(str(tmp_path)), f"{model.name}{columns}.npz")
            found.setdefault(model.name, {})[columns] = str(tmp_path / f"{model.name}{columns}.npz")
    make_recogniser(str(tmp_path / "weights"))
    return found


def frames_with(name: str, files: dict[str, dict[int, str]], options: dict[str, Any]) -> np.ndarray:
    """Frames of an extractor, or of MFCC and a transform."""
    samples = np.random.default_rng(1).normal(size=16000).astype(np.float32)
    if name in TRANSFORMS:
        return create("mfcc", {}, transforms=[(name, options)]).extract(samples)
    if name == "phnrec":
        options = {"weights": str(Path(files["gmm"][6]).parent / "weights"), **options}
    return create(name, options).extract(samples)


def columns_of(name: str) -> int:
    return 6 if name == "phnrec" else 39


def test_all_that_take_a_model_are_tried() -> None:
    taking = [
        name
        for registry in (FEATURES, TRANSFORMS)
        for name in registry
        if "model" in getattr(registry[name].load(), "model_fields", {})
    ]
    assert set(taking) == set(TAKING)


@pytest.mark.parametrize("name", TAKING)
def test_only_a_model_of_its_kind_and_dimension(name: str, files: dict[str, dict[int, str]]) -> None:
    options, wanted = TAKING[name]
    taken, refused = [], 0
    for kind, by_columns in files.items():
        for columns, path in by_columns.items():
            try:
                frames = frames_with(name, files, {**options, "model": path})
            except ConfigError as error:
                refused += bool(error.code and error.remedy)
            else:
                assert np.isfinite(frames).all()
                taken.append((kind, columns))
    of_its_own = [(wanted, columns) for columns in (6, 13, 39) if wanted == "band" or columns == columns_of(name)]
    assert taken == ([] if wanted == "folder" or name == "mfcc-fingerprint" else of_its_own)
    assert refused == 27 - len(taken)


COUNTED = [name for name, (options, _) in TAKING.items() if {"components", "columns"} & set(options)]


@pytest.mark.parametrize("name", COUNTED)
def test_a_number_that_is_given_is_that_of_the_output(name: str, files: dict[str, dict[int, str]]) -> None:
    options, kind = TAKING[name]
    of_mixture = "components" in options
    code = families.MISMATCH if of_mixture else codes.TOO_MANY_COMPONENTS
    for count in (1, 2, 3, 4, 8):
        given = {**options, "components" if of_mixture else "columns": count, "model": files[kind][39]}
        if not (count == 3 if of_mixture else count <= 2):
            with raises(code):
                frames_with(name, files, given)
        elif not of_mixture:
            assert frames_with(name, files, given).shape[1] == count


def test_frames_on_either_side_are_those_of_the_model(tmp_path: Path) -> None:
    """Also where the columns of fewer frames are as many, rounded down."""
    projection(np.zeros(22), np.ones((22, 2)), np.ones(22)).save(Folder(str(tmp_path)), "m.npz")
    for frames in range(7):
        options = {"columns": 1, "frames": frames, "model": str(tmp_path / "m.npz")}
        transforms = [("columns", {"keep": [1, 2]}), ("correspondence", options)]
        if frames == 5:
            assert create("mfcc", {}, transforms=transforms).dimension == 1
        else:
            with pytest.raises(ConfigError):
                create("mfcc", {}, transforms=transforms)


def test_options_that_have_no_effect(files: dict[str, dict[int, str]]) -> None:
    for name, options, code in (
        ("mfcc", {"fmax": 4000.0}, codes.MODEL_WITHOUT_USE),
        ("vtln", {"warps": "all"}, codes.MODEL_WITHOUT_USE),
        ("phnrec", {"corpus_frames": 0}, codes.MODEL_WITHOUT_USE),
        ("lda", {"columns": 2, "labels": "l.ctm"}, families.UNUSED_OPTION),
        ("phones", {"labels": "l.ctm"}, families.UNUSED_OPTION),
    ):
        with raises(code):
            frames_with(name, files, {**options, "model": files[TAKING[name][1]][columns_of(name)]})
