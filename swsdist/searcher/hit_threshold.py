"""What a hit of a search without a run is called, by its score: `likely` where a run with references has measured that four
fifths of such hits are right (`report.answers.promise`); else `strong`, above what decided in a run, or stands far out.
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
from swsdist.core.types import DETECTIONS, TRIALS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.inspection.loading import load_chain_run
from swsdist.pipeline.task import Values
from swsdist.registry.registries import CALIBRATION
from swsdist.report.answers.hits import LOWER_VERDICTS, STRONG_SCORE, Verdict
from swsdist.report.answers.promise import fit_promise, precision_at
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.provenance import calibration_file
from swsdist.stages.inputs.settings import as_text, describe, score_differences
from swsdist.stages.task_results import Fitted

_REMEDY = "name a run that was decided, or a file of its folder calibration/"


@dataclass(frozen=True)
class HitThreshold:
    """What makes a hit likely, or strong.

    Attributes:
        threshold: least final score of such a hit.
        description: the same in words.
        verdict: of a hit above it.
        steps: that make final scores of q-normed ones; None: these are final.
        warnings: what is odd about it.
    """

    threshold: float
    description: str
    verdict: Verdict = "strong"
    steps: Procedure | None = None
    warnings: tuple[str, ...] = ()

    def verdicts(self, found: pa.Table) -> list[Verdict]:
        """What each hit of DETECTIONS is called, with q-normed scores."""
        scores = (found if self.steps is None else self.steps.scores(found))["score"].to_numpy()
        return [self.verdict if score >= self.threshold else LOWER_VERDICTS[self.verdict] for score in scores.tolist()]


def _need_list(names: Sequence[str], options: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether some steps look at more than a hit: at a whole list, at the query, at several systems, or speakers."""
    return any(
        step.of_list() or step.wants() or set(CALIBRATION[step.name].columns) - set(DETECTIONS.names)
        for step in make_steps(names, options)
    )


def default_threshold() -> HitThreshold:
    """By the query's own scores: nothing was fitted, and nobody knows how many are right."""
    return HitThreshold(
        STRONG_SCORE, f"a score of {STRONG_SCORE:g}; how many of such hits are right was not measured here"
    )


def threshold_of_run(chain_run: ChainRun) -> HitThreshold | None:
    """By what decided in a run; None where nothing did, or where that cannot be applied to the hits of another search."""
    told = chain_run.results("fit", Fitted)
    known = [one for one in told[0].thresholds if one is not None and math.isfinite(one)] if told else []
    settings = chain_run.config.calibrate
    if not known or settings.unfitted != ("q-norm",) or _need_list(settings.fitted, settings.options):
        return None
    if not settings.fitted:
        least = sum(known) / len(known)
        return _with_measured_precision(HitThreshold(least, f"a score of {least:.3f} decided in that run"), chain_run)
    (part,) = chain_run.parts("fit", "calibration")
    try:
        limit = _threshold_from_steps(chain_run.run.read_bytes(part.name), part.name, "decided in that run")
    except FileNotFoundError:
        return None
    return _with_measured_precision(limit, chain_run)


def _with_measured_precision(limit: HitThreshold, chain_run: ChainRun) -> HitThreshold:
    """The same with what was measured in the run; with the threshold of likely hits, where these keep the promise."""
    trials = pa.concat_tables([TRIALS.empty_table(), *chain_run.read("align.final", "trials")])
    if (
        chain_run.config.calibrate.fit == "oracle"
        or protocol_of(chain_run.config.score).trials != "time"
        or not trials.num_rows
    ):
        return limit  # scores know what is right; or trials do not say which place is
    found = fit_promise(trials)
    if found.is_kept:
        description = (
            f"a score of {found.threshold:.3f}; in that run {found.right:.0%} of such hits were right, by thresholds of other "
            f"queries, and {found.called:.0%} of the right ones among each query's first ten were called so"
        )
        return replace(limit, threshold=found.threshold, description=description, verdict="likely")
    there = precision_at(trials, limit.threshold)
    return replace(limit, description=f"{limit.description}; {there.right:.0%} of such hits were right in it")


def threshold_from(
    path: str, search: Search, recipes: Iterable[Values], storage: Mapping[str, object] | None = None
) -> HitThreshold:
    """By a calibration that the user names.

    Args:
        path: a file that `fit` wrote, below calibration/ of a run, or a run's folder.
        search: the section by which is searched now.
        recipes: of the tracks of the store that is searched.
        storage: options for s3fs.

    Raises:
        ConfigError: there is none, or it is of scores that a search without a run does not have.
        StoreError: the run is not finished.
    """
    where = f"--calibration {path}"
    data = calibration_file(path, storage or {}, where)
    made = "decided in" if Folder(path.rstrip("/"), storage or {}).exists("plan.json") else "was fitted in"
    known = _training_scores(data)
    if "calibrate.steps" in known:
        steps = json.loads(known["calibrate.steps"])
        if steps[:1] != ["q-norm"] or _need_list(steps[1:], json.loads(known.get("calibrate.options", "{}"))):
            raise codes.CALIBRATION_SCORES(where=where, steps=", ".join(steps))
    mine = as_text("search", Section.matters(search))
    if "features" in known:
        mine["features"] = _features_as_named(known["features"], list(recipes))
    other = score_differences(mine, known)
    odd = (line_of(codes.OTHER_CALIBRATION, path=path, differences="; ".join(other)),) if other else ()
    limit = _threshold_from_steps(data, where, f"{made} {path}")
    if made == "decided in" and not odd:  # it is a run, and was searched alike
        limit = _with_measured_precision(limit, load_chain_run(Folder(path.rstrip("/"), storage or {})))
    return replace(limit, warnings=odd)


def _training_scores(data: bytes) -> dict[str, str]:
    """What the scores depended on that something was fitted on; nothing where the file does not say, or is none."""
    try:
        found = json.loads(data)["trained_on"]["scores"]
    except (ValueError, KeyError, TypeError):
        return {}  # who reads the file says what is wrong with it
    return found if isinstance(found, dict) else {}


def _features_as_named(known: str, recipes: list[Values]) -> str:
    """The features of a store in the words of a config; those that are known where they made it.

    A config names the options that somebody gave, and a recipe has them all.
    """
    theirs = json.loads(known)
    theirs = theirs if isinstance(theirs, list) else [theirs]

    def made(one: Values, recipe: Values) -> bool:
        options = {**recipe["options"], **recipe.get("paths", {})}
        return bool(one["name"] == recipe["name"]) and all(
            key in options and options[key] == value for key, value in one["options"].items()
        )

    def all_made(one: Values, recipe: Values) -> bool:
        parts, stored = one.get("transforms", ()), recipe.get("transforms", ())
        return made(one, recipe) and len(parts) == len(stored) and all(map(made, parts, stored))

    # An extractor may yield several tracks.
    distinct = [recipe for k, recipe in enumerate(recipes) if recipe not in recipes[:k]]
    if len(theirs) == len(distinct) and all(map(all_made, theirs, distinct)):
        return known
    return "; ".join(map(describe, distinct))


def _threshold_from_steps(data: bytes, where: str, made: str) -> HitThreshold:
    """By what was fitted in a run.

    Raises:
        ConfigError: it is no such file, or its steps need a whole list, and no hits alone.
    """
    fitted = Procedure.from_file(data, where)
    names = [step.name for step in fitted.steps]
    if _need_list(names, {step.name: step.options.model_dump() for step in fitted.steps}):
        raise codes.CALIBRATION_OF_LISTS(where=where, steps=", ".join(names))
    (least,) = fitted.thresholds
    assert least is not None  # from_file refuses a file without one
    if not names:
        return HitThreshold(least, f"a score of {least:.3f} {made}")
    kind = "log-likelihood ratio" if CALIBRATION[names[-1]].gives == "llr" else "probability"
    return HitThreshold(least, f"a {kind} of {least:.3f} {made}", steps=fitted)
