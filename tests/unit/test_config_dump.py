"""Configs from Python, written back as YAML, and those that come with the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.config import config_from_dict, dump_config, load_config
from swsdist.core.codes import config as config_codes
from tests.support.coded import raises

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def test_from_python_values(tmp_path: Path) -> None:
    values = {"run": tmp_path / "out", "corpus": {"documents": "docs.csv"}}
    values |= {"report": {"exports": ("csv",)}, "storage": {"price": "$5"}}
    config = config_from_dict(values, tmp_path, ["search.lanes=8"])
    assert (config.run, config.corpus.documents) == (f"{tmp_path}/out", f"{tmp_path}/docs.csv")
    assert (config.report.exports, config.storage, config.search.lanes) == (("csv",), {"price": "$5"}, 8)
    with raises(config_codes.INVALID_CONFIG, where="config", count=2) as caught:
        config_from_dict({"run": "r", "corpus": {"documents": "d", "queries": object()}, "sistem": "x"})
    _, first, second, _ = str(caught.value).splitlines()
    assert (first.split(": ")[0], first.split()[-1]) == ("  corpus.queries", "[invalid-value]")
    assert (second.split(": ")[0], second.split()[-1]) == ("  sistem", "[unknown-key]")


def test_dump_and_load_is_the_same_config_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(
        "run: out\ncorpus: {documents: docs.csv}\nsearch: {lanes: 7}\nreport: {exports: [csv]}\n"
        "storage: {a: [1, {b: null}], c: '${SWSDIST_NO_SUCH:-y}'}\n"
    )
    config = load_config(tmp_path / "my.yaml")
    path = tmp_path / "deep" / "config.yaml"
    path.parent.mkdir()
    path.write_text(dump_config(config), "utf-8")
    assert load_config(path) == config
    assert "distance: cosine\n" in dump_config(config)


# Written back


number = st.integers(1 - 2**63, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | number | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@example(system="b\x85:", storage={"\u2028": "\U0001f600", "a: b": ["#", {"$": "$"}]})
@given(system=st.text(min_size=1), storage=st.dictionaries(st.text(), plain, max_size=3))
def test_any_value_survives_dump_and_load(
    tmp_path_factory: pytest.TempPathFactory, system: str, storage: dict[str, Any]
) -> None:
    config = config_from_dict({"run": "r", "corpus": {"documents": "d"}, "system": system, "storage": storage})
    path = tmp_path_factory.getbasetemp() / "dumped.yaml"
    path.write_bytes(dump_config(config).encode())
    assert load_config(path) == config


# The configs that come with the project


def test_the_configs_of_the_project_load() -> None:
    if not SHARED.is_dir():
        pytest.skip("needs ../shared beside the checkout")
    for path in sorted(CONFIGS.glob("*.yaml")):
        config = load_config(path)
        assert config.run == str(CONFIGS.parent / "runs" / path.stem)
        for table in (config.corpus.documents, config.corpus.queries, config.corpus.references):
            assert Path(str(table)).is_file(), path
    for path in sorted((CONFIGS / "systems").glob("*.yaml")):
        config = load_config(path, corpus=str(CONFIGS / "corpora/mboshi-dev.yaml"), run="runs/x")
        assert config.system == path.stem
        named = [each.options["weights"] for each in config.features if each.name == "phnrec"]
        assert all(Path(str(weights)).is_dir() for weights in named)
