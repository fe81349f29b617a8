"""The configs of SUPERB's search: one for each layer and set of queries."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swsdist.calibrate.procedure import Procedure
from swsdist.chains.superb.variants import VARIANTS
from swsdist.config import Config, config_from_dict, dump_config
from swsdist.config.template import without_secrets
from swsdist.corpora.quesst import QuesstDatabase, Split
from swsdist.features.ssl.folder import WHISPER, read_encoder
from swsdist.io.filesystem import Folder

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
