"""Recognisers of recordings, by name (`swsdist.registry.registries.RECOGNISERS`), and what they share: stretches and joints.

A recogniser takes a recording in stretches of at most so many seconds, since its memory grows with an utterance. A longer
one is cut in the middle of the quietest 0.3 s of the second half of each stretch, by the power of `swsdist.audio.speech`.
The lattices of stretches follow each other with no word between them, so a phrase may span a cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from swsdist.audio.speech import HOP, levels
from swsdist.config.section import NameIn, Section
from swsdist.core.codes import config as codes
from swsdist.core.extras import error_of
from swsdist.core.needs import Needs
from swsdist.lattices.lattice import MILLISECOND, Lattice, numbered, of_costs
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECOGNISERS

#: Seconds that are quiet where a recording is cut.
_QUIET = 0.3


class Text(NamedTuple):
    """Labels of a recording, as one writes them in a query, and -ln of the probability that they are said."""

    labels: tuple[str, ...]
    cost: float = 0.0


class Recogniser(Protocol):
    """Recognises recordings, each as if it were the first. It is made for each task, and cheap before `load`.

    Attributes:
        rate: samples a second that it takes.
        needs: alternative resources of a worker, the best first; `LEAST` is a CPU.
    """

    @property
    def rate(self) -> int: ...
    @property
    def needs(self) -> tuple[Needs, ...]: ...

    def identity(self) -> list[Any]:
        """All that lattices depend on besides recordings and version, as JSON values; files by their content or state.

        Raises:
            ConfigError: an option has a wrong value, or a file is missing.
        """
        ...

    def load(self, granted: Needs) -> None:
        """Load libraries and models, once in a process, for these resources; lattices do not depend on them.

        Raises:
            UserError: they cannot be used.
        """
        ...

    def lattice(self, key: str, channel: int, blocks: Iterable[NDArray[np.float32]]) -> Lattice:
        """The lattice of a recording.

        Args:
            key, channel: of the lattice.
            blocks: samples, full scale 1.

        Raises:
            DataError: the recording cannot be recognised.
        """
        ...

    def texts(self, blocks: Iterable[NDArray[np.float32]]) -> list[Text]:
        """What a spoken query may say, the likeliest first; none where nothing is recognised."""
        ...


class Recognition(Section):
    """Which recogniser, and how."""

    registry = RECOGNISERS

    name: Annotated[str, NameIn(RECOGNISERS)] = Field("pocketsphinx", description="recogniser")
    options: dict[str, object] = Field({}, description="its options, see below")

    @model_validator(mode="after")
    def _with_its_options(self) -> Recognition:
        self.complete()
        return self

    def complete(self) -> dict[str, object]:
        """All options.

        Raises:
            ConfigError: one is unknown or has a wrong value.
        """
        return checked(RECOGNISERS, self.name, self.options, "options.recogniser.options")

    def create(self) -> Recogniser:
        """The recogniser.

        Raises:
            ConfigError: a library is missing.
        """
        entry = RECOGNISERS[self.name]
        for library in entry.libraries:
            if find_spec(library) is None:
                missing = ModuleNotFoundError(f"No module named {library!r}", name=library)
                error = error_of(missing) or codes.ENTRY_NOT_LOADED(target=entry.target, error=str(missing))
                error.where = "options.recogniser"
                raise error
        recogniser: Recogniser = entry.load()(**self.complete())
        return recogniser

    def loaded(self, granted: Needs) -> Recogniser:
        """The recogniser, with its models; raises as `create` and `Recogniser.load`."""
        recogniser = self.create()
        recogniser.load(granted)
        return recogniser

    def identities(self) -> list[Any]:
        """All that lattices depend on besides the recordings, as JSON values."""
        return [*RECOGNISERS.identity(self.name), *self.create().identity()]


def stretches(blocks: Iterable[NDArray[np.float32]], longest: float, rate: int) -> Iterator[NDArray[np.float32]]:
    """A recording in stretches of at most `longest` seconds, cut where it is quiet; blocks do not matter."""
    most = round(longest * rate)
    parts, size = list[NDArray[np.float32]](), 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        while size > most:
            held = np.concatenate(parts)
            cut = quietest(held[:most], rate, most // 2)
            yield held[:cut]
            parts, size = [held[cut:]], size - cut
    if size:
        yield np.concatenate(parts)


def quietest(samples: NDArray[np.float32], rate: int, first: int) -> int:
    """The middle of the quietest 0.3 s from a sample on: where the loudest frame is least loud."""
    hop, size = round(HOP * rate), round(_QUIET / HOP)
    begin = first // hop * hop
    power = levels(samples[begin:], rate).power
    loudest = np.lib.stride_tricks.sliding_window_view(power, size).max(axis=1)
    return begin + (int(np.argmin(loudest)) + size // 2) * hop


def lasting(part: Lattice, length: int) -> Lattice:
    """A lattice in milliseconds, whose last state is at the end of its stretch of so many."""
    times = np.rint(part.times * (part.tick / MILLISECOND)).astype(np.int64)
    times[-1] = max(length, int(times.max()))
    return replace(part, tick=MILLISECOND, times=times, length=int(times[-1]))


def joined(key: str, channel: int, parts: list[tuple[int, Lattice]], length: int) -> Lattice:
    """Lattices of stretches, each with its first millisecond, as one: they begin at a first state and end at a last."""
    label, labels = numbered(text for _, part in parts for text in part.labels)
    times, sources, targets, names, graph = [np.zeros(1, np.int64)], [], [], [], []
    states, first, last = 1, 0, 0
    for begin, part in parts:
        count = len(part.labels)
        times.append(part.times + begin)
        sources += [np.array([last]), part.source + states]
        targets += [np.array([part.start + states]), part.target + states]
        names += [np.zeros(1, np.int64), label[first : first + count][part.label]]
        graph += [np.zeros(1), part.graph]
        states, first = states + part.states, first + count
        last = states - 1
    sources.append(np.array([last]))
    targets.append(np.array([states]))
    names.append(np.zeros(1, np.int64))
    graph.append(np.zeros(1))
    return of_costs(
        key,
        np.concatenate([*times, [max(length, int(times[-1].max()))]]),
        np.concatenate(sources).astype(np.int64),
        np.concatenate(targets).astype(np.int64),
        np.concatenate(names),
        np.concatenate(graph),
        labels,
        channel,
    )
