"""Read the description of a model from its folder, in the layout of the Hugging Face hub.

::

    config.json                     the architecture: its kind, convolutions, layers
    preprocessor_config.json        the sample rate, and the normalisation of samples; or processor_config.json, in
                                    its `feature_extractor`
    model.safetensors               the weights; or model.safetensors.index.json and the files that it names
    vocab.json                      of a CTC head: its columns by token; or, of several languages, these by language
    added_tokens.json               columns of tokens that vocab.json lacks; those of the tokenizer only lie beyond the head
    adapter.LANG.safetensors        of several languages: weights of the head and of adapters of a language (MMS)

Weights are read from safetensors only, because reading a pickle (pytorch_model.bin) executes code.

A stack of convolutions without padding, with kernels k and strides s, has a frame for each complete field: a hop of
prod(s) samples, and a field of 1 + sum((k_i - 1) s_1 ... s_(i-1)). The usual values are 320 and 400: 25 ms every 20 ms.
Convolutions between the layers and a CTC head (`add_adapter`) make that hop longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, SwsdistError
from swsdist.core.fingerprint import parse_json
from swsdist.io.failures import as_file_fault
from swsdist.io.local import cached_repositories, retry_local, way_to

CONFIG, FRONT, PROCESSOR = "config.json", "preprocessor_config.json", "processor_config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
VOCABULARY, ADDED = "vocab.json", "added_tokens.json"
_WHERE = "features.options.model"

#: The kind whose layers need no library (`features.ssl.whisper`).
WHISPER = "whisper"

#: Options of `hf download` for the files of an encoder.
ENCODER_FILES = " --include '*.json' '*.safetensors'"
#: Command that downloads the folder of a published model.
_GET = f"hf download openai/whisper-base{ENCODER_FILES} --local-dir FOLDER"
_GET_CTC = "hf download facebook/wav2vec2-base-960h --local-dir FOLDER"
_GET_LANGUAGES = "hf download facebook/mms-1b-all --local-dir FOLDER"

#: The most languages that an error lists.
_LISTED = 20


class Encoder(NamedTuple):
    """Description of a model.

    Attributes:
        kind: its `model_type`.
        sample_rate: Hz.
        frame_length, hop: samples of a frame, and from one frame to the next.
        layers: of the encoder; there is one more output, 0, the input of the first layer.
        width: numbers per frame of a layer.
        most: the most frames at once; None: limited by memory only.
        samples: whether its input is samples, not a spectrum.
        files: that the frames depend on.
        bytes: of the weights' files.
        mels, heads, inner: of Whisper: bands of its spectrum, heads of attention, width inside a layer.
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
    mels: int = 0
    heads: int = 0
    inner: int = 0


class Head(NamedTuple):
    """Description of a model's CTC head.

    Attributes:
        columns: names of its outputs, the tokens of the vocabulary.
        stride: frames of the encoder from one output to the next.
        adapted: whether its weights, and those of adapters, are in a file of its language.
        files: that its outputs depend on, beside those of the encoder.
    """

    columns: tuple[str, ...]
    stride: int
    adapted: bool
    files: tuple[Path, ...]


class _Values(NamedTuple):
    """Values of a JSON file of a folder."""

    path: Path
    values: Mapping[str, object]

    def integer(self, *names: str) -> int:
        """The value of the first of these keys that exists.

        Raises:
            ConfigError: none exists, or the value is no positive integer.
        """
        for name in names:
            value = self.values.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        raise self._lacks(names, "a positive integer")

    def integers(self, name: str) -> list[int]:
        """A list of positive integers.

        Raises:
            ConfigError: it is missing or something else.
        """
        value = self.values.get(name)
        if isinstance(value, list) and value and all(isinstance(item, int) and item > 0 for item in value):
            return value
        raise self._lacks((name,), "a list of positive integers")

    def _lacks(self, names: tuple[str, ...], type: str) -> ConfigError:
        return families.UNUSABLE_MODEL(
            "{keys} is missing, or is not {type}",
            "save the model again with save_pretrained of transformers, which writes every key",
            where=str(self.path),
            keys=" or ".join(names),
            type=type,
        )


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
    # A frame is two log mel frames; windows are centred, so it is about its first sample.
    hop = 2 * front.integer("hop_length")
    return _Shape(hop, hop, config.integer("max_source_positions"))


def _stacked(config: _Values, front: _Values) -> _Shape:
    # A frame is `stride` filter banks of 25 ms every 10 ms (SeamlessM4TFeatureExtractor).
    rate, stride = front.integer("sampling_rate"), front.integer("stride")
    return _Shape(math.floor(0.025 * rate) + (stride - 1) * (rate // 100), stride * (rate // 100), None)


#: Frame shapes of the kinds whose input is a spectrum.
_SHAPES: dict[str, Callable[[_Values, _Values], _Shape]] = {WHISPER: _whisper, "wav2vec2-bert": _stacked}


def cached_models() -> list[str]:
    """Names of the speech encoders in the cache of the hub, sorted."""
    return sorted(name for name, folder in cached_repositories() if _is_encoder(folder))


def _is_encoder(folder: Path) -> bool:
    try:
        return bool(read_encoder(str(folder)))
    except SwsdistError:
        return False


def read_encoder(folder: str) -> Encoder:
    """Read the description of a model's folder, without its weights.

    Raises:
        ConfigError: the folder or a file is missing, a file is damaged, weights are pickled, or it is no speech encoder
            whose layers have frames of one rate.
    """
    place = Path(folder)
    if not place.is_dir():
        raise codes.NO_MODEL_FOLDER(where=f"{_WHERE}: {folder}", fix=way_to(folder, ENCODER_FILES))
    config, front = _read(place / CONFIG), _read_front(place)
    kind = str(config.values.get("model_type"))
    shape = _SHAPES.get(kind)
    if shape is None:
        takes_samples = {"conv_kernel", "conv_stride"} <= config.values.keys()
        if not takes_samples or config.values.get("is_encoder_decoder") or "squeeze_factor" in config.values:
            raise families.UNUSABLE_MODEL(
                "the model type {kind} is not a speech encoder with layers of one frame rate",
                (
                    "name one that takes samples (wav2vec2, hubert, wavlm, data2vec-audio, unispeech, "
                    "unispeech-sat, wav2vec2-conformer), or one of: {others}"
                ),
                where=str(config.path),
                kind=kind,
                others=", ".join(_SHAPES),
            )
        shape = _convolutions
    frame_length, hop, most = shape(config, front)
    weights = _weights(place, "AutoModelForCTC" if _is_ctc(config) else "AutoModel")
    of_whisper = ("num_mel_bins", "encoder_attention_heads", "encoder_ffn_dim") if kind == WHISPER else ()
    width = config.integer("hidden_size", "d_model")
    if of_whisper and width % config.integer("encoder_attention_heads"):
        raise families.UNUSABLE_MODEL(
            "encoder_attention_heads does not divide the width {width}",
            "copy the model's own config.json",
            where=str(config.path),
            width=width,
        )
    return Encoder(
        kind,
        front.integer("sampling_rate"),
        frame_length,
        hop,
        config.integer("num_hidden_layers", "encoder_layers"),
        width,
        most,
        kind not in _SHAPES,
        (config.path, front.path, *weights),
        sum(path.stat().st_size for path in weights if path.suffix != ".json"),
        *map(config.integer, of_whisper),
    )


def read_head(folder: str, language: str | None) -> Head:
    """Read the description of a model's CTC head, without its weights.

    Args:
        folder: of the model, with an encoder (`read_encoder`).
        language: of the vocabulary; None: the only one.

    Raises:
        ConfigError: the model has no CTC head or no vocabulary, or the vocabulary does not name each column once; there
            are several languages and the language is none of them, or there is no choice; a file is missing or damaged.
    """
    place = Path(folder)
    config = _read(place / CONFIG)
    if not _is_ctc(config):
        raise codes.NO_CTC_HEAD(where=str(config.path), architectures=config.values.get("architectures"))
    vocabulary = _read(place / VOCABULARY, _GET_CTC)
    tokens = vocabulary.values
    languages = {name: value for name, value in tokens.items() if isinstance(value, dict)}
    if languages:
        if language not in languages:
            listed = ", ".join(sorted(languages)[:_LISTED]) + (", ..." if len(languages) > _LISTED else "")
            raise families.UNKNOWN_NAME.of(ConfigError)(
                "language is {language}, and the model has vocabularies of {count} language{s}: {languages}",
                "set language to one of them",
                where=str(vocabulary.path),
                language=language or "not set",
                count=len(languages),
                languages=listed,
            )
        tokens = languages[language]
    elif language is not None:
        raise codes.LANGUAGE_WITHOUT_CHOICE(
            where=str(vocabulary.path), language=language, reason="the model has one vocabulary"
        )
    files = [vocabulary.path]
    adapted = bool(languages) and config.values.get("adapter_attn_dim") is not None
    if adapted:
        files.append(place / f"adapter.{language}.safetensors")
        size = _head_rows(files[-1])
    else:
        size = config.integer("vocab_size")
    columns = _named_columns(vocabulary.path, tokens, size)
    if (place / ADDED).is_file():
        added = _read(place / ADDED)
        files.append(added.path)
        within = {token: k for token, k in added.values.items() if not isinstance(k, int) or k < size}
        columns = {**_named_columns(added.path, within, size), **columns}
    numbers: dict[str, int] = {}
    for k in range(size):
        name = columns.get(k)
        if not name:
            raise _bad_vocabulary(vocabulary.path, size, f"column {k} has no name")
        if name in numbers:
            raise _bad_vocabulary(vocabulary.path, size, f"columns {numbers[name]} and {k} are both {name!r}")
        numbers[name] = k
    stride = 1
    if config.values.get("add_adapter"):
        stride = config.integer("adapter_stride") ** config.integer("num_adapter_layers")
    return Head(tuple(numbers), stride, adapted, tuple(files))


def _is_ctc(config: _Values) -> bool:
    architectures = config.values.get("architectures")
    return isinstance(architectures, list) and any(str(name).endswith("ForCTC") for name in architectures)


def _named_columns(path: Path, tokens: Mapping[str, object], size: int) -> dict[int, str]:
    """Tokens by the number of their column."""
    columns: dict[int, str] = {}
    for token, k in tokens.items():
        if not isinstance(k, int) or isinstance(k, bool) or not 0 <= k < size:
            raise _bad_vocabulary(path, size, f"{token!r} is column {k!r}")
        if k in columns:
            raise _bad_vocabulary(path, size, f"{columns[k]!r} and {token!r} are both column {k}")
        columns[k] = token
    return columns


def _bad_vocabulary(path: Path, columns: int, problem: str) -> ConfigError:
    return families.UNUSABLE_MODEL(
        "the vocabulary does not name the {columns} columns of the CTC head: {problem}",
        "copy config.json, vocab.json and added_tokens.json of one model",
        where=str(path),
        columns=columns,
        problem=problem,
    )


def _head_rows(path: Path) -> int:
    """Outputs of the head in a safetensors file: 8 bytes hold the length of a JSON object with the shapes."""
    try:
        content = retry_local(path.read_bytes)
        header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return int(header["lm_head.weight"]["shape"][0])
    except FileNotFoundError:
        where = f"{_WHERE}: {path.parent}"
        raise codes.MODEL_FILE_MISSING(where=where, file=path.name, command=_GET_LANGUAGES) from None
    except OSError as error:
        fault = as_file_fault(error, str(path))
        raise codes.MODEL_FILE_UNREADABLE(where=str(path), detail=fault.message, fix=fault.remedy or "") from error
    except (ValueError, LookupError, TypeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise codes.MODEL_FILE_UNREADABLE(where=str(path), detail=detail, fix="copy it again") from error


def _read(path: Path, command: str = _GET) -> _Values:
    try:
        values = parse_json(retry_local(path.read_bytes))
    except FileNotFoundError:
        raise codes.MODEL_FILE_MISSING(where=f"{_WHERE}: {path.parent}", file=path.name, command=command) from None
    except OSError as error:
        fault = as_file_fault(error, str(path))
        raise codes.MODEL_FILE_UNREADABLE(where=str(path), detail=fault.message, fix=fault.remedy or "") from error
    except ValueError as error:
        raise codes.MODEL_FILE_NOT_JSON(where=str(path), detail=error) from None
    if not isinstance(values, dict):
        raise codes.MODEL_FILE_NOT_JSON(where=str(path), detail=f"it holds a {type(values).__name__}")
    return _Values(path, values)


def _read_front(place: Path) -> _Values:
    """Read the settings of the preprocessor; newer folders store them next to those of a tokenizer."""
    if not (place / FRONT).is_file() and (place / PROCESSOR).is_file():
        both = _read(place / PROCESSOR)
        front = both.values.get("feature_extractor")
        if isinstance(front, dict):
            return _Values(both.path, front)
    return _read(place / FRONT)


def _weights(place: Path, auto: str) -> list[Path]:
    """Files of the weights; `auto` is the class of transformers that loads them all."""
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
        raise families.UNUSABLE_MODEL(
            "the weights are only in {file}, and reading a pickle runs its code; weights are read from {wanted}",
            (
                'if you trust the file, convert it once: python -c "from transformers import {auto}; '
                "{auto}.from_pretrained('{folder}').save_pretrained('{folder}')\""
            ),
            where=f"{_WHERE}: {place}",
            file=sorted(pickled)[0],
            wanted=WEIGHTS,
            auto=auto,
            folder=place,
        )
    raise codes.MODEL_FILE_MISSING(where=f"{_WHERE}: {place}", file=WEIGHTS, command=_GET)
