"""The option `--model`: encoders make frames, a recogniser makes words.

The model's folder tells its kind. If no model of a kind is named, those of the folder's run stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from swsdist.config import Config
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import ConfigError, DataError, UserError
from swsdist.corpora.documents import recordings
from swsdist.features.ssl.extractor import settings_of, settings_with
from swsdist.features.ssl.folder import CONFIG, read_encoder
from swsdist.io.filesystem import Folder
from swsdist.io.local import folder_of, way_to
from swsdist.lattices.collection import LatticeFile, document_id, find_files, read_file
from swsdist.lattices.lattice import Broken, Lattice, Origin
from swsdist.lattices.packed import Recipe, pack
from swsdist.lattices.words import key_of
from swsdist.pipeline.ledger import load_plans
from swsdist.pipeline.status import config_of
from swsdist.registry.entries import checked
from swsdist.registry.registries import RECOGNISERS

#: The recogniser of which there may be a model in the cache, if none is named.
_USUAL = "whisper"
#: The source of words that are read, not recognised.
_FILES = "files"
#: How terms are searched in its words: names are often written in another way.
_NEAR = {"nearest": 8, "edit_cost": 3.0}


def frames(models: Sequence[str], run: str, source: str, search: bool) -> list[str]:
    """Settings of frames of encoders, and of words beside them: KEY=VALUE.

    Args:
        models: folders, or names in the cache of the hub.
        run: folder of the run.
        source: folder of recordings; transcripts beside them are words, which are not recognised.
        search: whether it searches; if not, it discovers, without words.

    Raises:
        UserError: two are recognisers, or one that does not search.
        ConfigError: one is neither encoder nor recogniser.
    """
    _demand_models(models)
    recognisers = {model: name for model in models if (name := _recogniser_of(model)) is not None}
    for model, name in recognisers.items() if not search else ():
        raise families.UNSUPPORTED(
            "this is a model of the recogniser {name}, and words are discovered in frames",
            "name a speech encoder",
            where=f"--model {model}",
            name=name,
        )
    encoders, before = [model for model in models if model not in recognisers], [*_configs(run)]
    settings = settings_of(encoders, search) if encoders else _encoders(before, search)
    words: Any = next((config.options["words"] for config in before if config.options.get("words")), None)
    transcripts = _transcripts(source) if search else []
    if recognisers:
        words = {"recogniser": _recogniser([*recognisers]), "terms": _NEAR}
    elif not words or words.get("source") == _FILES:
        words = {"source": _FILES} if _has_transcript(source, transcripts) else None
    if not words:
        return settings
    lattices = {"path": source} if transcripts else {}
    return [*settings, f"options.words={json.dumps({**words, 'lattices': lattices})}"]


def words(models: Sequence[str], run: str, source: str, sets: Sequence[str], texts: str | None = None) -> list[str]:
    """Settings of words of recordings, of those that have no transcript, by a recogniser; none where all have one.

    Args:
        models: folder, or name in the cache of the hub, of a recogniser, or none.
        run: folder of the run.
        source: folder of recordings, transcripts, or both.
        sets: what is set besides: `options.source`, or another recogniser by its name.
        texts: of all recordings, which are aligned.

    Raises:
        UserError: there are several models, or one of another kind; there are no recordings to recognise, or their source is
            set; or there is no model.
        ConfigError: there is no such model.
    """
    _demand_models(models)
    names, transcripts = _recordings(source), [] if texts is not None else _transcripts(source)
    demanded = "swsdist align" if texts is not None else "--model" if models else None
    if demanded and not names:
        raise families.EMPTY_INPUT(
            "the folder has no recordings to recognise",
            "add recordings; without any, index what there is without --model",
            where=source,
        )
    if is_set := [item for item in sets if item.startswith("options.source=")]:
        if demanded:
            raise families.CONFLICTING_OPTIONS(
                "{what} takes a recogniser as the source of words",
                "leave out options.source",
                where=f"--set {is_set[-1]}",
                what=demanded,
            )
        return []
    untold = _untold(source, names, transcripts)
    if not (models or untold):
        return []
    settings: dict[str, Any] = {"options.source": "recogniser"} | ({} if texts is None else {"options.texts": texts})
    if texts is None:
        settings["options.terms"] = _NEAR
    if transcripts:
        settings["options.lattices.path"] = source
    before = [config.options for config in _configs(run) if config.options.get("source") == "recogniser"]
    if models:
        settings["options.recogniser"] = _recogniser(models)
    elif any(item.startswith("options.recogniser.name=") for item in sets):
        pass
    elif before:
        settings["options.recogniser"] = before[0].get("recogniser", {})
    else:
        model = str(checked(RECOGNISERS, _USUAL, {}, "options")["model"])
        if _recogniser_of(model) is None:
            raise codes.NO_RECOGNISER(where=source, count=len(untold), model=model)
        settings["options.recogniser"] = _recogniser([model])
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def _demand_models(models: Sequence[str]) -> None:
    """Refuse a folder whose folders are models.

    Raises:
        ConfigError: one is.
    """
    for model in models:
        folder = Path(folder_of(model))
        below = [each for each in sorted(folder.glob("*")) if (each / CONFIG).is_file()]
        if below and not (folder / CONFIG).exists() and _recogniser_of(model) is None:
            raise families.WRONG_KIND.of(ConfigError)(
                "this folder is no model, but has models in it",
                "name one of them: {models}",
                where=f"--model {model}",
                models=" or ".join(quote(str(each)) for each in below),
            )


def _configs(run: str) -> Iterator[Config]:
    """Those of a run's plans, if there is one."""
    folder = Folder(run)
    yield from (config_of(folder, plan) for plan in (load_plans(folder) if folder.exists("plan.json") else {}).values())


def _encoders(before: Sequence[Config], search: bool) -> list[str]:
    """Settings of the encoders of earlier configs."""
    for sections in (config.features for config in before):
        encoders = [track for track in sections if track.name == "ssl" and track.options.get("layer") is not None]
        if encoders and len(encoders) == len(sections) - (not search):  # to discover, loudness is beside them
            return settings_with([section.model_dump(mode="json") for section in encoders], search)
    return []


def _recogniser(models: Sequence[str]) -> dict[str, object]:
    """The section of a recogniser's model, the only one."""
    if len(models) > 1:
        raise families.CONFLICTING_OPTIONS(
            "{first} and {second} are both models of recognisers",
            "name one",
            where="--model",
            first=models[0],
            second=models[1],
        )
    folder, where = Path(folder_of(models[0])).absolute(), f"--model {models[0]}"
    if not folder.is_dir():
        raise codes.NO_WHISPER_MODEL(where=where, model=models[0], fix=way_to(models[0]))
    if (name := _recogniser_of(models[0])) is None:
        listed = [f"{', '.join(RECOGNISERS[name].model_files)} ({name})" for name in RECOGNISERS.available]
        raise families.WRONG_KIND(
            "{what} is no model of a recogniser",
            (
                "name a folder that holds {wanted}; `ct2-transformers-converter --model FOLDER "
                "--output_dir NEW` makes one of a Whisper of transformers"
            ),
            where=where,
            what=_kind(folder),
            wanted=" or ".join(listed),
        )
    return {"name": name, "options": {"model": str(folder)}}


def _recogniser_of(model: str) -> str | None:
    """The recogniser of a model, by the files of its folder; None: it is of none."""
    folder, wanted = Path(folder_of(model)), {name: RECOGNISERS[name].model_files for name in RECOGNISERS}
    found = (name for name, files in wanted.items() if files and all(any(folder.glob(file)) for file in files))
    return next(found, None)


def _kind(folder: Path) -> str:
    """What a folder is, if no recogniser's model."""
    try:
        return f"a speech encoder ({read_encoder(str(folder)).kind})"
    except ConfigError:
        pass
    try:
        kind = json.loads((folder / "config.json").read_bytes())["model_type"]
    except (OSError, ValueError, LookupError, TypeError):
        return "this folder"
    return f"a model of the type {kind}"


def _recordings(source: str) -> set[str]:
    """Names of the recordings of a folder."""
    try:
        return set(recordings(source, {}))
    except UserError:
        return set()


def _transcripts(source: str) -> list[LatticeFile]:
    """Files of transcripts or lattices of a folder."""
    try:
        return find_files(source, None, {}, lambda path, better: None)
    except UserError:
        return []


def _has_transcript(source: str, files: Sequence[LatticeFile]) -> bool:
    """Whether a recording has a transcript with words."""
    names = _recordings(source) if files else set()
    return any(
        document_id(item.key, file.path, source) in names and _has_words(item)
        for file in files
        for item in read_file(file.format, Origin(file.path))
    )


def _has_words(item: Lattice | Broken) -> bool:
    try:
        return isinstance(item, Lattice) and bool(pack(item, Recipe()).words)
    except DataError:
        return False


def _untold(source: str, names: set[str], files: Sequence[LatticeFile]) -> set[str]:
    """Names of the recordings without a transcript. Only files that are not named after a recording are read."""
    own = {file.path: document_id(key_of(file.path), file.path, source) for file in files}
    untold = names - set(own.values())
    for file in files if untold else ():
        if own[file.path] not in names:
            items = read_file(file.format, Origin(file.path))
            untold -= {document_id(item.key, file.path, source) for item in items}
    return untold
