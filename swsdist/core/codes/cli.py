"""Codes of the command line."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import UserError

NO_SUCH_CODE = Code("no-such-code", UserError, "there is no code {code}{meant}", "`swsdist explain` lists all codes")
