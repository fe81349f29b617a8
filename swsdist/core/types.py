"""Schemas of all tables: column names and types, in one place.

A table between two stages is a Parquet file with one of these schemas. Times are float64 seconds, `channel` counts
from 1, higher scores are more likely occurrences. See docs/reference/tables.md for each column's meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa


def columns(text: str, **others: pa.DataType) -> pa.Schema:
    """The schema of `NAME TYPE, NAME TYPE[]?, ...`.

    Args:
        text: types by pyarrow's aliases or the names of `others`; `[]` makes a list of one, and what ends in `?` may be null.
        others: further types.
    """
    fields = []
    for name, kind in map(str.split, text.split(",")):
        item = others.get(kind.rstrip("[]?")) or pa.type_for_alias(kind.rstrip("[]?"))
        fields.append(pa.field(name, pa.list_(item) if "[]" in kind else item, kind.endswith("?")))
    return pa.schema(fields)


def table_of(rows: Iterable[Sequence[object]], schema: pa.Schema) -> pa.Table:
    """A table from rows whose values are in the order of the schema's columns."""
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def with_values(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The table with other values in a column, whose field stays."""
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), values)


_KEY = "doc_id string, channel int32"

#: Corpus input: the searched documents. Columns after `path` may be absent from the user's table.
CORPUS = columns(f"{_KEY}, path string, duration float64?, speaker string?")

#: Documents that are places in recordings, from lists of segments and excerpts: the stretch of `recording` from `start`
#: to `end` (s). References and detections name recordings, and times in them. `listed` is the source's file and line.
PLACED = pa.schema([*CORPUS, *columns("recording string, start float64, end float64, listed string")])

#: Query input: a row per example. `path` names a file; `doc_id` a document of the corpus; `start`, `end` a place in it.
QUERIES = columns(
    "query_id string, example int32, path string?, doc_id string?, channel int32, start float64?, "
    "end float64?, speaker string?, term string?"
)

#: True occurrences.
REFERENCES = columns(f"query_id string, {_KEY}, start float64, end float64")

#: Places that people judged, a view of a glossary: `query_id` is the entry's form, `verdict` is yes, no or unsure.
JUDGEMENTS = pa.schema(
    [*REFERENCES, *columns("verdict string, person string, at string, score float64?, note string?")]
)

#: What was left out of a document's words for one reason.
LEFT_OUT = pa.struct(columns("reason string, items int64, seconds float64"))

#: Store: a row per document. `mean` and `variance` are per dimension, over all frames of the document. `speech` has a
#: bit per frame, the first frame's in the lowest bit of the first byte: whether it contains speech; null if not
#: detected. `recording` and `start` give the recording that contains it, and its start there (s); null if the document
#: is a recording.
DOCUMENTS = columns(
    f"{_KEY}, path string, duration float64, frames int64, shard string, rows int32, identity string, "
    "sha256 string, speaker string?, mean float64[], variance float64[], speech large_binary?, "
    "recording string?, start float64?, cut_off float64?, bandwidth float64?, stretches float64[]?, "
    "voices int32[]?, language string?, speech_seconds float64?, left_out entry[]?",
    entry=LEFT_OUT,
)

#: Store: groups of speech by nobody named, a pinned model (`swsdist.store.voices`); a group's number is its row.
VOICES = columns("frames int64, mean float64[], variance float64[]")

#: Store: normalising statistics, a pinned model. `scope` is `speaker` or `collection` (then `name` is empty).
STATISTICS = columns(
    "scope string, name string, frames int64, mean float64[], variance float64[], frozen bool, taken_from uint64[]"
)

#: Store: consecutive rows are consecutive frames. `features` is little-endian, frames x dimension, of the track's `dtype`.
FRAMES = columns(f"{_KEY}, first_frame int64, frames int32, features large_binary")

#: Query features: a row per example; `features` is little-endian float32, frames x dimension, not normalised.
#: `mean` and `variance` are those of the recording that contains it, if that normalises it.
EXAMPLES = columns(
    "query_id string, example int32, duration float64, frames int32, speaker string?, features large_binary, "
    "mean float64[]?, variance float64[]?, bandwidth float64?"
)

#: Output of search: spans of a document, integers in ticks of the store (seconds per tick), both ends inclusive. The
#: score is -cost / scale, one float64 division; |cost| is at most 2^40. A posterior p is the cost -round(p 2^40) of
#: scale 2^40.
CANDIDATES = columns(
    f"slot int32, query_id string, example int32, {_KEY}, first int64, last int64, cost int64, scale int64"
)

#: Output of reduce, normalise and decide. `decision` is null until decided.
DETECTIONS = columns(
    f"query_id string, {_KEY}, start float64, end float64, score float64, decision bool?, cost int64?, "
    "frames int32?, example int32?, system string?"
)

#: Best hits: `turn` is 0 for the best of its query, then 1, 2, ...; `verdict` is hit, false alarm or unknown.
BEST = pa.schema([*DETECTIONS, *columns("turn int64, verdict string")])

#: A row a query: number of detections, the SHA-256 of their rows (null without any), and TWV at the threshold of MTWV.
SUMMARY = columns("query_id string, detections int64, sha256 string?, twv float64?")

#: Statistics of all candidates of a query, before any is removed: exact integers, a row each.
QUERY_STATISTICS = columns(
    "statistic string, query_id string, example int32, scale int64, quantity string, value exact",
    exact=pa.decimal128(38, 0),
)

#: Sums over a cohort's queries at a place, a row each, of the best q-normed score of each, in units of 2^-16.
COHORT_SUMS = columns(
    f"{_KEY}, window int64, queries int64, score_sum exact, score_square_sum exact", exact=pa.decimal128(38, 0)
)

#: An aligned list: hits have both sides, false alarms no reference, misses no detection (score and times null).
TRIALS = columns(
    f"query_id string, {_KEY}, start float64?, end float64?, score float64?, decision bool?, "
    "ref_start float64?, ref_end float64?"
)

#: Scores of each system for a joined detection: systems by name, in the same order in all rows of a list. `given` is
#: whether the system made the detection; if not, `score` is a substitute.
PARTS = pa.list_(pa.struct(columns("system string, score float64?, given bool")))

#: Joined detections of several systems, and an aligned list of these.
JOINED = pa.schema([*DETECTIONS, *columns("parts parts?", parts=PARTS)])
JOINED_TRIALS = pa.schema([*TRIALS, *columns("parts parts?", parts=PARTS)])

#: Unusable inputs, and failed tasks. `kind` is document, item (of a transcript), query or task.
REJECTED = columns("kind string, id string, part int32?, path string?, reason string, message string, remedy string?")

#: Words of a reference transcript (RTTM, CTM), in the order of the file. `kind` is the RTTM's sub-type (`lex`, `fp`, ...).
LEXEMES = columns(f"{_KEY}, start float64, duration float64, word string, kind string?, speaker string?")

#: Searched stretches of an ECF. `file` is the name as written.
EXCERPTS = columns("file string, channel int32, start float64, duration float64, source_type string, language string?")

#: Terms of a term list. Its further attributes of terms follow as string columns.
TERMS = columns("query_id string, term string")

#: An output file of a task. `first_slot` to `last_slot` are the slots of its rows' partition key.
OUTPUT = pa.struct(
    columns("table string, name string, size int64, sha256 string, rows int64, first_slot int32, last_slot int32")
)

#: The receipts of a stage, packed: a row per task. `told` and `rejected` are JSON.
RECEIPTS = columns(
    "stage string, version int64, fingerprint string, label string, round int64, work float64, "
    "outputs outputs, told string, rejected string, cpu_user float64, cpu_system float64, wall float64, "
    "peak_bytes int64, bytes_read int64, bytes_written int64, cells int64, gpu_s float64, host string, "
    "pid int64, started float64, finished float64",
    outputs=pa.list_(pa.field("item", OUTPUT, False)),
)

#: Journals of a run's processes, a row per line. `more` holds values without a column, as JSON.
ACCOUNTS = columns(
    "journal string, host string, pid int64, role string, t float64, event string, cpu float64, stage string?, "
    "phase string?, fingerprint string?, part float64?, pss int64?, gpu int64?, daemons float64?, "
    "spent float64?, earlier float64?, more string?"
)

#: Costs of the work: a row per node and stage, and one per node for all stages, whose stage is null.
NODES = columns(
    "node string, type string, stage string?, tasks int64, useful_cpu_s float64, repeated_cpu_s float64, "
    "warm_up_cpu_s float64, other_cpu_s float64, idle_s float64, gpu_s float64, peak_bytes int64?, "
    "gpu_peak_bytes int64?, bytes_read int64, bytes_written int64"
)
