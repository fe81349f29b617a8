"""Checks of what a header states, whatever decodes the recording: impossible numbers, and an early end."""

from __future__ import annotations

from swsdist.audio.formats.views import PER_BYTE, Extent
from swsdist.core.codes import audio as codes
from swsdist.core.errors import CutOffError

#: Rates in Hz, and numbers of channels, that a recording can have.
RATES = (500, 768_000)
CHANNELS = 256


def check_extent(path: str, reach: Extent, unread: str = "") -> CutOffError | None:
    """The error if there are bytes that cannot be read, or the last frame is incomplete."""
    if unread or reach.rest or reach.foreign:
        more = f"{reach.rest} bytes more than its header counts"
        detail = unread or (more if reach.rest else "its end is numbered wrongly")
        return codes.UNREAD_REST(where=path, detail=detail, rest=reach.rest or "BYTES")
    if reach.torn is None:
        return None
    return codes.TRUNCATED(where=path, stated=f"{reach.torn[0]} bytes", actual=f"{reach.torn[1]} bytes")


def check_shape(path: str, rate: int, channels: int, frames: int = 0, size: int = 0) -> None:
    """Refuse a header with impossible numbers.

    Args:
        path: of the recording.
        rate: Hz.
        channels: number of channels.
        frames: samples a channel; 0: unknown.
        size: bytes of the file.

    Raises:
        AudioError: a number is impossible.
    """
    low, high = RATES
    if not low <= rate <= high:
        raise codes.IMPOSSIBLE_RATE(where=path, rate=rate, low=low, high=high)
    if not 1 <= channels <= CHANNELS:
        raise codes.IMPOSSIBLE_CHANNELS(where=path, channels=channels, highest=CHANNELS)
    if frames * channels > PER_BYTE * size:
        raise codes.IMPOSSIBLE_LENGTH(where=path, hours=frames / rate / 3600, size=size)
