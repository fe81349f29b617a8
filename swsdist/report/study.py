"""The study of KST against STO in a sweep's report: figures 2 to 8, tables, tests, and JSON.

Figures are numbered as in Wang and Metze 2014. Curves of thresholds (2 and 4) are those of the single system's operating point.
"""

from __future__ import annotations

import json
from importlib.metadata import version

import numpy as np

from swsdist.calibrate.rescoring import Breakdown, Study, SystemStudy, Tests
from swsdist.calibrate.steps.by_term import Method, Thresholding
from swsdist.core.arrays import Floats
from swsdist.core.fingerprint import plain
from swsdist.report.plots.curves import Axes, Series, bars_svg, dots_svg, lines_svg
from swsdist.report.plots.svg import side_by_side
from swsdist.report.summary import fixed, short
from swsdist.report.tables import Table, padded

SCHEMA = "swsdist-kst-study/1"

NAMES: dict[Method, str] = {"oracle-kst": "oracle KST", "kst": "estimated KST", "sto": "STO"}

_ZOOM = 25.0
_NOT_DEFINED = "not defined (fewer than two pairs)"


def figures(study: Study) -> dict[str, tuple[str, str]]:
    """Name -> caption and SVG, in the order of the source."""
    system = study.systems[0]
    name = system.entry.name
    kst, sto = study.best["kst"], study.best["sto"]
    at = f"alpha {kst:g}" if kst == sto else f"alpha {kst:g} (KST), {sto:g} (STO)"
    return {
        "fig2": ("Optimal threshold and keyword frequency (eq. 3).", _threshold_of_ntrue(system)),
        "fig3": (
            f"Posterior sum S(w) and true occurrences, a dot a keyword of {name}; right: up to {_ZOOM:g}. "
            "Dashed: where they are equal.",
            _sums_and_occurrences(system),
        ),
        "fig4": (f"Thresholds of estimated KST and STO on raw probabilities, {at}.", _thresholds(study)),
        "fig5": (
            "ATWV against the boosting factor alpha; dots: the alphas compared here. "
            + ("The system." if len(study.systems) == 1 else "Left: each system; right: the average."),
            _atwv_of_alpha(study),
        ),
        "fig6": ("ATWV of estimated KST minus STO, histogram over systems.", _histogram(study)),
        "fig7": (
            "Difference of ATWV, estimated KST minus STO, by posterior sum S(w), average over systems: "
            "total of each bin, and per keyword in it.",
            _by_sum(study.by_sum),
        ),
        "fig8": (
            f"Difference of ATWV, estimated minus oracle KST, by number of true occurrences, {name}: total and per keyword.",
            _by_ntrue(study.by_ntrue),
        ),
    }


def _threshold_of_ntrue(system: SystemStudy) -> str:
    entry = system.entry
    most = max(int(entry.sweep.ntrue.max()), 100)
    n = np.arange(0, most + 1)
    limits = Thresholding("oracle-kst", entry.trials, entry.beta).thresholds(0, np.maximum(n, 1))
    limits[0] = 0.0
    axes = Axes("true occurrences of the keyword", "threshold", (0, most), (0, 1))
    return lines_svg([Series("", n, limits)], axes, title="Threshold of KST against keyword frequency")


def _sums_and_occurrences(system: SystemStudy) -> str:
    sweep = system.entry.sweep
    most = max(float(sweep.sums.max()), float(sweep.ntrue.max())) * 1.04
    plots = [
        dots_svg(
            sweep.sums,
            sweep.ntrue,
            Axes("posterior sum S(w)", "true occurrences", (0, limit), (0, limit)),
            diagonal=True,
            title=f"True occurrences against S(w), up to {limit:.4g}",
        )
        for limit in (most, _ZOOM)
    ]
    return side_by_side(plots, title="True occurrences against posterior sums")


def _thresholds(study: Study) -> str:
    entry = study.systems[0].entry
    sto = Thresholding("sto", entry.trials, entry.beta, study.best["sto"])
    kst = Thresholding("kst", entry.trials, entry.beta, study.best["kst"])
    most = max(float(entry.sweep.sums.max()), 1.25 / sto.threshold)
    sums = np.linspace(0, most, 400)
    lines = [
        Series("estimated KST", sums, kst.thresholds(sums)),
        Series("STO", sums, sto.thresholds(sums), kind=1),
        Series("1, the highest probability", sums, np.ones_like(sums), kind=2),
    ]
    axes = Axes("posterior sum S(w)", "threshold", (0, most), (0, 1.25))
    return lines_svg(lines, axes, title="Thresholds of estimated KST and STO against S(w)")


def _atwv_of_alpha(study: Study) -> str:
    axes = Axes("alpha", "ATWV")
    many = len(study.systems) > 1
    average = [
        Series(NAMES[method], study.alphas, study.mean[method], kind=kind) for kind, method in enumerate(study.best)
    ]
    marks = [
        (study.best[method], float(np.interp(study.best[method], study.alphas, study.mean[method])), kind)
        for kind, method in enumerate(study.best)
    ]
    mean = lines_svg(average, axes, marks=marks, title="Average ATWV against alpha")
    if not many:
        return mean
    curves = [
        Series(NAMES[method], study.alphas, system.curves[method], kind=kind, thin=system is not study.systems[0])
        for system in reversed(study.systems)
        for kind, method in enumerate(study.best)
    ]
    each = lines_svg(curves, axes, title="ATWV of each system against alpha")
    return side_by_side([each, mean], title="ATWV against alpha")


def _histogram(study: Study) -> str:
    gains = np.array([system.atwv["kst"] - system.atwv["sto"] for system in study.systems])
    reach = max(float(np.abs(gains).max()), 1e-4)
    bins = 2 * min(10, max(3, len(gains) // 3))
    counts, edges = np.histogram(gains, bins=bins, range=(-reach * 1.001, reach * 1.001))
    axes = Axes("ATWV, estimated KST minus STO", "systems", None, (0, max(int(counts.max()), 1) * 1.1))
    return bars_svg(edges, counts, axes, title="Difference of ATWV over systems")


def _by_sum(results: Breakdown) -> str:
    if np.all(np.diff(results.edges) == 1):
        return _two(results, results.edges, "posterior sum S(w)", "KST minus STO")
    return _two(results, np.log2(1 + results.edges), "log2(1 + S(w))", "KST minus STO")


def _by_ntrue(results: Breakdown) -> str:
    return _two(results, results.edges - 0.5, "true occurrences", "estimated minus oracle KST")


def _two(results: Breakdown, edges: Floats, x_title: str, what: str) -> str:
    plots = [
        bars_svg(edges, values, Axes(x_title, y_title), title=f"{what}, {y_title}")
        for values, y_title in (
            (results.total, "difference of ATWV"),
            (results.per_term, "difference of ATWV per keyword"),
        )
    ]
    return side_by_side(plots, title=f"{what} by {x_title}")


# -- numbers --------------------------------------------------------------------------------------------------------


def table_one(study: Study) -> list[list[str]]:
    """Method, alpha, ATWV of the single system, and the average: the rows of table 1."""
    system = study.systems[0]
    alphas = {method: f"{value:g}" for method, value in study.best.items()}
    return [
        [name, alphas.get(method, ""), fixed(system.atwv[method]), fixed(study.atwv[method])]
        for method, name in NAMES.items()
    ]


def tests_rows(study: Study) -> list[list[str]]:
    """Pairs, their number, p of the tests and r: terms of each system, then systems."""
    rows = [
        [f"keywords of {system.entry.name}", str(len(system.entry.sweep.ntrue)), *_p(system.over_terms)]
        for system in study.systems
    ]
    return [*rows, ["systems", str(len(study.systems)), *_p(study.over_systems)]]


def _p(tests: Tests) -> list[str]:
    if tests.sign_flip is None or tests.t is None or tests.wilcoxon is None:
        return [_NOT_DEFINED] * 4
    t = "not defined (no variation)" if tests.t.p is None else short(tests.t.p)
    return [short(tests.sign_flip.p), t, short(tests.wilcoxon.p), fixed(tests.rank_biserial, 2)]


def study_tables(study: Study) -> list[Table]:
    """Table 1, the tests, and the systems."""
    name, many = study.systems[0].entry.name, len(study.systems)
    systems = [
        [
            *(system.entry.name, system.entry.task, str(len(system.entry.sweep.ntrue)), str(system.entry.trials)),
            *(short(system.entry.beta, 5), system.entry.logistic),
            *(fixed(system.atwv[method]) for method in NAMES),
        ]
        for system in study.systems
    ]
    oracle = any(system.entry.logistic == "oracle" for system in study.systems)
    return [
        Table(
            "Thresholds by keyword and sum-to-one",
            ["", "alpha", f"ATWV ({name})", f"ATWV (average of {many})"],
            table_one(study),
            " ".join(["Oracle KST knows how often each keyword occurs, which no system does.", *remarks(study)]),
        ),
        Table(
            "Tests of estimated KST against STO",
            ["KST against STO, pairs are", "n", "sign flip, p", "t test, p", "Wilcoxon, p", "r"],
            tests_rows(study),
            "Two-sided, paired. Sign flip and t test the mean; Wilcoxon's is of ranks, which favour KST where r is above 0."
            + (" Over systems no test is defined: there is one." if many == 1 else ""),
        ),
        Table(
            "The systems of the study",
            ["system", "task", "keywords", "T", "beta", "logistic", *NAMES.values()],
            systems,
            "Keywords that occur. Logistic: how scores became probabilities; none: they were."
            + (" Oracle: it was fitted on what is scored here, so all values are optimistic." if oracle else ""),
            texts=(0, 1, 5),
        ),
    ]


def text_lines(study: Study) -> list[str]:
    """Table 1 and the tests for a terminal."""
    first, second, _ = ([table.columns, *table.rows] for table in study_tables(study))
    lines = [*padded(first), "", *padded(second)]
    lines += [f"\n{note}" for note in remarks(study)]
    logistics = sorted({system.entry.logistic for system in study.systems} - {"none"})
    if logistics:
        converted = sum(system.entry.logistic != "none" for system in study.systems)
        lines += [
            "",
            f"Scores of {converted} of {len(study.systems)} systems became probabilities by a logistic: {', '.join(logistics)}",
        ]
    return lines


def remarks(study: Study) -> list[str]:
    """Remarks on the best alphas."""
    first, last = float(study.alphas[0]), float(study.alphas[-1])
    at_end = [NAMES[method] for method, value in study.best.items() if value in (first, last)]
    if study.chosen or not at_end or len(study.alphas) < 2:
        return []
    return [
        f"The best alpha of {' and '.join(at_end)} is at an end of what was tried ({first:g} to {last:g}): "
        "try more values of calibrate.alpha."
    ]


def study_json(study: Study) -> str:
    """Every number of the study."""
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "alphas": study.alphas,
        "best_alpha": study.best,
        "alpha_was_given": study.chosen,
        "atwv_by_alpha": study.mean,
        "atwv": study.atwv,
        "over_systems": study.over_systems,
        "by_posterior_sum": study.by_sum,
        "by_ntrue": study.by_ntrue,
        "single": study.systems[0].entry.name,
        "systems": [_system(system) for system in study.systems],
    }
    return json.dumps(plain(values), indent=1, ensure_ascii=False, allow_nan=False)


def _system(studied: SystemStudy) -> dict[str, object]:
    entry = studied.entry
    terms = {
        "query_id": entry.sweep.names.to_pylist(),
        "ntrue": entry.sweep.ntrue,
        "posterior_sum": entry.sweep.sums,
        "value": studied.values,
        "threshold": studied.thresholds,
    }
    return {
        **{name: getattr(entry, name) for name in ("name", "task", "trials", "beta", "logistic")},
        "atwv": studied.atwv,
        "atwv_by_alpha": studied.curves,
        "over_terms": studied.over_terms,
        "terms": terms,
    }


def captioned_figures(study: Study) -> list[tuple[str, str]]:
    """Captions with their numbers, and SVG, of all figures."""
    return [(f"Figure {name[3:]}. {caption}", svg) for name, (caption, svg) in figures(study).items()]


def study_files(study: Study) -> dict[str, str]:
    """The text of `study.json` and `fig2.svg` to `fig8.svg`, by name."""
    return {"study.json": study_json(study) + "\n"} | {f"{name}.svg": svg for name, (_, svg) in figures(study).items()}
