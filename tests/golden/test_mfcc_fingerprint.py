"""Eq. 2 of Tejedor et al. 2016 by hand, and the distance between fingerprints, which is the Euclidean one."""

import numpy as np

from swsdist.core.codes import families
from swsdist.features.extractors import create
from swsdist.features.librosa import MfccFingerprint, fingerprints
from swsdist.features.mfcc import Mfcc
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.kernels.products import local_distances
from swsdist.testing import scenes
from tests.support.coded import raises


def test_eq_2_by_hand() -> None:
    # Four frames of three coefficients. phi(1, 0) = (2 - 1) + (5 - 4) = 2; phi(2, 0) = (7 - 9) + (2 - 1) = -1;
    # phi(1, 1) = (1 - 3) + (4 - 4) = -2; phi(2, 1) = (9 - 7) + (1 - 3) = 0; phi(1, 2) = (3 - 2) + (4 - 1) = 4;
    # phi(2, 2) = (7 - 7) + (3 - 2) = 1; after the last frame comes the last frame.
    frames = np.array([[5, 2, 7], [4, 1, 9], [4, 3, 7], [1, 2, 7]], np.float32)
    assert fingerprints(frames).tolist() == [[1, 0], [0, 0], [1, 1], [0, 0]]
    assert fingerprints(frames[:1]).tolist() == [[0, 0]]


def test_its_own_mfcc_has_a_window_of_20_ms_and_39_coefficients() -> None:
    made = create("mfcc-fingerprint", {})
    assert isinstance(made, MfccFingerprint)
    assert (made.win_length, made.hop, made.sample_rate) == (320, 160, 16000)
    assert (made.n_mfcc, made.deltas, made.dimension, made.context) == (13, 2, 38, 5)
    samples = np.random.default_rng(1).normal(scale=0.1, size=9000).astype(np.float32)
    coefficients = Mfcc(win_length=320).extract(samples)
    bits = made.extract(samples)
    for t in (0, 17, len(bits) - 2):
        for i in range(1, 39):
            s = coefficients[t : t + 2].astype(float)
            phi = s[0, i] - s[1, i] + s[0, i - 1] - s[1, i - 1]
            assert bits[t, i - 1] == (phi > 0)
    assert not bits[-1].any()
    assert 0.3 < bits.mean() < 0.7
    assert not made.extract(np.zeros(9000, np.float32)).any()
    with raises(families.INVALID_VALUE):
        create("mfcc-fingerprint", {"n_mfcc": 1, "deltas": 0})


def test_the_distance_is_the_euclidean_one() -> None:
    """With the cap of configs/systems/mfcc-fingerprint.yaml no frame is cut off, and a bit is always the same integer."""
    distance = create_distance("euclidean", 38, {"cap": 6.25})
    query = np.tril(np.ones((39, 38)), -1).astype(np.float32)  # 0, 1, ... 38 ones
    document = np.concatenate([query, np.random.default_rng(2).integers(0, 2, (200, 38)).astype(np.float32)])
    made = distance.prepare(query, np.zeros(38), np.ones(38), "query")
    assert made.saturated == 0
    assert set(made.frames[:, :38].ravel().tolist()) == {0.0, 463.0}
    left, right = scenes.prepared(distance, query, "query"), scenes.prepared(distance, document, "document")
    found = local_distances(left, right, distance)
    bits = (query[:, None] != document[None]).sum(axis=2)
    # 463 x sqrt(bits) / sqrt(2), of which half a step is lost where a norm is odd, then rounded.
    assert np.abs(found - 463 * np.sqrt(bits / 2)).max() <= 1.0
    # So what is nearer in bits is nearer, and as many bits are the same distance within a step.
    assert all(found[bits == k].max() < found[bits == k + 1].min() for k in range(37))
