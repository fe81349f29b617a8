"""Words of recordings by Whisper: their posteriors, alternatives, and times.

A recording is read in stretches of minutes. In each, Silero's detector marks speech, packed into windows of at most 30
s; a beam search gives the best hypotheses of a window. The language is given, or is the likeliest of the first windows
of a recording.

Whisper writes text where nobody speaks, or repeats a text: a hypothesis that compresses too well or is too unlikely is
left out, as in Whisper's own program. A window without another hypothesis is halved once where it is quiet, unless
Whisper predicts that nobody speaks. What is still wrong is left out and listed.

Posteriors: the probability of a word is the mean over its tokens, which cross-attention aligns with the sound. Where
hypotheses differ, a variant has the probability of the best one's words times the ratio of the likelihoods of both
hypotheses; of several hypotheses with the variant, the likeliest counts. Words follow each other as in a confusion
network.

Times: those of attention are early. An edge of a word near a pause moves to it. The other edges minimise, by least
squares, how far they move and how lengths differ from those by letters: attention errs about as much at an edge as
letters in a length.

Sources: Radford et al., 2023; faster-whisper 1.2 (`WhisperModel`), CTranslate2 4 (`Whisper`); rules of the Whisper
program's `transcribe`.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from swsdist.audio.speech import HOP, WINDOW, levels, quiet_and_loud
from swsdist.audio.speech import stretches as speech_stretches
from swsdist.config.section import IsPath, Section
from swsdist.core.arrays import Singles
from swsdist.core.codes import Code, families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import ConfigError, DataError
from swsdist.core.needs import Needs
from swsdist.io.filesystem import identify
from swsdist.io.local import folder_of, way_to
from swsdist.lattices.lattice import Lattice, LeftOut, Variant, Word, confusion_network
from swsdist.lattices.recognition import Text, quietest, stretches
from swsdist.lattices.words import pieces, spelled


def joined_words(parts: Iterable[Word], sizes: Iterable[int]) -> Iterator[Word]:
    """Words of parts that a tokenizer makes: a blank begins a word, and a character in scripts without blanks.

    Args:
        parts: text with the blank before it, times, and probability.
        sizes: tokens of each.

    Yields:
        Words without blanks. Punctuation belongs to the word beside it, whose times and probability stay.
    """
    held, count = Word("", 0.0, 0.0, 0.0), 0
    for part, size in zip(parts, sizes, strict=False):
        text, bare = held.text + part.text.strip(), not spelled(part.text.strip(), "folded")
        core = spelled(held.text, "folded")
        begins = part.text.startswith(" ") or (not bare and len(pieces(core + part.text)) > max(len(pieces(core)), 1))
        if held.text and begins:
            yield held
            held, count = part._replace(text=part.text.strip()), size
        elif bare and held.text:
            held = held._replace(text=text)
        elif not core:
            held, count = part._replace(text=text), size
        else:
            mean = (held.confidence * count + part.confidence * size) / (count + size)
            held, count = Word(text, held.start, part.end, mean), count + size
    if held.text:
        yield held


def variants(best: Sequence[Word], others: Sequence[tuple[float, Sequence[str]]]) -> Iterator[list[Variant]]:
    """Places of a hypothesis where others differ, and those between, each word one.

    Args:
        best: its words.
        others: of each other hypothesis, the ratio of its likelihood to the best's, and its words.

    Yields:
        Variants, of the best first: where others differ, each with its probability, the greatest of all hypotheses that have
        it. Their words last as long together as the best's.
    """
    if not best:
        return
    folded = [spelled(word.text, "folded") for word in best]
    spans: list[tuple[int, int]] = []
    changes: list[list[tuple[int, int, int, int]]] = []
    for _, words in others:
        matched = SequenceMatcher(None, folded, [spelled(word, "folded") for word in words], autojunk=False)
        # An insertion takes the word after it (the last: before it), so that it has a time.
        differing = [(i, k, j, m) for tag, i, k, j, m in matched.get_opcodes() if tag != "equal"]
        changes.append([_with_time(change, len(best), len(words)) for change in differing])
        spans += [(i, k) for i, k, _, _ in changes[-1]]
    at = 0
    for first, end in [*_merged(spans), (len(best), len(best))]:
        yield from ([Variant(1.0, (word,))] for word in best[at:first])
        if first < end:
            yield _region(best[first:end], list(_said(first, end, others, changes)))
        at = end


def _with_time(change: tuple[int, int, int, int], count: int, words: int) -> tuple[int, int, int, int]:
    i, k, j, m = change
    if i < k:
        return change
    return (i, k + 1, j, m + 1) if k < count and m < words else (i - 1, k, j - 1, m)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans, those that overlap as one."""
    result: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if result and first < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((first, end))
    return result


def _said(
    first: int,
    end: int,
    others: Sequence[tuple[float, Sequence[str]]],
    changes: Sequence[Sequence[tuple[int, int, int, int]]],
) -> Iterator[tuple[float, list[str]]]:
    """What other hypotheses have in a span of words of the best, where it differs, and the ratios of their likelihoods."""
    for (ratio, words), changed in zip(others, changes, strict=True):
        begin, stop, moved = first, end, False
        for i, k, _, m in changed:
            if k <= first:
                begin = first + (m - k)
            if i < end:
                stop = end + (m - k)
            moved |= i < end and k > first
        if moved:
            yield ratio, list(words[max(begin, 0) : stop])


def _region(best: Sequence[Word], said: list[tuple[float, list[str]]]) -> list[Variant]:
    chance = math.prod(word.confidence for word in best)
    ratios: dict[tuple[str, ...], tuple[float, list[str]]] = {}
    for ratio, words in said:
        key = tuple(text for word in words if (text := spelled(word, "folded")))
        if ratio > ratios.get(key, (0.0, words))[0]:
            ratios[key] = ratio, words
    total = chance * sum(ratio for ratio, _ in ratios.values())
    share = min(1.0, (1 - chance) / total) if total else 0.0
    start, end = best[0].start, best[-1].end
    rest = 1 - total * share
    held = (word._replace(confidence=min(word.confidence / max(rest, 1e-9), 1.0)) for word in best)
    result = [Variant(rest, tuple(held))]
    for ratio, words in ratios.values():
        sizes = np.cumsum([0, *(len(word) for word in words)])
        edges = (start + (end - start) * sizes / max(sizes[-1], 1)).tolist()
        spread = tuple(Word(word, edges[k], edges[k + 1]) for k, word in enumerate(words))
        result.append(Variant(chance * ratio * share, spread))
    return result


def repeated(words: list[str], copies: int) -> tuple[str, ...]:
    """What is repeated in the words of copies, once too few or too many times perhaps; nothing: no part is."""
    for times in (1,) if copies == 1 else (copies, copies + 1, copies - 1):
        part = words[: len(words) // times]
        if part and words == part * times:
            return tuple(part)
    return ()


#: Seconds by which attention comes before what it attends to, and in which an edge of a word moves to a pause: the best of the
#: development part of the English corpus.
_EARLY, _NEAR = 0.08, 0.2
#: Frames of the shortest pause.
_PAUSE = 12


def settled(words: Sequence[Word], samples: Singles, rate: int) -> list[Word]:
    """Words with their times moved.

    Args:
        words: in order, times in the samples.
        samples: float32, full scale 1.
        rate: Hz.
    """
    if not words:
        return []
    starts, ends = (np.array(column) + _EARLY for column in list(zip(*words, strict=True))[1:3])
    before, after = np.concatenate([starts[:1], ends]), np.concatenate([starts, ends[-1:]])
    edges = (before + after) / 2
    pause, weight = np.zeros(len(edges)), np.ones(len(edges))
    for first, last in _pauses(samples, rate):
        away = np.maximum(np.maximum(first - after, before - last), 0) + np.abs(edges - (first + last) / 2) / 1000
        if away[k := int(np.argmin(away))] <= _NEAR and weight[k] == 1:
            edges[k], pause[k], weight[k] = first, last - first, 1e6
    letters = np.array([max(len(spelled(word.text, "folded")) - 1, 1) for word in words])
    lengths = letters / letters.sum() * (np.diff(edges) - pause[:-1]).clip(0).sum()
    change = np.diff(np.eye(len(edges)), axis=0)
    edges = np.linalg.solve(np.diag(weight) + change.T @ change, weight * edges + change.T @ (lengths + pause[:-1]))
    edges = np.maximum.accumulate(edges.clip(0, len(samples) / rate))
    last_ends = np.maximum(edges[1:], (edges + pause)[:-1])
    return [
        word._replace(start=start, end=end)
        for word, start, end in zip(words, (edges + pause)[:-1].tolist(), last_ends.tolist(), strict=True)
    ]


def _pauses(samples: Singles, rate: int) -> Iterator[tuple[float, float]]:
    """First and last second of each stretch of quiet frames, of the lowest fifth between quiet and loud ones."""
    power = levels(samples, rate).power
    if len(power):
        quiet, loud = quiet_and_loud(power)
        for first, last in speech_stretches(power < quiet + (loud - quiet) / 5):
            if last - first >= _PAUSE:
                yield first * HOP + WINDOW / 2, last * HOP + WINDOW / 2


#: Samples a second.
RATE = 16_000
#: Seconds of a stretch, in which windows are packed.
_STRETCH = 300.0
#: Seconds of a window.
_WINDOW = 30.0
#: Windows that are recognised at once, and windows that tell the language.
_BATCH, _LISTENED = 2, 4
#: Milliseconds of silence between two parts of speech.
_SILENCE = 160
#: Copies of a spoken query, and seconds between them; and the least share of a text of it.
_COPIES, _GAP, _LEAST = 3, 0.5, 1e-3
#: Seconds of the shortest window that is halved.
_HALVED = 4.0
#: Files of a model.
_FILES = ("model.bin", "config.json", "tokenizer.json")
#: Others that it may have.
_OTHERS = ("preprocessor_config.json", "vocabulary.*")
#: Tokens of a model of many languages at least, and of a prompt at most.
_MULTILINGUAL, _PROMPT = 51_865, 223
_SUPPRESSED = frozenset("0123456789%$£€¥°")
#: glibc returns blocks of so many bytes at once. It would keep those of the detector and the encoder, whose sizes vary, in
#: pieces that fit none of the next: 50 MB more with each hour.
_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 22
#: A probability of no speech above which an unlikely text is not tried again.
_SILENT = 0.6
#: A probability below which a language is not the one that is spoken.
_FOREIGN = 0.01


class Whisper(Section):
    """Recognises words by Whisper."""

    model: IsPath = Field(
        "Systran/faster-whisper-base",
        description="folder of a Whisper model of CTranslate2; or, where there is no such folder, the name of one in the hub's "
        "cache",
    )
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$")] | None = Field(
        None, description="of all recordings, as its code: en, fr, sw; default: detected in each recording"
    )
    beam: PositiveInt = Field(5, description="hypotheses that the search holds, and that become alternatives")
    alternatives: bool = Field(True, description="lattices hold what is second best; false: the best words alone")
    hotwords: tuple[str, ...] = Field(
        (),
        description="words or phrases to expect, such as names, as one writes them: in a prompt of at most 223 tokens",
    )
    numerals: bool = Field(False, description="numbers in digits (60); false: in words (sixty), as terms are")
    speech: float = Field(0.5, ge=0, lt=1, description="probability of speech from which sound is recognised; 0: all")
    most_compressed: PositiveFloat = Field(
        2.4, description="leave out text that compresses by a larger factor: it repeats itself"
    )
    least_likely: float = Field(-1.0, description="leave out text of a smaller mean log-probability of its tokens")
    device: Literal["cpu", "cuda"] = Field("cpu", description="where it is computed; on a GPU numbers differ a little")
    dtype: Literal["int8", "float32", "float16"] = Field("int8", description="what is computed in")

    rate: ClassVar[int] = RATE

    @property
    def needs(self) -> tuple[Needs, ...]:
        """One thread; memory for the weights, the stretch, and a batch of windows."""
        place = Path(self._folder) / "model.bin"
        weights = place.stat().st_size if place.is_file() else 0
        held = {"int8": 2, "float16": 3, "float32": 5}[self.dtype] * weights  # of files of 8 bit
        return (Needs(cpus=1, memory_gb=round(0.7 + held / 1e9, 2), gpus=float(self.device == "cuda")),)

    @cached_property
    def _folder(self) -> str:
        return folder_of(self.model)

    def identity(self) -> list[Any]:
        """Options, versions and the model's files, by their content or state.

        Raises:
            ConfigError: the model is missing, or of another kind; it has no such language, or no room for all hot words.
        """
        folder = Path(self._folder)
        where = "options.recogniser.options.model"
        if not folder.is_dir():
            raise codes.NO_WHISPER_MODEL(where=where, model=self.model, fix=way_to(self.model))
        if missing := [name for name in (*_FILES, "vocabulary.*") if not any(folder.glob(name))]:
            raise families.UNUSABLE_MODEL(
                "{model} is no Whisper model of CTranslate2: it lacks {missing}",
                (
                    "name one (hf download Systran/faster-whisper-base), or convert this one: "
                    "ct2-transformers-converter --model FOLDER --output_dir FOLDER-ct2 --copy_files "
                    "tokenizer.json preprocessor_config.json --quantization int8"
                ),
                where=where,
                model=self.model,
                missing=", ".join(missing),
            )
        self._check(folder)
        values = self.model_dump(mode="json", exclude={"model", "device"})
        files = [*_FILES, *sorted(path.name for name in _OTHERS for path in folder.glob(name))]
        versions = [version(name) for name in ("faster-whisper", "ctranslate2", "onnxruntime")]
        return [values, [[name, identify(str(folder / name))] for name in files], *versions]

    def _check(self, folder: Path) -> None:
        where = "options.recogniser.options"
        vocabulary = _vocabulary(folder)
        named = (re.fullmatch(r"<\|([a-z]{2,3})\|>", token) for token in vocabulary)
        languages = sorted({match[1] for match in named if match}) if len(vocabulary) >= _MULTILINGUAL else ["en"]
        if self.language is not None and self.language not in languages:
            raise families.UNKNOWN_NAME.of(ConfigError)(
                "the model does not know the language {language}",
                "choose one of {languages}, or none: it is detected",
                where=f"{where}.language",
                language=self.language,
                languages=", ".join(languages),
            )
        tokens = _tokens(str(folder / "tokenizer.json"))
        text = " " + ", ".join(self.hotwords)
        size = len(tokens.encode(text, add_special_tokens=False).ids) if self.hotwords else 0
        if size > _PROMPT:
            raise families.TOO_LARGE.of(ConfigError)(
                "hotwords are {tokens} tokens of the model; a prompt has room for {most}",
                "give fewer, the rarest names first",
                where=f"{where}.hotwords",
                tokens=size,
                most=_PROMPT,
            )

    def _model(self) -> _Model:
        return _loaded(self._folder, self.device, self.dtype)

    def load(self, granted: Needs) -> None:
        """Load the model.

        Raises:
            UserError: it cannot be read, or there is no such device.
        """
        self._model()

    def lattice(self, key: str, channel: int, blocks: Iterable[Singles]) -> Lattice:
        """The lattice of a recording, with words as Whisper writes them, their language, and what was left out.

        Args:
            key, channel: of the lattice.
            blocks: samples at 16 kHz, full scale 1.
        """
        found = _Recording(self, self._model())
        regions = list(found.regions(blocks))
        words = tuple(
            word._replace(confidence=word.confidence * best.chance) for best, *_ in regions for word in best.words
        )
        return replace(
            confusion_network(key, channel, regions, round(found.samples / RATE * 1000), words),
            language=found.language if words else self.language,
            speech_seconds=found.spoken / RATE if self.speech else None,
            left_out=found.left_out,
        )

    def texts(self, blocks: Iterable[Singles]) -> list[Text]:
        """What a spoken query may say: texts of the hypotheses, and of those of three copies of it, which a short one needs.

        The probability of a text is the sum over its hypotheses, which differ in case and punctuation; of both searches, the
        mean. A query that is longer than a window has its best words.
        """
        samples, model = np.concatenate([np.empty(0, np.float32), *blocks]), self._model()
        if not len(samples) or not list(model.speech(samples, self.speech)):
            return []
        if len(samples) > _WINDOW * RATE:
            regions = _Recording(self, model).regions([samples])
            words = (spelled(word.text, "folded") for region in regions for word in region[0].words)
            return [Text(tuple(word for word in words if word))]
        copies = [1, _COPIES] if _COPIES * (len(samples) + _GAP * RATE) <= _WINDOW * RATE else [1]
        said = np.append(samples, np.zeros(round(_GAP * RATE), np.float32))
        windows = [(copy, model.encoded(np.tile(said, copy))) for copy in copies]
        heard = {} if self.language else model.languages([windows[0][1]])
        language = self.language or max(heard, key=heard.__getitem__)
        chances: dict[tuple[str, ...], float] = {}
        for found in filter(None, (self._query_texts(model, window, copy, language) for copy, window in windows)):
            for labels, chance in found.items():
                chances[labels] = chances.get(labels, 0.0) + chance
        total = sum(chances.values())
        kept = [Text(labels, -math.log(p / total) + 0.0) for labels, p in chances.items() if p > _LEAST * total]
        return sorted(kept, key=lambda text: (text.cost, text.labels))

    def _query_texts(self, model: _Model, window: Singles, copies: int, language: str) -> dict[tuple[str, ...], float]:
        """Texts of a query that is said several times, with probabilities that add up to 1; none if no text is repeated so, or
        nobody seems to speak.
        """
        ((hypotheses, silent),) = model.hypotheses([window], language, self.model_copy(update={"beam": 2 * self.beam}))
        if silent > _SILENT and hypotheses[0].mean < self.least_likely:
            return {}
        logs: dict[tuple[str, ...], list[float]] = {}
        for hypothesis in hypotheses:
            words = (spelled(word, "folded") for word in model.split(hypothesis.tokens, language))
            labels = repeated([word for word in words if word], copies)
            if labels:
                logs.setdefault(labels, []).append(hypothesis.likelihood)
        best = max(map(max, logs.values()), default=0.0)
        sums = {labels: sum(math.exp(value - best) for value in values) for labels, values in logs.items()}
        return {labels: value / sum(sums.values()) for labels, value in sums.items()}


class _Hypothesis(NamedTuple):
    """Tokens of text, and the log-probability of all of them."""

    tokens: list[int]
    likelihood: float

    @property
    def mean(self) -> float:
        """The mean log-probability of a token, and of the end."""
        return self.likelihood / (len(self.tokens) + 1)


class _Window(NamedTuple):
    """Speech of a stretch, of at most 30 s.

    Attributes:
        samples: float32, its parts without what lies between them.
        places: of each part, its first sample in the window and in the recording.
    """

    samples: Singles
    places: list[tuple[int, int]]

    def seconds(self, at: float, middle: float) -> float:
        """The time in the recording of a time in the window, both s, in the part in which `middle` lies."""
        first, begin = next(place for place in reversed(self.places) if place[0] <= max(middle, 0.0) * RATE)
        return begin / RATE + at - first / RATE

    def half(self, first: int, end: int) -> _Window:
        """A part of it."""
        places = [(max(at, first) - first, begin + max(first - at, 0)) for at, begin in self.places if at < end]
        kept = [k for k, place in enumerate(places) if k + 1 == len(places) or places[k + 1][0] > 0]
        return _Window(self.samples[first:end], [places[k] for k in kept])


class _Recording:
    """Recognises a recording.

    Attributes:
        samples, spoken: that were read, and those of speech.
        language: as it is given, or detected; empty until then.
        left_out: texts that are no words of it.
    """

    def __init__(self, options: Whisper, model: _Model) -> None:
        self.samples = self.spoken = 0
        self.language = options.language or ""
        self.left_out = LeftOut()
        self._options, self._model, self._listened = options, model, False

    def regions(self, blocks: Iterable[Singles]) -> Iterator[list[Variant]]:
        """Variants of each place where there are words, the best first, in order."""
        held: list[tuple[_Window, Any]] = []
        for window in self._windows(blocks):
            held.append((window, self._model.encoded(window.samples)))
            if len(held) == (_BATCH if self._listened else _LISTENED):
                yield from self._recognised(held)
                held = []
        yield from self._recognised(held)

    def _listen(self, windows: Sequence[Singles]) -> None:
        """Detect the language; list a recording in another one than was given."""
        chances, self._listened = self._model.languages(windows), True
        detected = max(chances, key=chances.__getitem__)
        if not self.language:
            self.language = detected
        elif chances.get(self.language, 0.0) < _FOREIGN:
            with self.left_out:
                raise codes.OTHER_LANGUAGE(
                    heard=detected,
                    chance=chances[detected],
                    language=self.language,
                    given=chances.get(self.language, 0.0),
                )

    def _windows(self, blocks: Iterable[Singles]) -> Iterator[_Window]:
        for stretch in stretches(blocks, _STRETCH, RATE):
            begin, self.samples = self.samples, self.samples + len(stretch)
            for parts in self._model.speech(stretch, self._options.speech):
                sizes = np.cumsum([0, *(end - first for first, end in parts)]).tolist()
                places = [(size, begin + first) for size, (first, _) in zip(sizes, parts, strict=False)]
                self.spoken += sizes[-1]
                yield _Window(np.concatenate([stretch[first:end] for first, end in parts]), places)

    def _recognised(self, held: Sequence[tuple[_Window, Any]]) -> Iterator[list[Variant]]:
        if not held:
            return
        if not self._listened:
            self._listen([encoded for _, encoded in held])
        for k in range(0, len(held), _BATCH):
            some = held[k : k + _BATCH]
            found = self._model.hypotheses([encoded for _, encoded in some], self.language, self._options)
            for (window, encoded), (hypotheses, silent) in zip(some, found, strict=True):
                yield from self._checked(window, encoded, hypotheses, silent)

    def _checked(
        self, window: _Window, encoded: Any, hypotheses: list[_Hypothesis], silent: float, halve: bool = True
    ) -> Iterator[list[Variant]]:
        """Of hypotheses that may be said; else those of both halves."""
        faults = [self._fault(hypothesis, silent) for hypothesis in hypotheses]
        kept = [hypothesis for hypothesis, fault in zip(hypotheses, faults, strict=True) if fault is None]
        if kept:
            yield from self._placed(window, encoded, kept)
            return
        text, fault = self._model.text(hypotheses[0].tokens, self.language), faults[0]
        if not text or fault is None:
            return
        if halve and silent <= _SILENT and len(window.samples) >= _HALVED * RATE:
            size = len(window.samples)
            cut = quietest(window.samples[: 3 * size // 4], RATE, size // 4)
            for first, end in ((0, cut), (cut, len(window.samples))):
                half = window.half(first, end)
                inside = self._model.encoded(half.samples)
                ((again, still),) = self._model.hypotheses([inside], self.language, self._options)
                yield from self._checked(half, inside, again, still, halve=False)
            return
        seconds = len(window.samples) / RATE
        start, stop = window.seconds(0.0, 0.0), window.seconds(seconds, seconds)
        with self.left_out:
            raise fault[0](start=start, end=stop, seconds=seconds, text=text[:80], value=fault[1])

    def _fault(self, hypothesis: _Hypothesis, silent: float) -> tuple[Code[DataError], float] | None:
        """Why a hypothesis is no text of its window, and the number that says so; None: it may be."""
        options, text = self._options, self._model.text(hypothesis.tokens, self.language).encode()
        if (ratio := len(text) / len(zlib.compress(text))) > options.most_compressed:
            return codes.REPEATED_TEXT, ratio
        if text and hypothesis.mean >= options.least_likely:
            return None
        return (codes.TEXT_OF_NO_SPEECH, silent) if silent > _SILENT else (codes.UNLIKELY_TEXT, hypothesis.mean)

    def _placed(self, window: _Window, encoded: Any, hypotheses: list[_Hypothesis]) -> Iterator[list[Variant]]:
        length = len(window.samples)
        best = settled(self._model.aligned(hypotheses[0].tokens, encoded, length, self.language), window.samples, RATE)
        for region in variants(best, self._others(hypotheses)):
            yield [
                Variant(chance, tuple(_moved(word, window, length / RATE) for word in words))
                for chance, words in region
            ]

    def _others(self, hypotheses: list[_Hypothesis]) -> list[tuple[float, list[str]]]:
        if not self._options.alternatives:
            return []
        first, *others = hypotheses
        return [
            (math.exp(min(other.likelihood - first.likelihood, 0.0)), self._model.split(other.tokens, self.language))
            for other in others
        ]


def _moved(word: Word, window: _Window, end: float) -> Word:
    """A word of a window, with its times in the recording."""
    middle = min((word.start + word.end) / 2, end)
    start, stop = (window.seconds(min(at, end), middle) for at in (word.start, word.end))
    return word._replace(start=max(start, 0.0), end=max(stop, start, 0.0))


@lru_cache(maxsize=1)
def _tokens(path: str) -> Any:
    """The tokenizer of a model, without the model."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(path)
    except Exception as error:  # it raises no other
        raise codes.WHISPER_NOT_LOADED(where=path, error=error) from None


def _vocabulary(folder: Path) -> list[str]:
    """All tokens of a model; those of `tokenizer.json` are without times."""
    path = min(folder.glob("vocabulary.*"))
    try:
        text = path.read_text("utf-8")
        return text.splitlines() if path.suffix == ".txt" else list(json.loads(text))
    except ValueError as error:
        raise codes.WHISPER_NOT_LOADED(where=str(path), error=error) from None


class _Model:
    """A Whisper model of CTranslate2.

    Raises:
        UserError: it cannot be loaded.
    """

    def __init__(self, folder: str, device: str, dtype: str) -> None:
        from faster_whisper import WhisperModel

        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
        try:
            self._whisper = WhisperModel(
                folder, device=device, compute_type=dtype, cpu_threads=1, local_files_only=True
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise codes.WHISPER_NOT_LOADED(where=folder, error=error) from None
        self._tokenizers: dict[str, Any] = {}

    def speech(self, stretch: Singles, least: float) -> Iterator[list[tuple[int, int]]]:
        """Parts of speech of each window, as first and end samples."""
        from faster_whisper.vad import VadOptions, get_speech_timestamps

        most = round(_WINDOW * RATE)
        found = [{"start": k, "end": min(k + most, len(stretch))} for k in range(0, len(stretch), most)]
        if least:
            options = VadOptions(threshold=least, max_speech_duration_s=_WINDOW, min_silence_duration_ms=_SILENCE)
            found = get_speech_timestamps(stretch, options, RATE)
        window: list[tuple[int, int]] = []
        held = 0
        for part in found:
            first, end = int(part["start"]), int(part["end"])
            if window and held + end - first > most:
                yield window
                window, held = [], 0
            window.append((first, end))
            held += end - first
        if window:
            yield window

    def encoded(self, samples: Singles) -> Singles:
        """Outputs of the encoder for a window, float32 (1, frames, width)."""
        from ctranslate2 import Device
        from faster_whisper.audio import pad_or_trim

        features = self._whisper.feature_extractor(samples)[..., :-1]
        output = self._whisper.encode(pad_or_trim(features))
        return np.array(output.to_device(Device.cpu) if self._whisper.model.device == "cuda" else output)

    def languages(self, windows: Sequence[Singles]) -> dict[str, float]:
        """The probability of each language that the model knows, by all windows."""
        if not self._whisper.model.is_multilingual:
            return {"en": 1.0}
        logs: dict[str, float] = {}
        for window in windows:
            (found,) = self._whisper.model.detect_language(_storage(window))
            for token, chance in found:
                logs[token[2:-2]] = logs.get(token[2:-2], 0.0) + math.log(max(chance, 1e-9))
        best = max(logs.values())
        total = sum(math.exp(value - best) for value in logs.values())
        return {name: math.exp(value - best) / total for name, value in logs.items()}

    def hypotheses(
        self, windows: Sequence[Singles], language: str, options: Whisper
    ) -> list[tuple[list[_Hypothesis], float]]:
        """Of each window the hypotheses of a beam search, the best first, and the probability of no speech."""
        tokenizer = self._tokenizer(language)
        hotwords = ", ".join(options.hotwords) or None
        prompt = self._whisper.get_prompt(tokenizer, [], without_timestamps=True, hotwords=hotwords)
        results = self._whisper.model.generate(
            _storage(np.concatenate(windows)),
            [prompt] * len(windows),
            beam_size=options.beam,
            num_hypotheses=options.beam if options.beam > 1 else 1,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_tokens=self._suppressed(tokenizer, options.numerals),
        )
        return [
            (
                [
                    _Hypothesis([t for t in tokens if t < tokenizer.eot], score * len(tokens))
                    for tokens, score in zip(result.sequences_ids, result.scores, strict=True)
                ],
                result.no_speech_prob,
            )
            for result in results
        ]

    def aligned(self, tokens: list[int], encoded: Singles, length: int, language: str) -> list[Word]:
        """Words of a hypothesis, with times in a window of so many samples (s) and their mean probabilities."""
        frames = math.ceil(length / self._whisper.feature_extractor.hop_length)
        (found,) = self._whisper.find_alignment(self._tokenizer(language), [tokens], _storage(encoded), frames)
        parts = [Word(item["word"], *(float(item[key]) for key in ("start", "end", "probability"))) for item in found]
        sizes = [len(item["tokens"]) for item in found]
        return list(joined_words(parts, sizes))

    def split(self, tokens: list[int], language: str) -> list[str]:
        """Words of tokens, as `aligned` has them."""
        tokenizer = self._tokenizer(language)
        words, parts = tokenizer.split_to_word_tokens([*tokens, tokenizer.eot])
        return [word.text for word in joined_words([Word(word, 0.0, 0.0) for word in words[:-1]], map(len, parts))]

    def text(self, tokens: list[int], language: str) -> str:
        """The text of tokens."""
        text: str = self._tokenizer(language).decode(tokens)
        return text.strip()

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._tokenizers:
            multilingual = self._whisper.model.is_multilingual
            self._tokenizers[language] = Tokenizer(
                self._whisper.hf_tokenizer, multilingual, task="transcribe", language=language
            )
        return self._tokenizers[language]

    def _suppressed(self, tokenizer: Any, numerals: bool) -> list[int]:
        from faster_whisper.transcribe import get_suppressed_tokens

        return [*get_suppressed_tokens(tokenizer, [-1]), *(() if numerals else self._with_digits)]

    @cached_property
    def _with_digits(self) -> tuple[int, ...]:
        """Tokens of text with digits, or signs of amounts."""
        tokenizer = self._tokenizer("en")
        return tuple(
            number
            for number in sorted(self._whisper.hf_tokenizer.get_vocab().values())
            if number < tokenizer.eot and _SUPPRESSED.intersection(tokenizer.decode([number]))
        )


#: A model, kept by the process: loading it takes seconds.
_loaded = lru_cache(maxsize=1)(_Model)


def _storage(array: Singles) -> Any:
    from ctranslate2 import StorageView

    return StorageView.from_array(np.ascontiguousarray(array))
