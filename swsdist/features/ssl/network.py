"""A speech model loaded by transformers, and its layers, or outputs of its CTC head, for a stretch of samples.

One stretch is computed at a time, in one torch thread: several threads split sums, and thus round, differently. On a
GPU cuDNN is set to be deterministic, and convolutions and products do not round to TF32.

Layers above the highest requested one are removed, except the next: in models that normalise before each layer, the
output of the last layer is normalised, and a requested layer must not become the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import DataError
from swsdist.features.ssl.folder import Encoder, Head

#: Parameters used in training only, which a checkpoint may lack.
_TRAINED_ONLY = "masked_spec_embed"


class Network:
    """The encoder of a folder, with its CTC head if that is requested.

    Args:
        folder: the model's folder.
        encoder: its description.
        layers: the requested layers.
        head: description of the head; None: layers are requested.
        language: of the head's weights, if these have one.
        device: `cpu` or `cuda`.
        dtype: name of a torch dtype.

    Raises:
        ConfigError: there is no GPU.
        DataError: transformers cannot load it, or it lacks weights.
    """

    def __init__(
        self,
        folder: str,
        encoder: Encoder,
        layers: tuple[int, ...],
        head: Head | None,
        language: str | None,
        device: str,
        dtype: str,
    ) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise codes.NO_TORCH_GPU(where="features.options.device")
        self._folder, self._encoder, self._layers = folder, encoder, layers
        self._head, self._language = head, language
        self._device, self._dtype = device, getattr(torch, dtype)
        self._front, self._model = self._loaded()

    def _loaded(self) -> tuple[Any, Any]:
        """The preprocessor of samples, and the model; both untyped."""
        import torch
        from transformers import AutoFeatureExtractor, AutoModel, AutoModelForCTC

        try:
            with _quiet(), torch.random.fork_rng(devices=()):  # parameters for training are initialised at random
                front = AutoFeatureExtractor.from_pretrained(self._folder, local_files_only=True)
                model, report = (AutoModelForCTC if self._head else AutoModel).from_pretrained(
                    self._folder, local_files_only=True, use_safetensors=True, output_loading_info=True
                )
                if self._head and self._head.adapted:
                    model.load_adapter(self._language, local_files_only=True, use_safetensors=True)
        except Exception as error:  # transformers raises many types
            raise families.UNUSABLE_MODEL.of(DataError)(
                "transformers cannot load the model ({error})",
                "copy it again, or install the version of transformers that saved it",
                where=self._folder,
                error=f"{type(error).__name__}: {error}",
            ) from error
        have = {name for name, _ in model.named_parameters()}
        missing = {str(name) for name in report["missing_keys"]} | {str(item[0]) for item in report["mismatched_keys"]}
        lacking = sorted(
            name
            for name in missing
            if not name.endswith(_TRAINED_ONLY) and (name in have or name.removeprefix("encoder.") in have)
        )
        if lacking:
            raise codes.INCOMPLETE_WEIGHTS(where=str(Path(self._folder)), count=len(lacking), first=lacking[0])
        if self._layers:
            _shorten(model, max(self._layers), self._encoder.layers)
        return front, model.to(device=self._device, dtype=self._dtype).eval()

    def outputs(self, samples: Singles, frames: int) -> list[Singles]:
        """The requested layers, or the one output of the head before the softmax, for a stretch: float32 (frames,
        width) each.

        Args:
            samples: float32 (n,).
            frames: number of complete frames.

        Raises:
            DataError: the model returns fewer frames, or others.
        """
        import torch

        encoder, head = self._encoder, self._head
        hop, width = (encoder.hop * head.stride, len(head.columns)) if head else (encoder.hop, encoder.width)
        if not encoder.samples:  # samples beyond the last frame would be padded to another one
            samples = samples[: (frames - 1) * hop + encoder.frame_length]
        with _exact():
            prepared = self._front(samples, sampling_rate=encoder.sample_rate, return_tensors="pt")
            inputs = prepared[self._model.main_input_name].to(device=self._device, dtype=self._dtype)
            with torch.inference_mode():
                if head:
                    chosen = [self._model(inputs).logits]
                else:
                    states = self._model(inputs, output_hidden_states=True).hidden_states
                    chosen = [states[layer] for layer in self._layers]
            outputs = [state[0, :frames].float().cpu().numpy().copy() for state in chosen]
        for output in outputs:
            if output.shape != (frames, width):
                raise families.EXTENSION.of(DataError)(
                    "{samples} samples give an output of shape {shape}, not {expected}",
                    "name another model: config.json does not describe this one",
                    where=self._folder,
                    samples=len(samples),
                    shape=output.shape,
                    expected=(frames, width),
                )
        return outputs


def _shorten(model: Any, top: int, layers: int) -> None:
    """Remove layers above the one after the highest requested, if the list of layers is known."""
    for part in (model, getattr(model, "encoder", None)):
        layer_list = getattr(part, "layers", None)
        if part is not None and layer_list is not None and len(layer_list) == layers:
            part.layers = layer_list[: top + 1]
            return


@contextmanager
def _exact() -> Iterator[None]:
    """Run with one thread and without TF32; restore all settings and random states afterwards."""
    import torch

    threads, products = torch.get_num_threads(), torch.backends.cuda.matmul.allow_tf32
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with (
            torch.random.fork_rng(devices=()),  # models draw random numbers even without dropout
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        ):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = products


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars and warnings of transformers; problems with a model are reported here."""
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
