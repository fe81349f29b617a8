"""Codes of `swsdist serve`."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import AudioError, ConfigError, DataError, OddError, StorageError, UserError

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


DAMAGED_PROJECT = Code(
    "damaged-project",
    DataError,
    "the file of the glossary is damaged ({error})",
    "keep a copy of it; then put {backup} in its place (remove {name}-wal and {name}-shm), or save what can be read: "
    "sqlite3 {name} .recover | sqlite3 saved.sqlite",
)
NOT_A_PROJECT = Code(
    "not-a-project",
    UserError,
    "this SQLite file is no glossary of swsdist",
    "name the folder of a glossary, or a new one",
)
NEWER_PROJECT = Code(
    "newer-project",
    UserError,
    "the glossary has version {version}, and this swsdist reads up to {known}",
    "install the swsdist that wrote it, or a newer one; nothing was changed",
)
PROJECT_IN_STORE = Code(
    "project-in-store",
    UserError,
    "the folder lies in the store {store}, which may be removed and made again",
    "name a folder of its own for the glossary",
)
PROJECT_FULL = Code(
    "project-full",
    StorageError,
    "no space left on the disk: the change was not saved, and all earlier ones are",
    "make room (df -h), and do it again",
)
READ_ONLY_PROJECT = Code(
    "read-only-project",
    StorageError,
    "the glossary cannot be written: the change was not saved",
    "check the permissions of the folder and its files (ls -l), and whether the disk is mounted for writing",
)
BUSY_PROJECT = Code(
    "busy-project",
    StorageError,
    "another program has been writing to the glossary for {seconds} s: the change was not saved",
    "end that program, or do it again",
)
UNWRITTEN_PROJECT = Code(
    "unwritten-project",
    StorageError,
    "the glossary cannot be read or written ({error}): a change was not saved",
    "check the disk and the permissions of the folder",
)
CLOSED_PROJECT = Code("closed-project", UserError, "this glossary is closed", "open it again")

NO_SUCH_ENTRY = Code(
    "no-such-entry",
    UserError,
    "the glossary has no entry {entry_id}",
    "somebody may have removed or merged it: look again",
)
NO_SUCH_TOKEN = Code(
    "no-such-token", UserError, "the glossary has no token {token_id}", "somebody may have removed it: look again"
)
NO_SUCH_CORRECTION = Code(
    "no-such-correction",
    UserError,
    "the glossary has no correction {correction_id}",
    "somebody may have replaced it or taken it back: look again",
)
CORRECTED_SOUND = Code(
    "corrected-sound", UserError, "a correction is of a recording of the archive", "name a document instead of a sound"
)
NO_SUCH_SOUND = Code("no-such-sound", UserError, "the glossary has no sound {sound}", "add the sound first")
ENTRY_EXISTS = Code(
    "entry-exists",
    UserError,
    "the glossary has an entry {form!r}",
    "use that one, merge the two, or tell homonyms apart: {form} 2",
)
MERGED_WITH_ITSELF = Code("merged-with-itself", UserError, "an entry cannot be merged with itself", "name two entries")
NO_SUCH_FIELD = Code("no-such-field", UserError, "{kind} has no field {field!r}", "its fields are: {fields}")
INVALID_TEXT = Code(
    "invalid-text", UserError, "{field} is {problem}", "write it anew: a text without control characters"
)
INVALID_PLACE = Code(
    "invalid-place",
    UserError,
    "this is no place: {place}",
    "name a document or a sound, and a start before the end, in s",
)
PLACE_BEYOND = Code(
    "place-beyond",
    UserError,
    "the recording lasts {length:.3f} s, and the place is from {start:.3f} s to {end:.3f} s",
    "mark a place within the recording",
)
INVALID_VERDICT = Code("invalid-verdict", UserError, "{verdict!r} is no verdict", "judge `yes`, `no` or `unsure`")
INVALID_SCORE = Code("invalid-score", UserError, "{score!r} is no score", "give a number, or none")
INVALID_SOUND = Code(
    "invalid-sound", DataError, "the sound is not WAV with PCM samples ({error})", "give it as WAV, PCM of 16 bit"
)
CHANGED_SINCE = Code(
    "changed-since",
    UserError,
    "what {person} changed last ({kind}) cannot be taken back: it was changed again since, by {others}",
    "change it by hand, or let them take theirs back first",
)

NO_SUCH_GLOSSARY_EXPORT = Code(
    "no-such-glossary-export", UserError, "a glossary has no export {kind!r}", "its exports are: {kinds}"
)
NO_LANGUAGE_TAG = Code(
    "no-language-tag",
    UserError,
    "{tag!r} is no language tag (BCP 47)",
    "give the code of the language, such as mdw (Mbosi), ln (Lingala) or fr; und: unknown",
)
RECORDING_UNKNOWN = Code(
    "recording-unknown", UserError, "no recording of this name is known", "name the store that holds it"
)
CLIPS_LEFT_OUT = Code(
    "clips-left-out",
    OddError,
    "{count} clip{s} of {of} could not be cut",
    "look whether the recordings are still where they were indexed, and name their store",
)
FILES_LEFT_OUT = Code(
    "files-left-out",
    OddError,
    "{count} file{s} of ELAN left out, to which no tiers can be added",
    "open them in ELAN and save them again, or export without --into",
)
REPLACED_LEFT_OUT = Code(
    "replaced-left-out",
    OddError,
    "{count} judgement{s} left out, since the recording was replaced after it",
    "listen to them in `swsdist serve`, and judge them again or remove them",
)
LARGE_IMPORT = Code(
    "large-import",
    UserError,
    "the file has {count} annotations, more than {most}",
    "take it in by tiers (`swsdist glossary import --tier NAME`), or cut it into several files",
)
EMPTY_ANNOTATION = Code(
    "empty-annotation",
    DataError,
    "the annotation {text!r} begins and ends at {time} s",
    "give it a length in the program that wrote it",
)
UNREADABLE_IMPORT = Code(
    "unreadable-import",
    DataError,
    "the file cannot be read ({error})",
    "open it in the program that wrote it, and save it again",
)
UNKNOWN_IMPORT = Code(
    "unknown-import",
    DataError,
    "neither an ELAN file, nor a TextGrid, nor a table with start, end and text, nor a glossary",
    "give a file .eaf, .TextGrid, .csv or .tsv, or the glossary.json of an export",
)
FOLDER_WITHOUT_STORE = Code(
    "folder-without-store",
    UserError,
    "files of a folder are taken in as annotations of the recordings beside them",
    "name the store of the recordings (--store STORE), and leave --document out",
)
NOTHING_TO_IMPORT = Code(
    "nothing-to-import",
    UserError,
    "no ELAN file or TextGrid that can be read has such a tier: {tiers}",
    "look at the spelling of the tier, or leave it out",
)
UNUSABLE_FILE = Code("unusable-file", DataError, "the file is left out: {reason}", "mend it, and import it again")
NOT_A_GLOSSARY_FILE = Code(
    "not-a-glossary-file",
    DataError,
    "this is no whole glossary ({error})",
    "export it again: `swsdist glossary export`",
)
SEVERAL_RECORDINGS = Code(
    "several-recordings",
    UserError,
    "{count} recordings may be meant: {names}",
    "name the one: --document NAME, or NAME#2 for its second channel",
)
NO_RECORDING_OF = Code(
    "no-recording-of",
    UserError,
    "the store has no recording of the name {names}",
    "name the one that the annotations are of: --document NAME",
)
NO_PROJECT = Code(
    "no-project", UserError, "there is no glossary here", "name the folder of a glossary, which has a project.sqlite"
)
NO_SUCH_FORM = Code(
    "no-such-form", UserError, "the glossary has no entry {form!r}{close}", "`swsdist glossary list` lists them"
)
STORE_GONE = Code(
    "store-gone",
    OddError,
    "the glossary's store cannot be read ({reason}), so no recordings are known",
    "name where it is now: --store",
)
PACK_WITHOUT_STORE = Code(
    "pack-without-store",
    UserError,
    "the glossary is of no store, which a colleague needs",
    "name it: `--store FOLDER`; or write the words alone: `swsdist glossary export PROJECT project`",
)
PACK_EXISTS = Code("pack-exists", UserError, "there is something already", "name a new folder, or a new .zip")
