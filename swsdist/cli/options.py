"""Options that several commands share, and functions that read them.

**Outputs**, files, folders and standard streams, are checked before any work. One type of option for all commands:
`type=written(*PICTURES)` for a file, of the kinds that its ending can tell, `type=FOLDER` for a folder that is made.
A command with such an option is an `OutputCommand`: what it reads is never written over
(`refuse_overwriting_inputs`).
"""

from __future__ import annotations

import codecs
import io
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.core.errors import StoreError

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
LANGUAGE = click.option(
    "--language", metavar="CODE", help="Language of the recordings that are recognised: en, fr, sw. [default: detected]"
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


class _Written(click.Path):
    """A file to write; its ending chooses the format.

    Attributes:
        endings: in lower case; none: any ending will do.
        several: of several tables each has a CSV file of its own, called `out-queries.csv` where `out.csv` is named.
    """

    def __init__(self, endings: tuple[str, ...], dash: bool, several: bool) -> None:
        super().__init__(dir_okay=False, allow_dash=dash)
        self.name = "file"
        self.endings = endings
        self.several = several

    def hits(self, source: Path, out: Path) -> bool:
        """Whether writing `out` writes to `source`."""
        if _is_same(source, out):
            return True
        if not self.several or out.suffix.lower() != ".csv" or source.suffix != out.suffix:
            return False
        return source.name.startswith(f"{out.stem}-") and _is_same(source.parent, out.parent)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that the path can be written, and return it.

        Raises:
            UserError: it is of another kind, there is no such folder, it cannot be written to, or a library is missing that
                writes this kind.
        """
        path = str(value)
        if not (self.allow_dash and path == "-"):
            demand_local(path)
            check_ending(path, self.endings)
            check_place(path)
            if ".svg" in self.endings:
                from swsdist.report.pictures import demand_converter

                demand_converter(path)
        return path


class _WrittenFolder(click.Path):
    """A folder to write to; it is made if missing.

    Attributes:
        endings: of the files that are written to it.
    """

    def __init__(self, endings: tuple[str, ...] = ()) -> None:
        super().__init__(file_okay=False)
        self.endings = endings

    def hits(self, source: Path, out: Path) -> bool:
        """Whether writing to the folder `out` may overwrite `source`."""
        return source.suffix.lower() in self.endings and _is_same(source.parent, out)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that the folder can be made or written to, and return it.

        Raises:
            UserError: it is a file, or it cannot be written to.
        """
        demand_local(str(value))
        path = Path(str(value)).absolute()
        existing = next(parent for parent in (path, *path.parents) if parent.exists())
        if not existing.is_dir():
            raise families.OUTPUT_REFUSED("this is a file, not a folder", "name another folder", where=str(existing))
        if not os.access(existing, os.W_OK):
            raise codes.OUTPUT_NOT_WRITABLE(where=str(existing))
        return str(value)


FOLDER = _WrittenFolder()
TABLES_FOLDER = _WrittenFolder((".csv",))


def written(*endings: str, dash: bool = False, several: bool = False) -> click.Path:
    """The type of an option for an output file with one of these endings (`.svg`).

    Args:
        endings: in lower case; none: any.
        dash: `-` is standard output.
        several: of several tables each has a CSV file of its own, whose name begins as this one's.
    """
    return _Written(endings, dash, several)


class OutputCommand(click.Command):
    """A command that writes files: it refuses to overwrite its inputs, and to write a file twice."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and check the outputs.

        Raises:
            UserError: a file that is to be written is one that is read, or is to be written twice.
        """
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # the shell completes a command
            named = list(_named(ctx)) if next(_outputs(ctx), None) is not None else []
            refuse_overwriting_inputs(ctx, [*named, *_of_runs(named)])
        return rest


def refuse_overwriting_inputs(context: click.Context, inputs: Iterable[str]) -> None:
    """Check that a command overwrites none of its inputs, and writes each file once.

    Links to a file are that file. Of the folder of a run or store all files that are theirs are read. What is no plain file
    (`/dev/null`), or not there, is not asked about.

    Args:
        context: of the command, with its parameters.
        inputs: paths that are read; what is no path is passed over.

    Raises:
        UserError: one is written to that is read, or two outputs are one file.
    """
    outputs = list(_outputs(context))
    sources = [Path(item) for item in dict.fromkeys(inputs) if _exists(item)]
    for name, path, kind in outputs:
        out = Path(path)
        for source in sources:
            if source.is_file() and kind.hits(source, out):
                what = str(source)
            elif source.is_dir() and _is_of(source, out):
                what = f"a file of {source}"
            else:
                continue
            raise families.OUTPUT_REFUSED(
                "this would overwrite {what}, which the command reads",
                "name another file",
                where=f"{name} {path}",
                what=what,
            )
    for k, (name, path, kind) in enumerate(outputs):
        for other, same, its in outputs[:k]:
            left, right = Path(path), Path(same)
            meet = _is_same(left, right) or kind.hits(right, left) or its.hits(left, right)
            if meet and (not left.exists() or left.is_file() or right.is_file() or not right.exists()):
                raise families.OUTPUT_REFUSED(
                    "{other} names the same file", "name two files", where=f"{name} {path}", other=other
                )


def _outputs(context: click.Context) -> Iterator[tuple[str, str, _Written | _WrittenFolder]]:
    """The outputs of a command: name of the option, path, type."""
    for item in context.command.params:
        value = context.params.get(item.name or "")
        if isinstance(item.type, _Written | _WrittenFolder) and isinstance(value, str) and value != "-":
            yield _shown(item), value, item.type


def _named(context: click.Context) -> Iterator[str]:
    """Paths in a command's other arguments: PATH, NAME=PATH."""
    for item in context.command.params:
        if isinstance(item.type, _Written | _WrittenFolder | click.Choice):
            continue
        value = context.params.get(item.name or "")
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str):
                yield text
                yield text.partition("=")[2]


def _of_runs(named: Iterable[str]) -> Iterator[str]:
    """Paths in the configs of run folders, and of runs whose stores are named."""
    from swsdist.config.section import paths_in
    from swsdist.io.filesystem import Folder
    from swsdist.pipeline.ledger import load_plans
    from swsdist.pipeline.status import config_of

    folders = [Path(item) for item in named if _exists(item) and Path(item).is_dir()]
    for place in dict.fromkeys(place for folder in folders for place in (folder, folder.absolute().parent)):
        if (place / "plan.json").is_file():
            run = Folder(str(place))
            with suppress(StoreError):  # of another version: who reads it says so
                for plan in load_plans(run).values():
                    yield from paths_in(config_of(run, plan))


def _shown(param: click.Parameter) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else (param.name or "").upper()


def _exists(path: str) -> bool:
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # too long for a name, or with a null byte: it is none
        return False


def _is_same(path: Path, other: Path) -> bool:
    """Whether two paths, existing or not, name the same file or folder."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


#: Files in a run folder or a store, beside subfolders.
_RUN_FILES = frozenset(
    {
        *("plan.json", "config.yaml", "manifest.json", "report.json", "report.html", "rejected.parquet"),
        *("accounts.parquet", "nodes.parquet", "system-description.md", "system-description.tex"),
    }
)


def _is_of(folder: Path, out: Path) -> bool:
    """Whether an existing file belongs to the run or store in a folder."""
    if not out.is_file() or not any((folder / name).is_file() for name in ("plan.json", "manifest.json")):
        return False
    root, place = folder.resolve(), out.resolve()
    return place.is_relative_to(root) and (place.parent != root or place.name in _RUN_FILES)


def demand_local(path: str) -> None:
    """Check that an output path is local.

    Raises:
        UserError: the path is a url.
    """
    from swsdist.io.filesystem import is_remote

    if is_remote(path):
        raise families.OUTPUT_REFUSED(
            "a command writes files, other than a run or a store, to a local disk only",
            "name a local file or folder, and copy it: aws s3 cp",
            where=path,
        )


def check_ending(path: str, endings: tuple[str, ...]) -> None:
    """Check the ending of a file; without `endings` any is allowed.

    Raises:
        UserError: it is not.
    """
    ending = Path(path).suffix.lower()
    if not endings or ending in endings:
        return
    *others, last = endings
    choices = f"{', '.join(others)} or {last}" if others else last
    raise families.UNKNOWN_NAME(
        "the file must end in {endings}, not in {ending}",
        "name a file that ends in {endings}",
        where=path,
        ending=ending or "nothing",
        endings=choices,
    )


#: Substitutes for characters that a terminal lacks.
_PLAIN = {"–": "-", "·": "*", "✓": "+", "✗": "x", "…": "..."}


class _Pipe(io.FileIO):
    """A stream that discards output once its reader has left, as `head` does.

    Attributes:
        left: whether the reader has left.
    """

    left = False

    def write(self, data: Any) -> int:
        """Write, or discard."""
        try:
            return super().write(data)
        except ConnectionError:
            self.left = True
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return super().write(data)


def pipe(stream: IO[str]) -> IO[str]:
    """A stream that continues when its reader leaves; streams that are no files are returned unchanged."""
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.BufferedWriter | io.FileIO):
        return stream
    file = _Pipe(stream.fileno(), "w", closefd=False)
    buffer = file if isinstance(stream.buffer, io.FileIO) else io.BufferedWriter(file)
    return io.TextIOWrapper(
        buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def is_read() -> bool:
    """Whether standard output still has a reader, as far as is known."""
    buffer = getattr(sys.stdout, "buffer", None)
    return not getattr(getattr(buffer, "raw", buffer), "left", False)


def fit_streams() -> None:
    """Let standard output and error take any text: characters that the encoding lacks are replaced, or escaped (`\\xfc`).

    Bytes of file names that are not UTF-8 are written unchanged. A command continues when the reader of a stream leaves.
    """
    codecs.register_error("swsdist", _plain)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if (
            getattr(sys, name) is None
        ):  # closed by who called: its number is the least that is free, and no other file's now
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, closefd=False))
    sys.stdout, sys.stderr = pipe(sys.stdout), pipe(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="swsdist")


def write_data() -> None:
    """Switch standard output to UTF-8, for data that programs read."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="swsdist")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    if all("\udc80" <= item <= "\udcff" for item in text):
        return text.encode("utf-8", "surrogateescape"), error.end
    plain = "".join(_PLAIN.get(item, item) for item in text)
    return plain.encode("ascii", "backslashreplace").decode("ascii"), error.end


def save_fitted(path: str | None, fitted: bytes | None) -> None:
    """Write the fitted model to the file of `--save`, if given.

    Raises:
        click.UsageError: nothing was fitted.
    """
    if path is None:
        return
    if fitted is None:
        raise click.UsageError("Nothing was fitted, so there is nothing to --save.")
    Path(path).write_bytes(fitted)
    print(f"{path}: what was fitted")


def check_place(path: str | None) -> None:
    """Check that a file can be written; None and `-` (standard output) are fine.

    Raises:
        UserError: it is a folder, there is no such folder, or it cannot be written to.
    """
    if path is None or path == "-":
        return
    folder = Path(path).absolute().parent
    if Path(path).is_dir():
        raise families.OUTPUT_REFUSED("this is a folder, not a file", "name a file in it", where=path)
    if not folder.is_dir():
        raise families.OUTPUT_REFUSED("the folder does not exist", "make it, or name another", where=str(folder))
    if not os.access(folder, os.W_OK) or (Path(path).exists() and not os.access(path, os.W_OK)):
        raise codes.OUTPUT_NOT_WRITABLE(where=path)


def check_new_folder(path: str | None) -> None:
    """Check that an output folder is new or empty.

    Raises:
        UserError: it is not.
    """
    if path is not None and Path(path).is_dir() and any(Path(path).iterdir()):
        raise families.OUTPUT_REFUSED("the folder is not empty", "name a new folder", where=path)
