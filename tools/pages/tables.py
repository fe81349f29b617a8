"""docs/reference/tables.md, from the schemas of `swsdist.core.types` and of the chain discover, and the meanings here."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from swsdist.chains.discover import chain as discover
from swsdist.chains.discover import propose_pairs
from swsdist.core import types
from swsdist.discovery import scene
from swsdist.io.tables import NOBODY

_HEAD = """\
# Tables

<!-- Generated from swsdist/core/types.py and tools/pages/tables.py: make docs -->

Stages exchange Parquet files. Their schemas are in `swsdist.core.types`, and those of the chain
[discover](../concepts/discovery.md) in its stages; `?` marks columns that may be null. Times are seconds, channels
count from 1, higher scores are more likely. In Python:

```python
import swsdist

result = swsdist.run("demo/run/config.yaml")
print(result.detections().head(), result.trials().head(), result.terms().head(), result.det().head())
```

Your tables may be CSV (separated by commas, semicolons or tabs; decimal points or commas; decisions true/false, yes/no, 1/0) or
Parquet. Files in a run folder are named by fingerprint, and those of earlier configs stay until `swsdist clean RUN`;
`plan.json` and
the receipts name the current ones:

```python
import json
from pathlib import Path

import pyarrow.parquet as pq

run = Path("demo/run")
plan = json.loads((run / "plan.json").read_text())
step = plan["plans"]["run"]["steps"]["decide"]
tasks = plan["tasks"][step["tasks"]].split()  # fingerprints
receipts = pq.read_table(run / "receipts" / f"{step['stage']}.parquet").to_pylist()
outputs = [output for receipt in receipts if receipt["fingerprint"] in tasks for output in receipt["outputs"]]
scored = pq.read_table(sorted({run / output["name"] for output in outputs if output["table"] == "scored"}))
```
"""


class Section(NamedTuple):
    """A table on the page.

    Attributes:
        title: heading.
        text: what the table is, and where.
        base: name of the schema whose columns come first, and are not repeated.
        columns: meanings of columns that differ from `_COLUMNS`.
        note: after the columns.
    """

    title: str
    text: str
    base: str = ""
    columns: dict[str, str] = {}
    note: str = ""


#: Meanings of columns, unless a section has another.
_COLUMNS = {
    "query_id": "query",
    "doc_id": "document",
    "channel": "channel of the document",
    "example": "number of the example",
    "path": "recording",
    "duration": "s",
    "speaker": "speaker",
    "start": "s",
    "end": "s",
    "score": "higher is more likely",
    "decision": "YES or NO; null: undecided",
    "features": "little-endian float32, of a track of `dtype: float16` float16; frames x dimension, not normalised",
    "frames": "number of frames",
    "mean": "per dimension",
    "variance": "per dimension",
    "bandwidth": "[highest frequency](recordings.md#bandwidth), Hz",
    "parts": "of each system: its name, its score (or an imputed one), and whether it has a detection",
    "system": "name of the system",
    "host": "node",
    "stage": "stage",
    "fingerprint": "fingerprint of the task",
    "pid": "process",
    "gpu_s": "GPU seconds",
    "bytes_read": "bytes read",
    "bytes_written": "bytes of outputs",
}

SECTIONS = {
    "CORPUS": Section(
        "Documents",
        "`corpus.documents`: your table, or made from a folder of audio or a Kaldi `wav.scp`.",
        columns={
            "path": "recording, relative to the table; may be missing with "
            "[precomputed features](../how-to/use-your-own-features.md)",
            "duration": "s; null: from the file",
            "speaker": "for statistics per speaker, without blanks around it; empty or, in any case, "
            + ", ".join(f"`{name}`" for name in NOBODY if name)
            + ": not known",
        },
    ),
    "PLACED": Section(
        "Documents that are places in recordings",
        "Kaldi [segments](../how-to/use-a-kaldi-corpus.md) and ECF "
        "[excerpts](../how-to/use-a-nist-corpus.md). References, queries and "
        "detections refer to the recordings.",
        base="CORPUS",
        columns={
            "recording": "name of the recording",
            "start": "s, in the recording",
            "end": "s",
            "listed": "source file and line",
        },
    ),
    "QUERIES": Section(
        "Queries",
        "`corpus.queries`, one row per example: a file (`path`), or a place (`start`, `end`) in a file or document (`doc_id`).",
        columns={
            "example": "from 1; 1 is the primary one",
            "doc_id": "document, instead of `path`",
            "start": "s; null: beginning",
            "end": "s; null: end",
            "term": "text, for people",
        },
        note="Missing ends are [trimmed](../concepts/speech-marks.md) unless `queries.trim` is `none`. "
        "Other columns are ignored; "
        "one with a similar name (`Start`, `begin`, `speaker_id`) gives a warning.",
    ),
    "REFERENCES": Section("References", "`corpus.references`: true occurrences."),
    "JUDGEMENTS": Section(
        "Judgements",
        "`corpus.references`, too: places that people judged, as a [glossary](../how-to/collect-words.md) has them. A table "
        "with the column `verdict` is read so; the columns after it may be absent. What nobody judged is not scored.",
        base="REFERENCES",
        columns={
            "verdict": "`yes`, `no` or `unsure`",
            "person": "who judged it last",
            "at": "when, ISO 8601 in UTC",
            "score": "of the hit that was judged",
            "note": "of the token",
        },
    ),
    "DOCUMENTS": Section(
        "Documents of a store",
        "`documents-*.parquet` of a store, one per track, in the order of shards.",
        columns={
            "path": "recording when last indexed; empty: none",
            "shard": "shard of its frames, of the first track",
            "rows": "number of rows that the document takes in that shard",
            "identity": "size and modification time, to notice changes",
            "sha256": "of the recording; of a place, of recording and times; of precomputed features, of these",
            "mean": "per dimension, over all frames",
            "variance": "per dimension, over all frames",
            "speech": "[speech marks](../concepts/speech-marks.md): one bit per frame, lowest bit first; null: not computed",
            "recording": "recording of a place; null: a whole recording",
            "start": "s, in that recording",
            "cut_off": "s, length of a [cut-off](recordings.md#recordings-that-are-cut-off) recording; 0: "
            "unknown; null: complete",
            "stretches": "mean and variance of each stretch of 1024 frames, one after the other; null: the speaker is "
            "known, or there is one stretch",
            "voices": "[voice](../concepts/feature-store.md#voices) of each stretch, in the first track; null: the speaker is "
            "known",
            "language": "code of the language of the words, as a recogniser was given it or detected it; null: unknown",
            "speech_seconds": "s of speech that a recogniser found; null: unknown",
            "left_out": "of the words: `reason` (a [code](codes.md)), `items`, and `seconds` of sound of a recogniser's texts; "
            "null: nothing",
        },
    ),
    "VOICES": Section(
        "Voices of a store",
        "`models/voices-*.parquet`: groups of speech by nobody named, a pinned model "
        "([voices](../concepts/feature-store.md#voices)). A voice's number is its row, from 0.",
        columns={"mean": "per dimension, over all frames", "variance": "per dimension, over all frames"},
    ),
    "STATISTICS": Section(
        "Statistics of a store",
        "`models/statistics-*.parquet`: pinned normalisation statistics of speakers and of the collection.",
        columns={
            "scope": "`collection` or `speaker`",
            "name": "speaker; empty for the collection",
            "frozen": "false until failed tasks are repeated",
            "taken_from": "hashes of doc_id, channel and SHA-256 of the recordings",
        },
    ),
    "FRAMES": Section(
        "Frames",
        "`shards/part-*.parquet` of a store; consecutive rows are consecutive frames.",
        columns={"first_frame": "number of the row's first frame, from 0", "frames": "frames in the row, at most 4096"},
    ),
    "EXAMPLES": Section(
        "Query examples",
        "Input of a method, from the [store of queries](../concepts/feature-store.md#queries-are-a-store-too) in `queries/`. "
        "Columns of several tracks are side by side.",
        columns={
            "mean": "of the recording, if it [normalises](../concepts/normalisation.md) the query",
            "variance": "likewise",
        },
    ),
    "CANDIDATES": Section(
        "Candidates",
        "`tables/candidates/`, by stage `search`, sorted by slot; score = -`cost` / `scale`.",
        columns={
            "slot": "hash of the query, 0 to 4095; bucket k of B has the slots s with s B // 4096 = k",
            "example": "number of the example; template: the query's least",
            "first": "first tick; a tick is a frame of the store",
            "last": "last tick",
            "cost": "sum of local distances, at most 2^40; posterior p: -round(p 2^40)",
            "scale": "query frames times unit of the distance; posterior: 2^40",
        },
    ),
    "DETECTIONS": Section(
        "Detections",
        "`tables/detections/` by `reduce`, `tables/normalised/` by `normalise`, `tables/scored/` by `decide`; "
        "`exports/detections.csv`.",
        columns={
            "score": "after `reduce`: the negative mean distance (-cost / scale), or a posterior; "
            "after `normalise`: the normalised score",
            "cost": "cost of the path",
            "frames": "document frames of the path",
            "example": "best example of the query",
        },
    ),
    "QUERY_STATISTICS": Section(
        "Score statistics",
        "`tables/statistics/`, by stage `reduce`: integers that [calibration "
        "steps](../how-to/add-a-calibration-step.md) need, over all "
        "candidates; `tables/described/`: of query examples.",
        columns={
            "statistic": "`cost-sums`, `speaker-cost-sums`, `score-histogram`, `posterior-sums`; `example-lengths`, "
            "`example-entropies`, `example-speech`",
            "example": "number; 0: all, or means over examples; histogram: bin; speaker-cost-sums: index of the speaker",
            "scale": "scale of the costs; histogram: bins per unit; entropies: units per nat",
            "quantity": "`candidates`, `cost_sum`, `cost_square_sum`, `posterior_sum`, `examples`, `microseconds`, `frames`, "
            "`entropy_sum`, `voiced`",
            "value": "integer",
        },
    ),
    "COHORT_SUMS": Section(
        "Sums of a cohort",
        "`tables/sums/`, by stage `cohort`: cohort scores at each place.",
        columns={
            "window": "number of the stretch, from 0; 0 for whole documents",
            "queries": "cohort queries found there",
            "score_sum": "sum of their best scores after q-norm, units of 2^-16",
            "score_square_sum": "sum of the squares",
        },
    ),
    "TRIALS": Section(
        "Trials",
        "`tables/trials/`, by `align.train` (for the fit) and `align.final` (scored). A hit has both sides, a false alarm no "
        "reference, a miss no detection.",
        columns={
            "start": "s, detection",
            "end": "s, detection",
            "score": "of the detection",
            "decision": "of the detection",
            "ref_start": "s, reference",
            "ref_end": "s, reference",
        },
    ),
    "BEST": Section(
        "Best hits",
        "`tables/best/`, by `summarise`: of each bucket the best hits for the report and for clips, the best of each query "
        "before any second.",
        base="DETECTIONS",
        columns={
            "turn": "0 for the best of its query, then 1, 2, ...",
            "verdict": "`hit`, `false alarm`, or `unknown` without references",
        },
    ),
    "SUMMARY": Section(
        "Summary of the list",
        "`tables/summary/`, by `summarise`: a row a query.",
        columns={
            "detections": "their number",
            "sha256": "of their rows, for the run's digest; null without any",
            "twv": "term-weighted value at the threshold of MTWV; null without references",
        },
    ),
    "JOINED": Section(
        "Joined detections",
        "`tables/joined/` and `tables/filled/` of the chain `fuse`: merged "
        "[detections](../concepts/fusion.md) of several systems.",
        base="DETECTIONS",
    ),
    "JOINED_TRIALS": Section(
        "Trials of joined detections",
        "`tables/trials/` of a fusion, by `align-joined`: what it is fitted on.",
        base="TRIALS",
    ),
    "SEGMENTS": Section(
        "Segments",
        "`tables/segments/` of the chain `discover`, by stage `cut-segments`.",
        columns={
            "recording": "of the document",
            "origin": "frame of the recording at which the document begins",
            "first": "first frame in the document",
            "signature": "packed bits",
        },
    ),
    "PAIRS": Section(
        "Pairs of segments",
        "`tables/proposed/` by `propose-pairs` or `search-segments`, `tables/selected/` by `select-pairs`. Segments are "
        "numbered by document, channel and first frame.",
        columns={
            "slot": "hash of the document of the first, 0 to 4095",
            "left": "number of a segment",
            "right": "number of another, if selected a later one",
            "unlike": "bits in which their signatures differ, or by exact search the cost of the path",
        },
    ),
    "MATCHES": Section(
        "Matches",
        "`tables/matches/` by `align-pairs`: two stretches that are alike, the first in the document of the lesser name.",
        columns={
            "slot": "hash of the first document, 0 to 4095",
            "first": "first frame",
            "stop": "last frame + 1",
            "other_doc_id": "document of the other stretch",
            "other_channel": "its channel",
            "other_first": "its first frame",
            "other_stop": "its last frame + 1",
            "score": "sum of level - distance less the gaps, in integers of the [distance](../concepts/exact-numbers.md)",
        },
    ),
    "BOUNDARIES": Section(
        "Boundaries",
        "`tables/boundaries/` by `find-boundaries`: where syllables may begin.",
        columns={"frame": "number of the frame"},
    ),
    "MEMBERS": Section(
        "Members of classes, and tokens",
        "`tables/classes/` and `tables/parse/` by `group-matches`; `exports/classes.csv` and `exports/parse.csv`, with the "
        "`speaker`, and with names and times of recordings.",
        columns={
            "class": "number, the largest class first; null: a token of no class",
            "sure": "score of its best match in the class per square root of its frames, in units of the distance; null: of no "
            "class",
        },
    ),
    "WORDS": Section(
        "Word list",
        "`exports/words.csv` of the chain `discover`: a row a class, by number of speakers, then of occurrences.",
        columns={
            "class": "number",
            "occurrences": "members",
            "speakers": "known speakers",
            "seconds": "mean duration, s",
            "sure": "mean of its members",
        },
    ),
    "REJECTED": Section(
        "Rejected inputs",
        "`rejected.parquet` of a run; a store's also has `identity`.",
        columns={
            "kind": "`document`, `item` (a word, cue or annotation of a transcript), `query` or `task`",
            "id": "its name",
            "part": "channel or example",
            "reason": "[code](codes.md); of a task `data`, `bug`, `killed`, `system`, or the failure of a "
            "file system or server",
            "message": "what is wrong",
            "remedy": "what to do",
        },
    ),
    "LEXEMES": Section(
        "Words of a transcript",
        "RTTM or CTM, in the order of the file.",
        columns={
            "word": "as written",
            "kind": "sub-type of an RTTM: `lex`, `fp`, `frag`, ...",
            "speaker": "a term has words of one speaker only",
        },
    ),
    "EXCERPTS": Section(
        "Excerpts",
        "The searched audio of an ECF.",
        columns={"file": "recording", "source_type": "`bnews`, `cts`, `splitcts`, `confmtg`", "language": "language"},
    ),
    "TERMS": Section(
        "Terms",
        "A term list; other attributes of terms are further columns.",
        columns={"query_id": "term id", "term": "text"},
    ),
    "RECEIPTS": Section(
        "Receipts",
        "`receipts/STAGE.parquet` of a run or store; while a stage runs also `receipts/STAGE.ID.parquet` and "
        "single JSON files.",
        columns={
            "version": "version of the stage",
            "label": "name for people",
            "round": "round of its step, from 0",
            "work": "in the stage's unit",
            "outputs": "files: table, name, size, sha256, rows, first_slot, last_slot",
            "told": "JSON: results for later stages",
            "rejected": "JSON: [rejected inputs](#rejected-inputs)",
            "cpu_user": "s, with threads and children",
            "cpu_system": "s",
            "wall": "s",
            "peak_bytes": "peak memory of the process",
            "cells": "query frames x document frames searched",
            "started": "s since 1970",
            "finished": "s since 1970; the latest receipt of a task counts",
        },
    ),
    "ACCOUNTS": Section(
        "Accounts",
        "`accounts.parquet` of a run ([accounts](../concepts/accounts.md)): one row per journal line.",
        columns={
            "journal": "name of the journal",
            "role": "`driver` or `worker`",
            "t": "s since 1970",
            "event": "`open`, `warm`, `begin`, `end`, `failed`, `sample`, `close`, ...",
            "cpu": "CPU s of the process so far",
            "phase": "`index`, `search` or `score`",
            "part": "done part of the task, 0 to 1",
            "pss": "memory, bytes, shared pages in proportion",
            "gpu": "memory in use on the node's GPUs, bytes",
            "daemons": "CPU s of Ray's processes that the driver started",
            "spent": "CPU s of loading before the first task",
            "earlier": "CPU s of the process before this run",
            "more": "JSON: hardware, tracebacks, ...",
        },
    ),
    "NODES": Section(
        "Nodes",
        "`nodes.parquet` of a run: costs by node and stage, and by node.",
        columns={
            "node": "host name or address",
            "type": "hardware",
            "stage": "null: all stages",
            "tasks": "finished tasks",
            "useful_cpu_s": "CPU s of finished tasks",
            "repeated_cpu_s": "CPU s of lost attempts",
            "warm_up_cpu_s": "CPU s of starting and loading",
            "other_cpu_s": "CPU s outside of tasks",
            "idle_s": "s of workers without a task",
            "peak_bytes": "peak memory of all processes",
            "gpu_peak_bytes": "peak GPU memory; null: no GPU",
        },
    ),
}


def schemas() -> dict[str, pa.Schema]:
    """The schemas by name."""
    places = types, propose_pairs, scene
    found = {name: value for place in places for name, value in vars(place).items() if isinstance(value, pa.Schema)}
    return {**found, "MEMBERS": discover.MEMBERS, "BOUNDARIES": discover.BOUNDARIES}


def page() -> str:
    """The text of the page."""
    every = schemas()
    if sorted(every) != sorted(SECTIONS):
        raise LookupError(f"tables without a section, or the reverse: {sorted({*every} ^ {*SECTIONS})}")
    lines = [_HEAD.rstrip()]
    for name, section in SECTIONS.items():
        lines += ["", f"## {section.title}", "", f"`{name}`: {section.text}", ""]
        known = set(every[section.base].names) if section.base else set()
        if section.base:
            title = SECTIONS[section.base].title
            lines.append(f"- columns of [{title.lower()}](#{title.lower().replace(' ', '-')})")
        lines += [_item(field, section) for field in every[name] if field.name not in known]
        lines += ["", section.note] if section.note else []
    return "\n".join(lines) + "\n"


def _item(field: pa.Field, section: Section) -> str:
    meaning = section.columns.get(field.name) or _COLUMNS[field.name]
    return f"- `{field.name}` {type_name(field)}: {meaning}"


def type_name(field: pa.Field) -> str:
    """The type of a column, with `?` if it may be null."""
    kind = field.type
    name = f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        name = "list of structs"
    return name.replace("decimal128(38, 0)", "decimal") + ("?" if field.nullable else "")


if __name__ == "__main__":
    print(page(), end="")
