"""Codes of features: extractors, transforms, models, frames of other programs."""

from __future__ import annotations

from swsdist.core.codes import Code, families
from swsdist.core.errors import AudioError, ConfigError, DataError, FramesError, OddError

# Extractors

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
INVALID_FEATURE_OPTION = families.INVALID_VALUE.saying(
    "the option of {name} is invalid: {problem}", "see the options of {name} in docs/"
)

# Options of extractors and transforms

WINDOW_EXCEEDS_FFT = families.INVALID_VALUE.saying(
    "win_length {win_length} exceeds n_fft {n_fft}", "raise n_fft, or lower win_length"
)
TOO_MANY_CEPSTRA = families.INVALID_VALUE.saying("{key} {count} exceeds {bound} {most}", "lower {key}")
EVEN_DELTA_WIDTH = families.INVALID_VALUE.saying("delta_width {width} is not odd", "use an odd number of frames")
MODEL_WITHOUT_USE = families.UNUSED_OPTION.saying(
    "model has no effect where {option} is {value}", "remove model, or set {option}: {other}"
)

# Self-supervised models

SSL_NOT_INSTALLED = families.NOT_INSTALLED.saying(
    "the library {library} is not installed", "pip install 'swsdist[ssl]'"
)
DUPLICATE_LAYER = families.DUPLICATE_NAME.of(ConfigError).saying("a layer occurs twice", "name each layer once")
LAYER_WEIGHTS_MISMATCH = families.MISMATCH.of(ConfigError).saying(
    "there are {weights} weights for {layers} layers", "give one weight a layer"
)
UNREADABLE_LAYER_WEIGHTS = families.UNUSABLE_MODEL.saying(
    "the weights of layers cannot be read: {detail}", "name a JSON file: a list of numbers, one a layer"
)
SHORT_TOO_LONG = families.INVALID_VALUE.saying(
    "short_seconds is above window_seconds", "lower short_seconds, or raise the other"
)
OVERLAP_TOO_LONG = families.INVALID_VALUE.saying(
    "overlap_seconds is not less than half of chunk_seconds", "lower overlap_seconds"
)
NO_MODEL_FOLDER = families.MISSING_MODEL.saying(
    "there is no such folder, and no such model in the cache of the Hugging Face hub (HF_HUB_CACHE); nothing is downloaded",
    "{fix}",
)
MODEL_FILE_MISSING = families.UNUSABLE_MODEL.saying(
    "the model folder has no {file}", "copy it, too; a complete folder: {command}"
)
MODEL_FILE_UNREADABLE = families.UNUSABLE_MODEL.saying("the model file cannot be read: {detail}", "{fix}")
MODEL_FILE_NOT_JSON = families.UNUSABLE_MODEL.saying("the model file is not a JSON object ({detail})", "copy it again")
NO_TORCH_GPU = families.NO_GPU.of(ConfigError).saying(
    "torch finds no GPU", "set device: cpu, or install torch for CUDA on a machine with a GPU"
)
INCOMPLETE_WEIGHTS = families.UNUSABLE_MODEL.of(DataError).saying(
    "the file lacks {count} weight{s} ({first}), which would be random", "name the folder of a complete model"
)
NO_CTC_HEAD = families.UNSUPPORTED.of(ConfigError).saying(
    "the model has no CTC head: its architectures are {architectures}, and none ends in ForCTC",
    "name a model that was fine-tuned by CTC, or set layer in place of head",
)
LANGUAGE_WITHOUT_CHOICE = families.CONFLICTING_OPTIONS.of(ConfigError).saying(
    "language is {language}, and {reason}", "remove language"
)

# Phoneme recognisers

_RECOGNISER = "name the folder of a BUT recogniser, for example PHN_CZ_SPDAT_LCRC_N1500"
OTHER_RECOGNISER = families.UNSUPPORTED.of(ConfigError).saying(
    "{section}: {key} is {value}, not {supported}, the only supported value", _RECOGNISER
)
BAD_RECOGNISER_CONFIG = families.UNUSABLE_MODEL.saying(
    "the recogniser's configuration is invalid: {detail}", _RECOGNISER
)
BAD_MEL_BANDS = families.INVALID_VALUE.saying(
    "{bands} mel bands from {lowest:g} to {highest:g} Hz at {rate} Hz are impossible", _RECOGNISER
)
RECOGNISER_FILE_MISSING = families.UNUSABLE_MODEL.saying("the file does not exist", _RECOGNISER)
RECOGNISER_FILE_UNREADABLE = families.UNUSABLE_MODEL.saying("the file cannot be read: {detail}", _RECOGNISER)

# Models

_ANOTHER = "name another file, or remove model"
MISSING_MODEL = families.MISSING_MODEL.of(DataError).saying(
    "the model file does not exist",
    "fit the model again, restore the file, or name its new place in the config and run again",
)
NO_MODEL_OBJECT = families.MISSING_MODEL.saying(
    "the model file does not exist", "name the file that the fit wrote, or fit the model again"
)
NOT_A_MODEL = families.UNUSABLE_MODEL.of(DataError).saying("the file is not a model ({error})", _ANOTHER)
WRONG_MODEL = families.UNUSABLE_MODEL.saying("the model {name!r} is not {wanted}", _ANOTHER)
BAD_PROJECTION_ARRAYS = families.UNUSABLE_MODEL.saying(
    "mean {mean}, deviation {deviation} and matrix {matrix} do not form a projection",
    "give (n,), (n,) above 0 and (n, m), all finite, with a finite product deviation x matrix",
)
PROJECTION_TOO_LARGE = families.TOO_LARGE.of(ConfigError).saying(
    "the projection takes {columns} columns, more than {highest}", "use fewer columns, or fewer frames around each"
)
MODEL_NOT_FITTED = families.UNFITTED.saying(
    "{name} is not fitted", "run a chain that fits it (search), or name a model{otherwise}"
)

# Fitting

FEWER_COMPONENTS = Code(
    "fewer-components",
    OddError,
    "{count} model{s} with {components} components, not {usual}: there are few frames",
    "with more recordings, fit it again: --from fit-transforms",
)
TOO_MANY_COMPONENTS = families.INVALID_VALUE.saying(
    "{wanted} {kind} are more than the {available} that there are",
    "add documents, or set columns to {available} at most",
)

# Transforms


# Frames of other programs

DAMAGED_FRAMES = Code("damaged-frames", FramesError, "the frames of {key!r} are damaged: {detail}", "{fix}")
UNREADABLE_FRAMES = Code("unreadable-frames", FramesError, "the frames of {key!r} cannot be read: {detail}", "{fix}")
FRAMES_NOT_REAL = Code(
    "frames-not-real",
    FramesError,
    "the frames of {key!r} have the type {dtype}",
    "write real numbers (stored as float32)",
)
WRONG_SHIFT = Code(
    "wrong-shift",
    FramesError,
    "the file of {key!r} states a shift of {stated:g} s, features.options.shift {shift:g} s",
    "set features.options.shift: {stated:g}, or write the file again",
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
