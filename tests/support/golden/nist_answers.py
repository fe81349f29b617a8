"""What a golden case of the NIST scorers holds: its options, and what STDEval and KWSEval made of it."""

from __future__ import annotations

from typing import TypedDict


class Params(TypedDict):
    """How a case was scored: the programs' options."""

    similarity_threshold: float
    find_threshold: float
    trials_per_sec: float
    koef_c: float
    koef_v: float
    prob_term: float
    segment: bool
    ecf_filter: bool
    include_no_targ: bool
    just_system_terms: bool
    pooled: bool


class Best(TypedDict):
    """Where a maximum is reached."""

    threshold: float | None
    pmiss: float
    pfa: float


class Valued(Best):
    """The same with its value."""

    twv: float | None


class Det(Best, total=False):
    """A curve's maximum; `status` is ok where there is a curve."""

    status: str
    max_value: float
    original_dies_on_negative_variance: bool


class Optimum(TypedDict):
    """The best value of all terms or one."""

    twv: float | None
    pmiss: float
    pfa: float


class Term(TypedDict, total=False):
    """What a program says of a term; a pair is document, channel, begin of the reference, ..., begin, ..., score, decision."""

    ntrue: int
    ncorr: int
    nfa: int
    nmiss: int
    pmiss: float | None
    pfa: float | None
    twv: float | None
    value: float | None
    pairs: list[tuple[str, int | str, float, float, float, float, float, str]]
    optimum: Optimum
    supremum_twv: float


class Answer(TypedDict):
    """What both programs say."""

    status: str
    beta: float
    totals: dict[str, int]
    terms: dict[str, Term]
    atwv: float | None
    mean_pmiss: float | None
    mean_pfa: float | None


class Stdeval(Answer, total=False):
    """What STDEval says; nothing but its status where it died."""

    num_trials: int
    speech_dur: float
    min_score: float
    max_score: float
    max_no: float
    min_yes: float
    n_terms_with_refs: int
    mean_value: float
    det: Det
    pooled_det: Det


class Kwseval(Answer):
    """What KWSEval says."""

    tot_trials: int
    tot_dur: float | None
    max: Valued
    optimum: Optimum
    supremum: Optimum


class CurveFile(TypedDict):
    """What a case keeps of a curve: so many points, every n-th of them."""

    n_points: int
    kept_every: int


class Expected(TypedDict, total=False):
    """What a case expects."""

    stdeval: Stdeval
    kwseval: Kwseval
    det_files: dict[str, CurveFile]
