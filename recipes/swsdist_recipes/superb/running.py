"""Run SUPERB's search and score it as the evaluation does: the development queries by layer, then the best layer on eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from swsdist.chains.sweep.running import notices_of, receipts_of
from swsdist.config import Config
from swsdist.evaluation.evaluate import evaluate, values
from swsdist.evaluation.reading import read_task
from swsdist.evaluation.scoring_task import make_system
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.pipeline.driver import run_plans
from swsdist.pipeline.ledger import demand_run_folder
from swsdist.pipeline.operation.progress import Progress
from swsdist.score.measures.protocol import protocol
from swsdist_recipes.quesst.database import SCORES, GroundTruth, QuesstDatabase, Split
from swsdist_recipes.superb import codes
from swsdist_recipes.superb.plans import System, config_of_layer, write_config, write_inputs

#: Names of measures here, and among QUESST's.
KEYS = {"mtwv": "mtwv", "atwv": "atwv", "min_cnxe": "cnxe_min"}
Measures = Mapping[str, float]

#: Score of trials that were not searched: those of other languages.
NOT_SEARCHED = -10.0


@dataclass(frozen=True, eq=False)
class Superb:
    """The results of a model.

    Attributes:
        folder: of the run.
        name: of the model.
        variant: of the search.
        dev: values by layer, ascending.
        best: the layer of the greatest MTWV on dev, the lowest of equal ones.
        eval: values of that layer on eval.
        lists: the trials of that layer by set (`swsdist_recipes.quesst.database.SCORES`), of searched documents and queries.
        cpu: CPU seconds by stage, of all work in the folder that these results need, now or earlier.
        tasks_done: tasks that were done now.
        notices: warnings.
    """

    folder: Folder
    name: str
    variant: str
    dev: Mapping[int, Measures]
    best: int
    eval: Measures
    lists: Mapping[Split, pa.Table]
    cpu: Mapping[str, float]
    tasks_done: int
    notices: tuple[str, ...]


@dataclass
class _Work:
    """What the plans that were run so far cost."""

    cpu: dict[tuple[str, str], float] = field(default_factory=dict)
    tasks_done: int = 0
    notices: dict[str, None] = field(default_factory=dict)


def run_superb(system: System, database: QuesstDatabase, run: str, progress: Progress) -> Superb:
    """Search and score; finished work is kept.

    Args:
        system: what is searched with.
        database: what is searched.
        run: the run folder.
        progress: receives events.

    Raises:
        ConfigError: an override is not valid.
        IncompleteError: a task failed.
        UserError, DataError: as of `run_plans`.
    """
    first = config_of_layer(run, database, system, "dev", min(system.tracks))
    folder, work = Folder(first.run, first.storage), _Work()
    demand_run_folder(folder)
    write_inputs(folder, database)
    searched = _run(folder, system, database, "dev", tuple(system.tracks), progress, work)
    dev = {layer: scored(trials, database.truth["dev"]) for layer, trials in searched.items()}
    best = max(dev, key=lambda layer: (dev[layer]["mtwv"], -layer))
    (trials,) = _run(folder, system, database, "eval", (best,), progress, work).values()
    cpu: dict[str, float] = {}
    for (stage, _), seconds in work.cpu.items():
        cpu[stage] = cpu.get(stage, 0.0) + seconds
    return Superb(
        folder,
        system.name,
        system.variant,
        dev,
        best,
        scored(trials, database.truth["eval"]),
        {"dev": searched[best], "eval": trials},
        cpu,
        work.tasks_done,
        tuple(work.notices),
    )


def scored(trials: pa.Table, truth: GroundTruth) -> Measures:
    """MTWV, ATWV and least Cnxe of a list as the evaluation's program gives them, with the score -10 for what was not searched.

    Args:
        trials: schema SCORES.
        truth: what they are scored against, of all languages.

    Raises:
        UserError, DataError: as of `read_task` and `evaluate`.
    """
    rules, files = protocol("quesst", default_score=NOT_SEARCHED), truth.files
    task = read_task(ecf=files["ecf"], rttm=files["rttm"], terms=files["terms"], protocol=rules)
    zeros = pa.array(np.zeros(len(trials)))
    system = make_system(trials.append_column("start", zeros).append_column("end", zeros))
    result = values(evaluate(task, system, by_type=False), ("quesst",))
    return {name: result[f"quesst_{key}"] or 0.0 for name, key in KEYS.items()}


def _run(
    folder: Folder,
    system: System,
    database: QuesstDatabase,
    split: Split,
    layers: Sequence[int],
    progress: Progress,
    work: _Work,
) -> dict[int, pa.Table]:
    """Trials by layer."""
    configs: dict[str, Config] = {}
    for layer in layers:
        config = config_of_layer(folder.root, database, system, split, layer)
        plan = f"{split}-layer{layer}"
        write_config(folder, plan, config)
        configs[plan] = config
    outcome = run_plans(configs, StepSelection(table="scored", shared=True), progress)
    if outcome.failures:
        failure = outcome.failures[0]
        first = f"{failure.task.stage}, {failure.task.label}: {failure.message.splitlines()[0]}"
        raise codes.SUPERB_TASKS_FAILED(where=folder.path(), count=len(outcome.failures), first=first)
    work.tasks_done += outcome.tasks_done
    work.notices |= dict.fromkeys(notices_of(outcome.chain_runs.values()))
    for chain_run in outcome.chain_runs.values():
        for receipt in receipts_of(chain_run):
            work.cpu[receipt.stage, receipt.fingerprint] = receipt.cost.cpu
    return {
        layer: _trials(chain_run, database, split)
        for layer, chain_run in zip(layers, outcome.chain_runs.values(), strict=True)
    }


def _trials(chain_run: ChainRun, database: QuesstDatabase, split: Split) -> pa.Table:
    """All trials of a set, by query, with four decimals as in SUPERB's list; those of queries that were not searched have 0."""
    table = pa.concat_tables(
        [SCORES.empty_table(), *(part.select(SCORES.names).cast(SCORES) for part in chain_run.read("scored"))]
    )
    rounded = pa.array(np.round(table["score"].to_numpy(), 4))
    table = table.set_column(SCORES.get_field_index("score"), SCORES.field("score"), rounded)
    short = sorted(database.queries[split].keys() - set(table["query_id"].to_pylist()))
    documents = list(database.documents)
    rows = {
        "query_id": [query for query in short for _ in documents],
        "doc_id": documents * len(short),
        "score": [0.0] * (len(short) * len(documents)),
        "decision": [False] * (len(short) * len(documents)),
    }
    return pa.concat_tables([table, pa.table(rows, schema=SCORES)]).sort_by("query_id")
