"""Seconds and frames."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.numbers import frames_to_seconds, seconds_to_frame

SHIFT = st.sampled_from([0.01, 0.005, 0.0125, 0.016, 0.02, 160 / 16000, 100 / 44100])


def test_frames_begin_at_decimals_and_contain_their_times() -> None:
    assert frames_to_seconds(30, 0.01) == 0.3  # the product alone is 0.30000000000000004
    assert isinstance(frames_to_seconds(3, 0.01), float)
    assert frames_to_seconds(np.array([0, 3, 30]), 0.1).tolist() == [0.0, 0.3, 3.0]
    assert frames_to_seconds(np.empty(0, np.int64), 0.01).tolist() == []
    seconds = (0.0, 0.009, 0.01, 0.29, 0.3, 0.2999995, 0.299998, 12.3)
    assert [seconds_to_frame(time, 0.01) for time in seconds] == [0, 0, 1, 29, 30, 30, 29, 1230]


@given(frame=st.integers(0, 10**7), shift=SHIFT)
def test_there_and_back(frame: int, shift: float) -> None:
    assert seconds_to_frame(frames_to_seconds(frame, shift), shift) == frame
