"""Versions of steps of calibration, of statistics, and of stages of the chains fuse and sweep change with their bytes.

Lists are made of integers alone, and what follows are correctly rounded operations in a fixed order, so the constants are the
same everywhere. When a test fails, see `test_stage_digests`; versions of steps and statistics stand in their class and in
swsdist/registry/registries.py. What `rescore` of fuse says is the method's.
"""

import hashlib
import json

import numpy as np
import pyarrow as pa

from swsdist.calibrate.fusion import complete_list, join_systems, without_overlaps
from swsdist.calibrate.procedure import make_steps
from swsdist.calibrate.rescoring import Rescoring, compact_list, rescore_fitted
from swsdist.calibrate.statistics import to_table
from swsdist.calibrate.steps.norms import COHORT
from swsdist.chains.fuse.chain import AlignJoined, FindOverlaps, ImputeScores, MergeLists
from swsdist.chains.sweep.chain import ScorePoints, SortScores
from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.registry.registries import CALIBRATION, STATISTICS
from swsdist.score.align import align, score_limits
from swsdist.score.trials import TrialRules, make_trials
from swsdist.store.reading import of_rows
from swsdist.testing.conformance.calibration import POINT, cohort_for, kind_for, lists, statistics_of

#: Version, and digest of the scores it makes: with its statistics, and without where it can do without.
STEPS: dict[str, tuple[int, str]] = {
    "q-norm": (1, "c3ac4bee1451de7f0bedeb9f60416e37747687c96b0ea00ed29b3e18f5c80bf4"),
    "m-norm": (1, "a0caa3b3e1bd872208ea89f4c7a10ff4cab84bf905237d62efa8dd0c72b5c477"),
    "speaker-norm": (1, "0e9ebc0631f920b2969ac5e2661e2400c338f8ef5d6cbd9a98e9a248c84c7166"),
    "zt-norm": (1, "094561ace411f1a081a3d0eddffcee95343bc04f16277ff80da6da2660b64ec3"),
    "logistic": (1, "2d32afef75eca58b4c92baa26d2a044ce8b414688b694b99c3d20b6dc1d64c40"),
    "fusion": (2, "0e02d8ca1a8e47b78afca5d0fa939c8643d9cd5192c796d547074efae69142cb"),
    "power": (1, "9e67c541a3962c3e090f901351bdbaee1f13862d74f12dc694b44d6e245c8d61"),
    "llr": (2, "bdc49c925653213075b1ee10ad402b3d7cfcfeb2410934d5bbd2e1a65ac94fb2"),
    "at-prior": (1, "e9c55c0b03419150f10a60e1dbf7ec217f321c7bdd6a636cf09821f7790dfcb7"),
    "kst": (1, "30185cc6c6d7ec8fce54b1ab1089f43b7bbea394a4a055a6c9d5c879646b102f"),
    "sto": (1, "4f7815c0152b70874365d393f000d83ec4dde10fb3c36b61887ab8e881be05d6"),
}

#: The same of what it sums up.
SUMS: dict[str, tuple[int, str]] = {
    "cost-sums": (1, "9387abcb38d217579810723442bc12997ccc5ef28d3acfad0ea28f94ec663b88"),
    "speaker-cost-sums": (1, "1876930086cd8214582725a4159b4ed35dadf610874032a56f185802302451a7"),
    "score-histogram": (1, "f31da7a479ef2fce2f646a369b77375213c5160f3910990ba2294f5eb973d844"),
    "example-lengths": (1, "7a68eaea9b82fc72d9a0fa565894fae6e680e391b9658bcbd150afce85d86ceb"),
    "example-entropies": (1, "4c56b1ed02ec38fb2330c75bf9f8db1e0ff27985c5a4ca95aae735959e065ccf"),
    "example-speech": (1, "f8738b4048d84425a59824c48f9ccfa173327e3ed1b08c403b1476f573ab1927"),
    "posterior-sums": (1, "3cf68e064c7513cd667956110e77a63c849f18d2e94349ee46ad87d9b04f5f61"),
}

#: Of each stage of fuse: its version, and the digest of what it makes of lists of three systems.
FUSE: dict[str, tuple[int, str]] = {
    "merge-lists": (1, "c0b73ad84fe68f945a04f85a92a56ae5fc0ea80b913dece54bd742058744e04d"),
    "impute-scores": (1, "e27f6460123756349067bdb3054b88a620f06790d03269396651090bfad19d6e"),
    "align-joined": (1, "f86687b0d8e7d3199ef71e3647813c59d6748c6ff89875514d6d0be972fc1f38"),
    "find-overlaps": (1, "e2b91ab3ba2db51a8a83d8b7b74460987ad57e61e5ba5c3b1c4eed79e3e9570a"),
}

#: Of each stage of sweep.
SWEEP = {
    "sort-scores": (1, "a3bd4f48d46f9c53989e0fc13a7c6d714f3f3389135d6fa42bfd73758e986fc1"),
    "score_points": (1, "e69c5b14af0b76bdd3abf2483ce602166bcaf25f8d798fa0af374b5ddd334ad4"),
}


def digest_of_step(name: str) -> str:
    entry = CALIBRATION[name]
    tried = lists(kind_for(entry))
    (step,) = make_steps([name], {})
    fitted = step.fit([step.gather(tried.aligned, None, POINT)], POINT) if entry.fits else None
    statistics = statistics_of(tried, entry.statistics)
    if entry.cohort:
        statistics[COHORT] = cohort_for(tried)
    running = hashlib.sha256()
    for known in [statistics or None, *([None] if entry.statistics and not entry.first else [])]:
        running.update(step.apply(tried.detections, fitted, known, POINT).tobytes())
    return running.hexdigest()


def digest_of_sums(name: str) -> str:
    rows = to_table(statistics_of(lists("posterior"), [name])).to_pylist()
    return hashlib.sha256(str(sorted(str(sorted(row.items())) for row in rows)).encode()).hexdigest()


def test_steps_and_statistics() -> None:
    assert {name: (CALIBRATION[name].version, digest_of_step(name)) for name in CALIBRATION} == STEPS
    assert {name: (STATISTICS[name].version, digest_of_sums(name)) for name in STATISTICS} == SUMS


def system_list(system: int) -> pa.Table:
    """400 detections of five queries in three documents, at steps of 1/32 s."""
    rows = []
    for k in range(400):
        draw = (k * 2654435761 + system * 40503) % 2**32 >> 7
        start = draw % 997 / 32
        row = {"query_id": f"q{draw % 5}", "doc_id": f"d{draw % 3}", "channel": 1, "start": start}
        row |= {"end": start + (8 + draw % 13) / 32, "score": draw % 641 / 128 - 2.5}
        rows.append({**dict.fromkeys(DETECTIONS.names), **row})
    return pa.Table.from_pylist(rows, DETECTIONS)


def test_stages_of_fuse() -> None:
    places, known = join_systems(
        {name: system_list(k) for k, name in enumerate("abc")}, standardise=False, meet="overlap", overlap=0.5
    )
    made = complete_list(places, known, missing="least", overlap=0.5)
    rows = [
        {"query_id": f"q{k % 5}", "doc_id": f"d{k % 3}", "channel": 1, "start": start + 0.25, "end": start + 0.75}
        for k in range(40)
        for start in [k * 53 % 30]
    ]
    references = pa.Table.from_pylist(rows, REFERENCES)
    trials = make_trials(made, references, TrialRules("time", "stdeval", 0.5, -3.0, 3.0))
    assert {
        "merge-lists": (MergeLists.version, of_rows(places)),
        "impute-scores": (ImputeScores.version, of_rows(made)),
        "align-joined": (AlignJoined.version, of_rows(AlignJoined().kept(trials, made))),
        "find-overlaps": (FindOverlaps.version, of_rows(without_overlaps(made, 0.5, between_queries=True))),
    } == FUSE


def swept_list() -> pa.Table:
    state, rows, true = 20141, [], []

    def draw(below: int) -> int:
        nonlocal state
        state = (1103515245 * state + 12345) % (1 << 31)
        return (state >> 8) % below

    for _ in range(600):
        query, start = f"q{draw(12):02d}", draw(400)
        place = {"query_id": query, "doc_id": f"d{draw(3)}", "channel": 1}
        rows.append({**place, "start": start / 4, "end": start / 4 + 0.5, "score": draw(1024) / 1024})
        if draw(5) == 0:
            true.append({**place, "start": (start + draw(3)) / 4, "end": (start + 3) / 4 + 0.25})
    names = ["query_id", "doc_id", "channel", "start", "end", "score"]
    found = pa.Table.from_pylist(rows, pa.schema([DETECTIONS.field(name) for name in names]))
    low, high = score_limits(found["score"].to_numpy())
    return align(found, pa.Table.from_pylist(true, REFERENCES), tolerance=0.5, low=low, high=high)


def digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def test_stages_of_sweep() -> None:
    part = compact_list(swept_list(), tolerance=0.5, conventions="stdeval")
    whole = Rescoring.of([part], tolerance=0.5, conventions="stdeval")
    assert len(whole.probability) > 20
    points: list[object] = []
    for method in ("kst", "sto", "oracle-kst"):
        found = whole.at(method, [0.5, 1.5], [10.0, 66.5], trials=900)
        points += [found.points.twv.tolist(), found.hits.tolist(), found.false_alarms.tolist()]
    fitted = rescore_fitted(whole, 3, np.array([1.0, 66.5]), trials=900, rejects_all=True)
    maxima = [*fitted.best.points, fitted.threshold]
    points += [fitted.decided.points.twv.tolist(), [column.tolist() for column in maxima]]
    assert {
        "sort-scores": (SortScores.version, digest([table.to_pylist() for table in part])),
        "score_points": (ScorePoints.version, digest(points)),
    } == SWEEP
