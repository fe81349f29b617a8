"""Extractors as models are: with a file, of whole utterances, in batches, of posteriors; the suite catches their faults."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict

from swsdist.config import config_from_dict, load_config
from swsdist.config.section import IsPath
from swsdist.core.errors import ConfigError, DataError
from swsdist.core.needs import Needs
from swsdist.features import blocks as cutting
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create, demand, from_recipe, identity, recipe, recipe_fingerprint
from swsdist.features.fitting.interface import Model, load_model
from swsdist.features.interface import columns_of, frame_count, kind_of, needs_of, surroundings, use
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES
from swsdist.registry.registry import Entry
from swsdist.testing.conformance import check_extractor


class Plain(BaseModel):
    """Samples of 1000 Hz in frames of 20 every 10."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: ClassVar[int] = 1
    sample_rate: ClassVar[int] = 1000
    frame_length: ClassVar[int] = 20
    hop: ClassVar[int] = 10
    context: ClassVar[int | None] = 0
    dimension: ClassVar[int] = 20
    name: ClassVar[str] = "plain"

    def describe(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def cut(self, samples: np.ndarray) -> np.ndarray:
        if frame_count(self, len(samples)) == 0:
            return np.empty((0, 20))
        return np.lib.stride_tricks.sliding_window_view(samples, 20)[::10].astype(np.float64)

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return self.cut(samples).astype(np.float32)


class Projected(Plain):
    """With a file: samples under a frame, times a matrix."""

    name: ClassVar[str] = "projected"
    dimension: ClassVar[int] = 3
    columns: ClassVar[tuple[str, ...]] = ("left", "right", "rest")
    needs: ClassVar[tuple[Needs, ...]] = (Needs(cpus=2, memory_gb=0.5, gpus=1), Needs(cpus=2), Needs())
    matrix: IsPath

    def files(self) -> list[str]:
        return [self.matrix]

    def use(self, granted: Needs) -> None:
        assert granted.cpus >= 1

    def extract(self, samples: np.ndarray) -> np.ndarray:
        folder, _, name = self.matrix.rpartition("/")
        # einsum: a sum in the order of the index, in any shape
        weights = np.asarray(load_model(Folder(folder), name).arrays["matrix"])
        return np.einsum("tk,kd->td", self.cut(samples), weights).astype(np.float32)


class Whole(Plain):
    """Of whole utterances: less the mean of all that it is given at once."""

    name: ClassVar[str] = "whole"
    context: ClassVar[int | None] = None
    whole_frames: int = 300
    chunk_frames: int = 200
    overlap_frames: int = 50

    def extract(self, samples: np.ndarray) -> np.ndarray:
        frames = self.cut(samples)
        return (frames - frames.mean(axis=0) if len(frames) else frames).astype(np.float32)


class Batches(Whole):
    """Several at once, each by itself."""

    name: ClassVar[str] = "batches"
    batch: ClassVar[int] = 3

    def extract_batch(self, stretches: list[np.ndarray]) -> list[np.ndarray]:
        assert len(stretches) <= self.batch
        return [Whole.extract(self, each) for each in stretches]


class Posteriors(Plain):
    """A softmax of the samples under a frame."""

    name: ClassVar[str] = "posteriors"
    kind: ClassVar[str] = "posteriors"

    def extract(self, samples: np.ndarray) -> np.ndarray:
        exponentials = np.exp(self.cut(samples))
        return (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    values = {"matrix": np.random.default_rng(1).normal(size=(20, 3))}
    Model("projection", 1, values).save(Folder(str(tmp_path)), "m.npz")
    return str(tmp_path / "m.npz")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The four, under their names, as an entry point would."""
    for kind in (Projected, Whole, Batches, Posteriors):
        FEATURES.add(kind.name, Entry(f"{__name__}:{kind.__name__}", kind.version))
    sys.modules.setdefault(__name__, sys.modules[Plain.__module__])
    yield
    for kind in (Projected, Whole, Batches, Posteriors):
        FEATURES.remove(kind.name)


@pytest.mark.parametrize("name", ["projected", "whole", "batches", "posteriors"])
def test_they_pass(name: str, matrix: str) -> None:
    check_extractor(create(name, {"matrix": matrix} if name == "projected" else {}))


def test_what_it_says_of_itself(matrix: str) -> None:
    projected, posteriors = create("projected", {"matrix": matrix}), create("posteriors", {})
    assert columns_of(projected) == ("left", "right", "rest")
    assert columns_of(posteriors)[:2] == ("c0", "c1")
    assert (kind_of(projected), kind_of(posteriors)) == ("features", "posteriors")
    assert needs_of(projected)[0].gpus == 1
    assert needs_of(posteriors) == (Needs(),)
    assert surroundings(create("whole", {})) == 50
    use(projected, Needs(cpus=2))
    use(posteriors, Needs(cpus=2))
    with pytest.raises(ValueError, match="at least 1 CPU"):
        Needs(cpus=0)


def test_made_once_until_its_file_changes(matrix: str, tmp_path: Path) -> None:
    first = create("projected", {"matrix": matrix})
    assert create("projected", {"matrix": matrix}) is first
    wanted = recipe_fingerprint(identity(first))
    Model("projection", 1, {"matrix": np.zeros((20, 3))}).save(Folder(str(tmp_path)), "m.npz")
    second = create("projected", {"matrix": matrix})
    assert second is not first
    assert recipe_fingerprint(identity(second)) != wanted
    with pytest.raises(DataError, match="differs from the one that was planned"):
        demand(second, wanted)


def test_the_content_is_the_identity_not_the_path(matrix: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "n.npz"
    copy.write_bytes(Path(matrix).read_bytes())
    one, other = create("projected", {"matrix": matrix}), create("projected", {"matrix": str(copy)})
    assert identity(one) == identity(other)
    assert recipe(one) != recipe(other)
    assert recipe_fingerprint(recipe(one)) == recipe_fingerprint(recipe(other))
    assert from_recipe(recipe(other)) is other


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the file cannot be read") as caught:
        create("projected", {"matrix": str(tmp_path / "no.npz")})
    assert "no.npz" in str(caught.value.where)


def test_how_it_cuts_is_in_the_identity() -> None:
    assert identity(create("whole", {}))["whole"] == [300, 200, 50]
    assert identity(create("posteriors", {}))["kind"] == "posteriors"
    assert {"whole", "kind", "files"}.isdisjoint(identity(create("mfcc", {})))


def test_paths_among_the_options_are_relative_to_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    head = "run: r\ncorpus: {documents: d}\nfeatures: "
    (tmp_path / "my.yaml").write_text(f"{head}{{name: projected, options: {{matrix: models/m.npz}}}}\n")
    for sets, path in (([], "models/m.npz"), (["features.options.matrix=n.npz"], "sub/n.npz")):
        assert load_config("../my.yaml", sets).features[0].options == {"matrix": f"{tmp_path}/{path}"}
    (tmp_path / "my.yaml").write_text(f"{head}[{{name: mfcc}}, {{name: projected, options: {{matrix: m.npz}}}}]\n")
    assert load_config("../my.yaml").features[1].options == {"matrix": f"{tmp_path}/m.npz"}
    words = {"run": "r", "corpus": {"documents": "d"}, "features": {"options": {"window": "hamming"}}}
    assert config_from_dict(words).features[0].options == {"window": "hamming"}


@pytest.mark.parametrize("kind", [Whole, Batches])
def test_chunks_are_as_the_page_says(kind: type[Whole]) -> None:
    """Against a plain reading: chunks of 200 begin every 150, the last ends with the recording."""
    extractor = kind()
    for frames in (1, 199, 200, 300, 301, 349, 350, 351, 399, 400, 450, 499, 500, 501, 777):
        samples = np.random.default_rng(frames).normal(size=frames * 10 + 10).astype(np.float32)
        found = np.concatenate(list(in_blocks(extractor, [samples[:99], samples[99:]])))
        starts = [*range(0, frames - 200, 150), frames - 200] if frames > 300 else [0]
        length = 200 if frames > 300 else frames
        expected: list[np.ndarray] = []
        have = 0
        for start in starts:
            made = extractor.extract(samples[start * 10 : start * 10 + length * 10 + 10])
            end = frames if start == starts[-1] else start + 200 - 25
            expected.append(made[have - start : end - start])
            have = end
        assert found.tobytes() == np.concatenate(expected).tobytes(), frames


def test_rows_are_full_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "BLOCK_FRAMES", 64)
    samples = np.random.default_rng(3).normal(size=8000).astype(np.float32)
    found = list(in_blocks(Batches(), [samples]))
    assert {len(block) for block in found[:-1]} == {64}
    assert sum(map(len, found)) == frame_count(Batches(), 8000)


_threads = [1]


def _shared(self: Batches, stretches: list[np.ndarray]) -> list[np.ndarray]:
    return [each * np.float32(1 + 1e-7 * (len(stretches) - 1)) for each in Batches.extract_batch(self, stretches)]


def _heeds_threads(self: Plain, granted: Needs) -> None:
    _threads[0] = granted.cpus


#: A class, and what is wrong with one made of it, by what the suite says.
FAULTS: dict[str, tuple[type[Plain], dict[str, Any]]] = {
    "the frames have other bytes than alone": (Batches, {"extract_batch": _shared}),
    "gives 1 arrays": (Batches, {"extract_batch": lambda self, given: Batches.extract_batch(self, given)[:1]}),
    "less than half a chunk": (Whole, {"__annotations__": {"overlap_frames": int}, "overlap_frames": 150}),
    "it lacks whole_frames": (Plain, {"name": "none", "context": None}),
    "a frame is not: negative, or no sum of 1": (
        Posteriors,
        {"extract": lambda self, samples: Posteriors.extract(self, samples) * np.float32(1.1)},
    ),
    "kind is 'wild'": (Plain, {"name": "odd", "__annotations__": {"kind": ClassVar[str]}, "kind": "wild"}),
    "different words": (Plain, {"name": "same", "__annotations__": {"columns": ClassVar[Any]}, "columns": ("a",) * 20}),
    "needs is not": (Plain, {"name": "needy", "__annotations__": {"needs": ClassVar[Any]}, "needs": (4,)}),
    "with more threads it gives other bytes": (
        Plain,
        {
            "name": "threads",
            "use": _heeds_threads,
            "extract": lambda self, samples: Plain.extract(self, samples) * np.float32(_threads[0]),
        },
    ),
    "the option matrix names a file": (Projected, {"files": lambda self: []}),
}


@pytest.mark.parametrize("complaint", FAULTS)
def test_faults_are_caught(complaint: str, matrix: str) -> None:
    kind, members = FAULTS[complaint]
    wrong = type("Wrong", (kind,), members)(**({"matrix": matrix} if kind is Projected else {}))
    with pytest.raises(AssertionError, match=complaint):
        check_extractor(wrong)
