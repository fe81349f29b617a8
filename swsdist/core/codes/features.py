"""Codes of features: extractors, transforms, models, frames of other programs."""

from __future__ import annotations

from swsdist.core.codes import Code
from swsdist.core.errors import AudioError, ConfigError, DataError, FramesError, OddError, UserError

# Extractors

UNKNOWN_FRAME_CONTEXT = Code(
    "unknown-frame-context",
    ConfigError,
    "extractor {name!r} has no context, nor whole_frames, chunk_frames and overlap_frames",
    "see docs/ on how to add an extractor",
)
WRONG_FRAME_SHAPE = Code(
    "wrong-frame-shape",
    ConfigError,
    "extractor {name!r} returned {shape} for {samples} samples; its hop, frame_length and dimension promise {expected}",
    "return {expected}, or times are wrong; swsdist.testing.conformance.check_extractor checks an extractor",
)
TOO_SHORT = Code(
    "too-short", AudioError, "the recording is shorter than one frame ({seconds:g} s)", "remove it, or record more"
)
NON_FINITE_FEATURES = Code(
    "non-finite-features",
    AudioError,
    "extractor {name} returned a frame that is not finite",
    "remove the recording, or correct the extractor",
)
BEYOND_HALF_PRECISION = Code(
    "beyond-half-precision",
    AudioError,
    "extractor {name} returned {value:g}, and float16 ends at 65504",
    "set dtype: float32 for this track",
)
INVALID_FEATURE_OPTION = Code(
    "invalid-feature-option",
    ConfigError,
    "the option of {name} is invalid: {problem}",
    "see the options of {name} in docs/",
)
EXTRACTOR_NOT_CREATED = Code(
    "extractor-not-created",
    ConfigError,
    "{name} cannot be created ({error}; {file}, line {line})",
    "check its options, or ask the author of {target}",
)
OTHER_EXTRACTOR = Code(
    "other-extractor",
    DataError,
    "extractor {name} differs from the one that was planned ({files})",
    "install the same version and the same files on every machine; or index again",
)
MISSING_OPTION_OBJECT = Code("missing-option-object", ConfigError, "the object does not exist", "check the url")
UNREADABLE_OPTION_FILE = Code("unreadable-option-file", ConfigError, "the file cannot be read: {detail}", "{fix}")
DUPLICATE_TRACK_NAME = Code(
    "duplicate-track-name", UserError, "{count} tracks have the name {name}", "give each extractor its own `track`"
)
DUPLICATE_EXTRACTOR = Code(
    "duplicate-extractor", UserError, "extractor {name} occurs twice with the same options", "{fix}"
)
UNEQUAL_FRAME_SHIFTS = Code(
    "unequal-frame-shifts",
    UserError,
    "the frame shifts of {first} and {second} differ: {first_shift:g} s and {second_shift:g} s",
    "tracks of a store share one shift; {fix}, or make two stores",
)

# Options of extractors and transforms

WINDOW_EXCEEDS_FFT = Code(
    "window-exceeds-fft",
    ConfigError,
    "win_length {win_length} exceeds n_fft {n_fft}",
    "raise n_fft, or lower win_length",
)
TOO_MANY_CEPSTRA = Code("too-many-cepstra", ConfigError, "{key} {count} exceeds {bound} {most}", "lower {key}")
TOO_MANY_POLES = Code(
    "too-many-poles", ConfigError, "order {order} is not below the number of bands, {bands}", "lower it"
)
EVEN_DELTA_WIDTH = Code(
    "even-delta-width", ConfigError, "delta_width {width} is not odd", "use an odd number of frames"
)
EVEN_WARP_WINDOW = Code(
    "even-warp-window", ConfigError, "{frames} frames is not odd", "use a frame and equally many on either side"
)
NO_COMMON_BAND = Code(
    "no-common-band",
    ConfigError,
    "only mfcc chooses its band by the collection (fmax: common)",
    "set fmax to Hz, 3700 for telephone speech, or to null",
)
INVALID_BAND = Code(
    "invalid-band",
    ConfigError,
    "no band from fmin {fmin:g} Hz to fmax {fmax:g} Hz within half the rate, {top:g} Hz",
    "set 0 <= fmin < fmax <= half of sample_rate; for a collection with telephone speech `common` is 3700",
)
MODEL_WITHOUT_USE = Code(
    "model-without-use",
    ConfigError,
    "model has no effect where {option} is {value}",
    "remove model, or set {option}: {other}",
)
EMPTY_BAND = Code(
    "empty-band",
    ConfigError,
    "band {band} of {bands} contains no point of the spectrum",
    "use fewer bands, or a larger n_fft",
)
SINGLE_COEFFICIENT = Code(
    "single-coefficient", ConfigError, "a fingerprint needs two coefficients or more", "raise n_mfcc, or add deltas"
)
INVALID_SECONDS = Code(
    "invalid-seconds",
    ConfigError,
    "{value!r} is not a time in s",
    "write a number such as 0.01, or a quotient '256/22050'",
)

# Self-supervised models

SSL_NOT_INSTALLED = Code(
    "ssl-not-installed", ConfigError, "the library {library} is not installed", "pip install 'swsdist[ssl]'"
)
LAYER_OR_LAYERS = Code(
    "layer-or-layers",
    ConfigError,
    "exactly one of layer, layers and head must be set; the layers are 0 to {last}",
    "begin with one in the middle, layer: {middle}",
)
NO_SUCH_LAYER = Code("no-such-layer", ConfigError, "the model has no layer {layer}", "name layers from 0 to {last}")
DUPLICATE_LAYER = Code("duplicate-layer", ConfigError, "a layer occurs twice", "name each layer once")
LAYER_WEIGHTS_MISMATCH = Code(
    "layer-weights-mismatch", ConfigError, "there are {weights} weights for {layers} layers", "give one weight a layer"
)
UNREADABLE_LAYER_WEIGHTS = Code(
    "unreadable-layer-weights",
    ConfigError,
    "the weights of layers cannot be read: {detail}",
    "name a JSON file: a list of numbers, one a layer",
)
BAD_LAYER_WEIGHTS = Code(
    "bad-layer-weights", ConfigError, "the file holds no list of numbers", "give one number a layer, as JSON"
)
CHUNK_TOO_LONG = Code(
    "chunk-too-long",
    ConfigError,
    "{key} is {seconds:g}, and {kind} takes at most {longest:g} s",
    "lower {key}",
)
SHORT_TOO_LONG = Code(
    "short-too-long", ConfigError, "short_seconds is above window_seconds", "lower short_seconds, or raise the other"
)
OVERLAP_TOO_LONG = Code(
    "overlap-too-long", ConfigError, "overlap_seconds is not less than half of chunk_seconds", "lower overlap_seconds"
)
DUPLICATE_MODEL_NAME = Code(
    "duplicate-model-name",
    ConfigError,
    "another model is called {name}, too",
    "leave it out, or name a folder otherwise",
)
HEADS_DO_NOT_DIVIDE = Code(
    "heads-do-not-divide",
    ConfigError,
    "encoder_attention_heads does not divide the width {width}",
    "copy the model's own config.json",
)
NO_MODEL_FOLDER = Code(
    "no-model-folder",
    ConfigError,
    "there is no such folder, and no such model in the cache of the Hugging Face hub (HF_HUB_CACHE); nothing is downloaded",
    "{fix}",
)
MODELS_BELOW = Code(
    "models-below", ConfigError, "this folder is no model, but has models in it", "name one of them: {models}"
)
MODEL_FILE_MISSING = Code(
    "model-file-missing", ConfigError, "the model folder has no {file}", "copy it, too; a complete folder: {command}"
)
MODEL_FILE_UNREADABLE = Code("model-file-unreadable", ConfigError, "the model file cannot be read: {detail}", "{fix}")
MODEL_FILE_NOT_JSON = Code(
    "model-file-not-json", ConfigError, "the model file is not a JSON object ({detail})", "copy it again"
)
MODEL_KEY_MISSING = Code(
    "model-key-missing",
    ConfigError,
    "{keys} is missing, or is not {type}",
    "save the model again with save_pretrained of transformers, which writes every key",
)
NOT_A_SPEECH_ENCODER = Code(
    "not-a-speech-encoder",
    ConfigError,
    "the model type {kind} is not a speech encoder with layers of one frame rate",
    "name one that takes samples (wav2vec2, hubert, wavlm, data2vec-audio, unispeech, unispeech-sat, wav2vec2-conformer), "
    "or one of: {others}",
)
PICKLED_WEIGHTS = Code(
    "pickled-weights",
    ConfigError,
    "the weights are only in {file}, and reading a pickle runs its code; weights are read from {wanted}",
    'if you trust the file, convert it once: python -c "from transformers import {auto}; '
    "{auto}.from_pretrained('{folder}').save_pretrained('{folder}')\"",
)
NO_TORCH_GPU = Code(
    "no-torch-gpu",
    ConfigError,
    "torch finds no GPU",
    "set device: cpu, or install torch for CUDA on a machine with a GPU",
)
TRANSFORMERS_CANNOT_LOAD = Code(
    "transformers-cannot-load",
    DataError,
    "transformers cannot load the model ({error})",
    "copy it again, or install the version of transformers that saved it",
)
INCOMPLETE_WEIGHTS = Code(
    "incomplete-weights",
    DataError,
    "the file lacks {count} weight{s} ({first}), which would be random",
    "name the folder of a complete model",
)
WRONG_LAYER_SHAPE = Code(
    "wrong-layer-shape",
    DataError,
    "{samples} samples give an output of shape {shape}, not {expected}",
    "name another model: config.json does not describe this one",
)
NO_CTC_HEAD = Code(
    "no-ctc-head",
    ConfigError,
    "the model has no CTC head: its architectures are {architectures}, and none ends in ForCTC",
    "name a model that was fine-tuned by CTC, or set layer in place of head",
)
BAD_VOCABULARY = Code(
    "bad-vocabulary",
    ConfigError,
    "the vocabulary does not name the {columns} columns of the CTC head: {problem}",
    "copy config.json, vocab.json and added_tokens.json of one model",
)
NO_SUCH_LANGUAGE = Code(
    "no-such-language",
    ConfigError,
    "language is {language}, and the model has vocabularies of {count} language{s}: {languages}",
    "set language to one of them",
)
LANGUAGE_WITHOUT_CHOICE = Code(
    "language-without-choice",
    ConfigError,
    "language is {language}, and {reason}",
    "remove language",
)

# Phoneme recognisers

_RECOGNISER = "name the folder of a BUT recogniser, for example PHN_CZ_SPDAT_LCRC_N1500"
NO_NON_SPEECH_PHONES = Code(
    "no-non-speech-phones",
    ConfigError,
    "the non-speech phones of {folder} are {phones}: some must be, and not all",
    "name some of: {known}; or set non_speech: keep",
)
WRONG_NETWORK_SIZE = Code(
    "wrong-network-size",
    ConfigError,
    "the network has {inputs} inputs and {outputs} outputs, not {expected_inputs} and {expected_outputs} "
    "for {bands} bands and {phones} phones",
    "take config, dicts/phonemes and weights of one recogniser",
)
OTHER_RECOGNISER = Code(
    "other-recogniser",
    ConfigError,
    "{section}: {key} is {value}, not {supported}, the only supported value",
    _RECOGNISER,
)
BAD_RECOGNISER_CONFIG = Code(
    "bad-recogniser-config", ConfigError, "the recogniser's configuration is invalid: {detail}", _RECOGNISER
)
BAD_MEL_BANDS = Code(
    "bad-mel-bands",
    ConfigError,
    "{bands} mel bands from {lowest:g} to {highest:g} Hz at {rate} Hz are impossible",
    _RECOGNISER,
)
BAD_PHONE_LIST = Code(
    "bad-phone-list",
    ConfigError,
    "the list has {count} phone{s}, {distinct} distinct",
    "list a phone a line, each once",
)
RECOGNISER_FILE_MISSING = Code("recogniser-file-missing", ConfigError, "the file does not exist", _RECOGNISER)
RECOGNISER_FILE_UNREADABLE = Code(
    "recogniser-file-unreadable", ConfigError, "the file cannot be read: {detail}", _RECOGNISER
)
NOT_RECOGNISER_WEIGHTS = Code(
    "not-recogniser-weights", ConfigError, "the file holds no weights of a recogniser: {detail}", "copy it again"
)

# Models

_ANOTHER = "name another file, or remove model"
MISSING_MODEL = Code(
    "missing-model",
    DataError,
    "the model file does not exist",
    "fit the model again, restore the file, or name its new place in the config and run again",
)
NO_MODEL_OBJECT = Code(
    "no-model-object", ConfigError, "the model file does not exist", "check the url, or fit the model again"
)
UNREADABLE_MODEL = Code("unreadable-model", DataError, "the model file cannot be read: {detail}", "{fix}")
UNUSABLE_MODEL = Code("unusable-model", ConfigError, "{detail}", "{fix}")
NOT_A_MODEL = Code("not-a-model", DataError, "the file is not a model ({error})", _ANOTHER)
OTHER_MODEL = Code(
    "other-model",
    DataError,
    "the model differs from the one that was used",
    "restore the right file, or fit the model again",
)
WRONG_MODEL = Code("wrong-model", ConfigError, "the model {name!r} is not {wanted}", _ANOTHER)
OTHER_COMPONENTS = Code(
    "other-components",
    ConfigError,
    "the model has {count} component{s}, and the option components is {components}",
    "set components: {count}, or name another model",
)
LABELS_WITH_MODEL = Code(
    "labels-with-model",
    ConfigError,
    "labels have no effect on a fitted model",
    "remove labels, or model",
)
WRONG_MIXTURE = Code(
    "wrong-mixture",
    ConfigError,
    "the model {name!r} of version {version} is not a mixture of version 1",
    "create it with swsdist.features.fitting.mixture.mixture_model, or fit it",
)
NOT_A_PROJECTION = Code(
    "not-a-projection",
    ConfigError,
    "the model is not a projection of version 1: {problem}",
    "create it with swsdist.features.transforms.project.projection",
)
BAD_PROJECTION_ARRAYS = Code(
    "bad-projection-arrays",
    ConfigError,
    "mean {mean}, deviation {deviation} and matrix {matrix} do not form a projection",
    "give (n,), (n,) above 0 and (n, m), all finite, with a finite product deviation x matrix",
)
PROJECTION_TOO_LARGE = Code(
    "projection-too-large",
    ConfigError,
    "the projection takes {columns} columns, more than {highest}",
    "use fewer columns, or fewer frames around each",
)
MODEL_NOT_FITTED = Code(
    "model-not-fitted",
    ConfigError,
    "{name} is not fitted",
    "run a chain that fits it (search), or name a model{otherwise}",
)
MODEL_COLUMNS_MISMATCH = Code(
    "model-columns-mismatch",
    ConfigError,
    "the model takes {expected} columns, the features have {columns}",
    "name the model of these features",
)

# Fitting

NO_POSITIONS = Code(
    "no-positions",
    ConfigError,
    "these frames are the same wherever in a recording they stand",
    "leave out positions: it is for encoders that read a stretch at once",
)
NO_FRAMES_TO_FIT = Code("no-frames-to-fit", DataError, "there are no frames to fit a model to", "add documents")
UNREADABLE_LABELS = Code(
    "unreadable-labels",
    ConfigError,
    "the labels cannot be read: {detail}",
    "name a CTM or a master label file, here or as corpus.alignments.phones",
)
UNLABELLED_FRAMES = Code(
    "unlabelled-frames",
    DataError,
    "no frame of the training documents has a label",
    "check the labels: their document names must be those of the corpus",
)
TOO_FEW_FRAMES = Code(
    "too-few-frames",
    ConfigError,
    "{frames} frames are too few for {components} components",
    "use fewer components, or fit to more documents (hours)",
)
FEWER_COMPONENTS = Code(
    "fewer-components",
    OddError,
    "{count} model{s} with {components} components, not {usual}: there are few frames",
    "with more recordings, fit it again: --from fit-transforms",
)
COVARIANCES_TOO_LARGE = Code(
    "covariances-too-large",
    ConfigError,
    "covariances of {classes} classes and {columns} columns are too large",
    "put pca before it, or splice fewer frames",
)
TOO_MANY_COMPONENTS = Code(
    "too-many-components",
    ConfigError,
    "{wanted} {kind} are more than the {available} that there are",
    "add documents, or set columns to {available} at most",
)
TOO_MANY_DISCRIMINANTS = Code(
    "too-many-discriminants",
    ConfigError,
    "{wanted} discriminants are more than {classes} classes and {dimension} columns allow",
    "set columns to {available} at most",
)
SINGULAR_COVARIANCE = Code(
    "singular-covariance",
    ConfigError,
    "the covariance within classes is singular: columns are sums of each other",
    "put pca before it",
)

# Transforms

DUPLICATE_FEATURE_COLUMN = Code(
    "duplicate-feature-column", ConfigError, "a column occurs twice", "name each column once"
)
NO_SUCH_FEATURE_COLUMN = Code(
    "no-such-feature-column",
    ConfigError,
    "the features have no column {column!r}",
    "name one of: {columns}, or 0 to {last}",
)
SEVERAL_TRACKS = Code(
    "several-tracks",
    ConfigError,
    "{name} yields several tracks, and transforms take one",
    "remove the transforms",
)
AMBIGUOUS_COLUMNS = Code(
    "ambiguous-columns",
    ConfigError,
    "transform {name} gives two columns the same name",
    "correct the transform: names of columns must differ",
)
NEGATIVE_LOGARITHM = Code(
    "negative-logarithm", DataError, "the logarithm of {value:g} is not defined", "remove the transform"
)
FAR_FROM_MEAN = Code(
    "far-from-mean",
    DataError,
    "a frame's column {column} is more than {limit} deviations from the mean",
    "create the model with the deviations of these features",
)

# Frames of other programs

DAMAGED_FRAMES = Code("damaged-frames", FramesError, "the frames of {key!r} are damaged: {detail}", "{fix}")
UNREADABLE_FRAMES = Code("unreadable-frames", FramesError, "the frames of {key!r} cannot be read: {detail}", "{fix}")
FRAMES_NOT_REAL = Code(
    "frames-not-real",
    FramesError,
    "the frames of {key!r} have the type {dtype}",
    "write real numbers (stored as float32)",
)
WRONG_DIMENSION = Code(
    "wrong-dimension",
    FramesError,
    "the frames of {key!r} have the shape {shape}, not frames x {dimension}",
    "correct features.options.dimension, or the frames",
)
TRANSPOSED_FRAMES = Code(
    "transposed-frames",
    FramesError,
    "the frames of {key!r} have the shape {shape}, not frames x {dimension}",
    "transpose the array: a row is a frame",
)
EMPTY_FRAMES = Code("empty-frames", FramesError, "the array of {key!r} has no frames", "remove the document")
WRONG_SHIFT = Code(
    "wrong-shift",
    FramesError,
    "the file of {key!r} states a shift of {stated:g} s, features.options.shift {shift:g} s",
    "correct the option",
)
WRONG_DURATION = Code(
    "wrong-duration",
    FramesError,
    "{count} frames of {key!r} at {shift:g} s last {length:.2f} s, its audio {duration:.2f} s",
    "correct features.options.shift, check that it is the same recording, or raise features.options.tolerance",
)
NON_FINITE_FRAMES = Code(
    "non-finite-frames",
    FramesError,
    "frame {frame} of {key!r} contains {value}",
    "replace numbers that are not finite, for example the logarithm of 0 by a floor",
)
FRAMES_NOT_POSTERIORS = Code(
    "frames-not-posteriors",
    FramesError,
    "frame {frame} of {key!r} is not a posterior: {problem}",
    "give probabilities that sum to 1, or set features.options.kind: features or logits",
)
