"""Who may ask: a token in the printed address, or a password, or a proxy that names people; and what a browser may do.

Pages of other origins can neither read answers (cookies are `SameSite=Strict`, no CORS) nor change anything (changes need a
header that a form cannot send, and an `Origin` of this server). A request for another host's name is refused, so that a name
that is made to point here gets nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swsdist.core.codes import server as codes
from swsdist.core.errors import SwsdistError
from swsdist.server.bodies import error_values, whole_body

SESSION, PERSON = "swsdist_session", "swsdist_person"
#: Of whom nobody has named.
NOBODY = "me"
#: Longest name of a person.
_LONGEST_NAME = 64
#: Seconds that a wrong password takes.
_DELAY = 1.0
_FORM_BYTES = 4096

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


def error_response(error: SwsdistError, status: int) -> JSONResponse:
    """The answer with an error."""
    return JSONResponse(error_values(error), status)


@dataclass
class Guard:
    """What lets people in.

    Attributes:
        token: in the printed address; None: no token opens.
        password: None: no password opens.
        user_header: of a proxy, which names the person; only requests of `proxies` may have it.
        hosts: names by which the server is asked; others are refused.
        proxies: addresses whose headers are believed.
    """

    token: str | None
    hosts: frozenset[str]
    password: str | None = None
    user_header: str | None = None
    proxies: frozenset[str] = frozenset({"127.0.0.1", "::1"})
    _sessions: set[str] = field(default_factory=set)
    _guessing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def person(self, request: Request) -> str:
        """Who asks."""
        if self.user_header is not None:
            return request.headers[self.user_header][:_LONGEST_NAME]
        return unquote(request.cookies.get(PERSON, "")) or NOBODY

    def is_open(self, headers: Headers, client: str) -> bool:
        """Whether a request is let in."""
        if self.user_header is not None:
            return client in self.proxies and bool(headers.get(self.user_header))
        cookies, name = SimpleCookie(headers.get("cookie", "")), session_cookie(headers)
        given = cookies[name].value if name in cookies else ""
        if self.token is not None and hmac.compare_digest(given.encode(), self.token.encode()):
            return True
        return given in self._sessions

    def is_secure(self, request: Request) -> bool:
        """Whether the browser asks by https, maybe of a proxy."""
        proxied = request.client is not None and request.client.host in self.proxies
        return request.url.scheme == "https" or (proxied and request.headers.get("x-forwarded-proto") == "https")

    async def enter_slowly(self, secret: str) -> str | None:
        """The same as `enter`, one at a time, so that nobody guesses fast."""
        async with self._guessing:
            session = self.enter(secret)
            if session is None:
                await asyncio.sleep(_DELAY)
            return session

    def enter(self, secret: str) -> str | None:
        """The session of somebody who gives a token or a password; None: it is wrong."""
        if self.token is not None and hmac.compare_digest(secret.encode(), self.token.encode()):
            return self.token
        if self.password is not None and hmac.compare_digest(secret.encode(), self.password.encode()):
            session = secrets.token_urlsafe(32)
            self._sessions.add(session)
            return session
        return None


class Gate:
    """The middleware: refuses who may not enter, and adds headers to each answer."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *headers]}
            await send(message)

        request = Request(scope, receive)
        answer = await self._answer(request)
        await (answer or self._app)(scope, receive, send_with_headers)

    async def _answer(self, request: Request) -> Response | None:
        """The answer to a request that does not pass."""
        guard, headers = self._guard, request.headers
        host = _host(headers)
        if host not in guard.hosts:
            return error_response(codes.OTHER_HOST(where=host, host=host), 421)
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return error_response(codes.OTHER_ORIGIN(where=origin, origin=origin), 403)
        path = request.url.path
        if path == "/login" and guard.password is not None:
            return await self._login(request)
        if path == "/" and "token" in request.query_params and guard.token is not None:
            session = await guard.enter_slowly(request.query_params["token"])
            if session is not None:
                return self._entered(request, session)
        if path.startswith("/static/"):
            return None
        if not guard.is_open(headers, request.client.host if request.client else ""):
            if path == "/" and guard.password is not None:
                return HTMLResponse(_LOGIN.format(said=""))
            error = codes.WRONG_TOKEN() if guard.user_header is None else codes.NO_USER_HEADER(header=guard.user_header)
            return error_response(error, 401)
        if request.method not in ("GET", "HEAD") and headers.get("x-swsdist") != "1":
            return error_response(codes.OTHER_ORIGIN(where=path, origin=origin or "a form"), 403)
        return None

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return RedirectResponse("/", 303)
        try:
            body = await whole_body(request, _FORM_BYTES)
        except SwsdistError as error:
            return error_response(error, 413)
        form = parse_qs(body.decode("utf-8", "replace"))
        session = await self._guard.enter_slowly(form.get("password", [""])[0])
        if session is None:
            return HTMLResponse(_LOGIN.format(said="<p>That is not the password."), 401)
        return named(self._entered(request, session), form.get("person", [NOBODY])[0])

    def _entered(self, request: Request, session: str) -> Response:
        answer, name = RedirectResponse("/", 303), session_cookie(request.headers)
        answer.set_cookie(name, session, httponly=True, samesite="strict", secure=self._guard.is_secure(request))
        return answer


def session_cookie(headers: Headers) -> str:
    """Its name: browsers send cookies of a host to all its ports."""
    return f"{SESSION}_{headers.get('host', '').rpartition(':')[2]}"


def _host(headers: Headers) -> str:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def named(answer: Response, person: str) -> Response:
    """An answer that sets who somebody is."""
    answer.set_cookie(PERSON, quote(person.strip()[:_LONGEST_NAME]), max_age=365 * 86_400, samesite="strict")
    return answer
