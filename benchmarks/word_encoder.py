"""An encoder of stretches of speech for `python -m benchmarks.word_embeddings`, trained on those that are aligned alike."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby, pairwise, product
from operator import itemgetter
from pathlib import Path

import numpy as np

from benchmarks.corpora import Corpus, read
from benchmarks.rows import say
from benchmarks.systems import half_of
from swsdist.api import open_store
from swsdist.io.filesystem import Folder
from swsdist.methods.dtw.shard import Documents
from swsdist.pipeline.status import load_chain_run

_STEPS, _SIZE, _HIDDEN, _PAIRS, _RANDOM = 2000, 128, 256, 192, 256


def sums_of(documents: Documents, blocks: Iterable[np.ndarray]) -> np.ndarray:
    """float64 (frames + 1, columns): sums of the frames before each; each stream has a mean square of 1."""
    widths = [stream.stop - stream.first for stream in documents.distance.streams]
    frames = np.concatenate(list(blocks)) * np.repeat(np.sqrt(widths) / 2**11.5, widths)
    return np.cumsum(np.vstack([np.zeros_like(frames[:1]), frames]), axis=0)


def means_of(sums: np.ndarray, starts: np.ndarray, lengths: np.ndarray, bins: int) -> np.ndarray:
    """float32 (stretches, bins x columns); borders of parts lie between frames too."""
    edges = starts[:, None] + lengths[:, None] * np.arange(bins + 1) / bins
    below = np.minimum(edges.astype(np.int64), len(sums) - 2)
    at = sums[below] + (sums[below + 1] - sums[below]) * (edges - below)[..., None]
    return (np.diff(at, axis=1) / (lengths / bins)[:, None, None]).reshape(len(starts), -1).astype(np.float32)


def aligned(corpus: Corpus) -> dict[str, list[tuple[str, int, int]]]:
    """Document and frames of up to three words, and four to eleven phones, of 0.22 to 1 s; none overlaps a query's term."""
    terms, taken, classes = {row["term"] for row in read(corpus.queries)}, defaultdict(list), defaultdict(list)
    for row in read(corpus.documents.parent / "refs.csv"):
        taken[row["doc_id"]].append((float(row["start"]), float(row["end"])))
    for name, least, most in (("align", 1, 3), ("phones", 4, 11)):
        lines = [line.split() for line in (corpus.documents.parent / f"{name}.ctm").read_text("utf-8").splitlines()]
        for doc_id, group in groupby(lines, key=itemgetter(0)):
            parts = [(float(start), float(start) + float(seconds), word) for _, _, start, seconds, word in group]
            for k, n in product(range(len(parts)), range(least, most + 1)):
                run = parts[k : k + n]
                a, b, label = run[0][0], run[-1][1], " ".join(part[2] for part in run)
                if len(run) < n or not 0.22 <= b - a <= 1 or label in terms:
                    continue
                pauses = any(after[0] - before[1] > 0.03 for before, after in pairwise(run))
                if not pauses and not any(min(b, y) - max(a, x) > 0.03 for x, y in taken[doc_id]):
                    classes[f"{name} {label}"].append((doc_id, round(a * 100), round(b * 100)))
    return classes


def train(classes: list[np.ndarray], sums: np.ndarray, ends: np.ndarray, bins: int) -> dict[str, np.ndarray]:
    """Arrays of an encoder: components of the means with a hidden layer beside them, contrastive (NT-Xent).

    Args:
        classes: int64 (stretches, 4) of each: first frame, the one after the last; and those of its document.
        sums: of the frames of all documents.
        ends: of the documents.
        bins: of a stretch.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    first, stop, begin, end = np.concatenate(classes).T
    copies = []
    for _ in range(3):  # both ends move by up to 12 %
        a, b = (edge + rng.uniform(-0.12, 0.12, len(edge)) * (stop - first) for edge in (first, stop))
        a = np.clip(a, begin, end - 9)
        copies.append(means_of(sums, a, np.clip(b, a + 8, end) - a, bins))
    copies = torch.from_numpy(np.stack(copies))
    starts, lengths = rng.integers(len(sums) - 90, size=30_000), rng.integers(18, 90, 30_000)
    inside = np.searchsorted(ends, starts, "right") == np.searchsorted(ends, starts + lengths - 1, "right")
    others = torch.from_numpy(means_of(sums, starts[inside], lengths[inside], bins))
    mean, (values, axes) = others.mean(0), torch.linalg.eigh(torch.cov(others.double().T))
    components = nn.Parameter((axes.flip(1)[:, :_SIZE] / values[-1].sqrt()).float())
    hidden, top, drop = nn.Linear(len(mean), _HIDDEN), nn.Linear(_HIDDEN, _SIZE, bias=False), nn.Dropout(0.2)
    nn.init.zeros_(top.weight)
    parameters = [components, *hidden.parameters(), *top.parameters()]
    optimiser = torch.optim.AdamW(parameters, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.001, total_steps=_STEPS)
    members = np.array([len(each) for each in classes])
    offsets, share = np.cumsum(members) - members, members**0.5 / (members**0.5).sum()
    for _ in range(_STEPS):
        k = rng.choice(len(classes), _PAIRS, p=share)
        a = rng.integers(members[k])
        b = (a + rng.integers(1, members[k])) % members[k]
        chosen, label = np.concatenate([offsets[k] + a, offsets[k] + b]), torch.from_numpy(np.tile(k, 2))
        size = len(chosen)
        inputs = copies[rng.integers(3, size=size), chosen]
        inputs = torch.cat([inputs, others[rng.integers(len(others), size=_RANDOM)]])
        inputs = inputs + 0.2 * inputs.std() * torch.randn_like(inputs) - mean
        vectors = functional.normalize(inputs @ components + top(drop(hidden(drop(inputs)).relu())))
        target = torch.arange(size).roll(_PAIRS)
        alike = functional.pad(label[:, None] == label, (0, _RANDOM))
        alike[torch.arange(size), target] = False  # the other of a pair is what is to be chosen
        loss = functional.cross_entropy((vectors[:size] @ vectors.T / 0.07).masked_fill(alike, -1e9), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    arrays = {"components": components, "weight": hidden.weight, "bias": hidden.bias, "top": top.weight, "mean": mean}
    return {name: array.detach().numpy() for name, array in arrays.items()}


def encoders(run: Path, corpus: Corpus, bins: int, folder: Path) -> list[str]:
    """Files of the encoders for each half of the documents, trained on the other half's frames in the store of a run."""
    store, paths, classes = open_store(str(run / "store")), [], aligned(corpus)
    settings = load_chain_run(Folder(str(run))).config.search
    documents = Documents(store, [shard.name for shard in store.manifest.shards], settings)
    names = documents.table["doc_id"].to_pylist()
    frames = {names[k]: np.concatenate(list(blocks)) for k, blocks in documents.stream()}
    for half in (0, 1):
        others = {name: each for name, each in frames.items() if half_of(name) != half}
        ends = np.cumsum([len(each) for each in others.values()])
        begin = dict(zip(others, [0, *ends.tolist()], strict=False))
        stretches = [
            [np.array([a, b, 0, len(others[name])]) + begin[name] for name, a, b in each if name in others]
            for each in classes.values()
        ]
        stretches = [np.stack(each) for each in stretches if len(each) > 1]
        started = time.process_time()
        arrays = train(stretches, sums_of(documents, others.values()), ends, bins)
        say(f"word embeddings: trained in {time.process_time() - started:.0f} CPU s")
        paths.append(str(folder / f"encoder{half}.npz"))
        np.savez(paths[-1], **arrays)
    return paths
