"""Local copies of objects that are wanted on a disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.core.errors import ConfigError
from swsdist.features.fitting.files import identity_of, read_labels
from swsdist.features.fitting.interface import Model, read_model
from swsdist.io.filesystem import Folder, local_file


@pytest.fixture
def folder(s3: Any, tmp_path: Path) -> Folder:
    return Folder(f"s3://{s3.bucket}/{tmp_path.name}", s3.storage)


def test_a_copy_is_that_of_the_object(folder: Folder, tmp_path: Path) -> None:
    folder.write_bytes("x", b"one")
    copy = local_file(folder.path("x"))
    assert (copy.name, copy.read_bytes()) == ("x", b"one")
    assert local_file(folder.path("x")) == copy
    copy.write_bytes(b"spoilt")
    assert local_file(folder.path("x")).read_bytes() == b"one"
    folder.write_bytes("x", b"two")
    assert local_file(folder.path("x")).read_bytes() == b"two"
    with pytest.raises(FileNotFoundError):
        local_file(folder.path("y"))
    assert local_file(str(tmp_path)) == tmp_path


def test_labels_and_models(folder: Folder, tmp_path: Path) -> None:
    file = tmp_path / "phones.ctm"
    file.write_text("d1 1 0.00 0.10 a\nd1 1 0.10 0.10 b\n")
    folder.write_bytes("phones.ctm", file.read_bytes())
    there = folder.path("phones.ctm")
    assert identity_of(there) == identity_of(str(file))
    assert read_labels(there, "x").names == ("a", "b")
    with pytest.raises(ConfigError, match="labels cannot be read"):
        identity_of(folder.path("none.ctm"))
    model = Model("m", 1, {"a": np.arange(3.0)})
    model.save(folder, "m.npz")
    assert read_model(folder.path("m.npz"), "here", lambda one: one.fingerprint) == model.fingerprint
    with pytest.raises(ConfigError, match="the model file does not exist"):
        read_model(folder.path("none.npz"), "here", lambda one: one)
