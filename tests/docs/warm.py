"""A process in which all of swsdist is imported and compiled, and that forks for each command.

A page has up to a dozen commands, and each would import for a second what the one before had imported. Here a reader's
`swsdist` and `python -c` are small programs on PATH that hand their arguments, folder, environment and standard streams to a
fork of the warm process, and end with its exit code. So pipes, `$(...)`, `&&` and exit codes are a shell's own; a package that
a page has installed is seen by what comes after. What a page does to the process itself (kill it) needs `swsdist` as it is
installed: see `test_pages_run`.
"""

import array
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

#: A reader's program: SOCKET and KIND are filled in. It imports little, so it starts in some 20 ms.
PROGRAM = """#!{python} -IS
import array, json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({socket!r})
asked = json.dumps([{kind!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
link.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
link.sendall(asked)
answer = link.recv(1)
os._exit(answer[0] if answer else 139)
"""


@contextlib.contextmanager
def warm(programs: Path, folder: Path, *first: str) -> Iterator[None]:
    """Have the programs `swsdist` and `python` in a folder while the warm process is there.

    Args:
        programs: the folder for them.
        folder: where the warm process runs a command for itself before all others, so that what that needs is loaded.
        first: its arguments.
    """
    place = programs / "warm.socket"
    process = subprocess.Popen([sys.executable, __file__, str(place), *first], cwd=folder, start_new_session=True)
    try:
        deadline = time.monotonic() + 300
        while not place.exists():
            assert process.poll() is None, f"the warm process ended with {process.returncode}"
            assert time.monotonic() < deadline, "the warm process did not begin to listen"
            time.sleep(0.02)
        for kind in ("swsdist", "python"):
            program = programs / kind
            program.write_text(PROGRAM.format(python=sys.executable, socket=str(place), kind=kind))
            program.chmod(0o755)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def serve(place: str, first: list[str]) -> None:
    """Do the first command, then fork for each that comes."""
    from swsdist.cli import main

    sys.argv = ["swsdist", *first]
    code = main._run()
    if code:
        sys.exit(code)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(place + ".new")
    listening.listen(64)
    Path(place + ".new").rename(place)  # who sees it can connect
    while True:
        link, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            answer(link)
        link.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def answer(link: socket.socket) -> None:
    """Be the process of a command, and end."""
    head, ancillary, _, _ = link.recvmsg(8, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    size, data = int.from_bytes(head, "big"), b""
    while len(data) < size:
        data += link.recv(size - len(data))
    kind, argv, cwd, environment = json.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Whoever puts others in their places closes no file with them.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    see_packages()
    threading.Thread(target=end_with, args=(link,), daemon=True).start()
    code = 1
    try:
        run(kind, argv)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        link.sendall(bytes([code & 255]))
    os._exit(0)


def see_packages() -> None:
    """Look where PYTHONPATH now says for packages and what they add, as a new process would."""
    from swsdist.registry import registries
    from swsdist.registry.registry import Registry

    places = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [place for place in places if place not in sys.path]
    for registry in vars(registries).values():
        if isinstance(registry, Registry):
            registry.__dict__.pop("_added", None)


def end_with(link: socket.socket) -> None:
    """End when the reader's program has ended before: it was killed."""
    if not link.recv(1):
        os._exit(1)


def run(kind: str, argv: list[str]) -> None:
    """A command, or `python -c CODE`; another call of Python is one."""
    if kind == "swsdist":
        from swsdist.cli import main

        sys.argv = ["swsdist", *argv]
        signal.signal(signal.SIGTERM, main._terminated)
        sys.exit(main._run())
    elif argv[:1] == ["-c"]:
        sys.argv = ["-c", *argv[2:]]
        sys.path.insert(0, "")
        exec(compile(argv[1], "<page>", "exec"), {"__name__": "__main__"})
    else:
        sys.exit(subprocess.call([sys.executable, *argv]))


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
