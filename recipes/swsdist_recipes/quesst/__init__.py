"""QUESST, MediaEval's query by example task of 2014 and 2015: its program's measures, and the database of 2014."""

from __future__ import annotations

from swsdist.registry.entries import MeasureEntry, Quantity


def _of_quesst(key: str, label: str) -> tuple[Quantity, ...]:
    return (
        Quantity(f"{key}_atwv", f"{label} ATWV"),
        Quantity(f"{key}_mtwv", f"{label} MTWV"),
        Quantity(f"{key}_mtwv_threshold", f"{label} MTWV threshold", "", 5, "score", f"{key}_mtwv"),
        Quantity(f"{key}_cnxe", f"{label} Cnxe", "lowest"),
        Quantity(f"{key}_cnxe_min", f"{label} min Cnxe", "lowest"),
    )


#: Of the scores as they are, and with a threshold or recalibration per query.
ENTRY = MeasureEntry(
    "swsdist_recipes.quesst.measure:QuesstValues",
    1,
    (*_of_quesst("quesst", "QUESST"), *_of_quesst("quesst_per_query", "QUESST per-query")),
    takes="quesst",
    basic=True,
)
