"""A scored list as JSON, as a short summary, and as tables for other programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.fingerprint import plain
from swsdist.evaluation.evaluate import Evaluation, Part
from swsdist.io.notices import Notice
from swsdist.registry.registries import MEASURES
from swsdist.report.data import quantity_of
from swsdist.report.summary import NOTHING, fixed, rejects_all, undefined_note, undefined_reasons
from swsdist.report.tables import Table
from swsdist.score.measures.curve import Ranking
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
ALIGNMENT = pa.schema(
    [
        ("language", pa.string()),
        ("file", pa.string()),
        ("channel", pa.int32()),
        ("termid", pa.string()),
        ("term", pa.string()),
        ("ref_bt", pa.float64()),
        ("ref_et", pa.float64()),
        ("sys_bt", pa.float64()),
        ("sys_et", pa.float64()),
        ("sys_score", pa.float64()),
        ("sys_decision", pa.string()),
        ("alignment", pa.string()),
    ]
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
