"""Without the libraries of an extra, whatever needs them says how to get them."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from commands import Command

from swsdist.core.extras import error_of

ROOT = Path(__file__).resolve().parents[2]
#: Requirements by extra; `dev` is those of others.
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
del EXTRAS["dev"]
RENAMED = {"vl-convert-python": "vl_convert"}

#: Commands that need an extra; the package itself imports nothing of the others.
COMMANDS = {
    "gpu": "check config.yaml --set search.backend=cuda",
    "hdf5": 'check config.yaml --set features={"name":"external","options":{"path":"frames.h5","shift":0.01,"dimension":3}}',
    "ssl": 'check config.yaml --set features={"name":"ssl","options":{"model":"model","layer":1}}',
    "pocketsphinx": "check config.yaml --run other --set chain=lattices --set options.source=recogniser "
    "--set search.method=lattice",
    "figures": "score --references corpus/refs.csv --seconds 9 -s corpus/refs.csv -d x.pdf",
}


def modules_of(extra: str) -> list[str]:
    packages = [re.split(r"[^\w-]", each)[0] for each in EXTRAS[extra]]
    return [RENAMED.get(name, name.replace("-", "_")) for name in packages]


def test_each_library_of_an_extra_has_its_remedy() -> None:
    for extra in EXTRAS:
        for module in modules_of(extra):
            for name in (module, f"{module}.inner"):
                error = error_of(ModuleNotFoundError("no", name=name))
                assert error is not None, name
                assert error.remedy == f"pip install 'swsdist[{extra}]'"
    assert error_of(ModuleNotFoundError("no", name="swsdist.nothing")) is None


@pytest.mark.parametrize("extra", sorted(COMMANDS))
def test_a_command_without_them(extra: str, corpus: Path, swsdist: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpus / "model").mkdir(exist_ok=True)
    kernels = {"conv_kernel": [10], "conv_stride": [5]}
    encoder = {"model_type": "hubert", "hidden_size": 8, "num_hidden_layers": 1, **kernels}
    for name, text in {
        "frames.h5": b"\x89HDF\r\n\x1a\n",
        "model/config.json": json.dumps(encoder).encode(),
        "model/preprocessor_config.json": b'{"sampling_rate": 16000}',
        "model/model.safetensors": b"",
    }.items():
        (corpus / name).write_bytes(text)
    for module in modules_of(extra):
        monkeypatch.setitem(sys.modules, module, None)
    ended = swsdist(*COMMANDS[extra].split(), cwd=corpus, code=2)
    said = ended.out + ended.err
    assert re.search(rf"\[[a-z-]+\].*pip install 'swsdist\[{extra}\]'", said, re.DOTALL), said
