"""The same bytes from any kernel of OpenBLAS, from code made for other CPUs, and from all who multiply."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from swsdist.kernels.gelu import gelu
from tests.support.processors import runnable

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

X86 = platform.machine() in ("x86_64", "AMD64")


def searched(backend: str, **variables: str) -> tuple[str, list[str]]:
    """Digest of what was found, and OpenBLAS's kernels that were used."""
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, backend], env=os.environ | variables, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    digest, *kernels = done.stdout.split()
    return digest, kernels


@pytest.fixture(scope="module")
def ours() -> str:
    return searched("int16")[0]


@pytest.mark.compile
@pytest.mark.skipif(not X86, reason="the names are those of x86 processors")
def test_any_kernel_of_openblas(ours: str) -> None:
    used = set()
    for core in runnable(["Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX"]):
        digest, kernels = searched("blas", OPENBLAS_CORETYPE=core)
        assert digest == ours, kernels
        used |= set(kernels)
    assert len(used) >= 3  # OpenBLAS takes another kernel without a word where the processor lacks one


@pytest.mark.compile
@pytest.mark.skipif(not X86, reason="the names are those of x86 processors")
@pytest.mark.parametrize("processor", ["x86-64", "haswell", "skylake-avx512"])
def test_code_for_other_processors(processor: str, ours: str) -> None:
    assert searched("int16", NUMBA_CPU_NAME=processor)[0] == ours


@pytest.mark.compile
@pytest.mark.skipif(not X86, reason="the names are those of x86 processors")
def test_mfcc_by_code_for_other_processors() -> None:
    digests = set()
    for variables in ({}, {"NUMBA_CPU_NAME": "x86-64", "OPENBLAS_CORETYPE": "Prescott"}, {"NUMBA_CPU_NAME": "haswell"}):
        done = subprocess.run(
            [sys.executable, "-c", MFCC], env=os.environ | variables, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("count", [0, 1, 16, 37])
def test_gelu_is_that_of_scipy(count: int) -> None:
    from scipy.special import erf

    values = np.linspace(-9, 9, count).astype(np.float32)
    wide, found = values.astype(np.float64), values.copy()
    gelu(found)
    assert found == pytest.approx(wide / 2 * (1 + erf(wide / 2**0.5)), rel=1e-6, abs=2e-6)
