"""Commands that run stages of a config."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from swsdist.cli.options import (
    CORPUS,
    DISCOVER_CONFIG,
    FILE,
    FILE_OR_FOLDER,
    FOLDER_CONFIG,
    LANGUAGE,
    MODELS,
    RUN,
    SET,
    TRANSCRIPTS_CONFIG,
    OutputCommand,
    allow_commands,
    is_config,
    written,
)
from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.report.pictures import PICTURES
from swsdist.report.tables import TABLES

if TYPE_CHECKING:
    from rich.console import Console

    from swsdist.api import RunResult
    from swsdist.config import Config
    from swsdist.core.errors import IncompleteError
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.chain_run import StepSelection
    from swsdist.pipeline.ledger import Plan
    from swsdist.pipeline.operation.progress import Progress


_CONFIG = click.argument("config", type=FILE)
_STRICT = click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4.")
_FORCE = click.option("--force", is_flag=True, help="Continue with implausible inputs (otherwise exit code 5).")
_FROM = click.option("--from", "redo_from", metavar="STAGE", help="Redo this stage and all later ones.")
_ALL = click.option("--all", "all_figures", is_flag=True, help="Print all figures and warnings at the end.")
_EVENTS = click.option("--events", metavar="FILE", help="Append events to FILE as JSON lines; -: standard output.")
_DRY = click.option("--dry-run", is_flag=True, help="Show the plan and an estimate of CPU hours; do nothing.")


#: Options that set keys of a config, or name another corpus or run folder.
_SETTINGS = ("sets", "strict", "force", "corpus", "run_folder")


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that run stages; those that set something come together, as `settings`."""

    @wraps(command)
    def with_settings(**options: Any) -> None:
        command(settings={name: options.pop(name) for name in _SETTINGS}, **options)

    for option in (allow_commands, _DRY, _EVENTS, _ALL, _FORCE, _STRICT, SET, RUN, CORPUS):
        option(with_settings)
    return with_settings


def _stages_command(name: str, table: str, text: str) -> click.Command:
    """A command that runs a config up to a table."""

    @click.command(name, help=text)
    @_CONFIG
    @_common
    def command(config: str, settings: dict[str, Any], **options: Any) -> None:
        go(configured(config, **settings), config, table=table, **options)

    return command


@click.command()
@_CONFIG
@_FROM
@click.option("--only", metavar="STAGE", help="Do only this stage; earlier ones must be done.")
@click.option("--keep-going", is_flag=True, help="Search what is indexed although index tasks failed.")
@_common
def run(config: str, settings: dict[str, Any], **options: Any) -> None:
    """Run CONFIG from audio to report; finished work is kept.

    A stage with unchanged inputs and settings is skipped: the same command continues after a crash, and does nothing when all
    is done.
    """
    go(configured(config, **settings), config, **options)


@click.command(
    help="Index the corpus of CONFIG, or a FOLDER: its recordings into FOLDER-swsdist or, with `--text`, its words into "
    "FOLDER-text, in the current folder."
)
@click.argument("config", metavar="CONFIG|FOLDER")
@click.option(
    "--text",
    is_flag=True,
    help="Index words, not sound: those of transcripts and lattices; recordings that have neither are recognised. "
    "[default: if FOLDER holds text files and no recordings]",
)
@MODELS
@LANGUAGE
@_FROM
@_common
def index(
    config: str,
    settings: dict[str, Any],
    text: bool,
    models: tuple[str, ...],
    language: str | None,
    **options: Any,
) -> None:
    """Index the documents of a config, or a folder."""
    template = None
    names = [run_name(config, TRANSCRIPTS_CONFIG if text else FOLDER_CONFIG)] if not is_config(config) else []
    with _noted(settings["run_folder"] or "".join(names), options["events"]):
        FILE_OR_FOLDER.convert(config, None, None)
        if settings["corpus"] is None and not is_config(config):
            template = TRANSCRIPTS_CONFIG if text or _holds_only_text(source_of(config)) else FOLDER_CONFIG
        loaded = configured(config, template=template, models=models, language=language, **settings)
    done = go(loaded, config, table="documents", **options)
    if done is not None and template is not None and options["events"] is None:
        queries = ["--text TEXT"] if template == TRANSCRIPTS_CONFIG else ["--query FILE[:START-END]"]
        queries += ["--text TEXT"] if "words" in done.outcome.chain_run.outcomes else []
        there = settings["run_folder"] or run_name(config, template)
        for query in queries:
            print(f"search it: swsdist search {quote(there)} {query}")
        print(f"in the browser: swsdist serve {quote(there)}")


@contextmanager
def _noted(run: str, events: str | None) -> Iterator[None]:
    """Note an error before there is a config in the run folder, and among the events."""
    from swsdist.cli.progress import events_to
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.operation.monitor import noted
    from swsdist.pipeline.operation.progress import Progress

    def tell(line: Mapping[str, Any]) -> None:
        with events_to(events, Progress()) if events is not None else nullcontext(Progress()) as progress:
            progress.event(line)

    with noted(Folder(run), tell) if run else nullcontext():
        yield


@click.command()
@click.argument("config", type=FILE_OR_FOLDER, metavar="CONFIG|FOLDER|TABLE")
@MODELS
@_common
def discover(config: str, settings: dict[str, Any], models: tuple[str, ...], **options: Any) -> None:
    """Find stretches that recur, without queries, and print the first classes of the word list.

    CONFIG has `chain: discover`. Without a config: a FOLDER of recordings, or a TABLE of documents (.csv, .parquet); the run
    folder is then NAME-classes. classes.html in the run folder plays the members of the classes.
    """
    from swsdist.searcher.queries import is_table

    template = DISCOVER_CONFIG if settings["corpus"] is None and (is_table(config) or not is_config(config)) else None
    loaded = configured(config, template=template, models=models, **settings)
    if loaded.chain != "discover":
        raise codes.OTHER_CHAIN(where=config, chain=loaded.chain, wanted="discover", config=config)
    done = go(loaded, config, **options)
    if done is not None and options["events"] is None:
        _print_words(done, config)


reduce = _stages_command(
    "reduce", "normalised", "Reduce candidates to detections with normalised scores (stages reduce and normalise)."
)
export = _stages_command("export", "exports", "Write the detections for other programs to exports/ in the run folder.")


@click.command(cls=OutputCommand)
@click.argument("folder", metavar="RUN")
@SET
@click.option("--det", type=written(*PICTURES, ".csv"), help="Write the DET curve: .svg, .pdf, .png; points: .csv.")
@click.option("--histogram", type=written(*PICTURES), help="Draw score histograms: .svg, .pdf, .png.")
@click.option("--timeline", type=written(*PICTURES), help="Draw tasks by worker and time: .svg, .pdf, .png.")
@click.option(
    "--table", type=written(*TABLES, several=True), help="Write measures and resources: .csv, .tex, .md or .json."
)
@click.option("--per-query", type=written(*TABLES), help="Write a row per query: .csv, .tex, .md or .json.")
@_ALL
@allow_commands
@click.pass_context
def report(
    context: click.Context,
    folder: str,
    sets: tuple[str, ...],
    det: str | None,
    histogram: str | None,
    timeline: str | None,
    table: str | None,
    per_query: str | None,
    all_figures: bool,
) -> None:
    """Rewrite the report of RUN (a run folder, or its config) from finished stages, and print its figures."""
    from swsdist import api
    from swsdist.chains.report.publish import run_config
    from swsdist.cli.options import refuse_overwriting_inputs
    from swsdist.config import load_config
    from swsdist.config.section import paths_in
    from swsdist.pipeline.chain_run import load_outcome
    from swsdist.report.data import ReportData
    from swsdist.report.evaluation import write_points
    from swsdist.report.page import det_plot, histogram_plot, paper_tables, query_table, timeline_plot
    from swsdist.report.pictures import write_picture
    from swsdist.report.tables import write_tables
    from swsdist.score.measures.det import accepted_from

    path = folder.rstrip("/")
    config = load_config(path, sets) if is_config(path) else run_config(path, sets)
    refuse_overwriting_inputs(context, [config.run, *paths_in(config)])
    outcome = load_outcome(config)
    chain_run = outcome.chain_run
    data = chain_run.chain.report(outcome, chain_run, True) if chain_run.chain.report is not None else None
    wanted = (det, histogram, timeline, table, per_query)
    if data is not None and not isinstance(data, ReportData):
        if any(wanted):
            raise families.UNSUPPORTED(
                "the chain {chain} has no curves, histograms or tables of scores",
                "leave these options out",
                where=path,
                chain=config.chain,
            )
        _report_outcome(api.RunResult(outcome, None, outcome.ledger.run.root), all_figures)
        return
    if not isinstance(data, ReportData):
        last = list(chain_run.outcomes)[-1] if chain_run.outcomes else "nothing"
        raise codes.REPORT_BEFORE_END(where=path, stage=last, run=path)
    for place, draw, what in ((det, det_plot, "DET curve"), (histogram, histogram_plot, "histogram of scores")):
        if place is None:
            continue
        plot = draw(data)
        if plot is None:
            raise families.UNDEFINED(
                "no {plot}: {reason}", "give references (corpus.references)", plot=what, reason=data.unscored
            )
        if place.lower().endswith(PICTURES):
            write_picture(plot, place)
        elif data.det is not None:
            least = accepted_from(data.det.threshold, data.det.pmiss, data.det.pfa)
            write_points({"score": least, "pmiss": data.det.pmiss, "pfa": data.det.pfa}, place)
    if timeline is not None:
        drawing = timeline_plot(data)
        if drawing is None:
            raise families.UNDEFINED("no timeline: the run has done no task", "run it first", where=path)
        write_picture(drawing, timeline)
    if table is not None:
        write_tables(paper_tables(data), table)
    if per_query is not None:
        write_tables([query_table(data)], per_query)
    _report_outcome(api.RunResult(outcome, data, outcome.ledger.run.root), all_figures)


def _console() -> Console:
    from rich.console import Console

    return Console()


def configured(
    path: str,
    sets: Sequence[str] = (),
    *,
    strict: bool = False,
    force: bool = False,
    corpus: str | None = None,
    run_folder: str | None = None,
    template: Path | None = None,
    models: Sequence[str] = (),
    language: str | None = None,
    texts: str | None = None,
) -> Config:
    """The config at a path, with what the command line sets; by a template, one whose documents the path names, with texts that
    are aligned.

    Raises:
        ConfigError: the config is not valid.
        UserError: it takes no models or language, its run would overwrite it, or the run folder is that of other documents; or
            as `swsdist.cli.models`.
    """
    from swsdist.config import load_config

    sets = [*sets, *(f"{name}=true" for name, given in (("strict", strict), ("force", force)) if given)]
    if template is None:
        for option, given_value, key in (
            ("--model", models, "features.options.model"),
            ("--language", language, "options.recogniser.options.language"),
        ):
            if given_value:
                raise codes.OF_RECORDINGS(where=path, option=option, what="a config", fix=f"set {key} in it")
        config = load_config(path, sets, corpus=corpus, run=run_folder)
    else:
        from swsdist.cli.models import frames, words
        from swsdist.lattices.collection import speakers_in

        source = source_of(path)
        given_run, run_folder = run_folder, run_folder or run_name(path, template, texts)
        is_text = template == TRANSCRIPTS_CONFIG
        given = (
            words(models, run_folder, source, sets, texts)
            if is_text
            else frames(models, run_folder, source, template != DISCOVER_CONFIG)
        )
        sets = [*given, *sets]
        if language is not None:
            if not any(item.startswith(("options.source=", "options.words")) and "recogniser" in item for item in sets):
                raise families.UNUSED_OPTION.of(UserError)(
                    "no recording is recognised, so none has a language",
                    "name a recogniser with --model, or leave this out",
                    where=f"--language {language}",
                )
            sets.append(f"options.{'' if is_text else 'words.'}recogniser.options.language={language}")
        named = {"speakers": source} if not is_text and speakers_in(source, {}) else {}
        config = load_config(template, sets, corpus={"documents": source, **named}, run=run_folder)
        if given_run is None or not force:
            demand_same(config.run, source, config.storage)
    _demand_own_config(path, config)
    return config


def go(
    config: Config,
    path: str,
    *,
    dry_run: bool = False,
    events: str | None = None,
    all_figures: bool = False,
    **selection: Any,
) -> RunResult | None:
    """Run stages of a config, and print a summary.

    Args:
        config: as it was loaded.
        path: where it was loaded from, which events do not overwrite.
        dry_run: print an estimate only.
        events: file for events.
        all_figures: print all of them, not a dozen lines.
        selection: the stages, by the names of `StepSelection`.

    Raises:
        IncompleteError: as `_report_outcome`.
    """
    from swsdist import api
    from swsdist.cli.progress import progress
    from swsdist.pipeline.chain_run import StepSelection

    steps = StepSelection(**selection)
    if dry_run:
        _dry(config, steps)
        return None
    with ExitStack() as stack:
        watching: Progress = progress()
        if events is not None:
            from swsdist.cli.options import refuse_overwriting_inputs
            from swsdist.cli.progress import events_to
            from swsdist.config.section import paths_in

            refuse_overwriting_inputs(click.get_current_context(), [path, *paths_in(config)])
            watching = stack.enter_context(events_to(events, watching))
        result = api.run(config, selection=steps, progress=watching)
        _report_outcome(result, all_figures)
    return result


#: What a run folder is called after, beside the name of what it was made of.
_ENDINGS = {FOLDER_CONFIG: "swsdist", TRANSCRIPTS_CONFIG: "text", DISCOVER_CONFIG: "classes"}


def source_of(path: str) -> str:
    """A folder or table, as an absolute path or a url."""
    from swsdist.io.filesystem import is_remote

    return path.rstrip("/") if is_remote(path) else str(Path(path).resolve())


def run_name(path: str, template: Path, texts: str | None = None) -> str:
    """Run folder of a folder, or of a table, which is called after it without its endings; and of texts that are aligned."""
    from swsdist.searcher.queries import is_table

    name = source_of(path).rsplit("/", 1)[-1]
    ending = _ENDINGS[template] if texts is None else "aligned"
    return f"{name.partition('.')[0] if is_table(name) else name}-{ending}"


def _print_words(result: RunResult, source: str) -> None:
    """Print the first candidates of the word list, and how one listens to all."""
    from swsdist.chains.discover.chain import first_words, least_of, words_of
    from swsdist.report.tables import padded

    chain_run = result.outcome.chain_run
    words = words_of(chain_run)
    if words:
        print("\n".join(padded(first_words(words[:_MOST_CLASSES], least_of(chain_run)))))
        run = chain_run.run.root
        served = source if Path(source).is_dir() else f"{run}/store"
        print(f"listen and name them: swsdist serve {quote(served)} --classes {quote(run)}")


def _holds_only_text(folder: str) -> bool:
    """Whether a folder holds transcripts or lattices and no recordings."""
    from swsdist.corpora.documents import ENDINGS
    from swsdist.io.filesystem import Folder
    from swsdist.lattices.collection import detect

    listing = Folder(folder).listing(unreadable=lambda path, error: None)  # who reads the files says so
    names = [name for name in listing if not any(part.startswith(".") for part in name.split("/"))]
    if any(name.rpartition(".")[2].lower() in ENDINGS for name in names):
        return False
    return any(detect(Folder(folder).path(name), {}) for name in names)


def is_made_of(plan: Plan, run: Folder, source: str) -> bool:
    """Whether a plan's documents are a folder or table, also where run and documents were moved together.

    Raises:
        StoreError: the plan is of another version.
    """
    from swsdist.io.filesystem import is_remote
    from swsdist.pipeline.status import config_of

    documents, was = config_of(run, plan).corpus.documents, str(plan.config["run"])
    if documents is None or any(is_remote(place) for place in (documents, was, run.root, source)):
        return documents == source
    return documents == source or os.path.relpath(documents, was) == os.path.relpath(source, Path(run.root).resolve())


def demand_same(run: str, source: str, storage: Mapping[str, Any] = {}) -> None:
    """Check that a run folder is new, or belongs to this folder of recordings.

    Raises:
        ImplausibleError: it belongs to another folder.
    """
    from swsdist.core.errors import StoreError
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.ledger import load_plans

    folder = Folder(run, storage)
    try:
        others = [plan for plan in load_plans(folder).values() if not is_made_of(plan, folder, source)]
    except StoreError:  # no plan yet, or one of another version
        return
    for plan in others:
        raise codes.ANOTHER_INDEX(where=run, documents=plan.config["corpus"]["documents"], run=run)


def _demand_own_config(path: str, loaded: Config) -> None:
    """Check that the run does not overwrite its config: a run writes config.yaml to its folder.

    Raises:
        UserError: the config is that file, and was not written by a run.
    """

    from swsdist.config import load_config
    from swsdist.config.reading import text_of
    from swsdist.config.template import dump_config
    from swsdist.io.filesystem import Folder, is_remote

    run = Folder(loaded.run, loaded.storage)
    part = run.local("config.yaml")
    if part is None and path != run.path("config.yaml"):
        return
    if part is not None and (is_remote(path) or not part.exists() or not part.samefile(path)):
        return
    # A run's config.yaml has no comments; other versions have other keys.
    text = text_of(path, "config")
    by_run = run.exists("plan.json") and not any(line.lstrip().startswith("#") for line in text.split("\n"))
    if not by_run and text != dump_config(load_config(path)):
        raise families.OUTPUT_REFUSED(
            "the run would overwrite this config with its own config.yaml, in {run}",
            "name another run folder (the key run, or --run FOLDER), or rename the config",
            where=path,
            run=loaded.run,
        )


def _dry(config: Config, selection: StepSelection) -> None:
    """Print what is left to do, and an estimate of its cost."""
    from rich.table import Table

    from swsdist.pipeline.estimate import estimates, forecast_remaining
    from swsdist.report.summary import short, span

    rows = estimates(config, selection)
    table = Table("stage", "tasks", "done", "work left", "unit", "CPU hours", box=None)
    for row in rows:
        cpu = "unknown" if row.cpu_s is None else short(row.cpu_s / 3600)
        tasks = "later" if row.tasks is None else str(row.tasks)
        table.add_row(row.stage, tasks, str(row.done), short(row.work), row.unit, cpu)
    console = _console()
    console.print(table)
    cpu_seconds = [row.cpu_s for row in rows if row.cpu_s is not None]
    note = "" if len(cpu_seconds) == len(rows) else "; unknown for stages without earlier receipts"
    estimate = (
        f"{short(sum(cpu_seconds) / 3600)} CPU hours{note}"
        if any(cpu_seconds) or not note
        else "none before the first run; index an hour, then `swsdist forecast RUN --hours HOURS --queries NUMBER`"
    )
    console.print(f"estimate: {estimate}. Nothing was done.", highlight=False)
    remaining = forecast_remaining(config, rows)
    if remaining is not None:
        workers = "1 worker" if remaining.run.workers <= 1 else f"{remaining.run.workers} workers"
        begun = time.process_time()  # the command begins as this one did, and plans as much
        wall, low, high = (span(each + begun) for each in (remaining.wall_s, remaining.low_s, remaining.high_s))
        text = f"forecast: {wall} ({low} to {high}) with {workers}"
        console.print(f"{text}, with start and planning, without the report", highlight=False, soft_wrap=True)


#: Lines of a summary without a report; with those on notices a dozen.
_MOST_LINES = 6
_SAME_WITH_ALL = "the same command with --all"
#: Classes of a discovery that are printed.
_MOST_CLASSES = 10


def _summary_lines(result: RunResult) -> list[str]:
    """The summary of a run without a report."""
    outcome = result.outcome
    if outcome.tasks_done == 0 and not outcome.failures:
        pages = (name for name in outcome.chain_run.chain.report_files if name.endswith(".html"))
        page = next((name for name in pages if outcome.ledger.run.exists(name)), None)
        there = f"; report: {result.folder}/{page}" if page is not None else ""
        text = f"nothing to do: {result.folder} is up to date{there}"
    else:
        text = f"done: {outcome.tasks_done} tasks in {outcome.wall:.1f} s, in {result.folder}"
    summary = outcome.chain_run.chain.summary
    return [text, *(summary(outcome.chain_run) if summary is not None else ())]


def _report_outcome(result: RunResult, all_figures: bool) -> None:
    """Print the outcome of a run.

    Raises:
        IncompleteError: a task failed; or, under --strict, there are warnings or rejected inputs.
    """
    from swsdist.report.summary import (
        MOST_ISSUES,
        input_issues,
        issues,
        print_headline,
        print_location,
        print_summary,
        truncated,
    )

    outcome, report = result.outcome, result.report
    warnings = outcome.chain_run.notices() if report is None else report.warnings
    rejected = result.rejected()
    notices = input_issues(rejected, warnings) if report is None or all_figures else issues(report)
    if report is None:
        lines = _summary_lines(result)
        print("\n".join(lines if all_figures else truncated(lines, _MOST_LINES, _SAME_WITH_ALL)))
    elif all_figures:
        print_summary(report, _console())
    else:
        print_headline(report, _console())
    sys.stdout.flush()  # warnings come after it, also if both go to one file
    if all_figures:
        for item in notices:
            print(f"{item.kind}: {item.text}" + (f"\n  remedy: {item.remedy}" if item.remedy else ""), file=sys.stderr)
        if rejected:
            print(f"all rejections: swsdist store rejected {quote(result.folder)}", file=sys.stderr)
    else:
        more = _SAME_WITH_ALL if report is None else f"swsdist report {quote(result.folder)} --all"
        for line in truncated([notice.line for notice in notices], MOST_ISSUES, more):
            print(line, file=sys.stderr)
        if report is not None:
            print_location(report, _console())
    if outcome.failures:
        raise _tasks_failed(result)
    if outcome.chain_run.config.strict and warnings:
        show = " (--all shows them)"
        raise codes.STRICT_WARNINGS(where=result.folder, count=len(warnings), first=warnings[0], show=show)
    if outcome.chain_run.config.strict and rejected:
        count = sum(row[2] for row in rejected)
        raise codes.STRICT_REJECTIONS(where=result.folder, count=count, folder=result.folder)


def _tasks_failed(result: RunResult) -> IncompleteError:
    """The error for a run with failed tasks."""
    outcome = result.outcome
    first = outcome.failures[0]
    return families.TASKS_FAILED(
        "{count} tasks are not done; the first: {first}",
        "remove the cause and run again: finished tasks are kept{waits}{tracebacks}",
        where=result.folder,
        count=len(outcome.failures),
        first=f"{first.task.stage}, {first.task.label}: {first.message.splitlines()[0]}",
        waits="" if outcome.chain_run.complete else "; later stages wait (--keep-going: they do not)",
        tracebacks=f"; tracebacks: {outcome.ledger.run.path(first.file)}" if first.file else "",
    )


@click.command()
@click.argument("sweep", metavar="SWEEP", type=FILE)
@CORPUS
@click.option("--run", "run_folder", metavar="FOLDER", help="Use this run folder instead of the config's.")
@click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of all points; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@allow_commands
def sweep(sweep: str, corpus: str | None, run_folder: str | None, sets: tuple[str, ...], as_json: bool) -> int:
    """Run a config, or score lists, at many points: a grid, a list, or random draws.

    SWEEP is a YAML file. Work that points share is done once; the same command continues after a crash, or with more points.
    Writes points.csv and a page to the folder sweeps of the run. Exit code 4 if a point failed.

    \b
    swsdist sweep configs/sweeps/kst_alpha.yaml
    """
    import sys

    from swsdist import api
    from swsdist.cli.progress import progress, with_point_count

    result = api.sweep(sweep, corpus=corpus, run=run_folder, sets=sets, progress=with_point_count(progress()))
    for notice in result.notices:
        print(f"warning: {notice}", file=sys.stderr)
    print(result.as_json() if as_json else "\n".join([*result.lines(), "", f"written: {result.folder}/sweep.html"]))
    if result.failed:
        number, message = next(iter(result.failed.items()))
        raise families.TASKS_FAILED(
            "{count} of {of} points failed; the first, point {number}: {message}",
            "remove the cause and run again: finished tasks are kept",
            where=result.folder,
            count=len(result.failed),
            of=result.table.num_rows,
            number=number,
            message=message,
        )
    return 0
