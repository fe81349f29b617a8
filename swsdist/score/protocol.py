"""Protocols: an operating point together with the rules of counting.

A protocol fixes beta (the weight of false alarms against misses), the tolerance of the alignment, the word gap with
which references of several words are looked up, and how many trials a second of audio holds. Beta is
C / V * (1 / P - 1), with the cost C of a false alarm, the value V of a hit and the prior P of a term.

==========  ==================  =========  ========  ======================================================
name        beta                tolerance  word gap  source
==========  ==================  =========  ========  ======================================================
nist-std06  0.1 (10^4 - 1)      0.5 s      0.5 s     NIST STD 2006: C/V = 0.1, P = 1e-4
sws2012     from the data       0.5 s      1 s       Anguera, "Description of 2012 MediaEval SWS scoring", eq. 2
sws2013     (1/0.00015-1)/100   0.5 s      0.5 s     Rodriguez-Fuentes and Penagarikano 2013, eqs. 7 and 21 (66.66)
==========  ==================  =========  ========  ======================================================

The 2012 note has its two limits the wrong way round: its command line, `-S 1 -F 0.5`, asks the program for a
tolerance of 1 s and a word gap of 0.5 s. `sws2012` is what the note's text says, tolerance 0.5 s and word gap 1 s.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from swsdist.errors import UserError

FROM_DATA: Literal["from data"] = "from data"


@dataclass(frozen=True)
class Protocol:
    """Rules of counting.

    Attributes:
        name: the name it is registered under.
        beta: weight of false alarms, or "from data" (Anguera 2012, eq. 2; see `beta`).
        tolerance: s, greatest distance of a detection's mid-point from the span of a reference, inclusive.
        word_gap: s, greatest gap between the words of a reference, inclusive.
        trials_per_second: trials in a second of audio.
        conventions: the program whose rules decide the rest.
    """

    name: str
    beta: float | Literal["from data"]
    tolerance: float
    word_gap: float
    trials_per_second: float = 1.0
    conventions: Literal["stdeval"] = "stdeval"


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        known.name: known
        for known in (
            Protocol("nist-std06", beta=0.1 * (1 / 1e-4 - 1), tolerance=0.5, word_gap=0.5),
            Protocol("sws2012", beta=FROM_DATA, tolerance=0.5, word_gap=1.0),
            Protocol("sws2013", beta=1 / 100 * (1 / 0.00015 - 1), tolerance=0.5, word_gap=0.5),
        )
    }
)


def protocol(
    name: str, *, beta: float | None = None, tolerance: float | None = None, trials_per_second: float | None = None
) -> Protocol:
    """The protocol of that name, with the parts that are given put in place of its own.

    Args:
        name: a key of `PROTOCOLS`.
        beta: weight of false alarms, positive.
        tolerance: s, not negative.
        trials_per_second: positive.

    Raises:
        UserError: the name is unknown, or a part is out of its range.
    """
    if name not in PROTOCOLS:
        raise UserError(f"unknown protocol {name!r}", remedy=f"choose one of: {', '.join(sorted(PROTOCOLS))}")
    for what, value, fits in (
        ("beta", beta, beta is None or 0 < beta < math.inf),
        ("tolerance", tolerance, tolerance is None or 0 <= tolerance < math.inf),
        ("trials_per_second", trials_per_second, trials_per_second is None or 0 < trials_per_second < math.inf),
    ):
        if not fits:
            least = "not be negative" if what == "tolerance" else "be greater than 0"
            raise UserError(f"{what} is {value}", where=f"protocol {name}", remedy=f"it must be finite and {least}")
    known = PROTOCOLS[name]
    return dataclasses.replace(
        known,
        beta=known.beta if beta is None else beta,
        tolerance=known.tolerance if tolerance is None else tolerance,
        trials_per_second=known.trials_per_second if trials_per_second is None else trials_per_second,
    )


def number_of_trials(protocol: Protocol, total_seconds: float) -> int:
    """Trials of every term: trials per second times seconds, rounded as C's `printf("%.0f")` (half to even).

    Args:
        protocol: the rules.
        total_seconds: s of audio that was searched. STDEval sums the excerpts whose channel is 1, each time they occur.

    Raises:
        UserError: that is not a number above 0. STDEval goes on with 0 trials and prints negative rates.
    """
    trials = protocol.trials_per_second * total_seconds
    if not math.isfinite(trials) or round(trials) <= 0:
        raise UserError(
            f"{total_seconds} s of audio with {protocol.trials_per_second} trials a second make no trials",
            where=f"protocol {protocol.name}",
            remedy="score at least one second of audio, or raise trials_per_second",
        )
    return round(trials)


def beta(protocol: Protocol, total_seconds: float, total_true: int) -> float:
    """Weight of false alarms: the protocol's, or of the data: (n_tps T - N_true) / N_true (Anguera 2012, eq. 2).

    Args:
        protocol: the rules.
        total_seconds: T, s of audio that was searched. It is not rounded to whole trials here.
        total_true: N_true, true occurrences of all queries together.

    Raises:
        UserError: it is to be taken from data which hold no occurrence, or no fewer occurrences than trials.
    """
    if protocol.beta != FROM_DATA:
        return protocol.beta
    trials = protocol.trials_per_second * total_seconds
    if not math.isfinite(trials) or not 0 < total_true < trials:
        raise UserError(
            f"beta cannot be taken from {total_true} true occurrences in {trials} trials",
            where=f"protocol {protocol.name}",
            remedy="give score.beta, or use a protocol whose beta is fixed",
        )
    return (trials - total_true) / total_true
