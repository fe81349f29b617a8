"""The command that fuses the lists of several systems."""

from __future__ import annotations

from typing import Any

import click

from swsdist.cli.options import Integer, Number, has_references, task_options, task_or_point, warn
from swsdist.cli.outputs import OutputCommand, save_fitted, written
from swsdist.registry.registries import WRITERS


@click.command(cls=OutputCommand)
@click.argument("systems", nargs=-1, required=True, metavar="LIST...")
@click.option("-o", "--out", required=True, type=written(), metavar="FILE", help="New list: .xml, .csv or .parquet.")
@click.option("--format", "kind", type=click.Choice(list(WRITERS)), help="Format of --out. [default: by its ending]")
@click.option(
    "--scores",
    type=click.Choice(["q-norm", "as-given"]),
    default="q-norm",
    show_default=True,
    help="Normalise scores per query and list first, or not.",
)
@click.option(
    "--missing",
    type=click.Choice(["average", "least"]),
    default="average",
    show_default=True,
    help="Score of a missing detection: average of the others, or the query's least.",
)
@click.option(
    "--meet",
    type=click.Choice(["overlap", "middle"]),
    default="overlap",
    show_default=True,
    help="Merge detections that overlap, or by mid-points.",
)
@click.option(
    "--overlap", type=Number(), default=0.5, show_default=True, help="Least overlap, as a fraction of the shorter one."
)
@click.option(
    "--fit",
    metavar="HOW",
    help="Fit weights by: crossfit, oracle, a file, a finished run, none (equal). [default: crossfit with references]",
)
@click.option("--folds", type=Integer(max=1000), default=5, show_default=True, help="Query folds of crossfit.")
@click.option(
    "--threshold",
    type=click.Choice(["own", "fitted"]),
    default="own",
    show_default=True,
    help="Threshold: ln(beta), or that of best TWV.",
)
@click.option(
    "--method",
    default="fusion",
    show_default=True,
    metavar="STEPS",
    help="Comma-separated calibration steps; the first one fuses.",
)
@click.option("--marks", is_flag=True, help="Add a weight for missing detections.")
@click.option("--prior", type=Number(), help="Effective prior of the fit. [default: operating point's]")
@click.option(
    "--between-queries", is_flag=True, help="Keep only the best of overlapping detections of different queries."
)
@click.option("--save", type=written(".json"), metavar="FILE", help="Write the fitted model, for --fit on other data.")
@task_options
def fuse(systems: tuple[str, ...], out: str, kind: str | None, save: str | None, strict: bool, **options: Any) -> int:
    """Fuse the lists of several systems: merge detections, impute missing scores, weight, decide.

    Each LIST is a STDLIST, KWSLIST, table or Kaldi's results; NAME=PATH names a system. With references the weights are fitted
    by logistic regression; without, they are equal.

    \b
    swsdist fuse dtw=a.xml words=b.xml -e ecf.xml -r ref.rttm -t tlist.xml -o fused.xml --save fusion.json
    swsdist fuse dtw=c.xml words=d.xml -e ecf2.xml --fit fusion.json -o fused2.xml
    """
    from pathlib import Path

    from swsdist.cli.calibrating import fitted_file
    from swsdist.core.codes import cli as codes
    from swsdist.evaluation.calibration import FusionRequest, fuse_lists
    from swsdist.evaluation.reading import protocol_for
    from swsdist.evaluation.scoring_task import named_paths, read_system
    from swsdist.evaluation.writing import kinds_of, write_list
    from swsdist.io.notices import Notices

    if kind is None:
        kinds_of(Path(out))
    same = ("meet", "overlap", "missing", "folds", "threshold", "marks", "prior", "between_queries", "method")
    request = FusionRequest(
        standardise=options["scores"] == "q-norm",
        fit=fitted_file(options["fit"]),
        **{name: options[name] for name in same},
    )
    if save is not None and request.how(references=has_references(options)) == "none":
        raise codes.NOTHING_TO_SAVE(where=f"--save {save}", remedy="give references, or a fitted file (--fit FILE)")
    notices = Notices(strict, options["force"])
    rules = protocol_for(options["protocol"], options["terms"], beta=options["beta"])
    task, point = task_or_point(options, rules, notices)
    lists = {
        name: read_system(path, conventions=rules.rules, notices=notices) for name, path in named_paths(systems).items()
    }
    result = fuse_lists(lists, request, task, point, notices)
    as_written = write_list(result.system.detections, Path(out), result.system, task, kind)
    header = rules.describe(point if task is None else task.point)
    print("\n".join([header, *result.lines, f"{out}: written ({as_written})"]))
    save_fitted(save, result.fitted)
    warn(notices)
    return 0
