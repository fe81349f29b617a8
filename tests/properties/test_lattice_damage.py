"""A damaged file of lattices gives lattices, broken ones and errors with codes; never a traceback, and never a silence."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.errors import DataError, SwsdistError
from swsdist.lattices.formats import confusion, htk, kaldi
from swsdist.lattices.lattice import Broken, Lattices, Origin
from swsdist.lattices.packed import connect, forward_backward
from tests.support import lattices as samples
from tests.support.lattices import COMPACT_STATES, CONFUSION_TIMES, compact_fst

BINARY = b"u1 " + compact_fst(COMPACT_STATES) + b"u2 " + compact_fst(COMPACT_STATES, double=True)
TEXT = f"u1 \n{samples.COMPACT_TEXT}\nu2 \n0 1 7 3 1,2\n1 2 7 0\n2 3,4\n\n".encode()

FORMATS: dict[str, tuple[Callable[[Origin], Lattices], bytes]] = {
    "binary": (kaldi.read, BINARY),
    "text": (kaldi.read, TEXT),
    "packed": (kaldi.read, gzip.compress(BINARY, mtime=0)),
    "htk": (htk.read, samples.HTK_TEXT.encode()),
    "pocketsphinx": (htk.read_pocketsphinx, samples.SPHINX_TEXT.encode()),
    "pocketsphinx slf": (htk.read_pocketsphinx, samples.SPHINX_SLF.encode()),
    "confusion": (confusion.read, samples.CONFUSION_TEXT.encode()),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage")
    (path / "file.times").write_text(CONFUSION_TIMES)
    return path


def tried(folder: Path, read: Callable[[Origin], Lattices], content: bytes) -> list[bool]:
    """Whether each lattice of a content is read."""
    (folder / "file.x").write_bytes(content)
    result = []
    for lattice in read(Origin(str(folder / "file.x"))):
        result.append(not isinstance(lattice, Broken))
        if isinstance(lattice, Broken):
            assert isinstance(lattice.error, SwsdistError)
            assert lattice.error.code
            assert lattice.error.where
            continue
        try:
            sums = forward_backward(lattice, 0.1)
            states = connect(lattice).states
        except DataError as error:
            assert error.code == "damaged-lattice"  # noqa: PT017
            continue
        assert states <= lattice.states
        assert not np.isnan(sums.total)
        for values in (sums.arcs, sums.finals, sums.pushed):
            assert ((values >= 0) & (values <= 1)).all()
    return result


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_a_flipped_byte(name: str, folder: Path, data: st.DataObject) -> None:
    read, content = FORMATS[name]
    place = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[place] = data.draw(st.integers(0, 255))
    assert tried(folder, read, bytes(damaged))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_off(name: str, folder: Path) -> None:
    read, content = FORMATS[name]
    complete = tried(folder, read, content)
    assert all(complete)
    for place in range(1, len(content)):
        result = tried(folder, read, content[:place])
        if all(result) and len(result) == len(complete):
            # Lines have no end of their own but the line's: of the last, fields may lack.
            assert name not in ("binary", "text", "packed")
            assert b"\n" not in content[place:-1].strip()


@given(content=st.binary(max_size=200) | st.text(alphabet="u1 \n0.,_[];=IJSENL#\t-", max_size=120).map(str.encode))
def test_any_bytes(folder: Path, content: bytes) -> None:
    for read in (kaldi.read, htk.read, htk.read_pocketsphinx, confusion.read):
        assert len(tried(folder, read, content)) <= len(content) + 2
