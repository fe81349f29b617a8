"""Checks extractors of other packages.

    from swsdist.testing.conformance import check_extractor

    def test_mine():
        check_extractor(Mine(some_option=3))

It checks the requirements of store and search (`swsdist.features.interface.Extractor`): shapes, types and finiteness;
the same samples give the same bytes, for any batch and number of threads; a frame only depends on the samples under it
and under `context` frames to either side, so long recordings can be computed in blocks, or, of a whole-utterance
extractor, on its chunk; posteriors are probabilities; options describe themselves and can be made again from their
description, and their files are declared. It needs no test framework: a failure is an AssertionError with its cause.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import ValidationError

from swsdist.core.arrays import Ints, Singles
from swsdist.core.errors import ConfigError
from swsdist.core.needs import Needs
from swsdist.features.blocks import BLOCK_FRAMES, in_blocks
from swsdist.features.extractors import create, identity
from swsdist.features.fitting.files import read_totals, summed, write_totals
from swsdist.features.fitting.interface import Document, Fitted, Supervision, Totals
from swsdist.features.interface import (
    KINDS,
    Batched,
    Equipped,
    Extractor,
    Framed,
    Kind,
    Precomputed,
    WholeUtterance,
    columns_of,
    dtype_of,
    files_of,
    frame_count,
    kind_of,
    needs_of,
    tracks_of,
    use,
)
from swsdist.features.transforms.interface import Shape, Transform, Transformed, context_of
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES, TRANSFORMS
from swsdist.testing import scenes

Samples = Singles

#: Integer attributes and their least values.
_LEAST = {"version": 1, "sample_rate": 1, "frame_length": 1, "hop": 1, "context": 0, "dimension": 1}

#: How far the sum of a frame's probabilities may be from 1, as for the distances between posteriors.
POSTERIOR_TOLERANCE = 0.01

#: Values may differ by this part of a dimension's standard deviation where a recording is cut: matrix products round
#: differently in other shapes, and no search notices.
TOLERANCE = 1e-3


def check_extractor(extractor: Extractor) -> None:
    """Check one extractor, with the options that it has.

    Takes about as long as computing three minutes of audio.

    Raises:
        AssertionError: a check fails; the message names the check and the input.
    """
    _check_attributes(extractor)
    _check_optional_attributes(extractor)
    _check_description(extractor)
    _check_files(extractor)
    for kind, samples in _signals(extractor):
        _check_frames(extractor, kind, samples)
    _check_short(extractor)
    _check_batches(extractor)
    if extractor.context is None:
        if not _looks_at_all(extractor):
            _check_chunks(extractor)
    else:
        _check_locality(extractor, extractor.context)
        _check_blocks(extractor)
    _check_equipment(extractor)
    _check_made_again(extractor)


def check_precomputed(reader: Precomputed, queries: bool = False) -> None:
    """Check precomputed frames (`swsdist.features.interface.Precomputed`) with their options; all are read.

    Args:
        reader: their reader.
        queries: check those of examples of queries.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _check_attributes(
        reader, ("items", "read", "describe"), ("version", "sample_rate", "frame_length", "hop", "dimension")
    )
    _require(kind_of(reader) in KINDS, reader, f"kind is {kind_of(reader)!r}, not one of {', '.join(KINDS)}")
    _check_description(reader)
    name, options = reader.name, reader.describe()
    again = create(name, options, dtype=dtype_of(reader)) if name in FEATURES else type(reader)(**options)
    _require(
        isinstance(again, Precomputed) and again.describe() == options, reader, "it cannot be made of its description"
    )
    _require(identity(reader) == identity(again), reader, "made again, it has another identity")
    items = reader.items(queries, {})
    _require(bool(items), reader, "there are no frames")
    for key, item in items.items():
        blocks = list(reader.read(item, key, {}))
        shapes = {(block.dtype.name, block.shape[1:]) for block in blocks}
        _require(shapes == {("float32", (reader.dimension,))}, reader, f"blocks of {key!r} are {shapes}")
        _require(all(np.isfinite(block).all() for block in blocks), reader, f"a frame of {key!r} is not finite")
        _require(
            max(map(len, blocks)) <= BLOCK_FRAMES, reader, f"a block of {key!r} has more than {BLOCK_FRAMES} frames"
        )
        second = np.concatenate(list(reader.read(item, key, {}))).tobytes()
        _require(np.concatenate(blocks).tobytes() == second, reader, f"read again, {key!r} is other frames")


def _require(holds: bool, extractor: Framed, complaint: str) -> None:
    # Not an assert: the suite must also work under `python -O`.
    if not holds:
        raise AssertionError(f"extractor {getattr(extractor, 'name', type(extractor).__name__)!r}: {complaint}")


# -- description -----------------------------------------------------------------------------------------------------


def _check_attributes(
    extractor: Framed, methods: Sequence[str] = ("extract", "describe"), numbers: Sequence[str] = tuple(_LEAST)
) -> None:
    least = {name: _LEAST[name] for name in numbers}
    for name in ("name", *least, *methods):
        _require(hasattr(extractor, name), extractor, f"it has no attribute {name}")
    _require(isinstance(extractor.name, str) and bool(extractor.name), extractor, "name is not a word")
    for name, lowest in least.items():
        value = getattr(extractor, name)
        if name == "context" and value is None:
            continue
        is_int = isinstance(value, int) and not isinstance(value, bool)
        _require(is_int and value >= lowest, extractor, f"{name} is {value!r}, not an integer of at least {lowest}")


def _check_optional_attributes(extractor: Extractor) -> None:
    kind, columns, needs = kind_of(extractor), columns_of(extractor), needs_of(extractor)
    _require(kind in KINDS, extractor, f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    named = len(set(columns)) == extractor.dimension and all(isinstance(name, str) and name for name in columns)
    _require(named, extractor, f"columns are not {extractor.dimension} different words")
    tracks = tracks_of(extractor)
    fitting = (
        bool(tracks) and tracks[-1].stop == extractor.dimension and all(track.first < track.stop for track in tracks)
    )
    _require(
        fitting and len({track.name for track in tracks}) == len(tracks),
        extractor,
        f"tracks are not pairs of a name of its own and a dimension, {extractor.dimension} together",
    )
    _require(
        bool(needs) and all(isinstance(item, Needs) for item in needs),
        extractor,
        "needs is not one or more of swsdist.core.needs.Needs, the best first",
    )
    if extractor.context is not None or _looks_at_all(extractor):
        return
    if not isinstance(extractor, WholeUtterance):
        _require(False, extractor, "context is None, but it lacks whole_frames, chunk_frames or overlap_frames")
        return
    full, chunk, overlap = extractor.whole_frames, extractor.chunk_frames, extractor.overlap_frames
    _require(
        full >= chunk > 2 * overlap >= 0,
        extractor,
        f"a chunk of {chunk} frames with an overlap of {overlap} in recordings of more than {full}: "
        "the overlap must be less than half a chunk, and a chunk no longer than what is computed at once",
    )


def _check_files(extractor: Extractor) -> None:
    """The files of its options are declared, so their content enters the fingerprint."""
    declared = {str(path) for path in files_of(extractor)}
    for name, value in extractor.describe().items():
        is_file = isinstance(value, str) and Path(value).is_absolute() and Path(value).is_file()
        _require(
            not is_file or value in declared,
            extractor,
            f"the option {name} names a file that files() does not: its content would not be in the fingerprint",
        )
    try:
        identity(extractor)
    except ConfigError as error:
        raise AssertionError(f"extractor {extractor.name!r}: files() names what cannot be read: {error}") from None


def _check_description(extractor: Framed) -> None:
    options = extractor.describe()
    _require(
        isinstance(options, dict), extractor, f"describe() gives a {type(options).__name__}, not a dict of options"
    )
    try:
        text = json.dumps(options, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"extractor {extractor.name!r}: describe() is not plain JSON ({error})") from None
    _require(json.loads(text) == options, extractor, "describe() is not the same after writing and reading it as JSON")
    _require(extractor.describe() == options, extractor, "describe() says something else each time")


def _check_made_again(extractor: Extractor) -> None:
    """A worker makes the extractor from its name and options: that one must give the same frames."""
    options = extractor.describe()
    try:
        other = _make(extractor, options)
    except (ConfigError, ValidationError, TypeError) as error:
        raise AssertionError(
            f"extractor {extractor.name!r}: its own description is refused as options: {error}"
        ) from None
    same = type(other) is type(extractor)
    _require(same, extractor, f"the name is taken: {type(other).__name__} is installed under it")
    _require(other.describe() == options, extractor, "made again from its description, it describes itself otherwise")
    for name in ("version", "sample_rate", "frame_length", "hop", "context", "dimension"):
        before, after = getattr(extractor, name), getattr(other, name)
        _require(before == after, extractor, f"made again from its description, {name} is {after}, not {before}")
    kind, samples = next(_signals(extractor))
    equal = other.extract(samples).tobytes() == extractor.extract(samples).tobytes()
    _require(equal, extractor, f"made again from its description, it gives other frames on {kind}")
    try:
        _make(extractor, {**options, "no_such_option": 1})
    except (ConfigError, ValidationError):
        return
    except TypeError as error:
        raise AssertionError(
            f"extractor {extractor.name!r}: an unknown option raises {error!r}; let pydantic check the options"
        ) from None
    _require(False, extractor, "an unknown option is accepted: a misspelt one would go unnoticed (extra='forbid')")


def _make(extractor: Extractor, options: dict[str, object]) -> Extractor:
    """As `create` does it; an extractor that is not installed yet by its class."""
    if extractor.name in FEATURES:
        behind = extractor.transforms if isinstance(extractor, Transformed) else ()
        transforms = [(item.name, item.describe()) for item in behind]
        created = create(extractor.name, options, transforms=transforms, dtype=dtype_of(extractor))
        again = create(extractor.name, options, transforms=transforms, dtype=dtype_of(extractor))
        _require(again is created, extractor, "it is made more than once a process")
        assert isinstance(created, Extractor)
        return created
    return type(extractor)(**options)


# -- computation -----------------------------------------------------------------------------------------------------


def _signals(extractor: Extractor) -> Iterator[tuple[str, Samples]]:
    """Kinds of sound, each of some hundred frames."""
    samples = extractor.frame_length + 200 * extractor.hop + extractor.hop // 2
    rng = np.random.default_rng(20)
    time = np.arange(samples) / extractor.sample_rate
    yield "noise", rng.normal(scale=0.1, size=samples).astype(np.float32)
    yield "digital silence", np.zeros(samples, np.float32)
    yield "a sine of full scale", np.sin(2 * np.pi * extractor.sample_rate / 37 * time).astype(np.float32)
    yield "a single click", np.eye(1, samples, samples // 2, np.float32)[0]
    yield "a constant", np.full(samples, 0.5, np.float32)
    yield "noise at 16 bits' last bit", (rng.integers(-1, 2, samples) / 32768).astype(np.float32)


def _check_frames(extractor: Extractor, kind: str, samples: Samples) -> None:
    samples.setflags(write=False)  # a worker's arrays may be read-only
    try:
        frames = extractor.extract(samples)
    except Exception as error:
        raise AssertionError(
            f"extractor {extractor.name!r}: extract fails on {kind} (read-only samples): {error!r}"
        ) from error
    _check_shape(extractor, kind, len(samples), frames)
    _require(bool(np.isfinite(frames).all()), extractor, f"a frame is not finite on {kind}")
    if kind_of(extractor) == "posteriors":
        sums = frames.sum(axis=1, dtype=np.float64)
        right = bool((frames >= 0).all()) and bool((np.abs(sums - 1) <= POSTERIOR_TOLERANCE).all())
        _require(right, extractor, f"kind is posteriors, but a frame is not: negative, or no sum of 1, on {kind}")
    again = extractor.extract(samples)
    _require(
        again.tobytes() == frames.tobytes(), extractor, f"the same samples give other bytes the second time, on {kind}"
    )
    _require(
        not np.shares_memory(again, frames),
        extractor,
        "two calls give the same memory: the second overwrites the first",
    )


def _check_shape(extractor: Extractor, kind: str, samples: int, frames: object) -> None:
    if not isinstance(frames, np.ndarray):
        _require(False, extractor, f"extract gives a {type(frames).__name__}, not a NumPy array")
        return
    _require(frames.dtype == np.float32, extractor, f"frames are {frames.dtype}, not float32")
    expected = (frame_count(extractor, samples), extractor.dimension)
    _require(
        frames.shape == expected,
        extractor,
        f"{samples} samples of {kind} give frames of shape {frames.shape}, not {expected}: "
        f"frame t covers samples [t * hop, t * hop + frame_length), and all frames that lie whole inside are given",
    )


def _check_short(extractor: Extractor) -> None:
    """Lengths around the first few frames; input shorter than a frame gives none, without an error."""
    length, hop = extractor.frame_length, extractor.hop
    rng = np.random.default_rng(21)
    for samples in sorted({0, 1, length - 1, length, length + 1, length + hop - 1, length + hop, length + 3 * hop + 1}):
        sound = rng.normal(scale=0.1, size=samples).astype(np.float32)
        try:
            frames = extractor.extract(sound)
        except Exception as error:
            raise AssertionError(
                f"extractor {extractor.name!r}: extract fails on {samples} samples: {error!r}"
            ) from error
        _check_shape(extractor, "noise", samples, frames)
        _require(bool(np.isfinite(frames).all()), extractor, f"a frame is not finite on {samples} samples of noise")


def _check_locality(extractor: Extractor, context: int) -> None:
    """Inside of a cut, from `context` frames on, frames are those of the whole."""
    hop = extractor.hop
    count = 6 * context + 60
    samples = _loud_and_soft(extractor, count)
    full = extractor.extract(samples)
    for first, last in ((1, count), (context + 7, count - context - 5), (2 * context + 30, 4 * context + 45)):
        cut = extractor.extract(samples[first * hop : (last - 1) * hop + extractor.frame_length])
        inside = slice(context, last - first - context)
        _require_close(
            extractor,
            cut[inside],
            full[first:last][inside],
            full,
            f"a frame depends on more than the {context} frames of context to either side (or on the whole recording): "
            f"cut out from frame {first} to {last}, frames inside differ",
        )


def _check_blocks(extractor: Extractor) -> None:
    """Computed in blocks as the store does it, frames are those of the whole, for any pieces of audio."""
    count = BLOCK_FRAMES + 50
    samples = _loud_and_soft(extractor, count)
    blocks = np.concatenate(list(in_blocks(extractor, [samples])))
    piece = max(1, len(samples) // 7)
    pieces = [samples[k : k + piece] for k in range(0, len(samples), piece)]
    others = np.concatenate(list(in_blocks(extractor, pieces)))
    equal = blocks.tobytes() == others.tobytes()
    _require(equal, extractor, "in blocks, other pieces of audio give other bytes: it remembers earlier calls")
    full = extractor.extract(samples)
    _require_close(
        extractor, blocks, full, full, f"{count} frames in blocks of {BLOCK_FRAMES} are not those of the whole"
    )


def _looks_at_all(extractor: Extractor) -> bool:
    """Whether a transform needs the whole recording, which is cut for it behind the extractor."""
    return isinstance(extractor, Transformed) and extractor.reach is None


def _check_chunks(extractor: Extractor) -> None:
    """A recording is computed at once, or in chunks that are computed by themselves, for any pieces of audio."""
    assert isinstance(extractor, WholeUtterance)
    full, chunk, overlap = extractor.whole_frames, extractor.chunk_frames, extractor.overlap_frames
    samples = _loud_and_soft(extractor, full)
    blocks = np.concatenate(list(in_blocks(extractor, [samples])))
    once = extractor.extract(samples)
    _require(blocks.tobytes() == once.tobytes(), extractor, f"{full} frames are not those of one call")
    samples = _loud_and_soft(extractor, full + chunk + 7)
    blocks = np.concatenate(list(in_blocks(extractor, [samples])))
    _check_shape(extractor, "noise, in chunks,", len(samples), blocks)
    piece = max(1, len(samples) // 7)
    others = np.concatenate(list(in_blocks(extractor, (samples[k : k + piece] for k in range(0, len(samples), piece)))))
    equal = blocks.tobytes() == others.tobytes()
    _require(equal, extractor, "in chunks, other pieces of audio give other bytes: it remembers earlier calls")
    first = extractor.extract(samples[: (chunk - 1) * extractor.hop + extractor.frame_length])
    kept = chunk - (overlap - overlap // 2)
    kept -= (isinstance(extractor, Transformed) and extractor.reach) or 0  # transforms see beyond a chunk
    _require(
        blocks[:kept].tobytes() == first[:kept].tobytes(), extractor, "the first chunk is not what it is by itself"
    )


def _check_batches(extractor: Extractor) -> None:
    """Batches do not change any byte."""
    if not isinstance(extractor, Batched):
        return
    most = extractor.batch
    _require(isinstance(most, int) and most >= 1, extractor, f"batch is {most!r}, not an integer of at least 1")
    rng = np.random.default_rng(23)
    lengths = [extractor.frame_length + k * extractor.hop for k in (90, 3, 41, 0, 90)]
    sounds = [rng.normal(scale=0.1, size=length).astype(np.float32) for length in lengths]
    alone = [extractor.extract(sound).tobytes() for sound in sounds]
    for chosen in ([0], [0, 1], [2, 0, 4], [4, 3, 2, 1, 0], [0, 0, 0]):
        for first in range(0, len(chosen), most):
            part = chosen[first : first + most]
            created = extractor.extract_batch([sounds[k] for k in part])
            _require(
                len(created) == len(part), extractor, f"a batch of {len(part)} gives {len(created)} arrays of frames"
            )
            for k, frames in zip(part, created, strict=True):
                _check_shape(extractor, "noise, in a batch,", lengths[k], frames)
                equal = frames.tobytes() == alone[k]
                _require(equal, extractor, f"in a batch of {len(part)} the frames have other bytes than alone")


def _check_equipment(extractor: Extractor) -> None:
    """The number of threads does not change any byte."""
    if not isinstance(extractor, Equipped):
        return
    kind, samples = next(_signals(extractor))
    actual = set()
    granted = [item for item in needs_of(extractor) if item.gpus == 0]
    for entry in [*granted, Needs(cpus=1), Needs(cpus=2)]:
        use(extractor, entry)
        actual.add(extractor.extract(samples).tobytes())
    _require(len(actual) == 1, extractor, f"with more threads it gives other bytes, on {kind}")


def _loud_and_soft(extractor: Extractor, frames: int) -> Samples:
    """Noise of varying loudness, to detect dependence on the whole recording."""
    samples = extractor.frame_length + (frames - 1) * extractor.hop
    noise = np.random.default_rng(22).normal(size=samples)
    return (noise * np.linspace(0.01, 0.3, samples)).astype(np.float32)


def _require_close(extractor: Extractor, actual: Samples, expected: Samples, full: Samples, complaint: str) -> None:
    scale = np.maximum(full.std(axis=0, dtype=np.float64), 1e-6)
    worst = float((np.abs(actual.astype(np.float64) - expected) / scale).max(initial=0.0))
    _require(worst <= TOLERANCE, extractor, f"{complaint} by up to {worst:.3g} standard deviations")


#: How far the sum of a frame's probabilities may be from 1, as the distances between posteriors have it.
_TOLERANCE = 0.01


def check_transform(
    name: str, options: dict[str, object] | None = None, columns: int = 6, kind: Kind = "features"
) -> None:
    """Check a registered transform.

    Args:
        name: it is registered under.
        options: of the transform.
        columns, kind: of the frames that it is given; of `posteriors` they are.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    options = options or {}
    transform: Transform = TRANSFORMS[name].load()(**options)

    def require(holds: bool, complaint: str) -> None:
        assert holds, f"transform {name}: {complaint}"

    require(TRANSFORMS[name].version >= 1, f"its version is {TRANSFORMS[name].version}, the first is 1")
    require(transform.name == name, f"it calls itself {transform.name}")
    require(
        transform.version == TRANSFORMS[name].version, f"its version is {transform.version}, its entry's is another"
    )
    described = transform.describe()
    require(json.loads(json.dumps(described)) == described, "its options are not plain JSON")
    require(TRANSFORMS[name].load()(**described).describe() == described, "it cannot be made of its description")
    for path in files_of(transform):
        require(path.is_file(), f"its file {path} is not there")

    input_shape = Shape(tuple(f"c{k}" for k in range(columns)), kind)
    shape = transform.becomes(input_shape)
    require(transform.becomes(input_shape) == shape, "what frames become is not the same the second time")
    require(shape.kind in KINDS, f"frames become {shape.kind!r}, not one of {', '.join(KINDS)}")
    require(len(set(shape.columns)) == len(shape.columns) > 0, f"columns are called {shape.columns}")

    values = scenes.posteriors if kind == "posteriors" else scenes.features
    frames = values(3, 200, columns).astype(np.float32)
    kept = frames.tobytes()
    full = transform.apply(frames)
    require(frames.tobytes() == kept, "it changes what it is given")
    require(isinstance(full, np.ndarray) and full.dtype == np.float32, "it does not make float32")
    require(full.shape == (200, len(shape.columns)), f"of 200 frames it makes {full.shape}")
    require(bool(np.isfinite(full).all()), "not all that it makes is finite")
    require(transform.apply(frames).tobytes() == full.tobytes(), "it makes something else the second time")
    require(transform.apply(frames[:0]).shape == (0, len(shape.columns)), "of no frames it does not make none")
    context = context_of(transform)
    require(
        context is None or (isinstance(context, int) and context >= 0),
        f"its context is {context!r}, not 0 or more frames",
    )
    if context is not None:
        long = values(4, 3 * context + 200, columns).astype(np.float32)
        all_of_it = transform.apply(long)
        for first, last in ((0, 1), (7, 8), (3, 20), (0, 131), (131, 200), (context + 9, 2 * context + 31)):
            begin, end = max(0, first - context), min(last + context, len(long))
            alone = transform.apply(long[begin:end])[first - begin : last - begin]
            around = f" with {context} around them" if context else " by themselves"
            require(_same(alone, all_of_it[first:last]), f"frames {first} to {last - 1}{around} become others")
    if context == 0:
        order = np.random.default_rng(1).permutation(200)
        require(_same(transform.apply(frames[order]), full[order]), "a frame depends on its neighbours")
    if shape.kind == "posteriors":
        wrong = np.abs(full.sum(axis=1, dtype=np.float64) - 1).max() > _TOLERANCE or full.min() < 0
        require(not wrong, "what it calls posteriors does not sum to 1")
    try:
        transform.becomes(Shape(input_shape.columns[:1], kind))
    except ConfigError as error:
        require(bool(error.remedy), "what it says of frames that it does not take has no remedy")


def check_fitted(name: str, options: dict[str, object] | None = None, columns: int = 6) -> None:
    """Check a registered transform that is fitted: any cut gives the same model, and with it the transform is right.

    Args:
        name: it is registered under.
        options: it is made of, without a model.
        columns: of the frames that it is given.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    transform = TRANSFORMS[name].load()(**(options or {}))

    def require(holds: bool, complaint: str) -> None:
        assert holds, f"transform {name}: {complaint}"

    require(isinstance(transform, Fitted), "it lacks hours, model, rounds, matters or with_model")
    require(transform.model is None, "it is fitted already")
    matters = transform.matters()
    require(json.loads(json.dumps(matters)) == matters, "what its model depends on is not plain JSON")
    require("model" not in matters and "hours" in matters, "its model depends on hours, and on no model")
    documents = [
        Document([scenes.features(k, 150 + 40 * k, columns).astype(np.float32)], f"s{k % 2}", _labels(k, 150 + 40 * k))
        for k in range(4)
    ]
    rounds = transform.rounds(("a", "b", "c", "d")) if isinstance(transform, Supervision) else transform.rounds()
    model_before, done, number = None, False, 0
    while not done:
        several = [rounds.totals(model_before, document) for document in documents]
        for totals in several:
            exact = all(array.dtype in (np.int64, object) for array in totals.values())
            require(exact, f"what a document adds in round {number + 1} is not whole numbers")
        model, done = rounds.go_on(model_before, summed(several))
        for parts in ([several[::-1]], [several[:1], several[1:]], [several[2:], several[:2]]):
            again, _ = rounds.go_on(model_before, summed(map(_through_a_file, map(summed, parts))))
            require(again.fingerprint == model.fingerprint, f"round {number + 1} depends on how documents are cut")
        model_before, number = model, number + 1
        require(number < _MOST_ROUNDS, f"after {number} rounds there is no model")
    assert model_before is not None
    with TemporaryDirectory() as place:
        model_before.save(Folder(place), "model.npz")
        check_transform(name, transform.with_model(f"{place}/model.npz"), columns)


#: Maximum number of rounds of a fit.
_MOST_ROUNDS = 1000


def _labels(seed: int, frames: int) -> Ints:
    return scenes.table(seed + 100, frames, 1, 5)[:, 0] - 1


def _through_a_file(totals: Totals) -> Totals:
    file = BytesIO()
    write_totals(file, totals)
    file.seek(0)
    return read_totals(file)


def _same(ndarray: Singles, other: Singles) -> bool:
    return np.ascontiguousarray(ndarray).tobytes() == np.ascontiguousarray(other).tobytes()
