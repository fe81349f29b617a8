"""Python runs this first: the clock of a process is off by CLOCK_OFF seconds, since hosts here share the machine's."""

import os
import time

_off = float(os.environ.get("CLOCK_OFF", "0"))
_true = time.time
if _off:
    time.time = lambda: _true() + _off
