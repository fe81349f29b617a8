"""Which systems in configs/systems search on a GPU (docs/how-to/search-on-a-gpu.md)."""

from typing import Any

import pytest
from ruamel.yaml import YAML

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.config import config_from_dict
from swsdist.config.loader import section_from
from swsdist.config.search import Search
from swsdist.core.codes import config as codes_of_configs
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.io.filesystem import Folder
from swsdist.methods.method import create
from swsdist.pipeline.ledger import Ledger
from tests.support.coded import raises
from tests.support.gpu import CASES, SYSTEMS, searches

NAMES = sorted(path.stem for path in SYSTEMS.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_of_each_system(name: str) -> None:
    """The method dtw takes a GPU, and its kernels are compared for this system; others refuse one."""
    config: dict[str, Any] = YAML(typ="safe").load((SYSTEMS / f"{name}.yaml").read_text())
    chain = config.get("chain", "search")
    if chain == "fuse":
        return
    search = {**config.get("search", {}), "backend": "cuda"}
    if chain == "discover":
        made = config_from_dict({"chain": "discover", "run": "r", "corpus": {"documents": "d.csv"}, "search": search})
        with raises(families.UNUSED_OPTION):
            DiscoverInputs(made, Ledger(Folder("r")))
        return
    if search.get("method", "dtw") == "dtw":
        assert create(Search.model_validate(search)) is not None
        same = {
            (case.recurrence, frozenset(case.distances), case.row_range)
            for name, case in CASES.items()
            if name.startswith("system")
        }
        section = searches()[name]
        distances = frozenset(term.distance for term in section.terms())
        assert (section.recurrence, distances, section.row_range) in same
        return
    section = Search.model_validate({"method": search["method"], "backend": "cuda"})
    with raises(codes.UNUSED_SEARCH_KEY, where="search.backend", method=search["method"]):
        create(section)


def test_a_first_pass_is_refused() -> None:
    """What it leaves is too little for a GPU, and is scanned by kernels of the CPU."""
    for backend in ("cuda", "auto"):
        with raises(codes_of_configs.FIRST_PASS_CONFLICT) as refused:
            section_from(Search, "search", {"backend": backend, "first_pass": {"name": "coarse"}})
        assert "set backend: cpu" in str(refused.value)
