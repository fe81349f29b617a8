"""Clips: the right place, with context, as a file and as a data URI."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile

from swsdist.audio.reader import PAGE_RATE, data_uri, read_clip, write_clip
from swsdist.core.codes import audio as codes
from tests.support.coded import raises


@pytest.fixture
def recording(tmp_path) -> str:
    t = np.arange(3 * 44100) / 44100
    samples = np.stack([np.zeros_like(t), 0.5 * np.sin(2 * np.pi * (300 + 100 * t) * t)], axis=1)
    soundfile.write(str(tmp_path / "a.wav"), samples, 44100, subtype="PCM_16")
    return str(tmp_path / "a.wav")


def test_written_clip(recording, tmp_path):
    whole, _ = soundfile.read(recording, dtype="int16")
    for start, end, pad, first, last in ((1.0, 2.0, 0.2, 0.8, 2.2), (0.1, 2.9, 0.2, 0, 3), (1, 2, 0, 1, 2)):
        write_clip(recording, start, end, tmp_path / "clip.wav", pad=pad, channel=2)
        info = soundfile.info(str(tmp_path / "clip.wav"))
        assert (info.format, info.subtype, info.samplerate, info.channels) == ("WAV", "PCM_16", 44100, 1)
        clip, _ = soundfile.read(str(tmp_path / "clip.wav"), dtype="int16")
        assert np.array_equal(clip, whole[round(first * 44100) : round(last * 44100), 1])
    with raises(codes.PLACE_OUTSIDE):
        write_clip(recording, 2.0, 3.5, tmp_path / "clip.wav")


def test_data_uri(recording):
    uri = data_uri(read_clip(recording, 1.0, 2.0, channel=2, rate=PAGE_RATE))
    assert uri == data_uri(read_clip(recording, 1.0, 2.0, channel=2, rate=PAGE_RATE))
    kind, _, data = uri.partition(",")
    assert kind == "data:audio/mpeg;base64"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(data)))
    assert rate == 16000
    assert samples.shape == (round(1.4 * 16000),)
    t = 0.8 + np.arange(len(samples)) / 16000
    assert np.corrcoef(samples, np.sin(2 * np.pi * (300 + 100 * t) * t))[0, 1] > 0.95
    assert len(uri) < 12000
