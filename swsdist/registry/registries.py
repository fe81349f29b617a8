"""Built-in entries of all registries. Other packages add entries by entry points (`swsdist.registry.registry`)."""

from __future__ import annotations

from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.registry.entries import (
    BackendEntry,
    ChainEntry,
    Dependency,
    DiscoveryMeasureEntry,
    DiscoveryModeEntry,
    DistanceEntry,
    ExecutorEntry,
    ExportEntry,
    FirstPassEntry,
    LatticeFormatEntry,
    MeasureEntry,
    MethodEntry,
    Quantity,
    ReaderEntry,
    RecogniserEntry,
    RecurrenceEntry,
    StepEntry,
    WriterEntry,
)
from swsdist.registry.registry import COMMANDS as COMMANDS  # a light module
from swsdist.registry.registry import Entry, Registry

#: Samples to frames.
FEATURES = Registry("feature extractor", "swsdist.features", "features.name", Entry)
FEATURES |= {
    "mfcc": Entry("swsdist.features.mfcc:Mfcc", 2),
    "mfcc-fingerprint": Entry("swsdist.features.librosa:MfccFingerprint", 2),
    "plp": Entry("swsdist.features.plp:Plp", 2),
    "external": Entry("swsdist.features.external:External", 1),
    "vtln": Entry("swsdist.features.vtln:Vtln", 3),
    "phnrec": Entry("swsdist.features.phnrec.extractor:Phnrec", 1),
    "ssl": Entry("swsdist.features.ssl.extractor:Ssl", 1),
    "librosa": Entry("swsdist.features.librosa:Librosa", 1),
}

_T = "swsdist.features.transforms"

#: Frames to other frames.
TRANSFORMS = Registry("transform", "swsdist.transforms", "features.transforms", Entry)
TRANSFORMS |= {
    "columns": Entry(f"{_T}.interface:Columns", 1),
    "gmm": Entry(f"{_T}.gmm:Gmm", 1),
    "hlda": Entry(f"{_T}.projections:Hlda", 2),
    "lda": Entry(f"{_T}.projections:Lda", 1),
    "log": Entry(f"{_T}.interface:Log", 1),
    "correspondence": Entry("swsdist.discovery.correspondence:Correspondence", 1),
    "mean-variance": Entry(f"{_T}.mean_variance:MeanVariance", 1),
    "pca": Entry(f"{_T}.projections:Pca", 1),
    "phones": Entry(f"{_T}.gmm:Phones", 1),
    "project": Entry(f"{_T}.project:Project", 1),
    "splice": Entry(f"{_T}.interface:Splice", 1),
    "warp": Entry(f"{_T}.mean_variance:Warp", 1),
}

#: A config and its ledger to a checked chain (`swsdist.pipeline.chain.Chain`).
CHAINS = Registry("chain", "swsdist.chains", "chain", Entry)
CHAINS |= {
    "search": ChainEntry(
        "swsdist.chains.search.chain:build", 1, "swsdist.chains.search.words:SearchOptions", searches=True
    ),
    "fuse": ChainEntry("swsdist.chains.fuse.chain:build", 1, "swsdist.chains.fuse.inputs:FuseOptions", joined=True),
    "sweep": ChainEntry("swsdist.chains.sweep.chain:build", 1, of_points=True),
    "lattices": ChainEntry(
        "swsdist.chains.lattices.chain:build", 1, "swsdist.chains.lattices.options:LatticesOptions", searches=True
    ),
    "discover": ChainEntry("swsdist.chains.discover.chain:build", 1, "swsdist.chains.discover.inputs:DiscoverOptions"),
}

_O = "swsdist.config.search"

#: Queries and a store to candidates.
METHODS = Registry("method", "swsdist.methods", "search.method", MethodEntry)
METHODS |= {
    "dtw": MethodEntry("swsdist.methods.dtw.method:Dtw", 1),
    "windows": MethodEntry("swsdist.methods.windows.method:Windows", 1, f"{_O}:WindowsOptions"),
    "lattice": MethodEntry(
        "swsdist.methods.lattice.method:LatticeSearch",
        1,
        f"{_O}:LatticeOptions",
        "text",
        "lattices",
        "posterior",
        "sum",
    ),
    "lattice-edits": MethodEntry(
        "swsdist.methods.lattice.edits:LatticeEdits",
        2,
        "swsdist.methods.lattice.edits:EditsOptions",
        "lattices",
        "lattices",
    ),
}

_D = "swsdist.kernels.distances"
_FLOOR, _LEAST, _CAP = f"{_O}:FloorOptions", f"{_O}:FloorOfProductOptions", f"{_O}:CapOptions"

#: Frames to a local distance.
DISTANCES = Registry("distance", "swsdist.distances", "search.distance", DistanceEntry)
DISTANCES |= {
    "cosine": DistanceEntry(f"{_D}.cosine:plain", 1),
    "cosine-squared": DistanceEntry(f"{_D}.cosine:squared", 1, unit=1024),
    "cosine-exp": DistanceEntry(f"{_D}.cosine:exponential", 1, unit=512),
    "cosine-neg-log": DistanceEntry(f"{_D}.cosine:negative_log", 1, unit=512),
    "bhattacharyya": DistanceEntry(f"{_D}.cosine:bhattacharyya", 1, posteriors=True),
    "log-posterior-cosine": DistanceEntry(f"{_D}.cosine:log_posterior", 1, _FLOOR, posteriors=True),
    "log-posterior-cosine-squared": DistanceEntry(
        f"{_D}.cosine:log_posterior_squared", 1, _FLOOR, 1024, posteriors=True
    ),
    "kl": DistanceEntry(f"{_D}.kl:directed", 1, _FLOOR, 128, posteriors=True),
    "kl-symmetric": DistanceEntry(f"{_D}.kl:symmetric", 1, _FLOOR, 128, posteriors=True),
    "inner-product": DistanceEntry(f"{_D}.inner_product:negative_log", 1, _LEAST, 256, posteriors=True),
    "euclidean": DistanceEntry(f"{_D}.euclidean:plain", 1, _CAP),
    "euclidean-squared": DistanceEntry(f"{_D}.euclidean:squared", 1, _CAP, 1024),
}

_R = "swsdist.kernels.recurrences"

#: Distances to the costs of paths.
RECURRENCES = Registry("recurrence", "swsdist.recurrences", "search.recurrence", RecurrenceEntry)
RECURRENCES |= {
    "bounded-slope": RecurrenceEntry(f"{_R}.bounded_slope:recurrence", 1, first_pass=True),
    "asymmetric": RecurrenceEntry(f"{_R}.asymmetric:recurrence", 1),
    "averages": RecurrenceEntry(f"{_R}.averages:recurrence", 1, longest_query=1 << 15),
    "non-segmental": RecurrenceEntry(f"{_R}.nonsegmental:recurrence", 1, longest_query=1 << 14),
    "segmental": RecurrenceEntry(f"{_R}.segmental:recurrence", 1, f"{_O}:BandOptions", 1 << 18, "band"),
}

_B = "swsdist.methods.dtw.backends"

#: Implementations of the exact search.
BACKENDS = Registry("backend", "swsdist.backends", "search.backend", BackendEntry)
BACKENDS |= {
    "cpu": BackendEntry(f"{_B}.create:cpu"),
    "auto": BackendEntry(f"{_B}.create:auto", gpu=None),
    "int16": BackendEntry(f"{_B}.cpu:int16"),
    "blas": BackendEntry(f"{_B}.cpu:blas"),
    "cuda": BackendEntry(f"{_B}.cuda:Cuda", gpu=True),
}

_X = "swsdist.pipeline.execution"

#: Tasks to receipts.
EXECUTORS = Registry("executor", "swsdist.executors", "executor.kind", ExecutorEntry)
EXECUTORS |= {
    "serial": ExecutorEntry(f"{_X}.executor:Serial", in_driver=True),
    "ray": ExecutorEntry(
        f"{_X}.ray_executor:RayExecutor",
        address_variable="RAY_ADDRESS",
        shards="swsdist.searcher.on_ray:RayShards",
        check=f"{_X}.ray_instance:check",
    ),
    "dask": ExecutorEntry(f"{_X}.dask_executor:DaskExecutor", address_variable="DASK_SCHEDULER_ADDRESS"),
}

_P = "swsdist.methods.first_pass"

_QUANTISE = "swsdist.stages.index:Quantise"

#: Where to search.
FIRST_PASSES = Registry("first pass", "swsdist.first_passes", "search.first_pass.name", FirstPassEntry)
FIRST_PASSES |= {
    "coarse": FirstPassEntry(f"{_P}.coarse:Coarse", 3, f"{_O}:CoarseOptions"),
    "quantised": FirstPassEntry(f"{_P}.quantised:Quantised", 5, f"{_O}:QuantisedOptions", True, _QUANTISE),
}

#: Detections to files.
EXPORTS = Registry("export", "swsdist.exports", "report.exports", ExportEntry)
EXPORTS |= {
    "csv": ExportEntry("swsdist.exports.lists:table", 1, rows=True),
    "stdlist": ExportEntry("swsdist.exports.lists:stdlist", 1, rows=True),
    "kwslist": ExportEntry("swsdist.exports.lists:kwslist", 1, rows=True),
    "labels": ExportEntry("swsdist.exports.lists:write_tracks", 4),
    "eaf": ExportEntry("swsdist.exports.tiers:write_eaf", 2),
    "textgrid": ExportEntry("swsdist.exports.tiers:write_textgrid", 2),
    "clips": ExportEntry("swsdist.exports.lists:write_clips", 1, best_hits=True),
}

_RD, _WR = "swsdist.evaluation.reading", "swsdist.evaluation.writing"

_L = "swsdist.lattices.formats"

#: Files to lattices: the first format that detects a file reads it.
LATTICE_FORMATS = Registry(
    "format of lattices", "swsdist.lattice_formats", "options.lattices.format", LatticeFormatEntry
)
LATTICE_FORMATS |= {
    "kaldi": LatticeFormatEntry(f"{_L}.kaldi:read", 1, f"{_L}.kaldi:detect", "Kaldi's lattices, ark or scp"),
    "pocketsphinx": LatticeFormatEntry(
        f"{_L}.htk:read_pocketsphinx",
        1,
        f"{_L}.htk:is_pocketsphinx",
        "pocketsphinx's lattices, its own or SLF",
    ),
    "htk": LatticeFormatEntry(f"{_L}.htk:read", 2, f"{_L}.htk:detect", "HTK's SLF"),
    "confusion": LatticeFormatEntry(f"{_L}.confusion:read", 2, f"{_L}.confusion:detect", "Kaldi's sausages"),
    "json": LatticeFormatEntry(
        f"{_L}.recognisers:read",
        3,
        f"{_L}.recognisers:detect",
        "JSON of Whisper, WhisperX, whisper.cpp, transformers, Vosk, NeMo",
    ),
    "webvtt": LatticeFormatEntry(f"{_L}.subtitles:read", 2, f"{_L}.subtitles:is_webvtt", "WebVTT subtitles"),
    "srt": LatticeFormatEntry(f"{_L}.subtitles:read", 2, f"{_L}.subtitles:is_srt", "SRT subtitles"),
    "elan": LatticeFormatEntry(f"{_L}.elan:read", 2, f"{_L}.elan:detect", "ELAN annotations"),
    "textgrid": LatticeFormatEntry(f"{_L}.praat:read", 2, f"{_L}.praat:detect", "Praat TextGrid"),
    "table": LatticeFormatEntry(f"{_L}.table:read", 1, f"{_L}.table:detect", "CSV with times and texts"),
    "ctm": LatticeFormatEntry(f"{_L}.ctm:read", 3, f"{_L}.ctm:detect", "CTM, words with confidences"),
}

#: Files of models of Sphinx, and of Whisper in CTranslate2.
_SPHINX, _CTRANSLATE2 = ("mdef", "feat.params"), ("model.bin", "config.json", "vocabulary.*")
_WHISPER = "swsdist.lattices.whisper:Whisper"
_POCKETSPHINX = "swsdist.lattices.pocketsphinx:Pocketsphinx"

#: Recordings to lattices, and to best words of spoken queries.
RECOGNISERS = Registry("recogniser", "swsdist.recognisers", "options.recogniser.name", RecogniserEntry)
RECOGNISERS |= {
    "pocketsphinx": RecogniserEntry(_POCKETSPHINX, 1, _POCKETSPHINX, "words", ("pocketsphinx",), _SPHINX),
    "whisper": RecogniserEntry(_WHISPER, 1, _WHISPER, "words", ("faster_whisper", "ctranslate2"), _CTRANSLATE2),
}

#: Files to systems' lists: the first matching reader is used; the one without a detector is the fallback.
READERS = Registry("reader of lists", "swsdist.readers", "--from", ReaderEntry)
READERS |= {
    "nist": ReaderEntry(f"{_RD}:read_nist", 1, f"{_RD}:is_nist_list"),
    "parquet": ReaderEntry(f"{_RD}:read_rows", 1, f"{_RD}:is_parquet"),
    "kaldi": ReaderEntry(f"{_RD}:read_kaldi", 1, "swsdist.evaluation.kaldi_results:looks_like_results"),
    "nist-table": ReaderEntry(f"{_RD}:read_nist_table", 1, f"{_RD}:is_nist_table"),
    "csv": ReaderEntry(f"{_RD}:read_rows", 1),
}

#: Lists to files; the first of an ending has it.
WRITERS = Registry("writer of lists", "swsdist.writers", "--format", WriterEntry)
WRITERS |= {
    "stdlist": WriterEntry(f"{_WR}:stdlist", 1, ".xml"),
    "kwslist": WriterEntry(f"{_WR}:kwslist", 1, ".xml"),
    "csv": WriterEntry(f"{_WR}:csv", 1, ".csv"),
    "parquet": WriterEntry(f"{_WR}:parquet", 1, ".parquet"),
    "kaldi": WriterEntry(f"{_WR}:kaldi_results", 1),
}

_FITTED: tuple[Dependency, ...] = ("own query", "other queries", "references")
_S = "swsdist.calibrate.steps"


def _by_term(target: str, says: str) -> StepEntry:
    """A step that decides each term by its sum of probabilities."""
    sums = ("posterior-sums",)
    return StepEntry(
        target, 1, "posterior", "any", sums, own_threshold=True, operating_point=True, says=f"{says}, of probabilities"
    )


#: Scores to other scores: see `swsdist.registry.entries`.
CALIBRATION = Registry("step of calibration", "swsdist.calibration", "calibrate.steps", StepEntry)
CALIBRATION |= {
    "q-norm": StepEntry(
        f"{_S}.norms:QNorm",
        1,
        statistics=("cost-sums",),
        first=True,
        says="comparable between queries by mean and deviation",
    ),
    "m-norm": StepEntry(
        f"{_S}.norms:MNorm", 1, statistics=("score-histogram",), first=True, says="the same by the mode"
    ),
    "speaker-norm": StepEntry(
        f"{_S}.norms:SpeakerNorm",
        1,
        statistics=("cost-sums", "speaker-cost-sums"),
        first=True,
        columns=("speaker",),
        says="by mean and deviation in each speaker's documents",
    ),
    "zt-norm": StepEntry(
        f"{_S}.norms:ZtNorm",
        1,
        statistics=("cost-sums",),
        first=True,
        columns=("doc_id", "channel", "start"),
        cohort=True,
        says="q-norm, and then by a cohort",
    ),
    "logistic": StepEntry(
        f"{_S}.logistic:LogisticStep",
        1,
        gives="posterior",
        fits=True,
        depends_on=_FITTED,
        says="probabilities",
    ),
    "fusion": StepEntry(
        f"{_S}.logistic:FusionStep",
        2,
        gives="llr",
        fits=True,
        own_threshold=True,
        operating_point=True,
        depends_on=_FITTED,
        columns=("parts",),
        says="of several systems' scores, in the chain fuse: its default where there are references",
    ),
    "power": StepEntry(f"{_S}.logistic:Power", 1, takes="posterior", gives="posterior", says="of probabilities"),
    "llr": StepEntry(
        f"{_S}.llr:Llr",
        2,
        gives="llr",
        fits=True,
        own_threshold=True,
        depends_on=_FITTED,
        columns=("start", "end"),
        says="log-likelihood ratios, with side information",
    ),
    "at-prior": StepEntry(
        f"{_S}.logistic:AtPrior",
        1,
        takes="llr",
        gives="posterior",
        own_threshold=True,
        says="posteriors of these",
    ),
    "kst": _by_term(f"{_S}.by_term:Kst", "keyword specific thresholds"),
    "sto": _by_term(f"{_S}.by_term:Sto", "a sum of one"),
}

#: Statistics of all candidates of a query, and of its examples: see `swsdist.calibrate.statistics`.
STATISTICS = Registry("statistic of candidates", "swsdist.statistics", "statistics of a step of calibration", Entry)
STATISTICS |= {
    "cost-sums": Entry("swsdist.calibrate.statistics:CostSums", 1),
    "speaker-cost-sums": Entry("swsdist.calibrate.statistics:SpeakerCostSums", 1),
    "score-histogram": Entry("swsdist.calibrate.statistics:ScoreHistogram", 1),
    "example-lengths": Entry("swsdist.calibrate.statistics:ExampleLengths", 1),
    "example-entropies": Entry("swsdist.calibrate.statistics:ExampleEntropies", 1),
    "example-speech": Entry("swsdist.calibrate.statistics:ExampleSpeech", 1),
    "posterior-sums": Entry("swsdist.calibrate.statistics:CandidatePosteriors", 1),
}


_M = "swsdist.score.measures"

#: An aligned list, to numbers: each entry stands below its measure.
MEASURES = Registry("measure", "swsdist.measures", "score", MeasureEntry)
MEASURES |= {
    "term-weighted": f"{_M}.twv:TERM_WEIGHTED",
    "optimum": f"{_M}.twv:OPTIMUM_AND_SUPREMUM",
    "pooled-maximum": f"{_M}.det:POOLED_MAXIMUM",
    "decisions": f"{_M}.twv:DECISIONS",
    "retrieval": f"{_M}.retrieval:RETRIEVAL_MEANS",
    "equal-errors": f"{_M}.retrieval:EQUAL_ERRORS",
    "figure-of-merit": f"{_M}.retrieval:FIGURE_OF_MERIT",
    "pair-areas": f"{_M}.retrieval:PAIR_AREAS",
    "cross-entropies": f"{_M}.cnxe:CROSS_ENTROPIES",
}


def quantities() -> dict[str, Quantity]:
    """The numbers of all registered measures by key, in their order.

    Raises:
        ConfigError: an added measure cannot be loaded, or two give a number of one key.
    """
    by_key: dict[str, Quantity] = {}
    for name in MEASURES:
        for quantity in MEASURES[name].gives:
            if by_key.setdefault(quantity.key, quantity) is not quantity:
                raise families.DUPLICATE_NAME.of(ConfigError)(
                    "two measures give {key}", "rename one", where=f"measure {name}", key=quantity.key
                )
    return by_key


_PROTOCOL = "swsdist.score.measures.protocol"

#: Operating points with their rules of counting.
PROTOCOLS = Registry("protocol", "swsdist.protocols", "score.protocol", Entry)
PROTOCOLS |= {
    name: Entry(f"{_PROTOCOL}:{name.upper().replace('-', '_')}", 1)
    for name in (
        *("stdeval", "nist-std06", "sws2011", "sws2012", "sws2013", "kwseval", "openkws13", "quesst"),
        *("sws2012-indian-dev-dev", "sws2012-indian-dev-eval"),
        *("sws2012-indian-eval-dev", "sws2012-indian-eval-eval"),
        *("sws2012-african-dev-dev", "sws2012-african-dev-eval"),
        *("sws2012-african-eval-dev", "sws2012-african-eval-eval"),
    )
}

#: Whose numbers a score of term discovery has.
DISCOVERY_MODES = Registry("mode", "swsdist.discovery_modes", "mode", DiscoveryModeEntry)
DISCOVERY_MODES |= {"seed": DiscoveryModeEntry("swsdist.discovery.seed:score", 1, partial=True)}

_DM = "swsdist.discovery.measures"

#: Classes of fragments to numbers, in mode seed.
DISCOVERY_MEASURES = Registry(
    "measure of term discovery", "swsdist.discovery_measures", "score-discovery", DiscoveryMeasureEntry
)
DISCOVERY_MEASURES |= {
    "ned": DiscoveryMeasureEntry(f"{_DM}:Ned", 1, ("ned",), ("classes", "pairs")),
    "coverage": DiscoveryMeasureEntry(f"{_DM}:Coverage", 1, ("coverage",), ("classes", "pairs")),
    "coverage_time": DiscoveryMeasureEntry(f"{_DM}:CoverageInTime", 1, ("coverage",), ("classes", "pairs")),
    "matching": DiscoveryMeasureEntry(f"{_DM}:Matching", 1, of=("classes", "pairs")),
    "matching_from_two": DiscoveryMeasureEntry(f"{_DM}:MatchingFromTwo", 1, of=("classes", "pairs")),
    "grouping": DiscoveryMeasureEntry(f"{_DM}:Grouping", 1),
    "type": DiscoveryMeasureEntry(f"{_DM}:Type", 1, of=("classes", "parse"), pairs=False, words=True),
    "token": DiscoveryMeasureEntry(f"{_DM}:Token", 1, of=("classes", "parse"), pairs=False, words=True),
    "boundary": DiscoveryMeasureEntry(f"{_DM}:Boundary", 1, of=("classes", "parse"), pairs=False, words=True),
    "boundary_one_wrong": DiscoveryMeasureEntry(
        f"{_DM}:BoundaryOneWrong", 1, of=("classes", "parse"), pairs=False, words=True
    ),
}
