"""Term discovery: the numbers of two programs, and of the formulas, for synthetic and real classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import run_case, zerospeech
from tests.support.golden.runner import Found

CASES = Path(__file__).resolve().parents[3] / "shared" / "golden" / "zerospeech"


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside the checkout")
@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*/")) if CASES.is_dir() else [])
def test_case(name: str) -> None:
    case = run_case(Found(CASES / name, zerospeech))
    assert case.differences == []
    assert case.compared > 500
