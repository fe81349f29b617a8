"""A model, loaded by transformers, and its layers on a stretch of samples.

One stretch is computed at a time, in one thread of torch: in several, sums are cut differently, and so rounded
differently. On a GPU cuDNN is told to be deterministic, and neither convolutions nor products round to TF32.

Layers above the highest that is wanted are left out, but for one: of models that normalise before each layer, the last
layer comes out normalised, and the one below must not become the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.features.ssl.folder import Encoder

#: Parameters that are made up while a model is trained alone: a checkpoint may lack them.
_TRAINED_ONLY = "masked_spec_embed"


class Network:
    """The encoder of a folder.

    Args:
        folder: the model's.
        encoder: what it says.
        layers: that are wanted.
        device: `cpu` or `cuda`.
        dtype: name of a type of torch.

    Raises:
        ConfigError: there is no GPU.
        DataError: transformers cannot load it, or it lacks weights.
    """

    def __init__(self, folder: str, encoder: Encoder, layers: tuple[int, ...], device: str, dtype: str) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise codes.NO_TORCH_GPU(where="features.options.device")
        self._folder, self._encoder, self._layers = folder, encoder, layers
        self._device, self._dtype = device, getattr(torch, dtype)
        self._front, self._model = self._loaded()

    def _loaded(self) -> tuple[Any, Any]:
        """What makes the model's input of samples, and the model. Neither has types."""
        import torch
        from transformers import AutoFeatureExtractor, AutoModel

        try:
            with _quiet(), torch.random.fork_rng(devices=()):  # what is only trained with is drawn
                front = AutoFeatureExtractor.from_pretrained(self._folder, local_files_only=True)
                model, report = AutoModel.from_pretrained(
                    self._folder, local_files_only=True, use_safetensors=True, output_loading_info=True
                )
        except Exception as error:  # of many kinds, and none of ours
            raise codes.TRANSFORMERS_CANNOT_LOAD(
                where=self._folder, error=f"{type(error).__name__}: {error}"
            ) from error
        if model.config.is_encoder_decoder:
            model = model.get_encoder()
        have = {name for name, _ in model.named_parameters()}
        missing = {str(name) for name in report["missing_keys"]} | {str(item[0]) for item in report["mismatched_keys"]}
        lacking = sorted(
            name
            for name in missing
            if not name.endswith(_TRAINED_ONLY) and (name in have or name.removeprefix("encoder.") in have)
        )
        if lacking:
            raise codes.INCOMPLETE_WEIGHTS(where=str(Path(self._folder)), count=len(lacking), first=lacking[0])
        _shorten(model, max(self._layers), self._encoder.layers)
        return front, model.to(device=self._device, dtype=self._dtype).eval()

    def hidden(self, samples: NDArray[np.float32], frames: int) -> list[NDArray[np.float32]]:
        """The wanted layers of a stretch, float32 (frames, width) each.

        Args:
            samples: float32 (n,).
            frames: that lie whole inside.

        Raises:
            DataError: the model gives fewer.
        """
        import torch

        encoder = self._encoder
        if not encoder.samples:  # what is beyond the last frame would be padded to another
            samples = samples[: (frames - 1) * encoder.hop + encoder.frame_length]
        with _exact():
            given = self._front(samples, sampling_rate=encoder.sample_rate, return_tensors="pt")
            inputs = given[self._model.main_input_name].to(device=self._device, dtype=self._dtype)
            with torch.inference_mode():
                states = self._model(inputs, output_hidden_states=True).hidden_states
            layers = [states[layer][0, :frames].float().cpu().numpy().copy() for layer in self._layers]
        for layer in layers:
            if layer.shape != (frames, encoder.width):
                raise codes.WRONG_LAYER_SHAPE(
                    where=self._folder, samples=len(samples), shape=layer.shape, expected=(frames, encoder.width)
                )
        return layers


def _shorten(model: Any, top: int, layers: int) -> None:
    """Leave out layers above the one after the highest that is wanted, where the list of layers is known."""
    for part in (model, getattr(model, "encoder", None)):
        layer_list = getattr(part, "layers", None)
        if part is not None and layer_list is not None and len(layer_list) == layers:
            part.layers = layer_list[: top + 1]
            return


@contextmanager
def _exact() -> Iterator[None]:
    """In one thread, without TF32; all as it was afterwards, the random numbers of others too."""
    import torch

    threads, products = torch.get_num_threads(), torch.backends.cuda.matmul.allow_tf32
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with (
            torch.random.fork_rng(devices=()),  # models draw, even where they drop nothing
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        ):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = products


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and warnings of transformers: what is wrong with a model is told here."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
