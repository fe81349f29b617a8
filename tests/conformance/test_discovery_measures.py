"""Every registered measure of term discovery keeps the rules."""

from __future__ import annotations

import pytest

from swsdist.registry.entries import DiscoveryMeasureEntry
from swsdist.registry.registries import DISCOVERY_MEASURES
from swsdist.testing.conformance import check_discovery_measure


@pytest.mark.parametrize("name", list(DISCOVERY_MEASURES))
def test_conformance(name: str) -> None:
    check_discovery_measure(name)


class Blocks:
    """Counts blocks, so it depends on them."""

    def count(self, block):
        from swsdist.discovery.measures import WithoutPairs

        return WithoutPairs({"blocks": 1})

    def values(self, parts):
        return {"blocks": parts["blocks"]}


def test_what_depends_on_blocks_is_refused(added) -> None:
    name = added(DISCOVERY_MEASURES, "blocks", DiscoveryMeasureEntry(f"{__name__}:Blocks", 1, ("blocks",)))
    with pytest.raises(AssertionError, match="blocks of documents give"):
        check_discovery_measure(name)
