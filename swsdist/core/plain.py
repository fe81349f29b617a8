"""Values in the types of JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def fields(value: DataclassInstance) -> dict[str, object]:
    """The fields of a dataclass by name, converted by `plain`."""
    return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def plain(value: object) -> object:
    """The value in JSON's types; non-finite numbers become None."""
    if hasattr(value, "tolist"):  # an array, or a number of numpy
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
