"""The shards of a searcher on Ray actors: each actor prepares, keeps and searches its part.

Ray restarts an actor that dies; it then reads its shards again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
import ray
from ray.exceptions import RayError, RayTaskError

from swsdist.config.model import Executor
from swsdist.config.search import Search
from swsdist.core.codes import families
from swsdist.core.needs import Needs
from swsdist.methods.dtw.backends.create import granted
from swsdist.methods.method import Unit, create
from swsdist.pipeline.execution.executor import limit_threads
from swsdist.pipeline.execution.policy import at_least, nothing_fits, workers_for
from swsdist.pipeline.execution.ray_instance import await_end, connect, create_actor, disconnect, node_resources
from swsdist.registry.registries import BACKENDS
from swsdist.store.memory import Memory
from swsdist.store.reading import Store


class _Holder:
    """An actor: lives as long as the searcher."""

    def __init__(
        self, store: tuple[str, str, Mapping[str, object]], settings: Search, memory: int, threads: int
    ) -> None:
        self._limits = limit_threads(threads)
        root, state, storage = store
        self._store = Store.at(root, state, storage=storage).with_memory(Memory(memory) if memory else None)
        self._method = create(settings)
        self._prepared: tuple[str, Any] = ("", None)

    def search(self, name: str, examples: pa.Table, shards: tuple[str, ...]) -> list[pa.Table]:
        """Candidates of the queries of a search, which has a name, in some shards."""
        if self._prepared[0] != name:
            self._prepared = name, self._method.prepare(examples, self._store)
        return list(self._method.search(self._prepared[1], self._store, shards, 1).tables)


class RayShards:
    """Actors that hold the shards of a store, on a private instance of Ray or a cluster.

    Args:
        store: a state of a store, which all nodes see.
        settings: of the search.
        units: of the search; each stays with one actor in all searches.
        memory: bytes of prepared shards that an actor may hold.
        executor: section of the config.

    Raises:
        UserError: no cluster answers, or no actor fits on any node.
    """

    def __init__(self, store: Store, settings: Search, units: Sequence[Unit], memory: int, executor: Executor) -> None:
        self._units = units
        least = Needs(memory_gb=max(1, memory) / 1e9, gpus=1.0 if BACKENDS[settings.backend].gpu else 0.0)
        needs = at_least(least, executor.worker)
        cpus = (executor.workers or 0) * needs.cpus
        self._instance = connect(executor.cluster, cpus)
        self._actors: list[Any] = []
        try:
            nodes = node_resources()
            places = workers_for(nodes, [needs], executor.workers, max(1, len(units)))
            if not places:
                raise nothing_fits(nodes, needs)
            of = store.folder.root, store.manifest.fingerprint, store.folder.storage
            granted_settings = settings.model_copy(update={"backend": granted(settings.backend, needs.gpus)})
            # Ray restarts a dead actor and repeats its unanswered call.
            again = {"max_restarts": executor.actor_restarts, "max_task_retries": executor.attempts - 1}
            arguments, spread = (of, granted_settings, memory, needs.cpus), {"scheduling_strategy": "SPREAD"}
            self._actors += [create_actor(_Holder, needs, *arguments, **again, **spread) for _ in places]
        except BaseException:
            self.close()
            raise

    def search(self, examples: pa.Table) -> Iterator[tuple[Unit, list[pa.Table]]]:
        """Candidates of some queries (EXAMPLES), unit by unit, as they arrive."""
        name, examples_ref = uuid4().hex, ray.put(examples)  # several threads may search
        calls = {
            self._actors[k % len(self._actors)].search.remote(name, examples_ref, unit.shards): unit
            for k, unit in enumerate(self._units)
        }
        left = list(calls)
        try:
            while left:
                (done, *_), left = ray.wait(left)
                yield calls[done], ray.get(done)
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except RayError as error:
            raise families.NO_WORKER(
                "actors of the searcher are lost ({error})",
                "check the nodes, and make another searcher",
                where="executor",
                error=error,
            ) from None
        finally:
            for call in left:
                ray.cancel(call)  # its result is not needed

    def close(self) -> None:
        """Stop the actors, and a private instance of Ray."""
        for actor in self._actors:
            ray.kill(actor)
        await_end(self._actors)
        disconnect(self._instance)
