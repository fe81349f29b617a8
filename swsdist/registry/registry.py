"""Registries of named objects: built-in ones, and those that other packages add by entry points.

An entry holds the import path of an object and the metadata for checking a config and planning a run, so that neither loads the
libraries that do the work. Built-in entries are in `swsdist.registry.registries`; another package names its entries in its
`pyproject.toml`::

    [project.entry-points."swsdist.distances"]
    mine = "my_package.distance:ENTRY"        # an entry, or an object that has a `version`

A version is part of the fingerprint of everything that is computed with the object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.extras import error_of
from swsdist.core.text import suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Entry:
    """Import path and version of an object.

    Attributes:
        target: `module:attribute`.
        version: raised whenever the same input gives other bytes.
    """

    target: str
    version: int

    @property
    def built_in(self) -> bool:
        """Whether the object is part of this package."""
        return self.target.startswith("swsdist.")

    def load(self) -> Any:
        """Import the object.

        Raises:
            ConfigError: an optional library is missing, or the module fails.
        """
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except Exception as error:
            if self.built_in and not isinstance(error, ImportError):
                raise
            if (missing := error_of(error)) is not None:
                missing.where = self.target
                raise missing from error
            raise codes.ENTRY_NOT_LOADED(target=self.target, error=f"{type(error).__name__}: {error}") from error


E = TypeVar("E", bound=Entry)


def is_in_entry_points(text: str) -> bool:
    """Whether the entry points of an installed package may have this text, such as a group: 2 ms, where `importlib.metadata`
    takes 20.
    """
    return any(
        Path(place).is_file()  # an archive of packages
        or any(text.encode() in file.read_bytes() for file in Path(place).glob("*-*/entry_points.txt"))
        for place in sys.path
    )


class Registry(Generic[E]):
    """Entries by name.

    Args:
        kind: noun for messages, for example `distance`.
        group: of entry points, for example `swsdist.distances`.
        where: the key of a config that names one.
        entry_type: type of an entry point's object; for `Entry`, a class with a `version` is enough.
    """

    def __init__(self, kind: str, group: str, where: str, entry_type: type[E]) -> None:
        self.kind, self.group, self.where, self._type = kind, group, where, entry_type
        self._entries: dict[str, E | str] = {}

    def __ior__(self, entries: Mapping[str, E | str]) -> Self:
        """Add entries of this package, or where they stand: `MODULE:NAME`."""
        self._entries |= entries
        return self

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        if not is_in_entry_points(self.group):
            return {}
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=self.group) if point.name not in self._entries}

    @property
    def available(self) -> Mapping[str, E]:
        """Built-in entries, and those added in this process."""
        return {name: self[name] for name in self._entries}

    def __iter__(self) -> Iterator[str]:
        yield from self._entries
        yield from sorted(self._added)

    def targets(self) -> Iterator[tuple[str, str]]:
        """Names and targets; of other packages the targets of their entry points, which need not load."""
        for name in sorted(self):
            yield name, self._added[name].value if name in self._added else self[name].target

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._added

    def unknown_option(self, name: str, option: str, options: Iterable[str], where: str | None) -> ConfigError:
        """The error of an option that an entry, which has others, does not have."""
        choices = list(options)
        return codes.UNKNOWN_ENTRY_OPTION(
            where=where,
            kind=self.kind,
            name=name,
            option=option,
            meant=suggestion(option, choices),
            options=", ".join(choices) or "none",
        )

    def __getitem__(self, name: str) -> E:
        """The entry of a name.

        Raises:
            ConfigError: the name is unknown, or its entry point cannot be loaded or is not an entry.
        """
        if name in self._entries:
            if isinstance(entry := self._entries[name], str):
                entry = self._entries[name] = Entry(entry, 1).load()
            return entry
        if name not in self._added:
            raise families.UNKNOWN_NAME.of(ConfigError)(
                "unknown {kind} {name!r}{meant}",
                "use one of: {known}",
                where=self.where,
                kind=self.kind,
                name=name,
                meant=suggestion(name, self),
                known=", ".join(self),
            )
        point = self._added[name]
        try:
            loaded = point.load()
        except Exception as error:  # a foreign module may raise anything on import
            raise families.EXTENSION(
                "the {kind} {name} cannot be loaded from {target} ({error})",
                "repair, reinstall or uninstall its package",
                where=f"entry point {self.group}: {name}",
                kind=self.kind,
                name=name,
                target=point.value,
                error=f"{type(error).__name__}: {error}",
            ) from error
        if isinstance(loaded, self._type):
            return loaded
        version = getattr(loaded, "version", None)
        if self._type is not Entry or not isinstance(version, int):
            raise families.EXTENSION(
                "{target} is not a {kind}: its type is not {type}, or it has no version",
                "see docs/ on how to add one",
                where=f"entry point {self.group}: {name}",
                target=point.value,
                kind=self.kind,
                type=self._type.__name__,
            )
        return self._type(point.value, version)

    def broken(self) -> Iterator[ConfigError]:
        """Errors of the entry points of other packages."""
        for name in sorted(self._added):
            try:
                self[name].load()
            except ConfigError as error:
                yield error

    def identity(self, name: str) -> list[str | int]:
        """Name and version, for fingerprints."""
        return [name, self[name].version]

    def add(self, name: str, entry: E) -> None:
        """Add an entry in this process, as an entry point does (for notebooks and tests)."""
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Remove an added entry."""
        del self._entries[name]


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
COMMANDS = Registry("command", "swsdist.commands", "COMMAND", CommandEntry)
COMMANDS |= {
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
    "check": _entry("Search", "start:check", "Check a config's inputs before any work."),
    "run": _entry("Search", "running:run", "Run a config from audio to report; finished work is kept."),
    "transcribe": _entry("Search", "transcribing:transcribe", "Write what is heard as subtitles, ELAN, text, ..."),
    "align": _entry("Search", "transcribing:align", "Give texts of recordings the times of their words."),
    "reduce": _entry("Search", "running:reduce", "Reduce candidates to detections with normalised scores."),
    "score": _entry("Score", "scoring:score", "Score a run, or any system's list."),
    "score-discovery": _entry(
        "Score", "scoring:score_discovery", "Score terms that a system discovered in untranscribed speech."
    ),
    "calibrate": _entry("Score", "fusing:calibrate", "Calibrate the scores of any system's list, and decide."),
    "fuse": _entry("Score", "fusing:fuse", "Fuse the lists of several systems."),
    "compare": _entry("Score", "comparing:compare", "Compare systems: tests, intervals, breakdowns."),
    "resources": _entry("Score", "comparing:resources", "Compute ISF, SSF, PMU and PL."),
    "sweep": _entry("Score", "running:sweep", "Run a config, or score lists, at many points."),
    "bench": _entry("Score", "benching:bench", "Time a config for several worker counts and data sizes."),
    "forecast": _entry("Score", "benching:forecast", "Forecast the time of a run on more data and machines."),
    "report": _entry("Runs", "running:report", "Rewrite the report of a run."),
    "export": _entry("Runs", "running:export", "Write a run's detections for other programs."),
    "status": _entry("Runs", "run_folder:status", "Show the state of a run."),
    "cancel": _entry("Runs", "run_folder:cancel", "End a run from any host; finished work is kept."),
    "clean": _entry("Runs", "run_folder:clean", "Remove unused files of a run or a store."),
    "digest": _entry("Runs", "run_folder:digest", "Print the SHA-256 of a run's results."),
    "phones": _entry("Data", "transcribing:phones", "Transcribe recordings to phones with BUT's phnrec."),
    "paper": _entry("Data", "comparing:paper", "Convert figures and tables for a paper."),
    "corpus": _entry("Data", "store:corpus", "Describe a corpus."),
    "glossary": _entry("Data", "glossary:glossary", "List, export and import the words of a glossary."),
    "store": _entry("Data", "store:store", "Inspect, check, import or compact a feature store."),
    "doctor": _entry("Help", "start:doctor", "Check this machine: versions, Ray, GPU, S3."),
    "help": _entry("Help", "helping:help_", "List tasks, or show the page of one."),
    "explain": _entry("Help", "helping:explain", "Explain the code of an error, notice or rejection."),
    "demo": _entry("Help", "start:demo", "Make a small corpus and run everything on it."),
}
