"""Does a worker's memory grow with the collection? Ten times the documents against once, and one recording of three hours
against one of 18 minutes.

Shards have a fixed size, so ten times the documents are ten times the tasks. Two Ray workers do them. Of each stage the
highest peak of a task is taken: VmHWM, reset when a task begins, as its receipt tells. Of the workers the highest PSS that
their journals hold (one sample a second, and one at each task's end). Both include what a process weighs before its first
task, so the growth in MB stands beside each ratio.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.corpora import Corpus, base, one_recording, repeated
from benchmarks.rows import Row, at_most, main, say
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from tests.support.journals import read_journals

_STAGES = ("index", "search", "reduce", "normalise")
_WORKER = "worker PSS"
_LIMIT = at_most(1.1)


def measure(scratch: Path) -> list[Row]:
    """Two pairs of runs."""
    corpus = base(scratch)
    one = _peaks(corpus, scratch)
    ten = _peaks(repeated(corpus, 10, scratch), scratch)
    rows = _compare(f"{corpus.name}, documents x 10", one, ten, (*_STAGES, _WORKER))
    short = _peaks(one_recording(corpus, 1080.0, scratch), scratch)
    long = _peaks(one_recording(corpus, 10_800.0, scratch), scratch)
    return rows + _compare("one recording, 3 h against 18 min", short, long, ("index", "search", _WORKER))


def _compare(name: str, less: dict[str, int], more: dict[str, int], what: tuple[str, ...]) -> list[Row]:
    rows = []
    for part in what:
        label = part if part == _WORKER else f"peak of {part} tasks"
        rows += [
            Row(f"{name}: {label}", more[part] / less[part], "ratio", _LIMIT),
            Row(f"{name}: {label}, from", less[part] / 1e6, "MB"),
            Row(f"{name}: {label}, growth", (more[part] - less[part]) / 1e6, "MB"),
        ]
    return rows


def _peaks(corpus: Corpus, scratch: Path) -> dict[str, int]:
    """Bytes: the highest peak of a task by stage, and the highest PSS of a worker."""
    say(f"memory: {corpus.name}")
    run = scratch / "run"
    config = corpus.config(run, index={"shard_hours": 0.25}, executor={"kind": "ray", "workers": 2})
    outcome = run_stages(config, StepSelection(until="normalise"), Progress())
    if outcome.failures:
        raise RuntimeError(f"{len(outcome.failures)} tasks failed: {outcome.failures[0].message}")
    peaks = {
        stage: max(receipt.cost.peak_bytes for receipt in outcome.chain_run.outcomes[stage].receipts)
        for stage in _STAGES
    }
    workers = [lines for lines in read_journals(Folder(str(run))) if lines[0]["role"] == "worker"]
    peaks[_WORKER] = max(line["pss"] for lines in workers for line in lines if line["event"] == "sample")
    shutil.rmtree(run)
    return peaks


if __name__ == "__main__":
    main(measure, __doc__)
