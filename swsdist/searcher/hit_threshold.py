"""The threshold that gives hits of a search without a run their verdict.

Hits above it are `likely` if a run with references measured a precision of four fifths there (`report.answers.promise`). Else
they are `strong`: above a run's decision threshold, or above `STRONG_SCORE`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from swsdist.calibrate.procedure import Procedure, make_steps
from swsdist.config.search import Search
from swsdist.config.section import Section
from swsdist.core.codes import line_of
from swsdist.core.codes import searcher as codes
from swsdist.core.plain import parse_json
from swsdist.core.types import DETECTIONS, TRIALS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.inspection.loading import load_chain_run
from swsdist.pipeline.task import Values
from swsdist.registry.calibration_entries import unfitted
from swsdist.registry.registries import CALIBRATION, METHODS
from swsdist.report.answers.hits import LOWER_VERDICTS, STRONG_SCORE, Verdict
from swsdist.report.answers.promise import fit_promise, precision_at
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.provenance import calibration_file
from swsdist.stages.inputs.settings import as_text, describe, score_differences
from swsdist.stages.task_results import Fitted

_REMEDY = "name a run that was decided, or a file of its folder calibration/"


@dataclass(frozen=True)
class HitThreshold:
    """The least score of a likely, or strong, hit.

    Attributes:
        threshold: least final score.
        description: the same in words.
        verdict: of a hit above it.
        steps: from the search's scores to final ones; None: the search's are final.
        warnings: about the calibration.
    """

    threshold: float
    description: str
    verdict: Verdict = "strong"
    steps: Procedure | None = None
    warnings: tuple[str, ...] = ()

    def verdicts(self, results: pa.Table) -> list[Verdict]:
        """The verdict of each hit (DETECTIONS with the search's scores)."""
        scores = (results if self.steps is None else self.steps.scores(results))["score"].to_numpy()
        return [self.verdict if score >= self.threshold else LOWER_VERDICTS[self.verdict] for score in scores.tolist()]


def _need_list(names: Sequence[str], options: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether any step needs more than single hits: a whole list, statistics of queries, several systems, or speakers."""
    return any(
        step.of_list() or step.wants() or set(CALIBRATION[step.name].columns) - set(DETECTIONS.names)
        for step in make_steps(names, options)
    )


def scores_after(method: str, steps: Sequence[str]) -> str:
    """What the scores of a method are after steps of calibration, in words."""
    if not steps:
        return "posteriors" if METHODS[method].score == "posterior" else "minus distances"
    if list(steps) == ["q-norm"]:
        return "standard deviations above the mean of a query's candidates (q-norm)"
    return f"after {', '.join(steps)}"


def default_threshold(method: str, steps: Sequence[str]) -> HitThreshold:
    """The default threshold of a method's posteriors, or of its scores after steps: not fitted, with unknown precision."""
    if METHODS[method].score == "posterior" and not steps:
        return HitThreshold(0.5, "posterior at least 0.5; precision not measured")
    return HitThreshold(STRONG_SCORE, f"score at least {STRONG_SCORE:g}; precision not measured")


def threshold_of_run(chain_run: ChainRun, steps: tuple[str, ...]) -> HitThreshold | None:
    """The decision threshold of a run; None without decisions, or if it does not apply to scores after these steps."""
    text = chain_run.results("calibration", Fitted)
    training = (
        [threshold for threshold in text[0].thresholds if threshold is not None and math.isfinite(threshold)]
        if text
        else []
    )
    settings = chain_run.config.calibrate
    if not training or settings.unfitted != steps or _need_list(settings.fitted, settings.options):
        return None
    if not settings.fitted:
        least = sum(training) / len(training)
        return _with_measured_precision(
            HitThreshold(least, f"score at least {least:.3f}, the threshold of that run"), chain_run
        )
    (part,) = chain_run.table("calibration").parts
    try:
        limit = _threshold_from_steps(chain_run.run.read_bytes(part.name), part.name, "the threshold of that run")
    except FileNotFoundError:
        return None
    return _with_measured_precision(limit, chain_run)


def _with_measured_precision(limit: HitThreshold, chain_run: ChainRun) -> HitThreshold:
    """A threshold with its precision in the run; or the threshold of likely hits, if the run keeps the promise."""
    trials = pa.concat_tables([TRIALS.empty_table(), *chain_run.read("trials")])
    if (
        chain_run.config.calibrate.fit == "oracle"
        or protocol_of(chain_run.config.score).trials != "time"
        or not trials.num_rows
    ):
        return limit  # oracle scores use the references; other trials have no places
    results = fit_promise(trials)
    if results.is_kept:
        description = (
            f"score at least {results.threshold:.3f}; in that run (cross-validated over queries): "
            f"precision {results.right:.0%}, "
            f"recall {results.called:.0%} of the correct hits among each query's first ten"
        )
        return replace(limit, threshold=results.threshold, description=description, verdict="likely")
    quality = precision_at(trials, limit.threshold)
    return replace(limit, description=f"{limit.description}; precision in that run {quality.right:.0%}")


def threshold_from(
    path: str,
    search: Search,
    steps: tuple[str, ...],
    recipes: Iterable[Values],
    storage: Mapping[str, object] | None = None,
) -> HitThreshold:
    """The threshold of a calibration that the user names.

    Args:
        path: a file that `fit` wrote, below calibration/ of a run, or a run's folder.
        search, steps: the settings of the present search, and its steps of calibration.
        recipes: of the tracks of the searched store.
        storage: options for s3fs.

    Raises:
        ConfigError: no calibration there, or it needs other scores, or a whole list.
        StoreError: the run is not finished.
    """
    where = f"--calibration {path}"
    data = calibration_file(path, storage or {}, where)
    origin = "the threshold of" if Folder(path.rstrip("/"), storage or {}).exists("plan.json") else "fitted in"
    training = _training_scores(data)
    if "calibrate.steps" in training:
        names, options = json.loads(training["calibrate.steps"]), json.loads(training.get("calibrate.options", "{}"))
        first = unfitted(names, {name: CALIBRATION[name] for name in names})
        if tuple(names[:first]) != steps or _need_list(names[first:], options):
            scores = scores_after(search.method, steps)
            raise codes.CALIBRATION_SCORES(where=where, steps=", ".join(names) or "none", scores=scores)
    settings = as_text("search", Section.matters(search))
    if "features" in training:
        settings["features"] = _features_as_named(training["features"], list(recipes))
    other = score_differences(settings, training)
    odd = (line_of(codes.OTHER_CALIBRATION, path=path, differences="; ".join(other)),) if other else ()
    limit = _threshold_from_steps(data, where, f"{origin} {path}")
    if origin == "the threshold of" and not odd:  # a run with the same search settings
        limit = _with_measured_precision(limit, load_chain_run(Folder(path.rstrip("/"), storage or {})))
    return replace(limit, warnings=odd)


def _training_scores(data: bytes) -> dict[str, str]:
    """The settings of the scores that a calibration was fitted on; empty if the file lacks them."""
    try:
        results = parse_json(data)["trained_on"]["scores"]
    except (ValueError, KeyError, TypeError):
        return {}  # the reader of the file reports the error
    return results if isinstance(results, dict) else {}


def _features_as_named(training: str, recipes: list[Values]) -> str:
    """The features of a store as a config would name them: `known` if those made the store.

    A config names only the options that were set; a recipe has all.
    """
    named_features = json.loads(training)
    named_features = named_features if isinstance(named_features, list) else [named_features]

    def matches(values: Values, recipe: Values) -> bool:
        options = {**recipe["options"], **recipe.get("paths", {})}
        return bool(values["name"] == recipe["name"]) and all(
            key in options and options[key] == value for key, value in values["options"].items()
        )

    def all_match(values: Values, recipe: Values) -> bool:
        parts, stored = values.get("transforms", ()), recipe.get("transforms", ())
        same = values.get("dtype", "float32") == recipe.get("dtype", "float32")
        return same and matches(values, recipe) and len(parts) == len(stored) and all(map(matches, parts, stored))

    # An extractor may yield several tracks.
    distinct = [recipe for k, recipe in enumerate(recipes) if recipe not in recipes[:k]]
    if len(named_features) == len(distinct) and all(map(all_match, named_features, distinct)):
        return training
    return "; ".join(map(describe, distinct))


def _threshold_from_steps(data: bytes, where: str, origin: str) -> HitThreshold:
    """The threshold of fitted steps.

    Raises:
        ConfigError: not a calibration file, or its steps need a whole list.
    """
    fitted = Procedure.from_file(data, where)
    names = [step.name for step in fitted.steps]
    if _need_list(names, {step.name: step.options.model_dump() for step in fitted.steps}):
        raise codes.CALIBRATION_OF_LISTS(where=where, steps=", ".join(names))
    (least,) = fitted.thresholds
    assert least is not None  # from_file refuses a file without one
    if not names:
        return HitThreshold(least, f"score at least {least:.3f}, {origin}")
    kind = "log-likelihood ratio" if CALIBRATION[names[-1]].gives == "llr" else "probability"
    return HitThreshold(least, f"{kind} at least {least:.3f}, {origin}", steps=fitted)
