"""A sweep's file: the base config, the points, the measures, and the objective.

YAML as strict as a config's; paths are relative to the file:

    config: ../mboshi-dev.yaml        # or the config's keys; or lists of any program
    run: ../../runs/alpha
    set: {calibrate.fit: crossfit}    # of all points
    points:
      grid:
        calibrate.steps: [[q-norm, logistic, kst], [q-norm, logistic, sto]]
        calibrate.alpha: {from: 1, to: 3, step: 0.1}
    measures: [atwv, atwv_pmiss, atwv_pfa]

Points are a grid, a list, and random draws of values of config keys, written as for `--set`: `search.distance`. Points
of different systems or corpora name their configs, by the key `config`; `grid` may be a list of grids.

The values of a key in a grid are a list; or a range,

    {from: 1, to: 3, step: 0.1}                both ends included, free of the rounding of repeated addition
    {from: 1, to: 1000, count: 7, scale: log}  equally spaced, or with scale: log in equal ratios

or all subsets of a list, `{subsets: [a, b, c], least: 1, most: 2}`, in the list's order, the small ones first.

A random draw takes each key from a distribution: `{uniform: [1, 3]}`, `{log-uniform: [1, 1000]}`, `{integer: [1, 8]}`,
`{choice: [a, b]}`. Draw k depends only on the seed, k and the key's name, so more draws do not change
earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, ValidationError, field_validator

from swsdist.config.reading import Draft, Origin, absolute, folder_of, read, text_of
from swsdist.config.section import Section
from swsdist.config.template import Place, dotted, shown
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.codes import fuse as codes
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import stable_hash
from swsdist.core.text import suggestion
from swsdist.registry.registries import quantities
from swsdist.score.compare.paired import DRAWS
from swsdist.score.events import measure_names

#: A point: the keys that differ from the base, with their values.
Keys = dict[str, object]


@dataclass(frozen=True)
class SweepPlace:
    """A place in a sweep's file for messages: file, line and key.

    Attributes:
        origins: of all values of the file, by their places.
        place: its key, after the keys above it.
    """

    origins: Mapping[Place, Origin]
    place: Place = ()

    def below(self, *parts: int | str) -> SweepPlace:
        """A place below this one."""
        return SweepPlace(self.origins, (*self.place, *parts))

    @property
    def line(self) -> str:
        """File and line of the place, or of the nearest place above."""
        place = self.place
        while place not in self.origins:
            place = place[:-1]
        return str(self.origins[place])

    def __str__(self) -> str:
        return f"{self.line}, {dotted(self.place)}" if self.place else self.line


#: Most points of a grid; more come from a wrong range.
MOST_POINTS = 100_000

_RANGE, _SUBSETS = {"from", "to", "step", "count", "scale"}, {"subsets", "least", "most"}


def grid_points(keys: Mapping[str, object], where: SweepPlace) -> Iterator[Keys]:
    """Every combination of the values of some keys, the last key the fastest.

    Args:
        keys: by name, values as in the module's docstring.
        where: of the keys, for messages.

    Raises:
        ConfigError: a key has no values, or a range is invalid.
    """
    if not keys:
        raise families.EMPTY_INPUT.of(ConfigError)(
            "the grid is empty", "name at least one key with its values", where=str(where)
        )
    several = [_values(values, where.below(name)) for name, values in keys.items()]
    size = math.prod(len(values) for values in several)
    if size > MOST_POINTS:
        raise families.TOO_LARGE.of(ConfigError)(
            "the grid has {count} points, more than {limit}",
            "take coarser steps, or draw points at random (points.random)",
            where=str(where),
            count=size,
            limit=MOST_POINTS,
        )
    for values in product(*several):
        yield dict(zip(keys, values, strict=True))


def list_points(rows: Sequence[object], where: SweepPlace) -> Iterator[Keys]:
    """Points of a list.

    Raises:
        ConfigError: a point is not a mapping of keys to values, or the list is empty.
    """
    if not rows:
        raise families.EMPTY_INPUT.of(ConfigError)(
            "the list is empty", "name at least one point, {{key: value}}", where=str(where)
        )
    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise families.INVALID_VALUE(
                "{value} is not a point",
                "write it as {{key: value, ...}}",
                where=str(where.below(k)),
                value=shown(row, 60),
            )
        yield {str(name): value for name, value in row.items()}


def draw_points(draws: int, seed: int, keys: Mapping[str, object], where: SweepPlace) -> Iterator[Keys]:
    """Points at random.

    Args:
        draws: how many.
        seed: not negative.
        keys: by name, distributions as in the module's docstring.
        where: of the keys, for messages.

    Raises:
        ConfigError: an invalid distribution.
    """
    if not keys:
        raise families.EMPTY_INPUT.of(ConfigError)(
            "no keys to draw", "name at least one key with its distribution", where=str(where)
        )
    by_key = {name: _distribution(value, where.below(name)) for name, value in keys.items()}
    for k in range(draws):
        yield {
            name: draw(np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k, stable_hash(name)]))))
            for name, draw in by_key.items()
        }


def _values(value: object, where: SweepPlace) -> list[object]:
    if isinstance(value, list | tuple):
        results = list(value)
    elif isinstance(value, Mapping) and "subsets" in value:
        results = _subsets(value, where)
    elif isinstance(value, Mapping) and "from" in value:
        results = _range(value, where)
    else:
        raise families.INVALID_VALUE(
            "{value} is neither a list nor a range of values",
            "give a list, {{from: 1, to: 3, step: 0.1}}, {{from: 1, to: 9, count: 3}}, or {{subsets: [a, b]}}",
            where=str(where),
            value=shown(value, 60),
        )
    if not results:
        raise families.EMPTY_INPUT.of(ConfigError)(
            "this key has no values", "give at least one value", where=str(where)
        )
    return results


def _subsets(value: Mapping[str, object], where: SweepPlace) -> list[object]:
    _refuse_unknown_keys(value, _SUBSETS, where)
    members = value["subsets"]
    if not isinstance(members, list | tuple):
        raise families.INVALID_VALUE("subsets needs a list", "write {{subsets: [a, b, c]}}", where=str(where))
    least, most = value.get("least", 1), value.get("most", len(members))
    if not (isinstance(least, int) and isinstance(most, int) and 0 <= least <= most <= len(members)):
        raise families.INVALID_VALUE(
            "{members} members have no subsets of {least} to {most} members",
            "give least and most between 0 and the number of members",
            where=str(where),
            least=shown(least),
            most=shown(most),
            members=len(members),
        )
    many = sum(math.comb(len(members), size) for size in range(least, most + 1))
    if many > MOST_POINTS:
        raise families.TOO_LARGE.of(ConfigError)(
            "{count} subsets, more than {limit}",
            "name fewer members, or set least and most closer together",
            where=str(where),
            count=many,
            limit=MOST_POINTS,
        )
    return [list(some) for size in range(least, most + 1) for some in combinations(members, size)]


def _range(given: Mapping[str, object], where: SweepPlace) -> list[object]:
    _refuse_unknown_keys(given, _RANGE, where)
    if "to" not in given:
        raise families.MISSING_INPUT.of(ConfigError)(
            "a range needs `to`", "give its end, as in {{from: 1, to: 3, step: 0.1}}", where=str(where)
        )
    first, last = _number(given.get("from"), where, "from"), _number(given.get("to"), where, "to")
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise families.INVALID_VALUE(
            "scale is {value}", "set scale to linear or log", where=str(where), value=shown(scale)
        )
    if ("step" in given) == ("count" in given):
        raise families.CONFLICTING_OPTIONS.of(ConfigError)(
            "a range needs either step or count", "give step, or count", where=str(where)
        )
    if "step" in given:
        step = _number(given["step"], where, "step")
        many = int((Decimal(str(last)) - Decimal(str(first))) / Decimal(str(step))) + 1 if step > 0 else 0
        if scale == "log" or not 0 < many <= MOST_POINTS or last < first:
            raise families.INVALID_VALUE(
                "no values from {first:g} to {last:g} by {step:g}",
                "give from below to, and a step above 0; scale: log goes with count",
                where=str(where),
                first=first,
                last=last,
                step=step,
            )
        exact = [Decimal(str(first)) + k * Decimal(str(step)) for k in range(many)]
        integral = all(isinstance(given[name], int) for name in ("from", "to", "step"))
        return [int(value) if integral else float(value) for value in exact]
    count = given["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_POINTS:
        raise families.INVALID_VALUE(
            "count is {value}", "give the number of values, 1 or more", where=str(where), value=shown(count)
        )
    if scale == "log" and not 0 < first <= last:
        raise families.INVALID_VALUE("scale: log needs numbers above 0", "give from and to above 0", where=str(where))
    values = np.geomspace(first, last, count) if scale == "log" else np.linspace(first, last, count)
    # Twelve digits, so that values equal those in the table, on every machine.
    return [float(f"{value:.12g}") for value in values]


def _distribution(value: object, where: SweepPlace) -> Callable[[np.random.Generator], object]:
    kinds = ("uniform", "log-uniform", "integer", "choice")
    if not isinstance(value, Mapping) or len(value) != 1:
        raise families.INVALID_VALUE(
            "{value} is not a distribution",
            (
                "give {{uniform: [LOW, HIGH]}}, {{log-uniform: [LOW, HIGH]}}, {{integer: [LOW, HIGH]}} "
                "or {{choice: [...]}}"
            ),
            where=str(where),
            value=shown(value, 60),
        )
    ((kind, bounds),) = value.items()
    if kind not in kinds:
        raise families.UNKNOWN_NAME.of(ConfigError)(
            "unknown distribution {name!r}{meant}",
            "distributions are {known}",
            where=str(where),
            name=kind,
            meant=suggestion(str(kind), kinds),
            known=", ".join(kinds),
        )
    if not isinstance(bounds, list | tuple) or not bounds or (kind != "choice" and len(bounds) != 2):
        raise families.INVALID_VALUE(
            "the bounds of {name} are {value}",
            "write {{{name}: [LOW, HIGH]}}",
            where=str(where),
            name=kind,
            value=shown(bounds, 60),
        )
    if kind == "choice":
        choices = list(bounds)
        return lambda random: choices[int(random.integers(len(choices)))]
    low, high = (_number(bound, where, kind) for bound in bounds)
    if low > high or (kind == "log-uniform" and low <= 0):
        error = (
            families.INVALID_VALUE.saying(
                "{name} from {low:g} to {high:g} has no values", "give the lower bound first, above 0"
            )
            if kind == "log-uniform"
            else families.INVALID_VALUE.saying(
                "{name} from {low:g} to {high:g} has no values", "give the lower bound first"
            )
        )
        raise error(where=str(where), name=kind, low=low, high=high)
    if kind == "integer":
        if not (low.is_integer() and high.is_integer()):
            raise families.INVALID_VALUE(
                "the bounds of integer are {value}",
                "give whole numbers, or take uniform",
                where=str(where),
                value=shown(bounds, 60),
            )
        return lambda random: int(random.integers(int(low), int(high), endpoint=True))
    if kind == "uniform":
        return lambda random: float(f"{random.uniform(low, high):.12g}")
    return lambda random: float(f"{math.exp(random.uniform(math.log(low), math.log(high))):.12g}")


def _number(value: object, where: SweepPlace, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise families.INVALID_VALUE(
            "{name} is {value}, not a finite number", "give a number", where=str(where), name=name, value=shown(value)
        )
    return float(value)


def _refuse_unknown_keys(value: Mapping[str, object], allowed: set[str], where: SweepPlace) -> None:
    if others := sorted(set(value) - allowed):
        raise families.UNKNOWN_KEY(
            "unknown key {key}{meant}",
            "keys are {known}",
            where=str(where),
            key=others[0],
            meant=suggestion(others[0], sorted(allowed)),
            known=", ".join(sorted(allowed)),
        )


#: The key of a point that names its config.
CONFIG = "config"

#: Keys that cannot differ between points, which share a run folder and an executor.
NOT_OF_POINTS = ("run", "system", "executor", "storage", "strict", "force", "report", "chain", "options.points")

_REMEDY = "swsdist help sweep shows a sweep's file"


class Random(Section):
    """Points at random."""

    draws: PositiveInt = Field(description="how many")
    seed: NonNegativeInt = Field(0, description="of the generator")
    keys: dict[str, object] = Field(description="a distribution for each key")


class Points(Section):
    """The sources of points, in this order."""

    grid: dict[str, object] | tuple[dict[str, object], ...] | None = Field(
        None, description="every combination of the values of some keys; or several grids"
    )
    list: tuple[object, ...] | None = Field(None, description="points, {key: value} each")
    random: Random | None = Field(None, description="points at random")


class Objective(Section):
    """The objective of the ranking."""

    measure: str = Field("atwv", description="a measure")
    best: Literal["highest", "lowest"] | None = Field(None, description="default: as the measure has it")

    @property
    def sign(self) -> int:
        """1 if more is better, else -1."""
        return {"highest": 1, "lowest": -1, None: quantities()[self.measure].sign}[self.best]


class Tests(Section):
    """Intervals and tests."""

    level: Annotated[float, Field(gt=0, lt=1)] = Field(0.95, description="of confidence")
    resamples: PositiveInt = Field(10_000, description="draws of the bootstrap over queries")
    permutations: PositiveInt = Field(DRAWS, description="random changes of sign")
    seed: NonNegativeInt = Field(0, description="of both")


class TaskSection(Section):
    """A task of lists: audio, terms, references and systems."""

    ecf: str | None = None
    seconds: PositiveFloat | None = None
    rttm: str | None = None
    ctm: str | None = None
    terms: str | None = None
    references: str | None = None
    systems: dict[str, str] = Field(min_length=1)


class Lists(Section):
    """Lists of any program, in place of a config: tasks by name, for example languages."""

    protocol: str | None = None
    beta: PositiveFloat | None = None
    tasks: dict[str, TaskSection] = Field(min_length=1)
    fit: str | None = None
    folds: int = Field(5, ge=2)


class SweepFile(Section):
    """The keys of a sweep's file."""

    config: str | dict[str, object] | None = None
    lists: Lists | None = None
    corpus: str | None = None
    run: str | None = None
    set: dict[str, object] = Field(default_factory=dict)
    points: Points
    measures: Literal["all"] | tuple[str, ...] = "all"
    objective: Objective = Objective()
    tests: Tests = Tests()
    oracle_kst: bool = False
    report: Literal["none", "kst"] = "none"
    report_alpha: PositiveFloat | None = None

    @field_validator("objective", mode="before")
    @classmethod
    def _measure_name(cls, value: object) -> object:
        return {"measure": value} if isinstance(value, str) else value


@dataclass(frozen=True)
class SweepSpec:
    """A sweep's file, read.

    Attributes:
        path: of the file, as given.
        file: its keys; paths are absolute.
        points: in order, each with the keys that differ from the base.
        places: of each point in the file.
        lines: of all that is in the file.
        repeated: number of draws that repeated a point, and were dropped.
    """

    path: str
    file: SweepFile
    points: tuple[Keys, ...]
    places: tuple[SweepPlace, ...]
    lines: SweepPlace
    repeated: int = 0

    def at(self, *place: int | str) -> str:
        """A key of the file in messages: file, line, key."""
        return str(self.lines.below(*place))

    def config_of(self, number: int) -> str | dict[str, object]:
        """The config of a point: absolute path, or its keys."""
        named = self.points[number - 1].get(CONFIG, self.file.config)
        if isinstance(named, dict):
            return named
        return absolute(str(named), folder_of(self.path))

    def where(self, number: int, key: str | None = None) -> str:
        """A point for messages, numbered from 1, with a key and its value; for a key set for all points, its place."""
        keys, place = self.points[number - 1], self.places[number - 1]
        if key is None:
            return f"{place.line}, point {number}"
        if key not in keys:
            return self.at("set", key) if key in self.file.set else f"{place.line}, point {number}"
        return f"{place.below(key).line}, point {number} ({key}: {shown(keys[key], 60)})"


def read_sweep(path: str | Path) -> SweepSpec:
    """Read a sweep's file and make its points.

    Raises:
        ConfigError: unreadable or invalid; the message lists all errors of its keys.
    """
    name = str(path)
    text = text_of(name, "sweep")
    draft = Draft(origins={(): Origin(name, folder_of(name), line=1)})
    values = read(text, (), draft, draft.origins[()])
    if not isinstance(values, dict) and not draft.problems:
        draft.complain((), config_codes.NOT_A_MAPPING, what="sweep")
    file = None if draft.problems else _validated(values, draft)
    if file is None:
        raise draft.error(_REMEDY)
    file = _with_absolute_paths(file, folder_of(name))
    lines = SweepPlace(draft.origins)
    if file.config is not None and file.lists is not None:
        raise codes.CONFIG_OR_LISTS(where=str(lines.below("lists")))
    for k, item in enumerate(() if file.measures == "all" else file.measures):
        measure_names((item,), str(lines.below("measures", k)))
    measure_names((file.objective.measure,), str(lines.below("objective")))
    if file.objective.best is None and not quantities()[file.objective.measure].best:
        raise families.UNSUPPORTED.of(ConfigError)(
            "neither the highest nor the lowest {measure} is best",
            "name a measure of quality, or set best: objective: {{measure: ..., best: highest}}",
            where=str(lines.below("objective")),
            measure=file.objective.measure,
        )
    if file.measures != "all" and file.objective.measure not in file.measures:
        raise families.UNKNOWN_NAME.of(ConfigError)(
            "the objective {measure} is not among the measures",
            "add it to measures, or name another: {measures}",
            where=str(lines.below("objective" if "objective" in file.model_fields_set else "measures")),
            measure=file.objective.measure,
            measures=", ".join(file.measures),
        )
    if file.report_alpha is not None and file.report != "kst":
        raise families.UNUSED_OPTION(
            "report_alpha has no effect without report: kst",
            "set report: kst, or leave report_alpha out",
            where=str(lines.below("report_alpha")),
        )
    spec = _points(file, lines.below("points"), name)
    _demand_configs(spec)
    _refuse_unused(spec, file.set, lambda key: spec.at("set", key))
    return spec


def _demand_configs(spec: SweepSpec) -> None:
    """Check that points have a config where there are no lists: the sweep's, or one of each point.

    Raises:
        ConfigError: a point has none or both; or points have configs, and the sweep no run folder for all.
    """
    file = spec.file
    some = any(CONFIG in keys for keys in spec.points)
    for number, keys in enumerate(spec.points, 1):
        if file.lists is None and file.config is None and CONFIG not in keys:
            raise codes.CONFIG_OR_LISTS(where=spec.where(number) if some else spec.lines.line)
        if file.lists is None and file.config is not None and CONFIG in keys:
            raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                "the point has a config, and so has the sweep: {config}",
                "leave out one of them",
                where=spec.where(number, CONFIG),
                config=shown(file.config, 60),
            )
        if CONFIG in keys and not isinstance(keys[CONFIG], str | dict):
            raise families.INVALID_VALUE(
                "{value} is not a config",
                "give a path, or the keys of a config",
                where=spec.where(number, CONFIG),
                value=shown(keys[CONFIG], 60),
            )
    if file.run is None and some:
        raise codes.NO_RESULT_FOLDER(where=spec.lines.line)


def refuse_unused_sets(spec: SweepSpec, sets: Sequence[str], corpus: str | None) -> None:
    """Refuse settings for all points on the command line that have no effect.

    Raises:
        ConfigError: every point sets the key itself.
    """
    keys = {item.partition("=")[0].strip(): f"--set {item}" for item in sets}
    keys |= {"corpus": f"--corpus {corpus}"} if corpus is not None else {}
    _refuse_unused(spec, keys, lambda key: keys[key])


def _refuse_unused(spec: SweepSpec, keys: Iterable[str], show: Callable[[str], str]) -> None:
    for key in keys:
        # A point that sets `features` also overrides `features.name`.
        prefixes = [next((item for item in point if f"{key}.".startswith(f"{item}.")), None) for point in spec.points]
        if None in prefixes:
            continue
        first = str(prefixes[0])
        raise families.UNUSED_OPTION(
            (
                "{key} is set for all points and has no effect: every point sets {point_key} itself, the "
                "first in {first}"
            ),
            "leave it out here, or leave {point_key} out of the points",
            where=show(key),
            key=key,
            point_key=first,
            first=spec.places[0].below(first).line,
        )


def _validated(values: object, draft: Draft) -> SweepFile | None:
    try:
        return SweepFile.model_validate(values)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            place = item["loc"]
            while place and place not in draft.origins:
                place = place[:-1]  # pydantic also names the member of a union
            name = str(item["loc"][-1]) if item["loc"] else ""
            if item["type"] == "missing":
                draft.complain(item["loc"], config_codes.MISSING_KEY, allowed=f"{name}: ...", meaning="")
            elif item["type"] == "extra_forbidden":
                keys = _allowed_keys(item["loc"][:-1])
                draft.complain(place, config_codes.UNKNOWN_KEY, meant=suggestion(name, keys), keys=", ".join(keys))
            else:
                draft.complain_of(place, item)
        return None


def _allowed_keys(place: tuple[int | str, ...]) -> list[str]:
    models: dict[str, type[Section]] = {
        "points": Points,
        "objective": Objective,
        "tests": Tests,
        "lists": Lists,
        "random": Random,
    }
    if place[:2] == ("lists", "tasks"):
        return list(TaskSection.model_fields)
    return list(models.get(str(place[-1]) if place else "", SweepFile).model_fields)


def _with_absolute_paths(file: SweepFile, base: str) -> SweepFile:
    """The file's keys with absolute paths."""

    changes: dict[str, object] = {
        name: absolute(value, base)
        for name in ("config", "corpus", "run")
        if isinstance(value := getattr(file, name), str)
    }
    if file.lists is not None:
        tasks = {}
        for name, task in file.lists.tasks.items():
            files = {key: getattr(task, key) for key in ("ecf", "rttm", "ctm", "terms", "references")}
            placed: dict[str, object] = {
                key: absolute(value, base) for key, value in files.items() if value is not None
            }
            placed["systems"] = {key: absolute(value, base) for key, value in task.systems.items()}
            tasks[name] = task.model_copy(update=placed)
        fit = file.lists.fit
        if fit is not None and fit not in ("none", "crossfit", "oracle"):
            fit = absolute(fit, base)
        changes["lists"] = file.lists.model_copy(update={"tasks": tasks, "fit": fit})
    return file.model_copy(update=changes)


def _points(file: SweepFile, where: SweepPlace, name: str) -> SweepSpec:
    spec, repeated = file.points, 0
    results: list[Keys] = []
    places: list[SweepPlace] = []
    if spec.grid is not None:
        several = spec.grid if isinstance(spec.grid, tuple) else (spec.grid,)
        for k, grid in enumerate(several):
            place = where.below("grid") if isinstance(spec.grid, dict) else where.below("grid", k)
            some = list(grid_points(grid, place))
            results += some
            places += [place] * len(some)
    if spec.list is not None:
        place = where.below("list")
        rows = list(list_points(spec.list, place))
        results += rows
        places += [place.below(k) for k in range(len(rows))]
    if spec.random is not None:
        place = where.below("random", "keys")
        for point in draw_points(spec.random.draws, spec.random.seed, spec.random.keys, place):
            if point in results:
                repeated += 1
            else:
                results.append(point)
                places.append(place)
    if not results:
        raise families.EMPTY_INPUT.of(ConfigError)("no points", "give grid, list or random", where=str(where))
    made = SweepSpec(name, file, tuple(results), tuple(places), SweepPlace(where.origins), repeated)
    for number, point in enumerate(results, 1):
        for key in point:
            if any(key == prefixes or key.startswith(f"{prefixes}.") for prefixes in NOT_OF_POINTS):
                raise families.CONFLICTING_OPTIONS.of(ConfigError)(
                    "{key} cannot differ between points, which share a run folder and its executor",
                    "set it for all: by the key set, in the config, or by --set",
                    where=made.where(number, key),
                    key=key,
                )
    return made
