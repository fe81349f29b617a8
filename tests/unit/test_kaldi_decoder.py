"""The likeliest string of phones is that of the lattice decoder of Kaldi, from Python (kaldi-decoder), in a loop of phones."""

import kaldifst
import numpy as np
import pytest
from kaldi_decoder import DecodableCtc, LatticeSimpleDecoder, LatticeSimpleDecoderConfig

from swsdist.kernels.phone_loop import best_string


def loop(phones: int, states: int, entry: float, pairs: np.ndarray | None) -> kaldifst.StdVectorFst:
    """A loop: input labels are columns + 1, output labels phones + 1; with pairs, a state for each last phone."""
    fst = kaldifst.StdVectorFst()
    ends = [fst.add_state() for _ in range(1 if pairs is None else phones + 1)]
    fst.start = ends[-1]
    for end in ends:
        fst.set_final(end, 0.0)
    for last, begin in enumerate(ends):
        for phone in range(phones):
            here, cost = begin, entry + (0.0 if pairs is None else float(pairs[last, phone]))
            for state in range(states):
                there, column = fst.add_state(), phone * states + state + 1
                fst.add_arc(
                    here, kaldifst.StdArc(column, phone + 1 if state == 0 else 0, cost if state == 0 else 0.0, there)
                )
                fst.add_arc(there, kaldifst.StdArc(column, 0, 0.0, there))
                here = there
            fst.add_arc(here, kaldifst.StdArc(0, 0, 0.0, ends[0] if pairs is None else ends[phone]))
    return fst


@pytest.mark.parametrize(("states", "with_pairs"), [(1, False), (1, True), (3, False), (3, True)])
def test_equal_strings(states: int, with_pairs: bool) -> None:
    entry, config = 1.5, LatticeSimpleDecoderConfig(beam=1000.0, lattice_beam=10.0, determinize_lattice=False)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores = rng.normal(-2.0, 2.0, (60, 5, states)).astype(np.float32)
        pairs = rng.uniform(0.0, 3.0, (6, 5)).astype(np.float32).astype(np.float64) if with_pairs else None
        # The decoder holds no reference to either.
        fst, frames = loop(5, states, entry, pairs), DecodableCtc(scores.reshape(len(scores), -1))
        decoder = LatticeSimpleDecoder(fst, config)
        assert decoder.decode(frames)
        _, best = decoder.get_best_path()
        _, _, output, weight = kaldifst.get_linear_symbol_sequence(best)
        ours = best_string([-scores.astype(np.float64)], (5, states), entry, pairs)
        assert [item.phone + 1 for item in ours] == output
        assert sum(item.cost for item in ours) == pytest.approx(weight.value1 + weight.value2, rel=1e-5)
