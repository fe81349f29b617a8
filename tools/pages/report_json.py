"""docs/reference/report-json.md, as the models of `swsdist.report.data` have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict, cast

from swsdist.report.data import SCHEMA, ReportJson

_PREFACE = """\
# report.json

<!-- Generated from swsdist/report/data.py: make docs -->

Measures and costs of a run, in `report.json` of the run folder. `schema` is the version, now `{schema}`: within a version
keys may be added; none is removed, renamed or changed in meaning. Infinite and undefined values are null. Times are seconds,
GB are 1e9 bytes. The block `measures` does not depend on shards, workers or executor. A key marked `?` may be null.

The JSON Schema, for a validator:

```python
from swsdist.report.data import ReportJson

schema = ReportJson.model_json_schema()
print(schema["properties"]["ssf"]["description"])
```
"""


def page() -> str:
    """The Markdown text of docs/reference/report-json.md."""
    schema = cast(_Schema, ReportJson.model_json_schema())
    parts = [_PREFACE.format(schema=SCHEMA), *_section("Top level", schema), *_below(schema, schema["$defs"])]
    return "\n".join(parts)


def _below(schema: _Schema, defined: Mapping[str, _Schema], above: str = "") -> Iterator[str]:
    """Sections of the objects that fields hold, and of those that these hold."""
    for key, field in schema["properties"].items():
        name = _reference(field)
        if name:
            yield from _section(f"`{above}{key}`" + (", each row" if "items" in field else ""), defined[name])
            yield from _below(defined[name], defined, f"{above}{key}.")


#: What is looked at of a JSON schema.
_Schema = TypedDict(
    "_Schema",
    {
        "$defs": dict[str, "_Schema"],
        "$ref": str,
        "additionalProperties": "bool | _Schema",
        "anyOf": list["_Schema"],
        "const": object,
        "description": str,
        "enum": list[object],
        "items": "_Schema",
        "properties": dict[str, "_Schema"],
        "type": str,
    },
    total=False,
)


def _section(title: str, schema: _Schema) -> Iterator[str]:
    yield f"## {title}\n"
    if title != "Top level":
        yield schema["description"].replace("\n", " ") + "\n"
    for key, field in schema["properties"].items():
        yield f"- `{key}` {_type(field)}: {field['description']}"
    yield ""


def _reference(field: _Schema) -> str | None:
    """The definition that a field, its rows or one of its alternatives refer to."""
    none: _Schema = {}
    for place in (field, field.get("items", none), *field.get("anyOf", ())):
        if "$ref" in place:
            return str(place["$ref"]).rsplit("/", 1)[-1]
    return None


def _type(field: _Schema) -> str:
    if "anyOf" in field:
        kinds = [_type(item) for item in field["anyOf"]]
        return "/".join(kind for kind in kinds if kind != "null") + ("?" if "null" in kinds else "")
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return "object"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    values = field.get("additionalProperties")
    if isinstance(values, dict):
        return f"object of {_type(values)}"
    return str(field["type"])


if __name__ == "__main__":
    print(page(), end="")
