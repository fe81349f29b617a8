"""Read a YAML file as a `Config`.

The YAML is 1.2 and strict: duplicate keys, tags, anchors and aliases are errors. One `ConfigError` lists all problems:

    my.yaml:12: search.distnace: unknown key; did you mean search.distance? ... [unknown-key]

- `${NAME}` in a value is the environment variable NAME, `${NAME:-other}` is `other` if NAME is unset or empty, `$$` is a
  dollar sign. In a plain value the result is read as YAML (`workers: ${N}` is a number); in quotes it is text.
- Paths are relative to the file that names them, those of `--set` to the working directory. Urls (s3://...) are kept.
- `corpus:` is a section, or the path of a corpus file; `--set corpus.queries=FILE` wins. So is `corpus.queries_from`.
- An empty section, or an empty mapping such as `storage`, has its defaults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from swsdist.config.model import Config, Corpus, QueriesFrom
from swsdist.config.reading import Draft, Origin, absolute, folder_of, is_url, plain, read, text_of
from swsdist.config.section import Section
from swsdist.config.template import (
    Place,
    allowed,
    dotted,
    find,
    is_mapping,
    is_one_or_more,
    is_path,
    item_of,
    keys,
    meant,
    section_of,
    shown,
    words,
)
from swsdist.core.codes import config as codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, StorageError, UserError
from swsdist.core.text import closest
from swsdist.registry.entries import Configured, is_chain
from swsdist.registry.registries import CHAINS
from swsdist.registry.registry import Entry, Registry

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

S = TypeVar("S", bound=Section)

REMEDY = "`swsdist init` writes a config that shows every key; swsdist help config lists them"


@dataclass(frozen=True)
class FileAssignment:
    """An assignment in a file, such as a sweep's.

    Attributes:
        text: `a.b=value`.
        base: folder that its paths are relative to.
        source: file and line, for messages.
    """

    text: str
    base: str
    source: str


#: `a.b=value`, its paths relative to the working directory; or one of a file.
Assignment = str | FileAssignment


def load_config(
    path: str | Path,
    sets: Sequence[Assignment] = (),
    *,
    corpus: str | Mapping[str, object] | None = None,
    run: str | None = None,
) -> Config:
    """Read, check and complete a config file.

    Args:
        path: the YAML file.
        sets: `a.b=value` each, with a value in YAML; they win over the file, later ones over earlier ones.
        corpus: corpus file, or section, instead of the config's, relative to the working directory.
        run: run folder instead of the config's, relative to the working directory.

    Raises:
        ConfigError: a file cannot be read, or the file or `sets` have errors; all are listed.
    """
    draft = Draft(origins={(): Origin(str(path), folder_of(str(path)), line=1)})
    values = read(text_of(str(path), "config", "; `swsdist init` writes a config"), (), draft, draft.origins[()])
    if isinstance(values, dict):
        draft.values = values
    elif values is not None:
        draft.complain((), codes.NOT_A_MAPPING, what="config")
    draft.values.setdefault("system", Path(path).stem)
    for name, value in (("corpus", corpus), ("run", run)):
        if value is not None:
            draft.forget((name,))
            draft.origins[(name,)] = Origin(f"--{name}", str(Path.cwd()))
            draft.values[name] = value
    return _finish(draft, sets)


def load_corpus(path: str | Path, sets: Sequence[str] = ()) -> Config:
    """A config of defaults with the corpus of a corpus file; or the config, if the file is one.

    Args:
        path: the YAML file.
        sets: as for `load_config`.

    Raises:
        ConfigError: as `load_config`.
    """
    base = Origin(str(path), str(Path.cwd()), line=1)
    values = read(text_of(str(path), "corpus file"), (), Draft(origins={(): base}), base)
    if isinstance(values, dict) and "corpus" in values:
        return load_config(path, sets)
    return _finish(Draft(origins={(): base}, values={"run": ".", "corpus": str(path)}), sets)


def config_from_dict(
    values: Mapping[str, object],
    base: str | Path = ".",
    sets: Sequence[Assignment] = (),
    *,
    origins: Mapping[Place, Origin] | None = None,
) -> Config:
    """A `Config` of Python values. `${NAME}` is not replaced, and paths may be path objects.

    Args:
        values: as in a YAML file.
        base: folder that paths in `values` are relative to.
        sets: as for `load_config`.
        origins: where values were given, if known.

    Raises:
        ConfigError: `values` or `sets` have errors; all are listed.
    """
    folder = str(base) if is_url(str(base)) else str(Path(base).absolute())
    draft = Draft(origins={(): Origin("", folder), **(origins or {})})
    draft.values = {str(key): plain(each, (str(key),), draft) for key, each in values.items()}
    return _finish(draft, sets)


def section_from(kind: type[S], name: str, *several: Mapping[str, object] | None) -> S:
    """A section of a config from Python mappings.

    Args:
        kind: class of the section.
        name: key of the section, for messages.
        several: mappings of keys to values; later ones win over earlier ones.

    Raises:
        ConfigError: a mapping is none, or a key or value is not allowed.
    """
    values: dict[str, object] = {}
    for each in several:
        if not isinstance(each, Mapping | None):
            raise families.INVALID_YAML(
                "{value} is not a mapping of keys to values",
                "give a dict: {{KEY: VALUE}}",
                where=name,
                value=f"{each!r:.60}",
            )
        values |= each or {}
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        _, _, place = find((name, *first["loc"]))
        draft = Draft(origins={(): Origin("", "")})
        _explain(first, place, draft)
        (problem,) = draft.problems[place]
        raise codes.INVALID_CONFIG.error(
            problem.message,
            where=dotted(place),
            remedy=problem.remedy or "see swsdist help config",
            code=problem.code,
            values={"key": dotted(place), **problem.values},
        ) from None


def section_values(sets: Sequence[str], section: str) -> dict[str, object]:
    """The values that `sets` give a section, nested and read as YAML; the model does not check them.

    Args:
        sets: `section.a.b=value` each; the section may be left out.
        section: name of the section.

    Raises:
        ConfigError: an item is not KEY=VALUE, or a value is not YAML; all problems are listed.
    """
    draft = Draft(origins={(): Origin("", str(Path.cwd()))})
    for text in sets:
        _set(text if text.startswith(f"{section}.") else f"{section}.{text}", draft)
    if draft.problems:
        raise draft.error(REMEDY)
    values = draft.values.get(section)
    return values if isinstance(values, dict) else {}


def _set(assignment: Assignment, draft: Draft) -> None:
    """Put `a.b=value` into the draft."""
    setting = assignment if isinstance(assignment, str) else assignment.text
    name, equals, text = setting.partition("=")
    name = name.strip()
    if isinstance(assignment, str):
        origin = Origin(f"--set {name}", str(Path.cwd()))
    else:
        origin = Origin(assignment.source, assignment.base)
    place: Place = tuple(name.split("."))
    if not equals or not all(place):
        draft.complain(
            ("--set", setting),
            families.INVALID_VALUE.saying(
                "{assignment} is not KEY=VALUE", "write, for example, search.distance=cosine"
            ),
            origin,
            assignment=setting,
        )
        return
    section = draft.values
    for depth, part in enumerate(place[:-1], start=1):
        below = section.get(str(part))
        if below is None:
            below = section[str(part)] = {}
            draft.origins.setdefault(place[:depth], origin)
        elif not isinstance(below, dict):
            above = dotted(place[:depth])
            draft.complain(
                place,
                families.INVALID_YAML.saying("{above} is {value} and has no keys", "set {above} itself"),
                origin,
                above=above,
                value=shown(below, 40),
            )
            return
        section = below
    draft.forget(place)
    draft.origins[place] = origin
    section[str(place[-1])] = read(text, place, draft, origin)


def _open_corpus(draft: Draft) -> None:
    """Replace the path of a corpus file by what it holds, in `corpus` and in `corpus.queries_from`."""
    _open(draft.values, ("corpus",), draft)
    corpus = draft.values.get("corpus")
    if isinstance(corpus, dict) and isinstance(corpus.get("queries_from"), str):
        _open_queries_from(corpus, draft)


def _open(above: dict[str, object], place: Place, draft: Draft) -> None:
    """Replace the path of a corpus file in the section `above` by what the file holds."""
    name = str(place[-1])
    value = above.get(name)
    if not isinstance(value, str) or draft.faulty(place):
        return
    path = absolute(value, draft.origin(place).base)
    try:
        text = text_of(path, "corpus file")
    except (UserError, StorageError) as error:
        draft.complain(
            place,
            families.UNREADABLE_FILE.saying("{path}: {reason}", "name a YAML file that can be read"),
            path=shown(value),
            reason=error.message,
        )
        return
    draft.forget(place)
    origin = Origin(_relative(path), folder_of(path), line=1)
    draft.origins[place] = origin
    values = read(text, place, draft, origin)
    draft.origins[place] = origin
    if isinstance(values, dict) or values is None:
        above[name] = values or {}
    else:
        draft.complain(place, codes.NOT_A_MAPPING, what="corpus file")
        above[name] = {}


def _open_queries_from(corpus: dict[str, object], draft: Draft) -> None:
    """Read the corpus file that queries come from: its documents and speakers, and its queries unless others are named."""
    place: Place = ("corpus", "queries_from")
    _open(corpus, place, draft)
    source = corpus["queries_from"]
    if not isinstance(source, dict):
        return
    if corpus.get("queries") is None:
        for key in ("queries", "spoken"):
            if source.get(key) is not None:
                corpus[key], draft.origins["corpus", key] = source[key], draft.origin((*place, key))
    fields = {key: value for key, value in source.items() if key in QueriesFrom.model_fields}
    for key in source:
        if key not in fields and key not in Corpus.model_fields:
            close = closest(key, list(Corpus.model_fields))
            meaning = f"; did you mean {close}?" if close else ""
            allowed_keys = ", ".join(Corpus.model_fields)
            draft.complain((*place, key), codes.UNKNOWN_KEY, meant=meaning, keys=allowed_keys)
    corpus["queries_from"] = fields


def _relative(path: str) -> str:
    """A path relative to the working directory, if it is below: what an editor opens."""
    return path.removeprefix(str(Path.cwd()).rstrip("/") + "/")


def _finish(draft: Draft, sets: Sequence[Assignment]) -> Config:
    """Apply the `sets`, make paths absolute, validate; raise an error with all problems."""
    _open_corpus(draft)
    for assignment in sets:
        _set(assignment, draft)
        _open_corpus(draft)
    settled = _settle(draft.values, Config, (), draft)
    _chain_paths(settled, draft)
    _default_fusion_steps(settled)
    corpus, score = settled.get("corpus"), settled.setdefault("score", {})
    if isinstance(corpus, dict) and isinstance(score, dict):
        protocol = corpus.get("protocol")
        if protocol in words(Corpus.model_fields["protocol"]):  # pydantic refuses any other
            score.setdefault("protocol", protocol)
    try:
        # Strict, so that "yes" and 1 are not true; through JSON, since a strict tuple refuses lists.
        config = Config.model_validate_json(json.dumps(settled), strict=True)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            _, _, place = find(_in_file(each["loc"], draft.values))
            if not draft.faulty(place):
                _explain(each, place, draft)
        raise draft.error(REMEDY) from None
    if draft.problems:
        raise draft.error(REMEDY)
    return config


def _in_file(place: Place, values: dict[str, object]) -> Place:
    """A place of the validated values in those of the file, where one section may stand for a list of one."""
    field = Config.model_fields.get(str(place[0])) if place else None
    alone = field is not None and is_one_or_more(field) and not isinstance(values.get(str(place[0])), list)
    return (place[0], *place[2:]) if alone and place[1:2] == (0,) else place


def _settle(values: dict[str, object], model: type[Section], place: Place, draft: Draft) -> dict[str, object]:
    """Make paths absolute; replace empty sections and mappings by real ones."""
    settled = dict(values)
    for name, field in model.model_fields.items():
        if name not in values:
            continue
        value, key = values[name], (*place, name)
        section = section_of(field)
        if isinstance(value, list | tuple) and (item := item_of(field)):
            settled[name] = [
                _settle(each, item, (*key, k), draft) if isinstance(each, dict) else each
                for k, each in enumerate(value)
            ]
        elif section and is_one_or_more(field) and isinstance(value, dict | None):
            settled[name] = [_settle(value or {}, section, key, draft)]
        elif value is None and (section or is_mapping(field)):
            settled[name] = {}
        elif section and isinstance(value, dict):
            settled[name] = _settle(value, section, key, draft)
        elif is_path(field) and isinstance(value, str) and value and value not in words(field):
            word = closest(value, words(field))
            if re.match("s3:(?!//)", value):
                word = f"s3://{value[3:].lstrip('/')}"
            elif not re.fullmatch(r"[\w-]+", value):
                word = None
            if word:
                draft.complain(
                    key,
                    families.INVALID_VALUE.saying(
                        "{value} looks like {meant}", "write {meant}; or ./{value}, if it is a file"
                    ),
                    value=value,
                    meant=word,
                )
            settled[name] = absolute(value, draft.origin(key).base)
    if model.registry is None:
        return settled
    return _with_paths(model.registry, values.get("name", model.model_fields["name"].default), settled, place, draft)


def _chain_paths(settled: dict[str, object], draft: Draft) -> None:
    """Make paths among the options of the chain absolute, if the model of its options is a section."""
    name, options = settled.get("chain", Config.model_fields["chain"].default), settled.get("options")
    if not isinstance(name, str) or not isinstance(options, dict) or not options or name not in CHAINS:
        return
    entry = CHAINS[name]
    model = entry.model() if isinstance(entry, Configured) else None
    if model is not None and issubclass(model, Section):
        settled["options"] = _settle(options, model, ("options",), draft)


def _default_fusion_steps(settled: dict[str, object]) -> None:
    """Set the default calibration steps of merged lists: they have no candidates, so there is no q-norm."""
    calibrate, corpus = settled.get("calibrate", {}), settled.get("corpus")
    if not is_chain(CHAINS, settled.get("chain"), "joined") or not isinstance(calibrate, dict) or "steps" in calibrate:
        return
    fit = calibrate.get("fit", "crossfit")
    truth = isinstance(corpus, dict) and any(corpus.get(key) is not None for key in ("references", "text"))
    fused = truth if fit in ("crossfit", "oracle") else fit != "none"
    settled["calibrate"] = {**calibrate, "steps": ["fusion"] if fused else []}


def _with_paths(
    registry: Registry[Entry], name: object, section: dict[str, object], place: Place, draft: Draft
) -> dict[str, object]:
    """The section of a registered entry, with the paths among its options made absolute."""
    value = section.get("options")
    if not isinstance(value, dict):
        return dict(section)
    options: dict[str, object] = dict(value)
    texts = {option: value for option, value in options.items() if isinstance(value, str) and value}
    # Most options are numbers, and some entries are slow to load.
    if not texts or not isinstance(name, str) or name not in registry:
        return dict(section)
    try:
        entry = registry[name]
        fields = getattr(entry.model() if isinstance(entry, Configured) else entry.load(), "model_fields", {})
    except ConfigError:
        return dict(section)  # raised again where the entry is used
    for option, value in texts.items():
        if option in fields and is_path(fields[option]):
            options[option] = absolute(value, draft.origin((*place, "options", option)).base)
    return {**section, "options": options}


def _explain(error: ErrorDetails, place: Place, draft: Draft) -> None:
    """Note an error of pydantic in the model's own words."""
    section, field, _ = find(place)
    kind, value = error["type"], error["input"]
    last = place[-1] if place else ""
    element, index = (True, last) if isinstance(last, int) else (False, 0)
    if kind == "extra_forbidden" and section:
        name = str(last)
        guesses = " or ".join(meant(name, section, place[:-1]))
        if "." in name and name in {key.dotted for key in keys()}:
            hint = "; in a file keys are nested, dotted names are for --set"
        else:
            hint = f"; did you mean {guesses}?" if guesses else ""
        draft.complain(place, codes.UNKNOWN_KEY, meant=hint, keys=", ".join(section.model_fields))
    elif field is None or "parts" in error.get("ctx", {}) or kind in ("value_error", "assertion_error"):
        draft.complain_of(place, error)
    elif kind == "missing":
        meaning = f" ({field.description})" if field.description else ""
        draft.complain(place, codes.MISSING_KEY, allowed=allowed(field, element, index), meaning=meaning)
    else:
        values = allowed(field, element, index)
        word = closest(value, words(field, element, index)) if isinstance(value, str) else None
        quote = " (in quotes)" if isinstance(value, bool | int | float) and values.startswith(("text", "path")) else ""
        hint = f"; did you mean {word}?" if word else ""
        draft.complain(
            place,
            families.INVALID_VALUE.saying("{value} is not allowed{meant}", "write {allowed}{quote}"),
            value=shown(value, 60),
            meant=hint,
            allowed=values,
            quote=quote,
        )
