"""A chain is a graph of stages under names of their own, made from a config.

A chain is a list of stages. Each says which tables it takes (`Stage.takes`); where one step before it makes such a table, that
is the one. Where several do, or it is of another run, or a stage stands in the list twice, a step says so by name::

    Index(), Queries(), Search(), Reduce(), Step("align.final", Align(), {"detections": "decide:scored"})

The registry `swsdist.registry.registries.CHAINS` names the function that makes a chain from a config; nothing else knows of
the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

import pyarrow as pa

from swsdist.config import Config
from swsdist.core.codes import pipeline as codes
from swsdist.pipeline.external_table import ExternalTable
from swsdist.pipeline.finding import Finding
from swsdist.pipeline.stage import Stage

#: `step:table` of the same chain, or a table of another run.
Source = str | ExternalTable


@dataclass(frozen=True)
class Step:
    """One use of a stage.

    Attributes:
        name: of its own; in commands and reports.
        stage: what is done.
        reads: the stage's word for a table -> where it comes from, or several such; the chain adds what goes without saying.
        digests: names that its tables have in the run's digest, where they differ from the tables' own.
    """

    name: str
    stage: Stage
    reads: Mapping[str, Source | tuple[Source, ...]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def phase(self) -> str:
        """What its cost counts as."""
        return self.stage.phase

    def sources(self, word: str) -> tuple[Source, ...]:
        """Where the table of a word comes from; nothing if it is not read."""
        found = self.reads.get(word, ())
        return (found,) if isinstance(found, str | ExternalTable) else found


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
        stages: in the order in which they run; one by itself is a step of its name.
        steps: what is made of them.
        own: what it knows before its first step.
        report: writes what a run shows at its end, in the driver, of (outcome, chain_run, force); returns what it wrote, or
            None where there is nothing new.
        report_files: names in the run folder that it writes; without them, or when the plan changes, it is asked again.
        notices: warnings about what a plan has made, of its chain run.
        check: looks at what is cheap to read before any work, of `own`; yields findings.
        summary: what a plan has made so far, in a line or more, of its chain run; for who ran a part of it.
        first: configs of runs that come before its own first step, by name, each with a run folder of its own.
        barrier: of its chain run, the name of a step that has ended, and `force`: raises an ImplausibleError where what the
            step has made is too odd to go on.
        rejected: table REJECTED of inputs that could not be used, of its chain run; by default what tasks rejected.
    """

    name: str
    stages: InitVar[Sequence[Step | Stage]]
    inputs: Any
    report: Callable[..., object | None] | None = None
    report_files: tuple[str, ...] = ()
    notices: Callable[..., list[str]] | None = None
    rejected: Callable[..., pa.Table] | None = None
    check: Callable[..., Iterator[Finding]] | None = None
    summary: Callable[..., list[str]] | None = None
    prerequisites: Callable[[], Mapping[str, Config]] | None = None
    barrier: Callable[..., object] | None = None
    steps: tuple[Step, ...] = field(init=False)

    def __post_init__(self, stages: Sequence[Step | Stage]) -> None:
        object.__setattr__(self, "steps", tuple(self._wired(stages)))
        known: dict[str, Step] = {}
        for step in self.steps:
            if step.name in known:
                raise codes.DUPLICATE_STEP(chain=self.name, step=step.name)
            for source in (one for word in step.reads for one in step.sources(word)):
                if isinstance(source, ExternalTable):
                    continue
                made, _, table = source.partition(":")
                if made not in known or table not in known[made].stage.tables:
                    raise codes.UNKNOWN_SOURCE(step=step.name, chain=self.name, source=source)
            for other in known.values():
                if other.stage.name == step.stage.name and not _alike(other.stage, step.stage):
                    raise codes.DUPLICATE_STAGE(
                        first=other.name, second=step.name, chain=self.name, stage=step.stage.name
                    )
            known[step.name] = step
        labels = [label for step in self.steps for label, _ in self.digested(step)]
        if len(set(labels)) < len(labels):
            raise codes.DUPLICATE_DIGEST(chain=self.name, names=", ".join(labels))

    def _wired(self, stages: Sequence[Step | Stage]) -> Iterator[Step]:
        """The steps, each with all that it reads."""
        before: list[Step] = []
        for given in stages:
            step = given if isinstance(given, Step) else Step(given.name, given)
            found = dict(step.reads)
            for word, table in {**step.stage.takes, **step.stage.may_take}.items():
                makers = [one.name for one in before if table in one.stage.tables] if word not in found else []
                if len(makers) == 1:
                    found[word] = f"{makers[0]}:{table}"
                elif makers:
                    raise codes.AMBIGUOUS_TABLE(
                        step=step.name, chain=self.name, table=table, makers=", ".join(makers), word=word
                    )
                elif word in step.stage.takes and word not in found:
                    raise codes.MISSING_TABLE(step=step.name, chain=self.name, table=table, word=word)
            before.append(replace(step, reads=found))
        yield from before

    def step(self, name: str) -> Step:
        """The step of a name.

        Raises:
            UserError: there is none.
        """
        for step in self.steps:
            if step.name == name:
                return step
        raise codes.NO_SUCH_STAGE(stage=name, stages=", ".join(step.name for step in self.steps))

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
