"""A scored list as JSON, as a short summary, as tables for other programs, as STDEval's table, and its DET curve.

**The DET curve** is a picture, or its points, with an optional band of two standard errors. The band lies around the very
points of the curve. Term-weighted, a point's errors are those of the means over terms (`swsdist.score.measures.det.bands`);
pooled, the rates are proportions of Ntrue references and N - Ntrue other trials.

**The table of STDEval 0.7** (`-A -o`): a row a term, column groups by source type and for all. Scripts read that table, so
it is identical to the blank: counts of the row "Means" lose their decimals, values below zero shift their column by one,
totals are rounded to 4 (Value, P(Mis)) and 8 decimals (P(FA)) before printing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Floats
from swsdist.core.codes import discovery as codes
from swsdist.core.codes import families
from swsdist.core.fingerprint import plain
from swsdist.core.types import columns
from swsdist.evaluation.evaluate import Evaluation, Part
from swsdist.io.notices import Notice
from swsdist.io.tables import write_csv
from swsdist.registry.registries import MEASURES
from swsdist.report.data import quantity_of
from swsdist.report.pictures import PICTURES, write_picture
from swsdist.report.summary import NOTHING, fixed, rejects_all, undefined_note, undefined_reasons
from swsdist.report.tables import Table
from swsdist.score.measures.curve import Curve, Ranking
from swsdist.score.measures.det import Squares, accepted_from, bands, det, referenced
from swsdist.score.measures.twv import optimum, optimum_rows

SCHEMA = "swsdist-score/1"


#: Fields of a protocol in JSON.
_RULES = ("name", "conventions", "trials", "tolerance", "word_gap", "trials_per_second", "cost", "value")


def evaluation_json(result: Evaluation, measures: Mapping[str, float | None]) -> str:
    """Everything that was computed, but the alignment and the curve.

    Args:
        result: of the scoring.
        measures: by name.
    """
    task, rules = result.task, result.task.protocol
    values = {
        "schema": SCHEMA,
        "system": {"path": result.system.path, **result.system.attributes},
        "protocol": {name: getattr(rules, name) for name in _RULES},
        "seconds": task.seconds,
        "trials": task.trials,
        "beta": task.beta,
        "measures": dict(measures),
        "totals": result.overall.totals._asdict(),
        "by_source_type": {name: _part(part) for name, part in result.parts.items()},
        "score_limits": {"highest_no": result.highest_no, "lowest_yes": result.lowest_yes},
        "terms": per_term_table(result).to_pylist(),
        "notices": [_notice(notice) for notice in task.notices.entries.values()],
    }
    return json.dumps(plain(values), indent=1, ensure_ascii=False, allow_nan=False)


def _notice(notice: Notice) -> dict[str, object]:
    message, remedy = notice.text()
    return {
        "code": notice.code.name,
        "count": notice.count,
        "message": message,
        "first": notice.first,
        "remedy": remedy,
    }


def _part(part: Part) -> dict[str, object]:
    actual, maximum = part.actual, part.maximum
    return {
        "seconds": part.seconds,
        "trials": part.trials,
        **part.totals._asdict(),
        "atwv": None if actual is None else actual.twv,
        "mtwv": None if maximum is None else maximum.twv,
        "mtwv_threshold": None if maximum is None else maximum.threshold,
    }


def summary(result: Evaluation, measures: Mapping[str, float | None]) -> Iterator[str]:
    """A few lines for a person, without the protocol."""
    task, totals = result.task, result.overall.totals

    def shown(name: str) -> str:
        value = measures.get(name)
        return "n/a" if value is None else f"{value:.{quantity_of(name).decimals}f}"

    counted = f"terms {task.terms.num_rows}, references {totals.ntrue}, detections {totals.detections}"
    if totals.ncorr is None:
        undecided = result.system.detections["decision"].null_count
        yield f"{counted}, of which {undecided} have no decision: ATWV needs them all (swsdist calibrate makes them)"
    else:
        yield f"{counted}: {totals.ncorr} correct, {totals.nfa} false alarms, {totals.nmiss} missed"
    for name in ("atwv", "mtwv", "otwv", "stwv"):
        line = f"{quantity_of(name).name} {shown(name)}   Pmiss {shown(f'{name}_pmiss')}   Pfa {shown(f'{name}_pfa')}"
        best = rejects_all(measures.get("mtwv_pmiss"), measures.get("mtwv_pfa")) or shown("mtwv_threshold")
        yield line + (f"   threshold {best}" if name == "mtwv" else "")
    yield f"precision {shown('precision')}   recall {shown('recall')}   F1 {shown('f1')}"
    for entry in map(MEASURES.__getitem__, MEASURES):
        # Those of certain conventions only, five to a line.
        names = [] if entry.takes in ("trials", "pairs") else [item.key for item in entry.gives if item.key in measures]
        for first in range(0, len(names), 5):
            yield "   ".join(f"{quantity_of(name).name} {shown(name)}" for name in names[first : first + 5])
    if "map" in measures:
        yield f"MAP {shown('map')}   P@10 {shown('p_at_10')}   EER {shown('eer')}   pooled EER {shown('pooled_eer')}"
        yield (
            f"Cnxe {shown('cnxe')}   least {shown('cnxe_min')} (affine), {shown('cnxe_pav')} (PAV)   "
            f"calibration loss {shown('calibration_loss')}   (scores taken for log-likelihood ratios)"
        )
    if why := undefined_note(undefined_reasons(measures)):
        yield why.replace(NOTHING, "n/a")


def per_term_table(result: Evaluation) -> pa.Table:
    """A row a term: schema PER_TERM, the term's text, its supremum, and the columns of the term list."""
    table = result.overall.per_term
    extra = result.task.terms.drop_columns(["query_id"])
    supremum = pa.nulls(table.num_rows, pa.float64())
    if result.overall.curve is not None:
        rows = optimum_rows(Ranking.of(result.aligned), trials=result.task.trials, beta=result.task.beta)
        best = optimum(rows, beta=result.task.beta)
        supremum = pa.array(best.stwv).take(pc.index_in(table["query_id"].combine_chunks(), value_set=best.names))
    table = table.append_column("stwv", supremum)
    for name in extra.column_names:
        table = table.append_column(name, extra[name])
    return table


#: The columns of KWSEval's alignment file.
ALIGNMENT = columns(
    "language string?, file string?, channel int32?, termid string?, term string?, ref_bt float64?, "
    "ref_et float64?, sys_bt float64?, sys_et float64?, sys_score float64?, sys_decision string?, "
    "alignment string?"
)


def alignment_table(result: Evaluation) -> pa.Table:
    """Each detection and reference with its partner and class: CORR, MISS, FA, or CORR!DET (a correct NO)."""
    aligned = result.aligned
    yes = pc.fill_null(aligned["decision"], False).to_numpy()
    results, true = pc.is_valid(aligned["score"]).to_numpy(), pc.is_valid(aligned["ref_start"]).to_numpy()
    kind = np.where(true, np.where(results & yes, "CORR", "MISS"), np.where(yes, "FA", "CORR!DET"))
    decided = pc.is_valid(aligned["decision"]).to_numpy()
    decision = pa.array(np.where(yes, "YES", "NO"), mask=~decided)
    terms = dict(zip(*(result.task.terms[name].to_pylist() for name in ("query_id", "term")), strict=True))
    ids = aligned["query_id"].dictionary_encode().combine_chunks()
    text = pa.array([terms[name] for name in ids.dictionary.to_pylist()], pa.string()).take(ids.indices)
    language = result.system.attributes.get("language", "unknown")
    columns = [
        pa.array([language] * aligned.num_rows, pa.string()),
        aligned["doc_id"],
        aligned["channel"],
        aligned["query_id"],
        text,
        aligned["ref_start"],
        aligned["ref_end"],
        aligned["start"],
        aligned["end"],
        aligned["score"],
        decision,
        pa.array(kind, pa.string()),
    ]
    return pa.table(columns, schema=ALIGNMENT).sort_by(
        [("termid", "ascending"), ("file", "ascending"), ("channel", "ascending")]
    )


def measures_table(result: Evaluation, measures: Mapping[str, float | None]) -> Table:
    """The measures of a list, a row each.

    Args:
        result: of the scoring.
        measures: by name.
    """
    task = result.task
    name = result.system.attributes.get("system_id") or result.system.path
    note = f"{name}: {task.protocol.describe(task.point)}."
    plain = [{"measure": key, "value": value} for key, value in measures.items()]
    shown = [(quantity_of(key), value) for key, value in measures.items()]
    rows = [(quantity.name, fixed(value, quantity.decimals)) for quantity, value in shown]
    return Table("Measures", ("measure", "value"), rows, note, plain=plain, gap="not defined")


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
        raise families.UNDEFINED("no DET curve", "score a list with detections of terms that have references")
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
        raise families.UNDEFINED(
            "the spread over terms is not defined where terms without references are in the mean", "leave -inc out"
        )
    size = len(curve.threshold)
    return results.pmiss_error[:size], results.pfa_error[:size]


def _pooled_errors(result: Evaluation, curve: Curve) -> tuple[Floats, Floats]:
    ntrue = int(result.counts.classes @ result.counts.terms)
    left = result.task.trials - ntrue
    if left <= 0:
        raise families.UNDEFINED(
            "{references} references in {trials} trials leave no non-target trials to pool",
            "leave -P out",
            references=ntrue,
            trials=result.task.trials,
        )
    return (
        np.sqrt(np.clip(curve.pmiss * (1 - curve.pmiss), 0, None) / ntrue),
        np.sqrt(np.clip(curve.pfa * (1 - curve.pfa), 0, None) / left),
    )


_LEFT, _COLUMN = 46, 45
_KINDS = ("bnews", "cts", "confmtg")
_RULE = "-" * _COLUMN


def stdeval_report(result: Evaluation) -> str:
    """The table of one list.

    Args:
        result: of `swsdist.evaluation.evaluate.evaluate`, by STDEval's rules.
    """
    parts = [result.parts[kind] for kind in _KINDS if kind in result.parts] + [result.overall]
    return "".join(f"{line}\n" for line in (*_head(result, len(parts)), *_table(result, parts)))


def _head(result: Evaluation, columns: int) -> Iterator[str]:
    width = _LEFT + columns * (_COLUMN + 1)
    rules, attributes = result.task.protocol, result.system.attributes
    prior = rules.cost / (rules.cost + result.task.beta * rules.value)
    yield "+" + "-" * width + "+"
    for label, value in (
        ("Indexing Time:", _number(attributes.get("indexing_time"), 4)),
        ("Language:", attributes.get("language", "unknown")),
        ("Index size (bytes):", _number(attributes.get("index_size"), 0)),
        ("System ID:", attributes.get("system_id", "unknown")),
        ("Coefficient C:", f"{rules.cost:.4f}"),
        ("Coefficient V:", f"{rules.value:.4f}"),
        ("Trials Per Second:", f"{rules.trials_per_second:.4f}"),
        ("Probability of a Term:", f"{prior:.4f}"),
    ):
        yield f"| {label}{value:>{36 - len(label)}}{'':{width - 37}}|"
    listed = result.system.detections["decision"]
    if len(listed) and listed.null_count == len(listed):  # STDEval does not allow such a list
        yield f"| Decision Score          N/A (no detection was decided){'':{width - 37}}|"
        return
    highest = max(-9999.0, -math.inf if result.highest_no is None else result.highest_no)
    lowest = min(9999.0, math.inf if result.lowest_yes is None else result.lowest_yes)
    fits = "OK" if highest <= lowest else "Inconsistent"
    yield f"| Decision Score          {fits} (Max NO: {highest:.4f}, Min YES: {lowest:.4f}){'':{width - 37}}|"


def _table(result: Evaluation, parts: list[Part]) -> Iterator[str]:
    border = "+" + "-" * _LEFT + "+" + "+".join(_RULE for _ in parts) + "+"
    names = [part.name.upper() for part in parts]
    yield border
    yield f"|{'Search':>45} |" + "".join(f"{_centred(name)}|" for name in names)
    yield f"|{'':{_LEFT}}|" + f"{'Occ.':>30}{'':15}|" * len(parts)
    yield f"|{'TermID':>10}{'Text':>25}{'Time':>9}  |" + "    Ref  Corr   FA  Miss  Value P(FA)  P(Mis)|" * len(parts)
    yield border
    rows = [part.per_term.to_pylist() for part in parts]
    texts, times = result.task.terms["term"].to_pylist(), result.system.search_times or {}
    ids = result.task.terms["query_id"].to_pylist()
    seconds = {name: _float(times.get(name)) for name in ids}
    for k in sorted(range(len(ids)), key=ids.__getitem__):
        shown = f"{ids[k]:>5}"
        room = max(35 - len(shown), 4)
        text = texts[k] if len(texts[k]) < room else f"{texts[k][: max(room - 4, 0)]}..."
        yield f"| {shown}{text:>{room}}{seconds[ids[k]]:9.2f} |" + "".join(_counts(row[k], result) for row in rows)
    yield border
    total = math.fsum(seconds.values())
    mean = total / max(1, len(ids))
    yield f"| Totals, Actual Occ. Weighted Value{total:10.2f} |" + "".join(_totals(part, result) for part in parts)
    yield f"| Means (N/A excl.){mean:27.2f} |" + "".join(
        _means(part, row, result) for part, row in zip(parts, rows, strict=True)
    )
    yield border
    blank = f"|{'':{_LEFT}}|"
    yield blank + "".join(f"  Number of Trials{part.trials:21d}      |" for part in parts)
    yield blank + "".join(f"  Total Speech Time (sec.){part.seconds:15.1f}    |" for part in parts)
    yield blank + "".join(f"  A. T-Weighted Value (N/A excl.){_value(part):>10}  |" for part in parts)
    yield border


def _counts(row: Mapping[str, Any], result: Evaluation) -> str:
    start = _four(row["ntrue"], row["ncorr"], row["nfa"], row["nmiss"])
    rated = _rated(row)
    if rated is None:
        return f"{start}    N/A    N/A   N/A |"
    value = _occurrence_value(rated.ncorr, rated.nfa, rated.ntrue, result)
    return f"{start} {value:.3f} {row['pfa']:.5f} {1 - rated.ncorr / rated.ntrue:.3f} |"


class _Rated(NamedTuple):
    """A query with references and decisions."""

    query_id: str
    ntrue: int
    ncorr: int
    nfa: int
    nmiss: int


def _rated(row: Mapping[str, Any]) -> _Rated | None:
    ncorr, nfa, nmiss = row["ncorr"], row["nfa"], row["nmiss"]
    if not row["ntrue"] or row["pmiss"] is None or ncorr is None or nfa is None or nmiss is None:
        return None
    return _Rated(row["query_id"], row["ntrue"], ncorr, nfa, nmiss)


def _totals(part: Part, result: Evaluation) -> str:
    sums = part.totals
    start = _four(sums.ntrue, sums.ncorr, sums.nfa, sums.nmiss)
    left = part.trials - sums.ntrue
    if not sums.ntrue or not left or sums.ncorr is None or sums.nfa is None or sums.nmiss is None:
        return f"{start}    N/A    N/A   N/A |"
    value = round(_occurrence_value(sums.ncorr, sums.nfa, sums.ntrue, result), 4)
    return f"{start} {value:.3f} {round(sums.nfa / left, 8):.5f} {round(sums.nmiss / sums.ntrue, 4):.3f} |"


def _means(part: Part, rows: list[Mapping[str, Any]], result: Evaluation) -> str:
    rated = [item for row in rows if (item := _rated(row)) is not None]
    if not rated or part.actual is None:
        return f"{_four(0, 0, 0, 0)}    N/A    N/A   N/A |"
    start = _four(*(sum(column) // len(rated) for column in zip(*(row[1:] for row in rated), strict=True)))
    # Summed in the program's order: a last bit may change the last digit.
    rated.sort(key=lambda row: row.query_id)
    mean = 0.0
    for row in rated:
        mean += _occurrence_value(row.ncorr, row.nfa, row.ntrue, result)
    mean /= len(rated)
    return f"{start} {mean:.3f} {part.actual.pfa:.5f} {part.actual.pmiss:.3f} |"


def _four(*counts: int | None) -> str:
    return "".join(f" {'N/A' if count is None else count:>5}" for count in counts)


def _occurrence_value(ncorr: int, nfa: int, ntrue: int, result: Evaluation) -> float:
    """(V Ncorr - C Nfa) / (V Ntrue)."""
    rules = result.task.protocol
    return (rules.value * ncorr - rules.cost * nfa) / (rules.value * ntrue)


def _value(part: Part) -> str:
    return "N/A" if part.actual is None else f"{part.actual.twv:.3f}"


def _centred(name: str) -> str:
    left = (_COLUMN - len(name) + 1) // 2
    return f"{'':{left}}{name}{'':{_COLUMN - len(name) - left}}"


def _float(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _number(text: str | None, places: int) -> str:
    return f"{_float(text):.{places}f}"
