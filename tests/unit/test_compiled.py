"""Compiled code is kept on disk: met again by the next process, wherever it can be written, whoever else starts."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

#: A search whose result is printed, with how many of its functions had to be compiled.
SEARCH = """
import numpy as np
from swsdist.kernels import compiled, products
from swsdist.kernels.distances.interface import create
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.dtw.search import search
from swsdist.methods.query.example import Example
distance = create("cosine", 2)
rng = np.random.default_rng(0)
frames = [
    distance.prepare(rng.normal(size=(n, 2)).astype("f4"), np.zeros(2), np.ones(2), "query").frames for n in (5, 60)
]
settings = Settings(distance, 2, 16, 99)
found = search([Example("q", 1, frames[0])], [(0, [frames[1]])], np.ones(1, np.int64), settings)
fill = products.fill(distance.streams[0].from_dot, "int16")
print(found.end_frame.tolist(), found.cost.tolist(), sum(fill.stats.cache_misses.values()), compiled.folder())
"""


def start(tmp_path: Path, **variables: str) -> subprocess.Popen[str]:
    env = {key: value for key, value in os.environ.items() if key not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    env |= {"TMPDIR": str(tmp_path)} | variables
    return subprocess.Popen(
        [sys.executable, "-c", SEARCH], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, int, Path]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    *result, misses, folder = out.split()
    return " ".join(result), int(misses), Path(folder)


@pytest.mark.compile
def test_the_next_process_compiles_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = ended(start(tmp_path, XDG_CACHE_HOME=str(cache)))
    again = ended(start(tmp_path, XDG_CACHE_HOME=str(cache)))
    assert (first[1], again[1]) == (1, 0)
    assert first[0] == again[0]
    assert first[2] == again[2]
    assert first[2].parent == cache / "swsdist"
    kept = sorted(path.name for path in first[2].rglob("*.nbi"))
    assert any("scan" in name for name in kept)
    assert any("from_int16" in name for name in kept)


@pytest.mark.compile
def test_a_home_that_cannot_be_written_and_many_at_once(tmp_path: Path) -> None:
    """Two processes begin with an empty cache, in the folder for temporary files since a file is in the home's place."""
    taken = tmp_path / "taken"
    taken.write_text("a file")
    results = [ended(one) for one in [start(tmp_path, XDG_CACHE_HOME=str(taken)) for _ in range(2)]]
    assert len({result[0] for result in results}) == 1
    assert {result[2].parent for result in results} == {tmp_path}
    assert ended(start(tmp_path, XDG_CACHE_HOME=str(taken)))[1] == 0


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """The folder that a process takes which starts with such variables."""
    import tempfile

    import numba

    from swsdist.kernels import compiled

    def choose(**variables: str) -> Path:
        monkeypatch.setattr(tempfile, "tempdir", variables.get("TMPDIR", str(tmp_path)))
        monkeypatch.setattr(numba.config, "CACHE_DIR", variables.get("NUMBA_CACHE_DIR", ""))
        monkeypatch.setenv("XDG_CACHE_HOME", variables.get("XDG_CACHE_HOME", "/proc"))  # nobody can write there
        return compiled.folder.__wrapped__()

    return choose


@pytest.mark.parametrize("odd", ["writable by all", "open to others", "a link"])
@pytest.mark.parametrize("where", ["TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_only_a_folder_of_ours_is_taken(tmp_path: Path, chosen: Callable[..., Path], where: str, odd: str) -> None:
    """Who makes it first would choose the code that is run."""
    temporary, cache = tmp_path / "temporary", tmp_path / "cache"
    temporary.mkdir()
    cache.mkdir()
    variables = {"TMPDIR": str(temporary)} | ({} if where == "TMPDIR" else {where: str(cache)})
    own = chosen(**variables)
    assert own.is_relative_to(temporary if where == "TMPDIR" else cache)
    assert chosen(**variables) == own
    if odd == "a link":
        own.rename(tmp_path / "elsewhere")
        own.symlink_to(tmp_path / "elsewhere")
    else:
        own.chmod(0o777 if odd == "writable by all" else 0o750)
    other = chosen(**variables)
    assert (other != own, other.parent) == (True, temporary)
    assert other.stat().st_mode & 0o777 == 0o700


def test_a_folder_in_one_where_all_may_rename_is_not_taken(tmp_path: Path, chosen: Callable[..., Path]) -> None:
    """It could be replaced between the look at it and its use; not where only owners may rename, as in /tmp."""
    (tmp_path / "temporary").mkdir()
    for cache, mode, taken in (("all", 0o777, "temporary"), ("sticky", 0o1777, "sticky")):
        (tmp_path / cache).mkdir()
        (tmp_path / cache).chmod(mode)
        folder = chosen(NUMBA_CACHE_DIR=str(tmp_path / cache), TMPDIR=str(tmp_path / "temporary"))
        assert folder.is_relative_to(tmp_path / taken)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's folder")
def test_a_folder_of_another_user_is_not_taken(tmp_path: Path, chosen: Callable[..., Path]) -> None:
    own = chosen(XDG_CACHE_HOME=str(tmp_path))
    os.chown(own, 12345, 12345)
    assert chosen(XDG_CACHE_HOME=str(tmp_path)) != own


def test_what_a_function_encloses_and_code_of_another_packages_map_is_in_its_name(tmp_path: Path) -> None:
    from swsdist.kernels import products
    from swsdist.kernels.distances.interface import create
    from swsdist.registry.registries import DISTANCES

    maps = {create(name, 3).streams[0].from_dot for name in DISTANCES}
    fills = [products.fill(from_dot, source) for from_dot in maps for source in ("int16", "float32")]
    assert len({fill.py_func.__qualname__ for fill in fills}) == len(fills) == 2 * len(maps)
    from swsdist.kernels.compiled import _enclosed

    def enclosing(text: str) -> str:
        (tmp_path / "theirs.py").write_text(text)
        space: dict[str, object] = {"__name__": "theirs"}
        exec(compile(text, tmp_path / "theirs.py", "exec"), space)
        from_dot = space["from_dot"]
        return _enclosed(lambda: from_dot)

    assert enclosing("def from_dot(dot): return dot") != enclosing("def from_dot(dot): return dot + 1")


def test_one_is_told_once_of_compiling_and_of_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from swsdist.kernels import compiled

    monkeypatch.setattr(compiled, "_PATIENCE", 0.01)
    monkeypatch.setattr(compiled, "_LOOK", 0.001)
    for is_compiled in (True, False):
        monkeypatch.setattr(compiled, "_COMPILED", compiled.threading.Event())
        told: list[str] = []
        with compiled.announcing(told.append):
            if is_compiled:
                compiled._COMPILED.set()
            time.sleep(0.1)
        assert len(told) == is_compiled


#: A function of librosa that numba keeps in two files, a `guvectorize`.
LIBROSA = """
import numpy as np
from swsdist.features.librosa import library
print(library().util.localmax(np.float32([0, 1, 0])))
"""


@pytest.mark.compile
def test_processes_that_start_together_load_whole_functions_of_librosa(tmp_path: Path) -> None:
    """Without a lock, some crash, and so does each that comes later."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for count in (4, 1):
        together = [
            subprocess.Popen([sys.executable, "-c", LIBROSA], env=env, text=True, stdout=subprocess.PIPE)
            for _ in range(count)
        ]
        assert {(one.communicate()[0], one.returncode) for one in together} == {("[False  True False]\n", 0)}
