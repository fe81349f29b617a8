"""Codes of `swsdist serve`."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import DataError, OddError, StorageError, UserError

SLOW_DOWN = Code("slow-down", UserError, "too many wrong passwords came from this address", "try again in {seconds} s")
OTHER_ORIGIN = families.REQUEST_REFUSED.saying(
    "a change that {origin} asks for is refused", "use the page of this server"
)
WRONG_REQUEST = Code("wrong-request", UserError, "{what}", "load the page again")
LONG_CLIP = families.INVALID_VALUE.of(UserError).saying(
    "a place of {seconds:.0f} s is not between 0 and {most:.0f} s", "choose a shorter one"
)
LONG_UPLOAD = families.TOO_LONG.saying(
    "the recording lasts {seconds:.0f} s, more than {most:.0f} s", "send a piece of it with the word"
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
NOT_READY = Code(
    "not-ready",
    UserError,
    "the first recordings are still being indexed",
    "wait for the first minutes of the archive",
)
NO_TEXTS = families.EMPTY_INPUT.saying(
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
PORT_TAKEN = Code("port-taken", UserError, "port {port} cannot be used: {reason}", "choose another, or any: --port 0")
LATE_ANNOTATIONS = Code(
    "late-annotations",
    DataError,
    "{count} annotations begin after the end of the recording ({end:.1f} s)",
    "look whether they are of this recording",
)
NOT_THE_RECORDINGS = Code(
    "not-the-recordings",
    UserError,
    "the folder {folder} has {there} of {of} recordings{reason}",
    "name the folder that they are in, with the same folders and names in it as before",
)


DAMAGED_PROJECT = families.DAMAGED_FILE.of(DataError).saying(
    "the file of the glossary is damaged ({error})",
    "copy the whole folder first; then delete {name}, {name}-wal and {name}-shm and rename {backup} to {name}, or save what "
    "can be read: sqlite3 {name} .recover | sqlite3 saved.sqlite",
)
PROJECT_FULL = Code(
    "project-full",
    StorageError,
    "no space left on the disk: the change was not saved, and all earlier ones are",
    "make room (df -h), and do it again",
)

NO_SUCH_ENTRY = families.UNKNOWN_NAME.saying(
    "the glossary has no entry {entry_id}", "somebody may have removed or merged it: look again"
)
NO_SUCH_TOKEN = families.UNKNOWN_NAME.saying(
    "the glossary has no token {token_id}", "somebody may have removed it: look again"
)
NO_SUCH_SOUND = families.UNKNOWN_NAME.saying("the glossary has no sound {sound}", "add the sound first")
ENTRY_EXISTS = families.DUPLICATE_NAME.of(UserError).saying(
    "the glossary has an entry {form!r}", "use that one, merge the two, or tell homonyms apart: {form} 2"
)
INVALID_TEXT = families.INVALID_VALUE.of(UserError).saying(
    "{field} is {problem}", "write it anew: a text without control characters"
)
INVALID_PLACE = families.INVALID_VALUE.of(UserError).saying(
    "this is no place: {place}", "name a document or a sound, and a start before the end, in s"
)
PLACE_BEYOND = families.INVALID_TIMES.of(UserError).saying(
    "the recording lasts {length:.3f} s, and the place is from {start:.3f} s to {end:.3f} s",
    "mark a place within the recording",
)
INVALID_SOUND = families.MALFORMED_FILE.saying(
    "the sound is not WAV with PCM samples ({error})", "give it as WAV, PCM of 16 bit"
)
CHANGED_SINCE = Code(
    "changed-since",
    UserError,
    "what {person} changed last ({kind}) cannot be taken back: it was changed again since, by {others}",
    "change it by hand, or let them take theirs back first",
)

EMPTY_ANNOTATION = Code(
    "empty-annotation",
    DataError,
    "the annotation {text!r} begins and ends at {time} s",
    "give it a length in the program that wrote it",
)
NOT_A_GLOSSARY_FILE = families.MALFORMED_FILE.saying(
    "this is no whole glossary ({error})", "export it again: `swsdist glossary export`"
)
STORE_GONE = Code(
    "store-gone",
    OddError,
    "the glossary's store cannot be read ({reason}), so no recordings are known",
    "name where it is now: --store",
)
