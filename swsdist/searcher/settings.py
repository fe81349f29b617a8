"""The search settings of a run, for further searches of its store, even after the store changed or a task failed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from swsdist.config.calibration import Calibrate
from swsdist.config.corpus import Corpus
from swsdist.config.model import Config, Reduce
from swsdist.config.search import Search
from swsdist.core.codes import line_of
from swsdist.core.codes import searcher as codes
from swsdist.core.codes import store as store_codes
from swsdist.features.ssl.extractor import search_of
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Chain, ChainInputs, Step
from swsdist.pipeline.inspection.status import config_of
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.ledger import load_plans
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CALIBRATION, CHAINS, METHODS
from swsdist.stages.steps import steps as search_steps
from swsdist.store.manifest import Manifest, load, words_store
from swsdist.store.reading import Store

#: Config of the steps after the search, without a run.
DEFAULTS = Config(run=".", corpus=Corpus(documents="."))


class SearchSetup(NamedTuple):
    """How a store is searched.

    Attributes:
        store: its folder.
        options: keys of the config's section `search`.
        trim: whether recorded queries are cut to their speech.
        warnings: about settings that were not taken over, and an incomplete store.
        run: the run of these settings, and its plan; None: no run, or several plans.
        config: of the steps after the search; None: no run, or plans that differ.
        terms: how written queries become labels: keys of `options.terms` of the chain lattices.
        calibrate: the run's section; None: no run, or plans that differ in it.
    """

    store: str
    options: Mapping[str, object]
    trim: bool
    warnings: tuple[str, ...] = ()
    run: tuple[Folder, str] | None = None
    config: Config | None = None
    terms: Mapping[str, object] = {}
    calibrate: Calibrate | None = None

    def steps(self, config: Config) -> Sequence[Step]:
        """The steps of the run's chain for a config; without one that searches, those that chains of queries share."""
        if self.config is not None:
            chain: Chain = CHAINS[config.chain].load()(config, Ledger(Folder(config.run, config.storage)))
            if chain.source("scored") is not None and chain.source("candidates") is not None:
                return chain.steps
        return Chain(config.chain, search_steps(config), ChainInputs()).steps

    def usable_steps(self) -> tuple[dict[str, object], tuple[str, ...]]:
        """Keys of the section `calibrate` with the run's steps before the first that is fitted, or needs a cohort or the
        number of trials; and the others. No keys, if no step remains.
        """
        if self.calibrate is None:
            return {}, ()
        names = self.calibrate.steps
        others = [
            CALIBRATION[name].fits or CALIBRATION[name].cohort or CALIBRATION[name].operating_point for name in names
        ]
        kept = names[: [*others, True].index(True)]
        if not kept and names:
            return {}, names
        options = {name: options for name, options in self.calibrate.options.items() if name in kept}
        return {"steps": kept, "options": options}, names[len(kept) :]


def scores_after(method: str, steps: Sequence[str]) -> str:
    """What the scores of a method are after steps of calibration, in words."""
    if not steps:
        return "posteriors" if METHODS[method].score == "posterior" else "minus distances"
    if list(steps) == ["q-norm"]:
        return "standard deviations above the mean of a query's candidates (q-norm)"
    return f"after {', '.join(steps)}"


def setup_of(target: str | Store, texts: bool = False) -> SearchSetup:
    """The store and the search settings for a store, or the folder of one or of a run.

    Args:
        target: a store, its folder, or a run's.
        texts: for texts: of a store of frames that has words, these.

    Raises:
        StoreError: the run's plan cannot be read.
        UserError: the run has several plans, of several stores; or its queries are lattices.
    """
    storage = {} if isinstance(target, str) else target.folder.storage
    setup = _setup_of(target) if isinstance(target, str) else SearchSetup(target.folder.root, {}, True)
    if texts and (words := words_store(setup.store, storage)) is not None:
        setup = SearchSetup(words, _default_options(load(Folder(words, storage))), True, terms=setup.terms)
    if not isinstance(target, str):
        return setup
    now = load(Folder(setup.store))
    if now is None or now.progress is None:
        return setup
    text = line_of(codes.INCOMPLETE_STORE, progress=now.progress)
    return setup._replace(warnings=(*setup.warnings, text))


def store_of_words(target: str) -> Store:
    """The store of words of a store or a run: its own, or that inside of its store of frames.

    Raises:
        StoreError: there is none, or the run's plan cannot be read.
        UserError: as `setup_of`.
    """
    store = Store(Folder(setup_of(target, texts=True).store))
    if store.manifest.kind == "frames" or "decoding" in store.manifest.tracks[0].recipe:
        raise store_codes.NO_WORDS_IN_STORE(where=target)
    return store


def _default_options(manifest: Manifest | None) -> dict[str, object]:
    """The best way to search a store that nobody has searched: the method that reads its kind; of frames, those of encoders, or
    MFCC and the posteriors of a mixture of them, where it has these (`swsdist/config/folder.yaml`).
    """
    kind = Search().method if manifest is None else manifest.kind
    if reading := [name for name in METHODS if METHODS[name].reads == kind and kind != METHODS[Search().method].reads]:
        return {"method": reading[0]}
    tracks = () if manifest is None else manifest.tracks
    recipes: dict[str, Any] = {track.name: track.recipe for track in tracks}
    if encoded := [name for name, recipe in recipes.items() if recipe["name"] == "ssl" and recipe.get("kind") is None]:
        return search_of(encoded, alone=len(encoded) == len(recipes))
    last = {name: recipe.get("transforms", [])[-1:] for name, recipe in recipes.items()}
    plain = [name for name, recipe in recipes.items() if recipe["name"] == "mfcc" and not last[name]]
    mixed = [
        name
        for name, transforms in last.items()
        if transforms and (transforms[0]["name"], transforms[0]["options"].get("values")) == ("gmm", "logits")
    ]
    if len(plain) != 1 or len(mixed) != 1:
        return {}
    return {"distance": "cosine-squared", "streams": [{"track": name} for name in (*plain, *mixed)]}


def _setup_of(target: str) -> SearchSetup:
    run = Folder(target.rstrip("/"))
    if run.exists("manifest.json") or not run.exists("plan.json"):
        return SearchSetup(target, _default_options(load(run)), True)
    configs = {name: config_of(run, plan) for name, plan in load_plans(run).items()}
    configs = {name: config for name, config in configs.items() if not is_chain(CHAINS, config.chain, "of_points")}
    if fused := next((config for config in configs.values() if is_chain(CHAINS, config.chain, "joined")), None):
        raise codes.FUSION_WITHOUT_STORE(where=run.path(), chain=fused.chain)
    if METHODS[next(iter(configs.values())).search.method].queries == "lattices":
        raise codes.SEARCH_OF_DECODED(where=run.path())
    stores = list(dict.fromkeys(config.searched_store for config in configs.values()))
    if len(stores) > 1:
        raise codes.SEVERAL_STORES(where=run.path(), plans=len(configs), count=len(stores), stores=", ".join(stores))
    settings = [config.search.model_dump(mode="json", exclude_defaults=True) for config in configs.values()]
    calibrate, *others = (config.calibrate for config in configs.values())
    trims = {config.queries.trim != "none" for config in configs.values()}
    (name, config), *_ = configs.items()
    terms = config.chain_options.terms_in(config.options)
    if len(configs) == 1:
        return SearchSetup(
            stores[0], settings[0], trims.pop(), run=(run, name), config=config, terms=terms, calibrate=calibrate
        )
    chains = [[each.chain, each.options] for each in configs.values()]
    if len({json.dumps(each, sort_keys=True) for each in zip(settings, chains, strict=True)}) > 1 or len(trims) > 1:
        return SearchSetup(stores[0], {}, True, (line_of(codes.SETTINGS_DIFFER, count=len(configs)),))
    if any((other.steps, other.options) != (calibrate.steps, calibrate.options) for other in others):
        return SearchSetup(stores[0], settings[0], trims.pop(), (line_of(codes.STEPS_DIFFER, count=len(configs)),))
    if any(each.reduce != config.reduce for each in configs.values()):
        config = config.model_copy(update={"reduce": Reduce()})
    return SearchSetup(stores[0], settings[0], trims.pop(), config=config, terms=terms, calibrate=calibrate)
