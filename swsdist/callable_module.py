"""`swsdist.run` is a layer and a function, `swsdist.search` too: both are modules that can be called.

Python sets a package's attribute to its submodule whenever that is imported, so a function of the same name would be lost
at the first import below it (docs/decisions/0005-callable-modules.md).
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module that, when called, calls the function of its own last name in `swsdist.api`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module("swsdist.api"), function)(*args, **kwargs)


def make_callable(name: str) -> None:
    """Let the module of this name be called."""
    sys.modules[name].__class__ = CallableModule
