"""Probabilities that hits of a search are true (`swsdist.calibrate.likelihood`), by references or other words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.likelihood import WORDS, Likelihood, Prior, prior_of
from swsdist.config.section import Section
from swsdist.core.arrays import Floats
from swsdist.core.codes import families, line_of
from swsdist.core.codes import searcher as codes
from swsdist.core.errors import ConfigError
from swsdist.core.types import TRIALS
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.status import load_chain_run, load_partial_run
from swsdist.registry.registries import CALIBRATION, METHODS
from swsdist.score.measures.protocol import protocol_of
from swsdist.searcher.searcher import scores_after
from swsdist.stages.inputs.corpus_documents import as_text, score_differences
from swsdist.store.manifest import load

if TYPE_CHECKING:
    from swsdist.searcher.searcher import Searcher

#: True hits, and queries with references, that a prior is fitted to at least.
_HITS, _QUERIES = 20, 5
#: Steps whose scores the package's priors know: standard deviations above a query's mean.
_KNOWN = ("q-norm", "speaker-norm")


class HitLikelihood(NamedTuple):
    """The probability of hits by their scores.

    Attributes:
        prior: of a word's line; None: scores are probabilities, or nobody knows.
        description: what it rests on.
        are_probabilities: whether scores are.
        warnings: of a run with other scores.
    """

    prior: Prior | None
    description: str
    are_probabilities: bool = False
    warnings: tuple[str, ...] = ()

    def of(self, scores: Floats) -> list[float | None]:
        """The probability of each hit that nobody judged; None where it is not known."""
        if self.prior is not None:
            return [*Likelihood(*self.prior, judged=0).likely(scores).tolist()]
        return [float(score) if self.are_probabilities else None for score in scores]

    @property
    def meaning(self) -> str:
        """The words for hits, with what they rest on."""
        known = self.prior is not None or self.are_probabilities
        words = ", ".join(f"{word} from {least:.0%}" for word, least in WORDS.items() if least)
        return f"{words}, {self.description}" if known else self.description


def hit_likelihood(searcher: Searcher, calibration: str | None = None) -> HitLikelihood:
    """The probability of a searcher's hits by their scores.

    Args:
        searcher: of it.
        calibration: a finished run with references; None: that of the searcher, if it searches as the run did.

    Raises:
        ConfigError: the run has no references, too few hits, or other scores.
        StoreError: the run is not finished.
    """
    search, steps = searcher.settings, searcher.calibrate.steps
    method = METHODS[search.method]
    if calibration is not None:
        chain_run = load_chain_run(Folder(calibration.rstrip("/")))
        prior = _fitted(chain_run, steps)
        if prior is None:
            raise families.UNSUPPORTED.of(ConfigError)(
                (
                    "the run does not say how likely hits are: it has too few with references, or other "
                    "scores than {scores}"
                ),
                (
                    "name a run of 5 queries with references and 20 correct hits at least, with the same "
                    "first steps of calibration"
                ),
                where=f"--calibration {calibration}",
                scores=scores_after(search.method, steps),
            )
        differences = "; ".join(_differences(searcher, chain_run))
        odd = (line_of(codes.OTHER_CALIBRATION, path=calibration, differences=differences),) if differences else ()
        return HitLikelihood(prior, f"by the references of {calibration}", warnings=odd)
    if (CALIBRATION[steps[-1]].gives if steps else method.score) == "posterior":
        return HitLikelihood(None, "by their scores", are_probabilities=True)
    why = ""
    if searcher.setup.run is not None and not searcher.steps_left_out:
        own_run = load_partial_run(*searcher.setup.run)
        if not _differences(searcher, own_run):
            fitted = _fitted(own_run, steps)
            if fitted is not None:
                return HitLikelihood(fitted, "by the references of that run")
            why = f" (the run has fewer than {_QUERIES} queries or {_HITS} hits with references)"
    if method.queries == "text" or not steps or steps[0] not in _KNOWN:
        return HitLikelihood(None, "how likely hits are is not known")
    searched = {term.track for term in search.terms()}
    tracks = [track for track in searcher.store.manifest.tracks if searched & {None, track.name}]
    return HitLikelihood(prior_of({str(track.recipe["name"]) for track in tracks}), f"by words of another corpus{why}")


def _differences(searcher: Searcher, chain_run: ChainRun) -> list[str]:
    """How a search differs from that of a run, but for how examples are joined."""
    here, there = (as_text("search", Section.matters(each)) for each in (searcher.settings, chain_run.config.search))
    stored = load(Folder(chain_run.config.store, chain_run.config.storage))
    for settings, manifest in ((here, searcher.store.manifest), (there, stored)):
        settings.pop("search.examples", None)
        if manifest is not None:
            settings["features"] = "; ".join(sorted(str(track.recipe) for track in manifest.tracks))
    return score_differences(here, there)


def _fitted(chain_run: ChainRun, steps: tuple[str, ...]) -> Prior | None:
    """The prior of a run's words; None where it has too few hits with references, other scores or trials without places."""
    config = chain_run.config
    other = config.calibrate.unfitted != steps or protocol_of(config.score).trials != "time"
    if other or chain_run.chain.source("aligned") is None:
        return None
    trials = pa.concat_tables([TRIALS.empty_table(), *chain_run.read("aligned")])
    referenced = pc.unique(trials["query_id"].filter(trials["ref_start"].is_valid()))
    hits = trials.filter(pc.and_(trials["score"].is_valid(), pc.is_in(trials["query_id"], value_set=referenced)))
    truths = hits["ref_start"].is_valid().to_numpy()
    if len(referenced) < _QUERIES or truths.sum() < _HITS:
        return None
    words = hits["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return Prior.of_words(words.astype(np.int64), hits["score"].to_numpy(), truths)
