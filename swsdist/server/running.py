"""From a command line to a running server."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import NamedTuple

import uvicorn
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from swsdist.audio.synthesis import demand_voice
from swsdist.core.codes import families
from swsdist.core.codes import server as codes
from swsdist.core.errors import ConfigError, UserError
from swsdist.glossary.exports import PROJECT, STORE
from swsdist.io.filesystem import Folder, is_remote
from swsdist.io.project_file import words_beside
from swsdist.server import security
from swsdist.server.app import create_app
from swsdist.server.security import Guard, Kept, is_own
from swsdist.server.service import Service, Settings

#: Where the password of a public server is.
PASSWORD = "SWSDIST_PASSWORD"
#: In the folder of words: the token of the address, and who entered.
_ACCESS = ".access.json"
#: Likewise: voices and classes of the last time.
_BEFORE = "serve.json"
#: Set in Linux on Windows.
_WSL = "WSL_DISTRO_NAME"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Before(TypedDict):
    speak: list[str]
    classes: str | None


class Entrance(NamedTuple):
    """Where and by whom the server may be asked; see `swsdist serve --help`."""

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    public: bool = False
    user_header: str | None = None
    proxies: tuple[str, ...] = ()
    browser: bool | None = None


def settings_for(
    target: str,
    project: str | None,
    *,
    run: str | None = None,
    watch: bool = False,
    texts: str | None = None,
    speak: tuple[str, ...] = (),
    classes: str | None = None,
    models: tuple[str, ...] = (),
    address: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """What is served: a store, a run, a pack of a glossary, or a folder of recordings that is indexed to a run, by default
    beside the project.

    Raises:
        UserError: there is no such folder or voice, `watch` or models without a folder of recordings, or the project needs a
            place.
    """
    target = target.rstrip("/")
    folder = Folder(target)
    if folder.exists(f"{STORE}/manifest.json") and folder.exists(f"{PROJECT}/project.sqlite"):
        project = project or f"{target}/{PROJECT}"
        target, folder = f"{target}/{STORE}", Folder(f"{target}/{STORE}")
    is_archive = folder.exists("manifest.json") or folder.exists("plan.json")
    if not is_archive and not is_remote(target) and not Path(target).is_dir():
        raise families.MISSING_FILE(
            "neither a store, a run nor a folder of recordings", "name one of these", where=target
        )
    for option in ("--watch",) * watch + ("--model",) * bool(models) if is_archive else ():
        raise families.UNUSED_OPTION(
            "{option} is for a folder of recordings, and this is a store or a run",
            "name the folder of the recordings",
            where=target,
            option=option,
        )
    if project is None:
        if is_remote(target):
            raise families.MISSING_INPUT.of(ConfigError)(
                "the store is not on this disk, so the folder of words needs a place",
                "name one: --project FOLDER",
                where=target,
            )
        project = str(words_beside(target))
    source = None if is_archive else target if is_remote(target) else str(Path(target).resolve())
    if source is None:
        run = target if is_remote(target) else str(Path(target).resolve())
    else:
        name = source.rsplit("/", 1)[-1]
        run = str(Path(run or Path(project).resolve().with_name(f"{name}-swsdist")).resolve())
    for voice in speak:
        demand_voice(voice)
    return Settings(run, Path(project), source, watch, texts, speak, classes, models, address, dict(options or {}))


def as_before(settings: Settings, say: Callable[[str], None]) -> Settings:
    """With voices and classes of the last time where none are given; both are kept for the next."""
    folder = Folder(str(settings.project))
    try:
        before = TypeAdapter(_Before).validate_json(folder.read_bytes(_BEFORE))
    except (FileNotFoundError, ValueError):
        before = {"speak": [], "classes": None}
    run = settings.classes
    run = run if run is None or is_remote(run) else str(Path(run).resolve())
    now: _Before = {"speak": list(settings.speak) or before["speak"], "classes": run or before["classes"]}
    if now != before:
        folder.write_bytes(_BEFORE, json.dumps(now).encode())
    again = [f"--speak {voice}" for voice in now["speak"] if not settings.speak]
    again += [f"--classes {now['classes']}"] if now["classes"] and not run else []
    if again:
        say(f"as before: {' '.join(again)} (until {settings.project / _BEFORE} is removed)")
    return replace(settings, speak=tuple(now["speak"]), classes=now["classes"])


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
        raise families.REQUEST_REFUSED.of(ConfigError)(
            "without a password or a proxy everybody may enter",
            "set the variable SWSDIST_PASSWORD, or name a proxy's header: --user-header X-Forwarded-User",
            where=entrance.host,
        )
    sock = _bound(entrance)
    port = sock.getsockname()[1]
    by_header = entrance.user_header is not None
    hosts = frozenset(
        {*_LOOPBACK, *entrance.names, *([entrance.host] if entrance.host not in ("0.0.0.0", "::") else [])}
    )
    proxies = frozenset(entrance.proxies or _LOOPBACK)
    settings = as_before(settings, say)
    service = Service(settings, say)
    try:
        kept = None if is_open or by_header else Kept(settings.project / _ACCESS)
        token = None if kept is None else kept.token
        password = password if is_open and not by_header else None
        guard = Guard(token, hosts, password, entrance.user_header, proxies, kept)
        name = entrance.names[0] if entrance.names else f"[{entrance.host}]" if ":" in entrance.host else entrance.host
        say(f"words:  {settings.project}")
        address = f"http://{name}:{port}/" + (f"?token={token}" if token else "")
        say(f"open:   {address}")
        if is_open:
            say("Browsers record only over https, or from this host: put a proxy with a certificate before it.")
        config = uvicorn.Config(
            create_app(service, guard),
            log_level="warning",
            proxy_headers=False,  # who asks is the peer; the gate reads what a proxy says
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=65_536,
            http=security.protocol(security.most_connections()),
            ws="none",
            backlog=security.BACKLOG,
        )
        server = uvicorn.Server(config)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        is_shown = token is not None and _on_desktop() if entrance.browser is None else entrance.browser
        with (
            shown(address, service.scratch if os.environ.get(_WSL) else settings.project) if is_shown else nullcontext()
        ):
            server.run(sockets=[sock])
    finally:
        sock.close()
        service.close()


def _on_desktop() -> bool:
    """Whether somebody at this machine sees a browser."""
    return sys.stdout.isatty() and any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", _WSL))


@contextmanager
def shown(address: str, folder: Path) -> Iterator[None]:
    """Open an address in the user's browser, by a file that nobody else can read: everybody sees how a program is called.

    Files that killed servers have left are removed.
    """
    for left in folder.glob(".open-*.html"):
        left.unlink(missing_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".open-", suffix=".html", dir=folder)
    try:
        with open(descriptor, "w", encoding="utf-8") as page:  # noqa: PTH123
            is_private = is_own(descriptor)
            if is_private:
                page.write(f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(address)}">')
        if is_private:  # else the address is in the terminal alone
            # A browser of text would keep the thread.
            threading.Thread(target=_browse, args=(name,), daemon=True).start()
        yield
    finally:
        Path(name).unlink(missing_ok=True)


def _browse(page: str) -> None:
    if not os.environ.get(_WSL):
        webbrowser.open(Path(page).as_uri())
        return
    with suppress(OSError, subprocess.CalledProcessError):  # Windows is not reached: the address is printed
        there = subprocess.run(["wslpath", "-w", page], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["explorer.exe", there])


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
        raise families.INVALID_VALUE.of(UserError)(
            "the address cannot be listened at: {reason}", "leave --host out", where=entrance.host, reason=reason
        ) from None
    return sock
