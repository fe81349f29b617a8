"""Layers of Whisper's encoder.

The encoder is written out over the arrays of its safetensors, so that a CPU needs no library but NumPy; on a GPU the
same lines run on torch's tensors. Positions end where the recording does, not after 30 s as in training: an hour of
sentences takes a tenth of the time.

A word that was cut out is followed by silence: the network turns some frames into sinks of attention, twenty times as
large as the others, in silence if there is any, else in the word itself (`docs/concepts/encoders.md`).

Source: Radford et al. 2022, "Robust speech recognition via large-scale weak supervision".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import features as codes
from swsdist.features.interface import one_thread
from swsdist.features.ssl.folder import Encoder
from swsdist.kernels.gelu import gelu

#: Samples of a window of the spectrum, from one to the next; log10 of the least power, and below the greatest.
_WINDOW, _HOP, _FLOOR, _RANGE = 400, 160, 1e-10, 8.0
_EPSILON = np.float32(1e-5)


class Operations(NamedTuple):
    """Array operations of the encoder, on NumPy's arrays or torch's tensors. Each may change its argument."""

    array: Callable[[Singles], Any]
    zeros: Callable[[int, int], Any]
    gelu: Callable[[Any], Any]
    softmax: Callable[[Any], Any]
    norm: Callable[[Any, Any, Any], Any]
    result: Callable[[Any], Singles]


class Whisper:
    """The encoder of a folder.

    Args:
        folder: the model's folder.
        encoder: its description.
        layers: the requested layers; the last is normalised, as in transformers.
        operations: what it is computed with.

    Raises:
        ConfigError: a file cannot be read.
        DataError: weights are missing or have another shape.
    """

    def __init__(self, folder: str, encoder: Encoder, layers: tuple[int, ...], operations: Operations) -> None:
        self._encoder, self._layers, self._operations = encoder, layers, operations
        self._weights = {name: operations.array(array) for name, array in _read(folder, encoder, layers).items()}

    def outputs(self, samples: Singles, frames: int) -> list[Singles]:
        """The requested layers of the first frames of a stretch: float32 (frames, width) each.

        Args:
            samples: float32 (n,), a frame's at least; with any silence that follows.
            frames: to return.
        """
        with one_thread():
            return [output[:frames] for output in self._forward(log_mel(samples, self._encoder.mels))]

    def _forward(self, spectrum: Singles) -> list[Singles]:
        do, weights = self._operations, self._weights
        x = self._convolved(self._convolved(do.array(spectrum), "conv1", 1), "conv2", 2)
        x = x + weights["embed_positions.weight"][: len(x)]
        outputs: dict[int, Any] = {0: x}
        for k in range(max(self._layers)):
            x = x + self._attended(self._normed(x, f"layers.{k}.self_attn_layer_norm"), f"layers.{k}.self_attn")
            wide = do.gelu(self._product(self._normed(x, f"layers.{k}.final_layer_norm"), f"layers.{k}.fc1"))
            x = x + self._product(wide, f"layers.{k}.fc2")
            outputs[k + 1] = x
        if self._encoder.layers in outputs:
            outputs[self._encoder.layers] = self._normed(x, "layer_norm")
        return [do.result(outputs[layer]) for layer in self._layers]

    def _convolved(self, x: Any, name: str, stride: int) -> Any:
        """A convolution of three frames, and GELU: (frames, columns)."""
        padded = self._operations.zeros(len(x) + 2, x.shape[1])
        padded[1:-1] = x
        weight, stop = self._weights[f"{name}.weight"], len(x)
        parts = [padded[k : k + stop : stride] @ weight[:, :, k].T for k in range(3)]
        return self._operations.gelu(parts[0] + parts[1] + parts[2] + self._weights[f"{name}.bias"])

    def _normed(self, x: Any, name: str) -> Any:
        return self._operations.norm(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _product(self, x: Any, name: str) -> Any:
        result = x @ self._weights[f"{name}.weight"].T
        bias = self._weights.get(f"{name}.bias")  # keys have none
        return result if bias is None else result + bias

    def _attended(self, x: Any, name: str) -> Any:
        """Attention of all frames to all, head by head, so that memory is that of one."""
        heads, width = self._encoder.heads, x.shape[1]
        size = width // heads
        query = self._product(x, f"{name}.q_proj") * size**-0.5
        key, value = self._product(x, f"{name}.k_proj"), self._product(x, f"{name}.v_proj")
        result = self._operations.zeros(len(x), width)
        for first in range(0, width, size):
            head = slice(first, first + size)
            result[:, head] = self._operations.softmax(query[:, head] @ key[:, head].T) @ value[:, head]
        return self._product(result, f"{name}.out_proj")


def log_mel(samples: Singles, mels: int) -> Singles:
    """Whisper's spectrum: float32 (frames of 10 ms, mels); logarithms down to 80 dB below the greatest, divided by 4.

    Source: log_mel_spectrogram of openai/whisper; a window is centred on its frame's first sample, and ends are reflected.
    """
    frames = len(samples) // _HOP
    around = _WINDOW // 2
    padded = np.pad(samples, around, mode="reflect" if len(samples) > around else "constant")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP][:frames]
    powers = np.abs(np.fft.rfft(windows * _hann(), axis=1)) ** 2
    values = np.log10(np.maximum(powers.astype(np.float32) @ _filters(mels), np.float32(_FLOOR)))
    values = np.maximum(values, values.max() - np.float32(_RANGE))
    result: Singles = (values + np.float32(4)) / np.float32(4)
    return result


@cache
def _hann() -> Floats:
    return np.hanning(_WINDOW + 1)[:-1]


@cache
def _filters(mels: int) -> Singles:
    """Slaney's mel filters at 16 kHz: float32 (bins, mels)."""
    from librosa.filters import mel

    return np.ascontiguousarray(mel(sr=16000, n_fft=_WINDOW, n_mels=mels).T, np.float32)


def _read(folder: str, encoder: Encoder, layers: tuple[int, ...]) -> Mapping[str, Singles]:
    """The encoder's arrays up to the highest requested layer, float32.

    Raises:
        DataError: some are missing, or have another shape.
    """
    from safetensors import SafetensorError, safe_open

    width, top = encoder.width, max(layers)
    shapes: dict[str, tuple[int, ...]] = {"embed_positions.weight": (encoder.most or 0, width)}
    for name, inputs in (("conv1", encoder.mels), ("conv2", width)):
        shapes |= {f"{name}.weight": (width, inputs, 3), f"{name}.bias": (width,)}
    norms = ["layer_norm"] if top == encoder.layers else []
    for k in range(top):
        attention, wide = f"layers.{k}.self_attn", encoder.inner
        norms += [f"{attention}_layer_norm", f"layers.{k}.final_layer_norm"]
        shapes |= {f"{attention}.{part}_proj.weight": (width, width) for part in "qkv"}
        shapes |= {f"{attention}.{part}_proj.bias": (width,) for part in "qv"}
        shapes |= {f"{attention}.out_proj.weight": (width, width), f"{attention}.out_proj.bias": (width,)}
        shapes |= {f"layers.{k}.fc1.weight": (wide, width), f"layers.{k}.fc1.bias": (wide,)}
        shapes |= {f"layers.{k}.fc2.weight": (width, wide), f"layers.{k}.fc2.bias": (width,)}
    shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
    result: dict[str, Singles] = {}
    try:
        for path in (path for path in encoder.files if path.suffix == ".safetensors"):
            with safe_open(path, "np") as file:
                for name in file.keys():  # noqa: SIM118 (it is no mapping)
                    if (plain := name.removeprefix("model.").removeprefix("encoder.")) in shapes:
                        result[plain] = file.get_tensor(name).astype(np.float32)
    except (OSError, SafetensorError, TypeError) as error:  # TypeError: bfloat16, which NumPy lacks
        detail = f"{type(error).__name__}: {error}"
        raise codes.MODEL_FILE_UNREADABLE(
            where=str(path), detail=detail, fix="copy it again, as float16 or float32"
        ) from error
    lacking = [name for name, shape in shapes.items() if name not in result or result[name].shape != shape]
    if lacking:
        raise codes.INCOMPLETE_WEIGHTS(where=str(Path(folder)), count=len(lacking), first=lacking[0])
    return result


def _gelu(x: Singles) -> Singles:
    gelu(x.reshape(-1))
    return x


def _softmax(x: Singles) -> Singles:
    x -= x.max(axis=1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=1, keepdims=True)
    return x


def _norm(x: Singles, weight: Singles, bias: Singles) -> Singles:
    result: Singles = x - x.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", result, result)[:, None] / np.float32(x.shape[1])
    result *= weight / np.sqrt(variance + _EPSILON)
    result += bias
    return result


_NUMPY = Operations(
    lambda array: array,
    lambda rows, columns: np.zeros((rows, columns), np.float32),
    _gelu,
    _softmax,
    _norm,
    lambda x: np.asarray(x),
)


def operations_of(device: str, dtype: str) -> Operations:
    """Operations of NumPy for float32 on a CPU, else of torch.

    Raises:
        ConfigError: there is no GPU, or torch is not installed.
    """
    return _NUMPY if (device, dtype) == ("cpu", "float32") else of_torch(device, dtype)


def of_torch(device: str, dtype: str) -> Operations:
    """Operations of torch, without TF32.

    Raises:
        ConfigError: there is no GPU, or torch is not installed.
    """
    try:
        import torch
    except ImportError:
        raise codes.SSL_NOT_INSTALLED(where="features.options.device", library="torch") from None

    if device == "cuda" and not torch.cuda.is_available():
        raise codes.NO_TORCH_GPU(where="features.options.device")
    torch.backends.cuda.matmul.allow_tf32 = False
    kind, functional = getattr(torch, dtype), torch.nn.functional
    return Operations(
        lambda array: torch.from_numpy(array).to(device, kind),
        lambda rows, columns: torch.zeros((rows, columns), device=device, dtype=kind),
        functional.gelu,
        lambda x: functional.softmax(x, dim=1),
        lambda x, weight, bias: functional.layer_norm(x, weight.shape, weight, bias),
        lambda x: x.float().cpu().numpy(),
    )
