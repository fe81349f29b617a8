"""From a command line to a running server."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import uvicorn

from swsdist.audio.synthesis import demand_voice
from swsdist.core.codes import server as codes
from swsdist.io.filesystem import Folder, is_remote
from swsdist.server import connections
from swsdist.server.app import create_app
from swsdist.server.security import Guard
from swsdist.server.service import Service, Settings

#: Where the password of a public server is.
PASSWORD = "SWSDIST_PASSWORD"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Entrance(NamedTuple):
    """Where and by whom the server may be asked; see `swsdist serve --help`."""

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    public: bool = False
    user_header: str | None = None
    proxies: tuple[str, ...] = ()


def settings_for(
    target: str,
    project: str | None,
    *,
    watch: bool = False,
    texts: str | None = None,
    speak: tuple[str, ...] = (),
    classes: str | None = None,
    models: tuple[str, ...] = (),
    address: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """What is served: a store, a run, or a folder of recordings that is indexed to a run beside it.

    Raises:
        UserError: there is no such folder or voice, `watch` or models without a folder of recordings, or the project needs a
            place.
    """
    target = target.rstrip("/")
    folder = Folder(target)
    is_archive = folder.exists("manifest.json") or folder.exists("plan.json")
    if not is_archive and not is_remote(target) and not Path(target).is_dir():
        raise codes.NO_ARCHIVE(where=target)
    for option in ("--watch",) * watch + ("--model",) * bool(models) if is_archive else ():
        raise codes.NEEDS_FOLDER(where=target, option=option)
    if project is None:
        if is_remote(target):
            raise codes.FIND_PROJECT(where=target)
        here = Path(target).resolve()
        # The store of a run has no name of its own.
        named = here.parent if here.name == "store" else here
        project = str(named.with_name(f"{named.name}-words"))
    source = None if is_archive else target if is_remote(target) else str(Path(target).resolve())
    run = target if is_remote(target) else str(Path(target).resolve())
    if source is not None:
        name = source.rsplit("/", 1)[-1]
        run = str(Path(project).resolve().with_name(f"{name}-swsdist"))
    for voice in speak:
        demand_voice(voice)
    return Settings(run, Path(project), source, watch, texts, speak, classes, models, address, dict(options or {}))


def serve_until_ended(settings: Settings, entrance: Entrance, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        settings: what.
        entrance: where, and for whom.
        say: receives the address.

    Raises:
        UserError: the port is in use.
        ConfigError: a public server without a password or a proxy.
    """
    password = os.environ.get(PASSWORD) or None
    is_open = entrance.public or entrance.host not in _LOOPBACK
    if is_open and password is None and entrance.user_header is None:
        raise codes.PUBLIC_WITHOUT_KEY(where=entrance.host)
    sock = _bound(entrance)
    port = sock.getsockname()[1]
    by_header = entrance.user_header is not None
    token = None if is_open or by_header else secrets.token_urlsafe(24)
    hosts = frozenset(
        {*_LOOPBACK, *entrance.names, *([entrance.host] if entrance.host not in ("0.0.0.0", "::") else [])}
    )
    proxies = frozenset(entrance.proxies or _LOOPBACK)
    guard = Guard(token, hosts, password if is_open and not by_header else None, entrance.user_header, proxies)
    service = Service(settings, say)
    try:
        name = entrance.names[0] if entrance.names else f"[{entrance.host}]" if ":" in entrance.host else entrance.host
        say(f"words:  {settings.project}")
        say(f"open:   http://{name}:{port}/" + (f"?token={token}" if token else ""))
        if is_open:
            say("Browsers record only over https, or from this host: put a proxy with a certificate before it.")
        config = uvicorn.Config(
            create_app(service, guard),
            log_level="warning",
            proxy_headers=False,  # who asks is the peer; the gate reads what a proxy says
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=65_536,
            http=connections.protocol(connections.most_connections()),
            ws="none",
            backlog=connections.BACKLOG,
        )
        server = uvicorn.Server(config)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        server.run(sockets=[sock])
    finally:
        sock.close()
        service.close()


def _bound(entrance: Entrance) -> socket.socket:
    family = socket.AF_INET6 if ":" in entrance.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((entrance.host, entrance.port))
        sock.listen(128)  # the address answers as soon as it is printed
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        if isinstance(error, PermissionError) or error.errno == errno.EADDRINUSE:
            where = f"{entrance.host}:{entrance.port}"
            raise codes.PORT_TAKEN(where=where, port=entrance.port, reason=reason) from None
        raise codes.UNUSABLE_HOST(where=entrance.host, reason=reason) from None
    return sock
