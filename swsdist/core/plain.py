"""Values in the types of JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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


def unique(pairs: Iterable[tuple[K, V]], twice: Callable[[K], Exception] | None = None) -> dict[K, V]:
    """A dictionary of rows, or fields, that have a key of their own each.

    Args:
        pairs: keys and values.
        twice: makes the error of a key that is there already; by default a ValueError.

    Raises:
        Exception: a key is there already.
    """
    pairs = list(pairs)
    result = dict(pairs)
    if len(result) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"{key!r} is there twice") if twice is None else twice(key)
    return result


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text from outside.

    Raises:
        ValueError: it is no JSON, nested too deeply, an object has a key twice, or a text half of a surrogate pair.
    """
    try:
        value = json.loads(text, object_pairs_hook=unique)
        json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
