"""Runs a stage of a config in a process of its own for each order, which it forks: what the first imports, it imports once.

The library `failing.c` is loaded into it. An order is a line of JSON: `config` (a mapping), `until`, `watch` (folders), `at`,
`number`, `log`; the answer is a line, too: `code`, as of the command line; `failed`, the call that did; `calls`, how many there
were; `said`, what was wrong; `rejected`, what was; and the `digest` of what was made, where it came to its end.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import traceback
from contextlib import suppress
from typing import Any

import swsdist
from swsdist.core.errors import SwsdistError
from swsdist.io import local
from swsdist.io.failures import explain
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.execution import executor
from swsdist.pipeline.status import digests


def do(order: dict[str, Any]) -> dict[str, Any]:
    shim = ctypes.CDLL(None)
    shim.failing_failed.restype = ctypes.c_char_p
    shim.failing_count.restype = ctypes.c_long
    executor.pause = lambda attempt: 0.0
    local.PAUSE = 0.0
    said, digest, rejected = "", {}, []
    watch = ":".join(order["watch"]).encode()
    log = (order.get("log") or "").encode()
    shim.failing_arm(watch, ctypes.c_long(order["at"]), order["number"], log)
    try:
        result = swsdist.run(order["config"], selection=StepSelection(until=order["until"]))
        code = 4 if result.outcome.failures else 0
        said = "; ".join(str(one.message) for one in result.outcome.failures)
        shim.failing_disarm()
        if code == 0:
            digest = digests(result.outcome.chain_run)
            rejected = [
                [row["kind"], row["id"], row["reason"]] for row in result.outcome.chain_run.rejected().to_pylist()
            ]
    except SwsdistError as error:
        code, said = error.exit_code, str(error)
    except Exception as error:
        told = explain(error)
        code, said = (told.exit_code, str(told)) if told is not None else (1, traceback.format_exc())
    failed, calls = shim.failing_failed().decode(), shim.failing_count()
    told = {"code": code, "failed": failed, "calls": calls, "said": said}
    return {**told, "digest": digest, "rejected": rejected, "modules": sorted(sys.modules)}


def main() -> None:
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as answer:
                json.dump(do(json.loads(line)), answer)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            told = answer.read()
        _, status = os.waitpid(child, 0)
        answered = json.loads(told or json.dumps({"code": -1, "failed": "", "calls": 0, "said": f"status {status}"}))
        for name in set(answered.pop("modules", ())) - set(sys.modules):
            with suppress(Exception):  # such as are no modules of a file
                importlib.import_module(name)
        print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main()
