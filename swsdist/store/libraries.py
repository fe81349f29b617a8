"""Versions of the libraries that a store's frames depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from swsdist.accounts.hardware import versions

#: By name; several versions if parts were made with several.
Libraries = dict[str, tuple[str, ...]]


def made_with(more: Iterable[str] = ()) -> dict[str, str]:
    """Installed versions of the libraries that frames depend on: decoding, resampling, transforms.

    Args:
        more: further names, as in pip, from an extractor (`features.interface.libraries_of`).
    """
    installed = versions()
    names = ("numpy", "scipy", "soxr", "soundfile", "libsndfile")
    result = {name: installed[name] for name in names if name in installed}
    for name in more:
        try:
            result.setdefault(name, version(name))
        except PackageNotFoundError:
            continue
    return result


def with_these(
    libraries: Mapping[str, Sequence[str]],
    parts: Iterable[Mapping[str, str]] = (),
    ffmpeg: Iterable[str] = (),
    more: Iterable[str] = (),
) -> Libraries:
    """Versions that a store's parts were made with.

    Args:
        libraries: recorded before.
        parts: `made_with` of each new part; by default the installed versions.
        ffmpeg: versions of ffmpeg that decoded new parts; listed only if it ever decoded a part.
        more: names of further libraries that frames depend on.
    """
    some = list(parts) or [made_with(more)]
    names = dict.fromkeys([*(name for item in some for name in item), *(name for name in more if name in libraries)])
    result = {
        name: tuple(sorted({*libraries.get(name, ()), *(item[name] for item in some if name in item)}))
        for name in names
    }
    decoders = tuple(sorted({*libraries.get("ffmpeg", ()), *ffmpeg}))
    return {**result, "ffmpeg": decoders} if decoders else result
