"""Options of the chain discover: the section `options` of its config."""

from __future__ import annotations

from pydantic import Field

from swsdist.config.section import Section
from swsdist.discovery.search.boundaries import Boundaries
from swsdist.discovery.search.clusters import Clustering
from swsdist.discovery.search.matches import Matching
from swsdist.discovery.search.neighbours import Neighbours
from swsdist.discovery.search.segments import Segments


class DiscoverOptions(Section):
    """The options of the chain discover."""

    segments: Segments = Field(Segments(), description="stretches whose signatures are compared")
    neighbours: Neighbours = Field(Neighbours(), description="how pairs of them are proposed")
    matching: Matching = Field(Matching(), description="how two are aligned")
    clustering: Clustering = Field(Clustering(), description="how matches become classes")
    boundaries: Boundaries = Field(Boundaries(), description="where words may begin and end")
    rest: int = Field(5, ge=1, description="frames of the shortest stretch that a parse leaves as a token of its own")

    @property
    def apart(self) -> int:
        """Least frames between the first frames of two segments of a document: they do not overlap, nor do matches."""
        return max(self.segments.frames, self.matching.frames)
