"""The sound of a hit, or of a query, for the page: a player's data, and a waveform with the matched stretch marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from swsdist.audio.reader import PAGE_RATE, data_uri, read_clip
from swsdist.core.errors import AudioError
from swsdist.report.plots.waveform import waveform_svg

#: Context around a hit, s.
AROUND = 0.75
#: Longest sound on the page, s, without context.
LONGEST = 60.0
#: Sounds and bytes of sound that a browser opens with ease.
MOST_SOUNDS = 1000
MOST_BYTES = 40_000_000


@dataclass(frozen=True)
class Sound:
    """A clip.

    Attributes:
        uri: its data, MP3.
        svg: its waveform.
        seconds: its length.
        begin: where the matched stretch begins in it, s.
    """

    uri: str
    svg: str
    seconds: float
    begin: float


def sound_of(
    path: str,
    start: float | None,
    end: float | None,
    *,
    channel: int = 1,
    mark: tuple[float, float] | None = None,
    pad: float = AROUND,
    storage: Mapping[str, object] | None = None,
) -> Sound:
    """A place of a recording.

    Args:
        path: local or `s3://`.
        start, end: of the place, s; None: of the recording. At most `LONGEST`.
        channel: from 1.
        mark: the matched stretch, s in the recording; by default the place.
        pad: s around the place.
        storage: options for s3fs.

    Raises:
        AudioError: the recording or the place cannot be used.
    """
    first = start or 0.0
    if end is not None:
        end = min(end, first + LONGEST)
    clip = read_clip(path, start, end, pad=pad, channel=channel, rate=PAGE_RATE, storage=storage)
    clip = clip._replace(samples=clip.samples[: round((LONGEST + 2 * pad) * clip.rate)])
    seconds = len(clip.samples) / clip.rate
    marked = mark or (first, clip.begin + seconds if end is None else end)
    low, high = (min(max((at - clip.begin) / seconds, 0.0), 1.0) for at in marked)
    return Sound(data_uri(clip), waveform_svg(clip.samples, (low, high)), seconds, low * seconds)


class Sounds:
    """The sounds of a page.

    Args:
        storage: options for the file system of recordings.
        most: sounds, besides the limits `MOST_SOUNDS` and `MOST_BYTES`.

    Attributes:
        left_out: sounds beyond these.
    """

    def __init__(self, storage: Mapping[str, object] | None, most: int | None = None) -> None:
        self._storage = storage
        self._most = MOST_SOUNDS if most is None else min(most, MOST_SOUNDS)
        self._sounds = self._bytes = self.left_out = 0

    def of(
        self,
        path: str | None,
        start: float | None,
        end: float | None,
        *,
        channel: int,
        mark: tuple[float, float] | None = None,
        pad: float = AROUND,
    ) -> Sound | str:
        """A sound as of `sound_of`, or the reason for its absence."""
        if not path:
            return "no recording"
        if self._sounds >= self._most or self._bytes >= MOST_BYTES:
            self.left_out += 1
            return "left out"
        try:
            sound = sound_of(path, start, end, channel=channel, mark=mark, pad=pad, storage=self._storage)
        except AudioError as error:
            return error.message
        self._sounds += 1
        self._bytes += len(sound.uri) + len(sound.svg)
        return sound
