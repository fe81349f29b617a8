"""Codes of lattices and transcripts."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import ConfigError, DataError, OddError, TermError, UnusableError, UserError

# Lattices.

LATTICE_CYCLE = Code(
    "lattice-cycle",
    DataError,
    "the lattice has a cycle: a path can return to a state that it left",
    "write a lattice without cycles; programs that prune or determinise lattices do",
)

IMPOSSIBLE_COST = Code(
    "impossible-cost",
    DataError,
    "a cost is {value}",
    "a cost is a number from -1e9 to 1e9, or Infinity; decode again, or repair the file",
)

# Kaldi's lattices.

MALFORMED_LINE = Code(
    "malformed-line", DataError, "the line {fault}", "a line is {form}; or write the file again, whole"
)

MALFORMED_LATTICE_LINE = Code(
    "malformed-lattice-line",
    DataError,
    "this is no line of a lattice: {text}",
    "a line is an arc (source, target, word, graph,acoustic,ids; or source, target, id, word, graph,acoustic) or a final state"
    " (state, graph,acoustic), and an empty line ends the lattice",
)

LATTICE_CUT_OFF = Code(
    "lattice-cut-off",
    DataError,
    "the file ends within a lattice",
    "write, or copy, it again; an empty line ends each lattice that is text",
)

NO_LATTICE_HERE = Code(
    "no-lattice-here",
    DataError,
    "no lattice begins here: {fault}",
    "write, or copy, it again; lattice-copy converts it",
)

DAMAGED_LATTICE = Code(
    "damaged-lattice", DataError, "the lattice is damaged: {fault}", "write, or copy, the file again"
)

UNKNOWN_LABEL = Code(
    "unknown-label",
    DataError,
    "the list of words has no number {label}",
    "name the words.txt with which the lattices were made",
)

STATE_AT_TWO_TIMES = Code(
    "state-at-two-times",
    DataError,
    "paths reach state {state} at frames {first} and {second}",
    "paths to a state must have as many frames; write the lattice again without removing ids",
)

LATTICE_FROM_COMMAND = Code(
    "lattice-from-command",
    DataError,
    "the lattice comes from a command, which is not run",
    "run it yourself, and name the archive that it writes (lattice-copy ... ark,scp:x.ark,x.scp)",
)

# HTK's lattices, and those of pocketsphinx.

SLF_COUNTS = Code(
    "slf-counts",
    DataError,
    "the header says {expected} {kind}, and there are {count}",
    "the file is cut off, or not what its header says: write, or copy, it again",
)

NO_SLF_COUNTS = Code("no-slf-counts", DataError, "there is no line N= L= in the header", "write, or copy, it again")

SUBLATTICE = Code(
    "sublattice", DataError, "the lattice has sub-lattices, which are not read", "expand them first: HTK's HLRescore -x"
)

NODE_WITHOUT_TIME = Code(
    "node-without-time",
    DataError,
    "node {node} has no time",
    "write the lattice with times of nodes (HTK: -q with t)",
)

LINK_BACK_IN_TIME = Code(
    "link-back-in-time",
    DataError,
    "a link leads from node {source} back to an earlier time, at node {target}",
    "correct the times of the nodes, or write the lattice again",
)

AMBIGUOUS_END = Code(
    "ambiguous-end",
    DataError,
    "{count} nodes have no link {direction}, and the header has no {name}=",
    "add {name}=NODE to the header",
)

NO_LINK_POSTERIORS = Code(
    "no-link-posteriors",
    DataError,
    "the posteriors of the links that leave the start add up to {total:.3g}, not 1",
    "call get_prob() before write_htk(): it computes them",
)

# Confusion networks.

NO_TIMES_OF_BINS = Code(
    "no-times-of-bins",
    DataError,
    "there is no file {times} with the times of the bins",
    "have lattice-mbr-decode write them (its fourth output), and name that file so",
)

UNPAIRED_CONFUSION = Code(
    "unpaired-confusion",
    DataError,
    "{key!r} has {bins} bins, and {times} times of bins in {file}",
    "the two files must be of the same run of lattice-mbr-decode: write them again",
)

# Of transcripts.

WORD_ENDS_BEFORE_START = Code(
    "word-ends-before-start",
    DataError,
    "{text!r} lasts from {start:g} to {end:g} s",
    "give an end that is not before the start",
)

UNKEPT_TEXT = Code(
    "unkept-text",
    DataError,
    "the text '{text}' has a zero byte or half of a surrogate pair, which no file keeps",
    "write the file again, with whole characters",
)

BAD_CONFIDENCE = Code("bad-confidence", DataError, "the confidence is {text!r}", "give a number from 0 to 1")

WORD_WITHOUT_TIMES = Code(
    "word-without-times",
    DataError,
    "{text!r} has no times, and neither have its neighbours or its segment",
    "give start and end in seconds (NeMo: timestamps=True)",
)

NO_WORD_TIMES = Code(
    "no-word-times",
    DataError,
    "{text!r} has no words with times",
    "write them: word_timestamps=True (Whisper, faster-whisper), whisperx.align, SetWords(True) (Vosk), "
    "timestamps=True (NeMo), return_timestamps='word' (transformers)",
)

MALFORMED_JSON = Code(
    "malformed-json", DataError, "this is not JSON, column {column}: {error}", "write the file again, whole"
)

UNKNOWN_JSON = Code(
    "unknown-json",
    DataError,
    "{item} is not what a known recogniser writes",
    "write JSON of Whisper, WhisperX, whisper.cpp, faster-whisper, transformers, NeMo or Vosk, or another format",
)

RECORDINGS_OF_ONE_NAME = Code(
    "recordings-of-one-name",
    DataError,
    "{first!r} and {second!r} would both be {key!r}",
    "give their files different names",
)

SCATTERED_CTM = Code(
    "scattered-ctm",
    DataError,
    "words of recording {recording!r}, channel {channel}, come again after those of another",
    "sort the CTM by recording, channel and start: sort -k1,1 -k2,2 -k3,3n",
)

CUE_WITHOUT_TIMES = Code(
    "cue-without-times",
    DataError,
    "{line!r} begins no cue: neither it nor the next line has times",
    "write START --> END above a cue's text (00:00:01.500 --> 00:00:02.000), and no blank line in the text",
)

BAD_CUE_TIMES = Code(
    "bad-cue-times",
    DataError,
    "{line!r} does not have a cue's times",
    "write them as 00:00:01.500 --> 00:00:02.000, above the cue's text",
)

UNREADABLE_ANNOTATIONS = Code(
    "unreadable-annotations",
    DataError,
    "{program} cannot have written this file: {error}",
    "open it in {program}, and save it again",
)

UNALIGNED_ANNOTATION = Code(
    "unaligned-annotation",
    DataError,
    "annotation {annotation} of tier {tier!r} depends on none that has times",
    "open it in ELAN, and align it",
)

INCOMPLETE_ITEM = Code(
    "incomplete-item",
    DataError,
    "the interval or point lacks a {what}",
    "open the file in Praat, correct it there, and save it again",
)

OTHER_COUNT = Code(
    "other-count",
    DataError,
    "the file says that it has {count} {what}, and has {found}, which are read",
    "open it in Praat, and compare it; it may be cut off",
)

NO_SUCH_TIER = Code("no-such-tier", DataError, "there is no tier {tier!r}", "name some of {tiers}")

# Decoding.

ARPA_LINE = Code(
    "arpa-line",
    DataError,
    "the line is no {order}-gram: {text}",
    "a line is LOG10-PROBABILITY PHONE [PHONE] [BACK-OFF]; write the model again",
)
MALFORMED_ARPA = Code(
    "malformed-arpa", DataError, "the language model {fault}", "write, or copy, it again, whole and in ARPA's format"
)
PHONE_NOT_IN_MODEL = Code(
    "phone-not-in-model",
    DataError,
    "the language model lacks {count} phones of the recogniser, among them {phone}",
    "train it on the recogniser's phones",
)
TRACK_NOT_DECODABLE = Code(
    "track-not-decodable",
    UserError,
    "the track holds {kind}, and a decoder takes logits or posteriors of phones",
    "name another track (options.decoding.track), or have the extractor give posteriors",
)
NO_BLANK = Code(
    "no-blank",
    UserError,
    "no column {blank}; the first columns are {columns}",
    "name the blank's column (options.decoding.blank); a track without one has topology: loop",
)
CTC_OF_STATES = Code(
    "ctc-of-states",
    UserError,
    "CTC needs one column a label, and {phone} has {states}",
    "decode states of phones by topology: loop (options.decoding.topology)",
)
NON_SPEECH_NOT_IN_TRACK = Code(
    "non-speech-not-in-track",
    UserError,
    "options.decoding.non_speech has {name}, which is no phone of the track; the first of its {count} are {phones}",
    "correct the name, or leave it out",
)
BIGRAMS_OF_CTC = Code(
    "bigrams-of-ctc",
    ConfigError,
    "bigrams do not reach across the blanks of topology ctc",
    "leave options.decoding.bigrams out, or decode a track without blanks by topology: loop",
)

PATTERNS_OF_LATTICES = Code(
    "patterns-of-lattices",
    ConfigError,
    "the method {method} aligns whole labels: it searches no patterns",
    "leave options.terms.patterns out, or set search.method: lattice",
)

# Recognition.

RECOGNISER_PARAMETER = Code(
    "recogniser-parameter",
    ConfigError,
    "pocketsphinx takes no parameter {name}: {value}, or another option sets it",
    "give a parameter of `pocketsphinx` and a value of its type",
)
MODEL_IS_REMOTE = Code(
    "model-is-remote",
    ConfigError,
    "pocketsphinx cannot read {path}: it reads files of its machine",
    "copy it to a folder that every node has",
)
NO_MODEL = Code("no-model", ConfigError, "there is no {path}, or it is empty", "correct the path")
RECOGNISER_NOT_MADE = Code(
    "recogniser-not-made",
    UserError,
    "pocketsphinx cannot use its models: {error}",
    "give model, dictionary and lm that belong together; `pocketsphinx single FILE -loglevel INFO` says more",
)
DICTIONARY_LINE = Code(
    "dictionary-line",
    UserError,
    "pocketsphinx ignores the line: {fault}",
    "write words with pronunciations in the phones of its acoustic model (its option model), or remove the line",
)
MODEL_ALONE = Code(
    "model-alone",
    ConfigError,
    "an acoustic model without {missing}; those of pocketsphinx's package are of its US English one",
    "give dictionary and lm that belong to the model",
)
NOTHING_DECODED = Code(
    "nothing-decoded",
    UnusableError,
    "pocketsphinx makes no lattice of {start:.2f} to {end:.2f} s",
    "widen its beams (its option parameters: beam, wbeam, fwdflatbeam, ...)",
)
NO_WHISPER_MODEL = Code(
    "no-whisper-model",
    ConfigError,
    "there is no folder {model}, and no such model in the cache of the Hugging Face hub",
    "{fix}",
)
NO_MODEL_OF_RECOGNISER = Code(
    "no-model-of-recogniser",
    ConfigError,
    "{model} is no Whisper model of CTranslate2: it lacks {missing}",
    "name one (hf download Systran/faster-whisper-base), or convert this one: ct2-transformers-converter --model FOLDER"
    " --output_dir FOLDER-ct2 --copy_files tokenizer.json preprocessor_config.json --quantization int8",
)
WHISPER_NOT_LOADED = Code(
    "whisper-not-loaded",
    UserError,
    "the model cannot be loaded: {error}",
    "give a complete Whisper model of CTranslate2, and a device and dtype that this machine has",
)
NO_LANGUAGE_OF_RECOGNISER = Code(
    "no-language-of-recogniser",
    ConfigError,
    "the model does not know the language {language}",
    "choose one of {languages}, or none: it is detected",
)
TOO_MANY_HOTWORDS = Code(
    "too-many-hotwords",
    ConfigError,
    "hotwords are {tokens} tokens of the model; a prompt has room for {most}",
    "give fewer, the rarest names first",
)
REPEATED_TEXT = Code(
    "repeated-text",
    DataError,
    "from {start:.1f} to {end:.1f} s ({seconds:.1f} s of sound) the recogniser repeats itself (compression ratio "
    "{value:.1f}): {text}",
    "listen to the place; the recogniser's most_compressed says what is left out",
)
UNLIKELY_TEXT = Code(
    "unlikely-text",
    DataError,
    "from {start:.1f} to {end:.1f} s ({seconds:.1f} s of sound) the recogniser's text is unlikely (mean log-probability "
    "{value:.2f}): {text}",
    "listen to the place; the recogniser's least_likely says what is left out",
)
TEXT_OF_NO_SPEECH = Code(
    "text-of-no-speech",
    DataError,
    "from {start:.1f} to {end:.1f} s ({seconds:.1f} s of sound) the recogniser's text is unlikely, and nobody seems to speak "
    "(probability {value:.2f}): {text}",
    "listen to the place; the recogniser's least_likely says what is left out",
)
OTHER_LANGUAGE = Code(
    "other-language",
    DataError,
    "it sounds like {heard} ({chance:.2f}), not like {language} ({given:.4f}), as which it is recognised",
    "leave out language, so that each recording has its own; or search it apart",
)
NOTHING_RECOGNISED = Code(
    "nothing-recognised",
    TermError,
    "nothing is recognised in the example, only silence or noise",
    "give a clearer recording, or write the query",
)
NOT_THE_TEXT = Code(
    "not-the-text",
    DataError,
    "the text is not what is said: {share:.0%} of it has a place; given: {text}; heard: {heard}",
    "look whether text and recording belong together; give the language if another is heard, or a better model",
)
WORDS_WITHOUT_PLACE = Code(
    "words-without-place",
    DataError,
    "no place for {count} word{s} of the text, something else is said there, or nothing: {text}",
    "listen to the place, and correct the text",
)
NO_TEXT_OF_RECORDING = Code(
    "no-text-of-recording",
    DataError,
    "the recording has no text, or an empty one",
    "add NAME.txt or a row of the table; or recognise it: swsdist transcribe FOLDER",
)
TEXT_WITHOUT_RECORDING = Code(
    "text-without-recording",
    OddError,
    "{count} text{s} without a recording",
    "look at the names: a text is named after its recording, and no two recordings have one text",
)
NO_GIVEN_TEXTS = Code(
    "no-given-texts",
    UserError,
    "no texts: neither TXT files nor transcripts of any format, or all are empty",
    "put NAME.txt beside NAME.wav; or name a table of recordings and texts: --text FILE.csv",
)
TEXTS_NEED_WORDS = Code(
    "texts-need-words",
    ConfigError,
    "the recogniser {name} hears no words, so it gives a text no times",
    "take one of words, such as whisper or pocketsphinx",
)
TRANSCRIPTS_TAKEN = Code(
    "transcripts-taken",
    OddError,
    "{count} recording{s} with lattices or transcripts, which are taken; {others} without, recognised",
    "remove a transcript to have its recording recognised",
)
NO_RECOGNISER = Code(
    "no-recogniser",
    UserError,
    "{count} recording{s} without a transcript, and no model to recognise them: {model} is not in the cache of the Hugging "
    "Face hub (HF_HUB_CACHE); nothing is downloaded",
    "get it: hf download {model}; or put transcripts beside the recordings; or take another recogniser: --model FOLDER, "
    "--set options.recogniser.name=pocketsphinx; --set options.source=files: only what has a transcript",
)
NOT_A_RECOGNISER = Code(
    "not-a-recogniser",
    UserError,
    "{what} is no model of a recogniser",
    "name a folder that holds {wanted}; `ct2-transformers-converter --model FOLDER --output_dir NEW` makes one of a Whisper of "
    "transformers",
)
SEVERAL_RECOGNISERS = Code(
    "several-recognisers", UserError, "{first} and {second} are both models of recognisers", "name one"
)
RECOGNISER_TO_DISCOVER = Code(
    "recogniser-to-discover",
    UserError,
    "this is a model of the recogniser {name}, and words are discovered in frames",
    "name a speech encoder",
)
NOTHING_TO_RECOGNISE = Code(
    "nothing-to-recognise",
    UserError,
    "the folder has no recordings to recognise",
    "add recordings; without any, index what there is without --model",
)
SOURCE_IS_SET = Code(
    "source-is-set", UserError, "{what} takes a recogniser as the source of words", "leave out options.source"
)
OPTION_OF_OTHER_SOURCE = Code(
    "option-of-other-source",
    ConfigError,
    "{key} is of lattices of the source {sources}, and the source is {source}",
    "leave {key} out, or set options.source",
)


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
