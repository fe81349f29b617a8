"""Values of requests, checked."""

from __future__ import annotations

import json
import math
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import unquote

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request

from swsdist.core.codes import server as codes
from swsdist.glossary import words
from swsdist.glossary.words import Place
from swsdist.server.security import whole_body
from swsdist.server.service import Service

T = TypeVar("T")

#: Largest body of values, bytes.
_MOST = 1_000_000
#: Largest id, and the digits of one that surely is none.
MOST_ID, _DIGITS = 2**53, 16
#: Longest name of a file, and of what is repeated in a message.
_NAME, _SHOWN = 255, 60


class Turns:
    """Work of a kind: so much of it at once, each in a thread, and no more than so many people who wait for it."""

    def __init__(self, at_once: int, most: int) -> None:
        self._limiter, self._most, self._here = CapacityLimiter(at_once), most, 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Somebody's place while the work is done.

        Raises:
            UserError: all places are taken.
        """
        if self._here >= self._most:
            raise codes.BUSY(where="server", count=self._here)
        self._here += 1
        try:
            yield
        finally:
            self._here -= 1

    async def step(self, work: Callable[..., T], *args: Any) -> T:
        """Do a piece of it, when it is its turn."""
        return await to_thread.run_sync(work, *args, limiter=self._limiter)

    async def do(self, work: Callable[..., T], *args: Any) -> T:
        """Do all of it.

        Raises:
            UserError: too many are waiting.
        """
        with self.waiting():
            return await self.step(work, *args)


class Bounds:
    """Kinds of work that cost processors and memory."""

    def __init__(self) -> None:
        cpus = os.cpu_count() or 1
        self.searches, self.clips = Turns(cpus, 40), Turns(cpus, 200)
        self.answers = Turns(40, 40)  # which wait for a pass of `swsdist.searcher.searcher`
        self.recordings, self.files = Turns(max(1, cpus // 2), 16), Turns(1, 16)


def bounds_of(request: Request) -> Bounds:
    """What may be done at once."""
    bounds: Bounds = request.app.state.bounds
    return bounds


def service_of(request: Request) -> Service:
    """What is served."""
    service: Service = request.app.state.service
    return service


def person_of(request: Request) -> str:
    """Who asks."""
    person: str = request.app.state.guard.person(request)
    return person


def file_name(request: Request, other: str) -> str:
    """The name of a file that is sent, its last part, in one line of 255 characters at most; `other` where it has none."""
    sent = unquote(request.headers.get("x-name", "")).replace("\\", "/").rpartition("/")[2]
    name = "".join(" " if unicodedata.category(each)[0] == "C" else each for each in sent)[-_NAME:]
    return other if name.strip(". ") == "" else name


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object in a request.

    Raises:
        UserError: it is none, or too large.
    """
    body = await whole_body(request, _MOST)
    try:
        values = json.loads(body or b"{}", parse_constant=_refuse)
        json.dumps(values, ensure_ascii=False).encode()  # no half of a surrogate pair
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise codes.WRONG_REQUEST(where=request.url.path, what="the request is no JSON object")
    return values


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def integer(
    values: Mapping[str, Any], name: str, default: int | None = None, least: int = 0, most: int = MOST_ID
) -> int:
    """A whole number between two.

    Raises:
        UserError: it is none.
    """
    value = number(values, name, default)
    if value != int(value) or not least <= value <= most:
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is no whole number between {least} and {most}")
    return int(values.get(name, default)) if isinstance(values.get(name, default), int) else int(value)


def number(values: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A number.

    Raises:
        UserError: it is none.
    """
    value = values.get(name, default)
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if isinstance(value, bool) or not math.isfinite(result):
        raise codes.WRONG_REQUEST(where=name, what=f"{name} is no number: {ascii(value)[:_SHOWN]}")
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


def id_of(request: Request) -> int:
    """The id in an address; 0, which nothing has, where it is no id."""
    digits = request.path_params["id"]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0


def place_of(values: Any) -> Place:
    """A place of a document or a sound.

    Raises:
        UserError: it is none.
    """
    names = [values.get(name) for name in ("doc_id", "sound")] if isinstance(values, dict) else []
    if [isinstance(name, str) and bool(name) for name in names].count(True) != 1:
        raise codes.WRONG_REQUEST(where="place", what="a place names a document or a sound")
    start, end = number(values, "start"), number(values, "end")
    place = {name: values.get(name) for name in ("doc_id", "sound")}
    return words.place({**place, "channel": channel_of(values), "start": start, "end": end})


def channel_of(values: Mapping[str, Any]) -> int:
    """A channel, by default the first.

    Raises:
        UserError: it is none.
    """
    return integer(values, "channel", 1, 1, 2**31 - 1)
