"""A chain is a graph of stages under names of their own, made from a config.

A step is one use of a stage. It names the tables that it reads, of earlier steps or of another run, by the words that the
stage has for them, and says what its cost counts as. One stage may stand in a chain many times::

    Step("align.final", Align(), phase="score", reads={"detections": "decide:scored"})

The registry `swsdist.registries.CHAINS` names the function that makes a chain from a config; nothing else knows of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from swsdist.config import Config
from swsdist.errors import UserError
from swsdist.pipeline.elsewhere import Elsewhere
from swsdist.pipeline.finding import Finding
from swsdist.pipeline.stage import Stage

#: `step:table` of the same chain, or a table of another run.
Source = str | Elsewhere


@dataclass(frozen=True)
class Step:
    """One use of a stage.

    Attributes:
        name: of its own; in commands and reports.
        stage: what is done.
        phase: what its cost counts as, for the chain's report; empty: it counts as nothing.
        reads: the stage's word for a table -> where it comes from, or several such.
        digests: names that its tables have in the run's digest, where they differ from the tables' own.
    """

    name: str
    stage: Stage
    phase: str = ""
    reads: Mapping[str, Source | tuple[Source, ...]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    def sources(self, word: str) -> tuple[Source, ...]:
        """Where the table of a word comes from; nothing if it is not read."""
        found = self.reads.get(word, ())
        return (found,) if isinstance(found, str | Elsewhere) else found


class ChainInputs:
    """What a chain knows before its first step, such as corpus, queries and references; nothing by default."""

    @property
    def hours(self) -> float:
        """Hours of audio, as far as they are known."""
        return 0.0

    @property
    def state(self) -> dict[str, str]:
        """What says, besides the tasks, which tables a plan means."""
        return {}

    def recall(self, state: Mapping[str, str]) -> None:
        """Go back to such a state, to look at a plan that was run."""
        del state

    def read(self, steps: frozenset[str]) -> None:
        """Read the tables that these steps need: a mistake in the last is told before the first hour of work."""
        del steps


@dataclass(frozen=True)
class Chain:
    """A checked graph.

    Attributes:
        name: as registered.
        steps: in the order in which they run.
        own: what it knows before its first step.
        report: writes what a run shows at its end, in the driver, of (outcome, course, force); returns what it wrote, or
            None where there is nothing new.
        report_files: names in the run folder that it writes; without them, or when the plan changes, it is asked again.
        notices: warnings about what a plan has made, of its course.
        check: looks at what is cheap to read before any work, of `own`; yields findings.
        summary: what a plan has made so far, in a line or more, of its course; for who ran a part of it.
        first: configs of runs that come before its own first step, by name, each with a run folder of its own.
        barrier: of its course, the name of a step that has ended, and `force`: raises an ImplausibleError where what the step
            has made is too odd to go on.
        rejected: table REJECTED of inputs that could not be used, of its course; by default what tasks rejected.
    """

    name: str
    steps: tuple[Step, ...]
    own: Any
    report: Callable[..., object | None] | None = None
    report_files: tuple[str, ...] = ()
    notices: Callable[..., list[str]] | None = None
    rejected: Callable[..., pa.Table] | None = None
    check: Callable[..., Iterator[Finding]] | None = None
    summary: Callable[..., list[str]] | None = None
    first: Callable[[], Mapping[str, Config]] | None = None
    barrier: Callable[..., object] | None = None

    def __post_init__(self) -> None:
        known: dict[str, Step] = {}
        for step in self.steps:
            if step.name in known:
                raise UserError(f"the chain {self.name} has two steps {step.name!r}", remedy="name them apart")
            for source in (one for word in step.reads for one in step.sources(word)):
                if isinstance(source, Elsewhere):
                    continue
                made, _, table = source.partition(":")
                if made not in known or table not in known[made].stage.tables:
                    raise UserError(
                        f"step {step.name} of the chain {self.name} reads {source}, which no earlier step makes",
                        remedy="a source is `step:table` of a step that stands before",
                    )
            for other in known.values():
                if other.stage.name == step.stage.name and not _alike(other.stage, step.stage):
                    raise UserError(
                        f"steps {other.name} and {step.name} of the chain {self.name} have different stages of one name, "
                        f"{step.stage.name!r}, by which its tasks are sent",
                        remedy="name the stages apart",
                    )
            known[step.name] = step
        labels = [label for step in self.steps for label, _ in self.digested(step)]
        if len(set(labels)) < len(labels):
            raise UserError(f"two tables of the chain {self.name} are digested under one name: {', '.join(labels)}")

    def step(self, name: str) -> Step:
        """The step of a name.

        Raises:
            UserError: there is none.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise UserError(
            f"there is no stage {name!r}", remedy=f"stages are: {', '.join(step.name for step in self.steps)}"
        )

    def maker(self, table: str) -> Step | None:
        """The last step that makes a table of this name; None if there is none."""
        return next((step for step in reversed(self.steps) if table in step.stage.tables), None)

    def digested(self, step: Step) -> Iterator[tuple[str, str]]:
        """Name in the digest, and name, of each table of a step that is digested."""
        for table, declared in step.stage.tables.items():
            if declared.digested:
                yield step.digests.get(table, table), table


def _alike(one: Stage, other: Stage) -> bool:
    """Whether two stages do the same."""
    return type(one) is type(other) and vars(one) == vars(other)
