"""Bigrams of phones, from a language model in ARPA's format.

The weight of a phone after another is its bigram's, or, where there is none, the first one's back-off weight and the second
one's unigram. `<s>` is the beginning; `</s>` and higher orders are left out. Logs in the file are of base 10.

Source: SRILM, ngram-format(5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import lines
from swsdist.io.fields import number, split

_START = "<s>"


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
        DataError: a line has another form, or the model lacks a phone.
    """
    unigrams: dict[str, tuple[float, float]] = {}
    bigrams: dict[tuple[str, str], float] = {}
    order = 0
    for line, text in lines(path, storage):
        fields, where = split(text), f"{path}:{line}"
        if text.startswith("\\") or not fields:
            header = text.strip()
            order = int(header[1]) if header in ("\\1-grams:", "\\2-grams:") else (order if not fields else 0)
            continue
        if order not in (1, 2):
            continue
        if not order + 1 <= len(fields) <= order + 2:
            raise codes.ARPA_LINE(where=where, text=text.strip(), order=order)
        weight = number(fields[0], "log probability", where) * math.log(10)
        back_off = (
            number(fields[order + 1], "back-off weight", where) * math.log(10) if len(fields) > order + 1 else 0.0
        )
        if order == 1:
            unigrams[fields[1]] = weight, back_off
        else:
            bigrams[fields[1], fields[2]] = weight
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
