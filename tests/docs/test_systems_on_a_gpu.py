"""The page on GPUs says of each system in configs/systems whether it searches on one, and is held against the system."""

from __future__ import annotations

import re
from typing import Any

from markdown_pages import ROOT
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

PAGE = ROOT / "docs/how-to/search-on-a-gpu.md"


def _rows() -> dict[str, str]:
    """What the table says in its last column, by system."""
    found: dict[str, str] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`([\w.-]+)\.yaml`", cells[0]) if line.startswith("| `") else ():
            assert name not in found, name
            found[name] = cells[-1]
    return found


ROWS = _rows()


def test_every_system_has_a_row() -> None:
    assert sorted(ROWS) == sorted(path.stem for path in SYSTEMS.glob("*.yaml"))


def test_what_the_rows_say_is_so() -> None:
    compared = {
        (one.recurrence, frozenset(one.distances), one.row_range) for name, one in CASES.items() if "system" in name
    }
    for name, row in ROWS.items():
        config: dict[str, Any] = YAML(typ="safe").load((SYSTEMS / f"{name}.yaml").read_text())
        chain, says_of_gpu = config.get("chain", "search"), row.split(":")[0]
        search = {**config.get("search", {}), "backend": "cuda"}
        if chain == "fuse":
            assert says_of_gpu == "its systems do", name
        elif chain == "discover":
            assert says_of_gpu == "no", name
            values = {"chain": "discover", "run": "r", "corpus": {"documents": "d.csv"}, "search": search}
            with raises(families.UNUSED_OPTION):
                DiscoverInputs(config_from_dict(values), Ledger(Folder("r")))
        elif says_of_gpu == "yes":
            assert create(Search.model_validate(search)) is not None
            section = searches()[name]
            assert (
                section.recurrence,
                frozenset(term.distance for term in section.terms()),
                section.row_range,
            ) in compared
        else:
            assert says_of_gpu == "no", name
            section = Search.model_validate({"method": search["method"], "backend": "cuda"})
            with raises(codes.UNUSED_SEARCH_KEY, where="search.backend", method=search["method"]):
                create(section)


def test_a_first_pass_is_refused() -> None:
    """What it leaves is too little for a GPU, and is scanned by kernels of the CPU."""
    for backend in ("cuda", "auto"):
        with raises(codes_of_configs.FIRST_PASS_CONFLICT) as refused:
            section_from(Search, "search", {"backend": backend, "first_pass": {"name": "coarse"}})
        assert "set backend: cpu" in str(refused.value)
