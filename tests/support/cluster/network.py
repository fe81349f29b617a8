"""Hosts on one machine: each is a network namespace with an address and a host name of its own, on one bridge.

They share the machine's disk, CPUs and clock. A host has a folder of its own, where its processes work and have their temporary
files; nothing in it is meant for another host. It needs root, and Linux's `ip` and `unshare`. The processes of a host are found
by its namespace, so nothing else is ever touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from swsdist.core.errors import UserError

#: Run in a namespace of host names, before a command: $1 the name, $2 the folder, $3 the size of a disk there, or nothing.
_ENTER = (
    'hostname "$1" && if [ -n "$3" ]; then mount -t tmpfs -o size="$3" none "$2/tmp"; fi && '
    'cd "$2" && export TMPDIR="$2/tmp" && shift 3 && exec "$@"'
)

#: Waits for the end of its input, which comes when this process ends, however it ends; then it cleans up.
_GUARD = (
    'cat > /dev/null; bridge=$1; shift; for host in "$@"; do for pid in $(ip netns pids $host); do kill -9 $pid; done; '
    "ip netns delete $host; done; ip link delete $bridge"
)


@dataclass
class Host:
    """A host: its name is also that of its namespace; its processes work in its folder, with `tmp` there as temporary folder.

    `cable` is the end of its network's cable at the bridge; `disk` is the size of `tmp`, `4m` say, for processes that start
    from now on; the machine's disk by default.
    """

    name: str
    address: str
    folder: Path
    cable: str
    disk: str = ""

    def under(self, *words: str) -> list[str]:
        """A command, as it is to be called to run on this host."""
        enter = ["sh", "-c", _ENTER, "enter", self.name, str(self.folder), self.disk]
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", *enter, *words]

    def processes(self) -> list[int]:
        """Numbers of its processes."""
        return [int(pid) for pid in ip("netns", "pids", self.name, check=False).split()]

    def has(self, name: str) -> bool:
        """Whether a process of a name, 15 letters of it at most, runs there."""
        for pid in self.processes():
            with suppress(OSError):  # it ended meanwhile
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    return True
        return False

    def kill(self) -> None:
        """The host dies: all its processes at once."""
        while found := self.processes():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def cut(self) -> None:
        """Unplug its network."""
        ip("link", "set", self.cable, "down")

    def heal(self) -> None:
        """Plug it in again."""
        ip("link", "set", self.cable, "up")


class Network:
    """Hosts on a bridge, on which this machine is, too, at `gateway`; a UserError says that namespaces cannot be made here."""

    def __init__(self, count: int, folder: Path) -> None:
        if os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("ip", "unshare", "hostname")):
            raise UserError(
                "network namespaces need root, and the commands ip, unshare and hostname", where="hosts", remedy=_ROOT
            )
        tag = os.getpid() % 100_000
        self._bridge = f"swsb{tag}"
        net = f"10.77.{os.getpid() % 250}"
        self.gateway = f"{net}.254"
        self.hosts = [Host(f"sws{tag}-{k}", f"{net}.{k + 1}", folder / f"h{k}", f"sws{tag}v{k}") for k in range(count)]
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "guard", self._bridge, *(host.name for host in self.hosts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            self.close()
            said = error.stderr.strip()
            raise UserError(f"network namespaces cannot be made here: {said}", where="hosts", remedy=_ROOT) from None

    def _make(self) -> None:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("addr", "add", f"{self.gateway}/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")
        for host in self.hosts:
            (host.folder / "tmp").mkdir(parents=True)
            ip("netns", "add", host.name)
            ip("link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.name)
            ip("link", "set", host.cable, "master", self._bridge, "up")
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.name, "link", "set", "eth0", "up")
            ip("-n", host.name, "link", "set", "lo", "up")

    def close(self) -> None:
        """End all processes of the hosts, and remove what was made."""
        known = [line.split()[0] for line in ip("netns", "list", check=False).splitlines() if line]
        for host in self.hosts:
            if host.name in known:
                host.kill()
                ip("netns", "delete", host.name, check=False)
            ip("link", "delete", host.cable, check=False)
        ip("link", "delete", self._bridge, check=False)
        self._guard.communicate()


_ROOT = "run it as root on Linux, where namespaces are allowed"


def ip(*words: str, check: bool = True) -> str:
    """Run `ip`, and give what it says."""
    done: subprocess.CompletedProcess[str] = subprocess.run(["ip", *words], check=check, capture_output=True, text=True)
    return done.stdout


def run(host: Host, words: Sequence[str], env: dict[str, str], seconds: float = 120.0) -> None:
    """Run a command on a host to its end, which is a UserError if it failed."""
    # Files, not pipes: what the command leaves running would hold a pipe open.
    with (host.folder / "log").open("a+") as log:
        begun = log.seek(0, os.SEEK_END)
        done = subprocess.run(
            host.under(*words), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=seconds, check=False
        )
        if done.returncode:
            log.seek(begun)
            raise UserError(f"{' '.join(words)}: {log.read()[-2000:]}", where=host.name, remedy="see above")
