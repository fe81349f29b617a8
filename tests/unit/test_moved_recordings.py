"""Recordings that were moved are found whichever of them are there."""

from pathlib import Path

import pyarrow as pa
import pytest

from swsdist.io.filesystem import Folder
from swsdist.store.manifest import relocated_paths


@pytest.mark.parametrize("name", ["1", "2", "3"])
def test_any_recording_that_is_there_shows_where_all_are(tmp_path: Path, name: str) -> None:
    paths = pa.chunked_array([[f"/gone/old/{each}.wav" for each in "123"]])
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / f"{name}.wav").touch()
    now = relocated_paths(Folder(str(tmp_path / "store")), "../new", paths, paths)
    assert now.to_pylist() == [f"{tmp_path}/new/{each}.wav" for each in "123"]
