"""`report.json`: the fields of `swsdist.report.data.ReportData` that have a meaning, from which its JSON schema and
docs/reference/report-json.md are made.

Version policy: within `swsdist-report/1` keys may be added; none is removed, renamed or changed in meaning. JSON has no
infinity and no NaN: such values are null.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from swsdist.core.codes import discovery as codes
from swsdist.core.fingerprint import fields as dataclass_values
from swsdist.core.fingerprint import plain
from swsdist.io.filesystem import Folder
from swsdist.report.data import ReportData, thin_det

_HINTS = get_type_hints(ReportData, include_extras=True)
#: What the fields of report.json mean, by name, in its order.
_FIELDS: dict[str, FieldInfo] = {
    name: hint.__metadata__[0] for name, hint in _HINTS.items() if get_origin(hint) is Annotated
}
_TYPES: dict[str, Any] = {name: (_HINTS[name], ...) for name in _FIELDS}
ReportJson: type[BaseModel] = create_model("ReportJson", __config__=ConfigDict(populate_by_name=True), **_TYPES)


def read_report_json(run: Folder) -> dict[str, Any]:
    """The content of a run's `report.json`.

    Raises:
        UserError: there is none.
        StoreError: it is damaged.
    """
    try:
        content = json.loads(run.read_bytes("report.json"))
        if not isinstance(content["resources"], dict) or not isinstance(content["versions"], dict):
            raise TypeError("it is no report")
    except FileNotFoundError:
        raise codes.NO_REPORT(where=run.path()) from None
    except (ValueError, KeyError, TypeError) as error:
        raise codes.DAMAGED_REPORT(where=run.path("report.json"), error=error, run=run.path()) from None
    return dict(content)


def write_report_json(data: ReportData) -> dict[str, object]:
    """The content of report.json: dicts, lists, strings, numbers, booleans and None only, ready for `json.dump`."""
    det = None if data.det is None else thin_det(data.det)
    hits = tuple(dataclasses.replace(hit, audio=None, query_audio=None) for hit in data.hits)
    shown = dataclasses.replace(data, det=det, hits=hits)
    report = {field.alias or name: plain(getattr(shown, name)) for name, field in _FIELDS.items()}
    if det is not None:
        report["det"] = {"points": det.points, **dataclass_values(det)}
    return report
