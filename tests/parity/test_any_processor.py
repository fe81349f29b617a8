"""The same bytes from any kernel of OpenBLAS, from code made for other CPUs, and from all who multiply."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys

import pytest

#: A search over all kinds of maps; prints a digest of what was found.
SEARCH = """
import hashlib, sys
import numpy as np
from swsdist.kernels.distances.registry import create
from swsdist.search.engine import Settings, search
from swsdist.search.example import Example
rng = np.random.default_rng(0)
digest = hashlib.sha256()
for name in ("cosine", "cosine-squared", "euclidean", "kl"):
    distance = create(name, 39)
    def prepared(frames, side):
        features = rng.dirichlet(np.ones(39), frames) if name == "kl" else rng.normal(size=(frames, 39))
        return distance.prepare(features.astype("f4"), np.zeros(39), np.ones(39), side).frames
    examples = [Example(f"q{n}", 1, prepared(n, "query")) for n in (1, 5, 31, 64, 300)]
    documents = [(k, [prepared(int(n), "document")]) for k, n in enumerate(rng.integers(1, 900, 37))]
    settings = Settings(distance, 10, 16, 400, product=sys.argv[1])
    found = search(examples, documents, np.full(37, 3), settings)
    assert len(found.cost) > 300
    for column in found[:5]:
        digest.update(column.tobytes())
print(digest.hexdigest())
"""

X86 = platform.machine() in ("x86_64", "AMD64")


def digest(product: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, product], env=os.environ | variables, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def ours() -> str:
    return digest("int16")


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="the names are those of x86 processors")
@pytest.mark.parametrize("core", ["Prescott", "Haswell", "Zen", "SkylakeX"])
def test_any_kernel_of_openblas(core: str, ours: str) -> None:
    assert digest("numpy", OPENBLAS_CORETYPE=core) == ours


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="the names are those of x86 processors")
@pytest.mark.parametrize("processor", ["x86-64", "haswell", "skylake-avx512"])
def test_code_for_other_processors(processor: str, ours: str) -> None:
    assert digest("int16", NUMBA_CPU_NAME=processor) == ours


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_torch(ours: str) -> None:
    assert digest("torch") == ours
