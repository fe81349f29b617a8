"""Commands that score a run, any system's list, or discovered terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from swsdist.cli.options import (
    FILE,
    FILE_OR_FOLDER,
    Number,
    OutputCommand,
    allow_commands,
    task_files,
    task_options,
    warn,
    written,
)
from swsdist.report.pictures import PICTURES
from swsdist.report.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa


# STDEval and KWSEval write .txt and .det.
_TABLE = written(*TABLES, ".txt")
_DET = written(*PICTURES, ".csv", ".det")


@click.command(cls=OutputCommand)
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config; repeatable.")
@click.option("--dry-run", is_flag=True, help="Show the plan and an estimate of CPU hours; do nothing.")
@click.option("--all", "all_figures", is_flag=True, help="Print all figures and warnings at the end.")
@allow_commands
@task_options
@click.pass_context
@click.option("-s", "--system", metavar="FILE", help="STDLIST, KWSLIST, table (CSV, Parquet) or Kaldi's results.")
@click.option("--as-run", is_flag=True, help="Use the limits of the sws2012 command line.")
@click.option("-S", "--similarity", "tolerance", type=Number(), help="Tolerance of the mid-point rule, s.")
@click.option("-F", "--find", "word_gap", type=Number(), help="Greatest gap between a term's words, s.")
@click.option("-k", "--koefcorrect", "cost", type=Number(), help="Cost C of a false alarm.")
@click.option("-K", "--koefincorrect", "value", type=Number(), help="Value V of a hit.")
@click.option("-p", "--prob-of-term", "prior", type=Number(), help="Prior P of a term.")
@click.option("--cnxe-prior", type=Number(), help="Effective prior of Cnxe. [default: 1 / (1 + beta)]")
@click.option("-n", "-number-trials-per-sec", "--trials-per-second", type=Number(), help="Trials per second of audio.")
@click.option("-E", "--ecf-filter", is_flag=True, help="Ignore detections outside the ECF (KWSEval always does).")
@click.option("-P", "--pooled", is_flag=True, help="Pool all terms for the DET curve, not term-weighted.")
@click.option("-g", "--segments", is_flag=True, help="Segment trials, as in KWSEval.")
@click.option("--documents", is_flag=True, help="Document trials.")
@click.option(
    "-inc", "--include-refless", is_flag=True, help="Keep terms without references in the mean Pfa (KWSEval)."
)
@click.option("-j", "--only-answered", is_flag=True, help="Ignore terms that the system's list lacks (KWSEval).")
@click.option(
    "--default-score", type=Number(), help="Score of missing trials, for measures of all. [default: the least]"
)
@click.option("-A", "table", is_flag=True, help="Print only STDEval's table.")
@click.option(
    "-o",
    "--table",
    "table_file",
    is_flag=False,
    flag_value="-",
    type=written(dash=True),
    help="Write STDEval's table to a file; alone: as -A.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--all-measures", is_flag=True, help="Add MAP, P@10, equal error rates, cross entropies; with --json all others."
)
@click.option(
    "-d",
    "--det",
    type=_DET,
    help="Write the DET curve: .svg, .pdf, .png; points: .csv, .det with .det.plt.",
)
@click.option("--bands", is_flag=True, help="Add two standard errors on both sides of --det.")
@click.option("--measures", type=written(*TABLES), help="Write the measures: .csv, .tex, .md or .json.")
@click.option("--per-term", type=_TABLE, help="Write a row per term: .csv (or .txt), .tex, .md or .json.")
@click.option("-a", "--alignment", type=_TABLE, help="Write the alignment in KWSEval's columns; endings as --per-term.")
@click.option("-c", "--cache", metavar="FILE", help="Ignored; STDEval's cache of references.")
def score(
    context: click.Context,
    /,
    config: str | None,
    sets: tuple[str, ...],
    dry_run: bool,
    all_figures: bool,
    strict: bool,
    **options: Any,
) -> int:
    """Score the run of CONFIG, and write its report; or score any system's list.

    Short options are those of STDEval and KWSEval.

    \b
    swsdist score -e ecf.xml -r ref.rttm -t tlist.xml -s stdlist.xml
    """
    if config is not None:
        list_options = [
            param for param in context.command.params if param.name != "force" and options.get(param.name or "")
        ]
        if list_options:
            shown = max(list_options[0].opts, key=len)
            raise click.UsageError(
                f"CONFIG and {shown} do not go together: {shown} is for a list (--system); of a config set keys "
                "(--set score.beta=10), and `swsdist report RUN` writes tables and figures."
            )
        from swsdist.cli.running import configured, go

        loaded = configured(config, sets, strict=strict, force=options["force"])
        go(loaded, config, table="summary", dry_run=dry_run, all_figures=all_figures)
        return 0
    if all_figures:
        raise click.UsageError("--all is for a CONFIG; a list has --all-measures.")
    if options["system"] is None:
        raise click.UsageError("Give a CONFIG, or a list: --system FILE, with --ecf, --rttm and --terms.")
    return _score_list(options["system"], strict, options)


#: Options that override parts of a protocol.
_RULES = (
    *("segments", "documents", "beta", "tolerance", "word_gap", "cost", "value", "prior", "cnxe_prior"),
    *("trials_per_second", "as_run", "default_score"),
)


def _score_list(system: str, strict: bool, options: dict[str, Any]) -> int:
    from swsdist.evaluation.reading import protocol_for
    from swsdist.io.notices import Notices

    notices = Notices(strict, options["force"])
    rules = protocol_for(options["protocol"], options["terms"], **{name: options[name] for name in _RULES})
    from swsdist.evaluation.evaluate import evaluate, more_values, values
    from swsdist.evaluation.reading import read_task
    from swsdist.evaluation.scoring_task import read_system
    from swsdist.report.evaluation import (
        alignment_table,
        evaluation_json,
        measures_table,
        per_term_table,
        summary,
    )
    from swsdist.report.tables import table_of, write_tables

    task = read_task(**task_files(options), protocol=rules, ecf_filter=options["ecf_filter"], notices=notices)
    listed = read_system(system, conventions=task.conventions, notices=notices)
    flags = {name: options[name] for name in ("ecf_filter", "include_refless", "only_answered")}
    result = evaluate(task, listed, **flags)
    stdeval = task.conventions.prints_table and rules.trials == "time"
    if (options["table"] or options["table_file"]) and not stdeval:
        raise click.UsageError(f"STDEval's table is not defined for protocol {rules.name} and {rules.trials} trials.")
    scores = values(result) | (more_values(result) if options["all_measures"] else {})
    if options["measures"]:
        write_tables([measures_table(result, scores)], options["measures"])
    for make, caption, place in (
        (per_term_table, "Terms", options["per_term"]),
        (alignment_table, "Alignment", options["alignment"]),
    ):
        if place is not None and place.lower().endswith((".csv", ".txt")):
            _write_csv(make(result), place)
        elif place is not None:
            write_tables([table_of(make(result), caption)], place)
    if options["det"]:
        from swsdist.report.evaluation import write_det

        write_det(result, options["det"], pooled=options["pooled"], with_bands=options["bands"])
    if options["as_json"]:
        print(evaluation_json(result, scores))
    else:
        file = options["table_file"]
        alone = options["table"] or file == "-"
        if not alone:
            print(task.protocol.describe(task.point))
        if stdeval:
            from swsdist.report.evaluation import stdeval_report

            if file not in (None, "-"):
                Path(file).write_text(stdeval_report(result), encoding="utf-8")
            else:
                print(stdeval_report(result), end="")
        if not alone:
            print("\n".join(summary(result, scores)))
    warn(notices)
    return 0


def _write_csv(table: pa.Table, path: str) -> None:
    from swsdist.io.tables import write_csv

    write_csv(table, table.schema, Path(path))


@click.command("score-discovery")
@click.argument("fragments", metavar="CLASSES", type=FILE)
@click.option("--phones", required=True, type=FILE_OR_FOLDER, help="Gold phones: ZeroSpeech, CTM, TextGrid, ELAN.")
@click.option("--words", type=FILE_OR_FOLDER, help="Gold words, for type, token and boundary; formats as --phones.")
@click.option("--talkers", type=FILE, help="Lines DOC TALKER: adds within, across, and a fold per talker.")
@click.option("--folds", metavar="FILE|N", help="Folds: a file of intervals, or N parts of equal time of speech.")
@click.option(
    "--mode", metavar="NAME", default="seed", show_default=True, help="Whose numbers; tde1 and tdev2 are of recipes/."
)
@click.option("--split", type=FILE, help="Stretches of speech, if the mode needs them.")
@click.option("--gold-classes", type=FILE, help="Classes of equal phone strings, if the mode needs them.")
@click.option("--pairs", "given", flag_value="pairs", help="CLASSES is a list of pairs: DOC ON OFF DOC ON OFF.")
@click.option("--parse", "given", flag_value="parse", help="CLASSES is a parse: DOC ON OFF.")
@click.option("--phone-tier", "phone_tiers", multiple=True, metavar="NAME", help="Tier of phones; repeatable.")
@click.option("--word-tier", "word_tiers", multiple=True, metavar="NAME", help="Tier of words; repeatable.")
@click.option("--strict", is_flag=True, help="Warnings end with exit code 4.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all counts.")
def score_discovery(
    fragments: str,
    phones: str,
    words: str | None,
    talkers: str | None,
    folds: str | None,
    mode: str,
    split: str | None,
    gold_classes: str | None,
    given: str | None,
    phone_tiers: tuple[str, ...],
    word_tiers: tuple[str, ...],
    strict: bool,
    as_json: bool,
) -> int:
    """Score CLASSES of fragments of speech against phones and words.

    \b
    swsdist score-discovery disc.class --phones gold.phn --words gold.wrd
    """
    import json

    from swsdist.discovery.evaluate import Files, score_files, table
    from swsdist.io.notices import Notices

    parts = int(folds) if folds and folds.isascii() and folds.isdigit() else None
    given_folds = {"given": folds} if folds and parts is None else {}
    files = Files(fragments, phones, words, talkers, given_folds, split, gold_classes, phone_tiers, word_tiers)
    notices = Notices(strict)
    result = score_files(files, mode, notices, given=given or "classes", parts=parts)  # type: ignore[arg-type]
    print(json.dumps(result, indent=1, allow_nan=False) if as_json else "\n".join(table(result)))
    warn(notices)
    return 0
