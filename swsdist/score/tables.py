"""Conversion of tables: from arrow tables, pandas DataFrames, mappings of columns or lists of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import score as codes
from swsdist.core.types import TERMS


def as_table(data: object, what: str = "table") -> pa.Table:
    """Convert data to an arrow table.

    Args:
        data: what was given.
        what: its name in messages.

    Raises:
        TableError: the data are of another kind, or columns differ in length.
    """
    if isinstance(data, pa.Table):
        return data
    try:
        if isinstance(data, list) and not all(isinstance(item, Mapping) for item in data):
            raise TypeError("its rows are no mappings of columns to values")
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if hasattr(data, "to_dict") and hasattr(data, "columns"):  # a pandas table
            return pa.Table.from_pandas(data, preserve_index=False)
        return (
            pa.Table.from_pylist(data) if isinstance(data, list) else pa.table(dict(cast("Mapping[str, object]", data)))
        )
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise codes.NOT_TABULAR(where=what, reason=str(error)) from error


def in_schema(data: object, schema: pa.Schema, what: str) -> pa.Table:
    """Convert data to a schema; TERMS keeps further columns; channel defaults to 1, nullable columns to null.

    Args:
        data: what was given.
        schema: of `swsdist.core.types`; decisions may be given as YES and NO.
        what: its name in messages.

    Raises:
        TableError: a column is missing or of another kind.
    """
    table = as_table(data, what)
    columns = {}
    for column in schema:
        if column.name in table.column_names:
            column_values = table[column.name]
            if column.name == "decision" and (
                pa.types.is_string(column_values.type) or pa.types.is_large_string(column_values.type)
            ):
                column_values = _yes_or_no(column_values, what)
            try:
                columns[column.name] = column_values.cast(column.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise codes.WRONG_COLUMN_TYPE(
                    where=what, column=column.name, type=table[column.name].type, expected=column.type
                ) from error
        elif column.name == "channel":
            columns["channel"] = pa.chunked_array([pa.array(np.ones(table.num_rows, np.int32))])
        elif column.nullable:
            columns[column.name] = pa.chunked_array([pa.nulls(table.num_rows, column.type)])
        else:
            raise codes.ABSENT_COLUMN(where=what, column=column.name, columns=", ".join(table.column_names) or "none")
    if schema is TERMS:
        columns |= {name: table[name] for name in table.column_names if name not in columns}
    return pa.table(columns)


def _yes_or_no(column_values: pa.ChunkedArray, what: str) -> pa.ChunkedArray:
    odd = [word for word in column_values.unique().to_pylist() if word not in ("YES", "NO", None)]
    if odd:
        raise codes.INVALID_DECISION(where=what, decision=odd[0])
    return pc.equal(column_values, "YES")
