"""Connections that a stranger may hold: bounded in number, and closed where no request comes.

uvicorn waits for headers without end, and for any number of clients. Here a connection without a request ends after `HEADERS`
seconds, and where there are too many, the one that has been silent longest makes room.
"""

from __future__ import annotations

import asyncio
import resource
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds in which the headers of a request come.
HEADERS = 10.0
#: Most connections; accepted at once; and descriptors that are left for all else.
_MOST, BACKLOG, _ELSE = 500, 100, 64

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def most_connections() -> int:
    """How many connections the descriptors of this process suffice for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < (wanted := _MOST + BACKLOG + _ELSE):
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, min(_MOST, soft - BACKLOG - _ELSE))


def protocol(most: int, seconds: float = HEADERS) -> type[H11Protocol]:
    """uvicorn's protocol for a server with so many connections, and so many seconds for headers."""

    class Prompt(H11Protocol):
        """A connection; those without a request are known, the oldest first."""

        silent: ClassVar[dict[asyncio.Protocol, asyncio.TimerHandle]] = {}

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._listen()
            if len(self.connections) > most:
                oldest = next(iter(self.silent))
                if oldest is self:
                    transport.write(_FULL)
                oldest.end()  # type: ignore[attr-defined]

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._listen()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._listen()

        def end(self) -> None:
            """Close it."""
            self._forget()
            self.transport.close()

        def _listen(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self not in self.silent and not self.transport.is_closing():
                self.silent[self] = self.loop.call_later(seconds, self.end)

        def _forget(self) -> None:
            timer = self.silent.pop(self, None)
            if timer is not None:
                timer.cancel()

    return Prompt
