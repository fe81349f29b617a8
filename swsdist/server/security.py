"""Security of the server: access, what a browser may do, and limits on connections.

Access is by a token in the printed address, a password, or a proxy that names users.

Pages of other origins can neither read answers (cookies are `SameSite=Strict`, no CORS) nor change anything (changes
need a header that a form cannot send, and an `Origin` of this server). A request for another host's name is refused, so
that a name that is made to point here gets nothing.

Connections are limited in number, and in the time without a request or without reading the response: uvicorn waits
without end for headers and for slow readers, and for any number of clients. A connection that waits for its client ends
without a request after `HEADERS` seconds, and with an answer of which the client reads nothing after `ANSWERS`. If
there are too many, the one that has waited longest is closed; if none waits, one of an unknown client.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import os
import re
import resource
import secrets
import socket
import struct
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from ipaddress import IPv6Address, ip_address
from itertools import chain
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

import h11
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError, UserError
from swsdist.glossary import words

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


SESSION, PERSON = "swsdist_session", "swsdist_person"
#: Default user name.
NOBODY = "me"
#: Longest name of a person.
_LONGEST_NAME = 64
#: Characters of a header in a message.
_SHOWN = 100
#: Seconds that a wrong password takes.
_DELAY = 1.0
#: Wrong passwords of an address that are answered at once; it gets one more each second. Addresses that are remembered.
_WRONG, _ADDRESSES = 300, 10_000
#: Sessions, and seconds after which an unused one ends.
_SESSIONS, _SESSION_SECONDS = 1000, 7 * 86_400.0
#: Of a token.
_TOKEN_BYTES = 24
#: Of the login form: bytes, and seconds that it may take.
_FORM_BYTES, _FORM_SECONDS = 4096, 10.0
#: A host as browsers write it, and its port.
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{1,5}))?")

_LOG = logging.getLogger(__name__)

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; worker-src 'self' blob:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "Referrer-Policy": "same-origin",  # without one, browsers send the login form with the origin `null`
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
}

_LOGIN = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>swsdist</title><link rel="stylesheet" href="/static/style.css"><main class="login"><h1>swsdist</h1>{said}
<form method="post" action="/login"><p><label>Your name<br><input name="person" autocomplete="username" required></label>
<p><label>Password<br><input name="password" type="password" autocomplete="current-password" required></label>
<p><button>Enter</button></form></main></html>"""


#: Of a browser without a session or with the token of another server; the browser has not said in which language.
_CLOSED = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>swsdist</title><link rel="stylesheet" href="/static/style.css"><main class="login"><h1>swsdist</h1>
<p>Open the whole address that <code>swsdist serve</code> shows in the terminal, to its end: what follows <code>token=</code>
lets you in.<p>If you cannot see it, press Ctrl-C in that terminal, and type <code>swsdist serve</code> with the name of your
folder again. Nothing is lost.
<div lang="fr"><p>Ouvrez l’adresse entière que <code>swsdist serve</code> affiche dans le terminal, jusqu’à la fin : ce qui suit
<code>token=</code> vous laisse entrer.<p>Si vous ne la voyez pas, appuyez sur Ctrl-C dans ce terminal et tapez de nouveau
<code>swsdist serve</code> avec le nom de votre dossier. Rien n’est perdu.</div></main></html>"""

#: Of a link on another page: a browser sends a strict cookie only where this server's own page leads.
_ENTERED = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>swsdist</title>'


def error_response(error: SwsdistError, status: int) -> JSONResponse:
    """The answer with an error."""
    return JSONResponse(error_values(error), status)


class Kept:
    """The token of an address, and the sessions of who entered by it, in a file that nobody but its owner reads: addresses and
    browsers are known after a restart. Where a file system keeps no modes, and where the disk is full, the file is not written.

    Args:
        file: where; a file of another user, or that others may read, is not believed.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        values = self._read()
        token, sessions = values.get("token"), values.get("sessions")
        self.token = (
            token if isinstance(token, str) and len(token) >= _TOKEN_BYTES else secrets.token_urlsafe(_TOKEN_BYTES)
        )
        self._sessions: dict[str, float] = sessions if isinstance(sessions, dict) else {}
        self._write()

    def age(self, session: str) -> float:
        """Seconds since somebody entered; infinite: it is no session."""
        at = self._sessions.get(_digest(session))
        return max(0.0, time.time() - at) if isinstance(at, int | float) else float("inf")

    def add(self, session: str) -> None:
        """Somebody enters."""
        self._sessions[_digest(session)] = time.time()
        self._sessions = dict(list(self._sessions.items())[-_SESSIONS:])
        self._write()

    def remove(self, session: str) -> None:
        """Somebody leaves."""
        if self._sessions.pop(_digest(session), None) is not None:
            self._write()

    def _read(self) -> dict[str, object]:
        with suppress(OSError, ValueError):
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW)
            with open(descriptor, encoding="utf-8") as stream:  # noqa: PTH123
                values = json.load(stream) if is_own(descriptor) else None
            return values if isinstance(values, dict) else {}
        return {}

    def _write(self) -> None:
        with suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix=".access-", dir=self._file.parent)
            try:
                with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123
                    is_kept = is_own(descriptor)
                    if is_kept:
                        json.dump({"token": self.token, "sessions": self._sessions}, stream)
                if is_kept:
                    Path(name).replace(self._file)
            finally:
                Path(name).unlink(missing_ok=True)


def is_own(descriptor: int) -> bool:
    """Whether an open file is this user's, and no other may read or write it."""
    state = os.fstat(descriptor)
    return state.st_uid == os.geteuid() and not state.st_mode & 0o077


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()


@dataclass
class Guard:
    """What lets people in.

    Attributes:
        token: in the printed address; None: no token opens.
        password: None: no password opens.
        user_header: of a proxy, which names the person; only requests of `proxies` may have it.
        hosts: names by which the server is asked; others are refused.
        proxies: addresses whose headers are believed.
        kept: what outlives the server; None: sessions end with it.
    """

    token: str | None
    hosts: frozenset[str]
    password: str | None = None
    user_header: str | None = None
    proxies: frozenset[str] = frozenset({"127.0.0.1", "::1"})
    kept: Kept | None = None
    _sessions: dict[str, float] = field(default_factory=dict)
    _wrong: dict[str, tuple[float, float]] = field(default_factory=dict)

    def person(self, request: Request) -> str:
        """Who asks."""
        if self.user_header is not None:
            return _as_sent(request.headers[self.user_header])[:_LONGEST_NAME]
        return unquote(request.cookies.get(PERSON, ""))[:_LONGEST_NAME] or NOBODY

    def is_open(self, request: Request) -> bool:
        """Whether a request is let in."""
        if self.user_header is not None:
            return _peer(request) in self.proxies and bool(request.headers.get(self.user_header))
        session, now = request.cookies.get(session_cookie(request.headers), ""), time.monotonic()
        age = now - self._sessions.get(session, float("-inf"))
        if self.kept is not None:
            age = min(age, self.kept.age(session))
        if age >= _SESSION_SECONDS:
            self._sessions.pop(session, None)
            return False
        self._sessions[session] = now
        return True

    def is_secure(self, request: Request) -> bool:
        """Whether the browser asks by https, maybe of a proxy."""
        proxied = _peer(request) in self.proxies and request.headers.get("x-forwarded-proto") == "https"
        return request.url.scheme == "https" or proxied

    def by_token(self, request: Request) -> str | None:
        """The session of somebody who gives a token; None: it is wrong. Nobody guesses one, so none is slowed down."""
        return self._enter(request, request.query_params.get("token", ""), self.token, "token")

    async def by_password(self, request: Request, password: str) -> str | None:
        """The session of somebody who gives a password; None: it is wrong.

        A right one waits for nobody, whatever else came from its address. A wrong one costs its own sender a second.

        Raises:
            UserError: it is wrong, and this address gave too many wrong ones.
        """
        session = self._enter(request, password, self.password, "password")
        if session is not None:
            return session
        address, now = self._address(request), time.monotonic()
        wrong, at = self._wrong.pop(address, (0.0, now))  # the one that is counted last is forgotten last
        wrong = max(0.0, wrong - (now - at))
        is_over = wrong > _WRONG - 1
        self._wrong[address] = wrong if is_over else wrong + 1, now
        if len(self._wrong) > _ADDRESSES:
            del self._wrong[next(iter(self._wrong))]
        if is_over:
            raise codes.SLOW_DOWN(where=address, seconds=max(1, round(wrong - _WRONG + 1)))
        await asyncio.sleep(_DELAY)
        return None

    def leave(self, request: Request) -> None:
        """End a session."""
        session = request.cookies.get(session_cookie(request.headers), "")
        self._sessions.pop(session, None)
        if self.kept is not None:
            self.kept.remove(session)

    def _enter(self, request: Request, sent: str, secret: str | None, kind: str) -> str | None:
        if secret is None or not hmac.compare_digest(sent.encode("utf-8", "replace"), secret.encode()):
            _LOG.warning("a wrong %s from %s", kind, self._address(request))
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = time.monotonic()
        if self.kept is not None:
            self.kept.add(session)
        for old in sorted(self._sessions, key=lambda each: self._sessions[each])[:-_SESSIONS]:
            del self._sessions[old]
        return session

    def _address(self, request: Request) -> str:
        """Whose secrets are counted together: an address, or the network of a host with IPv6."""
        peer = _peer(request)
        if peer in self.proxies:
            peer = request.headers.get("x-forwarded-for", peer).rpartition(",")[2].strip()
        try:
            address = ip_address(peer)
        except ValueError:
            return peer[:_LONGEST_NAME]
        is_network = isinstance(address, IPv6Address) and address.ipv4_mapped is None and not address.is_loopback
        return f"{IPv6Address(int(address) >> 64 << 64)}/64" if is_network else str(address)


class Gate:
    """The middleware: refuses who may not enter, and adds headers to each answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_refused = False

        async def send_with_headers(message: Message) -> None:
            nonlocal is_refused
            if is_refused:
                return
            if message["type"] == "http.response.start":
                headers = message.get("headers", [])
                if message["status"] in (400, 416) and any(value.startswith(b"text/plain") for _, value in headers):
                    # Starlette's own words on a range.
                    error = families.INVALID_VALUE.of(UserError)(
                        "{range!r} is no part of this file",
                        "ask for bytes of it, as `bytes=0-999`, or for all",
                        where=request.url.path,
                        range=request.headers.get("range", "")[:_SHOWN],
                    )
                    await error_response(error, message["status"])(scope, receive, send_with_headers)
                    is_refused = True
                    return
                added = {name.lower().encode(): value.encode() for name, value in _HEADERS.items()}
                if not any(name.lower() == b"cache-control" for name, _ in headers):
                    # Scripts of another version never meet this one's page, and what is said is kept nowhere.
                    kept = b"no-cache" if request.url.path.startswith("/static/") else b"no-store"
                    added[b"cache-control"] = kept
                message = {**message, "headers": [*headers, *added.items()]}
            await send(message)

        request = Request(scope, receive)
        scope.setdefault("state", {})[LET_IN] = self._guard.is_open(request)
        answer = await self._answer(request)
        await (answer or self._app)(scope, receive, send_with_headers)

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request that does not pass."""
        if (refused := self._refusal(request)) is not None:
            return refused
        guard, path = self._guard, request.url.path
        if path == "/login" and guard.password is not None:
            return await self._login(request)
        if path == "/" and "token" in request.query_params and guard.token is not None:
            session = guard.by_token(request)
            if session is not None:
                return self._entered(request, session)
        if path == "/health" or path.startswith("/static/"):
            return None
        if not request.scope["state"][LET_IN]:
            if path == "/" and guard.password is not None:
                return HTMLResponse(_LOGIN.format(said=""))
            if guard.token is not None and request.method == "GET" and "text/html" in request.headers.get("accept", ""):
                return HTMLResponse(_CLOSED, 401)
            error = (
                families.REQUEST_REFUSED(
                    "the address lacks the token of this server, or it has started anew",
                    "open the whole address that `swsdist serve` printed last",
                )
                if guard.user_header is None
                else families.REQUEST_REFUSED(
                    "no proxy says who asks: there is no header {header}",
                    "ask by the proxy's address (swsdist help serve-an-archive)",
                    header=guard.user_header,
                )
            )
            return error_response(error, 401)
        if request.method not in ("GET", "HEAD") and request.headers.get("x-swsdist") != "1":
            origin = request.headers.get("origin") or "a form"
            return error_response(codes.OTHER_ORIGIN(where=path, origin=origin), 403)
        if path == "/logout" and request.method == "POST":
            guard.leave(request)
            answer = JSONResponse({})
            answer.delete_cookie(session_cookie(request.headers))
            return answer
        return None

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request by another name of this machine, or from another page."""
        headers, path = request.headers, request.url.path
        host, _ = _host_and_port(headers)
        if host not in self._guard.hosts:
            given = headers.get("host", "")
            return error_response(
                families.REQUEST_REFUSED(
                    "this server does not answer for {host!r}",
                    "ask by the printed address, or start it with --host-name {host}",
                    where=given,
                    host=given,
                ),
                421,
            )
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != headers.get("host"):
            return error_response(codes.OTHER_ORIGIN(where=origin, origin=origin), 403)
        is_opened = path == "/" and headers.get("sec-fetch-dest") == "document"  # somebody follows a link
        if headers.get("sec-fetch-site") == "cross-site" and not is_opened:
            return error_response(codes.OTHER_ORIGIN(where=path, origin="another page"), 403)
        return None

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return RedirectResponse("/", 303)
        try:
            body = await whole_body(request, _FORM_BYTES, _FORM_SECONDS)
        except SwsdistError as error:
            return error_response(error, 413)
        form = parse_qs(body.decode("utf-8", "replace"))
        try:
            session = await self._guard.by_password(request, form.get("password", [""])[0])
            if session is None:
                return HTMLResponse(_LOGIN.format(said="<p>That is not the password."), 401)
            person, secure = form.get("person", [NOBODY])[0], self._guard.is_secure(request)
            return named(self._entered(request, session), person, secure)
        except SwsdistError as error:
            status = 429 if error.code == codes.SLOW_DOWN.name else 400
            return HTMLResponse(_LOGIN.format(said=f"<p>{escape(error.message)}: {escape(error.remedy or '')}"), status)

    def _entered(self, request: Request, session: str) -> Response:
        is_linked = request.headers.get("sec-fetch-site") == "cross-site"
        answer = HTMLResponse(_ENTERED) if is_linked else RedirectResponse("/", 303)
        name, secure = session_cookie(request.headers), self._guard.is_secure(request)
        lasts = None if self._guard.kept is None else int(_SESSION_SECONDS)
        answer.set_cookie(name, session, max_age=lasts, httponly=True, samesite="strict", secure=secure)
        return answer


def session_cookie(headers: Headers) -> str:
    """Its name: browsers send cookies of a host to all its ports."""
    return f"{SESSION}_{_host_and_port(headers)[1]}"


def _host_and_port(headers: Headers) -> tuple[str, str]:
    match = _HOST.fullmatch(headers.get("host", ""))
    return (match[1].strip("[]").lower(), match[2] or "") if match else ("", "")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


def _as_sent(value: str) -> str:
    """A header's text: Starlette reads bytes as Latin-1, and proxies send UTF-8."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def named(answer: Response, person: str, secure: bool) -> Response:
    """An answer that sets who somebody is.

    Raises:
        UserError: that is no name.
    """
    name = words.line("person", person[:_LONGEST_NAME], empty=False)
    answer.set_cookie(PERSON, quote(name), max_age=365 * 86_400, samesite="strict", secure=secure)
    return answer
