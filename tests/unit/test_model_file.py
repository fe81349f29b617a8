"""Model files: read without pickle, named by what they hold."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Model, load_model
from swsdist.io.filesystem import Folder
from tests.support.coded import raises


def model(**changed: object) -> Model:
    values = {"name": "codebook", "version": 1, "settings": {"k": 4}, "arrays": {"means": np.arange(6.0).reshape(2, 3)}}
    return Model(**{**values, **changed})  # type: ignore[arg-type]


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    model(arrays={"b": np.array([True]), "a": np.arange(3, dtype=">i4")}).save(folder, "models/m.npz")
    found = load_model(folder, "models/m.npz")
    assert (found.name, found.version, found.settings) == ("codebook", 1, {"k": 4})
    assert found.arrays["a"].tolist() == [0, 1, 2]
    assert found.arrays["a"].dtype == np.dtype("<i4")
    first = (tmp_path / "models/m.npz").read_bytes()
    found.save(folder, "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == first
    assert load_model(folder, "again.npz", found.fingerprint).fingerprint == found.fingerprint


def test_the_fingerprint_is_of_all_it_holds() -> None:
    others = [
        model(),
        model(name="x"),
        model(version=2),
        model(settings={"k": 5}),
        model(arrays={"means": np.arange(6.0).reshape(3, 2)}),
        model(arrays={"means": np.arange(6).reshape(2, 3)}),
        model(arrays={"means": np.arange(6.0).reshape(2, 3) + 1e-12}),
        model(arrays={"other": np.arange(6.0).reshape(2, 3)}),
    ]
    assert len({each.fingerprint for each in others}) == len(others)
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert model(arrays={"means": turned}).fingerprint == model().fingerprint


def test_damaged_files_and_what_would_be_unpickled(tmp_path: Path) -> None:
    folder, out = Folder(str(tmp_path)), io.BytesIO()
    np.savez(out, settings=np.frombuffer(b"{}", np.uint8), evil=np.array([{}], dtype=object))
    for data in (b"", b"PK\x03\x04 cut off", b"nonsense", out.getvalue()):
        (tmp_path / "m.npz").write_bytes(data)
        with raises(codes.NOT_A_MODEL):
            load_model(folder, "m.npz")
    with raises(codes.MISSING_MODEL):
        load_model(folder, "no.npz")
    model().save(folder, "m.npz")
    with raises(families.CHANGED_INPUT):
        load_model(folder, "m.npz", "0" * 32)
    with pytest.raises(ValueError, match="use numbers or booleans"):
        model(arrays={"x": np.array(["text"])})
