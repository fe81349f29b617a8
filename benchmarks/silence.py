"""Silence that is marked in documents, and left out (`search.skip_silence`): what it keeps, what it costs, what it saves.

Mboshi dev with `configs/mboshi-dev.yaml`. Of the frames inside references those that are marked as speech are counted.
Listening is timed beside MFCC of the same samples, in CPU s of this process.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks.corpora import ROOT, mboshi
from benchmarks.rows import Row, at_least, main, say
from swsdist import api
from swsdist.audio.reader import read_blocks
from swsdist.audio.speech import Listener, unpack_marks
from swsdist.config import load_config
from swsdist.core.numbers import seconds_to_frame
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create
from swsdist.stages.inputs.search_inputs import SearchInputs

_MEASURES = {"MTWV": "mtwv", "pair AUC": "pair_auc", "min Cnxe": "cnxe_min"}


def measure(scratch: Path) -> list[Row]:
    """Quality with and without silence, what is marked, and what listening costs."""
    if mboshi() is None:
        return [Row("silence (Mboshi dev is not beside the checkout)", None, "")]
    rows = []
    cells = {}
    for k, skip in enumerate(("false", "true")):
        name = "silence left out" if skip == "true" else "all frames"
        say(f"silence: {name}")
        places = [f"run={scratch / f'run{k}'}", f"index.store={scratch / 'store'}", "report.exports=[]"]
        sets = [*places, f"search.skip_silence={skip}"]
        result = api.run(load_config(ROOT / "configs" / "mboshi-dev.yaml", sets))
        measures = result.measures()
        rows += [Row(f"{name}: {label}", measures[key], "") for label, key in _MEASURES.items()]
        cells[skip] = sum(receipt.cost.cells for receipt in result.outcome.chain_run.outcomes["search"].receipts)
    rows.append(Row("cells that are searched, of all", cells["true"] / cells["false"], ""))
    own: SearchInputs = result.outcome.chain_run.chain.inputs
    rows.append(Row("frames of references that are speech", _kept(own), "", at_least(0.98)))
    rows.append(Row("listening / MFCC", _cost(own), ""))
    return rows


def _kept(own: SearchInputs) -> float:
    """Part of the frames inside references that are marked."""
    store = own.store.open()
    rows = store.documents(columns=["doc_id", "channel", "frames", "speech"]).to_pylist()
    marks = {(row["doc_id"], row["channel"]): unpack_marks(row["speech"], row["frames"]) for row in rows}
    shift = store.manifest.shift
    assert own.corpus.references is not None
    inside = [
        marks[row["doc_id"], row["channel"]][
            seconds_to_frame(row["start"], shift) : seconds_to_frame(row["end"], shift)
        ]
        for row in own.corpus.references.to_pylist()
    ]
    return float(np.concatenate(inside).mean())


def _cost(own: SearchInputs) -> float:
    """CPU s of listening over those of MFCC, of the first documents."""
    extractor, spent = create("mfcc", {}), [0.0, 0.0]
    for path in own.corpus.documents["path"].to_pylist()[:300]:
        samples = np.concatenate(list(read_blocks(path, rate=extractor.sample_rate)))
        began = time.process_time()
        frames = sum(map(len, in_blocks(extractor, [samples])))
        middle = time.process_time()
        listener = Listener(extractor.sample_rate)
        listener.add(samples)
        listener.marks(frames, extractor.hop, extractor.frame_length)
        spent = [spent[0] + middle - began, spent[1] + time.process_time() - middle]
    return spent[1] / spent[0]


if __name__ == "__main__":
    main(measure, __doc__)
