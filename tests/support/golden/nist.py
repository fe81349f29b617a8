"""NIST scorers: a case's inputs in both programs' formats, and what STDEval 0.7 and KWSEval (F4DE 3.5) made of them."""

import csv
import io
import math
import tarfile
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc

from swsdist.core.errors import DataError
from swsdist.evaluation.evaluate import Evaluation, evaluate
from swsdist.evaluation.reading import read_task
from swsdist.evaluation.scoring_task import read_system
from swsdist.io.notices import Notices
from swsdist.score.align import score_limits
from swsdist.score.measures.curve import Curve, CurvePoint, Ranking
from swsdist.score.measures.det import pooled_maximum
from swsdist.score.measures.protocol import protocol
from swsdist.score.measures.twv import optimum, optimum_rows
from tests.support.golden.runner import Case, needed, place, text, values

NAME = "NIST scorers"

_SAME = 1e-9
_FILES = {"stdeval": ("ecf.xml", "tlist.xml", "stdlist.xml"), "kwseval": ("ecf_kws.xml", "kwlist.xml", "kwslist.xml")}

Program = Literal["stdeval", "kwseval"]
#: What a case says: a program's options, or its numbers.
Answers = Mapping[str, Any]


def handles(folder: Path) -> bool:
    """Has it a system list of either program, or all inputs packed together?"""
    return place(folder, "params.json") is not None and any(
        place(folder, name) for name in ("stdlist.xml", "kwslist.xml", "inputs.tar")
    )


def run(folder: Path) -> Case:
    """Score with both programs' rules."""
    case = Case.of(folder)
    params, expected = values(folder, "params.json"), values(folder, "expected.json")
    with inputs(folder) as unpacked, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*negative-false-alarm-rates")
        if "stdeval" in expected:
            _stdeval(case, folder, score(unpacked, params, "stdeval"), expected["stdeval"], params)
        if "kwseval" in expected:
            _kwseval(case, folder, score(unpacked, params, "kwseval"), expected["kwseval"], params)
    return case


def score(folder: Path, params: Answers, program: Program) -> Evaluation:
    """Our evaluation of a case's inputs."""
    rules = protocol(
        program,
        tolerance=params["similarity_threshold"],
        word_gap=params["find_threshold"],
        trials_per_second=params["trials_per_sec"],
        cost=params["koef_c"],
        value=params["koef_v"],
        prior=params["prob_term"],
        trials="segment" if params["segment"] and program == "kwseval" else "time",
    )
    ecf, terms, system = (needed(folder, name) for name in _FILES[program])
    rttm, notices, only = needed(folder, "ref.rttm"), Notices(), params["ecf_filter"]
    task = read_task(ecf=ecf, rttm=rttm, terms=terms, protocol=rules, ecf_filter=only, notices=notices)
    return evaluate(
        task,
        read_system(system, conventions=program, notices=notices),
        ecf_filter=only,
        include_refless=params["include_no_targ"],
        only_answered=params["just_system_terms"],
    )


@contextmanager
def inputs(folder: Path) -> Iterator[Path]:
    """The folder of the inputs; unpacked if they lie in one archive."""
    packed = place(folder, "inputs.tar")
    if packed is None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(packed) as archive:
        archive.extractall(temporary, filter="data")
        yield Path(temporary)


def _stdeval(case: Case, folder: Path, ours: Evaluation, theirs: Answers, params: Answers) -> None:
    if theirs.get("status") == "died":
        case.treated.append("STDEval died of the list; it is scored as one that found nothing")
        case.equal("S: detections", ours.overall.totals.detections, 0)
        return
    task, whole = ours.task, ours.overall
    case.equal("S: trials", task.trials, theirs["num_trials"])
    case.close("S: seconds", task.seconds, theirs["speech_dur"], _SAME * max(1.0, task.seconds))
    case.close("S: beta", task.beta, theirs["beta"], 1e-12 * theirs["beta"])
    low, high = score_limits(ours.system.detections["score"])
    case.equal("S: least score", low, theirs["min_score"])
    case.equal("S: greatest score", high, theirs["max_score"])
    case.equal("S: max NO", max(-9999.0, _or(ours.highest_no, -9999.0)), theirs["max_no"])
    case.equal("S: min YES", min(9999.0, _or(ours.lowest_yes, 9999.0)), theirs["min_yes"])
    totals = whole.totals
    sums = {"ref": totals.ntrue, "corr": totals.ncorr, "fa": totals.nfa, "miss": totals.nmiss}
    case.equal("S: totals", sums, theirs["totals"])
    referenced = whole.per_term.filter(pc.greater(whole.per_term["ntrue"], 0))
    case.equal("S: terms with references", referenced.num_rows, theirs["n_terms_with_refs"])
    rows: dict[str, Mapping[str, Any]] = {row["query_id"]: row for row in whole.per_term.to_pylist()}
    ratio = params["koef_c"] / params["koef_v"]
    occurrence = []
    for term, want in theirs["terms"].items():
        row = rows.get(term)
        if row is None:
            case.equal(f"S: term {term}", None, want)
            continue
        _rates(case, "S", term, row, want)
        stated = want.get("value")
        if stated is not None:
            value = (_given(row["ncorr"]) - ratio * _given(row["nfa"])) / row["ntrue"]
            occurrence.append(value)
            case.close("S: occurrence-weighted value", value, stated, _SAME, what=f"S: value of {term}")
    if occurrence:
        case.close("S: mean value", math.fsum(occurrence) / len(occurrence), theirs["mean_value"], _SAME)
    _pairs(case, ours, theirs["terms"])
    if _defined(case, "S: ATWV", whole.actual, theirs["atwv"]) and whole.actual is not None:
        _point(case, "S: ATWV", whole.actual, theirs["atwv"], theirs["mean_pmiss"], theirs["mean_pfa"])
    _stdeval_curves(case, folder, ours, theirs)


def _stdeval_curves(case: Case, folder: Path, ours: Evaluation, theirs: Answers) -> None:
    det, whole = theirs["det"], ours.overall
    if det["status"] != "ok":
        case.treated.append("STDEval gives no curve of fewer than two terms or of no score; ours is defined")
    elif _defined(case, "S: MTWV", whole.maximum, det["max_value"]) and whole.maximum and whole.curve:
        if det.get("original_dies_on_negative_variance"):
            case.treated.append("STDEval dies of a negative variance; the curve is compared with its guarded one")
        case.close("S: MTWV", whole.maximum.twv, det["max_value"], _SAME)
        _unique(case, "S", whole.curve, whole.maximum, det)
        _curve(case, folder, "stdeval_det", whole.curve)
    want = theirs.get("pooled_det")
    if want is None or want.get("status") != "ok":
        return
    greatest = _pooled_maximum(ours)
    _defined(case, "S: pooled maximum", greatest, want["max_value"])
    if ours.pooled is not None and greatest is not None:
        case.close("S: pooled maximum", greatest.twv, want["max_value"], _SAME)
        _unique(case, "S pooled", ours.pooled, greatest, want)
        _curve(case, folder, "stdeval_pooled_det", ours.pooled)


def _pooled_maximum(ours: Evaluation) -> CurvePoint | None:
    if ours.overall.curve is None:
        return None
    return pooled_maximum(
        [] if ours.pooled is None else [ours.pooled], by_detection=ours.task.conventions.pooled_by_detection
    )


def _kwseval(case: Case, folder: Path, ours: Evaluation, theirs: Answers, params: Answers) -> None:
    if theirs["status"] != "ok":
        case.treated.append("KWSEval stops at inconsistent decisions; its numbers up to there are compared")
    task, whole = ours.task, ours.overall
    case.equal("K: trials", task.trials, theirs["tot_trials"])
    if theirs["tot_dur"] is not None:
        case.close("K: seconds", task.seconds, theirs["tot_dur"], _SAME * max(1.0, task.seconds))
    case.close("K: beta", task.beta, theirs["beta"], 1e-12 * theirs["beta"])
    pooled = params["pooled"]
    if pooled:
        _kwseval_pooled(case, folder, ours, theirs)
        return
    rows: dict[str, Mapping[str, Any]] = {row["query_id"]: row for row in whole.per_term.to_pylist()}
    border, on_border = 0, _on_border(ours)
    for term, want in theirs["terms"].items():
        row = rows.get(term)
        if row is None:
            case.equal(f"K: term {term}", None, want["ntrue"])
            continue
        lost = int(_given(row["ncorr"]) + _given(row["nfa"])) - want["ncorr"] - want["nfa"]
        if lost and row["ntrue"] == want["ntrue"] and abs(lost) <= on_border[term]:
            border += abs(lost)
            continue
        case.equal(f"K: counts of {term}", _counts(row), _counts(want))
        if row["ntrue"] == 0:
            continue
        for name in ("pmiss", "pfa", "twv"):
            case.close(f"K: {name}", _given(row[name]), _given(want[name]), _SAME, what=f"K: {name} of {term}")
    if border:
        case.treated.append(
            f"{border} detection(s) lie on the border of two segments, which KWSEval counts by the order of a hash: "
            "their terms are not compared, totals to so many, means and the curve not at all"
        )
        totals, theirs_ = ours.overall.totals, theirs["totals"]
        case.equal("K: total references", totals.ntrue, theirs_["targ"])
        for name, mine in (("corr", totals.ncorr), ("fa", totals.nfa), ("miss", totals.nmiss)):
            case.close("K: totals, up to the border", float(mine or 0), float(theirs_[name]), float(border))
        return
    totals = whole.totals
    sums = {"targ": totals.ntrue, "corr": totals.ncorr, "fa": totals.nfa, "miss": totals.nmiss}
    case.equal("K: totals", sums, {name: theirs["totals"][name] for name in sums})
    if _defined(case, "K: ATWV", whole.actual, theirs["atwv"]) and whole.actual is not None:
        _point(case, "K: ATWV", whole.actual, theirs["atwv"], theirs["mean_pmiss"], theirs["mean_pfa"])
    _kwseval_curve(case, folder, ours, theirs)


def _kwseval_curve(case: Case, folder: Path, ours: Evaluation, theirs: Answers) -> None:
    whole, want = ours.overall, theirs["max"]
    if _defined(case, "K: MTWV", whole.maximum, want["twv"]) and whole.maximum and whole.curve:
        case.close("K: MTWV", whole.maximum.twv, _given(want["twv"]), _SAME)
        _unique(case, "K", whole.curve, whole.maximum, want)
        _curve(case, folder, "kwseval_points", whole.curve)
    rows = optimum_rows(Ranking.of(ours.aligned), trials=ours.task.trials, beta=ours.task.beta)
    best = optimum(rows, beta=ours.task.beta)
    if whole.curve is not None and theirs["optimum"]["twv"] is not None:
        ids = best.names.to_pylist()
        rated = [k for k, term in enumerate(ids) if theirs["terms"][term]["optimum"]["twv"] is not None]
        otwv = best.otwv
        if len(rated) < len(ids):
            case.treated.append(
                f"with -inc KWSEval gave only {len(rated)} of {len(ids)} terms an optimum, by the order of a hash: "
                "OTWV is compared over these"
            )
            pmiss, pfa = (math.fsum(values[rated]) / len(rated) for values in (best.pmiss, best.pfa))
            otwv = CurvePoint(1 - (pmiss + ours.task.beta * pfa), pmiss, pfa, None)
        for measure, mine, key in (("K: OTWV", otwv, "optimum"), ("K: STWV", best.supremum, "supremum")):
            _point(case, measure, mine, *(theirs[key][name] for name in ("twv", "pmiss", "pfa")))
        place_of = {name: k for k, name in enumerate(ids)}
        for term, about in theirs["terms"].items():
            stated = about["optimum"]["twv"]
            if term in place_of and stated is not None:
                k = place_of[term]
                for name, mine, wanted in (
                    ("optimum", best.twv[k], stated),
                    ("supremum", best.stwv[k], about["supremum_twv"]),
                ):
                    case.close(f"K: {name} of a term", float(mine), wanted, _SAME, what=f"K: {name} of {term}")


def _kwseval_pooled(case: Case, folder: Path, ours: Evaluation, theirs: Answers) -> None:
    item = next(iter(theirs["terms"].values()))
    counted = [_counts(row) for row in ours.overall.per_term.to_pylist()]
    totals = [sum(int(_given(item)) for item in column) for column in zip(*counted, strict=True)]
    case.equal("K pooled: counts", totals, list(_counts(item)))
    ntrue, _, nfa, nmiss = totals
    pmiss, pfa = nmiss / ntrue, nfa / (ours.task.trials - ntrue)
    actual = CurvePoint(1 - (pmiss + ours.task.beta * pfa), pmiss, pfa, None)
    _point(case, "K pooled: actual", actual, theirs["atwv"], theirs["mean_pmiss"], theirs["mean_pfa"])
    if ours.pooled is not None and (greatest := _pooled_maximum(ours)) is not None:
        case.close("K pooled: maximum", greatest.twv, _given(theirs["max"]["twv"]), _SAME)
        _curve(case, folder, "kwseval_points", ours.pooled)


def _rates(case: Case, program: str, term: str, row: Mapping[str, Any], want: Answers) -> None:
    case.equal(f"{program}: counts of {term}", _counts(row), _counts(want))
    for name, mine, stated in (("pmiss", row["pmiss"], want["pmiss"]), ("pfa", row["pfa"], want["pfa"])):
        if stated is None or mine is None:
            case.equal(f"{program}: {name} of {term}", mine, stated)
        else:
            case.close(f"{program}: {name}", mine, stated, 1e-12, what=f"{program}: {name} of {term}")


def _counts(row: Answers) -> tuple[int | None, ...]:
    return row["ntrue"], row["ncorr"], row["nfa"], row["nmiss"]


def _given(value: float | None) -> float:
    """A number that is there, or the comparison makes no sense."""
    if value is None:
        raise DataError("a value is missing", remedy="fetch the case again")
    return value


def _pairs(case: Case, ours: Evaluation, terms: dict[str, Answers]) -> None:
    """Which detection went to which reference."""
    if not all(isinstance(want.get("pairs"), list) for want in terms.values()):
        return
    aligned = ours.aligned
    hits = aligned.filter(pc.and_(pc.is_valid(aligned["score"]), pc.is_valid(aligned["ref_start"])))
    mine: dict[str, list[tuple[str, str, float, float, float, bool]]] = defaultdict(list)
    for row in hits.to_pylist():
        place_of = (row["doc_id"], str(row["channel"]), row["ref_start"], row["start"], row["score"], row["decision"])
        mine[row["query_id"]].append(place_of)
    ambiguous = 0
    for term, want in terms.items():
        theirs = sorted((p[0], str(p[1]), p[2], p[4], p[6], p[7] == "YES") for p in want["pairs"])
        own = sorted(mine[term])
        if own != theirs and sorted(p[4:] for p in own) == sorted(p[4:] for p in theirs):
            ambiguous += 1
            continue
        case.equal(f"S: pairs of {term}", own, theirs)
    if ambiguous:
        case.treated.append(
            f"{ambiguous} term(s) can be paired in equally good ways: only counts and scores are compared"
        )


def _point(case: Case, measure: str, ours: CurvePoint, *theirs: float | None) -> None:
    """Value, Pmiss and Pfa."""
    twv, pmiss, pfa = map(_given, theirs)
    case.close(measure, ours.twv, twv, _SAME * max(1.0, abs(twv)))
    case.close(f"{measure}, Pmiss", ours.pmiss, pmiss, _SAME)
    case.close(f"{measure}, Pfa", ours.pfa, pfa, _SAME)


def _unique(case: Case, program: str, curve: Curve, ours: CurvePoint, want: Answers) -> None:
    """Threshold and rates of a maximum, if no other point comes as near to it as the order of a sum may bring it."""
    if np.count_nonzero(curve.twv > ours.twv - _SAME) != 1:
        case.treated.append(
            f"{program}: several points reach the maximum to 1e-9; threshold and rates are not compared"
        )
        return
    if want["threshold"] is not None and ours.threshold is not None:
        case.close(f"{program}: threshold of the maximum", ours.threshold, want["threshold"], 0.0)
    case.close(f"{program}: Pmiss of the maximum", ours.pmiss, want["pmiss"], _SAME)
    case.close(f"{program}: Pfa of the maximum", ours.pfa, want["pfa"], _SAME)


def _curve(case: Case, folder: Path, name: str, curve: Curve) -> None:
    """The curve's file has every n-th point and the last, with 12 digits."""
    kept = values(folder, "expected.json")["det_files"].get(name)
    if kept is None or place(folder, f"det.{name}.csv") is None:
        return
    columns = np.stack([curve.threshold, curve.pmiss, curve.pfa, curve.twv], axis=1)
    case.equal(f"{name}: points", len(columns), kept["n_points"])
    if len(columns) != kept["n_points"]:
        return
    taken = [*range(0, len(columns), kept["kept_every"])]
    if taken[-1] != len(columns) - 1:
        taken.append(len(columns) - 1)
    rows = list(csv.reader(io.StringIO(text(folder, f"det.{name}.csv"))))[1:]
    theirs = np.array([[math.nan if x in ("", "NA") else float(x) for x in row] for row in rows])
    for k, column in enumerate(("threshold", "Pmiss", "Pfa", "value")):
        scale = np.maximum(1.0, np.abs(theirs[:, k]))
        apart = np.abs(columns[taken, k] - theirs[:, k]) / scale
        same = np.isnan(columns[taken, k]) & np.isnan(theirs[:, k])
        case.close(f"{name}: {column}", float(np.where(same, 0.0, apart).max(initial=0.0)), 0.0, 1e-10)


def _on_border(ours: Evaluation) -> Counter[str]:
    """How many detections of each term have their mid-point where two segments meet."""
    found: Counter[str] = Counter()
    cut = ours.task.segments
    if cut is None:
        return found
    places = {
        side: set(zip(*(cut[name].to_pylist() for name in ("doc_id", "channel", side)), strict=True))
        for side in ("start", "end")
    }
    both = places["start"] & places["end"]
    detections = ours.system.detections
    middle = detections["start"].to_numpy() + detections["duration"].to_numpy() / 2
    columns = (detections[name].to_pylist() for name in ("query_id", "doc_id", "channel"))
    for term, doc_id, channel, time in zip(*columns, middle.tolist(), strict=True):
        found[term] += (doc_id, channel, time) in both
    return found


def _defined(case: Case, what: str, ours: object, theirs: object) -> bool:
    """Whether there is something to compare; what only one side has is a difference."""
    case.equal(f"{what}: defined", ours is not None, theirs is not None)
    return ours is not None and theirs is not None


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
