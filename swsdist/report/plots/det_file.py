"""The DET curve of a scored list as a file: a picture, or its points, with an optional band of two standard errors.

The band lies around the very points of the curve. Term-weighted, a point's errors are those of the means over terms
(`swsdist.score.measures.det.bands`); pooled, the rates are proportions of Ntrue references and N - Ntrue other trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.codes import discovery as codes
from swsdist.evaluation.evaluate import Evaluation
from swsdist.io.tables import write_csv
from swsdist.report.pictures import PICTURES, write_picture
from swsdist.score.measures.curve import Curve
from swsdist.score.measures.det import Squares, accepted_from, bands, det, referenced

Floats = NDArray[np.float64]

_TICKS = (1e-5, 1e-4, 0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995, 0.999)


def write_det(result: Evaluation, path: str, *, pooled: bool = False, with_bands: bool = False) -> None:
    """Write the DET curve.

    Args:
        result: of the scoring.
        path: `.svg`, `.pdf` or `.png` for a picture, else CSV: score (the least accepted; infinite where nothing is), pmiss,
            pfa, value and, with bands, twice the standard errors. Beside a `.det`, as STDEval, a `.det.plt` that gnuplot draws.
        pooled: of all terms as one, not term-weighted.
        with_bands: with bands.

    Raises:
        UserError: no curve, an undefined spread, or a missing library.
    """
    curve = result.pooled if pooled else result.overall.curve
    if curve is None:
        raise codes.UNDEFINED_DET_CURVE()
    errors = None
    if with_bands:
        errors = _pooled_errors(result, curve) if pooled else _term_weighted_errors(result, curve)
    if path.lower().endswith(PICTURES):
        write_picture(_picture(result, curve, pooled, errors), path)
        return
    least = accepted_from(curve.threshold, curve.pmiss, curve.pfa)
    columns = {"score": least, "pmiss": curve.pmiss, "pfa": curve.pfa, "value": curve.twv}
    if errors is not None:
        columns |= {"pmiss_2se": 2 * errors[0], "pfa_2se": 2 * errors[1]}
    write_points(columns, path)
    if path.lower().endswith(".det"):
        Path(f"{path}.plt").write_text(_gnuplot(path, _name(result)), encoding="utf-8")


def _name(result: Evaluation) -> str:
    return result.system.attributes.get("system_id") or Path(result.system.path).stem


def _gnuplot(path: str, name: str) -> str:
    """A script for gnuplot: the points of a file on normal-deviate axes, as PostScript."""
    ticks = ", ".join(f'"{100 * p:g}" invnorm({p:g})' for p in _TICKS)
    file, title = (text.replace("'", "''") for text in (path, name))
    return f"""set terminal postscript color
set datafile separator ","
set xlabel "false alarms, %"
set ylabel "misses, %"
set xtics ({ticks})
set ytics ({ticks})
set grid
deviate(p) = invnorm(p < 1e-6 ? 1e-6 : p > 1 - 1e-6 ? 1 - 1e-6 : p)
plot '{file}' every ::1 using (deviate($3)):(deviate($2)) with lines title '{title}'
"""


def write_points(columns: Mapping[str, Floats], path: str) -> None:
    """The points of a curve as CSV: columns float64 (n,) each."""
    table = pa.table(dict(columns))
    write_csv(table, table.schema, Path(path))


def _picture(result: Evaluation, curve: Curve, pooled: bool, errors: tuple[Floats, Floats] | None) -> str:
    from swsdist.report.plots.curves import Line, Mark, det_svg  # loads scipy, which points as CSV do without

    marks = []
    for label, point in (("ATWV", result.overall.actual), ("MTWV", result.overall.maximum)):
        if point is not None and not pooled:
            marks.append(Mark(f"{label} {point.twv:.3f}", point.pfa, point.pmiss))
    name = _name(result)
    if errors is None:
        points = det(curve)
        line = Line(name, points.pfa, points.pmiss, tuple(marks))
    else:
        line = Line(name, curve.pfa, curve.pmiss, tuple(marks), (2 * errors[1], 2 * errors[0]))
    return det_svg([line], beta=None if pooled else result.task.beta)


def _term_weighted_errors(result: Evaluation, curve: Curve) -> tuple[Floats, Floats]:
    counts = referenced(result.counts)
    if counts.terms.sum() < 2:
        raise codes.NO_SPREAD()
    results = bands(counts, Squares.of(result.aligned), trials=result.task.trials, beta=result.task.beta)
    if not np.array_equal(results.curve.threshold[: len(curve.threshold)], curve.threshold):
        raise codes.UNDEFINED_SPREAD()
    size = len(curve.threshold)
    return results.pmiss_error[:size], results.pfa_error[:size]


def _pooled_errors(result: Evaluation, curve: Curve) -> tuple[Floats, Floats]:
    ntrue = int(result.counts.classes @ result.counts.terms)
    left = result.task.trials - ntrue
    if left <= 0:
        raise codes.NO_OTHER_TRIALS(references=ntrue, trials=result.task.trials)
    return (
        np.sqrt(np.clip(curve.pmiss * (1 - curve.pmiss), 0, None) / ntrue),
        np.sqrt(np.clip(curve.pfa * (1 - curve.pfa), 0, None) / left),
    )
