"""Settings of a config for frames of speech encoders, and for the search and discovery that suit them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swsdist.core.codes import features as codes
from swsdist.features.ssl.extractor import Ssl
from swsdist.features.ssl.folder import ENCODER_FILES, read_encoder
from swsdist.io.hub_cache import folder_of, way_to


def settings_of(models: Sequence[str], search: bool) -> list[str]:
    """What a config for a folder of recordings sets to have the frames of models: KEY=VALUE.

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
            raise codes.DUPLICATE_MODEL_NAME(where=f"--model {model}", name=name)
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
    """What a config sets to have these sections `features`, of encoders; without a search, to discover words."""
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
