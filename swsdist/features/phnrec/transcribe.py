"""Recordings to strings of phones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from swsdist.audio.reader import read_blocks
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create
from swsdist.features.interface import Extractor, frame_shift
from swsdist.features.phnrec.decoder import decode
from swsdist.features.phnrec.weights import read_recogniser


class SpokenPhone(NamedTuple):
    """A phone of a recording.

    Attributes:
        start, end: s.
        phone: its name.
        score: natural logarithm, the higher the likelier.
    """

    start: float
    end: float
    phone: str
    score: float


class Transcriber(NamedTuple):
    """What decodes recordings.

    Attributes:
        extractor: of the posteriors of states.
        phones: names, in the order of the states.
        penalty: natural logarithm that the recogniser adds for each phone.
    """

    extractor: Extractor
    phones: tuple[str, ...]
    penalty: float


def transcriber(weights: str) -> Transcriber:
    """With the recogniser in a folder.

    Raises:
        ConfigError: it is not the folder of one.
    """
    recogniser = read_recogniser(weights)
    extractor = create("phnrec", {"weights": weights, "units": "states", "non_speech": "keep"}, where="weights")
    assert isinstance(extractor, Extractor)  # of audio
    return Transcriber(extractor, recogniser.phones, recogniser.penalty)


def transcribe(
    path: str,
    by: Transcriber,
    *,
    channel: int = 1,
    penalty: float | None = None,
    storage: Mapping[str, object] | None = None,
) -> list[SpokenPhone]:
    """The likeliest string of phones of a channel of a recording of any length.

    Args:
        path: local, or `s3://`.
        by: `transcriber(folder)`.
        channel: from 1.
        penalty: natural logarithm that is added for each phone; by default the recogniser's own. The lower, the fewer phones.
        storage: options for s3fs.

    Raises:
        AudioError: the recording cannot be used.
    """
    extractor = by.extractor
    audio = read_blocks(path, channel=channel, rate=extractor.sample_rate, storage=storage)
    labels = decode(in_blocks(extractor, audio), by.phones, by.penalty if penalty is None else penalty)
    shift = frame_shift(extractor)
    return [SpokenPhone(label.first * shift, label.stop * shift, label.phone, label.score) for label in labels]
