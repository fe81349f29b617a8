"""Mode `tdev2`: the measures as the program zerospeech/tdev2 2.0.3 computes them, for papers after 2019.

NED, coverage, grouping, type, token, boundary; no matching, no folds, no talkers. `SIL` is a phone like any other, but for NED
and coverage. Keys of the result:

- `n_intervals`, `n_classes`: those left with phones;
- `ned`: `ned`, `n_pairs`; `coverage`: `coverage`, `n_covered`, `n_phones`;
- `grouping`, `token`, `type`, `boundary`: `precision`, `recall`, `fscore`, `tool_fscore_error`, and counts.

Where the program raises instead of giving an F, `fscore` is None and `tool_fscore_error` names its exception; it is None
otherwise. The program writes no coverage of 0 either: `tool_error` names the exception, and is there only then.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.modes.pairs import distinct
from swsdist.discovery.modes.tdev2_lines import Lines
from swsdist.discovery.modes.tdev2_pairs import ned_and_grouping
from swsdist.discovery.modes.tdev2_scores import Measure
from swsdist.discovery.modes.tdev2_words import boundary, token_and_type
from swsdist.discovery.ratios import ratio
from swsdist.discovery.units import SILENCES, Corpus, EvaluationSetup, Fragments


def score(corpus: Corpus, classes: Fragments, setup: EvaluationSetup) -> dict[str, object]:
    """All measures of classes; documents of these have phones and words."""
    assert corpus.words is not None
    words = corpus.words.without(("SIL",))
    lines = Lines.of(corpus.phones, classes)
    ned, grouping = ned_and_grouping(lines)
    return {
        "n_intervals": len(lines.intervals),
        "n_classes": len(distinct(lines.group)),
        "ned": ned,
        "coverage": _coverage(lines),
        "grouping": grouping,
        **token_and_type(lines, words),
        "boundary": boundary(lines, words),
    }


def _coverage(lines: Lines) -> Measure:
    """Phones in any fragment, of all phones; silences are none."""
    phones = lines.phones
    spoken = np.isin(phones.symbol, [k for k, name in enumerate(phones.names) if name not in SILENCES])
    edges = np.zeros(len(phones) + 1, np.int64)
    np.add.at(edges, lines.first, 1)
    np.add.at(edges, lines.last, -1)
    covered, total = int(((np.cumsum(edges)[:-1] > 0) & spoken).sum()), int(spoken.sum())
    counts: Measure = {"coverage": ratio(covered, total), "n_covered": covered, "n_phones": total}
    error = "AttributeError" if total else "ZeroDivisionError"
    return counts if covered else {**counts, "tool_error": error}
