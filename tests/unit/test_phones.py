"""Phones and words of sound: lattices and strings against every path, recognisers and synthesisers."""

import importlib.util
import io
import math
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import expecting, in_this_process
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

import swsdist
from swsdist.audio import synthesis
from swsdist.audio.reader import read_blocks
from swsdist.audio.synthesis import LONGEST, demand_voice, speak
from swsdist.core.codes import Code, families, searcher
from swsdist.core.codes import audio as audio
from swsdist.core.codes import features as features_codes
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import SwsdistError, TermError
from swsdist.core.needs import LEAST
from swsdist.features.extractors import create
from swsdist.features.phnrec.network import Net, fexp, softmax
from swsdist.features.phnrec.weights import Weights
from swsdist.io.frames.htk import read_mlf
from swsdist.kernels.phone_loop import best_string
from swsdist.lattices import decoding as phone_loop
from swsdist.lattices import pocketsphinx, recognition
from swsdist.lattices.decoding import Columns, Decoder, Decoding, FrameDecoder, PhoneArcs, phone_arcs, read_bigrams
from swsdist.lattices.decoding import packed_arcs as packed_of
from swsdist.lattices.lattice import Lattice
from swsdist.lattices.pocketsphinx import RATE, Pocketsphinx
from swsdist.lattices.recognition import Recognition, Text, stretches
from swsdist.testing.synthesis.recogniser import PHONES, make_recogniser
from tests.oracles.phone_pairs import arc_posteriors, paths
from tests.support.coded import raises
from tools.english.words import small_corpus, small_recogniser

Floats = NDArray[np.float64]


@st.composite
def posteriors(draw: st.DrawFn) -> Floats:
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 1 << 20))
    result = np.random.default_rng(seed).normal(-2.0, 2.0, shape)
    if draw(st.booleans()):  # a frame may exclude a phone
        result[shape[0] // 2, 0, 0] = -np.inf
    return result


@st.composite
def cases(draw: st.DrawFn) -> tuple[Floats, Decoder]:
    values = draw(posteriors())
    phones = values.shape[1]
    pairs = None
    if draw(st.booleans()):
        pairs = np.random.default_rng(draw(st.integers(0, 1 << 20))).normal(-1.0, 1.0, (phones + 1, phones))
        if draw(st.booleans()):  # as of CTC
            pairs[np.arange(phones), np.arange(phones)] = -np.inf
    scale, insertion = draw(st.sampled_from([0.3, 1.0])), draw(st.sampled_from([-2.0, 0.0]))
    return values, Decoder(scale, insertion, pairs)


def arcs_of(values: Floats, decoder: Decoder, least: float = 1e-300) -> PhoneArcs:
    return phone_arcs(lambda first, stop: values[first:stop], len(values), decoder, least)


def by_arc(arcs: PhoneArcs) -> dict[tuple[int, int, int, int], float]:
    columns = (column.tolist() for column in (arcs.starts, arcs.ends, arcs.before, arcs.phones))
    return dict(zip(zip(*columns, strict=True), arcs.posteriors.tolist(), strict=True))


@given(cases(), st.sampled_from([1, 2, 2048]))
def test_posteriors_of_every_arc(case: tuple[Floats, Decoder], block: int) -> None:
    values, decoder = case
    total, expected = arc_posteriors(values, decoder.scale, decoder.insertion, decoder.pairs)
    if decoder.pairs is None:  # any phone before
        joined: dict[tuple[int, int, int, int], float] = defaultdict(float)
        for (first, stop, _, phone), posterior in expected.items():
            joined[first, stop, -1, phone] += posterior
        expected = dict(joined)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phone_loop, "_BLOCK", block)
        arcs = arcs_of(values, decoder)
        pruned = arcs_of(values, decoder, 0.1)
    assert arcs.total == (pytest.approx(total) if expected else -math.inf)
    ours = by_arc(arcs)
    assert set(ours) == set(expected)
    for key, posterior in expected.items():
        assert ours[key] == pytest.approx(posterior, abs=1e-9)
    left = by_arc(pruned)
    for key, posterior in expected.items():
        assert (key in left) == (posterior >= 0.1) or posterior == pytest.approx(0.1)


@given(cases())
def test_what_leaves_a_state_adds_up(case: tuple[Floats, Decoder]) -> None:
    values, decoder = case
    arcs = arcs_of(values, decoder)
    packed = packed_of(arcs, [f"p{k}" for k in range(values.shape[1])], 0.01)
    first = np.concatenate(([0], np.cumsum(packed.arcs)))
    for state in np.flatnonzero(packed.arcs):
        assert packed.chances[first[state] : first[state + 1]].sum() == pytest.approx(1.0)
    assert packed.ticks == 10 * len(values)


@given(cases())
def test_the_best_string(case: tuple[Floats, Decoder]) -> None:
    values, decoder = case
    every = list(paths(values, decoder.scale, decoder.insertion, decoder.pairs, best=True))
    costs = -decoder.scale * values
    pairs = None if decoder.pairs is None else -decoder.pairs
    for blocks in ([costs], [costs[:1], costs[1:1], costs[1:]]):
        ours = best_string(blocks, values.shape[1:], -decoder.scale * decoder.insertion, pairs)
        if not every:
            assert ours == []
            continue
        string = tuple((item.first, item.stop, item.phone) for item in ours)
        best = max(weight for _, weight in every)
        assert -sum(item.cost for item in ours) == pytest.approx(best)
        assert dict(every)[string] == pytest.approx(best)


ARPA = (
    "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1.0 <s> -0.5\n-0.5 a -0.25\n-0.75 b\n-9 </s>\n\n"
    "\\2-grams:\n-0.1 <s> a\n-0.2 a b\n\n\\3-grams:\n-0.3 <s> a b\n\n\\end\\\n"
)


def test_bigrams_of_whole_language_models(tmp_path: Path) -> None:
    (tmp_path / "lm").write_text(ARPA)
    weights = read_bigrams(str(tmp_path / "lm"), ["a", "b"]) / math.log(10)
    assert weights == pytest.approx(np.array([[-0.75, -0.2], [-0.5, -0.75], [-0.1, -1.25]]))
    with raises(families.MISMATCH, phone="c", count=1):
        read_bigrams(str(tmp_path / "lm"), ["a", "c"])
    (tmp_path / "lm").write_text(ARPA.replace("-0.2 a b", "a b"))
    with raises(families.MALFORMED_LINE, order=2):
        read_bigrams(str(tmp_path / "lm"), ["a", "b"])
    path = tmp_path / "lm"
    for old, new, line in (
        (ARPA, "a b c\n", None),
        ("\\end\\\n", "", 17),
        ("-0.5 a", "0.5 a", 7),
        ("ngram 1=4", "ngram 1=5", 2),
        ("ngram 2=2\n", "", None),
        ("-0.2 a b", "-0.2 a c", 13),
        ("-0.2 a b", "-0.2 <s> a", 13),
        ("-0.75 b", "-0.75 a", 8),
    ):
        path.write_text(ARPA.replace(old, new))
        with raises(codes.MALFORMED_ARPA) as caught:
            read_bigrams(str(path), ["a", "b"])
        assert caught.value.where == (str(path) if line is None else f"{path}:{line}"), new


@given(st.lists(st.sampled_from(["a", "pau", "sil", "noise", "a.1"]), unique=True))
def test_non_speech_that_a_track_lacks(names: list[str]) -> None:
    """Is refused, but for the default's."""
    columns = Columns(["a.1", "a.2", "noise.1", "noise.2"], "logits")
    if "a.1" in names:
        with raises(families.UNKNOWN_NAME, name="a.1", count=2, phones="a, noise"):
            FrameDecoder(Decoding(non_speech=tuple(names)), columns)
    else:
        assert FrameDecoder(Decoding(non_speech=tuple(names)), columns).words == {"a", "noise"} - set(names)


def test_columns() -> None:
    states = FrameDecoder(Decoding(), Columns(["a.1", "a.2", "pau.1", "pau.2"], "logits"))
    assert states.phones == ["a", ""]
    assert states.log_posteriors(np.zeros((3, 4), np.float32)) == pytest.approx(np.full((3, 2, 2), math.log(0.25)))
    phones = FrameDecoder(Decoding(), Columns(["a", "b.1"], "posteriors"))
    assert phones.phones == ["a", "b.1"]
    found = phones.log_posteriors(np.array([[0.5, 0.0]], np.float32))[0, :, 0]
    assert found == pytest.approx([math.log(0.5), math.log(1e-30)])
    with raises(families.UNSUPPORTED, kind="features"):
        FrameDecoder(Decoding(), Columns(["c0"], "features"))
    with raises(families.UNKNOWN_NAME, blank="<pad>", columns="a, b"):
        FrameDecoder(Decoding(topology="ctc"), Columns(["a", "b"], "logits"))
    with raises(families.UNSUPPORTED, phone="a", states=2):
        FrameDecoder(Decoding(topology="ctc", blank="a"), Columns(["a.1", "a.2"], "logits"))
    with pytest.raises(ValidationError, match=codes.BIGRAMS_OF_CTC.message):
        Decoding(topology="ctc", bigrams="lm")
    for frames in (0, 2):  # a phone of three states takes three frames
        values = np.zeros((frames, 2, 3))
        arcs = arcs_of(values, Decoder(1.0))
        assert (arcs.total, len(arcs.starts)) == (-math.inf, 0)
        packed = packed_of(arcs, ["a", "b"], 0.01)
        assert (len(packed.steps), packed.ticks) == (0, 10 * frames)
        assert best_string([values], (2, 3), 0.0) == []


@given(st.integers(0, 1 << 20), st.sampled_from([0.3, 1.0]), st.sampled_from([-3.0, 0.0, 2.0]))
def test_of_ctc_labels_cost_an_insertion_and_blanks_none(seed: int, scale: float, insertion: float) -> None:
    """Against the labels of all frames, one by one."""
    frames = np.random.default_rng(seed).normal(0.0, 2.0, (5, 3)).astype(np.float32)
    same = {"scale": scale, "insertion": insertion, "string_scale": scale, "string_insertion": insertion}
    decoding = Decoding(topology="ctc", blank="_", least=1e-30, **same)
    decoder = FrameDecoder(decoding, Columns(["_", "a", "b"], "logits"))
    values = decoder.log_posteriors(frames)[:, :, 0]
    weights: dict[tuple[str, ...], float] = defaultdict(float)
    likeliest, best = -math.inf, ()
    for labels in product(range(3), repeat=len(frames)):
        string = tuple("_ab"[label] for label, _ in groupby(labels) if label)
        weight = scale * (values[np.arange(len(frames)), list(labels)].sum() + insertion * len(string))
        weights[string] += math.exp(weight)
        likeliest, best = max((likeliest, best), (weight, string))
    assert decoder.string(frames) == list(best)
    packed = decoder.lattice(lambda first, stop: frames[first:stop], len(frames), 0.02)
    expected = sum(len(string) * weight for string, weight in weights.items()) / sum(weights.values())
    assert packed.expected()[packed.labels > 0].sum() == pytest.approx(expected)


command = expecting(in_this_process)


def noise(seconds: float = 2.0, rate: int = 8000) -> np.ndarray:
    return np.random.default_rng(3).normal(scale=0.1, size=round(seconds * rate)).astype(np.float32)


def test_hidden_units_use_its_exponential_wherever_it_goes() -> None:
    """Also where its 32 bits run over: there a sigmoid of 1 comes out as 0."""
    known = [0.9710078239440918, 2.769420623779297, 0.3748302459716797, 0.0067521147429943085]
    assert fexp(np.array([0.0, 1.0, -1.0, -5.0])).tolist() == known
    weights = Weights(*(np.array(one, np.float32) for one in ([[1.0]], [[1.0]], [0.0], [0.0], [0.0], [1.0])))
    exponents = np.concatenate([np.linspace(-60, 60, 1001), [-900.0, -100.0, 100.0, 815.0]]).astype(np.float32)
    found = Net(weights).logits(np.stack([exponents, np.ones_like(exponents)], axis=1))[:, 0]
    with np.errstate(over="ignore"):
        wanted = 1 / (1 + fexp(-exponents))
    assert found[:-4] == pytest.approx(wanted[:-4], rel=1e-5, abs=1e-30)
    assert found[-4:] == pytest.approx([1, 0, 1, 0], abs=1e-20)
    small = softmax(np.array([[0.0, -95.0, -300.0]], np.float32))[0]
    assert (small[0], 0 < small[1] < 1e-40, small[2]) == (1, True, 0)


def test_damaged_folders(tmp_path: Path) -> None:
    wrong = families.UNUSABLE_MODEL
    cases: list[tuple[str, str | None, Any, dict[str, Any]]] = [
        ("config", None, features_codes.RECOGNISER_FILE_UNREADABLE, {}),
        ("config", "[melbanks]\nnbanks=15\n", features_codes.BAD_RECOGNISER_CONFIG, {}),
        ("config", "[posteriors]\nsystem=FCRC\n", features_codes.OTHER_RECOGNISER, {"value": "FCRC"}),
        ("dicts/phonemes", "a\na\n", wrong, {"count": 2, "distinct": 1}),
        ("dicts/phonemes", "a\nb\npau\n", wrong, {"inputs": 66, "outputs": 21, "phones": 3, "expected_outputs": 12}),
        ("weights/merger.nbin", None, features_codes.RECOGNISER_FILE_MISSING, {}),
        ("weights/band1.nbin", "short", wrong, {"detail": "5 bytes"}),
        ("windows/band0.window", "1 2 3", wrong, {"detail": "3 numbers, not 16"}),
    ]
    for k, (name, content, code, values) in enumerate(cases):
        folder = tmp_path / str(k)
        make_recogniser(str(folder))
        (folder / name).unlink() if content is None else (folder / name).write_text(content)
        with raises(code, where=str(folder), **values):
            create("phnrec", {"weights": str(folder)}).extract(noise())
    make_recogniser(str(tmp_path / "whole"))
    options = {"weights": str(tmp_path / "whole"), "non_speech_phones": ["sil"]}
    with raises(wrong, phones="none"):
        create("phnrec", options)
    create("phnrec", {**options, "non_speech": "keep"})


def test_strings_in_python_and_as_files(tmp_path: Path) -> None:
    folder = tmp_path / "made-up"
    make_recogniser(str(folder))
    speech = tmp_path / "speech"
    speech.mkdir()
    soundfile.write(speech / "one.wav", noise(1.5), 8000)
    soundfile.write(speech / "two.wav", noise(0.7, 16000), 16000)
    table = swsdist.phones(str(folder), str(speech))
    assert set(table["doc_id"]) == {"one", "two"}
    assert set(table["phone"]) <= set(PHONES)
    assert table.groupby("doc_id")["end"].max().to_dict() == pytest.approx({"one": 1.48, "two": 0.68})
    command("phones", folder, speech, "--out", tmp_path / "phones.mlf")
    lines = read_mlf(tmp_path / "phones.mlf")
    assert list(lines) == ["*/one.rec", "*/two.rec"]
    assert [one.label for one in lines["*/one.rec"]] == table[table["doc_id"] == "one"]["phone"].tolist()
    command("phones", folder, speech, "--out", tmp_path / "phones.ctm", "--penalty", "20")
    more = (tmp_path / "phones.ctm").read_text().splitlines()
    assert len(more) > len(table) > 0
    (speech / "three.wav").write_text("no sound")
    told = command("phones", folder, speech, "--out", tmp_path / "rest.ctm", code=4)
    assert "three" in told.err
    assert "of 2 of 3 documents" in told.out


needs_pocketsphinx = pytest.mark.skipif(
    importlib.util.find_spec("pocketsphinx") is None, reason="needs pocketsphinx: pip install -e '.[dev]'"
)

#: Files that a model's options need besides.
OTHERS = {"dictionary": "no.dict", "lm": "no.lm"}


def noise_recognition(seconds: float, quiet: tuple[tuple[float, float], ...] = ()) -> NDArray[np.float32]:
    """Noise that is a thousandth as loud in some places."""
    samples = np.random.default_rng(3).uniform(-0.1, 0.1, round(seconds * RATE)).astype(np.float32)
    for start, end in quiet:
        samples[round(start * RATE) : round(end * RATE)] /= 1000
    return samples


def blocks(samples: NDArray[np.float32], size: int) -> Iterator[NDArray[np.float32]]:
    for first in range(0, len(samples), size):
        yield samples[first : first + size]


def test_a_recording_is_cut_where_it_is_quiet() -> None:
    samples = noise_recognition(11.0, ((1.0, 1.4), (3.0, 3.4), (6.5, 6.9)))
    whole = list(stretches([samples], 4.0, RATE))
    cuts = np.cumsum([len(part) for part in whole]) / RATE
    assert len(whole) == 4
    assert abs(cuts[0] - 3.2) < 0.06  # not 1.2: it is in the first half
    assert abs(cuts[1] - 6.7) < 0.06
    assert cuts[2] - cuts[1] <= 4.0
    assert np.array_equal(np.concatenate(whole), samples)
    for size in (160, 1001, 50_000):
        parts = stretches(blocks(samples, size), 4.0, RATE)
        assert [part.tobytes() for part in parts] == [part.tobytes() for part in whole]
    # What is short is not cut.
    samples = noise_recognition(4.0)
    assert [len(part) for part in stretches(blocks(samples, 999), 4.0, RATE)] == [len(samples)]
    assert list(stretches([], 4.0, RATE)) == []


@needs_pocketsphinx
def test_models_and_options_that_cannot_be_used_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], Code[Any], str]] = [
        *(({"parameters": given}, families.INVALID_VALUE, "parameters") for given in ({"beem": 1e-20}, {"lw": "much"})),
        ({"parameters": {"ascale": 10.0}}, families.INVALID_VALUE, "parameters"),
        ({**OTHERS, "model": "s3://bucket/model"}, families.UNSUPPORTED, "model"),
        ({**OTHERS, "model": "no/model"}, families.MISSING_MODEL, "model"),
        ({"lm": "no.lm"}, families.MISSING_MODEL, "lm"),
        ({"dictionary": "no.dict"}, families.MISSING_MODEL, "dictionary"),
    ]
    for options, code, key in cases:
        with raises(code, where=f"options.recogniser.options.{key}"):
            Recognition(options=options).identities()
    for others, missing in (({"lm": "x"}, "dictionary"), ({}, "dictionary and lm")):
        with pytest.raises(ValidationError, match=codes.MODEL_ALONE.text(missing=missing)[0]):
            Pocketsphinx(model="spanish", **others)
    (tmp_path / "words.dict").write_text("actor no phones\n")
    (tmp_path / "lm").write_text("nothing\n")
    options = Recognition(options={"dictionary": str(tmp_path / "words.dict"), "lm": str(tmp_path / "lm")})
    assert options.identities() != Recognition().identities()
    with raises(families.UNUSABLE_MODEL):
        options.loaded(LEAST[0])
    monkeypatch.setattr(recognition, "find_spec", lambda name: None)
    with raises(families.NOT_INSTALLED, where="options.recogniser", extra="pocketsphinx"):
        Recognition().identities()


@needs_pocketsphinx
@settings(max_examples=20, deadline=None)
@given(lines=st.lists(st.sampled_from(("good G UH D", "bad G QQ D", "mute", "## comment", "")), unique=True))
def test_lines_that_pocketsphinx_would_ignore_are_refused(lines: list[str]) -> None:
    """The first line whose phones are none, or none of the model's."""
    unigrams = "\n".join(f"-1 {word} 0" for word in ("<s>", "</s>", "good", "fine"))
    with tempfile.TemporaryDirectory() as folder:
        dictionary, model = Path(folder, "words.dict"), Path(folder, "words.arpa")
        dictionary.write_text("\n".join([*lines, "fine F AY N", ""]))
        ignored = [k for k, line in enumerate(lines, 1) if line in ("bad G QQ D", "mute")]
        model.write_text(f"\\data\\\nngram 1=4\n\n\\1-grams:\n{unigrams}\n\n\\end\\\n")
        options = Recognition(options={"dictionary": str(dictionary), "lm": str(model)})
        with raises(families.MALFORMED_LINE, where=f"{dictionary}:{ignored[0]}") if ignored else nullcontext():
            options.loaded(LEAST[0])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_corpus(tmp_path_factory.mktemp("english"))


@needs_pocketsphinx
def test_a_recognition_depends_on_its_recording_alone(corpus: Path) -> None:
    recogniser = Pocketsphinx.model_validate(small_recogniser(corpus))
    paths = sorted((corpus / "audio_queries").iterdir())[:2]

    def made(path: Path) -> tuple[bytes, tuple[str, ...], list[str]]:
        samples = list(read_blocks(str(path), rate=RATE))
        lattice = recogniser.lattice(path.stem, 1, samples)
        return lattice.graph.tobytes() + lattice.times.tobytes(), lattice.labels, recogniser.texts(samples)

    first = [made(path) for path in paths]
    pocketsphinx._decoder.cache_clear()
    recogniser = Pocketsphinx.model_validate(small_recogniser(corpus))
    assert [made(path) for path in paths[::-1]] == first[::-1]
    assert all(words for *_, words in first)


def connected(lattice: Lattice) -> float:
    """The likelihood of all paths: 1 where each state's chances sum to 1."""
    reached = np.zeros(lattice.states)
    reached[lattice.start] = 1.0
    pending, ready = np.bincount(lattice.target, minlength=lattice.states), [lattice.start]
    while ready:
        state = ready.pop()
        for arc in np.flatnonzero(lattice.source == state):
            target = int(lattice.target[arc])
            reached[target] += reached[state] * np.exp(-lattice.graph[arc])
            pending[target] -= 1
            if not pending[target]:
                ready.append(target)
    return float(reached[np.isfinite(lattice.final_graph)].sum())


@needs_pocketsphinx
def test_stretches_are_one_lattice(corpus: Path) -> None:
    options = small_recogniser(corpus)
    path = str(min((corpus / "audio").iterdir()))
    samples = np.concatenate(list(read_blocks(path, rate=RATE)))[: 5 * RATE]
    parts = list(stretches([samples], 2.0, RATE))
    assert len(parts) > 2
    recogniser = Pocketsphinx.model_validate({**options, "longest": 2.0})
    joined = recogniser.lattice("joined", 2, [samples])
    singles = [recogniser.lattice("single", 1, [part]) for part in parts]
    assert (joined.key, joined.channel, joined.length) == ("joined", 2, round(1000 * len(samples) / RATE))
    assert set(joined.labels) == {label for single in singles for label in single.labels}
    assert joined.states == sum(single.states - 2 for single in singles) + 2
    assert connected(joined) == pytest.approx(1.0, abs=1e-3)
    begin = 0
    for single, part in zip(singles, parts, strict=True):
        inside = single.times[1:-1] + round(1000 * begin / RATE)
        assert np.isin(inside, joined.times).all()
        begin += len(part)
    each = [text.labels for part in parts for text in recogniser.texts([part])]
    assert recogniser.texts([samples]) == [Text(tuple(label for labels in each for label in labels))]


@needs_pocketsphinx
def test_silence_has_no_words(corpus: Path) -> None:
    recogniser = Pocketsphinx.model_validate(small_recogniser(corpus))
    for samples in (np.zeros(RATE, np.float32), np.zeros(0, np.float32), noise_recognition(0.05)):
        lattice = recogniser.lattice("silence", 1, [samples])
        assert (lattice.labels, lattice.states) == (("",), 2)
        assert lattice.length == round(1000 * len(samples) / RATE)
        assert recogniser.texts([samples]) == []


needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
VOICE = "espeak-ng:en-us"


@needs_espeak
@given(st.sampled_from(["", "-", "--", "-f/", "-w ", "[[", "<", "|", "$("]), st.text(max_size=LONGEST + 20))
def test_any_text_is_spoken_or_refused(start: str, text: str) -> None:
    ran: list[list[str]] = []
    run = subprocess.run

    def noted(arguments: list[str], **keywords: object) -> object:
        ran.append(arguments)
        return run(arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthesis.subprocess, "run", noted)
        with suppress(TermError):
            assert soundfile.info(io.BytesIO(speak(start + text, VOICE))).frames > 0
    ours = {"--stdin", "-z", "-q", "-x", "-b", "1", "-v", "-w", "en-us", "--voices", "--voices=variant"}
    rest = {word for arguments in ran for word in arguments[1:]} - ours
    assert all(Path(word).name == "word.wav" and Path(word).is_absolute() for word in rest)


@needs_espeak
def test_refused_and_read() -> None:
    voices = ("espeak:en-us", "en-us", "espeak-ng:en-uss", "espeak-ng:", "espeak-ng:en-us+nobody", "espeak-ng:--help")
    cases: list[tuple[str, str, Code[SwsdistError]]] = [
        *(("hello", voice, families.UNKNOWN_NAME) for voice in (*voices, "espeak-ng:../../etc/passwd")),
        *((text, VOICE, audio.UNREADABLE_SCRIPT) for text in ("привет", "good こんにちは")),
        *((text, VOICE, audio.SOUNDLESS_TEXT) for text in ("...", "")),
        ("a" * (LONGEST + 1), VOICE, audio.SPOKEN_TEXT_TOO_LONG),
        ("\ud800", VOICE, searcher.QUERY_TEXT_NOT_UTF8),
    ]
    for text, voice, code in cases:
        with raises(code):
            speak(text, voice)
    of_others = [("привет", "espeak-ng:ru"), ("안녕하세요", "espeak-ng:ko+f3"), ("СССР", "espeak-ng:ru")]
    of_ours = [("élève", VOICE), ("BBC", VOICE), ("hello", f"{VOICE}+f3"), ("hello", "espeak-ng:gmw/en-US")]
    for text, voice in of_others + of_ours:
        assert soundfile.info(io.BytesIO(speak(text, voice))).duration > 0.2, text
    assert speak("[[h@l'oU]]", VOICE) == speak("hello", VOICE) == speak(" hello\n", VOICE)


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
def test_flite() -> None:
    assert soundfile.info(io.BytesIO(speak("--help", "flite:slt"))).duration > 0.2
    with raises(audio.UNREADABLE_SCRIPT):
        speak("élève", "flite:slt")


def test_a_program_that_is_not_there_fails_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthesis, "TIMEOUT", 0.3)
    monkeypatch.setenv("PATH", str(tmp_path))
    synthesis._voices.cache_clear()
    with raises(families.NOT_INSTALLED, program="flite"):
        demand_voice("flite:slt")
    program = tmp_path / "flite"
    for body, ending in (("echo no >&2; exit 3", "exit status 3"), ("exec /bin/sleep 60", "more than 0.3 s")):
        program.write_text(f'#!/bin/sh\nif [ "$1" = -lv ]; then echo "Voices available: slt "; exit; fi\n{body}\n')
        program.chmod(0o755)
        with raises(audio.SYNTHESISER_FAILED, ending=ending):
            speak("hello", "flite:slt")
    synthesis._voices.cache_clear()
