"""Cross entropy by formula: `trials.csv` holds submitted scores, `params.json` the prior and the size of the whole set."""

import csv
import io
import math
from pathlib import Path

from swsdist.score.measures.cnxe import Trials, cnxe, cnxe_min, measure
from tests.support.golden.runner import Case, place, text, values

NAME = "cross entropy"


def handles(folder: Path) -> bool:
    """Do its parameters have the effective prior of trials?"""
    return place(folder, "params.json") is not None and "ptar" in values(folder, "params.json")


def run(folder: Path) -> Case:
    """Compare actual and least values, where the least is reached, and what is taken on the way."""
    case = Case.of(folder)
    params, expected = values(folder, "params.json"), values(folder, "expected.json")
    rows = list(csv.DictReader(io.StringIO(text(folder, "trials.csv"))))
    scores = {flag: [float(row["llr"]) for row in rows if row["is_target"] == flag] for flag in ("1", "0")}
    trials = Trials.of(scores["1"], scores["0"], n_true=params["n_true"], n_false=params["n_false"])
    case.equal("trials read", len(scores["1"]) + len(scores["0"]), len(rows))
    if "n_trials" in params:
        whole = params["n_queries"] * params["trials_per_second"] * params["audio_seconds"]
        case.equal("n_trials", (whole, trials.n_true + trials.n_false), (params["n_trials"],) * 2)

    ours = measure(trials, params["ptar"])
    case.equal("llr_min", ours.smallest, expected["llr_min"])
    case.close("prior_entropy_bits", ours.entropy_bits, expected["prior_entropy_bits"], 1e-9)
    case.close("cxe_bits", ours.cxe_bits, expected["cxe_bits"], 1e-9)
    case.close("cnxe", ours.cnxe, expected["cnxe"], 1e-9)
    case.close("cnxe_min", ours.cnxe_min, expected["cnxe_min"], 1e-7)
    for name, value in (("gamma", ours.gamma), ("delta", ours.delta)):
        if math.isfinite(ours.gamma):
            case.close(name, value, expected[name], 1e-3 * max(1.0, abs(expected[name])))
    if not math.isfinite(ours.gamma):
        case.treated.append("the minimum is reached at infinity only: gamma and delta are not compared")
    part = Trials(trials.llr, trials.true, trials.false, int(trials.true.sum()), int(trials.false.sum()))
    if part.n_true and part.n_false:
        actual, least = cnxe(part, params["ptar"]), cnxe_min(part, params["ptar"]).cnxe
        case.close("cnxe_submitted_only", actual, expected["cnxe_submitted_only"], 1e-9)
        case.close("cnxe_min_submitted_only", least, expected["cnxe_min_submitted_only"], 1e-7)
    else:
        case.treated.append("only one kind of trial was submitted: values of the submitted trials are not defined")
    return case
