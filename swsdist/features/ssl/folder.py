"""A model's folder, as the hub of Hugging Face has it: what of it is read, and what it says of its frames.

::

    config.json                     the architecture: its kind, convolutions, layers
    preprocessor_config.json        the sample rate, and how samples are normalised; or processor_config.json, in
                                    its `feature_extractor`
    model.safetensors               the weights; or model.safetensors.index.json and the files that it names

Weights are read from safetensors alone: what is pickled (pytorch_model.bin) is run when it is read.

A stack of convolutions without padding, kernels k and strides s, has a frame for each place where its field lies whole
inside: a hop of prod(s) samples, and a field of 1 + sum((k_i - 1) s_1 ... s_(i-1)). With the usual ones these are 320
and 400: 25 ms every 20 ms.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.io.failures import as_file_fault
from swsdist.io.local import retry_local

CONFIG, FRONT, PROCESSOR = "config.json", "preprocessor_config.json", "processor_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
_WHERE = "features.options.model"

#: How a folder of a model that is published is made.
_GET = "hf download facebook/wav2vec2-xls-r-300m --local-dir FOLDER"


class Encoder(NamedTuple):
    """What a folder says.

    Attributes:
        kind: its `model_type`.
        sample_rate: Hz.
        frame_length, hop: samples under a frame, and from one to the next.
        layers: of the encoder; 0 is what goes into the first, and so there is one more.
        width: numbers a frame of a layer.
        most: frames that it can take at once; None: as many as memory holds.
        samples: it takes samples as they are, and not a spectrum.
        files: that the frames depend on.
        bytes: of the weights' files.
    """

    kind: str
    sample_rate: int
    frame_length: int
    hop: int
    layers: int
    width: int
    most: int | None
    samples: bool
    files: tuple[Path, ...]
    bytes: int


class _Values(NamedTuple):
    """A JSON file of a folder."""

    path: Path
    values: Mapping[str, object]

    def integer(self, *names: str) -> int:
        """The first of some keys that is there.

        Raises:
            ConfigError: none is, or it is no positive integer.
        """
        for name in names:
            value = self.values.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        raise self._lacks(names, "a positive integer")

    def integers(self, name: str) -> list[int]:
        """A list of positive integers.

        Raises:
            ConfigError: it is not there, or something else.
        """
        value = self.values.get(name)
        if isinstance(value, list) and value and all(isinstance(item, int) and item > 0 for item in value):
            return value
        raise self._lacks((name,), "a list of positive integers")

    def _lacks(self, names: tuple[str, ...], type: str) -> ConfigError:
        return codes.MODEL_KEY_MISSING(where=str(self.path), keys=" or ".join(names), type=type)


class _Shape(NamedTuple):
    frame_length: int
    hop: int
    most: int | None


def _convolutions(config: _Values, front: _Values) -> _Shape:
    field, hop = 1, 1
    for kernel, stride in zip(config.integers("conv_kernel"), config.integers("conv_stride"), strict=False):
        field += (kernel - 1) * hop
        hop *= stride
    return _Shape(field, hop, None)


def _whisper(config: _Values, front: _Values) -> _Shape:
    # Two log mel frames each; windows are centred, so a frame is about its first sample.
    hop = 2 * front.integer("hop_length")
    return _Shape(hop, hop, config.integer("max_source_positions"))


def _stacked(config: _Values, front: _Values) -> _Shape:
    # `stride` filter banks of 25 ms every 10 ms beside each other (SeamlessM4TFeatureExtractor).
    rate, stride = front.integer("sampling_rate"), front.integer("stride")
    return _Shape(math.floor(0.025 * rate) + (stride - 1) * (rate // 100), stride * (rate // 100), None)


#: Shapes of kinds that do not take samples as they are.
_SHAPES: dict[str, Callable[[_Values, _Values], _Shape]] = {"whisper": _whisper, "wav2vec2-bert": _stacked}


def read_encoder(folder: str) -> Encoder:
    """Look at a model's folder; its weights are not read.

    Raises:
        ConfigError: it is not there, a file is missing or damaged, its weights are pickled, or it is no speech encoder
        whose layers
            are frames of one rate.
    """
    place = Path(folder)
    if not place.is_dir():
        raise codes.NO_MODEL_FOLDER(where=f"{_WHERE}: {folder}", command=_GET)
    config, front = _read(place / CONFIG), _read_front(place)
    kind = str(config.values.get("model_type"))
    shape = _SHAPES.get(kind)
    if shape is None:
        takes_samples = {"conv_kernel", "conv_stride"} <= config.values.keys()
        if not takes_samples or config.values.get("is_encoder_decoder") or "squeeze_factor" in config.values:
            raise codes.NOT_A_SPEECH_ENCODER(where=str(config.path), kind=kind, others=", ".join(_SHAPES))
        shape = _convolutions
    frame_length, hop, most = shape(config, front)
    weights = _weights(place)
    return Encoder(
        kind,
        front.integer("sampling_rate"),
        frame_length,
        hop,
        config.integer("num_hidden_layers", "encoder_layers"),
        config.integer("hidden_size", "d_model"),
        most,
        kind not in _SHAPES,
        (config.path, front.path, *weights),
        sum(path.stat().st_size for path in weights if path.suffix != ".json"),
    )


def _read(path: Path) -> _Values:
    try:
        values = json.loads(retry_local(path.read_bytes))
    except FileNotFoundError:
        raise codes.MODEL_FILE_MISSING(where=f"{_WHERE}: {path.parent}", file=path.name, command=_GET) from None
    except OSError as error:
        fault = as_file_fault(error, str(path))
        raise codes.MODEL_FILE_UNREADABLE(where=str(path), detail=fault.message, fix=fault.remedy or "") from error
    except ValueError as error:
        raise codes.MODEL_FILE_NOT_JSON(where=str(path), detail=error) from None
    if not isinstance(values, dict):
        raise codes.MODEL_FILE_NOT_JSON(where=str(path), detail=f"it holds a {type(values).__name__}")
    return _Values(path, values)


def _read_front(place: Path) -> _Values:
    """What makes the model's input of samples; newer folders have it beside that of a tokenizer."""
    if not (place / FRONT).is_file() and (place / PROCESSOR).is_file():
        both = _read(place / PROCESSOR)
        front = both.values.get("feature_extractor")
        if isinstance(front, dict):
            return _Values(both.path, front)
    return _read(place / FRONT)


def _weights(place: Path) -> list[Path]:
    if (place / WEIGHTS).is_file():
        return [place / WEIGHTS]
    if (place / INDEX).is_file():
        index = _read(place / INDEX)
        named = index.values.get("weight_map")
        parts = sorted({str(item) for item in named.values()}) if isinstance(named, dict) else []
        for part in parts:
            if Path(part).name != part or not (place / part).is_file():
                raise codes.MODEL_FILE_MISSING(where=str(index.path), file=part, command=_GET)
        if parts:
            return [index.path, *(place / part for part in parts)]
    pickled = [
        path.name for pattern in ("*.bin", "*.pt", "*.ckpt", "*.h5", "*.msgpack") for path in place.glob(pattern)
    ]
    if pickled:
        raise codes.PICKLED_WEIGHTS(where=f"{_WHERE}: {place}", file=sorted(pickled)[0], wanted=WEIGHTS, folder=place)
    raise codes.MODEL_FILE_MISSING(where=f"{_WHERE}: {place}", file=WEIGHTS, command=_GET)
