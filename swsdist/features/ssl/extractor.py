"""The feature extractor `ssl`: layers of a speech encoder, or posteriors or logits of its CTC head.

A recording of up to `chunk_seconds` is computed at once; a longer one in chunks of that length that share
`overlap_seconds`. Shared frames come from the earlier chunk, except for the last half. Memory is therefore bounded, and
a frame depends on the recording and the options only. Normalisation over the model's input (samples to mean 0 and
variance 1; the first convolution of many base models; log mel energies of Whisper) is over a chunk, as in training over
an utterance or a part of one.

A CTC head (Graves et al., 2006) gives each frame a probability of each token of its vocabulary and of the blank, which
is the column `pad_token_id` of config.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveFloat, field_validator, model_validator

from swsdist.config.section import IsPath
from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import parse_json
from swsdist.core.needs import Needs
from swsdist.features.interface import Kind
from swsdist.features.ssl.folder import ENCODER_FILES, WHISPER, Encoder, Head, read_encoder, read_head
from swsdist.features.ssl.network import Network
from swsdist.io.failures import as_file_fault
from swsdist.io.local import folder_of, retry_local, way_to
from swsdist.registry.entries import Options

if TYPE_CHECKING:
    from swsdist.features.ssl.whisper import Whisper


_WHERE = "features.options"

#: Smaller posteriors are set to 0: subnormal float32 numbers are slow.
_TINY = float(np.finfo(np.float32).tiny)


class Ssl(Options):
    """A speech encoder; its fields are its options."""

    model: IsPath = Field(
        description="folder of a model, as on the Hugging Face hub, with model.safetensors; or the name of one in the hub's "
        "cache: openai/whisper-base"
    )
    layer: NonNegativeInt | None = Field(
        None, description="the layer whose outputs are the frames; 0: what goes into the first"
    )
    layers: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)] | Literal["all"] | None = Field(
        None, description="several: each is a track, layer0, layer1, ...; all: from 0 to the last"
    )
    weights: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)] | IsPath | None = Field(
        None,
        description="with `layers`: one weight per layer, as a list or a JSON file of one; the weighted sum of the layers is "
        "the only track",
    )
    head: Literal["logits", "posteriors"] | None = Field(
        None,
        description="in place of layers, a CTC head; posteriors: its posteriors; logits: their natural logarithms, less the "
        "mean over the columns",
    )
    language: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="of the head, where the model has a vocabulary for each of several (MMS)"
    )
    chunk_seconds: PositiveFloat = Field(30.0, description="s that are computed at once; longer recordings in chunks")
    overlap_seconds: Annotated[float, Field(ge=0)] = Field(4.0, description="s that two chunks share at least")
    short_seconds: Annotated[float, Field(ge=0)] = Field(
        1.5, description="with Whisper: s below which a recording is followed by silence"
    )
    window_seconds: PositiveFloat = Field(10.0, description="with Whisper: s of such a recording with its silence")
    gain: FiniteFloat = Field(0.0, description="dB by which samples are amplified first; SUPERB's is -3")
    device: Literal["cpu", "cuda"] = Field("cpu", description="cpu, or cuda: a GPU, where numbers differ a little")
    dtype: Literal["float32", "float16", "bfloat16"] = Field(
        "float32", description="of the computation: float32, float16 or bfloat16"
    )

    name: ClassVar[str] = "ssl"
    version: ClassVar[int] = 1
    context: ClassVar[None] = None

    @field_validator("model")
    @classmethod
    def _in_cache(cls, value: str) -> str:
        return folder_of(value)

    @model_validator(mode="after")
    def _fits(self) -> Ssl:
        # Read the folder now, so that problems are reported when a config is checked.
        for library in self.libraries:
            if find_spec(library) is None:
                raise codes.SSL_NOT_INSTALLED(where="features.name: ssl", library=library)
        last = self.encoder.layers
        if [self.layer, self.layers, self.head].count(None) != 2:
            raise (
                families.CONFLICTING_OPTIONS.of(ConfigError)
                .saying(
                    "exactly one of layer, layers and head must be set; the layers are 0 to {last}",
                    "begin with one in the middle, layer: {middle}",
                )
                .invalid(last=last, middle=round(last / 2))
            )
        if self.ctc is None and self.language is not None:
            raise codes.LANGUAGE_WITHOUT_CHOICE.invalid(
                language=self.language, reason="layers have none: only a head does"
            )
        if max(self.chosen, default=0) > last:
            raise (
                families.UNKNOWN_NAME.of(ConfigError)
                .saying("the model has no layer {layer}", "name layers from 0 to {last}")
                .invalid(layer=max(self.chosen), last=last)
            )
        if len(set(self.chosen)) < len(self.chosen):
            raise codes.DUPLICATE_LAYER.invalid()
        if self.weights is not None and (self.layers is None or len(self._weights) != len(self.chosen)):
            layers = len(self.chosen) if self.layers else "no"
            raise codes.LAYER_WEIGHTS_MISMATCH.invalid(weights=len(self._weights), layers=layers)
        most = self.encoder.most
        for key in ("chunk_seconds", *(("window_seconds",) if self.encoder.kind == WHISPER else ())):
            seconds = getattr(self, key)
            if most is not None and self._frames(seconds) > most:
                longest = most * self.hop / self.sample_rate
                raise families.INVALID_VALUE.saying(
                    "{key} is {seconds:g}, and {kind} takes at most {longest:g} s", "lower {key}"
                ).invalid(key=key, seconds=seconds, kind=self.encoder.kind, longest=longest)
        if self.short_seconds > self.window_seconds:
            raise codes.SHORT_TOO_LONG.invalid()
        if self.chunk_frames <= 2 * self.overlap_frames:
            raise codes.OVERLAP_TOO_LONG.invalid()
        return self

    @property
    def libraries(self) -> tuple[str, ...]:
        """Libraries that compute; of Whisper on a CPU none but NumPy."""
        if self.encoder.kind != WHISPER:
            return ("torch", "transformers")
        return () if (self.device, self.dtype) == ("cpu", "float32") else ("torch",)

    @cached_property
    def encoder(self) -> Encoder:
        """Description of the model's folder."""
        return read_encoder(self.model)

    @cached_property
    def ctc(self) -> Head | None:
        """Description of the CTC head; None if layers are the frames."""
        return read_head(self.model, self.language) if self.head else None

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """The layers to compute."""
        if self.layers == "all":
            return tuple(range(self.encoder.layers + 1))
        if self.layers is None:
            return () if self.layer is None else (self.layer,)
        return tuple(self.layers)

    @cached_property
    def _weights(self) -> tuple[float, ...]:
        if self.weights is None:
            return ()
        if not isinstance(self.weights, str):
            return self.weights
        try:
            result = parse_json(retry_local(Path(self.weights).read_bytes))
        except (OSError, ValueError) as error:
            where = f"{_WHERE}.weights: {self.weights}"
            detail = as_file_fault(error, where).message if isinstance(error, OSError) else str(error)
            raise codes.UNREADABLE_LAYER_WEIGHTS(where=where, detail=detail) from error
        numbers = isinstance(result, list) and all(
            isinstance(item, int | float) and not isinstance(item, bool) and np.isfinite(item) for item in result
        )
        if not numbers:
            raise families.UNUSABLE_MODEL(
                "the file holds no list of numbers",
                "give one number a layer, as JSON",
                where=f"{_WHERE}.weights: {self.weights}",
            )
        return tuple(map(float, result))

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self.encoder.sample_rate

    @property
    def frame_length(self) -> int:
        """Samples of a frame."""
        return self.encoder.frame_length

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.encoder.hop * (self.ctc.stride if self.ctc else 1)

    @property
    def kind(self) -> Kind:
        """Kind of the frames."""
        return self.head or "features"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Tokens of the head; None: columns of layers have no names."""
        return self.ctc.columns if self.ctc else None

    @property
    def tracks(self) -> tuple[tuple[str, int], ...]:
        """One track per layer, or a single one."""
        width = len(self.ctc.columns) if self.ctc else self.encoder.width
        if self.layers is None or self.weights is not None:
            return ((self.name, width),)
        return tuple((f"layer{layer}", width) for layer in self.chosen)

    @property
    def dimension(self) -> int:
        """Numbers per frame, of all tracks together."""
        return sum(width for _, width in self.tracks)

    @property
    def chunk_frames(self) -> int:
        """Frames of a chunk."""
        return max(1, self._frames(self.chunk_seconds))

    @property
    def whole_frames(self) -> int:
        """The most frames computed at once."""
        return self.chunk_frames

    @property
    def overlap_frames(self) -> int:
        """The least overlap of two chunks, in frames."""
        return self._frames(self.overlap_seconds)

    def _frames(self, seconds: float) -> int:
        return round(seconds * self.sample_rate / self.hop)

    @property
    def needs(self) -> tuple[Needs, ...]:
        """One thread; memory for the weights, twice while loading, and for the convolutions of a chunk."""
        libraries = 1.0 if self.libraries else 0.5
        memory = libraries + 2 * self.encoder.bytes / 1e9 + self.chunk_seconds / 30
        return (Needs(cpus=1, memory_gb=round(memory, 2), gpus=1.0 if self.device == "cuda" else 0.0),)

    def describe(self) -> dict[str, Any]:
        """All options with their values; those of a head and of a gain where there is one, so that others keep their
        identity.
        """
        absent = (set() if self.head else {"head", "language"}) | (set() if self.gain else {"gain"})
        absent |= set() if self.encoder.kind == WHISPER else {"short_seconds", "window_seconds"}
        return self.model_dump(mode="json", exclude=absent)

    def files(self) -> list[Path]:
        """Files of the model, of its head, and of the layer weights."""
        weights = [Path(self.weights)] if isinstance(self.weights, str) else []
        return [*self.encoder.files, *(self.ctc.files if self.ctc else ()), *weights]

    @cached_property
    def _network(self) -> Network | Whisper:
        if self.encoder.kind == WHISPER:
            # Its kernels are compiled where frames are.
            from swsdist.features.ssl.whisper import Whisper, operations_of

            return Whisper(self.model, self.encoder, self.chosen, operations_of(self.device, self.dtype))
        return Network(self.model, self.encoder, self.chosen, self.ctc, self.language, self.device, self.dtype)

    def extract(self, samples: Singles) -> Singles:
        """Layers of a stretch of samples, or outputs of the head.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension): the layer, the concatenated layers, or their weighted sum, added in float32 from
            the first layer to the last; or posteriors, or their natural logarithms minus the mean over the columns of a
            frame.
        """
        frames = max(0, 1 + (len(samples) - self.frame_length) // self.hop)
        if frames == 0:
            return np.empty((0, self.dimension), np.float32)
        if self.gain:
            samples = samples * np.float32(10 ** (self.gain / 20))
        if self.encoder.kind == WHISPER:
            if len(samples) < self.short_seconds * self.sample_rate:
                samples = np.pad(samples, (0, round(self.window_seconds * self.sample_rate) - len(samples)))
            else:  # samples beyond the last frame would be padded to another one
                samples = samples[: frames * self.hop]
        layers = self._network.outputs(samples, frames)
        if self.head:
            values = layers[0].astype(np.float64)
            # Before the softmax, they differ from the logarithms of posteriors by a constant of the frame.
            values -= values.mean(axis=1, keepdims=True)
            if self.head == "posteriors":
                np.exp(values - values.max(axis=1, keepdims=True), out=values)
                values /= values.sum(axis=1, keepdims=True)
                values[values < _TINY] = 0.0
            made: Singles = values.astype(np.float32)
            return made
        if self.weights is None:
            return np.ascontiguousarray(np.concatenate(layers, axis=1))
        total = np.zeros_like(layers[0])
        for weight, layer in zip(self._weights, layers, strict=True):
            total += np.float32(weight) * layer
        return total


def settings_of(models: Sequence[str], search: bool) -> list[str]:
    """Overrides (KEY=VALUE) that give the config of a folder of recordings the frames of models.

    Args:
        models: folders, or names in the cache of the hub.
        search: whether it searches.

    Raises:
        ConfigError: one is no speech encoder, or is not there.
    """
    features = []
    names = [Path(model).absolute().name for model in models]  # the hub's folders are named after a revision
    for model, name in zip(models, names, strict=True):
        if names.count(name) > 1:
            raise families.DUPLICATE_NAME.of(ConfigError)(
                "another model is called {name}, too",
                "leave it out, or name a folder otherwise",
                where=f"--model {model}",
                name=name,
            )
        folder = Path(folder_of(model)).absolute()
        if not folder.is_dir():
            raise codes.NO_MODEL_FOLDER(where=f"--model {model}", fix=way_to(model, ENCODER_FILES))
        # In the middle, rather later than earlier, layers say what is spoken (docs/concepts/encoders.md).
        encoder = read_encoder(str(folder))
        options = {"model": str(folder), "layer": round(encoder.layers * 2 / 3), "overlap_seconds": 2}
        whitening = {"columns": min(200, encoder.width // 2), "positions": min(32, encoder.width // 16), "hours": 1}
        transforms = [{"name": "pca", "options": whitening}]
        features.append(
            {"name": "ssl", "track": name, "options": options, "dtype": "float16", "transforms": transforms}
        )
    return settings_with(features, search)


def settings_with(features: Sequence[Mapping[str, Any]], search: bool) -> list[str]:
    """Overrides (KEY=VALUE) that give a config these sections `features`, of encoders; without a search, to discover."""
    names = [str(track.get("track") or Ssl.name) for track in features]
    section = search_of(names, alone=search)
    settings: dict[str, object] = {"features": features}
    if not search:
        encoder = read_encoder(folder_of(str(features[0]["options"]["model"])))
        shift = encoder.hop / encoder.sample_rate
        del section["corpus_frames"], section["first_pass"]  # they are of queries
        # Syllables begin where loudness falls, which the first coefficient says.
        loudness = {"hop_length": round(16000 * shift), "n_mfcc": 1, "deltas": 0}
        settings = {"features": [*features, {"name": "mfcc", "options": loudness}], "options": _discovery(shift)}
    settings |= {f"search.{key}": value for key, value in section.items()}
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def _discovery(shift: float) -> dict[str, object]:
    """Options of the chain discover for frames of an encoder (docs/concepts/discovery.md): its defaults are of 10 ms."""

    def frames(milliseconds: int) -> int:
        return max(1, round(milliseconds / 1000 / shift))

    return {
        "segments": {"frames": frames(500), "hop": frames(60)},
        "neighbours": {"unlike": 0.42},
        "matching": {"level": 0.45, "band": frames(100), "reach": frames(400), "frames": frames(300)},
        "clustering": {"score": 0.6},
        "boundaries": {"smooth": frames(20), "margin": frames(80), "reach": frames(80)},
        "rest": frames(60),
    }


def search_of(tracks: Sequence[str], alone: bool) -> dict[str, object]:
    """The section `search` for tracks of encoders, which are alone in their store or beside others."""
    return {
        "distance": "cosine-squared",
        "corpus_frames": 50,
        # A store's only track is not named, so that a search is the same whether it is set or the default.
        "streams": [] if alone and len(tracks) == 1 else [{"track": name} for name in tracks],
        # There are half as many frames a second as of MFCC, and five times as many columns (docs/concepts/first-passes.md).
        "first_pass": {"factor": 2, "options": {"bytes": 25, "margin": 18}},
    }
