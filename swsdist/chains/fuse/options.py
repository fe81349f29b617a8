"""Options of the chain fuse: the section `options` of its config."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from swsdist.config.section import ONE_OR_MORE, IsPath, Section
from swsdist.core.codes import fuse as codes


class FusedSystem(Section):
    """One system of a fusion: a finished run of the search chain, or a config that is run first, on the same corpus."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[^/\\:]+$")] = Field(description="its name in the fusion")
    run: IsPath | None = Field(None, description="folder of a finished run, local or s3://")
    config: IsPath | None = Field(
        None,
        description="config that is run first, in RUN/systems/NAME; corpus, protocol and executor are those of the fusion",
    )

    set: tuple[str, ...] = Field(
        (), description="overrides of that config, A.B=C each, as with --set; paths relative to its folder"
    )

    @model_validator(mode="after")
    def _has_run_or_config(self) -> FusedSystem:
        if (self.run is None) == (self.config is None):
            raise codes.RUN_OR_CONFIG.invalid(system=self.name)
        if self.run is not None and self.set:
            raise codes.SET_WITHOUT_CONFIG.invalid(system=self.name)
        return self


class FuseOptions(Section):
    """The options of the chain fuse."""

    systems: Annotated[tuple[FusedSystem, ...], ONE_OR_MORE] = Field(
        (), description="the systems, at least one: {name, run} or {name, config} each"
    )
    scores: Literal["normalised", "q-norm", "final"] = Field(
        "normalised",
        description="scores of a system: normalised, after its calibration steps before the first fitted one; "
        "q-norm, these after z-norm per query over its list; final, those of its scored list",
    )
    meet: Literal["overlap", "middle"] = Field(
        "overlap",
        description="detections of two systems are one place if they overlap, or if the mid-point of one is in the other",
    )
    overlap: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="overlap: least part of the shorter one",
    )
    found_by: PositiveInt = Field(
        1, description="keep a place if at least so many systems detected it; 2 of 3: a majority"
    )
    missing: Literal["average", "least", "rescore"] = Field(
        "average",
        description="score of a system without a detection at a place: the average of the others; its least score for the "
        "query; or the score of its method for the place",
    )
    margin: float = Field(
        0.1, ge=0, description="rescore: s before and after a place in which the match may begin and end"
    )
    between_queries: bool = Field(
        False,
        description="keep only the one with the highest fused score of overlapping detections of different queries: decisions "
        "about a query then depend on the other queries",
    )

    @model_validator(mode="after")
    def _names_are_different(self) -> FuseOptions:
        names = [system.name for system in self.systems]
        for name in names:
            if names.count(name) > 1:
                raise codes.DUPLICATE_SYSTEM.invalid(count=names.count(name), system=name)
        if names and self.found_by > len(names):
            raise codes.MAJORITY_TOO_LARGE.invalid(found_by=self.found_by, systems=len(names))
        return self
