"""The command line: parse, call, print. Modules of commands are imported when the command runs."""

from __future__ import annotations

import atexit
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from shlex import quote
from types import FrameType
from typing import Any, NoReturn

import click

from swsdist.cli.options import fit_streams
from swsdist.core.codes import cli as codes
from swsdist.core.errors import CancelledError, ConfigError, StoreError, SwsdistError
from swsdist.core.text import names_secret, redacted
from swsdist.registry.registry import COMMANDS, CommandEntry

#: Seconds that a terminated process may take to end.
_END_WITHIN = 9.0

#: Words that a name with blanks may have.
_MOST_WORDS = 8
#: A key of a mapping on the command line.
_KEY = re.compile(r"(\w+)[\"']?\s*:")


class Lazy(click.Group):
    """A group that imports a command when it is called; `--help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of a workflow."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command.

        Raises:
            ConfigError: the name is unknown, or another package's command cannot be loaded.
        """
        command: click.Command = COMMANDS[cmd_name].load()
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, and refuse secrets among them."""
        _demand_no_secret(args)
        return super().make_context(info_name, args, parent, **extra)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries, without importing them."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in COMMANDS:
            try:
                entry = COMMANDS[name]
            except ConfigError as error:
                entry = CommandEntry("", 1, error.message)
            example = [("", f"$ {entry.example}")] if entry.example else []
            sections.setdefault(entry.section, []).extend([(name, entry.says), *example])
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)


def _cite(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from swsdist.cli.helping import citation

        click.echo(citation())
        context.exit()


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Tasks, with a page each: swsdist help",
)
@click.version_option(package_name="swsdist")
@click.option(
    "--cite", is_flag=True, is_eager=True, expose_value=False, callback=_cite, help="Say how to cite swsdist."
)
def cli() -> None:
    """Spoken term detection at scale: index speech, search spoken queries, score, and count what it cost."""


def main() -> NoReturn:
    """The entry point: errors become messages and exit codes (swsdist.core.errors).

    The process ends with `os._exit`: at Python's normal exit, threads of Arrow may access deleted objects, and the process ends
    with SIGABRT (apache/arrow, issue 34314).
    """
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = _run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:  # a library may raise another in place of ours
        code = 128 + signal.SIGTERM
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # what a command could not print, it said
            stream.flush()
    os._exit(code)


def _run() -> int:
    fit_streams()
    try:
        value = cli.main(standalone_mode=False)
        sys.stdout.flush()
        return value if isinstance(value, int) else 0
    except click.exceptions.Exit as error:
        return int(error.exit_code)
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        print(redacted(text.getvalue() + _hint(error)), end="", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, click.Abort):
        print("interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    except CancelledError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except StoreError as error:
        from swsdist.cli.run_folder import what_is_there

        return _report(what_is_there(error), error)
    except SwsdistError as error:
        return _report(error, error)
    except Exception as error:
        from swsdist.core.extras import error_of
        from swsdist.io.failures import explain

        explained = error_of(error) or explain(error)
        if explained is not None:
            return _report(explained, error)
        _print_traceback(error)
        print("This is a bug of swsdist: please report it with the lines above.", file=sys.stderr)
        return 1


def _hint(error: click.ClickException) -> str:
    """What was meant, where the words of a name are apart, or the word to search has no option."""
    typed = sys.argv[1:]
    for first in range(len(typed)):
        for end in range(first + 2, min(first + _MOST_WORDS, len(typed)) + 1):
            name = " ".join(typed[first:end])
            if os.path.exists(name):  # noqa: PTH110 - what is typed may be no path
                return f"Put a name with blanks in quotes: {quote(name)}\n"
    if isinstance(error, click.UsageError) and error.ctx is not None and error.ctx.info_name == "search":
        rest = re.match(r"Got unexpected extra arguments? \((.*)\)$", error.message)
        return f"A word that is typed: --text {quote(rest[1])}\n" if rest else ""
    return ""


def _demand_no_secret(words: Sequence[str]) -> None:
    """Refuse secrets of the storage on the command line, which every user of the machine can read, and Ray stores.

    Raises:
        UserError: there is a secret.
    """
    for word in words:
        key, _, value = word.removeprefix("--set=").partition("=")
        if key.partition(".")[0] != "storage":
            continue
        for name in (key.rpartition(".")[2], *_KEY.findall(value)):
            if names_secret(name):
                raise codes.SECRET_ON_COMMAND_LINE(where=f"--set {key}, {name}", name=name)


def _report(explained: SwsdistError, error: Exception) -> int:
    """Print an error, with a traceback if SWSDIST_TRACEBACK=1, and return its exit code."""
    if os.environ.get("SWSDIST_TRACEBACK", "0") not in ("", "0"):
        _print_traceback(error)
    print(f"error: {explained}", file=sys.stderr)
    return explained.exit_code


def _print_traceback(error: Exception) -> None:
    import traceback

    print(redacted("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def _terminated(number: int, frame: FrameType | None) -> None:
    """End as after an interrupt: release locks, shut down Ray; after `_END_WITHIN` seconds end anyway."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    late = threading.Timer(_END_WITHIN, os._exit, [128 + number])
    late.daemon = True
    late.start()
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
