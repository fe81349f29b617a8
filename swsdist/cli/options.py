"""Options that several commands share, and functions that read them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from swsdist.evaluation.scoring_task import ScoringTask
    from swsdist.io.notices import Notices
    from swsdist.score.measures.protocol import OperatingPoint, Protocol

Command = TypeVar("Command", bound=Callable[..., object])


class _File(click.Path):
    """An existing local file, or an `s3://` url, which is not checked here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a local file must exist."""
        if not self.file_okay and Path(str(value)).is_file():
            if str(value).lower().endswith(".zip"):
                self.fail(f"{value} is a zip file: unzip it first, and name the folder in it", param, ctx)
            self.fail(f"{value!r} is a file; name its folder: {quote(str(Path(value).parent))}", param, ctx)
        return value if "://" in str(value) else super().convert(value, param, ctx)


class Number(click.FloatRange):
    """A finite number."""

    name = "float"

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, checked."""
        result = super().convert(value, param, ctx)
        return result if math.isfinite(result) else self.fail(f"{value!r} is not a finite number.", param, ctx)


class Integer(click.IntRange):
    """A whole number of at most 31 bits."""

    name = "integer"

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, checked."""
        result = super().convert(value, param, ctx)
        return result if abs(result) < 1 << 31 else self.fail(f"{value!r} is not below {1 << 31}.", param, ctx)


#: A config, a corpus file or a sweep.
FILE = _File(exists=True, dir_okay=False)
#: A config, a corpus file or a sweep; or a folder of recordings.
FILE_OR_FOLDER = _File(exists=True)
#: A folder of recordings, a run or a store.
ANY_FOLDER = _File(exists=True, file_okay=False)
#: Options of commands that read a config.
SET = click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set a key of the config; repeatable.")
CORPUS = click.option(
    "--corpus", type=FILE, metavar="FILE", help="Use this corpus file instead of the config's corpus."
)
RUN = click.option("--run", "run_folder", metavar="FOLDER", help="Use this run folder instead of the config's.")
#: Models of encoders and of a recogniser.
MODELS = click.option(
    "--model",
    "models",
    multiple=True,
    help="With a FOLDER: frames of this speech encoder, not MFCC, or words of this recogniser: a folder, or a name in the "
    "cache of the Hugging Face hub (openai/whisper-base, Systran/faster-whisper-base). Repeatable. [default: as before]",
)
#: The config of a folder of recordings.
FOLDER_CONFIG = Path(__file__).parents[1] / "config" / "folder.yaml"
TRANSCRIPTS_CONFIG = FOLDER_CONFIG.with_name("transcripts.yaml")
DISCOVER_CONFIG = FOLDER_CONFIG.with_name("discover.yaml")


def is_config(path: str) -> bool:
    """Whether the argument is a config, not a run folder."""
    from swsdist.io.filesystem import is_remote

    return path.endswith((".yaml", ".yml")) if is_remote(path) else Path(path).is_file()


def _permit(context: click.Context, _: click.Parameter, allow: bool) -> None:
    if allow:
        from swsdist.audio.streams import permitted

        context.with_resource(permitted(True))


#: Permits commands in a wav.scp; on the command line only, since a config may come from others.
allow_commands = click.option(
    "--allow-commands",
    is_flag=True,
    expose_value=False,
    callback=_permit,
    help="Run commands in a Kaldi wav.scp (lines ending in |) with your rights.",
)


def task_options(command: Command) -> Command:
    """Add the options of a scoring task: searched audio, references, terms, protocol; `task_files` reads them."""
    for option in (
        click.option("--force", is_flag=True, help="Continue with implausible inputs (otherwise exit code 5)."),
        click.option("--strict", is_flag=True, help="Warnings and rejected inputs end with exit code 4."),
        click.option("--beta", type=Number(), help="Weight of false alarms. [default: the protocol's]"),
        click.option(
            "--protocol",
            metavar="NAME",
            help="Rules of counting: stdeval, kwseval, sws2011 to sws2013, nist-std06, openkws13, quesst. "
            "[default: of a TLIST stdeval, of a KWLIST kwseval, without a term list sws2013]",
        ),
        click.option("--seconds", type=Number(), help="Duration of the searched audio instead of an ECF, s."),
        click.option(
            "--references",
            metavar="FILE",
            help="Table of occurrences (CSV, Parquet), or a glossary, instead of a transcript.",
        ),
        click.option("-t", "--terms", metavar="FILE", help="Term list: TLIST or KWLIST."),
        click.option("--ctm", metavar="FILE", help="CTM word alignments instead of an RTTM."),
        click.option("-r", "--rttm", metavar="FILE", help="RTTM: reference transcript, in which terms are looked up."),
        click.option("-e", "--ecf", metavar="FILE", help="ECF: the searched audio."),
    ):
        command = option(command)
    return command


def task_files(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `swsdist.evaluation.reading.read_task` among these options."""
    files = {name: options[name] for name in ("ecf", "rttm", "ctm", "references", "terms")}
    return {**files, "total_seconds": options["seconds"]}


def has_references(options: Mapping[str, Any]) -> bool:
    """Whether the options name references."""
    return any((options["rttm"], options["ctm"], options["references"]))


def task_or_point(
    options: Mapping[str, Any], rules: Protocol, notices: Notices
) -> tuple[ScoringTask | None, OperatingPoint | None]:
    """The task that a list is scored by; without references only the operating point, if known.

    Raises:
        UserError: a file cannot be read, or is invalid.
    """
    from swsdist.evaluation.calibration import point_of_audio
    from swsdist.evaluation.reading import read_task

    if has_references(options):
        return read_task(**task_files(options), protocol=rules, notices=notices), None
    return None, point_of_audio(rules, options["ecf"], options["seconds"])


def warn(notices: Notices) -> None:
    """Print the notices as warnings, and what follows from the user's choices as notes."""
    for notice in notices.entries.values():
        print(f"warning: {notice}", file=sys.stderr)
    for notice in notices.requested.values():
        print(f"note: {notice}", file=sys.stderr)
