"""Commands that measure and forecast the time of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from swsdist.cli.options import FILE, SET, Integer, Number, allow_commands
from swsdist.core.codes import families

if TYPE_CHECKING:
    from swsdist.pipeline.forecast.costs import Cluster
    from swsdist.pipeline.forecast.forecast import Forecast

_NODE: dict[str, Any] = {"nodes": 1, "cpus": 1}
_SHARED = ("start_s", "repair_s", "node_mb_s", "storage_mb_s")


def _numbers(context: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Integers separated by commas."""
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of integers such as 1,2,4") from None


@click.command()
@click.argument("config", required=False, type=FILE)
@SET
@click.option("--folder", metavar="FOLDER", help="Folder of results. [default: bench beside the run folder]")
@click.option(
    "--workers", callback=_numbers, default="1,2", show_default=True, metavar="N,N,...", help="Worker counts."
)
@click.option(
    "--times", callback=_numbers, default="1,2", show_default=True, metavar="N,N,...", help="Multiples of the data."
)
@click.option("--repeats", type=Integer(1), default=3, show_default=True, help="Runs per point.")
@click.option("--seed", type=Integer(), default=0, show_default=True, help="Seed of the order.")
@click.option("--keep", is_flag=True, help="Keep the run folders.")
@click.option(
    "--compare", nargs=2, metavar="A B", type=click.Path(exists=True), help="Compare two results; run nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@allow_commands
def bench(
    config: str | None,
    sets: tuple[str, ...],
    folder: str | None,
    workers: tuple[int, ...],
    times: tuple[int, ...],
    repeats: int,
    seed: int,
    keep: bool,
    compare: tuple[str, str] | None,
    as_json: bool,
) -> int:
    """Time whole runs of CONFIG for several worker counts and data sizes.

    Points run in random order, after a warm-up run; the same command continues after an interruption. Writes bench.json,
    bench.html and figures.

    \b
    swsdist bench config.yaml --workers 1,2,4 --times 1,2,4 --repeats 5
    swsdist bench --compare before/bench.json after/bench.json
    """
    if (config is None) == (compare is None):
        raise click.UsageError("Give a CONFIG to time, or --compare with two results.")
    if compare is not None:
        from swsdist.bench.results import compare_results, comparison_json, comparison_lines, read_results

        result = compare_results(read_results(compare[0]), read_results(compare[1]))
        print(comparison_json(result) if as_json else "\n".join(comparison_lines(result)))
        return 0
    import sys
    from pathlib import Path

    from swsdist.bench.page import text_lines, write_page
    from swsdist.bench.results import Plan, run_benchmark
    from swsdist.config import load_config
    from swsdist.io.filesystem import is_remote

    assert config is not None
    loaded = load_config(config, sets)
    if folder is None and is_remote(loaded.run):
        raise families.UNSUPPORTED(
            "the run folder is on a server", "name a local folder for the results: --folder FOLDER", where="run"
        )
    place = Path(folder) if folder is not None else Path(loaded.run).parent / "bench"
    plan = Plan(workers, times, repeats, seed, keep)
    results = run_benchmark(loaded, place, plan, lambda line: print(line, file=sys.stderr))
    write_page(results, place)
    text = (place / "bench.json").read_text("utf-8") if as_json else "\n".join(text_lines(results))
    print(text)
    if not as_json:
        print(f"written: {place}/bench.json, {place}/bench.html")
    return 0


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--hours", type=Number(0, min_open=True), help="Hours of documents. [default: those of RUN]")
@click.option("--queries", type=Number(0, min_open=True), help="Query examples. [default: those of RUN]")
@click.option("--nodes", type=Integer(1), help="Nodes. [default: 1]")
@click.option("--cpus", type=Integer(1), help="CPUs per node. [default: 1]")
@click.option("--memory-gb", type=Number(), help="Memory per node, GB. [default: enough]")
@click.option("--speed", type=Number(), help="CPU speed relative to RUN's machine. [default: 1]")
@click.option("--price", type=Number(), help="Price of a node hour. [default: 0]")
@click.option("--mtbf-hours", type=Number(), help="Mean time between failures of a node. [default: none]")
@click.option("--start-s", type=Number(), help="Start of a worker, s. [default: 10]")
@click.option("--repair-s", type=Number(), help="Replacement of a failed node, s. [default: 300]")
@click.option("--node-mb-s", type=Number(), help="Bandwidth of a node, MB/s. [default: RUN's]")
@click.option("--storage-mb-s", type=Number(), help="Bandwidth of the storage, MB/s. [default: unlimited]")
@click.option(
    "--cluster", type=click.Path(exists=True, dir_okay=False), help="YAML file with these keys and kinds of nodes."
)
@click.option("--driver-ms", type=Number(0), default=1.0, show_default=True, help="Driver time per task, ms.")
@click.option("--until", metavar="STEP", help="Last step to include.")
@click.option("--repeats", type=Integer(1), default=5, show_default=True, help="Simulated runs.")
@click.option("--seed", type=Integer(), default=0, show_default=True, help="Seed of the simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def forecast(
    runs: tuple[str, ...],
    hours: float | None,
    queries: float | None,
    cluster: str | None,
    driver_ms: float,
    until: str | None,
    repeats: int,
    seed: int,
    as_json: bool,
    **options: Any,
) -> int:
    """Forecast the time and cost of a run like RUN on more hours, queries and machines.

    A simulator schedules tasks with the times in RUN's receipts. Further runs with more or less data show what grows with the
    work.

    \b
    swsdist forecast run --hours 10000 --nodes 100 --cpus 16 --price 0.8
    """
    import sys

    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.forecast.costs import costs_of, left_out, pooled_costs
    from swsdist.pipeline.forecast.forecast import forecast as foresee
    from swsdist.pipeline.status import load_partial_run

    chain_run, *others = (load_partial_run(Folder(run)) for run in runs)
    config = chain_run.config
    if until is not None:
        chain_run.chain.step(until)
    costs = pooled_costs(costs_of(chain_run), *map(costs_of, others))
    lacking = left_out(chain_run, costs)
    if until is not None:
        names = ["start", *(step.name for step in chain_run.chain.steps), "report"]
        later = names[names.index(until) + 1 :]
        costs = [cost for cost in costs if cost.name not in later]
        lacking = [name for name in lacking if name not in later]
    machines = _cluster(cluster, {name: value for name, value in options.items() if value is not None})
    result = foresee(
        costs,
        machines,
        config.executor,
        chain_run.chain.inputs.hours,
        keep=config.reduce.nbest,
        buckets=config.reduce.buckets_for,
        hours=hours,
        queries=queries,
        repeats=repeats,
        seed=seed,
        driver_task_s=driver_ms / 1000,
    )
    if as_json:
        from swsdist.pipeline.forecast.forecast import as_json as json_of

        print(json_of(result, lacking))
    else:
        _show(result)
        if lacking:
            print(f"warning: not in the forecast, for want of receipts: {', '.join(lacking)}", file=sys.stderr)
    return 0


def _cluster(path: str | None, options: dict[str, Any]) -> Cluster:
    """The cluster of a file, or of the options."""
    from swsdist.pipeline.forecast.costs import cluster_of

    if path is None:
        cluster: dict[str, Any] = {name: options.pop(name) for name in _SHARED if name in options}
        cluster["kinds"] = [{**_NODE, **options}]
        return cluster_of(cluster, "the options")
    if options:
        option = "--" + next(iter(options)).replace("_", "-")
        raise families.CONFLICTING_OPTIONS(
            "{option} is given along with a cluster file", "give the file or the options", where=path, option=option
        )
    from pathlib import Path

    from swsdist.config.reading import Draft, Origin, read
    from swsdist.core.codes import config as config_codes

    origin = Origin(path, str(Path(path).parent), line=1)
    draft = Draft(origins={(): origin})
    values = read(Path(path).read_text("utf-8-sig"), (), draft, origin)
    if not isinstance(values, dict) and not draft.problems:
        draft.complain((), config_codes.NOT_A_MAPPING, what="cluster file")
    if draft.problems or not isinstance(values, dict):
        raise draft.error("write keys such as kinds: and start_s:")
    return cluster_of(values, path)


def _show(result: Forecast) -> None:
    from swsdist.report.summary import short, span
    from swsdist.report.tables import Table, text_lines

    rows = []
    for step in result.steps:
        times = (step.wall, step.driver, step.ideal, step.waiting, step.longest)
        rows.append([step.name, str(step.tasks), *map(span, times), step.bound])
    columns = ["step", "tasks", "wall", "driver alone", "all busy", "waiting", "longest task", "bound by"]
    table = Table(f"Forecast of {len(rows)} steps", columns, rows, texts=(0, 7))
    nodes = "1 node" if result.cluster.nodes == 1 else f"{result.cluster.nodes} nodes"
    workers = "1 worker" if result.run.workers == 1 else f"{result.run.workers} workers"
    queries = f" with {short(result.queries)} query examples" if result.queries else ""
    lines = [
        f"{short(result.hours)} hours{queries} on {nodes}, {workers}:",
        f"wall: {span(result.wall_s)} ({span(result.low_s)} to {span(result.high_s)}), bound by {result.run.total.bound}",
        f"node hours: {short(result.node_hours)}" + (f"; cost: {short(result.price)}" if result.cluster.price else ""),
        f"of the wall: driver alone {result.share('driver'):.1%}, all workers busy {result.share('ideal'):.1%}, "
        f"some waiting {result.share('waiting'):.1%}; workers at useful tasks: {result.efficiency:.1%}",
    ]
    if result.took is not None:
        hours, wall, by = result.took
        lines.append(f"extrapolated from {short(hours)} h, {span(wall)}, {by} worker{'' if by == 1 else 's'}")
    if result.run.failures:
        lines.append(f"failures of nodes: {result.run.failures}; work lost: {span(result.run.lost)}")
    if result.run.failed:
        lines.append(f"tasks failed for good: {result.run.failed}; raise executor.actor_restarts or executor.attempts")
    print("\n".join([*text_lines(table), "", *lines]))
