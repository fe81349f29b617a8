"""Any column of any table from outside, of any type and value: it is taken as it is, or refused with file and column."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from swsdist.config import load_config
from swsdist.config.model import Config
from swsdist.core.errors import SwsdistError
from swsdist.core.types import CORPUS, QUERIES
from swsdist.evaluation.scoring_task import DETECTED
from swsdist.io.frames.archive import find_items
from swsdist.io.tables import read_table, write_csv
from swsdist.report.tables import read_rows, table_of, write_tables

_TIME = datetime(2020, 1, 1, tzinfo=UTC)
# fmt: off
_TEXTS = ["1", "x", "-", "#", "a|b", "a:b", "a/b", "  ", " 2 ", "", "a\nb", "a\rb", "a\0b", "x" * 300, "٣", "1_0", "0x10", ".5",
          "1,5", "nan", "inf", "-inf", "-0.0", "1e3", "1e400", str(2**31), str(2**64), "9" * 400, "true", "yes", "\u200b1"]
_VALUES = [*_TEXTS, True, 2, -1, 2**53 + 1, 0.5, -0.0, math.nan, math.inf, 1e9, 1.1e9, 1e300, Decimal("1.5"), None, b"x",
           b"\xff", _TIME, _TIME.date(), time(1), timedelta(seconds=1), [1], ["x"], {"a": 1}]
_TYPES = [(pa.uint8(), 1), (pa.uint64(), 2**64 - 1), (pa.float16(), 1.0), (pa.float32(), 1.5), (pa.decimal256(60, 20), 1),
          *((kind, "1") for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))),
          *((kind, b"1") for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))),
          *((kind, 1) for kind in (pa.duration("us"), pa.time32("s"), pa.timestamp("ns", "Asia/Tokyo"), pa.date64())),
          *((kind, [1]) for kind in (pa.large_list(pa.int8()), pa.list_(pa.int8(), 1))),
          (pa.dictionary(pa.int32(), pa.float64()), 1.5), (pa.map_(pa.string(), pa.int8()), [("a", 1)])]
# fmt: on
_COLUMNS = {f"{value!r:.24}": pa.array([value]) for value in _VALUES}
_COLUMNS |= {str(kind): pa.array([value], kind) for kind, value in _TYPES}
_COLUMNS["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))
_COLUMNS["surrogate"] = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 3], pa.int32()).buffers()[1], pa.py_buffer(b"\xed\xa0\x80")]
)
#: Each column, with a table that has it.
_FIELDS = {item.name: schema for schema in (CORPUS, QUERIES, DETECTED) for item in schema}


def _same(value: object, given: Any, name: str) -> bool:
    """Whether what was read of a cell is what stands there."""
    given = given.decode() if isinstance(given, bytes) else given
    absent = given in (None, "") or given != given
    if value is None or absent:
        return (absent and value in (None, "", 1)) or name == "speaker"
    if isinstance(value, bool):
        return str(given).strip() in (("True", "true", "yes") if value else ("0", "-0.0", "False")) or (
            value and float(given) == 1
        )
    if isinstance(value, str) and isinstance(given, str):
        return given.strip() == value.strip()
    return not isinstance(given, bool) and math.isclose(
        float(str(given).replace(",", ".")), float(str(value)), rel_tol=1e-15
    )


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_taken_or_refused(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{form}"
    usual = {"start": 0.25, "end": 1e8, "duration": 1e9, "channel": 1, "example": 1}
    for column_name, schema in _FIELDS.items():
        item = schema.field(column_name)
        cells = {each.name: pa.array([usual.get(each.name, "1")]).cast(each.type) for each in schema}
        for name, column in _COLUMNS.items():
            if form == "csv" and (name == "surrogate" or column.type != pa.string()):
                continue
            full, error, value = pa.table({**cells, item.name: column}), "", None
            pq.write_table(full, path) if form == "parquet" else write_csv(full, full.schema, path)
            try:
                (value,) = read_table(str(path), schema)[item.name].to_pylist()
            except SwsdistError as caught:
                error = f"{caught} [{caught.code}]"
            if error:
                assert str(path) in error
                assert item.name in error or "[invalid-times]" in error
            else:
                assert _same(value, column[0].as_py(), item.name), (item.name, name, value)


def test_frames_and_tables_for_papers(tmp_path: Path) -> None:
    """They take any type, or say no."""
    path = tmp_path / "x.parquet"
    for column in _COLUMNS.values():
        for name in ("doc_id", "channel"):
            pq.write_table(pa.table({"doc_id": ["1"], "frames": [[[1.0]]], name: column}), path)
            with suppress(SwsdistError):
                find_items(str(path))
        with suppress(SwsdistError):
            write_tables([table_of(read_rows(str(path)), "", None, names_first=False)], str(tmp_path / "x.json"))


def _keys(node: dict[str, Any], place: tuple[str, ...] = ()) -> Iterator[str]:
    """Keys of a config that hold a number."""
    schema = Config.model_json_schema()
    left = [(node, place)]
    while left:
        node, place = left.pop()
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        left += [(item, place) for item in (*node.get("anyOf", ()), *node.get("allOf", ()))]
        left += [(item, (*place, name)) for name, item in node.get("properties", {}).items()]
        if node.get("type") in ("number", "integer"):
            yield ".".join(place)


def test_numbers_of_a_config(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("run: r\ncorpus: {documents: d}\n")
    keys = set(_keys(Config.model_json_schema()))
    assert len(keys) > 40
    for key in keys:
        for text in (".inf", "-.inf", ".nan", "1e400", str(2**70), "9" * 5000, "inf", "nan"):
            with pytest.raises(SwsdistError, match=re.escape(key.partition(".")[0])):
                load_config(str(tmp_path / "c.yaml"), sets=[f"{key}={text}"])
