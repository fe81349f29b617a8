"""Does the search on a GPU find the same bytes as the search on the CPU, on this machine, and how fast are search and encoder?

`python -m swsdist.testing.gpu` runs all cases, or those that are named, prints a line for each, and ends with code 1 if any
differs, 2 where there is no GPU. Without one, NUMBA_ENABLE_CUDASIM=1 runs them in numba's simulator, where what a thread does
is compiled for the CPU. Then it tells times: CPU seconds, and of a GPU seconds by the clock. Without one they are the CPU's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import soundfile
from numpy.typing import NDArray
from ruamel.yaml import YAML

from swsdist.config.search import Search
from swsdist.core.errors import UserError
from swsdist.core.text import suggestion
from swsdist.features.ssl.extractor import Ssl
from swsdist.kernels.distances.interface import Distance, Part, Side, create, weighted_sum
from swsdist.kernels.recurrences.interface import create as create_recurrence
from swsdist.methods.dtw.backends.cpu import int16
from swsdist.methods.dtw.backends.create import missing
from swsdist.methods.dtw.backends.cuda import Cuda
from swsdist.methods.dtw.backends.interface import Backend, Work
from swsdist.methods.dtw.search import Matches, run
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example
from swsdist.registry.registries import DISTANCES, RECURRENCES
from swsdist.testing.synthesis import make_corpus
from swsdist.testing.synthesis.encoder import make_encoder

T = TypeVar("T")


class Case(NamedTuple):
    """A search in random features.

    Attributes:
        queries, documents: frames of each.
        distances: names; several are a weighted sum, over the same columns.
        values: any; few: of -1, 0 and 1, so that costs tie and frames are zero; zero.
        window: of candidates.
        most: candidates kept per query and document.
        piece: frames that documents are cut at, or four times as much as queries make necessary if that is more.
        memory: bytes of the GPU's.
        dimension: of the features.
        recurrence, options: its name, and options that are not as by default.
        row_range: whether distances are mapped to the range of a query frame's.
        int32_frames: a document of more needs the wider state, where the recurrence has one.
        batches, parts: at least so many must come of it.
    """

    queries: Sequence[int]
    documents: Sequence[int]
    distances: tuple[str, ...] = ("cosine",)
    values: Literal["any", "few", "zero"] = "any"
    window: int = 3
    most: int = 2
    piece: int = 2000
    memory: int = 20_000_000
    dimension: int = 5
    recurrence: str = "bounded-slope"
    options: Mapping[str, object] = MappingProxyType({})
    row_range: bool = False
    int32_frames: int | None = None
    batches: int = 1
    parts: int = 1


_SOME = (1, 2, 15, 16, 17, 40), (1, 2, 3, 7, 64, 200, 55, 8, 9)
_MANY = (1500, 3, 1300, 2100, 900)
_STREAMS = ("cosine", "kl", "euclidean-squared")
#: Several batches and parts.
_CUT = Case((1, 3, 4, 6, 17, 7) * 6, _MANY, values="few", memory=3_000_000, batches=2, parts=3)

CASES = {
    "plain": Case(*_SOME),
    "ties": Case(*_SOME, values="few"),
    "zeros": Case(*_SOME, values="zero", window=1),
    "queries longer than documents": Case((30, 31, 33, 48), (1, 5, 14, 15, 16, 17, 30)),
    "cut documents, in several batches and parts": Case(
        (1, 3, 4, 6, 7) * 6, _MANY, most=9, piece=1, memory=1_450_000, batches=3, parts=5
    ),
    "many candidates in a window of one frame": Case((1, 2, 5), (300, 290), values="few", window=1, most=1000),
    "which of equals gives way": Case((1, 2, 3), (300, 290), values="few", window=2, most=7),
    "138 columns": Case((1, 20), (40, 50), dimension=138),
    "none kept": Case((3, 4), (20, 30), most=0),
    "one document": Case((5,), (33,)),
    "64-bit states": Case((400, 20), (900, 100)),
    "three streams": Case((1, 9, 20), (5, 50), _STREAMS),
}
CASES |= {f"distance {name}": Case((1, 9, 20), (5, 50), (name,)) for name in DISTANCES if name != "cosine"}
for _name in RECURRENCES:
    if _name != "bounded-slope":
        CASES |= {
            f"recurrence {_name}": Case(*_SOME, recurrence=_name),
            f"recurrence {_name}, ties, several batches and parts": _CUT._replace(most=9, piece=1, recurrence=_name),
            f"recurrence {_name}, 400 frames, three streams": Case(
                (400, 20), (900, 5, 100), _STREAMS, recurrence=_name
            ),
        }
CASES |= {
    "recurrence averages, wide sums": Case(*_SOME, recurrence="averages", int32_frames=50),
    "recurrence segmental, narrow band": Case(*_SOME, recurrence="segmental", options={"band": 1}),
    "row range, bounded-slope, ties, several batches and parts": _CUT._replace(row_range=True),
    "row range, asymmetric, 400 frames, three streams": Case(
        (400, 20), (900, 5, 100), _STREAMS, recurrence="asymmetric", row_range=True
    ),
    "row range, zeros": Case(*_SOME, values="zero", recurrence="asymmetric", row_range=True),
    "recurrence averages, a long document": Case((3,), (30_000, 5), recurrence="averages", memory=35_000_000),
}
CASES |= {f"row range, {name}": Case(*_SOME, ("cosine-exp",), recurrence=name, row_range=True) for name in RECURRENCES}


#: The configs of systems that come with swsdist.
SYSTEMS = Path(__file__).resolve().parents[2] / "configs/systems"


def searches() -> dict[str, Search]:
    """Section `search` of each system that searches in frames, by name, in alphabetical order."""
    read = {path.stem: YAML(typ="safe").load(path.read_text()) for path in sorted(SYSTEMS.glob("*.yaml"))}
    return {
        name: Search.model_validate(config.get("search", {}))
        for name, config in read.items()
        if config.get("chain", "search") == "search"
    }


def _of_systems() -> Iterator[tuple[str, Case]]:
    """A case for each recurrence with each set of distances, of the system that has the most streams."""
    every: dict[object, tuple[str, Case]] = {}
    for name, search in searches().items():
        distances = tuple(term.distance for term in search.terms())
        settings = search.recurrence, repr(search.recurrence_settings()), search.row_range
        key = search.method, *settings, frozenset(distances)
        if search.method == "dtw" and len(distances) > len(every[key][1].distances if key in every else ()):
            every[key] = (
                f"system {name}",
                Case(
                    *((1, 9, 20), (5, 50), distances),
                    recurrence=search.recurrence,
                    options=search.recurrence_options,
                    row_range=search.row_range,
                ),
            )
    yield from every.values()


CASES |= dict(_of_systems())


class Outcome(NamedTuple):
    """What came of a case.

    Attributes:
        good: whether the candidates are the same, to the byte, and it came in as many batches and parts as it must.
        text: of it.
    """

    good: bool
    text: str


def _columns(found: Matches) -> tuple[NDArray[np.int32] | NDArray[np.int64], ...]:
    """The rows, and not what is told about the search."""
    return found.query, found.document, found.end_frame, found.frames, found.cost


Document = tuple[int, list[NDArray[np.float32]]]


def compare(case: Case) -> Outcome:
    """Search on the CPU and on the GPU.

    Raises:
        UserError: there is no GPU.
    """
    work, documents = _made(case)
    gpu = Cuda(work)
    here, there = run(int16(work), documents, work), run(gpu, documents, work)
    account = gpu.account()
    same = all(item.tobytes() == other.tobytes() for item, other in zip(_columns(here), _columns(there), strict=True))
    enough = account.batches >= case.batches and account.parts >= case.parts and account.used <= account.budget
    return Outcome(
        same and enough,
        f"{'the same' if same else 'NOT the same'} {len(here.cost)} candidates, {account.batches} batches, "
        f"{account.parts} parts, {account.used / 1e6:.2f} of {account.budget / 1e6:.2f} MB",
    )


def _made(case: Case) -> tuple[Work, list[Document]]:
    rng = np.random.default_rng(0)
    distance, dimension = _distance(case), case.dimension

    def prepared(frames: int, side: Side) -> NDArray[np.float32]:
        shape = frames, dimension
        if case.values == "any":
            posteriors = _between_posteriors(case)
            values = rng.dirichlet(np.ones(dimension), frames) if posteriors else rng.normal(size=shape)
        else:
            values = np.zeros(shape) if case.values == "zero" else rng.integers(-1, 2, shape).astype(np.float64)
        return distance.prepare(values.astype(np.float32), np.zeros(dimension), np.ones(dimension), side).frames

    examples = [Example(f"q{k}", 1, prepared(frames, "query")) for k, frames in enumerate(case.queries)]
    documents = [(k, [prepared(frames, "document")]) for k, frames in enumerate(case.documents)]
    most = np.full(len(documents), case.most, np.int64)
    made = create_recurrence(case.recurrence, case.options)
    if case.int32_frames is not None:
        made = made._replace(int32_frames=case.int32_frames)
    of_case = distance, case.window, 16, case.piece, case.recurrence
    settings = Settings(*of_case, row_range=case.row_range, device_memory=case.memory)
    return Work(examples, made, most, settings), documents


def _between_posteriors(case: Case) -> bool:
    return any(DISTANCES[name].posteriors for name in case.distances)


def _distance(case: Case) -> Distance:
    if len(case.distances) == 1:
        return create(case.distances[0], case.dimension)
    parts = [Part(create(name, case.dimension), 0, case.dimension, k + 1) for k, name in enumerate(case.distances)]
    return weighted_sum(parts, case.dimension)


#: An hour of frames of 20 ms, as wide as `best-encoder.yaml` has them.
TIMED = Case((40,) * 20, (300,) * 600, ("cosine-squared",), dimension=200, memory=4_000_000_000)

#: Queries on a GPU for one on a CPU, so that it has enough to do.
_MORE = 50

#: The encoder that is timed; where it is missing, random weights of its shape.
MODEL = SYSTEMS.parents[2] / "shared/models/whisper-base/encoder"
_RATE = 16000


def time_encoder() -> Iterator[str]:
    """The fourth layer of Whisper base for speech in sentences, by device and precision."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = MODEL
        if not folder.is_dir():
            folder = Path(scratch) / "model"
            shape: dict[str, Any] = {"layers": 6, "width": 512, "encoder_attention_heads": 8, "encoder_ffn_dim": 2048}
            try:
                make_encoder(str(folder), "whisper", **shape)
            except ImportError as error:
                yield f"not timed: there is no {MODEL}, and no {error.name} to make a random one"
                return
        make_corpus(Path(scratch) / "corpus", documents=12, queries=1)
        paths = sorted((Path(scratch) / "corpus").rglob("*.flac"))
        sounds = [soundfile.read(path, dtype="float32")[0] for path in paths]
        hours = sum(map(len, sounds)) / _RATE / 3600
        wanted: NDArray[np.float32] | None = None
        for device, dtype in (("cpu", "float32"), ("cuda", "float32"), ("cuda", "float16")):
            name = f"{device}, {dtype}"
            try:
                extractor = Ssl.model_validate({"model": str(folder), "layer": 4, "device": device, "dtype": dtype})
                extractor.extract(sounds[0])
            except UserError as error:
                yield f"{name}: not timed: {error.message}"
                continue
            frames, cpu, wall = _timed(partial(_frames, extractor, sounds))
            text = f"{name}: {wall / hours:.0f} s, {cpu / hours:.0f} CPU s for an hour of speech"
            if wanted is None:
                wanted = frames
            else:
                apart = np.abs(frames - wanted).max() / np.abs(wanted).max()
                text += f"; frames differ from the CPU's by at most {apart:.0e} of the largest"
            yield text


def _frames(extractor: Ssl, sounds: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.concatenate([extractor.extract(sound) for sound in sounds])


def time_search() -> Iterator[str]:
    """The search of an hour in 200 columns, by backend."""
    yield _speed("cpu", int16, TIMED)
    if error := missing():
        yield f"cuda: not timed: {error.message}"
        return
    from swsdist.kernels.cuda.launch import SIMULATED

    yield (
        "cuda: not timed: numba's simulator"
        if SIMULATED
        else _speed("cuda", Cuda, TIMED._replace(queries=[*TIMED.queries] * _MORE))
    )


def _speed(name: str, backend: Callable[[Work], Backend], case: Case) -> str:
    work, documents = _made(case)
    run(backend(work), documents[:1], work)  # compiles it
    _, cpu, wall = _timed(lambda: run(backend(work), documents, work))
    cells = sum(case.queries) * sum(case.documents) / 1e6
    return f"{name}: {cells / wall:.0f} Mcell/s, {cells / cpu:.0f} Mcell/CPU s"


def _timed(work: Callable[[], T]) -> tuple[T, float, float]:
    """What it gives, its CPU seconds, and its seconds by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


TIMES: dict[str, Callable[[], Iterator[str]]] = {
    "times of the encoder, layer 4": time_encoder,
    "times of the search, 200 columns": time_search,
}


def main(arguments: Sequence[str]) -> int:
    """Run cases and tell times, all by default.

    Returns:
        The exit code: 1 where something differs, 2 where there is no GPU to compare with.
    """
    parser = argparse.ArgumentParser(
        prog="python -m swsdist.testing.gpu",
        description="Does the search on this GPU find the bytes of the CPU, and how fast are search and encoder?",
        epilog="\n".join(["cases:", *(f"  {name}" for name in (*CASES, *TIMES))]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a case, of those below; all by default")
    names = parser.parse_args(arguments).cases
    for name in names:
        if name not in CASES and name not in TIMES:
            known = [*CASES, *TIMES]
            parser.error(
                f"there is no case {name!r}{suggestion(name, known)} (choose from {', '.join(map(repr, known))})"
            )
    bad = none_here = 0
    for name in names or (*CASES, *TIMES):
        if name in TIMES:
            for line in TIMES[name]():
                print(f"{name}: {line}", flush=True)
        elif not none_here:
            try:
                outcome = compare(CASES[name])
            except UserError as error:
                print(error, file=sys.stderr)
                none_here = error.exit_code
                continue
            print(f"{name}: {outcome.text}{'' if outcome.good else '  <-- WRONG'}", flush=True)
            bad += not outcome.good
    return none_here or min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
