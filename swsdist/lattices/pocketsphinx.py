"""Words of recordings by pocketsphinx: lattices, and best words.

A recording is recognised at 16 kHz, in the stretches of `swsdist.lattices.recognition`. A stretch in which `find_speech`
finds no speech has no words: pocketsphinx makes words of silence.

A recognition depends on the recording alone. A decoder carries cepstral means from utterance to utterance; `reinit_feat` before
each makes it give the bytes of a new decoder.

Posteriors are pocketsphinx's own (`swsdist.lattices.formats.htk`), with acoustic scores divided by `scale`. A word
that ends a lattice lasts to the end of the stretch, where pocketsphinx's SLF gives it no length.

Source: pocketsphinx 5.1.1, its documentation of `Config`, `Decoder` and `Lattice`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, PositiveFloat, model_validator

from swsdist.audio.speech import find_speech
from swsdist.config.section import IsPath, Section
from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import ConfigError, UserError
from swsdist.core.needs import LEAST, Needs
from swsdist.io.filesystem import Folder, identify, is_remote
from swsdist.io.remote.scratch import scratch
from swsdist.lattices.formats import htk
from swsdist.lattices.lattice import MILLISECOND, Broken, Lattice, Origin
from swsdist.lattices.recognition import Text, joined, lasting, stretches

#: Samples a second.
RATE = 16_000
#: Seconds without words: nothing shorter is recognised.
_SHORTEST = 0.1
#: Parameters of pocketsphinx that other options set, or that have no effect on lattices.
_TAKEN = ("samprate", "hmm", "dict", "lm", "ascale", "loglevel", "logfn", "input_endian")
_FILLER = re.compile(r"<.*>|\[.*\]|\+\+.*\+\+")
#: A line of a dictionary without phones, or with one that the model lacks, in pocketsphinx's log.
_IGNORED = re.compile(r"Line (?P<line>\d+): (?P<fault>(Phone|No pronunciation) .*); (word .* )?ignored")
_VARIANT = re.compile(r"\([0-9]+\)$")


class Pocketsphinx(Section):
    """Recognises words by pocketsphinx."""

    model: IsPath | None = Field(
        None, description="folder of an acoustic model of pocketsphinx; default: US English, of its package"
    )
    dictionary: IsPath | None = Field(
        None,
        description="pronunciations of the words that it knows: lines `WORD PHONE PHONE ...`; default: of its package",
    )
    lm: IsPath | None = Field(None, description="language model of words, ARPA or binary; default: of its package")
    scale: PositiveFloat = Field(20.0, description="what acoustic scores are divided by in posteriors (ascale)")
    longest: float = Field(30.0, ge=2, description="seconds that are recognised at once; longer recordings are cut")
    parameters: dict[str, bool | int | float | str] = Field(
        default_factory=dict,
        description="other parameters of pocketsphinx, by their names: lw, beam, wbeam, fwdflatbeam, ...",
    )

    rate: ClassVar[int] = RATE
    needs: ClassVar[tuple[Needs, ...]] = LEAST

    @model_validator(mode="after")
    def _model_with_words(self) -> Pocketsphinx:
        missing = [key for key in ("dictionary", "lm") if getattr(self, key) is None]
        if self.model is not None and missing:
            raise codes.MODEL_ALONE.invalid(missing=" and ".join(missing))
        return self

    def identity(self) -> list[Any]:
        """Options and version of pocketsphinx; files by their identity.

        Raises:
            ConfigError: pocketsphinx is not installed, a parameter is wrong, or a model is missing or remote.
        """
        _configured(self)
        files: list[Any] = []
        for key in ("model", "dictionary", "lm"):
            path = getattr(self, key)
            if path is None:
                files.append(None)
                continue
            if is_remote(path):
                raise families.UNSUPPORTED.of(ConfigError)(
                    "pocketsphinx cannot read {path}: it reads files of its machine",
                    "copy it to a folder that every node has",
                    where=f"options.recogniser.options.{key}",
                    path=path,
                )
            listed = Folder(path).listing() if key == "model" else {}
            if not listed and not Path(path).is_file():
                raise families.MISSING_MODEL(
                    "there is no {path}, or it is empty",
                    "name a file or folder of pocketsphinx's models, or leave the option out for those of its package",
                    where=f"options.recogniser.options.{key}",
                    path=path,
                )
            files.append([[name, item.identity] for name, item in listed.items()] or identify(path))
        values = self.model_dump(mode="json", exclude={"model", "dictionary", "lm"})
        return [values, files, version("pocketsphinx")]

    def load(self, granted: Needs) -> None:
        """Load the models.

        Raises:
            UserError: pocketsphinx cannot use them; or a line of the dictionary has no phones, or one that the acoustic model
                lacks.
        """
        _ = self._decoder

    @property
    def _decoder(self) -> Any:
        return _decoder(self.model_dump_json())

    def lattice(self, key: str, channel: int, blocks: Iterable[Singles]) -> Lattice:
        """The lattice of a recording.

        Args:
            key, channel: of the lattice.
            blocks: samples at 16 kHz, full scale 1.

        Raises:
            DataError: pocketsphinx makes no lattice of a stretch.
        """
        parts: list[tuple[int, Lattice]] = []
        samples = 0
        with tempfile.TemporaryDirectory(dir=scratch()) as folder:
            for stretch in stretches(blocks, self.longest, RATE):
                begin, samples = samples, samples + len(stretch)
                if self._recognises(stretch):
                    graph = self._decoder.get_lattice()
                    if graph is None:
                        raise codes.NOTHING_DECODED(where=key, start=begin / RATE, end=samples / RATE)
                    self._decoder.get_prob()  # posteriors of links exist once this was asked for
                    graph.write_htk(f"{folder}/part.slf")
                    (part,) = htk.read_pocketsphinx(Origin(f"{folder}/part.slf"))
                    if isinstance(part, Broken):
                        raise part.error
                    parts.append((_ticks(begin), lasting(part, _ticks(len(stretch)))))
        return joined(key, channel, parts, _ticks(samples))

    def texts(self, blocks: Iterable[Singles]) -> list[Text]:
        """The best words of a recording, without fillers; none where nothing is recognised."""
        result: list[str] = []
        for stretch in stretches(blocks, self.longest, RATE):
            segments = (self._decoder.seg() or ()) if self._recognises(stretch) else ()
            result += [_VARIANT.sub("", item.word) for item in segments if not _FILLER.fullmatch(item.word)]
        return [Text(tuple(result))] if result else []

    def _recognises(self, stretch: Singles) -> bool:
        """Recognise a stretch; false: there is no speech in it."""
        if len(stretch) < _SHORTEST * RATE or find_speech(stretch, RATE) is None:
            return False
        samples = np.clip(np.rint(stretch * 32768.0), -32768, 32767).astype("<i2")
        self._decoder.reinit_feat()
        self._decoder.start_utt()
        self._decoder.process_raw(samples.tobytes(), full_utt=True)
        self._decoder.end_utt()
        self._decoder.hyp()  # the best path, which posteriors need
        return True


def _ticks(samples: int) -> int:
    return round(samples / RATE / MILLISECOND)


def _configured(options: Pocketsphinx) -> Any:
    """The parameters of a decoder.

    Raises:
        ConfigError: one is unknown, or has a wrong value.
    """
    import pocketsphinx as library

    given: Mapping[str, object] = {"hmm": options.model, "dict": options.dictionary, "lm": options.lm}
    values = {name: path for name, path in given.items() if path is not None}
    for name, value in options.parameters.items():
        try:
            if name in _TAKEN:
                raise KeyError(name)
            library.Config(loglevel="FATAL", **{name: value})
        except (KeyError, ValueError, TypeError):
            raise families.INVALID_VALUE(
                "pocketsphinx takes no parameter {name}: {value}, or another option sets it",
                "give a parameter of `pocketsphinx` and a value of its type",
                where="options.recogniser.options.parameters",
                name=name,
                value=value,
            ) from None
    return library.Config(samprate=RATE, loglevel="FATAL", ascale=options.scale, **values, **options.parameters)


@lru_cache(maxsize=1)
def _decoder(options: str) -> Any:
    """A decoder, kept by the process: loading models takes seconds."""
    import pocketsphinx as library

    given = Pocketsphinx.model_validate_json(options)
    config = _configured(given)
    with tempfile.NamedTemporaryFile(dir=scratch()) as log:  # it reports ignored lines there only
        config["loglevel"], config["logfn"] = "ERROR", log.name
        try:
            decoder = library.Decoder(config)
        except RuntimeError as error:
            raise families.UNUSABLE_MODEL.of(UserError)(
                "pocketsphinx cannot use its models: {error}",
                (
                    "give model, dictionary and lm that belong together; `pocketsphinx single FILE -loglevel "
                    "INFO` says more"
                ),
                where="options.recogniser",
                error=error,
            ) from None
        finally:
            library.set_loglevel("FATAL")
        if ignored := _IGNORED.search(Path(log.name).read_text(errors="replace")):
            raise families.MALFORMED_LINE.of(UserError)(
                "pocketsphinx ignores the line: {fault}",
                (
                    "write words with pronunciations in the phones of its acoustic model (its option model), "
                    "or remove the line"
                ),
                where=f"{given.dictionary}:{ignored['line']}",
                fault=ignored["fault"],
            )
    return decoder
