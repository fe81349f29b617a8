"""Every installed extractor passes the suite that is given to third parties, and the suite catches what is broken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
from pydantic import BaseModel, ConfigDict

from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.extractors import create, from_recipe, identity, recipe
from swsdist.features.fitting.interface import Document, Learning, Model, fit
from swsdist.features.interface import Extractor, Precomputed, dtype_of, frame_count, tracks_of
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES
from swsdist.store.writing import write_tracks
from swsdist.testing.conformance import check_extractor, check_precomputed
from swsdist.testing.synthesis.encoder import make_encoder
from swsdist.testing.synthesis.recogniser import make_recogniser
from tests.support.coded import raises

#: Frames that are given need options.
GIVEN = {"external": {"shift": 0.01, "dimension": 3, "kind": "posteriors"}}


#: torch is loaded by one process of the tests.
_SSL = pytest.param("ssl", marks=pytest.mark.xdist_group("ssl"))
_NAMES = [_SSL if name == "ssl" else name for name in sorted(FEATURES)]


def fitted_factors(options: dict[str, object], place: Path) -> str:
    """A model of vtln of one speaker's noise."""
    plain = create("vtln", options)
    wide = create("vtln", {**plain.learns_from()})
    assert isinstance(plain, Learning)
    assert isinstance(wide, Extractor)
    noise = np.random.default_rng(0).normal(scale=0.1, size=wide.sample_rate).astype(np.float32)
    fit(plain.rounds(), [Document([wide.extract(noise)], "eva")]).save(Folder(str(place)), "vtln.npz")
    return str(place / "vtln.npz")


def options_of(name: str, place: Path) -> dict[str, object]:
    """Options of an installed extractor, with the models or frames that they name."""
    place.mkdir(exist_ok=True)
    if name in GIVEN:
        for key, count in (("a", 5000), ("b", 1)):
            np.save(place / f"{key}.npy", np.random.default_rng(count).dirichlet(np.ones(3), size=count))
        return {"path": str(place), **GIVEN[name]}
    if name == "phnrec":
        make_recogniser(str(place))
        return {"weights": str(place)}
    if name == "vtln":
        options: dict[str, object] = {"components": 2, "iterations": 1}
        return {**options, "model": fitted_factors(options, place)}
    if name == "ssl":
        for library in ("torch", "transformers"):
            pytest.importorskip(library, reason="the extra `ssl` is not installed: pip install 'swsdist[ssl]'")
        make_encoder(str(place))
        return {"model": str(place), "layers": [1, 3], "chunk_seconds": 2, "overlap_seconds": 0.5}
    return {"feature": "melspectrogram"} if name == "librosa" else {}


def checked(extractor: Any) -> None:
    (check_precomputed if isinstance(extractor, Precomputed) else check_extractor)(extractor)


@pytest.mark.parametrize("name", _NAMES)
def test_installed_and_kept_as_float16_it_is_rounded_once(name: str, tmp_path: Path) -> None:
    """Rows of shards hold what the extractor gives as float32, rounded; its statistics are of that."""
    options = options_of(name, given := tmp_path / "given")
    plain, half = create(name, options), create(name, options, dtype="float16")
    checked(plain)
    assert (dtype_of(plain), dtype_of(half)) == ("float32", "float16")
    assert {**identity(plain), "dtype": "float16"} == identity(half)
    assert identity(from_recipe(recipe(half))) == identity(half)
    assert tracks_of(half) == tracks_of(plain)
    rng = np.random.default_rng(3)
    row: dict[str, Any] = {"doc_id": "a", "channel": 1, "speaker": None, "identity": "1:2", "duration": None}
    if isinstance(plain, Precomputed):
        row |= {"item": list(plain.items(False, {})["a"]), "key": "a", "path": str(given / "a.npy")}
    else:
        row["path"] = str(tmp_path / "sound.wav")
        soundfile.write(row["path"], rng.normal(scale=0.1, size=5 * plain.sample_rate), plain.sample_rate)
    written = [
        write_tracks(Folder(str(tmp_path / kind)), "f" * 32, [row], each)
        for kind, each in (("plain", plain), ("half", half))
    ]
    for track, full, rounded in zip(tracks_of(plain), *written, strict=True):
        assert rounded.rejected.num_rows == 0
        shape, blobs = (-1, track.stop - track.first), []
        for kind, made in (("plain", full), ("half", rounded)):
            table = pq.read_table(tmp_path / kind / made.outputs[0].name)
            blobs.append((b"".join(table["features"].to_pylist()), table.drop_columns("features")))
        frames = np.frombuffer(blobs[0][0], "<f4").reshape(shape)
        assert blobs[1][0] == frames.astype("<f2").tobytes()
        assert blobs[1][1] == blobs[0][1]
        moments = Statistics.of(frames.astype(np.float16).astype(np.float32))
        assert np.allclose(rounded.documents["mean"][0].as_py(), moments.mean, rtol=1e-12, atol=1e-12)
    checked(half)


def test_beyond_the_range_of_float16(tmp_path: Path) -> None:
    """65519 rounds down to the greatest number; 65520 would be infinite, and the document is rejected."""
    np.save(tmp_path / "a.npy", np.array([[1.0], [-65519.0]]))
    np.save(tmp_path / "b.npy", np.array([[1.0], [-65520.0]]))
    given = create("external", {"path": str(tmp_path), "shift": 0.01, "dimension": 1}, dtype="float16")
    assert isinstance(given, Precomputed)
    items = given.items(False, {})
    assert np.concatenate(list(given.read(items["a"], "a", {}))).tolist() == [[1.0], [-65504.0]]
    with raises(codes.BEYOND_HALF_PRECISION, name="external", value=-65520.0):
        list(given.read(items["b"], "b", {}))
    row = {"doc_id": "b", "channel": 1, "path": items["b"].file, "speaker": None, "identity": "1:2", "duration": None}
    row |= {"item": list(items["b"]), "key": "b"}
    (made,) = write_tracks(Folder(str(tmp_path / "store")), "f" * 32, [row], given)
    assert made.rejected["reason"].to_pylist() == ["beyond-half-precision"]
    assert made.documents.num_rows == 0


def test_given_frames_that_are_wrong_are_caught(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((9, 3)))
    given = create("external", {"path": str(tmp_path), **GIVEN["external"], "kind": "features"})
    for name, value, complaint in (
        ("dimension", 2, "blocks of 'a' are"),
        ("version", 0, "version is 0"),
        ("kind", "noise", "kind is 'noise'"),
    ):
        other = given.__class__.model_construct(**{**dict(given), name: value})  # type: ignore[attr-defined]
        object.__setattr__(other, name, value)
        object.__setattr__(other, "read", given.read)  # type: ignore[union-attr]
        with pytest.raises(AssertionError, match=complaint):
            check_precomputed(other)


def test_phnrec_with_the_mean_of_a_corpus(tmp_path: Path) -> None:
    make_recogniser(str(tmp_path))
    Model("mel-mean", 1, {"mean": np.full(6, 12.0)}).save(Folder(str(tmp_path)), "mean.npz")
    options = {"weights": str(tmp_path), "corpus_frames": 300, "model": str(tmp_path / "mean.npz")}
    check_extractor(create("phnrec", options))
    Model("mel-mean", 1, {"mean": np.full(7, 12.0)}).save(Folder(str(tmp_path)), "mean.npz")
    with pytest.raises(ConfigError, match="not a mean of 6 bands"):
        create("phnrec", options).extract(np.zeros(8000, np.float32))


NARROW = {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mfcc", {"deltas": 0}),
        ("mfcc", {"deltas": 1, "delta_width": 15}),
        ("mfcc", {**NARROW, "window": "hamming"}),
        ("mfcc", {"n_fft": 400, "hop_length": 500}),
        ("plp", {"bands": "mel", "rasta": True, "deltas": 1}),
        ("plp", {**NARROW, "lifter": 0, "deltas": 0}),
        ("mfcc-fingerprint", {"deltas": 0}),
        ("phnrec", {"units": "states", "values": "logits", "non_speech": "drop"}),
        ("phnrec", {"wide": True, "units": "phones", "values": "logits", "non_speech": "keep"}),
        ("phnrec", {"wide": True, "units": "states", "values": "posteriors", "non_speech": "merge"}),
        ("phnrec", {"values": "energies"}),
    ],
    ids=str,
)
def test_with_other_options(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    if name == "phnrec":
        make_recogniser(str(tmp_path), wide=options.get("wide", False))
        options = {key: value for key, value in options.items() if key != "wide"} | {"weights": str(tmp_path)}
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


def _says(**more: Any) -> dict[str, Any]:
    return {"describe": lambda self: {**Energies.describe(self), **more}}


def _gives(after: Callable[[Any], Any] = lambda frames: frames, **before: Callable[[Any], Any]) -> dict[str, Any]:
    """An extractor that changes frames, or samples."""
    change = before.get("samples", lambda samples: samples)
    return {"extract": lambda self, samples: after(Energies.extract(self, change(samples)))}


def _no_keywords(self: Any, sample_rate: int = 1000, frame_length: int = 20, hop: int = 10, context: int = 2) -> None:
    BaseModel.__init__(self, sample_rate=sample_rate, frame_length=frame_length, hop=hop, context=context)


def _fails_on_short(self: Energies, samples: np.ndarray) -> np.ndarray:
    if len(samples) < self.frame_length:
        raise ValueError("too short")
    return Energies.extract(self, samples)


def _fails_on_silence(self: Energies, samples: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return Energies.extract(self, samples) + np.log(np.abs(samples).max(initial=0) > 0, dtype=np.float32)


def _in_place(samples: np.ndarray) -> np.ndarray:
    samples *= 2
    return samples


_memory: dict[int, np.ndarray] = {}


def _reused(frames: np.ndarray) -> np.ndarray:
    out = _memory.setdefault(len(frames), frames)
    out[:] = frames
    return out


def _odd_seams(frames: np.ndarray) -> np.ndarray:
    """Right for a few hundred frames, wrong at the end of a long stretch."""
    frames[4000:] += 1
    return frames


#: What is wrong with a class, by what the suite says of it.
BROKEN: dict[str, dict[str, Any]] = {
    "version is None, not an integer of at least 1": {"version": None},
    "hop is 0": {"__annotations__": {"hop": int}, "hop": 0},
    "not plain JSON": {"describe": lambda self: {"window": np.ones(3)}},
    "not the same after writing and reading it as JSON": _says(band=(1, 2)),
    "not plain JSON.*": _says(top=float("inf")),
    "context is 2, not 3": {"describe": lambda self: self.model_dump(mode="json", exclude={"context"})},
    "its own description is refused": _says(dimension=2),
    "an unknown option is accepted": {"model_config": ConfigDict(extra="ignore", frozen=True)},
    "let pydantic check the options": {"__init__": _no_keywords},
    "float64, not float32": _gives(lambda frames: frames.astype(np.float64)),
    "gives a list": _gives(lambda frames: frames.tolist()),
    "frame t covers samples": _gives(samples=lambda samples: np.pad(samples, 10)),
    "give frames of shape": _gives(lambda frames: np.ascontiguousarray(frames.T)),
    "not finite on digital silence": {"extract": _fails_on_silence},
    "fails on 0 samples": {"extract": _fails_on_short},
    "read-only": _gives(samples=_in_place),
    "other bytes the second time": _gives(
        samples=lambda some: some + np.random.default_rng().normal(0, 1e-3, len(some))
    ),
    "the same memory": _gives(_reused),
    "depends on more than the 3 frames": _gives(lambda frames: frames - frames.mean(axis=0) if len(frames) else frames),
    "depends on more than the 3 frames.*": {"extract": lambda self, samples: Energies(context=4).extract(samples)},
    "are not those of the whole": _gives(_odd_seams),
    "the name is taken: Mfcc": {"name": "mfcc", "describe": lambda self: {"sample_rate": self.sample_rate}},
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_broken_ones_are_caught(complaint: str) -> None:
    extractor = type("Broken", (Energies,), BROKEN[complaint])(context=3)
    with pytest.raises(AssertionError, match=complaint) as caught:
        check_extractor(extractor)
    assert str(caught.value).startswith(f"extractor '{extractor.name}': ")


def test_what_is_no_extractor_at_all() -> None:
    with pytest.raises(AssertionError, match="it has no attribute name"):
        check_extractor(object())  # type: ignore[arg-type]
