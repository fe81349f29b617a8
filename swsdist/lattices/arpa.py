"""Bigrams of phones, from a language model in ARPA's format.

The weight of a phone after another is its bigram's, or, where there is none, the first one's back-off weight and the second
one's unigram. `<s>` is the beginning; `</s>` and higher orders are left out. Logs in the file are of base 10.

Source: SRILM, ngram-format(5).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import lines
from swsdist.io.fields import number, split

_START = "<s>"
_COUNT = re.compile(r"ngram\s+(?P<order>\d+)\s*=\s*(?P<entries>\d+)")


def read_bigrams(path: str, phones: Sequence[str], storage: Mapping[str, object] | None = None) -> NDArray[np.float64]:
    """Log weights (natural) of each phone after another; the last row at the beginning.

    Args:
        path: of the model.
        phones: names.
        storage: options for S3.

    Returns:
        float64 (phones + 1, phones).

    Raises:
        UserError: there is no such file.
        DataError: the file is no whole model in this format, or the model lacks a phone.
    """
    unigrams: dict[str, tuple[float, float]] = {}
    bigrams: dict[tuple[str, str], float] = {}
    counts: dict[int, tuple[int, str]] = {}
    section, where = "", path
    for line, text in lines(path, storage):
        fields, where = split(text), f"{path}:{line}"
        if text.startswith("\\"):
            section = text.strip()
        elif section == "\\data\\" and (count := _COUNT.fullmatch(text.strip())):
            counts[int(count["order"])] = int(count["entries"]), where
        elif section == "\\1-grams:" and fields:
            (phone,), weight, back_off = _entry(fields, 1, where)
            if phone in unigrams:
                raise codes.MALFORMED_ARPA(where=where, fault=f"has {phone} twice")
            unigrams[phone] = weight, back_off
        elif section == "\\2-grams:" and fields:
            (first, second), weight, _ = _entry(fields, 2, where)
            if unknown := {first, second} - set(unigrams):
                raise codes.MALFORMED_ARPA(where=where, fault=f"has a bigram of {min(unknown)}, and no unigram of it")
            if (first, second) in bigrams:
                raise codes.MALFORMED_ARPA(where=where, fault=f"has {first} {second} twice")
            bigrams[first, second] = weight
    if not counts:
        raise codes.MALFORMED_ARPA(where=path, fault="has no \\data\\ with numbers of entries")
    if section != "\\end\\":
        raise codes.MALFORMED_ARPA(where=where, fault="is cut off: it has no \\end\\")
    for order, entries in ((1, len(unigrams)), (2, len(bigrams))):
        declared, where = counts.get(order, (0, path))
        if declared != entries:
            fault = f"has {entries} {order}-grams, and its header says {declared}"
            raise codes.MALFORMED_ARPA(where=where, fault=fault)
    if missing := [phone for phone in phones if phone not in unigrams]:
        raise codes.PHONE_NOT_IN_MODEL(where=path, phone=missing[0], count=len(missing))
    before = [*phones, _START]
    return np.array(
        [
            [
                bigrams.get((first, second), unigrams.get(first, (0.0, 0.0))[1] + unigrams[second][0])
                for second in phones
            ]
            for first in before
        ]
    )


def _entry(fields: Sequence[str], order: int, where: str) -> tuple[Sequence[str], float, float]:
    """Phones, log weight and log back-off weight (natural; 0 if there is none) of a line."""
    if not order + 1 <= len(fields) <= order + 2:
        raise codes.ARPA_LINE(where=where, text=" ".join(fields), order=order)
    weight = number(fields[0], "log probability", where)
    if weight > 0:
        raise codes.MALFORMED_ARPA(where=where, fault=f"has a log10 probability of {weight:g}, above 0")
    back_off = number(fields[order + 1], "back-off weight", where) if len(fields) > order + 1 else 0.0
    return fields[1 : order + 1], weight * math.log(10), back_off * math.log(10)
