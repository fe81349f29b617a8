"""Checks transforms: the same frames give the same bytes, however they are cut; columns and kind are as declared."""

from __future__ import annotations

import json
from io import BytesIO
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from swsdist.core.errors import ConfigError
from swsdist.features.fitting.files import read_totals, summed, write_totals
from swsdist.features.fitting.interface import Document, Fitted, Supervision, Totals
from swsdist.features.interface import KINDS, Kind, files_of
from swsdist.features.transforms.interface import Shape, Transform, context_of
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import TRANSFORMS
from swsdist.testing import scenes

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


def _labels(seed: int, frames: int) -> NDArray[np.int64]:
    return scenes.table(seed + 100, frames, 1, 5)[:, 0] - 1


def _through_a_file(totals: Totals) -> Totals:
    file = BytesIO()
    write_totals(file, totals)
    file.seek(0)
    return read_totals(file)


def _same(ndarray: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    return np.ascontiguousarray(ndarray).tobytes() == np.ascontiguousarray(other).tobytes()
