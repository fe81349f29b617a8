"""Errors, names that follow from content, seconds and frames."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core import errors
from swsdist.core.fingerprint import fingerprint, stable_hash
from swsdist.core.numbers import frames_to_seconds, seconds_to_frame

#: By their exit code.
CODES = {
    2: (errors.UserError, errors.ConfigError, errors.LockedError, errors.StorageError, errors.TransientError),
    3: (
        *(errors.DataError, errors.UnusableError, errors.TermError, errors.AudioError, errors.ForeignError),
        *(errors.CutOffError, errors.FramesError, errors.TableError, errors.StoreError, errors.DamagedTransferError),
    ),
    4: (errors.OddError, errors.IncompleteError),
    5: (errors.ImplausibleError,),
    143: (errors.CancelledError,),
}


KINDS = {kind: code for code, kinds in CODES.items() for kind in kinds}


def test_every_error_is_here_with_its_exit_code() -> None:
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    known = {kind for kind in below(errors.SwsdistError) if kind.__module__ == "swsdist.core.errors"}
    assert known == {*KINDS, errors.SwsdistError}
    for kind, code in KINDS.items():
        error = kind("it is broken", where="a.csv:3", remedy="mend it", code="broken", values={"line": 3})
        assert error.exit_code == code
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), back.code, back.values) == (kind, str(error), "broken", {"line": 3})
        assert (back.message, back.where, back.remedy) == ("it is broken", "a.csv:3", "mend it")
    assert str(error) == "a.csv:3: it is broken [broken]\n  remedy: mend it"
    assert str(errors.UserError("no")) == "no"  # what is not known is not said
    assert errors.AudioError("no").reason == "unreadable"
    assert pickle.loads(pickle.dumps(errors.AudioError("no", code="truncated"))).reason == "truncated"


NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_known_values() -> None:
    assert fingerprint() == "4f53cda18c2baa0c0354bb5f9a3ecbe5"
    assert fingerprint("index", 1, {"a": [1, 2.5, None, True], "ɔ": "x"}) == "81568150e7e8958989912614d5c45ca1"
    assert fingerprint("a", {"c": 2, "b": 1}) == fingerprint("a", {"b": 1, "c": 2})
    assert (stable_hash("q001"), stable_hash("")) == (15385194650432979138, 16476032584258269876)
    for value in (float("nan"), float("inf"), {1, 2}, b"bytes", object()):
        with pytest.raises((ValueError, TypeError)):
            fingerprint(value)


@given(first=JSON, second=JSON)
def test_equal_only_if_equal(first, second) -> None:
    # As JSON: 1, 1.0 and True are equal in Python and are not here.
    assert (fingerprint(first) == fingerprint(second)) == (repr(_sorted(first)) == repr(_sorted(second)))
    assert fingerprint(first, second) != fingerprint([first, second])


def _sorted(value):
    if isinstance(value, dict):
        return sorted((key, _sorted(inner)) for key, inner in value.items()), "mapping"
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


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
