"""Schemas of all tables: column names and types, in one place.

A table between two stages is a Parquet file with one of these schemas. Times are float64 seconds, `channel` counts
from 1, higher scores are more likely occurrences. See docs/reference/tables.md for each column's meaning.
"""

from __future__ import annotations

import pyarrow as pa

_key = [pa.field("doc_id", pa.string(), False), pa.field("channel", pa.int32(), False)]

#: Corpus input: the searched documents. Columns after `path` may be absent from the user's table.
CORPUS = pa.schema(
    [
        *_key,
        pa.field("path", pa.string(), False),
        pa.field("duration", pa.float64()),
        pa.field("speaker", pa.string()),
    ]
)

#: Documents that are places in recordings, from lists of segments and excerpts: the stretch of `recording` from `start`
#: to `end` (s). References and detections name recordings, and times in them. `listed` is the source's file and line.
PLACED = pa.schema(
    [
        *CORPUS,
        pa.field("recording", pa.string(), False),
        pa.field("start", pa.float64(), False),
        pa.field("end", pa.float64(), False),
        pa.field("listed", pa.string(), False),
    ]
)

#: Query input: a row per example. `path` names a file; `doc_id` a document of the corpus; `start`, `end` a place in it.
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

#: Places that people judged, a view of a glossary: `query_id` is the entry's form, `verdict` is yes, no or unsure.
JUDGEMENTS = pa.schema(
    [
        *REFERENCES,
        pa.field("verdict", pa.string(), False),
        pa.field("person", pa.string(), False),
        pa.field("at", pa.string(), False),
        pa.field("score", pa.float64()),
        pa.field("note", pa.string()),
    ]
)

#: What was left out of a document's words for one reason.
LEFT_OUT = pa.struct(
    [
        pa.field("reason", pa.string(), False),
        pa.field("items", pa.int64(), False),
        pa.field("seconds", pa.float64(), False),
    ]
)

#: Store: a row per document. `mean` and `variance` are per dimension, over all frames of the document. `speech` has a
#: bit per frame, the first frame's in the lowest bit of the first byte: whether it contains speech; null if not
#: detected. `recording` and `start` give the recording that contains it, and its start there (s); null if the document
#: is a recording.
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
        pa.field("stretches", pa.list_(pa.float64())),
        pa.field("voices", pa.list_(pa.int32())),
        pa.field("language", pa.string()),
        pa.field("speech_seconds", pa.float64()),
        pa.field("left_out", pa.list_(LEFT_OUT)),
    ]
)

#: Store: groups of speech by nobody named, a pinned model (`swsdist.store.voices`); a group's number is its row.
VOICES = pa.schema(
    [
        pa.field("frames", pa.int64(), False),
        pa.field("mean", pa.list_(pa.float64()), False),
        pa.field("variance", pa.list_(pa.float64()), False),
    ]
)

#: Store: normalising statistics, a pinned model. `scope` is `speaker` or `collection` (then `name` is empty).
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

#: Store: consecutive rows are consecutive frames. `features` is little-endian, frames x dimension, of the track's `dtype`.
FRAMES = pa.schema(
    [
        *_key,
        pa.field("first_frame", pa.int64(), False),
        pa.field("frames", pa.int32(), False),
        pa.field("features", pa.large_binary(), False),
    ]
)

#: Query features: a row per example; `features` is little-endian float32, frames x dimension, not normalised.
EXAMPLES = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("example", pa.int32(), False),
        pa.field("duration", pa.float64(), False),
        pa.field("frames", pa.int32(), False),
        pa.field("speaker", pa.string()),
        pa.field("features", pa.large_binary(), False),
        # Of the recording that contains it, if that normalises it.
        pa.field("mean", pa.list_(pa.float64())),
        pa.field("variance", pa.list_(pa.float64())),
        pa.field("bandwidth", pa.float64()),
    ]
)

#: Output of search: spans of a document, integers in ticks of the store (seconds per tick), both ends inclusive. The
#: score is -cost / scale, one float64 division; |cost| is at most 2^40. A posterior p is the cost -round(p 2^40) of
#: scale 2^40.
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

#: Output of reduce, normalise and decide. `decision` is null until decided.
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

#: Best hits: `turn` is 0 for the best of its query, then 1, 2, ...; `verdict` is hit, false alarm or unknown.
BEST = pa.schema([*DETECTIONS, pa.field("turn", pa.int64(), False), pa.field("verdict", pa.string(), False)])

#: A row a query: number of detections, the SHA-256 of their rows (null without any), and TWV at the threshold of MTWV.
SUMMARY = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("detections", pa.int64(), False),
        pa.field("sha256", pa.string()),
        pa.field("twv", pa.float64()),
    ]
)

#: Statistics of all candidates of a query, before any is removed: exact integers, a row each.
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

#: Sums over a cohort's queries at a place, a row each, of the best q-normed score of each, in units of 2^-16.
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

#: Scores of each system for a joined detection: systems by name, in the same order in all rows of a list. `given` is
#: whether the system made the detection; if not, `score` is a substitute.
PARTS = pa.list_(
    pa.struct(
        [
            pa.field("system", pa.string(), False),
            pa.field("score", pa.float64()),
            pa.field("given", pa.bool_(), False),
        ]
    )
)

#: Joined detections of several systems, and an aligned list of these.
JOINED = pa.schema([*DETECTIONS, pa.field("parts", PARTS)])
JOINED_TRIALS = pa.schema([*TRIALS, pa.field("parts", PARTS)])

#: Unusable inputs, and failed tasks. `kind` is document, item (of a transcript), query or task.
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

#: Searched stretches of an ECF. `file` is the name as written.
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

#: Terms of a term list. Its further attributes of terms follow as string columns.
TERMS = pa.schema([pa.field("query_id", pa.string(), False), pa.field("term", pa.string(), False)])

#: An output file of a task. `first_slot` to `last_slot` are the slots of its rows' partition key.
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

#: The receipts of a stage, packed: a row per task. `told` and `rejected` are JSON.
RECEIPTS = pa.schema(
    [
        pa.field("stage", pa.string(), False),
        pa.field("version", pa.int64(), False),
        pa.field("fingerprint", pa.string(), False),
        pa.field("label", pa.string(), False),
        pa.field("round", pa.int64(), False),
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

#: Journals of a run's processes, a row per line. `more` holds values without a column, as JSON.
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

#: Costs of the work: a row per node and stage, and one per node for all stages, whose stage is null.
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
