"""Protocols: an operating point together with the rules of counting.

A protocol defines beta (the weight of false alarms against misses), the tolerance of the alignment, the word gap with
which references of several words are looked up, the unit of trials, their number per second of audio, and whose conventions
apply otherwise: STDEval 0.7, KWSEval (F4DE 3.5), or the file-level scorer of QUESST. Beta is C / V * (1 / P - 1), with
the cost C of a false alarm, the value V of a hit and the prior P of a term.

==========  ==========================  =========  ========  =========  ===============================================
name        beta                        tolerance  word gap  after      source
==========  ==========================  =========  ========  =========  ===============================================
stdeval     0.1 (10^4 - 1) = 999.9      0.5 s      0.5 s     STDEval    the program's own defaults
nist-std06  0.1 (10^4 - 1) = 999.9      0.5 s      0.5 s     STDEval    NIST STD 2006: C/V = 0.1, P = 1e-4
sws2011     0.1 (10^4 - 1) = 999.9      20 s       20 s      STDEval    MediaEval SWS 2011: as NIST, limits wide open
sws2012     from the data               0.5 s      1 s       STDEval    Anguera, scoring of SWS 2012, eq. 2
sws2013     (1/0.00015-1)/100 = 66.66   0.5 s      0.5 s     STDEval    Rodriguez-Fuentes and Penagarikano 2013, eq. 21
kwseval     0.1 (10^4 - 1) = 999.9      0.5 s      0.5 s     KWSEval    the program's own defaults
openkws13   0.1 (10^4 - 1) = 999.9      0.5 s      0.5 s     KWSEval    NIST OpenKWS13 evaluation plan
quesst      (1-P')/P', P' = 0.0741289   documents  --        QUESST     P = 0.0008, Cfa = 1, Cmiss = 100
==========  ==========================  =========  ========  =========  ===============================================

The 2012 note swaps its two limits: its command line, `-S 1 -F 0.5`, sets a tolerance of 1 s and a word gap of 0.5 s.
`sws2012` follows the note's text, tolerance 0.5 s and word gap 1 s; `as_run` follows its command line.

Its tables 2 and 3 give beta, as `-k` with `-K 1 -p 0.5`, for each set of documents and each of queries: these are the
protocols `sws2012-DATA-DOCUMENTS-QUERIES`, `sws2012-african-dev-eval` for example. The Indian data have the limits of
2011. For Indian development data and queries table 2 has 13.06, and the command line 13.065, which is used here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.text import suggestion
from swsdist.registry.registries import PROTOCOLS as REGISTRY
from swsdist.score.conventions import Conventions, Name, conventions_of

if TYPE_CHECKING:
    from swsdist.config.model import Score

#: Above this number doubles cannot represent all integers.
_MOST_TRIALS = 2**53

FROM_DATA: Literal["from data"] = "from data"


@dataclass(frozen=True)
class Protocol:
    """Rules of counting.

    Attributes:
        name: the name it is registered under.
        beta: weight of false alarms, or "from data" (Anguera 2012, eq. 2; see `beta`).
        tolerance: s, maximum distance of a detection's mid-point from the span of a reference, inclusive.
        word_gap: s, maximum gap between the words of a reference, inclusive.
        trials_per_second: trials in a second of audio. (STDEval multiplies by it, KWSEval divides.)
        conventions: the scoring program whose rules apply otherwise.
        trials: unit of trials: a stretch of time, a segment (KWSEval's `-g`), or a document.
        cost, value: C and V, needed separately for STDEval's occurrence-weighted "Value".
        cnxe_prior: effective prior of Cnxe; None: that implied by beta.
        default_score: of trials that a list lacks, for measures of all trials; None: the least score of the list.
    """

    name: str
    beta: float | Literal["from data"]
    tolerance: float
    word_gap: float
    trials_per_second: float = 1.0
    conventions: Name = "stdeval"
    trials: Literal["time", "segment", "document"] = "time"
    cost: float = 1.0
    value: float = 1.0
    cnxe_prior: float | None = None
    default_score: float | None = None

    @property
    def rules(self) -> Conventions:
        """The conventions themselves."""
        return conventions_of(self.conventions)

    @property
    def prior(self) -> float | None:
        """P, implied by beta, C and V; None if beta is computed from the data."""
        return None if self.beta == FROM_DATA else 1 / (self.beta * self.value / self.cost + 1)

    def describe(self, point: OperatingPoint | None = None) -> str:
        """The rules in a line, the first of outputs.

        Args:
            point: the operating point, if known.
        """
        weight = self.beta if point is None else point.beta
        parts = [f"beta {weight if weight == FROM_DATA else f'{weight:.4g}'}"]
        parts.append(f"tolerance {self.tolerance:g} s" if self.trials == "time" else f"trials are {self.trials}s")
        if self.cnxe_prior is not None:
            parts.append(f"prior of Cnxe {self.cnxe_prior:g}")
        if point is not None:
            parts += [f"{point.seconds:.1f} s of audio", f"{point.trials} trials a query"]
        return f"protocol {self.name}: {', '.join(parts)}"


def _priced(name: str, cost: float, value: float, prior: float, limits: tuple[float, float], **rest: str) -> Protocol:
    weight = cost / value * (1 / prior - 1)
    return Protocol(name, weight, *limits, cost=cost, value=value, **rest)  # type: ignore[arg-type]


STDEVAL = _priced("stdeval", 0.1, 1.0, 0.0001, (0.5, 0.5))
NIST_STD06 = _priced("nist-std06", 0.1, 1.0, 0.0001, (0.5, 0.5))
SWS2011 = _priced("sws2011", 0.1, 1.0, 0.0001, (20.0, 20.0))
SWS2012 = Protocol("sws2012", FROM_DATA, 0.5, 1.0)
SWS2013 = _priced("sws2013", 1.0, 100.0, 0.00015, (0.5, 0.5))
KWSEVAL = _priced("kwseval", 0.1, 1.0, 0.0001, (0.5, 0.5), conventions="kwseval")
OPENKWS13 = _priced("openkws13", 0.1, 1.0, 0.0001, (0.5, 0.5), conventions="kwseval")
QUESST = _priced("quesst", 1.0, 1.0, 0.0741289, (math.inf, 0.5), conventions="quesst", trials="document")

#: Tolerance and word gap of the data of SWS 2011 and 2012.
_INDIAN, _AFRICAN = (20.0, 20.0), (0.5, 1.0)


def _of_2012(name: str, k: float, limits: tuple[float, float]) -> Protocol:
    return _priced(f"sws2012-{name}", k, 1.0, 0.5, limits)


SWS2012_INDIAN_DEV_DEV = _of_2012("indian-dev-dev", 13.065, _INDIAN)
SWS2012_INDIAN_DEV_EVAL = _of_2012("indian-dev-eval", 14.49, _INDIAN)
SWS2012_INDIAN_EVAL_DEV = _of_2012("indian-eval-dev", 12.32, _INDIAN)
SWS2012_INDIAN_EVAL_EVAL = _of_2012("indian-eval-eval", 21.59, _INDIAN)
SWS2012_AFRICAN_DEV_DEV = _of_2012("african-dev-dev", 15.32, _AFRICAN)
SWS2012_AFRICAN_DEV_EVAL = _of_2012("african-dev-eval", 6.36, _AFRICAN)
SWS2012_AFRICAN_EVAL_DEV = _of_2012("african-eval-dev", 11.96, _AFRICAN)
SWS2012_AFRICAN_EVAL_EVAL = _of_2012("african-eval-eval", 19.96, _AFRICAN)

#: Protocols of this package; `protocol` also finds registered ones of other packages.
PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {value.name: value for value in list(globals().values()) if isinstance(value, Protocol)}
)


def registered(name: str) -> Protocol:
    """The registered protocol without overrides.

    Raises:
        UserError: the name is unknown.
    """
    if name not in REGISTRY:
        raise families.UNKNOWN_NAME(
            "unknown protocol {name!r}{meant}",
            "choose one of: {names}",
            name=name,
            meant=suggestion(name, REGISTRY),
            names=", ".join(sorted(REGISTRY)),
        )
    registered_protocol: Protocol = REGISTRY[name].load()
    return registered_protocol


class Parts(TypedDict, total=False):
    """Overrides of a protocol's values; None keeps the protocol's.

    Attributes:
        beta: weight of false alarms, positive.
        tolerance: s, not negative.
        trials_per_second: positive.
        word_gap: s, not negative.
        cost: C of a false alarm, positive.
        value: V of a hit, positive.
        prior: P of a term, in (0, 1).
        cnxe_prior: effective prior of Cnxe, in (0, 1), independent of beta.
        default_score: of trials that a list lacks.
        as_run: use the limits of the note's command line (only for `sws2012` and its African data).
    """

    beta: float | None
    tolerance: float | None
    trials_per_second: float | None
    word_gap: float | None
    cost: float | None
    value: float | None
    prior: float | None
    cnxe_prior: float | None
    default_score: float | None
    as_run: bool


_ABOVE_0, _FROM_0, _INSIDE = "finite and be greater than 0", "finite and not be negative", "between 0 and 1"
#: Valid ranges of overrides: a test and its description.
_RANGES: Mapping[str, tuple[Callable[[float], bool], str]] = {
    **dict.fromkeys(("beta", "trials_per_second", "cost", "value"), (lambda item: 0 < item < math.inf, _ABOVE_0)),
    **dict.fromkeys(("tolerance", "word_gap"), (lambda item: 0 <= item < math.inf, _FROM_0)),
    **dict.fromkeys(("prior", "cnxe_prior"), (lambda item: 0 < item < 1, _INSIDE)),
    "default_score": (math.isfinite, "finite"),
}


def protocol(
    name: str, *, trials: Literal["time", "segment", "document"] | None = None, **parts: Unpack[Parts]
) -> Protocol:
    """The protocol of that name, with overrides.

    Args:
        name: of a registered protocol.
        trials: what a trial is.
        parts: overrides; cost, value and prior may replace beta.

    Raises:
        UserError: the name is unknown, a part is out of its range, or parts contradict each other.
    """
    base, where = registered(name), f"protocol {name}"
    as_run = parts.pop("as_run", False)
    overrides = cast("dict[str, float]", {what: item for what, item in parts.items() if item is not None})
    for what, entry in overrides.items():
        fits, expected = _RANGES[what]
        if not fits(entry):
            raise families.INVALID_VALUE.of(UserError)(
                "{part} is {value}", "it must be {range}", where=where, part=what, value=entry, range=expected
            )
    priced = overrides.keys() & {"cost", "value", "prior"}
    if "beta" in overrides and priced:
        raise families.CONFLICTING_OPTIONS(
            "beta and {parts} are both given, though beta is computed from them",
            "give either beta, or cost, value and prior",
            where=where,
            parts=", ".join(sorted(priced)),
        )
    changes: dict[str, Any] = {what: item for what, item in overrides.items() if what != "prior"}
    if priced:
        # Other values are the protocol's; sws2012's beta is C alone, P = 0.5.
        cost, value = overrides.get("cost", base.cost), overrides.get("value", base.value)
        prior = overrides.get("prior", 0.5 if base.prior is None else base.prior)
        beta = cost / value * (1 / prior - 1)
        if not 0 < beta < math.inf:
            raise families.INVALID_VALUE.of(UserError)(
                "cost, value and prior make beta {beta}", "give a prior farther from 0 and 1", where=where, beta=beta
            )
        changes |= {"beta": beta, "cost": cost, "value": value}
    elif "beta" in overrides:
        changes |= {"cost": overrides["beta"], "value": 1.0}  # as in the command line of SWS 2012: V = 1, P = 0.5
    if as_run:
        if not name.startswith("sws2012") or (base.tolerance, base.word_gap) != _AFRICAN:
            raise families.UNSUPPORTED(
                "no as-run variant: only sws2012, for its African data, was run differently from its plan",
                "leave as_run out",
                where=where,
            )
        changes = {"tolerance": 1.0, "word_gap": 0.5, **changes}
    changed = dataclasses.replace(base, trials=trials or base.trials, **changes)
    if changed.trials == "segment" and not changed.rules.options:
        raise families.UNSUPPORTED("segment trials are KWSEval's", "use kwseval or openkws13", where=where)
    return changed


def protocol_of(settings: Score) -> Protocol:
    """The protocol of a config's section `score`.

    Raises:
        UserError: as of `protocol`.
    """
    return protocol(
        settings.protocol,
        beta=settings.beta,
        tolerance=settings.tolerance,
        trials_per_second=settings.trials_per_second,
        trials=settings.trials,
        cnxe_prior=settings.cnxe_prior,
    )


def number_of_trials(protocol: Protocol, total_seconds: float) -> int:
    """Trials of every term, rounded as C's `printf("%.0f")` (half to even).

    Trials per second times seconds; KWSEval divides the seconds by its trials per second.

    Args:
        protocol: the rules.
        total_seconds: s of audio that was searched (`swsdist.score.trials.seconds`).

    Raises:
        UserError: that is not a number above 0. STDEval goes on with 0 trials and prints negative rates.
    """
    trials = protocol.rules.trials(total_seconds, protocol.trials_per_second)
    if not math.isfinite(trials) or round(trials) <= 0 or trials > _MOST_TRIALS:
        raise families.INVALID_VALUE.of(UserError)(
            "{seconds} s of audio with {rate} trials per second make no valid number of trials",
            (
                "score at least one second of audio; check the trials per second, and the durations (of "
                "the ECF, or of a run's documents: those of channel 1 count)"
            ),
            where=f"protocol {protocol.name}",
            seconds=total_seconds,
            rate=protocol.trials_per_second,
        )
    return round(trials)


def beta(protocol: Protocol, total_seconds: float, total_true: int) -> float:
    """Weight of false alarms: the protocol's, or of the data: (n_tps T - N_true) / N_true (Anguera 2012, eq. 2).

    Args:
        protocol: the rules.
        total_seconds: T, s of searched audio, not rounded to whole trials.
        total_true: N_true, true occurrences of all queries together.

    Raises:
        UserError: it is to be taken from data which hold no occurrence, or no fewer occurrences than trials.
    """
    if protocol.beta != FROM_DATA:
        return protocol.beta
    trials = protocol.trials_per_second * total_seconds
    if not math.isfinite(trials) or not 0 < total_true < trials:
        raise families.UNDEFINED(
            "beta cannot be computed from {true} true occurrences in {trials} trials",
            "give score.beta, or use a protocol whose beta is fixed",
            where=f"protocol {protocol.name}",
            true=total_true,
            trials=trials,
        )
    return (trials - total_true) / total_true


@dataclass(frozen=True)
class OperatingPoint:
    """Parameters that convert counts to values, for one set of queries and documents; plain numbers for JSON.

    Attributes:
        protocol: name of the protocol.
        conventions: name of the scoring program.
        trials_are: what a trial is.
        beta: weight of false alarms.
        trials: N, of each query: seconds of audio times trials per second, segments, or documents.
        seconds: T, s of searched audio.
        true: true occurrences of all queries.
        queries: number of all searched queries, with and without references or detections.
        documents: number of searched documents; None if unknown: measures of pairs are then undefined.
        cost, value: C and V.
        include_refless: Pfa is a mean over all queries (KWSEval's -inc).
        cnxe_prior: effective prior of Cnxe; None: that implied by beta.
        default_score: of trials that a list lacks, for measures of all trials; None: the least score of the list.
    """

    protocol: str
    conventions: Name
    trials_are: Literal["time", "segment", "document"]
    beta: float
    trials: int
    seconds: float
    true: int
    queries: int
    documents: int | None = None
    cost: float = 1.0
    value: float = 1.0
    include_refless: bool = False
    cnxe_prior: float | None = None
    default_score: float | None = None

    @property
    def rules(self) -> Conventions:
        """The conventions themselves."""
        return conventions_of(self.conventions)

    @property
    def effective_prior(self) -> float:
        """Effective prior of the cross entropies."""
        return prior_of_beta(self.beta) if self.cnxe_prior is None else self.cnxe_prior

    def as_json(self) -> dict[str, str | float | int | bool | None]:
        """Plain values by name; the default score only where there is one."""
        values = dataclasses.asdict(self)
        return values if self.default_score is not None else {k: values[k] for k in values if k != "default_score"}


def operating_point(
    rules: Protocol,
    *,
    seconds: float,
    true: int,
    queries: int,
    documents: int | None = None,
    segments: int | None = None,
) -> OperatingPoint:
    """The operating point of a protocol: computes trials and beta.

    Args:
        rules: the protocol with overrides.
        seconds: T, s of audio, as the conventions count it.
        true: true occurrences of all queries.
        queries: number of searched queries.
        documents: number of searched documents (recording and channel), if known.
        segments: number of segments, for segment trials.

    Raises:
        UserError: the protocol's trials need what is not given, or trials or beta cannot be taken from the data.
    """
    if rules.trials == "time":
        trials = number_of_trials(rules, seconds)
    else:
        count = segments if rules.trials == "segment" else documents
        if not count:
            missing = (
                families.MISSING_INPUT.saying(
                    "protocol {protocol} counts segments as trials, and their number is unknown",
                    "give an ECF, and stretches of speech (SPEAKER records of an RTTM)",
                )
                if rules.trials == "segment"
                else codes.UNKNOWN_DOCUMENT_COUNT
            )
            raise missing(where=f"protocol {rules.name}", protocol=rules.name)
        trials = count
    weight = beta(rules, seconds, true)
    from_data = rules.beta == FROM_DATA
    # A beta from the data goes to the program as C, with V = 1 and P = 0.5.
    cost, value = (weight, 1.0) if from_data else (rules.cost, rules.value)
    return OperatingPoint(
        protocol=rules.name,
        conventions=rules.conventions,
        trials_are=rules.trials,
        beta=weight,
        trials=trials,
        seconds=seconds,
        true=true,
        queries=queries,
        documents=documents,
        cost=cost,
        value=value,
        cnxe_prior=rules.cnxe_prior,
        default_score=rules.default_score,
    )


def prior_of_beta(beta: float) -> float:
    """The effective prior of a weight of false alarms (eq. 22): 1 / (1 + beta).

    Raises:
        UserError: beta is not positive.
    """
    if not 0 < beta < math.inf:
        raise codes.VALUE_NOT_POSITIVE(name="beta", value=beta)
    return 1 / (1 + beta)
