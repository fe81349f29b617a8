"""Which extractors there are, what identifies them, and frames kept for further tracks and models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.audio.formats import ffmpeg
from swsdist.audio.reader import read_blocks
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import fingerprint
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.extractors import create, identity
from swsdist.features.interface import frame_count, frame_shift
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.store import writing
from swsdist.store import writing as kept_frames
from swsdist.store.writing import KeptFrames, ReadResult, WithResult, read_recording, read_with_speech
from tests.support.coded import raises


def test_extractors_have_names_frames_and_an_identity() -> None:
    assert create("mfcc", {"n_mfcc": 20}) == Mfcc(n_mfcc=20)
    with raises(families.UNKNOWN_NAME, where="features.name"):
        create("mfc", {})
    for options, where in (
        ({"n_mffc": 13}, ".n_mffc"),
        ({"n_mfcc": 0}, ".n_mfcc"),
        ({"window": "boxcar"}, ".window"),
        ({"win_length": 1024}, ""),
        ({"sample_rate": "fast"}, ".sample_rate"),
    ):
        with pytest.raises(ConfigError) as caught:
            create("mfcc", options)
        assert caught.value.where == f"features.options{where}"
    counts = {0: 0, 1: 0, 511: 0, 512: 1, 671: 1, 672: 2, 16000: 97}
    assert {samples: frame_count(Mfcc(), samples) for samples in counts} == counts
    assert (frame_shift(Mfcc()), frame_shift(Mfcc(sample_rate=8000))) == (0.01, 0.02)
    found = identity(Mfcc())
    assert (found["name"], found["version"], found["block_frames"]) == ("mfcc", Mfcc.version, BLOCK_FRAMES)
    assert set(found["options"]) == set(Mfcc.model_fields) - {"model"}
    assert len({fingerprint(identity(Mfcc(**options))) for options in ({}, {"n_mfcc": 12}, {"fmin": 1.0})}) == 3
    assert fingerprint(identity(Mfcc())) == fingerprint(identity(Mfcc(n_mfcc=13)))


PLAIN: Any = create("mfcc", {})
SPLICED: Any = create("mfcc", {}, transforms=[("splice", {"frames": 1})])
OTHER: Any = create("mfcc", {"deltas": 0})


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """A recording of more than one block."""
    samples = np.random.default_rng(0).normal(0, 0.1, 16000 * 42)
    soundfile.write(tmp_path / "a.wav", samples, 16000)
    return {"path": str(tmp_path / "a.wav"), "identity": "1:1", "channel": 1, "speaker": None}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the recordings that were decoded."""
    paths: list[str] = []
    inner = read_blocks

    def read(path: str, **options: Any) -> Any:
        paths.append(path)
        return inner(path, **options)

    monkeypatch.setattr(writing, "read_blocks", read)
    return paths


def taken(reading: Any, document: dict[str, Any], extractor: Any) -> tuple[list[bytes], ReadResult]:
    read = WithResult[ReadResult](reading(document, extractor, Folder(".")))
    return [block.tobytes() for block in read], read.result


def through(
    kept: KeptFrames, document: dict[str, Any], extractor: Any, *, listen: bool, keep: bool
) -> tuple[list[bytes], ReadResult]:
    return taken(kept.reading(extractor, listen=listen, keep=keep), document, extractor)


def test_tracks_of_one_extractor_have_the_same_bytes_from_one_decoding_as_far_as_there_is_room(
    document: dict[str, Any], decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptFrames()
    first, heard = through(kept, document, PLAIN, listen=True, keep=True)
    second, unheard = through(kept, document, SPLICED, listen=False, keep=False)
    assert len(decoded) == 1
    assert len(first) == len(second) == 2
    assert first == taken(read_with_speech, document, PLAIN)[0]
    assert (second, unheard) == taken(read_recording, document, SPLICED)
    assert heard.speech is not None
    assert unheard.speech is None
    decoded.clear()
    through(kept, document, PLAIN, listen=False, keep=False)
    assert len(decoded) == 1  # the last reading released them
    decoded.clear()
    kept = KeptFrames()
    frames = sum(map(len, through(kept, document, PLAIN, listen=False, keep=True)[0]))
    monkeypatch.setattr(kept_frames, "_MOST_BYTES", 2 * frames)
    for name in ("1", "2", "1:1", "2"):
        through(kept, {**document, "identity": name}, PLAIN, listen=False, keep=True)
    assert len(decoded) == 4  # the first was dropped for the third, and 2 was kept
    monkeypatch.setattr(kept_frames, "_MOST_BYTES", frames - 1)
    for _ in range(2):
        through(kept, {**document, "identity": "3"}, PLAIN, listen=False, keep=True)
    assert len(decoded) == 6  # it does not fit


@pytest.mark.parametrize("change", [{"identity": "1:2"}, {"speaker": "a"}, {"start": 0.0, "end": 1.0, "listed": ""}])
def test_frames_of_other_content_are_read(document: dict[str, Any], decoded: list[str], change: dict[str, Any]) -> None:
    kept, document = KeptFrames(), {**document, "doc_id": "a"}
    through(kept, document, PLAIN, listen=False, keep=True)
    through(kept, {**document, **change}, PLAIN, listen=False, keep=True)
    through(kept, document, OTHER, listen=False, keep=True)
    assert len(decoded) == 3
    through(kept, document, PLAIN, listen=True, keep=True)
    assert len(decoded) == 4  # what was read without marks has none
    through(kept, document, SPLICED, listen=False, keep=True)
    assert len(decoded) == 4


def test_what_ffmpeg_decodes_is_read_again(document: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    inner = read_blocks

    def read(path: str, **options: Any) -> Any:
        for versions in ffmpeg._recorders:
            versions.add("7.1")
        return inner(path, **options)

    monkeypatch.setattr(writing, "read_blocks", read)
    kept = KeptFrames()
    for _ in range(2):
        with ffmpeg.recorded_versions() as used:
            through(kept, document, PLAIN, listen=False, keep=True)
        assert used == {"7.1"}
        assert not ffmpeg._recorders
