"""Index a folder of recordings by `swsdist index`, in a process beside the server.

What is indexed can be asked before the rest is: an interrupted index commits what it has when it begins again, so the process
is interrupted and begun again after `_FIRST` seconds, twice as many, and so on. Nothing is computed twice but the tasks that
were running.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from swsdist.core.codes import server as codes
from swsdist.core.codes.pipeline import FOLDER_IN_USE, LOCK_CONFLICT
from swsdist.core.errors import SwsdistError, UserError
from swsdist.corpora.documents import recordings
from swsdist.io.filesystem import Folder
from swsdist.store.manifest import load

#: How the page searches: the best few hundred places of many hours within a second.
_SETS = (
    "executor.kind=serial",
    "search.first_pass.name=quantised",
    "search.first_pass.windows.least=300",
    "search.first_pass.windows.per_second=0",
)
#: Stages that read recordings, and what they do.
_STAGES = {"index": "indexing", "words": "recognising"}
#: Seconds until what is indexed is committed first.
_FIRST = 30.0
#: Seconds between looks at another's index of the folder, and that ours may take to end.
_AGAIN, _ENDING = 5.0, 10.0
#: Another process works in the folder.
_TAKEN = (FOLDER_IN_USE, LOCK_CONFLICT)
#: `swsdist`, which ends when its input does: with the server, however that ends.
_CHILD = f"""
import os, signal, threading, time

def end():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep({_ENDING})
    os._exit(130)

threading.Thread(target=end, daemon=True).start()
from swsdist.cli.main import main
main()
"""


class Indexing:
    """An index of a folder, as often as asked.

    Args:
        source: folder of recordings.
        run: its run folder.
        committed: called when the store has more documents, or is complete.
        models: encoders and a recogniser; none: as before.

    Attributes:
        error: with which the last one ended.
    """

    def __init__(self, source: str, run: str, committed: Callable[[], None], models: Sequence[str] = ()) -> None:
        self.source, self.run, self._committed, self._models = source, run, committed, models
        self.error: SwsdistError | None = None
        self._process: subprocess.Popen[str] | None = None
        self._state: dict[str, Any] | None = None
        self._ended = threading.Event()
        self._per_work = 0.0  # part of all that is to do, of a unit of work

    @property
    def state(self) -> dict[str, Any] | None:
        """part (of the work), documents (so many recordings are this part), of (recordings of the folder), text; None while
        nothing is indexed.
        """
        return self._state

    def is_ready(self) -> bool:
        """Whether there is a store."""
        return load(Folder(f"{self.run}/store")) is not None

    def once(self) -> None:
        """Index what is new, and return at the end; while another process does it, follow that."""
        self._state = {"part": 0.0, "documents": 0, "of": self._recordings(), "text": "starting"}
        wait = _FIRST
        try:
            while not self._ended.is_set():
                before = load(Folder(f"{self.run}/store"))
                stopped, is_taken = self._index(wait)
                now = load(Folder(f"{self.run}/store"))
                if now is not None and (before is None or before.fingerprint != now.fingerprint):
                    self._committed()
                if is_taken:
                    self._state = {**(self._state or {}), "text": "waiting"}
                    self._ended.wait(_AGAIN)
                elif not stopped:
                    break
                else:
                    wait *= 2
        finally:
            self._state = None

    def _index(self, seconds: float) -> tuple[bool, bool]:
        """Whether it was interrupted after so many seconds, and whether another process is working in the folder."""
        command = [sys.executable, "-c", _CHILD, "index", self.source, "--run", self.run, "--events", "-"]
        options = (("--set", _SETS), ("--model", self._models))
        self._process = process = subprocess.Popen(
            [*command, *(part for option, values in options for each in values for part in (option, each))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C ends the server, which ends it
        )
        stopped = threading.Event()

        def stop() -> None:
            if process.poll() is None:
                stopped.set()
                process.send_signal(signal.SIGINT)

        timer = threading.Timer(seconds, stop)
        timer.start()
        messages: list[str] = []
        reader = threading.Thread(target=lambda: messages.extend(process.stderr or ()), daemon=True)
        reader.start()
        assert process.stdout is not None
        for line in process.stdout:
            self._follow(line)
        code = process.wait()
        assert process.stdin is not None
        process.stdin.close()
        timer.cancel()
        reader.join(1)
        self.error = None
        lines = [line.strip() for line in messages if line.strip() and not line.strip().startswith("remedy:")]
        is_taken = code == UserError.exit_code and any(f"[{each.name}]" in line for line in lines for each in _TAKEN)
        if code not in (0, 4) and not stopped.is_set() and not self._ended.is_set() and not is_taken:
            message = lines[-1] if lines else f"exit code {code}"
            self.error = codes.INDEX_ENDED(where=self.source, folder=self.source, message=message)
        return stopped.is_set(), is_taken

    def _recordings(self) -> int:
        try:
            return len(recordings(self.source, {}))
        except (SwsdistError, OSError):  # the index says what is wrong
            return 0

    def _follow(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        state = dict(self._state or {})
        if event["event"] == "stage-begun":
            state["text"] = _STAGES.get(event["stage"], event["stage"])
            if event["stage"] in _STAGES:
                state["part"] = event["done"] / max(event["tasks"], 1)
                self._per_work = (1 - state["part"]) / max(event["work"], 1e-9)
        elif event["event"] == "task-ended" and event["stage"] in _STAGES:
            state["part"] = min(1.0, state["part"] + event["work"] * self._per_work)
        state["documents"] = int(state["part"] * state["of"] + 1e-6)
        self._state = state

    def end(self) -> None:
        """Interrupt it, and wait."""
        self._ended.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
