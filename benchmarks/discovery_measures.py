"""Measures of term discovery: CPU and peak memory of a fresh process a case and mode, against the reference programs.

The cases are ../shared/golden/zerospeech. What the programs took was measured once, elsewhere, on one core of a shared machine
(facts on ZeroSpeech, section 7), so the ratios are of two machines. Our CPU is without imports; peaks have them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.rows import Row, at_least, at_most, main, say

CASES = Path(__file__).resolve().parents[1].parent / "shared" / "golden" / "zerospeech"

#: Seconds of the program of a mode; of `seed`, which no program computes, those of a brute force by its definitions.
_REFERENCES = {
    "m01_english_sample": {"seed": 29, "tdev2": 28, "tde1": 23},
    "m02_mandarin": {"seed": 131, "tdev2": 22, "tde1": 53},
    "m03_mboshi_words": {"seed": 3.6, "tdev2": 1.6, "tde1": 27},
    "m04_mboshi_phones": {"seed": 5.2, "tdev2": 2.1, "tde1": 13},
}
_LARGE = ("m01_english_sample", "m02_mandarin")

_SCORE = """
import importlib, json, resource, sys, time
from swsdist.discovery.evaluate import score_files
from swsdist.discovery.evaluate import Files
from swsdist.io.notices import Notices
from swsdist.registry.registries import DISCOVERY_MODES
mode, *names = json.loads(sys.argv[1])
DISCOVERY_MODES[mode].load()
if mode == "seed":
    from swsdist.registry.registries import DISCOVERY_MEASURES
    for name in DISCOVERY_MEASURES:
        DISCOVERY_MEASURES[name].load()
begin = time.process_time()
classes, phones, words, talkers, cross, within, split, gold = names
tde1 = mode == "tde1"
folds = {} if mode == "tdev2" else {"cross": cross, "within": within}
score_files(Files(classes, phones, words, talkers, folds, split, gold if tde1 else None), mode, Notices())
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([time.process_time() - begin, usage.ru_maxrss / 1000]))
"""
_FILES = (
    *("disc.class", "gold.phn", "gold.wrd", "talkers.txt"),
    *("folds.cross", "folds.within", "gold.split", "gold.classes"),
)


def measure(scratch: Path) -> list[Row]:
    """All rows, or none with a value where the cases are not there."""
    rows = []
    for case, references in _REFERENCES.items():
        if not (CASES / case).is_dir():
            rows.append(Row(f"{case} (not beside the checkout)", None, ""))
            continue
        for mode, seconds in references.items():
            say(f"discovery_measures: {case}, {mode}")
            cpu, peak = _score(case, mode)
            least = at_least(50) if case in _LARGE and mode != "seed" else None
            rows.append(Row(f"{case}, {mode}: CPU of the reference / ours", seconds / cpu, "times", least))
            rows.append(Row(f"{case}, {mode}: our CPU", cpu, "s"))
            rows.append(Row(f"{case}, {mode}: our peak RSS", peak, "MB", at_most(150)))
    return rows


def _score(case: str, mode: str) -> tuple[float, float]:
    """CPU seconds and peak MB of a fresh process."""
    names = []
    for name in _FILES:
        plain = CASES / case / name
        names.append(str(plain if plain.exists() else plain.with_name(f"{name}.xz")))
    command = [sys.executable, "-c", _SCORE, json.dumps([mode, *names])]
    cpu, peak = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return cpu, peak


if __name__ == "__main__":
    main(measure, __doc__)
