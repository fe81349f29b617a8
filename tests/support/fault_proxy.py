"""A proxy before an S3 server that does what networks and servers do: errors, cut and slow connections, wrong lengths.

    with FaultProxy("http://127.0.0.1:9000", [Fault("503", probability=0.1)], seed=7) as proxy:
        ...  # requests to proxy.endpoint
    assert proxy.done["503"]

In a process of its own it is told by a file of rules (JSON, a list of faults), which is read again when it changes:

    python -m tests.support.fault_proxy http://127.0.0.1:9000 --port 9001 --rules faults.json --seed 7

The kinds of faults:

- `500`, `503`: InternalError; SlowDown, which asks for fewer requests.
- `expired`, `unknown-key`: 403 ExpiredToken, 403 InvalidAccessKeyId; only of requests signed by `access_keys`, if there are.
- `no-answer`: the request is done, but its answer is lost.
- `refused`: the connection is closed before the request is done.
- `cut`: half of the answer's body, then the connection is closed.
- `cut-upload`: half of the request's body is taken, then the connection is closed.
- `slow`: `seconds` pass before the answer.
- `drip`: the answer's body comes in eight pieces, `seconds` in all.
- `short`: half of the body, with a Content-Length that agrees with it.
- `long`: a Content-Length that promises more than there is, then the connection is closed.
- `flipped`: one bit of the body is another one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit

KINDS = (
    *("500", "503", "expired", "unknown-key", "no-answer", "refused"),
    *("cut", "cut-upload", "slow", "drip", "short", "long", "flipped"),
)

_ANSWERS = {
    "500": (500, "InternalError", "We encountered an internal error. Please try again."),
    "503": (503, "SlowDown", "Please reduce your request rate."),
    "expired": (403, "ExpiredToken", "The provided token has expired."),
    "unknown-key": (403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."),
}

_OF_A_BODY = ("cut", "short", "long", "flipped", "drip")


@dataclass
class Fault:
    """A kind of fault, and which requests meet it.

    Attributes:
        kind: one of `KINDS`.
        verbs: GET, PUT, ...; empty: all.
        keys: a regular expression that is found in the path with its query, `/bucket/key?uploads`.
        probability: of a request that verbs and keys select.
        first, last: only the selected requests from this number to that one, counted from 1; None: to the end.
        seconds: of `slow` and `drip`.
        access_keys: of `expired` and `unknown-key`: who meets it; empty: everybody.
    """

    kind: str
    verbs: Sequence[str] = ()
    keys: str = ""
    probability: float = 1.0
    first: int = 1
    last: int | None = None
    seconds: float = 1.0
    access_keys: Sequence[str] = ()
    seen: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of fault: {', '.join(KINDS)}")

    def meets(self, verb: str, path: str, access_key: str, chance: random.Random) -> bool:
        """Whether a request meets it; it is counted if it is selected."""
        if (self.verbs and verb not in self.verbs) or not re.search(self.keys, path):
            return False
        if self.access_keys and access_key not in self.access_keys:
            return False
        self.seen += 1
        if self.seen < self.first or (self.last is not None and self.seen > self.last):
            return False
        return chance.random() < self.probability


class FaultProxy:
    """The proxy, in threads of this process; a context manager.

    Args:
        upstream: endpoint of the server.
        faults: the first that a request meets is done.
        seed: of what is left to chance.
        port: of 127.0.0.1 to listen on; 0: any.
        rules: a file that says the faults, in place of `faults`.

    Attributes:
        endpoint: to be named in place of the server's.
        requests: of all verbs, how many there were.
        asked: verb and path of each request, in their order.
        done: of all kinds of faults, how many there were.
    """

    def __init__(
        self, upstream: str, faults: Sequence[Fault] = (), seed: int = 0, port: int = 0, rules: Path | None = None
    ) -> None:
        self._upstream = urlsplit(upstream)
        self.faults, self.rules, self._read = list(faults), rules, -1
        self._chance, self._lock = random.Random(seed), threading.Lock()
        self.requests: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.asked: list[tuple[str, str]] = []
        proxy = self

        class Handler(_Handler):
            of = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FaultProxy:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self) -> None:
        """Go on until the process ends."""
        self._server.serve_forever()

    def fault(self, verb: str, path: str, access_key: str) -> Fault | None:
        """The fault that a request meets."""
        with self._lock:
            self._look()
            self.requests[verb] += 1
            self.asked.append((verb, path))
            found = next((fault for fault in self.faults if fault.meets(verb, path, access_key, self._chance)), None)
            if found is not None:
                self.done[found.kind] += 1
            return found

    def _look(self) -> None:
        """Read the rules, if they have changed; a file that is being written is read the next time."""
        if self.rules is None or not self.rules.exists():
            return
        changed = self.rules.stat().st_mtime_ns
        if changed != self._read:
            try:
                self.faults = [Fault(**load) for load in json.loads(self.rules.read_text())]
            except ValueError:
                return
            self._read = changed

    def forward(
        self, verb: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """The server's answer: status, headers and body."""
        connection = http.client.HTTPConnection(self._upstream.hostname or "", self._upstream.port or 80, timeout=60)
        try:
            connection.request(verb, path, body=body or None, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    of: FaultProxy

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def handle(self) -> None:
        """Clients that went away are none of ours."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _do(self) -> None:
        signed = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
        fault = self.of.fault(self.command, unquote(self.path), signed[1] if signed else "")
        kind = fault.kind if fault else ""
        if kind == "refused":
            self._hang_up()
            return
        length = int(self.headers.get("Content-Length", 0))
        if kind == "cut-upload":
            self.rfile.read(length // 2)
            self._hang_up()
            return
        body = self._body(length)
        if kind in _ANSWERS:
            self._refuse(*_ANSWERS[kind])
            return
        if fault and kind == "slow":
            time.sleep(fault.seconds)
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("connection", "expect", "transfer-encoding", "content-length")
        }
        if body or self.command in ("PUT", "POST"):
            headers["Content-Length"] = str(len(body))
        status, told, data = self.of.forward(self.command, self.path, headers, body)
        if kind == "no-answer":
            self._hang_up()
            return
        self._answer(status, told, data, fault if kind in _OF_A_BODY and data else None)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _do

    def _body(self, length: int) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(length)
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(pieces)

    def _refuse(self, status: int, code: str, message: str) -> None:
        told = f"<Error><Code>{code}</Code><Message>{message}</Message><RequestId>0</RequestId></Error>"
        text = "" if self.command == "HEAD" else f'<?xml version="1.0" encoding="UTF-8"?>\n{told}'
        self._answer(status, [("Content-Type", "application/xml")], text.encode(), None)

    def _answer(self, status: int, told: list[tuple[str, str]], data: bytes, fault: Fault | None) -> None:
        kind, half = fault.kind if fault else "", len(data) // 2
        length = len(data)
        if kind == "short":
            data, length = data[:half], half
        elif kind == "long":
            length += 1 + half
        elif kind == "flipped":
            data = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
        elif kind == "cut":
            data = data[:half]
        self.send_response_only(status)
        head = self.command == "HEAD"
        ours = ("connection", "transfer-encoding", *(() if head else ("content-length",)))
        for name, value in told:
            if name.lower() not in ours:
                self.send_header(name, value)
        if not head:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if fault and kind == "drip":
            for k in range(8):
                self.wfile.write(data[k * length // 8 : (k + 1) * length // 8])
                self.wfile.flush()
                time.sleep(fault.seconds / 8)
        elif not head:
            self.wfile.write(data)
        if kind in ("cut", "long"):
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description="A proxy that injects faults between a client and an S3 server.")
    parser.add_argument("upstream", help="endpoint of the server, http://host:port")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rules", type=Path, help="a JSON file, a list of faults; read again when it changes")
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args(arguments)
    proxy = FaultProxy(told.upstream, seed=told.seed, port=told.port, rules=told.rules)
    print(proxy.endpoint, flush=True)
    proxy.serve()


if __name__ == "__main__":
    main()
