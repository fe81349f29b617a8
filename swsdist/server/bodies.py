"""Bodies: of requests, bounded in bytes and time, and of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request

from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError

#: Codes whose message says nothing without the file's name.
_OF_A_FILE = ("missing-recording", "unreadable-recording")
#: Seconds that sending may take.
_SECONDS = 120.0


def error_values(error: SwsdistError) -> dict[str, str]:
    """An error as the page reads it."""
    message = f"{error.where}: {error.message}" if error.code in _OF_A_FILE else error.message
    return {"error": message, "remedy": error.remedy or "", "code": error.code or ""}


async def pieces(request: Request, most: int, seconds: float = _SECONDS) -> AsyncIterator[bytes]:
    """The body of a request in pieces.

    Raises:
        UserError: it has more bytes, or takes too long.
    """
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > most:
                    raise codes.LARGE_UPLOAD(where=request.url.path, most=most)
                yield piece
    except TimeoutError:
        raise codes.SLOW_UPLOAD(where=request.url.path, seconds=seconds) from None


async def whole_body(request: Request, most: int, seconds: float = _SECONDS) -> bytes:
    """The body of a request; see `pieces`."""
    return b"".join([piece async for piece in pieces(request, most, seconds)])


async def to_file(request: Request, file: Path, most: int) -> None:
    """Write the body of a request to a file; see `pieces`."""
    with file.open("wb") as out:
        async for piece in pieces(request, most):
            out.write(piece)
