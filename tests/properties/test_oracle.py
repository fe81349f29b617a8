"""What was fitted on all that is scored cannot be improved on: its ATWV is the MTWV, whatever the step and the trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds_of_corpora import KINDS, TRIALS, Made, run

from swsdist.core.codes import families
from swsdist.core.errors import DataError, UserError
from swsdist.registry.registries import CALIBRATION

#: Each step, behind what makes the scores that it takes; `fusion` joins systems, and has its own test.
STEPS = {
    name: [*{"any": [], "cost": [], "posterior": ["logistic"], "llr": ["llr"]}[CALIBRATION[name].takes], name]
    for name in CALIBRATION
    if "parts" not in CALIBRATION[name].columns
}


#: By kind of document; beside files, fewer trials. The first is quick.
CASES = [
    pytest.param(
        kind,
        *trials,
        id=f"{kind}-{'-'.join(trials)}",
        marks=[] if (kind, trials) == ("files", TRIALS[0]) else pytest.mark.slow,
    )
    for kind in KINDS
    for trials in TRIALS
    if kind == "files" or trials[0] != "kwseval"
]
THRESHOLDS = [(name, "fitted") for name in STEPS] + [(name, "own") for name in STEPS if CALIBRATION[name].own_threshold]


#: Codes of what a step refuses.
REFUSALS = "|".join(rf"\[{code.name}\]" for code in (families.UNSUPPORTED, families.UNSUPPORTED))


def refused(name: str, kind: str, trials: str) -> bool:
    """Whether a step says that it cannot do with such documents or trials, rather than doing something else."""
    return name in ("kst", "sto", "llr") and (trials == "segment" or (trials == "document" and kind == "places"))


@pytest.mark.parametrize(("kind", "protocol", "trials"), CASES)
@pytest.mark.parametrize(("name", "threshold"), THRESHOLDS)
def test_atwv_is_mtwv(
    corpora: dict[str, tuple[Made, Path]], name: str, kind: str, protocol: str, trials: str, threshold: str
) -> None:
    """Where the threshold is fitted; a step's own can be no better."""
    made, folder = corpora[kind]
    calibrate: dict[str, Any] = {"steps": STEPS[name], "fit": "oracle", "threshold": threshold}
    if name == "llr":
        calibrate["options"] = {"llr": {"covariates": ["best", "gap", "duration"]}}
    if refused(name, kind, trials):
        with pytest.raises((UserError, DataError), match=REFUSALS):
            run(made, folder, protocol, trials, "score", calibrate=calibrate)
        return
    found = run(made, folder, protocol, trials, "score", calibrate=calibrate).measures()
    if threshold == "fitted":
        assert found["atwv"] == found["mtwv"]
        assert found["mtwv"] > 0 or name == "zt-norm"
    else:
        assert found["atwv"] <= found["mtwv"]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "trials"), TRIALS)
def test_atwv_of_a_fusion_is_mtwv(
    corpora: dict[str, tuple[Made, Path]], tmp_path: Path, protocol: str, trials: str
) -> None:
    made, folder = corpora["files"]
    systems = []
    for name in ("cosine", "euclidean"):
        run(made, folder.parent / name, protocol, trials, "score", search={"distance": name})
        systems.append({"name": name, "run": str(folder.parent / name)})
    fused = {"chain": "fuse", "options": {"systems": systems}}
    calibrate = {"steps": ["fusion"], "fit": "oracle", "threshold": "fitted"}
    found = run(made, tmp_path / "fused", protocol, trials, "score", calibrate=calibrate, **fused).measures()
    assert found["atwv"] == found["mtwv"] > 0
