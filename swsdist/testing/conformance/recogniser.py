"""Checks recognisers; see `swsdist.lattices.recognition.Recogniser` for the requirements."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from swsdist.core.needs import LEAST
from swsdist.lattices.recognition import Recognition
from swsdist.registry.registries import RECOGNISERS
from swsdist.testing.conformance.entry import check_entry, require
from swsdist.testing.conformance.lattices import check_lattice, same_lattices


def check_recogniser(name: str, samples: NDArray[np.float32], options: Mapping[str, object] | None = None) -> None:
    """Check a registered recogniser with a recording.

    Its lattice and its texts are the same whatever the blocks and after other recordings; the lattice is of the key and
    channel, fits together and holds words; of no samples there are none.

    Args:
        name: registered in `swsdist.registry.registries.RECOGNISERS`.
        samples: float32 (samples,) at its rate, of words that it recognises.
        options: of the recogniser.

    Raises:
        AssertionError: a check fails; the message names it.
    """
    _, what = check_entry(RECOGNISERS, name)
    recognition = Recognition(name=name, options=dict(options or {}))
    identity = recognition.identities()
    require(json.loads(json.dumps(identity)) == recognition.identities(), what, f"its identity is no JSON: {identity}")
    recogniser = recognition.loaded(LEAST[0])
    parts = np.array_split(samples, 7)
    lattice, texts = recogniser.lattice("a", 2, [samples]), recogniser.texts([samples])
    check_lattice(lattice, what)
    require((lattice.key, lattice.channel) == ("a", 2), what, f"its lattice is of {lattice.key}, {lattice.channel}")
    require(bool(texts) and all(text.labels for text in texts) and any(lattice.labels), what, "it recognises nothing")
    costs = [text.cost for text in texts]
    require(costs == sorted(costs) and min(costs) >= 0, what, f"costs of its texts fall, or are below 0: {costs}")
    require(recogniser.texts([]) == [], what, "it makes words of nothing")
    check_lattice(recogniser.lattice("b", 1, []), what)
    require(same_lattices([lattice], [recogniser.lattice("a", 2, parts)]), what, "its lattices depend on blocks")
    require(texts == recogniser.texts(parts), what, "its texts depend on blocks")
