"""The measures of QUESST over document trials (`swsdist_recipes.quesst.program`), where the protocol is QUESST's.

Trials that the list lacks have the default score of the operating point, else the least score of the list, and are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from swsdist.core.types import TRIALS
from swsdist.score.events import Parts, PartTable, Value
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.trials import KEY, ORDER, pairs_of, place_in_query
from swsdist_recipes.quesst.program import Quesst, Trials, score_trials

_DOCUMENTS = pa.schema(
    [
        *(TRIALS.field(name) for name in (*KEY, "score", "decision")),
        pa.field("target", pa.bool_(), False),
        *ORDER,
    ]
)


def _documents(aligned: pa.Table, point: OperatingPoint) -> pa.Table:
    if ORDER[0].name not in aligned.column_names:
        aligned = pairs_of(aligned)
        query = aligned["query_id"].dictionary_encode().combine_chunks().indices.to_numpy()
        row = np.where(missed := aligned["score"].is_null().to_numpy(), place_in_query(query, missed), 0)
        for field, column in zip(ORDER, (np.zeros(len(row), np.int64), row), strict=True):
            aligned = aligned.append_column(field, pa.array(column, pa.int64()))
    return aligned.append_column("target", aligned["ref_start"].is_valid()).select(_DOCUMENTS.names)


_PART = PartTable("quesst", _DOCUMENTS, KEY, _documents, adds=False)


def measured(parts: Parts, point: OperatingPoint) -> Quesst | None:
    """What the program reports; None without targets, non-targets or scores."""
    table = parts[_PART.name].table()
    ids = table["query_id"].dictionary_encode().combine_chunks()
    query, target = ids.indices.to_numpy().astype(np.int64), table["target"].to_numpy()
    _, first = np.unique(query, return_index=True)
    # By the list, else by id.
    rank = np.argsort(np.argsort(table["query"].to_numpy()[first], kind="stable"))
    seen = np.bincount(query[target], minlength=len(rank)) > 0
    rank = (np.cumsum(seen[np.argsort(rank)]) - 1)[rank]
    listed = table["score"].is_valid().to_numpy()
    if not seen.any() or not listed.any():
        return None
    scores = table["score"].to_numpy()
    default = point.default_score if point.default_score is not None else scores[listed].min()
    row, kept = table["row"].to_numpy(), seen[query]
    answered = np.flatnonzero(listed & kept)
    answered = answered[np.lexsort((rank[query[answered]], row[answered]))]
    missed = np.flatnonzero(~listed & kept)
    given, true = (np.bincount(rank[query[rows]], minlength=int(seen.sum())) for rows in (answered, missed))
    lacking = np.maximum(point.trials - given, true)
    starts = np.cumsum(lacking) - lacking
    others = np.zeros(int(lacking.sum()), dtype=bool)
    others[starts[rank[query[missed]]] + row[missed]] = True
    decision = table["decision"].take(answered)
    target = np.concatenate([target[answered], others])
    if target.all():
        return None
    trials = Trials(
        np.concatenate([rank[query[answered]], np.repeat(np.arange(len(lacking)), lacking)]),
        # Adding 0 gives -0.0 and 0.0, which are equal, the same sign.
        np.concatenate([scores[answered] + 0.0, np.full(len(others), default)]),
        target,
        None if decision.null_count else np.concatenate([decision.to_numpy(), np.zeros(len(others), dtype=bool)]),
    )
    return score_trials(trials, point.effective_prior)


class QuesstValues:
    """Of the scores as they are, and with a threshold or recalibration per query."""

    parts = (_PART,)
    undefined = {
        "": "the protocol is not QUESST's, or there is no score, no target or no other trial",
        "quesst_atwv": "the protocol is not QUESST's, there is no target, or a detection was not decided",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """None without targets or scores; the actual value also if a detection is not decided."""
        result = measured(parts, point)
        if result is None:
            return {}
        names = ("atwv", "mtwv", "mtwv_threshold", "cnxe", "cnxe_min")
        blocks = (("quesst_", result.pooled), ("quesst_per_query_", result.per_query))
        return {prefix + name: value for prefix, block in blocks for name, value in zip(names, block, strict=True)}
