"""Commands of the command line. This module is light: `swsdist --help` imports it."""

from __future__ import annotations

from dataclasses import dataclass

from swsdist.registry.registry import Entry, Registry


@dataclass(frozen=True)
class CommandEntry(Entry):
    """A command of `swsdist`: the target is a `click.Command`, imported when it is called.

    Attributes:
        says: a line for `swsdist --help`.
        section: heading there.
        example: a command to begin with, which is shown there.
    """

    version: int = 1
    says: str = ""
    section: str = "Commands of other packages"
    example: str = ""


def _entry(section: str, target: str, says: str, example: str = "") -> CommandEntry:
    return CommandEntry(f"swsdist.cli.{target}", 1, says, section, example)


#: In the order of `swsdist --help`.
COMMANDS: Registry[CommandEntry] = Registry(
    "command",
    "swsdist.commands",
    "COMMAND",
    {
        "index": _entry(
            "Begin",
            "running:index",
            "Index a folder of recordings, or a config's documents.",
            "swsdist index recordings",
        ),
        "search": _entry(
            "Begin",
            "searching:search",
            "Search what is indexed by a recording of a word, or by text.",
            "swsdist search recordings --query word.wav",
        ),
        "serve": _entry(
            "Begin",
            "serving:serve",
            "Search, judge and collect words in the browser.",
            "swsdist serve recordings",
        ),
        "discover": _entry(
            "Begin",
            "running:discover",
            "Find stretches that recur, without queries.",
            "swsdist discover recordings",
        ),
        "init": _entry("Search", "start:init", "Write a commented config to start from."),
        "check": _entry("Search", "doctor:check", "Check a config's inputs before any work."),
        "run": _entry("Search", "running:run", "Run a config from audio to report; finished work is kept."),
        "transcribe": _entry("Search", "transcribing:transcribe", "Write what is heard as subtitles, ELAN, text, ..."),
        "align": _entry("Search", "transcribing:align", "Give texts of recordings the times of their words."),
        "reduce": _entry("Search", "running:reduce", "Reduce candidates to detections with normalised scores."),
        "score": _entry("Score", "scoring:score", "Score a run, or any system's list."),
        "score-discovery": _entry(
            "Score", "discovering:score_discovery", "Score terms that a system discovered in untranscribed speech."
        ),
        "calibrate": _entry("Score", "calibrating:calibrate", "Calibrate the scores of any system's list, and decide."),
        "fuse": _entry("Score", "fusing:fuse", "Fuse the lists of several systems."),
        "compare": _entry("Score", "comparing:compare", "Compare systems: tests, intervals, breakdowns."),
        "resources": _entry("Score", "comparing:resources", "Compute ISF, SSF, PMU and PL."),
        "sweep": _entry("Score", "sweeping:sweep", "Run a config, or score lists, at many points."),
        "superb": _entry("Score", "superb:superb", "Measure SUPERB's query-by-example number of a speech encoder."),
        "bench": _entry("Score", "benching:bench", "Time a config for several worker counts and data sizes."),
        "forecast": _entry("Score", "benching:forecast", "Forecast the time of a run on more data and machines."),
        "report": _entry("Runs", "running:report", "Rewrite the report of a run."),
        "export": _entry("Runs", "running:export", "Write a run's detections for other programs."),
        "status": _entry("Runs", "run_folder:status", "Show the state of a run."),
        "cancel": _entry("Runs", "run_folder:cancel", "End a run from any host; finished work is kept."),
        "clean": _entry("Runs", "run_folder:clean", "Remove unused files of a run or a store."),
        "digest": _entry("Runs", "run_folder:digest", "Print the SHA-256 of a run's results."),
        "phones": _entry("Data", "phones:phones", "Transcribe recordings to phones with BUT's phnrec."),
        "paper": _entry("Data", "paper:paper", "Convert figures and tables for a paper."),
        "corpus": _entry("Data", "corpus:corpus", "Describe a corpus."),
        "glossary": _entry("Data", "glossary:glossary", "List, export and import the words of a glossary."),
        "store": _entry("Data", "store:store", "Inspect, check, import or compact a feature store."),
        "doctor": _entry("Help", "doctor:doctor", "Check this machine: versions, Ray, GPU, S3."),
        "help": _entry("Help", "helping:help_", "List tasks, or show the page of one."),
        "explain": _entry("Help", "helping:explain", "Explain the code of an error, notice or rejection."),
        "demo": _entry("Help", "start:demo", "Make a small corpus and run everything on it."),
    },
    CommandEntry,
)
