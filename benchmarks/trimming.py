"""Queries as people record them: what background around the words costs, and what trimming (`queries.trim`) gets back.

Mboshi dev with `configs/mboshi-dev.yaml`: its queries as they were cut, and the same words with 0.2 to 0.8 s of background on
both sides (`dev-margins`), each with and without trimming. Goals are relative to the cut words that are not trimmed. Pair AUC
is the mean over queries (`pair_auc` of reports).
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Goal, Row, at_least, at_most, main, say
from swsdist import api
from swsdist.config import load_config

_MEASURES = {"MTWV": "mtwv", "pair AUC": "pair_auc", "min Cnxe": "cnxe_min"}
_MARGINS = ROOT.parent / "shared" / "data" / "mboshi" / "dev-margins" / "queries.csv"


def measure(scratch: Path) -> list[Row]:
    """Twelve figures, four of them with goals."""
    if mboshi() is None or not _MARGINS.is_file():
        return [Row("trimming (Mboshi dev is not beside the checkout)", None, "")]
    cases = {
        "cut words": ("queries.trim=none",),
        "cut words, trimmed": ("queries.trim=auto",),
        "with background": ("queries.trim=none", f"corpus.queries={_MARGINS}"),
        "with background, trimmed": ("queries.trim=auto", f"corpus.queries={_MARGINS}"),
    }
    found: dict[str, dict[str, float]] = {}
    for k, (name, sets) in enumerate(cases.items()):
        say(f"trimming: {name}")
        places = [f"run={scratch / f'run{k}'}", f"index.store={scratch / 'store'}", "report.exports=[]"]
        measures = api.run(load_config(ROOT / "configs" / "mboshi-dev.yaml", [*places, *sets])).measures()
        found[name] = {label: measures[key] for label, key in _MEASURES.items()}
    whole = found["cut words"]
    goals: dict[tuple[str, str], Goal] = {
        ("cut words, trimmed", "pair AUC"): at_least(whole["pair AUC"] - 0.003),
        ("with background, trimmed", "pair AUC"): at_least(whole["pair AUC"] - 0.01),
        ("with background, trimmed", "min Cnxe"): at_most(whole["min Cnxe"] + 0.02),
        ("with background, trimmed", "MTWV"): at_least(0.95 * whole["MTWV"]),
    }
    return [
        Row(f"{name}: {label}", value, "", goals.get((name, label)))
        for name, values in found.items()
        for label, value in values.items()
    ]


if __name__ == "__main__":
    main(measure, __doc__)
