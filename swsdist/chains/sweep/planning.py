"""From the points of a sweep to the plans of a ledger.

Points that differ only in alpha, beta, and the last step of calibration (kst or sto) share one search, one alignment
and one fit. They become two plans: one searches and aligns, one of the chain `sweep` scores all of them. If no step is
fitted, the search's plan leaves the last step out. The same holds for points with a fitted threshold on scores that do
not depend on beta, if they differ only in beta and the fit. It requires that the measures are only ATWV, or for fitted
thresholds ATWV and MTWV. Every other point becomes a separate plan of the config's chain. Tasks that plans share are
done once in any case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from swsdist.calibrate.procedure import first_takes_sums, required_statistics
from swsdist.calibrate.steps.by_term import Method
from swsdist.chains.sweep.reading import CONFIG, Keys, SweepSpec, refuse_unused_sets
from swsdist.config import Config, config_from_dict, load_config
from swsdist.config.loader import Assignment, FileAssignment
from swsdist.config.model import Calibrate, Features
from swsdist.config.reading import folder_of
from swsdist.config.template import shown
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, StoreError, UserError, recast
from swsdist.core.fingerprint import fingerprint
from swsdist.corpora.documents import ENDINGS, kind_of
from swsdist.features.extractors import create, create_transform
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Chain
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.status import config_of, plan_of
from swsdist.registry.entries import is_chain
from swsdist.registry.registries import CALIBRATION, CHAINS
from swsdist.score.events import measure_names
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.inputs.corpus_documents import settings_of, stored
from swsdist.stages.inputs.provenance import files_of

#: The measures of the chain `sweep` for KST and STO, and for fitted thresholds.
RESCORED = ("atwv", "atwv_pmiss", "atwv_pfa")
FITTED = (*RESCORED, "mtwv", "mtwv_pmiss", "mtwv_pfa", "mtwv_threshold")

#: How a point is decided: by the thresholds of a method, or by a fitted one.
Decides = Method | Literal["fitted"]

#: Sections that change no result, or are the same for all points.
_NOT_MATTERS = {"run", "system", "executor", "storage", "strict", "force", "report"}


#: Keys of `corpus` that a store of features depends on.
_OF_STORE = {"documents", "speakers", "prefer", "audio"}

#: Keys of `corpus` that change a system but not its scoring setup; the protocol is in `score`. Of another corpus with the
#: queries, only the documents identify the queries.
_NOT_SCORED = dict.fromkeys(("examples", "speakers", "alignments", "parts", "cohort", "protocol"), True) | {
    "queries_from": {"statistics", "hours", "same_speakers", "speakers", "prefer"}
}


@dataclass(frozen=True)
class SweepPoint:
    """A point of a sweep.

    Attributes:
        number: in the file, from 1.
        keys: that differ from the base.
        name: of its plan, or the plan it would have; independent of its place in the file.
        fit: source of the fit: `crossfit`, `oracle`, `none` or a file.
        oracle: whether it uses the scored references.
        method: of its decisions, if the chain `sweep` scores it; None: the config's whole chain is run.
        scored_by: its scoring setup, as text by key; only points with the same setup are compared.
        protocol: the scoring rules, in one line.
    """

    number: int
    keys: Keys
    name: str
    fit: str
    oracle: bool
    method: Decides | None
    scored_by: Mapping[str, str]
    protocol: str


@dataclass(frozen=True)
class PlannedPoint(SweepPoint):
    """A point with its whole config."""

    config: Config


@dataclass(frozen=True)
class PointGroup:
    """Points that are scored from one search.

    Attributes:
        name: of the plan that searches and aligns.
        config: of that plan.
        points: of the group.
    """

    name: str
    config: Config
    points: list[PlannedPoint] = field(default_factory=list)

    @property
    def by_term(self) -> bool:
        """Whether KST or STO decides its points."""
        return self.points[0].method != "fitted"

    @property
    def of_candidates(self) -> bool:
        """Whether S(w) of its points is over all candidates, not over the list."""
        return self.by_term and first_takes_sums(self.points[0].config.calibrate)


@dataclass(frozen=True)
class Plans:
    """The plans of a sweep.

    Attributes:
        points: all, in order.
        single: points with a separate plan, by its name.
        groups: all others, by name.
    """

    points: tuple[PlannedPoint, ...]
    single: dict[str, PlannedPoint]
    groups: dict[str, PointGroup]

    @property
    def run(self) -> str:
        """The run folder."""
        return self.points[0].config.run


def plan_sweep(
    spec: SweepSpec, *, corpus: str | None = None, run: str | None = None, sets: tuple[str, ...] = ()
) -> Plans:
    """Make the config of each point: of the sweep's, or of the one that the point names.

    Args:
        spec: the sweep.
        corpus, run: a corpus file and run folder in place of the sweep's, relative to the working directory.
        sets: `a.b=value` each, for all points; they override the file's `set`, and points override both.

    Raises:
        ConfigError: a point's config is invalid or names missing files, with point and key in the message; or two points are
            the same.
    """
    refuse_unused_sets(spec, sets, corpus)
    points: list[PlannedPoint] = []
    groups: dict[str, PointGroup] = {}
    seen = set[str]()
    numbers: dict[str, int] = {}
    beside: dict[str, object] = {}
    measures = set(measure_names(spec.file.measures))
    for number, keys in enumerate(spec.points, 1):
        with _of_point(spec, number):
            config = _config(spec, keys, number, corpus, run, sets)
            method = _method(config, measures)
            if method in ("kst", "sto"):
                alpha_of(config.calibrate)
            rules, line = scored_by(config), protocol_of(config.score).describe()
        if is_chain(CHAINS, config.chain, "of_points"):
            raise families.UNSUPPORTED.of(ConfigError)(
                "points of a sweep cannot have the chain {chain}",
                "leave chain out",
                where=spec.where(number, "chain"),
                chain=config.chain,
            )
        name = fingerprint(settings_of(config))[:12]
        if name in numbers:
            raise families.DUPLICATE_NAME.of(ConfigError)(
                "points {first} and {second} are the same: {keys}",
                "leave one of them out",
                where=spec.where(number),
                first=numbers[name],
                second=number,
                keys=keys_text(keys),
            )
        numbers[name] = number
        config = _with_store(config, beside, spec.where(number))
        shared = f"search-{_group(config, method)[:12]}" if method is not None else ""
        _check_names(spec, number, config, shared or name, seen)
        fit = config.calibrate.fit
        points.append(PlannedPoint(number, keys, f"point-{name}", fit, fit == "oracle", method, rules, line, config))
        if shared:
            groups.setdefault(shared, PointGroup(shared, _searched(config, method))).points.append(points[-1])
    if spec.file.oracle_kst:
        if not any(group.by_term for group in groups.values()):
            raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                "oracle_kst needs points that end in kst or sto and measure only ATWV",
                "set measures: [{measures}], or leave oracle_kst out",
                where=spec.at("oracle_kst"),
                measures=", ".join(RESCORED),
            )
        for group in groups.values():
            points += _oracles(group, len(points)) if group.by_term else []
    return Plans(tuple(points), {point.name: point for point in points if point.method is None}, groups)


def keys_text(keys: Keys) -> str:
    """A point's keys in one line."""
    return ", ".join(f"{key}: {shown(value, 60)}" for key, value in keys.items()) or "the base"


def scored_by(config: Config) -> dict[str, str]:
    """The scoring setup: documents, queries, references, and the rules of counting."""
    corpus = config.corpus.model_dump(mode="json", exclude=_NOT_SCORED)
    values = {f"corpus.{key}": value for key, value in corpus.items()}
    # The rules themselves, so that a protocol's name and the same rules by key are equal.
    rules = asdict(protocol_of(config.score))
    values |= {f"score.{key}": value for key, value in rules.items() if key != "name"}
    values["score.speech"] = config.score.speech
    return {key: shown(value) for key, value in values.items()}


def _config(
    spec: SweepSpec, keys: Keys, number: int, corpus: str | None, run: str | None, sets: tuple[str, ...]
) -> Config:
    file = spec.file
    folder = folder_of(str(spec.path))
    base = [FileAssignment(f"{key}={_text(value)}", folder, spec.at("set", key)) for key, value in file.set.items()]
    point_values = [
        FileAssignment(f"{key}={_text(value)}", folder, spec.where(number, key))
        for key, value in keys.items()
        if key != CONFIG
    ]
    named = spec.config_of(number)
    # Relative to the working directory, as on the command line; those of the file are absolute.
    corpus, run = (path and _absolute(path) for path in (corpus or file.corpus, run or file.run))
    every: list[Assignment] = [*base, *sets, *point_values]
    if isinstance(named, str):
        return load_config(named, every, corpus=corpus, run=run)
    values: dict[str, object] = {"system": Path(spec.path).stem, **named}
    values |= {key: value for key, value in (("corpus", corpus), ("run", run)) if value is not None}
    origins = {place[1:]: origin for place, origin in spec.lines.origins.items() if place[:1] == ("config",)}
    return config_from_dict(values, folder, every, origins=origins)


def _check_names(spec: SweepSpec, number: int, config: Config, plan: str, seen: set[str]) -> None:
    """Check that a point's files exist, and that its components accept their options.

    Args:
        spec: the sweep.
        number: of the point.
        config: of the point; for a fusion, the configs of its systems are checked too.
        plan: a name for its plan, which several points may share.
        seen: checks that were done before; updated.

    Raises:
        ConfigError: with the point and the key.
    """
    if plan in seen:
        return
    seen.add(plan)

    def look_at(some: Config, named: str | None = None) -> None:
        for key, of, look in _name_checks(some):
            if (name := fingerprint(key, of)) not in seen:
                with _of_point(spec, number, named or key):
                    look()
                seen.add(name)

    look_at(config)
    with _of_point(spec, number, "options"):
        chain: Chain = CHAINS[config.chain].load()(config, Ledger(Folder(config.run, config.storage)))
        first = chain.prerequisites()
    for system in first.values():
        look_at(system, "options")


def _name_checks(config: Config) -> Iterator[tuple[str, object, Callable[[], object]]]:
    """Each checked key, the values that its validity depends on, and a check that raises UserError or StoreError."""
    corpus, storage = config.corpus, config.storage
    paths = {name: getattr(corpus, name) for name in ("documents", "queries", "spoken", "references", "text")}
    for name, path in {**paths, "queries_from": corpus.queries_from.documents}.items():
        kind = "documents" if name == "queries_from" else name
        if path is not None:
            yield f"corpus.{name}", path, partial(kind_of, path, kind, ENDINGS, storage)
    if not is_chain(CHAINS, config.chain, "joined"):
        for feature in config.features:
            yield "features", feature.model_dump(mode="json"), partial(_check_features, feature)
    for name, read in files_of(config).items():
        yield "calibrate.fit", name, read


def _check_features(features: Features) -> None:
    """Check an extractor and its transforms separately, since some must be fitted before they can be chained."""
    create(features.name, features.options)
    for transform in features.transforms:
        create_transform(transform.name, transform.options)


@contextmanager
def _of_point(spec: SweepSpec, number: int, of: str = "") -> Iterator[None]:
    """Add the point, and the key of the sweep's file, to errors of the point's config.

    Args:
        spec: the sweep.
        number: of the point.
        of: the key of the config that is checked; empty: the message names it.
    """
    try:
        yield
    except (UserError, StoreError) as error:
        if error.where and error.where.startswith((f"{spec.path}:", "--")):
            raise  # already added
        keys = spec.points[number - 1]
        every = [key for key in (*keys, *spec.file.set) if key != CONFIG]
        wrong = next((key for key in every if key in str(error)), None)
        if wrong is None and of:
            wrong = next(
                (key for key in every if f"{key}.".startswith(f"{of}.") or f"{of}.".startswith(f"{key}.")), None
            )
        at = spec.where(number, wrong) + (f" ({keys_text(keys)})" if wrong is None and keys else "")
        where = f"{at}: {error.where}" if error.where else at
        raise of_point(error, where) from None


def of_point(error: UserError | StoreError, where: str) -> ConfigError:
    """An error of a point's config, with the point's place in the sweep's file."""
    if isinstance(error, StoreError):
        return families.MISMATCH.of(ConfigError)(
            "the store of a point cannot be used: {detail}",
            "{fix}",
            where=where,
            detail=error.message,
            fix=error.remedy or "",
        )
    return recast(error, ConfigError, where=where)


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100


def _text(value: object) -> str:
    return shown(value).replace("$", "$$")


def _with_store(config: Config, numbers: dict[str, object], where: str) -> Config:
    """The config with a store for its features, since a store holds the features of one config, or the lattices of one
    chain's options. A chain with two stores has the second in the option `store`.

    A sweep in the folder of a run uses the run's store for the run's features.
    """
    run, features = config.run.rstrip("/"), stored(config)
    corpus = config.corpus.model_dump(mode="json", include=_OF_STORE)
    if config.searched_store != config.store and not config.options.get("store"):
        place = f"{run}/stores/{fingerprint(features, corpus, config.options)[:12]}"
        config = config.model_copy(update={"options": {**config.options, "store": place}})
    if config.index.store is not None:
        if numbers.setdefault(config.index.store, features) != features:
            raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                "points with different features cannot share a store",
                "leave index.store out: each kind of features then has a store in the run folder",
                where=f"{where}: index.store {config.index.store}",
            )
        return config
    if "" not in numbers:
        numbers[""] = _run_features(config)
    store = config.store
    if numbers[""] != {**features, "corpus": corpus}:
        store = f"{run}/stores/{fingerprint(features, corpus)[:12]}"
    return config.model_copy(update={"index": config.index.model_copy(update={"store": store})})


def _run_features(config: Config) -> object:
    """Features and corpus of the run in the sweep's folder, if any."""
    run = Folder(config.run, config.storage)
    try:
        earlier = config_of(run, plan_of(run))
    except StoreError:
        return None
    if earlier.index.store is not None:
        return None
    return {**stored(earlier), "corpus": earlier.corpus.model_dump(mode="json", include=_OF_STORE)}


def _method(config: Config, measures: set[str]) -> Decides | None:
    """How the chain `sweep` can score a point; None if it cannot."""
    settings, rules = config.calibrate, protocol_of(config.score)
    if not is_chain(CHAINS, config.chain, "searches") or not config.corpus.has_references:
        return None
    entries, fitted, steps = settings.entries(), settings.fitted, settings.steps
    if rules.trials != "time" or (fitted and settings.fit == "none"):
        return None
    own_threshold = steps and settings.threshold == "own" and measures <= set(RESCORED)
    if own_threshold and not required_statistics(settings) and (by_term := decides_by_term(fitted or steps)):
        return by_term
    # Scores independent of beta, without a step's threshold.
    store = any(entries[name].operating_point or entries[name].own_threshold for name in settings.steps)
    fits_here = settings.fit in ("crossfit", "oracle") and measures <= set(FITTED)
    return "fitted" if not fitted and not store and fits_here else None


def decides_by_term(steps: Sequence[str]) -> Method | None:
    """The method of the last of these steps, if it is KST or STO and no other depends on the operating point."""
    *before, last = steps
    if any(CALIBRATION[name].operating_point or CALIBRATION[name].own_threshold for name in before):
        return None
    return "kst" if last == "kst" else "sto" if last == "sto" else None


def _searched(config: Config, method: Decides | None) -> Config:
    """The config that searches and aligns for points of a method: scores before KST or STO."""
    settings = config.calibrate
    if method == "fitted" or settings.fitted:
        return config  # the last step comes after the alignment
    *before, last = settings.steps
    options = {name: values for name, values in settings.options.items() if name != last}
    changed = settings.model_copy(update={"steps": tuple(before), "options": options})
    return config.model_copy(update={"calibrate": changed})


def _group(config: Config, method: Decides) -> str:
    """A name for all that a search, its alignment and its fit depend on."""
    settings = config.calibrate
    values = config.model_dump(mode="json", exclude=_NOT_MATTERS | {"calibrate", "score"})
    score = config.score.model_dump(mode="json", exclude={"beta"})
    if method == "fitted":
        return fingerprint(values, score, settings.steps, settings.options)
    steps = settings.steps[:-1]
    options = {name: settings.options.get(name, {}) for name in steps}
    alpha = settings.alpha if any(name in ("kst", "sto") for name in steps) else None
    return fingerprint(values, score, steps, options, settings.fit, settings.folds, alpha)


def alpha_of(settings: Calibrate) -> float:
    """Alpha of the last step.

    Raises:
        ConfigError: not a number above 0.
    """
    spec = settings.options.get(settings.steps[-1], {}).get("alpha", settings.alpha)
    if not isinstance(spec, int | float) or isinstance(spec, bool) or not spec > 0:
        raise families.INVALID_VALUE(
            "{key} is {value}", "give a number above 0", where="calibrate.options", key="alpha", value=shown(spec)
        )
    return float(spec)


def _oracles(group: PointGroup, before: int) -> list[PlannedPoint]:
    """Oracle KST for each beta of a group."""
    points: dict[object, PlannedPoint] = {}
    for point in list(group.points):
        beta = point.config.score.beta
        if beta in points:
            continue
        steps = [*point.config.calibrate.steps[:-1], "oracle-kst"]
        keys: Keys = {key: value for key, value in point.keys.items() if key != "calibrate.alpha"}
        name = f"point-{fingerprint(point.name, 'oracle-kst')[:12]}"
        number = before + len(points) + 1
        keys["calibrate.steps"] = steps
        points[beta] = replace(point, number=number, keys=keys, name=name, oracle=True, method="oracle-kst")
    group.points.extend(points.values())
    return list(points.values())
