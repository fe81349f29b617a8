"""What a model's folder says, told from its JSON files: neither torch nor transformers is loaded."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.ssl import extractor
from swsdist.features.ssl.extractor import Ssl
from swsdist.features.ssl.folder import read_encoder, read_head
from swsdist.io.local import folder_of
from tests.support.coded import raises

CONFIG: dict[str, Any] = {"model_type": "wav2vec2", "hidden_size": 16, "num_hidden_layers": 3}
CONFIG |= {"conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2, 2, 2, 2, 2, 2]}
WHISPER: dict[str, Any] = {"model_type": "whisper", "d_model": 8, "encoder_layers": 2, "max_source_positions": 1500}
WHISPER |= {"num_mel_bins": 80, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
CTC: dict[str, Any] = {**CONFIG, "architectures": ["Wav2Vec2ForCTC"], "vocab_size": 4}
TOKENS = {"a": 2, "|": 1, "<pad>": 0, "tʃ": 3}
FRONT: dict[str, Any] = {"sampling_rate": 16000, "do_normalize": True}


def write(folder: Path, config: object = CONFIG, front: object = FRONT) -> str:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(front))
    (folder / "model.safetensors").write_bytes(b"123")
    return str(folder)


def test_folders_of_convolutions_and_of_spectra(tmp_path: Path) -> None:
    known = {"torch", "transformers"} & sys.modules.keys()
    one = read_encoder(write(tmp_path))
    assert (one.sample_rate, one.frame_length, one.hop) == (16000, 400, 320)
    assert (one.layers, one.width, one.most, one.samples, one.bytes) == (3, 16, None, True, 3)
    assert [path.name for path in one.files] == ["config.json", "preprocessor_config.json", "model.safetensors"]
    assert {"torch", "transformers"} & sys.modules.keys() == known  # who loaded one, it was not this
    one = read_encoder(write(tmp_path, {**WHISPER, "is_encoder_decoder": True}, {**FRONT, "hop_length": 160}))
    assert (one.frame_length, one.hop, one.layers, one.width, one.most) == (320, 320, 2, 8, 1500)
    assert (one.mels, one.heads, one.inner) == (80, 2, 32)
    one = read_encoder(write(tmp_path, {**CONFIG, "model_type": "wav2vec2-bert"}, {**FRONT, "stride": 2}))
    assert (one.frame_length, one.hop, one.most, one.samples) == (560, 320, None, False)


def test_weights_in_several_files(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00002.safetensors")
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"12345")
    named = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    one = read_encoder(folder)
    assert one.bytes == 3 + 5
    assert [path.name for path in one.files[2:]] == ["model.safetensors.index.json", *named.values()]
    (tmp_path / named["b"]).unlink()
    with raises(codes.MODEL_FILE_MISSING, file="model-00002-of-00002.safetensors"):
        read_encoder(folder)


def test_folders_of_something_else(tmp_path: Path) -> None:
    wrong = families.UNUSABLE_MODEL
    cases: list[tuple[object, object, Any, dict[str, object]]] = [
        ({**CONFIG, "model_type": "bert", "conv_kernel": None}, FRONT, wrong, {"keys": "conv_kernel"}),
        ({"model_type": "bert", "hidden_size": 3}, FRONT, wrong, {"kind": "bert"}),
        ({**CONFIG, "model_type": "sew", "squeeze_factor": 2}, FRONT, wrong, {"kind": "sew"}),
        ({**CONFIG, "model_type": "speecht5", "is_encoder_decoder": True}, FRONT, wrong, {"kind": "speecht5"}),
        ({**CONFIG, "num_hidden_layers": "3"}, FRONT, wrong, {"keys": "num_hidden_layers or encoder_layers"}),
        (CONFIG, {}, wrong, {"keys": "sampling_rate"}),
        ([], FRONT, codes.MODEL_FILE_NOT_JSON, {}),
    ]
    for config, front, code, values in cases:
        with raises(code, where=".json", **values):
            read_encoder(write(tmp_path, config, front))


def test_what_is_not_there(tmp_path: Path) -> None:
    for model in ("facebook/nothing", "/no/such"):
        with raises(codes.NO_MODEL_FOLDER):
            read_encoder(model)
    with raises(codes.MODEL_FILE_MISSING, file="config.json"):
        read_encoder(str(tmp_path))
    folder = write(tmp_path)
    (tmp_path / "preprocessor_config.json").unlink()
    with raises(codes.MODEL_FILE_MISSING, file="preprocessor_config.json"):
        read_encoder(folder)
    # What makes the input may stand beside a tokenizer.
    (tmp_path / "processor_config.json").write_text(json.dumps({"feature_extractor": {**FRONT, "sampling_rate": 8000}}))
    one = read_encoder(folder)
    assert (one.sample_rate, one.files[1].name) == (8000, "processor_config.json")
    (tmp_path / "processor_config.json").write_text("{}")
    with raises(codes.MODEL_FILE_MISSING, file="preprocessor_config.json"):
        read_encoder(folder)
    write(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with raises(codes.MODEL_FILE_NOT_JSON):
        read_encoder(folder)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with raises(codes.MODEL_FILE_MISSING, file="model.safetensors"):
        read_encoder(folder)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with raises(families.UNUSABLE_MODEL, file="pytorch_model.bin"):
        read_encoder(folder)
    write(tmp_path, CTC)
    (tmp_path / "model.safetensors").unlink()
    with raises(families.UNUSABLE_MODEL, auto="AutoModelForCTC"):  # AutoModel would lose the head
        read_encoder(folder)


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path)
    monkeypatch.setattr(extractor, "find_spec", lambda name: None)
    with raises(codes.SSL_NOT_INSTALLED, library="torch"):
        Ssl(model=folder, layer=1)
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    one = Ssl(model=folder, layers="all")
    assert one.tracks == tuple((f"layer{k}", 16) for k in range(4))
    assert one.dimension == 64
    assert (one.whole_frames, one.chunk_frames, one.overlap_frames) == (1500, 1500, 200)
    assert Ssl(model=folder, layers=[3, 1]).tracks == (("layer3", 16), ("layer1", 16))
    assert Ssl(model=folder, layer=0).tracks == (("ssl", 16),)
    (tmp_path / "w.json").write_text("[0.5, 0.25, 0, 0.25]")
    summed = Ssl(model=folder, layers="all", weights=str(tmp_path / "w.json"))
    assert (summed.tracks, summed.dimension) == ((("ssl", 16),), 16)
    assert summed.files()[-1] == tmp_path / "w.json"
    assert Ssl(model=folder, layer=1, device="cuda").needs[0].gpus == 1
    assert one.needs[0].gpus == 0


def test_options_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    folder = write(tmp_path)
    cases: list[tuple[dict[str, Any], str]] = [
        *((given, "exactly one of layer, layers and head") for given in ({}, {"layer": 1, "layers": [2]})),
        ({"layer": 1, "head": "logits"}, "exactly one of layer, layers and head"),
        ({"layer": 1, "language": "ces"}, codes.LANGUAGE_WITHOUT_CHOICE.name),
        ({"head": "logits"}, codes.NO_CTC_HEAD.name),
        *((given, "no layer 4") for given in ({"layer": 4}, {"layers": [1, 4]})),
        ({"layers": [1, 1]}, codes.DUPLICATE_LAYER.name),
        ({"layer": 1, "weights": [1.0]}, "1 weights for no layers"),
        ({"layers": [1, 2], "weights": [1.0]}, "1 weights for 2 layers"),
        ({"layer": 1, "chunk_seconds": 2, "overlap_seconds": 1}, codes.OVERLAP_TOO_LONG.name),
        ({"layer": 1, "short_seconds": 11}, codes.SHORT_TOO_LONG.name),
        ({"layer": 1, "weights": "no.json"}, codes.UNREADABLE_LAYER_WEIGHTS.name),
        ({"layer": 1, "dtype": "float64"}, "dtype"),
    ]
    for options, complaint in cases:
        with pytest.raises((ConfigError, ValueError), match=complaint):
            Ssl(model=folder, **options)


def test_whisper_takes_no_more_than_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    folder = write(tmp_path, WHISPER, {**FRONT, "hop_length": 160})
    assert Ssl(model=folder, layer=1).chunk_frames == 1500
    with pytest.raises(ValueError, match="chunk_seconds is 40, and whisper takes at most 30 s"):
        Ssl(model=folder, layer=1, chunk_seconds=40)
    (tmp_path / "w.json").write_text('{"a": 1}')
    with raises(families.UNUSABLE_MODEL):
        Ssl(model=folder, layers="all", weights=str(tmp_path / "w.json"))


def write_head(folder: Path, tokens: object = TOKENS, added: object = None, **config: object) -> str:
    (folder / "vocab.json").write_text(json.dumps(tokens))
    if added is not None:
        (folder / "added_tokens.json").write_text(json.dumps(added))
    return write(folder, {**CTC, **config})


def write_adapter(folder: Path, language: str, columns: int) -> None:
    """Only the header: nothing else of it is read without transformers."""
    header = json.dumps({"lm_head.weight": {"dtype": "F32", "shape": [columns, 16], "data_offsets": [0, 0]}}).encode()
    (folder / f"adapter.{language}.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def test_columns_of_a_head_are_the_tokens(tmp_path: Path) -> None:
    head = read_head(write_head(tmp_path), None)
    assert head.columns == ("<pad>", "|", "a", "tʃ")
    assert (head.stride, head.adapted, [path.name for path in head.files]) == (1, False, ["vocab.json"])
    # Tokens that the tokenizer adds: with a column of the head, and beyond it.
    added = {"<s>": 4, "</s>": 5}
    head = read_head(write_head(tmp_path, added=added, vocab_size=5), None)
    assert head.columns == ("<pad>", "|", "a", "tʃ", "<s>")
    assert [path.name for path in head.files] == ["vocab.json", "added_tokens.json"]
    assert read_head(write_head(tmp_path, added={"tʃ": 3}), None).columns == ("<pad>", "|", "a", "tʃ")


def test_convolutions_before_a_head_make_frames_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    folder = write_head(tmp_path, add_adapter=True, adapter_stride=2, num_adapter_layers=2)
    assert read_head(folder, None).stride == 4
    made = Ssl(model=folder, head="logits")
    assert (made.hop, made.chunk_frames, made.overlap_frames) == (1280, 375, 50)
    assert Ssl(model=folder, layer=1).hop == 320


def test_options_of_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "find_spec", lambda name: True)
    made = Ssl(model=write_head(tmp_path), head="posteriors")
    assert (made.kind, made.columns, made.tracks) == ("posteriors", ("<pad>", "|", "a", "tʃ"), (("ssl", 4),))
    assert made.files()[-1] == tmp_path / "vocab.json"
    assert {"head": "posteriors", "language": None}.items() <= made.describe().items()
    with pytest.raises(ValueError, match=codes.LAYER_WEIGHTS_MISMATCH.text(weights=1, layers="no")[0]):
        Ssl(model=str(tmp_path), head="logits", weights=[1.0])
    # Layers are described as before there were heads and gains: they are not computed again.
    layer = Ssl(model=str(tmp_path), layer=1)
    assert (layer.kind, layer.columns, layer.ctc) == ("features", None, None)
    later = {"head", "language", "gain", "short_seconds", "window_seconds"}
    assert set(layer.describe()) == set(Ssl.model_fields) - later
    assert tmp_path / "vocab.json" not in layer.files()


def test_vocabularies_of_another_head(tmp_path: Path) -> None:
    least = {"<pad>": 0, "|": 1}
    cases: list[tuple[dict[str, object], object, str]] = [
        *(({**TOKENS, "x": column}, None, f"'x' is column {column!r}") for column in (4, -1, "3")),
        ({**TOKENS, "x": 3}, None, "'tʃ' and 'x' are both column 3"),
        ({**least, "a": 2}, None, "column 3 has no name"),
        ({}, None, "column 0 has no name"),
        ({**least, "": 2, "b": 3}, None, "column 2 has no name"),
        ({**least, "a": 2}, {"a": 3}, "columns 2 and 3 are both 'a'"),
        ({**least, "a": 2}, {"x": None}, "'x' is column None"),
    ]
    for tokens, added, problem in cases:
        (tmp_path / "added_tokens.json").unlink(missing_ok=True)
        with raises(families.UNUSABLE_MODEL, where=str(tmp_path), columns=4, problem=problem):
            read_head(write_head(tmp_path, tokens, added), None)


def test_heads_that_are_not_there(tmp_path: Path) -> None:
    for architectures in (None, ["Wav2Vec2Model"]):
        with raises(codes.NO_CTC_HEAD, where="config.json", architectures=architectures):
            read_head(write_head(tmp_path, architectures=architectures), None)
    folder = write_head(tmp_path)
    with raises(codes.LANGUAGE_WITHOUT_CHOICE, where="vocab.json", language="ces"):
        read_head(folder, "ces")
    (tmp_path / "vocab.json").unlink()
    with raises(codes.MODEL_FILE_MISSING, file="vocab.json"):
        read_head(folder, None)
    with raises(families.UNUSABLE_MODEL, where="config.json", keys="vocab_size"):
        read_head(write_head(tmp_path, vocab_size=None), None)


def test_a_head_for_each_language(tmp_path: Path) -> None:
    languages = {"ces": TOKENS, "hun": {"<pad>": 0, "ö": 1}}
    folder = write_head(tmp_path, languages, adapter_attn_dim=16)
    for language, said in ((None, "not set"), ("rus", "rus")):
        with raises(families.UNKNOWN_NAME, language=said, count=2, languages="ces, hun"):
            read_head(folder, language)
    with raises(codes.MODEL_FILE_MISSING, file="adapter.hun.safetensors"):
        read_head(folder, "hun")
    write_adapter(tmp_path, "hun", 2)
    head = read_head(folder, "hun")
    assert (head.columns, head.adapted) == (("<pad>", "ö"), True)
    assert [path.name for path in head.files] == ["vocab.json", "adapter.hun.safetensors"]
    write_adapter(tmp_path, "hun", 3)
    with raises(families.UNUSABLE_MODEL, columns=3, problem="column 2 has no name"):
        read_head(folder, "hun")
    for damaged in (b"", b"\xff" * 20, (2).to_bytes(8, "little") + b"{}"):
        (tmp_path / "adapter.hun.safetensors").write_bytes(damaged)
        with raises(codes.MODEL_FILE_UNREADABLE, where="adapter.hun.safetensors"):
            read_head(folder, "hun")
    # Without adapters the weights have one head, of the language whose columns it has.
    head = read_head(write_head(tmp_path, languages), "ces")
    assert (head.columns, head.adapted) == (("<pad>", "|", "a", "tʃ"), False)


def test_a_name_is_of_a_model_in_the_cache_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    asked = str(tmp_path / "configs" / "somebody" / "model")
    assert folder_of(asked) == asked
    repository = tmp_path / "models--somebody--model"
    folder = repository / "snapshots" / "abc"
    for place in (folder, repository / "refs"):
        place.mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    assert folder_of(asked) == str(folder)
    write(folder, WHISPER, {**FRONT, "hop_length": 160})
    assert Ssl(model=asked, layer=1).describe()["model"] == str(folder)
    Path(asked).mkdir(parents=True)
    assert folder_of(asked) == asked, "a folder comes before a name"
