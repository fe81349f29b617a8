"""Term discovery: the numbers of two programs, and of the formulas, for synthetic and real classes."""

from pathlib import Path

import pytest

from tests.support.golden import run_case, zerospeech
from tests.support.golden.runner import Found

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"
CASES = sorted(case for folder in ("zerospeech", "public/zerospeech") for case in (GOLDEN / folder).glob("*/"))


@pytest.mark.skipif(not CASES, reason="the cases are not beside the checkout")
@pytest.mark.parametrize(
    "folder",
    [pytest.param(one, marks=pytest.mark.slow) if one.name == "m02_mandarin" else one for one in CASES],
    ids=lambda folder: folder.name,
)
def test_case(folder: Path) -> None:
    case = run_case(Found(folder, zerospeech))
    assert case.differences == []
    assert case.compared > 280
