"""The same bytes from any kernel of OpenBLAS, from code made for other CPUs, and from all who multiply."""

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.kernels.gelu import gelu
from swsdist.testing.synthesis import make_corpus
from tests.support.processors import printed, runnable

#: A search over all kinds of maps; prints a digest of what was found.
SEARCH = """
import hashlib, sys
import numpy as np
from swsdist.kernels.distances.interface import create
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.dtw.search import search
from swsdist.methods.query.example import Example
rng = np.random.default_rng(0)
digest = hashlib.sha256()
for name in ("cosine", "cosine-squared", "euclidean", "kl"):
    distance = create(name, 39)
    def prepared(frames, side):
        features = rng.dirichlet(np.ones(39), frames) if name == "kl" else rng.normal(size=(frames, 39))
        return distance.prepare(features.astype("f4"), np.zeros(39), np.ones(39), side).frames
    examples = [Example(f"q{n}", 1, prepared(n, "query")) for n in (1, 5, 31, 64, 300)]
    documents = [(k, [prepared(int(n), "document")]) for k, n in enumerate(rng.integers(1, 900, 37))]
    settings = Settings(distance, 10, 16, 400, backend=sys.argv[1])
    found = search(examples, documents, np.full(37, 3), settings)
    assert len(found.cost) > 300
    for column in found[:5]:
        digest.update(column.tobytes())
from threadpoolctl import threadpool_info
print(digest.hexdigest(), *{one["architecture"] for one in threadpool_info() if one["internal_api"] == "openblas"})
"""

#: MFCC of noise, silence and a tone; prints a digest.
MFCC = """
import hashlib
import numpy as np
from swsdist.features.mfcc import Mfcc
rng = np.random.default_rng(0)
sounds = [rng.normal(scale=0.1, size=90_000), np.zeros(9000), np.sin(0.1 * np.arange(9000))]
samples = np.concatenate(sounds).astype("f4")
digest = hashlib.sha256()
for options in {}, {"n_fft": 405, "win_length": 399, "window": "hamming"}:
    digest.update(Mfcc(**options).extract(samples).tobytes())
print(digest.hexdigest())
"""

needs_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the names are of x86 processors")


@pytest.fixture(scope="module")
def ours() -> str:
    return printed("-c", SEARCH, "int16").split()[0]


@pytest.mark.compile
@needs_x86
def test_any_kernel_of_openblas(ours: str) -> None:
    used = set()
    for core in runnable(["Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX"]):
        digest, *kernels = printed("-c", SEARCH, "blas", OPENBLAS_CORETYPE=core).split()
        assert digest == ours, kernels
        used |= set(kernels)
    assert len(used) >= 3  # OpenBLAS takes another kernel without a word where the processor lacks one


@pytest.mark.compile
@needs_x86
@pytest.mark.parametrize("processor", ["x86-64", "haswell", "skylake-avx512"])
def test_code_for_other_processors(processor: str, ours: str) -> None:
    assert printed("-c", SEARCH, "int16", NUMBA_CPU_NAME=processor).split()[0] == ours


@pytest.mark.compile
@needs_x86
def test_mfcc_by_code_for_other_processors() -> None:
    machines = {}, {"NUMBA_CPU_NAME": "x86-64", "OPENBLAS_CORETYPE": "Prescott"}, {"NUMBA_CPU_NAME": "haswell"}
    assert len({printed("-c", MFCC, **variables) for variables in machines}) == 1


def test_gelu_is_that_of_scipy() -> None:
    from scipy.special import erf

    for count in (0, 1, 16, 37):
        values = np.linspace(-9, 9, count).astype(np.float32)
        wide, found = values.astype(np.float64), values.copy()
        gelu(found)
        assert found == pytest.approx(wide / 2 * (1 + erf(wide / 2**0.5)), rel=1e-6, abs=2e-6)


# What is compiled is compiled in the warm-up: the first run on a machine has the costs of the second.
RUN = """
import sys, json
from numba.core import event
from swsdist.pipeline.execution import executor as worker

warming = []
whole = worker.Worker._warm_up

def warm_up(self, stage, task):
    warming.append(stage.name)
    whole(self, stage, task)
    warming.append("")

worker.Worker._warm_up = warm_up

class Listener(event.Listener):
    def on_start(self, event):
        pass

    def on_end(self, event):
        function = event.data["dispatcher"].py_func
        if warming and not warming[-1] and function.__module__.startswith("swsdist."):
            print("late:", function.__module__, function.__qualname__)

event.register("numba:compile", Listener())
import swsdist
swsdist.run(json.loads(sys.argv[1]))
"""

SEARCHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "coarse": {"first_pass": {"name": "coarse"}},
    "quantised": {"first_pass": {"name": "quantised"}},
    "windows": {"method": "windows"},
}


@pytest.mark.compile
@pytest.mark.parametrize("search", SEARCHES)
def test_nothing_is_compiled_in_a_task(tmp_path: Path, search: str) -> None:
    make_corpus(tmp_path / "corpus", documents=3, queries=2, voices=2)
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    config = {
        "run": str(tmp_path / "run"),
        "corpus": {name: str(tmp_path / "corpus" / f"{table}.csv") for name, table in tables.items()},
        "search": SEARCHES[search],
        "executor": {"kind": "serial"},
    }
    said = printed("-c", RUN, json.dumps(config), NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    assert [line for line in said.splitlines() if line.startswith("late:")] == []
    assert list((tmp_path / "kernels").rglob("*.nbc"))
