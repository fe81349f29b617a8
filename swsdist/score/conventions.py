"""Conventions of the scoring programs: one value per program, one field per rule.

Where the programs differ, the code asks the conventions for the rule, never for the program's name. Each rule was read
from the program's source, and confirmed by running it: STDEval 0.7, KWSEval (F4DE 3.5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import TableError
from swsdist.core.types import TERMS

Name = Literal["stdeval", "kwseval", "quesst"]


@dataclass(frozen=True)
class Conventions:
    """The rules of a program, by default those of STDEval.

    Attributes:
        name: of the program.
        rejects_all: the curve has a point that rejects everything, so its maximum is never negative.
        divides: the number of trials is seconds divided by the trials per second; else multiplied by it.
        list_limits: the kernel's least and greatest score are of the whole list; else of the list's header or of the group.
        forward_only: an occurrence with its end before its start is an error. (KWSEval's links in an unsorted transcript may
            lead backwards.)
        sums_ends: the end of an occurrence or excerpt is start + duration, not rounded; else the end rounded to 4 decimals.
        per_channel: T is the sum of the durations of channel 1; else per file, without overlaps.
        drops_outside: occurrences outside of the ECF are always left out; else only with -E.
        strict_lists: an unlisted query or a duplicate term in a list is an error.
        all_terms: totals are over all terms; else over those that are evaluated.
        aligned_border: the scores that border the decisions are of aligned detections; else of the list.
        pooled_by_detection: a pooled curve has one point per detection, with values in C and V; else it is a term's curve.
        options: has -inc and -j.
        by_type: values for each source type, too.
        prints_table: has STDEval's table.
        rttm_fields: fields of an RTTM record; None: any number.
        lowercases: words are compared without regard to case, overriding the term list.
        repeats: occurrences count for each term with their text.
        links: words are linked to the next word of their speaker; else they follow the order of the file.
        by_name: a document is an excerpt's name, whatever its channel and times, and an RTTM names queries by id.
        excerpt_suffix: regular expression of the suffix removed from an excerpt's file name.
        system_suffix: the same for a detection's file name.
    """

    name: Name
    rejects_all: bool = True
    divides: bool = False
    list_limits: bool = True
    forward_only: bool = True
    sums_ends: bool = True
    per_channel: bool = True
    drops_outside: bool = False
    strict_lists: bool = False
    all_terms: bool = True
    aligned_border: bool = False
    pooled_by_detection: bool = True
    options: bool = False
    by_type: bool = True
    prints_table: bool = True
    rttm_fields: int | None = None
    lowercases: bool = True
    repeats: bool = True
    links: bool = False
    by_name: bool = False
    excerpt_suffix: str = r"\.(sph|wav|flac)$"
    system_suffix: str = r"\.(sph|wav|flac)$"

    def excerpt_document(self, file: str) -> str:
        """The document that an excerpt's `audio_filename` names."""
        last = file.rpartition("/")[2]
        return re.sub(self.excerpt_suffix, "", last)

    def system_document(self, file: str) -> str:
        """The document that a detection's `file` names."""
        return re.sub(self.system_suffix, "", file.rpartition("/")[2])

    def trials(self, seconds: float, rate: float) -> float:
        """Trials in seconds of audio, not rounded; `rate` is the option "trials per second"."""
        return seconds / rate if self.divides else seconds * rate

    def rate(self, rate: float) -> float:
        """True trials in a second of audio, of the option "trials per second"."""
        return 1 / rate if self.divides else rate


STDEVAL = Conventions("stdeval")
KWSEVAL = Conventions(
    "kwseval",
    rejects_all=False,
    divides=True,
    list_limits=False,
    forward_only=False,
    sums_ends=False,
    per_channel=False,
    drops_outside=True,
    strict_lists=True,
    all_terms=False,
    aligned_border=True,
    pooled_by_detection=False,
    options=True,
    by_type=False,
    prints_table=False,
    rttm_fields=9,
    lowercases=False,
    repeats=False,
    links=True,
    by_name=False,
    excerpt_suffix=r"(?<=.)\.[^.]*$",
    system_suffix=r"\.sph$",
)

QUESST = Conventions("quesst", by_name=True, prints_table=False, excerpt_suffix=r"\.[^.]*$", system_suffix="$")

CONVENTIONS: Mapping[str, Conventions] = MappingProxyType({rule.name: rule for rule in (STDEVAL, KWSEVAL, QUESST)})


def conventions_of(name: str | Conventions) -> Conventions:
    """The conventions of that name.

    Raises:
        UserError: the name is unknown.
    """
    if isinstance(name, Conventions):
        return name
    if name not in CONVENTIONS:
        raise families.UNKNOWN_NAME(
            "unknown conventions {name!r}", "choose one of: {names}", name=name, names=", ".join(CONVENTIONS)
        )
    return CONVENTIONS[name]


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
        raise families.MALFORMED_FILE.of(TableError)(
            "not a table: {reason}",
            "give an arrow table, a pandas DataFrame, a mapping of columns or a list of rows",
            where=what,
            reason=str(error),
        ) from error


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
                raise families.BAD_CELL(
                    "column {column} is {type}, not {expected}",
                    "give {expected}",
                    where=what,
                    column=column.name,
                    type=table[column.name].type,
                    expected=column.type,
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
        raise families.BAD_CELL(
            "decision {decision!r}", "give YES, NO or nothing, or true and false", where=what, decision=odd[0]
        )
    return pc.equal(column_values, "YES")
