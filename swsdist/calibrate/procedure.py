"""The procedure of calibration: steps in order, their fitted models, and the decision threshold.

    scores ── a step ──► scores ── the next ──► ... ──► scores ── a threshold ──► decisions

Steps before the first fitted one need no references, and are applied as soon as there are detections. The others are
fitted on aligned lists. ``decision = score >= threshold``, where the threshold is the last step's, or that of best TWV.

Ways to fit steps and thresholds:

=========  ============================================================================================
crossfit   queries are assigned to folds by a stable hash of their ids; each fold is calibrated and decided
           by models and the threshold of best TWV of all other folds, so no query influences its own
           decisions; the default
oracle     on all scored queries; optimistic by definition, and labelled so in every output
FILE       as saved by an earlier run; several folds are averaged
none       no decision is made
=========  ============================================================================================

A step may keep the order within a query but change differences of scores, which STDEval's alignment uses where two
detections compete for one occurrence. So the list is aligned again with its final scores, whose limits are stored here;
the scored list is the exported one.

Files: fitted models are saved as readable JSON with their provenance. `trained_on` in a file contains a fingerprint of
each query's occurrences. If any query shares it with the references used for scoring, the fit counts as oracle, like a
fit in place.

Lists in parts: a list may come in parts, each with all rows of its queries. What is learnt of a part (`gather`,
`count`) is added up (`with_models`, `threshold_of`), so parts may be processed anywhere. Of a list of more than `MOST`
rows, steps are fitted on coarse rows (`swsdist.kernels.regression.Labelled`); thresholds are exact.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, groupby
from operator import add
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from swsdist.calibrate.statistics import CandidatePosteriors, Tally, load_statistics
from swsdist.calibrate.steps.interface import STEPS_SCHEMA, Json, Step, Tallies, TwvParameters, scores_of
from swsdist.config.model import Calibrate
from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import error_of, families
from swsdist.core.codes import score as codes
from swsdist.core.errors import ConfigError, UserError
from swsdist.core.fingerprint import fingerprint, parse_json, stable_hash
from swsdist.core.types import DETECTIONS, TRIALS, with_values
from swsdist.io.filesystem import locate
from swsdist.kernels.coding import coded
from swsdist.kernels.regression import LABELLED_ROWS, MOST, Labelled
from swsdist.registry.entries import Score
from swsdist.registry.registries import CALIBRATION
from swsdist.score.align import score_limits
from swsdist.score.events import (
    CLASSES,
    EVENTS,
    Merged,
    Source,
    check_part,
    count_classes,
    count_events,
    event_blocks,
    of_table,
)
from swsdist.score.measures.curve import Classes, best_point, curve_blocks


def fold_of(query_id: str, folds: int) -> int:
    """The fold of a query, by a stable hash, independent of other queries."""
    return stable_hash(f"fold {query_id}") % folds if folds > 1 else 0


def check_folds(queries: Mapping[int, int], folds: int) -> None:
    """Check that each fold can be fitted on others.

    Args:
        queries: numbers of queries with references, by fold.
        folds: number of folds; 1 fits on all queries.

    Raises:
        UserError: none occurs, or all that do are in one fold.
    """
    numbers = [number for number in queries.values() if number]
    if not numbers:
        raise families.NOTHING_TO_FIT("no query has a true occurrence to fit on", "give references, or a fitted file")
    if folds > 1 and len(numbers) < 2:
        raise families.NOTHING_TO_FIT(
            (
                "cross-fitting in {folds} folds has nothing to fit on: the queries that truly occur "
                "({count}) are in one fold"
            ),
            "give references of more queries, or fit by oracle or a file of other data (calibrate.fit, --fit)",
            folds=folds,
            count=sum(numbers),
        )


def thresholds_for(queries: Collection[str], thresholds: Sequence[float | None]) -> list[float | None]:
    """Thresholds for some queries: one for all, or one per fold, with None for folds without queries."""
    used = {fold_of(query, len(thresholds)) for query in queries}
    return [value if len(thresholds) == 1 or k in used else None for k, value in enumerate(thresholds)]


def queries_without_threshold(queries: Collection[str], thresholds: Sequence[float | None]) -> list[str]:
    """Queries in folds without a threshold, sorted."""
    return sorted(query for query in queries if thresholds and thresholds[fold_of(query, len(thresholds))] is None)


def folds_of(table: pa.Table, folds: int) -> Ints:
    """The fold of each row, int64 (rows,); the table has a column `query_id`."""
    names, code = coded(table["query_id"])
    result: Ints = np.array([fold_of(name, folds) for name in names], dtype=np.int64)[code]
    return result


def by_fold(table: pa.Table, folds: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each non-empty fold, folds ascending; the table has a column `query_id`."""
    fold = folds_of(table, folds)
    for k in np.unique(fold).tolist():
        yield k, table.filter(pa.array(fold == k))


def decide(table: pa.Table, thresholds: Sequence[float | None] | None) -> pa.Table:
    """Set the column `decision` of DETECTIONS or TRIALS; null without thresholds, or for misses.

    Args:
        table: any rows.
        thresholds: one for all queries or one per fold; a fold without a threshold is decided NO. None: no decisions.
    """
    place = table.schema.get_field_index("decision")
    if thresholds is None:
        decisions = pa.nulls(table.num_rows, pa.bool_())
    else:
        limits = np.array([math.inf if value is None else value for value in thresholds], np.float64)
        scores = table["score"].to_numpy().astype(np.float64)
        decisions = pa.array(scores >= limits[folds_of(table, len(limits))], mask=np.isnan(scores))
    return table.set_column(place, DETECTIONS.field("decision"), decisions)


AnyStep = Step[Any]


class StepIdentity(TypedDict):
    """A step with all its options."""

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
        alpha: `calibrate.alpha`, the default for steps with an option of that name.

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
            if part := error_of(first, place):
                raise part from None
            if first["type"] == "extra_forbidden":
                raise CALIBRATION.unknown_option(name, str(first["loc"][-1]), kind.model.model_fields, place) from None
            option_names = ", ".join(kind.model.model_fields) or "none"
            raise families.INVALID_VALUE(
                "step {step} refuses its options: {reason}",
                "options of {step}: {options}",
                where=place,
                step=name,
                reason=first["msg"],
                options=option_names,
            ) from None
    return tuple(steps)


def procedures(settings: Calibrate, point: TwvParameters) -> tuple[Procedure, Procedure]:
    """The steps of a config before the first fitted one, and the others; each with the operating point if a step needs it.

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


def keep_order(settings: Calibrate, names: Sequence[str]) -> bool:
    """Whether some steps of a config keep the order of a query's detections: none reads the list, or more than scores."""
    steps = make_steps(names, settings.options, settings.alpha)
    return not any(step.of_list() or CALIBRATION[step.name].columns for step in steps)


def check_steps(settings: Calibrate, score: Score) -> None:
    """Check that each step accepts the kind of scores it receives, given its options.

    Args:
        settings: of a config whose steps fit together by their entries.
        score: the kind of score of the search.

    Raises:
        ConfigError: a step refuses its input; or see `make_steps`.
    """
    for step in make_steps(settings.steps, settings.options, settings.alpha):
        complaint = step.refuses(score)
        if complaint is not None:
            raise families.MISMATCH.of(ConfigError)(
                "step {step} receives scores of the kind {kind}",
                "{remedy}",
                where="calibrate.steps",
                step=step.name,
                kind=score,
                remedy=complaint,
            )
        score = CALIBRATION[step.name].gives


def required_statistics(settings: Calibrate) -> tuple[str, ...]:
    """Names of statistics (of candidates and examples) that steps need in any position."""
    steps = make_steps(settings.steps, settings.options, settings.alpha)
    return tuple(dict.fromkeys(name for step in steps for name in step.wants()))


def candidate_statistics(settings: Calibrate) -> list[str]:
    """Names of all statistics of candidates that steps need."""
    return list(dict.fromkeys([*settings.statistics, *load_statistics(required_statistics(settings), "candidates")]))


def first_takes_sums(settings: Calibrate) -> bool:
    """Whether S(w) of the last step, KST or STO, is that of all candidates of the search."""
    return len(settings.steps) == 1 and CandidatePosteriors.name in settings.statistics


@dataclass(frozen=True)
class Procedure:
    """Steps, with fitted models and thresholds.

    Attributes:
        steps: in their order.
        point: the operating point; None if no step needs it.
        models: for each step a tuple of fitted values, one per fold or one for all queries; empty for a step that is
            not fitted.
        thresholds: for the result, one for all queries or one per fold; a fold without a threshold is decided NO.
        fit: `crossfit`, `oracle`, `file`, or `none` where nothing is fitted.
        trained_on: fingerprint of the aligned lists, number of queries, and further provenance.
        low, high: least and greatest score of the resulting list.
        covariates: statistics that steps need in any position, for all queries.
        by_document: fitted on document trials, with one row per document, that of its best detection. Lists of
            detections then mark these rows for fitted steps (column `trial`).
        documents: whether it decides document trials, for steps that are not fitted.
    """

    steps: tuple[AnyStep, ...]
    point: TwvParameters | None = None
    models: tuple[tuple[Json, ...], ...] = ()
    thresholds: tuple[float | None, ...] = ()
    fit: str = "none"
    trained_on: Mapping[str, object] = field(default_factory=dict)
    low: float = 0.0
    high: float = 0.0
    covariates: Mapping[str, Tally] = field(default_factory=dict)
    by_document: bool = False
    documents: bool = False

    @property
    def own_threshold(self) -> float | None:
        """Threshold of the last step, if it has one."""
        return self.steps[-1].threshold(self.point) if self.steps and self.point is not None else None

    def identity(self) -> list[StepIdentity]:
        """Names, versions and options of the steps, for fingerprints: plain JSON."""
        return [_described(step) for step in self.steps]

    def scores(self, table: pa.Table, statistics: Tallies = None) -> pa.Table:
        """A list with its final scores.

        Args:
            table: DETECTIONS or TRIALS, all rows of each query; null scores (misses) stay null.
            statistics: of all candidates, for the first step; None after preceding steps.

        Raises:
            UserError: a step refuses the scores.
        """
        if not table.num_rows:
            return table
        first = table
        for number, step in enumerate(self.steps):
            entry = CALIBRATION[step.name]
            own_statistics = statistics if number == 0 and entry.statistics else None
            input_table = table
            if step.of_list() and (self.by_document if entry.fits else self.documents):
                input_table = table.append_column("trial", pa.array(_best_of_documents(first)))
            values = self._applied(
                step, self.models[number] if self.models else (), input_table, self.statistics_for(step, own_statistics)
            )
            table = with_values(table, "score", pa.array(values, pa.float64(), mask=np.isnan(values)))
        return table

    def statistics_for(self, step: AnyStep, statistics: Tallies = None) -> Mapping[str, Tally] | None:
        """The statistics for a step: of candidates if available, and those it needs in any position."""
        covariates = {name: self.covariates[name] for name in step.wants()}
        return {**(statistics or {}), **covariates} if covariates or statistics is not None else None

    def _applied(self, step: AnyStep, models: Sequence[Json], table: pa.Table, statistics: Tallies) -> Floats:
        if len(models) < 2:
            return step.apply(table, models[0] if models else None, statistics, self.point)
        fold = folds_of(table, len(models))
        values = np.empty(table.num_rows, np.float64)
        for k in np.unique(fold).tolist():
            rows = fold == k
            values[rows] = step.apply(table.filter(pa.array(rows)), models[k], statistics, self.point)
        return values

    def apply(self, table: pa.Table, statistics: Tallies = None) -> pa.Table:
        """A list with final scores and decisions."""
        return decide(self.scores(table, statistics), self.thresholds)

    def before(self, number: int) -> Procedure:
        """The first steps, without decisions."""
        return replace(self, steps=self.steps[:number], models=self.models[:number], thresholds=())

    def of_fold(self, fold: int) -> Procedure:
        """The models of one fold, applied to all queries."""
        models = tuple(model[fold : fold + 1] if len(model) > 1 else model for model in self.models)
        return replace(self, models=models, thresholds=())

    def to_json(self) -> bytes:
        """The content of a file."""
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
        """From a run's file, with all folds."""
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

    def with_file(self, data: bytes, where: str, *, thresholds: bool) -> Procedure:
        """The procedure with another run's models, for other data; several folds are averaged.

        Args:
            data: output of `to_json`.
            where: its name, for messages.
            thresholds: also take the mean of its thresholds.

        Raises:
            ConfigError: it lacks a step, or its thresholds are for other steps.
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
    """The content of a file of fitted steps.

    Raises:
        ValueError, KeyError, TypeError: it is not such a file.
    """
    values: dict[str, Any] = parse_json(data)
    if values["schema"] != STEPS_SCHEMA:
        raise ValueError(f"schema {values['schema']}")
    return values


@contextmanager
def _of_file(where: str) -> Iterator[None]:
    """Report invalid files of fitted steps by name."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise codes.NOT_FITTED_STEPS(where=where, reason=str(error)) from None


def _average_in(steps: Iterable[Mapping[str, Any]], wanted_step: AnyStep) -> Json:
    """The model of a step in a file, averaged over folds.

    Raises:
        ValueError: the file lacks the step.
    """
    for step in steps:
        if (step["name"], step["version"]) == (wanted_step.name, wanted_step.version) and step["models"]:
            return wanted_step.average(step["models"])
    raise ValueError(f"no fitted model of {wanted_step.name}, version {wanted_step.version}")


def _best_of_documents(table: pa.Table) -> Bools:
    """Whether each row has the best score of its query and document, bool (rows,): the first of equal ones; never rows
    without score.
    """
    scores = scores_of(table)
    group = np.zeros(len(scores), np.int64)
    for name in ("query_id", "doc_id", "channel"):
        code = table[name].to_numpy().astype(np.int64) if name == "channel" else coded(table[name])[1]
        group = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((-scores, group))  # NaN last
    best = np.zeros(len(scores), bool)
    best[order[np.flatnonzero(np.diff(group[order], prepend=-1))]] = True
    result: Bools = best & ~np.isnan(scores)
    return result


def _described(step: AnyStep) -> StepIdentity:
    return {"name": step.name, "version": step.version, "options": step.options.model_dump(mode="json")}


def _threshold_in(values: Mapping[str, Any], where: str, procedure: Procedure) -> float:
    """The mean threshold that another run fitted for the same steps.

    Raises:
        ConfigError: the thresholds are for other steps.
        ValueError: there is no threshold, or one is not finite.
    """
    saved, current = (_steps_text(steps) for steps in (values["steps"], procedure.identity()))
    if saved != current:
        raise families.MISMATCH.of(ConfigError)(
            "the thresholds are for {fitted}, not for {steps}",
            "decide by the step's own threshold (calibrate.threshold: own), or name a file of the same steps",
            where=where,
            fitted=saved or "no steps",
            steps=current or "no steps",
        )
    finite = [float(value) for value in values["thresholds"] if value is not None]
    if not finite:
        raise ValueError("no threshold")
    if not all(map(math.isfinite, finite)):
        raise ValueError("a threshold is not finite")
    return math.fsum(finite) / len(finite)


def _steps_text(steps: Iterable[StepIdentity]) -> str:
    """Steps with their options, for messages."""
    texts = []
    for step in steps:
        options = ", ".join(f"{name} {value}" for name, value in sorted(step["options"].items()))
        texts.append(f"{step['name']} ({options})" if options else str(step["name"]))
    return ", ".join(texts)


#: Entry of `trained_on`.
ENTRY = "references"


def fingerprint_references(references: pa.Table) -> dict[str, str]:
    """A fingerprint of each query's true occurrences: documents, channels and times to the millisecond.

    Args:
        references: REFERENCES.
    """
    columns = [references[name].to_pylist() for name in ("query_id", "doc_id", "channel")]
    times = [[round(1000 * value) for value in references[name].to_pylist()] for name in ("start", "end")]
    rows = sorted(zip(*columns, *times, strict=True))
    return {query: fingerprint([row[1:] for row in some])[:12] for query, some in groupby(rows, lambda row: row[0])}


def overlaps(trained_on: object, references: pa.Table | None) -> bool | None:
    """Whether a model was fitted on the scored references; None if unknown.

    Args:
        trained_on: from the file.
        references: REFERENCES used for scoring; None without scoring.
    """
    trained = trained_on.get(ENTRY) if isinstance(trained_on, Mapping) else None
    if not isinstance(trained, Mapping) or references is None:
        return None
    return any(trained.get(query) == digest for query, digest in fingerprint_references(references).items())


def fit_kind(trained_on: object, references: pa.Table | None) -> str:
    """Kind of a fit from a file: `oracle` if it is known to overlap with the references, else `file`."""
    return "oracle" if overlaps(trained_on, references) else "file"


def read_fitted(path: str, storage: Mapping[str, object], where: str) -> bytes:
    """The content of a file of fitted models.

    Args:
        path: local or `s3://`.
        storage: options for s3fs.
        where: option or config key that names it, for messages.

    Raises:
        ConfigError: there is no such file.
    """
    folder, name = locate(path, storage)
    try:
        return folder.read_bytes(name)
    except FileNotFoundError:
        missing = families.MISSING_FILE.of(ConfigError).saying(
            "no such file of fitted steps",
            "name the folder of a finished run, or a file of fitted steps (calibration/ in a run)",
        )
    except IsADirectoryError:
        missing = families.WRONG_KIND.of(ConfigError).saying(
            "this folder is not a run folder",
            "name the folder of a finished run, or a file of fitted steps (calibration/ in a run)",
        )
    raise missing(where=where)


Parts = Callable[[], Iterable[pa.Table]]

#: Training data of a step, by view and fold: a view is the scores as one fold's preceding steps make them; if none of these is
#: fitted, all folds have one view, 0.
Examples = Mapping[tuple[int, int], Labelled]


def fit_procedure(
    parts: Parts,
    procedure: Procedure,
    *,
    folds: int,
    own_threshold: bool,
    point: TwvParameters,
    trained_on: Mapping[str, object],
    query_ids: Iterable[str] = (),
) -> Procedure:
    """Fit steps, and thresholds unless the last step's threshold decides.

    Args:
        parts: yields the aligned lists (schema TRIALS), each with all rows of its queries; called a few times.
        procedure: the steps; the first is fitted on the lists' unchanged scores.
        folds: 1 fits and decides on all (oracle).
        own_threshold: decide by the last step's threshold, if it has one.
        point: of the threshold.
        trained_on: provenance for the file; the number of queries is added.
        query_ids: ids of all searched queries. The lists do not name those without detections and true occurrences, but
            their trials count, too.

    Raises:
        UserError: there is too little training data.
    """
    fitted = fit_models(parts, procedure, folds=folds, trained_on=trained_on, query_ids=query_ids)
    return fit_thresholds(fitted, parts, folds=folds, own_threshold=own_threshold, point=point)


def fit_models(
    parts: Parts,
    procedure: Procedure,
    *,
    folds: int,
    trained_on: Mapping[str, object],
    query_ids: Iterable[str] = (),
) -> Procedure:
    """Fit steps without thresholds; arguments as in `fit_procedure`."""
    seen, rows, schema = set[str](), 0, TRIALS
    for table in parts():
        seen.update(table["query_id"].unique().to_pylist())
        rows, schema = rows + table.num_rows, table.schema
    rest = silent(set(query_ids) - seen, schema)
    for number in fitted_steps(procedure):
        tables, coarse = chain(parts(), [rest]), rows > MOST
        procedure = with_models(
            procedure, number, [gather(table, procedure, number, folds, coarse=coarse) for table in tables], folds
        )
    return finished(procedure, folds, {**trained_on, "queries": len(seen)})


def finished(procedure: Procedure, folds: int, trained_on: Mapping[str, object]) -> Procedure:
    """A procedure whose steps are fitted."""
    models = procedure.models or ((),) * len(procedure.steps)
    return replace(procedure, models=models, fit="oracle" if folds == 1 else "crossfit", trained_on=trained_on)


def fitted_steps(procedure: Procedure) -> list[int]:
    """Numbers of the steps that are fitted."""
    return [number for number, step in enumerate(procedure.steps) if CALIBRATION[step.name].fits]


def silent(query_ids: Iterable[str], schema: pa.Schema) -> pa.Table:
    """Rows of searched queries with neither a detection nor a true occurrence."""
    return pa.Table.from_pylist([{"query_id": name, "doc_id": "", "channel": 0} for name in sorted(query_ids)], schema)


def gather(table: pa.Table, procedure: Procedure, number: int, folds: int, *, coarse: bool) -> Examples:
    """Training data of a list for a step, with scores from the preceding steps, which are fitted."""
    before, step = procedure.before(number), procedure.steps[number]
    views = range(folds if any(before.models) else 1)
    found = {}
    for fold, rows in by_fold(table, folds):
        for view in views:
            if len(views) == 1 or view != fold:
                scored = before.of_fold(view).scores(rows) if len(views) > 1 else before.scores(rows)
                examples = step.gather(scored, before.statistics_for(step), before.point)
                found[view, fold] = examples.coarse() if coarse else examples
    return found


def with_models(procedure: Procedure, number: int, gathered: Iterable[Examples], folds: int) -> Procedure:
    """A procedure with the models of a step, one for each fold, fitted on the other folds of all parts.

    Raises:
        UserError: there is too little training data.
    """
    sums: dict[tuple[int, int], list[tuple[int, Labelled]]] = {}
    for some in gathered:
        for key, examples in some.items():
            # Adds equal numbers of parts, as a binary counter: each row is sorted a few times.
            levels, level = sums.setdefault(key, []), 0
            while levels and levels[-1][0] == level:
                examples, level = levels.pop()[1] + examples, level + 1
            levels.append((level, examples))
    totals = {key: reduce(add, (one for _, one in levels)) for key, levels in sorted(sums.items())}
    check_folds({fold: one.occurring for (_, fold), one in totals.items()}, folds)
    several = any(procedure.before(number).models)
    models: list[Json] = []
    for k in range(folds):
        view = k if several else 0
        others = [one for key, one in totals.items() if key[0] == view and (folds == 1 or key[1] != k)]
        model = procedure.steps[number].fit(others, procedure.point)
        assert model is not None  # the entry demands a fit
        models.append(model)
    kept = list(procedure.models or ((),) * len(procedure.steps))
    kept[number] = tuple(models)
    return replace(procedure, models=tuple(kept))


def to_bytes(examples: Examples) -> bytes:
    """The content of a file of training data: NumPy's arrays."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    rest = []
    for place, (key, one) in enumerate(examples.items()):
        arrays |= {f"{place} {name}": getattr(one, name) for name in LABELLED_ROWS}
        rest.append([key, {name: value for name, value in vars(one).items() if name not in LABELLED_ROWS}])
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, rest=np.frombuffer(json.dumps(rest).encode(), np.uint8), **arrays)
    return out.getvalue()


def from_bytes(data: bytes) -> Examples:
    """Read examples that `to_bytes` wrote."""
    examples = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for place, ((view, fold), values) in enumerate(json.loads(arrays["rest"].tobytes())):
            rows = (arrays[f"{place} {name}"] for name in LABELLED_ROWS)
            examples[view, fold] = Labelled(*rows, **{**values, "systems": tuple(values["systems"])})
    return examples


class Counted(NamedTuple):
    """Counts of a part of a list, for thresholds.

    Attributes:
        low, high: least and greatest score.
        counts: by number, the tables EVENTS and CLASSES: of each fold where all folds have the same scores, otherwise of all
            other folds with that fold's scores.
    """

    low: float
    high: float
    counts: list[tuple[pa.Table, pa.Table]]


def count(table: pa.Table, procedure: Procedure, folds: int) -> Counted:
    """Count an aligned list for so many folds; 0: only find the limits."""
    alike, scored = _alike(procedure, folds), procedure.scores(table)
    fold, counts = folds_of(table, folds or 1), []
    for k in range(folds):
        rows = scored.filter(pa.array(fold == k)) if alike else table.filter(pa.array(fold != k))
        rows = rows if alike else procedure.of_fold(k).scores(rows)
        of_rows = check_part(count_events(rows), EVENTS.schema, EVENTS.key, EVENTS.name)
        counts.append((of_rows, count_classes(rows)))
    return Counted(*score_limits(scored["score"].drop_null()), counts)


def counted_for(procedure: Procedure, folds: int) -> list[list[int]]:
    """The numbers of the counts that each fold's threshold is found in."""
    if not _alike(procedure, folds) or folds == 1:
        return [[k] for k in range(folds)]
    return [[j for j in range(folds) if j != k] for k in range(folds)]


def _alike(procedure: Procedure, folds: int) -> bool:
    return folds < 2 or not any(procedure.models)


def fit_thresholds(
    procedure: Procedure, parts: Parts, *, folds: int, own_threshold: bool, point: TwvParameters
) -> Procedure:
    """Set score limits, and thresholds unless already set; arguments as in `fit_procedure`."""
    thresholds = known = known_thresholds(procedure, own_threshold)
    counted = [count(table, procedure, 0 if known else folds) for table in parts()]
    for chosen in () if known else counted_for(procedure, folds):
        events, classes = ([of_table(one.counts[k][name]) for one in counted for k in chosen] for name in (0, 1))
        thresholds += (threshold_of(events, classes, point),)
    low, high = score_limits([limit for one in counted for limit in one[:2]])
    return replace(procedure, thresholds=thresholds, low=low, high=high)


def known_thresholds(procedure: Procedure, own_threshold: bool) -> tuple[float | None, ...]:
    """The thresholds of a procedure that need not be fitted: those it has, or its last step's; empty: there are none."""
    last = procedure.own_threshold if own_threshold else None
    return procedure.thresholds or (() if last is None else (last,))


def threshold_of(events: Sequence[Source], classes: Sequence[Source], point: TwvParameters) -> float | None:
    """The threshold of the maximum value, for `score >= threshold` on this or another list, in one pass.

    If rejecting everything is best, it is the next double above the highest score. None without training data: no query has a
    reference, or none that has one a detection.

    Args:
        events, classes: tables EVENTS and CLASSES of all parts.
        point: of the value.
    """
    table = Merged(CLASSES.schema, CLASSES.key, CLASSES.adds, classes).table()
    table = table.filter(pc.greater(table["ntrue"], 0))
    blocks = event_blocks(Merged(EVENTS.schema, EVENTS.key, EVENTS.adds, events), refless=False)
    totals = Classes(*(table[name].to_numpy() for name in Classes._fields))
    try:
        best = best_point(curve_blocks(blocks, totals, trials=point.trials, beta=point.beta))
    except UserError:
        return None
    highest = best.point.threshold
    return highest if highest is None or not best.last else float(np.nextafter(highest, np.inf))
