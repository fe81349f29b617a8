"""A registered thing's version is raised when its bytes change: held by constants, a version and a digest each.

The input is of integers alone (`swsdist.testing.scenes`), and what is held are integers or files, so the constants are the same
on every machine. Options are those by default.

When this test fails and you meant to change the numbers, raise the version in swsdist/registry/registries.py, so that what was
made with the thing is made again, and put what the message prints into GOLDEN, as for what is new; else you have found a bug.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.config.search import Search
from swsdist.features.fitting.interface import Model
from swsdist.features.fitting.mixture import mixture_model
from swsdist.features.fitting.moments import Moments
from swsdist.features.transforms.interface import Shape
from swsdist.features.transforms.project import projection
from swsdist.features.transforms.projections import Pca
from swsdist.io.filesystem import Folder
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.kernels.products import local_distances
from swsdist.lattices.collection import read_file
from swsdist.lattices.lattice import Lattice, Origin
from swsdist.lattices.packed import Packed
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.first_pass.interface import Budget
from swsdist.methods.first_pass.interface import create as create_first_pass
from swsdist.methods.first_pass.search import run
from swsdist.methods.lattice.places import QUERY_LATTICES, query_row
from swsdist.methods.method import create
from swsdist.methods.windows.search import Limits
from swsdist.methods.windows.search import search as search_windows
from swsdist.registry import registries
from swsdist.registry.registries import DISTANCES, TRANSFORMS
from swsdist.registry.registry import Registry
from swsdist.testing import scenes
from swsdist.testing.conformance import export as exports
from tests.support.format_samples import SAMPLES
from tests.support.lattice_stores import chain, store_of
from tests.support.lattices import places_of

GOLDEN: dict[str, dict[str, tuple[int, str]]] = {
    "distance": {
        "cosine": (1, "f4601e423acf357457218cf1893649c55185f7736d3c2f98385ad20eb9cf9a3e"),
        "cosine-squared": (1, "f1b62c09568bbfa01fc8b9fe28f2c1ad034014982eab870f23b7e1c858d49b4c"),
        "cosine-exp": (1, "6ee5bd434360f52a06f100defadcbf39e9ac9a680d3f594fd0431dab06884bac"),
        "cosine-neg-log": (1, "a1153deaf8533c3ac843f61c75353e0cc472acb19581cb78f502a152c3b77ace"),
        "bhattacharyya": (1, "60f0f7cb78ab61cffc8c6c39a17751cd12390a07510fd15e41fa858fdcd00b0f"),
        "log-posterior-cosine": (1, "52302f3083cb4ef1dc44c097d13a9041d7cec9e306e420fc2646091cf19a1731"),
        "log-posterior-cosine-squared": (1, "057dcd0f8a6f63f8e87217a730fb7ed8dc1f8f804a5b585f80f9762bbeaec741"),
        "kl": (1, "2400c6f802e350def0386acd46fef2c183b5aae98c226a3d8f267afa4ca27b70"),
        "kl-symmetric": (1, "646821a574b0c03e6794434484f5697f83e04f5b0b9cf7f41e889b4da179cd1f"),
        "inner-product": (1, "177e455ac20bafd8d9fe126130b2852ba3d386850906b0b4eb546d8ea51baa14"),
        "euclidean": (1, "8f6148f32a63a063b072a6f6ef772e1ebd80bdc2f4b18cbacd6cab4b0f6515be"),
        "euclidean-squared": (1, "4c486036d29c0b8d03e1dc70a0f4793bd0077a1ea1315bda2628961a8c2e3db1"),
    },
    "recurrence": {
        "bounded-slope": (1, "46fffd959d86e5b15a964c8cdfe5f52102c1a7d5472f7bff3bb7c28f9f09d18c"),
        "asymmetric": (1, "4a8e79b29ea1e5327cf23d71a63a2962f117dc21cd40334aa6e7faad90a3063d"),
        "averages": (1, "13f9a352952d64909a4481c6bc55036b2a9601ca0211cb27bff39cc0ac7df9ee"),
        "non-segmental": (1, "be6eb9ae8a988c431ae505276c3ed550a2339a157631542286fdfd915e3abe91"),
        "segmental": (1, "215ed4896fdd955adcd47b276869800851cc59b7405aa3ba72cff4b9819f7d11"),
    },
    "method": {
        "dtw": (1, "46fffd959d86e5b15a964c8cdfe5f52102c1a7d5472f7bff3bb7c28f9f09d18c"),
        "windows": (1, "e9e3c4b6429c26d7ed4bcbd38b4248ec979f2ad1ef1ac59ff2a4e7f28db6a6ed"),
        "lattice": (1, "1f044442682b2dab954fdec39f353f2d47a699bfc0cf57216781fee3d989e8a6"),
        "lattice-edits": (2, "3632ece3288ca022c72f5a93eb12fed8ccc4979ab864d71f6cbd2bd546bebd2e"),
    },
    "first pass": {
        "coarse": (3, "5107b0b25200de8a906d1738957d1b96a4871bdd4821365ba0667f97a2017f2a"),
        "quantised": (5, "61b0ee5ced58a44c9e8e3843fbaa60baedcf0bd2c29d7247a6351f5be46d7472"),
    },
    "export": {
        "csv": (1, "9a7ec690d45fad5364affddc09a79a8afad215051be751ae7edac5edf0ef9070"),
        "stdlist": (1, "7f3a6178dce0daf6ba125669941069ff06edad182eca3384ec3b591ba9ae8f39"),
        "kwslist": (1, "ed934ef3decab9e4cb1dececfe898b7ecbd27ed4862d98ae1d989d639360114c"),
        "labels": (4, "773fed3d663d9825a719bae6b701c093c0c23927fa70bd3beb4dc816034d24e0"),
        "eaf": (2, "0ebc2431ccfc6ff81fe14e126eb9dc01d8260f6ec598eddfb7014f78ff19313a"),
        "textgrid": (2, "2539b7010d535c6cd3b00c15d257784417fb1ebe72b002b82e3347cbaf0afe1f"),
        "clips": (1, "5bde78114b94c28f9b7b801a64ab04d62e1f43b50e17fea7159b1ee3ee2553d4"),
    },
    "format of lattices": {
        "kaldi": (1, "97d82328721d104b6fe3efd65eb835026e14b919c58933d3d61f82993a7af8b4"),
        "pocketsphinx": (1, "396bdb6039425e4973f508f99b5ab7c10e0b6c7b7a180016393505cbe9c94997"),
        "htk": (2, "0440790242b9b5f2bc46c8b80020d2f99cad93d3e43aa7a5f686ec29c40bc305"),
        "confusion": (2, "b0fa5b346d5f11daa138aa3065765347671ef3cc43b3013a31fc51efc86a9bdf"),
        "json": (3, "caf365c18ae53135292fff99846b23f4455d52880832ec4077e9437b981be0f4"),
        "webvtt": (2, "9b58854d6651fb708a5af278905e3e623ed5a3f60efe6fed93e5c05d8409566c"),
        "srt": (2, "dbcbf69aff25d7005cad865ad1faec9a4c31fd77fc5fc88234d88c431bafd89c"),
        "elan": (2, "8e3b8213b360d45812f8b60d39216226b1368e37a8c05b0cb1788c5b25a3925f"),
        "textgrid": (2, "3fe4900442c1630dcfb9ea33fa4decab0e721024b962803b67a5f6399ca47944"),
        "table": (1, "9cdc211628280bacfe24b8db97e3860051ba628eaa205a0c687b25a15d3fa21d"),
        "ctm": (3, "88564c1e31d5186f2c06db9c2bb79f2c3510c2a33742db910a9da6a3dcc4c24a"),
    },
    "reader of lists": {
        "nist": (1, "8644423ad3266739b429da7a7e1a27a1d135058c1dc9964c8122a24bebe18a7f"),
        "parquet": (1, "7d40e6c54a0b671ad674c94e611e1e0b4251ba4e977d976b0eafa3c75fb19e5a"),
        "kaldi": (1, "6aaac9b2dd5b7ef68ca9ad9e711e8a4b1093c0305a132e0e4c62f342c0a592d2"),
        "nist-table": (1, "7cb674fc7998f94f9930c7f323f91888020ebdcb67fe15e627db3cd01ba867cd"),
        "csv": (1, "79b4b0f673b77cf57814f7e6b727452fd4b0a76e47b71671c6f11cac977a28b4"),
    },
    "writer of lists": {
        "stdlist": (1, "be88a2dbe63a9662848db91a99be4afeaad2f7348a0578ced69dc712fd799576"),
        "kwslist": (1, "e1295935c3155997bcd99e0f4236dd5b1ce3dee0467e67d87aee4cd19911f11b"),
        "csv": (1, "053b0c1611f792182dd52fc0015f1318e178df17e5845029c9f8f39c361fb3e5"),
        "parquet": (1, "c78d7954695d1ebbc35c764c79339c09e80c45e18706ef390177e19b9e92946a"),
        "kaldi": (1, "ff3235f501bbdbfc452233f1b98847042ac0d7c51185edeff8815525998ff888"),
    },
    "transform": {
        "columns": (1, "a3fe886665b06e839eab7be76afbf9c04f063e65fd9dfc3338a628b0e456301d"),
        "correspondence": (1, "90d89f41e8380b010c733c3bd4d05a70990a3cb3adc5a0c63d881f94afe0630d"),
        "gmm": (1, "f43199500138ff713d55ffb2ceaea2d3e9e95ec98044af4d16480237311a2540"),
        "hlda": (2, "be1a5d0c77c76f959fdaec2decbe20185e39df39060c9b21e2e5a31316bfdafa"),
        "lda": (1, "7bb9eed0ff112b482e3f6eedd526790699ac76858854e8f5d4997e411a48ba20"),
        "log": (1, "cc4a294dd767cd51a589609263ce5fd4e060bfb5b5169d6218403fc6f9ce2eb9"),
        "mean-variance": (1, "4bf0bc3870ef0b583f2fd40a5601dfb199d945bac90b56aebb9dfaec83b603b1"),
        "pca": (1, "be672585225e14e1f41bec4208281272c293894cc5e2b1b50719f9aafa5a10c2"),
        "phones": (1, "d7aa04d141d105de80c7186e64f14343b1d22cfe63d8f175f1087b2d3c642eb4"),
        "warp": (1, "61e1971b38b6ecbd4929a76f8bc49cac60368952b5f771c06b1e9d9602ed75e1"),
        "project": (1, "33f83a84aa64b99af49695b10ba9971ae61f8c2a0eec8833378855c0da5d57dc"),
        "splice": (1, "d8da41d41c6af6d397364d936832496f4b92db6588746f23831224e1c48df57d"),
    },
}
#: A list in each form, as other programs write it.
LISTS = {
    "nist": b"""<stdlist termlist_filename="t.xml" indexing_time="1" language="english" index_size="2" system_id="s">
  <detected_termlist termid="T1" term_search_time="0.5" oov_term_count="0">
    <term file="a/F1.wav" channel="1" tbeg="1.25" dur="0.5" score="-1.5" decision="YES"/>
    <term file="F2" channel="2" tbeg="3" dur="0.25" score="2" decision="NO"/>
  </detected_termlist>
  <detected_termlist termid="T2" term_search_time="0.25" oov_term_count="1"/>
</stdlist>
""",
    "nist-table": b"termid,file,channel,tbeg,dur,score,decision\nT1,a/F1.wav,1,1.25,0.5,-1.5,YES\nT1,F2,2,3,0.25,2,NO\n",
    "parquet": None,
    "kaldi": b"KW1 utt1 0 6 0\nKW1 utt2 50 125 0\n",
    "csv": b"score,query_id,doc_id,start,end,decision\n0.5,q,d,1,2.25,true\n-3,q,e,0.125,0.5,\n",
}

DIMENSION = 6


def of_distance(name: str) -> list[bytes]:
    """Frames of both sides, and the distances between them."""
    values = scenes.posteriors if DISTANCES[name].posteriors else scenes.features
    distance = create_distance(name, DIMENSION)
    zero = np.zeros((1, DIMENSION), np.float32)
    query, document = (
        scenes.prepared(distance, np.concatenate([values(seed, 40, DIMENSION), zero]), side)
        for seed, side in ((1, "query"), (2, "document"))
    )
    table = local_distances(query, document, distance)
    return [query.astype("<f4").tobytes(), document.astype("<f4").tobytes(), table.astype("<i2").tobytes()]


def collection() -> Any:
    """Three documents, and cuts of them as queries."""
    documents = [scenes.spoken(10 * k, 30 + 10 * k, DIMENSION) for k in range(3)]
    queries = [documents[k][20 : 44 + 12 * k] for k in range(3)]
    return scenes.material(create_distance("cosine", DIMENSION), queries, documents, most=20)


def recurrence_settings(name: str) -> list[bytes]:
    """Candidates."""
    given = collection()
    settings = Settings(given.distance, given.window, 16, 100, name)
    found = search(given.examples(1), given.documents(1, None), given.most, settings)
    return [repr(scenes.rows(found)).encode()]


def of_method(name: str) -> list[bytes]:
    """Candidates: dtw's are those of its recurrence."""
    if name == "dtw":
        return recurrence_settings("bounded-slope")
    if name == "lattice":
        return lattice_places()
    if name == "lattice-edits":
        return edits()
    given, parts = collection(), []
    for free in (True, False):
        limits = Limits(given.lengths, np.full(len(given.lengths), 12), 7, given.most, free)
        found = search_windows(given.examples(1), given.documents(1, None), limits, given.distance)
        parts.append(repr(scenes.rows(found)).encode())
    return parts


def lattice_places() -> list[bytes]:
    """Candidates in a lattice whose probabilities are binary fractions: exact on every machine."""
    chances = np.array([0.5, 0.5, 1.0, 0.25, 0.5, 0.25, 1.0])
    steps, labels = np.array([1, 1, 1, 1, 1, 1, 1], np.int32), np.array([1, 2, 0, 2, 3, 0, 1], np.int32)
    arcs, times = np.array([2, 1, 3, 1, 0], np.int32), np.array([0, 40, 60, 60, 95], np.int32)
    packed = Packed(times, np.ones(5), arcs, steps, labels, chances, ("", "a", "b", "c"), 100)
    terms = [("a",), ("b",), ("a", "b"), ("b", "c", "a"), ("?", "a"), ("a", "?")]
    found = places_of([packed], terms, 50, patterns=True)
    return [repr(sorted(found.items())).encode()]


def edits() -> list[bytes]:
    """Alignments of lattices of one path, some of whose labels are unlikely, and some of which have silence at the edges."""
    with TemporaryDirectory() as place:
        documents = {"one": chain("xxabcxx", 0.5), "two": chain("xa xcyabc", 0.25), "three": chain("x ab c  ")}
        store = store_of(Path(place), documents)
        method = create(Search(method="lattice-edits"))
        rows = pa.Table.from_pylist(
            [query_row("q", 1, chain("abc", 0.5)), query_row("r", 1, chain(" xc "))], QUERY_LATTICES
        )
        (shard,) = (shard.name for shard in store.manifest.shards)
        tables = method.search(method.prepare(rows, store), store, (shard,), 1).tables
    return [repr(table.to_pylist()).encode() for table in tables]


def of_lattice_format(name: str) -> list[bytes]:
    """What it reads: labels, arcs, times; costs in 10000ths, for logarithms differ from machine to machine."""
    file, content, beside = SAMPLES[name]
    with TemporaryDirectory() as place:
        for other, text in {file: content, **beside}.items():
            (Path(place) / other).write_text(text)
        lattices = list(read_file(name, Origin(f"{place}/{file}")))
    parts = []
    for item in lattices:
        assert isinstance(item, Lattice)
        parts.append(repr((item.key, item.channel, item.labels, item.start, item.length, item.tick)).encode())
        parts += [getattr(item, column).astype("<i8").tobytes() for column in ("times", "source", "target", "label")]
        for column in ("graph", "acoustic", "final_graph", "final_acoustic"):
            parts.append(np.rint(np.nan_to_num(getattr(item, column), posinf=1e9) * 10_000).astype("<i8").tobytes())
    return [b"".join(parts)]


def of_first_pass(name: str) -> list[bytes]:
    """Windows that it proposes, and what is found in them."""
    made, parts = create_first_pass(name), []
    for over in ("collection", "document"):
        given, budget = collection(), Budget(2, 0.5, over)
        windows = sorted(zip(*(column.tolist() for column in made.propose(given, budget).windows), strict=True))
        parts += [repr(windows).encode(), repr(scenes.rows(run(made, given, budget)[0])).encode()]
    return parts


def of_export(name: str) -> list[bytes]:
    """Names and contents of its files."""
    with TemporaryDirectory() as place:
        given = exports.material(exports.detections(), exports.hits(Path(place)))
        files = exports.written(name, given, Path(place) / "out")
    return [part for file, content in files.items() for part in (file.encode(), content)]


def of_reader(name: str) -> list[bytes]:
    """What it reads: detections, header and queries."""
    with TemporaryDirectory() as place:
        path = Path(place) / "list"
        path.write_bytes(LISTS[name]) if LISTS[name] else exports.list_written("parquet", exports.posteriors(), path)
        found = exports.read(name, path)
    return [repr(part).encode() for part in (exports.rows(found), found.attributes, found.search_times)]


def of_writer(name: str) -> list[bytes]:
    """Its file; of Parquet, whose bytes name the library's version, what is read of it."""
    with TemporaryDirectory() as place:
        # Costs of Kaldi's are logarithms, which differ from machine to machine; that of 1 does not.
        content = exports.list_written(name, exports.posteriors(16 if name == "kaldi" else 1), Path(place) / "list")
        read = exports.rows(exports.read("parquet", Path(place) / "list")) if name == "parquet" else None
    return [repr(read).encode() if read else content]


#: Of transforms, beside the model.
OPTIONS: dict[str, dict[str, Any]] = {
    "columns": {"keep": ["c4", 0, 1]},
    "log": {"floor": 0.001},
    "warp": {"frames": 21},
    **{name: {"columns": 3} for name in ("project", "pca", "lda", "hlda")},
    **{name: {"components": 3} for name in ("gmm", "phones")},
    "correspondence": {"columns": 3, "frames": 1},
}


def models() -> dict[str, Model]:
    """Of transforms that have one."""
    eighths, quarters = np.arange(DIMENSION) / 8, np.full(DIMENSION, 0.25)

    def projected(seed: int, rows: int = DIMENSION) -> Model:
        return projection(np.arange(rows) / 8, scenes.features(seed, rows, 4), np.full(rows, 0.25))

    means = scenes.posteriors(4, 3, DIMENSION)
    mixture = mixture_model(np.arange(1.0, 4), means, np.full(means.shape, 0.01))
    conditional = {"conditional": np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])}
    powers = 2.0 ** -np.arange(DIMENSION)
    return {
        "project": projected(3),
        "pca": Pca(columns=4).solve(Moments(50, eighths, np.diag(powers**2))),  # diagonal: axes are exact everywhere
        "gmm": mixture,
        "correspondence": projected(7, 3 * DIMENSION),
        "lda": projected(5),
        "hlda": projected(6),
        "phones": Model("phones", 1, {**mixture.arrays, **conditional}, {"labels": ["a", "b"]}),
        "mean-variance": Model("moments", 1, {"mean": quarters, "deviation": 2 * quarters}),
        "warp": Model("warp", 1, {"mean": eighths, "deviation": powers}),
    }


def of_transform(name: str) -> list[bytes]:
    """Frames; of logarithms, exponentials and normal deviates, whose last places differ from machine to machine, 10000ths."""
    with TemporaryDirectory() as place:
        if model := models().get(name):
            model.save(Folder(place), "model.npz")
        given = {"model": f"{place}/model.npz"} if model else {}
        made = TRANSFORMS[name].load()(**given, **OPTIONS.get(name, {}))
        becomes = made.becomes(Shape(tuple(f"c{k}" for k in range(DIMENSION)), "posteriors"))
        frames = made.apply(scenes.posteriors(1, 50, DIMENSION))
    rounded = name in ("log", "gmm", "phones", "warp")
    values = np.rint(frames * 10_000).astype("<i8") if rounded else frames.astype("<f4")
    return [repr(becomes).encode(), values.tobytes()]


KINDS: list[tuple[Registry[Any], Callable[[str], list[bytes]]]] = [
    (DISTANCES, of_distance),
    (registries.RECURRENCES, recurrence_settings),
    (registries.METHODS, of_method),
    (registries.FIRST_PASSES, of_first_pass),
    (registries.EXPORTS, of_export),
    (registries.LATTICE_FORMATS, of_lattice_format),
    (registries.READERS, of_reader),
    (registries.WRITERS, of_writer),
    (TRANSFORMS, of_transform),
]


@pytest.mark.parametrize(
    ("registry", "made", "name"),
    [pytest.param(registry, made, name, id=f"{registry.kind} {name}") for registry, made in KINDS for name in registry],
)
def test_bytes_change_with_versions_only(
    registry: Registry[Any], made: Callable[[str], list[bytes]], name: str
) -> None:
    parts = made(name)
    assert all(parts)
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    found = registry[name].version, digest
    assert found == GOLDEN[registry.kind].get(name), f'if you meant it, raise the version; put "{name}": {found}, here'


def test_nothing_is_held_that_is_gone() -> None:
    assert {registry.kind: set(registry) for registry, _ in KINDS} == {kind: set(rows) for kind, rows in GOLDEN.items()}


def test_the_input_is_worth_it() -> None:
    """Recurrences and first passes differ on it, and so do distances, but for a square that is of another unit."""
    for registry, made in KINDS:
        parts = {name: b"".join(made(name)) for name in registry}
        assert len(set(parts.values())) == len(parts), registry.kind
