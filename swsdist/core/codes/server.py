"""Codes of `swsdist serve`."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import AudioError, ConfigError, DataError, UserError

WRONG_TOKEN = Code(
    "wrong-token",
    UserError,
    "the address lacks the token of this server, or it has started anew",
    "open the whole address that `swsdist serve` printed last",
)
NO_USER_HEADER = Code(
    "no-user-header",
    UserError,
    "no proxy says who asks: there is no header {header}",
    "ask by the proxy's address (swsdist help serve-an-archive)",
)
SLOW_DOWN = Code("slow-down", UserError, "too many wrong passwords came from this address", "try again in {seconds} s")
OTHER_HOST = Code(
    "other-host",
    UserError,
    "this server does not answer for {host!r}",
    "ask by the printed address, or start it with --host-name {host}",
)
OTHER_ORIGIN = Code(
    "other-origin",
    UserError,
    "a change that {origin} asks for is refused",
    "use the page of this server",
)
WRONG_REQUEST = Code("wrong-request", UserError, "{what}", "load the page again")
WRONG_RANGE = Code(
    "wrong-range", UserError, "{range!r} is no part of this file", "ask for bytes of it, as `bytes=0-999`, or for all"
)
NO_EXAMPLE = Code(
    "no-example",
    UserError,
    "the word has no example yet",
    "record it, mark a place, or judge a hit with yes first",
)
SHORT_EXAMPLE = Code(
    "short-example",
    UserError,
    "the example lasts {seconds:.2f} s, less than {least:.1f} s",
    "mark the whole word",
)
LONG_EXAMPLE = Code(
    "long-example",
    UserError,
    "the example lasts {seconds:.1f} s, more than {most:.0f} s",
    "mark the word alone",
)
LONG_CLIP = Code(
    "long-clip", UserError, "a place of {seconds:.0f} s is not between 0 and {most:.0f} s", "choose a shorter one"
)
LONG_UPLOAD = Code(
    "long-upload",
    AudioError,
    "the recording lasts {seconds:.0f} s, more than {most:.0f} s",
    "send a piece of it with the word",
)
SLOW_UPLOAD = Code(
    "slow-upload",
    UserError,
    "the file did not come within {seconds:.0f} s",
    "send a piece of the recording with the word",
)
SEARCH_FAILED = Code(
    "search-failed", UserError, "the search failed: {reason}", "tell whoever runs the server; its log has the traceback"
)
LARGE_UPLOAD = Code(
    "large-upload",
    UserError,
    "the file is larger than {most} bytes",
    "send a piece of the recording with the word",
)
NOTHING_THERE = Code(
    "nothing-there",
    UserError,
    "no recording is in this folder, of this speaker and of these days",
    "choose a wider folder, speaker or date",
)
NOT_IN_ARCHIVE = Code(
    "not-in-archive", UserError, "the archive has no such document, channel {channel}", "reload the page"
)
RECORDING_REPLACED = Code(
    "recording-replaced",
    UserError,
    "the recording {document} is another than the one that was indexed or judged",
    "index the archive, then judge the place again or remove it",
)
NOT_READY = Code(
    "not-ready",
    UserError,
    "the first recordings are still being indexed",
    "wait for the first minutes of the archive",
)
NO_TEXTS = Code(
    "no-texts",
    UserError,
    "there are no words to search in",
    "ask by voice, or recognise the words: swsdist index FOLDER --model RECOGNISER; or start the server with --speak "
    "espeak-ng:VOICE",
)
INDEX_ENDED = Code(
    "index-ended",
    UserError,
    "the index of {folder} ended: {message}",
    "run `swsdist index {folder!q}` to see why",
)
BUSY = Code("busy", UserError, "{count} others are waiting for the same", "ask again in a few seconds")
NO_SUCH_ADDRESS = Code("no-such-address", UserError, "the server has no {method} {path}", "load the page again")
PUBLIC_WITHOUT_KEY = Code(
    "public-without-key",
    ConfigError,
    "without a password or a proxy everybody may enter",
    "set the variable SWSDIST_PASSWORD, or name a proxy's header: --user-header X-Forwarded-User",
)
PORT_TAKEN = Code("port-taken", UserError, "port {port} cannot be used: {reason}", "choose another, or any: --port 0")
LATE_ANNOTATIONS = Code(
    "late-annotations",
    DataError,
    "{count} annotations begin after the end of the recording ({end:.1f} s)",
    "look whether they are of this recording",
)
FIND_PROJECT = Code(
    "find-project",
    ConfigError,
    "the store is not on this disk, so the folder of words needs a place",
    "name one: --project FOLDER",
)
NO_ARCHIVE = Code(
    "no-archive",
    UserError,
    "neither a store, a run nor a folder of recordings",
    "name one of these",
)
NEEDS_FOLDER = Code(
    "needs-folder",
    ConfigError,
    "{option} is for a folder of recordings, and this is a store or a run",
    "name the folder of the recordings",
)
UNUSABLE_HOST = Code("unusable-host", UserError, "the address cannot be listened at: {reason}", "leave --host out")
NOT_THE_RECORDINGS = Code(
    "not-the-recordings",
    UserError,
    "the folder {folder} has {there} of {of} recordings{reason}",
    "name the folder that they are in, with the same folders and names in it as before",
)
MOVED_ON_A_SERVER = Code(
    "moved-on-a-server",
    UserError,
    "only who started the server may say where recordings are",
    "ask that person",
)
