"""Codes of the command line."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import ImplausibleError, IncompleteError, OddError, UserError

SECRET_ON_COMMAND_LINE = Code(
    "secret-on-command-line",
    UserError,
    "a secret on the command line, where every user of the machine can read it (ps)",
    "replace the secret; give the new one in the environment (AWS_SECRET_ACCESS_KEY), or in the config as "
    "{name}: ${{VARIABLE}}",
)


# Outputs

OUTPUT_NOT_WRITABLE = families.OUTPUT_REFUSED.saying(
    "no permission to write here", "check the permissions, or name another place"
)
NOTHING_TO_SAVE = families.UNUSED_OPTION.of(UserError).saying(
    "nothing is fitted, so there is nothing to save", "remove --save, or {remedy}"
)


# Runs

ANOTHER_INDEX = Code(
    "another-index",
    ImplausibleError,
    "this is the index of another folder, {documents}",
    "name another run folder (--run FOLDER; of serve, --project FOLDER); if the recordings have moved: --run {run!q} --force, "
    "before serve once of `swsdist index`",
)
OTHER_CHAIN = families.WRONG_KIND.saying(
    "this is a config of the chain {chain}, not of {wanted}",
    "set chain: {wanted}, or run it as it is: swsdist run {config!q}",
)
REPORT_BEFORE_END = Code(
    "report-before-end", IncompleteError, "the run has only reached {stage}", "finish it: swsdist run {run!q}"
)
STRICT_WARNINGS = families.STRICT.saying(
    "{count} warning{s} under --strict; the first: {first}", "resolve the warnings{show}, or run without --strict"
)
STRICT_REJECTIONS = families.STRICT.saying(
    "{count} rejected input{s} under --strict",
    "see `swsdist store rejected {folder!q}`; correct or remove them, or run without --strict",
)
OF_RECORDINGS = families.CONFLICTING_OPTIONS.saying(
    "{option} is for a folder of recordings, and this is {what}", "{fix}"
)

# Search

NO_QUERY = families.MISSING_INPUT.saying("no query", "give a config, or a store and --query FILE or --text TEXT")
RECORDINGS_NOT_RUN = families.WRONG_KIND.saying("this is no run and no store", "name what was made of it: {runs}")
OTHER_KIND_OF_QUERY = families.WRONG_KIND.saying("{option} searches {wanted}, and this store holds {held}", "{fix}")
QUERIES_SKIPPED = Code(
    "queries-skipped",
    IncompleteError,
    "{count} of {of} {what} skipped: {errors}",
    "correct or remove them; the others were searched",
)

QUERY_SKIPPED = Code("query-skipped", OddError, "skipped: {where_from}: {reason}")
HIT_IS_QUERY = Code(
    "hit-is-query", OddError, "hit{s} {numbers} of {query} {are} the query itself, in a searched recording"
)
NO_CLIP = Code("no-clip", OddError, "no clip of hit {number}, {document}: {reason}")

# Stores


# Other commands


_IDS = 'give their ids, each once: queries=["q001", "q002"]'
NOT_A_LIST_OF_QUERIES = families.INVALID_VALUE.of(UserError).saying("{value} is not a list of queries", _IDS)
DUPLICATE_QUERY = families.DUPLICATE_NAME.of(UserError).saying("duplicate query {query_id!r}", _IDS)
