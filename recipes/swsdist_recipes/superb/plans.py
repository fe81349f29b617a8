"""The encoder that is searched with, and the configs of the search: one for each layer and set of queries."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swsdist.calibrate.procedure import Procedure
from swsdist.config import Config, config_from_dict, dump_config
from swsdist.config.template import without_secrets
from swsdist.features.ssl.folder import WHISPER, read_encoder
from swsdist.io.filesystem import Folder
from swsdist.io.local import folder_of
from swsdist_recipes.quesst.database import QuesstDatabase, Split
from swsdist_recipes.superb import VARIANTS, codes

#: Of the files in the run folder.
PLACE = "superb"

#: Spoken in what SUPERB uses of the database.
LANGUAGE = "nnenglish"

#: Gain of every recording, dB.
GAIN = -3.0

#: Seconds that Whisper is given: a recording and silence behind it, as in training, and as s3prl's branch `se` does.
WINDOW = 30.0

#: Normalised scores above it are decided YES, standard deviations.
THRESHOLD = 2.0


@dataclass(frozen=True)
class System:
    """What is searched with.

    Attributes:
        name: of the model.
        features: the config's section.
        tracks: of the store, by the number of the layer.
        variant: a name of `VARIANTS`.
        sets: overrides of every config, `a.b=c` each.
    """

    name: str
    features: Sequence[Mapping[str, Any]]
    tracks: Mapping[int, str]
    variant: str = "default"
    sets: tuple[str, ...] = ()

    @classmethod
    def of_model(
        cls, name: str, folder: str, layers: Sequence[int], variant: str = "default", sets: tuple[str, ...] = ()
    ) -> System:
        """All layers in one pass over the model in a folder."""
        options = {"model": folder, "layers": list(layers), "gain": GAIN}
        if read_encoder(folder).kind == WHISPER:
            options |= {"short_seconds": WINDOW, "window_seconds": WINDOW}
        tracks = {layer: f"layer{layer}" for layer in layers}
        # A single track would have the extractor's name.
        named = {"track": tracks[layers[0]]} if len(layers) == 1 else {}
        return cls(name, [{"name": "ssl", **named, "options": options}], tracks, variant, sets)


def upstream_folder(name: str) -> str:
    """The folder of a model.

    Args:
        name: a folder, or an id (`facebook/hubert-base-ls960`) that the hub's cache on this machine has.

    Raises:
        ConfigError: it is no folder, and the cache does not have the model.
    """
    folder = Path(folder_of(name))
    if not folder.is_dir():
        raise codes.NO_SUCH_UPSTREAM(where="--upstream", name=name)
    return str(folder.absolute())


def chosen_layers(text: str, folder: str) -> tuple[int, ...]:
    """Layers of a model, ascending.

    Args:
        text: `all`, or numbers between commas.
        folder: of the model.

    Raises:
        ConfigError: not such a list, or the model has no such layer.
    """
    last = read_encoder(folder).layers
    if text == "all":
        return tuple(range(last + 1))
    numbers = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) <= last for part in numbers):
        raise codes.NO_SUCH_LAYERS(where="--layers", text=text, last=last)
    return tuple(sorted({int(part) for part in numbers}))


def write_inputs(run: Folder, database: QuesstDatabase) -> None:
    """Write the tables of a corpus, and the threshold, into the run folder."""
    texts = {"documents.csv": _table(("doc_id", "path"), database.documents.items())}
    for split, queries in database.queries.items():
        truth = database.truth[split]
        texts[f"{split}-queries.csv"] = _table(("query_id", "path"), queries.items())
        pairs = zip(*(truth.references[name].to_pylist() for name in ("query_id", "doc_id")), strict=True)
        searched = [pair for pair in dict.fromkeys(pairs) if pair[0] in queries and pair[1] in database.documents]
        # A trial is a document, so times do not matter.
        rows = ((query, document, "0", "0.001") for query, document in searched)
        texts[f"{split}-references.csv"] = _table(("query_id", "doc_id", "start", "end"), rows)
    run.write_bytes(
        f"{PLACE}/inputs.json", b'{"recipe": "superb"}'
    )  # first: by this file the folder is known as a run's
    for name, text in texts.items():
        run.write_bytes(f"{PLACE}/{name}", text.encode())
    run.write_bytes(f"{PLACE}/threshold.json", Procedure((), thresholds=(THRESHOLD,), fit="given").to_json())


def config_of_layer(run: str, database: QuesstDatabase, system: System, split: Split, layer: int) -> Config:
    """The config that searches a set of queries with a layer.

    Args:
        run: the run folder.
        database: the recordings.
        system: what is searched with.
        split: the set of queries.
        layer: its number.

    Raises:
        ConfigError: an override is not valid.
    """
    files = {name: f"{run}/{PLACE}/{split}-{name}.csv" for name in ("queries", "references")}
    values: dict[str, Any] = {
        "run": run,
        "system": f"{system.name}-layer{layer}",
        "corpus": {"documents": f"{run}/{PLACE}/documents.csv", **files},
        # A list has no keys that an override could name.
        "features": system.features[0] if len(system.features) == 1 else list(system.features),
        "queries": {"trim": "none"},
        "search": {
            **VARIANTS[system.variant],
            "streams": [{"track": system.tracks[layer]}],
            "recurrence": "asymmetric",
            "least_query_frames": 5,
            "candidates": {"least": 1, "per_second": 0},
        },
        # Some hundred thousand trials are few: one task a stage.
        "reduce": {"buckets": 1, "nbest": {"least": len(database.documents), "per_second": 0}},
        "calibrate": {"steps": ["q-norm"], "fit": f"{run}/{PLACE}/threshold.json"},
        "score": {"protocol": "quesst"},
    }
    return config_from_dict(values, ".", system.sets)


def write_config(run: Folder, plan: str, config: Config) -> None:
    """Write a config into the run folder, for `swsdist run`."""
    run.write_bytes(f"{PLACE}/configs/{plan}.yaml", dump_config(without_secrets(config)).encode())


def _table(columns: Sequence[str], rows: Any) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()
