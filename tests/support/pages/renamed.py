"""docs/reference/renamed.md, from `swsdist.config.renamed`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from swsdist.config.renamed import KEYS, Renamed

#: Commands and their options.
COMMANDS = (
    Renamed("swsdist kst-study", "swsdist sweep", "see configs/sweeps/kst_alpha.yaml"),
    Renamed("swsdist compare --latex FILE", "swsdist compare --table FILE.tex"),
    Renamed(
        "swsdist fuse --keep-overlaps",
        "swsdist fuse",
        "overlaps of different queries are kept by default; --between-queries drops them",
    ),
)

#: Stages, by chain.
STAGES = (
    Renamed("fuse: union", "merge-lists"),
    Renamed("fuse: fill", "impute-scores"),
    Renamed("fuse: apart", "find-overlaps"),
    Renamed("fuse: leave", "drop-overlaps"),
    Renamed("sweep: learn", "fit-calibration"),
    Renamed("sweep: compact", "sort-scores"),
    Renamed("search: align", "align.train, align.final", "two steps: for the fit, and for scoring"),
)

#: Columns and files of results.
RESULTS = (
    Renamed("columns word, verdict of swsdist search --csv", "called"),
    Renamed("tables/examples/ of a run", "the store queries/"),
)

#: Python: functions, classes and modules that callers and extensions may use.
PYTHON = (
    Renamed("Searcher.asked, Searcher.way", "Searcher.query_rows, Searcher.setup"),
    Renamed("Searcher.stream(told=)", "stream(on_cut=)"),
    Renamed("SweepResult.said", "SweepResult.summary"),
    Renamed("swsdist.run(choice=)", "selection="),
    Renamed(
        "outcome.course, .courses, .did, .alone, .before", "chain_run, chain_runs, tasks_done, single_plan, preceding"
    ),
    Renamed("swsdist.metrics.Asked", "swsdist.metrics.Options"),
    Renamed("evaluation Request", "CalibrationRequest, FusionRequest, ComparisonRequest"),
    Renamed("Chain.own, Inputs.own, .mine, .made", "Chain.inputs, Inputs.chain_inputs, .outcome, .tables"),
    Renamed("Receipt.told, .tells; Context.kept", "Receipt.result, .result_as; Context.cached"),
    Renamed("Done, Told, Course", "TaskOutput, TaskResult, ChainRun"),
    Renamed("Stage.whole, .mixed, .leave, .begin", "all_or_nothing, any_device, commit_partial, prepare"),
    Renamed("StepEntry.looks_at", "StepEntry.depends_on"),
    Renamed("ReaderEntry.tells", "ReaderEntry.detector"),
    Renamed("features.interface.Given", "Precomputed"),
    Renamed("Statistic.by_talker, column talker", "by_speaker, column speaker"),
    Renamed("AudioError(reason=)", "a code", "see add-a-feature-extractor"),
    Renamed("swsdist.io.corpora", "swsdist.corpora"),
    Renamed("swsdist.errors, .types, .times, .fingerprint", "swsdist.core"),
    Renamed("swsdist.registries, .entries, .steps, .options", "swsdist.registry"),
)


def page() -> str:
    """The text of the page."""
    lines = ["# Old names", "", "<!-- Generated from swsdist/config/renamed.py: make docs -->", ""]
    lines += [
        "For those with configs, scripts or extensions from before version 0.1.0.",
        "",
        "An old key in a config, a corpus file or `--set` is the error [`renamed-key`](codes.md#config). An entry also holds "
        "for the keys below it.",
    ]
    for title, entries in (
        ("Config keys", KEYS),
        ("Commands and options", COMMANDS),
        ("Stages", STAGES),
        ("Results", RESULTS),
        ("Python", PYTHON),
    ):
        lines += ["", f"## {title}", "", *_table(entries)]
    return "\n".join(lines) + "\n"


def _table(entries: Iterable[Renamed]) -> Iterator[str]:
    yield "| old | new | |"
    yield "|---|---|---|"
    for entry in entries:
        yield f"| `{entry.old}` | `{entry.new}` | {entry.note} |"
