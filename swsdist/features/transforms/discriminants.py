"""Linear discriminants of labels (LDA), and with a covariance a class (HLDA), fitted to the corpus before its first document is
indexed. A chain fits them (`features.fitting.scatter`); each is then the projection of its model, with exact sums.

Labels are those of the corpus (`corpus.alignments.phones`), or of a file that is named: a CTM, or a master label file. What is
made with them is not zero resource, and where the documents that are searched are those of the labels, every report says so.
`automatic` says that a program made the labels, which heard the documents and was told nothing: they are no oracle then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from swsdist.config.section import IsPath
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.scatter import OfClasses
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
        """By products of columns by class."""
        return OfClasses(names, self.columns, heteroscedastic=self.name == "hlda", transform=self.name)

    def matters(self) -> dict[str, object]:
        """How many, and of how many hours; what the labels are is known by their content."""
        return {"columns": self.columns, "hours": self.hours, "automatic": self.automatic}


class Hlda(Lda):
    """The same with a covariance a class."""

    name: ClassVar[str] = "hlda"
    version: ClassVar[int] = 1
