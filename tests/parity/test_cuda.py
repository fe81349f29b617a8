"""The search on a GPU finds the bytes that the CPU finds: in numba's simulator, and on a GPU where there is one."""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import swsdist
from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.kernels.distances.interface import create
from swsdist.methods.dtw.backends.cuda import batches
from swsdist.methods.dtw.backends.interface import Piece
from swsdist.methods.dtw.search import pruned
from swsdist.methods.dtw.shard import engine_settings
from swsdist.testing.synthesis import make_corpus
from tests.support.coded import says
from tests.support.gpu import CASES
from tests.support.processors import printed, python

#: The simulator is chosen when numba is imported, so it has a process of its own.
SIMULATED = {"NUMBA_ENABLE_CUDASIM": "1"}

needs_numba_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="the extra gpu is not installed"
)


def gpu_here() -> bool:
    return python("-c", "from numba import cuda; assert cuda.is_available()").returncode == 0


@pytest.fixture(scope="module", params=["simulator", "GPU"])
def machine(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "GPU":
        if not gpu_here():
            pytest.skip("no GPU here")
        return {}
    return SIMULATED


#: In the simulator each distance is compiled anew for some seconds; those of configs/systems stay, and three in streams.
SIMULATED_CASES = [name for name in CASES if not name.startswith("distance")]


@pytest.mark.compile
@needs_numba_cuda
def test_the_bytes_of_the_cpu(machine: dict[str, str]) -> None:
    """One case a feature of the kernel; all distances, too, on a GPU, and in the nightly tests."""
    every = machine is not SIMULATED or os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
    names = list(CASES) if every else SIMULATED_CASES
    said = printed("-m", "swsdist.testing.gpu", *names, **machine)
    assert [line.split(": the same ")[0] for line in said.splitlines()] == names


RUN = """
import json, sys, swsdist
swsdist.run(sys.argv[1], sets=[f"run={sys.argv[2]}", f"search.backend={sys.argv[3]}"])
print(json.dumps(swsdist.digest(sys.argv[2])))
"""


@pytest.mark.compile
@needs_numba_cuda
def test_the_digests_of_a_run(machine: dict[str, str], tmp_path: Path) -> None:
    make_corpus(tmp_path / "corpus", documents=4, queries=3, voices=2)
    config = tmp_path / "config.yaml"
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    corpus = {name: str(tmp_path / "corpus" / f"{table}.csv") for name, table in tables.items()}
    config.write_text(json.dumps({"run": "run", "corpus": corpus, "executor": {"kind": "serial"}}))
    here = swsdist.run(config, sets=[f"run={tmp_path / 'cpu'}", "search.backend=cpu"])
    said = printed("-c", RUN, str(config), str(tmp_path / "cuda"), "cuda", **machine)
    assert json.loads(said.splitlines()[-1]) == swsdist.digest(here.folder)


BENCHMARK = """
import numpy as np
from benchmarks import engine
engine._LENGTHS, engine._ROUNDS = (3, 5), 1
random = np.random.default_rng(0)
features = [random.normal(size=(frames, 39)).astype(np.float32) for frames in (40, 24)]
for dimension in engine._DIMENSIONS_ON_GPU:
    for row in engine._on_gpu(features, dimension):
        print(row.name, row.value > 0, row.goal)
print([(row.name, row.value) for row in engine._gpu(features)])
"""


@pytest.mark.compile
@needs_numba_cuda
def test_the_benchmark_has_a_row_for_each_dimension() -> None:
    """In the simulator, where its figures mean nothing: it is no GPU, and the benchmark says so."""
    *rows, without = printed("-c", BENCHMARK, **SIMULATED).splitlines()
    assert [row for row in rows if "against" in row] == [
        f"a GPU against one core, D={dimension} True >= 100" for dimension in (39, 467)
    ]
    assert [row.split(" True ")[0] for row in rows if "memory" in row] == [
        f"memory of the GPU in use, D={dimension}" for dimension in (39, 467)
    ]
    assert without.count("(no GPU here)', None)") == 2


@needs_numba_cuda
def test_no_gpu_is_told() -> None:
    code = "from swsdist.methods.dtw.backends.cuda import Cuda\nCuda(None)"
    done = python("-c", code, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert says(done.stderr, families.NO_GPU)


def test_the_config_reaches_the_engine() -> None:
    config = Search(backend="cuda", device_memory_gb=1.5)
    settings = engine_settings(config, create("cosine", 1), 0.01)
    assert (settings.backend, settings.device_memory) == ("cuda", 1_500_000_000)
    assert engine_settings(Search(), create("cosine", 1), 0.01).backend == "cpu"
    assert config.matters() == Search().matters()


@pytest.mark.compile
@needs_numba_cuda
def test_a_budget_that_is_too_small_is_an_error() -> None:
    code = """
import numpy as np
from swsdist.core.errors import UserError
from swsdist.kernels.distances.interface import create
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.dtw.search import search
from swsdist.methods.query.example import Example
frames = np.ones((50, 1), np.float32)
for memory in (1, 20_000, 2_000_000):
    settings = Settings(create("cosine", 1), 1, 16, 100, backend="cuda", device_memory=memory)
    try:
        search([Example("", 1, frames)], [(0, [frames])], np.ones(1, np.int64), settings)
        print("searched")
    except UserError as error:
        print(error.where, error.code)
"""
    refused = f"search.device_memory_gb {codes.GPU_MEMORY.name}"
    assert printed("-c", code, **SIMULATED).splitlines() == [refused, refused, "searched"]


@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=200),
    limit=st.integers(1, 200_000),
    columns=st.integers(1, 5),
)
def test_every_piece_is_in_one_lane(lengths: list[int], limit: int, columns: int) -> None:
    pieces = [Piece(k, 7 * k, k % n, n, np.full((n, columns), k, np.float32)) for k, n in enumerate(lengths)]
    most = np.arange(len(pieces))
    seen = []
    for batch in batches(pieces, columns, limit, most):
        frames = np.concatenate([piece.frames for piece in batch.pieces])
        assert batch.used == len(frames)
        heights = np.repeat(batch.warps[:, 1], 32)
        assert np.all(batch.lanes[:, 1] <= heights)
        cells = batch.warps[:, 1] * batch.warps[:, 3]
        assert batch.cells == cells.sum()
        assert np.array_equal(batch.warps[1:, 0], np.cumsum(cells[:-1]))
        held = (batch.lanes[:, 1] > 0).reshape(-1, 32)
        assert np.array_equal(held.sum(axis=1), batch.warps[:, 3])
        for lane, owner in zip(batch.lanes, batch.owner, strict=True):
            begins, length, first, stop, keep = lane.tolist()
            if length:
                k = int(owner[0])
                assert np.all(frames[begins : begins + length] == k)
                assert (length, first, stop, keep, owner[1]) == (lengths[k], k % lengths[k], lengths[k], k, 7 * k)
                seen.append(k)
        firsts = [batch.lanes[k : k + 32] for k in range(0, len(batch.lanes), 32)]
        assert batch.warps[:, 2].tolist() == [int(own[own[:, 1] > 0, 2].min()) for own in firsts]
    assert sorted(seen) == list(range(len(pieces)))


@given(
    found=st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 9)), st.integers(0, 3), max_size=60
    ),
    most=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    times=st.sampled_from([1, 1 << 36]),
)
def test_pruned_keeps_the_best(found: dict[tuple[int, int, int], int], most: list[int], times: int) -> None:
    rows = [(query * times, document, end * times, 1, cost) for (query, document, end), cost in found.items()]
    expected = []
    for query, document in sorted({row[:2] for row in rows}):
        own = [row for row in rows if row[:2] == (query, document)]
        expected += sorted(sorted(own, key=lambda row: (row[4], row[2]))[: most[document]])
    kept = pruned(np.array(rows, np.int64).reshape(-1, 5), np.array(most, np.int64))
    assert [tuple(row) for row in kept.tolist()] == expected
