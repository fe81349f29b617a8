"""Checks steps of calibration of other packages.

    from swsdist.testing.conformance.calibration import check_step

    def test_mine():
        check_step(Mine(MyOptions(some_option=3)), ENTRY)

It checks the requirements of a run (`swsdist.calibrate.steps.interface`): there is a finite score wherever there was
one, and nowhere else; a query's scores depend on that query alone and not on the order of rows, so queries may be cut
into parts; what the entry says of the step is so; what is fitted adds, is plain JSON, and does not depend on the
order of lists. It needs no test framework: a failure is an AssertionError with its cause.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ValidationError

from swsdist.calibrate.procedure import AnyStep
from swsdist.calibrate.statistics import ExampleGroup, Tally, load_statistics
from swsdist.calibrate.steps.interface import Json, Options, TwvParameters
from swsdist.calibrate.steps.norms import ALL, COHORT, QNorm, cohort_sums
from swsdist.core.arrays import Floats, Singles
from swsdist.core.fingerprint import slot_of
from swsdist.core.types import CANDIDATES, EXAMPLES, JOINED, JOINED_TRIALS
from swsdist.kernels.regression import Labelled
from swsdist.registry.entries import COLUMNS, Dependency, Score, StepEntry
from swsdist.registry.registries import CALIBRATION, STATISTICS

#: The operating point of the suite.
POINT = TwvParameters(trials=3000, beta=20.0)


class Lists(NamedTuple):
    """Inputs for a step.

    Attributes:
        candidates: CANDIDATES, with a column `speaker`, as the detections.
        detections: JOINED, the same spans; parts have two systems' scores.
        aligned: JOINED_TRIALS, the same with labels, and misses, which have no score.
        examples: two of each query, of three posteriors a frame.
    """

    candidates: pa.Table
    detections: pa.Table
    aligned: pa.Table
    examples: ExampleGroup


def cohort_for(tried: Lists) -> Tally:
    """Cohort sums of the queries in each document."""
    scores = QNorm(Options()).apply(tried.detections, None, statistics_of(tried, ["cost-sums"]), None)
    place = JOINED.get_field_index("score")
    return cohort_sums(tried.detections.set_column(place, JOINED.field(place), pa.array(scores)), None)


def statistics_of(tried: Lists, names: Iterable[str]) -> dict[str, Tally]:
    """Named statistics of candidates and of examples."""
    return {
        name: statistic.of(tried.examples if statistic.reads == "examples" else tried.candidates)
        for name, statistic in load_statistics(names).items()
    }


def lists(kind: Score) -> Lists:
    """Seven queries' candidates with scores of a kind, made of integers alone: the same on any machine."""
    candidates, detections, aligned = [], [], []
    for row in range(280):
        draw = row * 2654435761 % 2**32 >> 4
        query, hit = row * row % 7, draw % 11 < 3
        if kind == "posterior":
            cost, scale = -min(2**40, (draw % 1000 + 2500 * hit) * 2**40 // 3500 * (draw % 13 > 0)), 2**40
            cost = -(2**40) if draw % 97 == 0 else cost
        elif kind == "llr":
            cost, scale = 900 - draw % 1800 - 700 * hit, 100
        else:
            cost, scale = (draw % 5000 + 9000 - 4000 * hit) * (20 + query), 2048 * (20 + query)
        key: dict[str, object] = {"query_id": f"q{query}", "doc_id": f"d{row % 3}", "channel": 1}
        times = {"start": row * 0.5, "end": row * 0.5 + 0.4}
        place: dict[str, object] = {"slot": slot_of(f"q{query}"), "first": 50 * row, "last": 50 * row + 39}
        candidates.append({**key, **place, "example": 1 + row % 2, "cost": cost, "scale": scale})
        scored = {**key, **times, "score": -cost / scale, "parts": _parts(draw, hit)}
        detections.append({**dict.fromkeys(JOINED.names), **scored})
        true = {"ref_start": times["start"], "ref_end": times["end"]} if hit else {}
        aligned.append({**dict.fromkeys(JOINED_TRIALS.names), **scored, **true})
        if row % 40 == 39:  # a miss
            places = {"ref_start": 1000.0 + row, "ref_end": 1001.0 + row}
            aligned.append({**dict.fromkeys(JOINED_TRIALS.names), **key, **places})
    return Lists(
        _with_speakers(pa.Table.from_pylist(candidates, CANDIDATES)),
        _with_speakers(pa.Table.from_pylist(detections, JOINED)),
        _with_speakers(pa.Table.from_pylist(aligned, JOINED_TRIALS)),
        _examples(),
    )


def _with_speakers(table: pa.Table) -> pa.Table:
    """A speaker for each document."""
    return table.append_column("speaker", pa.array([int(name[1:]) for name in table["doc_id"].to_pylist()], pa.int64()))


def _examples() -> ExampleGroup:
    rows: list[dict[str, object]] = []
    for row in range(14):
        frames = 20 + 7 * (row % 5)
        parts = np.array([[1 + (row * 7 + t * k) % 5 for k in range(3)] for t in range(frames)], np.float64)
        features = (parts / parts.sum(axis=1, keepdims=True)).astype("<f4").tobytes()
        key: dict[str, object] = {"query_id": f"q{row % 7}", "example": 1 + row // 7, "speaker": None}
        rows.append({**key, "duration": frames / 100, "frames": frames, "features": features})

    def samples_of(query_id: str, example: int) -> tuple[Singles, int]:
        # A train of pulses through a resonance at 500 Hz, and then silence.
        pulses = np.arange(2000 + 500 * example) % (50 + 10 * example + int(query_id[1:])) == 0
        decay = 0.96 ** np.arange(200) * np.cos(2 * np.pi * 500 / 8000 * np.arange(200))
        sound = 0.2 * np.convolve(pulses, decay)
        return np.concatenate([sound, np.zeros(8000 - len(sound))]).astype(np.float32), 8000

    return ExampleGroup(pa.Table.from_pylist(rows, EXAMPLES), 3, ((0, 3),), ("made-up posteriors",), samples_of)


def _parts(draw: int, hit: bool) -> list[dict[str, object]]:
    """Scores of two systems, of which the second did not find all."""
    first, second = (draw % 1009 - 500) / 256 + 2 * hit, (draw % 757 - 400) / 128 + hit
    detected = draw % 5 > 0
    return [
        {"system": "a", "score": first, "given": True},
        {"system": "b", "score": second if detected else first, "given": detected},
    ]


def kind_for(entry: StepEntry) -> Score:
    """The kind of score for a step: its input kind, or costs."""
    return "cost" if entry.takes == "any" else entry.takes


def check_step(step: AnyStep, entry: StepEntry) -> None:
    """Check one step with its options.

    Args:
        step: the step.
        entry: its entry in the registry.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _check_attributes(step, entry)
    _check_options(step)
    tried = lists(kind_for(entry))
    covariates = statistics_of(tried, step.wants())
    fitted = _check_fit(step, entry, tried, covariates or None)
    statistics = {**statistics_of(tried, entry.statistics), **covariates}
    for judges in ({COHORT: cohort_for(tried)}, {ALL: cohort_for(tried)}) if entry.cohort else ({},):
        _check_scores(step, entry, tried, fitted, {**statistics, **judges} or None)
    if entry.statistics and not entry.first:
        _check_scores(step, entry, tried, fitted, covariates or None)
    threshold = step.threshold(POINT)
    if entry.own_threshold:
        _require(isinstance(threshold, float) and np.isfinite(threshold), step, f"its own threshold is {threshold!r}")
    else:
        _require(threshold is None, step, "it has a threshold, but its entry does not say so (own_threshold)")


def _require(holds: bool, step: AnyStep, complaint: str) -> None:
    # Not an assert: the suite must also work under `python -O`.
    if not holds:
        raise AssertionError(f"step {getattr(step, 'name', type(step).__name__)!r}: {complaint}")


def _check_attributes(step: AnyStep, entry: StepEntry) -> None:
    name = getattr(step, "name", None)
    _require(isinstance(name, str) and bool(name), step, "name is not a word")
    version = getattr(step, "version", None)
    _require(isinstance(version, int) and version >= 1, step, f"version is {version!r}, not an integer of at least 1")
    _require(version == entry.version, step, f"its version is {version}, but its entry says {entry.version}")
    declared_target = CALIBRATION[step.name].target if step.name in CALIBRATION else entry.target
    _require(declared_target == entry.target, step, f"the name is taken: {declared_target}")
    for side in (entry.takes, entry.gives):
        _require(side in get_args(Score), step, f"there is no kind of score {side!r}: {', '.join(get_args(Score))}")
    for seen in entry.depends_on:
        _require(
            seen in get_args(Dependency),
            step,
            f"depends_on names {seen!r}, not one of {', '.join(get_args(Dependency))}",
        )
    fits = "references" in entry.depends_on
    _require(fits == entry.fits, step, "depends_on names references where a step is fitted, and only there")
    for column in (*entry.statistics, *step.wants()):
        _require(column in STATISTICS, step, f"it wants the statistic {column!r}; there are {', '.join(STATISTICS)}")
    _require(bool(entry.statistics) or not entry.first, step, "it must come first, but wants no statistics")
    for column in entry.columns:
        _require(column in COLUMNS, step, f"it wants the column {column!r}; there are {', '.join(COLUMNS)}")


def _check_options(step: AnyStep) -> None:
    model = step.model
    _require(
        isinstance(model, type) and issubclass(model, BaseModel), step, "model is not a pydantic model of its options"
    )
    values = step.options.model_dump(mode="json")
    try:
        again = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"step {step.name!r}: its options are not plain JSON ({error})") from None
    _require(
        model.model_validate(again) == step.options, step, "its options are not the same after writing and reading them"
    )
    try:
        model.model_validate({**values, "no such option": 1})
    except ValidationError:
        return
    _require(False, step, "an unknown option is accepted")


def _check_fit(step: AnyStep, entry: StepEntry, tried: Lists, covariates: Mapping[str, Tally] | None) -> Json | None:
    aligned, point = tried.aligned, POINT if entry.operating_point or entry.own_threshold else None

    def gather(table: pa.Table) -> Labelled:
        return step.gather(table, covariates, point)

    if not entry.fits:
        _require(
            step.fit([], point) is None,
            step,
            "fit gives something, but its entry does not say that it is fitted (fits)",
        )
        return None
    fitted = step.fit([gather(aligned)], point)
    _require(isinstance(fitted, Mapping), step, f"fit gives {type(fitted).__name__}, not a JSON object")
    assert fitted is not None
    try:
        again = json.loads(json.dumps(dict(fitted), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"step {step.name!r}: what it fits is not plain JSON ({error})") from None
    _require(again == fitted, step, "what it fits is not the same after writing and reading it as JSON")
    cuts = [aligned.filter(pa.array([name in some for name in aligned["query_id"].to_pylist()])) for some in _CUTS]
    parts = [gather(cut) for cut in cuts]
    shuffled = gather(aligned.take(_permutation(aligned.num_rows)))
    for way, table_name in (
        (parts, "parts"),
        (parts[::-1], "parts in another order"),
        ([parts[1] + parts[0], parts[2]], "a sum of parts"),
        ([shuffled], "rows in another order"),
    ):
        _require(step.fit(way, point) == fitted, step, f"fitted on {table_name} it is not what is fitted on the whole")
    silent = dict.fromkeys(aligned.column_names) | {"query_id": "asked", "doc_id": "", "channel": 0}
    model = step.fit([gather(aligned), gather(pa.Table.from_pylist([silent], aligned.schema))], point)
    _require(isinstance(model, Mapping), step, "it cannot be fitted with a query of which nothing is listed")
    _require(dict(step.average([fitted, fitted])) == dict(fitted), step, "the average of two equals is another")
    return again  # type: ignore[no-any-return]


_CUTS = (("q0", "q3"), ("q1", "q5", "q6"), ("q2", "q4"))


def _permutation(rows: int) -> pa.Array:
    order = sorted(range(rows), key=lambda row: row * 2654435761 % 2**32)
    return pa.array(order, pa.int64())


def _check_scores(
    step: AnyStep, entry: StepEntry, tried: Lists, fitted: Json | None, statistics: Mapping[str, Tally] | None
) -> None:
    point = POINT if entry.operating_point or entry.own_threshold else None

    def apply(table: pa.Table) -> Floats:
        return step.apply(table, fitted, statistics, point)

    for table_name, table in (("DETECTIONS", tried.detections), ("TRIALS", tried.aligned)):
        scores = apply(table)
        right = isinstance(scores, np.ndarray) and scores.dtype == np.float64 and scores.shape == (table.num_rows,)
        _require(right, step, f"of {table.num_rows} rows of {table_name} it does not give as many float64 scores")
        missing = table["score"].is_null().to_numpy()
        _require(
            bool((np.isnan(scores) == missing).all()),
            step,
            "it gives NaN where there was a score, or a score to a miss",
        )
        _require(bool(np.isfinite(scores[~missing]).all()), step, "a score is infinite")
        if entry.gives == "posterior":
            inside = (scores[~missing] >= 0) & (scores[~missing] <= 1)
            _require(bool(inside.all()), step, "it says that it gives posteriors, but a score is not in [0, 1]")
        _require(_same(apply(table), scores), step, "it gives other scores the second time")
        few = table.select(["query_id", "score", *entry.columns])
        _require(_same(apply(few), scores), step, "its scores depend on columns that its entry does not name (columns)")
        order = _permutation(table.num_rows)
        _require(
            _same(apply(table.take(order)), scores[order.to_numpy()]), step, "its scores depend on the order of rows"
        )
        for query in sorted(set(table["query_id"].to_pylist())):
            rows = np.array([name == query for name in table["query_id"].to_pylist()])
            alone = apply(table.filter(pa.array(rows)))
            _require(_same(alone, scores[rows]), step, "a query's scores depend on other queries' rows")
    actual = apply(tried.aligned)[~tried.aligned["score"].is_null().to_numpy()]
    _require(_same(actual, apply(tried.detections)), step, "misses in the list change the scores of detections")


def _same(floats: Floats, other: Floats) -> bool:
    return floats.tobytes() == other.tobytes() or bool(np.array_equal(floats, other, equal_nan=True))
