"""Names that follow from content: the same everywhere and for ever, so the expected values are written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.fingerprint import fingerprint, stable_hash

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
