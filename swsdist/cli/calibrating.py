"""Commands that turn scores into decisions, and that study how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_FILE = click.Path(dir_okay=False)


def _of_the_task(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say what was searched for, and by which rules."""
    for option in (
        click.option("--strict", is_flag=True, help="Odd inputs are errors."),
        click.option("--beta", type=float, help="Weight of false alarms, in place of the protocol's."),
        click.option("--protocol", metavar="NAME", help="Rules of counting. [default: stdeval; kwseval for a KWLIST]"),
        click.option("--seconds", type=float, help="Seconds that were searched, in place of an ECF."),
        click.option("--references", metavar="FILE", help="Table of occurrences, in place of a transcript."),
        click.option("-t", "--terms", metavar="FILE", help="TLIST or KWLIST."),
        click.option("--ctm", metavar="FILE", help="CTM word alignments, in place of an RTTM."),
        click.option("-r", "--rttm", metavar="FILE", help="RTTM, in which the terms are looked up."),
        click.option("-e", "--ecf", metavar="FILE", help="ECF: what was searched."),
    ):
        command = option(command)
    return command


@click.command()
@click.option("-s", "--system", required=True, metavar="FILE", help="STDLIST, KWSLIST, or a table of detections.")
@click.option(
    "--method",
    type=click.Choice(["logistic", "threshold", "kst", "sto", "oracle-kst"]),
    required=True,
    help="What to do with its scores.",
)
@click.option("--out", required=True, metavar="FILE", help="The new list: .xml, .csv or .parquet.")
@click.option("--format", "kind", type=click.Choice(["stdlist", "kwslist", "csv", "parquet"]), help="Of --out.")
@click.option("--alpha", default=1.5, show_default=True, help="kst, sto: a query occurs alpha times its S(w).")
@click.option(
    "--fit",
    metavar="HOW",
    help="Threshold or logistic from: crossfit, oracle, a file, none. [default: crossfit, where it is needed]",
)
@click.option("--folds", default=5, show_default=True, help="Folds of queries, for crossfit.")
@click.option("--prior", type=float, help="Effective prior that the logistic is fitted at.")
@click.option("--keep-scores", is_flag=True, help="kst, sto, oracle-kst: decide only, leave the scores.")
@click.option("--save", metavar="FILE", help="Write what was fitted, for --fit on other data.")
@_of_the_task
def calibrate(system: str, out: str, kind: str | None, save: str | None, strict: bool, **options: Any) -> int:
    """Turn the scores of any list into probabilities, normalised scores or decisions.

    \b
    logistic    scores become probabilities; decisions stay
    threshold   decisions by the threshold of best TWV; scores stay
    kst, sto    normalised scores, decided by the method's own threshold
    oracle-kst  the same, told how often each query occurs

    \b
    swsdist calibrate -s list.xml --method kst -e ecf.xml -r ref.rttm -t tlist.xml --out kst.xml
    swsdist calibrate -s posteriors.csv --method sto --seconds 36000 --protocol openkws13 --out sto.csv
    """
    from pathlib import Path

    from swsdist.io.notices import Notices
    from swsdist.run.calibrating import Request, operating_point
    from swsdist.run.calibrating import calibrate as work
    from swsdist.run.lists import write_list
    from swsdist.score.inputs import protocol_for, read_system, read_task

    notices = Notices(strict)
    rules = protocol_for(options["protocol"], options["terms"], beta=options["beta"])
    sources = {name: options[name] for name in ("rttm", "ctm", "references")}
    amount = {"ecf": options["ecf"], "total_seconds": options["seconds"]}
    task = point = None
    if any(sources.values()):
        task = read_task(**sources, **amount, terms=options["terms"], protocol=rules, notices=notices)
    else:
        point = operating_point(rules, **amount)
    names = ("method", "fit", "folds", "alpha", "prior", "keep_scores")
    request = Request(**{name: options[name] for name in names})
    given = read_system(system, conventions="kwseval" if rules.conventions == "kwseval" else "stdeval", notices=notices)
    result = work(given, request, task, point)
    written = write_list(result.detections, Path(out), given, task, kind)
    print("\n".join([*result.lines, f"{out}: written ({written})"]))
    if save is not None:
        if result.fitted is None:
            raise click.UsageError("Nothing was fitted, so there is nothing to --save.")
        Path(save).write_bytes(result.fitted)
        print(f"{save}: what was fitted")
    _warn(notices)
    return 0


def _warn(notices: Any) -> None:
    import sys

    for notice in notices.found.values():
        print(f"warning: {notice}", file=sys.stderr)


@click.command("kst-study")
@click.argument("systems", nargs=-1, metavar="[SYSTEM]...")
@click.option("--tasks", metavar="FILE", help="YAML with tasks and their systems, in place of SYSTEM and the files.")
@click.option("--out", metavar="DIR", help="Write figures 2 to 8 (SVG), study.json and study.html there.")
@click.option("--alpha", type=float, help="Compare at this alpha. [default: the best average of each method]")
@click.option(
    "--alphas", default="1:3:0.1", show_default=True, metavar="FROM:TO:STEP", help="Values of alpha to look at."
)
@click.option(
    "--fit",
    metavar="HOW",
    help="Logistic from: crossfit, oracle, a file, none. [default: crossfit, where it is needed]",
)
@click.option("--folds", default=5, show_default=True, help="Folds of queries, for crossfit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_of_the_task
def kst_study(
    systems: tuple[str, ...], tasks: str | None, out: str | None, alpha: float | None, alphas: str, **options: Any
) -> int:
    """Compare keyword specific thresholding and sum-to-one normalisation on one or many systems.

    Each SYSTEM is a list (STDLIST, KWSLIST, CSV, Parquet); NAME=PATH gives it a name. The first is the one that is shown
    alone. Systems of several tasks, languages for example, are named in a YAML file: --tasks.

    \b
    swsdist kst-study dnn.xml gmm.xml -e ecf.xml -r ref.rttm -t kwlist.xml --out study
    """
    from pathlib import Path

    from swsdist.calibrate.study import study
    from swsdist.io.notices import Notices
    from swsdist.report.study import study_json, text_lines, write_study
    from swsdist.run.studying import StudyFile, TaskSection, entries, named, read_study, steps

    if (tasks is None) == (not systems):
        raise click.UsageError("Name systems with --ecf, --rttm and --terms, or a YAML file: --tasks FILE.")
    notices = Notices(options["strict"])
    if tasks is not None:
        plan = read_study(tasks)
        rules = {name: options[name] for name in ("protocol", "beta") if options[name] is not None}
        plan = plan.model_copy(update=rules)
    else:
        names = ("ecf", "rttm", "ctm", "terms", "references", "seconds")
        section = TaskSection(**{name: options[name] for name in names}, systems=named(systems))
        plan = StudyFile(protocol=options["protocol"], beta=options["beta"], tasks={"task": section})
    prepared = entries(plan, fit=options["fit"], folds=options["folds"], notices=notices)
    found = study(prepared, alphas=steps(alphas), alpha=alpha)
    print(study_json(found) if options["as_json"] else "\n".join(text_lines(found)))
    if out is not None:
        written = write_study(found, Path(out), [str(notice) for notice in notices.found.values()])
        if not options["as_json"]:
            print(f"\nwritten: {', '.join(str(path) for path in written)}")
    _warn(notices)
    return 0
