"""Measures of spoken term detection as functions: tables of references and detections in, a number out.

    from swsdist import metrics

    metrics.mtwv(references, detections, total_seconds=72440.0)
    metrics.cnxe(references, detections, total_seconds=72440.0, protocol="openkws13")

All functions take the same arguments:

- **references**: true occurrences of the queries. Columns `query_id`, `doc_id`, `start`, `end` (s), and `channel` if
  not 1.
- **detections**: detections of a system. The same columns, `score` (higher is more likely), and `decision` (bool) for
  measures of decisions.
- **total_seconds**: T, seconds of audio that was searched.
- **protocol**: name of an operating point with its rules of counting (`swsdist.registry.registries.PROTOCOLS`), or a
  `Protocol`.
- **queries**: ids of all queries, including those without references; by default the queries of the references.
  Term-weighted values omit queries without references; cross entropies include them.
- **documents**: number of documents, for measures and protocols whose trials are pairs of a query and a document.

A table is a pandas data frame, an Arrow table, or a mapping of names to arrays, all of one length n. Detections and
references are paired one to one by the protocol (`swsdist.score.align.align`). A value is a float, or None where it is
not defined. `value` gives any registered measure by its key. The numbers equal those of `swsdist score` and of runs.

All raise UserError for an unknown protocol, too few seconds for the trials, or a number out of bounds; and TableError
for a missing column, a wrong type, or a duplicate row. Suspicious inputs, such as detections of unknown queries, raise
a UserWarning.

Sources: NIST, "The spoken term detection (STD) 2006 evaluation plan" (TWV); Rodriguez-Fuentes and Penagarikano,
"MediaEval 2013 spoken web search task: system performance measures", 2013 (equation numbers below are of this paper).
See docs/sources.md.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict, Unpack

from swsdist.core.codes import cli as codes
from swsdist.core.codes import families
from swsdist.core.numbers import integer, number
from swsdist.evaluation.evaluate import Evaluation
from swsdist.evaluation.evaluate import evaluate as _evaluate
from swsdist.evaluation.evaluate import values as _values
from swsdist.evaluation.reading import make_task
from swsdist.evaluation.scoring_task import make_system
from swsdist.io.notices import Notices
from swsdist.registry.registries import MEASURES
from swsdist.score.conventions import as_table
from swsdist.score.events import measure_names, measures_of
from swsdist.score.measures.det import accepted_from
from swsdist.score.measures.det import det as _det
from swsdist.score.measures.protocol import Protocol

if TYPE_CHECKING:
    import pandas as pd


class Options(TypedDict, total=False):
    """Keyword arguments of every function, see above."""

    protocol: Protocol | str
    queries: Iterable[str] | None
    documents: int | None


def value(
    key: str, references: object, detections: object, total_seconds: float, **options: Unpack[Options]
) -> float | None:
    """The value of any registered measure, including those of other packages.

    Args:
        key: as `swsdist.registry.registries.quantities()` lists them.

    Raises:
        ConfigError: there is no such measure.
    """
    (key,) = measure_names((key,), "metrics.value")
    name = next(name for name in MEASURES if key in (item.key for item in MEASURES[name].gives))
    return _values(_evaluated(references, detections, total_seconds, **options), (name,))[key]


def values(
    references: object, detections: object, total_seconds: float, **options: Unpack[Options]
) -> dict[str, float | None]:
    """All measures of the protocol's trials by key: `value` of each, in one pass."""
    result = _evaluated(references, detections, total_seconds, **options)
    return _values(result, measures_of(result.point))


def mtwv(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """Maximum term-weighted value: max over thresholds of 1 - (Pmiss + beta Pfa), rates averaged over queries (eqs. 1 to 6).

    1 is perfect. A list that accepts nothing has 0, the least value where a protocol allows that (KWSEval's do not).
    """
    return value("mtwv", references, detections, total_seconds, **options)


def atwv(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """Actual term-weighted value: that of the column `decision` (eq. 6). None where a detection is not decided."""
    return value("atwv", references, detections, total_seconds, **options)


def otwv(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """Optimum term-weighted value: each query has the threshold that is best for it."""
    return value("otwv", references, detections, total_seconds, **options)


def stwv(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """Supremum term-weighted value: only hits are accepted, so it is the mean recall of the list."""
    return value("stwv", references, detections, total_seconds, **options)


def cnxe(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """Normalised cross entropy, scores taken for log-likelihood ratios (natural logarithm; eqs. 22 to 43). Less is better.

    Uninformative scores have 1; trials without a detection have the least score of the list.
    """
    return value("cnxe", references, detections, total_seconds, **options)


def min_cnxe(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """The least Cnxe over maps gamma s + delta of the scores (eqs. 44 and 45). Less is better."""
    return value("cnxe_min", references, detections, total_seconds, **options)


def mean_average_precision(
    references: object, detections: object, total_seconds: float, **options: Unpack[Options]
) -> float | None:
    """MAP: the mean over queries of the mean of the precisions at their true occurrences' ranks, 0 for those not found.

    Source: Manning, Raghavan and Schütze, "Introduction to information retrieval", 2008, section 8.4.
    """
    return value("map", references, detections, total_seconds, **options)


def eer(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> float | None:
    """Equal error rate of the term-weighted curve: where its mean Pmiss is its mean Pfa. Less is better."""
    return value("eer", references, detections, total_seconds, **options)


def det(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> pd.DataFrame:
    """The detection error trade-off (DET) over thresholds, thinned to what a drawing needs (section 2.5).

    Returns:
        By threshold ascending: `threshold` (the least score accepted), and mean `pmiss` and `pfa` over the queries there. The
        last point accepts nothing, unless the protocol has no such point (KWSEval's): its threshold is infinite.

    Raises:
        UserError: no query has a reference.
    """
    import pandas as pd

    curve = _evaluated(references, detections, total_seconds, **options).overall.curve
    if curve is None:
        raise families.UNDEFINED("no query has a reference, so there is no curve", "compare query ids of both tables")
    points = _det(curve)
    shown = accepted_from(points.threshold, points.pmiss, points.pfa)
    return pd.DataFrame({"threshold": shown, "pmiss": points.pmiss, "pfa": points.pfa})


def terms(references: object, detections: object, total_seconds: float, **options: Unpack[Options]) -> pd.DataFrame:
    """A row per query, by query: counts, rates, value at the decisions, and best value.

    Columns of `swsdist.score.measures.twv.PER_TERM`.
    """
    frame: pd.DataFrame = _evaluated(references, detections, total_seconds, **options).overall.per_term.to_pandas()
    return frame


def _evaluated(
    references: object,
    detections: object,
    total_seconds: float,
    protocol: Protocol | str = "sws2013",
    queries: Iterable[str] | None = None,
    documents: int | None = None,
) -> Evaluation:
    total_seconds = number(total_seconds, "total_seconds", above=0)
    documents = None if documents is None else integer(documents, "documents", 1)
    ids = None if queries is None else _ids(queries)
    listed = None if ids is None else {"query_id": ids, "term": ids}
    true, system = as_table(references, "references"), make_system(detections)
    if ids is None and not true.num_rows and system.detections.num_rows:
        raise families.MISSING_INPUT(
            "the queries are not known: there are no references",
            "give references, or queries= with the ids of all queries",
            where="references",
        )
    # A caller from Python has no term list and no --force.
    notices = Notices(forced_by="", query_source="the table of references" if ids is None else "the list `queries`")
    task = make_task(
        true, total_seconds=total_seconds, protocol=protocol, terms=listed, documents=documents, notices=notices
    )
    result = _evaluate(task, system, by_type=False)
    if odd := str(task.notices):
        warnings.warn(odd, stacklevel=4)
    return result


def _ids(queries: Iterable[str]) -> list[str]:
    if isinstance(queries, str) or not isinstance(queries, Iterable):
        raise codes.NOT_A_LIST_OF_QUERIES(where="queries", value=f"{queries!r:.60}")
    ids = [str(query) for query in queries]
    if twice := [item for item, count in Counter(ids).items() if count > 1]:
        raise codes.DUPLICATE_QUERY(where="queries", query_id=twice[0])
    return ids
