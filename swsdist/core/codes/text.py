"""Codes of text queries, their pronunciations, and stores of lattices."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import DataError, OddError, TermError, UnusableError, UserError

# Pronunciations

IMPOSSIBLE_PRONUNCIATION = Code(
    "impossible-pronunciation",
    DataError,
    "a pronunciation of {word} has the probability 0",
    "remove the line, or give a probability above 0",
)
NO_PHONES = Code("no-phones", DataError, "the pronunciation of {word} has no phones", "give its phones, or remove it")
DUPLICATE_RULE = Code("duplicate-rule", DataError, "a second rule for the letters {letters}", "keep one of them")

# Terms

EMPTY_TERM = Code("empty-term", TermError, "the term {term!r} has no word", "write a word")
NO_PRONUNCIATION = Code(
    "no-pronunciation",
    TermError,
    "no pronunciation of {word} in the dictionary, nor by the rules",
    "add it to the dictionary (terms.dictionary), or rules for its letters (terms.rules)",
)
PHONE_NOT_IN_TRACK = Code(
    "phone-not-in-track",
    TermError,
    "{source} has {phone}, which is no phone of the track; the first of its {count} are {phones}",
    "write pronunciations in the track's phones (options.terms.dictionary), or decode another track (options.decoding.track)",
)
TOO_MANY_ALTERNATIVES = Code(
    "too-many-alternatives",
    TermError,
    "the term has more than {most} alternatives",
    "use fewer patterns, pronunciations, or nearest words (terms.nearest)",
)
UNBALANCED_PATTERN = Code(
    "unbalanced-pattern", TermError, "the pattern {term!r} has an unpaired parenthesis", "close each ( with a )"
)
TOO_MANY_PATTERNS = Code(
    "too-many-patterns",
    UserError,
    "the patterns of {count} terms and alternatives together are too many to be searched at once",
    "search fewer at a time, or with fewer lone * and ?",
)

# Stores of lattices

LATTICE_TOO_LONG = Code(
    "lattice-too-long",
    DataError,
    "the lattice lasts {seconds:.0f} s",
    "give its frame shift (options.lattices.frame_shift)",
)
LABELS_MEET = Code(
    "labels-meet",
    DataError,
    "the labels {first} and {second} are both {text} without case and outer punctuation",
    "keep labels as they are (options.recipe.spelling: exact), as for phones",
)
UNKNOWN_LATTICE_FORMAT = Code(
    "unknown-lattice-format",
    UserError,
    "the format of this file is none that is known",
    "name its format (options.lattices.format): one of {formats}",
)
NO_LATTICES = Code(
    "no-lattices",
    UserError,
    "no lattices or transcripts here",
    "name a file or folder of them; formats: {formats}; or name their format (options.lattices.format)",
)
NO_READABLE_LATTICE = Code(
    "no-readable-lattice",
    DataError,
    "none of the {files} files holds a lattice that can be read; the first: {first}",
    "{advice}",
)
TEXT_BEYOND_END = Code(
    "text-beyond-end",
    OddError,
    "{count} documents have words more than 0.5 s after their end",
    "are they lattices of these documents? correct names or durations; hits there are outside of what is scored",
)
NO_SEGMENT = Code(
    "no-segment", DataError, "no segment of the utterance {utterance}", "add it, or leave out options.lattices.segments"
)
WORDS_LINE = Code("words-line", DataError, "the line is not WORD NUMBER: {text}", "give Kaldi's words.txt")
DUPLICATE_WORD_NUMBER = Code(
    "duplicate-word-number", DataError, "a second word of the number {number}; the first is {word}", "keep one of them"
)
NOT_A_LATTICE = Code(
    "not-a-lattice",
    OddError,
    "{count} file{s} left out: of no format of lattices, or of another than options.lattices.format",
    "remove the files",
)
UNREADABLE_LATTICE = Code(
    "unreadable-lattice",
    OddError,
    "{count} file{s} or folder{s} left out: permission denied",
    "check the permissions (ls -l)",
)
BETTER_LATTICE = Code(
    "better-lattice",
    OddError,
    "{count} file{s} left out: the same transcript is there as {format}",
    "remove the files, or name a format (options.lattices.format)",
)
LATTICE_WITHOUT_DOCUMENT = Code(
    "lattice-without-document",
    UnusableError,
    "the corpus has no document {document}",
    "add the document, or name lattices after documents",
)
DUPLICATE_LATTICE = Code(
    "duplicate-lattice", UnusableError, "a second lattice of the document {document}", "keep one of them"
)
MORE_LEFT_OUT = Code(
    "more-left-out",
    UnusableError,
    "{count} more words, cues or annotations cannot be used",
    "correct those that are named first",
)
DOCUMENT_WITHOUT_LATTICE = Code(
    "document-without-lattice",
    UnusableError,
    "no lattice of the document",
    "add one, or remove the document",
)
NO_LATTICE_OF_DOCUMENTS = Code(
    "no-lattice-of-documents",
    DataError,
    "no lattice is of a document of the corpus: lattices are of {lattices}, ...; documents are {document}, ...",
    "name lattices after documents (doc_id), or leave out options.lattices.path: then the documents are what lattices name",
)
ALL_LATTICES_REJECTED = Code(
    "all-lattices-rejected", DataError, "all {count} documents are rejected, the first for this: {reason}", "{advice}"
)
STORE_OF_OTHER_KIND = Code(
    "store-of-other-kind",
    UserError,
    "this store holds {kind}, not lattices",
    "name another one (index.store), or another run",
)
