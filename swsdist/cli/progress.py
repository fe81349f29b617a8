"""Live progress: bars on a terminal, lines elsewhere; events for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import IO, TYPE_CHECKING, Any

from swsdist.cli.options import pipe
from swsdist.core.codes import families
from swsdist.pipeline.chain import Step
from swsdist.pipeline.operation.progress import ForwardingProgress, Progress
from swsdist.pipeline.task import Failure, Receipt, Task
from swsdist.report.summary import span

_EVERY = 5.0
#: Seconds between two lines outside of runs.
_SEARCH_EVERY = 30.0
#: Least done part of a stage, and least seconds since its first progress, for showing pace and ETA.
_MIN_DONE, _MIN_SECONDS = 0.01, 5.0

if TYPE_CHECKING:
    from rich.progress import TaskID

    from swsdist.store.reading import Store


def progress() -> Progress:
    """The display for standard error: bars on a terminal, else lines."""
    return Bars() if sys.stderr.isatty() else Lines()


def _amount(hours: float, of: float) -> str:
    """So much of the audio: 3.5 of 10 h of audio; little is in minutes or seconds. A total of 0 is unknown."""
    unit, count = next(
        ((unit, count) for unit, count in (("h", 1), ("min", 60)) if (of or hours) * count >= 1), ("s", 3600)
    )
    done, total = (
        f"{value:.0f}" if value >= 100 else f"{round(value, 2):.3g}" for value in (hours * count, of * count)
    )
    return f"{done}{f' of {total}' if of else ''} {unit} of audio"


class _Pace:
    """Progress of a stage, its pace in hours of audio per second, and its ETA."""

    def __init__(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        self.step = step
        self.round = 1
        self.todo, self.skipped, self.work = todo, skipped, max(work, 1e-9)
        self.hours = hours
        self.audio = hours > 0 and step.stage.unit in ("s", "cells")
        self.tasks = self.failed = 0
        self._ended = 0.0
        self._running: dict[str, float] = {}
        self._first: tuple[float, float] | None = None  # when the first news came, and what was done by then

    @classmethod
    def after(cls, before: _Pace | None, step: Step, todo: int, skipped: int, work: float, hours: float) -> _Pace:
        """The pace of a step that begins, or of its next round."""
        pace = cls(step, todo, skipped, work, hours)
        if before is not None and before.step.name == step.name:
            pace.round = before.round + 1
        return pace

    def _note_audio(self) -> None:
        if self._first is None:
            self._first = time.monotonic(), self.done

    @property
    def done(self) -> float:
        """Finished work, including parts of running tasks."""
        return min(self.work, self._ended + sum(self._running.values()))

    def part(self, task: Task, part: float) -> None:
        """A part of a running task is done."""
        self._running[task.fingerprint] = part * task.work
        self._note_audio()

    def add(self, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        task = outcome if isinstance(outcome, Receipt) else outcome.task
        self.tasks += 1
        self.failed += isinstance(outcome, Failure)
        self._running.pop(task.fingerprint, None)
        self._ended += task.work
        self._note_audio()

    def text(self) -> str:
        """Round (from the second on), hours, tasks, pace, ETA."""
        # Since the first progress: before it, workers start, compile and load.
        since, before = self._first or (time.monotonic(), 0.0)
        elapsed, made = time.monotonic() - since, (self.done - before) / self.work
        part, has_pace = self.done / self.work, elapsed >= _MIN_SECONDS and made >= _MIN_DONE
        words = [f"{self.tasks}/{self.todo} tasks"]
        if self.audio:
            words.insert(0, _amount(self.hours * part, self.hours))
        if self.round > 1:
            words.insert(0, f"round {self.round}")
        if self.skipped:
            words.append(f"{self.skipped} done before")
        if self.failed:
            words.append(f"{self.failed} FAILED")
        if has_pace and self.audio and self.hours >= 1:
            words.append(f"{self.hours * made / elapsed:.3g} h/s")
        if has_pace and part < 1:
            words.append(f"ETA {span(elapsed * (1 - part) / made)}")
        return ", ".join(words)


def with_point_count(inner: Progress) -> Progress:
    """A display that also prints how many points of a sweep are done."""
    return _Points(inner)


class _Points(ForwardingProgress):
    """Points end with the step that writes the table `det`, or with a task whose unit of work is points."""

    def __init__(self, inner: Progress) -> None:
        super().__init__(inner)
        self._done = 0.0

    def for_prerequisite(self, run: str) -> Progress:
        """Points of preceding runs count, too."""
        return self

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        if isinstance(outcome, Receipt):
            self._done += outcome.work if step.stage.unit == "points" else bool(outcome.parts("det"))
        super().task(step, outcome)

    def step_ends(self, step: Step, wall: float) -> None:
        """A step has ended."""
        super().step_ends(step, wall)
        if "det" in step.stage.tables or step.stage.unit == "points":
            print(f"points done: {self._done:.0f}", file=sys.stderr, flush=True)


class Lines(Progress):
    """Lines with their time, at the beginning and end of a stage, and every few seconds between."""

    def __init__(self, run: str = "") -> None:
        self._pace: _Pace | None = None
        self._said = 0.0
        self._run = f"{run}: " if run else ""

    def for_prerequisite(self, run: str) -> Progress:
        """Lines of a preceding run begin with its name."""
        return Lines(f"{self._run}{run}")

    def step_begins(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A stage begins, or its next round, which has no line."""
        self._pace = _Pace.after(self._pace, step, todo, skipped, work, hours)
        if self._pace.round > 1:
            self._now_and_then(step, self._pace)
            return
        self._said = time.monotonic()
        before = f", {skipped} done before" if skipped else ""
        self._say(f"{step.name}: {todo} tasks{before}")

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a running task is done."""
        if self._pace is not None:
            self._pace.part(task, part)
            self._now_and_then(step, self._pace)

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        if self._pace is None:
            return
        self._pace.add(outcome)
        if isinstance(outcome, Failure):
            self._say(f"{step.name}: FAILED {outcome.task.label}: {outcome.message}")
        self._now_and_then(step, self._pace)

    def _now_and_then(self, step: Step, pace: _Pace) -> None:
        if time.monotonic() - self._said > _EVERY:
            self._said = time.monotonic()
            self._say(f"{step.name}: {pace.text()}")

    def step_ends(self, step: Step, wall: float) -> None:
        """A stage has ended."""
        if self._pace is not None:
            self._say(f"{step.name}: {self._pace.text()}, {span(wall)}")

    def note(self, text: str) -> None:
        """Print a line."""
        self._say(text)

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {self._run}{text}", file=sys.stderr, flush=True)


class Bars(Progress):
    """A bar per stage, with rich."""

    def for_prerequisite(self, run: str) -> Progress:
        """A preceding run has its own bars, below its name."""
        print(f"{run}:", file=sys.stderr, flush=True)
        return Bars()

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._pace: _Pace | None = None
        self._id: TaskID | None = None
        self._running = False

    def step_begins(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A stage begins, or its next round, which restarts the bar."""
        if not self._running:
            self._bars.start()
            self._running = True
        self._pace = _Pace.after(self._pace, step, todo, skipped, work, hours)
        if self._id is not None and self._pace.round > 1:
            self._bars.update(self._id, total=self._pace.work, completed=0.0, words=self._pace.text())
        else:
            self._id = self._bars.add_task(step.name, total=self._pace.work, words=self._pace.text())

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a running task is done."""
        if self._pace is not None and self._id is not None:
            self._pace.part(task, part)
            self._bars.update(self._id, completed=self._pace.done, words=self._pace.text())

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        if self._pace is None or self._id is None:
            return
        self._pace.add(outcome)
        done = self._pace.work if self._pace.tasks == self._pace.todo else self._pace.done
        self._bars.update(self._id, completed=done, words=self._pace.text())
        if isinstance(outcome, Failure):
            self._bars.console.print(f"{step.name}: FAILED {outcome.task.label}: {outcome.message}", markup=False)

    def step_ends(self, step: Step, wall: float) -> None:
        """A stage has ended."""

    def note(self, text: str) -> None:
        """Print a line."""
        self._bars.console.print(text, markup=False)

    def close(self) -> None:
        """Stop updating the bars."""
        if self._running:
            self._bars.stop()
            self._running = False


@contextmanager
def showing_search(store: Store) -> Iterator[Store]:
    """A store whose search shows the hours done: a bar, or lines in a log."""
    from swsdist.store.reading import Store

    total = max(1.0, store.manifest.counts["frames"])
    hours = store.manifest.counts["seconds"] / 3600
    used = 0

    def watched(show: Callable[[float, str], None]) -> Store:
        def watch(frames: int) -> None:
            nonlocal used
            used += frames
            part = min(1.0, used / total)
            show(part, _amount(hours * part, hours))

        return Store(store.folder, store.manifest, watch)

    with _shown("searched") as show:
        yield watched(show)


@contextmanager
def showing_audio_read() -> Iterator[Callable[[float, float], None]]:
    """A function that shows the seconds of audio read, and the total (0: not known): a bar, or lines in a log."""
    with _shown("heard") as show:

        def tell(done: float, total: float) -> None:
            show(min(1.0, done / total) if total else 0.0, _amount(done / 3600, total / 3600))

        yield tell


@contextmanager
def _shown(verb: str) -> Iterator[Callable[[float, str], None]]:
    """A function that shows the done part of a task, with words."""
    if not sys.stderr.isatty():
        yield _now_and_then(verb)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (BarColumn(bar_width=30), TextColumn("{task.fields[words]}"), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0, words="")
        yield lambda part, words: bar.update(task, completed=part, words=words)


def _now_and_then(verb: str) -> Callable[[float, str], None]:
    """A function that logs progress once in a while."""
    began = said = time.monotonic()

    def show(part: float, words: str) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= _SEARCH_EVERY:
            said = now
            left = f", ETA {span((now - began) * (1 - part) / part)}" if 0 < part < 1 else ""
            print(f"{verb} {words}{left}", file=sys.stderr, flush=True)

    return show


class _Written(ForwardingProgress):
    """A display that also writes each event to a stream."""

    def __init__(self, inner: Progress, stream: IO[str]) -> None:
        super().__init__(inner)
        self._stream = stream

    def for_prerequisite(self, run: str) -> Progress:
        """Events of a preceding run go to the same stream."""
        return _Written(self._inner.for_prerequisite(run), self._stream)

    def event(self, line: Mapping[str, Any]) -> None:
        """Write and flush an event, so that readers can react."""
        self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._stream.flush()


@contextmanager
def events_to(place: str, inner: Progress) -> Iterator[Progress]:
    """A display that also writes events to a file, or to standard output; other output then goes to standard error.

    Raises:
        UserError: the file cannot be written.
    """
    if place == "-":
        stream = sys.stdout
        with redirect_stdout(sys.stderr):
            yield _Written(inner, stream)
        return
    try:
        file = open(place, "a", encoding="utf-8")  # noqa: SIM115, PTH123 (closed below)
    except OSError as error:
        raise families.OUTPUT_REFUSED(
            "cannot write the events: {reason}", "name another file", where=f"--events {place}", reason=error.strerror
        ) from None
    with file:
        yield _Written(inner, pipe(file))
