"""From a YAML file to a `Config`, with errors that say where and what was meant.

The YAML is 1.2 and strict: duplicate keys, tags, anchors and aliases are refused. All that is wrong with a config is
found before anything is raised, and told in one `ConfigError`, a line each:

    my.yaml:12: search.distnace: no such key; did you mean search.distance? Allowed here: distance, normalise, ...

- `${NAME}` in a value is the environment's NAME, `${NAME:-other}` is `other` where NAME is unset or empty, `$$` is a
  dollar sign. A plain value is read as if the result stood in the file (`workers: ${N}` is a number); a quoted one
  stays text.
- Paths are relative to the file that names them, those of `--set` to the working directory. Urls (s3://...) stay.
- `corpus:` is a section, or the path of a corpus file; `--set corpus.queries=FILE` wins. So is `corpus.queries_from`.
- A section, or a mapping such as `storage`, that is left empty is as good as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from swsdist.config.corpus import Corpus, QueriesFrom
from swsdist.config.files import absolute, folder_of, is_url, text_of
from swsdist.config.model import Config, Features
from swsdist.config.reading import Draft, Origin, plain, read
from swsdist.config.section import Section
from swsdist.config.suggest import (
    Place,
    allowed,
    closest,
    dotted,
    find,
    is_mapping,
    is_one_or_more,
    is_path,
    keys,
    meant,
    section_of,
    shown,
    words,
)
from swsdist.core.errors import ConfigError, StorageError, UserError
from swsdist.registry.entries import Configured, is_chain
from swsdist.registry.registries import CHAINS, FEATURES, TRANSFORMS
from swsdist.registry.registry import Entry, Registry

S = TypeVar("S", bound=Section)

REMEDY = "`swsdist init` writes a config that shows every key; docs/reference/config.md lists them"


@dataclass(frozen=True)
class Placed:
    """A key that is set elsewhere than on the command line.

    Attributes:
        text: `a.b=value`.
        base: folder that its paths are relative to.
        source: where it stands, for messages.
    """

    text: str
    base: str
    source: str


#: `a.b=value`, its paths relative to the working directory; or one that stands elsewhere.
Assignment = str | Placed


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
        sets: `a.b=value` each, with a value in YAML; they win over the file, the later over the earlier.
        corpus: corpus file, or section, that takes the place of the config's corpus, relative to the working directory.
        run: run folder that takes the place of the config's, relative to the working directory.

    Raises:
        ConfigError: a file cannot be read, or something in it or in `sets` is wrong; all of it is listed.
    """
    draft = Draft(origins={(): Origin(str(path), folder_of(str(path)), line=1)})
    values = read(text_of(str(path), "config", "`swsdist init` writes one to begin with"), (), draft, draft.origins[()])
    if isinstance(values, dict):
        draft.values = values
    elif values is not None:
        draft.complain((), "a config is a mapping of keys to values")
    draft.values.setdefault("system", Path(path).stem)
    for name, given in (("corpus", corpus), ("run", run)):
        if given is not None:
            draft.forget((name,))
            draft.origins[(name,)] = Origin(f"--{name}", str(Path.cwd()))
            draft.values[name] = given
    return _finish(draft, sets)


def load_corpus(path: str | Path, sets: Sequence[str] = ()) -> Config:
    """A corpus file as the corpus of a config of defaults; or a config, if that is what the file is.

    Args:
        path: the YAML file.
        sets: as for `load_config`.

    Raises:
        ConfigError: the file cannot be read, or something in it or in `sets` is wrong; all of it is listed.
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
    """The same from Python values. `${NAME}` is not special in them, and path objects may stand for paths.

    Args:
        values: as the YAML file would hold them.
        base: folder that paths in `values` are relative to.
        sets: as for `load_config`.
        origins: where values were given, as far as that is known.

    Raises:
        ConfigError: something in `values` or `sets` is wrong; all of it is listed.
    """
    folder = str(base) if is_url(str(base)) else str(Path(base).absolute())
    draft = Draft(origins={(): Origin("", folder), **(origins or {})})
    draft.values = {str(key): plain(each, (str(key),), draft) for key, each in values.items()}
    return _finish(draft, sets)


def section_from(kind: type[S], name: str, *several: Mapping[str, object] | None) -> S:
    """A section from some of its keys, in Python.

    Args:
        kind: the section's class.
        name: its key in a config, for messages.
        several: as a config has them; the later win over the earlier.

    Raises:
        ConfigError: one is not valid, or these are no keys.
    """
    values: dict[str, object] = {}
    for each in several:
        if not isinstance(each, Mapping | None):
            raise ConfigError(
                f"{each!r:.60} is no mapping of keys to values", where=name, remedy="give a dict: {KEY: VALUE}"
            )
        values |= each or {}
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        _, _, place = find((name, *first["loc"]))
        told = _explain(first["type"], first["msg"], first["input"], place)
        raise ConfigError(told, where=dotted(place), remedy="see docs/reference/config.md") from None


def section_values(sets: Sequence[str], section: str) -> dict[str, object]:
    """What `sets` say of one section, nested, values read as YAML; not yet checked against the model.

    Args:
        sets: `section.a.b=value` each; the section may be left out.
        section: its name.

    Raises:
        ConfigError: one is no KEY=VALUE, or its value is not YAML; all that is wrong is listed.
    """
    draft = Draft(origins={(): Origin("", str(Path.cwd()))})
    for one in sets:
        _set(one if one.startswith(f"{section}.") else f"{section}.{one}", draft)
    if draft.problems:
        raise _error(draft)
    found = draft.values.get(section)
    return found if isinstance(found, dict) else {}


def _set(given: Assignment, draft: Draft) -> None:
    """Put one `a.b=value` into the draft."""
    assignment = given if isinstance(given, str) else given.text
    name, equals, text = assignment.partition("=")
    name = name.strip()
    here = Origin(f"--set {name}", str(Path.cwd()))
    origin = here if isinstance(given, str) else Origin(given.source, given.base)
    place: Place = tuple(name.split("."))
    if not equals or not all(place):
        draft.complain(("--set", assignment), "must be KEY=VALUE, for example search.distance=cosine", origin)
        return
    section = draft.values
    for depth, part in enumerate(place[:-1], start=1):
        below = section.get(str(part))
        if below is None:
            below = section[str(part)] = {}
            draft.origins.setdefault(place[:depth], origin)
        elif not isinstance(below, dict):
            draft.complain(place, f"{dotted(place[:depth])} is {shown(below, 40)} and has no keys", origin)
            return
        section = below
    draft.forget(place)
    draft.origins[place] = origin
    section[str(place[-1])] = read(text, place, draft, origin)


def _open_corpus(draft: Draft) -> None:
    """Where `corpus` is the path of a corpus file, put what the file holds in its place; and so for `corpus.queries_from`."""
    _open(draft.values, ("corpus",), draft)
    corpus = draft.values.get("corpus")
    if isinstance(corpus, dict) and isinstance(corpus.get("queries_from"), str):
        _open_queries_from(corpus, draft)


def _open(above: dict[str, object], place: Place, draft: Draft) -> None:
    """Put what a corpus file holds in the place of its path, in the section `above` it."""
    name = str(place[-1])
    named = above.get(name)
    if not isinstance(named, str) or draft.faulty(place):
        return
    path = absolute(named, draft.origin(place).base)
    try:
        text = text_of(path, "corpus file")
    except (UserError, StorageError) as error:
        draft.complain(place, f"{shown(named)}: {error.message}")
        return
    draft.forget(place)
    # As the user named it, or as it is found from here: what an editor opens.
    origin = Origin(_from_here(path), folder_of(path), line=1)
    draft.origins[place] = origin
    values = read(text, place, draft, origin)
    draft.origins[place] = origin
    if isinstance(values, dict) or values is None:
        above[name] = values or {}
    else:
        draft.complain(place, "a corpus file is a mapping of the keys of the section corpus to values")
        above[name] = {}


def _open_queries_from(corpus: dict[str, object], draft: Draft) -> None:
    """Of the corpus file that queries are of: its documents and speakers; and its queries, unless others are named."""
    place: Place = ("corpus", "queries_from")
    _open(corpus, place, draft)
    theirs = corpus["queries_from"]
    if not isinstance(theirs, dict):
        return
    if corpus.get("queries") is None:
        for key in ("queries", "spoken"):
            if theirs.get(key) is not None:
                corpus[key], draft.origins["corpus", key] = theirs[key], draft.origin((*place, key))
    kept = {key: value for key, value in theirs.items() if key in QueriesFrom.model_fields}
    unknown = [key for key in theirs if key not in kept and key not in Corpus.model_fields]
    for key in unknown:
        draft.complain((*place, key), "no such key of a corpus file")
    corpus["queries_from"] = kept


def _from_here(path: str) -> str:
    here = str(Path.cwd()).rstrip("/") + "/"
    return path.removeprefix(here)


def _finish(draft: Draft, sets: Sequence[Assignment]) -> Config:
    """Put the `sets` in, make paths absolute, validate; raise with all that is wrong."""
    _open_corpus(draft)
    for given in sets:
        _set(given, draft)
        _open_corpus(draft)
    settled = _settle(draft.values, Config, (), draft)
    _extractor_paths(settled, draft)
    _chain_paths(settled, draft)
    _steps_of_joined(settled)
    corpus, score = settled.get("corpus"), settled.setdefault("score", {})
    if isinstance(corpus, dict) and isinstance(score, dict):
        named = corpus.get("protocol")
        if named in words(Corpus.model_fields["protocol"]):  # what is not is complained of at its own place
            score.setdefault("protocol", named)
    try:
        # Strict, or "yes" and 1 would be true; by way of JSON, for a strict tuple takes no list.
        config = Config.model_validate_json(json.dumps(settled), strict=True)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            _, _, place = find(_as_given(each["loc"], draft.values))
            if not draft.faulty(place):
                draft.complain(place, _explain(each["type"], each["msg"], each["input"], place))
        raise _error(draft) from None
    if draft.problems:
        raise _error(draft)
    return config


def _as_given(place: Place, values: dict[str, object]) -> Place:
    """A place of the validated values in those that were given, where one section may stand for a list of one."""
    known = Config.model_fields.get(str(place[0])) if place else None
    alone = known is not None and is_one_or_more(known) and not isinstance(values.get(str(place[0])), list)
    return (place[0], *place[2:]) if alone and place[1:2] == (0,) else place


def _settle(values: dict[str, object], model: type[Section], place: Place, draft: Draft) -> dict[str, object]:
    """Values with paths made absolute and empty sections and mappings made real ones."""
    settled = dict(values)
    for name, known in model.model_fields.items():
        if name not in values:
            continue
        value, here = values[name], (*place, name)
        section = section_of(known)
        if section and is_one_or_more(known) and isinstance(value, dict | list | None):
            several = value if isinstance(value, list) else [value or {}]
            places = [(*here, k) for k in range(len(several))] if isinstance(value, list) else [here]
            settled[name] = [
                _settle(each, section, there, draft) if isinstance(each, dict) else each
                for each, there in zip(several, places, strict=True)
            ]
        elif value is None and (section or is_mapping(known)):
            settled[name] = {}
        elif section and isinstance(value, dict):
            settled[name] = _settle(value, section, here, draft)
        elif is_path(known) and isinstance(value, str) and value and value not in words(known):
            word = closest(value, words(known))
            if word and re.fullmatch(r"[\w-]+", value):
                draft.complain(here, f"did you mean {word}? If it is a file, write ./{value}")
            elif re.match("s3:(?!//)", value):
                draft.complain(here, f"did you mean s3://{value[3:].lstrip('/')}? If it is a file, write ./{value}")
            settled[name] = absolute(value, draft.origin(here).base)
    return settled


def _extractor_paths(settled: dict[str, object], draft: Draft) -> None:
    """Make paths among the options of extractors and transforms absolute: their own models say which are (`IsPath`)."""
    several = each if isinstance(each := settled.get("features"), list) else []
    for k, features in enumerate(several):
        if not isinstance(features, dict):
            continue
        place: Place = ("features",) if isinstance(draft.values["features"], dict) else ("features", k)
        name = features.get("name", Features.model_fields["name"].default)
        transforms = features.get("transforms")
        several[k] = features = _with_paths(FEATURES, name, features, place, draft)
        if isinstance(transforms, list | tuple):
            features["transforms"] = [
                _with_paths(TRANSFORMS, one.get("name"), one, (*place, "transforms", n), draft)
                if isinstance(one, dict)
                else one
                for n, one in enumerate(transforms)
            ]


def _chain_paths(settled: dict[str, object], draft: Draft) -> None:
    """Make paths among the options of the chain absolute, where these are sections of their own."""
    name, given = settled.get("chain"), settled.get("options")
    if not isinstance(name, str) or not isinstance(given, dict) or name not in CHAINS:
        return
    entry = CHAINS[name]
    model = entry.model() if isinstance(entry, Configured) else None
    if model is not None and issubclass(model, Section):
        settled["options"] = _settle(given, model, ("options",), draft)


def _steps_of_joined(settled: dict[str, object]) -> None:
    """The default steps of calibration of lists that are joined: without candidates there is no q-norm."""
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
    """The section of a registered thing, with the paths among its options made absolute."""
    given = section.get("options")
    if not isinstance(given, dict):
        return dict(section)
    options: dict[str, object] = dict(given)
    texts = {option: value for option, value in options.items() if isinstance(value, str) and value}
    # The thing is looked at only where an option may be a path: most are numbers, and some things are heavy.
    if not texts or not isinstance(name, str) or name not in registry:
        return dict(section)
    try:
        known = getattr(registry[name].load(), "model_fields", {})
    except ConfigError:
        return dict(section)  # whoever makes it tells it
    for option, value in texts.items():
        if option in known and is_path(known[option]):
            options[option] = absolute(value, draft.origin((*place, "options", option)).base)
    return {**section, "options": options}


def _explain(kind: str, message: str, value: object, place: Place) -> str:
    """What is wrong at a place, in the model's own words. `kind` and `message` are pydantic's."""
    section, known, _ = find(place)
    last = place[-1] if place else ""
    element, index = (True, last) if isinstance(last, int) else (False, 0)
    if kind == "extra_forbidden" and section:
        name = str(last)
        here = f"Allowed here: {', '.join(section.model_fields)}"
        if name in {key.dotted for key in keys()}:
            return f"no such key; a dotted name is for --set, in a file keys are nested. {here}"
        guesses = " or ".join(meant(name, section, place[:-1]))
        return f"no such key; did you mean {guesses}? {here}" if guesses else f"no such key. {here}"
    if known is None or kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ")
    may_be = allowed(known, element, index)
    if kind == "missing":
        return f"missing; it must be given: {may_be}{f' ({known.description})' if known.description else ''}"
    word = closest(value, words(known, element, index)) if isinstance(value, str) else None
    guess = f"did you mean {word}? Allowed" if word else "allowed"
    quote = isinstance(value, bool | int | float) and may_be.startswith(("text", "path"))
    return f"{shown(value, 60)} is not allowed; {guess}: {may_be}{' (quote it)' if quote else ''}"


def _error(draft: Draft) -> ConfigError:
    """One error of all problems, in the order of the files' lines, then of the `--set`s."""
    problems = [(origin, place, text) for place, found in draft.problems.items() for origin, text in found]
    files = list(dict.fromkeys(origin.source for origin in draft.origins.values()))
    problems.sort(key=lambda each: (each[0].line == 0, each[0].line and files.index(each[0].source), each[0].line))
    lines = []
    for origin, place, text in problems:
        name = dotted(place)
        named = not name or place[0] == "--set" or str(origin) in (f"--set {name}", f"--{name}")
        lines.append((str(origin), text if named else f"{name}: {text}"))
    if len(lines) == 1:
        where, text = lines[0]
        return ConfigError(text, where=where or None, remedy=REMEDY)
    listing = "".join(f"\n  {f'{where}: ' if where else ''}{text}" for where, text in lines)
    return ConfigError(f"{len(lines)} errors{listing}", where=draft.origins[()].source or "config", remedy=REMEDY)
