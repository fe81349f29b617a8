"""Linear discriminants of labels (LDA, HLDA), fitted to the corpus before the first document is indexed.

A chain fits them (`features.fitting.scatter`); each is then the projection of its model, with exact sums.

Labels come from the corpus (`corpus.alignments.phones`), or from a file: a CTM, or a master label file. The result is
not zero-resource, and if the searched documents are the labelled ones, every report says so. `automatic` declares that
a program labelled the documents from their audio alone; the labels are then no oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from swsdist.config.section import IsPath
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.moments import OfClasses
from swsdist.features.transforms.project import FittedProjection


class Lda(FittedProjection):
    """The first discriminants."""

    labels: IsPath | None = None
    automatic: bool = False

    name: ClassVar[str] = "lda"
    version: ClassVar[int] = 1
    makes: ClassVar[str] = "discriminants"
    letter: ClassVar[str] = "d"

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """The rounds, over products of columns by class."""
        return OfClasses(names, self.columns, heteroscedastic=self.name == "hlda", transform=self.name)

    def matters(self) -> dict[str, object]:
        """The number of columns and the hours; labels are identified by their content."""
        return {"columns": self.columns, "hours": self.hours, "automatic": self.automatic}


class Hlda(Lda):
    """Discriminants with one covariance per class."""

    name: ClassVar[str] = "hlda"
    version: ClassVar[int] = 2
