"""Products in one thread of the BLAS: small ones are no faster in several, and cost as many times the CPU."""

from __future__ import annotations

from typing import Any


def one_thread() -> Any:
    """A context in which the BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")


def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    if not _known:
        _known.append(ThreadpoolController())
    return _known[0]


#: Libraries of this process; looking for them takes some milliseconds.
_known: list[Any] = []
