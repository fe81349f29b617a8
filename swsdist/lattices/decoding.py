"""Phone lattices and strings from a track of logits or posteriors: of phones, their states, or labels of CTC.

Lattices are exact, and memory is bounded (`swsdist.kernels.phone_loop`). The loop of three-state phones is that of
BUT's recogniser. The topology of CTC: a label lasts while its column does, blanks may be between labels, and must be
between equal ones.

Bigrams of phones come from a language model in ARPA's format. The weight of a phone after another is its bigram's, or,
where there is none, the first one's back-off weight and the second one's unigram. `<s>` is the beginning; `</s>` and
higher orders are left out. Logs in the file are of base 10.

Sources: P. Schwarz, "Phoneme recognition based on long temporal context", 2009; A. Graves et al., "Connectionist
temporal classification", ICML 2006, section 4; SRILM, ngram-format(5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, model_validator

from swsdist.config.section import IsPath, Section
from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.io.compressed import lines
from swsdist.io.fields import number, split
from swsdist.io.filesystem import identify
from swsdist.kernels import phone_loop
from swsdist.lattices.packed import TICK, Packed

#: Frames of a block: the most whose sums are held.
_BLOCK = 2048

#: Gives log posteriors of frames first..stop-1: (frames, phones, states).
Reader = Callable[[int, int], NDArray[np.floating]]


class Decoder(NamedTuple):
    """Settings of decoding posteriors.

    Attributes:
        scale: factor of log posteriors and of `insertion`; 0.3 to 0.5 for lattices, since frames of a phone are not
            independent, 1 for strings.
        insertion: what each phone adds to a path's log posterior, before the scale.
        pairs: float64 (phones + 1, phones), log weight of a phone after another, the last row at the start; None: any
            phone follows any other.
    """

    scale: float
    insertion: float = 0.0
    pairs: Floats | None = None


class PhoneArcs(NamedTuple):
    """Arcs of a phone lattice. A state is a border between frames and, with weights of pairs, the phone that ends there.

    Attributes:
        starts, ends: int32, borders of each arc.
        before: int32, the phone that ends at its start, or their number at the beginning; of a free loop -1.
        phones: int32.
        posteriors: float64, of each arc.
        visits: float64, of the state that each arc leaves.
        frames: their number.
        total: log of the sum over all paths; -inf: there is none.
    """

    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    before: NDArray[np.int32]
    phones: NDArray[np.int32]
    posteriors: Floats
    visits: Floats
    frames: int
    total: float


def phone_arcs(read: Reader, frames: int, decoder: Decoder, least: float = 1e-3) -> PhoneArcs:
    """The lattice of phones.

    Args:
        read: log posteriors, natural; of a range of frames.
        frames: their number.
        decoder: scale and weights.
        least: posterior of an arc.
    """
    ints, floats = np.empty(0, np.int32), np.empty(0)
    empty = PhoneArcs(ints, ints, ints, ints, floats, floats, frames, -np.inf)
    if frames == 0:
        return empty
    shape = read(0, 1).shape[1:]
    pairs = np.empty((0, 0)) if decoder.pairs is None else np.exp(decoder.pairs)
    entry = float(np.exp(decoder.scale * decoder.insertion))
    blocks = [(first, min(first + _BLOCK, frames)) for first in range(0, frames, _BLOCK)]
    # Sums are kept where blocks meet only: within a block they are computed again.
    mass, reached = np.zeros(shape), np.zeros(shape[0] + 1 if len(pairs) else 1)
    reached[-1] = 1.0
    factors, shift = np.empty(frames), 0.0
    earlier: list[tuple[Floats, Floats]] = []
    for first, stop in blocks:
        earlier.append((mass.copy(), reached))
        weights, highest = _weights(read(first, stop), decoder.scale)
        reached = _forward(weights, entry, pairs, mass, reached, factors[first:stop])[-1].copy()
        shift += float(highest.sum())
    total = float(reached.sum())
    if total <= 0.0:
        return empty
    onward, left = np.zeros(shape), np.ones(len(reached))
    later: list[tuple[Floats, Floats]] = []
    for first, stop in reversed(blocks):
        later.append((onward.copy(), left))
        weights, _ = _weights(read(first, stop), decoder.scale)
        weights /= factors[first:stop, None, None]
        left = _backward(weights, entry, pairs, onward, left)[0][0].copy()
    parts = []
    active = ints, ints, np.empty((0, shape[1]))
    borders, ending, visits = ints, np.empty((0, len(reached))), np.empty((0, len(reached)))
    for (first, stop), (mass, reached), (onward, left) in zip(blocks, earlier, reversed(later), strict=True):
        weights, _ = _weights(read(first, stop), decoder.scale)
        ended = _forward(weights, entry, pairs, mass, reached, factors[first:stop])
        after, inside = _backward(weights, entry, pairs, onward, left)
        # No product of BLAS, whose sums depend on the machine.
        entered = (np.einsum("tq,qp->tp", ended, pairs) if len(pairs) else ended) * entry
        made = phone_loop.segments(weights, inside, entered, after, total, first, least, *active)
        starts, ends, phone, posteriors = made[:4]
        active = made[4:]
        borders = np.concatenate((borders, np.arange(first, stop, dtype=np.int32)))
        ending = np.concatenate((ending, ended[:-1]))
        visits = np.concatenate((visits, (ended * after / total)[:-1]))
        at = np.searchsorted(borders, starts)
        if len(pairs):
            # A segment is an arc from each state of its first border: its posterior is shared by what enters it from there.
            shares = ending[at] * pairs[:, phone].T
            shares *= (posteriors / shares.sum(axis=1))[:, None]
            which, last = np.nonzero(shares >= least)
            before, at, posteriors = last.astype(np.int32), at[which], shares[which, last]
            starts, ends, phone = starts[which], ends[which], phone[which]
        else:
            before = np.full(len(starts), -1, np.int32)
        parts.append((starts, ends, before, phone, posteriors, visits[at, before]))
        lasting = np.isin(borders, active[0])
        borders, ending, visits = borders[lasting], ending[lasting], visits[lasting]
    log_total = float(np.log(total) + np.log(factors).sum() + shift)
    starts, ends, before, phone, posteriors, leaving = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PhoneArcs(starts, ends, before, phone, posteriors, leaving, frames, log_total)


def _forward(weights: Floats, entry: float, pairs: Floats, mass: Floats, reached: Floats, factors: Floats) -> Floats:
    """Sums to each border of a block from those of its first; weights, mass and factors are overwritten."""
    ended = np.empty((len(weights) + 1, len(reached)))
    ended[0] = reached
    phone_loop.forward(weights, entry, pairs, mass, ended, factors)
    return ended


def _backward(weights: Floats, entry: float, pairs: Floats, onward: Floats, left: Floats) -> tuple[Floats, Floats]:
    """Sums from each border of a block, and from its states, from those of its last border; `onward` is overwritten."""
    after, inside = np.empty((len(weights) + 1, len(left))), np.empty_like(weights)
    after[-1] = left
    phone_loop.backward(weights, entry, pairs, after, onward, inside)
    return after, inside


def _weights(log_posteriors: NDArray[np.floating], scale: float) -> tuple[Floats, Floats]:
    """exp(scale x log posterior), divided by its greatest value of each frame; and the logs of these."""
    scaled = scale * log_posteriors.astype(np.float64)
    highest = scaled.max(axis=(1, 2), keepdims=True)
    highest = np.maximum(highest, np.finfo(np.float32).min)  # of a frame without a possible state
    return np.exp(scaled - highest), highest


def packed_arcs(arcs: PhoneArcs, phones: Sequence[str], shift: float) -> Packed:
    """A phone lattice as it is searched.

    Args:
        arcs: from `phone_arcs`.
        phones: text of each phone; empty: no word.
        shift: s between frames.
    """
    columns = len(phones) + 2
    last = np.where(arcs.before < 0, -1, arcs.phones)
    leaves = arcs.starts.astype(np.int64) * columns + arcs.before + 1
    reaches = arcs.ends.astype(np.int64) * columns + last + 1
    order = np.lexsort((arcs.phones, reaches, leaves))
    states = np.union1d(leaves, reaches)
    source, target = np.searchsorted(states, leaves[order]), np.searchsorted(states, reaches[order])
    visits = np.zeros(len(states))
    visits[source] = arcs.visits[order]
    numbers: dict[str, int] = {"": 0}
    labels = np.array([numbers.setdefault(phone, len(numbers)) for phone in phones], np.int32)
    return Packed(
        np.rint(states // columns * (shift / TICK)).astype(np.int32),
        np.minimum(visits, 1.0),
        np.bincount(source, minlength=len(states)).astype(np.int32),
        (target - source).astype(np.int32),
        labels[arcs.phones[order]],
        np.minimum(arcs.posteriors[order] / arcs.visits[order], 1.0),
        tuple(numbers),
        round(arcs.frames * shift / TICK),
    )


_START = "<s>"
_COUNT = re.compile(r"ngram\s+(?P<order>\d+)\s*=\s*(?P<entries>\d+)")


def read_bigrams(path: str, phones: Sequence[str], storage: Mapping[str, object] | None = None) -> Floats:
    """Log weights (natural) of each phone after another; the last row at the beginning.

    Args:
        path: of the model.
        phones: names.
        storage: options for S3.

    Returns:
        float64 (phones + 1, phones).

    Raises:
        UserError: there is no such file.
        DataError: the file is no whole model in this format, or the model lacks a phone.
    """
    unigrams: dict[str, tuple[float, float]] = {}
    bigrams: dict[tuple[str, str], float] = {}
    counts: dict[int, tuple[int, str]] = {}
    section, where = "", path
    for line, text in lines(path, storage):
        fields, where = split(text), f"{path}:{line}"
        if text.startswith("\\"):
            section = text.strip()
        elif section == "\\data\\" and (count := _COUNT.fullmatch(text.strip())):
            counts[int(count["order"])] = int(count["entries"]), where
        elif section == "\\1-grams:" and fields:
            (phone,), weight, back_off = _entry(fields, 1, where)
            if phone in unigrams:
                raise codes.MALFORMED_ARPA(where=where, fault=f"has {phone} twice")
            unigrams[phone] = weight, back_off
        elif section == "\\2-grams:" and fields:
            (first, second), weight, _ = _entry(fields, 2, where)
            if unknown := {first, second} - set(unigrams):
                raise codes.MALFORMED_ARPA(where=where, fault=f"has a bigram of {min(unknown)}, and no unigram of it")
            if (first, second) in bigrams:
                raise codes.MALFORMED_ARPA(where=where, fault=f"has {first} {second} twice")
            bigrams[first, second] = weight
    if not counts:
        raise codes.MALFORMED_ARPA(where=path, fault="has no \\data\\ with numbers of entries")
    if section != "\\end\\":
        raise codes.MALFORMED_ARPA(where=where, fault="is cut off: it has no \\end\\")
    for order, entries in ((1, len(unigrams)), (2, len(bigrams))):
        declared, where = counts.get(order, (0, path))
        if declared != entries:
            fault = f"has {entries} {order}-grams, and its header says {declared}"
            raise codes.MALFORMED_ARPA(where=where, fault=fault)
    if missing := [phone for phone in phones if phone not in unigrams]:
        raise families.MISMATCH.of(DataError)(
            "the language model lacks {count} phones of the recogniser, among them {phone}",
            "train it on the recogniser's phones",
            where=path,
            phone=missing[0],
            count=len(missing),
        )
    before = [*phones, _START]
    return np.array(
        [
            [
                bigrams.get((first, second), unigrams.get(first, (0.0, 0.0))[1] + unigrams[second][0])
                for second in phones
            ]
            for first in before
        ]
    )


def _entry(fields: Sequence[str], order: int, where: str) -> tuple[Sequence[str], float, float]:
    """Phones, log weight and log back-off weight (natural; 0 if there is none) of a line."""
    if not order + 1 <= len(fields) <= order + 2:
        raise families.MALFORMED_LINE(
            "the line is no {order}-gram: {text}",
            "a line is LOG10-PROBABILITY PHONE [PHONE] [BACK-OFF]; write the model again",
            where=where,
            text=" ".join(fields),
            order=order,
        )
    weight = number(fields[0], "log probability", where)
    if weight > 0:
        raise codes.MALFORMED_ARPA(where=where, fault=f"has a log10 probability of {weight:g}, above 0")
    back_off = number(fields[order + 1], "back-off weight", where) if len(fields) > order + 1 else 0.0
    return fields[1 : order + 1], weight * math.log(10), back_off * math.log(10)


#: Posteriors are at least this before their logarithm is taken.
_FLOOR = 1e-30
#: Common names, of which a track may have none.
_NON_SPEECH = ("int", "pau", "spk", "non-speech", "sil", "SIL", "|", "<s>", "</s>", "<unk>")
_STATE = re.compile(r"(?P<phone>.+)\.(?P<state>[1-9])")


class Decoding(Section):
    """Settings of the conversion of frames to lattices and strings."""

    track: str | None = Field(None, description="track of logits or posteriors; default: the first")
    topology: Literal["loop", "ctc"] = Field(
        "loop",
        description="loop: any phone follows any other; ctc: equal labels need a blank between them",
    )
    blank: str = Field("<pad>", description="ctc: column of the blank")
    non_speech: tuple[str, ...] = Field(
        _NON_SPEECH,
        description="columns that are no phones of a query or document: silence, noise",
    )
    scale: PositiveFloat = Field(
        0.3, description="lattices: factor of log posteriors; frames of a phone are not independent, so below 1"
    )
    least: float = Field(1e-3, gt=0, lt=1, description="lattices: least posterior of an arc")
    insertion: float = Field(
        0.0,
        description="lattices: each phone, not a blank, has the log weight `scale` x this, as a frame `scale` x log posterior",
    )
    string_scale: PositiveFloat = Field(1.0, description="as `scale`, of strings of queries")
    string_insertion: float = Field(
        0.0,
        description="as `insertion`, of strings, times `string_scale`; BUT's recognisers: CZ -4.6875, HU -2.8125, RU -0.9375, "
        "EN -2.03125",
    )
    bigrams: IsPath | None = Field(None, description="loop: language model of phones, ARPA; higher orders are left out")
    lm_scale: PositiveFloat = Field(1.0, description="factor of its log weights")

    @model_validator(mode="after")
    def _bigrams_of_a_loop(self) -> Decoding:
        if self.bigrams is not None and self.topology == "ctc":
            raise codes.BIGRAMS_OF_CTC.invalid()
        return self

    def identities(self, storage: Mapping[str, object]) -> list[Any]:
        """All that lattices depend on besides the frames, as JSON values."""
        file = None if self.bigrams is None else identify(self.bigrams, storage)
        return [self.model_dump(mode="json", exclude={"bigrams"}), file]


class Columns(NamedTuple):
    """The columns of a track.

    Attributes:
        names: of each.
        kind: `logits` or `posteriors`.
    """

    names: Sequence[str]
    kind: str


class FrameDecoder:
    """Decodes frames of a track.

    Args:
        options: how.
        columns: of the track.
        storage: options for S3.

    Raises:
        UserError: the track has no posteriors, no blank, or not the non-speech that is named; or a file cannot be read.
    """

    def __init__(self, options: Decoding, columns: Columns, storage: Mapping[str, object] | None = None) -> None:
        where = "features"
        if columns.kind not in ("logits", "posteriors"):
            raise families.UNSUPPORTED(
                "the track holds {kind}, and a decoder takes logits or posteriors of phones",
                "name another track (options.decoding.track), or have the extractor give posteriors",
                where=where,
                kind=columns.kind,
            )
        self._options, self._logits = options, columns.kind == "logits"
        names, self._states = _phones(columns.names)
        ctc = options.topology == "ctc"
        if ctc and self._states > 1:
            raise families.UNSUPPORTED(
                "CTC needs one column a label, and {phone} has {states}",
                "decode states of phones by topology: loop (options.decoding.topology)",
                where=where,
                phone=names[0],
                states=self._states,
            )
        if ctc and options.blank not in names:
            raise families.UNKNOWN_NAME(
                "no column {blank}; the first columns are {columns}",
                "name the blank's column (options.decoding.blank); a track without one has topology: loop",
                where=where,
                blank=options.blank,
                columns=", ".join(names[:8]),
            )
        unknown = [name for name in options.non_speech if name not in (*names, *_NON_SPEECH)]
        if unknown:
            phones = ", ".join(names[:8])
            raise families.UNKNOWN_NAME(
                (
                    "options.decoding.non_speech has {name}, which is no phone of the track; the first of "
                    "its {count} are {phones}"
                ),
                "correct the name, or leave it out",
                where=where,
                name=unknown[0],
                count=len(names),
                phones=phones,
            )
        silent = {*options.non_speech, *([options.blank] if ctc else [])}
        #: Text of each phone; empty: no word.
        self.phones = [("" if name in silent else name) for name in names]
        pairs = None
        if options.bigrams is not None:
            pairs = options.lm_scale * read_bigrams(options.bigrams, names, storage)
        #: The phones of queries and documents.
        self.words = frozenset(self.phones) - {""}
        self._lattice = Decoder(options.scale, options.insertion, pairs)
        self._string = Decoder(options.string_scale, options.string_insertion, pairs)
        if ctc:
            blank = names.index(options.blank)
            self._lattice, self._string = (_of_ctc(item, len(names), blank) for item in (self._lattice, self._string))

    def log_posteriors(self, frames: Singles) -> Floats:
        """(frames, phones, states) of (frames, columns)."""
        values = frames.astype(np.float64)
        if self._logits:
            values -= values.max(axis=1, keepdims=True)
            values -= np.log(np.exp(values).sum(axis=1, keepdims=True))
        else:
            values = np.log(np.maximum(values, _FLOOR))
        return values.reshape(len(values), -1, self._states)

    def lattice(self, read: Reader, frames: int, shift: float) -> Packed:
        """The lattice of a recording.

        Args:
            read: its frames, (frames, columns), of a range.
            frames: their number.
            shift: s between frames.
        """

        def log_posteriors(first: int, stop: int) -> Floats:
            return self.log_posteriors(read(first, stop))

        return packed_arcs(phone_arcs(log_posteriors, frames, self._lattice, self._options.least), self.phones, shift)

    def string(self, frames: Singles) -> list[str]:
        """The likeliest phones of a query, without non-speech."""
        from swsdist.kernels.phone_loop import best_string  # compiles

        decoder = self._string
        costs = -decoder.scale * self.log_posteriors(frames)
        pairs = None if decoder.pairs is None else -decoder.pairs
        shape = len(self.phones), self._states
        segments = best_string([costs], shape, -decoder.scale * decoder.insertion, pairs)
        return [text for segment in segments if (text := self.phones[segment.phone])]


def _of_ctc(decoder: Decoder, labels: int, blank: int) -> Decoder:
    """The same for labels of CTC: equal ones need a blank between them, and a blank, which is no phone, costs no insertion."""
    pairs = np.full((labels + 1, labels), decoder.scale * decoder.insertion)
    pairs[:, blank] = 0.0
    pairs[np.arange(labels), np.arange(labels)] = -np.inf
    return Decoder(decoder.scale, 0.0, pairs)


def _phones(columns: Sequence[str]) -> tuple[list[str], int]:
    """Names of phones, and the number of states of each: columns `a.1`, `a.2`, `a.3` are states of `a`."""
    parts = [_STATE.fullmatch(name) for name in columns]
    if not columns or any(part is None for part in parts):
        return list(columns), 1
    names = list(dict.fromkeys(part["phone"] for part in parts if part is not None))
    states = len(columns) // len(names)
    expected = [f"{name}.{state}" for name in names for state in range(1, states + 1)]
    return (names, states) if expected == list(columns) else (list(columns), 1)
