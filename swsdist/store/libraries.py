"""Versions of the libraries that a store's frames depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swsdist.accounts.hardware import versions


def made_with() -> dict[str, str]:
    """Versions of the libraries that frames depend on, as they are here: decoding, resampling, transforms."""
    here = versions()
    names = ("numpy", "scipy", "soxr", "soundfile", "libsndfile")
    return {name: here[name] for name in names if name in here}


def with_these(libraries: Mapping[str, Sequence[str]], ffmpeg: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Versions that a store's parts were made with, and those that are here, where parts were made now.

    Args:
        libraries: known before.
        ffmpeg: versions of ffmpeg that decoded something now; it is named where it ever did.
    """
    made = {name: tuple(sorted({*libraries.get(name, ()), here})) for name, here in made_with().items()}
    decoders = tuple(sorted({*libraries.get("ffmpeg", ()), *ffmpeg}))
    return {**made, "ffmpeg": decoders} if decoders else made
