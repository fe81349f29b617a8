"""Libraries that extras bring: a missing one is an error with its remedy, wherever it is imported first."""

from __future__ import annotations

import re

from swsdist.core.codes import families
from swsdist.core.errors import ConfigError

#: Packages of modules that have another name, or come with another package.
_PACKAGES = {
    "vl_convert": "vl-convert-python",
    "huggingface_hub": "transformers",
    "ctranslate2": "faster-whisper",
}
_OPTIONAL = re.compile(r"([\w.-]+).*;.*extra == ['\"]([\w-]+)['\"]")


def extras() -> dict[str, str]:
    """The extra that brings each optional package; `dev` has what others have."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        optional = [match.groups() for each in requires("swsdist") or () if (match := _OPTIONAL.match(each))]
    except PackageNotFoundError:
        return {}
    return {package.lower(): extra for package, extra in optional if extra != "dev"}


def error_of(error: BaseException) -> ConfigError | None:
    """The error of a module that an extra brings; None: it is another."""
    if not isinstance(error, ImportError) or not error.name:
        return None
    library = error.name.partition(".")[0]
    extra = extras().get(_PACKAGES.get(library, library.replace("_", "-")))
    return (
        None
        if extra is None
        else families.NOT_INSTALLED(
            "the library {library} is not installed", "pip install 'swsdist[{extra}]'", library=library, extra=extra
        )
    )
