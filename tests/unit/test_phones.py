"""Phones: lattices and strings against every path, bigrams, and recognisers' folders."""

import math
from collections import defaultdict
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import expecting, in_this_process
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

import swsdist
from swsdist.core.codes import families
from swsdist.core.codes import features as features_codes
from swsdist.core.codes import lattices as codes
from swsdist.features.extractors import create
from swsdist.features.phnrec.network import Net, fexp, softmax
from swsdist.features.phnrec.weights import Weights
from swsdist.io.frames.htk import read_mlf
from swsdist.kernels.phone_loop import best_string
from swsdist.lattices import decoding as phone_loop
from swsdist.lattices.decoding import (
    Columns,
    Decoder,
    Decoding,
    FrameDecoder,
    PhoneArcs,
    packed_arcs,
    phone_arcs,
    read_bigrams,
)
from swsdist.testing.synthesis.recogniser import PHONES, make_recogniser
from tests.oracles.phone_pairs import arc_posteriors, paths
from tests.support.coded import raises

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
    packed = packed_arcs(arcs, [f"p{k}" for k in range(values.shape[1])], 0.01)
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
        packed = packed_arcs(arcs, ["a", "b"], 0.01)
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
        (
            "config",
            "[posteriors]\nsystem=FCRC\n",
            features_codes.OTHER_RECOGNISER,
            {"value": "FCRC", "supported": "LCRC"},
        ),
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
