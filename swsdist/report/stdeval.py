"""The text table of STDEval 0.7 (`-A -o`): a row a term, column groups by source type and for all.

Scripts read that table, so it is identical to the blank: counts of the row "Means" lose their decimals, values
below zero shift their column by one, totals are rounded to 4 (Value, P(Mis)) and 8 decimals (P(FA)) before
printing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from swsdist.evaluation.evaluate import Evaluation, Part

_LEFT, _COLUMN = 46, 45
_KINDS = ("bnews", "cts", "confmtg")
_RULE = "-" * _COLUMN


def stdeval_report(result: Evaluation) -> str:
    """The table of one list.

    Args:
        result: of `swsdist.evaluation.evaluate.evaluate`, by STDEval's rules.
    """
    parts = [result.parts[kind] for kind in _KINDS if kind in result.parts] + [result.whole]
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
