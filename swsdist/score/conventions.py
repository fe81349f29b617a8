"""Conventions of the scoring programs: one value per program, one field per rule.

Where the programs differ, the code asks the conventions for the rule, never for the program's name. Each rule was read
from the program's source, and confirmed by running it: STDEval 0.7, KWSEval (F4DE 3.5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from swsdist.core.codes import score as codes

Name = Literal["stdeval", "kwseval", "quesst"]


@dataclass(frozen=True)
class Conventions:
    """The rules of a program.

    Attributes:
        name: of the program.
        rejects_all: the curve has a point that rejects everything, so its maximum is never negative.
        divides: the number of trials is seconds divided by the trials per second; else multiplied by it.
        list_limits: the kernel's least and greatest score are of the whole list; else of the list's header or of the group.
        forward_only: an occurrence with its end before its start is an error. (KWSEval's links in an unsorted transcript may
            lead backwards.)
        sums_ends: the end of an occurrence or excerpt is start + duration, not rounded; else the end rounded to 4 decimals.
        per_channel: T is the sum of the durations of channel 1; else per file, without overlaps.
        drops_outside: occurrences outside of the ECF are always left out; else only with -E.
        strict_lists: an unlisted query or a duplicate term in a list is an error.
        all_terms: totals are over all terms; else over those that are evaluated.
        aligned_border: the scores that border the decisions are of aligned detections; else of the list.
        pooled_by_detection: a pooled curve has one point per detection, with values in C and V; else it is a term's curve.
        options: has -inc and -j.
        by_type: values for each source type, too.
        prints_table: has STDEval's table.
        rttm_fields: fields of an RTTM record; None: any number.
        lowercases: words are compared without regard to case, overriding the term list.
        repeats: occurrences count for each term with their text.
        links: words are linked to the next word of their speaker; else they follow the order of the file.
        by_name: a document is an excerpt's name, whatever its channel and times, and an RTTM names queries by id.
        excerpt_suffix: regular expression of the suffix removed from an excerpt's file name.
        system_suffix: the same for a detection's file name.
    """

    name: Name
    rejects_all: bool
    divides: bool
    list_limits: bool
    forward_only: bool
    sums_ends: bool
    per_channel: bool
    drops_outside: bool
    strict_lists: bool
    all_terms: bool
    aligned_border: bool
    pooled_by_detection: bool
    options: bool
    by_type: bool
    prints_table: bool
    rttm_fields: int | None
    lowercases: bool
    repeats: bool
    links: bool
    by_name: bool
    excerpt_suffix: str
    system_suffix: str

    def excerpt_document(self, file: str) -> str:
        """The document that an excerpt's `audio_filename` names."""
        last = file.rpartition("/")[2]
        return re.sub(self.excerpt_suffix, "", last)

    def system_document(self, file: str) -> str:
        """The document that a detection's `file` names."""
        return re.sub(self.system_suffix, "", file.rpartition("/")[2])

    def trials(self, seconds: float, rate: float) -> float:
        """Trials in seconds of audio, not rounded; `rate` is the option "trials per second"."""
        return seconds / rate if self.divides else seconds * rate

    def rate(self, rate: float) -> float:
        """True trials in a second of audio, of the option "trials per second"."""
        return 1 / rate if self.divides else rate


STDEVAL = Conventions(
    "stdeval",
    rejects_all=True,
    divides=False,
    list_limits=True,
    forward_only=True,
    sums_ends=True,
    per_channel=True,
    drops_outside=False,
    strict_lists=False,
    all_terms=True,
    aligned_border=False,
    pooled_by_detection=True,
    options=False,
    by_type=True,
    prints_table=True,
    rttm_fields=None,
    lowercases=True,
    repeats=True,
    links=False,
    by_name=False,
    excerpt_suffix=r"\.(sph|wav|flac)$",
    system_suffix=r"\.(sph|wav|flac)$",
)
KWSEVAL = Conventions(
    "kwseval",
    rejects_all=False,
    divides=True,
    list_limits=False,
    forward_only=False,
    sums_ends=False,
    per_channel=False,
    drops_outside=True,
    strict_lists=True,
    all_terms=False,
    aligned_border=True,
    pooled_by_detection=False,
    options=True,
    by_type=False,
    prints_table=False,
    rttm_fields=9,
    lowercases=False,
    repeats=False,
    links=True,
    by_name=False,
    excerpt_suffix=r"(?<=.)\.[^.]*$",
    system_suffix=r"\.sph$",
)

QUESST = replace(
    STDEVAL, name="quesst", by_name=True, prints_table=False, excerpt_suffix=r"\.[^.]*$", system_suffix="$"
)

CONVENTIONS: Mapping[str, Conventions] = MappingProxyType({rule.name: rule for rule in (STDEVAL, KWSEVAL, QUESST)})


def conventions_of(name: str | Conventions) -> Conventions:
    """The conventions of that name.

    Raises:
        UserError: the name is unknown.
    """
    if isinstance(name, Conventions):
        return name
    if name not in CONVENTIONS:
        raise codes.UNKNOWN_CONVENTIONS(name=name, names=", ".join(CONVENTIONS))
    return CONVENTIONS[name]
