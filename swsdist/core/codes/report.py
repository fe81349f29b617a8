"""Codes of reports, plots, exports and descriptions of corpora."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError, OddError, StoreError, UserError

NO_NUMBERS = Code(
    "no-numbers", UserError, "no numbers given", "name a run folder, or give --indexing-cpu, --audio, ..."
)
NO_REPORT = Code("no-report", UserError, "no report.json", "name the folder of a finished run")
DAMAGED_ACCOUNTS = Code(
    "damaged-accounts",
    StoreError,
    "the accounts of the run are damaged ({error})",
    "remove the file: what earlier tasks cost is then not known, and nothing else changes",
)
DAMAGED_REPORT = Code(
    "damaged-report", StoreError, "report.json is damaged ({error})", "write it anew: `swsdist report {run!q}`"
)
UNDEFINED_DET_CURVE = Code(
    "undefined-det-curve", UserError, "no DET curve", "score a list with detections of terms that have references"
)
_NO_BANDS = "leave the bands out, or score more terms"
NO_SPREAD = Code("no-spread", UserError, "one term has no spread", _NO_BANDS)
UNDEFINED_SPREAD = Code(
    "undefined-spread",
    UserError,
    "the spread over terms is not defined where terms without references are in the mean",
    "leave -inc out",
)
NO_OTHER_TRIALS = Code(
    "no-other-trials",
    UserError,
    "{references} references in {trials} trials leave no non-target trials to pool",
    "leave -P out",
)
NO_CONVERTER = Code(
    "no-converter",
    UserError,
    "{ending} needs vl-convert, which is not installed",
    "pip install 'swsdist[figures]', or write {svg}, and convert it: rsvg-convert -f {format} -o {path!q} {svg!q}",
)
PICTURE_ENDING = Code(
    "picture-ending", UserError, "the name of a picture must end in {endings}", "name a file that ends in {endings}"
)
NOT_A_PLOT = Code(
    "not-a-plot", DataError, "not a plot that swsdist has drawn", "name an .svg of a run, a sweep or a command"
)
TABLE_ENDING = Code(
    "table-ending", UserError, "the name of a table must end in {endings}", "name a file that ends in {endings}"
)
NO_SUCH_COLUMN = Code("no-such-column", UserError, "no column {column!r}{meant}", "columns are {columns}")
NOT_A_TABLE = Code("not-a-table", DataError, "not a table ({error})", "name a CSV or Parquet file")

CLIPS_WITHOUT_RECORDINGS = Code(
    "clips-without-recordings",
    UserError,
    "the documents have no recordings, only features or transcripts",
    "add the column path to hear the hits, or remove clips from report.exports",
)
INVALID_TIER_NAME = Code(
    "invalid-tier-name",
    UserError,
    "no tier of {export} can have the name or text {query!r}: it is empty, or holds a control character",
    "rename the query or word, or leave {export} out",
)
INVALID_BASE = Code(
    "invalid-base",
    DataError,
    "tiers cannot be added to this file of ELAN: {error}",
    "open it in ELAN and save it again, or export without it",
)
CHANGED_RECORDING = Code(
    "changed-recording",
    UserError,
    "the recording has changed since it was indexed: {error}",
    "index again, or remove clips from report.exports",
)

UNUSABLE_RECORDING = Code(
    "unusable-recording",
    OddError,
    "{count} unusable recording{s}; a run rejects them",
    "correct or remove them",
)
UNUSABLE_EXAMPLE = Code(
    "unusable-example", OddError, "{count} unusable query example{s}; a run rejects them", "correct or remove them"
)
UNPLACED_WORDS = Code(
    "unplaced-words",
    OddError,
    "{count} word{s} of the alignment in no document, and not counted",
    "compare the names of the documents, and their times",
)
