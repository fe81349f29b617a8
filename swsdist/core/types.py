"""Schemas of all tables: column names and types, in one place.

A table between two stages is a Parquet file with one of these schemas. Times are float64 seconds, `channel` counts
from 1, higher scores are more likely occurrences. See docs/reference/tables.md for each column's meaning.
"""

from __future__ import annotations

import pyarrow as pa

_key = [pa.field("doc_id", pa.string(), False), pa.field("channel", pa.int32(), False)]

#: Corpus input: what is to be searched. Columns after `path` may be absent from the user's table.
CORPUS = pa.schema(
    [
        *_key,
        pa.field("path", pa.string(), False),
        pa.field("duration", pa.float64()),
        pa.field("speaker", pa.string()),
    ]
)

#: Documents that are places in recordings, as lists of segments and excerpts say: of `recording` the stretch from `start` to
#: `end` (s). References and detections name recordings, and times in them. `listed` is the file and line that says it.
PLACED = pa.schema(
    [
        *CORPUS,
        pa.field("recording", pa.string(), False),
        pa.field("start", pa.float64(), False),
        pa.field("end", pa.float64(), False),
        pa.field("listed", pa.string(), False),
    ]
)

#: Query input: a row an example. `path` names a file; `doc_id` a document of the corpus; `start`, `end` a place in it.
QUERIES = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("example", pa.int32(), False),
        pa.field("path", pa.string()),
        pa.field("doc_id", pa.string()),
        pa.field("channel", pa.int32(), False),
        pa.field("start", pa.float64()),
        pa.field("end", pa.float64()),
        pa.field("speaker", pa.string()),
        pa.field("term", pa.string()),
    ]
)

#: True occurrences.
REFERENCES = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        *_key,
        pa.field("start", pa.float64(), False),
        pa.field("end", pa.float64(), False),
    ]
)

#: Store: a row a document. `mean` and `variance` are per dimension, over all frames of the document. `speech` has a bit a
#: frame, the first frame's in the lowest bit of the first byte: whether there is speech in it; null where nothing was heard.
#: `recording` and `start` say of what recording it is a place, and where it begins there (s); null: it is one of its own.
DOCUMENTS = pa.schema(
    [
        *_key,
        pa.field("path", pa.string(), False),
        pa.field("duration", pa.float64(), False),
        pa.field("frames", pa.int64(), False),
        pa.field("shard", pa.string(), False),
        pa.field("rows", pa.int32(), False),
        pa.field("identity", pa.string(), False),
        pa.field("sha256", pa.string(), False),
        pa.field("speaker", pa.string()),
        pa.field("mean", pa.list_(pa.float64()), False),
        pa.field("variance", pa.list_(pa.float64()), False),
        pa.field("speech", pa.large_binary()),
        pa.field("recording", pa.string()),
        pa.field("start", pa.float64()),
        pa.field("cut_off", pa.float64()),
        pa.field("bandwidth", pa.float64()),
    ]
)

#: Store: statistics that normalise, a pinned model. `scope` is `speaker` or `collection` (then `name` is empty).
STATISTICS = pa.schema(
    [
        pa.field("scope", pa.string(), False),
        pa.field("name", pa.string(), False),
        pa.field("frames", pa.int64(), False),
        pa.field("mean", pa.list_(pa.float64()), False),
        pa.field("variance", pa.list_(pa.float64()), False),
        pa.field("frozen", pa.bool_(), False),
        pa.field("taken_from", pa.list_(pa.uint64()), False),
    ]
)

#: Store: consecutive rows are consecutive frames. `features` is little-endian float32, frames x dimension.
FRAMES = pa.schema(
    [
        *_key,
        pa.field("first_frame", pa.int64(), False),
        pa.field("frames", pa.int32(), False),
        pa.field("features", pa.large_binary(), False),
    ]
)

#: Query features: a row an example; `features` as in FRAMES, not normalised.
EXAMPLES = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("example", pa.int32(), False),
        pa.field("duration", pa.float64(), False),
        pa.field("frames", pa.int32(), False),
        pa.field("speaker", pa.string()),
        pa.field("features", pa.large_binary(), False),
        # Of the recording that it is a place in, where that normalises it.
        pa.field("mean", pa.list_(pa.float64())),
        pa.field("variance", pa.list_(pa.float64())),
        pa.field("bandwidth", pa.float64()),
    ]
)

#: What search yields: spans of a document, integers in ticks of the store (seconds a tick), both ends inclusive. The
#: score is -cost / scale, one float64 division; |cost| is at most 2^40. A posterior p is the cost -round(p 2^40) of scale 2^40.
CANDIDATES = pa.schema(
    [
        pa.field("slot", pa.int32(), False),
        pa.field("query_id", pa.string(), False),
        pa.field("example", pa.int32(), False),
        *_key,
        pa.field("first", pa.int64(), False),
        pa.field("last", pa.int64(), False),
        pa.field("cost", pa.int64(), False),
        pa.field("scale", pa.int64(), False),
    ]
)

#: What reduce, normalise and decide yield. `decision` is null until something decided.
DETECTIONS = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        *_key,
        pa.field("start", pa.float64(), False),
        pa.field("end", pa.float64(), False),
        pa.field("score", pa.float64(), False),
        pa.field("decision", pa.bool_()),
        pa.field("cost", pa.int64()),
        pa.field("frames", pa.int32()),
        pa.field("example", pa.int32()),
        pa.field("system", pa.string()),
    ]
)

#: What is known of all candidates of a query, before any is removed: exact integers, a row each.
QUERY_STATISTICS = pa.schema(
    [
        pa.field("statistic", pa.string(), False),
        pa.field("query_id", pa.string(), False),
        pa.field("example", pa.int32(), False),
        pa.field("scale", pa.int64(), False),
        pa.field("quantity", pa.string(), False),
        pa.field("value", pa.decimal128(38, 0), False),
    ]
)

#: What the queries of a cohort come to at a place, a row each: the best q-normed score of each counts, in units of 2^-16.
COHORT_SUMS = pa.schema(
    [
        *_key,
        pa.field("window", pa.int64(), False),
        pa.field("queries", pa.int64(), False),
        pa.field("score_sum", pa.decimal128(38, 0), False),
        pa.field("score_square_sum", pa.decimal128(38, 0), False),
    ]
)

#: An aligned list: hits have both sides, false alarms no reference, misses no detection (score and times null).
TRIALS = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        *_key,
        pa.field("start", pa.float64()),
        pa.field("end", pa.float64()),
        pa.field("score", pa.float64()),
        pa.field("decision", pa.bool_()),
        pa.field("ref_start", pa.float64()),
        pa.field("ref_end", pa.float64()),
    ]
)

#: What each system gave a joined detection: systems by name, in one order in all rows of a list. `given` says whether it made a
#: detection there; where it did not, `score` stands for one that is missing.
PARTS = pa.list_(
    pa.struct(
        [
            pa.field("system", pa.string(), False),
            pa.field("score", pa.float64()),
            pa.field("given", pa.bool_(), False),
        ]
    )
)

#: Detections of several systems that were joined, and an aligned list of such.
JOINED = pa.schema([*DETECTIONS, pa.field("parts", PARTS)])
JOINED_TRIALS = pa.schema([*TRIALS, pa.field("parts", PARTS)])

#: Inputs that could not be used, and tasks that failed. `kind` is document, query or task.
REJECTED = pa.schema(
    [
        pa.field("kind", pa.string(), False),
        pa.field("id", pa.string(), False),
        pa.field("part", pa.int32()),
        pa.field("path", pa.string()),
        pa.field("reason", pa.string(), False),
        pa.field("message", pa.string(), False),
        pa.field("remedy", pa.string()),
    ]
)

#: Words of a reference transcript (RTTM, CTM), in the order of the file. `kind` is the RTTM's sub-type (`lex`, `fp`, ...).
LEXEMES = pa.schema(
    [
        *_key,
        pa.field("start", pa.float64(), False),
        pa.field("duration", pa.float64(), False),
        pa.field("word", pa.string(), False),
        pa.field("kind", pa.string()),
        pa.field("speaker", pa.string()),
    ]
)

#: What an ECF says is to be searched. `file` is the name as it stands there.
EXCERPTS = pa.schema(
    [
        pa.field("file", pa.string(), False),
        pa.field("channel", pa.int32(), False),
        pa.field("start", pa.float64(), False),
        pa.field("duration", pa.float64(), False),
        pa.field("source_type", pa.string(), False),
        pa.field("language", pa.string()),
    ]
)

#: What a term list asks for. A list's own attributes of a term follow as further string columns.
TERMS = pa.schema([pa.field("query_id", pa.string(), False), pa.field("term", pa.string(), False)])

#: A file that a task made. `first_slot` to `last_slot` are the slots of its rows' partition key.
OUTPUT = pa.struct(
    [
        pa.field("table", pa.string(), False),
        pa.field("name", pa.string(), False),
        pa.field("size", pa.int64(), False),
        pa.field("sha256", pa.string(), False),
        pa.field("rows", pa.int64(), False),
        pa.field("first_slot", pa.int32(), False),
        pa.field("last_slot", pa.int32(), False),
    ]
)

#: The receipts of a stage, packed: a row a task. `told` and `rejected` are JSON.
RECEIPTS = pa.schema(
    [
        pa.field("stage", pa.string(), False),
        pa.field("version", pa.int64(), False),
        pa.field("fingerprint", pa.string(), False),
        pa.field("label", pa.string(), False),
        pa.field("work", pa.float64(), False),
        pa.field("outputs", pa.list_(pa.field("item", OUTPUT, False)), False),
        pa.field("told", pa.string(), False),
        pa.field("rejected", pa.string(), False),
        pa.field("cpu_user", pa.float64(), False),
        pa.field("cpu_system", pa.float64(), False),
        pa.field("wall", pa.float64(), False),
        pa.field("peak_bytes", pa.int64(), False),
        pa.field("bytes_read", pa.int64(), False),
        pa.field("bytes_written", pa.int64(), False),
        pa.field("cells", pa.int64(), False),
        pa.field("gpu_s", pa.float64(), False),
        pa.field("host", pa.string(), False),
        pa.field("pid", pa.int64(), False),
        pa.field("started", pa.float64(), False),
        pa.field("finished", pa.float64(), False),
    ]
)

#: What processes of a run wrote down of themselves, a row a line of a journal. `more` holds what has no column, as JSON.
ACCOUNTS = pa.schema(
    [
        pa.field("journal", pa.string(), False),
        pa.field("host", pa.string(), False),
        pa.field("pid", pa.int64(), False),
        pa.field("role", pa.string(), False),
        pa.field("t", pa.float64(), False),
        pa.field("event", pa.string(), False),
        pa.field("cpu", pa.float64(), False),
        pa.field("stage", pa.string()),
        pa.field("phase", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("part", pa.float64()),
        pa.field("pss", pa.int64()),
        pa.field("gpu", pa.int64()),
        pa.field("daemons", pa.float64()),
        pa.field("spent", pa.float64()),
        pa.field("earlier", pa.float64()),
        pa.field("more", pa.string()),
    ]
)

#: What the work cost, a row a node and stage, and a row a node as a whole, whose stage is null.
NODES = pa.schema(
    [
        pa.field("node", pa.string(), False),
        pa.field("type", pa.string(), False),
        pa.field("stage", pa.string()),
        pa.field("tasks", pa.int64(), False),
        pa.field("useful_cpu_s", pa.float64(), False),
        pa.field("repeated_cpu_s", pa.float64(), False),
        pa.field("warm_up_cpu_s", pa.float64(), False),
        pa.field("other_cpu_s", pa.float64(), False),
        pa.field("idle_s", pa.float64(), False),
        pa.field("gpu_s", pa.float64(), False),
        pa.field("peak_bytes", pa.int64()),
        pa.field("gpu_peak_bytes", pa.int64()),
        pa.field("bytes_read", pa.int64(), False),
        pa.field("bytes_written", pa.int64(), False),
    ]
)
