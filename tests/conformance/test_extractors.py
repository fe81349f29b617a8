"""Every installed extractor passes the suite that is given to third parties, and the suite catches what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict

from swsdist.core.errors import ConfigError
from swsdist.features.extractors import create, installed
from swsdist.features.fitting.interface import Document, Learning, fit
from swsdist.features.interface import Extractor, Precomputed, frame_count
from swsdist.features.model import Model
from swsdist.io.filesystem import Folder
from swsdist.testing.conformance import check_extractor, check_precomputed
from swsdist.testing.synthesis.encoder import make_encoder
from swsdist.testing.synthesis.recogniser import make_recogniser

#: Frames that are given need options.
GIVEN = {"external": {"shift": 0.01, "dimension": 3, "kind": "posteriors"}}


#: torch is loaded by one process of the tests.
_NAMES = [
    pytest.param(name, marks=pytest.mark.xdist_group("ssl")) if name == "ssl" else name for name in sorted(installed())
]


def fitted_factors(options: dict[str, object], place: Path) -> str:
    """A model of vtln of one speaker's noise."""
    plain = create("vtln", options)
    wide = create("vtln", {**plain.learns_from()})
    assert isinstance(plain, Learning)
    assert isinstance(wide, Extractor)
    noise = np.random.default_rng(0).normal(scale=0.1, size=wide.sample_rate).astype(np.float32)
    fit(plain.rounds(), [Document([wide.extract(noise)], "eva")]).save(Folder(str(place)), "vtln.npz")
    return str(place / "vtln.npz")


@pytest.mark.parametrize("name", _NAMES)
def test_installed(name: str, tmp_path: Path) -> None:
    if name not in GIVEN:
        options: dict[str, object] = {}
        if name == "phnrec":
            make_recogniser(str(tmp_path))
            options = {"weights": str(tmp_path)}
        if name == "vtln":
            options = {"components": 2, "iterations": 1}
            options = {**options, "model": fitted_factors(options, tmp_path)}
        if name == "ssl":
            for library in ("torch", "transformers"):
                pytest.importorskip(library, reason="the extra `ssl` is not installed: pip install 'swsdist[ssl]'")
            make_encoder(str(tmp_path))
            options = {"model": str(tmp_path), "layers": [1, 3], "chunk_seconds": 2, "overlap_seconds": 0.5}
        extractor = create(name, options)
        assert isinstance(extractor, Extractor)
        check_extractor(extractor)
        return
    for key, count in (("a", 5000), ("b", 1)):
        np.save(tmp_path / f"{key}.npy", np.random.default_rng(count).dirichlet(np.ones(3), size=count))
    given = create(name, {"path": str(tmp_path), **GIVEN[name]})
    assert isinstance(given, Precomputed)
    check_precomputed(given)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"dimension": 2}, "blocks of 'a' are"),
        ({"version": 0}, "version is 0"),
        ({"kind": "noise"}, "kind is 'noise'"),
    ],
    ids=str,
)
def test_given_frames_that_are_wrong_are_caught(tmp_path: Path, wrong: dict[str, Any], complaint: str) -> None:
    np.save(tmp_path / "a.npy", np.ones((9, 3)))
    given = create("external", {"path": str(tmp_path), **GIVEN["external"], "kind": "features"})
    other = given.__class__.model_construct(**{**dict(given), **wrong})  # type: ignore[attr-defined]
    for name, value in wrong.items():
        object.__setattr__(other, name, value)
    read = given.read  # type: ignore[union-attr]
    object.__setattr__(other, "read", read)
    with pytest.raises(AssertionError, match=complaint):
        check_precomputed(other)


@pytest.mark.parametrize(
    ("wide", "options"),
    [
        (False, {"units": "states", "values": "logits", "non_speech": "drop"}),
        (True, {"units": "phones", "values": "logits", "non_speech": "keep"}),
        (True, {"units": "states", "values": "posteriors", "non_speech": "merge"}),
        (False, {"values": "energies"}),
    ],
    ids=str,
)
def test_phnrec_with_other_options(wide: bool, options: dict[str, Any], tmp_path: Path) -> None:
    make_recogniser(str(tmp_path), wide=wide)
    check_extractor(create("phnrec", {"weights": str(tmp_path), **options}))


def test_phnrec_with_the_mean_of_a_corpus(tmp_path: Path) -> None:
    make_recogniser(str(tmp_path))
    Model("mel-mean", 1, {"mean": np.full(6, 12.0)}).save(Folder(str(tmp_path)), "mean.npz")
    options = {"weights": str(tmp_path), "corpus_frames": 300, "model": str(tmp_path / "mean.npz")}
    check_extractor(create("phnrec", options))
    Model("mel-mean", 1, {"mean": np.full(7, 12.0)}).save(Folder(str(tmp_path)), "mean.npz")
    with pytest.raises(ConfigError, match="not a mean of 6 bands"):
        create("phnrec", options).extract(np.zeros(8000, np.float32))


@pytest.mark.parametrize(
    "options",
    [
        {"deltas": 0},
        {"deltas": 1, "delta_width": 15},
        {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "window": "hamming"},
        {"n_fft": 400, "hop_length": 500},
    ],
    ids=str,
)
def test_mfcc_with_other_options(options: dict[str, Any]) -> None:
    check_extractor(create("mfcc", options))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plp", {"bands": "mel", "rasta": True, "deltas": 1}),
        ("plp", {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "lifter": 0, "deltas": 0}),
        ("mfcc-fingerprint", {"deltas": 0}),
    ],
    ids=str,
)
def test_plp_and_fingerprints_with_other_options(name: str, options: dict[str, Any]) -> None:
    check_extractor(create(name, options))


class Energies(BaseModel):
    """The smallest extractor that is right: log energy of each frame, and its mean over the frames around."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str] = "energies"
    version: ClassVar[int] = 1
    sample_rate: int = 1000
    frame_length: int = 20
    hop: int = 10
    context: int = 2
    dimension: ClassVar[int] = 2

    def describe(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    def extract(self, samples: np.ndarray) -> np.ndarray:
        if frame_count(self, len(samples)) == 0:
            return np.empty((0, 2), np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.frame_length)[:: self.hop].astype(np.float64)
        energy = np.log((frames**2).sum(axis=1) + 1e-6)
        around = np.pad(energy, self.context, mode="edge")
        smooth = np.lib.stride_tricks.sliding_window_view(around, 2 * self.context + 1).mean(axis=1)
        return np.stack([energy, smooth], axis=1).astype(np.float32)


def test_the_smallest_one_passes() -> None:
    check_extractor(Energies())
    check_extractor(Energies(context=0, hop=20, sample_rate=8000))


class NoVersion(Energies):
    version: ClassVar[Any] = None


class NoHop(Energies):
    hop: int = 0


class DescribesAnArray(Energies):
    def describe(self) -> dict[str, Any]:
        return {"window": np.ones(3)}


class DescribesATuple(Energies):
    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "band": (1, 2)}


class DescribesInfinity(Energies):
    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "top": float("inf")}


class ForgetsAnOption(Energies):
    def describe(self) -> dict[str, Any]:
        return {key: value for key, value in super().describe().items() if key != "context"}


class DescribesTooMuch(Energies):
    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "dimension": 2}


class TakesAnything(Energies):
    model_config = ConfigDict(extra="ignore", frozen=True)


class TakesNoKeywords(Energies):
    def __init__(self, sample_rate: int = 1000, frame_length: int = 20, hop: int = 10, context: int = 2) -> None:
        super().__init__(sample_rate=sample_rate, frame_length=frame_length, hop=hop, context=context)


class Wide(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        return super().extract(samples).astype(np.float64)


class ListOfFrames(Energies):
    def extract(self, samples: np.ndarray) -> Any:
        return super().extract(samples).tolist()


class Centred(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        return super().extract(np.pad(samples, self.frame_length // 2))


class Transposed(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(super().extract(samples).T)


class FailsOnSilence(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return super().extract(samples) + np.log(np.abs(samples).max(initial=0) > 0, dtype=np.float32)


class FailsOnShort(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        if len(samples) < self.frame_length:
            raise ValueError("too short")
        return super().extract(samples)


class WritesIntoSamples(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        samples *= 2
        return super().extract(samples)


class Dithers(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        return super().extract(samples + np.random.default_rng().normal(scale=1e-3, size=len(samples)))


_memory: dict[int, np.ndarray] = {}


class ReusesMemory(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        frames = super().extract(samples)
        out = _memory.setdefault(len(frames), frames)
        out[:] = frames
        return out


class NormalisesByTheWhole(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        frames = super().extract(samples)
        return frames - frames.mean(axis=0) if len(frames) else frames


class LooksFurther(Energies):
    def extract(self, samples: np.ndarray) -> np.ndarray:
        return Energies(context=self.context + 1).extract(samples)


class OddSeams(Energies):
    """Right for a few hundred frames, wrong at the end of a long stretch."""

    def extract(self, samples: np.ndarray) -> np.ndarray:
        frames = super().extract(samples)
        frames[4000:] += 1
        return frames


def broken() -> Iterator[tuple[type[Energies], str]]:
    yield NoVersion, "version is None, not an integer of at least 1"
    yield NoHop, "hop is 0"
    yield DescribesAnArray, "not plain JSON"
    yield DescribesATuple, "not the same after writing and reading it as JSON"
    yield DescribesInfinity, "not plain JSON"
    yield ForgetsAnOption, "context is 2, not 3"
    yield DescribesTooMuch, "its own description is refused"
    yield TakesAnything, "an unknown option is accepted"
    yield TakesNoKeywords, "let pydantic check the options"
    yield Wide, "float64, not float32"
    yield ListOfFrames, "gives a list"
    yield Centred, "frame t covers samples"
    yield Transposed, "give frames of shape"
    yield FailsOnSilence, "not finite on digital silence"
    yield FailsOnShort, "fails on 0 samples"
    yield WritesIntoSamples, "read-only"
    yield Dithers, "other bytes the second time"
    yield ReusesMemory, "the same memory"
    yield NormalisesByTheWhole, "depends on more than the 3 frames"
    yield LooksFurther, "depends on more than the 3 frames"
    yield OddSeams, "are not those of the whole"


@pytest.mark.parametrize(("kind", "complaint"), broken(), ids=lambda value: getattr(value, "__name__", ""))
def test_broken_ones_are_caught(kind: type[Energies], complaint: str) -> None:
    extractor = kind(context=3)
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_extractor(extractor)
    assert str(caught.value).startswith("extractor 'energies': ")


def test_a_taken_name_is_caught() -> None:
    class Mine(Energies):
        name: ClassVar[str] = "mfcc"

        def describe(self) -> dict[str, Any]:
            return {"sample_rate": self.sample_rate}

    with pytest.raises(AssertionError, match="the name is taken: Mfcc"):
        check_extractor(Mine())


def test_what_is_no_extractor_at_all() -> None:
    with pytest.raises(AssertionError, match="it has no attribute name"):
        check_extractor(object())  # type: ignore[arg-type]
