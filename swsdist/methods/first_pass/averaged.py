"""First pass that searches averaged frames: averages over r frames need r x r times fewer cells.

The first level finds the best windows by the bounded-slope search on frames averaged over the largest factor; each
further level,
with a smaller factor, searches only the windows of the previous one, as does the exact search. A coarse path that ends
in averaged
frame e proposes the end frames r e - margin to r e + r + margin, because the least cost may move between levels.

Measured: docs/concepts/first-passes.md. The idea of coarse to fine is Salvador and Chan's (2007, FastDTW),
without their bound to one path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdist.methods.dtw.matches import Matches
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.first_pass.interface import Budget, Material, Proposals, Windows, Work, has_windows, no_windows
from swsdist.methods.first_pass.rescoring import search_all, visit


@dataclass(frozen=True)
class Averaged:
    """Averages frames by each factor in turn.

    Attributes:
        factors: decreasing, at least 2.
        margin: frames on either side of an averaged end frame.
        widen: windows of the first of several levels, as a multiple of the last level's.
        visit: False: the result of the last level is final, with times in original frames.
    """

    factors: tuple[int, ...]
    margin: int
    widen: int
    visit: bool

    def propose(self, material: Material, budget: Budget) -> Proposals:
        """Windows around the ends of the best coarse paths."""
        work = Work()
        windows = no_windows()
        for level, factor in enumerate(self.factors):
            times = self.widen if level + 1 < len(self.factors) else 1
            matches, cells = self._level(material, budget, factor, times, windows if level else None)
            work += Work(cells=cells)
            if not self.visit and level + 1 == len(self.factors):
                return Proposals(no_windows(), work, _in_frames(matches, factor, material), factor)
            windows = budget.choose(around(matches, factor, self.margin), material, times)
        return Proposals(windows, work)

    def _level(
        self, material: Material, budget: Budget, factor: int, times: int, windows: Windows | None
    ) -> tuple[Matches, int]:
        """Candidates on averaged frames, everywhere or in windows; and the number of cells."""
        examples = material.examples(factor)
        near = max(1, round(material.window / factor))
        lengths = -(-material.lengths // factor)
        last = not self.visit and factor == self.factors[-1]
        most = material.most if last else budget.most(material, times)
        if windows is not None:
            coarse = windows._replace(first=windows.first // factor, stop=-(-windows.stop // factor))
            documents = material.documents(factor, has_windows(windows, len(lengths)))
            visited = visit(examples, documents, lengths, coarse, most, material.distance, near)
            return visited.found, visited.work.cells
        if budget.over == "collection" and not last:
            documents = material.documents(factor, None)
            best = search_all(examples, documents, budget.count(material, times), material.distance, near)
            return best.found, best.work.cells
        settings = Settings(material.distance, near, 16, 2000)
        matches = search(examples, material.documents(factor, None), most, settings)
        return matches, int(lengths.sum()) * sum(len(example.frames) for example in examples)


def around(matches: Matches, factor: int, margin: int) -> Windows:
    """Windows of original frames around the ends of paths on averaged ones."""
    first = matches.end_frame * factor
    return Windows(matches.query, matches.document, first - margin, first + factor + margin, matches.cost)


def _in_frames(matches: Matches, factor: int, material: Material) -> Matches:
    """Convert the times of candidates from averaged to original frames. Costs stay sums over averaged query frames."""
    stop = np.minimum((matches.end_frame + 1) * factor, material.lengths[matches.document])
    start = (matches.end_frame + 1 - matches.frames) * factor
    return matches._replace(end_frame=stop - 1, frames=(stop - start).astype(np.int32))
