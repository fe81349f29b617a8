"""The plan of a run, as it stands: which tasks make up each stage. It says what of the folder's tables is current."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from swsdist.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.store.manifest import Manifest

NAME = "plan.json"


@dataclass
class Plan:
    """Fingerprints of each stage's tasks that are done, the store's state they refer to, and where the store is."""

    store: str = ""
    manifest: Manifest | None = None
    stages: dict[str, list[str]] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)

    def same(self, other: Plan) -> bool:
        """Whether both name the same tables. What indexing had to do is left out: the manifest tells what there is."""

        def tables(plan: Plan) -> tuple[Any, ...]:
            return plan.store, plan.manifest, {stage: names for stage, names in plan.stages.items() if stage != "index"}

        return tables(self) == tables(other)

    def to_json(self) -> bytes:
        """As a file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False).encode()


def load_plan(run: Folder) -> Plan:
    """The plan of a run folder.

    Raises:
        StoreError: it is not a run folder.
    """
    try:
        values: dict[str, Any] = json.loads(run.read_bytes(NAME))
    except FileNotFoundError:
        raise StoreError(
            "this is not a run folder: it has no plan.json", where=run.path(), remedy="name the folder of a run"
        ) from None
    manifest = values.pop("manifest")
    try:
        return Plan(manifest=None if manifest is None else Manifest.from_json(manifest), **values)
    except (KeyError, TypeError):
        raise StoreError(
            "its plan.json was written by another version of swsdist", where=run.path(), remedy="run the config again"
        ) from None
