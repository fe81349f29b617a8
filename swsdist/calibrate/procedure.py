"""Steps of calibration in their order, what was fitted, and the threshold that decides.

    scores ── a step ──► scores ── the next ──► ... ──► scores ── a threshold ──► decisions

Steps before the first that is fitted need no references, and are done as soon as there are detections. The others are fitted on
aligned lists, crossfit by default: each fold of queries has what was fitted on the others (`swsdist.calibrate.fitting`). The
threshold is the last step's own, or that of best TWV.

A step may keep the order within a query, but change the distances, and STDEval's alignment looks at these where two
detections could be paired with one occurrence. So the list is aligned again with its final scores, whose least and greatest
are noted here: what is scored is what is exported.

What was fitted is a readable JSON file that says what it was fitted on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError

from swsdist.calibrate.statistics import Tally, load_statistics
from swsdist.calibrate.steps.interface import STEPS_SCHEMA, Floats, Json, Step, TwvParameters, scores_of
from swsdist.calibrate.threshold import decide, folds_of
from swsdist.config.calibration import Calibrate
from swsdist.core.codes import calibrate as codes
from swsdist.kernels.coding import coded
from swsdist.registry.calibration_entries import Score
from swsdist.registry.registries import CALIBRATION

AnyStep = Step[Any, Any]


class StepIdentity(TypedDict):
    """A step with its options, all of them."""

    name: str
    version: int
    options: dict[str, object]


def make_steps(
    names: Sequence[str], options: Mapping[str, Mapping[str, object]], alpha: float | None = None
) -> tuple[AnyStep, ...]:
    """The steps of a config.

    Args:
        names: `calibrate.steps`.
        options: `calibrate.options`, by step.
        alpha: `calibrate.alpha`, for each step that has an option of that name and is not given it.

    Raises:
        ConfigError: there is no such step, or an option is not valid.
    """
    steps = []
    for name in names:
        kind: type[AnyStep] = CALIBRATION[name].load()
        step_options = dict(options.get(name, {}))
        if alpha is not None and "alpha" in kind.model.model_fields:
            step_options.setdefault("alpha", alpha)
        try:
            steps.append(kind(kind.model.model_validate(step_options)))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(["calibrate.options", name, *map(str, first["loc"])])
            option_names = ", ".join(kind.model.model_fields) or "none"
            raise codes.INVALID_STEP_OPTION(where=place, step=name, reason=first["msg"], options=option_names) from None
    return tuple(steps)


def procedures(settings: Calibrate, point: TwvParameters) -> tuple[Procedure, Procedure]:
    """The steps of a config before the first that is fitted, and the others, each with the operating point if a step wants it.

    Raises:
        ConfigError: see `make_steps`.
    """
    entries = settings.entries()
    parts = []
    for names in (settings.unfitted, settings.fitted):
        steps = make_steps(names, settings.options, settings.alpha)
        needs_point = any(entries[name].operating_point or entries[name].own_threshold for name in names)
        parts.append(Procedure(steps, point if needs_point else None))
    return parts[0], parts[1]


def check_steps(settings: Calibrate, score: Score) -> None:
    """Refuse steps that cannot do with the scores that they get, by their options.

    Args:
        settings: of a config, whose steps fit together as far as their entries tell.
        score: the kind that the search gives.

    Raises:
        ConfigError: a step refuses what it would get; or see `make_steps`.
    """
    for step in make_steps(settings.steps, settings.options, settings.alpha):
        complaint = step.refuses(score)
        if complaint is not None:
            raise codes.SCORE_KIND_REFUSED(where="calibrate.steps", step=step.name, kind=score, remedy=complaint)
        score = CALIBRATION[step.name].gives


def required_statistics(settings: Calibrate) -> tuple[str, ...]:
    """Names of the statistics that steps want wherever they stand, of candidates and of examples."""
    steps = make_steps(settings.steps, settings.options, settings.alpha)
    return tuple(dict.fromkeys(name for step in steps for name in step.wants()))


def candidate_statistics(settings: Calibrate) -> list[str]:
    """Names of the statistics of candidates that steps want, first or wherever they stand."""
    return list(dict.fromkeys([*settings.statistics, *load_statistics(required_statistics(settings), "candidates")]))


@dataclass(frozen=True)
class Procedure:
    """Some steps, and what was fitted.

    Attributes:
        steps: in their order.
        point: the operating point; None where no step wants one.
        models: what was fitted, for each step a tuple of one value a fold, or of one for all queries; empty for a step that is
            not fitted.
        thresholds: for the result, one for all queries or one a fold; a fold without one is decided NO throughout.
        fit: `crossfit`, `oracle`, `file`, or `none` where nothing is fitted.
        trained_on: fingerprint of the aligned lists, number of queries, and what else tells where they come from.
        low, high: least and greatest score of the resulting list.
        sides: statistics that steps want wherever they stand, of all queries that come.
        by_document: it was fitted on document trials, which have a row a document: that of its best detection. Lists of
            detections then tell fitted steps which rows these are (column `trial`).
        documents: it decides document trials; steps that are not fitted are told so.
    """

    steps: tuple[AnyStep, ...]
    point: TwvParameters | None = None
    models: tuple[tuple[Json, ...], ...] = ()
    thresholds: tuple[float | None, ...] = ()
    fit: str = "none"
    trained_on: Mapping[str, object] = field(default_factory=dict)
    low: float = 0.0
    high: float = 0.0
    sides: Mapping[str, Tally] = field(default_factory=dict)
    by_document: bool = False
    documents: bool = False

    @property
    def own_threshold(self) -> float | None:
        """That of the last step, if it knows one."""
        return self.steps[-1].threshold(self.point) if self.steps and self.point is not None else None

    def identity(self) -> list[StepIdentity]:
        """Names, versions and options of the steps, for fingerprints: plain JSON."""
        return [_described(step) for step in self.steps]

    def scores(self, table: pa.Table, statistics: Mapping[str, Tally] | None = None) -> pa.Table:
        """A list with its final scores.

        Args:
            table: DETECTIONS or TRIALS, all rows of each query; null scores (misses) stay null.
            statistics: of all candidates, for the first step; None where steps came before these.

        Raises:
            UserError: a step refuses the scores.
        """
        if not table.num_rows:
            return table
        place, first = table.schema.get_field_index("score"), table
        for number, step in enumerate(self.steps):
            entry = CALIBRATION[step.name]
            own_statistics = statistics if number == 0 and entry.statistics else None
            input_table = table
            if step.of_list() and (self.by_document if entry.fits else self.documents):
                input_table = table.append_column("trial", pa.array(_best_of_documents(first)))
            values = self._applied(
                step, self.models[number] if self.models else (), input_table, self.statistics_for(step, own_statistics)
            )
            column = pa.array(values, pa.float64(), mask=np.isnan(values))
            table = table.set_column(place, table.schema.field(place), column)
        return table

    def statistics_for(
        self, step: AnyStep, statistics: Mapping[str, Tally] | None = None
    ) -> Mapping[str, Tally] | None:
        """The statistics that a step is given: its own of candidates, if it gets them, and those that it wants anywhere."""
        sides = {name: self.sides[name] for name in step.wants()}
        return {**(statistics or {}), **sides} if sides or statistics is not None else None

    def _applied(
        self, step: AnyStep, models: Sequence[Json], table: pa.Table, statistics: Mapping[str, Tally] | None
    ) -> Floats:
        if len(models) < 2:
            return step.apply(table, models[0] if models else None, statistics, self.point)
        fold = folds_of(table, len(models))
        values = np.empty(table.num_rows, np.float64)
        for k in np.unique(fold).tolist():
            rows = fold == k
            values[rows] = step.apply(table.filter(pa.array(rows)), models[k], statistics, self.point)
        return values

    def apply(self, table: pa.Table, statistics: Mapping[str, Tally] | None = None) -> pa.Table:
        """The same, decided."""
        return decide(self.scores(table, statistics), self.thresholds)

    def before(self, number: int) -> Procedure:
        """The first steps of it, which decide nothing."""
        return replace(self, steps=self.steps[:number], models=self.models[:number], thresholds=())

    def of_fold(self, fold: int) -> Procedure:
        """With what one fold's queries get, for all queries."""
        models = tuple(each[fold : fold + 1] if len(each) > 1 else each for each in self.models)
        return replace(self, models=models, thresholds=())

    def to_json(self) -> bytes:
        """As a file."""
        steps = [
            {**described, "models": [dict(model) for model in models]}
            for described, models in zip(
                map(_described, self.steps), self.models or [()] * len(self.steps), strict=True
            )
        ]
        values: dict[str, object] = {"schema": STEPS_SCHEMA, "fit": self.fit, "steps": steps}
        if self.point is not None:
            values |= self.point._asdict()
        values |= {name: True for name in ("by_document", "documents") if getattr(self, name)}
        values |= {"thresholds": self.thresholds, "low": self.low, "high": self.high, "trained_on": self.trained_on}
        return json.dumps(values, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_run(cls, data: bytes) -> Procedure:
        """From a run's own file, folds and all."""
        values = _values(data)
        steps = make_steps([s["name"] for s in values["steps"]], {s["name"]: s["options"] for s in values["steps"]})
        return cls(
            steps,
            TwvParameters(values["trials"], values["beta"]) if "trials" in values else None,
            tuple(tuple(step["models"]) for step in values["steps"]),
            tuple(values["thresholds"]),
            values["fit"],
            values["trained_on"],
            values["low"],
            values["high"],
            by_document=values.get("by_document", False),
            documents=values.get("documents", False),
        )

    @classmethod
    def from_file(cls, data: bytes, where: str) -> Procedure:
        """All that another run fitted, to be applied to other data: its steps and threshold, of several folds the average.

        Raises:
            ConfigError: it is no such file, or holds no threshold.
        """
        with _of_file(where):
            procedure = cls.from_run(data)
        return procedure.with_file(data, where, thresholds=True)

    def with_file(self, data: bytes, where: str, *, thresholds: bool) -> Procedure:
        """With what another run fitted; of several folds it is the average, to be applied to other data.

        Args:
            data: as `to_json` gave it.
            where: its name, for messages.
            thresholds: also take the mean of its thresholds.

        Raises:
            ConfigError: it lacks a step, or has other steps than these where their threshold is wanted.
        """
        with _of_file(where):
            values = _values(data)
            models = tuple(
                (_average_in(values["steps"], step),) if CALIBRATION[step.name].fits else () for step in self.steps
            )
            thresholds_read = (_threshold_in(values, where, self),) if thresholds else ()
            trained_on = values["trained_on"]
        return replace(
            self,
            models=models,
            thresholds=thresholds_read,
            fit="file",
            trained_on=trained_on,
            by_document=values.get("by_document", False),
        )


def _values(data: bytes) -> dict[str, Any]:
    """What a file of fitted steps holds.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    values: dict[str, Any] = json.loads(data)
    if values["schema"] != STEPS_SCHEMA:
        raise ValueError(f"schema {values['schema']}")
    return values


@contextmanager
def _of_file(where: str) -> Iterator[None]:
    """What is wrong with a file of fitted steps is told with its name."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise codes.NOT_FITTED_STEPS(where=where, reason=str(error)) from None


def _average_in(steps: Iterable[Mapping[str, Any]], wanted_step: AnyStep) -> Json:
    """What a file of steps holds of one, of several folds the average.

    Raises:
        ValueError: it does not hold it.
    """
    for step in steps:
        if (step["name"], step["version"]) == (wanted_step.name, wanted_step.version) and step["models"]:
            return wanted_step.average(step["models"])
    raise ValueError(f"no fitted model of {wanted_step.name}, version {wanted_step.version}")


def _best_of_documents(table: pa.Table) -> NDArray[np.bool_]:
    """Which row of each query and document has the best score, bool (rows,): of equal ones the first; never one without."""
    scores = scores_of(table)
    group = np.zeros(len(scores), np.int64)
    for name in ("query_id", "doc_id", "channel"):
        code = table[name].to_numpy().astype(np.int64) if name == "channel" else coded(table[name])[1]
        group = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((-scores, group))  # NaN last
    best = np.zeros(len(scores), bool)
    best[order[np.flatnonzero(np.diff(group[order], prepend=-1))]] = True
    result: NDArray[np.bool_] = best & ~np.isnan(scores)
    return result


def _described(step: AnyStep) -> StepIdentity:
    return {"name": step.name, "version": step.version, "options": step.options.model_dump(mode="json")}


def _threshold_in(values: Mapping[str, Any], where: str, procedure: Procedure) -> float:
    """The mean of the thresholds that another run fitted for the same steps.

    Raises:
        ConfigError: they are of other steps.
        ValueError: there is none, or one is no number.
    """
    saved, current = (_told(steps) for steps in (values["steps"], procedure.identity()))
    if saved != current:
        raise codes.THRESHOLDS_OF_OTHER_STEPS(where=where, fitted=saved or "no steps", steps=current or "no steps")
    finite = [float(value) for value in values["thresholds"] if value is not None]
    if not finite:
        raise ValueError("no threshold")
    if not all(map(math.isfinite, finite)):
        raise ValueError("a threshold is not finite")
    return math.fsum(finite) / len(finite)


def _told(steps: Iterable[StepIdentity]) -> str:
    """Steps with their options, as a message shows them."""
    texts = []
    for step in steps:
        options = ", ".join(f"{name} {value}" for name, value in sorted(step["options"].items()))
        texts.append(f"{step['name']} ({options})" if options else str(step["name"]))
    return ", ".join(texts)
