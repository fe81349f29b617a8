"""Tables within pages that are written by hand: what stands between `<!-- table: WHAT NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pydantic.fields import FieldInfo

from swsdist.core.codes import audio, codes_of, families
from swsdist.core.errors import AudioError
from swsdist.registry.registries import FEATURES, MEASURES

_TABLE = re.compile(r"(<!-- table: (?P<what>\w+) ?(?P<name>[\w-]*) -->\n\n).*?(\n<!-- end -->)", re.S)


def page(path: Path) -> str:
    """The text of a page, with its tables made anew."""
    text, tables = _TABLE.subn(
        lambda match: f"{match[1]}{_TABLES[match['what']](match['name'])}{match[4]}", path.read_text(encoding="utf-8")
    )
    assert tables, path
    return text


def _options(name: str) -> str:
    """Options of an extractor; of one that is another's, those whose default is its own."""
    fields: Mapping[str, FieldInfo] = FEATURES[name].load().model_fields
    if name == "mfcc-fingerprint":
        other = FEATURES["mfcc"].load().model_fields
        fields = {key: field for key, field in fields.items() if field.default != other[key].default}
    return _table(
        ("option", "default", "meaning"),
        ((f"`{key}`", _default(field), str(field.description)) for key, field in fields.items()),
    )


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    shown = "null" if value is None else str(value).replace("(", "[").replace(")", "]").replace("'", "")
    return f"`{shown}`" if shown else "empty"


def _measures(_: str) -> str:
    each = [one for entry in MEASURES.available.values() for one in entry.gives]
    return _table(
        ("key", "name", "best", "decimals", "unit"),
        ((f"`{one.key}`", one.name, one.best, str(one.decimals), one.unit) for one in each),
    )


def _rejections(_: str) -> str:
    """Codes of recordings; values of a message in capitals."""
    known = codes_of([*vars(audio).values(), *vars(families).values()])
    rejections = sorted((code for code in known if issubclass(code.error, AudioError)), key=lambda code: code.name)
    return _table(
        ("reason", "meaning"),
        (
            (f"`{code.name}`", re.sub(r"\{(\w+)[^}]*\}", lambda match: match[1].upper(), code.message))
            for code in rejections
        ),
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


_TABLES: Mapping[str, Callable[[str], str]] = {"options": _options, "measures": _measures, "rejections": _rejections}
