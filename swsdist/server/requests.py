"""Values of requests, checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request

from swsdist.core.codes import server as codes
from swsdist.glossary.words import Place
from swsdist.server.bodies import whole_body
from swsdist.server.service import Service

#: Largest body of values, bytes.
_MOST = 1_000_000


def service_of(request: Request) -> Service:
    """What is served."""
    service: Service = request.app.state.service
    return service


def person_of(request: Request) -> str:
    """Who asks."""
    person: str = request.app.state.guard.person(request)
    return person


def file_name(request: Request, other: str) -> str:
    """The name of a file that is sent, of its last part, 100 characters at most; `other` where it has none."""
    name = unquote(request.headers.get("x-name", "")).replace("\0", "").replace("\\", "/").rpartition("/")[2]
    return other if name.strip(". ") == "" else name[-100:]


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object in a request.

    Raises:
        UserError: it is none, or too large.
    """
    body = await whole_body(request, _MOST)
    try:
        values = json.loads(body or b"{}")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise codes.WRONG_REQUEST(where=request.url.path, what="the request is no JSON object")
    return values


def number(values: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A number.

    Raises:
        UserError: it is none.
    """
    value = values.get(name, default)
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
    if isinstance(value, bool) or not math.isfinite(result):
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is {value!r}, not a number")
    return result


def text_of(values: Mapping[str, Any], name: str) -> str:
    """A text that is not empty.

    Raises:
        UserError: it is none.
    """
    value = values.get(name)
    if not isinstance(value, str) or not value.strip():
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is missing")
    return value.strip()


def place_of(values: Any) -> Place:
    """A place of a document or a sound.

    Raises:
        UserError: it is none.
    """
    names = [values.get(name) for name in ("doc_id", "sound")] if isinstance(values, dict) else []
    if [isinstance(name, str) and bool(name) for name in names].count(True) != 1:
        raise codes.WRONG_REQUEST(where="place", what="a place names a document or a sound")
    start, end = number(values, "start"), number(values, "end")
    if not 0 <= start < end:
        raise codes.WRONG_REQUEST(where="place", what=f"a place from {start} s to {end} s is none")
    channel = int(number(values, "channel", 1))
    return Place(doc_id=values.get("doc_id"), channel=channel, start=start, end=end, sound=values.get("sound"))
