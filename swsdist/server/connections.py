"""Limits on connections: their number, and the time without a request or without reading the response.

uvicorn waits for headers, and for whoever does not read, without end, and for any number of clients. Here a connection that
waits for its client ends: without a request after `HEADERS` seconds, with an answer of which the client takes nothing after
`ANSWERS`. Where there are too many, the one that has waited longest makes room; where none waits, one of a stranger.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from itertools import chain
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds in which the headers of a request come, and in which some of an answer is taken.
HEADERS, ANSWERS = 10.0, 20.0
#: Most connections; accepted at once; and descriptors that are left for all else.
_MOST, BACKLOG, _ELSE = 500, 100, 64
#: Bytes of an answer that the system holds, a third of which is taken before it says so.
_HELD = 1 << 17
#: In a request's state: whether the gate lets in who asks.
LET_IN = "let_in"
#: Of a socket that is closed at once.
_AT_ONCE = struct.pack("ii", 1, 0)
#: Bytes of further requests that a client may send before the answer: browsers send none.
_AHEAD = 4096

_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def most_connections() -> int:
    """How many connections the descriptors of this process suffice for; each may send an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < (wanted := 2 * _MOST + BACKLOG + _ELSE):
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, min(_MOST, (soft - BACKLOG - _ELSE) // 2))


def protocol(most: int, headers: float = HEADERS, answers: float = ANSWERS) -> type[H11Protocol]:
    """uvicorn's protocol for a server with so many connections, and so many seconds for headers and answers."""

    class Prompt(H11Protocol):
        """A connection; those that wait for their clients are known, the longest first."""

        waiting: ClassVar[dict[asyncio.Protocol, asyncio.TimerHandle]] = {}
        _left = 0  # bytes to send when the timer was set

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _HELD)
            self._look()
            if len(self.connections) > most:
                strangers = (each for each in self.connections if not each.is_let_in())  # type: ignore[union-attr]
                leaving = next((each for each in chain(self.waiting, strangers) if each is not self), self)
                if leaving is self:
                    transport.write(_FULL)
                leaving.end()  # type: ignore[union-attr]

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._forget()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.DONE and len(self.conn.trailing_data[0]) > _AHEAD:
                self.end()
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._look()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._look()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._look()

        def is_let_in(self) -> bool:
            """Whether it is somebody's whom the gate lets in."""
            return self.cycle is not None and bool(self.cycle.scope["state"].get(LET_IN))

        def end(self) -> None:
            """Close it; of an answer that is not taken the system keeps nothing."""
            self._forget()
            if self.transport.get_write_buffer_size():
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

        def _look(self) -> None:
            """See whether it waits for its client: to send a request, to take an answer, or what is left of one at the end."""
            is_answering = self.cycle is not None and not self.cycle.response_complete
            if is_answering and not self.flow.write_paused and not self.transport.is_closing():
                self._forget()
            elif self not in self.waiting:
                self._wait()

        def _wait(self) -> None:
            self._left = self.transport.get_write_buffer_size()
            self.waiting[self] = self.loop.call_later(answers if self._left else headers, self._late)

        def _late(self) -> None:
            if 0 < self.transport.get_write_buffer_size() < self._left:
                self._wait()
            else:
                self.end()

        def _forget(self) -> None:
            timer = self.waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

    return Prompt
