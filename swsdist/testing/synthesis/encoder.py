"""A random speech encoder: a tiny model in the file format of transformers, for the extractor `ssl`.

Its output is meaningless but depends on the speech, so readers of such folders can be tested without a
trained model of hundreds of megabytes. It needs the extra `ssl`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Kinds of models; xls-r is a wav2vec 2.0 with normalisation before each layer.
KINDS = ("wav2vec2", "xls-r", "hubert", "wavlm", "data2vec-audio", "wav2vec2-bert", "whisper")


def make_encoder(
    folder: str,
    kind: str = "wav2vec2",
    *,
    seed: int = 0,
    layers: int = 3,
    width: int = 16,
    tokens: Sequence[str] = (),
    **settings: Any,
) -> None:
    """Write an encoder.

    Args:
        folder: to write.
        kind: one of `KINDS`.
        seed: of the random weights.
        layers: of the encoder.
        width: values per frame, a multiple of 4.
        tokens: names of the columns of a CTC head, the blank first; without them there is no head.
        settings: of the model's config, beside these.
    """
    import torch
    import transformers

    common: dict[str, Any] = {"vocab_size": 8, "hidden_size": width, "num_attention_heads": 2, "intermediate_size": 24}
    common |= {"num_hidden_layers": layers, "conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16}
    common |= {"num_conv_pos_embedding_groups": 4}
    if tokens:
        common |= {"vocab_size": len(tokens), "pad_token_id": 0}
    common |= settings
    normed = {"do_stable_layer_norm": True, "feat_extract_norm": "layer"}
    whisper: dict[str, Any] = {"vocab_size": 8, "d_model": width, "encoder_layers": layers, "decoder_layers": 1}
    whisper |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
    whisper |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24)
    whisper |= dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"), 1)
    whisper |= settings
    config: Any = {
        "wav2vec2": lambda: transformers.Wav2Vec2Config(**common),
        "xls-r": lambda: transformers.Wav2Vec2Config(**common, **normed),
        "hubert": lambda: transformers.HubertConfig(**common),
        "wavlm": lambda: transformers.WavLMConfig(**common),
        "data2vec-audio": lambda: transformers.Data2VecAudioConfig(**{**common, "num_conv_pos_embeddings": 2}),
        "wav2vec2-bert": lambda: transformers.Wav2Vec2BertConfig(**common, conv_depthwise_kernel_size=5),
        "whisper": lambda: transformers.WhisperConfig(**whisper),
    }[kind]()
    front: Any = {
        "wav2vec2-bert": transformers.SeamlessM4TFeatureExtractor,
        "whisper": transformers.WhisperFeatureExtractor,
    }.get(kind, transformers.Wav2Vec2FeatureExtractor)()
    generator = torch.Generator().manual_seed(seed)
    model = (transformers.AutoModelForCTC if tokens else transformers.AutoModel).from_config(config)
    with torch.no_grad():  # not torch's global generator
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / parameter[0].numel() ** 0.5)
    model.save_pretrained(folder)
    front.save_pretrained(folder)
    if tokens:
        text = json.dumps({token: k for k, token in enumerate(tokens)}, ensure_ascii=False)
        (Path(folder) / "vocab.json").write_text(text, encoding="utf-8")
