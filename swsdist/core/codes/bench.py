"""Codes of benchmarks."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import IncompleteError, UserError

INVALID_COUNTS = Code("invalid-counts", UserError, "{option} is {values}", "give numbers from 1 on, each once: 1,2,4")
SERIAL_WORKERS = Code(
    "serial-workers", UserError, "a serial run has one worker, not {workers}", "set executor.kind=ray"
)
UNNAMED_COPIES = Code(
    "unnamed-copies",
    UserError,
    "precomputed frames are named by document, and copies of documents have other names",
    "leave --times out, or use an extractor",
)
COPIED_SEGMENTS = Code(
    "copied-segments",
    UserError,
    "documents that are segments of recordings cannot be multiplied",
    "leave --times out, or give a table of whole recordings",
)
COPIED_LATTICES = Code(
    "copied-lattices",
    UserError,
    "lattices and transcripts name their documents, and copies of documents have other names",
    "leave the data as they are: --times 1",
)
FAILED_RUN = Code(
    "failed-run",
    IncompleteError,
    "the run ended with exit code {exit_code}: {output}",
    "correct the cause and give the same command again: points that were measured are kept",
)
NO_RESOURCES = Code(
    "no-resources",
    UserError,
    "the chain {chain} reports no resources",
    "benchmark a config of the chain search or text",
)
OTHER_BENCHMARK = Code(
    "other-benchmark",
    UserError,
    "this folder holds a benchmark of another config, or of another version of swsdist",
    "give another folder (--folder FOLDER), or remove it",
)
NOT_A_BENCHMARK = Code(
    "not-a-benchmark",
    UserError,
    "not the results of a benchmark ({schema}): {error}",
    "name a bench.json that swsdist bench wrote",
)
