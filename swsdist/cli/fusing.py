"""Commands that calibrate a system's list, and fuse those of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from swsdist.cli.options import (
    Integer,
    Number,
    OutputCommand,
    has_references,
    save_fitted,
    task_options,
    task_or_point,
    warn,
    written,
)
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.registry.registries import READERS, WRITERS

if TYPE_CHECKING:
    from swsdist.evaluation.scoring_task import KaldiOptions


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


@click.command(cls=OutputCommand)
@click.option(
    "-s", "--system", required=True, metavar="FILE", help="STDLIST, KWSLIST, table (CSV, Parquet) or Kaldi's results."
)
@click.option(
    "--method",
    metavar="STEPS",
    required=True,
    help="Comma-separated calibration steps; or none, threshold, oracle-kst, kaldi.",
)
@click.option("--out", required=True, type=written(), metavar="FILE", help="New list: .xml, .csv or .parquet.")
@click.option("--format", "kind", type=click.Choice(list(WRITERS)), help="Format of --out. [default: by its ending]")
@click.option("--alpha", type=Number(), help="Factor on S(w), the expected occurrences. [default: 1.5; kaldi: 1]")
@click.option(
    "--fit",
    metavar="HOW",
    help="Fit by: crossfit, oracle, a file, a finished run, none. [default: crossfit]",
)
@click.option("--folds", type=Integer(max=1000), default=5, show_default=True, help="Query folds of crossfit.")
@click.option(
    "--set", "options", multiple=True, metavar="STEP.OPTION=VALUE", help="Set an option of a step; repeatable."
)
@click.option("--prior", type=Number(), help="Effective prior of the logistic.")
@click.option("--keep-scores", is_flag=True, help="Only decide; keep the scores.")
@click.option("--save", type=written(".json"), metavar="FILE", help="Write the fitted model, for --fit on other data.")
@click.option(
    "--from", "source", type=click.Choice(list(READERS)), help="Format of --system. [default: by its content]"
)
@click.option("--kaldi-segments", metavar="FILE", help="Kaldi's segments: times of utterances.")
@click.option("--kaldi-utter-map", metavar="FILE", help="Kaldi's utter_map, reco2file_and_channel or wav.scp.")
@click.option("--kaldi-utter-id", metavar="FILE", help="Kaldi's utter_id: numbers of utterances.")
@click.option("--kaldi-frame-shift", type=Number(), default=0.01, show_default=True, help="Seconds per frame.")
@task_options
def calibrate(
    system: str,
    out: str,
    kind: str | None,
    source: str | None,
    save: str | None,
    strict: bool,
    **options: Any,
) -> int:
    """Calibrate the scores of any list, and decide.

    \b
    none        convert the list
    logistic    scores to probabilities; decisions stay
    threshold   decide by the threshold of best TWV; scores stay
    kst, sto    normalise scores, decide by the method's threshold
    oracle-kst  KST with the true number of occurrences
    kaldi       as Kaldi's write_kwslist.pl
    STEP,...    steps of calibrate.steps in a config, such as llr; threshold may be last

    \b
    swsdist calibrate -s list.xml --method kst -e ecf.xml -r ref.rttm -t tlist.xml --out kst.xml
    swsdist calibrate -s posteriors.csv --method sto --seconds 36000 --protocol openkws13 --out sto.csv
    swsdist calibrate -s results --kaldi-segments segments --method none --out kwslist.xml
    """
    from pathlib import Path

    from swsdist.config.loader import section_values
    from swsdist.core.codes import cli as codes
    from swsdist.evaluation.calibration import CalibrationRequest
    from swsdist.evaluation.calibration import calibrate as work
    from swsdist.evaluation.reading import protocol_for
    from swsdist.evaluation.scoring_task import read_system, reader_of
    from swsdist.evaluation.writing import write_list
    from swsdist.io.notices import Notices

    notices = Notices(strict, options["force"])
    reader = source or reader_of(system)
    kaldi = _kaldi(system, reader, kind, options)
    rules = protocol_for(options["protocol"], options["terms"], beta=options["beta"])
    task, point = task_or_point(options, rules, notices)
    request = CalibrationRequest(
        fit=fitted_file(options["fit"]),
        options=section_values(options["options"], "options"),
        **{name: options[name] for name in ("method", "folds", "alpha", "prior", "keep_scores")},
    )
    listed = read_system(system, conventions=rules.rules, notices=notices, kaldi=kaldi, reader=reader)
    if save is not None and not request.fits(listed.detections["score"]):
        raise codes.NOTHING_TO_SAVE(where=f"--save {save}", remedy="name what to fit (--method, --fit)")
    result = work(listed, request, task, point)
    written = write_list(result.detections, Path(out), listed, task, kind, kaldi)
    open_ones = result.detections["decision"].null_count if written in ("stdlist", "kwslist") else 0
    header = rules.describe(point if task is None else task.point)
    print(
        "\n".join(
            [header, *result.lines, f"{out}: written ({written}{', undecided detections as NO' if open_ones else ''})"]
        )
    )
    save_fitted(save, result.fitted)
    warn(notices)
    return 0


def fitted_file(fit: str | None) -> str | None:
    """The value of `--fit`; a run folder becomes the fitted file in it."""
    if fit in (None, "none", "crossfit", "oracle"):
        return fit
    from swsdist.stages.inputs.provenance import calibration_place

    return calibration_place(str(fit), {}, f"--fit {fit}")


def _kaldi(system: str, reader: str, kind: str | None, options: Mapping[str, Any]) -> KaldiOptions:
    """The times of Kaldi's utterances, from the options."""
    from swsdist.corpora.kaldi import read_utterances
    from swsdist.evaluation.scoring_task import KaldiOptions

    files = (options["kaldi_segments"], options["kaldi_utter_map"], options["kaldi_utter_id"])
    if reader != "kaldi" and kind != "kaldi" and any(file is not None for file in files):
        raise families.UNUSED_OPTION.of(UserError)(
            "the file is not in Kaldi's format, so --kaldi-... options do not apply",
            "remove the --kaldi-... options; if it is Kaldi's, give --from kaldi",
            where=system,
        )
    places = read_utterances(
        segments=options["kaldi_segments"],
        recordings=options["kaldi_utter_map"],
        utter_id=options["kaldi_utter_id"],
    )
    return KaldiOptions(places, options["kaldi_frame_shift"])
